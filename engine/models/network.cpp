// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/network.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "array/error.h"

namespace reclab {

Parameters::Entry* Parameters::find(std::string_view name) {
  for (auto& entry : entries_)
    if (entry.name == name) return &entry;
  return nullptr;
}
std::int64_t Parameters::count() const {
  std::int64_t n = 0;
  for (const auto& entry : entries_) n += static_cast<std::int64_t>(entry.values.size());
  return n;
}

std::int64_t Layer::steps() const { return network_.options_.steps; }
std::int64_t Layer::batch() const { return network_.options_.batch; }

Var Layer::parameter(const std::string& name, Shape shape, const Init& init, const std::string& text) {
  const std::string key = prefix_ + "/" + name;
  for ([[maybe_unused]] const auto& present : network_.parameters_) assert(present.name != key);
  const Var var = graph_.leaf(LeafKind::variable, std::move(shape), graph_.real());
  network_.parameters_.push_back({key, text, var, init});
  return var;
}

Var Layer::gate(const std::string& name, Var value, double low, double high, const std::string& text) {
  network_.gates_.push_back({index_, name, text, low, high, value});
  return value;
}

namespace {
void put_states(std::vector<Network::StateVar>& to, int layer, const std::vector<StateSpec>& specs, const MemoryVars& vars) {
  for (std::size_t i = 0; i < specs.size(); ++i)
    to.push_back({layer, specs[i].name, specs[i].text, specs[i].shape, vars.memory, static_cast<int>(i), vars.initial[i], vars.trajectories[i],
                  vars.finals[i]});
}
}  // namespace

std::vector<Var> Layer::step(const std::vector<StateSpec>& states, const std::vector<Var>& tokens, const CellFunction& cell) {
  std::vector<StateShape> shapes;
  for (const auto& state : states) shapes.push_back({state.name, state.shape});
  const StepVars vars = reclab::step(graph_, batch(), shapes, tokens, cell);
  put_states(network_.states_, index_, states, vars);
  for (const auto& g : vars.gates) network_.gates_.push_back({index_, g.name, g.text, g.low, g.high, g.trajectory});
  return vars.trajectories;
}

Var Layer::diagonal(const StateSpec& state, Var a, Var b) {
  network_.has_scan_ = true;
  network_.has_convolution_ |= a.shape().size() < b.shape().size() && is_complex(b.dtype());
  const MemoryVars vars = reclab::diagonal(graph_, network_.options_.form, a, b);
  put_states(network_.states_, index_, {state}, vars);
  return vars.trajectories[0];
}

Var Layer::diagonal_bank(const StateSpec& state, Var a, Var b, Var w, Var u) {
  network_.has_scan_ = network_.has_convolution_ = true;
  const BankVars vars = reclab::diagonal_bank(graph_, network_.options_.form, a, b, w, u);
  put_states(network_.states_, index_, {state}, vars);
  return vars.output;
}

Var Layer::outer(const StateSpec& state, Var q, Var k, Var v) {
  network_.has_attention_ = true;
  const OuterVars vars = reclab::outer(graph_, network_.options_.form, q, k, v, network_.options_.record);
  put_states(network_.states_, index_, {state}, vars);
  return vars.output;
}

Var Layer::history(const std::string& name, Var x, std::int64_t length, const std::string& text) {
  Shape shape(x.shape().begin() + 1, x.shape().end());
  Shape buffer{length};
  buffer.insert(buffer.end(), x.shape().begin() + 2, x.shape().end());
  shape.insert(shape.begin(), length);
  const Var initial = graph_.leaf(LeafKind::variable, shape, x.dtype());
  const Var parts[] = {initial, x};
  const Var joined = concat(parts, 0);
  network_.states_.push_back({index_, name, text, buffer, nullptr, 0, initial, Var{}, slice(joined, 0, steps(), steps() + length)});
  return joined;
}

Network::Network(const Architecture& architecture, const Hyper& hyper, const NetworkOptions& options) : options_(options), graph_(options.real) {
  if (architecture.check) architecture.check(hyper);
  layers_ = hyper.has("layers") ? hyper.integer("layers") : 1;
  input_ = graph_.leaf(LeafKind::variable, {options.steps, options.batch, options.input}, graph_.real());
  Var x = input_;
  const auto dense = [&](const std::string& prefix, Var in, std::int64_t out, const std::string& role) {
    Layer layer(*this, graph_, hyper, prefix, -1);
    const std::int64_t width = in.dim(-1);
    const double bound = 1.0 / std::sqrt(static_cast<double>(width));
    const Var weight = layer.parameter("weight", {out, width}, init::uniform(-bound, bound), role + ": y = W x + b; starts uniform in ±1/√in.");
    const Var bias = layer.parameter("bias", {out}, init::uniform(-bound, bound), role + "'s bias.");
    return linear(in, weight, bias);
  };
  const std::int64_t wanted = architecture.input_width ? architecture.input_width(hyper) : 0;
  if (wanted && wanted != options.input) x = dense("encoder", x, wanted, "Linear encoder of the input to the model's width");
  for (int i = 0; i < layers_; ++i) {
    Layer layer(*this, graph_, hyper, std::to_string(i), i);
    x = architecture.layer(layer, x);
  }
  if (architecture.finish) {
    Layer layer(*this, graph_, hyper, "final", -1);
    x = architecture.finish(layer, x);
  }
  if (options.head) x = dense("head", x, options.head, "Linear head from the model's output to the target");
  output_ = x;
}

std::vector<Memory*> Network::memories(int layer) const {
  std::vector<Memory*> found;
  for (const auto& state : states_)
    if (state.layer == layer && state.memory && (found.empty() || found.back() != state.memory)) found.push_back(state.memory);
  return found;
}

Parameters Network::initialise(std::uint64_t seed) const {
  const Rng root(seed);
  Parameters made;
  for (const auto& parameter : parameters_) {
    made.entries().push_back({parameter.name, parameter.text, parameter.var.shape(), {}});
    auto& entry = made.entries().back();
    entry.values.assign(static_cast<std::size_t>(count(entry.shape)), 0.0);
    Rng rng = root.split(parameter.name);
    const std::string prefix = parameter.name.substr(0, parameter.name.find('/') + 1);
    InitContext context{rng, entry.shape, entry.values, [&](std::string_view other) -> std::span<const double> {
                          const auto* found = made.find(prefix + std::string(other));
                          assert(found);
                          return found->values;
                        }};
    parameter.init(context);
  }
  return made;
}

std::vector<Form> Network::forms() const {
  std::vector<Form> forms{Form::sequential};
  if (has_scan_) forms.push_back(Form::scan);
  if (has_convolution_) forms.push_back(Form::convolution);
  if (has_attention_) forms.push_back(Form::attention);
  return forms;
}

}  // namespace reclab
