// SPDX-License-Identifier: GPL-3.0-or-later
#include "schedule/schedule.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "array/stop.h"
#include "execution/rollout.h"
#include "experiment/prepared.h"
#include "models/registry.h"

namespace reclab {
namespace {

using drawing::Complex;

/// Writes a plan down.
void put(const Plan& plan, Trace& trace, const std::string& form, std::int64_t steps, bool backward) {
  const std::string prefix = key_of(Kind::schedule, form + "/");
  const auto of = [&](const char* name, Shape shape, std::vector<Axis> axes, std::string text) {
    TraceArray array;
    array.key = prefix + name;
    array.shape = std::move(shape);
    array.axes = std::move(axes);
    array.text = std::move(text);
    return array;
  };
  const auto real = [&](TraceArray array, std::vector<double> values) {
    array.real = std::make_shared<const std::vector<double>>(std::move(values));
    trace.put(std::move(array));
  };
  const auto n = static_cast<std::int64_t>(plan.nodes().size()), k = static_cast<std::int64_t>(plan.kinds().size());
  std::vector<double> rows, ends, places, counts(plan.kinds().size(), 0.0), depths(plan.nodes().size(), 0.0);
  double rounds = 0.0, work = 0.0, depth = 0.0;
  for (const Plan::Node& node : plan.nodes()) {
    const auto first = backward ? steps - 1 - node.last : node.first, last = backward ? steps - 1 - node.first : node.last;
    for (const auto x :
         {node.round, first, last, std::int64_t{node.kind}, node.begin, backward ? steps - 1 - node.row : node.row, node.work})
      rows.push_back(static_cast<double>(x));
    ++counts[static_cast<std::size_t>(node.kind)];
    rounds = std::max(rounds, static_cast<double>(node.round));
    work += static_cast<double>(node.work);
  }
  // Nodes come after the nodes that they need.
  std::size_t edge = 0;
  for (std::size_t i = 0; i < plan.nodes().size(); ++i) {
    for (; edge < plan.edges().size() && plan.edges()[edge].second == static_cast<int>(i); ++edge)
      depths[i] = std::max(depths[i], depths[static_cast<std::size_t>(plan.edges()[edge].first)]);
    if (plan.nodes()[i].round > 0) depths[i] += static_cast<double>(plan.nodes()[i].round - plan.nodes()[i].begin + 1);
    depth = std::max(depth, depths[i]);
  }
  for (const auto& [from, to] : plan.edges()) ends.insert(ends.end(), {static_cast<double>(from), static_cast<double>(to)});
  std::vector<std::string> names, rules;
  for (const Plan::Kind& one : plan.kinds()) {
    names.push_back(one.name);
    rules.push_back(one.rule);
    places.push_back(static_cast<double>(one.place));
  }
  real(of("nodes", {n, 7}, {{"node", "", {}}, {"column", "", {"round", "first", "last", "kind", "begin", "row", "work"}}},
          "The pieces of work: the round each can run in (0: given), the steps it covers, its kind, the round it begins in, its row, and "
          "its share of the work."),
       std::move(rows));
  real(of("edges", {std::ssize(plan.edges()), 2}, {{"edge", "", {}}, {"column", "", {"from", "to"}}}, "Which node needs which."),
       std::move(ends));
  real(of("kinds", {k}, {{"kind", "", std::move(names)}}, "How each kind of node is drawn."), std::move(places));
  real(of("rules", {k}, {{"kind", "", std::move(rules)}}, "What each kind of node computes, and how many there are."), std::move(counts));
  real(of("rounds", {1}, {{"rounds", "", {}}}, plan.why), {rounds});
  real(of("work", {1}, {{"work", "", {}}}, plan.unit), {work});
  real(of("depth", {1}, {{"rounds", "", {}}}, "The longest chain of rounds that wait for each other."), {depth});
  real(of("drawing", {1}, {{"drawing", "", {plan.drawing}}}, "How the form is drawn."), {0.0});
  const auto made = [&](const char* name, Complex Plan::Node::* member, const std::string& text) {
    const auto given = [&](const Plan::Node& node) { return !std::isnan((node.*member).real()); };
    if (std::ranges::none_of(plan.nodes(), given)) return;
    TraceArray array = of(name, {n}, {{"node", "", {}}}, text);
    if (std::ranges::any_of(plan.nodes(), [&](const Plan::Node& node) { return given(node) && (node.*member).imag() != 0.0; })) {
      std::vector<Complex> values;
      for (const Plan::Node& node : plan.nodes()) values.push_back(node.*member);
      array.complex = std::make_shared<const std::vector<Complex>>(std::move(values));
      trace.put(std::move(array));
    } else {
      std::vector<double> values;
      for (const Plan::Node& node : plan.nodes()) values.push_back((node.*member).real());
      real(std::move(array), std::move(values));
    }
  };
  made("value", &Plan::Node::value, plan.entry);
  made("product", &Plan::Node::product, "The product of the factors of the steps that the node covers, of the same entry.");
  if (plan.errors.empty()) return;
  TraceArray table = of("error", {std::ssize(plan.errors), steps}, {{"iteration", "", {}}, {"time", "", {}}},
                        "log10 of the largest |s_t - its value step by step| relative to the largest state; -17 where that is nothing. "
                        "Iteration 0 is the guess.");
  table.unit = "log10";
  std::vector<double> all;
  for (auto row : plan.errors) {
    if (backward) std::ranges::reverse(row);
    all.insert(all.end(), row.begin(), row.end());
  }
  real(std::move(table), std::move(all));
}

std::optional<Drawn> find(Network& network, Form form) {
  std::optional<Drawn> found;
  const Memory* memory = nullptr;
  // Of layers at several rates one whose steps are those of the sequence.
  const bool several_rates = std::ranges::any_of(network.layers(), [](const Network::LayerInfo& layer) { return layer.stride > 1; });
  network.graph().visit([&](const Operation& operation, std::span<const Var> in, std::span<const Var> out) {
    const auto* over_time = dynamic_cast<const HasEvaluationOrder*>(&operation);
    if (found || !over_time) return;
    EvaluationOrder course = over_time->evaluation_order();
    if (course.steps == 0 || course.form != form || (several_rates && course.steps != network.options().steps)) return;
    if (course.in.empty()) course.in.assign(in.begin(), in.end());
    found.emplace();
    found->in = course.in;
    found->out.assign(out.begin(), out.end());
    found->order = std::move(course);
    memory = dynamic_cast<const Memory*>(&operation);
  });
  if (!found) return found;
  for (const auto& state : network.states())
    if (memory && state.memory == memory && !found->memory) {
      found->memory = state.memory;
      found->trajectory = state.trajectory;
      found->state = Rollout::state_key(state);
      found->reversed = state.reversed;
    }
  // An operation that is no memory has no known layer: it is drawn in the direction of the first.
  if (!found->memory && !network.layers().empty()) found->reversed = network.layers().front().reversed;
  return found;
}

Sequence cut(const Sequence& whole, std::int64_t steps) {
  Sequence sequence = whole;
  sequence.length = std::min(steps, whole.length);
  sequence.input.resize(static_cast<std::size_t>(sequence.length * sequence.width));
  sequence.time.resize(static_cast<std::size_t>(sequence.length));
  sequence.target_kind = TargetKind::none;
  sequence.target.clear();
  sequence.mask.clear();
  return sequence;
}

TraceArray none_because(const std::string& why) {
  TraceArray array;
  array.key = key_of(Kind::schedule, "none");
  array.shape = {0};
  array.axes = {{"steps", "", {}}};
  array.text = why;
  array.real = std::make_shared<const std::vector<double>>();
  return array;
}

}  // namespace

TracePtr form_schedule(const Registry& registry, const RunRequest& request, std::int64_t steps_wanted, std::stop_token stop) {
  if (steps_wanted < 1 || steps_wanted > most_schedule_steps)
    throw Error("A step view of " + std::to_string(steps_wanted) + " steps cannot be drawn: choose 1 to " +
                    std::to_string(most_schedule_steps) + ".",
                {.parameter = "steps", .value = std::to_string(steps_wanted), .range = "1 to " + std::to_string(most_schedule_steps)});
  const StopScope scope(stop);
  RunRequest asked = request;  // weights as for the run; the drawing on the CPU in float64
  asked.device = "cpu";
  asked.dtype = "f64";
  asked.form = "sequential";
  const Prepared prepared(registry, asked);
  const Sequence sequence = cut(request.sequence, steps_wanted);
  const std::int64_t T = sequence.length;
  // The head, which no memory sees, is there so that weights fit.
  const SequenceLoss loss(LossKind::random, sequence, prepared.loss.outputs());

  Trace trace;
  trace.info.version = RECLAB_VERSION;
  trace.info.preset = request.preset.id;
  trace.info.title = request.preset.title;
  trace.info.architecture = prepared.architecture.id;
  trace.info.family = prepared.architecture.family;
  trace.info.seed = request.seed;
  trace.info.device = "cpu";
  trace.info.dtype = "float64";
  trace.info.length = T;

  const Model model(prepared.architecture, prepared.hyper, prepared.parameters, cpu_backend(), DType::f64);
  std::unique_ptr<Rollout> sequential;
  bool any = false;
  std::string why = "No form of this model can be drawn.";
  for (const Form form : prepared.shape_network->forms()) {
    if (stop.stop_requested()) throw Cancelled();
    auto rollout = std::make_unique<Rollout>(model, Batch(sequence, loss), Rollout::Options{.form = form, .segment = T});
    Network& network = rollout->network();
    auto found = find(network, form);
    if (!found) continue;
    if (found->memory && found->memory->newton())
      found->memory->watch([&](int, bool diagonal, const std::vector<std::vector<double>>& states) {
        found->watched.diagonal.push_back(diagonal);
        found->watched.states.push_back(states);
      });
    if (const auto bad = rollout->forward({}, stop)) {
      const std::string said = "The " + std::string(to_string(form)) + " form cannot be drawn: " + sentence(*bad) + ".";
      trace.info.notes.push_back(said);
      why += " " + said;
      continue;
    }
    if (found->memory && found->memory->newton()) {
      // The same memory of the sequential run: the solution of the iteration.
      for (std::size_t i = 0; sequential && i < network.states().size(); ++i)
        if (network.states()[i].memory == found->memory)
          found->truth.push_back(drawing::values_of(sequential->network().states()[i].trajectory));
      if (found->truth.empty() || found->watched.states.empty()) continue;
    }
    Plan plan;
    found->order.draw(plan, *found);
    put(plan, trace, std::string(to_string(form)), T, found->reversed);
    any = true;
    if (form == Form::sequential) sequential = std::move(rollout);
  }
  const auto single = [&](const std::string& key, Shape shape, std::vector<double> values, const std::string& text) {
    TraceArray array;
    array.key = key;
    array.shape = std::move(shape);
    array.axes = {{"steps", "", {}}};
    array.text = text;
    array.real = std::make_shared<const std::vector<double>>(std::move(values));
    trace.put(std::move(array));
  };
  single(key_of(Kind::schedule, "steps"), {1}, {static_cast<double>(T)},
         "The first " + std::to_string(T) + (T == 1 ? " step" : " steps") +
             " of the sequence, from the model's own initial state, on the CPU in float64: what the first memory does that a form runs.");
  if (!any) trace.put(none_because(why));
  return std::make_shared<const Trace>(trace);
}

TracePtr no_schedule(const std::string& why) {
  Trace none;
  none.put(none_because(why));
  return std::make_shared<const Trace>(none);
}

}  // namespace reclab
