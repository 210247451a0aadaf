// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/learning/learning.h"

#include <QMouseEvent>
#include <algorithm>
#include <cmath>

#include "panels/panel_info.h"
#include "plot/parts/curves.h"
#include "plot/parts/layout.h"

namespace reclab {

namespace {

/// A value of each step, the first of which is that after `first`; on a logarithmic axis, values up to 0 are gaps.
void fillSteps(QCPGraph* graph, std::int64_t first, const std::vector<double>& values) {
  fillCurve(
      graph, [&](std::int64_t i) { return first + i + 1; }, std::ssize(values),
      [&](std::int64_t i) { return std::log10(values[static_cast<std::size_t>(i)]); });
}

/// The name of a task's loss for one output, by its metric.
QString lossOf(const LearningCurve& curve) {
  return curve.metric == "accuracy" ? Panel::tr("cross-entropy") : Panel::tr("½ squared error");
}

constexpr double reach = 14.0;  ///< pixels from a curve within which a click is on it

}  // namespace

QString LearningPanel::nameOf(const LearningCurve& curve) const { return QString::fromStdString(learning_->name_of(curve)); }

/// The training of the time line: the one whose weights are shown, or else the current one.
const LearningCurve& LearningPanel::ofTheLine() const {
  const LearningCurve* line = learning_->find(learning_->line);
  if (line == nullptr) line = learning_->find(learning_->current);
  return line != nullptr ? *line : *learning_->trainings.back();
}

LearningPanel::LearningPanel(QWidget* parent) : Described(parent) {
  what_ = addChoice("what", false, tr("Above: the loss that is learned from, or how well the model does, as the task is measured."),
                    {tr("loss"), tr("metric")});
  below_ = addChoice(
      "below", false,
      tr("Below: the norm of the gradient before and after clipping, |change| / |weight| of each parameter, or the learning rate."),
      {tr("gradient norm"), tr("changes of weights"), tr("learning rate")});
  what_->setAccessibleName(tr("Above"));
  controls_->addStretch();
  sentence_ = new Paragraph(plot_);
  legend_ = new Legend(plot_);
  upper_ = plot_->makeRect([this] { nameUpper(); });
  lower_ = plot_->makeRect([this] {
    switch (static_cast<Lower>(below_->currentIndex())) {
      case Lower::norms: return nameValues(lower_, tr("gradient norm"), tr("norm"));
      case Lower::changes: return nameValues(lower_, tr("|change| / |weight|"), tr("change"));
      case Lower::rate: return nameValues(lower_, tr("learning rate"), tr("rate"));
    }
  });
  note_ = new Paragraph(plot_);
  note_->setSmall(true);
  stack(plot_, {sentence_, legend_, upper_, lower_, note_});
  plot_->plotLayout()->setRowStretchFactor(2, 1.3);  // its time axis is that of the one under it
  lineUp({upper_, lower_}, QCP::msLeft | QCP::msRight);
  for (QCPAxisRect* rect : {upper_, lower_}) rect->axis(QCPAxis::atBottom)->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
  upper_->axis(QCPAxis::atBottom)->setTickLabels(false);
  lower_->axis(QCPAxis::atBottom)->setLabel(tr("step of training"));
  upper_values_ = plot_->addValueAxis(upper_);
  lower_values_ = plot_->addValueAxis(lower_);
  upper_mark_ = new StraightLine(upper_, QStringLiteral("main"));
  lower_mark_ = new StraightLine(lower_, QStringLiteral("main"));
  for (StraightLine* mark : {upper_mark_, lower_mark_}) plot_->addCursorMark(mark);
  clip_ = new StraightLine(lower_, QStringLiteral("main"));
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

/// Accuracies are shares; all else falls over powers of ten.
bool LearningPanel::logarithmic() const {
  return !showsMetric() ||
         std::ranges::none_of(learning_->trainings, [](const LearningCurvePtr& one) { return one->metric == "accuracy"; });
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
  nameUpper();
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
    clip_->setLevel(std::log10(now->clip));
  }
  if (lower == Lower::changes && now != nullptr) drawChanges(*now);
  drawMark();
  fitAxes();
}

void LearningPanel::nameUpper() {
  if (!learning_ || learning_->trainings.empty()) return;
  const LearningCurve& line = ofTheLine();
  const QString brief = showsMetric() ? line.metric.empty() ? tr("metric") : QString::fromStdString(line.metric) : tr("loss");
  nameValues(upper_, showsMetric() || line.metric.empty() ? brief : tr("loss, %1").arg(lossOf(line)), brief);
}

void LearningPanel::drawTraining(const LearningCurve& curve, const QPen& pen, bool current) {
  const Theme& theme = plot_->theme();
  const QColor ink = pen.color();
  const auto shown = [logs = logarithmic()](double value) { return logs ? std::log10(value) : value; };
  QList<QCPLayerable*> drawn;
  if (!showsMetric()) {
    QCPGraph* batch = plot_->addCurve(upper_, mixed(ink, theme.base, 0.45), 0.8);
    fillSteps(batch, curve.first, curve.loss);
    drawn << batch;
  }
  QCPGraph* held = plot_->addCurve(upper_, ink, 1.8, pen.style());
  held->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, 4));
  const std::vector<double>& judged = showsMetric() ? curve.judged_metric : curve.judged_loss;
  fillCurve(held, curve.judged, std::min(std::ssize(judged), std::ssize(curve.judged)),
            [&](std::int64_t i) { return shown(judged[static_cast<std::size_t>(i)]); });
  drawn << held;
  if (const auto lower = static_cast<Lower>(below_->currentIndex()); lower != Lower::changes) {
    QCPGraph* below = plot_->addCurve(lower_, mixed(ink, theme.base, lower == Lower::norms ? 0.45 : 0.9), 1.0);
    fillSteps(below, curve.first, lower == Lower::norms ? curve.norm : curve.rate);
    drawn << below;
    if (lower == Lower::norms && curve.clip > 0.0) {
      QCPGraph* after = plot_->addCurve(lower_, ink, 1.0);
      fillSteps(after, curve.first, curve.clipped);
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
    fillCurve(
        graph, [&](std::int64_t row) { return curve.judged[static_cast<std::size_t>(row + 1)]; },
        std::min(std::ssize(curve.changes), std::ssize(curve.judged) - 1),
        [&](std::int64_t row) { return std::log10(curve.changes[static_cast<std::size_t>(row)][order[place]]); });
    const QString name = QString::fromStdString(curve.weights[order[place]]);
    legend_->add(QStringLiteral("weight/") + name, name, graph->pen(), {graph},
                 tr("|change| / |weight| of %1 in the step before each judgement.").arg(name));
  }
}

/// The mark at the step of the weights that are shown.
void LearningPanel::drawMark() {
  const bool there = learning_->line != 0;
  for (StraightLine* mark : {upper_mark_, lower_mark_}) {
    mark->setVisible(there);
    mark->setPen(QPen(plot_->theme().accent, 1.4, learning_->line_shown ? Qt::SolidLine : Qt::DotLine));
    mark->setUpright(static_cast<double>(learning_->line_step));
  }
}

void LearningPanel::fitAxes() {
  if (!learning_) return;
  double last = 1.0;
  for (const LearningCurvePtr& one : learning_->trainings)
    last = std::max(last, static_cast<double>(std::ranges::count(learning_->together, one->training) > 0 ? one->scale() : one->done));
  for (QCPAxisRect* rect : {upper_, lower_}) rect->axis(QCPAxis::atBottom)->setRange(-0.01 * last, 1.01 * last);
  const auto fit = [](QCPAxisRect* rect, ValueAxis* axis, double least) {
    if (const auto all = spanOf(rect)) axis->fit(padded(*all, 0.06, least));
  };
  fit(upper_, upper_values_, 0.02);
  fit(lower_, lower_values_, 0.05);
  plot_->redraw();
}

/// The training of the nearest curve; where none is near, that of the time line.
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

RECLAB_PANEL_IS(learning, LearningPanel)

}  // namespace reclab
