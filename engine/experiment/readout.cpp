// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/readout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "algebra/ridge.h"
#include "array/demand.h"
#include "array/error.h"
#include "array/stop.h"
#include "experiment/prepared.h"
#include "models/stack.h"
#include "sequence/elapsed.h"

namespace reclab {
namespace {

constexpr std::int64_t segment = 256;  // steps that are run at once

/// The target of each step as the numbers that are regressed on: classes as 0 and 1.
class Targets {
 public:
  Targets(const Sequence& sequence, std::int64_t outputs) : sequence_(sequence), row_(static_cast<std::size_t>(outputs)) {}
  std::span<const double> at(std::int64_t t) {
    const auto width = static_cast<std::size_t>(sequence_.target_width), first = static_cast<std::size_t>(t) * width;
    if (sequence_.target_kind == TargetKind::regress) return std::span(sequence_.target).subspan(first, width);
    std::ranges::fill(row_, 0.0);
    row_[static_cast<std::size_t>(sequence_.target[first])] = 1.0;
    return row_;
  }
  bool counts(std::int64_t t) const { return sequence_.mask[static_cast<std::size_t>(t)] > 0.0; }

 private:
  const Sequence& sequence_;
  std::vector<double> row_;
};

/// The layers without a head, a segment at a time.
class Layers {
 public:
  Layers(const Architecture& architecture, const Hyper& hyper, const Sequence& sequence, std::int64_t fed_back, Parameters& parameters)
      : architecture_(architecture), hyper_(hyper), sequence_(sequence), fed_back_(fed_back), parameters_(parameters) {
    const Network sample(architecture, hyper, options(1));
    steps_ = sample.needs_one_segment() ? sequence.length : std::min(segment, sequence.length);
    features_ = sample.output().dim(-1);
    for (const auto& state : sample.states()) {
      RECLAB_DEMAND(!state.growing || steps_ == sequence.length);  // a growing state is run as one segment
      states_.emplace_back(static_cast<std::size_t>(count(state.initial.shape())) * (is_complex(state.initial.dtype()) ? 2u : 1u),
                           state.start);
    }
  }
  std::int64_t features() const { return features_; }

  /// Calls f(t, the layers' output [features]) for the steps before `limit`.
  template <class F>
  void run(std::int64_t limit, std::span<const double> teacher, const F& f) {
    for (std::int64_t first = 0; first < limit; first += steps_) {
      check_stop();
      const std::int64_t steps = std::min(steps_, sequence_.length - first);
      Network& network = network_of(steps);
      Graph& graph = network.graph();
      graph.bind(network.input(), sequence_.input.data() + first * sequence_.width);
      if (fed_back_) graph.bind(network.teacher_forcing_input(), teacher.data() + first * fed_back_);
      for (std::size_t i = 0; i < states_.size(); ++i) {
        graph.bind(network.states()[i].initial, states_[i].data());
        if (network.states()[i].unscaled_initial) graph.bind(network.states()[i].unscaled_initial, states_[i].data());
      }
      for (std::size_t i = 0; i < network.elapsed().size(); ++i)
        graph.bind(network.elapsed()[i].var, elapsed_of(network.elapsed()[i]).data() + first);
      for (const auto& state : network.states())
        if (state.clock) graph.bind(state.final_state, no_clock_.data());
      graph.forward();
      const auto* made = static_cast<const double*>(graph.value(network.output()));
      for (std::int64_t t = 0; t < std::min(steps, limit - first); ++t)
        f(first + t, std::span(made + t * features_, static_cast<std::size_t>(features_)));
      std::vector<std::vector<double>> after;
      for (std::size_t i = 0; i < states_.size(); ++i) {
        const auto* values = static_cast<const double*>(graph.value(network.states()[i].final_state));
        after.emplace_back(values, values + states_[i].size());
      }
      states_ = std::move(after);
    }
  }

 private:
  /// As a run from rest has them.
  const std::vector<double>& elapsed_of(const Network::ElapsedVar& wanted) {
    auto& times = elapsed_[{wanted.unit, wanted.first, wanted.reversed}];
    if (times.empty()) {
      times = elapsed(sequence_.time, wanted.unit, {}, wanted.reversed, wanted.first);
      times.resize(static_cast<std::size_t>(sequence_.length), 1.0);
    }
    return times;
  }
  NetworkOptions options(std::int64_t steps) const {
    NetworkOptions made;
    made.timed = uneven(sequence_.time);
    made.steps = steps;
    made.input = sequence_.width;
    made.record = false;
    made.teacher = fed_back_;
    return made;
  }
  Network& network_of(std::int64_t steps) {
    auto& network = networks_[steps];
    if (!network) {
      network = std::make_unique<Network>(architecture_, hyper_, options(steps));
      network->graph().allocate(cpu_backend(), false);
      for (const auto& parameter : network->parameters())
        network->graph().bind(parameter.var, parameters_.find(parameter.name)->values.data());
    }
    return *network;
  }

  const Architecture& architecture_;
  const Hyper& hyper_;
  const Sequence& sequence_;
  std::int64_t fed_back_, steps_ = 0, features_ = 0;
  Parameters& parameters_;
  std::map<std::int64_t, std::unique_ptr<Network>> networks_;
  std::map<std::tuple<double, double, bool>, std::vector<double>> elapsed_;
  std::vector<double> no_clock_ = {0.0, 0.0};
  std::vector<std::vector<double>> states_;
};

/// The fit of the head: that of a stack's uppermost part.
std::optional<ReadoutFit> fit_of(const Architecture& architecture, const Hyper& hyper) {
  if (architecture.stack.empty()) return architecture.fit ? architecture.fit(hyper) : std::nullopt;
  std::optional<ReadoutFit> last;
  for (std::size_t i = 0; i < architecture.stack.size(); ++i) {
    const Architecture& part = *architecture.stack[i];
    last = part.fit ? part.fit(hyper_of_stack(architecture, hyper, i)) : std::nullopt;
    if (last && last->fed_back) {
      const std::string key = std::to_string(i) + ".feedback";
      throw Error("part " + std::to_string(i) + ", " + part.id +
                      ": what is fed back is fitted to the target in a model of one part alone, and " + key + " = " +
                      std::to_string(last->fed_back->outputs) + ": choose " + key + "=0, or " + std::to_string(i) + ".readout=drawn.",
                  {.model = architecture.id, .parameter = key, .value = std::to_string(last->fed_back->outputs), .range = "0"});
    }
  }
  return last;
}

}  // namespace

std::string fit_readout(const Architecture& architecture, const Hyper& hyper, const Sequence& sequence, std::int64_t outputs,
                        Parameters& parameters) {
  if (outputs == 0 || sequence.target_kind == TargetKind::none) return {};
  const auto fit = fit_of(architecture, hyper);
  if (!fit) return {};
  if (fit->fed_back && fit->fed_back->outputs != outputs)
    throw Error(architecture.id + ": feedback = " + std::to_string(fit->fed_back->outputs) + " outputs are fed back, and the target has " +
                    std::to_string(outputs) + ": choose feedback=" + std::to_string(outputs) + ", or 0 for none.",
                {.model = architecture.id,
                 .parameter = "feedback",
                 .value = std::to_string(fit->fed_back->outputs),
                 .range = "0, " + std::to_string(outputs)});
  Targets targets(sequence, outputs);
  std::vector<double> teacher;  // the target of the step before
  if (fit->fed_back) {
    teacher.assign(static_cast<std::size_t>(sequence.length * outputs), 0.0);
    for (std::int64_t t = 1; t < sequence.length; ++t)
      if (targets.counts(t - 1)) std::ranges::copy(targets.at(t - 1), teacher.begin() + t * outputs);
  }
  Layers layers(architecture, hyper, sequence, fit->fed_back ? outputs : 0, parameters);
  RidgeRegression regression(layers.features(), outputs);
  const std::int64_t limit = fit->steps ? std::min(fit->steps, sequence.length) : sequence.length;
  bool finite = true;
  layers.run(limit, teacher, [&](std::int64_t t, std::span<const double> z) {
    finite = finite && std::ranges::all_of(z, [](double value) { return std::isfinite(value); });
    if (finite && t >= fit->washout && targets.counts(t)) regression.add(z, targets.at(t));
  });
  if (!finite) return "The read-out was not fitted, for the states left the range of float64.";
  if (regression.rows() == 0)
    return "The read-out was not fitted: no step after the washout of " + plural(fit->washout, "step") + " has a target that counts.";

  const auto entry = [&](const std::string& name) -> std::vector<double>& {
    auto* found = parameters.find(name);
    RECLAB_DEMAND(found);
    return found->values;
  };
  auto &head = entry("head/weight"), &head_bias = entry("head/bias");
  if (!regression.solve(fit->ridge, fit->fed_back ? entry(fit->fed_back->weight) : head,
                        fit->fed_back ? entry(fit->fed_back->bias) : head_bias)) {
    const std::string key = (architecture.stack.empty() ? "" : std::to_string(architecture.stack.size() - 1) + ".") + "ridge",
                      ridge = hyper.text(key);
    throw Error(architecture.id + ": with " + key + " = " + ridge +
                    " the regression has no solution in float64, for its rows depend on each other: choose a larger ridge.",
                {.model = architecture.id, .parameter = key, .value = ridge, .range = "larger"});
  }
  if (fit->fed_back) {
    std::ranges::fill(head_bias, 0.0);
    for (std::int64_t i = 0; i < outputs * outputs; ++i) head[static_cast<std::size_t>(i)] = i / outputs == i % outputs ? 1.0 : 0.0;
  }
  std::string text = "The read-out was fitted by ridge regression to the target at " + plural(regression.rows(), "step");
  if (limit < sequence.length)
    text += " of the first " + std::to_string(limit) + " (fit_steps); the other " + std::to_string(sequence.length - limit) + " are a test";
  return text + (fit->fed_back ? ", with the target of the step before in place of what is fed back." : ".");
}

}  // namespace reclab
