// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "panels/described.h"
#include "panels/gating/gating_statistics.h"
#include "plot/parts/curves.h"
#include "plot/parts/layout.h"
#include "plot/plot_panel.h"

namespace reclab {

/// One gate at a time: all its units over time, their mean and quantiles, their histogram at the cursor, and how many are saturated.
class GatingPanel : public Described<GatingPanel, PlotPanel> {
  Q_OBJECT
 public:
  explicit GatingPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    return {.id = QStringLiteral("gating"),
            .title = tr("Gating"),
            .hint = tr(
                "What each gate lets through, unit by unit: a gate that stays near 0 or 1 is saturated, and passes next to no gradient."),
            .needs = {Kind::gate},
            .places = {.views = {}, .named = tr("a gate"), .example = "forget"}};
  }
  QString dataAsCsv() const override;
  void holdAxes(bool hold) override { held_ = hold; }
  const Heatmap& heatmap() const { return *map_.heatmap; }
  QString saturation() const { return said_->text(); }

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override { gate_ = nullptr; }
  void moveTime() override;
  QString makeHeadline() const override;
  QString subject() const override;
  void dropChoice(const QString& preset) override { chosen_.remove(preset); }

 private:
  bool bounded() const { return gate_->low < gate_->high; }
  std::int64_t units() const { return gate_->row_size(); }
  std::span<const double> row(std::int64_t index) const { return rowOf(*gate_, *values_, index); }
  static std::span<const double> rowOf(const TraceArray& array, const std::vector<double>& values, std::int64_t index) {
    return {values.data() + index * array.row_size(), static_cast<std::size_t>(array.row_size())};
  }
  const std::vector<std::int64_t>& steps() const { return stepsOf(*trace_, *gate_); }
  GateStatistics statisticsAtCursor() const;
  /// The gate of the chosen key in a pinned run, its mean over time and its histogram at the cursor.
  struct PinnedGate {
    std::shared_ptr<const Trace> trace;
    const TraceArray* gate;
    std::shared_ptr<const std::vector<double>> values;
    QCPGraph* mean;
    QCPCurve* outline;
    const std::vector<std::int64_t>& steps() const { return stepsOf(*trace, *gate); }
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
  void foldShares();
  void fitHeight();
  void fitRows();
  QString labelOfBars() const;
  QString saidAtCursor() const;
  QString tipAt(const QPointF& position) const;

  QComboBox *gates_, *beside_;
  std::vector<PinnedGate> pins_;
  QString key_;
  bool low_plot_ = false, lowest_plot_ = false;
  QHash<QString, QString> chosen_;    ///< the gate that was picked by hand, by preset
  QHash<QString, QString> stands_;    ///< of a gate's name: the gate that stands for it in pinned runs without one
  const TraceArray* gate_ = nullptr;  // of trace_
  std::shared_ptr<const std::vector<double>> values_;
  double low_ = 0.0, high_ = 1.0;  // of the value axis

  MapPicture map_;
  QCPAxisRect *mean_rect_, *histogram_rect_, *share_rect_;
  CursorText* said_;
  QCPGraph *mean_, *q10_, *q90_, *below_, *above_;
  QCPBars* histogram_;
  QString bar_label_, fitted_key_;
  bool held_ = false;
  QAction* lock_;
};

QString gatePercent(double share);  ///< "62 %"; below one percent with a digit more
/// "unit", or the engine's name for the entries of a gate: "head".
QString entryOf(const TraceArray& gate);
QString entriesOf(const TraceArray& gate);
QString gateName(const TraceArray& gate);                       ///< "forget"
QString gateLabel(const Trace& trace, const std::string& key);  ///< with its layer, where there are several
/// The names of the gates of a run that have the ends of another one, so that both go on one axis.
QStringList gatesLike(const Trace& trace, const TraceArray& other);

}  // namespace reclab
