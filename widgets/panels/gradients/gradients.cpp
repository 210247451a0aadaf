// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/gradients/gradients.h"

#include <algorithm>
#include <cmath>

#include "panels/panel_info.h"
#include "panels/state_place.h"
#include "plot/parts/curves.h"
#include "plot/parts/layout.h"
#include "plot/parts/pinned.h"
#include "trace/stream_steps.h"

namespace reclab {

namespace {

/// The norms of the gradients of the states.
std::vector<const TraceArray*> ofStates(const Trace& trace) { return trace.matching(key_of(Kind::gradient, prefix_of(Kind::state))); }

bool usable(const TraceArray& array) { return array.real && array.has_rows(); }

/// At how many of the recorded steps the loss counts.
std::int64_t stepsOfLoss(const Trace& trace) {
  const std::string& loss = trace.info.loss;
  if (loss.empty() || loss.starts_with("last")) return 1;
  const TraceArray* mask = trace.find(key_of(Kind::mask));
  if (!loss.starts_with("task") || !mask || !mask->real) return trace.info.length;
  return std::ranges::count_if(*mask->real, [](double weight) { return weight != 0.0; });
}

}  // namespace

GradientsPanel::GradientsPanel(QWidget* parent) : Described(parent) {
  sentence_ = new Paragraph(plot_);
  legend_ = new Legend(plot_);
  rect_ = plot_->makeRect([this] { nameValues(rect_, tr("gradient norm, singular value"), tr("norm")); });
  loss_ = new Paragraph(plot_);
  loss_->setSmall(true);
  stack(plot_, {sentence_, legend_, rect_, loss_});
  plot_->addTimeRect(rect_, [](double v) { return powerAsNumber(v, 2); });
  rect_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  values_ = plot_->addValueAxis(rect_);
  one_ = new StraightLine(rect_, QStringLiteral("grid"));
  one_->setLevel(0.0);
  lag_ = new QAction(tr("Count steps back from the end"), this);
  lag_->setCheckable(true);
  lag_->setToolTip(tr("The time axis as steps before the last one, by which runs of other lengths are compared."));
  plot_->offerLag();
  // With several runs the texts would take most of it.
  sentence_->setBrief(true);
  plot_->setShareOfPicture(0.6);
  connect(lag_, &QAction::toggled, plot_, &Plot::setLag);
  connect(plot_, &Plot::lagChanged, this, [this](bool lag) {
    lag_->setChecked(lag);
    if (!pinned_.empty()) refresh();
  });
  addActions({values_->lockAction(), values_->resetAction(), lag_});
  connect(plot_, &Plot::timeRangeChanged, this, &GradientsPanel::fitValues);
  connect(plot_, &Plot::curvesToggled, this, &GradientsPanel::fitValues);
  refresh();
}

std::vector<GradientsPanel::Curve> GradientsPanel::curves(const Trace& trace) const {
  std::vector<Curve> found;
  const auto add = [&](Kind kind, const QString& tip) {
    for (const TraceArray* array : kind == Kind::gradient ? ofStates(trace) : trace.of(kind)) {
      if (!usable(*array)) continue;
      // The gradient of a state has the state's key after its own name.
      const auto parsed = parse_key(array->key);
      const auto at = kind == Kind::gradient ? parse_key(parsed->name) : parsed;
      found.push_back(
          {array, kind, QString::fromStdString(array->key), QString::number(at->layer), QString::fromStdString(at->name), tip, &trace});
    }
  };
  add(Kind::gradient, tr("The norm of the loss's gradient with respect to this state at each step."));
  add(Kind::jacobian,
      tr("The largest singular value of ∂s_T/∂s_t: what the best kept direction of the state at step t is worth at the end."));
  add(Kind::jacobian_min, tr("The smallest singular value of ∂s_T/∂s_t: what the worst kept direction is worth at the end."));
  return found;
}

std::vector<GradientsPanel::Curve> GradientsPanel::drawnCurves() const {
  std::vector<Curve> found = curves(*trace_);
  const Trace* former = comparable();
  if (!former || std::any_of(found.begin(), found.end(), [](const Curve& one) { return one.kind != Kind::gradient; })) return found;
  for (Curve& one : curves(*former)) {
    if (one.kind == Kind::gradient) continue;
    one.former = true;
    one.tip += tr(" Of the run before this one; this one's come when the setting rests.");
    found.push_back(std::move(one));
  }
  return found;
}

QString GradientsPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("the gradient's way back through time appears here")); !trace_) return said;
  const std::vector<Curve> found = curves(*trace_);
  if (!found.empty()) return {};
  if (const QString said = endedEarly(*trace_, tr("This run has no gradients")); !said.isEmpty()) return said;
  if (property("modelHas").toStringList().contains(QStringLiteral("states")))
    return tr("The gradients of this run were not recorded. Press Run.");
  const QString others = pinsThatHave(pinned_, {Kind::gradient, Kind::jacobian});
  return tr("%1 has no state that one step hands to the next, so no gradient of one runs back through time.").arg(modelName(*trace_)) +
         u' ' + (others.isEmpty() ? tr("Choose another model.") : others);
}

void GradientsPanel::judge() {
  // Where the loss counts at several steps each of them adds to the gradient, so only the Jacobian product shows the memory itself.
  const std::int64_t counted = stepsOfLoss(*trace_), recorded = std::ssize(trace_->steps);
  const bool once = counted <= 1;
  verdict_ = {};
  QString note;
  const auto left = [](const Verdict& v) {
    return v.fate == Fate::unknown ? -std::numeric_limits<double>::infinity()
                                   : v.intercept + v.slope * static_cast<double>(std::abs(v.last - v.first));
  };
  for (const bool jacobian : {!once, once}) {
    const std::vector<const TraceArray*> arrays = jacobian ? trace_->of(Kind::jacobian) : ofStates(*trace_);
    std::vector<Verdict> verdicts;
    // The state that the preset names, where this run has it.
    const QString named = wanted();
    const auto is_named = [&](const TraceArray* array) {
      return !jacobian && !named.isEmpty() && QString::fromStdString(array->key).section(u'/', 3) == named;
    };
    const bool only = std::any_of(arrays.begin(), arrays.end(), is_named);
    for (const TraceArray* array : arrays) {
      if (!usable(*array) || (only && !is_named(array))) continue;
      const QString key = QString::fromStdString(array->key), layer = key.section(u'/', jacobian ? 1 : 2, jacobian ? 1 : 2);
      const bool backward = runsBackward(*trace_, layer);
      QString subject = !jacobian ? tr("The gradient") : backward ? tr("The Jacobian ∂s_0/∂s_t") : tr("The Jacobian ∂s_T/∂s_t");
      if (arrays.size() > 1) {
        subject = jacobian ? tr("The Jacobian %1 of %2")
                                 .arg(backward ? QStringLiteral("∂s_0/∂s_t") : QStringLiteral("∂s_T/∂s_t"), layerName(*trace_, layer))
                  : trace_->info.layers > 1 ? tr("The gradient of %1 in %2").arg(key.section(u'/', 3), layerName(*trace_, layer))
                                            : tr("The gradient of %1").arg(key.section(u'/', 3));
      }
      std::vector<double> values;
      for (std::int64_t row = 0; row < array->shape[0]; ++row) values.push_back(entryOf(*array, row));
      verdicts.push_back(gradientVerdict(stepsOf(*trace_, *array), values, subject, backward, number_of_step(*trace_, 0)));
    }
    if (!verdicts.empty()) {
      // The path by which most arrives at the earliest steps decides whether the model forgets.
      std::stable_sort(verdicts.begin(), verdicts.end(), [&](const Verdict& a, const Verdict& b) { return left(a) > left(b); });
      verdict_ = verdicts.front();
      const bool clearly = verdicts.size() > 1 && left(verdict_) - left(verdicts[1]) > 0.3;  // twice as much
      if (clearly && verdict_.fate == Fate::vanishes)
        note = jacobian ? tr(" Every other layer keeps less.") : tr(" Every other state gets less.");
      if (!once && !jacobian)
        note += counted < recorded
                    ? tr(" The loss counts at %1 of the %2 steps, and each of them adds to the gradient: this is not the memory alone.")
                          .arg(grouped(counted), grouped(recorded))
                    : tr(" The loss counts at every step, and each of them adds to the gradient: this is not the memory alone.");
      break;
    }
  }
  verdict_.sentence += note;
}

/// One colour a run: its states differ in their dashes, and the memory's own curves are dotted.
void GradientsPanel::drawPins() {
  const Theme& theme = plot_->theme();
  bool most = false, least = false;  // any run has them
  for (const Run& run : pinned_) {
    QStringList states, layers;
    QList<QCPLayerable*> shown;
    const std::vector<Curve> found = curves(*run.trace);
    for (const Curve& curve : found) {
      if (curve.kind == Kind::gradient && !states.contains(curve.state)) states << curve.state;
      if (!layers.contains(curve.layer)) layers << curve.layer;
    }
    for (const Curve& curve : found) {
      const bool gradient = curve.kind == Kind::gradient;
      const auto depth = static_cast<double>(layers.indexOf(curve.layer));
      QColor ink =
          layers.size() > 1 ? mixed(run.colour, theme.base, 1.0 - 0.5 * depth / static_cast<double>(layers.size() - 1)) : run.colour;
      most = most || curve.kind == Kind::jacobian;
      least = least || curve.kind == Kind::jacobian_min;
      QCPGraph* graph = plot_->addCurve(rect_, ink, gradient ? 1.2 : 1.1,
                                        gradient ? curveStyle(static_cast<int>(states.indexOf(curve.state))) : Qt::DotLine);
      graph->setProperty("least", curve.kind == Kind::jacobian_min);
      // At the cursor each of several runs has one number, that of its first state: more would pile up over the curves.
      if (!gradient || layers.size() > 1 || (pinned_.size() > 1 && states.indexOf(curve.state) > 0)) Plot::setQuiet(graph);
      // Counted back from the end, runs of other lengths end together.
      fillCurve(graph, *run.trace, *curve.array, 0, plot_->lag() ? trace_->info.length - run.trace->info.length : 0);
      shown << graph;
    }
    if (shown.isEmpty()) {
      addPinWithout(legend_, run, theme, tr("no gradients"));
      continue;
    }
    QString how = states.size() > 1
                      ? tr("Its states by their dashes: solid %1, dashed %2; ").arg(states[0], states.mid(1).join(tr(" and on ")))
                      : QString();
    how += layers.size() > 1 ? tr("deeper layers are fainter; dotted: σ max and σ min.") : tr("dotted: σ max and σ min.");
    how[0] = how[0].toUpper();
    addPin(legend_, run, QPen(run.colour, 1.2), shown, states.size() > 1 ? states : QStringList(), how);
  }
  if (most || least)
    legend_->add(QStringLiteral("pinned sigma"),
                 most && least ? tr("pinned: σ max, σ min")
                 : most        ? tr("pinned: σ max")
                               : tr("pinned: σ min"),
                 QPen(pinned_.size() == 1 ? pinned_.front().colour : theme.muted, 1.1, Qt::DotLine), {},
                 tr("Dotted, each in the colour of its run: the upper one is σ max, the lower one σ min."));
}

void GradientsPanel::rebuild() {
  plot_->clearPlottables();
  legend_->clear();
  const Theme& theme = plot_->theme();
  one_->setPen(QPen(theme.axis, 1, Qt::DashLine));
  drawPins();  // under the run itself
  judge();
  sentence_->setText(verdict_.sentence);
  const QString loss = QString::fromStdString(trace_->info.loss);
  const QString formula = loss.section(QStringLiteral(": "), 1);  // "last: L = ..."
  QStringList said;
  if (!loss.isEmpty()) said << tr("%1. It is %2.").arg(formula.isEmpty() ? loss : formula, number(trace_->info.loss_value, 5));
  said << notesOn(*trace_, {Kind::gradient, Kind::jacobian});
  said.removeAll(QString());
  loss_->setText(said.join(u' '), true);
  QCPGraph* fit = nullptr;
  if (verdict_.fate != Fate::unknown) {
    fit = plot_->addCurve(rect_, theme.muted, 1.0, Qt::DashLine);
    Plot::setQuiet(fit);
    fit->addData(static_cast<double>(verdict_.first),
                 verdict_.intercept + verdict_.slope * static_cast<double>(std::abs(verdict_.last - verdict_.first)));
    fit->addData(static_cast<double>(verdict_.last), verdict_.intercept);
  }
  // Gradients of the loss have colours, the memory's own curve is thin and grey. Layers that would crowd the legend share an entry, and
  // fade with depth.
  const std::vector<Curve> found = drawnCurves();
  QStringList states, layers;
  for (const Curve& curve : found) {
    if (curve.kind == Kind::gradient && !states.contains(curve.state)) states << curve.state;
    if (!layers.contains(curve.layer)) layers << curve.layer;
  }
  const bool apart = layersApart(static_cast<std::size_t>(states.size()), static_cast<std::size_t>(layers.size()));
  struct Entry {
    QString key, text, tip;
    QPen pen;
    QList<QCPLayerable*> curves;
    bool gradient;
  };
  std::vector<Entry> entries;
  std::vector<Curve> drawn = found;  // the last on top
  std::stable_sort(drawn.begin(), drawn.end(),
                   [](const Curve& a, const Curve& b) { return (a.kind == Kind::gradient) < (b.kind == Kind::gradient); });
  for (const Curve& curve : drawn) {
    const auto depth = static_cast<int>(layers.indexOf(curve.layer));
    const bool gradient = curve.kind == Kind::gradient, alone = layers.size() == 1 || (gradient && apart);
    QColor ink = curve.kind == Kind::jacobian ? theme.text : theme.axis;
    Qt::PenStyle style = Qt::SolidLine;
    if (gradient) {
      const QPen pen = theme.curve(placeOfState(*curve.of, curve.array->key), 1.6);
      ink = pen.color();
      style = pen.style();
    }
    if (!alone) ink = mixed(ink, theme.base, 1.0 - 0.65 * depth / static_cast<double>(layers.size() - 1));
    if (curve.former) ink = mixed(ink, theme.base, 0.4);
    QCPGraph* graph = plot_->addCurve(rect_, ink, gradient ? 1.6 : 1.0, style);
    graph->setProperty("least", curve.kind == Kind::jacobian_min);
    // During training the axes fit the new weights' curves, not the former ones.
    graph->setProperty("aside", curve.former && trace_->info.learned.has_value());
    if (!alone || curve.former || (!gradient && pinned_.size() > 1)) Plot::setQuiet(graph);
    fillCurve(graph, *curve.of, *curve.array);
    const QString what = gradient ? QStringLiteral("|∂L/∂s| ") + curve.state : curve.kind == Kind::jacobian ? tr("σ max") : tr("σ min");
    const QString key = alone ? curve.name : what;
    const auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.key == key; });
    if (same != entries.end()) {
      same->curves << graph;
      continue;
    }
    const auto many = alone ? 1 : std::count_if(found.begin(), found.end(), [&](const Curve& other) {
      return other.kind == curve.kind && other.state == curve.state;
    });
    QString text = what, tip = curve.tip;
    if (layers.size() > 1) text += many == 1 ? QStringLiteral(", ") + layerName(*trace_, curve.layer) : tr(", %1 layers").arg(many);
    if (many > 1) tip += tr(" Deeper layers are fainter.");
    entries.push_back({key, text, tip, graph->pen(), {graph}, gradient});
  }
  std::stable_partition(entries.begin(), entries.end(), [](const Entry& entry) { return entry.gradient; });
  for (const Entry& entry : entries) legend_->add(entry.key, entry.text, entry.pen, entry.curves, entry.tip);
  if (fit)
    legend_->add(QStringLiteral("fit"), tr("fit"), fit->pen(), {fit},
                 tr("The line that the verdict is read from: its slope is the median of all slopes between pairs of points."));
  fitValues();
}

void GradientsPanel::fitValues() {
  const QCPRange visible = rect_->axis(QCPAxis::atBottom)->range();
  double low = std::numeric_limits<double>::infinity(), high = -low, least = low;
  for (const QCPGraph* graph : rect_->graphs()) {
    bool found = false;
    const bool counts = graph->realVisibility() && !graph->property("aside").toBool();
    const QCPRange range = counts ? graph->getValueRange(found, QCP::sdBoth, visible) : QCPRange();
    if (!found || !std::isfinite(range.lower) || !std::isfinite(range.upper)) continue;
    if (graph->property("least").toBool()) {
      least = std::min(least, range.lower);
      if (high == -std::numeric_limits<double>::infinity()) high = range.upper;
    } else {
      low = std::min(low, range.lower);
      high = std::max(high, range.upper);
    }
  }
  // The smallest singular value often falls off a cliff: it may take a quarter of the height, not all of it.
  if (low > high)
    low = least;
  else if (least < low)
    low = std::max(least, low - std::max((high - low) / 3.0, 4.0));
  if (!(low <= high)) return;
  values_->fit(padded({low, high}, 0.05, 0.5));
  plot_->redraw();
}

QVariantMap GradientsPanel::choices() const { return {{QStringLiteral("lag"), plot_->lag()}}; }

void GradientsPanel::setChoices(const QVariantMap& saved) { plot_->setLag(saved.value(QStringLiteral("lag")).toString() == u"true"); }

QString GradientsPanel::makeHeadline() const {
  if (verdict_.fate == Fate::unknown) return {};
  if (verdict_.fate == Fate::holds) return tr("holds");
  const QString sign = verdict_.slope > 0 ? QStringLiteral("+") : QString();
  return tr("%1 decades/step").arg(sign + number(verdict_.slope));
}

QString GradientsPanel::dataAsCsv() const {
  if (!trace_) return {};
  StepTable table(*trace_);
  const auto add = [&](const Trace& trace, const QString& run) {
    table.addSteps(trace.steps);
    for (const Curve& curve : curves(trace)) {
      const std::int64_t k = curve.array->row_size();
      for (std::int64_t j = 0; j < k; ++j)
        table.add(QStringLiteral("log10 ") + curve.name + (k > 1 ? QStringLiteral("/%1").arg(j) : QString()) + run, trace, curve.array, j);
    }
  };
  add(*trace_, {});
  for (const Run& run : pinned_) add(*run.trace, QStringLiteral(" [%1]").arg(run.label));
  return table.csv();
}

RECLAB_PANEL_IS(gradients, GradientsPanel)

}  // namespace reclab
