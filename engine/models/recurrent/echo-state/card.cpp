// SPDX-License-Identifier: GPL-3.0-or-later
// The card of the echo state network: conventions, options, names of other people's files.
#include <optional>
#include <string>

#include "array/error.h"
#include "models/recurrent/echo-state/parameters.h"

namespace reclab::architectures {
namespace {

std::optional<FedBackReadout> fed_back(const Hyper& h) {
  if (h.integer("feedback") == 0) return {};
  return FedBackReadout{h.integer("feedback"), "0/Wout", "0/Wout_bias"};
}

}  // namespace

Architecture echo_state_card() {
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
      initialisation_only(hyper_choice("recurrent_init", "normal", {"normal", "uniform", "signs"},
                                       "What the entries of W are before it is scaled: normal, uniform in ±1, or ±1.")),
      initialisation_only(hyper_real("density", "", 0.1, 0.001, 1.0, "The share of the entries of W that are not 0.")),
      initialisation_only(hyper_real("spectral_radius", "ρ", 0.9, 0.0, 10.0, "The largest |eigenvalue| of W at the start.")),
      initialisation_only(hyper_real("input_scaling", "", 1.0, 0.0, 100.0, "The size of the entries of Win.")),
      initialisation_only(hyper_real("input_density", "", 1.0, 0.001, 1.0, "The share of the entries of Win and bias that are not 0.")),
      initialisation_only(hyper_real("bias_scaling", "", 0.0, 0.0, 100.0, "The size of the entries of bias.")),
      initialisation_only(hyper_real("feedback_scaling", "", 1.0, 0.0, 100.0, "The size of the entries of Wfb.")),
      initialisation_only(hyper_real("feedback_density", "", 1.0, 0.001, 1.0, "The share of the entries of Wfb that are not 0.")),
      initialisation_only(hyper_choice("readout", "ridge", {"ridge", "drawn"},
                                       "How the read-out is found: by ridge regression on the run itself, or drawn as any head.")),
      initialisation_only(hyper_real("ridge", "λ", 1e-6, 1e-12, 1e6, "The penalty of the regression.", true)),
      initialisation_only(
          hyper_integer("washout", "", 20, 0, 1'000'000'000, "Steps at the start that the regression leaves out.", "steps")),
      initialisation_only(hyper_integer("fit_steps", "", 0, 0, 1'000'000'000,
                                        "The regression takes the steps before this one, so that the others are a test; 0: all.",
                                        "steps"))};
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
    return ReadoutFit{.ridge = h.real("ridge"), .washout = h.integer("washout"), .steps = h.integer("fit_steps"), .fed_back = fed_back(h)};
  };
  a.fed_back = fed_back;
  return a;
}

}  // namespace reclab::architectures
