// SPDX-License-Identifier: GPL-3.0-or-later
// The views of the timing panel.
#include <algorithm>
#include <cmath>

#include "panels/timing/timing.h"
#include "panels/timing/timing_names.h"
#include "plot/parts/pinned.h"

namespace reclab {

namespace {

/// Ticks of a logarithmic axis at powers of two, or at whole powers of ten, which become 1, 2 and 5 of each when few are in sight.
class LogTicker : public QCPAxisTickerLog {
 public:
  /// `anchor` is a power that always has a tick.
  LogTicker(int base, std::function<QString(double)> write, int anchor) : base_(base), anchor_(anchor), write_(std::move(write)) {}

 protected:
  QVector<double> createTickVector(double, const QCPRange& range) override {
    QVector<double> ticks;
    if (range.lower <= 0) return ticks;
    const double scale = std::log(base_), low = std::log(range.lower) / scale, high = std::log(range.upper) / scale;
    const int most = base_ == 2 ? std::max(2, tickCount()) : 7;
    const int every = std::max(1, static_cast<int>(std::ceil((high - low) / most)));
    for (int power = static_cast<int>(std::floor(low)); power <= std::ceil(high); ++power) {
      if (base_ == 10 && high - low < 2.2) {
        for (const double mantissa : {1.0, 2.0, 5.0}) ticks.append(mantissa * std::pow(10.0, power));
      } else if ((power - anchor_) % every == 0) {
        ticks.append(std::pow(base_, power));
      }
    }
    return ticks;
  }
  QString getTickLabel(double tick, const QLocale&, QChar, int) override { return write_(tick); }
  int getSubTickCount(double) override { return 0; }

 private:
  int base_, anchor_;
  std::function<QString(double)> write_;
};

QSharedPointer<QCPAxisTicker> ticker(int base, std::function<QString(double)> write, int anchor = 0) {
  return QSharedPointer<QCPAxisTicker>(new LogTicker(base, std::move(write), anchor));
}

QString steps(double value) { return value < 1e6 ? grouped(std::llround(value)) : powerOfTen(std::log10(value)); }
QString power(double value) {
  const double exponent = std::log10(value);
  return std::abs(exponent - std::round(exponent)) < 1e-9 ? powerOfTen(std::round(exponent)) : number(value, 2);
}

/// "  ∝ T¹·⁰² [0.98, 1.05]"
QString exponentText(const Exponent& fit) {
  if (!std::isfinite(fit.value)) return {};
  const auto two = [](double value) { return QString::number(value, 'f', 2).replace(u'-', QStringLiteral("−")); };
  QString text = QStringLiteral("  ∝ T") + superscript(QString::number(fit.value, 'f', 2));
  if (std::isfinite(fit.low) && std::isfinite(fit.high)) text += QStringLiteral(" [%1, %2]").arg(two(fit.low), two(fit.high));
  return text;
}

QCPScatterStyle dot(const QColor& ink, const QColor& ground, double size = 8) {
  return QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(ground, 1), QBrush(ink), size);
}
QCPScatterStyle ring(const QColor& ink, const QColor& ground, double size = 8) {
  return QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(ink, 1.6), QBrush(ground), size);
}

}  // namespace

void TimingPanel::prepare(const QString& x, const QString& y, QSharedPointer<QCPAxisTicker> xTicks, QSharedPointer<QCPAxisTicker> yTicks) {
  QCPAxis *bottom = rect_->axis(QCPAxis::atBottom), *left = rect_->axis(QCPAxis::atLeft);
  bottom->setTicker(std::move(xTicks));
  left->setTicker(std::move(yTicks));
  bottom->setLabel(x);
  left->setLabel(y);
}

void TimingPanel::reach(double x, double y) {
  if (x > 0 && std::isfinite(x)) {
    least_x_ = least_x_ > 0 ? std::min(least_x_, x) : x;
    most_x_ = std::max(most_x_, x);
  }
  if (y > 0 && std::isfinite(y)) {
    least_y_ = least_y_ > 0 ? std::min(least_y_, y) : y;
    most_y_ = std::max(most_y_, y);
  }
}

void TimingPanel::addPoint(QCPGraph* graph, double x, double y, std::size_t form, std::size_t row, const QString& tip) {
  if (!(x > 0) || !(y > 0) || !std::isfinite(x) || !std::isfinite(y)) return;
  graph->addData(x, y);
  points_.push_back({graph, x, y, form, row, tip});
  reach(x, y);
}

void TimingPanel::rebuild() {
  timings_ = timingsOf(*trace_);
  noteRun();
  plot_->clearPlottables();
  legend_->clear();
  names_->clear();
  points_.clear();
  least_x_ = most_x_ = least_y_ = most_y_ = 0;
  said_->setText({});
  const auto lengths = ticker(2, steps);
  switch (view()) {
    case View::time:
      prepare(tr("length T (steps)"), apart() ? tr("time of a pass") : tr("time of one run"), lengths, ticker(10, duration));
      drawAgainstLength([](const TimedForm&, const Measured& seconds) { return seconds; });
      break;
    case View::throughput:
      prepare(tr("length T (steps)"), tr("steps a second"), lengths, ticker(10, [](double value) { return scaled(value, {}); }));
      drawAgainstLength([this](const TimedForm& form, const Measured& seconds) { return throughputOf(form, seconds, timings_.batch()); });
      break;
    case View::memory:
      prepare(tr("length T (steps)"), tr("memory"), lengths, ticker(2, storage));
      drawAgainstLength([](const TimedForm& form, const Measured&) { return form.memory; });
      break;
    case View::roofline: drawRoofline(); break;
    case View::error: drawError(); break;
    case View::newton: drawNewton(); break;
  }
  if (view() == View::roofline || view() == View::error || view() == View::newton)
    addPinsWithout(legend_, pinned_, plot_->theme(), tr("not in this view"), tr("Pinned runs are in the views over the length."));
  if (most_x_ > 0 && most_y_ > 0) {
    // A range of one point has some room too.
    const double x = std::max(0.03 * std::log(most_x_ / least_x_), 0.25), y = std::max(0.05 * std::log(most_y_ / least_y_), 0.35);
    rect_->axis(QCPAxis::atBottom)->setRange(least_x_ * std::exp(-x), most_x_ * std::exp(x));
    rect_->axis(QCPAxis::atLeft)->setRange(least_y_ * std::exp(-y), most_y_ * std::exp(y));
  }
  showCaption();
  plot_->redraw();
}

QList<QCPLayerable*> TimingPanel::addMeasured(std::size_t index, const Measured& values, Qt::PenStyle style) {
  const Theme& theme = plot_->theme();
  const TimedForm& form = timings_.forms[index];
  const QColor ink = theme.series(form.place);
  QColor shade = ink;
  shade.setAlphaF(theme.dark ? 0.28f : 0.20f);
  QCPGraph *low = plot_->addCurve(rect_, ink), *high = plot_->addCurve(rect_, ink), *median = plot_->addCurve(rect_, ink, 1.8, style);
  low->setPen(Qt::NoPen);
  high->setPen(Qt::NoPen);
  low->setBrush(shade);
  low->setChannelFillGraph(high);
  for (std::size_t i = 0; i < form.length.size(); ++i) {
    if (!(values.value[i] > 0)) continue;
    addPoint(median, form.length[i], values.value[i], index, i);
    if (!(values.low[i] > 0) || !(values.high[i] > 0)) continue;
    low->addData(form.length[i], values.low[i]);
    high->addData(form.length[i], values.high[i]);
    reach(form.length[i], values.low[i]);
    reach(form.length[i], values.high[i]);
  }
  median->setScatterStyle(style == Qt::SolidLine ? dot(ink, theme.base) : ring(ink, theme.base, 7));
  return {low, high, median};
}

void TimingPanel::drawAgainstLength(const Quantity& quantity) {
  const Theme& theme = plot_->theme();
  const QString of_band =
      tr("The exponent is the slope over the longer half of the lengths, in brackets its 90 % band; shaded is the 90 % band of the "
         "median, where that of another run is expected (what repeats vary by, the machine's noise, and how its pace differs from run to "
         "run), or the quartiles where there is none.");
  // Where many lines of a legend would take the plot's room, bands are in the tooltips alone.
  const int lines = static_cast<int>(timings_.forms.size()) * (QFontMetrics(theme.small, plot_).height() + 4);
  const bool brief = plot_->width() < 480 && lines > plot_->height() / 5;
  const bool passes = apart() && view() != View::memory;
  for (std::size_t i = 0; i < timings_.forms.size(); ++i) {
    const TimedForm& form = timings_.forms[i];
    const auto add = [&](const QString& key, const QString& name, const Measured& seconds, Qt::PenStyle style) {
      const Measured values = quantity(form, seconds);
      if (!values.known()) return;
      Exponent fit = values.fit;
      if (brief) fit.low = fit.high = unknown;
      legend_->add(key, name + exponentText(fit), QPen(theme.series(form.place), 2, style), addMeasured(i, values, style),
                   name + exponentText(values.fit) + u'\n' + of_band);
    };
    if (passes) {
      add(form.name, tr("%1, forward").arg(form.name), form.forward, Qt::SolidLine);
      add(form.name + QStringLiteral("/backward"), tr("%1, backward").arg(form.name), form.backward, Qt::DashLine);
    } else {
      add(form.name, form.name, passOf(form), Qt::SolidLine);
    }
  }
  // Pinned runs, faint beside them; their forms by their dashes.
  for (const Run& run : pinned_) {
    const Timings other = timingsOf(*run.trace);
    QList<QCPLayerable*> curves;
    QStringList forms, how;
    for (const TimedForm& form : other.forms) {
      const Measured seconds = view() == View::throughput ? throughputOf(form, passOf(form), other.batch()) : quantity(form, passOf(form));
      const auto index = static_cast<int>(forms.size());
      QCPGraph* curve = plot_->addCurve(rect_, mixed(run.colour, theme.base, 0.7), 1.2, curveStyle(index));
      for (std::size_t i = 0; i < form.length.size(); ++i)
        addPoint(curve, form.length[i], seconds.value[i], 0, i, run.label + QStringLiteral(": ") + described(other, form, i));
      curves << curve;
      forms << form.name;
      how << QString(index == 0 ? tr("solid: %1") : index == 1 ? tr("dashed: %1") : tr("dash and dots: %1")).arg(form.name);
    }
    if (curves.isEmpty())
      addPinWithout(legend_, run, theme, tr("not timed"), tr("Look at this run again and time its forms, then pin it."));
    else
      addPin(legend_, run, QPen(run.colour, 1.2), curves, forms,
             tr("Timed: %1; %2.").arg(circumstances(other.info), how.join(QStringLiteral(", "))));
  }
}

void TimingPanel::drawRoofline() {
  const Theme& theme = plot_->theme();
  prepare(tr("operations a byte"), tr("operations a second"),
          ticker(10, [](double value) { return value < 1e5 ? number(value) : power(value); }),
          ticker(10, [](double value) { return scaled(value, {}); }));
  for (std::size_t f = 0; f < timings_.forms.size(); ++f) {
    const TimedForm& form = timings_.forms[f];
    const QColor ink = theme.series(form.place);
    QCPGraph* trail = plot_->addCurve(rect_, mixed(ink, theme.base, 0.6), 1.2);
    QCPGraph* end = plot_->addCurve(rect_, ink);
    trail->setScatterStyle(dot(mixed(ink, theme.base, 0.6), theme.base, 5));
    end->setScatterStyle(dot(ink, theme.base, 9));
    end->setProperty("ink", ink);
    std::ptrdiff_t last = -1;
    // A trail goes from length to length, which is not always from left to right: each step of it is a curve of its own.
    QList<QCPLayerable*> curves{trail, end};
    double x = unknown, y = unknown;
    for (std::size_t i = 0; i < form.length.size(); ++i) {
      const double intensity = form.intensity(i), rate = form.rate(i);
      if (!(intensity > 0) || !(rate > 0) || !std::isfinite(intensity) || !std::isfinite(rate)) continue;
      if (last >= 0) {
        QCPGraph* step = plot_->addCurve(rect_, mixed(ink, theme.base, 0.6), 1.2);
        step->addData(x, y);
        step->addData(intensity, rate);
        curves << step;
      }
      addPoint(trail, intensity, rate, f, i);
      x = intensity;
      y = rate;
      last = static_cast<std::ptrdiff_t>(i);
    }
    trail->setLineStyle(QCPGraph::lsNone);
    if (last < 0) continue;
    end->addData(x, y);
    names_->add(end, x, y, tr("%1, T = %2").arg(form.name, grouped(std::llround(form.length[static_cast<std::size_t>(last)]))));
    legend_->add(form.name, form.name, QPen(ink, 2), curves,
                 tr("The forward pass at each length, by the formula of its operations and bytes; large: the longest."));
  }
  // The roof over all of it, with its corner in sight.
  const double from = least_x_ / 3,
               to = std::max(most_x_, timings_.flops > 0 && timings_.triad > 0 ? timings_.flops / timings_.triad : 0) * 3;
  const auto roof = [&](double bandwidth, Qt::PenStyle style, const QString& key, const QString& text, const QString& tip) {
    if (!(bandwidth > 0) || !(timings_.flops > 0) || !(from > 0)) return;
    QCPGraph* line = plot_->addCurve(rect_, theme.muted, 1.4, style);
    const double corner = timings_.flops / bandwidth;
    for (const double at : {from, corner, to}) {
      if (at < from || at > to) continue;
      line->addData(at, timings_.roof(at, bandwidth));
      reach(at, timings_.roof(at, bandwidth));
    }
    legend_->add(key, text, line->pen(), {line}, tip);
  };
  const QString rate = scaled(timings_.flops, tr("flop/s"));
  roof(timings_.triad, Qt::SolidLine, QStringLiteral("roof"), tr("roof: %1/s, %2").arg(storage(timings_.triad), rate),
       tr("What this machine can do at most: its memory brings %1 a second (triad), its arithmetic does %2 in this precision.")
           .arg(storage(timings_.triad), rate));
  roof(timings_.cached, Qt::DashLine, QStringLiteral("cached"), tr("in cache: %1/s").arg(storage(timings_.cached)),
       tr("The same where all of the data stay in the caches, which bring %1 a second.").arg(storage(timings_.cached)));
}

void TimingPanel::drawError() {
  const Theme& theme = plot_->theme();
  const bool single = timings_.info.dtype == "float32";
  const double allowed = single ? 1e-3 : 1e-9;
  double floor = single ? 1e-9 : 1e-17;  // where no error at all is drawn
  for (const TimedForm& form : timings_.forms)
    for (const std::vector<double>* errors : {&form.output_error, &form.gradient_error})
      for (const double error : *errors)
        if (error > 0 && std::isfinite(error)) floor = std::min(floor, error / 10);
  floor = std::pow(10.0, std::floor(std::log10(floor)));
  prepare(tr("time of one run"), tr("relative error"), ticker(10, duration),
          ticker(
              10, [floor](double value) { return value < floor * 1.5 ? QStringLiteral("0") : power(value); },
              static_cast<int>(std::lround(std::log10(floor)))));
  for (std::size_t f = 0; f < timings_.forms.size(); ++f) {
    const TimedForm& form = timings_.forms[f];
    const std::ptrdiff_t last = TimedForm::last(form.output_error);
    if (last < 0) continue;
    const auto i = static_cast<std::size_t>(last);
    const QColor ink = theme.series(form.place);
    QCPGraph *outputs = plot_->addCurve(rect_, ink), *gradients = plot_->addCurve(rect_, ink),
             *between = plot_->addCurve(rect_, mixed(ink, theme.base, 0.6), 1);
    outputs->setScatterStyle(dot(ink, theme.base, 9));
    gradients->setScatterStyle(ring(ink, theme.base, 9));
    outputs->setProperty("ink", ink);
    const double seconds = form.seconds.value[i];
    for (const auto& [graph, error] : {std::pair{gradients, form.gradient_error[i]}, {outputs, form.output_error[i]}}) {
      if (std::isnan(error)) continue;
      const double at = std::max(error, floor);
      addPoint(graph, seconds, at, f, i);
      between->addData(seconds, at);
    }
    names_->add(outputs, seconds, std::max(form.output_error[i], floor), form.name);
    legend_->add(form.name, tr("%1, T = %2").arg(form.name, grouped(std::llround(form.length[i]))), QPen(ink, 2),
                 {outputs, gradients, between},
                 tr("Relative to the sequential form in float64: of the outputs where the dot is full, of the gradients where it is open; "
                    "0 is drawn at "
                    "the bottom."));
  }
  reach(unknown, floor);
  reach(unknown, allowed);
  if (!(least_x_ > 0)) return;
  QCPGraph* line = plot_->addCurve(rect_, theme.muted, 1.2, Qt::DashLine);
  line->addData(least_x_ / 10, allowed);
  line->addData(most_x_ * 10, allowed);
  legend_->add(QStringLiteral("allowed"), tr("allowed in %1: %2").arg(QString::fromStdString(timings_.info.dtype), power(allowed)),
               line->pen(), {line}, tr("A form is offered only where it differs by no more."));
}

void TimingPanel::drawNewton() {
  const Theme& theme = plot_->theme();
  prepare(tr("length T (steps)"), tr("Newton's iterations"), ticker(2, steps), ticker(10, steps));
  for (std::size_t f = 0; f < timings_.forms.size(); ++f) {
    const TimedForm& form = timings_.forms[f];
    if (std::none_of(form.iterations.begin(), form.iterations.end(), [](double n) { return n >= 0; })) continue;
    const QColor ink = theme.series(form.place);
    QCPGraph *line = plot_->addCurve(rect_, ink, 1.8), *failed = plot_->addCurve(rect_, ink);
    failed->setLineStyle(QCPGraph::lsNone);
    line->setScatterStyle(dot(ink, theme.base));
    failed->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCross, QPen(theme.text, 2), Qt::NoBrush, 13));
    bool all = true;
    for (std::size_t i = 0; i < form.length.size(); ++i) {
      if (!(form.iterations[i] >= 0)) continue;
      const double shown = std::max(1.0, form.iterations[i]);
      addPoint(line, form.length[i], shown, f, i);
      if (form.converged[i] != 0) continue;
      failed->addData(form.length[i], shown);
      all = false;
    }
    legend_->add(form.name, all ? form.name : tr("%1 (× did not converge)").arg(form.name), QPen(ink, 2), {line, failed},
                 tr("How often all steps were solved for at once until nothing changed."));
  }
  if (std::isnan(timings_.lyapunov)) return;
  const QString exponent = (timings_.lyapunov > 0 ? QStringLiteral("+") : QString()) + number(timings_.lyapunov, 2);
  said_->setText(timings_.lyapunov < 0 ? tr("λ₁ = %1 a step: Newton's iteration contracts.").arg(exponent)
                                       : tr("λ₁ = %1 a step: chaotic, Newton converges slowly.").arg(exponent));
}

}  // namespace reclab
