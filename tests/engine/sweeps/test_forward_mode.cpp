// SPDX-License-Identifier: GPL-3.0-or-later
// Forward mode of every primitive and of every preset, in all their forms: how the outputs move with weights, inputs and initial states,
// against central differences and the backward pass.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <typeindex>
#include <vector>

#include "array/rng.h"
#include "host_machine.h"
#include "models/network.h"
#include "models/registry.h"
#include "recurrence/primitive.h"
#include "sweep.h"
#include "tangents.h"
#include "test.h"

namespace {

using namespace reclab;

constexpr std::int64_t steps = 70;  // more than a block of any form, and no multiple of one

/// A Newton form stops iterating where rounding hides the rest; the differences see that.
double noise_of(Form form) { return is_newton(form) ? 2e4 : 100.0; }

/// Weights away from where they start, so that nothing vanishes for a reason that hides mistakes.
std::vector<std::vector<double>> generic_weights(const Network& network, double spread) {
  std::vector<std::vector<double>> all;
  Rng numbers(11);
  Parameters parameters = network.initialise(3);
  for (auto& entry : parameters.entries()) {
    const bool positive = entry.name.ends_with("theta_inv");  // a memory whose window is negative grows beyond all bounds
    for (double& value : entry.values) value = positive ? value * std::exp(spread * numbers.normal()) : value + spread * numbers.normal();
    all.push_back(entry.values);
  }
  return all;
}

class MovedNetwork {
 public:
  /// all: its states and gates are outputs too.
  MovedNetwork(const Architecture& architecture, const Hyper& hyper, Form form, bool record, double spread, bool all = false)
      : network_(architecture, hyper, {.steps = 40, .batch = 2, .input = 3, .form = form, .record = record}) {
    std::vector<RandomLeaves::Leaf> leaves;
    auto weights = generic_weights(network_, spread);
    for (std::size_t i = 0; i < weights.size(); ++i) leaves.push_back({network_.parameters()[i].var, std::move(weights[i])});
    leaves.push_back({network_.input(), {}});
    Rng rng(7);
    for (std::int64_t i = 0; i < count(network_.input().shape()); ++i) leaves.back().parts.push_back(rng.normal());
    std::vector<Var> outputs{network_.output()};
    for (const auto& state : network_.states())
      for (const Var var : {state.trajectory, state.final_state})
        if (all && var) outputs.push_back(var);
    for (const auto& gate : network_.gates())
      if (all) outputs.push_back(gate.var);
    derivatives_ = std::make_unique<test::Derivatives>(cpu_backend(), network_.graph(), std::move(leaves), outputs);
    for (const auto& state : network_.states()) {
      starts_.emplace_back(static_cast<std::size_t>(count(state.initial.shape())) * (is_complex(state.initial.dtype()) ? 2 : 1),
                           state.start);
      network_.graph().bind(state.initial, starts_.back().data());
      if (state.unscaled_initial) network_.graph().bind(state.unscaled_initial, starts_.back().data());
    }
  }
  test::Derivatives& derivatives() { return *derivatives_; }
  Graph& graph() { return network_.graph(); }
  /// A running maximum that others are divided by, of which no derivative is taken: the states in its units are no derivatives of their
  /// values.
  bool holds_units() {
    derivatives_->values(derivatives_->random_directions(1), 0.0);
    derivatives_->tangents(derivatives_->random_directions(1));
    return std::ranges::any_of(network_.states(), [&](const auto& state) {
      if (!state.auxiliary || !state.trajectory) return false;
      const auto* moved = static_cast<const double*>(network_.graph().tangent(state.trajectory));
      return !moved || std::all_of(moved, moved + count(state.trajectory.shape()), [](double x) { return x == 0.0; });
    });
  }
  double size() { return test::largest(derivatives_->values(test::Derivatives::Directions(derivatives_->leaves().size()), 0.0)); }

 private:
  Network network_;
  std::unique_ptr<test::Derivatives> derivatives_;
  std::vector<std::vector<double>> starts_;
};

using Types = std::map<std::type_index, std::string>;
void add_operations(Graph& graph, const std::string& where, Types& found) {
  graph.visit([&](const Operation& operation, std::span<const Var>, std::span<const Var>) {
    found.try_emplace(typeid(operation), std::string(typeid(operation).name()) + " of " + where);
  });
}

struct Built {
  std::shared_ptr<const Architecture> architecture;
  Hyper hyper;
};
Built built(const Preset& preset, const test::Settings& set) {
  return {architecture_of(builtin_registry(), preset), hyper_of(builtin_registry(), preset, set)};
}

/// The settings that a preset is differentiated with, and whether it then is the derivative of what it computes.
std::vector<std::pair<test::Settings, bool>> settings_of(const Preset& preset) {
  if (!preset.stack.empty()) return {{{}, true}};
  test::Settings small = test::small_settings(preset), through = small;
  through.emplace_back("stop_gradient", "no");
  if (test::possible(preset, through)) return {{small, false}, {through, true}};
  return {{small, true}};
}

void each_form(const Built& model, const std::function<void(Form form, bool record)>& f) {
  for (const Form form : Network(*model.architecture, model.hyper, {.input = 3}).forms())
    for (const bool record : {true, false}) f(form, record);
}

}  // namespace

TEST_CASE("every primitive moves with its inputs and initial states") {
  CHECK(!all_primitives().empty());
  for (const Primitive& primitive : all_primitives()) {
    CHECK_SAYS(!primitive.checked.empty(), primitive.id);
    for (const CheckedPrimitive& one : primitive.checked) {
      CHECK_SAYS(!one.forms.empty(), one.name);
      for (const Form form : one.forms) {
        const std::string what = one.name + ", " + std::string(to_string(form));
        test::HostBackend kernels;
        test::check_tangents(what, [&](Graph& graph, RandomLeaves& leaves) { return one.build(form, graph, leaves, steps); }, kernels,
                             {.noise = noise_of(form)});
        std::printf("%s\n", what.c_str());
      }
    }
  }
}

SWEEP_PRESETS("outputs move with weights and inputs", preset) {
  for (const auto& [set, derivative] : settings_of(preset)) {
    const Built model = built(preset, set);
    each_form(model, [&, derivative = derivative](Form form, bool record) {
      // Weights with which the model explodes would hide everything behind their size: nearer to the start, then.
      double spread = 0.3;
      while (!(MovedNetwork(*model.architecture, model.hyper, form, record, spread).size() < 1e3) && spread > 0.01) spread /= 2;
      MovedNetwork network(*model.architecture, model.hyper, form, record, spread),
          whole(*model.architecture, model.hyper, form, record, spread, true);
      const std::string what = preset.id + ", " + std::string(to_string(form)) + (record ? "" : ", states not kept");
      test::check_tangents(what, network.derivatives(), {.noise = noise_of(form), .differences = derivative});
      test::check_tangents(what + ", states and gates", whole.derivatives(),
                           {.noise = noise_of(form), .differences = derivative && !whole.holds_units(), .adjoint = false});
    });
  }
}

TEST_CASE("what the presets are made of is made by the small ones that are differentiated too") {
  Types differentiated, used;
  for (const Preset& preset : test::shipped().presets()) {
    for (const auto& [set, derivative] : settings_of(preset)) {
      const Built model = built(preset, set);
      each_form(model, [&](Form form, bool record) {
        add_operations(MovedNetwork(*model.architecture, model.hyper, form, record, 0.1).graph(), preset.id, differentiated);
      });
    }
    const Built model = built(preset, {});
    each_form(model, [&](Form form, bool record) {
      for (const std::int64_t steps_of : {1, 200}) {
        Network network(*model.architecture, model.hyper, {.steps = steps_of, .input = 3, .form = form, .record = record});
        add_operations(network.graph(), preset.id, used);
      }
    });
  }
  CHECK(used.size() > 20);
  for (const auto& [type, where] : used) CHECK_SAYS(differentiated.count(type), where + " is in no network that is differentiated");
}
