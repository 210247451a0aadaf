// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/tickers.h"

#include <algorithm>
#include <cmath>

#include "plot/theme.h"

namespace reclab {

double StepTicker::getTickStep(const QCPRange& range) {
  const double step = cleanMantissa(range.size() / (mTickCount + 1e-10));
  if (!whole_) return step;
  return step == 2.5 ? 2.0 : std::max(1.0, step);
}

void StepTicker::generate(const QCPRange& range, const QLocale& locale, QChar formatChar, int precision, QVector<double>& ticks,
                          QVector<double>* subTicks, QVector<QString>* tickLabels) {
  const QCPRange times(origin_ + range.lower * spacing_, origin_ + range.upper * spacing_);
  QCPAxisTicker::generate(times, locale, formatChar, precision, ticks, subTicks, nullptr);
  if (tickLabels) {
    tickLabels->clear();
    const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1.0;
    int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
    // A step of 2.5 or 0.25 has one more digit than its size says.
    if (const double digits = step * std::pow(10.0, decimals); std::abs(digits - std::round(digits)) > 1e-6) ++decimals;
    for (const double tick : ticks)
      tickLabels->append(
          (counted_ ? grouped(std::llround(tick)) : QString::number(tick, 'f', decimals)).replace(u'-', QStringLiteral("−")));
  }
  for (double& tick : ticks) tick = (tick - origin_) / spacing_;
  if (spacing_ < 0) {  // an axis has its ticks from left to right
    std::reverse(ticks.begin(), ticks.end());
    if (tickLabels) std::reverse(tickLabels->begin(), tickLabels->end());
  }
  if (subTicks) subTicks->clear();
}

double PowerTicker::getTickStep(const QCPRange& range) {
  const double step = QCPAxisTicker::getTickStep(range);
  return range.size() >= 2.5 ? std::max(1.0, std::round(step)) : step;
}

QVector<double> PowerTicker::createTickVector(double step, const QCPRange& range) {
  if (range.size() >= 2.5 || std::abs(range.center()) > 300) return QCPAxisTicker::createTickVector(step, range);
  if (range.size() < 0.3) {  // so little of a decade that round numbers are evenly spaced in it
    const QCPRange values(std::pow(10.0, range.lower), std::pow(10.0, range.upper));
    QVector<double> ticks = QCPAxisTicker::createTickVector(QCPAxisTicker::getTickStep(values), values);
    ticks.removeIf([](double value) { return value <= 0.0; });
    for (double& tick : ticks) tick = std::log10(tick);
    return ticks;
  }
  // As many of each decade as there is room for, and one at least.
  QVector<double> ticks;
  for (const std::vector<double>& mantissas : {std::vector{1.0, 2.0, 5.0}, {1.0, 3.0}, {1.0}}) {
    if (mantissas.size() == 3 && range.size() >= 1.6) continue;
    QVector<double> found;
    int inside = 0;
    for (double power = std::floor(range.lower); power <= range.upper; power += 1.0)
      for (const double mantissa : mantissas) {
        found.append(power + std::log10(mantissa));
        inside += range.contains(found.back());
      }
    if (!ticks.isEmpty() && inside == 0) break;
    ticks = found;
    if (inside <= tickCount() + 1) break;
  }
  return ticks;
}

QString PowerTicker::getTickLabel(double tick, const QLocale&, QChar, int) {
  return std::abs(tick - std::round(tick)) < 1e-9 && std::abs(tick) >= 3 ? powerOfTen(std::round(tick)) : powerAsNumber(tick, 3);
}

}  // namespace reclab
