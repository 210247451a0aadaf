// SPDX-License-Identifier: GPL-3.0-or-later
//   λ_n = exp(-ρ_n² + i ω_n),   h_t = λ h_{t-1} + u_t (the same λ for every channel),   y_t = Re Σ_n W_n h_t,n + D u_t
//   layer: W gelu(y) + b,   block: norm(x + layer(x))
// A. Gupta, H. Mehta, J. Berant, Simplifying and understanding state space models with diagonal linear RNNs, 2022.
// Names and conventions of ag1988/dlr (src/models/sequence/ss/standalone/dss.py, DLRKernel).
#include <cmath>
#include <numbers>

#include "models/architecture.h"
#include "models/parts/layers/diagonal_system.h"

namespace reclab::architectures {
namespace {

parts::DiagonalKernel kernel(Layer& l) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h.integer("width"), N = h.integer("state"), outputs = parts::diagonal_system_outputs(h);
  const std::string& version = h.choice("version");
  const double low = std::log(h.real("dt_min")), high = std::log(h.real("dt_max")), modes = static_cast<double>(N),
               turn = 2.0 * std::numbers::pi;
  const bool random = h.choice("Lambda_init") == "randn";
  Var im, re;
  if (version != "Lambda_real_W_real")
    im = l.parameter("Lambda_im", {N}, init::each([=](Rng& rng, std::int64_t n) {
                       const double drawn = random ? rng.normal() : turn * static_cast<double>(n) / modes;
                       return drawn - turn * std::floor(drawn / turn);
                     }),
                     "ω, the angle that a mode turns by in a step; starts at 2πn/N (Lambda_init).");
  if (!version.starts_with("Lambda_imag"))
    re = -square(l.parameter(
        "Lambda_log_neg_re", {N}, init::each([=](Rng& rng, std::int64_t) { return std::sqrt(0.5 * std::exp(rng.uniform(low, high))); }),
        "ρ, the root of −Re Λ, no logarithm whatever its name; starts at √(Δ/2) with log Δ uniform between log dt_min and log dt_max."));
  const Var Lambda = complex(re ? re : im * 0.0, im ? im : re * 0.0);
  const double scale = h.real("W_scale") > 0.0 ? h.real("W_scale") : 1.0 / modes;
  Var W;
  if (version.ends_with("W_real")) {
    W = l.parameter("W", {outputs, H, N}, init::normal(scale), "W; starts normal with deviation W_scale.");
    W = complex(W, W * 0.0);
  } else {
    const Var both =
        l.parameter("W", {outputs, H, N, 2}, init::normal(scale), "W, last axis re and im; starts normal with deviation W_scale.");
    const auto part = [&](std::int64_t which) { return reshape(slice(both, -1, which, which + 1), {outputs, H, N}); };
    W = complex(part(0), part(1));
  }
  const Var channels = l.graph().constant({H, 1}, std::vector<double>(static_cast<std::size_t>(H), 1.0));
  return {.exponent = reshape(Lambda, {1, N}) * channels, .drive = {}, .readout = W};
}

}  // namespace

Architecture dlr() {
  Architecture a;
  a.title = "DLR";
  a.equations = {"λ_n = exp(−ρ_n² + i ω_n) for all channels (version Lambda_imag: |λ| = 1; Lambda_real: λ real)",
                 "h_t = λ ⊙ h_{t−1} + u_t, w = W"};
  for (const std::string& line : parts::diagonal_system_equations()) a.equations.push_back(line);
  a.notes = {"There is no time step, no input matrix and no discretisation.",
             "version = full is the reference's empty string: Λ and W complex. Lambda_imag: modes that neither grow nor fade.",
             "ω starts at 2πn/N, so that the modes of a channel are the basis of a discrete Fourier transform that fades slowly; it is not "
             "kept below 2π afterwards."};
  for (const std::string& line : parts::diagonal_system_notes()) a.notes.push_back(line);
  a.hyper = parts::diagonal_system_hyper(
      {hyper_choice("version", "full", {"full", "Lambda_imag", "Lambda_imag_W_real", "Lambda_real_W_real"},
                    "Which of Λ and W are complex."),
       hyper_choice("kernel_to_real", "real", {"real", "imag", "sum", "prod", "real-prod"},
                    "How the complex kernel becomes a real one; real-prod: one way for half of the channels."),
       initialisation_only(hyper_choice("Lambda_init", "omega", {"omega", "randn"}, "ω at the start: 2πn/N, or normal, both below 2π.")),
       initialisation_only(hyper_real("W_scale", "", 0.0, 0.0, 100.0, "Deviation of W at the start; 0: 1/N.")),
       initialisation_only(hyper_real("dt_min", "Δ_min", 0.0001, 1e-8, 10.0, "Smallest −2 Re Λ at the start.", true)),
       initialisation_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-8, 10.0, "Largest −2 Re Λ at the start.", true))});
  a.spectrum =
      "the transition λ of every channel, the same at every step; kernel_to_real=prod: the products of two of them; max_kernel_length: "
      "none";
  a.source = {"A. Gupta, H. Mehta, J. Berant", "Simplifying and understanding state space models with diagonal linear RNNs", "arXiv",
              "https://arxiv.org/abs/2212.00768", 2022};
  a.reference = parts::diagonal_system_reference();
  a.check = [](const Hyper& h) { parts::check_diagonal_system(h, "dlr"); };
  parts::make_diagonal_system(a, kernel);
  return a;
}

}  // namespace reclab::architectures
