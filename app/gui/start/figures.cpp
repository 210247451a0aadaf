// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstdio>

#include "gui/session/files.h"
#include "gui/start/drawn_panels.h"
#include "gui/start/options.h"
#include "models/registry.h"

namespace reclab {

int drawFigures(const Options& options) {
  try {
    QStringList known;
    for (const PanelInfo& info : panels()) known << info.id;
    for (const QString& id : options.panels)
      if (!known.contains(id))
        throw Error(QString("--panels names %1, which there is not; there are %2.").arg(id, known.join(", ")).toStdString());
    const Library library{PresetLibrary(builtin_registry(), preset_folders()), tasks()};
    Setup setup = beginning(options, library);
    setup.sequence = loadChoice(beginningSequence(options, library));
    const DrawnPanels drawn(library, setup, options.panels.isEmpty() ? known : options.panels);
    if (const RunInfo& info = drawn.trace()->info; info.outcome != Outcome::finished)
      std::fprintf(stderr, "recurrence-lab: %s\n", info.sentence.c_str());
    std::vector<Panel*> all = drawn.panels();
    // A panel that shows a model of its own is drawn where that is the one that runs, or where it is asked for.
    const QString model = QString::fromStdString(setup.preset);
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
