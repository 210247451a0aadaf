// SPDX-License-Identifier: GPL-3.0-or-later
// The part of Layer that builds linear recurrences.
#include "models/network.h"
#include "recurrence/linear.h"

namespace reclab {

Var Layer::linear(const StateSpec& state, Var A, Var b) {
  offer({Form::scan});
  const MemoryVars vars = dense(graph_, form(), A, b);
  put({state}, vars);
  return vars.trajectories[0];
}

Var Layer::linear_driven(const StateSpec& state, Var A, Var B, Var u) {
  offer({Form::scan, Form::convolution});
  const MemoryVars vars = dense_driven(graph_, form(), A, B, u);
  put({state}, vars);
  return vars.trajectories[0];
}

Var Layer::low_rank_bank(const StateSpec& state, const LowRankSystem& system, Var u) {
  offer({Form::scan, Form::convolution});
  const LowRankVars vars = reclab::low_rank_bank(graph_, form(), system, u);
  put({state}, vars);
  return vars.output;
}

}  // namespace reclab
