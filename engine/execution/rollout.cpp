// SPDX-License-Identifier: GPL-3.0-or-later
#include "execution/rollout.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "array/demand.h"
#include "array/error.h"
#include "array/stop.h"
#include "execution/segment_length.h"

namespace reclab {
namespace {

/// The first of `steps` rows that holds a value which is not finite, or -1.
std::int64_t first_bad_row(Backend& backend, DType type, const void* data, std::int64_t steps, std::int64_t row) {
  if (backend.exponent(type, steps * row, data) != infinite_exponent) return -1;
  const std::int64_t parts = is_complex(type) ? 2 * row : row;
  std::vector<char> copy;
  if (backend.device() != Device::cpu) {
    copy.resize(static_cast<std::size_t>(steps * row) * bytes_of(type));
    backend.download(copy.data(), data, copy.size());
    data = copy.data();
  }
  const auto look = [&](const auto* x) -> std::int64_t {
    for (std::int64_t t = 0; t < steps; ++t) {
      auto sum = x[0] * 0;
      for (std::int64_t i = 0; i < parts; ++i) sum += x[t * parts + i] * 0;
      if (!(sum == 0)) return t;
    }
    return -1;
  };
  return real_of(type) == DType::f32 ? look(static_cast<const float*>(data)) : look(static_cast<const double*>(data));
}

}  // namespace

std::string sentence(const Divergence& bad) {
  const std::string became = bad.array + " became non-finite ";
  if (bad.other < 0 || bad.other == bad.step) return became + "at step " + std::to_string(bad.step);
  return became + "between steps " + std::to_string(std::min(bad.step, bad.other)) + " and " +
         std::to_string(std::max(bad.step, bad.other));
}

Rollout::Rollout(const Model& model, const Batch& batch, const Options& options)
    : model_(model),
      batch_(batch),
      backend_(model.backend()),
      real_(model.real()),
      length_(batch.length()),
      timing_only_(options.timing_only),
      on_device_(options.timing_only || options.gradients == GradientsOn::device),
      forward_only_(options.forward_only),
      elapsed_(model.backend()),
      weights_seen_(model.changes()) {
  NetworkOptions build;
  build.input = batch.width();
  build.head = batch.outputs();
  build.form = options.form;
  build.real = real_;
  build.record = options.record || batch.loss_form().gates != GatePenalty::none;
  build.ode = options.ode;
  build.input_gradient = options.gradients != GradientsOn::device;
  build.cached_steps = options.cached_steps;
  build.batch = batch.size();
  build.timed = ElapsedTimes::uneven(batch);
  const std::int64_t length = length_;
  build.steps = sampled_steps(length);
  const auto built = [&] { return std::make_shared<Network>(model.architecture(), model.hyper(), build); };
  const bool given = options.network && !options.network->graph().is_allocated() && options.network->options() == build;
  std::shared_ptr<Network> first = given ? options.network : built();
  segment_ = options.segment ? options.segment : segment_length(model, *first, length);
  segment_ = std::min(segment_, length);
  segments_ = (length + segment_ - 1) / segment_;
  if (segment_ != build.steps) {
    build.steps = segment_;
    first = built();
  }
  full_ = std::move(first);
  require_equal_lengths(batch);
  const auto allocate = [&](Network& network, LossNode& loss, Var& gates) {
    const LossForm form = batch.loss_form();
    if (!timing_only_) loss = reclab::add_loss(network.output(), form.term, form.has_target);
    if (!timing_only_ && form.gates != GatePenalty::none) gates = add_gate_penalty(network, form.gates);
    network.graph().allocate(backend_, true);
  };
  allocate(*full_, full_loss_, full_gates_);
  if (length % segment_) {
    build.steps = length % segment_;
    tail_ = built();
    allocate(*tail_, tail_loss_, tail_gates_);
  }
  RECLAB_DEMAND(model.weights().size() == full_->parameters().size());
  losses_.assign(static_cast<std::size_t>(batch.size()), 0.0);
  upload_input();
  checkpoints_.emplace_back(full_->states().size());
  for (std::size_t i = 0; i < full_->states().size(); ++i) {
    const Var initial = full_->states()[i].initial;
    if (count(initial.shape())) checkpoints_[0][i].resize(backend_, initial.dtype(), count(initial.shape()));
  }
  reset_states();
}

void Rollout::require_equal_lengths(const Batch& batch) const {
  const auto& layers = full_->layers();
  if (batch.shortest() == length_ || std::ranges::none_of(layers, [](const Network::LayerInfo& layer) { return layer.reversed; })) return;
  throw Error(model_.architecture().id + " has a layer that runs from the end of the sequence to its start, so sequences of " +
                  std::to_string(batch.shortest()) + " and of " + std::to_string(length_) +
                  " steps cannot be run side by side: give sequences of one length.",
              {.model = model_.architecture().id, .value = std::to_string(batch.shortest()), .range = std::to_string(length_)});
}

void Rollout::upload_input() {
  const std::int64_t length = length_, width = batch_.width(), size = batch_.size();
  const Sequence& first = *batch_.examples()[0].sequence;
  std::vector<double> beside;
  const std::vector<double>* input = &first.input;
  if (size > 1 || first.length < length) {
    beside = zeros(length * size * width);
    for (std::int64_t b = 0; b < size; ++b) {
      const Sequence& sequence = *batch_.examples()[static_cast<std::size_t>(b)].sequence;
      for (std::int64_t t = 0; t < sequence.length; ++t)
        std::copy_n(sequence.input.begin() + t * width, width, beside.begin() + (t * size + b) * width);
    }
    input = &beside;
  }
  const auto values = narrowed(real_, *input);
  backend_.upload(input_.resize(backend_, real_, std::ssize(*input)), values.data(), values.size());
  elapsed_.upload(*full_, batch_, length_, segment_);
  losses_of_segment_ = -1;
}

/// Weights and targets of the losses of a segment; the steps after the end of a shorter sequence have the weight 0.
void Rollout::upload_losses(const Network& network, std::int64_t index) {
  const std::int64_t size = batch_.size(), first = index * segment_, steps = network.options().steps;
  const std::int64_t width = batch_.loss_form().target_width(network.output().dim(-1));
  std::vector<double> weights = zeros(steps * size), targets = zeros(steps * size * width), own_weights, own_targets, of_gates;
  const bool penalised = static_cast<bool>(gates_of(network));
  if (penalised) of_gates = zeros(steps * size);
  for (std::int64_t b = 0; b < size; ++b) {
    const Example& example = batch_.examples()[static_cast<std::size_t>(b)];
    const std::int64_t own = std::clamp<std::int64_t>(example.sequence->length - first, 0, steps),
                       own_width = example.loss->form().target_width(width);
    own_weights.assign(static_cast<std::size_t>(own), 0.0);
    own_targets.assign(static_cast<std::size_t>(own * own_width), 0.0);
    if (own) example.loss->rows(first, own_weights, own_targets);
    for (std::int64_t t = 0; t < own; ++t) {
      weights[static_cast<std::size_t>(t * size + b)] = own_weights[static_cast<std::size_t>(t)];
      if (penalised) of_gates[static_cast<std::size_t>(t * size + b)] = example.loss->gate_weight(first + t);
      std::copy_n(own_targets.begin() + t * own_width, own_width, targets.begin() + (t * size + b) * width);
    }
  }
  const auto upload = [&](const std::vector<double>& values, DeviceArray& to) {
    backend_.upload(to.resize(backend_, DType::f64, std::ssize(values)), values.data(), values.size() * sizeof(double));
  };
  upload(weights, loss_weights_);
  if (width) upload(targets, targets_);
  if (penalised) {
    const auto values = narrowed(real_, of_gates);
    backend_.upload(gate_weights_.resize(backend_, real_, std::ssize(of_gates)), values.data(), values.size());
  }
  losses_of_segment_ = index;
}

void Rollout::set_batch(const Batch& batch) {
  const auto refuse = [](const std::string& what, std::int64_t given, std::int64_t made) {
    throw Error("A batch with " + what + " " + std::to_string(given) + " was given to a rollout made for " + std::to_string(made) +
                    ": build another rollout of the model.",
                {.value = std::to_string(given), .range = std::to_string(made)});
  };
  if (batch.size() != batch_.size()) refuse("a number of sequences of", batch.size(), batch_.size());
  if (batch.width() != batch_.width()) refuse("a number of columns of", batch.width(), batch_.width());
  if (batch.outputs() != batch_.outputs()) refuse("a number of outputs of", batch.outputs(), batch_.outputs());
  if (batch.length() > length_) refuse("a length of", batch.length(), length_);
  if (!timing_only_ && batch.loss_form() != batch_.loss_form())
    throw Error("A batch with a loss of another kind was given to a rollout: build another rollout of the model.", {});
  require_equal_lengths(batch);
  if (full_->knows_time() && !full_->options().timed && ElapsedTimes::uneven(batch))
    throw Error("A batch with unequal steps of time was given to a rollout made for equal ones: build another rollout of the model.", {});
  batch_ = batch;
  evaluated_segment_ = -1;
  upload_input();
}

Cost Rollout::cost() const {
  Cost cost = full_->graph().cost();
  const auto wholes = static_cast<double>(segments_ - (tail_ ? 1 : 0));
  cost.flops *= wholes;
  cost.bytes *= wholes;
  if (tail_) {
    const Cost rest = tail_->graph().cost();
    cost.flops += rest.flops;
    cost.bytes += rest.bytes;
  }
  return cost;
}

std::int64_t Rollout::bytes() const {
  std::int64_t total = full_->graph().planned_bytes(true) + (tail_ ? tail_->graph().planned_bytes(true) : 0);
  total += static_cast<std::int64_t>(input_.bytes() + targets_.bytes() + loss_weights_.bytes() + gate_weights_.bytes()) + model_.bytes() +
           elapsed_.bytes();
  for (const auto& checkpoint : checkpoints_)
    for (const auto& state : checkpoint) total += static_cast<std::int64_t>(state.bytes());
  for (const auto* arrays : {&carried_, &totals_})
    for (const auto& array : *arrays) total += static_cast<std::int64_t>(array.bytes());
  return total;
}

void Rollout::reset_states() {
  for (std::size_t i = 0; i < full_->states().size(); ++i) {
    const DeviceArray& first = checkpoints_[0][i];
    const double start = full_->states()[i].start;
    if (!first) continue;
    if (start == 0.0) {
      backend_.zero(first.data(), first.bytes());
      continue;
    }
    const auto values = narrowed(real_, std::vector<double>(first.bytes() / bytes_of(real_), start));
    backend_.upload(first.data(), values.data(), values.size());
  }
  set_clocks({});
}

/// Sets the clocks of the states before the first step.
void Rollout::set_clocks(std::span<const double> values) {
  elapsed_.set_clocks(values);
  elapsed_.upload(*full_, batch_, length_, segment_);
  evaluated_segment_ = -1;
}

void Rollout::set_initial(const std::map<std::string, std::vector<std::complex<double>>>& states) {
  for (std::size_t i = 0; i < full_->states().size(); ++i) {
    const auto& state = full_->states()[i];
    const auto found = states.find(state_key(state));
    if (found == states.end()) continue;
    std::vector<double> parts;
    for (const auto& z : found->second) {
      parts.push_back(z.real());
      if (is_complex(state.initial.dtype())) parts.push_back(z.imag());
    }
    if (parts.empty()) continue;
    RECLAB_DEMAND(std::ssize(found->second) == count(state.initial.shape()));
    const DType real = real_of(state.initial.dtype());
    const auto values = narrowed(real, parts);
    if (!all_finite(real, values))
      throw Error("The initial " + state_key(state) + " has an entry that is not finite" +
                      (real_ == DType::f32 ? " in float32" + Remedy{": ", "choose ", {"dtype", "f64"}} + ", or another state."
                                           : Sentence(": choose another state.")),
                  {.place = state_key(state), .parameter = "state"});
    backend_.upload(checkpoints_[0][i].data(), values.data(), values.size());
    if (state.clock) set_clocks(parts);
  }
  evaluated_segment_ = -1;
}

void Rollout::continue_states() {
  RECLAB_DEMAND(last_checkpoint_ == static_cast<std::size_t>(segments_) && "after a forward that went to the end");
  for (const auto& layer : full_->layers())
    if (layer.reversed)
      throw Error(model_.architecture().id +
                      " has a layer that runs from the end of the sequence to its start: what it carries comes from steps that are not "
                      "known yet, so no batch can be continued.",
                  {.model = model_.architecture().id});
  // All are looked at before one is changed.
  const auto& last = checkpoints_[slot(last_checkpoint_)];
  for (std::size_t i = 0; i < full_->states().size(); ++i) {
    const auto& state = full_->states()[i];
    if (last[i].bytes() == checkpoints_[0][i].bytes()) continue;
    if (state.growing)
      throw Error(
          state_key(state) + " of " + model_.architecture().id + " holds " +
              (state.period
                   ? "the steps of an unfinished segment, so a batch cannot be continued in place: give a length that is a multiple of " +
                         std::to_string(state.period) + "."
                   : "every step that has passed, so a batch cannot be continued in place: choose a model whose states stay as large as "
                     "they are."),
          {.place = state_key(state), .model = model_.architecture().id});
    throw Error("The " + std::string(to_string(full_->options().form)) + " form does not make the final " + state_key(state) +
                    ": choose form sequential.",
                {.place = state_key(state), .model = model_.architecture().id});
  }
  for (std::size_t i = 0; i < last.size(); ++i) {
    if (last[i].bytes()) backend_.copy(checkpoints_[0][i].data(), last[i].data(), last[i].bytes());
    if (full_->states()[i].clock) set_clocks(to_double(backend_, DType::f64, last[i].data(), batch_.size() * 2));
  }
  evaluated_segment_ = -1;
}

void Rollout::bind(Network& network, std::int64_t index) {
  const std::size_t row = static_cast<std::size_t>(batch_.size() * batch_.width()) * bytes_of(real_);
  network.graph().bind(network.input(), static_cast<const char*>(input_.data()) + static_cast<std::size_t>(index * segment_) * row);
  if (const LossNode& loss = loss_of(network); loss.operation) {
    if (losses_of_segment_ != index) upload_losses(network, index);
    network.graph().bind(loss.weight, loss_weights_.data());
    if (loss.target) network.graph().bind(loss.target, targets_.data());
  }
  const auto& weights = model_.weights();
  for (std::size_t i = 0; i < weights.size(); ++i) network.graph().bind(network.parameters()[i].var, weights[i].values.data());
  for (std::size_t i = 0; i < network.states().size(); ++i) {
    const auto& state = network.states()[i];
    const void* checkpoint = checkpoints_[slot(static_cast<std::size_t>(index))][i].data();
    network.graph().bind(state.initial, checkpoint);
    if (state.unscaled_initial) network.graph().bind(state.unscaled_initial, checkpoint);
  }
  elapsed_.bind(network, index);
}

Network& Rollout::run_segment(std::int64_t index, std::stop_token stop, bool backward_follows) {
  RECLAB_DEMAND(weights_seen_ == model_.changes() && "the weights were changed since the forward");
  Network& network = index == segments_ - 1 && tail_ ? *tail_ : *full_;
  bind(network, index);
  if (evaluated_segment_ != index) {
    evaluated_segment_ = -1;
    network.graph().forward(stop, Graph::Part::all, backward_follows);
    evaluated_segment_ = index;
  }
  return network;
}

/// The first value of a segment that is not finite.
std::optional<Divergence> Rollout::first_divergence(Network& network, std::int64_t first) const {
  const std::int64_t steps = network.options().steps;
  Divergence bad;
  const auto look = [&](Var var, const std::string& name, bool backward = false) {
    if (!var) return;
    const std::int64_t t = first_bad_row(backend_, var.dtype(), network.graph().value(var), steps, count(var.shape()) / steps);
    if (t < 0) return;
    // A layer that runs backward starts at the latest step, so the steps after a divergence are the ones it computed first.
    const Divergence found{backward ? steps - 1 - t : first + t, name, -1, backward ? 0 : first + t};
    if (bad.step < 0 || found.good < bad.good) bad = found;
  };
  look(network.input(), key_of(Kind::input));
  for (const auto& state : network.states())
    if ((state.memory || state.trajectory) && state.reversed) look(state.trajectory, state_key(state), true);
  for (const auto& gate : network.gates()) look(gate.var, key_of(Kind::gate, gate.layer, gate.name));
  for (const auto& state : network.states())
    if ((state.memory || state.trajectory) && !state.reversed) look(state.trajectory, state_key(state));
  look(network.output(), key_of(Kind::output));
  // Carried states that are not recorded can be checked only at the segment's end.
  for (const auto& state : network.states()) {
    const Var end = state.final_state;
    if (bad.step >= 0 || state.trajectory || !end || count(end.shape()) == 0) continue;
    const std::int64_t rows = state.growing ? end.dim(0) : 1;
    const std::int64_t row = first_bad_row(backend_, end.dtype(), network.graph().value(end), rows, count(end.shape()) / rows);
    if (row >= 0) bad = {first + steps - 1, state_key(state), first, first + steps - 1};
  }
  if (bad.step < 0) return std::nullopt;
  return bad;
}

/// The first outputs of one sequence in a segment, [steps, width], from those of all, [segment, batch, width].
std::vector<double> Rollout::outputs_of(const std::vector<double>& all, std::int64_t b, std::int64_t steps, std::int64_t width) const {
  const std::int64_t size = batch_.size();
  std::vector<double> own(static_cast<std::size_t>(steps * width));
  for (std::int64_t t = 0; t < steps; ++t) std::copy_n(all.begin() + (t * size + b) * width, width, own.begin() + t * width);
  return own;
}

void Rollout::add_losses(Network& network, std::int64_t first) {
  const std::int64_t steps = network.options().steps, width = network.output().dim(-1);
  const auto values = to_double(backend_, DType::f64, network.graph().value(loss_of(network).value), batch_.size());
  double of_segment = 0.0;
  for (std::size_t b = 0; b < losses_.size(); ++b) {
    losses_[b] += values[b];
    of_segment += values[b];
  }
  loss_value_ += of_segment;
  if (const Var gates = gates_of(network)) {
    const std::int64_t rows = steps * batch_.size();
    const auto weights = to_double(backend_, real_, gate_weights_.data(), rows),
               penalties = to_double(backend_, real_, network.graph().value(gates), rows);
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (weights[i] != 0.0) gate_penalty_ += weights[i] * penalties[i];  // rows behind the end of a shorter sequence are nobody's
  }
  const bool looks_for_step = !std::isfinite(loss_value_) && loss_step_ < 0;
  std::vector<std::vector<double>> outputs(losses_.size());  // of the sequences that go on, where they are looked at
  std::vector<double> all;
  for (std::size_t b = 0; b < outputs.size(); ++b) {
    const Example& example = batch_.examples()[b];
    const std::int64_t own = std::clamp<std::int64_t>(example.sequence->length - first, 0, steps);
    if (own == 0 || (!looks_for_step && !example.loss->sees_outputs())) continue;
    if (all.empty()) all = to_double(backend_, real_, network.graph().value(network.output()), steps * batch_.size() * width);
    outputs[b] = outputs_of(all, static_cast<std::int64_t>(b), own, width);
    if (example.loss->sees_outputs()) example.loss->see(first, own, width, outputs[b]);
  }
  double so_far = 0.0;
  for (std::int64_t t = 0; looks_for_step && loss_step_ < 0; ++t) {
    for (std::size_t b = 0; b < outputs.size(); ++b)
      if (const auto at = static_cast<std::size_t>(t * width); at < outputs[b].size())
        so_far +=
            batch_.examples()[b].loss->segment(first + t, 1, width, std::span(outputs[b]).subspan(at, static_cast<std::size_t>(width)), {});
    if (!std::isfinite(so_far) || t == steps - 1) loss_step_ = first + t;
  }
}

/// The states after a segment, where segment `index` begins.
void Rollout::keep_states(const Network& network, std::size_t index) {
  while (checkpoints_.size() <= slot(index)) checkpoints_.emplace_back(network.states().size());
  for (std::size_t i = 0; i < network.states().size(); ++i) {
    const auto& state = network.states()[i];
    if (!state.final_state) continue;
    DeviceArray& kept = checkpoints_[slot(index)][i];
    kept.resize(backend_, state.final_state.dtype(), count(state.final_state.shape()));
    backend_.copy(kept.data(), network.graph().value(state.final_state), kept.bytes());
  }
  last_checkpoint_ = index;
}

std::optional<Divergence> Rollout::forward(const Visit& visit, std::stop_token stop, bool backward_follows) {
  loss_value_ = gate_penalty_ = 0.0;
  std::ranges::fill(losses_, 0.0);
  loss_step_ = -1;
  evaluated_segment_ = -1;
  last_checkpoint_ = 0;
  weights_seen_ = model_.changes();
  for (std::int64_t index = 0; index < segments_; ++index) {
    Network& network = run_segment(index, stop, backward_follows && index == segments_ - 1);
    const std::int64_t first = index * segment_;
    const std::optional<Divergence> bad = timing_only_ ? std::nullopt : first_divergence(network, first);
    if (visit) visit({network, first, network.options().steps});
    if (bad) return bad;
    if (!timing_only_) add_losses(network, first);
    keep_states(network, static_cast<std::size_t>(index) + 1);
  }
  return std::nullopt;
}

std::map<std::string, std::vector<std::complex<double>>> Rollout::final_states() const {
  std::map<std::string, std::vector<std::complex<double>>> states;
  for (std::size_t i = 0; i < full_->states().size(); ++i) {
    const auto& state = full_->states()[i];
    const DeviceArray& last = checkpoints_[slot(last_checkpoint_)][i];
    if (last || state.growing)
      states[state_key(state)] = to_complex(backend_, state.initial.dtype(), last.data(),
                                            static_cast<std::int64_t>(last.bytes() / bytes_of(state.initial.dtype())));
  }
  return states;
}

std::map<std::string, std::vector<std::complex<double>>> Rollout::initial_gradients() const {
  std::map<std::string, std::vector<std::complex<double>>> found;
  for (std::size_t i = 0; i < carried_units_.size(); ++i) {
    if (!carried_units_[i]) continue;
    const auto& state = full_->states()[i];
    auto& values = found[state_key(state)];
    values = to_complex(backend_, state.initial.dtype(), carried_[i].data(), count(state.initial.shape()));
    for (auto& z : values) z = {std::ldexp(z.real(), *carried_units_[i]), std::ldexp(z.imag(), *carried_units_[i])};
  }
  return found;
}

/// The last step of a segment at which a gradient is not finite.
std::optional<Divergence> Rollout::look_back(Network& network, std::int64_t first, int scale) const {
  const Graph& graph = network.graph();
  const std::int64_t steps = network.options().steps;
  Divergence bad;
  const auto found = [&](std::int64_t t, const std::string& name) {
    if (first + t > bad.step) bad = {first + t, name};
  };
  /// In units of 2^power.
  const auto look = [&](Var var, int power, const std::string& name, bool is_reversed = false) {
    if (!var || !graph.gradient(var)) return;
    if (const int largest = backend_.exponent(var.dtype(), count(var.shape()), graph.gradient(var));
        largest != infinite_exponent && largest + std::max(0, power) < std::numeric_limits<double>::max_exponent)
      return;
    const std::int64_t row = count(var.shape()) / steps, parts = is_complex(var.dtype()) ? 2 * row : row;
    const auto values = to_double(backend_, real_of(var.dtype()), graph.gradient(var), steps * parts);
    const double limit = std::ldexp(std::numeric_limits<double>::max(), std::min(0, -power));
    for (std::size_t i = values.size(); i-- > 0;)
      if (!(std::abs(values[i]) <= limit))
        return found(is_reversed ? steps - 1 - static_cast<std::int64_t>(i) / parts : static_cast<std::int64_t>(i) / parts, name);
  };
  for (const auto& state : network.states()) {
    const std::string name = key_of(Kind::gradient, state_key(state));
    if (!state.memory) {
      look(state.trajectory, 0, name, state.reversed);
    } else if (static_cast<std::size_t>(state.slot) < state.memory->log2_norms().size()) {
      const auto& norms = state.memory->log2_norms()[static_cast<std::size_t>(state.slot)];
      for (std::size_t t = norms.size(); t-- > 0;)
        if (std::isnan(norms[t]) || norms[t] == std::numeric_limits<double>::infinity()) {
          found(state.reversed ? steps - 1 - static_cast<std::int64_t>(t) : static_cast<std::int64_t>(t), name);
          break;
        }
    }
  }
  look(network.output(), scale, key_of(Kind::gradient, "output"));
  look(network.input(), scale, key_of(Kind::gradient, "input"));
  if (bad.step >= 0) return bad;
  return std::nullopt;
}

/// The first parameter whose sum is not finite once a segment is added.
std::optional<Divergence> Rollout::look_at_sums(const Network& network, std::int64_t first) const {
  for (std::size_t i = 0; i < network.parameters().size(); ++i) {
    const auto& parameter = network.parameters()[i];
    const auto finite = [&] {
      if (on_device_) return backend_.exponent(real_, count(parameter.var.shape()), totals_[i].data()) != infinite_exponent;
      return std::ranges::all_of(gradients_.at(parameter.name), [](double x) { return std::isfinite(x); });
    };
    if (!finite())
      return Divergence{first + network.options().steps - 1, key_of(Kind::gradient, key_of(Kind::param, parameter.name)), first};
  }
  return std::nullopt;
}

/// to * 2^power += x * 2^scale, in the unit of the larger one.
void Rollout::add_units(Var like, const void* x, int scale, void* to, int& power) const {
  const std::int64_t n = count(like.shape());
  const int own = backend_.exponent(like.dtype(), n, to), more = backend_.exponent(like.dtype(), n, x);
  if (more == no_exponent) return;
  const bool finite = own != infinite_exponent && more != infinite_exponent;
  const int common = !finite ? power : own == no_exponent ? scale : std::max(own + power, more + scale) == more + scale ? scale : power;
  if (own != no_exponent && common != power) backend_.add_scaled(like.dtype(), n, power - common, to, to, false);
  backend_.add_scaled(like.dtype(), n, scale - common, x, to, true);
  power = common;
}

std::optional<Divergence> Rollout::backward(const VisitBackward& visit, std::stop_token stop) {
  RECLAB_DEMAND(!forward_only_);
  constexpr int none = no_exponent;
  std::optional<Divergence> bad;
  gradients_.clear();
  carried_units_.clear();
  if (on_device_) totals_.resize(full_->parameters().size());
  for (std::size_t i = 0; i < full_->parameters().size(); ++i) {
    const auto& parameter = full_->parameters()[i];
    const std::int64_t size = count(parameter.var.shape());
    if (on_device_)
      totals_[i].resize(backend_, real_, size);
    else
      gradients_[parameter.name] = zeros(size);
  }
  for (const auto& total : totals_) backend_.zero(total.data(), total.bytes());
  const std::size_t states = full_->states().size();
  carried_.resize(states);
  std::vector<const void*> carried(states);  // those that this pass has written
  std::vector<int> exponents(states, 0);     // times 2^this
  for (std::int64_t index = segments_ - 1; index >= 0; --index) {
    Network& network = run_segment(index, stop, true);
    Graph& graph = network.graph();
    const std::int64_t first = index * segment_, steps = network.options().steps, width = network.output().dim(-1);
    const std::int64_t outputs = steps * batch_.size() * width;
    LossOperation* loss = loss_of(network).operation;
    const void* seed = loss ? loss->adjoint() : graph.value(network.output());

    // All gradients of this segment are in units of 2^scale: that of the largest adjoint that comes in, unless that is near 1.
    int scale = none;
    const int fresh = backend_.exponent(real_, outputs, seed);
    if (fresh != infinite_exponent) scale = std::max(scale, fresh);
    const Var gates = gates_of(network);
    const std::int64_t gate_rows = gates ? count(gates.shape()) : 0;
    if (gates) scale = std::max(scale, backend_.exponent(real_, gate_rows, gate_weights_.data()));
    for (std::size_t i = 0; i < states; ++i)
      if (carried[i]) {
        const int own = backend_.exponent(network.states()[i].initial.dtype(), count(network.states()[i].initial.shape()), carried[i]);
        if (own != none && own != infinite_exponent) scale = std::max(scale, own + exponents[i]);
      }
    if (scale == none || std::abs(scale) < 64) scale = 0;
    std::optional<Divergence> off;
    /// Whether all gradients of the segment are finite in units of 2^scale.
    const auto pass = [&] {
      graph.clear_gradients();
      if (loss)
        loss->set_unit(scale);
      else
        backend_.add_scaled(real_, outputs, -scale, seed, graph.gradient(network.output()), true);
      if (gates) backend_.add_scaled(real_, gate_rows, -scale, gate_weights_.data(), graph.gradient(gates), true);
      std::map<Memory*, std::vector<const void*>> by_memory;
      std::map<Memory*, int> memory_exponent;
      for (std::size_t i = 0; i < states; ++i) {
        const auto& state = network.states()[i];
        if (state.memory) {
          auto& slots = by_memory[state.memory];
          slots.push_back(carried[i]);
          memory_exponent[state.memory] = exponents[i] - scale;
        } else if (carried[i] && graph.gradient(state.final_state)) {
          backend_.add_scaled(state.final_state.dtype(), count(state.final_state.shape()), exponents[i] - scale, carried[i],
                              graph.gradient(state.final_state), true);
        }
      }
      for (auto& [memory, slots] : by_memory) memory->set_final_adjoint(slots, memory_exponent[memory]);
      graph.backward(stop);
      if (bad || timing_only_) return true;  // nothing is looked for
      off = look_back(network, first, scale);
      return !off && std::ranges::all_of(network.parameters(), [&](const Network::ParameterVar& parameter) {
        const void* gradient = graph.gradient(parameter.var);
        return !gradient || backend_.exponent(real_, count(parameter.var.shape()), gradient) != infinite_exponent;
      });
    };
    // Gradients may leave the range of the number format on the way to others that are within it. Short segments have a unit each; one of
    // many steps, as of a form that takes the whole sequence, is done again in a larger unit.
    const int larger = real_ == DType::f64 ? 512 : 64;
    bool finite = pass();
    if (!finite) {
      scale += larger;
      finite = pass();
      if (!finite) {
        scale -= larger;
        pass();
      }
    }

    for (std::size_t i = 0; i < network.parameters().size(); ++i) {
      const auto& parameter = network.parameters()[i];
      if (!graph.gradient(parameter.var)) continue;
      if (on_device_) {
        backend_.add_scaled(real_, count(parameter.var.shape()), scale, graph.gradient(parameter.var), totals_[i].data(), true);
        continue;
      }
      auto& total = gradients_[parameter.name];
      const auto part = to_double(backend_, real_, graph.gradient(parameter.var), static_cast<std::int64_t>(total.size()));
      for (std::size_t k = 0; k < total.size(); ++k) total[k] += scale ? std::ldexp(part[k], scale) : part[k];
    }
    for (std::size_t i = 0; i < states; ++i) {
      const auto& state = network.states()[i];
      if (!graph.gradient(state.initial) || count(state.initial.shape()) == 0) continue;
      carried_[i].resize(backend_, state.initial.dtype(), count(state.initial.shape()));
      carried[i] = carried_[i].data();
      backend_.copy(carried_[i].data(), graph.gradient(state.initial), carried_[i].bytes());
      exponents[i] = scale + (state.memory ? state.memory->exponent() : 0);
      if (state.unscaled_initial && graph.gradient(state.unscaled_initial))
        add_units(state.initial, graph.gradient(state.unscaled_initial), scale, carried_[i].data(), exponents[i]);
    }
    // The states of one memory have one unit.
    std::map<const Memory*, int> unit;
    for (std::size_t i = 0; i < states; ++i)
      if (const auto& state = network.states()[i]; state.memory && carried[i]) {
        int& largest = unit.try_emplace(state.memory, exponents[i]).first->second;
        largest = std::max(largest, exponents[i]);
      }
    for (std::size_t i = 0; i < states; ++i) {
      const auto& state = network.states()[i];
      if (!state.memory || !carried[i] || exponents[i] == unit[state.memory]) continue;
      backend_.add_scaled(state.initial.dtype(), count(state.initial.shape()), exponents[i] - unit[state.memory], carried_[i].data(),
                          carried_[i].data(), false);
      exponents[i] = unit[state.memory];
    }
    const bool seen = finite && segments_ == 1 && scale == 0;  // the finite check has then covered the sums
    if (!bad && !timing_only_ && !seen) bad = off ? off : look_at_sums(network, first);
    if (visit) visit({network, first, steps}, scale);
  }
  for (std::size_t i = 0; i < states; ++i) carried_units_.push_back(carried[i] ? std::optional(exponents[i]) : std::nullopt);
  return bad;
}

void Rollout::visit_first(const Visit& visit, std::stop_token stop) {
  Network& network = run_segment(0, stop);
  visit({network, 0, network.options().steps});
}

void Rollout::revisit(const Visit& visit, std::stop_token stop, Order order) {
  RECLAB_DEMAND(!forward_only_);
  for (std::int64_t i = 0; i < segments_; ++i) {
    const std::int64_t index = order == Order::first_first ? i : segments_ - 1 - i;
    Network& network = run_segment(index, stop);
    visit({network, index * segment_, network.options().steps});
  }
}

}  // namespace reclab
