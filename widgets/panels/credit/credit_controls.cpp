// SPDX-License-Identifier: GPL-3.0-or-later
// The row of controls of the credit panel: the view, the rule, the choices of a comparison and its button.
#include <QMouseEvent>
#include <QSignalBlocker>
#include <QStyle>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "box_layout.h"
#include "panels/credit/credit.h"
#include "plain_text.h"
#include "window_text.h"

namespace reclab {

constexpr int credit_gap = 8;
constexpr int room_of_box = 36;  // beside the words of a box, for its frame and arrow

void CreditPanel::makeControls() {
  view_ = addChoice("view", false, tr("What is drawn of the comparison"));
  const std::initializer_list<std::pair<QString, QString>> views{
      {tr("Steps"), tr("The angle between the gradient of each step's loss and the true one, and the ratio of their norms")},
      {tr("Delays"), tr("Angle or ratio by how many steps lie between the loss and the step at which the weights act")},
      {tr("Parameters"), tr("Angle or ratio at each step, by parameter, of one rule")},
      {tr("Noise"), tr("Bias and deviation over repeats with other signs")},
      {tr("Cost"), tr("Memory and time of a step, as measured here, beside those of the rule's equations")},
      {tr("Training"), tr("The losses of the same model trained by each of the rules, from the same weights with the same sequences")},
      {tr("Map of rules"), tr("All learning rules: what their gradient is, which way they face, what they cost")}};
  for (const auto& [text, tip] : views) {
    view_->addItem(text);
    view_->setItemData(view_->count() - 1, safeTip(tip), Qt::ToolTipRole);
  }
  rule_ = addChoice("rule", false, tr("The learning rule that is looked at"));
  for (QComboBox* box : {view_, rule_}) box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  more_ = new QToolButton;
  more_->setObjectName(QStringLiteral("creditChoices"));
  more_->setText(tr("Choices…"));
  more_->setToolTip(tr("Which rules are compared, how often, with which signs, how far back, and what the maps show"));
  more_->setAutoRaise(true);
  compare_ = new QPushButton;
  compare_->setObjectName(QStringLiteral("creditStart"));
  controls_->addStretch();
  controls_->addWidget(more_);
  controls_->addWidget(compare_);

  popup_ = new Popup(this);
  auto* sheet = static_cast<QVBoxLayout*>(popup_->layout());
  rule_list_ = boxLayout<QVBoxLayout>(nullptr, 4);
  sheet->addLayout(rule_list_);
  const auto numbers = [](QComboBox* box, std::initializer_list<int> all, int usual) {
    for (const int one : all) box->addItem(QString::number(one), one);
    box->setCurrentIndex(box->findData(usual));
  };
  repeats_ =
      makeChoice("repeats", false, tr("How often a rule that draws signs is repeated with others; bias and deviation are over them"));
  numbers(repeats_, {1, 2, 4, 8, 16, 32, 64, 128}, 8);
  popup_->addChoice(tr("repeats"), repeats_);
  signs_ = new QSpinBox;
  signs_->setObjectName(QStringLiteral("signs"));
  signs_->setRange(0, 9999);
  signs_->setAccessibleName(tr("Signs"));
  signs_->setToolTip(tr("Of rules that draw signs: another number, other signs"));
  popup_->addChoice(tr("signs"), signs_);
  delays_ = makeChoice("delays", false, tr("How many steps back from a loss its credit is followed"));
  numbers(delays_, {4, 8, 16, 32, 64, 128}, 16);
  popup_->addChoice(tr("delays"), delays_);
  order_ = makeChoice("order", false, tr("Of SnAp-n: the steps within which a weight reaches the entries of the state that are kept"));
  numbers(order_, {1, 2, 3, 4, 6, 8}, 1);
  popup_->addChoice(tr("n of SnAp-n"), order_);
  terms_ = makeChoice("terms", false, tr("Of Neumann-RBP: the terms of its series; of CG-RBP: the most iterations"));
  numbers(terms_, {1, 2, 5, 10, 20, 50, 100}, 20);
  popup_->addChoice(tr("terms of Neumann-RBP and CG-RBP"), terms_);

  measure_ = makeChoice("measure", false, tr("What the colours of the maps by delay and by parameter stand for"));
  measure_->addItem(tr("angle"), QStringLiteral("angle"));
  measure_->addItem(tr("ratio of norms"), QStringLiteral("ratio"));
  popup_->addChoice(tr("maps show"), measure_);

  makeTrainingSheet();
  for (QComboBox* box : sheetBoxes()) box->setProperty("usual", box->currentIndex());

  bar_ = new QProgressBar;
  bar_->setRange(0, 1000);
  bar_->setTextVisible(false);
  bar_->setFixedHeight(3);
  QSizePolicy kept = bar_->sizePolicy();
  kept.setRetainSizeWhenHidden(true);
  bar_->setSizePolicy(kept);
  bar_->hide();

  connect(view_, &QComboBox::activated, this, [this] {
    by_hand_ = true;
    refresh();
  });
  connect(rule_, &QComboBox::activated, this, [this] {
    of_rule_ = chosenRule();
    refresh();
  });
  connect(more_, &QToolButton::clicked, this, [this] { (view() == View::training ? training_popup_ : popup_)->openUnder(more_); });
  connect(compare_, &QPushButton::clicked, this, [this] { ask(state().running ? StudyChoice::Act::stop : StudyChoice::Act::compute); });
  connect(measure_, &QComboBox::currentIndexChanged, this, &CreditPanel::refresh);
  for (QComboBox* box : {repeats_, delays_, order_, terms_})
    connect(box, &QComboBox::currentIndexChanged, this, &CreditPanel::showControls);
  connect(signs_, &QSpinBox::valueChanged, this, &CreditPanel::showControls);

  // Above the picture and above the sentence alike. It never asks for more width than there is.
  control_row_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  control_row_->setMinimumWidth(0);
  auto* all = static_cast<QVBoxLayout*>(layout());
  all->setSpacing(0);
  all->insertWidget(0, control_row_);
  all->insertWidget(1, bar_);
  fillRules();
}

/// A box each for the rules that have a gradient of each step. Those that do not take this model say why.
void CreditPanel::fillRules() {
  std::vector<const RuleTable::Rule*> offered;
  if (table_)
    for (const RuleTable::Rule& rule : table_->rules)
      if (rule.step_by_step) offered.push_back(&rule);
  while (rule_boxes_.size() > offered.size()) {
    delete rule_boxes_.back();
    rule_boxes_.pop_back();
  }
  while (rule_boxes_.size() < offered.size()) {
    auto* box = new QCheckBox;
    rule_boxes_.push_back(box);
    rule_list_->addWidget(box);
    connect(box, &QCheckBox::clicked, this, [this, box](bool on) {
      const QString rule = box->property("rule").toString();
      chosen_.removeAll(rule);
      if (on) chosen_ << rule;
      refresh();
    });
  }
  for (std::size_t i = 0; i < offered.size(); ++i) {
    const RuleTable::Rule& rule = *offered[i];
    QCheckBox* box = rule_boxes_[i];
    const QString id = QString::fromStdString(rule.id);
    box->setProperty("rule", id);
    box->setObjectName(QStringLiteral("rule.") + id);
    box->setText(buttonText(QString::fromStdString(rule.name)));
    const Sentence& why_not = rule.why_not_compared;
    box->setEnabled(why_not.empty());
    box->setToolTip(safeTip(why_not.empty() ? QString::fromStdString(rule.title + ". " + rule.idea) : windowText(why_not)));
    box->setChecked(chosen_.contains(id));
  }
}

void CreditPanel::showControls() {
  fillRules();
  fillTrainedRules();
  view_->setCurrentIndex(static_cast<int>(view()));
  const bool trains = view() == View::training;
  const bool one = view() == View::parameters || view() == View::cost || view() == View::rules;
  QStringList rules;
  if (view() == View::rules && table_)
    for (const RuleTable::Rule& rule : table_->rules) rules << QString::fromStdString(rule.id);
  else
    rules = data_.ids();
  {
    const QSignalBlocker quiet(rule_);
    rule_->clear();
    for (const QString& rule : rules) rule_->addItem(nameOf(rule), rule);
    rule_->setCurrentIndex(std::max(rules.isEmpty() ? -1 : 0, static_cast<int>(rules.indexOf(of_rule_))));
  }
  of_one_ = one && !rules.isEmpty();
  const bool running = state().running, nothing = !running && (trains ? trainedRules() : asked()).isEmpty();
  compare_->setEnabled(!nothing);
  compare_->setToolTip(safeTip(running && trains ? tr("Stop the training; curves that were made before stay")
                               : running         ? tr("Stop the comparison; one that was made before stays")
                               : nothing         ? tr("No rule is chosen that takes this model: choose one under Choices")
                               : trains          ? tr("Train this model by each of the chosen rules, from the same weights")
                                                 : tr("Compare the gradients of the chosen rules with the true one")));
  more_->setToolTip(safeTip(trains ? tr("Which rules train the model, for how many steps, at which rate, with how many sequences")
                                   : tr("Which rules are compared, how often, with which signs, how far back, and what the maps show")));
  const bool stands_out = (trains ? curvesOutOfDate() : outOfDate()) && !running;
  if (compare_->property("primary").toBool() != stands_out) {
    compare_->setProperty("primary", stands_out);  // what is shown is not of the present choices
    compare_->style()->unpolish(compare_);
    compare_->style()->polish(compare_);
  }
  copy_command_->setText(trains ? tr("Copy the reclab line that repeats the training")
                                : tr("Copy the reclab line that repeats the comparison"));
  copy_command_->setEnabled(!(trains ? curves_.command : data_.command).isEmpty());
  bar_->setVisible(running);
  bar_->setValue(static_cast<int>(std::lround(1000 * state().fraction)));
  control_row_->setVisible(trace_ != nullptr || table_ != nullptr);
  arrangeControls();
}

/// Where there is little room words are short; where there is less, the map does without its box of rules, whose tiles are clicked, and a
/// view of one rule without the button, which the others have.
void CreditPanel::arrangeControls() {
  const bool button = !offer_->isVisibleTo(this), map = view() == View::rules;
  rule_->setMaximumWidth(QWIDGETSIZE_MAX);
  int taken = 0;
  for (int stage = 0; stage < 3; ++stage) {
    more_->setText(stage > 0 ? QStringLiteral("…") : tr("Choices…"));
    const bool trains = view() == View::training, running = state().running;
    compare_->setText(running               ? tr("Stop")
                      : trains && stage > 0 ? tr("Train")
                      : trains              ? tr("Train rules")
                      : stage > 0           ? tr("Compare")
                                            : tr("Compare rules"));
    rule_->setVisible(of_one_ && !(map && stage == 2));
    compare_->setVisible(button && (map || !of_one_ || stage < 2 || running));
    taken = credit_gap;
    for (const QWidget* widget : std::initializer_list<QWidget*>{view_, rule_, more_, compare_})
      if (widget->isVisibleTo(control_row_)) taken += widget->sizeHint().width() + credit_gap;
    if (taken <= width()) break;
  }
  const int lacks = taken - width(), least = rule_->fontMetrics().horizontalAdvance(rule_->currentText()) + room_of_box;
  if (lacks > 0) rule_->setMaximumWidth(std::max(least, rule_->sizeHint().width() - lacks));
}

void CreditPanel::resizeEvent(QResizeEvent* event) {
  PlotPanel::resizeEvent(event);
  arrangeControls();
  if (std::exchange(low_, isLow()) != low_) refresh();
}

void CreditPanel::showEvent(QShowEvent* event) {
  PlotPanel::showEvent(event);
  askRules();
}

/// The boxes of both sheets. They are chosen whether a sheet is open or not.
std::array<QComboBox*, 8> CreditPanel::sheetBoxes() const {
  return {repeats_, delays_, order_, terms_, measure_, train_steps_, train_rate_, train_batch_};
}

QVariantMap CreditPanel::choices() const {
  QVariantMap chosen{{QStringLiteral("rules"), chosen_}, {QStringLiteral("signs"), signs_->value()}};
  if (trained_ != usuallyTrained()) chosen.insert(QStringLiteral("trained"), trained_);
  if (by_hand_) chosen.insert(QStringLiteral("view"), views()[static_cast<int>(view())]);
  if (!of_rule_.isEmpty()) chosen.insert(QStringLiteral("rule"), of_rule_);
  for (const QComboBox* box : sheetBoxes())
    if (box->currentIndex() != box->property("usual").toInt()) chosen.insert(box->objectName(), box->currentData().toString());
  return chosen;
}

void CreditPanel::setChoices(const QVariantMap& saved) {
  if (const QVariant rules = saved.value(QStringLiteral("rules")); rules.canConvert<QStringList>()) chosen_ = rules.toStringList();
  chosen_.removeDuplicates();
  const QVariant trained = saved.value(QStringLiteral("trained"));
  trained_ = trained.canConvert<QStringList>() ? trained.toStringList() : usuallyTrained();
  trained_.removeDuplicates();
  const QSignalBlocker quiet(signs_);
  signs_->setValue(saved.value(QStringLiteral("signs")).toInt());
  of_rule_ = saved.value(QStringLiteral("rule")).toString();
  for (QComboBox* box : sheetBoxes()) {
    int index = box->property("usual").toInt();
    for (int i = 0; i < box->count(); ++i)
      if (box->itemData(i).toString() == saved.value(box->objectName()).toString()) index = i;
    box->setCurrentIndex(index);
  }
  const auto view = views().indexOf(saved.value(QStringLiteral("view")).toString());
  by_hand_ = view >= 0;
  view_->setCurrentIndex(by_hand_ ? static_cast<int>(view) : 0);
  refresh();
}

bool CreditPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched == plot_ && event->type() == QEvent::MouseButtonPress && view() == View::rules) {
    const auto* mouse = static_cast<QMouseEvent*>(event);
    const RuleTable::Rule* rule = mouse->button() == Qt::LeftButton ? map_->ruleAt(mouse->position()) : nullptr;
    if (rule) {
      of_rule_ = QString::fromStdString(rule->id);
      refresh();
      return true;
    }
  }
  return PlotPanel::eventFilter(watched, event);
}

}  // namespace reclab
