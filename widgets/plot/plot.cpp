// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/plot.h"

#include <QToolTip>
#include <algorithm>
#include <charconv>
#include <cmath>

#include "plot/value_axis.h"

namespace reclab {

namespace {

constexpr int frame_ms = 33;
constexpr int plot_gap = 8;

/// SVG has no clipping from Qt 6.4's generator, so what leaves an axis rect is painted over, before axes and labels are drawn.
class OutsideMask : public QCPLayerable {
 public:
  explicit OutsideMask(QCustomPlot* plot) : QCPLayerable(plot, QStringLiteral("mask")) {}

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(false); }
  void draw(QCPPainter* painter) override {
    // A plot without axes draws itself, and has nothing that leaves a rect.
    if (!painter->modes().testFlag(QCPPainter::pmVectorized) || mParentPlot->axisRectCount() == 0) return;
    QPainterPath outside;
    outside.addRect(mParentPlot->viewport());
    for (const QCPAxisRect* rect : mParentPlot->axisRects()) {
      QPainterPath inside;
      inside.addRect(rect->rect());
      outside -= inside;
    }
    painter->setPen(Qt::NoPen);
    painter->setBrush(themeOf(mParentPlot).base);
    painter->drawPath(outside);
  }
};

/// A curve that is drawn with a hair line when it is denser than the pixels, for there a wide line costs ten times the time and looks the
/// same.
class DrawnCurve : public QCPGraph {
 public:
  using QCPGraph::QCPGraph;

 protected:
  /// A mark at the edge is drawn whole.
  QRect clipRect() const override {
    const int over =
        mScatterStyle.isNone() || mLineStyle != lsNone ? 0 : static_cast<int>(std::ceil(0.5 * mScatterStyle.size() + mPen.widthF()));
    return QCPGraph::clipRect().adjusted(-over, -over, over, over);
  }
  void draw(QCPPainter* painter) override {
    const QPen wide = mPen;
    const bool dense = !painter->modes().testFlag(QCPPainter::pmVectorized) && visibleCount() > 2 * mKeyAxis->axisRect()->width();
    if (dense && wide.style() != Qt::NoPen) mPen.setWidthF(std::min(1.0, wide.widthF()));
    setAntialiasedFill(!dense);
    QCPGraph::draw(painter);
    mPen = wide;
  }

 private:
  std::ptrdiff_t visibleCount() const {
    return mDataContainer->findEnd(mKeyAxis->range().upper) - mDataContainer->findBegin(mKeyAxis->range().lower);
  }
};

}  // namespace

/// An axis rect with as many ticks as there is room for, that may have its say about the ranges once its size is known.
class RoomyRect : public QCPAxisRect {
 public:
  RoomyRect(QCustomPlot* plot, std::function<void()> shape) : QCPAxisRect(plot, true), shape_(std::move(shape)) {}
  void update(UpdatePhase phase) override {
    QCPAxisRect::update(phase);
    if (phase != upLayout) return;
    if (shape_) shape_();
    // A name longer than its axis would be cut at both ends.
    QCPAxis* values = axis(QCPAxis::atLeft);
    if (values->label() != written_) name_ = values->label();
    const QFontMetrics metrics(values->labelFont(), mParentPlot);
    const int room = std::max(40, height());
    written_ = metrics.elidedText(name_, Qt::ElideRight, room);
    if (written_ != name_ && 2 * room < metrics.horizontalAdvance(name_) + 20) written_.clear();  // less than half of it says nothing
    values->setLabel(written_);
    axis(QCPAxis::atBottom)->ticker()->setTickCount(std::clamp(width() / 80, 1, 8));
    axis(QCPAxis::atLeft)->ticker()->setTickCount(height() < 40 ? 1 : std::clamp(height() / 32, 2, 6));
    QCPAxisRect::update(upPreparation);  // the ticks as they are now
  }

 protected:
  int calculateAutoMargin(QCP::MarginSide side) override {
    const QMargins inset = static_cast<Plot*>(mParentPlot)->insetOf(this);
    return QCPAxisRect::calculateAutoMargin(side) + (side == QCP::msLeft ? inset.left() : side == QCP::msRight ? inset.right() : 0);
  }

 private:
  std::function<void()> shape_;
  QString name_, written_;  // of the value axis: in full, and as far as there is room
};

// ---------------------------------------------------------------------------------------------------------------- cursor

/// The line at the cursor's step in every time rect, the values of the curves there, and the band that is being drawn to zoom.
class TimeCursor : public QCPLayerable {
 public:
  explicit TimeCursor(Plot* plot) : QCPLayerable(plot, QStringLiteral("overlay")), plot_(plot) {}

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(true); }
  void draw(QCPPainter* painter) override {
    if (!plot_->drawsCursor()) return;
    bool first = true;
    for (const Plot::TimeRect& time : plot_->time_rects_) {
      if (!time.rect || !time.rect->realVisibility()) continue;
      const QRect area = time.rect->rect();
      if (plot_->drag_ == Plot::Drag::zoom) drawBand(painter, time.rect, area);
      const QCPAxis* axis = time.rect->axis(QCPAxis::atBottom);
      if (plot_->cursor_ >= 0 && axis->range().contains(static_cast<double>(plot_->cursor_))) {
        const double x = std::round(axis->coordToPixel(static_cast<double>(plot_->cursor_))) + 0.5;
        painter->setPen(QPen(plot_->theme_.accent, 1));
        painter->drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
        drawValues(painter, time, area, x, first);
      }
      first = false;
    }
  }

 private:
  struct Label {
    QString text;
    QColor colour;
    double y = 0, at = 0;
  };

  void drawBand(QCPPainter* painter, const QCPAxisRect* rect, const QRect& area) const {
    const QCPAxis* axis = rect->axis(QCPAxis::atBottom);
    const double a = std::clamp(axis->coordToPixel(plot_->band_from_), double(area.left()), double(area.right()));
    const double b = std::clamp(axis->coordToPixel(plot_->band_to_), double(area.left()), double(area.right()));
    QColor shade = plot_->theme_.accent;
    shade.setAlphaF(0.18f);
    painter->fillRect(QRectF(QPointF(std::min(a, b), area.top()), QPointF(std::max(a, b), area.bottom())), shade);
  }

  /// The point of a curve that is nearest to a step, null where the curve is not there: before its first point, after its last, in a gap,
  /// and between points that no line joins. Where only some steps have points, one stands for those around it.
  static const QCPGraphData* valueAt(const QCPGraph* graph, double step) {
    const auto begin = graph->data()->constBegin(), end = graph->data()->constEnd();
    auto at = graph->data()->findBegin(step, true);
    if (const auto next = at + 1; next != end && std::abs(next->key - step) < std::abs(at->key - step)) at = next;
    if (std::isnan(at->value)) return nullptr;
    if (at->key == step) return &*at;
    if (graph->lineStyle() == QCPGraph::lsNone) return nullptr;
    const bool after = step > at->key;
    const auto there = [&](bool right) {
      return (right ? at + 1 != end && !std::isnan((at + 1)->value) : at != begin && !std::isnan((at - 1)->value));
    };
    if (there(after)) return &*at;
    const double apart = there(!after) ? std::abs(at->key - (after ? at - 1 : at + 1)->key) : 0.0;
    return std::abs(step - at->key) < apart ? &*at : nullptr;
  }

  void drawValues(QCPPainter* painter, const Plot::TimeRect& time, const QRect& area, double x, bool with_step) const {
    const Theme& theme = plot_->theme_;
    const QFontMetrics metrics(theme.small, mParentPlot);
    const int line = metrics.height();
    std::vector<Label> labels;
    for (const QCPGraph* graph : time.rect->graphs()) {
      if (!graph->realVisibility() || graph->property("quiet").toBool() || graph->data()->isEmpty()) continue;
      const QCPGraphData* at = valueAt(graph, static_cast<double>(plot_->cursor_));
      if (at == nullptr) continue;
      const double y = graph->valueAxis()->coordToPixel(at->value);
      if (y < area.top() || y > area.bottom()) continue;
      painter->setPen(QPen(theme.base, 1));
      painter->setBrush(graph->pen().color());
      painter->drawEllipse(QPointF(x, y), 3.5, 3.5);
      const QString value = time.format ? time.format(at->value) : number(at->value);
      labels.push_back({graph->name().isEmpty() ? value : graph->name() + u' ' + value, legible(graph->pen().color(), theme), y, y});
    }
    painter->setFont(theme.small);
    with_step = with_step && area.height() >= 2 * line;
    if (with_step) write(painter, area, x, area.top() + line / 2.0, tr_step(), theme.accent, metrics);
    // Labels that would overlap move apart, in the order of their values, and stay inside.
    std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
    // Those that there is no room for are left out, the legend and the data have them all.
    const auto room = static_cast<std::size_t>(std::max(0, area.height() / line - (with_step ? 1 : 0)));
    if (labels.size() > room) labels.resize(room);
    double lowest = area.top() + (with_step ? line * 1.5 : line * 0.5);
    for (Label& label : labels) {
      label.at = std::max(label.at, lowest);
      lowest = label.at + line;
    }
    double highest = area.bottom() - line * 0.5;
    for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
      label->at = std::min(label->at, highest);
      highest = label->at - line;
    }
    for (const Label& label : labels) write(painter, area, x, label.at, label.text, label.colour, metrics);
  }

  QString tr_step() const {
    return plot_->lag_ ? Plot::tr("%1 before the end").arg(grouped(plot_->extent_last_ - plot_->cursor_))
                       : Plot::tr("step %1").arg(grouped(plot_->cursor_));
  }

  void write(QCPPainter* painter, const QRect& area, double x, double y, const QString& text, const QColor& colour,
             const QFontMetrics& metrics) const {
    const int width = metrics.horizontalAdvance(text) + 6, height = metrics.height();
    const bool beyond = x + 6 + width > area.right();
    // Where neither side has room it stands over the cursor, whole.
    const double left = !beyond ? x + 6
                        : x - 6 - width >= area.left()
                            ? x - 6 - width
                            : std::max<double>(plot_->viewport().left(), std::min<double>(x + 6, plot_->viewport().right() - width));
    const QRectF box(left, y - height / 2.0, width, height);
    QColor ground = plot_->theme_.base;
    ground.setAlphaF(0.9f);
    painter->fillRect(box, ground);
    painter->setPen(colour);
    painter->drawText(box, Qt::AlignCenter | Qt::TextDontClip, text);
  }

  Plot* plot_;
};

/// Three dots in the corner of a plot that had to leave something out.
class LeftOutMark : public QCPLayerable {
 public:
  explicit LeftOutMark(Plot* plot) : QCPLayerable(plot, QStringLiteral("legend")), plot_(plot) {}

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(true); }
  void draw(QCPPainter* painter) override {
    if (painter->modes().testFlag(QCPPainter::pmNoCaching) || plot_->leftOut().isEmpty()) return;  // on the screen alone
    const QRectF place = plot_->leftOutPlace();
    painter->setPen(Qt::NoPen);
    painter->setBrush(plot_->theme().muted);
    for (const double x : {-6.0, 0.0, 6.0}) painter->drawEllipse(place.center() + QPointF(x, 0), 1.6, 1.6);
  }

 private:
  Plot* plot_;
};

/// Beside the name of a time axis: the other way to count its steps.
class LagLink : public QCPLayerable {
 public:
  explicit LagLink(Plot* plot) : QCPLayerable(plot, QStringLiteral("legend")), plot_(plot) {}

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(true); }
  void draw(QCPPainter* painter) override {
    if (painter->modes().testFlag(QCPPainter::pmNoCaching)) return;  // on the screen alone
    const QRect place = plot_->lagLinkPlace();
    if (place.isNull()) return;
    QFont font = plot_->theme().small;
    font.setUnderline(true);
    painter->setFont(font);
    painter->setPen(plot_->theme().muted);
    painter->drawText(place, Qt::AlignRight | Qt::AlignVCenter | Qt::TextDontClip, plot_->lagLink());
  }

 private:
  Plot* plot_;
};

// --------------------------------------------------------------------------------------------------------------- tickers

double StepTicker::getTickStep(const QCPRange& range) {
  const double step = cleanMantissa(range.size() / (mTickCount + 1e-10));
  if (!whole_) return step;
  return step == 2.5 ? 2.0 : std::max(1.0, step);
}

void StepTicker::generate(const QCPRange& range, const QLocale& locale, QChar formatChar, int precision, QVector<double>& ticks,
                          QVector<double>* subTicks, QVector<QString>* tickLabels) {
  const QCPRange times(origin_ + range.lower * spacing_, origin_ + range.upper * spacing_);
  QCPAxisTicker::generate(times, locale, formatChar, precision, ticks, subTicks, nullptr);
  if (tickLabels) {
    tickLabels->clear();
    const double step = ticks.size() > 1 ? ticks[1] - ticks[0] : 1.0;
    int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 12);
    // A step of 2.5 or 0.25 has one more digit than its size says.
    if (const double digits = step * std::pow(10.0, decimals); std::abs(digits - std::round(digits)) > 1e-6) ++decimals;
    const bool steps = origin_ == 0.0 && spacing_ == 1.0;  // counted, and written as they are everywhere else
    for (const double tick : ticks)
      tickLabels->append((steps ? grouped(std::llround(tick)) : QString::number(tick, 'f', decimals)).replace(u'-', QStringLiteral("−")));
  }
  for (double& tick : ticks) tick = (tick - origin_) / spacing_;
  if (spacing_ < 0) {  // an axis has its ticks from left to right
    std::reverse(ticks.begin(), ticks.end());
    if (tickLabels) std::reverse(tickLabels->begin(), tickLabels->end());
  }
  if (subTicks) subTicks->clear();
}

double PowerTicker::getTickStep(const QCPRange& range) {
  const double step = QCPAxisTicker::getTickStep(range);
  return range.size() >= 2.5 ? std::max(1.0, std::round(step)) : step;
}

QVector<double> PowerTicker::createTickVector(double step, const QCPRange& range) {
  if (range.size() >= 2.5 || std::abs(range.center()) > 300) return QCPAxisTicker::createTickVector(step, range);
  if (range.size() < 0.3) {  // so little of a decade that round numbers are evenly spaced in it
    const QCPRange values(std::pow(10.0, range.lower), std::pow(10.0, range.upper));
    QVector<double> ticks = QCPAxisTicker::createTickVector(QCPAxisTicker::getTickStep(values), values);
    ticks.removeIf([](double value) { return value <= 0.0; });
    for (double& tick : ticks) tick = std::log10(tick);
    return ticks;
  }
  // As many of each decade as there is room for, and one at least.
  QVector<double> ticks;
  for (const std::vector<double>& mantissas : {std::vector{1.0, 2.0, 5.0}, {1.0, 3.0}, {1.0}}) {
    if (mantissas.size() == 3 && range.size() >= 1.6) continue;
    QVector<double> found;
    int inside = 0;
    for (double power = std::floor(range.lower); power <= range.upper; power += 1.0)
      for (const double mantissa : mantissas) {
        found.append(power + std::log10(mantissa));
        inside += range.contains(found.back());
      }
    if (!ticks.isEmpty() && inside == 0) break;
    ticks = found;
    if (inside <= tickCount() + 1) break;
  }
  return ticks;
}

QString PowerTicker::getTickLabel(double tick, const QLocale&, QChar, int) {
  return std::abs(tick - std::round(tick)) < 1e-9 && std::abs(tick) >= 3 ? powerOfTen(std::round(tick)) : powerAsNumber(tick, 3);
}

// ------------------------------------------------------------------------------------------------------------------ plot

Plot::Plot(QWidget* parent) : QCustomPlot(parent), step_ticker_(new StepTicker) {
  setLocale(QLocale::c());
  plotLayout()->clear();
  plotLayout()->setRowSpacing(4);
  plotLayout()->setColumnSpacing(plot_gap);
  addLayer(QStringLiteral("now"), layer(QStringLiteral("main")), limAbove);
  layer(QStringLiteral("now"))->setMode(QCPLayer::lmBuffered);
  addLayer(QStringLiteral("mask"), layer(QStringLiteral("now")), limAbove);
  setCurrentLayer(QStringLiteral("main"));
  setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
  setNoAntialiasingOnDrag(false);
  setPlottingHint(QCP::phFastPolylines);  // dense curves are else stroked as one path, ten times slower
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  new OutsideMask(this);
  new LeftOutMark(this);
  new LagLink(this);
  time_cursor_ = new TimeCursor(this);
  timer_.setSingleShot(true);
  timer_.setTimerType(Qt::PreciseTimer);
  connect(&timer_, &QTimer::timeout, this, &Plot::flush);
  since_flush_.start();
  connect(this, &QCustomPlot::afterLayout, this, &Plot::tellTimeSpan);
  applyTheme();
}

Plot::~Plot() = default;

QCPAxisRect* Plot::makeRect(std::function<void()> shape) {
  auto* rect = new RoomyRect(this, std::move(shape));
  rect->setMinimumSize(30, 20);
  rect->setMinimumMargins(QMargins(6, 6, 12, 4));
  for (QCPAxis* axis : rect->axes()) {
    axis->setLayer(QStringLiteral("axes"));
    axis->grid()->setLayer(QStringLiteral("grid"));
    axis->setTicker(QSharedPointer<QCPAxisTicker>(new NumberTicker));
    raiseExponents(axis);
    styleAxis(axis);
  }
  return rect;
}

QCPGraph* Plot::addCurve(QCPAxisRect* rect, const QColor& colour, double width, Qt::PenStyle style) {
  auto* graph = new DrawnCurve(rect->axis(QCPAxis::atBottom), rect->axis(QCPAxis::atLeft));
  QPen pen(colour, width, style, Qt::RoundCap, Qt::RoundJoin);
  graph->setPen(pen);
  graph->setSelectable(QCP::stNone);
  graph->setAdaptiveSampling(true);
  return graph;
}

void Plot::addTimeRect(QCPAxisRect* rect, std::function<QString(double)> format) {
  time_rects_.append({rect, std::move(format)});
  rect->axis(QCPAxis::atBottom)->setTicker(step_ticker_);
  rect->axis(QCPAxis::atBottom)->setRange(static_cast<double>(first_) - 0.5, static_cast<double>(last_) + 0.5);
  rect->setRangeDrag({});
  rect->setRangeZoom({});
}

QMargins Plot::insetOf(const QCPAxisRect* rect) const {
  if (figure_) return {};
  const bool timed = std::any_of(time_rects_.begin(), time_rects_.end(), [&](const TimeRect& one) { return one.rect == rect; });
  return timed ? inset_ : QMargins();
}

std::optional<Plot::TimeSpan> Plot::timeSpan() const {
  for (const TimeRect& time : time_rects_)
    if (time.rect && time.rect->realVisibility() && !time.rect->outerRect().isEmpty())
      return TimeSpan{time.rect->left() - laid_inset_.left(), time.rect->right() + laid_inset_.right()};
  return {};
}

void Plot::setTimeInset(int left, int right) {
  const QMargins inset(std::max(0, left), 0, std::max(0, right), 0);
  if (inset == inset_) return;
  inset_ = inset;
  redraw();
}

void Plot::tellTimeSpan() {
  if (figure_) return;
  laid_inset_ = inset_;  // only now are the rects where it puts them
  const std::optional<TimeSpan> now = timeSpan();
  const bool same = now.has_value() == told_.has_value() && (!now || (now->left == told_->left && now->right == told_->right));
  told_ = now;
  if (!same) emit timeSpanChanged();
}

void Plot::setTimeExtent(std::int64_t first, std::int64_t last) {
  if (first == extent_first_ && last == extent_last_) return;
  extent_first_ = first;
  extent_last_ = std::max(first, last);
  nameTime();
  first_ = last_ = -1;
  setTimeRange(extent_first_, extent_last_);
}

void Plot::setTimeNames(const Trace& trace) {
  QString name = QString::fromStdString(trace.time_name);
  double origin = 0.0, spacing = 1.0;
  bool even = name != u"step" && trace.time.size() > 1 && trace.time.size() == trace.steps.size();
  if (even) {
    // Round times can be ticked when the time column is an even grid to within half a step.
    const double span = static_cast<double>(trace.steps.back() - trace.steps.front());
    spacing = (trace.time.back() - trace.time.front()) / span;
    origin = trace.time.front() - spacing * static_cast<double>(trace.steps.front());
    even = spacing > 0.0 && std::isfinite(origin);
    for (std::size_t i = 0; even && i < trace.time.size(); ++i)
      even = std::abs(trace.time[i] - origin - spacing * static_cast<double>(trace.steps[i])) <= 0.5 * spacing;
  }
  time_is_steps_ = !even;
  time_origin_ = even ? origin : 0.0;
  time_spacing_ = even ? spacing : 1.0;
  time_name_ = even ? name : tr("step");
  if (even && !trace.time_unit.empty()) time_name_ += QStringLiteral(" (%1)").arg(QString::fromStdString(trace.time_unit));
  nameTime();
}

void Plot::setLag(bool lag) {
  if (lag == lag_) return;
  lag_ = lag;
  nameTime();
  emit lagChanged(lag);
  redraw();
}

void Plot::nameTime() {
  if (lag_)
    step_ticker_->setLag(static_cast<double>(extent_last_));
  else
    step_ticker_->setTime(time_origin_, time_spacing_);
  const QString label = lag_ ? tr("steps before the end") : time_name_.isEmpty() ? tr("step") : time_name_;
  for (const TimeRect& time : time_rects_) {
    QCPAxis* axis = time.rect->axis(QCPAxis::atBottom);
    if (axis->tickLabels()) axis->setLabel(label);
  }
}

void Plot::setTimeRange(std::int64_t first, std::int64_t last) {
  if (last <= first) last = first + 1;
  if (first == first_ && last == last_) return;
  first_ = first;
  last_ = last;
  for (const TimeRect& time : time_rects_)
    if (time.rect) time.rect->axis(QCPAxis::atBottom)->setRange(static_cast<double>(first_) - 0.5, static_cast<double>(last_) + 0.5);
  emit timeRangeChanged();
  redraw();
}

void Plot::setCursorStep(std::int64_t step) {
  if (step == cursor_) return;
  cursor_ = step;
  redrawNow();
}

void Plot::redraw() {
  dirty_ = true;
  schedule();
}

void Plot::redrawNow() {
  now_dirty_ = true;
  schedule();
}

void Plot::schedule() {
  if (timer_.isActive() || !isVisible()) return;
  timer_.start(static_cast<int>(std::max<qint64>(0, frame_ms - since_flush_.elapsed())));
}

void Plot::flush() {
  if (dirty_) {
    dirty_ = now_dirty_ = false;
    replot(rpQueuedRefresh);
  } else if (now_dirty_) {
    now_dirty_ = false;
    layer(QStringLiteral("now"))->replot();
    layer(QStringLiteral("overlay"))->replot();
  }
  since_flush_.restart();
}

void Plot::styleAxis(QCPAxis* axis) {
  const QPen line(theme_.axis, 1);
  axis->setBasePen(line);
  axis->setTickPen(line);
  axis->setSubTickPen(line);
  axis->setSubTicks(false);
  axis->setTickLength(0, 4);
  axis->setTickLabelFont(theme_.small);
  axis->setTickLabelColor(theme_.muted);
  axis->setLabelFont(theme_.normal);
  axis->setLabelColor(theme_.text);
  axis->setLabelPadding(3);
  axis->setTickLabelPadding(4);
  axis->setSelectableParts(QCPAxis::spNone);
  axis->grid()->setPen(QPen(theme_.grid, 1));
  axis->grid()->setZeroLinePen(Qt::NoPen);
  axis->grid()->setSubGridVisible(false);
}

void Plot::setOwnColour(const QColor& colour) {
  if (theme_.own == colour) return;
  theme_.own = colour;
  emit themeChanged();
  redraw();
}

void Plot::applyTheme() {
  const QColor own = theme_.own;
  theme_ = Theme::of(this);
  theme_.own = own;
  setBackground(QBrush(theme_.base));
  for (QCPAxisRect* rect : axisRects())
    for (QCPAxis* axis : rect->axes()) styleAxis(axis);
}

void Plot::changeEvent(QEvent* event) {
  QCustomPlot::changeEvent(event);
  if (event->type() != QEvent::PaletteChange && event->type() != QEvent::ApplicationFontChange) return;
  applyTheme();
  emit themeChanged();
  redraw();
}

void Plot::showEvent(QShowEvent* event) {
  QCustomPlot::showEvent(event);
  redraw();
}

Plot::Beside Plot::beside() const {
  constexpr int least_inside = 120, least_further = 70;  // of the first picture, and of one more under it
  Beside all;
  int pictures = 0, around = 0;
  QCPLayoutGrid* grid = plotLayout();
  for (int row = 0; row < grid->rowCount(); ++row) {
    bool picture = false;
    for (int column = 0; column < grid->columnCount(); ++column) {
      const QCPLayoutElement* element = grid->hasElement(row, column) ? grid->element(row, column) : nullptr;
      if (const auto* text = qobject_cast<const Paragraph*>(element)) {
        all.texts.push_back(text);
        all.wanted += text->wantedHeight();
      } else if (const auto* names = qobject_cast<const Legend*>(element)) {
        all.legends.push_back(names);
        all.wanted += names->wantedHeight();
      } else {
        picture = picture || (element && element->visible());
        const auto frame = [&](const QCPLayoutElement* one) {
          if (const auto* rect = qobject_cast<const QCPAxisRect*>(one); rect && rect->visible())
            around = std::max(around, rect->margins().top() + rect->margins().bottom());
        };
        frame(element);
        if (element)
          for (const QCPLayoutElement* one : element->elements(true)) frame(one);
      }
    }
    pictures += picture;
  }
  const int least = least_picture_ > 0 ? least_picture_ : least_inside + around;
  const int height = viewport().height(), spacing = grid->rowSpacing() * std::max(0, grid->rowCount() - 1);
  all.room = height - least - least_further * std::max(0, pictures - 1) - spacing;
  all.fair = share_ > 0.0 ? std::min(all.room, height - static_cast<int>(share_ * height) - spacing) : all.room;
  return all;
}

Plot::Room Plot::roomFor(const QCPLayoutElement* one) const {
  if (figure_) return figure_->caption || qobject_cast<const Paragraph*>(one) == nullptr ? Room::all : Room::none;
  auto [texts, legends, wanted, room, fair] = beside();
  Room its = Room::all;
  for (auto text = texts.rbegin(); text != texts.rend() && wanted > fair; ++text) {
    const bool brief = (*text)->brief();
    wanted -= (*text)->wantedHeight() - (brief ? (*text)->lineHeight() : 0);
    if (*text == one && !brief) return Room::none;
    if (*text == one && (*text)->wantedHeight() > (*text)->lineHeight()) its = Room::line;
  }
  for (auto names = legends.rbegin(); names != legends.rend() && wanted > fair; ++names) {
    wanted -= (*names)->wantedHeight() - (*names)->lineHeight();
    if (*names == one && (*names)->wantedHeight() > (*names)->lineHeight()) its = Room::line;
  }
  for (auto text = texts.rbegin(); text != texts.rend() && wanted > room; ++text) {
    if (!(*text)->brief()) continue;  // gone already
    wanted -= (*text)->lineHeight();
    if (*text == one) return Room::none;
  }
  for (auto names = legends.rbegin(); names != legends.rend() && wanted > room; ++names) {
    wanted -= (*names)->lineHeight();
    if (*names == one) its = Room::none;
  }
  return its;
}

QRect Plot::leftOutPlace() const { return {viewport().right() - 26, viewport().top(), 26, 16}; }

QString Plot::leftOut() const {
  QStringList parts;
  for (QCPLayoutElement* element : plotLayout()->elements(false)) {
    if (const auto* names = qobject_cast<const Legend*>(element)) {
      if (const Room room = roomFor(names); room != Room::all) parts << names->namesAsHtml(room == Room::line);
    } else if (const auto* text = qobject_cast<const Paragraph*>(element)) {
      if (!text->text().isEmpty() && roomFor(text) != Room::all) parts << text->text().toHtmlEscaped();
    }
  }
  parts.removeAll(QString());
  return parts.join(QStringLiteral("<br>"));
}

QString csvCell(const QString& text) {
  if (!text.contains(u',') && !text.contains(u'"') && !text.contains(u'\n')) return text;
  return u'"' + QString(text).replace(u'"', QStringLiteral("\"\"")) + u'"';
}

QByteArray csvNumber(double value) {
  if (std::isnan(value)) return {};
  if (std::isinf(value)) return value > 0 ? QByteArray("inf") : QByteArray("-inf");
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return QByteArray(text, end - text);
}

}  // namespace reclab
