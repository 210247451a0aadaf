// SPDX-License-Identifier: GPL-3.0-or-later
// The marks that a plot draws over its pictures: the cursor in time, the dots for omitted parts, and the other way to count steps.
#include <algorithm>
#include <cmath>

#include "plot/plot.h"

namespace reclab {

namespace {

/// SVG has no clipping from Qt 6.4's generator, so curves outside of an axis rect are painted over, before axes and labels are drawn.
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

}  // namespace

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
    // Labels without room are left out; the legend and the data have them all.
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
                       : Plot::tr("step %1").arg(grouped(plot_->numberOf(plot_->cursor_)));
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

void Plot::addMarks() {
  new OutsideMask(this);
  new LeftOutMark(this);
  new LagLink(this);
  new TimeCursor(this);
}

}  // namespace reclab
