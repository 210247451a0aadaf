// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QToolButton>

#include "panels/described.h"
#include "panels/gradient_lab/lab_settings.h"
#include "panels/power_colours.h"
#include "plot/parts/layout.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"

namespace reclab {

/// The gradient on its way back: ds_T/ds_t beside its bounds and the factors of each step, |ds_t/ds_s| of all pairs, and the likeness of
/// the gradients of different steps; with the settings of the model beside it.
class GradientLabPanel : public Described<GradientLabPanel, PlotPanel> {
  Q_OBJECT
 public:
  explicit GradientLabPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    return {.id = QStringLiteral("gradient-lab"),
            .title = tr("Gradient lab"),
            .hint = tr("Why a gradient vanishes or explodes: ∂s_T/∂s_t beside the bound that the recurrent matrix sets, what each factor "
                       "of a step does, and |∂s_t/∂s_s| over all pairs, under the sliders of the model."),
            .needs = {Kind::gradient, Kind::jacobian, Kind::jacobian_pairs, Kind::jacobian_bound, Kind::jacobian_factor,
                      Kind::jacobian_share, Kind::alignment},
            .places = {.views = {QStringLiteral("bounds"), QStringLiteral("factors"), QStringLiteral("pairs"), QStringLiteral("alignment")},
                       .named = {}}};
  }
  Kinds waitsFor() const override;
  void setSettings(const std::vector<Setting>& settings) override;
  QVariantMap choices() const override;
  void setChoices(const QVariantMap& saved) override;
  QString dataAsCsv() const override;

  enum class View : std::uint8_t { bounds, factors, pairs, alignment };
  View view() const;
  QString said() const { return said_->text(); }
  QCPAxisRect* normRect() const { return norm_rect_; }
  QCPAxisRect* factorRect() const { return factor_rect_; }
  Heatmap* heatmap() const { return map_picture_.heatmap; }
  QCPItemRect* window() const { return window_; }
  StraightLine* clipLine() const { return clip_; }
  QString tipAt(const QPointF& position) const;
  /// The columns of a step's factors.
  static constexpr int gate_factor = 0, slope_factor = 1, matrix_factor = 2, step_factor = 3;

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override;
  void moveTime() override;
  QString makeHeadline() const override;
  QString subject() const override;
  void dropChoice(const QString&) override { by_hand_ = false; }
  void resizeEvent(QResizeEvent* event) override;

 private:
  const TraceArray* find(const Trace& trace, Kind kind) const;  ///< of the layer that is chosen; null without rows
  void fillControls();
  void placeSettings();
  bool isMap() const { return view() == View::pairs || view() == View::alignment; }
  bool isLow() const;  ///< too low for the factors under the bounds
  void showBounds();
  void showFactors(const TraceArray& factors);
  void showMap();
  void showTraining();
  QStringList saidOfMap() const;
  QStringList saidOfBounds() const;
  void arrange();
  QCPGraph* curve(QCPAxisRect* rect, const Trace& trace, const TraceArray& array, std::int64_t column, const QPen& pen);

  QComboBox *view_, *layer_;
  QToolButton* beside_;
  LabSettings* settings_;
  QCPLayoutGrid* grid_;
  QCPAxisRect *norm_rect_, *factor_rect_;
  MapPicture map_picture_;
  ValueAxis *values_, *factor_values_;
  CursorText* said_;
  StraightLine *clip_, *one_, *input_;
  std::vector<StraightLine*> updates_;  ///< where the weights were changed
  QCPItemRect* window_;                 ///< the steps that truncated backpropagation sees from the end
  std::vector<std::int64_t> rows_;      ///< steps of the map's rows, and its columns'
  const TraceArray* map_ = nullptr;
  bool norms_ = true, low_ = false;  ///< whether ds_T/ds_t is drawn; the last isLow()
  PowerColours colours_;             ///< of the map of pairs
  bool by_hand_ = false;
};

}  // namespace reclab
