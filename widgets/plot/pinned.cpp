// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/pinned.h"

#include <array>

namespace reclab {

QString pinKey(const Panel::Run& run) { return QStringLiteral("pinned/") + run.label; }

void addPin(Legend* legend, const Panel::Run& run, const QPen& pen, const QList<QCPLayerable*>& shows, const QStringList& of, const QString& how) {
  const QString text = !of.isEmpty() ? Panel::tr("%1 (%2)").arg(run.label, of.join(QStringLiteral(", "))) : run.label;
  QStringList tip{Panel::tr("Pinned run: %1.").arg(run.tip.isEmpty() ? run.label : run.tip)};
  if (!how.isEmpty()) tip << how;
  legend->add(pinKey(run), text, pen, shows, tip.join(u'\n'));
}

void addPinWithout(Legend* legend, const Panel::Run& run, const Theme& theme, const QString& lacks, const QString& tip) {
  legend->add(pinKey(run), Panel::tr("%1: %2").arg(run.label, lacks), QPen(mixed(run.colour, theme.base, 0.5), 1.0, Qt::DotLine), {}, tip);
}

Qt::PenStyle pinStyle(int i) {
  constexpr std::array styles{Qt::SolidLine, Qt::DashLine, Qt::DashDotLine, Qt::DashDotDotLine};
  return styles[static_cast<std::size_t>(i) % styles.size()];
}

}  // namespace reclab
