// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCheckBox>

#include "panels/described.h"
#include "panels/power_colours.h"
#include "panels/sensitivity/sensitivity_data.h"
#include "plot/parts/layout.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"

namespace reclab {

/// |dy_t/du_s| as a map of t and s, and over s at the cursor; or the mixing matrix of a memory in its place.
class SensitivityPanel : public Described<SensitivityPanel, PlotPanel> {
  Q_OBJECT
 public:
  explicit SensitivityPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    return {.id = QStringLiteral("sensitivity"),
            .title = tr("Sensitivity"),
            .hint = tr("How much the input of each step moves the output of each, |dy/du|, or which weights a memory that is linear in "
                       "what it holds gives to the steps before: attention and recurrence in one picture."),
            .needs = {Kind::sensitivity, Kind::mixing, Kind::mixing_unnormalised},
            .places = {.views = {QStringLiteral("sensitivity"), QStringLiteral("mixing")}, .named = {}}};
  }
  Kinds waitsFor() const override { return {choice().mixing ? Kind::mixing : Kind::sensitivity}; }
  QString dataAsCsv() const override;
  QVariantMap choices() const override;
  void setChoices(const QVariantMap& saved) override;

  QAction* logarithmic() const { return logarithmic_; }
  StraightLine* inputLine() const { return input_; }
  QString said() const { return said_->text(); }
  QCPAxisRect* mapRect() const { return map_.rect; }
  QCPAxisRect* rowRect() const { return row_rect_; }
  Heatmap* heatmap() const { return map_.heatmap; }
  ColourBar* bar() const { return map_.bar; }
  QString tipAt(const QPointF& position) const;

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override;
  void moveTime() override;
  QString makeHeadline() const override;
  QString subject() const override;
  void dropChoice(const QString&) override { by_hand_ = false; }

 private:
  struct Pinned {
    std::shared_ptr<const Trace> trace;
    SensitivityBlocks blocks;
    QCPGraph* curve;
  };
  void makePins();
  void drawRow(QCPGraph* curve, const Trace& trace, const SensitivityBlocks& blocks) const;
  void fitHeight();
  void fillControls();
  SensitivityChoice choice() const;  ///< by hand, or the preset's
  QString symbol() const;            ///< of the quantity that is shown
  QString valueText(const SensitivityBlocks& blocks, std::int64_t row, std::int64_t column) const;

  MapPicture map_;
  QCPAxisRect* row_rect_;
  ValueAxis* values_;
  CursorText* said_;
  QCPGraph* row_;
  StraightLine* input_;  ///< the input of the cursor's step, as the time cursor is its output
  QAction* logarithmic_;
  QComboBox *view_, *memory_, *group_;
  QCheckBox* normalised_;
  SensitivityChoice choice_;
  bool by_hand_ = false;      ///< the view was chosen here
  SensitivityBlocks blocks_;  // of trace_
  PowerColours colours_;
  std::vector<Pinned> pins_;
  bool low_plot_ = false;
};

}  // namespace reclab
