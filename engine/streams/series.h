// SPDX-License-Identifier: GPL-3.0-or-later
// Series of numbers that several sources are made of.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "array/rng.h"
#include "streams/source.h"

namespace reclab {

/// Normal noise whose k-th number is a function of seed and k alone, so that a place in it is an index.
class IndexedNoise {
 public:
  explicit IndexedNoise(std::uint64_t seed) : rng_(seed), block_(rng_) {}
  double at(std::int64_t k);

 private:
  static constexpr std::int64_t block_size = 1024;
  Rng rng_, block_;
  std::int64_t next_ = -1;
};

/// Autoregressive processes of first order, x[t] = phi x[t-1] + e[t] with normal e of variance 1, from x[-1] = 0 on: `regime` says which
/// coefficient holds at step t.
std::unique_ptr<StreamSource> autoregressive(const SourceChoice& choice, std::vector<double> coefficients,
                                             std::function<std::int64_t(std::int64_t t)> regime);

}  // namespace reclab
