// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/plot.h"

#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <utility>

#include "plot/type_scale.h"
#include "plot/value_axis.h"
#include "trace/stream_steps.h"

namespace reclab {

namespace {

constexpr int frame_ms = 25;
constexpr int plot_gap = 8;

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
  bool lacksRoom() {
    const QMargins has = margins();
    const std::pair<QCP::MarginSide, int> sides[]{
        {QCP::msLeft, has.left()}, {QCP::msRight, has.right()}, {QCP::msTop, has.top()}, {QCP::msBottom, has.bottom()}};
    return std::ranges::any_of(
        sides, [this](const auto& side) { return autoMargins().testFlag(side.first) && calculateAutoMargin(side.first) > side.second; });
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
  addMarks();
  timer_.setSingleShot(true);
  timer_.setTimerType(Qt::PreciseTimer);
  connect(&timer_, &QTimer::timeout, this, &Plot::flush);
  since_flush_.start();
  connect(this, &QCustomPlot::afterLayout, this, &Plot::tellTimeSpan);
  connect(this, &QCustomPlot::beforeReplot, this, [this] { scaleLines(this); });
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
  made_.append(rect);
  return rect;
}

/// Names and ticks are chosen by the size of the axis rects; those that then need more room than was left for them get it.
void Plot::updateLayout() {
  QCustomPlot::updateLayout();
  const bool lacks = std::ranges::any_of(axisRects(), [](QCPAxisRect* rect) {
    auto* roomy = dynamic_cast<RoomyRect*>(rect);
    return roomy != nullptr && roomy->realVisibility() && roomy->lacksRoom();
  });
  if (lacks) QCustomPlot::updateLayout();
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
  rect->setProperty("time", true);
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
  const bool stream = counts_stream(trace);
  first_number_ = number_of_step(trace, 0);
  time_is_steps_ = !even || stream;
  time_origin_ = even && !stream ? origin : 0.0;
  time_spacing_ = even && !stream ? spacing : 1.0;
  time_name_ = even || stream ? name : tr("step");
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
  else if (time_is_steps_)
    step_ticker_->setFirst(static_cast<double>(first_number_));
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
  if (scheduled_ || visibleRegion().isEmpty()) return;
  scheduled_ = true;
  // A posted event comes before the window's next painting, a timer after it: then the window is painted twice.
  if (const qint64 left = frame_ms - since_flush_.elapsed(); left > 0)
    timer_.start(static_cast<int>(left));
  else
    QMetaObject::invokeMethod(this, &Plot::flush, Qt::QueuedConnection);
}

void Plot::flush() {
  scheduled_ = false;
  if (dirty_) {
    dirty_ = now_dirty_ = false;
    replot(rpQueuedRefresh);
  } else if (now_dirty_) {
    now_dirty_ = false;
    scaleLines(this);
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
  QList<QCPAxisRect*> rects = axisRects();
  for (const QPointer<QCPAxisRect>& rect : made_)  // one that is put away for a while is in no layout
    if (rect && !rects.contains(rect)) rects.append(rect);
  for (QCPAxisRect* rect : rects)
    for (QCPAxis* axis : rect->axes()) styleAxis(axis);
}

void Plot::changeEvent(QEvent* event) {
  QCustomPlot::changeEvent(event);
  if (event->type() != QEvent::PaletteChange && event->type() != QEvent::FontChange) return;
  applyTheme();
  emit themeChanged();
  redraw();
}

void Plot::showEvent(QShowEvent* event) {
  QCustomPlot::showEvent(event);
  redraw();
}

void Plot::paintEvent(QPaintEvent* event) {
  if (!scheduled_ && (dirty_ || now_dirty_)) flush();  // it has just come into sight
  QCustomPlot::paintEvent(event);
}

}  // namespace reclab
