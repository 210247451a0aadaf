// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/parts/heatmap.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reclab {

namespace {
constexpr std::int64_t coarse_target = 8192;  // rows of the coarse copy: more than a screen has columns
}

std::shared_ptr<const std::vector<double>> realValues(const TraceArray& array) {
  if (array.real) return array.real;
  auto moduli = std::make_shared<std::vector<double>>(array.complex->size());
  std::transform(array.complex->begin(), array.complex->end(), moduli->begin(), [](const std::complex<double>& z) { return std::abs(z); });
  return moduli;
}

Heatmap::Heatmap(QCPAxis* keyAxis, QCPAxis* valueAxis) : QCPAbstractPlottable(keyAxis, valueAxis) { setSelectable(QCP::stNone); }

void Heatmap::setData(std::shared_ptr<const std::vector<double>> values, std::int64_t units, const std::vector<std::int64_t>& steps) {
  image_ = {};
  values_ = std::move(values);
  units_ = units;
  steps_ = steps;
  coarse_.clear();
  coarse_rows_ = 0;
  data_low_ = std::numeric_limits<double>::infinity();
  data_high_ = -data_low_;
  const auto n = static_cast<std::size_t>(units);
  double low = data_low_, high = data_high_;
  const auto look = [&](double v) {
    if (v < low && v >= -std::numeric_limits<double>::max()) low = v;
    if (v > high && v <= std::numeric_limits<double>::max()) high = v;
  };
  const auto rows = static_cast<std::int64_t>(steps_.size());
  if (rows <= 2 * coarse_target) {
    for (const double v : *values_) look(v);
  } else {
    coarse_rows_ = (rows + coarse_target - 1) / coarse_target;
    coarse_.resize(static_cast<std::size_t>((rows + coarse_rows_ - 1) / coarse_rows_) * n);
    float* out = coarse_.data();
    for (std::int64_t first = 0; first < rows; first += coarse_rows_, out += n) {
      const double* a = values_->data() + static_cast<std::size_t>(first) * n;
      const double* b = values_->data() + static_cast<std::size_t>(std::min(rows - 1, first + coarse_rows_ / 2)) * n;
      for (std::size_t j = 0; j < n; ++j) {
        look(a[j]);
        look(b[j]);
        out[j] = static_cast<float>(!std::isfinite(a[j]) ? b[j] : !std::isfinite(b[j]) ? a[j] : 0.5 * (a[j] + b[j]));
      }
    }
  }
  data_low_ = low;
  data_high_ = high;
  if (data_low_ > data_high_) data_low_ = data_high_ = 0.0;
}

void Heatmap::clear() {
  values_.reset();
  steps_.clear();
  coarse_.clear();
  units_ = 0;
  data_low_ = data_high_ = 0.0;
  image_ = {};
}

void Heatmap::setScale(double low, double high) {
  if (!(high > low)) high = low + 1.0;
  if (low < 0.0 && high > 0.0) {
    high = std::max(-low, high);
    low = -high;
  }
  low_ = low;
  high_ = high;
  image_ = {};
}

const ColourMap& Heatmap::colours() const {
  return isDiverging() ? diverging(static_cast<const Plot*>(mParentPlot)->theme().dark) : viridis();
}

QCPRange Heatmap::getKeyRange(bool& found, QCP::SignDomain) const {
  found = !steps_.empty();
  return found ? QCPRange(static_cast<double>(steps_.front()) - 0.5, static_cast<double>(steps_.back()) + 0.5) : QCPRange();
}

QCPRange Heatmap::getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const {
  found = units_ > 0;
  return QCPRange(-0.5, static_cast<double>(units_) - 0.5);
}

std::int64_t Heatmap::rowOf(double step) const {
  const auto after =
      std::lower_bound(steps_.begin(), steps_.end(), step, [](std::int64_t s, double x) { return static_cast<double>(s) < x; });
  if (after == steps_.end()) return static_cast<std::int64_t>(steps_.size()) - 1;
  const std::int64_t row = after - steps_.begin();
  return row > 0 && step - static_cast<double>(*(after - 1)) < static_cast<double>(*after) - step ? row - 1 : row;
}

std::optional<Heatmap::Entry> Heatmap::at(const QPointF& position) const {
  if (steps_.empty() || !clipRect().contains(position.toPoint())) return {};
  double key = 0, j = 0;
  pixelsToCoords(position, key, j);
  const std::int64_t unit = std::llround(j);
  if (unit < 0 || unit >= units_ || key < static_cast<double>(steps_.front()) - 0.5 || key > static_cast<double>(steps_.back()) + 0.5)
    return {};
  const std::int64_t row = rowOf(key);
  return Entry{steps_[static_cast<std::size_t>(row)], unit, (*values_)[static_cast<std::size_t>(row * units_ + unit)]};
}

QImage Heatmap::rendered(const QCPRange& keys, const QCPRange& range, QSize size) const {
  const int width = size.width(), wanted = size.height();
  const auto first_unit = static_cast<std::int64_t>(std::floor(std::max(0.0, range.lower + 0.5)));
  const std::int64_t last_unit = std::min(units_ - 1, static_cast<std::int64_t>(std::ceil(range.upper - 0.5)));
  const std::int64_t shown = last_unit - first_unit + 1;
  if (shown <= 0 || width <= 0 || wanted <= 0) return {};
  const int height = static_cast<int>(std::min<std::int64_t>(shown, wanted));
  QImage image(width, height, QImage::Format_ARGB32);
  image.fill(Qt::transparent);
  const ColourMap& map = colours();
  const auto n = static_cast<std::size_t>(shown);
  std::vector<double> sum(n);
  std::vector<int> count(n);
  const double scale = 255.0 / (high_ - low_);
  const auto rows = static_cast<std::int64_t>(steps_.size());
  const double half = rows > 1 ? 0.5 * static_cast<double>(steps_.back() - steps_.front()) / static_cast<double>(rows - 1) : 0.5;
  const auto add = [&](const auto* v) {
    for (std::size_t j = 0; j < n; ++j)
      if (std::isfinite(v[j])) sum[j] += v[j], ++count[j];
  };
  for (int x = 0; x < width; ++x) {
    const double from = keys.lower + keys.size() * x / width, to = keys.lower + keys.size() * (x + 1) / width;
    if (to < static_cast<double>(steps_.front()) - half || from > static_cast<double>(steps_.back()) + half) continue;
    // The rows whose steps lie in the pixel, or the nearest one when none does.
    std::int64_t a = std::lower_bound(steps_.begin(), steps_.end(), static_cast<std::int64_t>(std::ceil(from))) - steps_.begin();
    std::int64_t b = std::lower_bound(steps_.begin(), steps_.end(), static_cast<std::int64_t>(std::ceil(to))) - steps_.begin();
    if (b <= a) a = rowOf(0.5 * (from + to)), b = a + 1;
    std::fill(sum.begin(), sum.end(), 0.0);
    std::fill(count.begin(), count.end(), 0);
    if (coarse_rows_ > 0 && b - a >= coarse_rows_) {
      for (std::int64_t row = a / coarse_rows_; row < std::max(a / coarse_rows_ + 1, b / coarse_rows_); ++row)
        add(coarse_.data() + static_cast<std::size_t>(row * units_ + first_unit));
    } else {
      for (std::int64_t row = a; row < b; ++row) add(values_->data() + static_cast<std::size_t>(row * units_ + first_unit));
    }
    for (int y = 0; y < height; ++y) {
      // Unit 0 is at the bottom.
      const std::int64_t u = height - 1 - y, first = u * shown / height, last = std::max(first + 1, (u + 1) * shown / height);
      double total = 0;
      int found = 0;
      for (std::int64_t j = first; j < last; ++j) total += sum[static_cast<std::size_t>(j)], found += count[static_cast<std::size_t>(j)];
      if (found == 0) continue;
      const double level = std::clamp((total / found - low_) * scale, 0.0, 255.0);
      reinterpret_cast<QRgb*>(image.scanLine(y))[x] = map[static_cast<std::size_t>(std::lround(level))];
    }
  }
  return image;
}

void Heatmap::draw(QCPPainter* painter) {
  if (!values_ || steps_.empty() || !mKeyAxis || !mValueAxis) return;
  const QRect area = clipRect();
  const QCPRange keys = mKeyAxis->range(), range = mValueAxis->range();
  const QSize size(static_cast<int>(area.width() * painter->device()->devicePixelRatioF()), area.height());
  if (image_.isNull() || size != image_size_ || image_keys_ != keys || image_values_ != range || image_map_ != &colours()) {
    image_ = rendered(keys, range, size);
    image_size_ = size;
    image_keys_ = keys;
    image_values_ = range;
    image_map_ = &colours();
  }
  if (image_.isNull()) return;
  const double top = mValueAxis->coordToPixel(std::min(range.upper, static_cast<double>(units_) - 0.5));
  const double bottom = mValueAxis->coordToPixel(std::max(range.lower, -0.5));
  painter->setRenderHint(QPainter::SmoothPixmapTransform, false);
  // Viewers of PDF and SVG smooth small images; in one with a few pixels to each unit, edges stay edges.
  const QRectF place(area.left(), top, area.width(), bottom - top);
  if (painter->modes().testFlag(QCPPainter::pmVectorized))
    painter->drawImage(place, image_.scaled((place.size() * 3.0).toSize(), Qt::IgnoreAspectRatio, Qt::FastTransformation));
  else
    painter->drawImage(place, image_);
}

ColourBar::ColourBar(Plot* plot) : QCPColorScale(plot) {
  setLayer(QStringLiteral("legend"));
  setType(QCPAxis::atRight);
  raiseExponents(axis());
  setRangeDrag(false);
  setRangeZoom(false);
  setBarWidth(10);
  setMinimumMargins(QMargins(0, 0, 4, 0));
}

void ColourBar::show(const Heatmap& heatmap, const QString& label) {
  QCPColorGradient gradient;
  gradient.clearColorStops();
  const ColourMap& map = heatmap.colours();
  QMap<double, QColor> stops;
  for (std::size_t i = 0; i < map.size(); i += 5) stops.insert(static_cast<double>(i) / 255.0, QColor::fromRgb(map[i]));
  gradient.setColorStops(stops);
  gradient.setLevelCount(256);
  setGradient(gradient);
  setDataRange(QCPRange(heatmap.low(), heatmap.high()));
  const Theme& theme = static_cast<const Plot*>(mParentPlot)->theme();
  QCPAxis* bar = axis();
  bar->setBasePen(Qt::NoPen);
  bar->setTickPen(QPen(theme.axis, 1));
  bar->setSubTicks(false);
  bar->setTickLength(0, 3);
  bar->setTickLabelFont(theme.small);
  bar->setTickLabelColor(theme.muted);
  bar->setLabelFont(theme.small);
  bar->setLabelColor(theme.text);
  bar->setLabel(label);
  bar->ticker()->setTickCount(4);
  for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atTop, QCPAxis::atBottom}) mAxisRect->axis(side)->setBasePen(Qt::NoPen);
}

}  // namespace reclab
