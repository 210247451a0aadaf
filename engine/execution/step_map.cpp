// SPDX-License-Identifier: GPL-3.0-or-later
#include "execution/step_map.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "array/demand.h"
#include "array/error.h"
#include "array/host.h"
#include "trace/kinds.h"

namespace reclab {

StepMap::StepMap(const Model& model, std::int64_t inputs, std::int64_t outputs, Of of)
    : model_(model),
      of_(of),
      backend_(model.backend()),
      network_(model.architecture(), model.hyper(), {.input = inputs, .head = outputs, .real = model.real()}) {
  const std::string& id = model.architecture().id;
  for (const auto& layer : network_.layers())
    if (layer.reversed && of == Of::model)
      throw Error(id + " has a layer that runs from the end of the sequence to its start, so it has no step of its own.", {.model = id});
  std::size_t entries = 0;
  for (const auto& state : network_.states()) {
    const std::string name = key_of(Kind::state, state.layer, state.name);
    const bool grows = state.growing || !state.final_state || doubles_of(state.final_state) != doubles_of(state.initial);
    if (grows && of == Of::model)
      throw Error(name + " of " + id + " grows with the sequence: choose a model whose state stays as large as it is.",
                  {.place = name, .model = id});
    parts_.push_back({name, entries, grows ? 0 : doubles_of(state.initial)});
    entries += parts_.back().entries;
  }
  for (std::vector<double>* of_state : {&next_, &state_adjoint_, &next_move_}) of_state->resize(entries);
  for (std::vector<double>* of_output : {&output_, &output_move_}) of_output->resize(doubles_of(network_.output()));
  input_adjoint_.resize(static_cast<std::size_t>(inputs));
  std::size_t weights = 0;
  for (const Model::Weight& weight : model.weights()) weights += static_cast<std::size_t>(weight.entries());
  weight_adjoint_.resize(weights);
  for (std::vector<DeviceArray>* of_states : {&state_, &next_adjoint_, &state_move_}) of_states->resize(parts_.size());
  Graph& graph = network_.graph();
  graph.allocate(backend_, true);
  RECLAB_DEMAND(model.weights().size() == network_.parameters().size() && "a head of as many outputs as the model has");
  for (std::size_t i = 0; i < model.weights().size(); ++i) graph.bind(network_.parameters()[i].var, model.weights()[i].values.data());
}

std::size_t StepMap::doubles_of(Var var) { return static_cast<std::size_t>(count(var.shape())) * (is_complex(var.dtype()) ? 2 : 1); }

std::span<const double> StepMap::part(std::span<const double> state, std::size_t i) const {
  return state.subspan(parts_[i].first, parts_[i].entries);
}

std::vector<double> StepMap::start() const {
  std::vector<double> state;
  for (std::size_t i = 0; i < parts_.size(); ++i) state.insert(state.end(), parts_[i].entries, network_.states()[i].start);
  return state;
}

void StepMap::upload(DeviceArray& to, DType type, std::span<const double> values) {
  const auto bytes = narrowed(real_of(type), values);
  backend_.upload(to.resize(backend_, real_of(type), std::ssize(values)), bytes.data(), bytes.size());
}

void StepMap::download(const void* from, Var like, int exponent, std::span<double> to) const {
  if (!from) {
    std::ranges::fill(to, 0.0);
    return;
  }
  const auto values = to_double(backend_, real_of(like.dtype()), from, std::ssize(to));
  std::ranges::transform(values, to.begin(), [exponent](double x) { return exponent ? std::ldexp(x, exponent) : x; });
}

std::vector<double> StepMap::value(Var var) const {
  std::vector<double> values(doubles_of(var));
  download(network_.graph().value(var), var, 0, values);
  return values;
}

void StepMap::evaluate(std::span<const double> state, std::span<const double> input) {
  RECLAB_DEMAND(state.size() == states() && input.size() == inputs());
  at_state_.assign(state.begin(), state.end());
  at_input_.assign(input.begin(), input.end());
  Graph& graph = network_.graph();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& own = network_.states()[i];
    upload(state_[i], own.initial.dtype(), part(state, i));
    graph.bind(own.initial, state_[i].data());
    if (own.unscaled_initial) graph.bind(own.unscaled_initial, state_[i].data());
  }
  upload(input_, model_.real(), input);
  graph.bind(network_.input(), input_.data());
  graph.forward({}, Graph::Part::all, true);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].entries == 0) continue;
    const Var end = network_.states()[i].final_state;
    download(graph.value(end), end, 0, std::span(next_).subspan(parts_[i].first, parts_[i].entries));
  }
  download(graph.value(network_.output()), network_.output(), 0, output_);
}

void StepMap::pull_back(std::span<const double> next_adjoint, std::span<const double> output_adjoint) {
  RECLAB_DEMAND(of_ == Of::model);
  Graph& graph = network_.graph();
  graph.clear_gradients();
  if (!output_adjoint.empty()) {
    upload(output_adjoint_, model_.real(), output_adjoint);
    backend_.add_scaled(model_.real(), std::ssize(output_adjoint), 0, output_adjoint_.data(), graph.gradient(network_.output()), true);
  }
  std::map<Memory*, std::vector<const void*>> by_memory;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& state = network_.states()[i];
    const void* adjoint = nullptr;
    if (!next_adjoint.empty() && parts_[i].entries > 0) {
      upload(next_adjoint_[i], state.initial.dtype(), part(next_adjoint, i));
      adjoint = next_adjoint_[i].data();
    }
    if (state.memory)
      by_memory[state.memory].push_back(adjoint);
    else if (adjoint && graph.gradient(state.final_state))
      backend_.add_scaled(state.final_state.dtype(), count(state.final_state.shape()), 0, adjoint, graph.gradient(state.final_state), true);
  }
  for (auto& [memory, slots] : by_memory) memory->set_final_adjoint(slots, 0);
  graph.backward();
  std::vector<double> plain;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& state = network_.states()[i];
    const auto to = std::span(state_adjoint_).subspan(parts_[i].first, parts_[i].entries);
    download(graph.gradient(state.initial), state.initial, state.memory ? state.memory->exponent() : 0, to);
    if (!state.unscaled_initial || !graph.gradient(state.unscaled_initial)) continue;
    plain.resize(to.size());
    download(graph.gradient(state.unscaled_initial), state.initial, 0, plain);
    std::ranges::transform(to, plain, to.begin(), std::plus<>());
  }
  download(graph.gradient(network_.input()), network_.input(), 0, input_adjoint_);
  std::size_t at = 0;
  for (const auto& parameter : network_.parameters()) {
    const std::size_t entries = doubles_of(parameter.var);
    download(graph.gradient(parameter.var), parameter.var, 0, std::span(weight_adjoint_).subspan(at, entries));
    at += entries;
  }
}

void StepMap::push_forward(std::span<const double> state_move, std::span<const double> input_move) {
  RECLAB_DEMAND(of_ == Of::model && (!state_move.empty() || !input_move.empty()));
  Graph& graph = network_.graph();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& state = network_.states()[i];
    const bool moves = !state_move.empty() && parts_[i].entries > 0 && !state.position && !state.clock;
    if (moves) upload(state_move_[i], state.initial.dtype(), part(state_move, i));
    const void* move = moves ? state_move_[i].data() : nullptr;
    graph.bind_tangent(state.initial, move);
    if (state.unscaled_initial) graph.bind_tangent(state.unscaled_initial, move);
  }
  if (!input_move.empty()) upload(input_move_, model_.real(), input_move);
  graph.bind_tangent(network_.input(), input_move.empty() ? nullptr : input_move_.data());
  graph.push_tangents();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto& state = network_.states()[i];
    const Var end = state.final_state;
    const bool passes = state.memory || graph.gradient(end);
    download(passes ? graph.tangent(end) : nullptr, end, 0, std::span(next_move_).subspan(parts_[i].first, parts_[i].entries));
  }
  download(graph.tangent(network_.output()), network_.output(), 0, output_move_);
}

}  // namespace reclab
