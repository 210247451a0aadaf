// SPDX-License-Identifier: GPL-3.0-or-later
// The mixing matrix of a layer's memory, the weights that earlier steps have in its reads, and the matrix that its state is multiplied
// with, for analyses. Computing reads neither.
#pragma once

#include <string>
#include <vector>

#include "recurrence/layer.h"

namespace reclab {

/// An interface for an operation that divides weights into shares and keeps none of them: a softmax.
class HasNormaliser {
 public:
  virtual ~HasNormaliser() = default;
  /// ln Σ_s exp(score[t, s]) over the steps that each step reads, of the last forward, [batch * groups * reads, steps]: a weight before it
  /// was divided is the share times the exponential of this.
  virtual std::vector<double> log_normalisers() = 0;
};

/// A memory that is linear in the values written into it, all else held (keys, queries, gates, decays), and starts at 0:
///   output[t, g, r, d] = sum_s M[t, s, g, r] value[s, g, d]
/// Each group is written apart from the others and may be read several times; the entries d of a value have the same weights. Where a
/// matrix turns them into one another on the way (`joined`), each read is a sum over them, and they have weights of their own:
///   output[t, g, r] = sum_s sum_d M[t, s, g, d, r] value[s, g, d]
struct Mixing {
  std::string name;    ///< of the memory, as its state
  Var value, output;   ///< [steps, batch, groups, d], [steps, batch, groups, reads, d], in any shape of as many entries
  Var unnormalised{};  ///< the output before it is divided by the weight of its keys; none where nothing is divided
  std::int64_t groups = 1, reads = 1;
  std::string group{};     ///< the kind of group: "head", "channel", "unit"
  bool rows_first = true;  ///< false: [batch * groups, steps, d] both
  bool is_share = false;   ///< the weights of a step are shares that sum to one
  bool joined = false;
  HasNormaliser* normaliser = nullptr;  ///< of shares, where there is no array of the reads without it
};

/// s_t = f(W s_{t-1} + ...), or a step that keeps some of each entry and adds that: ds_t/ds_{t-1} = diag(gate) + diag(slope) W.
struct RecurrentMatrix {
  Var matrix;          ///< [n, n], rows by the entries of the new state
  double slope = 1.0;  ///< the largest that f has
};

/// The receiver of declare_mixing and declare_matrix: an interface beside Layer.
class MixingListener {
 public:
  virtual ~MixingListener() = default;
  virtual void mixes(Mixing mixing) = 0;
  virtual void multiplies(RecurrentMatrix matrix) = 0;
};
/// The value gets memory of its own where `others` that are read with it (keys) are the same array, which would move with it: it is
/// returned, for the memory to be built with.
Var apart(Layer& layer, Var value, std::initializer_list<Var> others);
void declare_mixing(Layer& layer, Mixing mixing);
void declare_matrix(Layer& layer, RecurrentMatrix matrix);

}  // namespace reclab
