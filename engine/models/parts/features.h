// SPDX-License-Identifier: GPL-3.0-or-later
// Feature maps of queries and keys, and linear attention whose sum of weights is kept beside it, for the linear transformers.
#pragma once

#include <string>
#include <vector>

#include "models/architecture.h"

namespace reclab::parts {

/// The largest entry of the last axis, which stays as a singleton. Equal entries share the slope.
Var largest(Var x);
/// |x|^2 of the last axis, which stays as a singleton.
Var squared_norm(Var x);
/// |x| of the last axis, which stays as a singleton; of a vector of zeros it has no slope.
Var length(Var x);

/// Functions that act entry by entry as feature maps: relu, requ (relu squared), gelu, exp, elu+1, silu, sigmoid, identity.
Var entrywise(const std::string& name, Var x);

/// DPFP, the deterministic parameter-free projection of Schlag et al. 2021: r * roll(r, j) for j = 1..nu one after another, r = [relu(z);
/// relu(-z)], over the last axis; 2 nu times as long.
Var dpfp(Var z, std::int64_t nu);

/// The softmax over the last axis, with eps added to the sum of the exponentials, the largest of which is 1.
Var softmax(Var x, double eps = 0.0);

/// x W^T - |x|^2/2, [.., m] for x [.., d] and W [m, d]: the mean of exp(of q) exp(of k) over Gaussian rows of W is exp(q.k).
Var softmax_exponents(Var x, Var W);
/// [cos(x W^T), sin(x W^T)] or, with sine_first, the other way round: the mean of their products over Gaussian rows of W is exp(-|q -
/// k|^2/2).
Var waves(Var x, Var W, bool sine_first);

/// Rows drawn in blocks of as many as there are columns, each block orthogonal; their lengths those of Gaussian rows (chi) or all the root
/// of the number of columns. [rows, columns].
enum class RowLength { gaussian, root };
Init orthogonal_rows(RowLength length);

/// S_t = decay S_{t-1} + k_t v_t^T, z_t = decay z_{t-1} + k_t: the read S_t^T q_t [.., value] and the sum of its weights z_t.q_t [.., 1].
struct LinearRead {
  Var read, weight;
};
LinearRead linear_read(Layer& l, Var q, Var k, Var v, const std::string& memory_text, const std::string& sum_text, Var log_decay = {},
                       Var shown = {});

/// The linearised relative positional encoding Λ^t P x of queries and keys of each head (Qin et al. 2023): rows `rotation`, `theta`,
/// `horizon` and `basis` of a table, and its parameters urpe.theta and urpe.v below `own`.
void add_lrpe_rows(std::vector<HyperSpec>& table);
void check_lrpe(const Hyper& h, std::int64_t head, const std::string& model);
/// P x of [steps, batch, heads, D] as complex numbers that Λ turns by theta [n] a step: the product of q and k at a distance of n steps is
/// sum_j Re(q_j conj(k_j) e^{i theta_j n}).
struct Phasors {
  Var re, im, theta;
};
class Lrpe {
 public:
  Lrpe(Layer& l, const std::string& own, std::int64_t head);
  Phasors phasors(Var x) const;
  /// Λ^t P x, t the number of the step: real, as long as the code's.
  Var at_position(Var x) const;

 private:
  Layer& l_;
  std::int64_t head_, pairs_ = 0;  ///< entries 2i and 2i + 1 below 2 pairs_ are a pair; 0: each entry has its angle
  Var theta_;                      ///< of the pairs, or of the entries
  Var basis_, imaginary_;          ///< P, and the imaginary part of a complex one; none: the identity
  Var reflected_;                  ///< v of Householder's reflection
  Var transformed(Var x) const;
};

/// max(x, least): slope 1 above, 0 below.
Var at_least(Var x, double least);

}  // namespace reclab::parts
