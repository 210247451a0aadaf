// SPDX-License-Identifier: GPL-3.0-or-later
#include "distillation/filters.h"

#include <algorithm>

#include "array/backend.h"
#include "array/host.h"
#include "execution/rollout.h"
#include "recurrence/convolution/kernel.h"

namespace reclab {

std::vector<LongFilter> long_filters(const Prepared& prepared, const RunRequest& request, std::int64_t taps, std::stop_token stop) {
  Sequence still;
  still.length = taps;
  still.width = request.sequence->width;
  still.input.assign(static_cast<std::size_t>(taps * still.width), 0.0);
  still.names.assign(static_cast<std::size_t>(still.width), "");
  for (std::int64_t t = 0; t < taps; ++t) still.time.push_back(static_cast<double>(t));
  const std::int64_t head = prepared.loss.outputs();
  const SequenceLoss loss(head ? LossKind::random : LossKind::last, still, head);
  const Model model(prepared.architecture, prepared.hyper, prepared.parameters, cpu_backend(), DType::f64);
  const auto forms = prepared.shape_network->forms();
  const bool has_form = std::ranges::find(forms, Form::convolution) != forms.end();
  Rollout rollout(model, Batch(still, loss), {.form = has_form ? Form::convolution : Form::sequential, .segment = taps, .record = false});

  std::vector<LongFilter> found;
  const auto look = [&](const Rollout::Segment& segment) {
    if (segment.first > 0) return;
    Graph& graph = segment.network.graph();
    graph.visit([&](const Operation& operation, std::span<const Var> in, std::span<const Var> out) {
      const auto kernel = kernel_of(operation, in);
      if (!kernel || kernel->dim(1) < 2) return;
      LongFilter filter;
      int begun = -1;  // a layer's states are made before the nodes that read them
      for (const Network::StateVar& state : segment.network.states())
        if (state.initial && state.initial.id < out[0].id && state.initial.id > begun) {
          begun = state.initial.id;
          filter.layer = state.layer;
        }
      filter.number = static_cast<int>(std::ranges::count(found, filter.layer, &LongFilter::layer));
      filter.channels = kernel->dim(0);
      filter.length = taps;
      filter.taps.assign(static_cast<std::size_t>(filter.channels * taps), 0.0);
      const std::int64_t own = kernel->dim(1);
      const std::vector<double> values = to_double(cpu_backend(), DType::f64, graph.value(*kernel), filter.channels * own);
      for (std::int64_t c = 0; c < filter.channels; ++c)
        std::copy_n(values.begin() + c * own, std::min(own, taps), filter.taps.begin() + c * taps);
      found.push_back(std::move(filter));
    });
  };
  const auto bad = rollout.forward(look, stop);
  const std::string& id = request.preset.id;
  if (bad) throw Error(id + ": " + sentence(*bad) + ": with these weights it has no filter.", {.model = id});
  if (found.empty() && has_form)
    throw Error(id + " has no long filter: its memory is kept as modes, each of which is one exponential already, so there is nothing to "
                     "distil. Its settings say how many there are.",
                {.model = id});
  if (found.empty())
    throw Error(id + " has no long filter: no memory of it is a convolution with the same kernel at every step. reclab forms " + id +
                    " shows the forms that it has.",
                {.model = id});
  return found;
}

}  // namespace reclab
