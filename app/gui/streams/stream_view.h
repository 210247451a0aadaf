// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "gui/session/files.h"
#include "gui/session/session_controller.h"

class QLabel;
class QPushButton;
class QTableWidget;
class QToolButton;

namespace reclab {

class ElidedLabel;
class StreamCurvesView;
class StreamSettings;

/// The stream: its choices, its buttons, how it goes, and the errors of all that predict it.
class StreamView : public QWidget {
  Q_OBJECT
 public:
  explicit StreamView(const FileChooser* chooser, QWidget* parent = nullptr);
  StreamSettings* settings() const { return settings_; }
  StreamCurvesView* curves() const { return curves_; }
  /// `title`: of the model of the stream.
  void show(const Streaming& now, const QString& title);
  void setCommand(const QString& command);
  QPushButton* startButton() const { return start_; }
  QPushButton* pauseButton() const { return pause_; }
  QPushButton* stopButton() const { return stop_; }
  QTableWidget* table() const { return table_; }
  QString state() const;    ///< in words
  QString leftOut() const;  ///< the sentences on steps and pictures that were left out; empty where there are none
  QString command() const { return command_; }

 signals:
  void startWanted();
  void pauseWanted();  ///< or to go on, where it stands
  void stopWanted();
  void exportWanted();
  void copyWanted();
  void keptWanted();  ///< the streams that are kept are to be listed

 private:
  void showRows(const StreamNumbers& numbers);
  StreamSettings* settings_;
  QPushButton *start_, *pause_, *stop_;
  QLabel *state_, *leftOut_;
  QTableWidget* table_;
  StreamCurvesView* curves_;
  ElidedLabel* line_;
  QToolButton *copy_, *export_, *kept_;
  QString command_;
};

}  // namespace reclab
