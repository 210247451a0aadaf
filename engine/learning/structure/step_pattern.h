// SPDX-License-Identifier: GPL-3.0-or-later
// The structure of a model's step, found by evaluating it: with weights near those of the model and random inputs, in the states that
// follow.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "learning/online/influence.h"

namespace reclab {

/// A matrix of bits, in rows.
class BitMatrix {
 public:
  BitMatrix() = default;
  BitMatrix(std::size_t rows, std::size_t columns) : rows_(rows), columns_(columns), words_((columns + 63) / 64), bits_(rows * words_) {}
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  bool at(std::size_t i, std::size_t j) const { return bits_[i * words_ + j / 64] >> (j % 64) & 1; }
  void set(std::size_t i, std::size_t j) { bits_[i * words_ + j / 64] |= std::uint64_t{1} << (j % 64); }
  std::span<std::uint64_t> row(std::size_t i) { return std::span(bits_).subspan(i * words_, words_); }
  std::span<const std::uint64_t> row(std::size_t i) const { return std::span(bits_).subspan(i * words_, words_); }
  /// The columns that are set.
  std::vector<std::uint32_t> listed(std::size_t i) const;
  std::size_t count() const;
  bool operator==(const BitMatrix&) const = default;

 private:
  std::size_t rows_ = 0, columns_ = 0, words_ = 0;
  std::vector<std::uint64_t> bits_;
};
void unite(std::span<std::uint64_t> to, std::span<const std::uint64_t> from);
bool meet(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);

/// The entries of J = ds[t]/ds[t-1] and of D, the derivative of one step by the weights, that are not 0 in every state.
struct StepPattern {
  BitMatrix jacobian, direct;
  bool operator==(const StepPattern&) const = default;
};
/// Looked at until several rounds of steps show no more of them. Throws Error for a model that is too large for it.
StepPattern step_pattern(const OnlineSetup& setup);

/// M[1] = D, M[n] = D and J M[n-1]: the entries of the state that a weight reaches within n steps. `grows`: whether more steps reach more.
struct Reached {
  BitMatrix within;
  bool grows = false;
};
Reached reached_within(const StepPattern& pattern, std::int64_t steps);

/// Calls `see` at some steps of a model with the architecture of this one, whose weights are moved a little; the map has been evaluated at
/// the state that it is given. Each round has other weights and inputs, and looks at later steps, the first one at those from
/// rest on.
using SeeStep = std::function<void(StepMap& step, const Model& model, std::span<const double> state)>;
void probe_steps(const OnlineSetup& setup, int round, const SeeStep& see);

}  // namespace reclab
