// SPDX-License-Identifier: GPL-3.0-or-later
// Response: kernels, frequency responses and time constants of linear time-invariant systems, from their transitions.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "recurrence/linear_system.h"

namespace reclab {

/// A LinearSystem in numbers, of the first sequence of a batch. Channels that are alike to the bit are one.
class Response {
 public:
  struct Channel {
    std::int64_t input, output;  ///< entries of a step of the system's input and output
    std::int64_t alike = 1;      ///< how many channels it stands for
  };

  /// The system as the graph has last computed it. `most`: channels beyond so many are left out.
  Response(const LinearSystem& system, Backend& backend, std::int64_t most);

  const std::vector<Channel>& channels() const { return channels_; }
  std::int64_t left_out() const { return left_out_; }
  bool finite() const { return std::holds_alternative<Taps>(parts_); }  ///< of so many taps, without modes

  /// K_k for k < lags, [lags, channels]: of a matrix by its steps, of modes by their powers.
  std::vector<double> kernels(std::int64_t lags) const;
  /// H(ω) = Σ_k K_k e^{-iωk} at angles in radians a step, [angles, channels]: of modes Σ c b / (1 - a e^{-iω}), of modes with a term of low
  /// rank the same by the Sherman-Morrison formula, of a matrix c^T (I - e^{-iω} A)^-1 b in Hessenberg form, of taps the sum itself. Where
  /// the system does not fall off it follows from the transition, infinite on a pole.
  std::vector<std::complex<double>> responses(std::span<const double> angles) const;
  /// The time constant of each channel. With modes it is that of the slowest, -1/ln|a| with the largest |a| among those that are driven and
  /// read; infinite where it does not fall off. With taps it is the lag within which Σ|K| has reached 1 - 1/e of the whole, which is the
  /// same for one exponential.
  std::vector<double> time_constants() const;
  /// Operations, about: of all channels' kernels a lag, of their responses an angle.
  double kernel_work() const;
  double response_work() const;
  /// The system whose kernel is this one's from lag `steps` on: b replaced by A^steps b.
  Response after(std::int64_t steps) const;

 private:
  using Complex = std::complex<double>;
  struct Modes {
    std::int64_t modes;
    std::vector<Complex> a, w;  ///< [channels, modes]; w = c b
  };
  struct LowRank {
    std::int64_t modes;
    std::vector<Complex> a, b, c, p, q;  ///< [channels, modes]
  };
  /// A group has a matrix, and channels from one of its columns b to one of its rows c.
  struct Matrices {
    struct Pair {
      std::size_t group, column, row;
    };
    std::int64_t n, columns, rows;
    std::vector<std::vector<double>> A, b, c;  ///< of each group [n, n], [columns, n], [rows, n]
    std::vector<Pair> pairs;
  };
  struct Taps {
    std::int64_t taps;
    std::vector<double> k;  ///< [channels, taps]
  };

  Modes read_modes(const LinearSystem& system, Backend& backend);
  LowRank read_low_rank(const LinearSystem& system, Backend& backend);
  Matrices read_matrices(const LinearSystem& system, Backend& backend);
  Taps read_taps(const LinearSystem& system, Backend& backend);
  /// Leaves those rows of the arrays [channels, row] that are not alike; and channels_, whose entries are their numbers.
  template <class... Rows>
  void leave_distinct(std::int64_t row, Rows&... rows);

  std::vector<Channel> channels_;
  std::int64_t left_out_ = 0, most_;
  std::variant<Modes, LowRank, Matrices, Taps> parts_;
};

/// Cycles a step, evenly on a logarithmic axis, over four decades up to half a cycle a step, which is the last.
std::vector<double> response_frequencies();

}  // namespace reclab
