// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/network.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>

#include "array/error.h"
#include "array/stop.h"
#include "models/stack.h"
#include "recurrence/attention.h"
#include "recurrence/chunks.h"

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

Var Layer::shared_parameter(const std::string& name, Shape shape, const Init& init, const std::string& text) {
  for (const auto& present : network_.parameters_)
    if (present.name == std::to_string(first_) + "/" + name) return present.var;
  assert(index() == 0);
  return parameter(name, std::move(shape), init, text);
}

void Layer::offer(std::initializer_list<Form> forms) {
  for (const Form form : forms) network_.offered_ |= 1u << static_cast<unsigned>(form);
}

Var Layer::gate(const std::string& name, Var value, double low, double high, const std::string& text) {
  network_.gates_.push_back({index_, name, text, low, high, value});
  return value;
}

void Layer::put(const std::vector<StateSpec>& specs, const MemoryVars& vars) {
  for (std::size_t i = 0; i < specs.size(); ++i)
    network_.states_.push_back({index_, specs[i].name, specs[i].text, specs[i].shape, vars.memory, static_cast<int>(i), vars.initial[i], vars.trajectories[i],
                                vars.finals[i], false, specs[i].auxiliary, specs[i].start});
}

Layer::Stepped Layer::step_and_read(const std::vector<StateSpec>& states, const std::vector<Var>& tokens, const CellFunction& cell) {
  std::vector<StateShape> shapes;
  for (const auto& state : states) shapes.push_back({state.name, state.shape});
  const bool auxiliary = std::any_of(states.begin(), states.end(), [](const StateSpec& state) { return state.auxiliary; });
  if (!auxiliary) offer({Form::newton, Form::quasi_newton, Form::damped_newton});
  const StepVars vars = reclab::step(graph_, batch(), shapes, tokens, cell, {}, auxiliary ? Form::sequential : network_.options_.form);
  put(states, vars);
  for (const auto& g : vars.gates) network_.gates_.push_back({index_, g.name, g.text, g.low, g.high, g.trajectory});
  return {vars.trajectories, vars.reads};
}

std::vector<Var> Layer::step(const std::vector<StateSpec>& states, const std::vector<Var>& tokens, const CellFunction& cell) {
  return step_and_read(states, tokens, cell).states;
}

Var Layer::cache(const StateSpec& state, Var x) {
  network_.whole_ = true;
  Shape shape = x.shape();
  shape[0] = network_.options_.past;
  Var joined = x;
  const Var initial = graph_.leaf(LeafKind::variable, shape, x.dtype());
  if (shape[0]) {
    const Var parts[] = {initial, x};
    joined = concat(parts, 0);
  }
  network_.states_.push_back({index_, state.name, state.text, state.shape, nullptr, 0, initial, x, joined, true});
  return joined;
}

Var Layer::cache(const std::string& name, Var x, const std::string& text) {
  const Var joined = cache(StateSpec{name, Shape(x.shape().begin() + 2, x.shape().end()), text}, detach(x));
  network_.states_.back().trajectory = Var{};
  return joined;
}

Var Layer::before(Var trajectory) {
  for (auto& state : network_.states_) {
    if (state.trajectory.id != trajectory.id) continue;
    if (!state.beside) state.beside = graph_.leaf(LeafKind::variable, state.initial.shape(), state.initial.dtype());
    return chunks::before(state.beside, trajectory);
  }
  assert(!"the trajectory of no memory");
  return {};
}

void Layer::reconstruction(const std::string& state, const std::function<Var()>& signal, PastBasis basis) {
  if (!network_.options_.record || !forms_states(form())) return;
  network_.pasts_.push_back({index_, state, signal(), std::move(basis)});
}

Var Layer::position() {
  if (!network_.position_) {
    const std::int64_t T = steps(), B = batch();
    const Var initial = graph_.leaf(LeafKind::variable, {1, B, 1}, graph_.real());
    std::vector<double> numbers;
    for (std::int64_t t = 0; t < T; ++t) numbers.push_back(static_cast<double>(t));
    const Var start = detach(initial);
    network_.position_ = start + graph_.constant({T, 1, 1}, std::move(numbers));
    network_.states_.push_back({std::max(index_, 0), "position", "How many steps have passed.", {1}, nullptr, 0, initial, Var{}, start + static_cast<double>(T)});
    network_.states_.back().position = true;
  }
  return network_.position_;
}

Var Layer::document_starts(std::int64_t column) {
  const Var marks = detach(sign(relu(slice(network_.input_, -1, column - 1, column))));
  if (!network_.layers_[static_cast<std::size_t>(index_)].backward) return marks;
  const Var turned = reversed(marks), none = affine(slice(turned, 0, 0, 1), 0.0, 0.0);
  if (steps() == 1) return none;
  const Var parts[] = {none, slice(turned, 0, 0, steps() - 1)};
  return concat(parts, 0);
}

Var Layer::diagonal(const StateSpec& state, Var a, Var b, Var shown) {
  offer({Form::scan, Form::chunkwise});
  if (a.shape().size() < b.shape().size() && is_complex(b.dtype())) offer({Form::convolution});
  const MemoryVars vars = reclab::diagonal(graph_, network_.options_.form, a, b, shown);
  put({state}, vars);
  return vars.trajectories[0];
}

Var Layer::diagonal_bank(const StateSpec& state, Var a, Var b, Var w, Var u) {
  offer({Form::scan, Form::chunkwise, Form::convolution});
  const BankVars vars = reclab::diagonal_bank(graph_, network_.options_.form, a, b, w, u);
  put({state}, vars);
  return vars.output;
}

Var Layer::selective(const StateSpec& state, Var dt, Var a, Var x, Var b, Var c) {
  offer({Form::scan, Form::chunkwise});
  const SelectiveVars vars = reclab::selective(graph_, network_.options_.form, dt, a, x, b, c, network_.options_.record);
  put({state}, vars);
  return vars.output;
}

Var Layer::outer(const StateSpec& state, Var q, Var k, Var v, Var log_decay, Var shown) {
  offer({Form::chunkwise});
  if (log_decay) offer({Form::scan});
  if (!log_decay || log_decay.dim(-1) == 1) offer({Form::attention});
  const OuterVars vars = reclab::outer(graph_, network_.options_.form, q, k, v, log_decay, network_.options_.record, shown);
  put({state}, vars);
  return vars.output;
}

Var Layer::delta(const StateSpec& state, Var q, Var k, Var v, Var beta) {
  offer({Form::chunkwise});
  const OuterVars vars = reclab::delta(graph_, network_.options_.form, q, k, v, beta);
  put({state}, vars);
  return vars.output;
}

Form Layer::form() const { return network_.options_.form; }
std::int64_t Layer::past() const { return network_.options_.past; }

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

Var Layer::history(const StateSpec& state, Var x, std::int64_t length) {
  const Var row = affine(x, 1.0, 0.0);  // a node of its own: what else reads x does not count
  const Var joined = history(state.name, row, length, state.text);
  network_.states_.back().trajectory = row;
  network_.states_.back().recorded_shape = state.shape;
  return joined;
}

Var Layer::attention(const SoftmaxAttention& a) {
  offer({Form::attention});
  return softmax_attention(a, form() == Form::sequential);
}

Network::Network(const Architecture& architecture, const Hyper& hyper, const NetworkOptions& options) : options_(options), graph_(options.real) {
  if (architecture.check) architecture.check(hyper);
  input_ = graph_.leaf(LeafKind::variable, {options.steps, options.batch, options.input}, graph_.real());
  in_stack_ = !architecture.stack.empty();
  std::set<std::int64_t> markers;
  const auto mark = [&](const Architecture& part, const Hyper& values) {
    const std::int64_t column = part.marker.empty() ? 0 : values.integer(part.marker), columns = options.input;
    if (column > 0) markers.insert(column);
    const std::string given = part.id + ": " + part.marker + " = " + std::to_string(column) + ", ";
    const ErrorPlace where{.model = part.id, .parameter = part.marker, .value = std::to_string(column), .range = "0.." + std::to_string(columns)};
    if (column > columns)
      throw Error(given + "and the input has " + std::to_string(columns) + (columns == 1 ? " column" : " columns") + ": choose the one that marks where documents begin, or 0 for none.", where);
    if (columns > 0 && std::ssize(markers) == columns) throw Error(given + "and that leaves no column to read: give the input another one, or choose 0 for none.", where);
  };
  if (!in_stack_) mark(architecture, hyper);
  for (std::size_t i = 0; i < architecture.stack.size(); ++i) mark(*architecture.stack[i], hyper_of_stack(architecture, hyper, i));
  Var x = without_markers(markers);
  if (!in_stack_) {
    x = add_stack(architecture, hyper, "", x);
  } else {
    for (std::size_t i = 0; i < architecture.stack.size(); ++i)
      x = add_stack(*architecture.stack[i], hyper_of_stack(architecture, hyper, i), std::to_string(i), x);
  }
  if (options.head) x = add_dense(hyper, "head", x, options.head, "Linear head from the model's output to the target");
  output_ = x;
}

Var Network::without_markers(const std::set<std::int64_t>& markers) const {
  if (markers.empty()) return input_;
  std::vector<Var> kept;
  for (std::int64_t i = 0; i < options_.input; ++i)
    if (!markers.count(i + 1)) kept.push_back(slice(input_, -1, i, i + 1));
  return kept.size() == 1 ? kept[0] : concat(kept, -1);
}

Var Network::add_dense(const Hyper& hyper, const std::string& prefix, Var x, std::int64_t out, const std::string& role, bool with_bias) {
  Layer layer(*this, graph_, hyper, prefix, -1);
  const std::int64_t width = x.dim(-1);
  const double bound = 1.0 / std::sqrt(static_cast<double>(width));
  const Var weight = layer.parameter("weight", {out, width}, init::uniform(-bound, bound), role + ": y = W x + b; starts uniform in ±1/√in.");
  const Var bias = with_bias ? layer.parameter("bias", {out}, init::uniform(-bound, bound), role + "'s bias.") : Var{};
  return linear(x, weight, bias);
}

Var Network::add_stack(const Architecture& architecture, const Hyper& hyper, const std::string& part, Var x) {
  const std::int64_t wanted = architecture.input_width ? architecture.input_width(hyper) : 0;
  if (hyper.has("input_scale") && hyper.real("input_scale") != 1.0) x = x * hyper.real("input_scale");
  const bool with_bias = !hyper.has("encoder_bias") || hyper.flag("encoder_bias");
  if (wanted && wanted != x.dim(-1)) x = add_dense(hyper, "encoder" + part, x, wanted, "Linear encoder of the input to the model's width", with_bias);
  const std::string direction = hyper.has("direction") ? hyper.choice("direction") : "forward";
  const std::int64_t depth = hyper.has("layers") ? hyper.integer("layers") : 1;
  // Both directions: each layer of one reads the layer below of its own, or, by layer, both outputs below.
  const bool by_layer = direction == "both_by_layer", both = by_layer || direction == "both";
  const std::int64_t together = by_layer ? 1 : depth;
  for (std::int64_t from = 0; from < depth; from += together) {
    if (from && wanted && wanted != x.dim(-1))
      x = add_dense(hyper, "encoder" + part + "_" + std::to_string(from), x, wanted, "Linear map of both outputs below to the model's width", with_bias);
    std::vector<Var> outputs;
    for (const bool backward : {false, true})
      if (both || (direction == "backward") == backward)
        outputs.push_back(add_direction(architecture, hyper, part + (backward && both ? "_backward" : ""), backward, from, from + together, x));
    x = outputs.size() == 1 ? outputs[0] : concat(outputs, -1);
  }
  return x;
}

Var Network::add_direction(const Architecture& architecture, const Hyper& hyper, const std::string& suffix, bool backward, std::int64_t from, std::int64_t to, Var x) {
  const std::size_t states = states_.size(), gates = gates_.size(), pasts = pasts_.size();
  if (backward) x = reversed(x);
  for (std::int64_t i = from; i < to; ++i) {
    const auto number = static_cast<int>(layers_.size());
    layers_.push_back({&architecture, in_stack_ ? architecture.id : "", backward, i == 0});
    if (backward) layers_.back().name += layers_.back().name.empty() ? "backward" : " backward";
    Layer layer(*this, graph_, hyper, std::to_string(number), number, number - static_cast<int>(i));
    x = architecture.layer(layer, x);
  }
  if (architecture.finish && to == (hyper.has("layers") ? hyper.integer("layers") : 1)) {
    Layer layer(*this, graph_, hyper, "final" + suffix, -1);
    x = architecture.finish(layer, x);
  }
  if (!backward) return x;
  // What is known at the first step comes from the last one, so there is no running it by segments.
  whole_ = true;
  const std::string way = " This layer runs from the end of the sequence to its start.";
  for (std::size_t i = states; i < states_.size(); ++i) {
    states_[i].backward = true;
    states_[i].text += way;
  }
  for (std::size_t i = gates; i < gates_.size(); ++i) {
    gates_[i].var = reversed(gates_[i].var);
    gates_[i].text += way;
  }
  // What such a layer holds is what comes after.
  pasts_.erase(pasts_.begin() + static_cast<std::ptrdiff_t>(pasts), pasts_.end());
  return reversed(x);
}

std::vector<Memory*> Network::memories(int layer) const {
  std::vector<Memory*> found;
  for (const auto& state : states_) {
    if (state.layer != layer) continue;
    if (!state.memory && state.trajectory) return {};  // a cache: the layer as a whole has no transition
    if (state.memory && !state.auxiliary && (found.empty() || found.back() != state.memory)) found.push_back(state.memory);
  }
  return found;
}

Parameters Network::initialise(std::uint64_t seed) const {
  const Rng root(seed);
  Parameters made;
  for (const auto& parameter : parameters_) {
    made.entries().push_back({parameter.name, parameter.text, parameter.var.shape(), {}});
    auto& entry = made.entries().back();
    // Some at a time: to take a gigabyte of zeros is a matter of a second.
    constexpr std::size_t some = std::size_t{1} << 20;
    const auto size = static_cast<std::size_t>(count(entry.shape));
    entry.values.reserve(size);
    for (; entry.values.size() < size; check_stop()) entry.values.resize(std::min(size, entry.values.size() + some));
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
  std::vector<Form> forms;
  for (const Form form : all_forms)
    if (offered_ >> static_cast<unsigned>(form) & 1u) forms.push_back(form);
  return forms;
}

}  // namespace reclab
