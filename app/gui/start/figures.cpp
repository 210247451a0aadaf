// SPDX-License-Identifier: GPL-3.0-or-later
#include <QGuiApplication>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "gui/session/files.h"
#include "gui/session/session_controller.h"
#include "gui/start/options.h"
#include "models/registry.h"
#include "studies/study.h"

namespace reclab {

int drawFigures(const Options& options) {
  try {
    QStringList known;
    for (const PanelInfo& info : panels()) known << info.id;
    for (const QString& id : options.panels)
      if (!known.contains(id))
        throw Error(QString("--panels names %1, which there is not; there are %2.").arg(id, known.join(", ")).toStdString());
    const Registry& registry = builtin_registry();
    const Library library{PresetLibrary(registry, preset_folders()), tasks()};
    Setup setup = beginning(options, library);
    setup.sequence = loadChoice(beginningSequence(options, library));
    std::vector<std::unique_ptr<Panel>> made;
    QStringList ids;
    for (const PanelInfo& info : panels()) {
      if (!options.panels.isEmpty() && !options.panels.contains(info.id)) continue;
      ids << info.id;
      made.emplace_back(info.make(nullptr));
    }
    const Kinds needs = needs_of(ids);
    const RunRequest request = requestFor(setup, library.presets.find(setup.preset), recordingFor(ids, false));
    TracePtr trace = run(registry, request, {}, {}).trace;
    if (trace->info.outcome != Outcome::finished) std::fprintf(stderr, "recurrence-lab: %s\n", trace->info.sentence.c_str());
    for (const Study& study : studies())
      if (needs.has_any(study.fills)) {
        const auto found = study.compute({registry, library.presets, request}, study.in_window, {}, {}).get<Trace>();
        trace = study.measures ? withTiming(trace, found) : merged(trace, found);
      }

    std::vector<Panel*> all;
    const std::int64_t length = setup.sequence->sequence.length;
    for (const auto& one : made) {
      Panel* panel = one.get();
      // Laid out and given its graphics context like a shown one, on no screen.
      panel->setAttribute(Qt::WA_DontShowOnScreen);
      QObject::connect(panel, &Panel::requested, panel, [&, panel](const Request& asked) {
        const auto* choice = std::get_if<StudyChoice>(&asked);
        if (choice == nullptr || !study(choice->study).fills.empty()) return;
        panel->setResult(choice->study, study(choice->study).compute({registry, library.presets, request}, choice->values, {}, {}), {});
      });
      panel->resize(900, 560);
      panel->show();
      tellPlace(request.preset, panel);
      panel->setTrace(trace);
      panel->setTimeRange(0, length - 1);
      panel->setTime(length / 2);
      all.push_back(panel);
    }
    QCoreApplication::processEvents();
    // A panel that shows a model of its own is drawn where that is the one that runs, or where it is asked for.
    const QString model = QString::fromStdString(request.preset.id);
    if (options.panels.isEmpty())
      std::erase_if(all, [&](const Panel* panel) { return panel->emptyReason().isEmpty() && panel->fileModel(model).isEmpty(); });
    const SavedFigures saved = saveFigures(all, model, options.figures, options.format, options.style);
    for (const QString& path : saved.files) std::printf("%s\n", qUtf8Printable(path));
    for (const QString& sentence : saved.without) std::fprintf(stderr, "recurrence-lab: %s\n", qUtf8Printable(sentence));
    if (saved.problem.isEmpty()) return 0;
    std::fprintf(stderr, "recurrence-lab: %s\n", qUtf8Printable(saved.problem));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recurrence-lab: %s\n", error.what());
  }
  return 2;
}

}  // namespace reclab
