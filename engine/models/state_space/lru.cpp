// SPDX-License-Identifier: GPL-3.0-or-later
//   λ = exp(-exp(ν) + i exp(θ)),   h_t = λ h_{t-1} + exp(γ) (B x_t),   y_t = Re(C h_t) + D x_t
//   block: x + GLU(gelu(LRU(norm(x)))),   GLU(v) = (W_1 v + b_1) σ(W_2 v + b_2)
// A. Orvieto et al., Resurrecting recurrent neural networks for long sequences, ICML 2023. Conventions of N. Zucchet's minimal-LRU.
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "models/parts/layers/flax_stack.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {

Architecture lru() {
  Architecture a;
  a.title = "LRU";
  a.equations = {"λ = exp(−exp(ν) + i exp(θ)), γ = exp(γ_log)", "h_t = λ ⊙ h_{t-1} + γ ⊙ (B x_t), complex", "y_t = Re(C h_t) + D ⊙ x_t",
                 "block: x ← x + (W₁ v + b₁) ⊙ σ(W₂ v + b₂) with v = gelu(LRU(norm(x)))"};
  a.notes = {
      "Names are those of minimal-LRU (JAX): theta_log, nu_log, gamma_log, B_re, B_im, C_re, C_im, D; out1, out2 and norm are the block's, "
      "their weights [out, in] (flax kernels transposed).",
      "The phase of an eigenvalue is exp(theta_log), as in the paper's code; where an equation has the phase θ itself, as in the survey of "
      "Tiezzi et al. 2024, theta_log is its logarithm.",
      "The readout is Re without a factor 2: eigenvalues are not conjugate pairs.",
      "γ starts at √(1−|λ|²) and is trained from there; some ports recompute it at every step, which has another gradient.",
      "gelu is the tanh approximation; the layer norm's epsilon is 1e-6, the batch norm's 1e-5, all as in flax. The reference calls the "
      "norm normalization.",
      "The batch norm, which is the reference's default, is that of evaluation, by the mean and variance of flax's batch_stats, here "
      "norm.running_mean and norm.running_var; dropout does nothing then.",
      "The reference's classifier (ClassificationModel) decodes the mean of the stack's outputs over time, the last of them, or all: what "
      "its log softmax is taken of is the head's output at the last step with pooling = mean, at the last step with "
      "pooling = none, which its pooling of last is, or at all steps. With mean, at the steps before it is what the classifier would say "
      "of the sequence so far. Of several outputs a class (multidim) the head has them in a row."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream that the block reads and writes.", "channels"),
      hyper_integer("state", "N", 64, 1, 4096, "Number of complex states.", "states"),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      initialisation_only(hyper_real("r_min", "r_min", 0.0, 0.0, 0.9999, "Smallest |λ| at the start.")),
      initialisation_only(hyper_real("r_max", "r_max", 1.0, 0.0001, 1.0, "Largest |λ| at the start: closer to 1 remembers longer.")),
      initialisation_only(hyper_real("max_phase", "θ_max", 6.28, 0.001, 6.28, "Largest phase of λ at the start.", false, "rad/step")),
      hyper_choice("block", "residual", {"residual", "none"},
                   "The paper's block with norm, GLU and residual, or the bare recurrent layer."),
      hyper_flag("prenorm", true, "Whether the norm comes before the layer (after the residual otherwise)."),
      hyper_choice("norm", "layer", {"layer", "batch", "none"},
                   "The block's norm: over the channels of each step, or by statistics of the training."),
      hyper_choice("pooling", "none", {"none", "mean"},
                   "What the head reads at each step: the stack's output at that step, or the mean of its outputs so far.")};
  a.spectrum = "the transition λ, the same at every step";
  a.source = {"A. Orvieto, S. L. Smith, A. Gu, A. Fernando, C. Gulcehre, R. Pascanu, S. De",
              "Resurrecting recurrent neural networks for long sequences", "ICML", "https://arxiv.org/abs/2303.06349", 2023};
  a.reference = parts::flax_stack_reference("normalization");
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.real("r_min") > h.real("r_max"))
      throw Error("lru: r_min = " + h.text("r_min") + " is above r_max = " + h.text("r_max") + ": choose r_min at most r_max.",
                  {.model = "lru", .parameter = "r_min", .value = h.text("r_min"), .range = "at most r_max"});
  };

  a.layer = [](Layer& l, Var x) {
    const std::int64_t d = l.hyper.integer("width"), N = l.hyper.integer("state");
    const bool block = l.hyper.choice("block") == "residual", prenorm = l.hyper.flag("prenorm"),
               norms = block && l.hyper.choice("norm") != "none";
    const double r_min = l.hyper.real("r_min"), r_max = l.hyper.real("r_max"), phase = l.hyper.real("max_phase");
    const double width = static_cast<double>(d), states = static_cast<double>(N);
    const auto norm = [&](Var v) {
      if (!norms) return v;
      return l.hyper.choice("norm") == "batch" ? parts::batch_norm(l, "norm", d)(v) : parts::layer_norm(l, "norm", v, 1e-6);
    };

    const Var theta_log =
        l.parameter("theta_log", {N}, init::each([=](Rng& rng, std::int64_t) { return std::log(phase * (1.0 - rng.uniform())); }),
                    "log of the phase of λ; phases start uniform in (0, max_phase].");
    const Var nu_log = l.parameter("nu_log", {N}, init::each([=](Rng& rng, std::int64_t) {
                                     const double squared = (1.0 - rng.uniform()) * (r_max * r_max - r_min * r_min) + r_min * r_min;
                                     return std::log(-0.5 * std::log(std::min(squared, 1.0 - 1e-12)));
                                   }),
                                   "log of −ln|λ|; |λ|² starts uniform in [r_min², r_max²].");
    const Var gamma_log = l.parameter(
        "gamma_log", {N},
        [](InitContext& c) {
          const auto nu = c.other("nu_log");
          for (std::size_t i = 0; i < c.values.size(); ++i) c.values[i] = 0.5 * std::log(-std::expm1(-2.0 * std::exp(nu[i])));
        },
        "log of the input's normalisation γ; starts at log √(1−|λ|²).");
    const double b = 1.0 / std::sqrt(2.0 * width), c = 1.0 / std::sqrt(states);
    const Var B_re = l.parameter("B_re", {N, d}, init::normal(b), "Re B; starts normal with deviation 1/√(2d).");
    const Var B_im = l.parameter("B_im", {N, d}, init::normal(b), "Im B; starts normal with deviation 1/√(2d).");
    const Var C_re = l.parameter("C_re", {d, N}, init::normal(c), "Re C; starts normal with deviation 1/√N.");
    const Var C_im = l.parameter("C_im", {d, N}, init::normal(c), "Im C; starts normal with deviation 1/√N.");
    const Var D = l.parameter("D", {d}, init::normal(1.0), "The skip D; starts normal.");

    const Var v = block && prenorm ? norm(x) : x;
    const Var lambda = exp(complex(-exp_in_range(nu_log), exp(theta_log)));
    const Var drive = complex(linear(v, B_re), linear(v, B_im)) * exp(gamma_log);
    const Var h = diagonal(l, {"h", {N}, "The complex state."}, lambda, drive);
    const Var y = linear(real(h), C_re) - linear(imag(h), C_im) + D * v;
    const auto pooled = [&](Var z) { return l.hyper.choice("pooling") == "mean" ? parts::mean_over_time(l, z) : z; };
    if (!block) return pooled(y);

    const auto dense = [&](const std::string& name, Var g, const char* role) {
      return parts::linear(
          l, name, g, d,
          {init::truncated_normal(1.0 / std::sqrt(width)), init::constant(0.0), role, "starts as flax' LeCun normal, its bias at 0"});
    };
    const Var z = gelu_tanh(y);
    const Var open = l.gate("glu", sigmoid(dense("out2", z, "W₂ of the GLU's gate")), 0.0, 1.0,
                            "The GLU after the recurrence: how much of each channel passes.");
    const Var out = x + dense("out1", z, "W₁ of the GLU's value") * open;
    return pooled(prenorm ? out : norm(out));
  };
  return a;
}

}  // namespace reclab::architectures
