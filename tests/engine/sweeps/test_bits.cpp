// SPDX-License-Identifier: GPL-3.0-or-later
// The same request gives the same bits, in segments of any length, cut anywhere and continued, and on a model that stands.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "experiment/standing.h"
#include "experiment/training/learned.h"
#include "models/registry.h"
#include "safetensors.h"
#include "scratch.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

TracePtr run_quietly(const RunRequest& request) { return run(builtin_registry(), request, {}, {}).trace; }

/// The steps from first on, up to last.
Sequence part_of(Sequence sequence, std::int64_t first, std::int64_t last) {
  const auto cut = [&](std::vector<double>& values, std::int64_t width) {
    if (values.empty()) return;
    values.erase(values.begin() + last * width, values.end());
    values.erase(values.begin(), values.begin() + first * width);
  };
  cut(sequence.input, sequence.width);
  cut(sequence.target, sequence.target_width);
  cut(sequence.mask, 1);
  cut(sequence.time, 1);
  sequence.length = last - first;
  return sequence;
}

bool same_bits(const TraceArray& a, const TraceArray& b) {
  const auto same = [](const auto& x, const auto& y) {
    return std::ranges::equal(std::as_bytes(std::span(x)), std::as_bytes(std::span(y)));
  };
  return a.shape == b.shape && a.is_complex() == b.is_complex() && (a.is_complex() ? same(*a.complex, *b.complex) : same(*a.real, *b.real));
}

/// The weights of a run, all times a factor.
LearnedPtr times(const Trace& trace, double factor) {
  auto weights = std::make_shared<LearnedWeights>();
  weights->training = 1;
  for (const TraceArray* array : trace.of(Kind::param)) {
    weights->values.entries().push_back({array->key.substr(array->key.find('/') + 1), "", array->shape, *array->real});
    for (double& value : weights->values.entries().back().values) value *= factor;
  }
  return weights;
}

}  // namespace

SWEEP_ARCHITECTURES("the same request gives the same bits", architecture) {
  RunRequest request;
  request.preset = test::preset_of(architecture.id);
  request.sequence = make_task("noise", {.length = 120, .seed = 1});
  request.recording.dense_rows = 40;
  NetworkOptions one;
  one.input = request.sequence->width;
  const Network network(architecture, Hyper(architecture.hyper), one);
  for (int layer = 0; layer < static_cast<int>(network.layers().size()); ++layer)
    for (const Memory* memory :
         network.memories(layer))  // decompositions of these take a second a few steps; the smaller ones show as much
      if (const Transition own = memory->transition();
          own.kind == Transition::Kind::blocks && own.entries() * own.size > 256 * 256 * 256 / 8)
        request.recording.kinds.remove(kinds_of(Stage::late));
  const auto a = run_quietly(request), b = run_quietly(request);
  for (const auto& array : a->arrays()) CHECK_SAYS(same_bits(*array, *b->find(array->key)), architecture.id + " " + array->key);
}

SWEEP_ARCHITECTURES("a sequence has the same bits in segments of any length", architecture) {
  const Sequence sequence = make_task("noise", {.length = 150, .seed = 1});
  const Hyper hyper(architecture.hyper);
  const SequenceLoss loss(LossKind::last, sequence);
  NetworkOptions one;
  one.input = sequence.width;
  const Network network(architecture, hyper, one);
  if (network.needs_one_segment()) throw test::Skip("it takes a sequence as one segment");
  const Model model(architecture, hyper, network.initialise(1), cpu_backend(), DType::f64);
  const auto made = [&](std::int64_t segment) {
    Rollout::Options options;
    options.segment = segment;
    Rollout rollout(model, Batch(sequence, loss), options);
    std::vector<double> output;
    CHECK(!rollout.forward(
        [&](const Rollout::Segment& s) {
          const auto values =
              to_double(cpu_backend(), DType::f64, s.network.graph().value(s.network.output()), count(s.network.output().shape()));
          output.insert(output.end(), values.begin(), values.end());
        },
        {}));
    return std::pair{output, rollout.final_states()};
  };
  const auto whole = made(150);
  for (const std::int64_t segment : {149, 64, 17, 1})
    CHECK_SAYS(made(segment) == whole, architecture.id + " in segments of " + std::to_string(segment));
}

TEST_CASE("most architectures take a sequence in segments") {
  const auto& all = builtin_registry().all();
  const auto cut = std::ranges::count_if(
      all, [](const Architecture& architecture) { return !Network(architecture, Hyper(architecture.hyper), {}).needs_one_segment(); });
  CHECK_SAYS(2 * cut > std::ssize(all), std::to_string(cut));
}

SWEEP_PRESETS("a run that is cut anywhere and continued from its exported state is the whole run to the bit", preset) {
  const test::Scratch scratch;
  const std::filesystem::path folder = scratch / "continued";
  for (const std::int64_t cut : {200, 137, 1}) {
    RunRequest whole;
    whole.preset = preset;
    whole.sequence = make_task(preset.task, {.length = 401, .seed = 1});
    whole.recording.kinds.remove(kinds_of(Stage::late) | Kinds{Kind::gradient});
    // Unless it is said the unit of time is the sequence's median step, and a part may have another.
    if (hyper_of(builtin_registry(), preset).has("time_unit")) whole.set.emplace_back("time_unit", "1");
    RunRequest first = whole, second = whole;
    first.sequence = part_of(whole.sequence, 0, cut);
    second.sequence = part_of(whole.sequence, cut, 401);
    const RunResult all = run(builtin_registry(), whole, {}, {});
    if (architecture_of(builtin_registry(), preset)->fit) {  // its weights follow from the sequence: the parts are given those of the whole
      export_run(all, scratch / "whole", false);
      first.weights = second.weights = scratch / "whole" / "trace.npz";
    }
    export_run(run(builtin_registry(), first, {}, {}), folder, false);
    test::npz_to_safetensors(folder / "state.npz", "state/", folder / "state.safetensors");
    for (const char* file : {"state.npz", "state.safetensors"}) {
      second.state = folder / file;
      const RunResult rest = run(builtin_registry(), second, {}, {});
      if (std::ranges::any_of(rest.trace->info.each_layer, &LayerInfo::reversed)) {
        // It would have to know what comes after the part, and says that it does not.
        const auto& notes = rest.trace->info.notes;
        CHECK_SAYS(std::ranges::any_of(notes,
                                       [](const Sentence& note) {
                                         return note.terminal_text().find("run backward begin at the last step") != std::string::npos;
                                       }),
                   preset.id);
        continue;
      }
      const std::string what = preset.id + " cut at " + std::to_string(cut) + ", " + file + ": ";
      int compared = 0;
      for (const auto& array : rest.trace->arrays()) {
        if (!array->key.starts_with("output") && !array->key.starts_with("state/")) continue;
        const TraceArray* full = all.trace->find(array->key);
        const auto skip = static_cast<std::ptrdiff_t>(cut * array->row_size());
        const bool same = array->is_complex() ? std::equal(array->complex->begin(), array->complex->end(), full->complex->begin() + skip)
                                              : std::equal(array->real->begin(), array->real->end(), full->real->begin() + skip);
        CHECK_SAYS(same && array->shape[0] == 401 - cut, what + array->key);
        ++compared;
      }
      CHECK_SAYS(compared >= 1, what + "nothing to compare");
      CHECK_EQUAL(rest.state.size(), all.state.size());
      for (const auto& [key, array] : rest.state) CHECK_SAYS(same_bits(array, all.state.at(key)), what + "final " + key);
      CHECK_EQUAL(rest.trace->info.state, second.state.string());
    }
    // Where no state is recorded a memory may be another operation, which has the same bits before and after a cut.
    if (cut != 137) continue;
    for (RunRequest* request : {&whole, &first, &second}) request->recording.kinds.remove(kinds_of(Stage::passing));
    export_run(run(builtin_registry(), first, {}, {}), folder, false);
    second.state = folder / "state.npz";
    const TracePtr all_read = run_quietly(whole), rest_read = run_quietly(second);
    if (std::ranges::any_of(rest_read->info.each_layer, &LayerInfo::reversed)) continue;
    const TraceArray *full = all_read->find("output"), *rest = rest_read->find("output");
    CHECK_SAYS(
        std::equal(rest->real->begin(), rest->real->end(), full->real->begin() + static_cast<std::ptrdiff_t>(cut * rest->row_size())),
        preset.id + " cut at 137, without states: output");
  }
}

SWEEP_PRESETS("a run on a model that stands has the bits of a run from nothing, whatever ran on it before", preset) {
  RunRequest base;
  base.preset = preset;
  TaskOptions options = preset.task_options();
  options.length = std::min<std::int64_t>(options.length, 60);
  base.sequence = make_task(preset.task, options);
  base.recording.kinds.remove(kinds_of(Stage::late));
  StandingModel standing;
  const auto compare = [&](const RunRequest& request, const std::string& what) {
    const RunResult there = run(builtin_registry(), request, {}, {}, {}, &standing), fresh = run(builtin_registry(), request, {}, {});
    const RunInfo &a = there.trace->info, &b = fresh.trace->info;
    CHECK_SAYS(a.outcome == b.outcome && a.sentence == b.sentence && a.notes == b.notes && a.hyper == b.hyper,
               what + ": " + a.sentence + " / " + b.sentence);
    CHECK_SAYS(a.outcome != Outcome::finished || a.loss_value == b.loss_value, what);
    CHECK_EQUAL(there.trace->arrays().size(), fresh.trace->arrays().size());
    for (const auto& array : fresh.trace->arrays()) CHECK_SAYS(same_bits(*there.trace->find(array->key), *array), what + ": " + array->key);
    CHECK_EQUAL(there.state.size(), fresh.state.size());
    for (const auto& [key, array] : fresh.state) CHECK_SAYS(same_bits(there.state.at(key), array), what + ": " + key);
    return fresh.trace;
  };
  const TracePtr first = compare(base, "as it is");
  RunRequest request = base;
  request.seed = 2;
  compare(request, "with other weights");
  options.seed = 9;
  request.sequence = make_task(preset.task, options);
  compare(request, "on another sequence");
  const auto architecture = architecture_of(builtin_registry(), preset);
  const Hyper hyper = hyper_of(builtin_registry(), preset);
  request = base;
  for (const HyperSpec& row : hyper.table()) {
    if (!row.initialisation_only || row.kind != HyperKind::real) continue;
    request.set = {{row.key, as_text(0.5 * (row.low + hyper.real(row.key)))}};
    if (test::possible(preset, request.set)) compare(request, "with another " + row.key);
  }
  request = base;
  for (const double factor : {0.5, 1e200, 1.0}) {  // many models leave the range of the number format with the second
    request.learned = times(*first, factor);
    compare(request, "with weights that were learned");
  }
  request = base;
  request.dtype = "f32";
  for (const Form form : Network(*architecture, hyper, {.input = base.sequence->width}).forms()) {
    request.form = std::string(to_string(form));
    for (int time = 0; time < 2; ++time) compare(request, request.form + " in float32");
  }
  for (const double at : {0.0, 0.3, 0.6, 0.9}) {  // on its way forward, and on its way back
    std::stop_source stop;
    const auto stops = [&](double fraction, std::string_view) {
      if (fraction >= at) stop.request_stop();
    };
    run(builtin_registry(), base, stops, stop.get_token(), {}, &standing);
    compare(base, "after a run that was stopped at " + as_text(at));
  }
}
