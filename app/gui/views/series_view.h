// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QPixmap>
#include <QWidget>
#include <cstdint>

#include "gui/session/setup.h"

namespace reclab {

/// The input drawn as lines, small. It paints an overview made at loading time, so that a million steps cost as much as a thousand.
class SeriesView : public QWidget {
  Q_OBJECT
 public:
  using QWidget::QWidget;
  void setSequence(LoadedSequencePtr sequence);
  const LoadedSequencePtr& sequence() const { return sequence_; }
  /// Sets the factor that the model multiplies the input with before it reads it, shown beside the lines; empty where there is none.
  void setInputScale(const QString& scale);
  const QString& inputScale() const { return inputScale_; }
  QSize sizeHint() const override { return {200, 64}; }

 protected:
  virtual QRectF plotArea() const { return QRectF(rect()).adjusted(0.5, 4.5, -0.5, -4.5); }
  double xOfStep(double step) const;
  std::int64_t stepOfX(double x) const;
  void paintLines(QPainter& painter);
  void paintScale(QPainter& painter) const;
  void paintEvent(QPaintEvent* event) override;

 private:
  void drawLines(QPainter& painter, const QColor& ink, const QColor& base) const;
  void drawSymbols(QPainter& painter, const QColor& ink) const;
  LoadedSequencePtr sequence_;
  QString inputScale_;
  QPixmap lines_;
  QColor lineInk_;
};

/// The whole sequence with the time cursor and the brushed range: drag to scrub, drag the handles or Shift-drag to brush, double-click for
/// all.
class TimeStrip : public SeriesView {
  Q_OBJECT
 public:
  explicit TimeStrip(QWidget* parent = nullptr);
  void setStep(std::int64_t step);
  void setRange(std::int64_t first, std::int64_t last);
  QSize sizeHint() const override { return {600, 56}; }
  /// The place of a step, in the widget's own pixels.
  int pixelOf(std::int64_t step) const;

 signals:
  void stepPicked(std::int64_t step);
  void rangePicked(std::int64_t first, std::int64_t last);

 protected:
  QRectF plotArea() const override { return QRectF(rect()).adjusted(6.5, 5.5, -6.5, -5.5); }
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  enum class Drag { none, cursor, brush, first, last };
  Drag grip(const QPointF& at) const;
  std::int64_t length() const { return sequence() ? sequence()->sequence.length : 1; }
  std::int64_t step_ = 0, first_ = 0, last_ = 0, anchor_ = 0;
  Drag drag_ = Drag::none;
};

}  // namespace reclab
