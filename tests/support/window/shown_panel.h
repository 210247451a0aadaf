// SPDX-License-Identifier: GPL-3.0-or-later
// A panel in a window of its own, and the texts of its figures.
#pragma once

#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <QXmlStreamReader>
#include <memory>

#include "plot/plot.h"
#include "trace/trace.h"

namespace reclab::test {

/// Every <text> of an SVG, for labels that must be there; none of one that is no XML.
inline QStringList textsOf(const QString& file) {
  QFile in(file);
  if (!in.open(QIODevice::ReadOnly)) return {};
  QXmlStreamReader xml(&in);
  QStringList found;
  while (!xml.atEnd())
    if (xml.readNext() == QXmlStreamReader::StartElement && xml.name() == u"text") found << xml.readElementText();
  return xml.hasError() ? QStringList() : found;
}

template <class P>
struct Shown {
  P panel;
  explicit Shown(std::shared_ptr<const Trace> trace, QSize size = {560, 420}) {
    panel.resize(size);
    panel.setTrace(std::move(trace));
    panel.show();
    if (!QTest::qWaitForWindowExposed(&panel)) qFatal("the window did not come up");
    panel.plot()->replot();
  }
  P* operator->() { return &panel; }
  Plot* plot() { return panel.plot(); }
  QCPAxis* x() { return plot()->axisRect(0)->axis(QCPAxis::atBottom); }
  QCPAxis* y() { return plot()->axisRect(0)->axis(QCPAxis::atLeft); }
  template <class W>
  W* find(const char* name) {
    W* found = panel.template findChild<W*>(QLatin1String(name));
    if (!found) qFatal("no %s", name);
    return found;
  }
  /// The texts of its SVG with title, caption and cursor.
  QStringList texts() {
    QTemporaryDir folder;
    const QString file = folder.filePath("t.svg");
    const QStringList found = panel.saveFigure(file, P::Format::svg, FigureStyle::asShown()).isEmpty() ? textsOf(file) : QStringList();
    plot()->replot();
    return found;
  }
};

}  // namespace reclab::test
