// SPDX-License-Identifier: GPL-3.0-or-later
#include "evaluation/score.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reclab {

std::string_view to_string(ScoredBy by) {
  switch (by) {
    case ScoredBy::length: return "length";
    case ScoredBy::position: return "position";
    case ScoredBy::delay: return "delay";
    case ScoredBy::classes: return "class";
    case ScoredBy::horizon: return "horizon";
  }
  return "";
}

SequenceScore::SequenceScore(const Sequence& sequence)
    : sequence_(sequence), counted_(std::ranges::count_if(sequence.mask, [](double m) { return m != 0.0; })) {}

void SequenceScore::add(std::int64_t step, std::span<const double> y) {
  const auto t = static_cast<std::size_t>(step);
  ScoreSum own{.weight = sequence_.mask[t]};
  if (own.weight == 0.0) return;
  const bool classes = sequence_.target_kind == TargetKind::classify;
  if (classes) {
    const auto wanted = static_cast<std::size_t>(sequence_.target[t]);
    const auto largest = std::ranges::max_element(y);
    double sum = 0.0;
    for (const double x : y) sum += std::exp(x - *largest);
    own.loss = std::log(sum) + *largest - y[wanted];
    own.metric = static_cast<std::size_t>(largest - y.begin()) == wanted ? 1.0 : 0.0;
  } else {
    for (std::size_t j = 0; j < y.size(); ++j) own.metric += std::pow(y[j] - sequence_.target[t * y.size() + j], 2);
    own.loss = own.metric / 2.0;
  }
  own.loss *= own.weight;
  own.metric *= own.weight;
  add(ScoredBy::length, 0, sequence_.length, sequence_.length, own);
  const std::int64_t place = seen_++;
  add(ScoredBy::position, counted_ <= most_positions ? place : place * most_positions / counted_, place + 1, place + 1, own);
  if (!sequence_.shown.empty() && sequence_.shown[t] >= 0) {
    const auto delay = static_cast<std::uint64_t>(step - sequence_.shown[t]);
    const int bin = std::bit_width(delay);
    add(ScoredBy::delay, bin, bin == 0 ? 0 : std::int64_t{1} << (bin - 1), bin == 0 ? 0 : (std::int64_t{1} << bin) - 1, own);
  }
  if (const auto wanted = static_cast<std::int64_t>(sequence_.target[t]); classes) add(ScoredBy::classes, wanted, wanted, wanted, own);
}

void SequenceScore::add(ScoredBy by, std::int64_t bin, std::int64_t from, std::int64_t to, const ScoreSum& step) {
  auto& sums = sums_[static_cast<std::size_t>(by)];
  if (std::ssize(sums) <= bin) sums.resize(static_cast<std::size_t>(bin) + 1);
  ScoreSum& sum = sums[static_cast<std::size_t>(bin)];
  sum.from = sum.from < 0 ? from : std::min(sum.from, from);
  sum.to = std::max(sum.to, to);
  sum.loss += step.loss;
  sum.metric += step.metric;
  sum.weight += step.weight;
}

void ScoreMeans::add(const SequenceScore& score) {
  for (const ScoredBy by : scored_by)
    for (std::size_t bin = 0; bin < score.of(by).size(); ++bin) add(by, bin, score.of(by)[bin]);
}

void ScoreMeans::add(ScoredBy by, std::size_t bin, const ScoreSum& sum) {
  if (sum.weight == 0.0) return;
  auto& parts = parts_[static_cast<std::size_t>(by)];
  if (parts.size() <= bin) parts.resize(bin + 1);
  Part& part = parts[bin];
  part.from = part.from < 0 ? sum.from : std::min(part.from, sum.from);
  part.to = std::max(part.to, sum.to);
  part.loss.add(sum.loss / sum.weight);
  part.metric.add(sum.metric / sum.weight);
}

}  // namespace reclab
