// SPDX-License-Identifier: GPL-3.0-or-later
// Discretisation: eigenvalues in the half-plane, and their places in the disk by each rule, after a step of a chosen length.
#pragma once

#include <array>
#include <complex>
#include <vector>

#include "panels/step_time.h"
#include "plot/plot.h"
#include "trace/discretisation.h"

namespace reclab {

class FlowPicture;

class FlowView : public QObject {
  Q_OBJECT
 public:
  static constexpr int rules = 5;

  /// `plane` and `disk` are rects of the plot; the disk's own ground is drawn by its owner.
  FlowView(Plot* plot, Legend* legend, QCPAxisRect* plane, QCPAxisRect* disk);
  /// Eigenvalues times the sequence's own step, from which the rule `own` makes the eigenvalues that run.
  void set(std::vector<std::complex<double>> exponents, const Discretisation& own, const StepTime& time);
  void clear();
  bool shown() const { return shown_; }
  /// Sets the length of the step, in steps of the sequence; and the share of the generalised rule.
  void setStep(double steps);
  void setShare(double share);
  double step() const { return step_; }

  void addToLegend();
  QCPRange planeRe() const { return plane_re_; }  ///< a range with all eigenvalues, and some of the unstable side
  QCPRange planeIm() const { return plane_im_; }
  double diskReach() const;                     ///< of the eigenvalues by the rule that runs, at most 4
  QString rateName(const QString& part) const;  ///< "Re λ (1/year)"
  QString stepText() const;                     ///< "0.083 year, 1 step"
  QString note() const;
  QString headline() const;
  QString tipAt(const QPointF& position) const;
  QString csv() const;
  QPointF inPlane(std::complex<double> exponent) const;
  QPointF inDisk(std::complex<double> z) const;
  static QString nameOf(const Discretisation& rule);

 private:
  friend class FlowPicture;
  int own() const;  ///< index of the run's own rule
  std::complex<double> placed(int rule, std::size_t i) const {
    return discrete(rules_[static_cast<std::size_t>(rule)], exponents_[i] * step_);
  }
  QString timeText(double steps) const;
  QColor inkOf(int rule) const;
  void redraw();

  Plot* plot_;
  Legend* legend_;
  QCPAxisRect *plane_, *disk_;
  FlowPicture* ground_;
  std::array<FlowPicture*, rules> pictures_;
  std::vector<std::complex<double>> exponents_;
  std::vector<Discretisation> rules_;
  Discretisation own_;
  StepTime time_;
  QCPRange plane_re_{-1, 0.15}, plane_im_{-1, 1};
  double step_ = 1.0;
  bool shown_ = false;
};

}  // namespace reclab
