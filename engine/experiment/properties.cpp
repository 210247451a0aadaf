// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/properties.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "array/backend.h"
#include "array/error.h"
#include "array/rng.h"
#include "execution/step_map.h"

namespace reclab {
namespace {

/// Starting points of the steps: two states and one between them, the two with another input, and with another position.
struct Case {
  double first, second;  ///< shares of the two random states
  bool other_input, other_position;
};
constexpr double share = 0.3;
constexpr Case cases[] = {{1, 0, false, false}, {0, 1, false, false}, {share, 1 - share, false, false},
                          {1, 0, true, false},  {0, 1, true, false},  {1, 0, false, true},
                          {0, 1, false, true}};
constexpr double tolerance = 1e-9;

/// A model with weights of its own, in its first step from states of the caller's.
class OneStep {
 public:
  OneStep(const Architecture& architecture, const Hyper& hyper, double spread, std::int64_t columns)
      : rng_(Rng(1).split("properties")),
        model_(architecture, hyper, drawn(architecture, hyper, spread, columns), cpu_backend(), DType::f64),
        step_(model_, columns, 0, StepMap::Of::first_step) {
    if (!architecture.document_column.empty()) document_column_ = hyper.integer(architecture.document_column);
    for (std::vector<double>& input : inputs_) input = random_input();
    start_ = step_.start();
    for (std::size_t i = 0; i < step_.parts().size(); ++i)
      if (network().states()[i].position) std::ranges::fill(part(start_, i), 3.0);
  }

  const Network& network() const { return step_.network(); }

  /// Whether a gate of the layer, a factor from 0 to 1, moves with the input or the state: drawn noise does not.
  bool gates_move(int layer) {
    std::vector<std::vector<double>> seen[2];
    for (int way : {0, 1}) {
      std::vector<double> start = start_;
      for (std::size_t i = 0; way && i < step_.parts().size(); ++i)
        if (const auto& state = network().states()[i]; !state.position && !state.auxiliary)
          for (double& value : part(start, i)) value += rng_.normal();
      step_.evaluate(start, random_input());
      for (const auto& gate : network().gates())
        if (gate.layer == layer && gate.low == 0.0 && gate.high > 0.0) seen[way].push_back(step_.value(gate.var));
    }
    return seen[0] != seen[1];
  }

  /// The states of a memory after the step, one after another, in each case; it alone begins with random states.
  std::vector<std::vector<double>> after(const Memory* memory) {
    std::vector<double> one = start_, other = start_;
    const auto each = [&](const auto& f) {
      for (std::size_t i = 0; i < step_.parts().size(); ++i)
        if (network().states()[i].memory == memory) f(i);
    };
    each([&](std::size_t i) {
      for (std::vector<double>* state : {&one, &other})
        for (double& value : part(*state, i)) value = rng_.normal();
    });
    std::vector<std::vector<double>> ends;
    for (const Case& now : cases) {
      std::vector<double> start = start_;
      for (std::size_t i = 0; now.other_position && i < step_.parts().size(); ++i)
        if (network().states()[i].position) std::ranges::fill(part(start, i), 7.0);
      each([&](std::size_t i) {
        const auto to = part(start, i), first = part(one, i), second = part(other, i);
        for (std::size_t k = 0; k < to.size(); ++k) to[k] = now.first * first[k] + now.second * second[k];
      });
      step_.evaluate(start, inputs_[now.other_input ? 1 : 0]);
      ends.emplace_back();
      std::vector<double> next = step_.next();
      each([&](std::size_t i) { ends.back().insert(ends.back().end(), part(next, i).begin(), part(next, i).end()); });
    }
    return ends;
  }

 private:
  /// A model's initial weights may hide a property: a gate's may all be 0.
  Parameters drawn(const Architecture& architecture, const Hyper& hyper, double spread, std::int64_t columns) {
    Parameters weights = Network(architecture, hyper, {.input = columns}).initialise(1);
    for (auto& entry : weights.entries())
      for (double& value : entry.values) value += spread * rng_.normal();
    return weights;
  }
  std::span<double> part(std::vector<double>& state, std::size_t i) const {
    return std::span(state).subspan(step_.parts()[i].first, step_.parts()[i].entries);
  }
  /// One that begins no document.
  std::vector<double> random_input() {
    std::vector<double> input(step_.inputs());
    for (double& value : input) value = rng_.normal();
    if (document_column_ > 0) input[static_cast<std::size_t>(document_column_ - 1)] = 0.0;
    return input;
  }

  Rng rng_;
  Model model_;
  StepMap step_;
  std::int64_t document_column_ = 0;
  std::vector<double> inputs_[2], start_;
};

/// The distance of a combination of the ends from 0, relative to their size; infinite where one is not finite.
double distance(const std::vector<std::vector<double>>& ends, const std::vector<std::pair<int, double>>& combination) {
  double largest = 0.0, off = 0.0;
  for (std::size_t k = 0; k < ends[0].size(); ++k) {
    double sum = 0.0;
    for (const auto& [b, factor] : combination) {
      const double value = ends[static_cast<std::size_t>(b)][k];
      sum += factor * value;
      largest = std::max(largest, std::abs(value));
    }
    if (!std::isfinite(sum)) return std::numeric_limits<double>::infinity();
    off = std::max(off, std::abs(sum));
  }
  return largest > 0.0 ? off / largest : 0.0;
}

/// The properties of one recurrence.
struct Behaviour {
  bool finite = true, linear, by_input, by_position;
  explicit Behaviour(const std::vector<std::vector<double>>& ends) {
    const double bent = distance(ends, {{2, 1.0}, {0, -share}, {1, share - 1.0}});
    finite = std::isfinite(bent);
    linear = bent <= tolerance;
    by_input = distance(ends, {{0, 1.0}, {1, -1.0}, {3, -1.0}, {4, 1.0}}) > tolerance;
    by_position = distance(ends, {{0, 1.0}, {1, -1.0}, {5, -1.0}, {6, 1.0}}) > tolerance;
  }
};

}  // namespace

std::span<const PropertyInfo> property_infos() {
  static constexpr PropertyInfo all[] = {
      {&Properties::linear, "linear", "linear",
       "Each recurrence is linear in the state, its input given: a scan or a convolution can compute it."},
      {&Properties::gated, "gated", "gated", "What is kept of the state depends on the input."},
      {&Properties::time_invariant, "time_invariant", "time-invariant", "Linear, and the same matrix at every step."},
      {&Properties::diagonal, "diagonal", "diagonal", "No entry of the state sees another."},
      {&Properties::complex, "complex", "complex", "The state holds complex numbers."},
      {&Properties::growing, "growing", "growing", "The state grows with the sequence: it keeps every step that has passed."},
  };
  return all;
}

std::vector<std::string> words_of(const Properties& properties) {
  std::vector<std::string> words;
  if (!properties.linear) words.emplace_back("nonlinear");
  for (const PropertyInfo& info : property_infos())
    if (properties.*info.field) words.emplace_back(info.word);
  return words;
}

Properties properties_of(const Registry& registry, const Preset& preset, std::int64_t input_width) {
  const auto architecture = architecture_of(registry, preset);
  const Hyper hyper = hyper_of(registry, preset);
  Properties found;
  for (const double spread : {0.1, 0.0}) {  // the weights as a model starts with, where others take a step out of range
    OneStep step(*architecture, hyper, spread, input_width);
    const Network& network = step.network();
    const auto& layers = network.layers();
    std::vector<const Memory*> memories;
    bool cached = false, finite = true;
    for (const auto& state : network.states()) {
      found.growing |= state.growing && state.period == 0;
      if (state.layer >= 0 && !layers[static_cast<std::size_t>(state.layer)].first) continue;
      found.complex |= state.pairs || is_complex(state.initial.dtype());
      cached |= state.memory == nullptr && static_cast<bool>(state.trajectory);
      if (state.memory != nullptr && !state.auxiliary && std::ranges::find(memories, state.memory) == memories.end())
        memories.push_back(state.memory);
    }
    const auto gates_of = [&](const Memory* memory) {
      for (const auto& state : network.states())
        if (state.memory == memory) return step.gates_move(state.layer);
      return false;
    };
    if (memories.empty()) {
      // Past inputs alone: a convolution reads it with the same weights at every step, attention does not.
      const auto forms = network.forms();
      found.linear = found.time_invariant = std::ranges::find(forms, Form::convolution) != forms.end();
      return found;
    }
    found.linear = found.time_invariant = !cached;
    found.diagonal = !cached;
    found.gated = false;
    for (const Memory* memory : memories) {
      const Transition transition = memory->transition();
      found.diagonal &= transition.kind == Transition::Kind::diagonal;
      if (transition.kind == Transition::Kind::none) {
        found.linear = found.time_invariant = false;
        found.gated |= gates_of(memory);
        continue;
      }
      const Behaviour one(step.after(memory));
      finite &= one.finite;
      found.linear &= one.linear;
      found.time_invariant &= one.linear && !one.by_input && !one.by_position;
      // The Jacobian of a nonlinear cell always depends on the input; it is gated where a factor from 0 to 1 that it names does.
      found.gated |= one.linear ? one.by_input : gates_of(memory);
    }
    if (finite) break;
  }
  return found;
}

StepCost step_cost(const Registry& registry, const Preset& preset, std::int64_t input_width, std::int64_t steps) {
  const auto architecture = architecture_of(registry, preset);
  const Network network(*architecture, hyper_of(registry, preset), {.steps = steps, .input = input_width});
  StepCost cost;
  cost.steps = steps;
  cost.flops = network.graph().cost().flops / static_cast<double>(steps);
  for (const auto& parameter : network.parameters())
    if (!parameter.name.starts_with("encoder")) cost.parameters += count(parameter.var.shape());
  for (const auto& state : network.states()) {
    if (state.position) continue;
    const Var held = state.growing && state.final_state ? state.final_state : state.initial;
    cost.state += count(held.shape()) * (is_complex(held.dtype()) ? 2 : 1);
  }
  return cost;
}

namespace {

/// Draws weights with some values and compares them with those of others.
class Drawing {
 public:
  Drawing(const Architecture& architecture, std::int64_t input) : architecture_(architecture), input_(input) {}

  /// Whether another value of a row, of which some are tried, draws other weights. Where none of them is allowed nothing is known, and it
  /// counts as one that does.
  bool matters(const HyperSpec& row, const Hyper& hyper) const {
    const Parameters now = drawn(hyper);
    bool tried = false;
    for (const HyperValue& value : others(row, hyper.value(row.key))) {
      try {
        if (!same(drawn(with(hyper, row.key, value)), now)) return true;
        tried = true;
      } catch (const Error&) {  // not with the other values as they are
      }
    }
    return !tried;
  }

  Hyper with(Hyper hyper, const std::string& key, const HyperValue& value) const {
    hyper.set(key, value, architecture_.id);
    if (architecture_.check) architecture_.check(hyper);
    return hyper;
  }

  static std::vector<HyperValue> others(const HyperSpec& row, const HyperValue& now) {
    std::vector<HyperValue> values;
    if (row.kind == HyperKind::flag) values = {true, false};
    if (row.kind == HyperKind::choice) values.assign(row.choices.begin(), row.choices.end());
    const double middle = row.low > 0.0 ? std::sqrt(row.low * row.high) : 0.5 * (row.low + row.high);
    if (row.kind == HyperKind::real) values = {middle, row.low, row.high};
    if (row.kind == HyperKind::integer) values = {std::llround(middle), std::llround(row.low), std::llround(row.high)};
    std::erase(values, now);
    return values;
  }

 private:
  Parameters drawn(const Hyper& hyper) const { return Network(architecture_, hyper, {.input = input_, .head = 1}).initialise(1); }
  static bool same(const Parameters& a, const Parameters& b) {
    const auto equal = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
    return std::ranges::equal(a.entries(), b.entries(), [&](const auto& one, const auto& other) {
      return one.name == other.name && std::ranges::equal(one.values, other.values, equal);
    });
  }
  const Architecture& architecture_;
  std::int64_t input_;
};

}  // namespace

std::vector<IdleSetting> idle_settings(const Architecture& architecture, const Hyper& hyper, std::int64_t input_width) {
  const Drawing drawing(architecture, input_width);
  std::vector<IdleSetting> idle;
  for (const HyperSpec& row : hyper.table()) {
    if (!row.initialisation_only || drawing.matters(row, hyper)) continue;
    std::string why = "It has no effect with the other settings as they are: no weight that is drawn depends on it.";
    for (const HyperSpec& other : hyper.table()) {
      if (&other == &row || (other.kind != HyperKind::choice && other.kind != HyperKind::flag)) continue;
      std::string under;
      for (const HyperValue& value : Drawing::others(other, hyper.value(other.key))) {
        try {
          const Hyper changed = drawing.with(hyper, other.key, value);
          if (drawing.matters(row, changed)) under += (under.empty() ? "" : ", ") + changed.text(other.key);
        } catch (const Error&) {  // not with the other values as they are
        }
      }
      if (under.empty()) continue;
      why = "It has no effect with " + other.key + " = " + hyper.text(other.key) +
            ": no weight that is drawn depends on it. It has one with " + other.key + " = " + under + ".";
      break;
    }
    idle.push_back({row.key, why});
  }
  return idle;
}

}  // namespace reclab
