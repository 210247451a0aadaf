// SPDX-License-Identifier: GPL-3.0-or-later
// A schedule drawn: time from left to right, rounds from top to bottom; or, for operations over pairs of steps, their triangle; or the
// error of an iteration as a heat map.
#pragma once

#include <optional>

#include "panels/steps/schedule.h"
#include "plot/plot.h"

namespace reclab {

class ScheduleView : public QCPLayoutElement {
  Q_OBJECT
 public:
  explicit ScheduleView(Plot* plot);
  void setSchedule(std::optional<StepSchedule> schedule);
  const std::optional<StepSchedule>& schedule() const { return schedule_; }
  /// The position of the animation: rounds before it, the one under way, and later ones differ. For iterations, the last one that is shown.
  void setPosition(int position) { position_ = position; }
  int position() const { return position_; }
  void setStep(std::int64_t step) { step_ = step; }
  /// The node whose cone is shown; -1: none.
  void setChosen(int node);
  int chosen() const { return chosen_; }
  /// The text that is drawn where there is no schedule.
  void setNote(const QString& note) { note_ = note; }

  /// Positions are in the plot's pixels.
  int nodeAt(const QPointF& position) const;
  QPointF placeOf(int node) const;
  QString tipAt(const QPointF& position) const;

 protected:
  void draw(QCPPainter* painter) override;

 private:
  using Place = StepSchedule::Place;
  using Drawing = StepSchedule::Drawing;
  static constexpr int gap = 8;                  ///< pixels at the edges
  static constexpr double lowest_error = -16.0;  ///< log10
  struct Frame {
    QRectF area;
    double column = 1, row = 1;  // pixels
    int lanes = 0;               // of a triangle
  };
  const Theme& theme() const { return static_cast<const Plot*>(mParentPlot)->theme(); }
  Frame frame() const;
  double xOf(const Frame& frame, double step) const { return frame.area.left() + (step + 0.5) * frame.column; }
  double yOf(const Frame& frame, double row) const { return frame.area.top() + (row + 0.5) * frame.row; }
  QRectF boxOf(const Frame& frame, int node) const;
  double radius(const Frame& frame) const;
  int legendHeight() const;
  QColor colourOf(int kind) const;
  void drawAxes(QCPPainter* painter, const Frame& frame) const;
  void drawNodes(QCPPainter* painter, const Frame& frame) const;
  void drawNode(QCPPainter* painter, const Frame& frame, int node, const QColor& colour, bool now) const;
  void drawCursor(QCPPainter* painter, const Frame& frame) const;
  void drawErrors(QCPPainter* painter, const Frame& frame) const;
  void drawLegend(QCPPainter* painter) const;
  QRgb colourOfError(double error) const;

  std::optional<StepSchedule> schedule_;
  std::vector<int> lane_;  // by kind
  int halves_ = -1;        // up to this round two things stand side by side
  int position_ = 0, chosen_ = -1;
  std::int64_t step_ = -1;
  std::vector<bool> cone_;
  QString note_;
};

}  // namespace reclab
