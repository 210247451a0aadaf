// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/layers/low_rank_layer.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "array/error.h"
#include "models/parts/hippo.h"
#include "models/parts/layers/diagonal_system.h"
#include "recurrence/flow.h"

namespace reclab::parts {
namespace {

/// The transition of each channel in real coordinates (Re h, Im h), [channels, 2 modes, 2 modes].
Var real_transition(const LowRankSystem& system) {
  const std::int64_t H = system.a.dim(0), n = system.a.dim(1);
  std::vector<double> identity(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) identity[static_cast<std::size_t>(i * n + i)] = 1.0;
  const Var one = system.a.graph->constant({n, n}, std::move(identity));
  const auto diagonal = [&](Var v) { return reshape(v, {H, n, 1}) * one; };
  const auto product = [&](Var p, Var q) { return reshape(p, {H, n, 1}) * reshape(q, {H, 1, n}) * 2.0; };
  const Var a = real(system.a), b = imag(system.a), p = real(system.p), s = imag(system.p), q = real(system.q), r = imag(system.q);
  const Var above[] = {diagonal(a) - product(p, q), product(p, r) - diagonal(b)},
            below[] = {diagonal(b) - product(s, q), diagonal(a) + product(s, r)};
  const Var rows[] = {concat(above, -1), concat(below, -1)};
  return concat(rows, -2);
}

/// The readout c of which c (1 - Abar^length) is C~: c = C~ (1 + M)(1 + M^2)(1 + M^4)..., M = Abar^length, until the powers of any decay
/// from 1e-9 a step on have died away. In real coordinates, where a readout is the row (Re c, -Im c) and the state the column (Re h, Im h).
Var solved_readout(const LowRankSystem& system, Var c, std::int64_t length) {
  const std::int64_t H = c.dim(0), n = c.dim(1);
  Var power = real_transition(system), M;
  for (std::int64_t left = length; left > 0; left /= 2) {
    if (left % 2) M = M ? matmul(M, power) : power;
    if (left > 1) power = matmul(power, power);
  }
  const Var parts[] = {real(c), -imag(c)};
  Var row = reshape(concat(parts, -1), {H, 1, 2 * n});
  for (double steps = static_cast<double>(length); steps < 4e10; steps *= 2.0) {
    row = row + matmul(row, M);
    M = matmul(M, M);
  }
  row = reshape(row, {H, 2 * n});
  return complex(slice(row, -1, 0, n), -slice(row, -1, n, 2 * n));
}

/// 1 where a mode turns by less than half the limit a step, counted in turns.
Var sign_of_room(Var dt, Var turn, double limit) { return reclab::sign(0.5 * limit - dt * abs(turn) * (0.5 / std::numbers::pi)); }

/// What follows the system in a layer: y is what it returns, with the skip.
Var finished(Layer& l, Var x, Var y, Var scale, Var shift) {
  const std::int64_t H = l.hyper.integer("width");
  const bool block = l.hyper.choice("block") == "residual", prenorm = l.hyper.flag("prenorm");
  if (l.hyper.choice("output") == "glu") {
    const double k = 1.0 / std::sqrt(static_cast<double>(H));
    const Var W = l.parameter("output_linear.weight", {2 * H, H}, init::uniform(-k, k),
                              "W of the GLU: value rows, then gate rows; starts uniform in ±1/√H.");
    const Var b = l.parameter("output_linear.bias", {2 * H}, init::uniform(-k, k), "Its bias; starts uniform in ±1/√H.");
    const auto parts = split(linear(gelu(y), W, b), -1, 2);
    y = parts[0] * l.gate("glu", sigmoid(parts[1]), 0.0, 1.0, "The GLU after the system: how much of each channel passes.");
  }
  if (!block) return y;
  return prenorm ? x + y : layer_norm(x + y, scale, shift, 1e-5);
}

}  // namespace

std::vector<HyperSpec> low_rank_layer_hyper(bool first_version) {
  std::vector<HyperSpec> rows{hyper_integer("width", "H", 64, 1, 4096, "Channels; each is a system of its own.", "channels"),
                              hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
                              hyper_integer("state", "N", 64, 2, 1024, "State size a channel, conjugates counted: N/2 complex modes are stored.", "states"),
                              hyper_integer("n_ssm", "S", 0, 0, 4096,
                                            "Independent copies of A, B, P, shared by the channels in turn; it divides the width; 0: one a channel."),
                              draws_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
                              draws_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
                              hyper_choice("dt_transform", "exp", {"exp", "softplus"}, "How the time step comes from inv_dt."),
                              draws_only(hyper_real("B_clip", "", 0.0, 0.0, 1000.0, "Where the imaginary part of B is cut at the start (2 in the reference); 0: nowhere.")),
                              hyper_integer("l_kernel", "L", 0, 0, 1 << 20,
                                            "Length that the reference's kernel was made for, where C is its C̃; 0: C is the readout itself.", "steps"),
                              hyper_flag("bidirectional", false, "A second readout of the same system reads what is still to come, from the next step on."),
                              hyper_choice("low_rank", "tied", {"tied", "free"}, "The low-rank part: P and its own conjugate, or P and a parameter Q."),
                              hyper_flag("dt_tie", true, "Whether all modes of a channel share one time step."),
                              hyper_choice("real_transform", "exp", {"exp", "none", "relu", "sigmoid", "softplus"}, "How −Re Λ comes from A_real."),
                              hyper_choice("output", "glu", {"glu", "none"}, "After the system: gelu and a gated linear map, or nothing."),
                              hyper_choice("block", "residual", {"residual", "none"}, "The block with norm and residual, or the S4 layer alone."),
                              hyper_flag("prenorm", true, "Whether the norm comes before the layer (after the residual otherwise).")};
  if (first_version) std::erase_if(rows, [](const HyperSpec& row) { return row.key == "dt_transform" || row.key == "dt_tie" || row.key == "low_rank" || row.key == "B_clip"; });
  if (first_version) {
    for (HyperSpec& row : rows)
      if (row.key == "real_transform") row.text = "How −Re Λ comes from inv_w_real.";
    rows.insert(std::ranges::find(rows, "real_transform", &HyperSpec::key),
                hyper_real("bandlimit", "", 0.0, 0.0, 10.0, "Modes that turn by half of this a step or more, in turns, are not read; 0: all are."));
  }
  return rows;
}

Var low_rank_kernel(const LowRankSystem& system, std::int64_t steps) {
  const std::int64_t H = system.a.dim(0), n = system.a.dim(1);
  Graph& graph = *system.a.graph;
  const auto zeros = [&](Shape shape) { return graph.constant(shape, std::vector<double>(static_cast<std::size_t>(count(shape)), 0.0)); };
  const Var both[] = {real(system.b), imag(system.b)};
  std::vector<Var> drive{reshape(concat(both, -1), {1, 1, H, 2 * n})};
  if (steps > 1) drive.push_back(zeros({steps - 1, 1, H, 2 * n}));
  const Var h = reshape(dense_from(graph, Form::sequential, real_transition(system), drive.size() > 1 ? concat(drive, 0) : drive[0], zeros({1, H, 2 * n})).trajectories[0], {steps, H, 2 * n});
  return transpose(sum(slice(h, -1, 0, n) * real(system.c) - slice(h, -1, n, 2 * n) * imag(system.c), -1) * 2.0);
}

Var low_rank_modes(Layer& l, const LowRankSystem& system, Var u) {
  return low_rank_bank(l, {"h", {system.a.dim(0), system.a.dim(1)}, "The complex modes of each channel, one of each conjugate pair."}, system, u);
}

void make_low_rank_layer(Architecture& a, const LowRankLayer& how) {
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [id = how.id](const Hyper& h) {
    if (h.integer("state") % 2)
      throw Error(id + ": state = " + h.text("state") + " is odd: it counts conjugate pairs, choose an even number.",
                  {.model = id, .parameter = "state", .value = h.text("state"), .range = "even"});
    if (h.integer("n_ssm") && h.integer("width") % h.integer("n_ssm"))
      throw Error(id + ": n_ssm = " + h.text("n_ssm") + " does not divide width = " + h.text("width") +
                      ": choose a divisor, or 0 for one copy a channel.",
                  {.model = id, .parameter = "n_ssm", .value = h.text("n_ssm"), .range = "a divisor of width"});
    if (h.real("dt_min") > h.real("dt_max"))
      throw Error(id + ": dt_min = " + h.text("dt_min") + " is above dt_max = " + h.text("dt_max") + ": choose dt_min at most dt_max.",
                  {.model = id, .parameter = "dt_min", .value = h.text("dt_min"), .range = "at most dt_max"});
  };

  a.layer = [how](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), N = l.hyper.integer("state"), modes = N / 2,
                       S = l.hyper.integer("n_ssm") ? l.hyper.integer("n_ssm") : H;
    const bool block = l.hyper.choice("block") == "residual", prenorm = l.hyper.flag("prenorm"),
               first = how.first_version, softplus_dt = !first && l.hyper.choice("dt_transform") == "softplus";
    const double low = std::log(l.hyper.real("dt_min")), high = std::log(l.hyper.real("dt_max"));
    const Var scale = block ? l.parameter("norm.weight", {H}, init::constant(1.0), "Scale of the layer norm; starts at 1.") : Var{};
    const Var shift = block ? l.parameter("norm.bias", {H}, init::constant(0.0), "Shift of the layer norm; starts at 0.") : Var{};

    const bool tied_dt = first || l.hyper.flag("dt_tie"), bidirectional = l.hyper.flag("bidirectional"), two = bidirectional || (how.adds_backward && how.adds_backward(l.hyper));
    const Var inv_dt = l.parameter(first ? "log_dt" : "inv_dt", first ? Shape{H} : Shape{H, tied_dt ? 1 : modes}, init::each([=](Rng& rng, std::int64_t) {
                                     const double value = rng.uniform(low, high);
                                     return softplus_dt ? std::log(std::expm1(std::exp(value))) : value;
                                   }),
                                   first ? "log Δ a channel; starts uniform between log dt_min and log dt_max."
                                         : "Δ a channel before exp or softplus; starts with log Δ uniform between log dt_min and log dt_max.");
    /// Every copy starts as the same modes of HiPPO-LegS.
    const auto from_legs = [N, modes](auto value) -> Init {
      return [=](InitContext& c) {
        const auto legs = hippo::legs_normal(N);
        const std::size_t each = c.shape.size() == 4 ? 2 : 1;
        for (std::size_t i = 0; i < c.values.size(); i += each) {
          const std::complex<double> start = value(legs, i / each % static_cast<std::size_t>(modes));
          c.values[i] = start.real();
          if (each == 2) c.values[i + 1] = start.imag();
        }
      };
    };
    const double clip = first ? 0.0 : l.hyper.real("B_clip");
    const auto clipped = [clip](const hippo::Normal& legs, std::size_t n) -> std::complex<double> {
      if (clip == 0.0) return legs.input[n];
      const std::complex<double> phase = legs.vectors[n] / std::abs(legs.vectors[n]), theirs = legs.input[n] * phase;
      return std::complex<double>(theirs.real(), std::clamp(theirs.imag(), -clip, clip)) / phase;
    };
    const std::string& transform = l.hyper.choice("real_transform");
    const std::string re_name = first ? "inv_w_real" : "A_real";
    const Var A_real = transform == "exp" ? l.parameter(re_name, {S, modes}, init::constant(std::log(0.5)), "log of −Re Λ; starts at log ½.")
                                          : l.parameter(re_name, {S, modes}, init::constant(from_positive(transform, 0.5)), "−Re Λ before " + transform + "; starts at that of ½.");
    const double sign = first ? 1.0 : -1.0;  // of what is stored of Im Λ
    const Var A_imag = l.parameter(first ? "w_imag" : "A_imag", {S, modes},
                                   from_legs([sign](const hippo::Normal& legs, std::size_t n) { return -sign * std::max(-legs.frequencies[n], 1e-4); }),
                                   std::string(first ? "Im Λ; starts with the eigenvalues of HiPPO-LegS that are negative, largest first."
                                                     : "−Im Λ; starts with the eigenvalues of HiPPO-LegS, largest first."));
    const Var B =
        l.parameter("B", {1, S, modes, 2}, from_legs(clipped),
                    "B in the eigenvectors' basis, last axis re and im; starts as HiPPO-LegS with phases that make it real and positive" +
                        std::string(clip == 0.0 ? "." : ", then cut."));
    const Var P = l.parameter("P", {1, S, modes, 2},
                              from_legs([](const hippo::Normal& legs, std::size_t n) { return legs.input[n] * std::numbers::sqrt2 / 2.0; }),
                              "P of the low-rank part, last axis re and im; starts as HiPPO-LegS, B/√2.");
    const Var Q = first || l.hyper.choice("low_rank") == "tied" ? Var{} : l.parameter("Q", {1, S, modes, 2}, [](InitContext& c) {
      const auto p = c.other("P");
      for (std::size_t i = 0; i < c.values.size(); ++i) c.values[i] = i % 2 ? -p[i] : p[i];
    }, "Q of the low-rank part, last axis re and im; starts as the conjugate of P.");
    const Var both_C =
        l.parameter("C", {bidirectional ? 2 : 1, H, modes, 2}, init::normal(std::sqrt(0.5)), l.hyper.integer("l_kernel") ? "C̃ = (1 − Ā^L)ᵀ times the readout, last axis re and im; starts complex normal." : "The readout C, last axis re and im; starts complex normal.");
    const Var C = bidirectional ? slice(both_C, 0, l.backward() ? 1 : 0, l.backward() ? 2 : 1) : both_C;
    const Var D = two ? Var{} : l.parameter("D", {1, H}, init::normal(1.0), "The skip D; starts normal.");

    const auto number = [&](Var v, std::int64_t rows) {
      return complex(reshape(slice(v, -1, 0, 1), {rows, modes}), reshape(slice(v, -1, 1, 2), {rows, modes}));
    };
    const auto for_channels = [&](Var v) {
      std::vector<Var> copies(static_cast<std::size_t>(H / S), v);
      return copies.size() == 1 ? v : concat(copies, 0);
    };
    const auto half_sum = [](Var v) { return reshape(sum(real(v), -1) * 2.0, {v.dim(0), 1}); };  // over a mode and its conjugate
    const Var decay = transform == "exp" ? exp_in_range(A_real) : first && transform == "relu" ? relu(A_real) : positive(transform, A_real);
    const Var lambda = for_channels(complex(-decay, first ? A_imag : -A_imag)), low_rank = for_channels(number(P, S)), input = for_channels(number(B, S));
    const Var dt = first ? reshape(exp(inv_dt), {H, 1}) : softplus_dt ? softplus(inv_dt) : exp(inv_dt), half = dt * 0.5;
    // (1 - Δ/2 A)⁻¹ by Sherman and Morrison; Ā = 2 (1 - Δ/2 A)⁻¹ - 1.
    const Var inverse = reciprocal(1.0 - lambda * half), conjugate = Q ? for_channels(number(Q, S)) : complex(real(low_rank), -imag(low_rank));
    if (!l.hyper.has("order") || l.hyper.integer("order") > 0) declare_flow(l, {.rule = Flow::Rule::bilinear});  // else the input is in the transition
    LowRankSystem system;
    system.a = inverse * 2.0 - 1.0;
    system.q = conjugate * inverse;
    if (tied_dt) {
      system.p = inverse * low_rank * (dt / (1.0 + half * half_sum(low_rank * system.q)));
      system.b = inverse * input * dt - system.p * (half * half_sum(system.q * input));
    } else {
      const Var scaled = low_rank * dt;
      system.p = inverse * scaled * reciprocal(1.0 + half_sum(scaled * system.q) * 0.5);
      system.b = inverse * input * dt - system.p * (half_sum(system.q * input * dt) * 0.5);
    }
    system.c = number(C, H);
    if (first && l.hyper.real("bandlimit") > 0.0)
      system.c = system.c * detach(relu(sign_of_room(dt, imag(lambda), l.hyper.real("bandlimit"))));
    if (const std::int64_t length = l.hyper.integer("l_kernel")) system.c = solved_readout(system, system.c, length);

    const Var u = block && prenorm ? layer_norm(x, scale, shift, 1e-5) : x;
    const Var skip = two ? Var{} : reshape(D, {H}) * u;  // before the bank: gradients are added up in this order
    const Var read = how.read(l, system, u);
    return two ? read : finished(l, x, read + skip, scale, shift);
  };
  a.joint = [adds = how.adds_backward](const Hyper& h) { return h.flag("bidirectional") || (adds && adds(h)); };
  a.joined = [](Layer& l, Var below, Var forward, Var backward) {
    const std::int64_t H = l.hyper.integer("width");
    const bool block = l.hyper.choice("block") == "residual";
    const Var scale = block ? l.parameter("norm.weight", {H}, init::constant(1.0), "Scale of the layer norm; starts at 1.") : Var{};
    const Var shift = block ? l.parameter("norm.bias", {H}, init::constant(0.0), "Shift of the layer norm; starts at 0.") : Var{};
    const Var D = l.parameter("D", {1, H}, init::normal(1.0), "The skip D; starts normal.");
    const Var u = block && l.hyper.flag("prenorm") ? layer_norm(below, scale, shift, 1e-5) : below;
    return finished(l, below, forward + (l.hyper.flag("bidirectional") ? from_next_step(backward) : backward) + reshape(D, {H}) * u, scale, shift);
  };
}

}  // namespace reclab::parts
