// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/outer/normalised.h"

#include "array/demand.h"
#include "recurrence/mixing/mixing.h"
#include "recurrence/step/step.h"

namespace reclab {
namespace denominator {

Denominator plus(double eps) {
  return [=](Var weight) { return weight + eps; };
}
Denominator at_least(double least) {
  return [=](Var weight) { return maximum(weight, affine(weight, 0.0, least)); };
}
Denominator size_at_least(double least, double eps) {
  return [=](Var weight) { return size_at_least(affine(weight, 0.0, least), eps)(weight); };
}
Denominator size_at_least(Var least, double eps) {
  return [=](Var weight) { return maximum(abs(weight), least) + eps; };
}

}  // namespace denominator

Var normalised_outer(Layer& layer, const StateSpec& memory, const StateSpec& normaliser, const OuterInputs& in,
                     const Denominator& denominator) {
  RECLAB_DEMAND(!in.value_decay && "the values 1 of the normaliser have no dimensions to decay by");
  OuterInputs values = in;
  values.v = apart(layer, in.v, {in.q, in.k, in.key_decay, in.phase});
  const Var read = outer(layer, memory, values, false);
  OuterInputs ones = in;
  ones.v = affine(slice(in.v, -1, 0, 1), 0.0, 1.0);
  const Var result = read / denominator(outer(layer, normaliser, ones, false));
  declare_mixing(
      layer, {.name = memory.name, .value = values.v, .output = result, .unnormalised = read, .groups = values.v.dim(2), .group = "head"});
  return result;
}

Var StabilisedGates::unit() const { return exp_in_range(-minimum(m, m.dtype() == DType::f64 ? 700.0 : 85.0)); }

StabilisedGates stabilised(Layer& layer, const StateSpec& state, Var log_forget, Var input) {
  StabilisedGates made;
  made.m = step(layer, {state}, {log_forget, input},
                [](Cell&, std::span<const Var> t, std::span<const Var> s) { return std::vector<Var>{maximum(t[0] + s[0], t[1])}; })[0];
  const Var standing = log_forget + layer.previous_state(made.m), top = maximum(standing, input);
  made.keep = standing - top;
  made.write = exp(input - top);
  return made;
}

}  // namespace reclab
