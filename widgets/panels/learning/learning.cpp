// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/learning/learning.h"

#include <QMouseEvent>
#include <QRegularExpression>
#include <algorithm>
#include <cmath>
#include <limits>

#include "panels/panel_info.h"
#include "plain_text.h"
#include "plot/pinned.h"

namespace reclab {

namespace {

constexpr double nothing_there = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_named_weights = 8;

/// log10 of what is above 0; all else is a gap.
double logOf(double value) { return value > 0.0 && std::isfinite(value) ? std::log10(value) : nothing_there; }
double plain(double value) { return std::isfinite(value) ? value : nothing_there; }

/// A value of each step, the first of which is that after `first`.
void fillSteps(QCPGraph* graph, std::int64_t first, const std::vector<double>& values, double (*shown)(double)) {
  QVector<QCPGraphData> points(static_cast<qsizetype>(values.size()));
  for (qsizetype i = 0; i < points.size(); ++i)
    points[i] = {static_cast<double>(first + i + 1), shown(values[static_cast<std::size_t>(i)])};
  graph->data()->set(points, true);
}

void fillJudged(QCPGraph* graph, const LearningCurve& curve, const std::vector<double>& values, double (*shown)(double)) {
  QVector<QCPGraphData> points;
  for (std::size_t i = 0; i < std::min(values.size(), curve.judged.size()); ++i)
    points.append({static_cast<double>(curve.judged[i]), shown(values[i])});
  graph->data()->set(points, true);
}

/// What a task's loss is of one output, as its metric tells.
QString lossOf(const LearningCurve& curve) {
  return curve.metric == "accuracy" ? Panel::tr("cross-entropy") : Panel::tr("½ squared error");
}

constexpr double reach = 14.0;  ///< pixels from a curve within which a click is on it

}  // namespace

QString LearningPanel::nameOf(const LearningCurve& curve) const { return QString::fromStdString(learning_->name_of(curve)); }

/// The one whose time it is: the one that is looked at, or else that which is trained on.
const LearningCurve& LearningPanel::ofTheLine() const {
  const LearningCurve* line = learning_->find(learning_->line);
  if (line == nullptr) line = learning_->find(learning_->current);
  return line != nullptr ? *line : *learning_->trainings.back();
}

LearningPanel::LearningPanel(QWidget* parent) : PlotPanel(parent) {
  what_ = new QComboBox;
  what_->setObjectName(QStringLiteral("what"));
  what_->addItems({tr("loss"), tr("metric")});
  what_->setToolTip(tr("Above: the loss that is learned from, or how well the model does, as the task is measured."));
  below_ = new QComboBox;
  below_->setObjectName(QStringLiteral("below"));
  below_->addItems({tr("gradient norm"), tr("changes of weights"), tr("learning rate")});
  below_->setToolTip(
      tr("Below: the norm of the gradient before and after clipping, |change| / |weight| of each parameter, or the learning rate."));
  controls_->addWidget(what_);
  controls_->addWidget(below_);
  controls_->addStretch();
  sentence_ = new Paragraph(plot_);
  legend_ = new Legend(plot_);
  upper_ = plot_->makeRect([this] { nameValues(); });
  lower_ = plot_->makeRect([this] {  // a name longer than the axis would be cut
    const auto what = static_cast<Lower>(below_->currentIndex());
    const QString name = what == Lower::norms     ? tr("gradient norm")
                         : what == Lower::changes ? tr("|change| / |weight|")
                                                  : tr("learning rate");
    const QString brief = what == Lower::norms ? tr("norm") : what == Lower::changes ? tr("change") : tr("rate");
    const bool room = QFontMetrics(plot_->theme().normal, plot_).horizontalAdvance(name) <= lower_->height();
    lower_->axis(QCPAxis::atLeft)->setLabel(room ? name : brief);
  });
  note_ = new Paragraph(plot_);
  note_->setSmall(true);
  QCPLayoutGrid* grid = plot_->plotLayout();
  grid->addElement(0, 0, sentence_);
  grid->addElement(1, 0, legend_);
  grid->addElement(2, 0, upper_);
  grid->addElement(3, 0, lower_);
  grid->addElement(4, 0, note_);
  grid->setRowStretchFactor(2, 1.3);  // its time axis is that of the one under it
  auto* group = new QCPMarginGroup(plot_);
  for (QCPAxisRect* rect : {upper_, lower_}) {
    rect->setMarginGroup(QCP::msLeft | QCP::msRight, group);
    rect->axis(QCPAxis::atBottom)->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
  }
  upper_->axis(QCPAxis::atBottom)->setTickLabels(false);
  lower_->axis(QCPAxis::atBottom)->setLabel(tr("step of training"));
  upper_values_ = plot_->addValueAxis(upper_);
  lower_values_ = plot_->addValueAxis(lower_);
  const auto line = [this](QCPAxisRect* rect, bool upright) {
    auto* made = new QCPItemStraightLine(plot_);
    made->setSelectable(false);
    made->setClipAxisRect(rect);
    for (QCPItemPosition* point : {made->point1, made->point2}) point->setAxes(rect->axis(QCPAxis::atBottom), rect->axis(QCPAxis::atLeft));
    made->point1->setCoords(0, 0);
    made->point2->setCoords(upright ? 0 : 1, upright ? 1 : 0);
    return made;
  };
  upper_mark_ = line(upper_, true);
  lower_mark_ = line(lower_, true);
  for (QCPItemStraightLine* mark : {upper_mark_, lower_mark_}) plot_->addCursorMark(mark);
  clip_ = line(lower_, false);
  plot_->setHoverHandler([this](const QPointF& position) { return tipAt(position); });
  addActions({upper_values_->lockAction(), upper_values_->resetAction()});
  offer_->setText(tr("Train"));
  offer_->setToolTip(tr("Train this model on the sequence's task, with new samples at every step."));
  connect(offer_, &QPushButton::clicked, this, [this] { emit requested(StudyChoice{"train"}); });
  for (QComboBox* box : {what_, below_}) connect(box, &QComboBox::activated, this, [this] { refresh(); });
  connect(plot_, &QCustomPlot::mousePress, this, [this](QMouseEvent* event) {
    if (event->button() != Qt::LeftButton) return;
    picked_ = trainingAt(event->position());
    pick(event->position(), true);
  });
  connect(plot_, &QCustomPlot::mouseMove, this, [this](QMouseEvent* event) {
    if (event->buttons() & Qt::LeftButton) pick(event->position(), true);
  });
  connect(plot_, &QCustomPlot::mouseRelease, this, [this](QMouseEvent* event) {
    if (event->button() == Qt::LeftButton) pick(event->position(), false);
  });
  connect(plot_, &Plot::curvesToggled, this, &LearningPanel::fitAxes);
  refresh();
}

QString LearningPanel::hint() const {
  return tr(
      "How training goes, step by step: the loss falls below what the best constant has, or it does not. Click on a curve to look at the "
      "weights that its run had at that step.");
}

QString LearningPanel::subject() const { return showsMetric() ? tr("metric") : tr("loss"); }

void LearningPanel::setResult(const std::string&, const StudyResult& result, const QString&) {
  if (const auto learning = result.get<Learning>()) setLearning(learning);
}

void LearningPanel::setLearning(std::shared_ptr<const Learning> learning) {
  learning_ = std::move(learning);
  refresh();
}

QVariantMap LearningPanel::choices() const {
  return {{QStringLiteral("what"), what_->currentIndex()}, {QStringLiteral("below"), below_->currentIndex()}};
}

void LearningPanel::setChoices(const QVariantMap& saved) {
  what_->setCurrentIndex(std::clamp(saved.value(QStringLiteral("what")).toInt(), 0, what_->count() - 1));
  below_->setCurrentIndex(std::clamp(saved.value(QStringLiteral("below")).toInt(), 0, below_->count() - 1));
  refresh();
}

QString LearningPanel::whyEmpty() const {
  const bool empty = !learning_ || learning_->trainings.empty();
  offer_->setVisible(empty);
  return empty ? tr("Nothing has learned yet. Train this model, and its loss appears here; all other panels follow it while it learns.")
               : QString();
}

/// Accuracies are shares; all else falls over powers of ten.
bool LearningPanel::logarithmic() const {
  return !showsMetric() ||
         std::ranges::none_of(learning_->trainings, [](const LearningCurvePtr& one) { return one->metric == "accuracy"; });
}

QString LearningPanel::judged() const {
  const LearningCurve& line = ofTheLine();
  if (const LearningCurve* current = learning_->find(learning_->current); current != nullptr && current->waits)
    return tr("%1 waits: choose how it learns, then press Train.").arg(nameOf(*current));
  if (!line.problem.empty()) return QString::fromStdString(line.problem);
  const std::int64_t step = learning_->line != 0 ? learning_->line_step : line.done;
  QString text = tr("%1, step %2 of %3").arg(nameOf(line), grouped(step), grouped(std::max(line.done, line.wanted)));
  if (learning_->pace > 0.0 && learning_->running) text += tr(", %1 steps/s").arg(number(learning_->pace, 2));
  const auto judgement = line.judgement(step);
  if (!judgement) return text + u'.';
  const QString value = number(line.judged_metric[*judgement]), baseline = number(line.baseline_metric),
                what = QString::fromStdString(line.metric);
  const std::int64_t after = line.judged[*judgement];
  text += after == step ? tr(": on what is held out its %1 is %2").arg(what, value)
                        : tr(": on what is held out its %1 was %2 after step %3").arg(what, value, grouped(after));
  return text + tr("; the baseline, %1, has %2.").arg(QString::fromStdString(line.baseline), baseline);
}

QString LearningPanel::makeHeadline() const {
  const LearningCurve& line = ofTheLine();
  const auto judgement = line.judgement(learning_->line != 0 ? learning_->line_step : line.done);
  return judgement ? tr("held out: %1 %2, baseline %3")
                         .arg(QString::fromStdString(line.metric), number(line.judged_metric[*judgement]), number(line.baseline_metric))
                   : QString();
}

QString LearningPanel::noted() const {
  const LearningCurve* now = learning_->find(learning_->current);
  if (now == nullptr) return {};
  QStringList said;
  if (!now->from.empty()) said << tr("Learned from %1.").arg(QString::fromStdString(now->from));
  if (!showsMetric())
    said << tr("The loss is %1: thin, of each batch before its step; thick, of what is held out.")
                .arg(now->metric == "accuracy" ? tr("the cross-entropy") : tr("half the squared error"));
  if (!now->note.empty()) said << QString::fromStdString(now->note);
  if (below_->currentIndex() == static_cast<int>(Lower::changes) && now->weights.size() > most_named_weights)
    said << tr("Of %1 parameters the %2 that changed most last are drawn; all are in the data.")
                .arg(grouped(std::ssize(now->weights)), grouped(static_cast<std::int64_t>(most_named_weights)));
  return said.join(u' ');
}

void LearningPanel::rebuild() {
  const Theme& theme = plot_->theme();
  control_row_->show();
  plot_->clearPlottables();
  legend_->clear();
  sentence_->setText(judged());
  note_->setText(noted(), true);
  const bool logs = logarithmic();
  QCPAxis *values = upper_->axis(QCPAxis::atLeft), *others = lower_->axis(QCPAxis::atLeft);
  const LearningCurve* now = learning_->find(learning_->current);
  values->setTicker(logs ? QSharedPointer<QCPAxisTicker>(new PowerTicker) : QSharedPointer<QCPAxisTicker>(new NumberTicker));
  nameValues();
  others->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  const auto lower = static_cast<Lower>(below_->currentIndex());
  int greys = 0;  // in no picture of a run: grey, and told apart by their dashes
  for (const LearningCurvePtr& curve : learning_->trainings) {
    const QString colour = QString::fromStdString(learning_->colour_of(*curve));
    QPen pen(colour.isEmpty() ? theme.muted : QColor(colour), 1.8);
    if (colour.isEmpty()) pen.setStyle(curveStyle(greys++));
    drawTraining(*curve, pen, curve->training == learning_->current);
  }
  const bool clips = lower == Lower::norms && now != nullptr && now->clip > 0.0;
  clip_->setVisible(clips);
  if (clips) {
    clip_->setPen(QPen(theme.muted, 1, Qt::DotLine));
    clip_->point1->setCoords(0, std::log10(now->clip));
    clip_->point2->setCoords(1, std::log10(now->clip));
  }
  if (lower == Lower::changes && now != nullptr) drawChanges(*now);
  drawMark();
  fitAxes();
}

/// A name longer than the axis would be cut.
void LearningPanel::nameValues() {
  if (!learning_ || learning_->trainings.empty()) return;
  const LearningCurve& line = ofTheLine();
  const QString brief = showsMetric() ? line.metric.empty() ? tr("metric") : QString::fromStdString(line.metric) : tr("loss");
  const QString name = showsMetric() || line.metric.empty() ? brief : tr("loss, %1").arg(lossOf(line));
  const bool room = QFontMetrics(plot_->theme().normal, plot_).horizontalAdvance(name) <= upper_->height();
  upper_->axis(QCPAxis::atLeft)->setLabel(room ? name : brief);
}

void LearningPanel::drawTraining(const LearningCurve& curve, const QPen& pen, bool current) {
  const Theme& theme = plot_->theme();
  const QColor ink = pen.color();
  const auto shown = logarithmic() ? logOf : plain;
  QList<QCPLayerable*> drawn;
  if (!showsMetric()) {
    QCPGraph* batch = plot_->addCurve(upper_, mixed(ink, theme.base, 0.45), 0.8);
    fillSteps(batch, curve.first, curve.loss, logOf);
    drawn << batch;
  }
  QCPGraph* held = plot_->addCurve(upper_, ink, 1.8, pen.style());
  held->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, 4));
  fillJudged(held, curve, showsMetric() ? curve.judged_metric : curve.judged_loss, shown);
  drawn << held;
  if (const auto lower = static_cast<Lower>(below_->currentIndex()); lower != Lower::changes) {
    QCPGraph* below = plot_->addCurve(lower_, mixed(ink, theme.base, lower == Lower::norms ? 0.45 : 0.9), 1.0);
    fillSteps(below, curve.first, lower == Lower::norms ? curve.norm : curve.rate, logOf);
    drawn << below;
    if (lower == Lower::norms && curve.clip > 0.0) {
      QCPGraph* after = plot_->addCurve(lower_, ink, 1.0);
      fillSteps(after, curve.first, curve.clipped, logOf);
      drawn << after;
    }
  }
  for (QCPLayerable* one : drawn) one->setProperty("training", static_cast<qulonglong>(curve.training));
  legend_->add(QString::number(curve.training), nameOf(curve), pen, drawn,
               tr("%1. Thin: of each batch, before the weights changed; thick, with dots: of what is held out.").arg(nameOf(curve)));
  if (!current) return;
  const double level = shown(showsMetric() ? curve.baseline_metric : curve.baseline_loss);
  if (!std::isfinite(level)) return;
  QCPGraph* baseline = plot_->addCurve(upper_, theme.text, 1.0, Qt::DashLine);
  baseline->setData({0.0, static_cast<double>(curve.scale())}, {level, level}, true);
  legend_->add(QStringLiteral("baseline"), tr("baseline"), QPen(theme.text, 1.0, Qt::DashLine), {baseline},
               tr("What the best constant has: %1.").arg(QString::fromStdString(curve.baseline)));
}

/// Of the training that is current: the weights whose last change was largest, in colours of their own, which are none of a run's.
void LearningPanel::drawChanges(const LearningCurve& curve) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < curve.weights.size(); ++i)
    if (!curve.changes.empty() && std::isfinite(curve.changes.back()[i])) order.push_back(i);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return curve.changes.back()[a] > curve.changes.back()[b]; });
  if (order.size() > most_named_weights) order.resize(most_named_weights);
  std::ranges::sort(order);
  for (std::size_t place = 0; place < order.size(); ++place) {
    QCPGraph* graph =
        plot_->addCurve(lower_, plot_->theme().series(1 + static_cast<int>(place % 6)), 1.3, curveStyle(static_cast<int>(place / 6)));
    graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, 3));
    QVector<QCPGraphData> points;
    for (std::size_t row = 0; row < curve.changes.size() && row + 1 < curve.judged.size(); ++row)
      points.append({static_cast<double>(curve.judged[row + 1]), logOf(curve.changes[row][order[place]])});
    graph->data()->set(points, true);
    const QString name = QString::fromStdString(curve.weights[order[place]]);
    legend_->add(QStringLiteral("weight/") + name, name, graph->pen(), {graph},
                 tr("|change| / |weight| of %1 in the step before each judgement.").arg(name));
  }
}

/// Where the weights that are looked at stand.
void LearningPanel::drawMark() {
  const bool there = learning_->line != 0;
  for (QCPItemStraightLine* mark : {upper_mark_, lower_mark_}) {
    mark->setVisible(there);
    mark->setPen(QPen(plot_->theme().accent, 1.4, learning_->line_shown ? Qt::SolidLine : Qt::DotLine));
    const auto at = static_cast<double>(learning_->line_step);
    mark->point1->setCoords(at, 0);
    mark->point2->setCoords(at, 1);
  }
}

void LearningPanel::fitAxes() {
  if (!learning_) return;
  double last = 1.0;
  for (const LearningCurvePtr& one : learning_->trainings)
    last = std::max(last, static_cast<double>(std::ranges::count(learning_->together, one->training) > 0 ? one->scale() : one->done));
  for (QCPAxisRect* rect : {upper_, lower_}) rect->axis(QCPAxis::atBottom)->setRange(-0.01 * last, 1.01 * last);
  const auto fit = [](QCPAxisRect* rect, ValueAxis* axis, double least) {
    std::optional<QCPRange> all;
    for (const QCPGraph* graph : rect->graphs()) {
      bool found = false;
      if (!graph->realVisibility()) continue;
      const QCPRange range = graph->getValueRange(found);
      if (found) all = all ? all->expanded(range) : range;
    }
    if (!all) return;
    const double pad = std::max(0.06 * all->size(), least);
    axis->fit({all->lower - pad, all->upper + pad});
  };
  fit(upper_, upper_values_, 0.02);
  fit(lower_, lower_values_, 0.05);
  plot_->redraw();
}

/// Whose curve is there: the nearest; where none is near, that whose time it is.
std::uint64_t LearningPanel::trainingAt(const QPointF& position) const {
  if (!learning_ || learning_->trainings.empty()) return 0;
  std::uint64_t found = ofTheLine().training;
  double least = reach;
  for (const QCPAxisRect* rect : {upper_, lower_})
    for (const QCPGraph* graph : rect->graphs()) {
      const std::uint64_t training = graph->property("training").toULongLong();
      if (training == 0 || !graph->realVisibility() || !rect->rect().contains(position.toPoint())) continue;
      const double far = graph->selectTest(position, false);
      if (far < 0.0 || far >= least) continue;
      least = far;
      found = training;
    }
  return found;
}

void LearningPanel::pick(const QPointF& position, bool moving) {
  if (!learning_ || learning_->trainings.empty()) return;
  if (!upper_->rect().contains(position.toPoint()) && !lower_->rect().contains(position.toPoint())) return;
  const auto step = static_cast<std::int64_t>(std::llround(upper_->axis(QCPAxis::atBottom)->pixelToCoord(position.x())));
  emit requested(CheckpointChoice{picked_, std::max<std::int64_t>(0, step), moving});
}

QString LearningPanel::tipAt(const QPointF& position) const {
  if (!learning_ || !upper_->rect().united(lower_->rect()).contains(position.toPoint())) return {};
  const auto step = static_cast<std::int64_t>(std::llround(upper_->axis(QCPAxis::atBottom)->pixelToCoord(position.x())));
  QStringList lines;
  for (const LearningCurvePtr& one : learning_->trainings) {
    const auto at = one->at(step);
    if (!at) continue;
    const std::size_t i = *at;
    lines << tr("<b>%1</b>, step %2: loss of the batch %3, gradient %4, after clipping %5, rate %6")
                 .arg(nameOf(*one).toHtmlEscaped(), grouped(step), number(one->loss[i]), number(one->norm[i]), number(one->clipped[i]),
                      number(one->rate[i]));
  }
  return htmlTip(lines.join(QStringLiteral("<br>")));
}

/// By what is, or was last, trained, whatever is looked at: "gru" for the training "GRU (2)".
QString LearningPanel::fileModel(const QString&) const {
  if (!learning_ || learning_->trainings.empty()) return {};
  const LearningCurve* current = learning_->find(learning_->current);
  static const QRegularExpression number(QStringLiteral("[(,].*")),
      other(QStringLiteral("[^\\w]+"), QRegularExpression::UseUnicodePropertiesOption);
  QString name = nameOf(current != nullptr ? *current : *learning_->trainings.back()).remove(number).trimmed().toLower();
  return name.replace(other, QStringLiteral("-"));
}

/// A figure of the curves says which trainings they are of, and not which run is looked at.
FigureDrawing LearningPanel::drawing(const FigureStyle& style) {
  QStringList names, commands;
  for (const LearningCurvePtr& one : learning_->trainings) {
    names << tr("%1 learned from %2, %3 of %4 steps")
                 .arg(nameOf(*one), QString::fromStdString(one->from), grouped(one->done), grouped(one->wanted));
    commands << QString::fromStdString(one->command);
  }
  FigureText text(QStringLiteral("%1: %2 – %3").arg(title(), subject(), nameOf(*learning_->trainings.back())));
  text.description = tr("%1. Made by Recurrence Lab. Again: %2").arg(names.join(QStringLiteral("; ")), commands.join(QStringLiteral("; ")));
  text.command = commands.join(QStringLiteral("; "));
  return plot_->drawing(text, style);
}

QString LearningPanel::dataAsCsv() const {
  if (!learning_ || learning_->trainings.empty()) return {};
  QByteArray text = "training,name,step,loss,rate,gradient_norm,clipped_norm,held_out_loss,held_out_metric";
  // The weights of all trainings, each named once.
  std::vector<std::string> names;
  for (const LearningCurvePtr& one : learning_->trainings)
    for (const std::string& name : one->weights)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  for (const std::string& name : names) text += ',' + csvCell(QStringLiteral("change/") + QString::fromStdString(name)).toUtf8();
  text += '\n';
  for (const LearningCurvePtr& one : learning_->trainings) {
    std::size_t judged = 0;
    for (std::int64_t step = one->first; step <= one->first + std::ssize(one->loss); ++step) {
      while (judged < one->judged.size() && one->judged[judged] < step) ++judged;
      const bool there = judged < one->judged.size() && one->judged[judged] == step;
      const auto at = one->at(step);
      if (!at && !there) continue;
      text += QByteArray::number(static_cast<qulonglong>(one->training)) + ',' + csvCell(nameOf(*one)).toUtf8() + ',' +
              QByteArray::number(static_cast<qlonglong>(step));
      for (const auto* values : {&one->loss, &one->rate, &one->norm, &one->clipped})
        text += ',' + (at ? csvNumber((*values)[*at]) : QByteArray());
      for (const auto* values : {&one->judged_loss, &one->judged_metric})
        text += ',' + (there ? csvNumber((*values)[judged]) : QByteArray());
      for (const std::string& name : names) {
        const auto found = std::ranges::find(one->weights, name);
        const bool changed = there && judged > 0 && judged - 1 < one->changes.size() && found != one->weights.end();
        text +=
            ',' + (changed ? csvNumber(one->changes[judged - 1][static_cast<std::size_t>(found - one->weights.begin())]) : QByteArray());
      }
      text += '\n';
    }
  }
  return QString::fromUtf8(text);
}

RECLAB_PANEL_IS(learning, LearningPanel)

}  // namespace reclab
