// SPDX-License-Identifier: GPL-3.0-or-later
// Sequences side by side: each gives what it gives alone, in every form of every preset, and so does what comes after them; and a rollout
// that is given other sequences or other weights is as good as a new one.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "array/error.h"
#include "evaluation/evaluation.h"
#include "execution/rollout.h"
#include "experiment/prepared.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

using Arrays = std::map<std::string, std::vector<double>>;

/// Sequences that differ, with a loss of each.
struct Several {
  std::vector<Sequence> sequences;
  std::deque<SequenceLoss> losses;

  Several(const std::vector<std::int64_t>& lengths, std::uint64_t seed) {
    for (const std::int64_t length : lengths) sequences.push_back(make_task("noise", {.length = length, .seed = seed++}));
    for (const Sequence& sequence : sequences) losses.emplace_back(LossKind::random, sequence);
  }
  /// The steps [first, last) of others.
  Several(const Several& whole, std::int64_t first, std::int64_t last) : sequences(whole.sequences) {
    for (Sequence& sequence : sequences) {
      sequence.input.erase(sequence.input.begin() + last * sequence.width, sequence.input.end());
      sequence.input.erase(sequence.input.begin(), sequence.input.begin() + first * sequence.width);
      sequence.length = last - first;
    }
    for (const Sequence& sequence : sequences) losses.emplace_back(LossKind::random, sequence);
  }
  Several(const Several&) = delete;
  Several& operator=(const Several&) = delete;

  Batch batch() const {
    std::vector<Example> examples;
    for (std::size_t b = 0; b < sequences.size(); ++b) examples.push_back({&sequences[b], &losses[b]});
    return Batch(examples);
  }
  Batch alone(std::size_t b) const { return {sequences[b], losses[b]}; }
};

/// What a rollout gives, forward and back.
struct Given {
  std::vector<double> output, losses;
  Arrays gradients;
  bool operator==(const Given&) const = default;
};

std::vector<double> forward(Rollout& rollout) {
  std::vector<double> output;
  CHECK(!rollout.forward(
      [&](const Rollout::Segment& s) {
        const auto values =
            to_double(cpu_backend(), DType::f64, s.network.graph().value(s.network.output()), count(s.network.output().shape()));
        output.insert(output.end(), values.begin(), values.end());
      },
      {}));
  return output;
}
Given run(Rollout& rollout) {
  Given given;
  given.output = forward(rollout);
  given.losses = rollout.losses();
  CHECK(!rollout.backward({}, {}));
  given.gradients = rollout.parameter_gradients();
  return given;
}

double largest(const std::vector<double>& values) {
  double most = 0.0;
  for (const double x : values) most = std::max(most, std::abs(x));
  return most;
}

struct Subject {
  std::shared_ptr<const Architecture> architecture;
  Hyper hyper;
  Network recording;
  Parameters parameters;

  explicit Subject(const Preset& preset)
      : architecture(architecture_of(builtin_registry(), preset)),
        hyper(hyper_of(builtin_registry(), preset)),
        recording(*architecture, hyper, {.input = 1}),
        parameters(recording.initialise(1)) {}
  Model model() const { return {*architecture, hyper, parameters, cpu_backend(), DType::f64}; }
  bool backward() const {
    return std::ranges::any_of(recording.layers(), [](const Network::LayerInfo& layer) { return layer.reversed; });
  }
};

/// A batch gives what the single runs give: outputs and losses of each, and the sum of the gradients.
void compare(const Model& model, Form form, const Several& several, const std::string& what) {
  Rollout together(model, several.batch(), {.form = form, .record = false});
  const Given all = run(together);
  const std::size_t B = several.sequences.size(), width = all.output.size() / static_cast<std::size_t>(several.batch().length()) / B;
  Arrays sums;
  double total = 0.0;
  for (std::size_t b = 0; b < B; ++b) {
    Rollout single(model, several.alone(b), {.form = form, .record = false});
    const Given own = run(single);
    const double size = largest(own.output);
    for (std::size_t t = 0; t * width < own.output.size(); ++t)
      for (std::size_t j = 0; j < width; ++j)
        CHECK_SAYS(std::abs(all.output[(t * B + b) * width + j] - own.output[t * width + j]) <= 1e-12 * size,
                   what + ": the output of sequence " + std::to_string(b) + " at step " + std::to_string(t) + " is " +
                       test::show(all.output[(t * B + b) * width + j]) + ", alone " + test::show(own.output[t * width + j]));
    CHECK_SAYS(
        std::abs(all.losses[b] - own.losses[0]) <= 1e-11 * size,
        what + ": the loss of sequence " + std::to_string(b) + " is " + test::show(all.losses[b]) + ", alone " + test::show(own.losses[0]));
    total += own.losses[0];
    for (const auto& [name, values] : own.gradients) {
      auto& sum = sums[name];
      sum.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
    }
  }
  CHECK_CLOSE(together.loss(), total, 1e-11 * (1.0 + std::abs(total)));
  double most = 0.0;
  for (const auto& [name, values] : sums) most = std::max(most, largest(values));
  for (const auto& [name, values] : sums)
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK_SAYS(std::abs(all.gradients.at(name)[i] - values[i]) <= 1e-11 * most,
                 what + ": dL/d" + name + "[" + std::to_string(i) + "] is " + test::show(all.gradients.at(name)[i]) +
                     ", the sum of single runs " + test::show(values[i]) + " (largest " + test::show(most) + ")");
}

}  // namespace

SWEEP_PRESETS("every sequence of a batch gives what it gives alone, and their gradients add up", preset) {
  const Subject subject(preset);
  const Model model = subject.model();
  const Several equal({40, 40, 40}, 4), unequal({40, 29, 17}, 14);
  for (const Form form : subject.recording.forms()) {
    const std::string what = preset.id + " " + std::string(to_string(form));
    compare(model, form, equal, what);
    if (subject.backward()) {
      CHECK_ERROR(Rollout(model, unequal.batch(), {.form = form}), "give sequences of one length");
    } else {
      compare(model, form, unequal, what + ", unequal lengths");
    }
  }
}

SWEEP_PRESETS("other sequences and other weights in place are as good as a new rollout", preset) {
  const Subject subject(preset);
  const Several first({40, 40}, 4), second({40, 40}, 6), other({40}, 8);
  for (const Form form : subject.recording.forms()) {
    const std::string what = preset.id + " " + std::string(to_string(form));
    Model model = subject.model();
    const Rollout::Options options{.form = form, .record = false, .gradients = GradientsOn::device};
    Rollout kept(model, first.batch(), options);
    forward(kept);
    CHECK(!kept.backward({}, {}));
    // What stays on the device is what the host would have summed: powers of two apart, which are exact.
    Rollout on_host(model, first.batch(), {.form = form, .record = false});
    const Given host = run(on_host);
    CHECK(kept.parameter_gradients().empty());
    for (std::size_t i = 0; i < model.weights().size(); ++i) {
      const auto& weight = model.weights()[i];
      CHECK_SAYS(
          to_double(cpu_backend(), DType::f64, kept.device_gradients()[i].data(), weight.entries()) == host.gradients.at(weight.name),
          what + " " + weight.name);
    }
    CHECK(kept.losses() == host.losses);

    model.add(-1e-3, kept.device_gradients());
    const Parameters now = model.parameters();
    const Model changed(*subject.architecture, subject.hyper, now, cpu_backend(), DType::f64);
    for (const auto& entry : now.entries()) {
      const auto& before = host.gradients.at(entry.name);
      const auto start = std::ranges::find(subject.parameters.entries(), entry.name, &Parameters::Entry::name);
      for (std::size_t i = 0; i < before.size(); ++i) CHECK_EQUAL(entry.values[i], start->values[i] + -1e-3 * before[i]);
    }
    Rollout fresh(changed, second.batch(), options);
    const auto expected = forward(fresh);
    CHECK(!fresh.backward({}, {}));
    const std::int64_t arrays = cpu_backend().account().arrays();
    kept.set_batch(second.batch());
    CHECK_SAYS(forward(kept) == expected, what);
    CHECK(kept.losses() == fresh.losses());
    CHECK(!kept.backward({}, {}));
    if (!is_newton(form)) CHECK_SAYS(cpu_backend().account().arrays() == arrays, what + ": memory was taken again");
    for (std::size_t i = 0; i < model.weights().size(); ++i) {
      const std::int64_t n = model.weights()[i].entries();
      CHECK_SAYS(to_double(cpu_backend(), DType::f64, kept.device_gradients()[i].data(), n) ==
                     to_double(cpu_backend(), DType::f64, fresh.device_gradients()[i].data(), n),
                 what + " " + model.weights()[i].name);
    }
    CHECK_ERROR(kept.set_batch(other.batch()), "build another rollout");
  }
}

SWEEP_PRESETS("a batch that is continued from its own final states is the whole to rounding", preset) {
  const Subject subject(preset);
  const Model model = subject.model();
  const Several whole({48, 48}, 4), first(whole, 0, 24), second(whole, 24, 48);
  for (const Form form : subject.recording.forms()) {
    const std::string what = preset.id + " " + std::string(to_string(form));
    Rollout parts(model, first.batch(), {.form = form, .record = false});
    std::vector<double> output = forward(parts);
    const auto& states = parts.network().states();
    const bool grows = std::ranges::any_of(
        states, [](const Network::StateVar& state) { return state.growing && state.final_state && count(state.final_state.shape()) > 0; });
    const bool absent = std::ranges::any_of(states, [](const Network::StateVar& state) { return !state.growing && !state.final_state; });
    if (subject.backward() || grows || absent) {
      CHECK_ERROR(parts.continue_states(), subject.backward() ? "from the end of the sequence"
                                           : grows            ? "cannot be continued in place"
                                                              : "choose form sequential");
      continue;
    }
    const auto carried = parts.final_states();
    parts.continue_states();
    parts.set_batch(second.batch());
    const std::vector<double> rest = forward(parts);
    output.insert(output.end(), rest.begin(), rest.end());
    Rollout at_once(model, whole.batch(), {.form = form, .record = false});
    const std::vector<double> expected = forward(at_once);
    const double size = largest(expected);
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK_SAYS(std::abs(output[i] - expected[i]) <= 1e-12 * size,
                 what + ": " + test::show(output[i]) + ", at once " + test::show(expected[i]));
    // The same by way of the host, and from the beginning again.
    parts.set_initial(carried);
    CHECK_SAYS(forward(parts) == rest, what);
    parts.reset_states();
    parts.set_batch(first.batch());
    CHECK_SAYS(forward(parts) == std::vector<double>(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(output.size() / 2)),
               what);
  }
}

SWEEP_PRESETS("it is judged as it runs alone, beside any number of others", preset) {
  RunRequest request;
  request.preset = preset;
  if (preset.stack.empty())
    for (const auto& one : test::small_settings(preset)) request.set.push_back(one);
  SequenceChoice choice = preset.own_sequence();
  choice.make.length = std::min<std::int64_t>(choice.make.length, std::max<std::int64_t>(30, shortest_task(choice.task, choice.make.set)));
  request.sequence = load_sequence(choice);
  const auto judged = [&](std::int64_t batch) {
    EvaluationPlan plan;
    plan.sequences = 5;
    plan.batch = batch;
    return evaluate(builtin_registry(), test::shipped(), request, plan, {}, {});
  };
  if (request.sequence->target_kind == TargetKind::none) {
    CHECK_ERROR(judged(1), "has no target, so there is nothing to judge by");
    choice = {.task = "adding", .make = {.length = 30}};
    request.sequence = load_sequence(choice);
  }
  const EvaluationTable table = judged(5);
  CHECK_SAYS(table.missing.empty(), table.missing[0].why.terminal_text());
  const auto of_model = [&](const EvaluationTable& of) {
    std::vector<double> all;
    for (const EvaluationRow& row : of.rows)
      if (row.model == preset.id) all.insert(all.end(), {row.loss.mean, row.metric.mean, row.loss.high, static_cast<double>(row.from)});
    return all;
  };
  const auto together = of_model(table), alone = of_model(judged(1));
  CHECK_EQUAL(together.size(), alone.size());
  for (std::size_t i = 0; i < together.size(); ++i)
    CHECK_SAYS(together[i] == alone[i], "number " + std::to_string(i) + " is another alone");

  request.dtype = "f32";
  CHECK(of_model(judged(5)) == of_model(judged(1)));
  request.dtype = "f64";

  RunRequest single = request;
  const auto examples = task_examples(choice.task, choice.make);
  single.sequence = examples->training(0, 0);
  single.loss = LossKind::task;
  const Prepared prepared(builtin_registry(), single);
  const Model model(prepared.architecture, prepared.hyper, prepared.parameters, prepared.backend, prepared.real);
  double mean = 0.0;
  for (std::int64_t i = 0; i < 5; ++i) {
    const Sequence sequence = evaluation_sequence(choice.task, choice.make, i);
    const SequenceLoss loss(LossKind::task, sequence);
    Rollout rollout(model, Batch(sequence, loss), {.record = false});
    CHECK(!rollout.forward({}, {}));
    mean += rollout.loss() / 5.0;
  }
  const auto row = std::ranges::find(table.rows, preset.id, &EvaluationRow::model);
  CHECK(row != table.rows.end());
  CHECK_CLOSE(row->loss.mean, mean, 1e-10 * std::max(1.0, std::abs(mean)));
}
