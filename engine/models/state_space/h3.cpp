// SPDX-License-Identifier: GPL-3.0-or-later
//   q = W_q u + b_q, k = W_k u + b_k, v = W_v u + b_v
//   s_t = shift(s_{t-1}) + B k_t,  k'_t = C·s_t + D_k k_t                                  the shift system: taps Σ_j B_j C_{i+j} at i = 0
//   .. N-1 steps ago h_t = Ā h_{t-1} + B̄ (k'_t ⊗ v_t),  r_t = 2 Re(C h_t) + D (k'_t ⊗ v_t)                  the diagonal system, one a
//   head, for each pair of its dimensions y_t = W_o (q_t^T r_t) + b_o
// D. Y. Fu, T. Dao, et al., Hungry hungry hippos: towards language modeling with state space models, ICLR 2023. Names and conventions of
// HazyResearch/H3 (src/models/ssm/h3.py, ss_kernel.py, ss_kernel_diag.py, ss_kernel_shift.py; the block of ssm_seq.py).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "array/error.h"
#include "models/architecture.h"
#include "models/parts/hippo.h"
#include "models/parts/layers/diagonal_system.h"
#include "models/parts/layers/modal_filter.h"
#include "models/parts/parts.h"
#include "recurrence/convolution/convolution.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/flow.h"

namespace reclab::architectures {
namespace {

std::int64_t heads_of(const Hyper& h) { return h.integer("width") / h.integer("head_dim"); }
std::int64_t copies_of(const Hyper& h) { return h.integer("n_ssm") ? h.integer("n_ssm") : heads_of(h); }
/// At most l_max taps.
std::int64_t cut(const Hyper& h, std::int64_t taps) { return h.integer("l_max") ? std::min(taps, h.integer("l_max")) : taps; }

/// The kernel of a shift system [channels, taps]: the correlation of its C with its B.
Var shift_kernel(Layer& l, const std::string& name, std::int64_t channels) {
  const std::int64_t N = l.hyper.integer("state"), taps = cut(l.hyper, N);
  const Var B = l.parameter(name + ".B", {channels, N}, init::each([N](Rng&, std::int64_t i) { return i % N ? 0.0 : 1.0; }),
                            "B of the shift system: what an input adds to each place; starts at e₁.");
  const Var C = l.parameter(name + ".C", {1, channels, N}, parts::torch_uniform(N),
                            "C of the shift system, which reads the places; starts uniform in ±1/√N.");
  const Var places = reshape(transpose(reshape(C, {channels, N})), {N, 1, channels});
  const Var later = l.graph().constant({N, 1, channels}, std::vector<double>(static_cast<std::size_t>(N * channels), 0.0));
  const Var both[] = {places, slice(later, 0, 0, N - 1)};
  const Var lags = depthwise(N > 1 ? concat(both, 0) : places, B);
  return slice(transpose(reshape(lags, {N, channels})), -1, 0, taps);
}

/// Where A starts, mode n of a copy.
struct FirstModes {
  std::string measure;
  std::int64_t modes, copies;
  std::vector<double> legs;

  explicit FirstModes(const Hyper& h) : measure(h.choice("measure")), modes(h.integer("state") / 2), copies(copies_of(h)) {
    if (measure == "diag-legs") legs = hippo::legs_normal(2 * modes).frequencies;
  }
  double real(std::int64_t i) const { return measure == "diag-real" ? static_cast<double>(i % modes) + 1.0 : 0.5; }
  double imag(Rng& rng, std::int64_t i) const {
    const double n = static_cast<double>(i % modes), N = static_cast<double>(2 * modes), pi = std::numbers::pi;
    const std::string kind = measure == "diag" ? (i / modes < copies / 2 ? "diag-inv" : "diag-lin") : measure;
    if (kind == "diag-inv") return N / pi * (N / (1.0 + 2.0 * n) - 1.0);
    if (kind == "diag-inv2") return N / pi * (N / (1.0 + n) - 1.0);
    if (kind == "diag-quad") return (1.0 + 2.0 * n) * (1.0 + 2.0 * n) / pi;
    if (kind == "diag-legs") return legs[static_cast<std::size_t>(i % modes)];
    if (kind == "diag-real") return 0.0;
    if (kind == "diag-random") return rng.normal();
    return pi * n;
  }
};

/// What a system that keeps modes is: h = a h + b u, read by w; [heads, modes], complex or real.
struct Modes {
  Var a, b, w;
  bool may_grow = false;
};

Modes diagonal_modes(Layer& l) {
  const Hyper& h = l.hyper;
  const std::int64_t H = heads_of(h), M = h.integer("state") / 2, S = copies_of(h);
  const std::string& disc = h.choice("disc");
  const std::string of_real = h.choice("real_type");
  const double low = std::log(h.real("dt_min")), high = std::log(h.real("dt_max"));
  const FirstModes start(h);
  const Var C_given = l.parameter("kernel.kernel.C", {1, H, M, 2}, init::normal(std::sqrt(0.5)),
                                  "C of the diagonal system, last axis re and im; starts complex normal.");
  const Var log_dt =
      l.parameter("kernel.kernel.log_dt", {H}, init::uniform(low, high), "log Δ a head; starts uniform between log dt_min and log dt_max.");
  const Var B_given = l.parameter("kernel.kernel.B", {S, M, 2}, init::each([](Rng&, std::int64_t i) { return i % 2 ? 0.0 : 1.0; }),
                                  "B of the diagonal system, last axis re and im; starts at 1.");
  const Var A_real =
      l.parameter("kernel.kernel.inv_A_real", {S, M},
                  init::each([start, of_real](Rng&, std::int64_t i) { return parts::from_positive(of_real, start.real(i)); }),
                  "−Re A before real_type; starts at that of ½, or of n + 1 (diag-real).");
  const Var A_imag =
      l.parameter("kernel.kernel.A_imag", {S, M}, init::each([start](Rng& rng, std::int64_t i) { return start.imag(rng, i); }),
                  "Im A; starts as measure says.");

  const auto for_heads = [&](Var v) {
    const std::vector<Var> copies(static_cast<std::size_t>(H / S), v);
    return copies.size() == 1 ? v : concat(copies, 0);
  };
  const auto number = [&](Var v, std::int64_t rows) {
    return complex(reshape(slice(v, -1, 0, 1), {rows, M}), reshape(slice(v, -1, 1, 2), {rows, M}));
  };
  const Var turning = h.flag("force_real") ? A_imag * 0.0 : A_imag;
  const Var A = for_heads(complex(-parts::positive(of_real, A_real), turning)), dt = reshape(exp(log_dt), {H, 1}), dtA = A * dt;
  Var C = number(C_given, H);
  if (h.real("bandlimit") > 0.0)
    C = C * detach(relu(sign(0.5 * h.real("bandlimit") - dt * abs(for_heads(turning)) * (0.5 / std::numbers::pi))));
  const Var B = for_heads(number(B_given, S));
  declare_flow(l, {.rule = disc == "bilinear" ? Flow::Rule::bilinear : Flow::Rule::exponential, .exponents = dtA});
  if (disc == "zoh") return {exp(dtA), B * (mean_exp(dtA) * dt), C * 2.0};
  if (disc == "bilinear") {
    const Var inverse = reciprocal(1.0 - dtA * 0.5);
    return {(dtA * 0.5 + 1.0) * inverse, B * (inverse * dt), C * 2.0};
  }
  const double length = static_cast<double>(h.integer("length"));
  const Var grows = detach(relu(sign(real(A)))), falling = dtA * (1.0 - 2.0 * grows);
  const Var below = mean_exp(falling * length) * falling * length * A;
  const Var inverse = complex(real(below), -imag(below)) * reciprocal(square(real(below)) + square(imag(below)) + 1e-7);
  return {exp(dtA), B * (mean_exp(falling) * falling * inverse * exp(detach(dtA) * (grows * (1.0 - length)))), C, of_real == "none"};
}

Modes averages(Layer& l) {
  const std::int64_t H = heads_of(l.hyper), N = l.hyper.integer("state"), steps = l.hyper.flag("dt_tie") ? 1 : N;
  const Var delta =
      l.parameter("kernel.kernel.delta", {H, steps, 1}, init::normal(0.2), "δ: σ(δ) is what an input counts; starts N(0, 0.2²).");
  const Var alpha = l.parameter("kernel.kernel.alpha", {H, N, 1}, init::normal(0.2), "α: 1 − σ(δ) σ(α) is what stays; starts N(0, 0.2²).");
  const Var beta = l.parameter("kernel.kernel.beta", {H, N, 1},
                               init::each([N](Rng& rng, std::int64_t i) { return (i % N % 2 ? -1.0 : 1.0) + 0.02 * rng.normal(); }),
                               "β, the weight of the input; starts at 1 and −1 in turn, plus N(0, 0.02²).");
  const Var gamma = l.parameter("kernel.kernel.gamma", {H, N}, init::normal(1.0), "γ, which reads the averages, over √N; starts normal.");
  const Var d = reshape(delta, {H, steps}), a = reshape(alpha, {H, N});
  return {sigmoid(-d) + sigmoid(d) * sigmoid(-a), sigmoid(d) * reshape(beta, {H, N}),
          gamma * std::sqrt(1.0 / static_cast<double>(N))};  // 1 - pq = (1 - p) + p (1 - q)
}

/// The first taps of the kernel of such a system, [heads, taps].
Var cut_kernel(const Modes& m, std::int64_t taps) {
  const std::int64_t H = m.a.dim(0), N = m.a.dim(1);
  Var powers = reshape(m.a * 0.0 + 1.0, {H, N, 1}), next = reshape(m.a, {H, N, 1});
  while (powers.dim(-1) < taps) {
    const Var both[] = {powers, powers * next};
    powers = concat(both, -1);
    next = next * next;
  }
  const Var each = slice(powers, -1, 0, taps) * reshape(m.w * m.b, {H, N, 1});
  return sum(is_complex(each.dtype()) ? real(each) : each, 1);
}

/// What a system makes of the products, [steps, batch, channels]; `each` channels of a head after another.
Var remembered(Layer& l, Var u, std::int64_t each) {
  const Hyper& h = l.hyper;
  const std::int64_t H = heads_of(h), C = H * each;
  const std::string& mode = h.choice("mode");
  const auto for_channels = [&](Var v) {
    if (each == 1) return v;
    const Var ones = l.graph().constant({1, each, 1}, std::vector<double>(static_cast<std::size_t>(each), 1.0));
    return reshape(reshape(v, {H, 1, v.dim(-1)}) * ones, {C, v.dim(-1)});
  };
  const auto by_taps = [&](Var kernel) {
    const std::int64_t taps = kernel.dim(-1);
    const StateSpec spec{
        "kv", {C}, "The products of each step, which the next ones read through the kernel; by head, then k' dimension, then v dimension."};
    return convolve_directly(for_channels(kernel), taps > 1 ? l.history(spec, u, taps - 1) : u, u.dim(0));
  };
  if (parts::has_modal_filter(h)) return parts::modal_filter(l, u);
  if (mode == "shift") return by_taps(shift_kernel(l, "kernel.kernel", H));
  const Modes m = mode == "ema" ? averages(l) : diagonal_modes(l);
  if (h.integer("l_max")) return by_taps(cut_kernel(m, h.integer("l_max")));
  const Var a = for_channels(m.a), b = for_channels(m.b), w = for_channels(m.w);
  const StateSpec spec{"h",
                       {C, a.dim(-1)},
                       mode == "ema" ? "The averages of each product, by head, then k' dimension, then v dimension."
                                     : "The complex modes of each product, by head, then k' dimension, then v dimension."};
  if (!m.may_grow) return diagonal_bank(l, spec, a, b, w, u);
  const BankVars vars = diagonal_bank(l.graph(), l.form(), a, b, w, u);  // an FFT rounds all of an output as it does its largest entry
  l.offer({Form::scan, Form::chunkwise});
  l.declare({spec}, vars);
  return vars.output;
}

Var h3_operator(Layer& l, Var u) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), n = h.integer("head_dim"), H = heads_of(h), T = u.dim(0), batch = u.dim(1);
  const Var q = l.gate("q", parts::linear(l, "q_proj", u, d, "W_q, rows (head, dimension)"), 0.0, 0.0,
                       "q: what the memory of the products is multiplied with; unbounded.");
  const Var k = parts::linear(l, "k_proj", u, d, "W_k, rows (head, dimension)");
  const Var v = parts::linear(l, "v_proj", u, d, "W_v, rows (head, dimension)");
  const Var taps = shift_kernel(l, "ssm_k_kernel.kernel", d);
  const Var D_k = l.parameter("ssm_k_D", {d}, init::normal(1.0), "D_k, the skip beside the shift system; starts normal.");
  const Var past = taps.dim(-1) > 1 ? l.history("k", k, taps.dim(-1) - 1, "The keys that the shift system keeps, oldest first.") : k;
  const Var shifted = l.gate("k", convolve_directly(taps, past, T) + D_k * k, 0.0, 0.0,
                             "k': the keys behind the shift system, with which the values are multiplied; unbounded.");
  const Var D = l.parameter("D", {H}, init::normal(1.0), "D, the skip beside the diagonal system, one a head; starts normal.");
  const Var kv = reshape(shifted, {T, batch, H, n, 1}) * reshape(v, {T, batch, H, 1, n});
  const Var r = reshape(remembered(l, reshape(kv, {T, batch, d * n}), n * n), {T, batch, H, n, n}) + kv * reshape(D, {H, 1, 1});
  const Var y = sum(r * reshape(q, {T, batch, H, n, 1}), 3);
  return parts::linear(l, "output_linear", reshape(n > 1 ? transpose(y) : y, {T, batch, d}), d, "W_o, columns (dimension, head)");
}

}  // namespace

Architecture h3() {
  Architecture a;
  a.title = "H3";
  a.equations = {
      "q_t = W_q u_t + b_q,  k_t = W_k u_t + b_k,  v_t = W_v u_t + b_v",
      "s_t = shift(s_{t−1}) + B k_t,  k'_t = C·s_t + D_k k_t   (N places a channel; Σ_j B_j C_{i+j} is the weight of k_{t−i})",
      "h_t = Ā ⊙ h_{t−1} + B̄ (k'_t ⊗ v_t),  r_t = 2 Re Σ_n C_n h_t,n + D (k'_t ⊗ v_t), N/2 complex modes for each pair of a head's "
      "dimensions",
      "A = −exp(inv_A_real) + i A_imag, Δ = exp(log_dt);  Ā = (1+ΔA/2)/(1−ΔA/2), B̄ = Δ/(1−ΔA/2) ⊙ B   (disc=zoh: exp(ΔA), (Ā − 1)/A ⊙ B)",
      "disc=dss: B̄ = B ⊙ (Ā − 1)/(A (Āᴸ − 1)), where Re A > 0 with −ΔA and times Ā¹⁻ᴸ; r_t = Re Σ_n C_n h_t,n + ..",
      "mode=ema: Ā = 1 − σ(δ) σ(α), B̄ = σ(δ) β, C = γ/√N, N real averages;  mode=shift: a second shift system",
      "y_t = W_o (q_tᵀ r_t) + b_o,  the sum over the key's dimension of each head",
      "block: x ← x + H3(LN₁ x),  x ← x + W₂ gelu(W₁ LN₂ x);  after the last LN_f"};
  a.notes = {
      "Names and shapes are those of the reference's H3: {q,k,v}_proj, ssm_k_kernel.kernel.{B,C}, ssm_k_D, "
      "kernel.kernel.{C,log_dt,B,inv_A_real,A_imag}, D, output_linear; norm1, norm2 and mlp are those of its Block (mixer. is left out), "
      "final/ln_f that of its backbone. Of a file of its language model the embeddings and lm_head are passed over.",
      "Both systems are time-invariant; between them there are products alone, no activation. The shift system keeps its keys as inputs: "
      "its own eigenvalues are N zeros a channel, and are not shown.",
      "The rows of q, k and v are (head, dimension), as k' and v go into the products; with head_dim above 1 W_o reads (dimension, head), "
      "the order that the reference's sum leaves.",
      "One of each conjugate pair is stored, with either sign of Im A, hence the factor 2; disc=dss reads without it.",
      "disc=dss divides by the sum of a mode's powers over L steps, L = length, which the reference takes from its sequence (or l_max); "
      "1/x is x̄/(|x|² + 1e-7), and no gradient passes through the shift of a mode that grows, as in the reference. With real_type=none a "
      "mode may grow: disc=dss has no convolution form then.",
      "l_max cuts both kernels: what is l_max steps ago or more is not seen, and the products of the last steps take the place of the "
      "modes.",
      "n_ssm copies of A and B are shared by the heads in turn. measure=diag starts the first half of the copies as diag-inv, the others "
      "as diag-lin.",
      "bandlimit: modes of more than bandlimit/2 turns a step are not read; no gradient passes through this choice. force_real: Im A "
      "counts as 0.",
      "C starts normal, as the reference draws it before it multiplies it with B = 1; its deterministic start, measures that are not "
      "diagonal and their arguments are not offered.",
      "use_fast_fftconv computes the same. A layer of attention among those of H3, which the paper's language models have, is a part of a "
      "stack.",
      "filter_modes: the system that keeps the products is a sum of exponentials a channel, h_t = p ⊙ h_{t−1} + (kv)_t, read by Re Σ r_n "
      "h_t,n + direct (kv)_t; a pole beyond the unit circle counts as p/|p|.",
      "norm1, norm2 and ln_f are layer norms with epsilon 1e-5; gelu is the tanh approximation. Linear layers start as PyTorch's; the "
      "reference's language model draws them anew from N(0, 0.02²)."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Channels of q, k and v.", "channels"),
      hyper_integer("head_dim", "", 1, 1, 256, "Dimensions of a head; divides the width. The products of a head are its square.",
                    "dimensions"),
      hyper_integer("state", "N", 64, 2, 1024, "Places of the shift system, and states of the diagonal one, conjugates counted.", "states"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_choice("mode", "diag", {"diag", "shift", "ema"},
                   "The system that keeps the products: diagonal, a second shift, or moving averages."),
      hyper_choice("disc", "bilinear", {"bilinear", "zoh", "dss"},
                   "From continuous to discrete time: bilinear, zero-order hold, or the normalised kernel of DSS."),
      hyper_choice("real_type", "exp", {"exp", "none", "relu", "sigmoid", "softplus"},
                   "How −Re A comes from its parameter; relu adds 1e-4."),
      hyper_integer("length", "L", 1024, 1, 1 << 24, "Steps that disc=dss sums a mode's powers over.", "steps"),
      hyper_integer("n_ssm", "S", 0, 0, 4096,
                    "Independent copies of A and B, shared by the heads in turn; it divides their number; 0: one a head."),
      hyper_integer("l_max", "", 0, 0, 1000000, "Taps that both kernels are cut to; 0: none is cut.", "steps"),
      hyper_real("bandlimit", "α", 0.0, 0.0, 100.0, "Modes that turn by α/2 of a turn or more a step are left out; 0: none."),
      hyper_flag("force_real", false, "Whether Im A counts as 0."),
      hyper_flag("dt_tie", false, "mode=ema: one δ for all averages of a head."),
      draws_only(hyper_choice("measure", "diag-lin",
                              {"diag-lin", "diag-inv", "diag-inv2", "diag-quad", "diag-legs", "diag-real", "diag-random", "diag"},
                              "Im A at the start: πn, (N/π)(N/(2n+1) − 1), (N/π)(N/(n+1) − 1), (2n+1)²/π, those of HiPPO-LegS, 0 with Re A "
                              "= −(n+1), normal, or two of them.")),
      draws_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
      draws_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norms, residuals and feed-forward, or the H3 layer alone."),
      hyper_integer("mlp", "", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      hyper_flag("final_norm", true, "Whether a norm follows the last block."),
      parts::modal_filter_row()};
  a.spectrum =
      "the discretised transition Ā of every product, the same at every step (one of each conjugate pair; head_dim² times); mode=shift and "
      "l_max: none";
  a.source = {"D. Y. Fu, T. Dao, K. K. Saab, A. W. Thomas, A. Rudra, C. Ré",
              "Hungry hungry hippos: towards language modeling with state space models", "ICLR", "https://arxiv.org/abs/2212.14052", 2023};
  a.reference = {{"layers.{n}.mixer.*", "*"},
                 {"layers.{n}.*", "*"},
                 {"ln_f.*", "final/ln_f.*"},
                 {"embeddings.word_embeddings.weight", ""},
                 {"embeddings.position_embeddings.weight", ""},
                 {"lm_head.weight", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("width") % h.integer("head_dim"))
      throw Error("h3: head_dim = " + h.text("head_dim") + " does not divide width = " + h.text("width") + ": choose a divisor.",
                  {.model = "h3", .parameter = "head_dim", .value = h.text("head_dim"), .range = "a divisor of width"});
    if (heads_of(h) % copies_of(h))
      throw Error("h3: n_ssm = " + h.text("n_ssm") + " does not divide the " + std::to_string(heads_of(h)) +
                      " heads: choose a divisor, or 0 for one copy a head.",
                  {.model = "h3", .parameter = "n_ssm", .value = h.text("n_ssm"), .range = "a divisor of width / head_dim"});
    if (h.integer("state") % 2 && h.choice("mode") == "diag")
      throw Error("h3: state = " + h.text("state") + " is odd: it counts conjugate pairs, choose an even number.",
                  {.model = "h3", .parameter = "state", .value = h.text("state"), .range = "even"});
    if (h.choice("measure") == "diag" && h.choice("mode") == "diag" && copies_of(h) % 2)
      throw Error("h3: measure = diag starts one half of the " + std::to_string(copies_of(h)) +
                      " copies in another way than the other: choose an even number of them, or another measure.",
                  {.model = "h3", .parameter = "measure", .value = "diag", .range = "diag-lin or another of one kind"});
    if (h.real("dt_min") > h.real("dt_max"))
      throw Error("h3: dt_min = " + h.text("dt_min") + " is above dt_max = " + h.text("dt_max") + ": choose dt_min at most dt_max.",
                  {.model = "h3", .parameter = "dt_min", .value = h.text("dt_min"), .range = "at most dt_max"});
  };

  a.layer = [](Layer& l, Var x) {
    if (l.hyper.choice("block") == "none") return h3_operator(l, x);
    const std::int64_t d = l.hyper.integer("width"), hidden = l.hyper.integer("mlp") ? l.hyper.integer("mlp") : 4 * d;
    x = x + h3_operator(l, parts::layer_norm(l, "norm1", x));
    const Var inside = gelu_tanh(parts::linear(l, "mlp.fc1", parts::layer_norm(l, "norm2", x), hidden, "W₁ of the feed-forward part"));
    return x + parts::linear(l, "mlp.fc2", inside, d, "W₂ of the feed-forward part");
  };
  a.finish = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "residual" && l.hyper.flag("final_norm") ? parts::layer_norm(l, "ln_f", x) : x;
  };
  return a;
}

}  // namespace reclab::architectures
