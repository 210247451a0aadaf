// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/evaluate_form.h"

#include <QCheckBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/look/look.h"
#include "models/registry.h"
#include "plain_text.h"
#include "window_text.h"

namespace reclab {

EvaluateForm::EvaluateForm(LibraryPtr library, std::vector<JudgedRequest> models, Scheduler& scheduler, QWidget* parent)
    : QDialog(parent),
      library_(std::move(library)),
      models_(std::move(models)),
      job_(scheduler, {},
           {.progressed =
                [this](const Nothing&, double fraction, const QString& stage) {
                  bar_->setValue(static_cast<int>(1000.0 * fraction));
                  sentence_->setText(stage);
                },
            .finished =
                [this](const Nothing&, const EvaluationPtr& table) {
                  emit evaluated(table);
                  accept();
                },
            .ended =
                [this](const Nothing&, const Ending& ending) {
                  bar_->hide();
                  tell();
                  if (ending.how == Ending::How::failed) sentence_->setText(ending.sentence);
                }}) {
  setObjectName("evaluateForm");
  setWindowTitle(tr("Evaluate"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(16, 14, 16, 14);
  column->setSpacing(8);
  column->addWidget(label(tr("Judged on many sequences that no training saw"), "title", this));
  auto* about = plainLabel(QString(), this);
  about->setWordWrap(true);
  about->setProperty("role", "muted");
  const Sequence& sequence = *models_.front().request.sequence;
  about->setText(tr("%1 on sequences like %2: loss and metric by length, position, delay and class, with intervals over the sequences, "
                    "beside baselines on the "
                    "same ones.")
                     .arg(QString::fromStdString(models_.front().name), QString::fromStdString(sequence.name)));
  column->addWidget(about);
  auto* form = new QFormLayout;
  const auto edit = [&](const char* name, const QString& title, const QString& text, const QString& tip) {
    auto* made = new QLineEdit(text, this);
    made->setObjectName(QStringLiteral("evaluate.") + name);
    made->setToolTip(safeTip(tip));
    form->addRow(title, made);
    connect(made, &QLineEdit::textChanged, this, &EvaluateForm::tell);
    return made;
  };
  QStringList lengths;
  const bool file = choice_of(models_.front().request.sequence).is_file();
  // A file's windows are no longer than what is held out of it.
  for (const std::int64_t times : {1, 2, 4, 8})
    if (!file) lengths << QString::number(sequence.length * times);
  lengths_ = edit("lengths", tr("Lengths"), file ? QStringLiteral("100") : lengths.join(", "),
                  tr("Steps of the sequences, or of a file's windows, between commas"));
  sequences_ = new QSpinBox(this);
  sequences_->setObjectName("evaluate.sequences");
  sequences_->setRange(1, 1'000'000);
  sequences_->setValue(100);
  sequences_->setGroupSeparatorShown(true);
  sequences_->setToolTip(safeTip(tr("Of each length and seed")));
  form->addRow(tr("Sequences"), sequences_);
  seeds_ = edit("seeds", tr("Seeds"), QString(), tr("Of the task's sequences, between commas; none: that of the run"));
  seeds_->setPlaceholderText(tr("that of the run"));
  seeds_->setEnabled(!file);
  pinned_ = new QCheckBox(models_.size() == 2 ? tr("The pinned run too") : tr("The %1 pinned runs too").arg(models_.size() - 1), this);
  pinned_->setObjectName("evaluate.pinned");
  pinned_->setChecked(models_.size() > 1);
  pinned_->setVisible(models_.size() > 1);
  form->addRow(QString(), pinned_);
  column->addLayout(form);
  sentence_ = plainLabel({}, this);
  sentence_->setWordWrap(true);
  sentence_->setMinimumHeight(2 * sentence_->fontMetrics().lineSpacing());
  sentence_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  column->addWidget(sentence_);
  bar_ = new QProgressBar(this);
  bar_->setRange(0, 1000);
  bar_->setTextVisible(false);
  bar_->setFixedHeight(6);
  bar_->hide();
  column->addWidget(bar_);
  column->addStretch();
  auto* row = new QHBoxLayout;
  auto* close = new QPushButton(tr("Cancel"), this);
  start_ = new QPushButton(tr("Evaluate"), this);
  start_->setObjectName("evaluate.start");
  start_->setDefault(true);
  row->addStretch();
  row->addWidget(close);
  row->addWidget(start_);
  column->addLayout(row);
  connect(start_, &QPushButton::clicked, this, &EvaluateForm::startOrStop);
  connect(close, &QPushButton::clicked, this, &QDialog::reject);
  connect(this, &QDialog::rejected, this, [this] { job_.drop(); });
  resize(520, sizeHint().height());
  tell();
}

QString EvaluateForm::sentence() const { return sentence_->text(); }

std::optional<EvaluationPlan> EvaluateForm::plan() {
  FieldTexts values{{"lengths", lengths_->text().simplified().remove(' ').toStdString()},
                    {"sequences", std::to_string(sequences_->value())}};
  if (seeds_->isEnabled() && !seeds_->text().trimmed().isEmpty())
    values.emplace_back("seeds", seeds_->text().simplified().remove(' ').toStdString());
  try {
    EvaluationPlan made = plan_of(evaluation_fields(), values);
    if (made.lengths.empty()) throw Error("Say at least one length.");
    return made;
  } catch (const Error& error) {
    sentence_->setText(windowText(error));
    return std::nullopt;
  }
}

void EvaluateForm::tell() {
  const bool busy = job_.running() || job_.waiting();
  start_->setText(busy ? tr("Stop") : tr("Evaluate"));
  for (QWidget* one : std::initializer_list<QWidget*>{lengths_, sequences_, pinned_}) one->setEnabled(!busy);
  if (busy) return;
  const auto its = plan();
  start_->setEnabled(its.has_value());
  if (its) sentence_->clear();
}

void EvaluateForm::startOrStop() {
  if (job_.running() || job_.waiting()) return job_.stop();
  auto its = plan();
  if (!its) return;
  std::vector<JudgedRequest> beside(models_.begin() + 1, models_.end());
  if (!pinned_->isChecked()) beside.clear();
  bar_->setValue(0);
  bar_->show();
  job_.start({}, [library = library_, own = models_.front(), beside, plan = *its](const auto& report, std::stop_token stop) {
    return std::make_shared<const EvaluationTable>(
        evaluate(builtin_registry(), library->presets, own, beside, plan, report.progress, stop));
  });
  tell();
}

}  // namespace reclab
