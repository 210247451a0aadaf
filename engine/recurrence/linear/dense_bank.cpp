// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "recurrence/chunks.h"
#include "recurrence/convolution/convolution.h"
#include "recurrence/linear/krylov.h"
#include "recurrence/linear/linear.h"
#include "recurrence/linear_system.h"
#include "recurrence/mixing/mixing.h"

namespace reclab {
namespace {

DenseBankVars by_convolution(Graph& graph, Var A, Var B, Var C, Var u) {
  const std::int64_t steps = u.dim(0), batch = u.dim(1), channels = u.dim(2), n = A.dim(-1), reads = C.dim(1);
  DenseBankVars vars;
  vars.initial = {graph.leaf(LeafKind::variable, {batch, channels, n}, u.dtype())};
  vars.trajectories = {Var{}};
  vars.finals = {Var{}};
  const auto [memory, own] = dense_witness(A, channels);
  vars.memory = memory;
  // Columns: the state after one input, and each initial state after one step.
  const int channels_first[] = {1, 2, 0};
  const Var columns[] = {chunks::with_axis(B, -1), matmul(own, permute(vars.initial[0], channels_first))};
  const std::int64_t few = power_of_two_from(static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(steps))))),
                     many = power_of_two_from((steps + few - 1) / few);
  const Krylov fine = krylov(own, concat(columns, -1), few);
  const Krylov coarse = krylov(transpose(fine.power), transpose(C), many);
  // [channels, many, reads, few, 1 + batch]: the reads of many * few steps
  const Var responses = reshape(matmul(transpose(coarse.columns), fine.columns), {channels, many, reads, few, 1 + batch});
  const int reads_first[] = {0, 2, 1, 3, 4};
  const Var wanted = slice(reshape(permute(responses, reads_first), {channels * reads, many * few, 1 + batch}), 1, 0, steps);
  const Var input = reshape(chunks::with_axis(u, -1) + chunks::zeros(graph, {reads}), {steps, batch, channels * reads});
  const int time_first[] = {1, 2, 0};
  vars.output = reshape(
      convolve(reshape(slice(wanted, -1, 0, 1), {channels * reads, steps}), input) + permute(slice(wanted, -1, 1, 1 + batch), time_first),
      {steps, batch, channels, reads});
  return vars;
}

}  // namespace

DenseBankVars dense_bank(Graph& graph, Form form, Var A, Var B, Var C, Var u) {
  if (form == Form::convolution) return by_convolution(graph, A, B, C, u);
  const std::int64_t steps = u.dim(0), batch = u.dim(1), channels = u.dim(2), n = A.dim(-1);
  DenseBankVars vars;
  static_cast<MemoryVars&>(vars) = dense(graph, form, A, chunks::with_axis(u, -1) * B);
  const int channels_first[] = {2, 0, 1, 3}, time_first[] = {1, 0, 2};
  const Var states = reshape(permute(vars.trajectories[0], channels_first), {channels, steps * batch, n});
  vars.output = reshape(permute(matmul(states, transpose(C)), time_first), {steps, batch, channels, C.dim(1)});
  describe(vars.memory, {.structure = LinearSystem::Structure::matrix, .input = u, .output = vars.output, .a = A, .b = B, .c = C});
  return vars;
}

Var dense_bank(Layer& layer, const StateSpec& state, Var A, Var B, Var C, Var u) {
  layer.declare_forms({Form::scan, Form::convolution});
  const DenseBankVars vars = dense_bank(layer.graph(), layer.form(), A, B, C, u);
  layer.declare({state}, vars);
  declare_mixing(layer, {.name = state.name, .value = u, .output = vars.output, .groups = u.dim(2), .reads = C.dim(1), .group = "channel"});
  return vars.output;
}

}  // namespace reclab
