// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "panels/gradients_verdict.h"
#include "plot/plot_panel.h"

namespace reclab {

/// The norm of dL/ds_t and the singular values of ds_T/ds_t through time, as powers of ten, with a verdict in words.
class GradientsPanel : public PlotPanel {
  Q_OBJECT
 public:
  explicit GradientsPanel(QWidget* parent = nullptr);
  QString id() const override { return QStringLiteral("gradients"); }
  QString title() const override { return tr("Gradients"); }
  QString hint() const override;
  void setPinned(const std::vector<Run>& runs) override;
  QString dataAsCsv() const override;
  const Verdict& verdict() const { return verdict_; }
  Legend* legend() const { return legend_; }

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  QString makeHeadline() const override;

 private:
  enum class Kind { gradient, largest, smallest };
  struct Curve {
    const TraceArray* array;
    Kind kind;
    QString name, layer, state, tip;
  };
  std::vector<Curve> curves(const Trace& trace) const;
  void judge();
  void fitValues();

  Paragraph* sentence_;
  Legend* legend_;
  QCPAxisRect* rect_;
  std::vector<Run> pinned_;
  Verdict verdict_;
};

}  // namespace reclab
