// SPDX-License-Identifier: GPL-3.0-or-later
// What a layer says of its memory for who looks at what it does to a sequence and not at how: which weights the steps before have in what is read, and which
// matrix its state is multiplied with. Computing reads neither.
#pragma once

#include <string>

#include "recurrence/layer.h"

namespace reclab {

/// A memory that is linear in what is written into it, all else held (keys, queries, gates, decays), and starts at 0:
///   output[t, g, r, d] = sum_s M[t, s, g, r] value[s, g, d]
/// Each group is written apart from the others and may be read several times; the entries d of a value have the same weights.
struct Mixing {
  std::string name;            ///< of the memory, as its state
  Var value, output;           ///< [steps, batch, groups, d], [steps, batch, groups, reads, d], in any shape of as many entries
  Var unnormalised{};          ///< the output before it is divided by what its keys weigh; none where nothing is divided
  std::int64_t groups = 1, reads = 1;
  std::string group{};         ///< what a group is: "head", "channel", "unit"
  bool rows_first = true;      ///< false: [batch * groups, steps, d] both
  bool is_share = false;       ///< the weights of a step are shares that sum to one
  std::int64_t entries() const { return count(value.shape()) / groups; }
};

/// s_t = f(W s_{t-1} + ...), or a step that keeps some of each entry and adds that: ds_t/ds_{t-1} = diag(gate) + diag(slope) W.
struct RecurrentMatrix {
  Var matrix;           ///< [n, n], rows by what they make
  double slope = 1.0;   ///< the largest that f has
};

/// What hears of them: a Layer that is one too.
class MixingListener {
 public:
  virtual ~MixingListener() = default;
  virtual void mixes(Mixing mixing) = 0;
  virtual void multiplies(RecurrentMatrix matrix) = 0;
};
/// The value gets memory of its own where `others` that are read with it (keys) are the same array, since what moves then is both: it is returned, for the
/// memory to be built with.
Var apart(Layer& layer, Var value, std::initializer_list<Var> others);
void declare_mixing(Layer& layer, Mixing mixing);
void declare_matrix(Layer& layer, RecurrentMatrix matrix);

}  // namespace reclab
