// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/sweep_form.h"

#include <QCheckBox>
#include <QComboBox>
#include <QCompleter>
#include <QDir>
#include <QFileInfo>
#include <QFormLayout>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "files/files.h"
#include "gui/dialogs/file_dialogs.h"
#include "gui/look/look.h"
#include "gui/session/sentences.h"
#include "plain_text.h"
#include "plot/theme.h"
#include "sweeps/cells.h"
#include "sweeps/compute.h"
#include "window_text.h"

namespace reclab {
namespace {

using Json = nlohmann::ordered_json;

constexpr int firstAxes = 2;

/// A number, true or false as such, all else as a text.
Json valueOf(const QString& text) {
  const Json parsed = Json::parse(text.toStdString(), nullptr, false);
  return parsed.is_number() || parsed.is_boolean() || parsed.is_string() ? parsed : Json(text.toStdString());
}

Json axisOf(const SweepDraft::Axis& axis) {
  static const QRegularExpression range(QStringLiteral(R"(^(\S+?)\s*\.\.\s*(\S+)\s+in\s+(\d+)(\s+log)?$)"));
  const QString text = axis.values.trimmed();
  if (const auto found = range.match(text); found.hasMatch()) {
    const Json from = valueOf(found.captured(1)), to = valueOf(found.captured(2));
    Json made{{"from", from}, {"to", to}, {"count", found.captured(3).toLongLong()}};
    if (!found.captured(4).isEmpty()) made["scale"] = "log";
    if (from.is_number_integer() && to.is_number_integer()) made["whole"] = true;
    return made;
  }
  Json list = Json::array();
  for (const QString& one : text.split(',', Qt::SkipEmptyParts))
    if (!one.trimmed().isEmpty()) list.push_back(valueOf(one.trimmed()));
  return list;
}

}  // namespace

std::string plan_json(const SweepDraft& draft) {
  Json plan{{"base", draft.line.simplified().toStdString()}, {"axes", Json::object()}, {"measure", Json::array()}};
  for (const SweepDraft::Axis& axis : draft.axes) {
    const std::string name = axis.name.trimmed().toStdString();
    if (name.empty() && axis.values.trimmed().isEmpty()) continue;
    if (name.empty()) throw Error("The values " + printable(axis.values.toStdString()) + " are of no option; name it, or leave them out.");
    if (plan["axes"].contains(name)) throw Error(printable(name) + " is there twice; leave one of them out.");
    plan["axes"][name] = axisOf(axis);
  }
  for (const QString& one : draft.measures.split(',', Qt::SkipEmptyParts))
    if (!one.trimmed().isEmpty()) plan["measure"].push_back(one.trimmed().toStdString());
  if (draft.keeps) plan["keep"] = "training";
  return plan.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

SweepForm::SweepForm(LibraryPtr library, const FileChooser* chooser, const SweepDraft& draft, const QStringList& options, QWidget* parent)
    : QDialog(parent), library_(std::move(library)), chooser_(chooser), options_(options) {
  setObjectName("sweepForm");
  setWindowTitle(tr("New sweep"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(16, 14, 16, 14);
  column->setSpacing(8);
  column->addWidget(label(tr("One line for all values of some options"), "title", this));
  line_ = new QPlainTextEdit(draft.line, this);
  line_->setObjectName("sweep.line");
  line_->setAccessibleName(tr("Line of reclab"));
  line_->setFont(monoFont());
  line_->setTabChangesFocus(true);
  line_->setFixedHeight(line_->fontMetrics().lineSpacing() * 4 + 12);
  column->addWidget(line_);
  column->addWidget(label(tr("Varies"), "section", this));
  grid_ = new QGridLayout;
  grid_->setColumnStretch(1, 1);
  column->addLayout(grid_);
  more_ = new QPushButton(tr("Another option"), this);
  more_->setObjectName("sweep.more");
  connect(more_, &QPushButton::clicked, this, [this] {
    addAxis({}, {});
    axes_.back().name->setFocus();
  });
  column->addWidget(more_, 0, Qt::AlignLeft);
  auto* form = new QFormLayout;
  measures_ = new QLineEdit(draft.measures, this);
  measures_->setObjectName("sweep.measures");
  measures_->setToolTip(
      safeTip(tr("Between commas: loss, metric, baseline, batch_loss, steps of a training; and the measures of lessons, of runs too")));
  form->addRow(tr("Measures"), measures_);
  keeps_ = new QCheckBox(tr("Keep weights and history of each training"), this);
  keeps_->setObjectName("sweep.keeps");
  keeps_->setChecked(draft.keeps);
  form->addRow(QString(), keeps_);
  auto* place = new QHBoxLayout;
  folder_ = new QLineEdit(this);
  folder_->setObjectName("sweep.folder");
  folder_->setPlaceholderText(tr("a new folder, or that of a sweep"));
  auto* browse = new QToolButton(this);
  browse->setIcon(icon("open"));
  browse->setText(tr("Choose the folder"));
  browse->setToolTip(safeTip(browse->text()));
  connect(browse, &QToolButton::clicked, this, [this] {
    if (!chooser_->folder) return;
    const QString chosen = chooser_->folder(this, tr("The folder for the cells"), {});
    if (!chosen.isEmpty()) folder_->setText(QDir::toNativeSeparators(chosen));
  });
  place->addWidget(folder_, 1);
  place->addWidget(browse);
  form->addRow(tr("Folder"), place);
  column->addLayout(form);
  sentence_ = plainLabel({}, this);
  sentence_->setObjectName("sweep.sentence");
  sentence_->setWordWrap(true);
  sentence_->setMinimumHeight(2 * sentence_->fontMetrics().lineSpacing());
  sentence_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  column->addWidget(sentence_);
  column->addStretch();
  auto* row = new QHBoxLayout;
  make_ = new QPushButton(tr("Make the sweep"), this);
  make_->setObjectName("sweep.make");
  make_->setDefault(true);
  auto* cancel = new QPushButton(tr("Cancel"), this);
  row->addStretch();
  row->addWidget(cancel);
  row->addWidget(make_);
  column->addLayout(row);
  connect(make_, &QPushButton::clicked, this, &SweepForm::make);
  connect(cancel, &QPushButton::clicked, this, &QDialog::reject);
  connect(line_, &QPlainTextEdit::textChanged, this, &SweepForm::tell);
  for (QLineEdit* one : {measures_, folder_}) connect(one, &QLineEdit::textChanged, this, &SweepForm::tell);
  connect(keeps_, &QCheckBox::toggled, this, &SweepForm::tell);
  for (const SweepDraft::Axis& axis : draft.axes) addAxis(axis.name, axis.values);
  while (std::ssize(axes_) < firstAxes) addAxis({}, {});
  resize(640, sizeHint().height());
  tell();
}

SweepForm::~SweepForm() = default;

void SweepForm::addAxis(const QString& name, const QString& values) {
  const int row = static_cast<int>(axes_.size());
  auto* names = new QComboBox(this);
  names->setEditable(true);
  names->setInsertPolicy(QComboBox::NoInsert);
  names->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  names->setMinimumContentsLength(20);
  names->addItems(options_);
  names->setCurrentText(name);
  names->setObjectName(QStringLiteral("sweep.axis%1").arg(row));
  names->setAccessibleName(tr("Option that varies"));
  names->completer()->setFilterMode(Qt::MatchContains);
  names->completer()->setCompletionMode(QCompleter::PopupCompletion);
  auto* its = new QLineEdit(values, this);
  its->setObjectName(QStringLiteral("sweep.values%1").arg(row));
  its->setAccessibleName(tr("Its values"));
  its->setPlaceholderText(row == 0 ? tr("1, 2, 3") : tr("1, 2, 3 or 4..64 in 5 log"));
  its->setToolTip(safeTip(tr("A list, 4, 8, 16, or so many values of a range, 4..64 in 5, evenly or with log behind it by equal factors")));
  grid_->addWidget(names, row, 0);
  grid_->addWidget(its, row, 1);
  axes_.push_back({names, its});
  connect(names, &QComboBox::currentTextChanged, this, &SweepForm::tell);
  connect(its, &QLineEdit::textChanged, this, &SweepForm::tell);
}

SweepDraft SweepForm::draft() const {
  SweepDraft draft{line_->toPlainText(), {}, measures_->text(), keeps_->isChecked()};
  for (const Row& row : axes_) draft.axes.push_back({row.name->currentText(), row.values->text()});
  return draft;
}

QString SweepForm::sentence() const { return sentence_->text(); }

void SweepForm::tell() {
  if (making_) return;
  QString said;
  bool good = false;
  try {
    const SweepPlan plan = sweep_plan(plan_json(draft()), tr("The plan").toStdString());
    keeps_->setEnabled(plan.base.trains);
    good = true;
    said = plan.cells() == 1 ? tr("One cell.") : tr("%1 cells.").arg(grouped(plan.cells()));
    if (folder_->text().trimmed().isEmpty()) {
      said += ' ' + tr("Choose a folder for them.");
      good = false;
    }
  } catch (const Error& error) {
    said = windowText(error);
  }
  sentence_->setText(said);
  make_->setEnabled(good);
}

void SweepForm::busy(bool is) {
  making_ = is;
  for (QWidget* one : std::initializer_list<QWidget*>{line_, measures_, keeps_, folder_, more_, make_}) one->setEnabled(!is);
  for (const Row& row : axes_) {
    row.name->setEnabled(!is);
    row.values->setEnabled(!is);
  }
}

/// The measures are taken of the first cell before anything is written.
void SweepForm::make() {
  if (making_) return;
  const QString folder = QDir(folder_->text().trimmed()).absolutePath();
  if (QFileInfo::exists(folder + "/cells.jsonl") &&
      !mayReplace(this, tr("New sweep"),
                  tr("A sweep is in %1 already. Its plan is replaced; cells that are done and belong to both are used again.")
                      .arg(QDir::toNativeSeparators(folder))))
    return;
  busy(true);
  sentence_->setText(tr("Measuring the first cell before the others are written."));
  worker_.replace([this, folder, json = plan_json(draft()), library = library_](const std::stop_token& stop) {
    QString problem;
    try {
      const SweepPlan plan = sweep_plan(json, folder.toStdString() + "/plan.json");
      check_measures(plan, library->presets, stop);
      SweepFolder::write(folder.toStdString(), plan, library->presets);
    } catch (const Cancelled&) {
      return;
    } catch (...) {
      problem = sentenceOf(std::current_exception());
    }
    QMetaObject::invokeMethod(this, [this, folder, problem] {
      busy(false);
      tell();
      if (!problem.isEmpty()) return sentence_->setText(problem);
      emit made(folder);
      accept();
    });
  });
}

}  // namespace reclab
