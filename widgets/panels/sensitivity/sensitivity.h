// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCheckBox>
#include <QComboBox>

#include "panels/power_colours.h"
#include "plot/heatmap.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"

namespace reclab {

/// |dy_t/du_s| as a map of t and s, and over s at the cursor; or the mixing matrix of a memory in its place.
class SensitivityPanel : public PlotPanel {
  Q_OBJECT
 public:
  explicit SensitivityPanel(QWidget* parent = nullptr);
  QString id() const override { return QStringLiteral("sensitivity"); }
  QString title() const override { return tr("Sensitivity"); }
  QString hint() const override;
  Kinds needs() const override { return {Kind::sensitivity, Kind::mixing, Kind::mixing_unnormalised}; }
  Kinds waitsFor() const override { return {choice().mixing ? Kind::mixing : Kind::sensitivity}; }
  Places places() const override { return {.views = {QStringLiteral("sensitivity"), QStringLiteral("mixing")}, .named = {}}; }
  void lookAt(const QString& preset, const QString& detail, bool asked) override;
  void setPinned(const std::vector<Run>& runs) override;
  void holdAxes(bool hold) override { values_->hold(hold); }
  QString dataAsCsv() const override;
  QVariantMap choices() const override;
  void setChoices(const QVariantMap& saved) override;

  QAction* logarithmic() const { return logarithmic_; }
  QCPItemStraightLine* inputLine() const { return input_; }
  QString said() const { return said_->text(); }
  Legend* legend() const { return legend_; }
  QCPAxisRect* mapRect() const { return map_rect_; }
  QCPAxisRect* rowRect() const { return row_rect_; }
  Heatmap* heatmap() const { return heatmap_; }
  ColourBar* bar() const { return bar_; }
  QString tipAt(const QPointF& position) const;

  /// What is looked at: the sensitivities, or of a mixing matrix one head or channel.
  struct Choice {
    bool mixing = false;
    QString memory;  ///< "0/S": the key of the mixing matrix without its kind; empty: the last one of the first layer
    std::int64_t group = 0;
    bool normalised = true;  ///< where there are both
  };
  /// The array of a run, which steps its rows and columns are of, and what of it is looked at: the values, and log10 of their moduli.
  struct Blocks {
    const TraceArray* array = nullptr;
    std::vector<std::int64_t> rows, columns;
    std::shared_ptr<const std::vector<double>> values, logarithms;
    double at(std::int64_t row, std::int64_t column) const {
      return (*logarithms)[static_cast<std::size_t>(row * std::ssize(columns) + column)];
    }
    double value(std::int64_t row, std::int64_t column) const {
      return (*values)[static_cast<std::size_t>(row * std::ssize(columns) + column)];
    }
    std::int64_t columnNear(std::int64_t step) const;
  };
  static Blocks blocksOf(const Trace& trace, const Choice& choice);

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override;
  void moveTime() override;
  QString makeHeadline() const override;
  QString subject() const override;

 private:
  struct Pinned {
    std::shared_ptr<const Trace> trace;
    Blocks blocks;
    QCPGraph* curve;
  };
  /// How far back the inputs are that move the output of a row by a hundredth of what the strongest does, and which that is.
  struct Reach {
    std::int64_t strongest = -1, back = 0, ahead = 0;  // -1: none moves it
    double largest = 0.0;                              // log10
  };
  Reach reachOf(std::int64_t row) const;
  void makePins();
  void drawRow(QCPGraph* curve, const Trace& trace, const Blocks& blocks) const;
  void fitHeight();
  void fillControls();
  Choice choice() const;   ///< by hand, or what the preset names
  QString symbol() const;  ///< of what is looked at
  QString valueText(const Blocks& blocks, std::int64_t row, std::int64_t column) const;

  Legend* legend_;
  QCPLayoutGrid* grid_;
  QCPAxisRect *map_rect_, *row_rect_;
  Heatmap* heatmap_;
  ColourBar* bar_;
  ValueAxis* values_;
  Paragraph* said_;
  QCPGraph* row_;
  QCPItemStraightLine* input_;  ///< the input of the cursor's step, as the time cursor is its output
  QAction* logarithmic_;
  QComboBox *view_, *memory_, *group_;
  QCheckBox* normalised_;
  Choice choice_;
  QHash<QString, QString> wanted_;  ///< the view that a preset names, by preset
  bool by_hand_ = false;            ///< the view was chosen here
  Blocks blocks_;                   // of trace_
  PowerColours colours_;
  std::vector<Pinned> pins_;
  std::vector<Run> pinned_;
  bool low_plot_ = false;
};

}  // namespace reclab
