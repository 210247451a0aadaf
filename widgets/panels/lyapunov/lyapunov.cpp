// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/lyapunov/lyapunov.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "panels/panel_info.h"
#include "plot/parts/curves.h"
#include "plot/parts/layout.h"
#include "plot/parts/pinned.h"

namespace reclab {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t most_curves = 48;

bool usable(const TraceArray* array) {
  return array && array->real && !array->shape.empty() && array->shape[0] > 0 && array->row_size() > 0;
}

/// The last row, which is the mean over most of the sequence. A layer that runs backward ends at the first.
std::span<const double> lastOf(const Trace& trace, const TraceArray& array) {
  const bool backward = runsBackward(trace, QString::fromStdString(array.key).section(u'/', 1));
  const auto k = static_cast<std::size_t>(array.row_size());
  return std::span<const double>(*array.real).subspan(backward ? 0 : static_cast<std::size_t>(array.shape[0] - 1) * k, k);
}

QString rank(std::int64_t i) {
  QString name = QStringLiteral("λ");
  for (const QChar digit : QString::number(i)) name += QChar(static_cast<char16_t>(u'₀' + digit.digitValue()));
  return name;
}

QString signedNumber(double value) { return (value > 0 ? QStringLiteral("+") : QString()) + number(value); }

}  // namespace

std::optional<double> kaplanYorke(std::span<const double> exponents) {
  double sum = 0.0;
  for (std::size_t i = 0; i < exponents.size(); ++i) {
    if (std::isnan(exponents[i])) return std::nullopt;
    if (sum + exponents[i] < 0.0) return static_cast<double>(i) + (std::isinf(exponents[i]) ? 0.0 : sum / -exponents[i]);
    sum += exponents[i];
  }
  return std::nullopt;
}

LyapunovPanel::LyapunovPanel(QWidget* parent) : Described(parent) {
  layers_ = addChoice("layer", true, tr("The layer whose exponents are shown."));
  controls_->addStretch();
  sentence_ = new Paragraph(plot_);
  legend_ = new Legend(plot_);
  rect_ = plot_->makeRect([this] { nameValues(rect_, tr("exponent, 1/step"), tr("1/step")); });
  note_ = new Paragraph(plot_);
  note_->setSmall(true);
  stack(plot_, {sentence_, legend_, rect_, note_});
  plot_->addTimeRect(rect_, signedNumber);
  rect_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new NumberTicker));
  values_ = plot_->addValueAxis(rect_);
  zero_ = new StraightLine(rect_, QStringLiteral("grid"));
  zero_->setLevel(0.0);
  addActions({values_->lockAction(), values_->resetAction()});
  connect(layers_, &QComboBox::activated, this, [this](int index) {
    layer_ = layers_->itemData(index).toString();
    refresh();
  });
  connect(plot_, &Plot::timeRangeChanged, this, &LyapunovPanel::fitValues);
  connect(plot_, &Plot::curvesToggled, this, &LyapunovPanel::fitValues);
  refresh();
}

QString LyapunovPanel::subject() const { return layers_->count() > 1 ? layerName(*trace_, layer_) : QString(); }

QString LyapunovPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("its Lyapunov exponents appear here")); !trace_) return said;
  for (const TraceArray* array : trace_->of(Kind::lyapunov))
    if (usable(array)) return {};
  if (const QString said = endedEarly(*trace_, tr("This run has no Lyapunov exponents")); !said.isEmpty()) return said;
  if (const QString said = notesOn(*trace_, {Kind::lyapunov}); !said.isEmpty())
    return (tr("%1: %2").arg(modelName(*trace_), said) + u' ' + pinsThatHave(pinned_, {Kind::lyapunov})).trimmed();
  return tr("This run has no Lyapunov exponents yet: they come after states and gradients. If they do not, press Run.");
}

/// The largest exponent and its meaning.
QString LyapunovPanel::judged() const {
  const std::span<const double> last = lastOf(*trace_, *array_);
  const double largest = last.front(), tenfold = std::numbers::ln10 / std::abs(largest);
  if (std::isnan(largest)) return tr("The exponents are not finite.");
  QString text;
  if (largest == -infinity)
    text = tr("Every direction of the state is forgotten within a step: λ₁ = −∞.");
  else if (std::abs(largest) * static_cast<double>(trace_->info.length) < std::numbers::ln2)
    text = tr("Nearby states keep their distance: λ₁ = %1 a step, less than a factor of 2 over the whole sequence.")
               .arg(signedNumber(largest));
  else if (largest > 0)
    text =
        tr("Nearby states part and gradients explode: λ₁ = %1 a step, tenfold in %2 steps.").arg(signedNumber(largest), number(tenfold, 2));
  else
    text =
        tr("Nearby states meet and the past is forgotten: λ₁ = %1 a step, a tenth in %2 steps.").arg(number(largest), number(tenfold, 2));
  if (const auto dimension = kaplanYorke(last)) text += tr(" Attractor dimension (Kaplan–Yorke) %1.").arg(number(*dimension));
  return text;
}

QString LyapunovPanel::noted() const {
  const std::span<const double> last = lastOf(*trace_, *array_);
  const auto zeros = std::ranges::count(last, -infinity);
  QStringList said;
  said << tr("Each is the mean over the steps so far without their first quarter, in which states come from where they began.");
  if (drawn_ < std::ssize(last) - zeros) said << tr("%1 of the %2 exponents are drawn.").arg(grouped(drawn_), grouped(std::ssize(last)));
  if (below_ > 0) said << tr("%1 more are below the picture.").arg(grouped(below_));
  if (zeros > 0) said << tr("%1 of %2 are −∞: such a direction is forgotten at once.").arg(grouped(zeros), grouped(std::ssize(last)));
  if (!kaplanYorke(last) && std::ranges::none_of(last, [](double x) { return std::isnan(x); }))
    said << tr("No dimension of an attractor is given, for the exponents do not sum to less than 0.");
  said << notesOn(*trace_, {Kind::lyapunov});
  said.removeAll(QString());
  return said.join(u' ');
}

void LyapunovPanel::rebuild() {
  std::vector<const TraceArray*> arrays = trace_->of(Kind::lyapunov);
  std::erase_if(arrays, [](const TraceArray* array) { return !usable(array); });
  layer_ = fillLayers(layers_, arrays, layer_);
  control_row_->setVisible(layers_->count() > 1);
  array_ = trace_->find(key_of(Kind::lyapunov, layer_.toLongLong()));
  plot_->clearPlottables();
  legend_->clear();
  zero_->setPen(QPen(plot_->theme().axis, 1, Qt::DashLine));
  sentence_->setText(judged());
  drawExponents();
  drawPins();
  fitValues();
}

/// The largest in full colour on top of the others, which are thin and fade with their rank.
void LyapunovPanel::drawExponents() {
  const Theme& theme = plot_->theme();
  const std::span<const double> last = lastOf(*trace_, *array_);
  const std::int64_t finite = std::ssize(last) - std::ranges::count(last, -infinity), drawn = drawn_ = std::min(finite, most_curves);
  QList<QCPLayerable*> others;
  QPen pen;
  for (std::int64_t i = drawn - 1; i > 0; --i) {  // evenly over the ranks
    const double part = static_cast<double>(i) / static_cast<double>(std::max<std::int64_t>(drawn - 1, 1));
    QCPGraph* graph = plot_->addCurve(rect_, mixed(theme.muted, theme.base, 0.9 - 0.55 * part), 0.8);
    Plot::setQuiet(graph);
    fillCurve(graph, *trace_, *array_, drawn == 1 ? 0 : i * (finite - 1) / (drawn - 1));
    others << graph;
    if (i == std::max<std::int64_t>(1, drawn / 2)) pen = graph->pen();
  }
  if (drawn == 0) return;
  QCPGraph* largest = plot_->addCurve(rect_, theme.shown(), 1.8);
  largest->setName(rank(1));
  fillCurve(largest, *trace_, *array_, 0);
  legend_->add(QStringLiteral("largest"), rank(1), largest->pen(), {largest},
               tr("The largest exponent: how fast nearby states part in the direction that grows most."));
  if (!others.isEmpty())
    legend_->add(QStringLiteral("others"), finite == 2 ? rank(2) : tr("%1 to %2").arg(rank(2), rank(finite)), pen, others,
                 tr("The other directions, each at right angles to those before it; the lower, the fainter."));
}

/// Pinned runs have their largest exponent in the same layer.
void LyapunovPanel::drawPins() {
  for (const Run& run : pinned_) {
    const TraceArray* array = run.trace->find(array_->key);
    if (!usable(array)) {
      addPinWithout(legend_, run, plot_->theme(), layers_->count() > 1 ? tr("no %1").arg(layerName(*trace_, layer_)) : tr("no exponents"),
                    notesOn(*run.trace, {Kind::lyapunov}));
      continue;
    }
    QCPGraph* graph = plot_->addCurve(rect_, run.colour, 1.2);
    fillCurve(graph, *run.trace, *array, 0);
    addPin(legend_, run, QPen(run.colour, 1.2), {graph}, {},
           tr("Its largest exponent, at the end %1 a step.").arg(signedNumber(lastOf(*run.trace, *array).front())));
  }
}

/// The value axis holds 0 and the largest exponents of all runs. Exponents far below may take half of it, and the wild beginning of the
/// means no more than the rest needs.
void LyapunovPanel::fitValues() {
  if (!array_) return;
  const QCPRange visible = rect_->axis(QCPAxis::atBottom)->range();
  const double first = static_cast<double>(trace_->info.length) / 8.0;
  const QCPRange calm = visible.upper > first ? QCPRange(std::max(visible.lower, first), visible.upper) : visible;
  std::vector<QCPRange> ranges;
  for (const QCPGraph* graph : rect_->graphs()) {
    bool found = false;
    if (!graph->realVisibility()) continue;
    QCPRange range = graph->getValueRange(found, QCP::sdBoth, calm);
    if (!found) range = graph->getValueRange(found, QCP::sdBoth, visible);
    if (found) ranges.push_back(range);
  }
  std::ranges::sort(ranges, {}, &QCPRange::center);
  const double high = ranges.empty() ? 0.0 : std::max(0.0, std::ranges::max(ranges, {}, &QCPRange::upper).upper);
  const double middle = ranges.empty() ? 0.0 : ranges[ranges.size() / 2].center(), limit = middle - std::max(high - middle, 0.1);
  double low = 0.0;
  below_ = 0;
  for (const QCPRange& range : ranges) {
    below_ += range.center() < limit;
    if (range.center() >= limit) low = std::min(low, std::max(range.lower, limit));
  }
  note_->setText(noted(), true, below_ > 0 ? tr(" (Turn the wheel over the value axis to see those below.)") : QString());
  const double pad = std::max(0.06 * (high - low), 1e-3);
  values_->fit({low - pad, high + pad});
  plot_->redraw();
}

QString LyapunovPanel::makeHeadline() const {
  const double largest = array_ ? lastOf(*trace_, *array_).front() : no_value;
  return std::isnan(largest) ? QString() : tr("λ₁ %1").arg(signedNumber(largest));
}

QString LyapunovPanel::dataAsCsv() const {
  if (!trace_) return {};
  StepTable table(*trace_);
  const auto add = [&](const Trace& trace, const QString& run) {
    for (const TraceArray* array : trace.of(Kind::lyapunov)) {
      if (!usable(array)) continue;
      table.addSteps(stepsOf(trace, *array));
      for (std::int64_t i = 0; i < array->row_size(); ++i)
        table.add(QStringLiteral("%1/%2").arg(QString::fromStdString(array->key)).arg(i) + run, trace, array, i);
    }
  };
  add(*trace_, {});
  for (const Run& run : pinned_) add(*run.trace, QStringLiteral(" [%1]").arg(run.label));
  return table.csv();
}

RECLAB_PANEL_IS(lyapunov, LyapunovPanel)

}  // namespace reclab
