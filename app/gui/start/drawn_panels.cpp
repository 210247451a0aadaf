// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/start/drawn_panels.h"

#include <QCoreApplication>

#include "gui/look/look.h"
#include "gui/session/files.h"
#include "gui/session/requests.h"
#include "models/registry.h"
#include "studies/study.h"

namespace reclab {

namespace {

/// Or why there is none, where the study says so.
StudyResult computed(const Study& study, const StudyInput& input) {
  try {
    return study.compute(input, study.in_window, {}, {});
  } catch (const Error& error) {
    if (!study.on_request || !study.instead) throw;
    return study.instead(error.what());
  }
}

}  // namespace

DrawnPanels::DrawnPanels(const Library& library, const Setup& setup, const QStringList& ids, const std::vector<Setup>& beside) {
  const Registry& registry = builtin_registry();
  const Kinds needs = needs_of(ids);
  const auto traced = [&](const Setup& of) {
    const RunRequest request = requestFor(of, library.presets.find(of.preset), recordingFor(ids, false));
    TracePtr trace = run(registry, request, {}, {}).trace;
    for (const Study& study : studies())
      if (needs.has_any(study.fills)) {
        const auto found = computed(study, {registry, library.presets, request}).get<Trace>();
        trace = study.measures ? withTiming(trace, found) : merged(trace, found);
      }
    return trace;
  };
  request_ = requestFor(setup, library.presets.find(setup.preset), recordingFor(ids, false));
  trace_ = traced(setup);
  std::vector<Panel::Run> pinned;
  for (std::size_t i = 0; i < beside.size(); ++i)
    pinned.push_back(
        {traced(beside[i]), pinColour(static_cast<int>(i)), QString::fromStdString(library.presets.find(beside[i].preset).title)});
  for (const PanelInfo& info : reclab::panels()) {
    if (!ids.contains(info.id)) continue;
    Panel* panel = panels_.emplace_back(info.make(nullptr)).get();
    // Laid out and given its graphics context like a shown one, on no screen.
    panel->setAttribute(Qt::WA_DontShowOnScreen);
    QObject::connect(panel, &Panel::requested, panel, [panel, &registry, &library, request = request_](const Request& asked) {
      const auto* choice = std::get_if<StudyChoice>(&asked);
      if (choice == nullptr || !study(choice->study).fills.empty()) return;
      panel->setResult(choice->study, study(choice->study).compute({registry, library.presets, request}, choice->values, {}, {}), {});
    });
    panel->resize(900, 560);
    panel->show();
    tellPlace(request_.preset, panel);
    panel->setTrace(trace_);
    if (!pinned.empty()) panel->setPinned(pinned);
    panel->setTimeRange(0, setup.sequence->sequence.length - 1);
    panel->setTime(setup.sequence->sequence.length / 2);
  }
  QCoreApplication::processEvents();
}

std::vector<Panel*> DrawnPanels::panels() const {
  std::vector<Panel*> all;
  for (const auto& one : panels_) all.push_back(one.get());
  return all;
}

}  // namespace reclab
