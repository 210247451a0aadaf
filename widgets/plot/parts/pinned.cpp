// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/parts/pinned.h"
#include "plain_text.h"

#include <algorithm>

namespace reclab {

QString pinKey(const Panel::Run& run) { return QStringLiteral("pinned/") + run.label; }

void addPin(Legend* legend, const Panel::Run& run, const QPen& pen, const QList<QCPLayerable*>& shows, const QStringList& of,
            const QString& how) {
  const QString text = !of.isEmpty() ? Panel::tr("%1 (%2)").arg(run.label, of.join(QStringLiteral(", "))) : run.label;
  QStringList tip{Panel::tr("Pinned run: %1.").arg(run.tip.isEmpty() ? run.label : run.tip)};
  if (!how.isEmpty()) tip << how;
  legend->add(pinKey(run), text, pen, shows, joinedTips(tip));
}

void addPinWithout(Legend* legend, const Panel::Run& run, const Theme& theme, const QString& lacks, const QString& tip) {
  legend->add(pinKey(run), Panel::tr("%1: %2").arg(run.label, lacks), QPen(mixed(run.colour, theme.base, 0.5), 1.0, Qt::DotLine), {}, tip);
}

void addPinsWithout(Legend* legend, const std::vector<Panel::Run>& runs, const Theme& theme, const QString& lacks, const QString& tip) {
  if (runs.empty()) return;
  if (runs.size() == 1) return addPinWithout(legend, runs.front(), theme, lacks, tip);
  QStringList names;
  for (const Panel::Run& run : runs) names << run.label;
  legend->add(QStringLiteral("pinned"), Panel::tr("%1 pinned runs: %2").arg(runs.size()).arg(lacks), QPen(theme.muted, 1.0, Qt::DotLine),
              {}, joinedTips({names.join(QStringLiteral(", ")), tip}));
}

QString pinsThatHave(const std::vector<Panel::Run>& runs, Kinds kinds) {
  QStringList names;
  for (const Panel::Run& run : runs)
    if (std::ranges::any_of(kind_table(), [&](const KindInfo& row) { return kinds.has(row.kind) && run.trace->has(row.kind); }))
      names << run.label;
  if (names.isEmpty()) return {};
  if (names.size() == 1) return Panel::tr("%1, which is pinned, has: see them side by side (Ctrl+B).").arg(names.front());
  const QString last = names.takeLast();
  return Panel::tr("%1 and %2, which are pinned, have: see them side by side (Ctrl+B).").arg(names.join(QStringLiteral(", ")), last);
}

}  // namespace reclab
