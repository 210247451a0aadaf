// SPDX-License-Identifier: GPL-3.0-or-later
// Names, shapes and starts of H3's parameters, as HazyResearch/H3 has them (ss_kernel.py, ss_kernel_diag.py, ss_kernel_shift.py).
#include "models/state_space/h3/parameters.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "models/parts/hippo.h"
#include "models/parts/layers/diagonal_system.h"
#include "models/parts/layers/state_space.h"
#include "models/parts/parts.h"

namespace reclab::architectures {
namespace {

/// The initial A: entry i of an array [copies, modes].
struct FirstModes {
  std::string measure;  ///< without diag-
  std::int64_t modes, copies;
  std::vector<double> legs;

  explicit FirstModes(const Hyper& h) : measure(h.choice("measure")), modes(h.integer("state") / 2), copies(h3_copies(h)) {
    if (measure != "diag") measure = measure.substr(5);
    if (measure == "legs") legs = hippo::legs_normal(2 * modes).frequencies;
  }
  double real(std::int64_t i) const { return measure == "real" ? static_cast<double>(i % modes) + 1.0 : 0.5; }
  double imag(Rng& rng, std::int64_t i) const {
    if (measure == "legs") return legs[static_cast<std::size_t>(i % modes)];
    if (measure == "real") return 0.0;
    if (measure == "random") return rng.normal();
    const std::string kind = measure != "diag" ? measure : i / modes < copies / 2 ? "inv" : "lin";
    return parts::frequency_at_start(kind, static_cast<double>(i % modes), static_cast<double>(2 * modes));
  }
};

}  // namespace

std::int64_t h3_heads(const Hyper& h) { return h.integer("width") / h.integer("head_dim"); }
std::int64_t h3_copies(const Hyper& h) { return h.integer("n_ssm") ? h.integer("n_ssm") : h3_heads(h); }

H3Shift h3_shift(Layer& l, const std::string& name, std::int64_t channels) {
  const std::int64_t N = l.hyper.integer("state");
  const Var B = l.parameter(name + ".B", {channels, N}, init::each([N](Rng&, std::int64_t i) { return i % N ? 0.0 : 1.0; }),
                            "B of the shift system: what an input adds to each place; starts at e₁.");
  const Var C = l.parameter(name + ".C", {1, channels, N}, parts::torch_uniform(N),
                            "C of the shift system, which reads the places; starts uniform in ±1/√N.");
  return {B, reshape(C, {channels, N})};
}

H3Diagonal h3_diagonal(Layer& l) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h3_heads(h), M = h.integer("state") / 2, S = h3_copies(h);
  const std::string of_real = h.choice("real_type");
  const double low = std::log(h.real("dt_min")), high = std::log(h.real("dt_max"));
  const FirstModes start(h);
  const Var C = l.parameter("kernel.kernel.C", {1, H, M, 2}, init::normal(std::sqrt(0.5)),
                            "C of the diagonal system, last axis re and im; starts complex normal.");
  const Var log_dt =
      l.parameter("kernel.kernel.log_dt", {H}, init::uniform(low, high), "log Δ a head; starts uniform between log dt_min and log dt_max.");
  const Var B = l.parameter("kernel.kernel.B", {S, M, 2}, init::each([](Rng&, std::int64_t i) { return i % 2 ? 0.0 : 1.0; }),
                            "B of the diagonal system, last axis re and im; starts at 1.");
  const Var A_real =
      l.parameter("kernel.kernel.inv_A_real", {S, M},
                  init::each([start, of_real](Rng&, std::int64_t i) { return parts::from_positive(of_real, start.real(i)); }),
                  "−Re A before real_type; starts at that of ½, or of n + 1 (diag-real).");
  const Var A_imag =
      l.parameter("kernel.kernel.A_imag", {S, M}, init::each([start](Rng& rng, std::int64_t i) { return start.imag(rng, i); }),
                  "Im A; starts as measure says.");

  const auto for_heads = [&](Var v) { return parts::for_channels(v, H); };
  const Var turning = h.flag("force_real") ? A_imag * 0.0 : A_imag;
  H3Diagonal p;
  p.A = for_heads(complex(-parts::positive(of_real, A_real), turning));
  p.dt = reshape(exp(log_dt), {H, 1});
  p.C = parts::complex_modes(C, H, M);
  if (const double limit = h.real("bandlimit"); limit > 0.0)
    p.C = p.C * parts::in_band(p.dt * abs(for_heads(turning)) * (0.5 / std::numbers::pi), limit);
  p.B = for_heads(parts::complex_modes(B, S, M));
  return p;
}

H3Averages h3_averages(Layer& l) {
  const std::int64_t H = h3_heads(l.hyper), N = l.hyper.integer("state"), steps = l.hyper.flag("dt_tie") ? 1 : N;
  const Var delta =
      l.parameter("kernel.kernel.delta", {H, steps, 1}, init::normal(0.2), "δ: σ(δ) is what an input counts; starts N(0, 0.2²).");
  const Var alpha = l.parameter("kernel.kernel.alpha", {H, N, 1}, init::normal(0.2), "α: 1 − σ(δ) σ(α) is what stays; starts N(0, 0.2²).");
  const Var beta = l.parameter("kernel.kernel.beta", {H, N, 1},
                               init::each([N](Rng& rng, std::int64_t i) { return (i % N % 2 ? -1.0 : 1.0) + 0.02 * rng.normal(); }),
                               "β, the weight of the input; starts at 1 and −1 in turn, plus N(0, 0.02²).");
  const Var gamma = l.parameter("kernel.kernel.gamma", {H, N}, init::normal(1.0), "γ, which reads the averages, over √N; starts normal.");
  return {reshape(delta, {H, steps}), reshape(alpha, {H, N}), reshape(beta, {H, N}), gamma};
}

}  // namespace reclab::architectures
