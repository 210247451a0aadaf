// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = (Ā + u_t diag(B̄)) h_{t-1} + B̄ u_t,   y_t = 2 Re(C h_t) + D u_t,   Ā and B̄ those of S4, one such system a channel
//   of order p, no more than p inputs are multiplied with each other: h = Σ_{j<=p} h_j,  h_1 = Ā h_1 + B̄ u_t,  h_j = Ā h_j + u_t B̄ ∘
//   h_{j-1} layer: GLU(W gelu(y) + b),   block: x + layer(norm(x)), or norm(x + layer(x))
// R. Hasani, M. Lechner, T.-H. Wang, M. Chahine, A. Amini, D. Rus, Liquid structural state-space models, ICLR 2023 (arXiv 2022).
// Names and conventions of raminmh/liquid-s4 (src/models/sequence/ss/s4.py, kernel.py).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "array/error.h"
#include "models/parts/layers/low_rank_layer.h"
#include "models/parts/layers/state_space.h"
#include "models/parts/parts.h"
#include "recurrence/convolution/convolution.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// The systems' output for u where inputs multiply states: `order` levels, or, with 0, the recurrence itself.
Var liquid(Layer& l, const LowRankSystem& system, Var u, std::int64_t order) {
  const std::int64_t T = u.dim(0), batch = u.dim(1), H = system.a.dim(0), M = system.a.dim(1), levels = order ? order : 1;
  const auto in_levels = [&](Var v) { return reshape(v, {H, 1, M}); };
  const Var ar = in_levels(real(system.a)), ai = in_levels(imag(system.a)), pr = in_levels(real(system.p)), pi = in_levels(imag(system.p)),
            qr = in_levels(real(system.q)), qi = in_levels(imag(system.q));
  const Var each = reshape(u, {T, batch, H, 1, 1});
  std::vector<Var> tokens{each * in_levels(real(system.b)), each * in_levels(imag(system.b))};
  const std::string text =
      order
          ? "The real coordinates of each channel's modes, one of each conjugate pair: for each order, first their real parts, then their "
            "imaginary ones."
          : "The real coordinates of each channel's modes, one of each conjugate pair: first their real parts, then their imaginary ones.";
  const Var states = step(
      l, {{"h", {H, levels * 2 * M, 1}, text}}, tokens,
      [=](Cell&, std::span<const Var> t, std::span<const Var> s) {
        const std::int64_t rows = s[0].dim(0);
        const Var h = reshape(s[0], {rows, H, levels, 2 * M}), re = slice(h, -1, 0, M), im = slice(h, -1, M, 2 * M);
        const Var read = reshape(sum(re * qr - im * qi, -1) * 2.0, {rows, H, levels, 1});
        const Var moved_re = ar * re - ai * im - pr * read, moved_im = ar * im + ai * re - pi * read;
        // The drive of the input: of the first level B̄ u, of each level above it B̄ u times the level below.
        const auto driven = [&](Var from_re, Var from_im) {
          return std::pair{t[0] * from_re - t[1] * from_im, t[0] * from_im + t[1] * from_re};
        };
        Var drive_re = t[0], drive_im = t[1];
        if (order == 0) {
          const auto [by_re, by_im] = driven(re, im);
          drive_re = drive_re + by_re;
          drive_im = drive_im + by_im;
        } else {
          const auto [by_re, by_im] = driven(slice(re, 2, 0, levels - 1), slice(im, 2, 0, levels - 1));
          const Var of_re[] = {drive_re, by_re}, of_im[] = {drive_im, by_im};
          drive_re = concat(of_re, 2);
          drive_im = concat(of_im, 2);
        }
        const Var next[] = {moved_re + drive_re, moved_im + drive_im};
        return std::vector<Var>{reshape(concat(next, -1), {rows, H, levels * 2 * M, 1})};
      },
      Sees::own_column)[0];
  const Var h = reshape(states, {T, batch, H, levels, 2 * M});
  const Var all = order > 1 ? sum(h, 3) : reshape(h, {T, batch, H, 2 * M});
  return sum(slice(all, -1, 0, M) * real(system.c) - slice(all, -1, M, 2 * M) * imag(system.c), -1) * 2.0;
}

/// The products of p inputs that the code takes: of each step and the p - 1 before it, made of the products of one fewer, or of the first T
/// sets of p of the last inputs. u and the products so far [steps, batch, channels].
Var products(Var u, Var below, std::int64_t p, bool all) {
  const std::int64_t T = u.dim(0), B = u.dim(1), H = u.dim(2);
  if (!all) {
    if (T == 1) return affine(below, 0.0, 0.0);
    const Var late[] = {affine(slice(below, 0, 0, 1), 0.0, 0.0), slice(below, 0, 0, T - 1)};
    return below * concat(late, 0);
  }
  // The fewest of the last inputs that have T sets; the last T of these in the order of their numbers.
  std::int64_t n = 0;
  for (std::int64_t m = 2; m < T && !n; ++m) {
    double sets = 1.0;
    for (std::int64_t i = 0; i < p; ++i) sets *= static_cast<double>(m - i) / static_cast<double>(i + 1);
    if (sets >= static_cast<double>(T) - 0.5) n = m;
  }
  if (!n) return affine(u, 0.0, 0.0);
  std::vector<std::vector<double>> chosen(static_cast<std::size_t>(p), std::vector<double>(static_cast<std::size_t>(T * n), 0.0));
  std::vector<std::int64_t> set;
  for (std::int64_t i = n - p; i < n; ++i) set.push_back(i);  // the last one
  for (std::int64_t row = T - 1; row >= 0; --row) {
    for (std::size_t j = 0; j < chosen.size(); ++j) chosen[j][static_cast<std::size_t>(row * n + set[j])] = 1.0;
    // The set before: the last number that may fall does, and those after it are as large as they can be.
    for (std::int64_t at = p - 1; at >= 0; --at) {
      if (set[static_cast<std::size_t>(at)] == (at ? set[static_cast<std::size_t>(at - 1)] + 1 : 0)) continue;
      --set[static_cast<std::size_t>(at)];
      for (std::int64_t i = at + 1; i < p; ++i) set[static_cast<std::size_t>(i)] = n - p + i;
      break;
    }
  }
  const Var last = reshape(slice(u, 0, T - n, T), {n, B * H});
  Var product;
  for (auto& rows : chosen) {
    const Var factor = matmul(u.graph->constant({T, n}, std::move(rows)), last);
    product = product ? product * factor : factor;
  }
  return reshape(product, {T, B, H});
}

/// The code's added terms of products of inputs, for a layer that runs backward: x and the result have the last step first.
Var added(Layer& l, const LowRankSystem& system, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t T = x.dim(0), H = x.dim(2), modes = system.a.dim(1), S = h.integer("n_ssm") ? h.integer("n_ssm") : H;
  const std::string own = " of what is frozen";
  const Var frozen_dt = l.parameter(
      "frozen.log_dt", {H}, [](InitContext& c) { std::ranges::copy(c.other("log_dt"), c.values.begin()); },
      "log Δ" + own + "; starts as log_dt.");
  const Var frozen_B = l.parameter(
      "frozen.B", {S, modes, 2}, [](InitContext& c) { std::ranges::copy(c.other("B"), c.values.begin()); },
      "B" + own + ", last axis re and im; starts as B.");
  const bool polynomial = h.choice("liquid_kernel") == "polyb";
  const Var frozen_C = polynomial
                           ? l.parameter(
                                 "frozen.C", {H, modes, 2}, [](InitContext& c) { std::ranges::copy(c.other("C"), c.values.begin()); },
                                 "C" + own + ", last axis re and im; starts as C.")
                           : Var{};
  const Var frozen_w = l.parameter(
      "frozen.w", {S, modes, 2},
      [](InitContext& c) {
        const auto turn = c.other("w_imag");
        for (std::size_t i = 0; i < c.values.size(); ++i) c.values[i] = i % 2 ? turn[i / 2] : -0.5;
      },
      "Λ" + own + ", last axis re and im; starts as −½ + i w_imag.");
  const auto number = [&](Var v) { return parts::for_channels(parts::complex_modes(v, v.dim(0), modes), H); };
  const Var dt = reshape(exp(frozen_dt), {H, 1}), drive = number(frozen_B) * dt * reciprocal(1.0 - number(frozen_w) * (dt * 0.5));
  const auto over_modes = [](Var v) { return sum(real(v), -1) * 2.0; };  // and their conjugates
  const Var total = over_modes(drive), u = reversed(x);
  const Var readout = polynomial ? over_modes(number(frozen_C) * drive) : Var{};
  Var product = u, sums;
  Var factor = total;  // kb: s^(p-1); polyb: s^(2^(p-1) - 1), s the sum of B̄
  for (std::int64_t p = 2; p <= h.integer("order"); ++p) {
    product = products(u, product, p, h.flag("allcombs"));
    const Var term = parts::activation(h.choice("lcontract") == "lecun" ? "lecun_tanh" : h.choice("lcontract"), product) *
                     (polynomial ? factor * readout : factor);
    sums = sums ? sums + term : term;
    factor = polynomial ? square(factor) * total : factor * total;
  }
  if (polynomial) return sums;
  // The code multiplies the spectrum of 2T points with one of T + 1: the kernel that does the same in time is another linear map of S4's
  // own.
  if (T > 4096)
    throw Error("liquid-s4: liquid_kernel = kb takes a matrix of 2T × T, and the sequence has " + std::to_string(T) +
                    " steps: choose at most 4096, or liquid_kernel = polyb.",
                {.model = "liquid-s4", .parameter = "liquid_kernel", .value = "kb", .range = "causal, polyb"});
  std::vector<double> map(static_cast<std::size_t>(2 * T * T));
  const double turn = 2.0 * std::numbers::pi;
  for (std::int64_t t = 0; t < 2 * T; ++t)
    for (std::int64_t s = 0; s < T; ++s) {
      const double apart = static_cast<double>(t) / static_cast<double>(2 * T) - static_cast<double>(s) / static_cast<double>(T + 1);
      const double middle = std::abs(apart) < 1e-15
                                ? static_cast<double>(T - 1)
                                : std::sin(std::numbers::pi * apart * static_cast<double>(T - 1)) / std::sin(std::numbers::pi * apart) *
                                      std::cos(std::numbers::pi * apart * static_cast<double>(T));
      map[static_cast<std::size_t>(t * T + s)] =
          (1.0 + (t % 2 ? -1.0 : 1.0) * std::cos(turn * static_cast<double>(T * s % (T + 1)) / static_cast<double>(T + 1)) + 2.0 * middle) /
          static_cast<double>(2 * T);
    }
  const Var kernel = matmul_transposed(parts::low_rank_kernel(system, T), x.graph->constant({2 * T, T}, std::move(map)));  // [H, 2T]
  // Round 2T places: step r of x reads the steps s >= r through place s - r, and those before through 2T - (r - s).
  const Var later = reversed(convolve(slice(kernel, -1, 0, T), reversed(sums)));
  if (T == 1) return later;
  const Var back[] = {affine(slice(kernel, -1, 0, 1), 0.0, 0.0), transpose(reversed(transpose(slice(kernel, -1, T + 1, 2 * T))))};
  return later + convolve(concat(back, -1), sums);
}

}  // namespace

Architecture liquid_s4() {
  Architecture a;
  a.title = "Liquid-S4";
  a.equations = {"A = Λ − P P*, Λ = −exp(inv_w_real) + i w_imag and its conjugates",
                 "Ā = (1 − Δ/2 A)⁻¹(1 + Δ/2 A), B̄ = (1 − Δ/2 A)⁻¹ Δ B, Δ = exp(log_dt)",
                 "order = 0: h_t = (Ā + u_t diag(B̄)) h_{t-1} + B̄ u_t, N modes a channel, of which one of each conjugate pair is stored",
                 "order = p: h_t = h_t⁽¹⁾ + … + h_t⁽ᵖ⁾, h_t⁽¹⁾ = Ā h_{t-1}⁽¹⁾ + B̄ u_t, h_t⁽ʲ⁾ = Ā h_{t-1}⁽ʲ⁾ + u_t B̄ ⊙ h_{t-1}⁽ʲ⁻¹⁾",
                 "y_t = 2 Re Σ_n C_n h_t,n + D u_t;  L = l_kernel > 0: with (1 − Āᴸ)⁻ᵀ C in place of C",
                 "liquid_kernel = polyb: order 1, and y_t + Σ_{p=2..order} (Π_{j<p} s_j) (2 Re Σ_n C_n B̄_n) f(u⁽ᵖ⁾)_{T−1−t},  B̄ = Δ B/(1 − "
                 "Δ Λ/2), s_j = (2 Re Σ_n B̄_n)^(2^(j−1)), u⁽ᵖ⁾ products of p inputs",
                 "liquid_kernel = kb: order 1, and y + Σ_p (2 Re Σ_n B̄_n)^(p−1) κ ⊛ f(u⁽ᵖ⁾) reversed,  κ of 2T places = the inverse "
                 "transform of S4's kernel's transform of T + 1 points",
                 "bidirectional: y_t + 2 Re Σ_n C'_n h'_n with h' of the steps after t, last one first",
                 "layer: v = W gelu(y_t) + b, out = v₁ ⊙ σ(v₂)"};
  a.notes = {
      "Names and shapes are those of the reference's S4 without kernel.kernel., and output_linear without .0; the last axis of B, P, C is "
      "re, im.",
      "The paper's A + B u adds a vector to a matrix: here, as in its powers of B, B stands on the diagonal, in the coordinates of the "
      "stored modes. What an input multiplies "
      "therefore depends on the phase of B, unlike anything in S4.",
      "order counts inputs in a product: 1 is S4, with all of its forms; p is what the paper calls liquid order, with the powers of Ā "
      "between the inputs kept; "
      "0 is the recurrence, which has all orders and is the limit of them.",
      "The reference computes something else, from the same parameters: its polyb and kb add terms in products of inputs that are taken "
      "from the end of the whole sequence to its start, so "
      "they are not causal: with liquid_kernel = polyb or kb a second layer that runs backward makes them, with orders 2 to order. Such a "
      "model cannot start from a state: what is still to come would change what has been.",
      "They have copies of log_dt, B, C and w that are not in its files (attributes of its SSKernel, as they were at the start): frozen.*, "
      "which are to be added to a file as <layer>/frozen.* or layers.<layer>.layer.kernel.kernel.frozen.*, w as [modes, re and im].",
      "allcombs takes the products of the last T sets of p among the fewest last inputs that have so many, as the code's default; where "
      "there are not enough inputs for that, where the code fails, nothing is added. "
      "kb multiplies two transforms of different lengths, T + 1 and 2T points, in the code; the kernel that does the same is made here, "
      "from S4's own.",
      "Its bidirectional variant of these two, and lcontract beside liquid_kernel = null, which does nothing, are not here.",
      "Its kernel of liquid_kernel = null is order 1; its C is C̃ = (1 − Āᴸ)ᵀ C after the first forward pass: set l_kernel to its buffer L.",
      "C starts complex normal, and B as the eigenvectors' V* B with phases that make it real and positive, which is a choice of the "
      "diagonal's coordinates too.",
      "Orders above 1 repeat each eigenvalue: a level is driven by the one below, and ds_t/ds_{t-1} has too few eigenvectors, so rounding "
      "moves its eigenvalues apart.",
      "With order = 0 a large input makes a state grow, u_t B̄ counting as much as Ā; a finite order never does.",
      "real_transform relu is without the 1e-4 that later versions add. gelu is exact and the block's norm a layer norm with epsilon 1e-5, "
      "before the layer by default."};
  a.hyper = parts::low_rank_layer_hyper(true);
  a.hyper.insert(
      a.hyper.begin() + 3,
      hyper_integer("order", "p", 2, 0, 8, "Most inputs that are multiplied with each other; 1: S4; 0: all, the recurrence itself."));
  for (const HyperSpec& row :
       {hyper_choice("liquid_kernel", "causal", {"causal", "polyb", "kb"},
                     "The recurrence, or what the reference's code adds to S4, which is not causal."),
        hyper_flag("allcombs", true, "polyb and kb: whether products are of sets among the last inputs, or of inputs in a row."),
        hyper_choice("lcontract", "identity", {"identity", "tanh", "lecun"},
                     "polyb and kb: what contracts the products: nothing, tanh, or 1.7159 tanh(0.666 x).")})
    a.hyper.push_back(row);
  a.spectrum = "eigenvalues of ∂h_t/∂h_{t-1} of every channel: of Ā + u_t diag(B̄) with order = 0; of Ā, once an order, otherwise";
  a.source = {"R. Hasani, M. Lechner, T.-H. Wang, M. Chahine, A. Amini, D. Rus", "Liquid structural state-space models", "ICLR",
              "https://arxiv.org/abs/2209.12951", 2022};
  a.reference = {{"kernel.kernel.L", ""},
                 {"layers.{n}.layer.kernel.kernel.*", "*"},
                 {"kernel.kernel.*", "*"},
                 {"layers.{n}.layer.D", "D"},
                 {"layers.{n}.layer.frozen.*", "frozen.*"},
                 {"frozen.*", "frozen.*"},
                 {"layers.{n}.layer.output_linear.0.*", "output_linear.*"},
                 {"output_linear.0.*", "output_linear.*"},
                 {"layers.{n}.norm.norm.*", "norm.*"}};
  parts::make_low_rank_layer(a, {.id = "liquid-s4",
                                 .read =
                                     [](Layer& l, const LowRankSystem& system, Var u) {
                                       if (l.hyper.choice("liquid_kernel") != "causal")
                                         return l.backward() ? added(l, system, u) : parts::low_rank_modes(l, system, u);
                                       const std::int64_t order = l.hyper.integer("order");
                                       return order == 1 ? parts::low_rank_modes(l, system, u) : liquid(l, system, u, order);
                                     },
                                 .first_version = true,
                                 .adds_backward = [](const Hyper& h) { return h.choice("liquid_kernel") != "causal"; }});
  a.check = [own = a.check](const Hyper& h) {
    own(h);
    if (h.choice("liquid_kernel") == "causal") return;
    const auto refuse = [&](const std::string& key, const std::string& why, const std::string& range) {
      throw Error("liquid-s4: with liquid_kernel = " + h.text("liquid_kernel") + " " + key + " = " + h.text(key) + " " + why + ".",
                  {.model = "liquid-s4", .parameter = key, .value = h.text(key), .range = range});
    };
    if (h.integer("order") < 2) refuse("order", "leaves no product of inputs: choose 2 or more, or liquid_kernel = causal", "at least 2");
    if (h.flag("bidirectional")) refuse("bidirectional", "is another model: choose no, or liquid_kernel = causal", "no");
  };
  return a;
}

}  // namespace reclab::architectures
