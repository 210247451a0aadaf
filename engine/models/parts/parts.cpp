// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/parts.h"

#include <cmath>
#include <map>

namespace reclab::parts {

Init torch_uniform(std::int64_t fan_in) {
  const double k = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return init::uniform(-k, k);
}
Init xavier_uniform(std::int64_t in, std::int64_t out, double gain) {
  const double k = gain * std::sqrt(6.0 / static_cast<double>(in + out));
  return init::uniform(-k, k);
}

Var linear(Layer& l, const std::string& name, Var x, std::int64_t out, const Linear& how) {
  const Var W = l.parameter(name + ".weight", {out, x.dim(-1)}, how.weight, how.role + "; " + how.starts + ".");
  const Var b = how.bias ? l.parameter(name + ".bias", {out}, how.bias, "The bias of " + name + ".") : Var{};
  return reclab::linear(x, W, b);
}
Var linear(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role, bool bias) {
  const Init start = torch_uniform(x.dim(-1));
  return linear(l, name, x, out, Linear{start, bias ? start : Init{}, role, "starts uniform in ±1/√in, as its bias"});
}

Init row_norms(const std::string& of, std::int64_t columns) {
  return [=](InitContext& c) {
    const auto rows = c.other(of);
    const auto n = static_cast<std::size_t>(columns);
    for (std::size_t i = 0; i < c.values.size(); ++i) {
      double square = 0.0;
      for (std::size_t j = 0; j < n; ++j) square += rows[i * n + j] * rows[i * n + j];
      c.values[i] = std::sqrt(square);
    }
  };
}
Var weight_normed(Layer& l, const std::string& name, Var x, std::int64_t out, const Linear& how) {
  const std::int64_t in = x.dim(-1);
  const Var v =
      l.parameter(name + ".weight_v", {out, in}, how.weight, how.role + ", before its rows are given their norms; " + how.starts + ".");
  const Var g = l.parameter(name + ".weight_g", {out, 1}, row_norms(name + ".weight_v", in),
                            "The norms of the rows of " + name + ".weight; start as those of weight_v.");
  const Var b = how.bias ? l.parameter(name + ".bias", {out}, how.bias, "The bias of " + name + ".") : Var{};
  return reclab::linear(x, v * (g / sqrt(reshape(sum(square(v), -1), {out, 1}))), b);
}

Var activation(const std::string& name, Var x) {
  using Function = Var (*)(Var);
  static const std::map<std::string, Function> table{
      {"identity", [](Var v) { return v; }},
      {"id", [](Var v) { return v; }},
      {"none", [](Var v) { return v; }},
      {"relu", [](Var v) { return relu(v); }},
      {"leaky_relu", [](Var v) { return maximum(v, 0.01 * v); }},
      {"leak", [](Var v) { return relu(v) - 0.01 * relu(-v); }},
      {"relu^2", [](Var v) { return square(relu(v)); }},
      {"tanh", [](Var v) { return tanh(v); }},
      {"lecun_tanh", [](Var v) { return 1.7159 * tanh(0.666 * v); }},
      {"sigmoid", [](Var v) { return sigmoid(v); }},
      {"logistic", [](Var v) { return sigmoid(v); }},
      {"silu", [](Var v) { return silu(v); }},
      {"swish", [](Var v) { return silu(v); }},
      {"gelu", [](Var v) { return gelu(v); }},
      {"elu", [](Var v) { return elu(v); }},
      {"1+elu", [](Var v) { return 1.0 + elu(v); }},
      {"2+elu", [](Var v) { return 2.0 + elu(v); }},
      {"selu",
       [](Var v) { return 1.0507009873554804934193349852946 * (relu(v) + 1.6732632423543772848170429916717 * minimum(elu(v), 0.0)); }},
      {"softplus", [](Var v) { return softplus(v); }},
      {"exp", [](Var v) { return exp(v); }},
      {"sin", [](Var v) { return sin(v); }},
  };
  return table.at(name)(x);
}

Var layer_norm(Layer& l, const std::string& name, Var x, double eps, bool bias) {
  const Var scale = l.parameter(name + ".weight", {x.dim(-1)}, init::constant(1.0), "Scale of the layer norm; starts at 1.");
  const Var shift = bias ? l.parameter(name + ".bias", {x.dim(-1)}, init::constant(0.0), "Shift of the layer norm; starts at 0.") : Var{};
  return reclab::layer_norm(x, scale, shift, eps);
}
Var rms_norm(Layer& l, const std::string& name, Var x, double eps) {
  return reclab::rms_norm(x, l.parameter(name + ".weight", {x.dim(-1)}, init::constant(1.0), "Scale of the rms norm; starts at 1."), eps);
}
BatchNorm batch_norm(Layer& l, const std::string& name, std::int64_t n) {
  const Var weight = l.parameter(name + ".weight", {n}, init::constant(1.0), "Scale of the batch norm; starts at 1.");
  const Var bias = l.parameter(name + ".bias", {n}, init::constant(0.0), "Shift of the batch norm; starts at 0.");
  const Var mean = l.parameter(name + ".running_mean", {n}, init::constant(0.0),
                               "The mean that the batch norm takes off, a buffer in PyTorch; starts at 0.");
  const Var variance = l.parameter(name + ".running_var", {n}, init::constant(1.0),
                                   "The variance that the batch norm divides by the root of, a buffer in PyTorch; starts at 1.");
  constexpr double eps = 1e-5;  // PyTorch's default
  return {mean, weight / sqrt(variance + eps), bias};
}
Var normalised(Var x, double eps) { return reclab::layer_norm(x, Var{}, Var{}, eps); }
Var unit_rms(Var x, double eps) { return reclab::rms_norm(x, Var{}, eps); }

Var short_convolution(Layer& l, const std::string& name, const std::string& buffer, Var x, std::int64_t taps, bool bias) {
  const std::int64_t channels = x.dim(-1);
  const Init start = torch_uniform(taps);
  const Var W = l.parameter(name + ".weight", {channels, 1, taps}, start,
                            "Taps of each channel, oldest first, the last the current step; start uniform in ±1/√taps.");
  const Var y = depthwise(taps > 1 ? l.history(buffer, x, taps - 1, "The convolution's last inputs, oldest first.") : x,
                          reshape(W, {channels, taps}));
  return bias ? y + l.parameter(name + ".bias", {channels}, start, "Its bias; starts uniform in ±1/√taps.") : y;
}

Var by_head(Layer& l, Var x, std::int64_t heads) { return reshape(x, {l.steps(), l.batch(), heads, x.dim(-1) / heads}); }
Var flat(Layer& l, Var x) { return reshape(x, {l.steps(), l.batch(), -1}); }

Var heads_last(Layer& l, Var x, std::int64_t heads) { return reclab::heads_last(x, l.batch(), heads); }

Var by_block(Layer& l, Var x, Var blocks, bool out_first) {
  const std::int64_t n = blocks.dim(0), in = x.dim(-1) / n, T = l.steps(), B = l.batch();
  const int blocks_first[] = {2, 0, 1, 3}, blocks_last[] = {1, 2, 0, 3};
  const Var rows = reshape(permute(reshape(x, {T, B, n, in}), blocks_first), {n, T * B, in});
  const Var y = out_first ? matmul_transposed(rows, blocks) : matmul(rows, blocks);
  return reshape(permute(reshape(y, {n, T, B, y.dim(-1)}), blocks_last), {T, B, -1});
}
Var one_plus(Layer& l, const std::string& name, std::int64_t n) {
  return l.parameter(name, {n}, init::constant(0.0), "w of a norm whose scale is 1 + w; starts at 0.") + 1.0;
}

Var angles(Layer& l, const std::vector<double>& frequencies) {
  const auto n = static_cast<std::int64_t>(frequencies.size());
  const Var position = reshape(slice(l.position(), 1, 0, 1), {l.steps(), 1, 1, 1});
  return position * position.graph->constant({n}, frequencies);
}

Var rotated(Var x, Var angles, bool interleaved) {
  const std::int64_t n = x.dim(-1) / 2;
  const Shape whole = x.shape();
  const Var c = cos(angles), s = sin(angles);
  if (!interleaved) {
    const auto halves = split(x, -1, 2);
    const Var parts[] = {halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s};
    return concat(parts, -1);
  }
  Shape pairs = whole, one = whole;
  pairs.back() = n;
  pairs.push_back(2);
  one.back() = n;
  const Var paired = reshape(x, pairs);
  const Var a = reshape(slice(paired, -1, 0, 1), one), b = reshape(slice(paired, -1, 1, 2), one);
  one.push_back(1);
  const Var parts[] = {reshape(a * c - b * s, one), reshape(b * c + a * s, one)};
  return reshape(concat(parts, -1), whole);
}

}  // namespace reclab::parts
