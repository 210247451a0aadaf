// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/gradients/gradients_verdict.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <vector>

#include "plot/theme.h"

namespace reclab {

namespace {

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

QString stepsInWords(double count) {
  const double rounded = count < 10 ? std::round(count * 10) / 10 : std::round(count);
  return rounded < 1000 ? number(rounded, 6) : grouped(static_cast<std::int64_t>(rounded));
}

/// "a decade every 23 steps", "3.2 decades a step"
QString rate(double decades_per_step) {
  const double every = 1.0 / decades_per_step;
  if (every >= 1.05) return QObject::tr("a decade every %1 steps").arg(stepsInWords(every));
  if (every > 0.95) return QObject::tr("a decade every step");
  return QObject::tr("%1 decades every step").arg(number(decades_per_step));
}

}  // namespace

Verdict gradientVerdict(std::span<const std::int64_t> steps, std::span<const double> log10_norms, const QString& subject, bool backward,
                        std::int64_t first_number) {
  if (backward) {
    // The same along a time that counts down.
    std::vector<std::int64_t> down;
    std::vector<double> turned(log10_norms.rbegin(), log10_norms.rend());
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) down.push_back(-*step);
    Verdict verdict = gradientVerdict(down, turned, subject, false, first_number);
    verdict.first = -verdict.first;
    verdict.last = -verdict.last;
    return verdict;
  }
  Verdict verdict;
  const std::size_t count = std::min(steps.size(), log10_norms.size());
  std::size_t end = count;
  while (end > 0 && !std::isfinite(log10_norms[end - 1])) --end;
  // The part that is judged goes back as far as values are known. Zeros within it are steps left out, not the end of the memory.
  std::vector<std::size_t> points;  // where it is not zero, the last first
  for (std::size_t i = end; i > 0 && (std::isfinite(log10_norms[i - 1]) || log10_norms[i - 1] < 0); --i)
    if (std::isfinite(log10_norms[i - 1])) points.push_back(i - 1);
  if (end == 0) {
    verdict.sentence = QObject::tr("%1 is exactly zero at every step: nothing of the loss reaches the state.").arg(subject);
    if (count == 0) verdict.sentence = QObject::tr("%1 was not recorded at any step.").arg(subject);
    return verdict;
  }
  const std::size_t begin = points.back(), zeros = end - begin - points.size();
  const std::int64_t last = steps[end - 1];
  verdict.first = steps[begin];
  verdict.last = last;
  const double span = static_cast<double>(last - steps[begin]);
  // The steps before the part that is judged, and the zeros within it.
  QString before;
  if (zeros > 0)
    before = QObject::tr("; it is exactly zero at %1 of these %2 steps")
                 .arg(grouped(static_cast<std::int64_t>(zeros)), grouped(static_cast<std::int64_t>(end - begin)));
  if (begin > 0 && log10_norms[begin - 1] < 0)
    before += (steps[begin] < 0 ? QObject::tr("; after step %1 it is exactly zero") : QObject::tr("; before step %1 it is exactly zero"))
                  .arg(grouped(std::abs(steps[begin]) + first_number));
  if (points.size() < 4) {
    const QString known = points.size() == 1 ? QObject::tr("one step") : QObject::tr("%1 steps").arg(points.size());
    verdict.sentence = QObject::tr("%1 is known at %2 only, too few for a verdict%3.").arg(subject, known, before);
    return verdict;
  }

  // At most 256 points, evenly over the part: 32,640 pairs.
  std::vector<double> lag, norm;
  const std::size_t have = points.size(), take = std::min<std::size_t>(have, 256);
  for (std::size_t i = 0; i < take; ++i) {
    const std::size_t at = points[have - 1 - i * (have - 1) / (take - 1)];
    lag.push_back(static_cast<double>(last - steps[at]));
    norm.push_back(log10_norms[at]);
  }
  std::vector<double> slopes;
  for (std::size_t i = 0; i < take; ++i)
    for (std::size_t j = i + 1; j < take; ++j) slopes.push_back((norm[i] - norm[j]) / (lag[i] - lag[j]));
  verdict.slope = median(slopes);
  std::vector<double> offsets;
  for (std::size_t i = 0; i < take; ++i) offsets.push_back(norm[i] - verdict.slope * lag[i]);
  verdict.intercept = median(offsets);

  const double change = verdict.slope * span;
  if (std::abs(change) < 1.0) {
    verdict.fate = Fate::holds;
    // Of the curve, from end to end; the line may be far from it.
    const double whole = log10_norms[begin] - log10_norms[end - 1], factor = std::pow(10.0, std::abs(whole));
    const QString steps_in_words = grouped(last - steps[begin]), way = whole < 0 ? QObject::tr("falls") : QObject::tr("grows");
    if (factor < 1.005)
      verdict.sentence = QObject::tr("%1 holds: over %2 steps it stays the same%3.").arg(subject, steps_in_words, before);
    else if (std::abs(whole) < 1.0)
      verdict.sentence =
          QObject::tr("%1 holds: over %2 steps it %3 by a factor of %4 only%5.").arg(subject, steps_in_words, way, number(factor), before);
    else
      verdict.sentence =
          QObject::tr("%1 holds on most of its way: over %2 steps it %3 by a factor of %4, but along the fitted line by %5 only%6.")
              .arg(subject, steps_in_words, way, number(factor), number(std::pow(10.0, std::abs(change))), before);
    return verdict;
  }

  // The lag at which the change reaches a whole number of decades: eight, or the most in the record.
  const double sign = change < 0 ? -1.0 : 1.0, at_end = log10_norms[end - 1];
  double reached = 0.0;
  for (const std::size_t i : points) reached = std::max(reached, sign * (log10_norms[i] - at_end));
  const double decades = std::min(8.0, std::floor(reached));
  std::int64_t after = 0;  // from this lag on it is past that many decades, for good
  if (decades >= 1.0) {
    const auto past = [&](std::size_t i) { return sign * (log10_norms[i] - at_end) >= decades; };
    // It may come back, and then the first time counts.
    const auto for_good = std::find_if_not(points.rbegin(), points.rend(), past);
    after = last - steps[for_good != points.rbegin() ? *std::prev(for_good) : *std::find_if(points.begin(), points.end(), past)];
  }
  const QString power = powerOfTen(sign * decades), steps_after = grouped(after);
  // Where the course is far from the line, the rate and the step at which it is past so many decades do not follow from each other.
  const double by_rate = decades / std::abs(verdict.slope), reached_after = static_cast<double>(after);
  const QString evenly =
      reached_after > 1.5 * by_rate || 1.5 * reached_after < by_rate ? QObject::tr(" on the whole, but not evenly") : QString();
  if (change < 0) {
    verdict.fate = Fate::vanishes;
    verdict.sentence = QObject::tr("%1 vanishes: it loses %2").arg(subject, rate(-verdict.slope)) + (after > 0 ? evenly : QString());
    if (after > 0) verdict.sentence += QObject::tr("; after %1 steps less than %2 of it is left").arg(steps_after, power);
  } else {
    verdict.fate = Fate::explodes;
    verdict.sentence = QObject::tr("%1 explodes: it gains %2").arg(subject, rate(verdict.slope)) + (after > 0 ? evenly : QString());
    if (after > 0) verdict.sentence += QObject::tr("; after %1 steps it is more than %2 times as large").arg(steps_after, power);
  }
  verdict.sentence += before + u'.';
  return verdict;
}

}  // namespace reclab
