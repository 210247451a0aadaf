// SPDX-License-Identifier: GPL-3.0-or-later
//   K_k = Re sum_n W_n f_n exp(Δ Λ_n k), one such kernel a channel, Λ shared by all of them
//   exp: f = (exp(ΔΛ) - 1)/Λ with Re Λ = -exp(.)      softmax: f = (exp(ΔΛ) - 1)/(Λ (exp(L ΔΛ) - 1)), modes that grow shifted by L - 1
//   steps y_t = Σ_k K_k u_{t-k} + D u_t,   layer: W gelu(y) + b,   block: norm(x + layer(x))
// A. Gupta, A. Gu, J. Berant, Diagonal state spaces are as effective as structured state spaces, NeurIPS 2022.
// Names and conventions of ag1988/dss and its successor ag1988/dlr (src/models/sequence/ss/standalone/dss.py).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/architecture.h"
#include "models/parts/hippo.h"
#include "models/parts/layers/diagonal_system.h"
#include "recurrence/flow.h"

namespace reclab::architectures {
namespace {

/// x̄ / (|x|² + ε): 1/x with a bounded norm.
Var bounded_reciprocal(Var x, Var norm_squared) { return complex(real(x), -imag(x)) * reciprocal(norm_squared); }
Var norm_squared(Var x) { return square(real(x)) + square(imag(x)); }
/// e^x - 1 without cancellation.
Var exp_less_one(Var x) { return mean_exp(x) * x; }

parts::DiagonalKernel kernel(Layer& l) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h.integer("width"), N = h.integer("state"), outputs = parts::diagonal_system_outputs(h);
  const std::string& version = h.choice("version");
  const bool two_steps = h.flag("sep_dt_re_im"), logarithms = version.starts_with("exp");
  const double low = std::log(h.real("dt_min")), high = std::log(h.real("dt_max"));
  const Var log_dt = l.parameter(
      "log_dt", two_steps ? Shape{H, 2} : Shape{H},
      [=](InitContext& c) {
        for (std::size_t i = 0; i < c.values.size(); ++i) c.values[i] = two_steps && i % 2 ? c.values[i - 1] : c.rng.uniform(low, high);
      },
      two_steps ? "log Δ a channel, for real and for imaginary parts; starts uniform between log dt_min and log dt_max, alike for both."
                : "log Δ a channel; starts uniform between log dt_min and log dt_max.");

  const auto frequency = [N, kind = h.choice("Lambda_init")](InitContext& c, std::size_t n) {
    if (kind == "lin") return std::numbers::pi * static_cast<double>(n);
    if (kind.starts_with("randn")) return c.rng.normal();
    return 0.0;
  };
  const auto frequencies = [N, frequency, kind = h.choice("Lambda_init")](InitContext& c) {
    std::vector<double> found(static_cast<std::size_t>(N));
    const std::vector<double> legs = kind == "hippo_skew_pos_imag" ? hippo::legs_normal(2 * N).frequencies : std::vector<double>{};
    for (std::size_t n = 0; n < found.size(); ++n) found[n] = legs.empty() ? frequency(c, n) : legs[legs.size() - 1 - n];
    return found;
  };
  const std::string starts = "; starts with those of HiPPO-LegS of size 2N that are positive, largest first (Lambda_init).";
  Var Lambda;
  if (logarithms) {
    const Var re = -exp_in_range(l.parameter("Lambda_log_neg_re", {N}, init::constant(std::log(0.5)), "log of −Re Λ; starts at log ½."));
    if (version == "exp-no-scale-real") {
      Lambda = complex(re, re * 0.0);
    } else if (version == "exp-re-im") {
      const Var im = l.parameter(
          "Lambda_log_im", {N},
          [frequencies](InitContext& c) {
            const auto found = frequencies(c);
            for (std::size_t n = 0; n < found.size(); ++n) c.values[n] = std::log(std::max(std::abs(found[n]), 1e-4));
          },
          "log of Im Λ, of at least 1e-4" + starts);
      Lambda = complex(re, exp_in_range(im));
    } else {
      const Var im = l.parameter(
          "Lambda_im", {N}, [frequencies](InitContext& c) { std::ranges::copy(frequencies(c), c.values.begin()); }, "Im Λ" + starts);
      Lambda = complex(re, im);
    }
  } else {
    const Var both = l.parameter(
        "Lambda", {N, 2},
        [frequencies, normal = h.choice("Lambda_init") == "randn-complex"](InitContext& c) {
          if (normal) return init::normal(std::sqrt(0.5))(c);
          const auto found = frequencies(c);
          for (std::size_t n = 0; n < found.size(); ++n) {
            c.values[2 * n] = -0.5;
            c.values[2 * n + 1] = found[n];
          }
        },
        "Λ, last axis re and im; Re starts at −½, Im" + starts.substr(8));
    const Var re = reshape(slice(both, -1, 0, 1), {N}), im = reshape(slice(both, -1, 1, 2), {N});
    Lambda = complex(version.starts_with("softmax") ? re : minimum(re, h.real("max_real_Lambda")), im);
  }
  const Var W = l.parameter("W", {outputs, H, N, 2}, init::normal(1.0), "W, last axis re and im; starts normal.");
  const auto part = [&](std::int64_t which) { return reshape(slice(W, -1, which, which + 1), {outputs, H, N}); };

  const Var dt = exp(log_dt);
  const auto step = [&](std::int64_t which) { return two_steps ? slice(dt, -1, which, which + 1) : reshape(dt, {H, 1}); };
  const Var exponent = complex(real(Lambda) * step(0), imag(Lambda) * step(1));
  if (h.choice("kernel_to_real") != "prod") declare_flow(l, {.rule = Flow::Rule::exponential, .exponents = exponent});
  parts::DiagonalKernel k{
      exponent, {}, complex(part(0), part(1)), !logarithms && (version.starts_with("softmax") || h.real("max_real_Lambda") > 1e-4)};
  if (version.starts_with("softmax")) {
    const double length = static_cast<double>(h.integer("length"));
    const Var grows = detach(relu(sign(real(Lambda)))), falling = exponent * (1.0 - 2.0 * grows);
    const Var below = exp_less_one(falling * length) * Lambda;
    k.drive = exp_less_one(falling) * bounded_reciprocal(below, norm_squared(below) + h.real("epsilon")) *
              exp((version == "softmax" ? exponent : detach(exponent)) * (grows * (1.0 - length)));
  } else if (version.find("no-scale") == std::string::npos) {
    const Var least = l.graph().constant({1}, {1e-7});
    k.drive = exp_less_one(exponent) * bounded_reciprocal(Lambda, maximum(norm_squared(Lambda), least));
  }
  return k;
}

}  // namespace

Architecture dss() {
  Architecture a;
  a.title = "DSS";
  a.equations = {"λ_n = exp(ΔΛ_n), Δ = exp(log_dt) a channel, Λ for all channels (sep_dt_re_im: one Δ for Re Λ, one for Im Λ)",
                 "exp, exp-re-im, clip: w_n = W_n (λ_n − 1)/Λ_n   (Re Λ = −exp(Lambda_log_neg_re); clip: Re Λ at most max_real_Lambda)",
                 "no-scale: w_n = W_n;   softmax: w_n = W_n (λ_n − 1)/(Λ_n (λ_nᴸ − 1)), where Re Λ_n > 0 with −Λ_n, times λ_nᵏ⁻ᴸ⁺¹",
                 "h_t = λ h_{t−1} + (w/W) u_t, read by W"};
  for (const std::string& line : parts::diagonal_system_equations()) a.equations.push_back(line);
  a.notes = {"version = exp-no-scale-real and kernel_to_real other than real are those of ag1988/dlr, which keeps this kernel.",
             "softmax divides by the sum of a mode's powers over L steps: length is the L that the reference takes from its sequence, so "
             "give the sequence's own. "
             "Longer sequences go on with the same kernel.",
             "1/x is x̄/(|x|² + ε) in softmax, ε = epsilon, and x̄/max(|x|², 1e-7) elsewhere.",
             "Where a mode of softmax grows, no gradient passes through its shift in the reference, so that its gradients are not the "
             "kernel's: softmax has the kernel's, softmax-detached the reference's.",
             "A mode that grows goes on growing beyond L steps. With softmax, and with max_real_Lambda above 1e-4, there is no convolution "
             "form: an FFT rounds small outputs as it does the largest.",
             "Λ starts with Re Λ = −½, and Im Λ normal for randn; randn-complex has both parts normal as ag1988/dss draws them. The exp "
             "versions keep logarithms: there Re Λ starts at −½ for randn-complex too, and exp-re-im takes the size of Im Λ.",
             "With bidirectional and max_kernel_length ag1988/dss puts the second kernel at a wrong place where the sequence is longer; "
             "here it is as in ag1988/dlr."};
  for (const std::string& line : parts::diagonal_system_notes()) a.notes.push_back(line);
  a.hyper = parts::diagonal_system_hyper(
      {hyper_choice("version", "exp",
                    {"exp", "softmax", "softmax-detached", "exp-re-im", "exp-no-scale", "exp-no-scale-real", "clip", "clip-no-scale"},
                    "How Λ is kept, and how W is scaled."),
       hyper_integer("length", "L", 1024, 1, 1 << 24, "Steps that softmax sums a mode's powers over.", "steps"),
       hyper_real("epsilon", "ε", 1e-7, 1e-12, 1.0, "Keeps softmax from dividing by zero."),
       hyper_real("max_real_Lambda", "", 1e-4, -10.0, 10.0, "Re Λ is at most this where version is clip or clip-no-scale."),
       hyper_flag("sep_dt_re_im", false, "A time step of its own for the imaginary parts."),
       hyper_choice("kernel_to_real", "real", {"real", "imag", "sum", "prod"}, "How the complex kernel becomes a real one."),
       initialisation_only(hyper_choice("Lambda_init", "hippo_skew_pos_imag", {"hippo_skew_pos_imag", "lin", "randn", "randn-complex"},
                                        "Im Λ at the start: positive ones of HiPPO-LegS, πn, or normal; randn-complex: Re Λ too.")),
       initialisation_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
       initialisation_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true))});
  a.spectrum =
      "the discretised transition λ = exp(ΔΛ) of every channel, the same at every step; kernel_to_real=prod: the products of two of a "
      "channel's; max_kernel_length: none";
  a.source = {"A. Gupta, A. Gu, J. Berant", "Diagonal state spaces are as effective as structured state spaces", "NeurIPS",
              "https://arxiv.org/abs/2203.14343", 2022};
  a.reference = parts::diagonal_system_reference();
  a.check = [](const Hyper& h) { parts::check_diagonal_system(h, "dss"); };
  parts::make_diagonal_system(a, kernel);
  return a;
}

}  // namespace reclab::architectures
