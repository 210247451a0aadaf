// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>

namespace reclab {

class WindowFrame;

/// Says why a typed number is not taken, wherever in the window it is typed: an editor goes back to its former value by itself.
class RefusedNumbers : public QObject {
  Q_OBJECT
 public:
  explicit RefusedNumbers(WindowFrame* frame);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  WindowFrame* frame_;
};

}  // namespace reclab
