// SPDX-License-Identifier: GPL-3.0-or-later
// The factors that a composed model multiplies its memory with, in the unit disk, and the share of each past token that it has kept when a
// later one is read.
#pragma once

#include "plot/plot.h"
#include "trace/composition.h"

namespace reclab {

class FactorsView : public Plot {
  Q_OBJECT
 public:
  static constexpr int side_by_side = 340;  ///< pixels, from which both pictures stand beside each other
  explicit FactorsView(QWidget* parent = nullptr);
  void setComposition(CompositionPtr composition);
  /// The token at which the memory is read.
  void setToken(int token);
  int token() const { return token_; }

  /// The share of one token that is kept, over the entries of the memory. Where factors turn it is the real part, which is read.
  struct Kept {
    double least, low, median, high, most;  ///< low and high: the quantiles 0.1 and 0.9
  };
  /// The shares of all tokens, from token 0 to the one that is read.
  const std::vector<Kept>& kept() const { return kept_; }
  bool turns() const { return turns_; }
  QString note() const { return note_->text(); }
  QPoint placeOfToken(int token) const;  ///< on the axis of tokens, in pixels
  QPoint placeOf(std::complex<double> factor) const;
  QString tipAt(const QPointF& position) const;
  /// Draws it at another size than it has on the screen.
  QSize minimumSizeHint() const override { return {200, 200}; }

 signals:
  void tokenPicked(int token);

 protected:
  void changeEvent(QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override { event->ignore(); }  // the page scrolls

 private:
  void compute();
  void draw();
  void arrange(int width);
  void keepRound();
  bool grabToken(const QMouseEvent& event);
  std::span<const std::complex<double>> factorsAt(std::int64_t step) const;

  CompositionPtr composition_;
  int token_ = 0;
  bool turns_ = false;
  std::vector<Kept> kept_;
  QCPLayoutGrid* pictures_;
  QCPAxisRect *disk_, *decay_;
  QCPItemEllipse* circle_;
  QCPItemStraightLine* cursor_;
  QCPCurve *cloud_, *now_;
  QCPGraph *least_, *most_, *low_, *high_, *median_;
  Legend* legend_;
  Paragraph* note_;
};

}  // namespace reclab
