// SPDX-License-Identifier: GPL-3.0-or-later
// Parts that several architectures are built from: projections, norms and rotations with parameters of their own.
#pragma once

#include <string>

#include "models/architecture.h"
#include "recurrence/attention/attention.h"

namespace reclab::parts {

/// Uniform in +-1/sqrt(fan_in): PyTorch's Linear and Conv1d.
Init torch_uniform(std::int64_t fan_in);
/// Uniform with Xavier's bound gain sqrt(6 / (in + out)).
Init xavier_uniform(std::int64_t in, std::int64_t out, double gain = 1.0);

/// W x [+ b] with the parameters name.weight [out, in] and name.bias [out].
struct Linear {
  Init weight, bias;   ///< no bias where its init is empty
  std::string role;    ///< "W_q, rows by head": the card's words on the weight
  std::string starts;  ///< "starts N(0, 0.02²)": of the weight
};
Var linear(Layer& l, const std::string& name, Var x, std::int64_t out, const Linear& how);
/// The usual one: both uniform in +-1/sqrt(in).
Var linear(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role, bool bias = true);

/// The same with a weight norm, W = g v/|v| row by row, name.weight_g [out, 1] and name.weight_v [out, in]; g starts as |v|. `bias` empty:
/// none.
Var weight_normed(Layer& l, const std::string& name, Var x, std::int64_t out, const Linear& how);

/// Starts as the norms of the rows of the parameter `of`.
Init row_norms(const std::string& of, std::int64_t columns);

/// f(x): identity, id or none, relu, leaky_relu and leak (both of slope 0.01 below 0), relu^2, tanh, lecun_tanh (1.7159 tanh(0.666 x)),
/// sigmoid or logistic, silu or swish, gelu, elu, 1+elu, 2+elu, selu, softplus, exp, sin. A model's table has those that it takes.
Var activation(const std::string& name, Var x);

/// Layer norm over the last axis with name.weight and, with bias, name.bias.
Var layer_norm(Layer& l, const std::string& name, Var x, double eps = 1e-5, bool bias = true);
/// x / sqrt(mean x^2 + eps) * name.weight.
Var rms_norm(Layer& l, const std::string& name, Var x, double eps);
/// The batch norm of evaluation, (x - m)/sqrt(s + eps) * w + b over the last axis of n entries, with the parameters name.weight, name.bias,
/// name.running_mean and name.running_var: no token sees another. It may be applied inside a cell.
struct BatchNorm {
  Var mean, scale, bias;  ///< scale: w/sqrt(s + eps)
  Var operator()(Var x) const { return (x - mean) * scale + bias; }
};
BatchNorm batch_norm(Layer& l, const std::string& name, std::int64_t n);
/// (x - mean) / sqrt(variance + eps) and x / sqrt(mean x^2 + eps) over the last axis, without parameters.
Var normalised(Var x, double eps);
Var unit_rms(Var x, double eps);

/// Causal depth-wise convolution of a sequence [steps, batch, channels] with name.weight [channels, 1, taps] (last tap: the current step)
/// and name.bias; the last taps - 1 inputs are the buffer `buffer`.
Var short_convolution(Layer& l, const std::string& name, const std::string& buffer, Var x, std::int64_t taps, bool bias = true);

/// [steps, batch, heads * d] <-> [steps, batch, heads, d].
Var by_head(Layer& l, Var x, std::int64_t heads);
Var flat(Layer& l, Var x);
/// [steps, batch, heads, d] -> [batch * heads, steps, d] and back.
using reclab::heads_first;
Var heads_last(Layer& l, Var x, std::int64_t heads);

using reclab::repeated_heads;
/// [steps, batch, n * in] times a block-diagonal matrix whose blocks are [n, in, out], or [n, out, in] where `out_first`: [steps, batch, n
/// * out].
Var by_block(Layer& l, Var x, Var blocks, bool out_first);
/// 1 + w with the parameter w: the scale of a norm that is stored as its distance from 1.
Var one_plus(Layer& l, const std::string& name, std::int64_t n);

/// The angles position * frequency_i, [steps, 1, 1, n]: those of every sequence of the batch.
Var angles(Layer& l, const std::vector<double>& frequencies);
/// Turns each pair (2i, 2i + 1) (interleaved) or (i, i + n) of the last axis of [steps, batch, heads, 2n] by angle i.
Var rotated(Var x, Var angles, bool interleaved);

}  // namespace reclab::parts
