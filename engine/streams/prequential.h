// SPDX-License-Identifier: GPL-3.0-or-later
// The prequential error of a predictor on a stream: each prediction is compared with its target before anything is learned from it (A. P.
// Dawid, J. R. Statist. Soc. A 147(2), 1984). All of it takes constant memory.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "streams/source.h"
#include "streams/state.h"

namespace reclab {

/// The two measures of one prediction: the mean over the outputs of squared differences, and of absolute ones. Of classes the outputs are
/// probabilities and the target is one-hot, so that the first is the Brier score, and the second is 1 where the likeliest class is wrong.
using Errors = std::array<double, 2>;
Errors errors_of(const StreamForm& form, std::span<const double> prediction, std::span<const double> target);
/// Their names in an export: {"squared", "absolute"}, or {"brier", "wrong"}.
std::array<std::string, 2> measures_of(const StreamForm& form);
/// A target as a prediction would be: one-hot where it is a class.
void spread(const StreamForm& form, std::span<const double> target, std::span<double> to);

struct PrequentialOptions {
  std::int64_t burn_in = 0;  ///< steps whose errors are not in mean()
  std::int64_t window = 1000;
  double fading =
      0.999;  ///< the weight of an error falls by this factor with each one after it (J. Gama and others, Machine Learning 90, 2013)
};

class Prequential {
 public:
  explicit Prequential(const PrequentialOptions& options);
  /// `step`: of the stream.
  void add(std::int64_t step, const Errors& errors);
  Errors mean() const;      ///< of the steps after burn_in; NaN where there is none
  Errors windowed() const;  ///< of the last errors, as many as a window has
  Errors faded() const;
  const Errors& total() const { return total_; }  ///< the sum of all, with those of burn_in
  std::int64_t counted() const { return counted_; }
  std::int64_t total_counted() const { return total_counted_; }
  void keep(StreamState& state);

 private:
  PrequentialOptions options_;
  Errors sum_{}, total_{}, faded_{};
  double weight_ = 0.0;  // of faded_
  std::int64_t counted_ = 0, total_counted_ = 0;
  std::vector<double> ring_;  // [window, 2]
};

/// The curves of several predictors, a row every `stride` steps; when there are `most` rows each second one is left out and the stride
/// doubles.
class PrequentialCurve {
 public:
  static constexpr std::int64_t most = 2048;
  explicit PrequentialCurve(std::size_t predictors) : predictors_(predictors) {}
  /// After a step of the stream, counted from 1.
  bool due(std::int64_t steps) const { return steps % stride_ == 0; }
  void add(std::int64_t steps, const std::vector<Prequential>& all);
  std::int64_t rows() const { return std::ssize(steps_); }
  std::int64_t stride() const { return stride_; }
  const std::vector<std::int64_t>& steps() const { return steps_; }
  enum Column : std::uint8_t { windowed, faded, total };
  static constexpr std::size_t columns = 3;
  double at(std::int64_t row, std::size_t predictor, Column column, std::size_t measure) const {
    return values_[((static_cast<std::size_t>(row) * predictors_ + predictor) * columns + column) * 2 + measure];
  }
  void keep(StreamState& state);

 private:
  std::size_t predictors_;
  std::int64_t stride_ = 1;
  std::vector<std::int64_t> steps_;
  std::vector<double> values_;  // [rows, predictors, columns, 2]
};

/// The course of a predictor's first measure over one regime of the stream.
struct RegimeErrors {
  double before = unknown;      ///< mean of the last errors before the drift, as many as `near`
  double early = unknown;       ///< mean of the first errors after it
  double settled = unknown;     ///< mean over the second half of the regime
  double recovery = unknown;    ///< steps until the mean over an eighth of the regime's profile is within a quarter above `settled`
  double excess = unknown;      ///< the sum of what the errors of the regime are above `settled`: the price of the drift
  double forgetting = unknown;  ///< `early` less the mean of the last errors when this regime was left before; none where it is new
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  static constexpr std::size_t values = 6;
  std::array<double, values> numbers() const { return {before, early, settled, recovery, excess, forgetting}; }
  static constexpr std::array<const char*, values> names{"before", "early", "settled", "recovery", "excess", "forgetting"};
};

/// Drifts that a source tells, and the errors of several predictors after each. Of many drifts the first and the last are kept.
class DriftLog {
 public:
  static constexpr std::int64_t most = 128, near = 100;
  DriftLog(std::size_t predictors, std::size_t regimes);
  /// The first measure of each predictor at a step whose target counts.
  void add(std::int64_t step, std::int64_t regime, std::span<const double> errors);
  struct Row {
    std::int64_t step = 0, regime = 0;  ///< the first step of the regime, which is over
    std::vector<RegimeErrors> of;       ///< one a predictor
  };
  const std::vector<Row>& rows() const { return rows_; }  ///< the first regime, which no drift begins, is among them
  std::int64_t drifts() const { return drifts_; }
  /// The mean over all drifts whose regime is over of each of RegimeErrors' numbers, where it is known.
  std::array<double, RegimeErrors::values> mean(std::size_t predictor) const;
  void keep(StreamState& state);

 private:
  static constexpr std::size_t blocks = 64;
  struct Course {
    std::vector<double> sums{};    // of the regime's blocks
    std::vector<double> recent{};  // the last errors
    double before = RegimeErrors::unknown, early = 0.0;
    std::vector<double> left{};                            // by regime: the mean of the last errors when it was left; NaN: it never was
    std::array<double, 2 * RegimeErrors::values> means{};  // sums and numbers of those that are known
  };
  void finish();
  RegimeErrors errors_of_regime(const Course& course) const;
  double recent_mean(const Course& course) const;

  std::vector<Course> courses_;
  std::vector<Row> rows_;
  std::int64_t regime_ = -1, begun_ = 0, counted_ = 0, seen_ = 0, block_ = 16, drifts_ = 0;
};

}  // namespace reclab
