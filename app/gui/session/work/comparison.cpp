// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/comparison.h"

#include <algorithm>

#include "models/registry.h"
#include "window_text.h"

namespace reclab {
namespace {

constexpr std::int64_t comparedSteps = 200;  // at most: a spectrum is seen, and nobody waits

/// The eigenvalues of the preset's own run.
void addSpectrum(const Preset& preset, std::stop_token stop, Compared& compared) {
  RunRequest request;
  request.preset = preset;
  TaskOptions options = preset.task_options();
  options.length = std::min(options.length, comparedSteps);
  try {
    request.sequence = SharedSequence(make_task(preset.task, options));
    request.recording.kinds = {Kind::spectrum};
    request.recording.dense_rows = 50;
    const TracePtr trace = run(builtin_registry(), request, {}, stop).trace;
    for (std::size_t layer = 0; layer < trace->info.spectra.size(); ++layer) {
      const TraceArray* array = trace->find(key_of(Kind::spectrum, static_cast<std::int64_t>(layer)));
      if (array == nullptr || !array->is_complex() || array->complex->empty()) continue;
      compared.eigenvalues = *array->complex;
      return;
    }
    for (const SpectrumInfo& info : trace->info.spectra)
      if (compared.noSpectrum.isEmpty()) compared.noSpectrum = QString::fromStdString(info.of);
  } catch (const Error& error) {
    compared.noSpectrum = windowText(error);
  }
  if (compared.noSpectrum.isEmpty()) compared.noSpectrum = QObject::tr("no spectrum");
}

}  // namespace

Compared comparedOf(const Preset& preset, std::stop_token stop) {
  Compared compared;
  compared.card = card(builtin_registry(), preset);
  compared.properties = properties_of(builtin_registry(), preset);
  compared.cost = step_cost(builtin_registry(), preset, 1, std::min(preset.task_length, comparedSteps));
  addSpectrum(preset, stop, compared);
  return compared;
}

ComparisonWork::ComparisonWork(Scheduler& scheduler)
    : job_(scheduler, {.niceness = 5},
           {.finished = [this](const ComparisonKey& key, const ComparedPair& both) { emit compared(key, both); },
            .ended =
                [this](const ComparisonKey&, const Ending& ending) {
                  if (ending.how == Ending::How::failed) emit failed(ending.sentence);
                }}) {}

void ComparisonWork::compare(const LibraryPtr& library, const ComparisonKey& key) {
  if (job_.isAt(key)) return;
  job_.start(key, [library, key](const auto&, std::stop_token stop) {
    return ComparedPair{comparedOf(library->presets.find(key.one), stop), comparedOf(library->presets.find(key.other), stop)};
  });
}

}  // namespace reclab
