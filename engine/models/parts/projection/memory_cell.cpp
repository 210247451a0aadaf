// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/projection/memory_cell.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <span>

#include "models/parts/matrices.h"
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::hippo {
namespace {

Var activated(const std::string& name, Var x, Var b) { return name == "modrelu" ? parts::modrelu(x, b) : parts::activation(name, x); }

/// The gain of an activation in He's initialisation.
double gain(const std::string& name) {
  if (name == "tanh") return 5.0 / 3.0;
  return name == "relu" || name == "gelu" || name == "silu" ? std::numbers::sqrt2 : 1.0;
}

/// A gate of this mechanism from its pre-activation x, and where there is one, the refining gate r. 1 - e^-z is z times the mean of e^-sz.
Var gated(const std::string& mechanism, Var x, Var r) {
  const auto refined = [](Var g, Var by) { return (1.0 - by * 2.0) * square(g) + by * g * 2.0; };
  const auto rest = [](Var z) { return z * mean_exp(-z); };
  if (mechanism == "G" || mechanism == "U" || mechanism == "FS" || mechanism == "BE") return sigmoid(x);
  if (mechanism == "R" || mechanism == "UR") return refined(sigmoid(x), r);
  if (mechanism == "GT" || mechanism == "UT") {
    const Var g = sigmoid(x);
    return refined(g, g);
  }
  if (mechanism == "TE") return sigmoid(x - std::numbers::ln2) * 2.0;  // e^x / (1 + e^x/2)
  if (mechanism == "ZE") return rest(exp_in_range(x));
  const Var z = mechanism[1] == 'S' ? sigmoid(x) : relu(x);
  if (mechanism[0] == 'B') return z / (z + 1.0);
  if (mechanism == "TS") return z * 2.0 / (z + 1.0);
  if (mechanism == "TR") return z / (z * 0.5 + 1.0);
  return rest(z);
}

}  // namespace

std::vector<std::string> cell_activations() { return {"id", "tanh", "relu", "sigmoid", "modrelu", "gelu", "silu"}; }
std::vector<std::string> cell_gates() {
  return {"G", "N", "U", "UR", "R", "UT", "GT", "FS", "BE", "BR", "TS", "TE", "TR", "ZS", "ZE", "ZR"};
}

Var memory_cell(Layer& l, const MemoryCell& how, Var x, Var A, Var B, const PastBasis& past) {
  const std::int64_t H = how.width, M = how.memory, N = how.order, T = l.steps(), batch = l.batch(), in = x.dim(-1);
  const bool bias = how.bias, ux = how.ux, hx = how.hx, hm = how.hm, hh = how.hh, gated_h = how.gate != "N",
             varying = A.shape().size() == 3;
  std::vector<Var> tokens;
  if (varying) {
    const Var each = x.graph->constant({1, batch, 1}, std::vector<double>(static_cast<std::size_t>(batch), 1.0));
    tokens = {reshape(transpose(A), {T, 1, N * N}) * each, reshape(B, {T, 1, N}) * each};
  }
  const Var A_turned = varying ? Var{} : transpose(A);
  /// A map of input and state; its part of the input is computed for all steps at once and becomes a token.
  struct Map {
    Var inner, bias;
    std::optional<std::size_t> token;
  };
  const auto map = [&](const std::string& name, std::int64_t out, bool sees, std::int64_t rest, const Init& weights,
                       const std::string& text, const std::string& starts) {
    const std::int64_t seen = sees ? in : 0, fan_in = seen + rest;
    const double k = 1.0 / std::sqrt(static_cast<double>(fan_in));
    const Var W = l.parameter(name + ".weight", {out, fan_in}, weights, text + "; starts " + starts + ".");
    const Var b = bias ? l.parameter(name + ".bias", {out}, init::uniform(-k, k), "Its bias; starts uniform in ±1/√in.") : Var{};
    if (!sees) return Map{W, b, {}};
    tokens.push_back(linear(x, slice(W, 1, 0, in), b));
    return Map{rest ? slice(W, 1, in, fan_in) : Var{}, {}, tokens.size() - 1};
  };
  const auto xavier = [](std::int64_t fan_in, std::int64_t out) {
    return init::normal(std::sqrt(2.0 / static_cast<double>(fan_in + out)));
  };
  const auto shift = [&](const std::string& name, const std::string& activation, std::int64_t n) {
    return activation == "modrelu"
               ? l.parameter(name, {n}, init::uniform(-0.01, 0.01), "b of sign(x) relu(|x| + b); starts uniform in ±0.01.")
               : Var{};
  };
  const std::int64_t of_memory = hm ? M * N : 0, to_f = (ux ? in : 0) + H, to_h = (hx ? in : 0) + of_memory, to_g = to_h + (hh ? H : 0);
  const double he = gain(how.memory_activation) * std::sqrt(3.0 / static_cast<double>(to_f)),
               torch = 1.0 / std::sqrt(static_cast<double>(to_g));
  const std::string bound = how.memory_activation == "tanh" ? "5/3 √(3/in)" : gain(how.memory_activation) > 1.0 ? "√(6/in)" : "√(3/in)";
  const std::string columns = hx && hm ? "x, c" : hx ? "x" : "c";
  const Map W_f = map("W_uxh.0", M, ux, H, init::uniform(-he, he),
                      ux ? "The memory's signal f, columns x, h" : "The memory's signal f, of h", "uniform in ±" + bound);
  const Var b_f = shift("W_uxh.1.b", how.memory_activation, M);
  const Var W_um =
      how.um ? l.parameter("W_um", {M, N}, init::constant(0.0), "What each memory feeds to its own signal; starts at 0.") : Var{};
  const Map W_h = map("W_hxm", H, hx, of_memory, xavier(to_h, H),
                      hx && hm ? "The new value of h, columns x, c" : "The new value of h, of " + columns, "N(0, 2/(in + out))");
  const Var b_h = shift("activate.b", how.hidden_activation, H);
  Map W_hh, W_g, W_r;
  if (hh) W_hh = map("W_hh", H, false, H, xavier(H, H), "The part of the new value of h that sees the h before", "N(0, 2/(in + out))");
  const bool refining = how.gate == "R" || how.gate == "UR", unequal = how.gate[0] == 'U';
  const auto gate_map = [&](const std::string& name, const std::string& what) {
    return map(name, H, hx, to_g - (hx ? in : 0), init::uniform(-torch, torch), what + ", columns " + columns + (hh ? ", h_{t-1}" : ""),
               "uniform in ±1/√in");
  };
  if (gated_h) W_g = gate_map("W_gxm.W_g", "The gate");
  if (refining) W_r = gate_map("W_gxm.W_r", "The gate that refines it");
  Var b_g;
  if (unequal) {
    const double low = std::min(1.0 / static_cast<double>(H), 0.5);
    b_g = l.parameter(
        "W_gxm.b_g", {H}, init::each([=](Rng& rng, std::int64_t) {
          const double u = rng.uniform(low, 1.0 - low);
          return std::log(1.0 / u - 1.0);
        }),
        "Is added to what enters the gate; the reference does not train it. Starts as −log(u/(1 − u)), u uniform between 1/H and 1 − 1/H.");
  }

  const auto apply = [](const Map& of, Var value, std::span<const Var> t) {
    if (!of.inner) return t[*of.token];
    const Var y = linear(value, of.inner, of.bias);
    return of.token ? y + t[*of.token] : y;
  };
  const auto signal = [=](Var affine, Var c) {
    if (W_um) affine = affine + sum(c * W_um, -1);
    return activated(how.memory_activation, affine, b_f);
  };
  const std::vector<StateSpec> states{
      {"h",
       {H},
       how.memory_output ? "The hidden state: what is fed back, and read out with c." : "The hidden state: what is read out and fed back."},
      {"c",
       {M, N},
       "The " + (past.coefficient.empty() ? std::string("coefficient") : past.coefficient) + "s of each signal's past, lowest first."}};
  const std::vector<Var> made = reclab::step(l, states, tokens, [=](Cell& cell, std::span<const Var> t, std::span<const Var> s) {
    const std::int64_t copies = s[0].dim(0);
    const Var f = signal(apply(W_f, s[0], t), s[1]);
    const Var c = varying ? matmul(s[1], reshape(t[0], {copies, N, N})) + reshape(f, {copies, M, 1}) * reshape(t[1], {copies, 1, N})
                          : matmul(s[1], A_turned) + reshape(f, {copies, M, 1}) * B;
    const Var flat = reshape(c, {copies, M * N});
    Var pre = apply(W_h, flat, t);
    if (hh) pre = pre + apply(W_hh, s[0], t);
    const Var candidate = activated(how.hidden_activation, pre, b_h);
    if (!gated_h) return std::vector<Var>{candidate, c};
    std::vector<Var> parts;
    if (hm) parts.push_back(flat);
    if (hh) parts.push_back(s[0]);
    const Var seen = parts.size() > 1 ? concat(parts, -1) : parts.empty() ? Var{} : parts[0];
    Var r;
    if (refining) r = cell.gate("refine", sigmoid(apply(W_r, seen, t)), 0.0, 1.0, "r: towards which side the gate's slope is refined.");
    const Var into = apply(W_g, seen, t);
    const double high = how.gate == "TE" || how.gate == "TR" ? 2.0 : how.gate == "ZS" ? -std::expm1(-1.0) : 1.0;
    const Var g =
        cell.gate("update", gated(how.gate, b_g ? into + b_g : into, r), 0.0, high, "g: how much of h is replaced by the new value.");
    return std::vector<Var>{(1.0 - g) * s[0] + g * candidate, c};
  });
  if (past.values)
    l.reconstruction(
        "c",
        [&] {
          const Var before = detach(l.previous_state(made[0]));
          Var fed = linear(before, detach(W_f.inner), W_f.bias ? detach(W_f.bias) : Var{});
          if (W_f.token) fed = fed + detach(tokens[*W_f.token]);
          if (W_um) fed = fed + sum(detach(l.previous_state(made[1])) * detach(W_um), -1);
          return activated(how.memory_activation, fed, b_f ? detach(b_f) : Var{});
        },
        past);
  if (!how.memory_output) return made[0];
  const Var both[] = {made[0], reshape(made[1], {T, batch, M * N})};
  return concat(both, -1);
}

}  // namespace reclab::hippo
