// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/light/light.h"

#include "array/demand.h"
#include "autodiff/ops.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/step/step.h"

namespace reclab {

LightVars light(Graph& graph, Form form, Var u, Var a, Var b, Var v, Var w, ResetSees sees) {
  RECLAB_DEMAND(u.shape() == a.shape() && u.shape() == b.shape() && static_cast<bool>(v) == static_cast<bool>(w));
  LightVars vars;
  if (!v) {
    vars.forget = sigmoid(a);
    vars.reset = sigmoid(b);
    static_cast<MemoryVars&>(vars) = diagonal(graph, form, vars.forget, (1.0 - vars.forget) * u);
    return vars;
  }
  const StepVars stepped = step(
      graph, u.dim(1), {{"c", {u.dim(2)}}}, sees == ResetSees::before ? std::vector<Var>{u, a, b} : std::vector<Var>{u, a},
      [=](Cell&, std::span<const Var> now, std::span<const Var> c) {
        const Var forget = sigmoid(now[1] + v * c[0]);
        std::vector<Var> made{forget * c[0] + (1.0 - forget) * now[0], forget};
        if (sees == ResetSees::before) made.push_back(sigmoid(now[2] + w * c[0]));
        return made;
      },
      {}, form, Sees::own_entry);
  static_cast<MemoryVars&>(vars) = stepped;
  vars.forget = stepped.reads[0];
  vars.reset = sees == ResetSees::after ? sigmoid(b + w * stepped.trajectories[0]) : stepped.reads[1];
  return vars;
}

LightReads light(Layer& layer, const StateSpec& state, Var u, Var a, Var b, Var v, Var w, ResetSees sees) {
  if (v)
    layer.declare_forms({Form::newton, Form::quasi_newton, Form::damped_newton});
  else
    layer.declare_forms({Form::scan, Form::chunkwise});
  const LightVars vars = light(layer.graph(), layer.form(), u, a, b, v, w, sees);
  layer.declare({state}, vars);
  layer.gate("forget", vars.forget, 0.0, 1.0, "What is kept of the state; the rest of it is replaced.");
  layer.gate("reset", vars.reset, 0.0, 1.0, "What the output takes of the state; the rest of it is the input.");
  return {vars.trajectories[0], vars.reset};
}

}  // namespace reclab
