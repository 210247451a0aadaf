// SPDX-License-Identifier: GPL-3.0-or-later
//   f_t = W_uxh [x_t; h_{t-1}],   c_t = Ā_t c_{t-1} + B̄_t f_t,   g = σ(W_g [x_t; c_t]),   h_t = (1 - g) h_{t-1} + g tanh(W_hxm [x_t; c_t])
//   Ā_t, B̄_t: c' = (A c + B f)/t, whose c holds the coefficients of f's whole past in Legendre polynomials, one step on.
// A. Gu, T. Dao, S. Ermon, A. Rudra, C. Ré, HiPPO: recurrent memory with optimal polynomial projections, NeurIPS 2020.
// Names and conventions of state-spaces/s4 (rnns/cells/memory.py, hippo.py).
#include <cmath>
#include <string>
#include <vector>

#include "models/architecture.h"
#include "models/parts/legendre.h"
#include "recurrence/linear/linear.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

struct LegsStep {
  Var A, B;  // [steps, N, N] and [steps, N]
};

/// Ā and B̄ of the steps at times tau [steps, 1], whole numbers; at time 0 the state is replaced by the input.
///
/// With r_n = √(2n+1) all rules have closed forms, which are exact where a step wipes out a coefficient. (1 - A/a)^-1 is a/(a+n+1) on the
/// diagonal and -a r_n r_k / ((a+n+1)(a+k+1)) times the product of (a-j)/(a+j+1) over k < j < n below it. exp(A log 1/ρ) is ρ^(n+1) and
/// -r_n r_k ρ^(k+1) (1-ρ) J(2ρ-1)/(n-k), J the Jacobi polynomial of degree n-k-1 with exponents 1 and 2k+1. All rules leave a constant
/// input's state e_0 as it is, so B̄ = e_0 - Ā e_0.
LegsStep legs(const std::string& rule, std::int64_t N, Var tau, double longest) {
  Graph& graph = *tau.graph;
  const std::int64_t T = tau.dim(0);
  const auto table = [&](Shape shape, auto&& value) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count(shape); ++i)
      values.push_back(value(static_cast<double>(i / shape.back()), static_cast<double>(i % shape.back())));
    return graph.constant(std::move(shape), std::move(values));
  };
  const Var one = table({N, N}, [](double n, double k) { return n == k ? 1.0 : 0.0; });
  const Var n = table({N}, [](double, double k) { return k; });
  const Var roots = table({N, N}, [](double i, double k) { return i > k ? std::sqrt((2.0 * i + 1.0) * (2.0 * k + 1.0)) : 0.0; });
  const Var start = relu(1.0 - tau), t = minimum(tau + start, longest);
  const auto column = [&](Var x) { return reshape(x, {T, -1, 1}); };
  const auto row = [&](Var x) { return reshape(x, {T, 1, -1}); };
  const auto row_of = [&](Var matrix, std::int64_t i) { return reshape(slice(matrix, 0, i, i + 1), {N}); };
  /// Below the diagonal row by row, from the two rows before: next(i, last, before) and a 1 next to the diagonal.
  const auto below = [&](auto&& next) {
    const Var none = graph.constant({1, N}, std::vector<double>(static_cast<std::size_t>(N), 0.0)) * t;
    std::vector<Var> rows{row(none)};
    Var last = none, before = none;
    for (std::int64_t i = 1; i < N; ++i) {
      const Var now = next(i, last, before) + row_of(one, i - 1);
      rows.push_back(row(now));
      before = last;
      last = now;
    }
    return concat(rows, 1);
  };

  LegsStep made;
  Var lost;  // what e_0 loses of itself in a step
  if (rule == "forward") {
    lost = reciprocal(t);
    made.A = column(1.0 - (n + 1.0) / t) * one - roots * column(lost);
  } else if (rule == "zoh") {
    const Var rho = t / (t + 1.0), x = rho * 2.0 - 1.0;
    lost = reciprocal(t + 1.0);
    // P_m = (slope x + shift) P_{m-1} - back P_{m-2} for the Jacobi polynomials of degree m = n - k - 1
    const auto jacobi = [&](auto&& term) {
      return table({N, N}, [&](double i, double k) {
        const double m = i - k - 1.0, c = 2.0 * (m + k + 1.0);
        return m < 1.0 ? 0.0 : term(m, k, c) / (2.0 * m * (m + 2.0 * k + 2.0) * (c - 2.0));
      });
    };
    const Var slope = jacobi([](double, double, double c) { return (c - 1.0) * c * (c - 2.0); });
    const Var shift = jacobi([](double, double k, double c) { return (c - 1.0) * (1.0 - (2.0 * k + 1.0) * (2.0 * k + 1.0)); });
    const Var back = jacobi([](double m, double k, double c) { return 2.0 * m * (m + 2.0 * k) * c; });
    const Var polynomials = below(
        [&](std::int64_t i, Var last, Var before) { return (x * row_of(slope, i) + row_of(shift, i)) * last - row_of(back, i) * before; });
    const Var scale =
        table({N, N}, [](double i, double k) { return i > k ? std::sqrt((2.0 * i + 1.0) * (2.0 * k + 1.0)) / (i - k) : 0.0; });
    const Var powers = exp(log(rho) * (n + 1.0));
    made.A = column(powers) * one - polynomials * scale * row(powers * lost);
  } else {
    const bool bilinear = rule == "bilinear";
    const Var a = bilinear ? t * 2.0 : t, inverse = reciprocal(a + (n + 1.0)), factors = (a - n) * inverse;
    const Var products = below([&](std::int64_t i, Var last, Var) { return last * slice(factors, -1, i - 1, i); });
    // (1 + A/a) (1 - A/a)^-1 = 2 (1 - A/a)^-1 - 1
    lost = (bilinear ? 2.0 : 1.0) * slice(inverse, -1, 0, 1);
    made.A = column((bilinear ? a - (n + 1.0) : a) * inverse) * one -
             products * roots * (column(inverse) * row(inverse * (a * (bilinear ? 2.0 : 1.0))));
  }
  const Var going = 1.0 - start;
  const Var first = lost * going + start;
  made.A = made.A * column(going);
  made.B = first;
  if (N > 1) {
    const Var parts[] = {first, -reshape(slice(slice(made.A, 2, 0, 1), 1, 1, N), {T, N - 1})};
    made.B = concat(parts, -1);
  }
  return made;
}

/// f(x t) = sum_n c_n sqrt(2n+1) P_n(2x-1), of inputs that come at the times init_t, init_t + 1, ...
///
/// The rules differ in how long they hold the past to be after the input of time tau, by the constant that they leave as it is: the exact
/// one and backward's step end at tau + 1, forward's step, which replaces all at time 1, at tau, and the bilinear one half way between.
PastBasis legs_past(const std::string& rule, std::int64_t init_t, std::int64_t longest) {
  PastBasis past;
  past.first = static_cast<double>(init_t) + (rule == "forward" ? 0.0 : rule == "bilinear" ? 0.5 : 1.0);
  past.last = longest - init_t;
  past.beyond =
      "From time l_max = " + std::to_string(longest) +
      " on the memory's scale no longer grows and c is no longer the fit of the whole past, so that no reconstruction is shown there: "
      "an l_max as long as the sequence shows it all.";
  past.coefficient = "Legendre coefficient";
  past.values = [](std::span<const double> places, std::span<double> values) {
    std::vector<double> x;
    for (const double place : places) x.push_back(2.0 * place - 1.0);
    legendre(x, values);
    double* at = values.data();
    for (std::size_t n = 0; n < values.size() / places.size(); ++n) {
      const double root = std::sqrt(2.0 * static_cast<double>(n) + 1.0);
      for (std::size_t i = 0; i < places.size(); ++i) *at++ *= root;
    }
  };
  return past;
}

}  // namespace

Architecture hippo_legs() {
  Architecture a;
  a.title = "HiPPO-LegS";
  a.equations = {"f_t = W_uxh [x_t; h_{t-1}]   (input=direct: f_t = x_t)",
                 "c_t = (1 − A/2t)⁻¹ ((1 + A/2t) c_{t-1} + B f_t / t)",
                 "A_nk = −√(2n+1)√(2k+1) (n > k), −(n+1) (n = k), 0 (n < k); B_n = √(2n+1)",
                 "g_t = σ(W_g [x_t; c_t])",
                 "h_t = (1 − g_t) ⊙ h_{t-1} + g_t ⊙ tanh(W_hxm [x_t; c_t])",
                 "y_t = h_t; input=direct: y_t = c_t"};
  a.notes = {
      "Parameters have the names of the reference's state_dict, state-spaces/s4 rnns/cells/memory.py, whose identity activation makes "
      "W_uxh a sequence, hence W_uxh.0; columns are x, then h or c, and c counts memory by memory.",
      "g multiplies the new value.",
      "Time is absolute: at time 0 the state is replaced by (f, 0, …, 0), and from l_max on the step stays that of l_max, as in the code; "
      "init_t = 1 is the older code's count.",
      "c reconstructs the past of f: f(s) ≈ Σ c_n √(2n+1) P_n(2s/t − 1).",
      "input=direct has no parameters: it projects every input channel and nothing else; width, memory, gate and the flags are then "
      "without use.",
      "dL/ds_t takes h_t and c_t as independent coordinates of the state after step t: dL/dc_t does not include c_t's way into h_t of the "
      "same step."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of hidden units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_integer("order", "N", 0, 0, 512, "Legendre coefficients a memory; 0: as many as the width.", "coefficients"),
             hyper_integer("memory", "M", 1, 1, 256, "Memories, each with a signal of its own.", "memories"),
             hyper_choice("input", "learned", {"learned", "direct"},
                          "Whether a recurrent network writes and reads the memory, or the inputs themselves are projected."),
             hyper_choice("discretisation", "bilinear", {"bilinear", "forward", "backward", "zoh"}, "From continuous to discrete time."),
             hyper_integer("init_t", "t₀", 0, 0, 1000000, "The time of the first input; at time 0 the memory begins with it.", "steps"),
             hyper_integer("l_max", "L", 1024, 1, 100000000, "The time beyond which the memory's scale no longer grows.", "steps"),
             hyper_choice("gate", "sigmoid", {"sigmoid", "none"}, "Whether h is gated, or replaced at every step."),
             hyper_flag("bias", true, "Whether the maps have biases."),
             hyper_flag("ux", true, "Whether the memory's signal sees the input."),
             hyper_flag("hx", true, "Whether h and its gate see the input."),
             hyper_flag("hh", false, "Whether h and its gate see the h before.")};
  a.spectrum = "eigenvalues of ∂(h_t, c_t)/∂(h_{t-1}, c_{t-1}); with input=direct the diagonal of Ā_t, once a channel";
  a.source = {"A. Gu, T. Dao, S. Ermon, A. Rudra, C. Ré", "HiPPO: recurrent memory with optimal polynomial projections", "NeurIPS",
              "https://arxiv.org/abs/2008.07669", 2020};

  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), N = l.hyper.integer("order") ? l.hyper.integer("order") : H, T = l.steps(),
                       batch = l.batch(), in = x.dim(-1);
    const Var time = reshape(slice(l.position(), 1, 0, 1), {T, 1}) + static_cast<double>(l.hyper.integer("init_t"));
    const LegsStep step = legs(l.hyper.choice("discretisation"), N, time, static_cast<double>(l.hyper.integer("l_max")));
    const PastBasis past = legs_past(l.hyper.choice("discretisation"), l.hyper.integer("init_t"), l.hyper.integer("l_max"));
    if (l.hyper.choice("input") == "direct") {
      const Var c = linear(l, {"c", {in, N}, "The Legendre coefficients of each channel's past, lowest first."},
                             reshape(step.A, {T, 1, N, N}), reshape(x, {T, batch, in, 1}) * reshape(step.B, {T, 1, 1, N}));
      l.reconstruction(
          "c", [&] { return x; }, past);
      return reshape(c, {T, batch, in * N});
    }

    const std::int64_t M = l.hyper.integer("memory");
    const bool bias = l.hyper.flag("bias"), ux = l.hyper.flag("ux"), hx = l.hyper.flag("hx"), hh = l.hyper.flag("hh"),
               gated = l.hyper.choice("gate") == "sigmoid";
    const Var each = x.graph->constant({1, batch, 1}, std::vector<double>(static_cast<std::size_t>(batch), 1.0));
    std::vector<Var> tokens{reshape(transpose(step.A), {T, 1, N * N}) * each, reshape(step.B, {T, 1, N}) * each};
    /// A map of what the cell knows; the part that sees the input is done for all steps at once and becomes a token.
    struct Map {
      Var inner, bias;
      std::size_t token = 0;
    };
    const auto map = [&](const std::string& name, std::int64_t out, bool sees, std::int64_t rest, const Init& weights,
                         const std::string& text, const std::string& starts) {
      const std::int64_t seen = sees ? in : 0, fan_in = seen + rest;
      const double k = 1.0 / std::sqrt(static_cast<double>(fan_in));
      const Var W = l.parameter(name + ".weight", {out, fan_in}, weights, text + "; starts " + starts + ".");
      const Var b = bias ? l.parameter(name + ".bias", {out}, init::uniform(-k, k), "Its bias; starts uniform in ±1/√in.") : Var{};
      if (!sees) return Map{W, b};
      tokens.push_back(linear(x, slice(W, 1, 0, in), b));
      return Map{slice(W, 1, in, fan_in), {}, tokens.size() - 1};
    };
    const auto xavier = [](std::int64_t fan_in, std::int64_t out) {
      return init::normal(std::sqrt(2.0 / static_cast<double>(fan_in + out)));
    };
    const std::int64_t to_f = (ux ? in : 0) + H, to_h = (hx ? in : 0) + M * N, to_g = to_h + (hh ? H : 0);
    const double kaiming = std::sqrt(3.0 / static_cast<double>(to_f)), torch = 1.0 / std::sqrt(static_cast<double>(to_g));
    const Map W_f = map("W_uxh.0", M, ux, H, init::uniform(-kaiming, kaiming),
                        ux ? "The memory's signal f, columns x, h" : "The memory's signal f, of h", "uniform in ±√(3/in)");
    const Map W_h = map("W_hxm", H, hx, M * N, xavier(to_h, H), hx ? "The new value of h, columns x, c" : "The new value of h, of c",
                        "N(0, 2/(in + out))");
    Map W_hh, W_g;
    if (hh) W_hh = map("W_hh", H, false, H, xavier(H, H), "The part of the new value of h that sees the h before", "N(0, 2/(in + out))");
    if (gated)
      W_g = map("W_gxm.W_g", H, hx, to_g - (hx ? in : 0), init::uniform(-torch, torch),
                std::string("The gate, columns ") + (hx ? "x, c" : "c") + (hh ? ", h_{t-1}" : ""), "uniform in ±1/√in");

    const std::vector<StateSpec> states{{"h", {H}, "The hidden state: what is read out and fed back."},
                                        {"c", {M, N}, "The Legendre coefficients of each signal's past, lowest first."}};
    const std::vector<Var> made = reclab::step(l, states, tokens, [=](Cell& cell, std::span<const Var> t, std::span<const Var> s) {
      const std::int64_t copies = s[0].dim(0);
      const auto apply = [&](const Map& of, Var value) {
        const Var y = linear(value, of.inner, of.bias);
        return of.token ? y + t[of.token] : y;
      };
      const Var f = apply(W_f, s[0]);
      const Var c = matmul(s[1], reshape(t[0], {copies, N, N})) + reshape(f, {copies, M, 1}) * reshape(t[1], {copies, 1, N});
      const Var flat = reshape(c, {copies, M * N});
      Var pre = apply(W_h, flat);
      if (hh) pre = pre + apply(W_hh, s[0]);
      const Var candidate = tanh(pre);
      if (!gated) return std::vector<Var>{candidate, c};
      const Var parts[] = {flat, s[0]};
      const Var g = cell.gate("update", sigmoid(apply(W_g, hh ? concat(parts, -1) : flat)), 0.0, 1.0,
                              "g: how much of h is replaced by the new value.");
      return std::vector<Var>{(1.0 - g) * s[0] + g * candidate, c};
    });
    l.reconstruction(
        "c",
        [&] {
          const Var fed = linear(detach(l.before(made[0])), detach(W_f.inner), W_f.bias ? detach(W_f.bias) : Var{});
          return W_f.token ? fed + detach(tokens[W_f.token]) : fed;
        },
        past);
    return made[0];
  };
  return a;
}

}  // namespace reclab::architectures
