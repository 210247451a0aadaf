// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "plot/heatmap.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"

namespace reclab {

/// |dy_t/du_s| as a map of t and s, and over s at the cursor.
class SensitivityPanel : public PlotPanel {
  Q_OBJECT
 public:
  explicit SensitivityPanel(QWidget* parent = nullptr);
  QString id() const override { return QStringLiteral("sensitivity"); }
  QString title() const override { return tr("Sensitivity"); }
  QString hint() const override;
  Kinds needs() const override { return {Kind::sensitivity}; }
  void setPinned(const std::vector<Run>& runs) override;
  void holdAxes(bool hold) override { values_->hold(hold); }
  QString dataAsCsv() const override;

  QString said() const { return said_->text(); }
  Legend* legend() const { return legend_; }
  QCPAxisRect* mapRect() const { return map_rect_; }
  QCPAxisRect* rowRect() const { return row_rect_; }
  Heatmap* heatmap() const { return heatmap_; }
  ColourBar* bar() const { return bar_; }
  QString tipAt(const QPointF& position) const;

  /// The array of a run, which steps its rows and columns are of.
  struct Blocks {
    const TraceArray* array = nullptr;
    std::vector<std::int64_t> rows, columns;
    double at(std::int64_t row, std::int64_t column) const { return (*array->real)[static_cast<std::size_t>(row * std::ssize(columns) + column)]; }
    std::int64_t columnNear(std::int64_t step) const;
  };
  static Blocks blocksOf(const Trace& trace);

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override { blocks_ = {}; }
  void moveTime() override;
  QString makeHeadline() const override;

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

  Legend* legend_;
  QCPLayoutGrid* grid_;
  QCPAxisRect *map_rect_, *row_rect_;
  Heatmap* heatmap_;
  ColourBar* bar_;
  ValueAxis* values_;
  Paragraph* said_;
  QCPGraph* row_;
  Blocks blocks_;  // of trace_
  double floor_ = 0.0;  // log10: what is smaller is drawn as this
  std::vector<Pinned> pins_;
  std::vector<Run> pinned_;
  bool low_plot_ = false;
};

}  // namespace reclab
