// SPDX-License-Identifier: GPL-3.0-or-later
// Properties of the recurrence of a model. Nothing is listed by hand: they follow from the model's results in one step from several states.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiment.h"

namespace reclab {

struct Properties {
  /// Each recurrence, its input given, maps the state before a step to an affine function of it, or the past is read by a convolution.
  bool linear = false;
  bool gated = false;           ///< the part of the state that is kept depends on the input
  bool time_invariant = false;  ///< linear, and the same matrix at every step and for every input
  bool diagonal = false;        ///< no entry of the state sees another
  bool complex = false;         ///< a state of complex numbers, or of their real and imaginary parts (StateSpec::pairs)
  bool growing = false;         ///< a state that grows with the steps that have passed
  bool operator==(const Properties&) const = default;
};

struct PropertyInfo {
  bool Properties::* field;
  std::string_view id;    ///< a key of JSON: "time_invariant"
  std::string_view word;  ///< "time-invariant"
  std::string_view text;  ///< one sentence
};
/// All properties, in the order in which they are listed.
std::span<const PropertyInfo> property_infos();
/// The words of those that hold, "nonlinear" first where `linear` does not and there is a recurrence to say it of.
std::vector<std::string> words_of(const Properties& properties);

/// The properties of a preset as it stands. Each memory of its layers (of several alike the lowest) is stepped once in float64 from several
/// random states, inputs and positions, with random weights, and looked at: sums of states tell whether it is linear, differences of them
/// whether its matrix changes with the input or the position. A memory without a step from state to state (caches, memories that change
/// once a segment) is not linear. Throws Error for a preset that cannot be built with so many input columns.
Properties properties_of(const Registry& registry, const Preset& preset, std::int64_t input_width = 1);

/// A hyper-parameter that matters for drawing weights alone, and for none with the others as they are.
struct IdleSetting {
  std::string key;
  std::string why;  ///< a sentence, with the choices of others under which it would matter
  bool operator==(const IdleSetting&) const = default;
};
/// The idle settings of a model, found by drawing weights with other values of each and comparing them. Throws Error for values that cannot
/// be built.
std::vector<IdleSetting> idle_settings(const Architecture& architecture, const Hyper& hyper, std::int64_t input_width);

/// The cost of a step in the sequential form.
struct StepCost {
  double flops = 0.0;  ///< by formula, the mean over so many steps
  std::int64_t steps = 0;
  std::int64_t parameters = 0;  ///< of the layers; without encoder and head
  std::int64_t state = 0;       ///< real numbers that are carried from step to step, of all layers; of a growing state after those steps
};
StepCost step_cost(const Registry& registry, const Preset& preset, std::int64_t input_width, std::int64_t steps);

}  // namespace reclab
