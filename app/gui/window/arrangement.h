// SPDX-License-Identifier: GPL-3.0-or-later
// The arrangement of the window, which lasts over a restart: the docks at its sides, which follow its width until a hand moves one, the
// layouts of the panels, and the parts that a calm one leaves out.
#pragma once

#include <QMainWindow>
#include <QTimer>
#include <optional>

#include "gui/frame/lab_state.h"

namespace reclab {

class RunBar;
class WindowFrame;

class Arrangement : public QObject {
  Q_OBJECT
 public:
  Arrangement(WindowFrame* frame, RunBar* bar);
  Arranged value() const;
  bool setValue(const Arranged& value);  ///< false: it is none that Qt takes
  void reset();
  /// Restores the window as it was when it was closed; with this layout where it names one.
  void restore(const QString& layout, const std::optional<Arranged>& kept);
  void fitWindow();  ///< after its size changed
  void keepOnScreen();

 private:
  QString shape() const;
  bool isNarrow() const;
  void tellRoom();
  void arrangeSides();
  void pick(int index);
  void begin(int layout);   ///< whatever the window shows
  void setCalm(bool calm);  ///< little beside the panels: three sliders, three models, few buttons

  WindowFrame* frame_;
  QMainWindow* window_;
  RunBar* bar_;
  bool calm_ = false, narrow_ = false, own_ = false, arranging_ = false;
  QTimer soon_;
};

}  // namespace reclab
