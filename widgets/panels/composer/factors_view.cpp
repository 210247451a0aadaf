// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/composer/factors_view.h"

#include <algorithm>
#include <cmath>

namespace reclab {
namespace {

constexpr std::size_t cloud_points = 4000;
constexpr double deepest = -12.0;  // most decades on the axis of the kept share

double quantileOf(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const double rest = at - static_cast<double>(below);
  return rest == 0.0 ? sorted[below] : sorted[below] + rest * (sorted[below + 1] - sorted[below]);
}

}  // namespace

FactorsView::FactorsView(QWidget* parent) : Plot(parent) {
  setFocusPolicy(Qt::NoFocus);  // tokens have a field of their own
  pictures_ = new QCPLayoutGrid;
  pictures_->setColumnSpacing(8);
  pictures_->setRowSpacing(4);
  disk_ = makeRect([this] { keepRound(); });
  decay_ = makeRect();
  for (QCPAxisRect* rect : {disk_, decay_}) {
    rect->setRangeDrag({});
    rect->setRangeZoom({});
  }
  disk_->axis(QCPAxis::atBottom)->setLabel(tr("Re λ"));
  disk_->axis(QCPAxis::atLeft)->setLabel(tr("Im λ"));
  decay_->axis(QCPAxis::atBottom)->setLabel(tr("token"));
  decay_->axis(QCPAxis::atBottom)->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
  legend_ = new Legend(this);
  note_ = new Paragraph(this);
  note_->setSmall(true);
  plotLayout()->addElement(0, 0, pictures_);
  plotLayout()->addElement(1, 0, legend_);
  plotLayout()->addElement(2, 0, note_);
  plotLayout()->setRowSpacing(0);
  setLeastPicture(150);
  arrange(width());
  connect(this, &QCustomPlot::beforeReplot, this, [this] { arrange(width()); });  // a figure has another width

  circle_ = new QCPItemEllipse(this);
  circle_->setSelectable(false);
  circle_->setClipAxisRect(disk_);
  for (QCPItemPosition* point : {circle_->topLeft, circle_->bottomRight})
    point->setAxes(disk_->axis(QCPAxis::atBottom), disk_->axis(QCPAxis::atLeft));
  circle_->topLeft->setCoords(-1, 1);
  circle_->bottomRight->setCoords(1, -1);
  circle_->setLayer(QStringLiteral("grid"));
  const auto points = [this] {
    auto* made = new QCPCurve(disk_->axis(QCPAxis::atBottom), disk_->axis(QCPAxis::atLeft));
    made->setLineStyle(QCPCurve::lsNone);
    made->setSelectable(QCP::stNone);
    return made;
  };
  cloud_ = points();
  now_ = points();

  least_ = addCurve(decay_, Qt::black, 0.8);
  most_ = addCurve(decay_, Qt::black, 0.8);
  low_ = addCurve(decay_, Qt::black, 0.8);
  high_ = addCurve(decay_, Qt::black, 0.8);
  median_ = addCurve(decay_, Qt::black, 2.0);
  most_->setChannelFillGraph(least_);
  high_->setChannelFillGraph(low_);
  for (QCPGraph* graph : {least_, most_, low_, high_}) graph->setAdaptiveSampling(false);

  cursor_ = new QCPItemStraightLine(this);
  cursor_->setSelectable(false);
  addCursorMark(cursor_);
  cursor_->setClipAxisRect(decay_);
  for (QCPItemPosition* point : {cursor_->point1, cursor_->point2})
    point->setAxes(decay_->axis(QCPAxis::atBottom), decay_->axis(QCPAxis::atLeft));
  setHoverHandler([this](const QPointF& at) { return tipAt(at); });
}

void FactorsView::setComposition(CompositionPtr composition) {
  composition_ = std::move(composition);
  token_ = composition_ ? std::clamp(token_, 0, std::max(0, static_cast<int>(composition_->steps) - 1)) : 0;
  compute();
  draw();
}

void FactorsView::setToken(int token) {
  token = composition_ ? std::clamp(token, 0, std::max(0, static_cast<int>(composition_->steps) - 1)) : 0;
  if (token == token_) return;
  token_ = token;
  compute();
  draw();
}

std::span<const std::complex<double>> FactorsView::factorsAt(std::int64_t step) const {
  const auto row = std::clamp<std::int64_t>(step, 0, composition_->rows_of_factors - 1);
  return std::span(composition_->factors)
      .subspan(static_cast<std::size_t>(row * composition_->entries), static_cast<std::size_t>(composition_->entries));
}

/// A token's write is multiplied with the factors of all steps after it, up to the one that is read.
void FactorsView::compute() {
  kept_.clear();
  turns_ = false;
  if (!composition_ || composition_->factors.empty()) return;
  turns_ = std::ranges::any_of(composition_->factors, [](const std::complex<double>& z) { return z.imag() != 0.0 || z.real() < 0.0; });
  std::vector<std::complex<double>> product(static_cast<std::size_t>(composition_->entries), 1.0);
  std::vector<double> sorted(product.size());
  kept_.resize(static_cast<std::size_t>(token_) + 1);
  for (int s = token_; s >= 0; --s) {
    std::ranges::transform(product, sorted.begin(), [](const std::complex<double>& z) { return z.real(); });
    std::ranges::sort(sorted);
    kept_[static_cast<std::size_t>(s)] = {sorted.front(), quantileOf(sorted, 0.1), quantileOf(sorted, 0.5), quantileOf(sorted, 0.9),
                                          sorted.back()};
    std::ranges::transform(product, factorsAt(s), product.begin(), std::multiplies<>());
  }
}

void FactorsView::draw() {
  const Theme& look = theme();
  const QColor ink = look.series(0);
  circle_->setPen(QPen(look.axis, 1.2));
  circle_->setBrush(mixed(look.text, look.base, look.dark ? 0.07 : 0.045));
  cursor_->setPen(QPen(look.accent, 1));
  QVector<QCPCurveData> all, here;
  if (composition_ && !composition_->factors.empty()) {
    const std::size_t n = composition_->factors.size(),
                      stride = composition_->rows_of_factors > 1 ? std::max<std::size_t>(1, n / cloud_points) : n;
    for (std::size_t i = 0; i < n && composition_->rows_of_factors > 1; i += stride)
      all.append(QCPCurveData(static_cast<double>(i), composition_->factors[i].real(), composition_->factors[i].imag()));
    for (const auto& z : factorsAt(token_)) here.append(QCPCurveData(static_cast<double>(here.size()), z.real(), z.imag()));
  }
  cloud_->data()->set(all, true);
  now_->data()->set(here, true);
  cloud_->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, mixed(ink, look.base, 0.35), 3));
  now_->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(look.base, 0.8), ink, 7));

  const bool logs = !turns_;
  double bottom = logs ? -1.0 : -1.05;
  const auto fill = [&](QCPGraph* graph, double Kept::* member) {
    QVector<QCPGraphData> points;
    for (std::size_t s = 0; s < kept_.size(); ++s) {
      const double value = kept_[s].*member, shown = logs ? std::max(std::log10(std::max(value, 0.0)), deepest - 1.0) : value;
      points.append({static_cast<double>(s), shown});
      bottom = std::min(bottom, shown);
    }
    graph->data()->set(points, true);
  };
  fill(least_, &Kept::least);
  fill(low_, &Kept::low);
  fill(median_, &Kept::median);
  fill(high_, &Kept::high);
  fill(most_, &Kept::most);
  const QColor wide = mixed(ink, look.base, 0.16), narrow = mixed(ink, look.base, 0.36);
  for (QCPGraph* graph : {least_, most_}) graph->setPen(QPen(wide, 0.8));
  for (QCPGraph* graph : {low_, high_}) graph->setPen(QPen(narrow, 0.8));
  most_->setBrush(wide);
  high_->setBrush(narrow);
  median_->setPen(QPen(ink, 2.0, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  QCPAxis *tokens = decay_->axis(QCPAxis::atBottom), *kept = decay_->axis(QCPAxis::atLeft);
  tokens->setRange(-0.5, std::max(1.0, composition_ ? static_cast<double>(composition_->steps) - 0.5 : 1.0));
  kept->setTicker(logs ? QSharedPointer<QCPAxisTicker>(new PowerTicker) : QSharedPointer<QCPAxisTicker>(new NumberTicker));
  kept->setLabel(turns_ ? tr("kept, real part") : tr("kept of a token"));
  double top = logs ? 0.0 : 1.05;
  for (const Kept& one : kept_) top = std::max(top, logs ? std::log10(std::max(one.most, 1e-300)) : one.most);
  bottom = std::max(bottom, logs ? deepest : bottom);
  kept->setRange(bottom - 0.03 * (top - bottom), top + 0.06 * (top - bottom));
  cursor_->point1->setCoords(token_, 0);
  cursor_->point2->setCoords(token_, 1);

  legend_->clear();
  if (!kept_.empty()) {
    legend_->add(QStringLiteral("median"), tr("median of the entries"), median_->pen(), {median_},
                 tr("Half of the memory's entries have kept less of this token."));
    legend_->add(QStringLiteral("most of them"), tr("10 to 90 %"), QPen(narrow, 6), {low_, high_}, tr("Eight of ten entries are in here."));
    legend_->add(QStringLiteral("all"), tr("all"), QPen(wide, 6), {least_, most_},
                 tr("From the entry that has kept least to the one that has kept most."));
  }
  QString text;
  if (!kept_.empty()) {
    const Kept& first = kept_.front();
    text = token_ == 0 ? tr("Read at the first token: there is none before it.")
           : turns_
               ? tr("Read at token %1, of token 0 comes back %2 in the median, %3 to %4 over the entries; it turns and nothing is lost.")
                     .arg(token_)
                     .arg(number(first.median), number(first.least), number(first.most))
               : tr("Read at token %1, of token 0 is kept %2 in the median, %3 to %4 over the entries.")
                     .arg(token_)
                     .arg(number(first.median), number(first.least), number(first.most));
  }
  note_->setText(text, true);
  redraw();
}

void FactorsView::arrange(int width) {
  const bool beside = width >= side_by_side;
  const int row = beside ? 0 : 1, column = beside ? 1 : 0;
  if (pictures_->hasElement(row, column) && pictures_->element(row, column) == decay_) return;
  if (disk_->layout()) pictures_->take(disk_);
  if (decay_->layout()) pictures_->take(decay_);
  pictures_->simplify();
  pictures_->addElement(0, 0, disk_);
  pictures_->addElement(row, column, decay_);
  if (beside) pictures_->setColumnStretchFactors({1.0, 1.5});
}

void FactorsView::keepRound() {
  QCPAxis *re = disk_->axis(QCPAxis::atBottom), *im = disk_->axis(QCPAxis::atLeft);
  constexpr double home = 1.12;
  double reach = home;
  if (composition_)
    for (const auto& z : composition_->factors)
      if (std::isfinite(std::abs(z))) reach = std::max(reach, 1.05 * std::abs(z));
  const double pixels = std::max(2, std::min(disk_->width(), disk_->height()));
  re->setRange(-reach * disk_->width() / pixels, reach * disk_->width() / pixels);
  im->setRange(-reach * disk_->height() / pixels, reach * disk_->height() / pixels);
}

void FactorsView::changeEvent(QEvent* event) {
  Plot::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) draw();
}

QPoint FactorsView::placeOfToken(int token) const {
  return {static_cast<int>(std::lround(decay_->axis(QCPAxis::atBottom)->coordToPixel(token))), decay_->rect().center().y()};
}
QPoint FactorsView::placeOf(std::complex<double> factor) const {
  return QPointF(disk_->axis(QCPAxis::atBottom)->coordToPixel(factor.real()), disk_->axis(QCPAxis::atLeft)->coordToPixel(factor.imag()))
      .toPoint();
}

bool FactorsView::grabToken(const QMouseEvent& event) {
  if (!(event.buttons() & Qt::LeftButton) || kept_.empty() || !decay_->rect().contains(event.position().toPoint())) return false;
  const int last = static_cast<int>(composition_->steps) - 1;
  emit tokenPicked(std::clamp(static_cast<int>(std::lround(decay_->axis(QCPAxis::atBottom)->pixelToCoord(event.position().x()))), 0, last));
  return true;
}
void FactorsView::mousePressEvent(QMouseEvent* event) {
  if (!grabToken(*event)) Plot::mousePressEvent(event);
}
void FactorsView::mouseMoveEvent(QMouseEvent* event) {
  if (!grabToken(*event)) Plot::mouseMoveEvent(event);
}

QString FactorsView::tipAt(const QPointF& position) const {
  if (kept_.empty()) return {};
  if (decay_->rect().contains(position.toPoint())) {
    const auto s = std::lround(decay_->axis(QCPAxis::atBottom)->pixelToCoord(position.x()));
    if (s < 0 || s > token_) return tr("Click to read the memory at this token.");
    const Kept& one = kept_[static_cast<std::size_t>(s)];
    return tr("token %1, read at token %2\nmedian %3\n10 to 90 %: %4 to %5\nall: %6 to %7")
        .arg(s)
        .arg(token_)
        .arg(number(one.median), number(one.low), number(one.high), number(one.least), number(one.most));
  }
  if (!disk_->rect().contains(position.toPoint())) return {};
  const std::complex<double>* hit = nullptr;
  double nearest = 9.0 * 9.0;
  for (const auto& z : factorsAt(token_)) {
    const QPointF away = QPointF(placeOf(z)) - position;
    if (const double distance = QPointF::dotProduct(away, away); distance < nearest) nearest = distance, hit = &z;
  }
  if (hit == nullptr) return {};
  const double size = std::abs(*hit);
  return tr("λ = %1 %2 %3 i\n|λ| = %4")
             .arg(number(hit->real(), 4), hit->imag() < 0 ? QStringLiteral("−") : QStringLiteral("+"), number(std::abs(hit->imag()), 4),
                  number(size, 5)) +
         (size > 0.0 && size < 1.0 ? u'\n' + tr("time constant %1 steps").arg(number(-1.0 / std::log(size), 4)) : QString());
}

}  // namespace reclab
