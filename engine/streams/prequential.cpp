// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/prequential.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace reclab {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

void keep_errors(StreamState& state, const std::string& name, Errors& errors) {
  std::vector<double> values(errors.begin(), errors.end());
  state.same(name, values);
  std::ranges::copy(values, errors.begin());
}

}  // namespace

Errors errors_of(const StreamForm& form, std::span<const double> prediction, std::span<const double> target) {
  Errors errors{};
  const auto outputs = static_cast<double>(prediction.size());
  const bool classes = form.target_kind == TargetKind::classify;
  const auto wanted = classes ? static_cast<std::size_t>(target[0]) : 0;
  for (std::size_t j = 0; j < prediction.size(); ++j) {
    const double difference = prediction[j] - (classes ? (j == wanted ? 1.0 : 0.0) : target[j]);
    errors[0] += difference * difference / outputs;
    if (!classes) errors[1] += std::abs(difference) / outputs;
  }
  if (classes) {
    errors[0] *= outputs;
    errors[1] = std::ranges::max_element(prediction) - prediction.begin() == static_cast<std::ptrdiff_t>(wanted) ? 0.0 : 1.0;
  }
  return errors;
}

std::array<std::string, 2> measures_of(const StreamForm& form) {
  if (form.target_kind == TargetKind::classify) return {"brier", "wrong"};
  return {"squared", "absolute"};
}

void spread(const StreamForm& form, std::span<const double> target, std::span<double> to) {
  if (form.target_kind != TargetKind::classify) {
    std::ranges::copy(target, to.begin());
    return;
  }
  std::ranges::fill(to, 0.0);
  to[static_cast<std::size_t>(target[0])] = 1.0;
}

Prequential::Prequential(const PrequentialOptions& options) : options_(options), ring_(2 * static_cast<std::size_t>(options.window)) {}

void Prequential::add(std::int64_t step, const Errors& errors) {
  const auto at = static_cast<std::size_t>(total_counted_ % options_.window);
  weight_ = options_.fading * weight_ + 1.0;
  for (std::size_t i = 0; i < 2; ++i) {
    total_[i] += errors[i];
    if (step >= options_.burn_in) sum_[i] += errors[i];
    faded_[i] = options_.fading * faded_[i] + errors[i];
    ring_[2 * at + i] = errors[i];
  }
  ++total_counted_;
  if (step >= options_.burn_in) ++counted_;
}

Errors Prequential::mean() const {
  if (counted_ == 0) return {nan, nan};
  return {sum_[0] / static_cast<double>(counted_), sum_[1] / static_cast<double>(counted_)};
}

Errors Prequential::windowed() const {
  const std::int64_t counted = std::min(total_counted_, options_.window);
  if (counted == 0) return {nan, nan};
  Errors sum{};
  for (std::size_t k = 0; k < static_cast<std::size_t>(counted); ++k)
    for (std::size_t i = 0; i < 2; ++i) sum[i] += ring_[2 * k + i];
  return {sum[0] / static_cast<double>(counted), sum[1] / static_cast<double>(counted)};
}

Errors Prequential::faded() const {
  if (weight_ == 0.0) return {nan, nan};
  return {faded_[0] / weight_, faded_[1] / weight_};
}

void Prequential::keep(StreamState& state) {
  keep_errors(state, "sum", sum_);
  keep_errors(state, "total", total_);
  keep_errors(state, "faded", faded_);
  state.real("weight", weight_);
  state.whole("counted", counted_);
  state.whole("total_counted", total_counted_);
  state.same("ring", ring_);
}

void PrequentialCurve::add(std::int64_t steps, const std::vector<Prequential>& all) {
  steps_.push_back(steps);
  for (const Prequential& one : all)
    for (const Errors& errors : {one.windowed(), one.faded(), one.total()}) values_.insert(values_.end(), errors.begin(), errors.end());
  if (rows() < most) return;
  stride_ *= 2;
  const std::size_t width = predictors_ * columns * 2;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i] % stride_ != 0) continue;
    steps_[kept] = steps_[i];
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                values_.begin() + static_cast<std::ptrdiff_t>(kept * width));
    ++kept;
  }
  steps_.resize(kept);
  values_.resize(kept * width);
}

void PrequentialCurve::keep(StreamState& state) {
  state.whole("stride", stride_, 1);
  state.whole("steps", steps_, 1, std::int64_t{1} << 52);
  state.any("values", values_);
  if (values_.size() != steps_.size() * predictors_ * columns * 2) state.refuse("values", "has another number of rows");
}

DriftLog::DriftLog(std::size_t predictors, std::size_t regimes) : courses_(predictors) {
  for (Course& course : courses_) {
    course.recent.assign(near, 0.0);
    course.left.assign(regimes, RegimeErrors::unknown);
  }
}

double DriftLog::recent_mean(const Course& course) const {
  const auto counted = static_cast<std::size_t>(std::min(seen_, near));
  return counted == 0 ? nan
                      : std::accumulate(course.recent.begin(), course.recent.begin() + static_cast<std::ptrdiff_t>(counted), 0.0) /
                            static_cast<double>(counted);
}

RegimeErrors DriftLog::errors_of_regime(const Course& course) const {
  RegimeErrors of;
  of.before = course.before;
  if (counted_ > 0) of.early = course.early / static_cast<double>(std::min(counted_, near));
  const auto size = static_cast<std::size_t>(block_), all = course.sums.size();
  if (all < 2) return of;
  const auto mean = [&](std::size_t from, std::size_t to) {
    const double steps = static_cast<double>(std::min<std::int64_t>(counted_, static_cast<std::int64_t>(to * size)) -
                                             static_cast<std::int64_t>(from * size));
    return std::accumulate(course.sums.begin() + static_cast<std::ptrdiff_t>(from), course.sums.begin() + static_cast<std::ptrdiff_t>(to),
                           0.0) /
           steps;
  };
  of.settled = mean(all / 2, all);
  const std::size_t smooth = std::max<std::size_t>(1, all / 8);
  for (std::size_t i = 0; i + smooth <= all; ++i) {
    if (!(mean(i, i + smooth) <= 1.25 * of.settled)) continue;
    of.recovery = static_cast<double>(i * size);
    break;
  }
  of.excess = (mean(0, all) - of.settled) * static_cast<double>(counted_);
  if (const double left = course.left[static_cast<std::size_t>(regime_)]; !std::isnan(left)) of.forgetting = of.early - left;
  return of;
}

/// The regime is over.
void DriftLog::finish() {
  Row row{begun_, regime_, {}};
  for (Course& course : courses_) {
    row.of.push_back(errors_of_regime(course));
    const auto numbers = row.of.back().numbers();
    if (drifts_ > 0)  // the first regime is one that no drift begins
      for (std::size_t i = 0; i < numbers.size(); ++i)
        if (!std::isnan(numbers[i])) course.means[2 * i] += numbers[i], course.means[2 * i + 1] += 1.0;
    course.before = course.left[static_cast<std::size_t>(regime_)] = recent_mean(course);
    course.sums.clear();
    course.early = 0.0;
  }
  rows_.push_back(std::move(row));
  if (std::ssize(rows_) > most) rows_.erase(rows_.begin() + most / 2);
}

void DriftLog::add(std::int64_t step, std::int64_t regime, std::span<const double> errors) {
  if (regime < 0) return;
  if (regime != regime_) {
    if (regime_ >= 0) {
      finish();
      ++drifts_;
    }
    regime_ = regime;
    begun_ = step;
    counted_ = 0;
    block_ = 16;
  }
  if (counted_ == static_cast<std::int64_t>(blocks) * block_) {
    block_ *= 2;
    for (Course& course : courses_) {
      for (std::size_t i = 0; i < blocks / 2; ++i) course.sums[i] = course.sums[2 * i] + course.sums[2 * i + 1];
      course.sums.resize(blocks / 2);
    }
  }
  for (std::size_t p = 0; p < courses_.size(); ++p) {
    Course& course = courses_[p];
    if (counted_ % block_ == 0) course.sums.push_back(0.0);
    course.sums.back() += errors[p];
    if (counted_ < near) course.early += errors[p];
    course.recent[static_cast<std::size_t>(seen_ % near)] = errors[p];
  }
  ++counted_;
  ++seen_;
}

std::array<double, RegimeErrors::values> DriftLog::mean(std::size_t predictor) const {
  std::array<double, RegimeErrors::values> means{};
  const Course& course = courses_[predictor];
  for (std::size_t i = 0; i < means.size(); ++i) means[i] = course.means[2 * i] / course.means[2 * i + 1];
  return means;
}

void DriftLog::keep(StreamState& state) {
  const auto regimes = courses_.empty() ? 0 : std::ssize(courses_[0].left);
  state.whole("regime", regime_, -1, std::max<std::int64_t>(0, regimes - 1));
  state.whole("begun", begun_);
  state.whole("counted", counted_);
  state.whole("seen", seen_);
  state.whole("block", block_, 16);
  state.whole("drifts", drifts_);
  for (std::size_t p = 0; p < courses_.size(); ++p)
    state.in(std::to_string(p), [&] {
      Course& course = courses_[p];
      state.any("sums", course.sums);
      if (std::ssize(course.sums) != (counted_ + block_ - 1) / block_ || course.sums.size() > blocks)
        state.refuse("sums", "has another number of blocks");
      state.same("recent", course.recent);
      state.same("left", course.left);
      state.real("before", course.before);
      state.real("early", course.early);
      std::vector<double> means(course.means.begin(), course.means.end());
      state.same("means", means);
      std::ranges::copy(means, course.means.begin());
    });
  std::vector<std::int64_t> steps, kinds;
  std::vector<double> numbers;
  for (const Row& row : rows_) {
    steps.push_back(row.step);
    kinds.push_back(row.regime);
    for (const RegimeErrors& of : row.of) {
      const auto values = of.numbers();
      numbers.insert(numbers.end(), values.begin(), values.end());
    }
  }
  state.whole("rows/step", steps, 0, std::int64_t{1} << 52);
  state.whole("rows/regime", kinds, 0, std::max<std::int64_t>(0, regimes - 1));
  state.any("rows/numbers", numbers);
  if (!state.reads()) return;
  if (kinds.size() != steps.size() || numbers.size() != steps.size() * courses_.size() * RegimeErrors::values || std::ssize(steps) > most)
    state.refuse("rows/numbers", "has another number of rows");
  rows_.clear();
  auto number = numbers.begin();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Row row{steps[i], kinds[i], {}};
    for (std::size_t p = 0; p < courses_.size(); ++p) {
      RegimeErrors of;
      for (double* to : {&of.before, &of.early, &of.settled, &of.recovery, &of.excess, &of.forgetting}) *to = *number++;
      row.of.push_back(of);
    }
    rows_.push_back(std::move(row));
  }
}

}  // namespace reclab
