// SPDX-License-Identifier: GPL-3.0-or-later
// What the panels that are one Plot have in common: a control row, a sentence when there is nothing to show, figures.
#pragma once

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>
#include <memory>

#include "panel.h"
#include "plot/plot.h"

namespace reclab {

class PlotPanel : public Panel {
  Q_OBJECT
 public:
  explicit PlotPanel(QWidget* parent);

  void setTrace(std::shared_ptr<const Trace> trace) final;
  void setFormer(std::shared_ptr<const Trace> former) final;
  void setTime(std::int64_t step) final;
  void setOwnColour(const QColor& colour) final { plot_->setOwnColour(colour); }
  void setTimeRange(std::int64_t first, std::int64_t last) final { plot_->setTimeRange(first, last); }
  QString headline() const final { return headline_; }
  QString emptyReason() const final { return reason_; }
  FigureDrawing drawing(const FigureStyle& style) override;
  Plot* plot() const { return plot_; }

 protected:
  /// Why there is nothing to show of trace_ (may be null), or empty.
  virtual QString whyEmpty() const = 0;
  /// Draws trace_, which has something to show. Also called when the palette changed.
  virtual void rebuild() = 0;
  /// There is nothing to show: let go of pointers into the trace that was.
  virtual void forget() {}
  /// Moves what depends on step_. Must be cheap; rebuild() calls it by itself if it wants.
  virtual void moveTime() {}
  /// The number of the header line, for trace_ and step_.
  virtual QString makeHeadline() const { return {}; }
  /// What the figure is of, after the panel's title: "gate forget, layer 0".
  virtual QString subject() const { return {}; }

  QString figureTitle() const;
  void refresh();  ///< rebuild(), moveTime() and headline, or the sentence

  /// The run before, where the present one is of the same model on the same sequence, so that both belong into one picture; else null.
  const Trace* comparable() const;

  std::shared_ptr<const Trace> trace_;
  std::int64_t step_ = 0;
  Plot* plot_;
  QWidget* control_row_;
  QHBoxLayout* controls_;  ///< shown when it has anything visible in it
  QPushButton* offer_;     ///< under the sentence; hidden unless a panel offers something

 private:
  void updateHeadline();
  std::shared_ptr<const Trace> former_;
  QStackedWidget* pages_;
  QLabel* sentence_;
  QString reason_, headline_;
};

/// "layer 1", "layer 1 (backward)", "layer 2 (mamba)" for the number in a key.
QString layerName(const Trace& trace, const QString& number);
/// Whether that layer runs from the end of the sequence to its start.
bool runsBackward(const Trace& trace, const QString& number);

/// What the run noted about arrays of these kinds, each sentence once.
QString notesOn(const Trace& trace, Kinds kinds);

/// "run first, then ..." for a null trace, and what a run that ended early says of itself.
QString noRunSentence(const Trace* trace, const QString& what);

}  // namespace reclab
