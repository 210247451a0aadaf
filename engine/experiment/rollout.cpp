// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/rollout.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "array/error.h"

namespace reclab {
namespace {

constexpr std::int64_t segment_bytes = std::int64_t{64} << 20;
constexpr std::int64_t shortest_segment = 16, longest_segment = 4096;
constexpr std::int64_t most_bytes = std::int64_t{8} << 30;

template <class To, class From>
std::vector<To> converted(const void* from, std::int64_t n) {
  const auto* x = static_cast<const From*>(from);
  return std::vector<To>(x, x + n);
}

std::vector<char> narrowed(DType type, std::span<const double> values) {
  std::vector<char> bytes(values.size() * bytes_of(type));
  if (type == DType::f64) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    auto* to = reinterpret_cast<float*>(bytes.data());
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = static_cast<float>(values[i]);
  }
  return bytes;
}

/// The first of `steps` rows that holds a value which is not finite, or -1.
std::int64_t first_bad_row(DType type, const void* data, std::int64_t steps, std::int64_t row) {
  const auto look = [&](const auto* x, std::int64_t parts) -> std::int64_t {
    for (std::int64_t t = 0; t < steps; ++t) {
      auto sum = x[0] * 0;
      for (std::int64_t i = 0; i < parts; ++i) sum += x[t * parts + i] * 0;
      if (!(sum == 0)) return t;
    }
    return -1;
  };
  const std::int64_t parts = is_complex(type) ? 2 * row : row;
  if (row == 0) return -1;
  return real_of(type) == DType::f32 ? look(static_cast<const float*>(data), parts) : look(static_cast<const double*>(data), parts);
}

}  // namespace

std::vector<double> to_double(DType type, const void* from, std::int64_t n) {
  assert(!is_complex(type));
  return type == DType::f32 ? converted<double, float>(from, n) : converted<double, double>(from, n);
}

std::vector<std::complex<double>> to_complex(DType type, const void* from, std::int64_t n) {
  using C = std::complex<double>;
  switch (type) {
    case DType::f32: return converted<C, float>(from, n);
    case DType::f64: return converted<C, double>(from, n);
    case DType::c64: return converted<C, std::complex<float>>(from, n);
    case DType::c128: return converted<C, std::complex<double>>(from, n);
  }
  return {};
}

Rollout::Rollout(const Architecture& architecture, const Hyper& hyper, const Parameters& parameters, const Sequence& sequence, const Loss& loss,
                 Backend& backend, const Options& options)
    : sequence_(sequence), loss_(loss), backend_(backend), real_(options.real) {
  NetworkOptions build;
  build.input = sequence.width;
  build.head = loss.outputs();
  build.form = options.form;
  build.real = options.real;
  build.record = options.record;
  const std::int64_t length = sequence.length;
  build.steps = std::min<std::int64_t>(length, 32);
  const double each = static_cast<double>(Network(architecture, hyper, build).graph().planned_bytes(true)) / static_cast<double>(build.steps);
  segment_ = options.segment;
  if (!segment_ && options.form != Form::sequential) {
    segment_ = length;
    if (each * static_cast<double>(length) > static_cast<double>(most_bytes))
      throw Error("The " + std::string(to_string(options.form)) + " form takes all " + std::to_string(length) + " steps at once and would need " +
                      std::to_string(static_cast<std::int64_t>(each * static_cast<double>(length)) >> 20) +
                      " MiB: shorten the sequence or choose form sequential.",
                  {.parameter = "form", .value = std::string(to_string(options.form)), .range = "sequential"});
  }
  if (!segment_) segment_ = std::clamp(static_cast<std::int64_t>(static_cast<double>(segment_bytes) / each), shortest_segment, longest_segment);
  segment_ = std::min(segment_, length);
  segments_ = (length + segment_ - 1) / segment_;
  build.steps = segment_;
  whole_ = std::make_unique<Network>(architecture, hyper, build);
  whole_->graph().allocate(backend, true);
  if (length % segment_) {
    build.steps = length % segment_;
    tail_ = std::make_unique<Network>(architecture, hyper, build);
    tail_->graph().allocate(backend, true);
  }
  assert(parameters.entries().size() == whole_->parameters().size());
  for (const auto& entry : parameters.entries()) weights_.push_back(narrowed(real_, entry.values));
  input_ = narrowed(real_, sequence.input);
  checkpoints_.emplace_back();
  for (const auto& state : whole_->states())
    checkpoints_[0].emplace_back(static_cast<std::size_t>(count(state.initial.shape())) * bytes_of(state.initial.dtype()), char{0});
}

std::int64_t Rollout::bytes() const {
  std::int64_t total = whole_->graph().planned_bytes(true) + (tail_ ? tail_->graph().planned_bytes(true) : 0);
  total += static_cast<std::int64_t>(input_.size());
  for (const auto& w : weights_) total += static_cast<std::int64_t>(w.size());
  for (const auto& checkpoint : checkpoints_)
    for (const auto& state : checkpoint) total += static_cast<std::int64_t>(state.size());
  return total;
}

void Rollout::set_initial(const std::map<std::string, std::vector<std::complex<double>>>& states) {
  for (std::size_t i = 0; i < whole_->states().size(); ++i) {
    const auto& state = whole_->states()[i];
    const auto found = states.find(state_key(state));
    if (found == states.end()) continue;
    std::vector<double> parts;
    for (const auto& z : found->second) {
      parts.push_back(z.real());
      if (is_complex(state.initial.dtype())) parts.push_back(z.imag());
    }
    checkpoints_[0][i] = narrowed(real_, parts);
  }
}

void Rollout::bind(Network& network, std::int64_t index) {
  const std::size_t row = static_cast<std::size_t>(sequence_.width) * bytes_of(real_);
  network.graph().bind(network.input(), input_.data() + static_cast<std::size_t>(index * segment_) * row);
  for (std::size_t i = 0; i < weights_.size(); ++i) network.graph().bind(network.parameters()[i].var, weights_[i].data());
  for (std::size_t i = 0; i < network.states().size(); ++i)
    network.graph().bind(network.states()[i].initial, checkpoints_[static_cast<std::size_t>(index)][i].data());
}

Network& Rollout::run_segment(std::int64_t index, std::stop_token stop) {
  Network& network = index == segments_ - 1 && tail_ ? *tail_ : *whole_;
  bind(network, index);
  if (standing_ != index) {
    standing_ = -1;
    network.graph().forward(stop);
    standing_ = index;
  }
  return network;
}

std::optional<Divergence> Rollout::forward(const Visit& visit, std::stop_token stop) {
  loss_value_ = 0.0;
  standing_ = -1;
  checkpoints_.resize(1);
  for (std::int64_t index = 0; index < segments_; ++index) {
    Network& network = run_segment(index, stop);
    const std::int64_t first = index * segment_, steps = network.options().steps;
    Divergence bad;
    const auto look = [&](Var var, const std::string& name) {
      if (!var) return;
      const std::int64_t t = first_bad_row(var.dtype(), network.graph().value(var), steps, count(var.shape()) / steps);
      if (t >= 0 && (bad.step < 0 || first + t < bad.step)) bad = {first + t, name};
    };
    for (const auto& gate : network.gates()) look(gate.var, "gate/" + std::to_string(gate.layer) + "/" + gate.name);
    for (const auto& state : network.states())
      if (state.memory) look(state.trajectory, state_key(state));
    look(network.output(), "output");
    if (visit) visit({network, first, steps});
    if (bad.step >= 0) return bad;
    const std::int64_t width = network.output().dim(-1);
    loss_value_ += loss_.segment(first, steps, width, to_double(real_, network.graph().value(network.output()), steps * width), {});
    std::vector<Bytes> next;
    for (const auto& state : network.states()) {
      Bytes bytes;
      if (state.final_state) {
        const std::size_t size = static_cast<std::size_t>(count(state.final_state.shape())) * bytes_of(state.final_state.dtype());
        bytes.resize(size);
        backend_.download(bytes.data(), network.graph().value(state.final_state), size);
      }
      next.push_back(std::move(bytes));
    }
    checkpoints_.push_back(std::move(next));
  }
  return std::nullopt;
}

std::map<std::string, std::vector<std::complex<double>>> Rollout::final_states() const {
  std::map<std::string, std::vector<std::complex<double>>> states;
  for (std::size_t i = 0; i < whole_->states().size(); ++i) {
    const auto& state = whole_->states()[i];
    const Bytes& bytes = checkpoints_.back()[i];
    if (!bytes.empty()) states[state_key(state)] = to_complex(state.initial.dtype(), bytes.data(), count(state.initial.shape()));
  }
  return states;
}

void Rollout::backward(const VisitBackward& visit, std::stop_token stop) {
  constexpr int none = -100000;  // what Backend::exponent says of zeros
  gradients_.clear();
  for (const auto& parameter : whole_->parameters()) gradients_[parameter.name].assign(static_cast<std::size_t>(count(parameter.var.shape())), 0.0);
  const std::size_t states = whole_->states().size();
  std::vector<Bytes> carried(states);     // adjoints of the next segment's initial states
  std::vector<int> exponents(states, 0);  // times 2^this
  for (std::int64_t index = segments_ - 1; index >= 0; --index) {
    Network& network = run_segment(index, stop);
    Graph& graph = network.graph();
    const std::int64_t first = index * segment_, steps = network.options().steps, width = network.output().dim(-1);
    graph.clear_gradients();
    std::vector<double> adjoint(static_cast<std::size_t>(steps * width), 0.0);
    loss_.segment(first, steps, width, to_double(real_, graph.value(network.output()), steps * width), adjoint);

    // All gradients of this segment are in units of 2^scale: that of the largest adjoint that comes in, unless that is near 1.
    int scale = none;
    const Bytes seed_bytes = narrowed(real_, adjoint);
    scale = std::max(scale, backend_.exponent(real_, steps * width, seed_bytes.data()));
    for (std::size_t i = 0; i < states; ++i)
      if (!carried[i].empty()) {
        const int own = backend_.exponent(network.states()[i].initial.dtype(), count(network.states()[i].initial.shape()), carried[i].data());
        if (own != none) scale = std::max(scale, own + exponents[i]);
      }
    if (scale == none || std::abs(scale) < 64) scale = 0;
    backend_.add_scaled(real_, steps * width, -scale, seed_bytes.data(), graph.gradient(network.output()), true);

    std::map<Memory*, std::vector<const void*>> by_memory;
    std::map<Memory*, int> memory_exponent;
    for (std::size_t i = 0; i < states; ++i) {
      const auto& state = network.states()[i];
      if (state.memory) {
        auto& slots = by_memory[state.memory];
        slots.push_back(carried[i].empty() ? nullptr : carried[i].data());
        memory_exponent[state.memory] = exponents[i] - scale;
      } else if (!carried[i].empty()) {
        backend_.add_scaled(state.final_state.dtype(), count(state.final_state.shape()), exponents[i] - scale, carried[i].data(),
                            graph.gradient(state.final_state), true);
      }
    }
    for (auto& [memory, slots] : by_memory) memory->carry(slots, memory_exponent[memory]);
    graph.backward(stop);

    for (std::size_t i = 0; i < network.parameters().size(); ++i) {
      const auto& parameter = network.parameters()[i];
      if (!graph.gradient(parameter.var)) continue;
      auto& total = gradients_[parameter.name];
      const auto part = to_double(real_, graph.gradient(parameter.var), static_cast<std::int64_t>(total.size()));
      for (std::size_t k = 0; k < total.size(); ++k) total[k] += scale ? std::ldexp(part[k], scale) : part[k];
    }
    for (std::size_t i = 0; i < states; ++i) {
      const auto& state = network.states()[i];
      carried[i].resize(static_cast<std::size_t>(count(state.initial.shape())) * bytes_of(state.initial.dtype()));
      backend_.download(carried[i].data(), graph.gradient(state.initial), carried[i].size());
      exponents[i] = scale + (state.memory ? state.memory->exponent() : 0);
    }
    if (visit) visit({network, first, steps}, scale);
  }
}

void Rollout::visit_first(const Visit& visit, std::stop_token stop) {
  Network& network = run_segment(0, stop);
  visit({network, 0, network.options().steps});
}

void Rollout::revisit(const Visit& visit, std::stop_token stop) {
  for (std::int64_t index = segments_ - 1; index >= 0; --index) {
    Network& network = run_segment(index, stop);
    visit({network, index * segment_, network.options().steps});
  }
}

}  // namespace reclab
