// SPDX-License-Identifier: GPL-3.0-or-later
// Presets beside one another: their cards, properties, costs of a step, and spectra on the tasks that they are shown on. ComparedPresets.
#include <algorithm>

#include "studies/compared.h"
#include "studies/study.h"

namespace reclab::studies_by_name {
namespace {

constexpr std::int64_t most_steps = 200;  // a spectrum is seen, and nobody waits

using Ids = std::vector<std::string>;

const std::vector<PlanField<Ids>>& fields() {
  static const std::vector<PlanField<Ids>> all{list_field<Ids>(
      flag_of("presets"), "presets", Field::Says::list, "The presets", [](const Ids& ids) { return ids; },
      [](Ids& ids, const Ids& names) { ids = names; })};
  return all;
}

/// The eigenvalues of the preset's own run.
void add_spectrum(const Registry& registry, const Preset& preset, std::stop_token stop, Compared& compared) {
  RunRequest request;
  request.preset = preset;
  TaskOptions options = preset.task_options();
  options.length = std::min(options.length, most_steps);
  try {
    request.sequence = SharedSequence(make_task(preset.task, options));
    request.recording.kinds = {Kind::spectrum};
    request.recording.dense_rows = 50;
    const TracePtr trace = run(registry, request, {}, std::move(stop)).trace;
    for (std::size_t layer = 0; layer < trace->info.spectra.size(); ++layer) {
      const TraceArray* array = trace->find(key_of(Kind::spectrum, static_cast<std::int64_t>(layer)));
      if (array == nullptr || !array->is_complex() || array->complex->empty()) continue;
      compared.eigenvalues = *array->complex;
      return;
    }
    const auto why = std::ranges::find_if(trace->info.spectra, [](const SpectrumInfo& info) { return !info.of.empty(); });
    compared.no_spectrum = why == trace->info.spectra.end() ? "no spectrum" : why->of;
  } catch (const Error& error) {
    compared.no_spectrum = error.sentence();
  }
}

/// Throws Error for a preset that cannot be built.
Compared compared(const StudyInput& input, const std::string& id, const std::stop_token& stop) {
  const Preset& preset = input.presets.find(id);
  Compared made{card(input.registry, preset), properties_of(input.registry, preset),
                step_cost(input.registry, preset, 1, std::min(preset.task_length, most_steps))};
  add_spectrum(input.registry, preset, stop, made);
  return made;
}

}  // namespace

Study compare() {
  Study made;
  made.fields = {fields().begin(), fields().end()};
  made.takes_model = false;
  made.compute = [](const StudyInput& input, const FieldTexts& values, const StudyReport&, std::stop_token stop) {
    auto all = std::make_shared<ComparedPresets>();
    for (const std::string& id : plan_of(fields(), values)) all->push_back(compared(input, id, stop));
    return all;
  };
  return made;
}

}  // namespace reclab::studies_by_name
