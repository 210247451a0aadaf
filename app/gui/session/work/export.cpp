// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/export.h"

#include <QDir>

#include "gui/session/requests.h"
#include "models/registry.h"

namespace reclab {

ExportWork::ExportWork(Scheduler& scheduler)
    : job_(scheduler, {.order = JobBase::Order::all},
           {.progressed = [this](const ExportKey&, double fraction, const QString& stage) { emit progressed(fraction, stage); },
            .ended = [this](const ExportKey& key, const Ending& ending) { end(key, ending); }}) {}

void ExportWork::start(const QString& folder, bool csv, const LibraryPtr& library, const Setup& setup) {
  emit said(tr("Recording everything for %1…").arg(QDir::toNativeSeparators(folder)), Tone::busy);
  job_.start({folder, csv}, [folder, csv, library, setup](const Report<Nothing>& report, std::stop_token stop) -> Nothing {
    const RunRequest request = requestFor(setup, library->presets.find(setup.preset), RecordingOptions{});
    const RunResult result = run(builtin_registry(), request, report.progress, stop);
    if (result.trace->info.outcome == Outcome::cancelled) throw Cancelled();
    export_run(result, folder.toStdString(), csv);
    return {};
  });
}

void ExportWork::end(const ExportKey& key, const Ending& ending) {
  emit progressed(1.0, {});
  if (ending.how == Ending::How::finished) {
    emit said(tr("The run is in %1: manifest.json, trace.npz and state.npz.").arg(QDir::toNativeSeparators(key.folder)), Tone::info);
    emit exported(key.folder);
  } else {
    emit said(ending.how == Ending::How::stopped ? tr("The export was stopped; nothing was written.") : ending.sentence, Tone::warning);
  }
}

}  // namespace reclab
