// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/learning/training_settings.h"

#include <QDoubleValidator>
#include <QGridLayout>
#include <QLocale>
#include <algorithm>
#include <cmath>

#include "gui/window/look.h"
#include "plain_text.h"

namespace reclab {
namespace {

constexpr int mostSteps = 10'000'000, mostBatch = 4096, mostLength = 1'000'000;

QString textOf(double value) { return QLocale::c().toString(value, 'g', 6); }

}  // namespace

TrainingSettings::TrainingSettings(QWidget* parent) : QWidget(parent) {
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(12, 10, 12, 10);
  grid->setHorizontalSpacing(12);
  grid->setVerticalSpacing(6);
  int row = 0;
  const auto place = [&](const QString& words, QWidget* editor, const QString& tip) {
    auto* name = label(words, "muted", this);
    editor->setToolTip(safeTip(tip));
    editor->setMinimumWidth(120);
    grid->addWidget(name, row, 0);
    grid->addWidget(editor, row++, 1);
    return name;
  };
  const auto spin = [&](const QString& id, const QString& words, int low, int high, const QString& tip) {
    auto* box = new QSpinBox(this);
    box->setObjectName("training." + id);
    box->setRange(low, high);
    box->setKeyboardTracking(false);
    box->setGroupSeparatorShown(true);
    QWidget* name = place(words, box, tip);
    connect(box, &QSpinBox::valueChanged, this, &TrainingSettings::take);
    return std::pair(box, name);
  };
  const auto number = [&](const QString& id, const QString& words, double high, const QString& tip) {
    auto* line = new QLineEdit(this);
    line->setObjectName("training." + id);
    auto* valid = new QDoubleValidator(0.0, high, 12, line);
    valid->setLocale(QLocale::c());
    line->setValidator(valid);
    place(words, line, tip);
    connect(line, &QLineEdit::editingFinished, this, &TrainingSettings::take);
    return line;
  };
  const auto combo = [&](const QString& id, const QString& words, const QString& tip) {
    auto* box = new QComboBox(this);
    box->setObjectName("training." + id);
    place(words, box, tip);
    connect(box, &QComboBox::activated, this, &TrainingSettings::take);
    return box;
  };
  steps_ = spin("length", tr("number of steps"), 1, mostSteps, tr("How often the weights are changed, a batch each")).first;
  batch_ = spin("batch", tr("batch"), 1, mostBatch, tr("Sequences that a step learns from; the gradient is the mean of theirs")).first;
  optimiser_ = combo("optimiser", tr("optimiser"), tr("The rule by which gradients change weights, with the conventions of torch.optim"));
  for (const auto& [name, value] : {std::pair{"Adam", "adam"}, {"AdamW", "adamw"}, {"RMSProp", "rmsprop"}, {"SGD", "sgd"}})
    optimiser_->addItem(name, QString(value));
  rate_ = number("rate", tr("learning rate"), 1e3, tr("How far a step goes; the largest of the schedule"));
  schedule_ = combo("schedule", tr("schedule"), tr("How the rate goes over training: it stays, or falls to 0 as half a cosine"));
  schedule_->addItem(tr("constant"), QStringLiteral("constant"));
  schedule_->addItem(tr("cosine"), QStringLiteral("cosine"));
  warm_up_ = spin("warmUp", tr("warm-up steps"), 0, mostSteps, tr("Steps over which the rate rises to its largest")).first;
  momentum_ = number("momentum", tr("momentum"), 1.0, tr("Of SGD and RMSProp: the share of the last change that goes on"));
  decay_ = number("decay", tr("weight decay"), 1e3,
                  tr("Pulls weights towards 0: added to the gradient, or with AdamW to the weights themselves"));
  clip_ = number("clip", tr("clip norm at"), 1e6, tr("A gradient whose norm is larger is made so long; 0: none is"));
  truncate_ = spin("truncate", tr("truncate after"), 0, mostLength,
                   tr("Truncated backpropagation: weights change every so many steps of a sequence, and gradients go no further back; 0: "
                      "whole sequences"))
                  .first;
  const auto [window, windowName] = spin(
      "window", tr("window of the file"), 2, mostLength,
      tr("Steps of the file that are learned from at once, or as many as fit where it is short; the last fifth of the file is held out"));
  const auto [ahead, aheadName] =
      spin("ahead", tr("steps ahead"), 1, mostLength, tr("Of a file without a target: which of its coming values is to be foretold"));
  window_ = window;
  ahead_ = ahead;
  ofFiles_ = {window, windowName, ahead, aheadName};
  beside_ = new QCheckBox(tr("train pinned runs beside it"), this);
  beside_->setObjectName("training.beside");
  beside_->setToolTip(tr("On the same batches, in turn; their curves are in the Learning panel"));
  grid->addWidget(beside_, row, 0, 1, 2);
  connect(beside_, &QCheckBox::toggled, this, &TrainingSettings::take);
  setFile(false);
  show(choice_);
}

void TrainingSettings::setFile(bool isFile) {
  for (QWidget* one : ofFiles_) one->setVisible(isFile);
}

void TrainingSettings::show(const TrainingChoice& choice) {
  showing_ = true;
  steps_->setValue(static_cast<int>(choice.steps));
  batch_->setValue(static_cast<int>(choice.batch));
  optimiser_->setCurrentIndex(std::max(0, optimiser_->findData(QString::fromStdString(choice.optimiser))));
  rate_->setText(textOf(choice.rate));
  schedule_->setCurrentIndex(std::max(0, schedule_->findData(QString::fromStdString(choice.schedule))));
  warm_up_->setValue(static_cast<int>(choice.warm_up));
  momentum_->setText(textOf(choice.momentum));
  decay_->setText(textOf(choice.weight_decay));
  clip_->setText(textOf(choice.clip));
  truncate_->setValue(static_cast<int>(choice.truncate));
  window_->setValue(static_cast<int>(choice.window));
  ahead_->setValue(static_cast<int>(choice.ahead));
  beside_->setChecked(choice.beside);
  momentum_->setEnabled(choice.optimiser == "sgd" || choice.optimiser == "rmsprop");
  showing_ = false;
}

void TrainingSettings::take() {
  if (showing_) return;
  const auto real = [](const QLineEdit* line, double before) {
    bool fine = false;
    const double value = QLocale::c().toDouble(line->text(), &fine);
    return fine && std::isfinite(value) && value >= 0.0 ? value : before;
  };
  TrainingChoice next = choice_;
  next.steps = steps_->value();
  next.batch = batch_->value();
  next.optimiser = optimiser_->currentData().toString().toStdString();
  next.rate = real(rate_, choice_.rate);
  next.schedule = schedule_->currentData().toString().toStdString();
  next.warm_up = warm_up_->value();
  next.momentum = std::min(0.999999, real(momentum_, choice_.momentum));
  next.weight_decay = real(decay_, choice_.weight_decay);
  next.clip = real(clip_, choice_.clip);
  next.truncate = truncate_->value();
  next.window = window_->value();
  next.ahead = ahead_->value();
  next.beside = beside_->isChecked();
  setChoice(next);
}

void TrainingSettings::setChoice(const TrainingChoice& choice) {
  const bool same = choice == choice_;
  choice_ = choice;
  show(choice_);
  if (!same) emit changed();
}

QString TrainingSettings::summary() const {
  return tr("%1, rate %2, batch %3").arg(optimiser_->currentText(), textOf(choice_.rate)).arg(choice_.batch);
}

QVariantMap TrainingSettings::saved() const {
  return {{"length", static_cast<qlonglong>(choice_.steps)},
          {"batch", static_cast<qlonglong>(choice_.batch)},
          {"rate", choice_.rate},
          {"optimiser", QString::fromStdString(choice_.optimiser)},
          {"momentum", choice_.momentum},
          {"decay", choice_.weight_decay},
          {"schedule", QString::fromStdString(choice_.schedule)},
          {"warmUp", static_cast<qlonglong>(choice_.warm_up)},
          {"clip", choice_.clip},
          {"truncate", static_cast<qlonglong>(choice_.truncate)},
          {"window", static_cast<qlonglong>(choice_.window)},
          {"ahead", static_cast<qlonglong>(choice_.ahead)},
          {"beside", choice_.beside}};
}

/// A settings file may hold anything: what is out of range is passed over.
void TrainingSettings::restore(const QVariantMap& saved) {
  TrainingChoice next;
  const auto whole = [&](const char* key, const QSpinBox* box, std::int64_t standard) {
    bool fine = false;
    const qlonglong value = saved.value(key).toLongLong(&fine);
    return fine && value >= box->minimum() && value <= box->maximum() ? value : standard;
  };
  const auto real = [&](const char* key, double high, double standard) {
    bool fine = false;
    const double value = saved.value(key).toDouble(&fine);
    return fine && value >= 0.0 && value <= high ? value : standard;
  };
  const auto one = [&](const char* key, const QComboBox* box, const std::string& standard) {
    const QString value = saved.value(key).toString();
    return box->findData(value) >= 0 ? value.toStdString() : standard;
  };
  next.steps = whole("length", steps_, next.steps);
  next.batch = whole("batch", batch_, next.batch);
  next.rate = real("rate", 1e3, next.rate);
  next.optimiser = one("optimiser", optimiser_, next.optimiser);
  next.momentum = real("momentum", 0.999999, next.momentum);
  next.weight_decay = real("decay", 1e3, next.weight_decay);
  next.schedule = one("schedule", schedule_, next.schedule);
  next.warm_up = whole("warmUp", warm_up_, next.warm_up);
  next.clip = real("clip", 1e6, next.clip);
  next.truncate = whole("truncate", truncate_, next.truncate);
  next.window = whole("window", window_, next.window);
  next.ahead = whole("ahead", ahead_, next.ahead);
  next.beside = saved.value("beside", true).toBool();
  setChoice(next);
}

}  // namespace reclab
