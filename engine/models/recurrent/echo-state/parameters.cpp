// SPDX-License-Identifier: GPL-3.0-or-later
// Names, shapes and starts of the echo state network's parameters, as reservoirpy 0.3 has them.
#include "models/recurrent/echo-state/parameters.h"

#include <cmath>
#include <string>

#include "algebra/eigen.h"
#include "array/error.h"

namespace reclab::architectures {
namespace {

/// Each entry with the probability `density` one of +-scale, else 0.
Init sparse_signs(double scale, double density) {
  return init::each([=](Rng& rng, std::int64_t) {
    const bool there = rng.uniform() < density;
    return there ? (rng.uniform() < 0.5 ? -scale : scale) : 0.0;
  });
}

/// A square matrix whose entries are there with the probability `density`, scaled to the spectral radius rho.
Init reservoir(const std::string& entries, double density, double rho, std::int64_t N) {
  return [=](InitContext& c) {
    // A small or sparse matrix may have no eigenvalue but 0; then another is drawn.
    constexpr int tries = 100;
    for (int i = 0; i < tries; ++i) {
      for (double& value : c.values) {
        const bool there = c.rng.uniform() < density;
        value = !there                  ? 0.0
                : entries == "normal"   ? c.rng.normal()
                : entries == "uniform"  ? c.rng.uniform(-1.0, 1.0)
                : c.rng.uniform() < 0.5 ? -1.0
                                        : 1.0;
      }
      const double radius = spectral_radius(c.values, N);
      if (radius < 1e-6) continue;
      for (double& value : c.values) value *= rho / radius;
      return;
    }
    const std::string width = std::to_string(N);
    throw Error(
        "echo-state: of " + std::to_string(tries) + " matrices with width = " + width +
            " none has an eigenvalue other than 0, which could be scaled to the spectral radius: choose a greater density or width.",
        {.model = "echo-state", .parameter = "density", .range = "more"});
  };
}

}  // namespace

EchoStateParameters echo_state_parameters(Layer& l, std::int64_t in) {
  const Hyper& h = l.hyper;
  const std::int64_t N = h.integer("width"), M = h.integer("feedback"), F = h.flag("read_input") ? N + in : N;
  const double density = h.real("input_density"), bound = 1.0 / std::sqrt(static_cast<double>(F));
  EchoStateParameters p;
  p.W = l.parameter("W", {N, N}, reservoir(h.choice("recurrent_init"), h.real("density"), h.real("spectral_radius"), N),
                    "W, from the reservoir to itself; starts sparse, scaled to the spectral radius.");
  p.W_in = l.parameter("Win", {N, in}, sparse_signs(h.real("input_scaling"), density),
                       "W_in, from the input; starts at ± input_scaling where it is not 0.");
  if (h.flag("bias"))
    p.b = reshape(
        l.parameter("bias", {N, 1}, sparse_signs(h.real("bias_scaling"), density), "b; starts at ± bias_scaling where it is not 0."), {N});
  if (!M) return p;
  p.W_fb = l.parameter("Wfb", {N, M}, sparse_signs(h.real("feedback_scaling"), h.real("feedback_density")),
                       "W_fb, from the outputs of the step before; starts at ± feedback_scaling where it is not 0.");
  p.W_out = l.parameter("Wout", {M, F}, init::uniform(-bound, bound),
                        "W_out, columns reservoir input; fitted where the run has a target, else starts uniform in ±1/√in.");
  p.b_out = l.parameter("Wout_bias", {M}, init::uniform(-bound, bound),
                        "b_out; fitted where the run has a target, else starts uniform in ±1/√in.");
  return p;
}

}  // namespace reclab::architectures
