// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/credit/credit.h"

#include <QAction>
#include <QClipboard>
#include <QGuiApplication>
#include <QMouseEvent>
#include <algorithm>
#include <cmath>

#include "panels/panel_info.h"
#include "panels/power_colours.h"
#include "plain_text.h"
#include "plot/parts/curves.h"
#include "plot/parts/pinned.h"
#include "plot/parts/step_text.h"
#include "window_text.h"

namespace reclab {

CreditPanel::CreditPanel(QWidget* parent) : Described(parent), delays_picture_(plot_), weights_picture_(plot_) {
  makeControls();
  said_ = new CursorText(plot_);
  legend_ = new Legend(plot_);
  grid_ = closeGrid();
  stack(plot_, {grid_, legend_, said_});
  upper_ = plot_->makeRect([this] {
    if (view() == View::noise)
      nameValues(upper_, tr("bias, |mean − truth| / |truth|"), tr("bias"));
    else
      nameValues(upper_, tr("angle to the true gradient, °"), tr("angle, °"));
  });
  lower_ = plot_->makeRect([this] {
    if (view() == View::noise)
      nameValues(lower_, tr("deviation over repeats / |truth|"), tr("deviation"));
    else
      nameValues(lower_, tr("|estimate| / |truth|"), tr("ratio"));
  });
  cost_ = plot_->makeRect();
  training_ = plot_->makeRect();
  map_ = new RuleMap(plot_);
  showCells(grid_, {},
            {{upper_, 0},
             {lower_, 1},
             {weights_picture_.rect, 2},
             {weights_picture_.bar, 2, 1},
             {delays_picture_.rect, 3},
             {delays_picture_.bar, 3, 1},
             {cost_, 4},
             {training_, 5},
             {map_, 6}});
  lineUp({upper_, lower_, weights_picture_.rect}, QCP::msLeft | QCP::msRight);
  plot_->addTimeRect(upper_, [this](double value) { return view() == View::noise ? powerText(value) : number(value) + u'°'; });
  plot_->addTimeRect(lower_, powerText);
  plot_->addTimeRect(weights_picture_.rect);
  upper_->axis(QCPAxis::atBottom)->setTickLabels(false);
  lower_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  training_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  training_->axis(QCPAxis::atBottom)->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
  for (const auto side : {QCPAxis::atLeft, QCPAxis::atBottom}) cost_->axis(side)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  upper_values_ = plot_->addValueAxis(upper_);
  lower_values_ = plot_->addValueAxis(lower_);
  addActions({upper_values_->lockAction(), upper_values_->resetAction()});
  right_angle_ = new StraightLine(upper_, QStringLiteral("grid"));
  right_angle_->setLevel(90.0);
  one_ = new StraightLine(lower_, QStringLiteral("grid"));
  one_->setLevel(0.0);
  // The plot takes its time axis from the first rect, which lies under the picture shown in its place.
  connect(plot_, &QCustomPlot::afterLayout, this, [this] {
    if (view() == View::cost) placeNames();
    if (view() != View::parameters) return;
    upper_->setMargins(weights_picture_.rect->margins());
    upper_->setOuterRect(weights_picture_.rect->outerRect());
  });
  connect(plot_, &Plot::curvesToggled, this, &CreditPanel::refresh);
  plot_->setHoverHandler([this](const QPointF& at) { return tipAt(at); });
  plot_->installEventFilter(this);
  offer_->setText(tr("Compare rules"));
  connect(offer_, &QPushButton::clicked, this, [this] { ask(StudyChoice::Act::compute); });
  copy_command_ = new QAction(tr("Copy the reclab line that repeats the comparison"), this);
  connect(copy_command_, &QAction::triggered, this,
          [this] { QGuiApplication::clipboard()->setText(view() == View::training ? curves_.command : data_.command); });
  addAction(copy_command_);
  refresh();
}

const QStringList& CreditPanel::views() {
  static const QStringList all{QStringLiteral("steps"), QStringLiteral("delays"),   QStringLiteral("parameters"), QStringLiteral("noise"),
                               QStringLiteral("cost"),  QStringLiteral("training"), QStringLiteral("rules")};
  return all;
}

/// Before anything is compared the map of rules, then the steps, unless another was chosen.
CreditPanel::View CreditPanel::view() const {
  if (by_hand_) return static_cast<View>(view_->currentIndex());
  if (const auto named = views().indexOf(wanted()); named >= 0) return static_cast<View>(named);
  return state_.running || (trace_ && trace_->has(Kind::credit)) ? View::steps : View::rules;
}

QString CreditPanel::nameOf(const QString& rule) const {
  const RuleTable::Rule* facts = factsOf(rule);
  return facts ? QString::fromStdString(facts->name) : rule;
}

const RuleTable::Rule* CreditPanel::factsOf(const QString& rule) const {
  if (!table_) return nullptr;
  const auto found = std::ranges::find(table_->rules, rule.toStdString(), &RuleTable::Rule::id);
  return found == table_->rules.end() ? nullptr : &*found;
}

QPen CreditPanel::penOf(std::size_t rule) const { return plot_->theme().curve(static_cast<int>(rule), 1.6); }

// ---------------------------------------------------------------------------------------------------------- what is asked

void CreditPanel::askRules() {
  if (!isVisible() || !trace_ || trace_->info.outcome != Outcome::finished) return;
  const QString run = QString::fromStdString(trace_->info.command);
  if (table_ && run == asked_of_) return;
  asked_of_ = run;
  emit requested(StudyChoice{"rules"});
}

std::vector<std::pair<std::string, std::string>> CreditPanel::values() const {
  std::vector<std::string> rules;
  for (const QString& rule : asked()) rules.push_back(rule.toStdString());
  std::string list;
  for (const std::string& rule : rules) list += (list.empty() ? "" : ",") + rule;
  const auto chosen = [](const QComboBox* box) { return box->currentData().toString().toStdString(); };
  return {{"rules", list},
          {"repeats", chosen(repeats_)},
          {"signs", std::to_string(signs_->value())},
          {"delays", chosen(delays_)},
          {"snap_order", chosen(order_)},
          {"rbp_terms", chosen(terms_)}};
}

void CreditPanel::ask(StudyChoice::Act act) {
  if (view() == View::training) {
    if (act == StudyChoice::Act::compute && trainedRules().isEmpty()) return;
    emit requested(StudyChoice{"credit-curves", trainingValues(), act});
    return;
  }
  if (act == StudyChoice::Act::compute && asked().isEmpty()) return;
  emit requested(StudyChoice{"credit", values(), act});
}

QStringList CreditPanel::asked() const {
  QStringList all;
  for (const QString& rule : chosen_)
    if (const RuleTable::Rule* facts = factsOf(rule); !table_ || (facts && facts->step_by_step && facts->why_not_compared.empty()))
      all << rule;
  return all;
}

bool CreditPanel::outOfDate() const {
  if (data_.rules.empty()) return false;
  const auto chosen = [](const QComboBox* box) { return box->currentData().toLongLong(); };
  return asked() != data_.ids() || chosen(repeats_) != data_.repeats || signs_->value() != data_.signs || chosen(delays_) != data_.delays ||
         chosen(order_) != data_.order || chosen(terms_) != data_.terms;
}

void CreditPanel::setStudyState(const std::string& study, const StudyState& state) {
  if (study != "credit" && study != "credit-curves") return;
  StudyState& own = study == "credit" ? state_ : training_state_;
  const bool toggled = own.running != state.running;
  const View before = view();
  own = state;
  bar_->setValue(static_cast<int>(std::lround(1000 * this->state().fraction)));
  if (!emptyReason().isEmpty() || view() != before) return refresh();
  if (toggled) showControls();
}

void CreditPanel::setResult(const std::string& study, const StudyResult& result, const QString& problem) {
  if (study != "rules") return;
  table_ = result.get<RuleTable>();
  problem_ = problem;
  refresh();
}

QString CreditPanel::doing() const {
  return state_.stage.isEmpty() ? tr("The rules are being compared") : tr("%1 is being compared").arg(nameOf(state_.stage));
}

QString CreditPanel::whyEmpty() const {
  if (view() == View::training) {
    const QString said = whyNoCurves();
    offer_->setText(tr("Train rules"));
    offer_->setVisible(trace_ && !said.isEmpty() && !training_state_.running);
    offer_->setEnabled(!trainedRules().isEmpty());
    return said;
  }
  offer_->setText(tr("Compare rules"));
  const CreditData data = trace_ ? CreditData(*trace_) : CreditData();
  const bool offers = trace_ && data.rules.empty() && view() != View::rules && !state_.running;
  offer_->setVisible(offers);
  offer_->setEnabled(!asked().isEmpty());
  if (view() == View::rules) {
    if (table_) return {};
    if (!problem_.isEmpty()) return problem_;
    const QString said = noRunSentence(trace_.get(), tr("the learning rules that take its model appear here"));
    return said.isEmpty() ? tr("The learning rules are being asked whether they take this model.") : said;
  }
  if (const QString said = noRunSentence(trace_.get(), tr("how near learning rules come to its true gradient can be computed here"));
      !said.isEmpty())
    return said;
  if (state_.running && data.rules.empty()) return tr("%1, %2 %.").arg(doing()).arg(std::lround(100 * state_.fraction));
  if (!data.rules.empty()) return {};
  if (!data.none.isEmpty()) return (data.none + u' ' + pinsThatHave(pinned_, {Kind::credit})).trimmed();
  if (asked().isEmpty())
    return chosen_.isEmpty() ? tr("No learning rule is chosen: choose some under Choices.")
                             : tr("None of the chosen learning rules takes this model with its loss: choose others under Choices.");
  QStringList names;
  for (const QString& rule : asked()) names << nameOf(rule);
  return tr("Press “Compare rules” to see how near the gradients of %1 come to the true one, step by step.").arg(names.join(tr(", ")));
}

void CreditPanel::forget() {
  data_ = {};
  curves_ = {};
  if (trace_) askRules();
  showControls();
}

QString CreditPanel::chosenRule() const { return rule_->currentData().toString(); }

bool CreditPanel::showsRatios() const { return measure_->currentIndex() == 1; }

void CreditPanel::rebuild() {
  data_ = trace_ ? CreditData(*trace_) : CreditData();
  curves_ = trace_ ? CurveData(*trace_) : CurveData();
  askRules();
  showControls();
  for (QCPAxisRect* rect : {upper_, lower_, cost_, training_})
    for (QCPGraph* graph : rect->graphs()) plot_->removePlottable(graph);
  for (QCPItemText* name : names_) plot_->removeItem(name);
  names_.clear();
  legend_->clear();
  arrange();
  switch (view()) {
    case View::steps:
    case View::noise: showSteps(); break;
    case View::delays: showDelays(); break;
    case View::parameters: showParameters(); break;
    case View::cost: showCost(); break;
    case View::training: showTraining(); break;
    case View::rules: showMap(); break;
  }
  if (!pinned_.empty() && view() != View::rules)
    addPinsWithout(legend_, pinned_, plot_->theme(), tr("not in this picture"),
                   tr("The rules are compared for the run that is looked at; those of pinned runs are seen side by side (Ctrl+B)."));
}

QString CreditPanel::makeHeadline() const {
  if (view() == View::rules) {
    const auto takes = std::ranges::count_if(table_->rules, [](const RuleTable::Rule& rule) { return rule.why_not.empty(); });
    return tr("%1 of %2 rules take %3").arg(takes).arg(table_->rules.size()).arg(QString::fromStdString(table_->model));
  }
  if (view() == View::training) {
    const CurveData::Rule* best = nullptr;
    for (const CurveData::Rule& rule : curves_.rules)
      if (std::isfinite(rule.after) && (!best || rule.after < best->after)) best = &rule;
    return best ? tr("lowest after %1 steps: %2, %3").arg(grouped(curves_.steps), nameOf(best->id), number(best->after)) : QString();
  }
  const std::int64_t at = data_.nearestCounted(step_);
  const CreditData::Rule* nearest = nullptr;
  const auto angle = [&](const CreditData::Rule& rule) { return rule.angle[static_cast<std::size_t>(at)]; };
  if (at >= 0)
    for (const CreditData::Rule& rule : data_.rules)
      if (!std::isnan(angle(rule)) && (!nearest || angle(rule) < angle(*nearest))) nearest = &rule;
  return nearest ? tr("nearest %1, %2° at step %3").arg(nameOf(nearest->id), number(angle(*nearest)), stepText(trace_.get(), at))
                 : QString();
}

QString CreditPanel::subject() const {
  const QString name = view_->currentText();
  return view() == View::parameters ? tr("%1 of %2").arg(name, nameOf(chosenRule())) : name;
}

QString CreditPanel::dataAsCsv() const {
  if (!emptyReason().isEmpty()) return {};
  QByteArray text;
  const auto cell = [](const QString& of) { return csvCell(of).toUtf8(); };
  if (view() == View::rules) {
    text =
        "rule,title,year,gradient,faces,local,sparse,numbers kept,operations of a step,power of d_s kept,power of d_s a step,exact "
        "here,why not\n";
    for (const RuleTable::Rule& rule : table_->rules)
      text += cell(QString::fromStdString(rule.id)) + ',' + cell(QString::fromStdString(rule.title)) + ',' + QByteArray::number(rule.year) +
              ',' + cell(QString::fromStdString(rule.gradient)) + ',' + (rule.past_facing ? "past" : "future") + ',' +
              (rule.local ? "1," : "0,") + (rule.sparse ? "1," : "0,") + cell(QString::fromStdString(rule.memory)) + ',' +
              cell(QString::fromStdString(rule.time)) + ',' + csvNumber(rule.memory_power) + ',' + csvNumber(rule.time_power) + ',' +
              (rule.exact_here ? "1," : "0,") + cell(rule.why_not.empty() ? QString() : windowText(rule.why_not)) + '\n';
    return QString::fromUtf8(text);
  }
  if (view() == View::training) return trainingAsCsv();
  if (view() == View::delays) {
    text = "delay";
    for (const CreditData::Rule& rule : data_.rules)
      text += ',' + cell(tr("angle of %1").arg(rule.id)) + ',' + cell(tr("ratio of %1").arg(rule.id));
    text += '\n';
    const std::size_t delays = data_.rules.front().delay_angle.size();
    for (std::size_t d = 0; d < delays; ++d) {
      text += QByteArray::number(static_cast<qulonglong>(d));
      for (const CreditData::Rule& rule : data_.rules) text += ',' + csvNumber(rule.delay_angle[d]) + ',' + csvNumber(rule.delay_ratio[d]);
      text += '\n';
    }
    return QString::fromUtf8(text);
  }
  if (view() == View::cost) {
    text = "rule,exact,repeats,bytes,seconds a step,angle of the sum\n";
    for (const CreditData::Rule& rule : data_.rules)
      text += cell(rule.id) + ',' + (rule.exact ? "1," : "0,") + csvNumber(rule.repeats) + ',' + csvNumber(rule.bytes) + ',' +
              csvNumber(rule.seconds) + ',' + csvNumber(rule.angle_of_sum) + '\n';
    return QString::fromUtf8(text);
  }
  StepTable table(*trace_);
  table.addSteps(data_.steps);
  const auto add = [&](const QString& name, const CreditData::Values& values) {
    table.add(name, data_.steps, [&values](std::int64_t row) { return csvNumber(values[static_cast<std::size_t>(row)]); });
  };
  for (const CreditData::Rule& rule : data_.rules) {
    if (view() == View::parameters) {
      if (rule.id != chosenRule()) continue;
      for (const CreditData::Rule::Weight& weight : rule.weights) {
        add(tr("angle of %1 by %2").arg(rule.id, weight.name), weight.angle);
        add(tr("ratio of %1 by %2").arg(rule.id, weight.name), weight.ratio);
      }
      continue;
    }
    add(tr("angle of %1").arg(rule.id), rule.angle);
    add(tr("ratio of %1").arg(rule.id), rule.ratio);
    add(tr("bias of %1").arg(rule.id), rule.bias);
    add(tr("deviation of %1").arg(rule.id), rule.deviation);
  }
  return table.csv();
}

RECLAB_PANEL_IS(credit, CreditPanel)

}  // namespace reclab
