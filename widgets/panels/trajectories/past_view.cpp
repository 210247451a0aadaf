// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/trajectories/past_view.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plot/parts/curves.h"
#include "plot/parts/layout.h"
#include "plot/parts/step_text.h"
#include "plot/parts/table.h"

namespace reclab {

namespace {

bool holds(const TraceArray* array, std::size_t rank) { return array && array->real && array->shape.size() == rank && array->size() > 0; }

/// No more ticks than there is room for, in an axis that is often only a few lines high.
class FewPowers : public PowerTicker {
 protected:
  QVector<double> createTickVector(double step, const QCPRange& range) override {
    QVector<double> ticks = PowerTicker::createTickVector(step, range);
    const auto seen = [&] { return std::count_if(ticks.begin(), ticks.end(), [&](double tick) { return range.contains(tick); }); };
    while (seen() > std::max(2, mTickCount)) {
      QVector<double> fewer;
      for (qsizetype i = 0; i < ticks.size(); i += 2) fewer.append(ticks[i]);
      ticks = fewer;
    }
    return ticks;
  }
};

}  // namespace

PastView::PastView(QWidget* parent) : Plot(parent) {
  setObjectName("past");
  copy_ = new QComboBox;
  copy_->setProperty("choice", "copy");
  copy_->setAccessibleName(tr("Signal"));
  copy_->setObjectName("copyChoice");
  copy_->setToolTip(tr("Which of the memory's signals: each has coefficients of its own"));
  copy_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  copy_->setMinimumContentsLength(7);
  copy_->setMaxVisibleItems(20);
  said_ = new CursorText(this);
  legend_ = new Legend(this);
  above_ = makeRect();
  below_ = makeRect([this] { nameValues(below_, tr("error (%)"), tr("%")); });
  stack(this, {said_, legend_, above_, below_});
  plotLayout()->setRowStretchFactor(2, 2.0);
  below_->setMinimumSize(30, 36);
  lineUp({above_, below_}, QCP::msLeft | QCP::msRight);
  above_->axis(QCPAxis::atBottom)->setTickLabels(false);
  addTimeRect(above_);
  addTimeRect(below_, [](double v) { return powerAsNumber(v, 2) + QStringLiteral(" %"); });
  below_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new FewPowers));
  above_->axis(QCPAxis::atLeft)->setLabel(tr("signal"));
  connect(copy_, &QComboBox::activated, this, &PastView::rebuild);
  connect(this, &Plot::themeChanged, this, &PastView::rebuild);
  connect(this, &Plot::timeRangeChanged, this, &PastView::fitValues);
  setHoverHandler([this](const QPointF& at) { return tipAt(at); });
}

void PastView::setState(std::shared_ptr<const Trace> trace, const QString& layer, const QString& name) {
  const auto arraysOf = [&](const QString& state) {
    const std::string at = (layer + '/' + state).toStdString();
    const auto find = [&](const std::string& key) { return trace->find(key); };
    stateArray_ = find(prefix_of(Kind::state) + at);
    signalArray_ = find(prefix_of(Kind::signal) + at);
    basis_ = find(prefix_of(Kind::basis) + at);
    place_ = find(prefix_of(Kind::basis) + at + "/place");
    error_ = find(prefix_of(Kind::reconstruction) + at + "/error");
    window_ = find(prefix_of(Kind::reconstruction) + at + "/window");
  };
  const bool sameState = layer == layer_ && name == wanted_;
  layer_ = layer;
  wanted_ = name;
  name_.clear();
  reason_.clear();
  QStringList pasts;  // the states of this layer that have one
  if (trace)
    for (const TraceArray* array : trace->matching(prefix_of(Kind::basis) + layer.toStdString() + "/"))
      if (const QString state = QString::fromStdString(array->key).section('/', 2); !state.contains('/')) pasts << state;
  if (!trace) {
    reason_ = tr("Nothing has run yet: choose a model and a sequence, and what its state holds of the past appears here.");
  } else if (pasts.isEmpty()) {
    reason_ = tr(
        "This state holds no coefficients of its signal's past, so nothing can be read back from it. A model whose memory is a polynomial "
        "fit of the past shows here how much of it the state still holds.");
    if (trace->has(Kind::basis)) reason_ += tr(" Another layer of this model has one.");
  } else if (!name.isEmpty() && !pasts.contains(name)) {
    reason_ = tr("%1 holds no coefficients of its signal's past: choose %2, which does.").arg(name, pasts.join(tr(" or ")));
  } else {
    name_ = name.isEmpty() ? pasts.front() : name;
    arraysOf(name_);
    if (!holds(stateArray_, 3) || !holds(signalArray_, 2) || !holds(basis_, 2) || !holds(place_, 1) || !holds(window_, 1) ||
        stateArray_->shape[2] != basis_->shape[1] || place_->shape[0] != basis_->shape[0] ||
        signalArray_->shape[1] != stateArray_->shape[1])
      reason_ = tr("This run recorded no past to compare with. Press Run.");
  }
  if (!reason_.isEmpty()) {
    name_.clear();
    stateArray_ = signalArray_ = basis_ = place_ = error_ = window_ = nullptr;
  }
  trace_ = std::move(trace);
  const std::int64_t copies = stateArray_ ? stateArray_->shape[1] : 0;
  order_ = stateArray_ ? stateArray_->shape[2] : 0;
  finite_ = place_ && place_->unit == "steps ago";
  if (copies != copies_ || !sameState) {
    copies_ = copies;
    copy_->clear();
    for (std::int64_t i = 0; i < copies_; ++i) copy_->addItem(tr("signal %1").arg(i));
  }
  rebuild();
}

double PastView::valueAt(const TraceArray* array, std::int64_t row) const {
  const auto copy = static_cast<std::int64_t>(std::max(0, copy_->currentIndex()));
  return (*array->real)[static_cast<std::size_t>(row * array->row_size() + (array->row_size() > 1 ? copy : 0))];
}

/// After a step the state stands at the step's end, half a step behind its middle.
double PastView::stepOf(std::int64_t row, std::size_t place) const {
  const double reach = (*window_->real)[static_cast<std::size_t>(row)], at = (*place_->real)[place];
  return static_cast<double>(trace_->steps[static_cast<std::size_t>(row)]) + 0.5 - (finite_ ? at : (1.0 - at) * reach);
}

std::vector<double> PastView::readBack(std::int64_t row) const {
  const auto order = static_cast<std::size_t>(order_), copy = static_cast<std::size_t>(std::max(0, copy_->currentIndex()));
  const double* state = stateArray_->real->data() + (static_cast<std::size_t>(row * copies_) + copy) * order;
  std::vector<double> values(place_->real->size(), 0.0);
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t k = 0; k < order; ++k) values[i] += (*basis_->real)[i * order + k] * state[k];
  return values;
}

void PastView::rebuild() {
  clearPlottables();
  legend_->clear();
  signal_ = read_ = errors_ = oldest_ = nullptr;
  if (!stateArray_) {  // nothing was given yet, or nothing that has a past
    if (!headline_.isEmpty()) {
      headline_.clear();
      emit headlineChanged();
    }
    return;
  }
  // A broad pale line under a fine bright one: where they agree both are seen.
  const auto rows = static_cast<std::int64_t>(std::min(trace_->steps.size(), static_cast<std::size_t>(signalArray_->shape[0])));
  signal_ = addCurve(above_, theme().muted, 2.6);
  read_ = addCurve(above_, theme().shown(), 2.0);
  read_->setLayer(QStringLiteral("now"));
  setQuiet(read_);
  fillCurve(signal_, trace_->steps, rows, [&](std::int64_t row) { return valueAt(signalArray_, row); });
  const bool known = holds(error_, 2) && error_->shape[1] == copies_;
  legend_->add("signal", tr("signal"), signal_->pen(), {signal_}, QString::fromStdString(signalArray_->text));
  legend_->add("read", tr("read back from the state"), read_->pen(), {read_},
               tr("The state at the cursor's step as a function of time: its coefficients times their polynomials, over the steps that it "
                  "reaches back. The axis is the time of all panels; move the cursor to see another state."));
  if (finite_) {
    oldest_ = addCurve(above_, theme().shown(), 1.0, Qt::DashLine);
    oldest_->setLayer(QStringLiteral("now"));
    setQuiet(oldest_);
    legend_->add("oldest", tr("window's end"), oldest_->pen(), {oldest_},
                 tr("The oldest end of the window that the state is made to hold."));
  }
  if (known) {
    errors_ = addCurve(below_, theme().series(1), 1.4);
    fillCurve(errors_, trace_->steps, std::min(rows, error_->shape[0]),
              [&](std::int64_t row) { return std::log10(100.0 * valueAt(error_, row)); });
    legend_->add("error", tr("error"), errors_->pen(), {errors_}, QString::fromStdString(error_->text));
  }
  below_->setVisible(known);
  fitValues();
  moveTime();
  redraw();
}

/// By the signal alone, so that the picture stands still while the cursor moves; polynomials that swing out at the ends leave it.
void PastView::fitValues() {
  if (!signal_) return;
  const QCPRange visible = above_->axis(QCPAxis::atBottom)->range();
  const auto rangeOf = [&](const QCPGraph* graph, double* low, double* high) {
    *low = std::numeric_limits<double>::infinity();
    *high = -*low;
    const auto end = graph->data()->findEnd(visible.upper, false);
    for (auto at = graph->data()->findBegin(visible.lower, false); at != end; ++at) {
      if (!std::isfinite(at->value)) continue;
      *low = std::min(*low, at->value);
      *high = std::max(*high, at->value);
    }
    return *low <= *high;
  };
  double low = 0, high = 0;
  if (rangeOf(signal_, &low, &high)) {
    const double room = high > low ? 0.2 * (high - low) : std::max(1e-3, 0.2 * std::abs(high));
    above_->axis(QCPAxis::atLeft)->setRange(low - room, high + room);
    if (oldest_)
      for (auto end = oldest_->data()->begin(); end != oldest_->data()->end(); ++end)
        end->value = end == oldest_->data()->begin() ? low - room : high + room;
  }
  if (errors_ && rangeOf(errors_, &low, &high)) {
    low = std::max(low, high - 8.0);  // an error that is nothing but rounding would take all the room
    const double room = std::max(0.15, 0.1 * (high - low));
    below_->axis(QCPAxis::atLeft)->setRange(low - room, high + room);
  }
}

void PastView::setStep(std::int64_t step) {
  step_ = step;
  setCursorStep(step);
  moveTime();
}

void PastView::moveTime() {
  if (!signal_) return;
  const std::int64_t row = trace_->row_of_step(*stateArray_, step_);
  QVector<QCPGraphData> points;
  double error = no_value;
  const bool known = row >= 0 && row < window_->shape[0] && std::isfinite((*window_->real)[static_cast<std::size_t>(row)]);
  if (known) {
    const std::vector<double> values = readBack(row);
    points.reserve(static_cast<qsizetype>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) points.append({stepOf(row, i), values[i]});
    if (errors_ && row < error_->shape[0]) error = valueAt(error_, row);
  }
  read_->data()->set(points, true);
  if (oldest_) {
    const QCPRange values = above_->axis(QCPAxis::atLeft)->range();
    oldest_->data()->clear();
    if (known)
      for (const double y : {values.lower, values.upper}) oldest_->addData(stepOf(row, 0), y);
  }
  say(known ? row : -1, error);
}

void PastView::say(std::int64_t row, double error) {
  QString text, brief;
  const std::string& one = basis_->axes.size() > 1 ? basis_->axes[1].name : std::string();
  const QString coefficients =
      grouped(order_) + u' ' + (one.empty() ? tr("coefficient") : QString::fromStdString(one)) + (order_ == 1 ? QString() : tr("s"));
  if (row < 0) {
    text = tr("Nothing is read back from the state at step %1. %2")
               .arg(stepText(trace_.get(), step_), QString::fromStdString(window_->text).section(". ", 2));
  } else {
    const std::int64_t step = trace_->steps[static_cast<std::size_t>(row)];
    const QString span = finite_     ? tr("the last %1 steps").arg(number((*window_->real)[static_cast<std::size_t>(row)], 6))
                         : step == 0 ? tr("the one step so far")
                                     : tr("all %1 steps so far").arg(grouped(step + 1));
    const QString amount = number(100.0 * error, 2) + tr(" %");
    if (!std::isfinite(error)) {
      text = errors_ ? tr("%1 stand for %2; there is no signal there to measure an error by.").arg(coefficients, span)
                     : tr("%1 stand for %2; the error was not recorded.").arg(coefficients, span);
    } else if (error < 0.5) {
      text = (order_ == 1 ? tr("%1 holds %2 to %3.") : tr("%1 hold %2 to %3.")).arg(coefficients, span, amount);
      brief = tr("%1 to %2").arg(span, amount);
    } else {
      text = (order_ == 1 ? tr("%1 does not hold %2: what is read back is off by %3.")
                          : tr("%1 do not hold %2: what is read back is off by %3."))
                 .arg(coefficients, span, amount);
      brief = tr("%1 are off by %2").arg(span, amount);
    }
  }
  said_->say(text, false);
  if (brief == headline_) return;
  headline_ = brief;
  emit headlineChanged();
}

QString PastView::tipAt(const QPointF& at) const {
  if (!signal_) return {};
  const QPoint pixel = at.toPoint();
  if (!above_->rect().contains(pixel) && !below_->rect().contains(pixel)) return {};
  const double x = above_->axis(QCPAxis::atBottom)->pixelToCoord(at.x());
  const std::int64_t row = trace_->row_of_step(*signalArray_, std::llround(x));
  if (row < 0) return {};
  const std::int64_t step = trace_->steps[static_cast<std::size_t>(row)];
  if (below_->rect().contains(pixel)) {
    const double error = errors_ && row < error_->shape[0] ? valueAt(error_, row) : no_value;
    return std::isfinite(error)
               ? tr("The state at step %1 gives its past to %2 %").arg(stepText(trace_.get(), step), number(100.0 * error, 3))
               : QString();
  }
  QString text = tr("step %1: signal %2").arg(stepText(trace_.get(), step), number(valueAt(signalArray_, row), 4));
  const auto end = read_->data()->constEnd();
  const auto next = read_->data()->findBegin(static_cast<double>(step), false);
  if (next != end && next != read_->data()->constBegin()) {
    const auto last = next - 1;
    const double share = (static_cast<double>(step) - last->key) / std::max(next->key - last->key, 1e-12);
    text += tr(", read back %1").arg(number(last->value + share * (next->value - last->value), 4));
    const std::int64_t now = trace_->steps[static_cast<std::size_t>(trace_->row_of_step(*stateArray_, step_))];
    if (step <= now) text += tr(", %1 steps before the cursor").arg(grouped(now - step));
  }
  return text;
}

QString PastView::dataAsCsv() const {
  if (!signal_) return {};
  // One table in the order of time: the recorded steps with signal and error, and between them the places of the window.
  const bool timed = trace_->time_name != "step";
  QByteArray csv = "step";
  if (timed) csv += ',' + csvCell(QString::fromStdString(trace_->time_name)).toUtf8();
  csv += ",signal,read back,error\n";
  const auto time = [&](std::int64_t row) {
    return timed ? ',' + (row < 0 ? QByteArray() : csvNumber(trace_->time[static_cast<std::size_t>(row)])) : QByteArray();
  };
  auto read = read_->data()->constBegin();
  const auto placesBefore = [&](double step) {
    for (; read != read_->data()->constEnd() && read->key < step; ++read)
      csv += csvNumber(read->key) + time(-1) + ",," + csvNumber(read->value) + ",\n";
  };
  const auto rows = static_cast<std::int64_t>(signal_->data()->size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t step = trace_->steps[static_cast<std::size_t>(row)];
    placesBefore(static_cast<double>(step));
    csv += QByteArray::number(static_cast<qlonglong>(step)) + time(row) + ',' + csvNumber(valueAt(signalArray_, row)) + ",,";
    if (errors_ && row < error_->shape[0]) csv += csvNumber(valueAt(error_, row));
    csv += '\n';
  }
  placesBefore(std::numeric_limits<double>::infinity());
  return QString::fromUtf8(csv);
}

}  // namespace reclab
