// SPDX-License-Identifier: GPL-3.0-or-later
// All that a hand can choose in the window, as one value.
#pragma once

#include <QByteArray>
#include <QMap>
#include <QSize>
#include <QString>
#include <QStringList>
#include <QVariantMap>
#include <cstdint>
#include <functional>
#include <vector>

#include "gui/session/pins.h"
#include "gui/session/setup.h"

namespace reclab {

/// The step of the time cursor, and the steps that every time axis shows.
struct TimeView {
  std::int64_t step = 0, first = 0, last = 0, length = 0;  ///< time steps; of a sequence of that length
  bool operator==(const TimeView& other) const = default;
};

/// The places of docks and panels. Two arrangements are equal where a person sees the same in the same places: their saved bytes may differ
/// by a pixel after each restoring.
struct Arranged {
  QString shape;             ///< the parts shown, hidden, in front and floating, without their sizes
  int layout = 0;            ///< of PanelArea::layouts()
  bool calm = false;         ///< little beside the panels
  QString sides;             ///< the docks at the sides: "own" once a hand moved one, "narrow", "wide"
  bool own = false;          ///< a hand moved or hid a panel
  QSize fit;                 ///< columns and rows of panels
  QByteArray window;         ///< as QWidget::saveGeometry() has it
  QByteArray docks, panels;  ///< as QMainWindow::saveState() has them
  QStringList without;       ///< panels that have no place
  bool operator==(const Arranged& other) const { return shape == other.shape; }
};

struct LabState {
  Setup setup;
  bool follows = false;  ///< the newest weights of a training, as it goes on
  std::vector<PinValue> pins;
  QMap<QString, QVariantMap> panels;  ///< choices of each panel in sight, by its id; behind another it is given nothing to choose from
  QMap<QString, QVariantMap> parts;   ///< choices of each other feature of the window, by its own id for them
  Arranged arranged;
  TimeView time = {};
  bool operator==(const LabState& other) const = default;
};

/// A part of the window that has choices of its own: a form, a view that is on or off.
struct LabPart {
  QString id, text;  ///< text: the name of a change of it, in a menu: "options of training"
  std::function<QVariantMap()> read;
  std::function<void(const QVariantMap&)> put;  ///< anything may come from a file
  bool ofRuns = false;                          ///< a start that has other runs begins without it
};

}  // namespace reclab
