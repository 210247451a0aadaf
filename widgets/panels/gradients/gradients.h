// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "panels/described.h"
#include "panels/gradients/gradients_verdict.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"

namespace reclab {

class StraightLine;

/// The norm of dL/ds_t and the singular values of ds_T/ds_t through time, as powers of ten, with a verdict in words.
class GradientsPanel : public Described<GradientsPanel, PlotPanel> {
  Q_OBJECT
 public:
  explicit GradientsPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    return {
        .id = QStringLiteral("gradients"),
        .title = tr("Gradients"),
        .hint = tr(
            "How much of the loss's gradient reaches the state of each earlier step: a falling line to the left is a model that forgets."),
        .needs = {Kind::gradient, Kind::jacobian, Kind::jacobian_min},
        .places = {.views = {}, .named = tr("a state"), .example = "h"}};
  }
  QVariantMap choices() const override;
  void setChoices(const QVariantMap& saved) override;
  QString dataAsCsv() const override;
  const Verdict& verdict() const { return verdict_; }
  QString lossText() const { return loss_->text(); }
  QCPAxisRect* rect() const { return rect_; }
  ValueAxis* values() const { return values_; }

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  QString makeHeadline() const override;

 private:
  struct Curve {
    const TraceArray* array;
    Kind kind;
    QString name, layer, state, tip;
    const Trace* of = nullptr;  ///< the trace that the array is in
    bool former = false;        ///< of the run before, kept until this one's is there
  };
  std::vector<Curve> curves(const Trace& trace) const;
  std::vector<Curve> drawnCurves() const;  ///< of the run, and singular values of the former where it has none yet
  void drawPins();
  void judge();
  void fitValues();

  Paragraph* sentence_;
  QCPAxisRect* rect_;
  ValueAxis* values_;
  StraightLine* one_;  ///< where a gradient is as large as it was
  QAction* lag_;
  Paragraph* loss_;  ///< names the loss that the gradients are of
  Verdict verdict_;
};

}  // namespace reclab
