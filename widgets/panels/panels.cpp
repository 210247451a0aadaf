// SPDX-License-Identifier: GPL-3.0-or-later
#include <QCoreApplication>
#include <algorithm>

#include "panel.h"
#include "panels/panel_info.h"
#include "plot/plot.h"

namespace reclab {

namespace panel_infos {
#define RECLAB_PANEL(id) PanelInfo id();
#include "panels/panels.inc"
#undef RECLAB_PANEL
}  // namespace panel_infos

const std::vector<PanelInfo>& panels() {
  static const std::vector<PanelInfo> list = {
#define RECLAB_PANEL(id) panel_infos::id(),
#include "panels/panels.inc"
#undef RECLAB_PANEL
  };
  return list;
}

Panel* named(Panel* panel) {
  for (auto* plot : panel->findChildren<Plot*>())
    if (plot->accessibleName().isEmpty()) plot->setAccessibleName(panel->title());
  return panel;
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
    const QString with = views.isEmpty()   ? tr("with %1").arg(named)
                         : named.isEmpty() ? tr("with a view")
                                           : tr("with a view and %1").arg(named);
    return tr("says more of a panel than there is to choose, \"%1\": write \"%2\"").arg(place, id) +
           (most == 1 ? QString() : tr(", or \"%1\" %2").arg(form, with));
  }
  if (parts.size() > 1 && !views.isEmpty() && !views.contains(parts[1]))
    return tr("names no view of %1: \"%2\"; the views are %3").arg(id, parts[1], views.join(", "));
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

}  // namespace reclab
