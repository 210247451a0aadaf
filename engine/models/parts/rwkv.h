// SPDX-License-Identifier: GPL-3.0-or-later
// What RWKV's fifth and sixth versions share: tokens that are mixed with the one before, ways of starting, the norm by head and the feed-forward part.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/parts/parts.h"

namespace reclab::parts::rwkv {

/// Where a layer stands in its stack: up goes from 0 to 1, down from 1 to almost 0.
struct Depth {
  double up, down;
  explicit Depth(const Layer& l);
};

/// The hyper-parameters that both versions have.
std::vector<HyperSpec> hyper();
std::int64_t attention_width(const Hyper& h);
std::int64_t feed_forward_width(const Hyper& h);
/// Throws Error unless the heads divide the attention's width.
void check(const std::string& model, const Hyper& h);

/// name.weight of a projection: orthogonal with this gain, or, where the gain is 0, at 0 as in the reference or uniform in ±1/√in.
Var matrix(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role, double gain);
/// The sequence one step later, the first one that of the step before the segment.
Var shifted(Layer& l, const std::string& buffer, Var x);
/// A parameter [1, 1, C]: the share of the current token in what a projection reads (version 5), or of the one before (6).
Var share(Layer& l, const std::string& name, bool of_before, const std::function<double(double)>& start_of_current, std::int64_t channels);
/// The logarithm of −w as it starts, of entry n of all heads; and u.
double decay_start(const Depth& depth, std::int64_t n, std::int64_t all);
double bonus_start(const Depth& depth, std::int64_t n, std::int64_t all);
/// The norm by head of what was read [steps, batch, heads, size], divided by `divisor` before, flat, with name.weight and name.bias.
Var norm_by_head(Layer& l, const std::string& name, Var read, double divisor, double eps);
/// W_o of the gated reads.
Var output(Layer& l, Var read, Var gate_input, double divisor, double eps);
/// ChannelMix, or MishGLU; `of_before`: how the shares are told.
Var feed_forward(Layer& l, Var x, bool of_before);
/// The block around a time mix, and the norm after the last one.
Var block(Layer& l, Var x, bool of_before, const std::function<Var(Var)>& time_mix);
Var finish(Layer& l, Var x);

}  // namespace reclab::parts::rwkv
