// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/network_layer.h"

#include <algorithm>

#include "array/demand.h"
#include "recurrence/chunks.h"
#include "recurrence/pooling/pooling.h"

namespace reclab {

std::string Network::LayerOf::held_text(const std::string& text) const {
  if (rate_.stride == 1) return text;
  return text + " A step of this layer is " + std::to_string(rate_.stride) +
         " steps of the sequence: in between the row of the last one is held.";
}

Var Network::LayerOf::gate(const std::string& name, Var value, double low, double high, const std::string& text) {
  if (rate_.stride == 1) {
    network_.gates_.push_back({index_, name, text, low, high, value});
    return value;
  }
  Shape row = value.shape();
  row[0] = 1;
  const Var before = graph().leaf(LeafKind::variable, row, value.dtype());
  add_carried_state({.name = name + "_before",
                     .text = "The gate " + name + " at the last step of this layer, 0 before the first.",
                     .shape = Shape(row.begin() + 2, row.end()),
                     .initial = before,
                     .final_state = last_row(rate_, before, value)});
  network_.gates_.push_back({index_, name, held_text(text), low, high, held_rows(rate_, before, value, turned_)});
  return value;
}

void Network::LayerOf::declare(const std::vector<StateSpec>& specs, const MemoryVars& made) {
  MemoryVars vars = made;
  std::vector<Var> plain(specs.size());
  if (rate_.stride > 1) {
    for (std::size_t i = 0; i < specs.size(); ++i)
      plain[i] = graph().leaf(LeafKind::variable, made.initial[i].shape(), made.initial[i].dtype());
    vars = strided_memory(rate_, made, plain, records(), turned_);
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    network_.states_.push_back({index_, specs[i].name, held_text(specs[i].text), specs[i].shape, vars.memory, static_cast<int>(i),
                                vars.initial[i], vars.trajectories[i], vars.finals[i], false, specs[i].auxiliary, specs[i].start});
    network_.states_.back().unscaled_initial = plain[i];
  }
  for (std::size_t i = 0; i < specs.size(); ++i) network_.states_[network_.states_.size() - specs.size() + i].pairs = specs[i].pairs;
}

void Network::LayerOf::add_carried_state(Buffer buffer) {
  network_.states_.push_back({index_, std::move(buffer.name), std::move(buffer.text), std::move(buffer.shape), nullptr, 0, buffer.initial,
                              buffer.trajectory, buffer.final_state, buffer.growing});
  network_.states_.back().recorded_shape = std::move(buffer.recorded_shape);
  network_.states_.back().period = buffer.period;
}

void Network::LayerOf::mixes(Mixing mixing) {
  // The rows of a slower layer are none of the sequence.
  if (index_ < 0 || rate_.stride != 1 || !forms_states(form())) return;
  const auto taken = [&](const std::string& name) {
    return std::ranges::any_of(network_.mixings_,
                               [&](const MixingVar& present) { return present.layer == index_ && present.mixing.name == name; });
  };
  const std::string name = mixing.name;
  for (int number = 2; taken(mixing.name); ++number) mixing.name = name + "_" + std::to_string(number);
  network_.mixings_.push_back({index_, network_.layers_[static_cast<std::size_t>(index_)].reversed, std::move(mixing)});
}

Var Network::LayerOf::previous_state(Var trajectory) {
  RECLAB_DEMAND(rate_.stride == 1);
  for (auto& state : network_.states_) {
    if (state.trajectory.id != trajectory.id) continue;
    if (!state.unscaled_initial) state.unscaled_initial = graph().leaf(LeafKind::variable, state.initial.shape(), state.initial.dtype());
    return chunks::previous_state(state.unscaled_initial, trajectory);
  }
  RECLAB_DEMAND(!"the trajectory of no memory");
  return {};
}

Var Network::LayerOf::position() {
  if (!network_.position_) {
    const std::int64_t T = steps(), B = batch();
    const Var initial = graph().leaf(LeafKind::variable, {1, B, 1}, graph().real());
    std::vector<double> numbers;
    for (std::int64_t t = 0; t < T; ++t) numbers.push_back(static_cast<double>(t));
    const Var start = detach(initial);
    network_.position_ = start + graph().constant({T, 1, 1}, std::move(numbers));
    network_.states_.push_back(
        {std::max(index_, 0), "position", "How many steps have passed.", {1}, nullptr, 0, initial, Var{}, start + static_cast<double>(T)});
    network_.states_.back().position = true;
  }
  return network_.position_;
}

Var Network::LayerOf::elapsed() {
  RECLAB_DEMAND(index_ >= 0 && network_.layers_[static_cast<std::size_t>(index_)].architecture->knows_time);
  const double unit = hyper.real("time_unit"), first = hyper.real("first_elapsed");
  if (!network_.options_.timed && unit == 0.0 && first == 1.0) return {};
  const bool is_reversed = network_.layers_[static_cast<std::size_t>(index_)].reversed;
  for (const ElapsedVar& present : network_.elapsed_)
    if (present.unit == unit && present.reversed == is_reversed && present.first == first) return present.var;
  const std::int64_t T = steps(), B = batch();
  const Var var = graph().constant({T, B, 1}, std::vector<double>(static_cast<std::size_t>(T * B), 1.0));
  if (network_.elapsed_.empty()) {
    const auto leaf = [&] { return graph().leaf(LeafKind::constant, {1, B, 2}, DType::f64); };
    const Var before = leaf(), after = leaf();
    network_.states_.push_back({index_,
                                "clock",
                                "The time of the last step, and the unit of elapsed times: the median step, or time_unit.",
                                {2},
                                nullptr,
                                0,
                                before,
                                Var{},
                                after});
    network_.states_.back().clock = true;
  }
  network_.elapsed_.push_back({var, unit, is_reversed, first});
  return var;
}

Var Network::LayerOf::document_starts(std::int64_t column) {
  const Var marks = detach(sign(relu(slice(network_.input_, -1, column - 1, column))));
  if (!network_.layers_[static_cast<std::size_t>(index_)].reversed) return marks;
  const Var reversed_marks = reversed(marks), none = affine(slice(reversed_marks, 0, 0, 1), 0.0, 0.0);
  if (steps() == 1) return none;
  const Var parts[] = {none, slice(reversed_marks, 0, 0, steps() - 1)};
  return concat(parts, 0);
}

}  // namespace reclab
