// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "panels/timing/timing.h"

namespace reclab {

/// Names beside points of an axis rect; those that would overlap move apart, and hidden points have none.
class PointNames : public QCPLayerable {
  Q_OBJECT
 public:
  explicit PointNames(Plot* plot);
  void clear() { names_.clear(); }
  void add(QCPGraph* graph, double x, double y, const QString& text) { names_.push_back({graph, x, y, text}); }

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
  void draw(QCPPainter* painter) override;

 private:
  struct Name {
    QPointer<QCPGraph> graph;
    double x, y;
    QString text;
  };
  Plot* plot_;
  std::vector<Name> names_;
};

/// The names of the views.
struct TimingViewText {
  TimingPanel::View view;
  const char *name, *text, *tip;
};
inline constexpr TimingViewText view_texts[] = {
    {TimingPanel::View::time, "time", QT_TRANSLATE_NOOP("reclab::TimingPanel", "time"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "Time against length; the slope is the exponent")},
    {TimingPanel::View::throughput, "throughput", QT_TRANSLATE_NOOP("reclab::TimingPanel", "throughput"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "Steps of all sequences of the batch a second, against length")},
    {TimingPanel::View::memory, "memory", QT_TRANSLATE_NOOP("reclab::TimingPanel", "memory"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "Bytes that the arrays of a form take, against length")},
    {TimingPanel::View::roofline, "roofline", QT_TRANSLATE_NOOP("reclab::TimingPanel", "roofline"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "Operations a second against operations a byte, under what this machine can do at most")},
    {TimingPanel::View::error, "error", QT_TRANSLATE_NOOP("reclab::TimingPanel", "error"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "What each form differs from the sequential one in float64, against its time")},
    {TimingPanel::View::newton, "newton", QT_TRANSLATE_NOOP("reclab::TimingPanel", "Newton"),
     QT_TRANSLATE_NOOP("reclab::TimingPanel", "How many iterations Newton's forms take, against length")},
};

}  // namespace reclab
