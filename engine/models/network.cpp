// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/network.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "array/demand.h"
#include "array/error.h"
#include "array/host.h"
#include "models/network_layer.h"
#include "models/network_layer_graph.h"
#include "models/stack.h"

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

Network::Network(const Architecture& architecture, const Hyper& hyper, const NetworkOptions& options)
    : options_(options), graph_(options.real) {
  if (architecture.check) architecture.check(hyper);
  input_ = graph_.leaf(options.input_gradient ? LeafKind::variable : LeafKind::given, {options.steps, options.batch, options.input},
                       graph_.real());
  if (options.teacher) teacher_ = graph_.leaf(LeafKind::variable, {options.steps, options.batch, options.teacher}, graph_.real());
  in_stack_ = !architecture.stack.empty();
  std::set<std::int64_t> markers;
  const auto mark = [&](const Architecture& part, const Hyper& values) {
    const std::int64_t column = part.document_column.empty() ? 0 : values.integer(part.document_column), columns = options.input;
    if (column > 0) markers.insert(column);
    const std::string given = part.id + ": " + part.document_column + " = " + std::to_string(column) + ", ";
    const ErrorPlace where{
        .model = part.id, .parameter = part.document_column, .value = std::to_string(column), .range = "0.." + std::to_string(columns)};
    if (column > columns)
      throw Error(given + "and the input has " + std::to_string(columns) + (columns == 1 ? " column" : " columns") +
                      ": choose the one that marks where documents begin, or 0 for none.",
                  where);
    if (columns > 0 && std::ssize(markers) == columns)
      throw Error(given + "and that leaves no column to read: give the input another one, or choose 0 for none.", where);
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
  if (options.head) {
    const Hyper& top = in_stack_ ? hyper_of_stack(architecture, hyper, architecture.stack.size() - 1) : hyper;
    const std::string& how = top.has("read_out") ? top.choice("read_out") : std::string("linear");
    if (how == "tied") {
      const auto embedding = std::ranges::find(parameters_, in_stack_ ? "encoder0/weight" : "encoder/weight", &ParameterVar::name);
      const ErrorPlace where{.model = architecture.id, .parameter = "read_out", .value = "tied", .range = "linear, no-bias"};
      if (embedding == parameters_.end())
        throw Error(architecture.id +
                        ": read_out = tied is the encoder's matrix transposed, and there is no encoder, for the input is as wide as the "
                        "model: choose read_out=linear, or another width.",
                    where);
      if (embedding->var.shape() != Shape{x.dim(-1), options.head})
        throw Error(architecture.id + ": read_out = tied is the encoder's matrix transposed, and its shape " +
                        to_string(embedding->var.shape()) + " is not that for " + std::to_string(options.head) + " outputs of " +
                        std::to_string(x.dim(-1)) + " channels: choose read_out=linear.",
                    where);
      x = matmul(x, embedding->var);
    } else {
      x = add_dense(hyper, "head", x, options.head, "Linear head from the model's output to the target", how != "no-bias");
    }
    if (const double cap = top.has("soft_cap") ? top.real("soft_cap") : 0.0; cap > 0.0) x = tanh(x * (1.0 / cap)) * cap;
  }
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
  LayerOf layer(*this, hyper, prefix, -1);
  const std::int64_t width = x.dim(-1);
  const double bound = 1.0 / std::sqrt(static_cast<double>(width));
  const Var weight =
      layer.parameter("weight", {out, width}, init::uniform(-bound, bound), role + ": y = W x + b; starts uniform in ±1/√in.");
  const Var bias = with_bias ? layer.parameter("bias", {out}, init::uniform(-bound, bound), role + "'s bias.") : Var{};
  return linear(x, weight, bias);
}

void Network::draw_times(double gain, ParameterVar& parameter, InputWeight::Part part, std::int64_t features) {
  using Part = InputWeight::Part;
  const Shape& shape = parameter.var.shape();
  const std::int64_t columns = shape.back(), all = count(shape);
  const bool by_column = part == Part::first_columns || part == Part::last_columns,
             by_row = part == Part::first_rows || part == Part::last_rows;
  const std::int64_t own = by_column ? features : columns, from = part == Part::last_columns ? columns - features : 0;
  const std::int64_t begin = part == Part::last_rows ? all - features * columns : 0,
                     end = part == Part::first_rows ? features * columns : all;
  RECLAB_DEMAND(own <= columns && from >= 0 && begin >= 0 && end <= all);
  parameter.init = [init = std::move(parameter.init), gain, columns, own, from, begin, end](InitContext& c) {
    init(c);
    for (std::int64_t at = begin; at < end; at += columns)
      for (std::int64_t i = from; i < from + own; ++i) c.values[static_cast<std::size_t>(at + i)] *= gain;
  };
  if (parameter.text.ends_with('.')) parameter.text.pop_back();
  parameter.text += by_column ? ", the columns of the input times input_gain."
                    : by_row  ? ", the rows of the input times input_gain."
                              : ", times input_gain.";
}

void Network::draw_times(double gain, const Architecture& architecture, const std::string& prefix, std::int64_t features) {
  const auto find = [&](const std::string& name) { return std::ranges::find(parameters_, prefix + "/" + name, &ParameterVar::name); };
  for (const InputWeight& weight : architecture.input_weights)
    if (const auto found = find(weight.name);
        found != parameters_.end() && (weight.unless.empty() || find(weight.unless) == parameters_.end()))
      draw_times(gain, *found, weight.part, features);
}

Var Network::add_stack(const Architecture& architecture, const Hyper& hyper, const std::string& part, Var x) {
  const std::int64_t wanted = architecture.input_width ? architecture.input_width(hyper) : 0;
  if (hyper.has("input_scale") && hyper.real("input_scale") != 1.0) x = x * hyper.real("input_scale");
  const double gain = hyper.has("input_gain") ? hyper.real("input_gain") : 1.0;
  const bool with_bias = !hyper.has("encoder_bias") || hyper.flag("encoder_bias"), encoded = wanted && wanted != x.dim(-1);
  if (encoded) {
    const std::int64_t features = x.dim(-1);
    x = add_dense(hyper, "encoder" + part, x, wanted, "Linear encoder of the input to the model's width", with_bias);
    if (gain != 1.0)
      draw_times(gain, *std::ranges::find(parameters_, "encoder" + part + "/weight", &ParameterVar::name), InputWeight::Part::all,
                 features);
    if (hyper.has("scale_embedding") && hyper.flag("scale_embedding")) x = x * std::sqrt(static_cast<double>(wanted));
  }
  const std::string direction = hyper.has("direction") ? hyper.choice("direction") : "forward";
  const std::int64_t depth = hyper.has("layers") && !architecture.body ? hyper.integer("layers") : 1;
  // Both directions: each layer of one reads the layer below of its own, or, by layer, both outputs below.
  const bool joint = architecture.shares_directions && architecture.shares_directions(hyper);
  if (joint && direction != "forward")
    throw Error(
        architecture.id + ": each layer runs in both directions as it is set, and direction = " + direction + ": choose direction=forward.",
        {.model = architecture.id, .parameter = "direction", .value = direction, .range = "forward"});
  const bool by_layer = joint || direction == "both_by_layer", both = by_layer || direction == "both";
  const std::int64_t together = by_layer ? 1 : depth;
  const auto base = static_cast<int>(layers_.size());
  for (std::int64_t from = 0; from < depth; from += together) {
    if (from && wanted && wanted != x.dim(-1))
      x = add_dense(hyper, "encoder" + part + "_" + std::to_string(from), x, wanted,
                    "Linear map of both outputs below to the model's width", with_bias);
    std::vector<Var> outputs;
    for (const bool backward : {false, true})
      if (both || (direction == "backward") == backward) {
        const std::size_t lowest = layers_.size();
        outputs.push_back(add_direction(architecture, hyper, part + (backward && both ? "_backward" : ""), backward, from, from + together,
                                        base + (backward && both && !joint ? static_cast<int>(together) : 0), x, joint));
        // Two joint layers have one set of parameters.
        if (gain != 1.0 && !encoded && from == 0 && !architecture.body && !(joint && backward))
          draw_times(gain, *layers_[lowest].architecture, std::to_string(lowest), x.dim(-1));
      }
    if (joint) {
      const int pair = static_cast<int>(layers_.size()) - 2;
      LayerOf layer(*this, hyper, std::to_string(pair), pair, static_cast<int>(from), base, true);
      if (architecture.combine_directions) outputs = {architecture.combine_directions(layer, x, outputs[0], outputs[1])};
      if (architecture.final_layer && from + 1 == depth) {
        LayerOf last(*this, hyper, "final" + part, -1);
        outputs = {architecture.final_layer(last, outputs.size() == 1 ? outputs[0] : concat(outputs, -1))};
      }
    }
    x = outputs.size() == 1 ? outputs[0] : concat(outputs, -1);
  }
  return x;
}

Var Network::add_direction(const Architecture& architecture, const Hyper& hyper, const std::string& suffix, bool backward,
                           std::int64_t from, std::int64_t to, int first, Var x, bool joint) {
  const std::size_t states = states_.size(), gates = gates_.size(), pasts = histories_.size();
  if (backward) x = reversed(x);
  if (architecture.body) {
    LayerGraphOf body(*this, architecture, hyper, backward);
    x = architecture.body(body, x);
  }
  for (std::int64_t i = from; i < to && !architecture.body; ++i) {
    const auto number = static_cast<int>(layers_.size());
    LayerKind kind = architecture.kind ? architecture.kind(hyper, i) : LayerKind{&architecture, hyper};
    if (!kind.architecture) kind.architecture = &architecture;
    const auto same = [&](const LayerInfo& other) { return other.architecture == kind.architecture && other.reversed == backward; };
    const bool lowest = architecture.kind ? std::none_of(layers_.begin() + first, layers_.end(), same) : i == 0;
    layers_.push_back({kind.architecture, in_stack_ || kind.architecture != &architecture ? kind.architecture->id : "", backward, lowest});
    if (backward) layers_.back().name += layers_.back().name.empty() ? "backward" : " backward";
    LayerOf layer(*this, kind.hyper, std::to_string(joint && backward ? number - 1 : number), number, static_cast<int>(i), first, joint);
    x = kind.architecture->layer(layer, x);
  }
  if (architecture.final_layer && !joint && (architecture.body || to == (hyper.has("layers") ? hyper.integer("layers") : 1))) {
    LayerOf layer(*this, hyper, "final" + suffix, -1);
    x = architecture.final_layer(layer, x);
  }
  if (!backward) return x;
  turn(states, gates);
  // The window of such a layer holds later steps, not a history.
  histories_.erase(histories_.begin() + static_cast<std::ptrdiff_t>(pasts), histories_.end());
  return reversed(x);
}

void Network::turn(std::size_t states, std::size_t gates) {
  // The first step depends on the last one, so the sequence cannot be run by segments.
  needs_one_segment_ = true;
  const std::string way = " This layer runs from the end of the sequence to its start.";
  for (std::size_t i = states; i < states_.size(); ++i) {
    states_[i].reversed = true;
    states_[i].text += way;
  }
  for (std::size_t i = gates; i < gates_.size(); ++i) {
    gates_[i].var = reversed(gates_[i].var);
    gates_[i].text += way;
  }
}

std::string Network::spectrum(int layer) const {
  const LayerInfo& info = layers_[static_cast<std::size_t>(layer)];
  if (std::ranges::none_of(states_, [&](const StateVar& state) { return state.layer == layer; })) return "none: this layer has no state";
  const std::string of =
      info.architecture->spectrum + (info.stride > 1 && !info.architecture->spectrum.starts_with("none")
                                         ? ", a step of which is " + std::to_string(info.stride) + " steps of the sequence"
                                         : "");
  // With some settings an architecture that has a transition keeps all steps instead.
  return memories(layer).empty() && !of.starts_with("none")
             ? "none: with these settings a step reads all stored steps at once, and no matrix takes one state to the next"
             : of;
}

const Flow* Network::flow(int layer) const {
  const auto found = flows_.find(layer);
  return found == flows_.end() || memories(layer).empty() ? nullptr : &found->second;
}

const RecurrentMatrix* Network::recurrent_matrix(int layer) const {
  const auto found = matrices_.find(layer);
  return found == matrices_.end() || memories(layer).empty() ? nullptr : &found->second;
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

Parameters Network::undrawn() const {
  Parameters made;
  for (const auto& parameter : parameters_) made.entries().push_back({parameter.name, parameter.text, parameter.var.shape(), {}});
  return made;
}

Parameters Network::initialise(std::uint64_t seed) const {
  const Rng root(seed);
  Parameters made = undrawn();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& parameter = parameters_[i];
    auto& entry = made.entries()[i];
    entry.values = zeros(count(entry.shape));
    Rng rng = root.split(parameter.name);
    const std::string prefix = parameter.name.substr(0, parameter.name.find('/') + 1);
    InitContext context{rng, entry.shape, entry.values, [&](std::string_view other) -> std::span<const double> {
                          const auto* found = made.find(prefix + std::string(other));
                          RECLAB_DEMAND(found);
                          return found->values;
                        }};
    parameter.init(context);
  }
  return made;
}

bool Network::knows_time() const {
  return std::ranges::any_of(layers_, [](const LayerInfo& layer) { return layer.architecture->knows_time; });
}

std::vector<Form> Network::forms() const {
  std::vector<Form> forms;
  for (const Form form : all_forms)
    if (offered_ >> static_cast<unsigned>(form) & 1u) forms.push_back(form);
  return forms;
}

}  // namespace reclab
