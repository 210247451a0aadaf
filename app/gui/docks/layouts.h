// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <QString>
#include <QStringList>
#include <vector>

namespace reclab {

/// An arrangement of panels, by their names: a file of resources/layouts.
struct PanelLayout {
  QString name;
  std::vector<QStringList> rows;  ///< panels from left to right; "a|b" is a with b behind it as a tab
  bool calm = false;              ///< for a first look: the window shows little beside them
  QString learns = {};            ///< comes beside them when training begins
  int place = 0;                  ///< in the list of those to choose from
};

/// The layout of a file. Throws Error for a text that is no layout, and for a panel that there is not or that is named twice.
PanelLayout layoutFrom(const QByteArray& json);
/// The arrangements that a person can choose from, the first of them with all panels.
const std::vector<PanelLayout>& panelLayouts();

}  // namespace reclab
