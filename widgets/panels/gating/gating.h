// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QComboBox>

#include "panels/gating/gating_statistics.h"
#include "plot/heatmap.h"
#include "plot/plot_panel.h"

namespace reclab {

/// One gate at a time: all its units over time, their mean and quantiles, their histogram at the cursor, and how many are saturated.
class GatingPanel : public PlotPanel {
  Q_OBJECT
 public:
  explicit GatingPanel(QWidget* parent = nullptr);
  QString id() const override { return QStringLiteral("gating"); }
  QString title() const override { return tr("Gating"); }
  QString hint() const override;
  Kinds needs() const override { return {Kind::gate}; }
  Places places() const override { return {.views = {}, .named = tr("a gate"), .example = "forget"}; }
  void setPinned(const std::vector<Run>& runs) override;
  void lookAt(const QString& preset, const QString& detail, bool asked) override;
  QString dataAsCsv() const override;
  void holdAxes(bool hold) override { held_ = hold; }
  Legend* legend() const { return legend_; }
  const Heatmap& heatmap() const { return *heatmap_; }
  QString saturation() const { return said_->text(); }

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override { gate_ = nullptr; }
  void moveTime() override;
  QString makeHeadline() const override;
  QString subject() const override;

 private:
  bool bounded() const { return gate_->low < gate_->high; }
  std::int64_t units() const { return gate_->row_size(); }
  std::span<const double> row(std::int64_t index) const { return rowOf(*gate_, *values_, index); }
  static std::span<const double> rowOf(const TraceArray& array, const std::vector<double>& values, std::int64_t index) {
    return {values.data() + index * array.row_size(), static_cast<std::size_t>(array.row_size())};
  }
  const std::vector<std::int64_t>& steps() const { return gate_->steps.empty() ? trace_->steps : gate_->steps; }
  GateStatistics statisticsAtCursor() const;
  /// The gate of the chosen key in a pinned run, its mean over time and its histogram at the cursor.
  struct PinnedGate {
    std::shared_ptr<const Trace> trace;
    const TraceArray* gate;
    std::shared_ptr<const std::vector<double>> values;
    QCPGraph* mean;
    QCPCurve* outline;
    const std::vector<std::int64_t>& steps() const { return gate->steps.empty() ? trace->steps : gate->steps; }
  };
  void drawStatistics();
  void makePins();
  void fillBeside();
  const TraceArray* gateOf(const Trace& pinned) const;  ///< its gate of the same key, or else of the name that was chosen; null without one
  QString gateToShow() const;
  /// The first and last row of an array that the visible range needs, and every how many of them are affordable.
  struct Rows {
    std::int64_t first, last, stride;
  };
  Rows visibleRows(const std::vector<std::int64_t>& at, const TraceArray& array) const;
  void showShares(bool shares);
  void fitHeight();
  void fitRows();
  QString labelOfBars() const;
  QString tipAt(const QPointF& position) const;

  QComboBox *gates_, *beside_;
  Legend* legend_;  ///< of pinned runs
  std::vector<Run> pinned_;
  std::vector<PinnedGate> pins_;
  QString key_;
  bool low_plot_ = false, lowest_plot_ = false;
  QHash<QString, QString> chosen_, wanted_;  ///< the gate that was picked by hand, and that which the preset names, by preset
  QHash<QString, QString> stands_;           ///< of a gate's name: the gate that stands for it in pinned runs without one
  const TraceArray* gate_ = nullptr;         // of trace_
  std::shared_ptr<const std::vector<double>> values_;
  double low_ = 0.0, high_ = 1.0;  // of the value axis

  QCPLayoutGrid* grid_;
  QCPAxisRect *map_rect_, *mean_rect_, *histogram_rect_, *share_rect_;
  Heatmap* heatmap_;
  ColourBar* bar_;
  QCPGraph *mean_, *q10_, *q90_, *below_, *above_;
  QCPBars* histogram_;
  Paragraph* said_;
  QString bar_label_, fitted_key_;
  bool held_ = false;
  QAction* lock_;
};

}  // namespace reclab
