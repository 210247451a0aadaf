// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/flow.h"

#include <array>

#include "array/demand.h"

namespace reclab {
namespace {

constexpr std::array names{"forward", "backward", "bilinear", "generalised", "exponential"};

}  // namespace

Flow::Rule flow_rule(const std::string& name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return static_cast<Flow::Rule>(i);
  RECLAB_DEMAND(name == "zoh");
  return Flow::Rule::exponential;
}

const char* to_string(Flow::Rule rule) { return names[static_cast<std::size_t>(rule)]; }

void declare_flow(Layer& layer, const Flow& flow) {
  auto* listener = dynamic_cast<FlowListener*>(&layer);
  if (!listener) return;
  Flow named = flow;
  if (flow.rule == Flow::Rule::generalised) {
    if (flow.share == 0.0) named.rule = Flow::Rule::forward;
    if (flow.share == 0.5) named.rule = Flow::Rule::bilinear;
    if (flow.share == 1.0) named.rule = Flow::Rule::backward;
  }
  if (named.rule != Flow::Rule::exponential) named.exponents = {};
  listener->flows(named);
}

}  // namespace reclab
