// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <QToolBar>

#include "gui/time/time_link.h"
#include "gui/views/series_view.h"

class QAction;
class QComboBox;
class QLabel;

namespace reclab {

class ElidedLabel;

/// The bottom of the window: play and pause, where the cursor is, and the input with cursor and brushed range.
class Scrubber : public QToolBar {
  Q_OBJECT
 public:
  Scrubber(TimeLink* time, QWidget* parent);
  /// `quiet`: its words follow with tell().
  void setSequence(const LoadedSequencePtr& sequence, bool quiet = false);
  void tell();
  /// Sets the factor that the model multiplies the input with before it reads it, shown beside the values. Empty: there is none.
  void setInputScale(const QString& scale);
  bool playing() const { return tick_.isActive(); }
  void setPlaying(bool on);
  TimeStrip* strip() const { return strip_; }
  QAction* playAction() const { return play_; }
  QAction* backAction() const { return back_; }
  QAction* forwardAction() const { return forward_; }

 private:
  void advance();
  TimeLink* time_;
  LoadedSequencePtr sequence_;
  QAction *play_, *back_, *forward_;
  QComboBox* speed_;
  QWidget* words_;
  QLabel* where_;
  ElidedLabel *what_, *when_;  ///< the input at the cursor; its time, and the target where one counts
  TimeStrip* strip_;
  QTimer tick_;
  QElapsedTimer since_;
  double position_ = 0.0;  ///< of the cursor while playing, between steps
};

}  // namespace reclab
