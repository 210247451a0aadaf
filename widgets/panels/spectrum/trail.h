// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/trace.h"

namespace reclab {

/// The eigenvalues that the weights of a training had along its way, as they are looked at: of one layer, at one step of the sequence.
class SpectrumTrail {
 public:
  static constexpr std::size_t most = 64;
  struct Past {
    std::int64_t steps = 0;  ///< of training
    std::vector<std::complex<double>> values;
  };
  /// Takes the eigenvalues of a run; those before are kept if they are of it too.
  void take(const RunInfo& run, const QString& layer, std::int64_t step, std::span<const std::complex<double>> values);
  void clear() { past_.clear(); }
  const std::vector<Past>& past() const { return past_; }  ///< by their steps of training

 private:
  std::vector<Past> past_;
  std::string preset_;
  std::uint64_t training_ = 0;
  QString layer_;
  std::int64_t step_ = -1;
};

}  // namespace reclab
