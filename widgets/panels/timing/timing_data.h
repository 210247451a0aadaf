// SPDX-License-Identifier: GPL-3.0-or-later
// The columns of a timing, read out of a Trace. Any of them may be missing: a column that is not there holds NaN.
#pragma once

#include <QString>
#include <limits>
#include <memory>
#include <vector>

#include "trace/trace.h"

namespace reclab {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// A fitted exponent and its 90 % band.
struct Exponent {
  double value = unknown, low = unknown, high = unknown;
};

/// One quantity of a form, a value for each of its lengths, with the 90 % band, or the quartiles where there is none.
struct Measured {
  std::vector<double> value, low, high;
  Exponent fit;
  bool known() const;  ///< at one length at least
};

struct TimedForm {
  QString name;
  int place = 0;  ///< among the forms of its model, so that a form keeps its colour
  std::vector<double> length;
  Measured seconds, forward, backward, memory;
  std::vector<double> low, high, low90, high90;  ///< of seconds, as they were recorded
  std::vector<double> flops, bytes, output_error, gradient_error, iterations, converged;

  /// Operations a byte and operations a second of the forward pass.
  double intensity(std::size_t row) const { return flops[row] / bytes[row]; }
  double rate(std::size_t row) const;
  /// The last row for which a column has a value; -1 when there is none.
  static std::ptrdiff_t last(const std::vector<double>& column);
};

struct Timings {
  std::vector<TimedForm> forms;
  double triad = unknown, cached = unknown, flops = unknown;  ///< the machine's roof: bytes a second, and operations a second
  double lyapunov = unknown, noise = unknown, between = unknown;
  RunInfo info;  ///< of the timing
  double batch() const { return static_cast<double>(info.batch); }
  /// The most operations a second of the machine at so many operations a byte.
  double roof(double intensity, double bandwidth) const;
};
Timings timingsOf(const Trace& trace);

/// Steps a second of all sequences of the batch together.
Measured throughputOf(const TimedForm& form, const Measured& seconds, double batch);

/// A sentence on the best form at the longest length, and the length at which it overtook the one before: between the last length at which
/// it has more and the next, on the straight lines of the plot, or nowhere where the bands do not show it. The texts take two names and a
/// length, or one of each.
QString leader(const std::vector<std::pair<const TimedForm*, Measured>>& curves, const QString& overtakes, const QString& best);

/// "8 ms", "3.2 MiB", "41 Gflop/s", "3.1 %".
QString duration(double seconds);
QString storage(double bytes);
QString scaled(double value, const QString& unit);
QString percentage(double share);

/// The description of a form at a length, in lines.
QString described(const Timings& timings, const TimedForm& form, std::size_t row);
/// The circumstances of a timing: "CPU, float64, batch 1, width 32, seed 1".
QString circumstances(const RunInfo& info);
QByteArray timingsAsCsv(const Timings& timings);

}  // namespace reclab
