// SPDX-License-Identifier: GPL-3.0-or-later
// The keyboard of the window: whose a key is, and where it goes to from one part to the next.
#pragma once

#include <QObject>

namespace reclab {

class Scrubber;
class WindowFrame;

class Keys : public QObject {
  Q_OBJECT
 public:
  Keys(WindowFrame* frame, Scrubber* scrubber);
  void toNextPart(bool back);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  WindowFrame* frame_;
  Scrubber* scrubber_;
};

}  // namespace reclab
