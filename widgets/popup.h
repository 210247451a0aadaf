// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>

namespace reclab {

/// A sheet that opens under a button and closes on a click beside it.
class Popup : public QFrame {
  Q_OBJECT
 public:
  explicit Popup(QWidget* parent);
  void openUnder(const QWidget* button);
  /// Adds a choice as a row at its end, with its name at the left.
  void addChoice(const QString& name, QWidget* editor);
};

}  // namespace reclab
