// SPDX-License-Identifier: GPL-3.0-or-later
// All that a hand can choose in the window, as one value.
#pragma once

#include <QByteArray>
#include <QMap>
#include <QSize>
#include <QString>
#include <QStringList>
#include <QVariantMap>
#include <vector>

#include "gui/session/pins.h"
#include "gui/session/setup.h"

namespace reclab {

/// Where docks and panels are. Two arrangements are equal where a person sees the same in the same places: what they are restored by may
/// differ by a pixel after each restoring.
struct Arranged {
  QString shape;             ///< what is shown, hidden, in front and floating; not how large it is
  int layout = 0;            ///< of PanelArea::layouts()
  bool calm = false;         ///< little beside the panels
  QString sides;             ///< the docks at the sides: "own" once a hand moved one, "narrow", "wide"
  bool own = false;          ///< a hand moved or hid a panel
  QSize fit;                 ///< columns and rows of panels
  QByteArray docks, panels;  ///< as QMainWindow::saveState() has them
  QStringList without;       ///< panels that have no place
  bool operator==(const Arranged& other) const { return shape == other.shape; }
};

struct LabState {
  Setup setup;
  bool follows = false;  ///< the newest weights of a training, as it goes on
  std::vector<PinValue> pins;
  QMap<QString, QVariantMap>
      panels;  ///< what each that is in sight was set to, by its id; behind another it is given nothing to choose from
  Arranged arranged;
  bool operator==(const LabState& other) const = default;
};

/// What differs first, in words for a menu: "view of Gradients", "arrangement"; empty where nothing does that a hand chooses in the
/// window's own parts.
QString changeOfView(const LabState& before, const LabState& after);

}  // namespace reclab
