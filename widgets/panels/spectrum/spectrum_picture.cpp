// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/spectrum/spectrum_picture.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <vector>

namespace reclab {

using Complex = std::complex<double>;

namespace {

/// A disc over what is there, each pixel by the share of it that is covered.
void addDisc(QImage& image, const QPointF& centre, double radius, QRgb colour) {
  const double reach = radius + 1.0;
  if (!QRectF(-reach, -reach, image.width() + 2.0 * reach, image.height() + 2.0 * reach).contains(centre)) return;
  const int left = std::max(0, static_cast<int>(std::floor(centre.x() - reach))),
            right = std::min(image.width() - 1, static_cast<int>(std::ceil(centre.x() + reach))),
            top = std::max(0, static_cast<int>(std::floor(centre.y() - reach))),
            bottom = std::min(image.height() - 1, static_cast<int>(std::ceil(centre.y() + reach)));
  for (int row = top; row <= bottom; ++row) {
    auto* line = reinterpret_cast<QRgb*>(image.scanLine(row));
    for (int column = left; column <= right; ++column) {
      const double across = column + 0.5 - centre.x(), down = row + 0.5 - centre.y(), square = across * across + down * down;
      if (square >= (radius + 0.5) * (radius + 0.5)) continue;
      const double share = std::min(1.0, radius + 0.5 - std::sqrt(square));
      const auto over = [share](int new_value, int old_value) {
        return static_cast<int>(std::lround(share * new_value + (1.0 - share) * old_value));
      };
      const QRgb there = line[column];
      line[column] = qRgba(over(qRed(colour), qRed(there)), over(qGreen(colour), qGreen(there)), over(qBlue(colour), qBlue(there)),
                           over(255, qAlpha(there)));
    }
  }
}

}  // namespace

SpectrumPicture::SpectrumPicture(SpectrumPanel* panel, const QString& layer, bool now)
    : QCPLayerable(panel->plot_, layer), panel_(panel), now_(now) {}

SpectrumPicture::SpectrumPicture(SpectrumPanel* panel, std::shared_ptr<const Trace> pinned, const QColor& colour)
    : QCPLayerable(panel->plot_, QStringLiteral("now")), panel_(panel), now_(true), pinned_(std::move(pinned)), ink_(colour) {
  moveToLayer(this->layer(), true);
}

void SpectrumPicture::draw(QCPPainter* painter) {
  if (!panel_->array_) return;
  if (panel_->fromContinuous()) {
    if (!now_) drawGround(painter);
  } else if (now_) {
    drawNow(painter);
  } else {
    drawGround(painter);
    drawCloud(painter);
    drawTrail(painter);
  }
}

void SpectrumPicture::drawGround(QCPPainter* painter) const {
  const Theme& theme = panel_->plot_->theme();
  const QRectF area(clipRect());
  const QColor shade = mixed(theme.text, theme.base, theme.dark ? 0.07 : 0.045);
  painter->setBrush(shade);
  painter->setPen(Qt::NoPen);
  const QRectF circle(QPointF(x(-1), y(1)), QPointF(x(1), y(-1)));
  painter->drawEllipse(circle);
  painter->setBrush(Qt::NoBrush);
  painter->setPen(QPen(theme.grid, 1));
  painter->drawLine(QPointF(x(0), area.top()), QPointF(x(0), area.bottom()));
  painter->drawLine(QPointF(area.left(), y(0)), QPointF(area.right(), y(0)));
  painter->setPen(QPen(theme.axis, 1.2));
  painter->drawEllipse(circle);
}

/// Where the eigenvalues were at earlier steps of training, from the darkest to the brightest.
void SpectrumPicture::drawTrail(QCPPainter* painter) const {
  const auto& past = panel_->trail_.past();
  if (past.size() < 2) return;
  const ColourMap& map = viridis();
  const auto first = static_cast<double>(past.front().steps), span = static_cast<double>(past.back().steps) - first;
  constexpr double radius = 1.4;
  const auto colourOf = [&](const SpectrumTrail::Past& one) {
    return map[static_cast<std::size_t>(255.0 * (static_cast<double>(one.steps) - first) / span)];
  };
  const auto known = [](const Complex& z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); };
  if (painter->modes().testFlag(QCPPainter::pmVectorized)) {
    painter->setPen(Qt::NoPen);
    for (const SpectrumTrail::Past& one : past) {
      painter->setBrush(QColor(colourOf(one)));
      for (const Complex& z : one.values)
        if (known(z)) painter->drawEllipse(QPointF(x(z.real()), y(z.imag())), radius, radius);
    }
    return;
  }
  // Thousands of discs, anew with each set of weights: as paths they would take half of a picture's time.
  const QRect area = clipRect();
  const double scale = painter->device()->devicePixelRatioF();
  QImage image((QSizeF(area.size()) * scale).toSize(), QImage::Format_ARGB32_Premultiplied);
  image.fill(Qt::transparent);
  for (const SpectrumTrail::Past& one : past)
    for (const Complex& z : one.values)
      if (known(z)) addDisc(image, (QPointF(x(z.real()), y(z.imag())) - area.topLeft()) * scale, radius * scale, colourOf(one));
  painter->drawImage(QRectF(area), image);
}

QImage SpectrumPicture::cloudImage(const QSize& size, const QColor& colour) const {
  const std::vector<Complex>& values = *panel_->cloudArray_->complex;
  const QCPRange re = panel_->rect_->axis(QCPAxis::atBottom)->range(), im = panel_->rect_->axis(QCPAxis::atLeft)->range();
  const int width = size.width(), height = size.height();
  std::vector<std::uint16_t> hits(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 0);
  // Two million points say no more than a sample of them: whole rows are left out, evenly.
  const auto n = static_cast<std::size_t>(panel_->cloudArray_->row_size());
  const std::size_t rows = values.size() / n, stride = std::max<std::size_t>(1, values.size() / 2'000'000);
  for (std::size_t row = 0; row < rows; row += stride) {
    for (std::size_t j = row * n; j < (row + 1) * n; ++j) {
      const double px = (values[j].real() - re.lower) / re.size() * width, py = (im.upper - values[j].imag()) / im.size() * height;
      if (!(px >= 1 && py >= 1 && px < width - 1 && py < height - 1)) continue;
      const auto at = static_cast<std::size_t>(py) * static_cast<std::size_t>(width) + static_cast<std::size_t>(px);
      const auto hit = [&](std::size_t i) { hits[i] = static_cast<std::uint16_t>(std::min(65535, hits[i] + 1)); };
      for (const std::size_t i : {at, at - 1, at + 1, at - static_cast<std::size_t>(width), at + static_cast<std::size_t>(width)}) hit(i);
    }
  }
  QImage image(size, QImage::Format_ARGB32);
  image.fill(Qt::transparent);
  for (int row = 0; row < height; ++row) {
    auto* line = reinterpret_cast<QRgb*>(image.scanLine(row));
    for (int column = 0; column < width; ++column) {
      const int count = hits[static_cast<std::size_t>(row) * static_cast<std::size_t>(width) + static_cast<std::size_t>(column)];
      if (count > 0) line[column] = qRgba(colour.red(), colour.green(), colour.blue(), std::min(110, 36 + 8 * count));
    }
  }
  return image;
}

/// The eigenvalues of all steps in each pixel, counted as opacity. Drawn once for a view.
void SpectrumPicture::drawCloud(QCPPainter* painter) {
  if (!panel_->cloudArray_) return;
  const std::vector<Complex>& values = *panel_->cloudArray_->complex;
  if (static_cast<std::int64_t>(values.size()) <= panel_->cloudArray_->row_size()) return;
  const QRect area = clipRect();
  const QCPRange re = panel_->rect_->axis(QCPAxis::atBottom)->range(), im = panel_->rect_->axis(QCPAxis::atLeft)->range();
  const double scale = painter->device()->devicePixelRatioF();
  const QSize size = (QSizeF(area.size()) * scale).toSize();
  const Theme& theme = panel_->plot_->theme();
  QColor colour = mixed(theme.shown(), theme.text, 0.6);
  if (panel_->cloudArray_ != panel_->array_) colour = mixed(colour, theme.base, 0.5);  // of the run before
  if (painter->modes().testFlag(QCPPainter::pmVectorized) && values.size() <= 20'000) {
    QColor faint = colour;
    faint.setAlphaF(0.3f);
    painter->setPen(Qt::NoPen);
    painter->setBrush(faint);
    for (const Complex& z : values)
      if (const QPointF at(x(z.real()), y(z.imag())); area.contains(at.toPoint())) painter->drawEllipse(at, 1.1, 1.1);
    return;
  }
  if (image_.isNull() || image_.size() != size || re != re_ || im != im_ || colour != colour_) {
    re_ = re;
    im_ = im;
    colour_ = colour;
    image_ = cloudImage(size, colour);
  }
  painter->drawImage(QRectF(area), image_);
}

void SpectrumPicture::drawNow(QCPPainter* painter) const {
  if (pinned_)
    drawPoints(painter, panel_->rowAt(*pinned_, panel_->step_), ink_, false);
  else
    drawPoints(painter, panel_->rowAt(*panel_->trace_, panel_->step_), panel_->plot_->theme().shown(), true);
}

/// Discs, or rings for pinned runs. On the screen very many are stamped, in a vector figure each is a path.
void SpectrumPicture::drawPoints(QCPPainter* painter, std::span<const Complex> values, const QColor& colour, bool solid) const {
  const QRectF area = QRectF(clipRect()).adjusted(-4, -4, 4, 4);
  const double radius = values.size() > 512 ? 2.0 : values.size() > 96 ? 2.8 : 3.6;
  const Theme& theme = panel_->plot_->theme();
  const auto pen = [&](QPainter* p) {
    if (solid) {
      p->setPen(QPen(theme.base, 0.8));
      p->setBrush(colour);
    } else {
      p->setPen(QPen(colour, 1.2));
      p->setBrush(Qt::NoBrush);
    }
  };
  if (values.size() <= 256 || painter->modes().testFlag(QCPPainter::pmVectorized)) {
    pen(painter);
    for (const Complex& z : std::views::reverse(values)) {  // the largest over the others, where they crowd
      const QPointF at(x(z.real()), y(z.imag()));
      if (area.contains(at)) painter->drawEllipse(at, radius, radius);
    }
    return;
  }
  const double scale = painter->device()->devicePixelRatioF(), side = 2.0 * radius + 3.0;
  QPixmap stamp((QSizeF(side, side) * scale).toSize());
  stamp.setDevicePixelRatio(scale);
  stamp.fill(Qt::transparent);
  {
    QPainter on(&stamp);
    on.setRenderHint(QPainter::Antialiasing);
    pen(&on);
    on.drawEllipse(QPointF(side / 2, side / 2), radius, radius);
  }
  for (const Complex& z : values) {
    const QPointF at(x(z.real()), y(z.imag()));
    if (area.contains(at)) painter->drawPixmap(at - QPointF(side / 2, side / 2), stamp);
  }
}

}  // namespace reclab
