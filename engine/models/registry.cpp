// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/registry.h"

#include <algorithm>

#include "array/error.h"
#include "parameters/nearest.h"

namespace reclab {

void Registry::add(std::string id, std::string family, Architecture architecture) {
  std::replace(family.begin(), family.end(), '_', '-');
  architecture.id = std::move(id);
  architecture.family = std::move(family);
  architecture.hyper.push_back(
      hyper_choice("direction", "forward", {"forward", "backward", "both", "both_by_layer"},
                   "From the first step to the last, from the last to the first, or both by layers of their own: outputs side by side "
                   "after the last layer, or, as in PyTorch, after each (both_by_layer). Layers are numbered with those that run forward "
                   "first, or, by layer, the two of each one after the other."));
  if (architecture.input_width || !architecture.input_weights.empty())
    architecture.hyper.push_back(initialisation_only(hyper_real(
        "input_gain", "", 1.0, 1e-3, 1e3,
        architecture.input_weights.empty()
            ? "The matrix of the encoder in front is drawn times this: larger moves gates further. Without an encoder, where the input is "
              "as wide as the model, it has no effect."
            : "The weights by which the input enters are drawn times this: larger moves gates further. The input itself is read as it is.",
        true)));
  architecture.hyper.push_back(hyper_real("input_scale", "", 1.0, 1e-3, 1e3,
                                          "What the model reads is the input times this, whatever its weights; no preset sets it.", true));
  if (architecture.knows_time) {
    architecture.hyper.push_back(
        hyper_real("time_unit", "", 0.0, 0.0, 1e12,
                   "How long one unit of the model's time is, in the unit of the time column; 0: the sequence's median step.", false));
    architecture.hyper.push_back(
        hyper_real("first_elapsed", "Δ₀", 1.0, 1e-9, 1e12,
                   "The elapsed time of the first step, which no step before it tells, in units of the model's time.", true));
    architecture.notes.emplace_back(
        "The elapsed time Δ_t is the time from step t-1 to step t in units of time_unit. With time_unit = 0 the unit is the median step of "
        "the sequence, and equal steps, or none given, have Δ_t = 1. A part of a sequence has another median: a run in parts is the whole "
        "one to the bit with the time_unit that the whole run tells.");
    architecture.notes.emplace_back(
        "The first step has Δ_t = first_elapsed, unless a run is continued: its state then has a clock, the time of its last step and the "
        "median step, which stays the unit. A layer that runs backward takes the time to the step after.");
  }
  if (architecture.input_width)
    architecture.hyper.push_back(hyper_flag(
        "encoder_bias", true,
        "Whether the linear encoder in front, where the input is not as wide as the model, has a bias; without one, zeros stay zeros."));
  all_.push_back(std::move(architecture));
}

const Architecture& Registry::find(std::string_view id) const {
  std::vector<std::string> known;
  for (const auto& architecture : all_) {
    if (architecture.id == id) return architecture;
    known.push_back(architecture.id);
  }
  throw Error("there is no architecture \"" + std::string(id) + "\"; the nearest are " + nearest_names(id, known) + ".",
              {.model = std::string(id), .range = nearest_names(id, known)});
}

}  // namespace reclab
