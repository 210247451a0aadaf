// SPDX-License-Identifier: GPL-3.0-or-later
// The view of the credit panel in which rules train the same model: what it asks for, its curves and its words.
#include <QGridLayout>
#include <algorithm>
#include <cmath>

#include "box_layout.h"
#include "panels/credit/credit.h"
#include "plain_text.h"
#include "plot/parts/curves.h"
#include "window_text.h"

namespace reclab {
namespace {

constexpr int gap = 8;
constexpr int columns_of_rules = 2;
constexpr double lowest_loss = 8.0;  // decades below the largest that are drawn

}  // namespace

/// The sheet of choices of a training: rules, steps, rate and batch.
void CreditPanel::makeTrainingSheet() {
  training_popup_ = new Popup(this);
  auto* sheet = static_cast<QVBoxLayout*>(training_popup_->layout());
  trained_list_ = new QGridLayout;
  trained_list_->setHorizontalSpacing(2 * gap);
  trained_list_->setVerticalSpacing(4);
  sheet->addLayout(trained_list_);
  const auto numbers = [](QComboBox* box, std::initializer_list<const char*> all, const char* usual) {
    for (const char* one : all) box->addItem(QLatin1String(one), QString::fromLatin1(one));
    box->setCurrentIndex(box->findData(QString::fromLatin1(usual)));
  };
  train_steps_ = makeChoice("trainSteps", false, tr("How often each rule changes the weights, a batch each"));
  numbers(train_steps_, {"10", "20", "50", "100", "200", "500", "1000", "2000"}, "100");
  training_popup_->addChoice(tr("steps of training"), train_steps_);
  train_rate_ = makeChoice("trainRate", false,
                           tr("The rate of the optimiser, Adam, by which all rules learn that do not change the weights themselves"));
  numbers(train_rate_, {"0.0001", "0.0003", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1"}, "0.01");
  training_popup_->addChoice(tr("learning rate"), train_rate_);
  train_batch_ = makeChoice("trainBatch", false, tr("Sequences that a step learns from; all rules have the same"));
  numbers(train_batch_, {"1", "2", "4", "8", "16", "32"}, "8");
  training_popup_->addChoice(tr("batch"), train_batch_);
  for (QComboBox* box : {train_steps_, train_rate_, train_batch_})
    connect(box, &QComboBox::currentIndexChanged, this, [this] {
      showControls();
      if (view() == View::training) refresh();  // the sentence before the first training has these numbers
    });
}

/// A box each for all rules. Those that do not take this model say why.
void CreditPanel::fillTrainedRules() {
  const std::size_t count = table_ ? table_->rules.size() : 0;
  while (trained_boxes_.size() > count) {
    delete trained_boxes_.back();
    trained_boxes_.pop_back();
  }
  while (trained_boxes_.size() < count) {
    auto* box = new QCheckBox;
    trained_boxes_.push_back(box);
    connect(box, &QCheckBox::clicked, this, [this, box](bool on) {
      const QString rule = box->property("rule").toString();
      trained_.removeAll(rule);
      if (on) trained_ << rule;
      refresh();
    });
  }
  const int rows = (static_cast<int>(count) + columns_of_rules - 1) / columns_of_rules;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const RuleTable::Rule& rule = table_->rules[static_cast<std::size_t>(i)];
    QCheckBox* box = trained_boxes_[static_cast<std::size_t>(i)];
    trained_list_->addWidget(box, i % rows, i / rows);
    const QString id = QString::fromStdString(rule.id);
    box->setProperty("rule", id);
    box->setObjectName(QStringLiteral("train.") + id);
    box->setText(buttonText(QString::fromStdString(rule.name)));
    box->setEnabled(rule.why_not.empty());
    box->setToolTip(safeTip(rule.why_not.empty() ? QString::fromStdString(rule.title + ". " + rule.idea) : windowText(rule.why_not)));
    box->setChecked(trained_.contains(id));
  }
}

QStringList CreditPanel::trainedRules() const {
  QStringList all;
  for (const QString& rule : trained_)
    if (const RuleTable::Rule* facts = factsOf(rule); !table_ || (facts && facts->why_not.empty())) all << rule;
  return all;
}

std::vector<std::pair<std::string, std::string>> CreditPanel::trainingValues() const {
  const auto chosen = [](const QComboBox* box) { return box->currentData().toString().toStdString(); };
  return {{"rules", trainedRules().join(u',').toStdString()},
          {"steps", chosen(train_steps_)},
          {"rate", chosen(train_rate_)},
          {"batch", chosen(train_batch_)},
          {"snap_order", chosen(order_)},
          {"rbp_terms", chosen(terms_)}};
}

bool CreditPanel::curvesOutOfDate() const {
  if (curves_.rules.empty()) return false;
  const auto chosen = [](const QComboBox* box) { return box->currentData().toDouble(); };
  return trainedRules() != curves_.ids() || chosen(train_steps_) != static_cast<double>(curves_.steps) ||
         chosen(train_rate_) != curves_.rate || chosen(train_batch_) != static_cast<double>(curves_.batch) ||
         chosen(order_) != static_cast<double>(curves_.order) || chosen(terms_) != static_cast<double>(curves_.terms);
}

/// Why the view has no curves; empty where it has.
QString CreditPanel::whyNoCurves() const {
  if (const QString said = noRunSentence(trace_.get(), tr("learning rules can train its model side by side here")); !said.isEmpty())
    return said;
  const CurveData data(*trace_);
  if (training_state_.running && data.rules.empty())
    return training_state_.stage.isEmpty()
               ? tr("The rules are about to train.")
               : tr("%1 is training, %2 % of all.").arg(nameOf(training_state_.stage)).arg(std::lround(100 * training_state_.fraction));
  if (!data.rules.empty()) return {};
  if (!data.none.isEmpty()) return data.none;
  if (trainedRules().isEmpty())
    return trained_.isEmpty() ? tr("No learning rule is chosen: choose some under Choices.")
                              : tr("None of the chosen learning rules takes this model: choose others under Choices.");
  QStringList names;
  for (const QString& rule : trainedRules()) names << nameOf(rule);
  return tr("Press “Train rules” to see the losses of %1, each training this model for %2 steps from the same weights with the same "
            "sequences.")
      .arg(names.join(tr(", ")), grouped(train_steps_->currentData().toLongLong()));
}

void CreditPanel::showTraining() {
  std::optional<QCPRange> span;
  for (std::size_t i = 0; i < curves_.rules.size(); ++i) {
    const CurveData::Rule& rule = curves_.rules[i];
    const QPen pen = penOf(i);
    QCPGraph* graph = plot_->addCurve(training_, pen.color(), pen.widthF(), pen.style());
    graph->setName(nameOf(rule.id));
    const auto log_of = [&](std::int64_t step) {
      const double loss = rule.loss[static_cast<std::size_t>(step)];
      return loss > 0.0 ? std::log10(loss) : no_value;
    };
    fillCurve(graph, [](std::int64_t step) { return step + 1; }, rule.made, log_of);
    if (rule.made == 1) graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, pen.color(), pen.color(), 5));
    for (std::int64_t step = 0; step < rule.made; ++step)
      if (const double value = log_of(step); std::isfinite(value)) {
        if (!span) span = QCPRange(value, value);
        span->expand(value);
      }
    const RuleTable::Rule* facts = factsOf(rule.id);
    legend_->add(QStringLiteral("training/") + rule.id,
                 rule.problem.isEmpty() ? nameOf(rule.id) : tr("%1 (ended after %2)").arg(nameOf(rule.id), grouped(rule.made)), pen,
                 {graph},
                 rule.problem.isEmpty() ? facts ? QString::fromStdString(facts->title + ". " + facts->idea) : QString() : rule.problem);
  }
  QCPAxis* bottom = training_->axis(QCPAxis::atBottom);
  bottom->setLabel(tr("step of training"));
  bottom->setRange(curves_.steps > 1 ? QCPRange(1.0, static_cast<double>(curves_.steps)) : QCPRange(0.0, 2.0));
  nameValues(training_, tr("loss of the batch"), tr("loss"));
  if (!span) return training_->axis(QCPAxis::atLeft)->setRange(-1.0, 1.0);
  span->lower = std::max(span->lower, span->upper - lowest_loss);
  training_->axis(QCPAxis::atLeft)->setRange(padded(*span, 0.06, 0.1));
}

QString CreditPanel::saidOfTraining() const {
  QStringList said, ended;
  for (const CurveData::Rule& rule : curves_.rules) {
    if (!rule.problem.isEmpty())
      ended << tr("%1: %2").arg(nameOf(rule.id), rule.problem);
    else
      said << tr("%1 %2").arg(nameOf(rule.id), number(rule.after));
  }
  QStringList all;
  if (!said.isEmpty())
    all << tr("After %1 steps at a learning rate of %2, %3 sequences each, the loss of 32 sequences that none has learned from is: %4; "
              "before, it was %5.")
               .arg(grouped(curves_.steps), number(curves_.rate), grouped(curves_.batch), said.join(tr("; ")),
                    number(curves_.rules.front().before));
  all << ended;
  all << tr("All begin from the same weights and have the same sequences. To repeat it: %1").arg(curves_.command);
  return all.join(u' ');
}

QString CreditPanel::trainingAsCsv() const {
  QByteArray text = "step of training";
  for (const CurveData::Rule& rule : curves_.rules) text += ',' + csvCell(tr("loss of %1").arg(rule.id)).toUtf8();
  text += '\n';
  for (std::int64_t step = 0; step < curves_.steps; ++step) {
    text += QByteArray::number(static_cast<qlonglong>(step + 1));
    for (const CurveData::Rule& rule : curves_.rules) {
      const auto at = static_cast<std::size_t>(step);
      text += ',' + (at < rule.loss.size() ? csvNumber(rule.loss[at]) : QByteArray());
    }
    text += '\n';
  }
  return QString::fromUtf8(text);
}

/// The curve under the mouse: its rule, step and loss.
QString CreditPanel::tipOfTraining(const QPointF& position) const {
  if (!training_->rect().contains(position.toPoint())) return {};
  const auto step = std::clamp<std::int64_t>(std::llround(training_->axis(QCPAxis::atBottom)->pixelToCoord(position.x())), 1,
                                             std::max<std::int64_t>(1, curves_.steps));
  QStringList said;
  for (const CurveData::Rule& rule : curves_.rules)
    said << (step <= rule.made ? tr("%1 %2").arg(nameOf(rule.id), number(rule.loss[static_cast<std::size_t>(step - 1)]))
                               : tr("%1 has ended").arg(nameOf(rule.id)));
  return tr("step %1: %2").arg(grouped(step), said.join(tr("; ")));
}

}  // namespace reclab
