// SPDX-License-Identifier: GPL-3.0-or-later
// The capacity of a matrix memory without training: pairs of random keys and values are written one after the other, and each is read by
// its key again (I. Schlag, K. Irie, J. Schmidhuber, Linear transformers are secretly fast weight programmers, ICML 2021).
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "evaluation/interval.h"
#include "experiment/experiment.h"
#include "parameters/field.h"

namespace reclab {

struct CapacityPlan {
  std::vector<std::string> maps{};  ///< of capacity_maps(); none: all
  std::int64_t key = 16, value = 16;
  std::int64_t random = 32;  ///< random features
  std::int64_t draws = 10;   ///< of all keys and values
  std::uint64_t seed = 1;
  double confidence = 0.95;  ///< of the intervals over draws
};
/// In the order of the command line.
const std::vector<PlanField<CapacityPlan>>& capacity_fields();

/// Feature maps of keys: identity, elu+1, relu, exp, dpfp-1, dpfp-2, dpfp-3 (2 nu times as long as the key), and random (positive random
/// features of exp(q.k / √d)).
const std::vector<std::string>& capacity_maps();

/// How a pair is written and read, the features φ of its key being n numbers; but for sums they are brought to length 1.
enum class WriteRule : std::uint8_t {
  sum,    ///< S += v φᵀ, z += φ, read as S φ / z.φ; of the identity as S φ / |φ|²
  delta,  ///< S += (v - S φ) φᵀ, read as S φ
  best    ///< the S of the least squares of all pairs: no linear memory of n features has a smaller error
};
std::string_view to_string(WriteRule rule);

struct CapacityRow {
  std::string map;
  std::int64_t features = 0;  ///< n
  WriteRule rule = WriteRule::sum;
  std::int64_t pairs = 0;  ///< N
  Estimate error{};        ///< Σ |read - v|² / Σ |v|² over the pairs
};
struct CapacityKnee {
  std::string map;
  std::int64_t features = 0;
  std::int64_t low = 0, high = 0;  ///< pairs that can be held without error, in the draw with the fewest and with the most
};
struct CapacityTable {
  std::vector<CapacityRow> rows{};    ///< N is n times each of capacity_loads
  std::vector<CapacityKnee> knees{};  ///< measured: keys, one after another, until the features of one are a sum of those before it
};
inline constexpr double capacity_loads[] = {0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0};

/// Throws Error for a map that there is not, and Cancelled.
CapacityTable capacity(const CapacityPlan& plan, const Progress& progress, std::stop_token stop);

}  // namespace reclab
