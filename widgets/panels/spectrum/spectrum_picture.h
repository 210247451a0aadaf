// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <complex>
#include <memory>
#include <span>

#include "panels/spectrum/spectrum.h"

namespace reclab {

/// A part of the picture: the ground with the cloud of all steps, the eigenvalues of now, or those of a pinned run under them.
class SpectrumPicture : public QCPLayerable {
 public:
  SpectrumPicture(SpectrumPanel* panel, const QString& layer, bool now);
  SpectrumPicture(SpectrumPanel* panel, std::shared_ptr<const Trace> pinned, const QColor& colour);
  void forget() { image_ = {}; }

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(true); }
  QRect clipRect() const override { return panel_->rect_->rect(); }
  void draw(QCPPainter* painter) override;

 private:
  double x(double re) const { return panel_->rect_->axis(QCPAxis::atBottom)->coordToPixel(re); }
  double y(double im) const { return panel_->rect_->axis(QCPAxis::atLeft)->coordToPixel(im); }
  void drawGround(QCPPainter* painter) const;
  void drawTrail(QCPPainter* painter) const;
  void drawCloud(QCPPainter* painter);
  QImage cloudImage(const QSize& size, const QColor& colour) const;
  void drawNow(QCPPainter* painter) const;
  void drawPoints(QCPPainter* painter, std::span<const std::complex<double>> values, const QColor& colour, bool solid) const;

  SpectrumPanel* panel_;
  bool now_;
  std::shared_ptr<const Trace> pinned_;
  QColor ink_;
  QImage image_;  ///< of the cloud, with the ranges and colour that it was drawn for
  QCPRange re_, im_;
  QColor colour_;
};

}  // namespace reclab
