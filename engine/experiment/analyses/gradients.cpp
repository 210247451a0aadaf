// SPDX-License-Identifier: GPL-3.0-or-later
// The gradients of the loss: norms of those of the states through time, and those of the input, of the state before the first step and of
// the parameters.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "experiment/record/analysis.h"

namespace reclab {
namespace {

constexpr double log10_of_2 = 0.30102999566398119521;
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

class Gradients final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::gradient}; }
  bool needs_outputs() const override { return true; }
  bool goes_back() const override { return record_.wants(Kind::gradient); }
  bool of_states() const override { return goes_back(); }

  void begin(const Network&) override {
    if (!goes_back()) return;
    complete_ = false;
    norms_.clear();  // of states: the last rollout's
    if (first_) input_.assign(record_.trace.steps.size() * static_cast<std::size_t>(record_.request.sequence->width), 0.0);
  }

  void backward(const Rollout::Segment& segment, int scale) override {
    const std::int64_t width = record_.request.sequence->width, length = record_.length();
    Network& network = segment.network;
    Backend& backend = record_.prepared.backend;
    const std::vector<std::int64_t>& steps = record_.trace.steps;
    const auto at = std::lower_bound(steps.begin(), steps.end(), segment.first);
    if (first_) {
      const auto gradient = to_double(backend, record_.prepared.real, network.graph().gradient(network.input()), segment.steps * width);
      for (auto row = at; row != steps.end() && *row < segment.first + segment.steps; ++row)
        for (std::int64_t j = 0; j < width; ++j)
          input_[static_cast<std::size_t>((row - steps.begin()) * width + j)] =
              std::ldexp(gradient[static_cast<std::size_t>((*row - segment.first) * width + j)], scale);
    }
    for (const auto& state : network.states()) {
      std::vector<double> log2;
      if (state.memory) {
        if (static_cast<std::size_t>(state.slot) < state.memory->log2_norms().size())
          log2 = state.memory->log2_norms()[static_cast<std::size_t>(state.slot)];
      } else if (state.trajectory) {
        const std::int64_t n = count(state.trajectory.shape()) / segment.steps;
        const auto* gradients = static_cast<const char*>(network.graph().gradient(state.trajectory));
        for (std::int64_t t = 0; t < segment.steps; ++t) {
          record_.check();
          log2.push_back(backend.log2_norm(state.trajectory.dtype(), n,
                                           gradients + static_cast<std::size_t>(t * n) * bytes_of(state.trajectory.dtype()), 0));
        }
      }
      if (log2.empty()) continue;
      auto& series = norms_[key_of(Kind::gradient, Rollout::state_key(state))];
      series.resize(steps.size(), minus_infinity);
      for (auto row = at; row != steps.end() && *row < segment.first + segment.steps; ++row) {
        const std::int64_t t = *row - segment.first;
        const double value = log2[static_cast<std::size_t>(state.reversed ? segment.steps - 1 - t : t)];
        series[static_cast<std::size_t>(row - steps.begin())] = std::isinf(value) ? value : (value + scale) * log10_of_2;
      }
    }
    record_.report(0.4 + 0.3 * static_cast<double>(length - segment.first) / static_cast<double>(length), "backward");
  }

  void went_back(Rollout& rollout) override {
    if (first_) {
      parameters_ = rollout.parameter_gradients();
      initial_ = rollout.initial_gradients();
    }
    first_ = false;
    complete_ = true;
  }

  void finish(std::int64_t rows) override {
    if (!complete_) return;
    for (auto& [key, values] : norms_) {
      if (!record_.wants(key)) continue;
      TraceArray array =
          timed(key, {}, {}, "log10", "log10 of the norm of dL/ds_t, all states of the step taken as independent coordinates.");
      array.shape[0] = rows;
      put_real(record_.trace, std::move(array), std::move(values));
    }
    if (record_.wants(key_of(Kind::gradient, "input"))) {
      TraceArray array = timed(key_of(Kind::gradient, "input"), {record_.request.sequence->width},
                               {{"channel", "", record_.request.sequence->names}}, "", "dL/dx_t.");
      array.shape[0] = rows;
      put_real(record_.trace, std::move(array), std::move(input_));
    }
    for (const auto& state : record_.prepared.shape_network->states()) {
      const auto found = initial_.find(Rollout::state_key(state));
      if (found == initial_.end() || std::ssize(found->second) != count(state.shape)) continue;
      if (state.auxiliary) continue;  // the gradient of a stabiliser is rounding: it changes no result
      TraceArray array;
      array.key = key_of(Kind::gradient, "initial/" + std::to_string(state.layer) + "/" + state.name);
      if (!record_.wants(array.key)) continue;
      array.shape = state.shape;
      array.axes = axes_of(state.shape, "unit");
      array.text = "dL/ds of the state that the run starts from.";
      if (is_complex(state.initial.dtype())) {
        array.complex = std::make_shared<const std::vector<std::complex<double>>>(found->second);
        record_.trace.put(std::move(array));
      } else {
        std::vector<double> values;
        for (const auto& z : found->second) values.push_back(z.real());
        put_real(record_.trace, std::move(array), std::move(values));
      }
    }
    for (const auto& parameter : record_.prepared.parameters.entries()) {
      TraceArray array;
      array.key = key_of(Kind::gradient, key_of(Kind::param, parameter.name));
      if (!record_.wants(array.key) || parameters_.empty()) continue;
      array.shape = parameter.shape;
      array.axes = axes_of(parameter.shape, "unit");
      array.text = "dL/dθ of " + parameter.name + ".";
      put_real(record_.trace, std::move(array), std::move(parameters_.at(parameter.name)));
    }
  }

 private:
  bool first_ = true;  // the input's and the parameters' gradients are those of the form that was asked for
  bool complete_ = false;
  std::map<std::string, std::vector<double>> norms_, parameters_;
  std::map<std::string, std::vector<std::complex<double>>> initial_;  // by the state's key
  std::vector<double> input_;
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> gradients(Record& record) { return std::make_unique<Gradients>(record); }
}  // namespace analyses
}  // namespace reclab
