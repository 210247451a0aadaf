// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/parts/step_marks.h"

#include <cmath>

#include "plot/plot.h"

namespace reclab {
namespace {

/// The lines of a plot's marks, under its axes.
class StepMarks : public QCPLayerable {
 public:
  explicit StepMarks(Plot* plot) : QCPLayerable(plot, QStringLiteral("grid")), plot_(plot) {}
  std::vector<StepMark> marks;

  /// Of a rect that has a time axis: the pixel of a step, nothing where it is not seen.
  static std::optional<double> pixelOf(const QCPAxisRect* rect, std::int64_t step) {
    const QCPAxis* axis = rect->axis(QCPAxis::atBottom);
    const auto at = static_cast<double>(step);
    if (!rect->property("time").toBool() || !rect->realVisibility() || axis == nullptr || !axis->range().contains(at)) return {};
    return axis->coordToPixel(at);
  }

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(false); }
  void draw(QCPPainter* painter) override {
    painter->setPen(stepMarkPen(plot_->theme().text));
    for (const QCPAxisRect* rect : plot_->axisRects())
      for (const StepMark& mark : marks)
        if (const auto x = pixelOf(rect, mark.step)) {
          const double middle = std::round(*x) + 0.5;
          painter->drawLine(QLineF(middle, rect->top(), middle, rect->bottom()));
        }
  }

 private:
  Plot* plot_;
};

StepMarks* marksOf(const Plot* plot) {
  for (QCPLayerable* one : plot->layer(QStringLiteral("grid"))->children())
    if (auto* marks = dynamic_cast<StepMarks*>(one)) return marks;
  return nullptr;
}

}  // namespace

void setStepMarks(QWidget* within, const std::vector<StepMark>& marks) {
  for (Plot* plot : within->findChildren<Plot*>()) {
    StepMarks* its = marksOf(plot);
    if (its == nullptr && marks.empty()) continue;
    if (its == nullptr) its = new StepMarks(plot);
    if (its->marks == marks) continue;
    its->marks = marks;
    plot->redraw();
  }
}

std::vector<StepMark> stepMarksOf(const Plot* plot) {
  const StepMarks* its = marksOf(plot);
  return its ? its->marks : std::vector<StepMark>();
}

QString stepMarkAt(const Plot* plot, const QPointF& position) {
  const StepMarks* its = marksOf(plot);
  if (its == nullptr) return {};
  for (const QCPAxisRect* rect : plot->axisRects())
    if (rect->rect().contains(position.toPoint()))
      for (const StepMark& mark : its->marks)
        if (const auto x = StepMarks::pixelOf(rect, mark.step); x && std::abs(*x - position.x()) <= stepMarkReach) return mark.text;
  return {};
}

QPen stepMarkPen(QColor ink) {
  ink.setAlphaF(0.55F);
  return {ink, 1, Qt::DashLine};
}

}  // namespace reclab
