// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/spectrum/flow_view.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "plot/parts/table.h"

namespace reclab {

using Complex = std::complex<double>;

namespace {

constexpr double full = 2.0 * std::numbers::pi, farthest = 4.0;

bool isFinite(const Complex& z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }

QString complexText(const Complex& z) {
  return QStringLiteral("%1 %2 %3 i")
      .arg(number(z.real(), 4), z.imag() < 0 ? QStringLiteral("−") : QStringLiteral("+"), number(std::abs(z.imag()), 4));
}

}  // namespace

/// The half-plane with its eigenvalues, or their images in the disk under one rule.
class FlowPicture : public QCPLayerable {
 public:
  FlowPicture(FlowView* view, int rule)
      : QCPLayerable(view->plot_, rule < 0 ? QStringLiteral("main") : QStringLiteral("now")), view_(view), rule_(rule) {}
  void toTop() { moveToLayer(layer(), false); }

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override { painter->setAntialiasing(true); }
  QRect clipRect() const override { return (rule_ < 0 ? view_->plane_ : view_->disk_)->rect(); }
  void draw(QCPPainter* painter) override {
    if (!view_->shown_) return;
    if (rule_ < 0)
      drawPlane(painter);
    else
      drawRule(painter);
  }

 private:
  void drawPlane(QCPPainter* painter) const {
    const Theme& theme = view_->plot_->theme();
    const QRectF area(clipRect());
    const QPointF zero = view_->inPlane(0.0);
    const double edge = std::clamp(zero.x(), area.left(), area.right());
    painter->fillRect(QRectF(area.topLeft(), QPointF(edge, area.bottom())), mixed(theme.text, theme.base, theme.dark ? 0.07 : 0.045));
    painter->setPen(QPen(theme.grid, 1));
    painter->drawLine(QPointF(area.left(), zero.y()), QPointF(area.right(), zero.y()));
    painter->setPen(QPen(theme.axis, 1.2));
    painter->drawLine(QPointF(zero.x(), area.top()), QPointF(zero.x(), area.bottom()));
    // The stable region of Euler's forward step: |1 + h λ| < 1.
    if (view_->pictures_[0]->realVisibility()) {
      painter->setBrush(Qt::NoBrush);
      painter->setPen(QPen(view_->inkOf(0), 1, Qt::DashLine));
      painter->drawEllipse(QRectF(view_->inPlane(Complex(-2.0, 1.0) / view_->step_), view_->inPlane(Complex(0.0, -1.0) / view_->step_)));
    }
    painter->setPen(QPen(theme.base, 0.8));
    painter->setBrush(theme.text);
    for (const Complex& w : view_->exponents_)
      if (isFinite(w)) painter->drawEllipse(view_->inPlane(w), radius() - 0.4, radius() - 0.4);
  }

  void drawRule(QCPPainter* painter) const {
    const bool own = rule_ == view_->own();
    const QColor ink = view_->inkOf(rule_);
    painter->setPen(own ? QPen(view_->plot_->theme().base, 0.8) : QPen(ink, 1.1));
    painter->setBrush(own ? QBrush(ink) : QBrush(Qt::NoBrush));
    const QRectF area = QRectF(clipRect()).adjusted(-4, -4, 4, 4);
    for (std::size_t i = 0; i < view_->exponents_.size(); ++i) {
      const Complex z = view_->placed(rule_, i);
      if (!isFinite(z)) continue;
      const QPointF at = view_->inDisk(z);
      if (area.contains(at)) painter->drawEllipse(at, own ? radius() : radius() - 0.8, own ? radius() : radius() - 0.8);
    }
  }

  double radius() const { return view_->exponents_.size() > 512 ? 2.0 : view_->exponents_.size() > 96 ? 2.8 : 3.6; }

  FlowView* view_;
  int rule_;  ///< -1: the half-plane
};

FlowView::FlowView(Plot* plot, Legend* legend, QCPAxisRect* plane, QCPAxisRect* disk)
    : QObject(plot),
      plot_(plot),
      legend_(legend),
      plane_(plane),
      disk_(disk),
      ground_(new FlowPicture(this, -1)),
      rules_(discretisations()) {
  for (int rule = 0; rule < rules; ++rule) pictures_[static_cast<std::size_t>(rule)] = new FlowPicture(this, rule);
}

void FlowView::set(std::vector<Complex> exponents, const Discretisation& own, const StepTime& time) {
  exponents_ = std::move(exponents);
  if (own.name == "generalised" && (!shown_ || !(own == own_))) rules_ = discretisations(own.share);
  own_ = own;
  if (this->own() >= 0) pictures_[static_cast<std::size_t>(this->own())]->toTop();
  time_ = time;
  shown_ = true;
  double left = 0.0, right = 0.0, bottom = 0.0, top = 0.0;
  for (const Complex& w : exponents_) {
    if (!isFinite(w)) continue;
    left = std::min(left, w.real());
    right = std::max(right, w.real());
    bottom = std::min(bottom, w.imag());
    top = std::max(top, w.imag());
  }
  right = std::max(right, 0.15 * (right - left));
  const double across = std::max(0.08 * (right - left), 1e-9), up = std::max({0.08 * (top - bottom), 0.1 * across, 1e-9});
  plane_re_ = QCPRange((left - across) / time_.spacing, (right + across) / time_.spacing);
  plane_im_ = QCPRange((bottom - up) / time_.spacing, (top + up) / time_.spacing);
}

void FlowView::clear() {
  shown_ = false;
  exponents_.clear();
}

void FlowView::redraw() {
  if (shown_) plot_->redraw();
}

void FlowView::setStep(double steps) {
  step_ = steps;
  redraw();
}

void FlowView::setShare(double share) {
  rules_ = discretisations(share);
  redraw();
}

int FlowView::own() const {
  for (int rule = 0; rule < rules; ++rule)
    if (rules_[static_cast<std::size_t>(rule)].name == own_.name) return rule;
  return -1;
}

QString FlowView::nameOf(const Discretisation& rule) {
  if (rule.name == "forward") return tr("forward Euler");
  if (rule.name == "backward") return tr("backward Euler");
  if (rule.name == "bilinear") return tr("bilinear");
  if (rule.name == "generalised") return tr("generalised, α = %1").arg(number(rule.share));
  return tr("zero-order hold, exponential");
}

QColor FlowView::inkOf(int rule) const {
  constexpr std::array order{1, 4, 0, 3, 2};  // the most common rule has the first colour
  return plot_->theme().series(order[static_cast<std::size_t>(rule)]);
}

void FlowView::addToLegend() {
  for (int rule = 0; rule < rules; ++rule) {
    const Discretisation& one = rules_[static_cast<std::size_t>(rule)];
    const bool own_rule = rule == own();
    QString tip = one.name == "exponential"
                      ? tr("exp(hλ): exact. A zero-order hold and an exponential step differ in how the input enters, not here.")
                  : one.name == "forward"  ? tr("1 + hλ: stable inside the dashed circle alone.")
                  : one.name == "backward" ? tr("1/(1 − hλ): stable wherever λ is, and fades what turns fast.")
                  : one.name == "bilinear"
                      ? tr("(1 + hλ/2)/(1 − hλ/2): the half-plane becomes the disk, and frequencies are pressed together.")
                      : tr("(1 + (1 − α)hλ)/(1 − αhλ): forward Euler at 0, bilinear at ½, backward Euler at 1.");
    if (own_rule) tip += u' ' + tr("This is what the run does, the filled discs.");
    legend_->add(QStringLiteral("rule/%1").arg(QString::fromUtf8(one.name.data(), static_cast<qsizetype>(one.name.size()))),
                 own_rule ? tr("%1 (the run)").arg(nameOf(one)) : nameOf(one), QPen(inkOf(rule), own_rule ? 2.2 : 1.2),
                 {pictures_[static_cast<std::size_t>(rule)]}, tip);
  }
}

double FlowView::diskReach() const {
  double reach = 1.0;
  for (std::size_t i = 0; own() >= 0 && i < exponents_.size(); ++i)
    if (const double size = std::abs(placed(own(), i)); std::isfinite(size)) reach = std::max(reach, size);
  return std::min(reach, farthest);
}

QString FlowView::rateName(const QString& part) const { return tr("%1 (1/%2)").arg(part, time_.unit.isEmpty() ? tr("step") : time_.unit); }

QString FlowView::timeText(double steps) const {
  const QString in_steps = steps == 1.0 ? tr("1 step") : tr("%1 steps").arg(number(steps, 4));
  return time_.unit.isEmpty() ? in_steps : tr("%1 %2, %3").arg(number(steps * time_.spacing, 4), time_.unit, in_steps);
}

QString FlowView::stepText() const { return timeText(step_); }

QString FlowView::headline() const {
  double largest = -std::numeric_limits<double>::infinity();
  for (const Complex& w : exponents_)
    if (!std::isnan(w.real())) largest = std::max(largest, w.real() / time_.spacing);
  return std::isfinite(largest) ? tr("max Re λ %1").arg(number(largest)) : QString();
}

QString FlowView::note() const {
  QStringList said{tr("Left: eigenvalues in continuous time. Right: where each rule puts them after h = %1. The run: %2, h = %3.")
                       .arg(stepText(), nameOf(own_), timeText(1.0))};
  const auto unstable = std::ranges::count_if(exponents_, [](const Complex& w) { return w.real() > 1e-12; });
  if (unstable > 0) said << tr("%1 of %2 grow in continuous time.").arg(grouped(unstable), grouped(std::ssize(exponents_)));
  for (int rule = 0; rule < rules; ++rule) {
    if (!pictures_[static_cast<std::size_t>(rule)]->realVisibility()) continue;
    std::int64_t outside = 0, fading = 0;
    double largest = 0.0;
    for (std::size_t i = 0; i < exponents_.size(); ++i) {
      if (!(exponents_[i].real() <= 1e-12)) continue;  // growing modes
      const double size = std::abs(placed(rule, i));
      ++fading;
      outside += size > 1.0 + 1e-12;
      largest = std::max(largest, size);
    }
    if (outside > 0)
      said << tr("With %1 %2 of %3 that fade leave the circle, up to |z| = %4.")
                  .arg(nameOf(rules_[static_cast<std::size_t>(rule)]), grouped(outside), grouped(fading), number(largest, 5));
  }
  return said.join(u' ');
}

QPointF FlowView::inPlane(Complex w) const {
  return {plane_->axis(QCPAxis::atBottom)->coordToPixel(w.real() / time_.spacing),
          plane_->axis(QCPAxis::atLeft)->coordToPixel(w.imag() / time_.spacing)};
}

QPointF FlowView::inDisk(Complex z) const {
  return {disk_->axis(QCPAxis::atBottom)->coordToPixel(z.real()), disk_->axis(QCPAxis::atLeft)->coordToPixel(z.imag())};
}

QString FlowView::tipAt(const QPointF& position) const {
  const bool plane = plane_->rect().contains(position.toPoint());
  if (!shown_ || (!plane && !disk_->rect().contains(position.toPoint()))) return {};
  double nearest = 81.0;
  std::size_t hit = 0;
  int by = -2;
  const auto look = [&](const QPointF& at, std::size_t i, int rule) {
    const QPointF away = at - position;
    if (const double distance = QPointF::dotProduct(away, away); distance < nearest) nearest = distance, hit = i, by = rule;
  };
  for (std::size_t i = 0; i < exponents_.size(); ++i) {
    if (plane) look(inPlane(exponents_[i]), i, -1);
    for (int rule = 0; !plane && rule < rules; ++rule)
      if (pictures_[static_cast<std::size_t>(rule)]->realVisibility()) look(inDisk(placed(rule, i)), i, rule);
  }
  if (by == -2) return {};
  const QString unit = time_.unit.isEmpty() ? tr("step") : time_.unit;
  const auto cycles = [&](double steps) {
    return tr("frequency %1 cycles per %2").arg(number(std::abs(steps) / full / time_.spacing, 4), unit);
  };
  const Complex w = exponents_[hit];
  QStringList said{tr("λ = %1 per %2").arg(complexText(w / time_.spacing), unit)};
  said << (w.real() == 0.0 ? tr("neither fades nor grows")
                           : (w.real() < 0 ? tr("time constant %1") : tr("grows e-fold in %1")).arg(timeText(1.0 / std::abs(w.real()))));
  said << cycles(w.imag());
  if (by < 0) return said.join(u'\n');
  const Complex z = placed(by, hit), back = std::log(z) / step_;
  said << tr("with %1: z = %2, |z| = %3").arg(nameOf(rules_[static_cast<std::size_t>(by)]), complexText(z), number(std::abs(z), 5));
  // The continuous mode whose exact discretisation this is.
  if (z != 0.0 && by != rules - 1)
    said << tr("it then acts like one with %1, %2")
                .arg(back.real() == 0.0 ? tr("no decay")
                                        : (back.real() < 0 ? tr("time constant %1") : tr("an e-fold growth in %1"))
                                              .arg(timeText(1.0 / std::abs(back.real()))),
                     cycles(back.imag()));
  if (by == rules - 1 && std::abs(w.imag()) * step_ > std::numbers::pi)
    said << tr("it turns by more than half a turn a step, and looks slower than it is");
  return said.join(u'\n');
}

QString FlowView::csv() const {
  QByteArray text = "eigenvalue,real,imaginary,time_constant,frequency,step";
  for (const Discretisation& rule : rules_) {
    const QByteArray name(rule.name.data(), static_cast<qsizetype>(rule.name.size()));
    text += ',' + name + "_real," + name + "_imaginary";
  }
  text += '\n';
  for (std::size_t i = 0; i < exponents_.size(); ++i) {
    const Complex rate = exponents_[i] / time_.spacing;
    text += QByteArray::number(static_cast<qlonglong>(i)) + ',' + csvNumber(rate.real()) + ',' + csvNumber(rate.imag()) + ',' +
            csvNumber(-1.0 / rate.real()) + ',' + csvNumber(std::abs(rate.imag()) / full) + ',' + csvNumber(step_ * time_.spacing);
    for (int rule = 0; rule < rules; ++rule) {
      const Complex z = placed(rule, i);
      text += ',' + csvNumber(z.real()) + ',' + csvNumber(z.imag());
    }
    text += '\n';
  }
  return QString::fromUtf8(text);
}

}  // namespace reclab
