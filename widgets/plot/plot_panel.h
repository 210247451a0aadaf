// SPDX-License-Identifier: GPL-3.0-or-later
// The base of panels that are one Plot: a control row, a sentence when there is nothing to show, the runs beside the one that is shown,
// places that presets name, figures.
#pragma once

#include <QComboBox>
#include <QHBoxLayout>
#include <QHash>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>
#include <memory>

#include "panel.h"
#include "plot/parts/table.h"
#include "plot/plot.h"

namespace reclab {

class PlotPanel : public Panel {
  Q_OBJECT
 public:
  explicit PlotPanel(QWidget* parent);

  void setTrace(std::shared_ptr<const Trace> trace) final;
  void setFormer(std::shared_ptr<const Trace> former) final;
  void setTime(std::int64_t step) final;
  void setPinned(const std::vector<Run>& runs) override;
  void holdAxes(bool hold) override { plot_->holdValues(hold); }
  /// Keeps it for wanted(), and shows it. Without a name where the panel has places by name it says nothing.
  void lookAt(const QString& preset, const QString& detail, bool asked) override;
  void setOwnColour(const QColor& colour) final { plot_->setOwnColour(colour); }
  void setTimeRange(std::int64_t first, std::int64_t last) final { plot_->setTimeRange(first, last); }
  QString headline() const final { return headline_; }
  QString emptyReason() const final { return reason_; }
  FigureDrawing drawing(const FigureStyle& style) override;
  Plot* plot() const { return plot_; }
  Legend* legend() const { return legend_; }

 protected:
  /// Why there is nothing to show of trace_ (may be null), or empty.
  virtual QString whyEmpty() const = 0;
  /// Draws trace_, which has something to show. Also called when the palette changed.
  virtual void rebuild() = 0;
  /// Lets go of pointers into the former trace, where there is nothing to show.
  virtual void forget() {}
  /// Moves the parts that depend on step_. Must be cheap; rebuild() calls it by itself if it wants.
  virtual void moveTime() {}
  /// The number of the header line, for trace_ and step_.
  virtual QString makeHeadline() const { return {}; }
  /// Drops the choice by hand for the preset, so that the place it names is shown.
  virtual void dropChoice(const QString& preset) { Q_UNUSED(preset); }
  /// The subject of the figure, after the panel's title: "gate forget, layer 0".
  virtual QString subject() const { return {}; }

  QString figureTitle() const;
  /// A box to choose from, in the control row or to be put elsewhere. `kept`: its choice is kept, and taken back by undo, by its name
  /// alone.
  QComboBox* addChoice(const char* name, bool kept, const QString& tip = {}, const QStringList& items = {});
  static QComboBox* makeChoice(const char* name, bool kept, const QString& tip = {}, const QStringList& items = {});
  /// Fills a box with the layers that these arrays are of. Returns the number of the one that is chosen: as it was, else the first.
  QString fillLayers(QComboBox* box, const std::vector<const TraceArray*>& arrays, const QString& chosen);
  QString preset() const { return trace_ ? QString::fromStdString(trace_->info.preset) : QString(); }
  QString wanted() const { return wanted_.value(preset()); }  ///< the place that the preset of the run names; empty where it names none

  void refresh();  ///< rebuild(), moveTime() and headline, or the sentence

  /// The run before, where the present one is of the same model on the same sequence, so that both belong into one picture; else null.
  const Trace* comparable() const;

  std::shared_ptr<const Trace> trace_;
  std::int64_t step_ = 0;
  std::vector<Run> pinned_;
  Plot* plot_;
  Legend* legend_ = nullptr;  ///< of a panel that makes one
  QWidget* control_row_;
  QHBoxLayout* controls_;  ///< shown when it has anything visible in it
  QPushButton* offer_;     ///< under the sentence; hidden unless a panel offers something

 private:
  void updateHeadline();
  std::shared_ptr<const Trace> former_;
  QHash<QString, QString> wanted_;  ///< by preset
  QStackedWidget* pages_;
  QLabel* sentence_;
  QString reason_, headline_;
};

/// "layer 1", "layer 1 (backward)", "layer 2 (mamba)" for the number in a key.
QString layerName(const Trace& trace, const QString& number);
/// Whether that layer runs from the end of the sequence to its start.
bool runsBackward(const Trace& trace, const QString& number);

/// The notes of the run about arrays of these kinds, each sentence once.
QString notesOn(const Trace& trace, Kinds kinds);

/// " – LSTM, noise, seed 1": the end of a figure's title.
QString titleOfRun(const Trace& trace);

/// "This model" where it has no title.
QString modelName(const Trace& trace);
/// The sentence on a run that did not come to its end: "This run has no gates, for it ended early: ...", where `lacks` is the beginning.
/// Else empty.
QString endedEarly(const Trace& trace, const QString& lacks);
/// Why a run has none of a kind, and never will; empty where it may have.
QString whyAbsent(const Trace& trace, Kind kind);

/// "run first, then ..." for a null trace, and the sentence of a run that ended early.
QString noRunSentence(const Trace* trace, const QString& what);

}  // namespace reclab
