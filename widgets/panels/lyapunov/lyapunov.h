// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <span>

#include "panels/described.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"

namespace reclab {

class StraightLine;

/// The dimension of Kaplan and Yorke (1979) for exponents that fall: as many as sum to 0 or more, and the part of the next that brings the
/// sum to 0. Nothing where all of them together do not fall below 0, or one is NaN.
std::optional<double> kaplanYorke(std::span<const double> exponents);

/// The Lyapunov exponents of a layer along the sequence, with the largest and the attractor's dimension in words.
class LyapunovPanel : public Described<LyapunovPanel, PlotPanel> {
  Q_OBJECT
 public:
  explicit LyapunovPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    return {.id = QStringLiteral("lyapunov"),
            .title = tr("Lyapunov"),
            .hint = tr("How fast states that begin close to each other part, direction by direction: above 0 gradients explode, below 0 "
                       "the past is forgotten."),
            .needs = {Kind::lyapunov}};
  }
  QString dataAsCsv() const override;
  QString verdict() const { return sentence_->text(); }
  QString note() const { return note_->text(); }
  QCPAxisRect* rect() const { return rect_; }

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override { array_ = nullptr; }
  QString makeHeadline() const override;
  QString subject() const override;

 private:
  QString judged() const;
  QString noted() const;
  void drawExponents();
  void drawPins();
  void fitValues();

  Paragraph* sentence_;
  QCPAxisRect* rect_;
  ValueAxis* values_;
  StraightLine* zero_;
  Paragraph* note_;
  QComboBox* layers_;
  const TraceArray* array_ = nullptr;  // of trace_, the layer that is shown
  QString layer_ = QStringLiteral("0");
  std::int64_t drawn_ = 0, below_ = 0;  // exponents that have a curve; curves that the value axis leaves out
};

}  // namespace reclab
