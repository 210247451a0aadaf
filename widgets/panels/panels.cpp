// SPDX-License-Identifier: GPL-3.0-or-later
// The list of panels: adding one is a folder's worth of files and a line here.
#include "panel.h"

#include <QCoreApplication>
#include <algorithm>
#include <memory>
#include <type_traits>

#include "panels/gating/gating.h"
#include "panels/gradients/gradients.h"
#include "panels/spectrum/spectrum.h"
#include "panels/steps/steps_panel.h"
#include "panels/timing/timing.h"
#include "panels/trajectories/trajectories.h"

namespace reclab {

namespace {
/// A panel says of itself what the list needs; the one that is asked is not shown, and gets no OpenGL if it can do without.
template <class P>
PanelInfo info() {
  const auto make_probe = [] {
    if constexpr (std::is_constructible_v<P, QWidget*, bool>)
      return std::make_unique<P>(nullptr, false);
    else
      return std::make_unique<P>();
  };
  const auto asked = make_probe();
  const Panel& probe = *asked;
  return {probe.id(), probe.title(), probe.hint(), probe.needs(), probe.places(), [](QWidget* parent) -> Panel* { return new P(parent); }};
}
}  // namespace

const std::vector<PanelInfo>& panels() {
  static const std::vector<PanelInfo> list = {
      info<SpectrumPanel>(), info<TrajectoriesPanel>(), info<GatingPanel>(), info<GradientsPanel>(), info<TimingPanel>(), info<StepsPanel>(),
  };
  return list;
}

QString problem_of_place(const QString& place) {
  const auto tr = [](const char* text) { return QCoreApplication::translate("reclab::Panel", text); };
  const QStringList parts = place.split(':');
  const QString id = parts[0];
  const auto found = std::ranges::find(panels(), id, &PanelInfo::id);
  if (found == panels().end()) {
    QStringList known;
    for (const PanelInfo& panel : panels()) known << panel.id;
    return tr("names no panel: \"%1\"; the panels are %2").arg(id, known.join(", "));
  }
  const auto& [views, named, example] = found->places;
  const qsizetype most = 1 + !views.isEmpty() + !named.isEmpty();
  if (parts.size() > most || (parts.size() > 1 && parts.contains(QString()))) {
    const QString form = views.isEmpty() ? id + ":" + example : id + ":" + views.back() + (named.isEmpty() ? QString() : ":" + example);
    const QString with = views.isEmpty() ? tr("with %1").arg(named) : named.isEmpty() ? tr("with a view") : tr("with a view and %1").arg(named);
    return tr("says more of a panel than there is to choose, \"%1\": write \"%2\"").arg(place, id) + (most == 1 ? QString() : tr(", or \"%1\" %2").arg(form, with));
  }
  if (parts.size() > 1 && !views.isEmpty() && !views.contains(parts[1])) return tr("names no view of %1: \"%2\"; the views are %3").arg(id, parts[1], views.join(", "));
  return {};
}

Kinds needs_of(const QStringList& ids) {
  Kinds needs;
  for (const QString& id : ids) {
    const auto found = std::ranges::find(panels(), id, &PanelInfo::id);
    if (found == panels().end() || found->needs.empty()) return needs | recordable();
    needs.add(found->needs);
  }
  return needs;
}

std::vector<PanelLayout> panel_layouts() {
  const auto tr = [](const char* text) { return QCoreApplication::translate("reclab::PanelArea", text); };
  QStringList ids;
  for (const PanelInfo& panel : panels()) ids << panel.id;
  // The first two on top, the others below: whatever panels there are, all are in the first layout. A row has room for three; what more
  // there are stand behind the last one, as tabs.
  QStringList below = ids.mid(2, 2);
  below << ids.mid(4).join('|');
  return {{tr("Explore"), {ids.mid(0, 2), below}},
          {tr("Memory"), {{"gradients"}, {"spectrum", "trajectories"}}},
          {tr("States"), {{"trajectories"}, {"gating"}}},
          {tr("Speed"), {{"timing"}, {"steps"}}}};
}

}  // namespace reclab
