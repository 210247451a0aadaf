// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <QStatusBar>
#include <QTimer>
#include <QToolButton>
#include <functional>
#include <vector>

#include "gui/session/session_controller.h"

class QLabel;
class QProgressBar;
class QPushButton;

namespace reclab {

/// The last line of the window: the last run with its device and cost, then the work or fault of the moment, in words.
class StatusLine : public QStatusBar {
  Q_OBJECT
 public:
  explicit StatusLine(QWidget* parent = nullptr);
  void setRun(const TracePtr& trace);
  void say(const QString& sentence, Tone tone);
  void setProgress(double fraction, const QString& stage);
  void setRunning(bool running);
  QString sentence() const { return sentence_; }
  QString facts() const;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void elide();
  QLabel *what_, *time_, *memory_, *loss_, *weights_, *state_, *dot_, *words_;
  QProgressBar* bar_;
  QTimer patience_;  ///< short runs do not flicker
  QString sentence_;
};

/// A sentence on a fault, above the time line, until it is closed or something goes right.
class Banner : public QFrame {
  Q_OBJECT
 public:
  explicit Banner(QWidget* parent = nullptr);
  void show(const QString& sentence);
  /// A button beside the sentence that is shown, after those that are offered already, until the next sentence.
  void offer(const QString& text, std::function<void()> action);
  QString sentence() const;
  QStringList offers() const;  ///< texts of the buttons

 private:
  static constexpr std::size_t most = 4;
  QLabel* words_;
  std::vector<QPushButton*> buttons_;
  std::vector<std::function<void()>> actions_;
};

}  // namespace reclab
