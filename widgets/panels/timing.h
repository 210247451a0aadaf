// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "plot/plot_panel.h"

namespace reclab {

/// How long each execution form takes, against the length of the sequence.
class TimingPanel : public PlotPanel {
  Q_OBJECT
 public:
  explicit TimingPanel(QWidget* parent = nullptr);
  QString id() const override { return QStringLiteral("timing"); }
  QString title() const override { return tr("Timing"); }
  QString hint() const override;
  QString dataAsCsv() const override;
  Legend* legend() const { return legend_; }

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  QString makeHeadline() const override;

 private:
  struct Form {
    QString name;
    std::vector<double> length, seconds, low, high;  // of equal size
    double exponent;                                 // NaN when it is not known
  };
  static std::vector<Form> forms(const Trace& trace);
  static double overtakes(const Form& later, const Form& earlier);
  QString tipAt(const QPointF& position) const;

  Legend* legend_;
  QCPAxisRect* rect_;
};

}  // namespace reclab
