// SPDX-License-Identifier: GPL-3.0-or-later
//   internal: r_t = (1 - a) r_{t-1} + a f(W r_{t-1} + W_in (u_t + ξ) + W_fb (g(y_{t-1}) + ξ) + b) + ξ
//   external: s_t = (1 - a) s_{t-1} + a (W r_{t-1} + W_in (u_t + ξ) + W_fb (g(y_{t-1}) + ξ) + b) + ξ,   r_t = f(s_t)
//   read-out: y_t = W_out [r_t; u_t] + b_out, by ridge regression on the run itself
// H. Jaeger, The "echo state" approach to analysing and training recurrent neural networks, GMD report 148, 2001; with leak: H. Jaeger,
// M. Lukoševičius, D. Popovici, U. Siewert, Neural Networks 20 (2007). Names and both equations of reservoirpy 0.3.
#include <cmath>

#include "algebra/eigen.h"
#include "array/error.h"
#include "models/architecture.h"
#include "models/parts/matrices.h"
#include "models/parts/parts.h"
#include "recurrence/mixing/mixing.h"
#include "recurrence/noise.h"
#include "recurrence/step/step.h"

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

Architecture echo_state() {
  Architecture a;
  a.title = "Echo state network";
  a.equations = {
      "internal: r_t = (1 − a) r_{t-1} + a f(W r_{t-1} + W_in (u_t + ξ_in) + W_fb (g(y_{t-1}) + ξ_fb) + b) + ξ",
      "external: s_t = (1 − a) s_{t-1} + a (W r_{t-1} + W_in (u_t + ξ_in) + W_fb (g(y_{t-1}) + ξ_fb) + b) + ξ,  r_t = f(s_t)",
      "y_t = W_out [r_t; u_t] + b_out,  [b_out W_out] = Y Zᵀ (Z Zᵀ + λ I)⁻¹ over the steps after the washout, rows of Z: [1; r_t; u_t]",
      "internal: ∂r_t/∂r_{t-1} = (1 − a) I + a diag(f') W"};
  a.notes = {
      "Names are those of reservoirpy 0.3: W [N, N], Win [N, in], bias [N, 1], Wfb [N, M]; its read-out's Wout is [N, M], the transpose of "
      "head/weight here.",
      "Only the read-out is learned: where the run has a target and its weights are drawn, head/weight and head/bias are fitted to that "
      "very target before the run, in float64, from rest and step by step; weights from a file stay as they are, and a run that goes on "
      "from the state of another is to be given that one's. Classes are fitted as 0 and 1. In a stack with other architectures, and where "
      "the read-out is to be drawn, it starts as any head.",
      "λ acts on the bias too, as in reservoirpy, and is not multiplied with the number of steps.",
      "With feedback the fit reads the target of the step before in place of y_{t-1} (teacher forcing); W_out then is a parameter of the "
      "layer, 0/Wout, what is carried is y, and the head is the identity. In the run the network's own outputs are fed back.",
      "W is scaled to the spectral radius, not (1 − a) I + a W. Win, Wfb and bias start at ±scale where they are there at all.",
      "Noise is normal, follows from noise_seed and the step's number, and is the same in the fit and in the run. By default there is some "
      "on what is fed back alone, which reservoirpy has none of. In the external form it enters s, as in reservoirpy's code; its "
      "documentation adds it to r.",
      "reservoirpy's newest versions have the internal form alone, without noise and feedback."};
  a.hyper = {
      hyper_integer("width", "N", 100, 1, 4096, "Number of units of the reservoir.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Reservoirs in a row, each fed with the one below; the last one is read out."),
      hyper_choice("equation", "internal", {"internal", "external"}, "Whether the leak acts after the nonlinearity or before it."),
      hyper_choice("activation", "tanh", {"tanh", "relu", "identity"}, "The nonlinearity f."),
      hyper_real("leak", "a", 1.0, 0.001, 1.0, "The share of a unit that is new at each step."),
      hyper_flag("bias", true, "Whether b exists."),
      hyper_flag("read_input", false, "Whether the read-out sees the input beside the reservoir."),
      hyper_integer("feedback", "M", 0, 0, 1024, "How many outputs are fed back; 0: none. It must be those of the target.", "outputs"),
      hyper_choice("feedback_activation", "identity", {"identity", "tanh"}, "The nonlinearity g of what is fed back."),
      hyper_real("noise_in", "σ_in", 0.0, 0.0, 10.0, "Deviation of the noise that is added to the input."),
      hyper_real("noise_state", "σ", 0.0, 0.0, 10.0, "Deviation of the noise that is added to the state."),
      hyper_real("noise_feedback", "σ_fb", 0.001, 0.0, 10.0,
                 "Deviation of the noise that is added to what is fed back: a read-out that is fitted without any is rarely stable."),
      hyper_integer("noise_seed", "", 1, 0, 1'000'000'000, "What the noise follows from."),
      draws_only(hyper_choice("recurrent_init", "normal", {"normal", "uniform", "signs"},
                              "What the entries of W are before it is scaled: normal, uniform in ±1, or ±1.")),
      draws_only(hyper_real("density", "", 0.1, 0.001, 1.0, "The share of the entries of W that are not 0.")),
      draws_only(hyper_real("spectral_radius", "ρ", 0.9, 0.0, 10.0, "The largest |eigenvalue| of W at the start.")),
      draws_only(hyper_real("input_scaling", "", 1.0, 0.0, 100.0, "The size of the entries of Win.")),
      draws_only(hyper_real("input_density", "", 1.0, 0.001, 1.0, "The share of the entries of Win and bias that are not 0.")),
      draws_only(hyper_real("bias_scaling", "", 0.0, 0.0, 100.0, "The size of the entries of bias.")),
      draws_only(hyper_real("feedback_scaling", "", 1.0, 0.0, 100.0, "The size of the entries of Wfb.")),
      draws_only(hyper_real("feedback_density", "", 1.0, 0.001, 1.0, "The share of the entries of Wfb that are not 0.")),
      draws_only(hyper_choice("readout", "ridge", {"ridge", "drawn"},
                              "How the read-out is found: by ridge regression on the run itself, or drawn as any head.")),
      draws_only(hyper_real("ridge", "λ", 1e-6, 1e-12, 1e6, "The penalty of the regression.", true)),
      draws_only(hyper_integer("washout", "", 20, 0, 1'000'000'000, "Steps at the start that the regression leaves out.", "steps")),
      draws_only(hyper_integer("fit_steps", "", 0, 0, 1'000'000'000,
                               "The regression takes the steps before this one, so that the others are a test; 0: all.", "steps"))};
  a.spectrum =
      "eigenvalues of the recurrent Jacobian: of ∂r_t/∂r_{t-1}, of s in the external form, and of both with y where outputs are fed back";
  a.source = {"H. Jaeger", "The \"echo state\" approach to analysing and training recurrent neural networks", "GMD report 148",
              "https://doi.org/10.24406/publica-fhg-291111", 2001};
  a.check = [](const Hyper& h) {
    const auto refuse = [&](const std::string& key, const std::string& range) {
      throw Error("echo-state: outputs are fed back (feedback = " + h.text("feedback") + ") in a single layer that runs forward, and " +
                      key + " = " + h.text(key) + ": choose " + key + "=" + range + ", or feedback=0.",
                  {.model = "echo-state", .parameter = key, .value = h.text(key), .range = range});
    };
    if (h.integer("feedback") == 0) return;
    if (h.integer("layers") != 1) refuse("layers", "1");
    if (h.has("direction") && h.choice("direction") != "forward") refuse("direction", "forward");
  };
  a.fit = [](const Hyper& h) -> std::optional<ReadoutFit> {
    if (h.choice("readout") != "ridge") return {};
    ReadoutFit fit{.ridge = h.real("ridge"), .washout = h.integer("washout"), .steps = h.integer("fit_steps")};
    fit.fed_back = h.integer("feedback");
    if (fit.fed_back) fit.weight = "0/Wout", fit.bias = "0/Wout_bias";
    return fit;
  };

  a.layer = [](Layer& l, Var x) {
    const std::int64_t N = l.hyper.integer("width"), in = x.dim(-1), M = l.hyper.integer("feedback"), seed = l.hyper.integer("noise_seed");
    const double leak = l.hyper.real("leak"), density = l.hyper.real("input_density");
    const bool external = l.hyper.choice("equation") == "external", read_input = l.hyper.flag("read_input");
    const std::string f = l.hyper.choice("activation"), g = l.hyper.choice("feedback_activation");
    const Var W =
        l.parameter("W", {N, N}, reservoir(l.hyper.choice("recurrent_init"), l.hyper.real("density"), l.hyper.real("spectral_radius"), N),
                    "W, from the reservoir to itself; starts sparse, scaled to the spectral radius.");
    const Var Win = l.parameter("Win", {N, in}, sparse_signs(l.hyper.real("input_scaling"), density),
                                "W_in, from the input; starts at ± input_scaling where it is not 0.");
    const auto noisy = [&](const std::string& name, std::int64_t n) { return noise(l, name, n, l.hyper.real("noise_" + name), seed); };
    const auto has_noise = [&](const std::string& name) { return l.hyper.real("noise_" + name) > 0.0; };

    Var drive = linear(has_noise("in") ? x + noisy("in", in) : x, Win);
    if (l.hyper.flag("bias"))
      drive = drive + reshape(l.parameter("bias", {N, 1}, sparse_signs(l.hyper.real("bias_scaling"), density),
                                          "b; starts at ± bias_scaling where it is not 0."),
                              {N});
    std::vector<Var> tokens;
    const bool shaken = has_noise("state");
    const auto next = [=](Var pre, std::span<const Var> now, Var before) {  // r, or s in the external form
      Var fresh = external ? pre : parts::activation(f, pre);
      if (leak != 1.0) fresh = (1.0 - leak) * before + leak * fresh;
      return shaken ? fresh + now[1] : fresh;
    };
    const auto seen = [=](Var state) { return external ? parts::activation(f, state) : state; };
    const auto features = [=](Var r, Var u) {
      if (!read_input) return r;
      const Var parts[] = {r, u};
      return concat(parts, -1);
    };
    const StateSpec state = external ? StateSpec{"s", {N}, "The state before the nonlinearity; what is read out is r = f(s)."}
                                     : StateSpec{"r", {N}, "The state of the reservoir, which is read out."};

    Var Wfb, Wout, Wout_bias;
    if (M) {
      Wfb = l.parameter("Wfb", {N, M}, sparse_signs(l.hyper.real("feedback_scaling"), l.hyper.real("feedback_density")),
                        "W_fb, from the outputs of the step before; starts at ± feedback_scaling where it is not 0.");
      const std::int64_t F = read_input ? N + in : N;
      const double bound = 1.0 / std::sqrt(static_cast<double>(F));
      Wout = l.parameter("Wout", {M, F}, init::uniform(-bound, bound),
                         "W_out, columns reservoir input; fitted where the run has a target, else starts uniform in ±1/√in.");
      Wout_bias = l.parameter("Wout_bias", {M}, init::uniform(-bound, bound),
                              "b_out; fitted where the run has a target, else starts uniform in ±1/√in.");
      if (has_noise("feedback")) drive = drive + linear(noisy("feedback", M), Wfb);
    }
    const Var teacher = M ? l.teacher() : Var{};
    if (teacher) drive = drive + linear(parts::activation(g, teacher), Wfb);
    tokens.push_back(drive);
    if (shaken) tokens.push_back(noisy("state", N));
    if (!M || teacher) {
      if (!external) declare_matrix(l, {.matrix = W});
      const CellFunction cell = [=](Cell&, std::span<const Var> now, std::span<const Var> s) {
        return std::vector<Var>{next(now[0] + linear(seen(s[0]), W), now, s[0])};
      };
      if (f != "identity") return features(seen(step(l, {state}, tokens, cell)[0]), x);
      const auto moved = [&] { return leak == 1.0 ? W : leak * W + (1.0 - leak) * parts::identity(l.graph(), N); };
      const Var driven = leak == 1.0 ? drive : leak * drive;
      return features(parts::linear_step(l, state, moved, shaken ? driven + tokens[1] : driven, tokens, cell), x);
    }
    if (read_input) tokens.push_back(x);
    return step(l, {state, {"y", {M}, "The outputs, which are fed back."}}, tokens,
                [=](Cell&, std::span<const Var> now, std::span<const Var> s) {
                  const Var made = next(now[0] + linear(seen(s[0]), W) + linear(parts::activation(g, s[1]), Wfb), now, s[0]);
                  return std::vector<Var>{made, linear(features(seen(made), now.back()), Wout, Wout_bias)};
                })[1];
  };
  return a;
}

}  // namespace reclab::architectures
