// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/sequence_view.h"

#include <QButtonGroup>
#include <QCheckBox>
#include <QComboBox>
#include <QFileInfo>
#include <QFormLayout>
#include <QLabel>
#include <QLocale>
#include <QMenu>
#include <QPushButton>
#include <QSpinBox>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <limits>
#include <tuple>

#include "gui/look/look.h"
#include "gui/session/sentences.h"
#include "gui/views/inspector_view.h"
#include "gui/views/series_view.h"
#include "gui/views/whole_box.h"
#include "plain_text.h"
#include "sequence/format.h"

namespace reclab {

SequenceView::SequenceView(QWidget* parent) : QWidget(parent) {
  setObjectName("paper");
  setAttribute(Qt::WA_StyledBackground);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 8);
  column->setSpacing(8);

  auto* tabs = new QHBoxLayout;
  tabs->setSpacing(4);
  fileTab_ = new QPushButton(icon("file"), tr("File"), this);
  taskTab_ = new QPushButton(icon("task"), tr("Task"), this);
  auto* group = new QButtonGroup(this);
  for (QPushButton* tab : {fileTab_, taskTab_}) {
    tab->setCheckable(true);
    group->addButton(tab);
    tabs->addWidget(tab, 1);
  }
  fileTab_->setChecked(true);
  column->addLayout(tabs);

  pages_ = new QStackedWidget(this);
  column->addWidget(pages_);

  auto* filePage = new QWidget;
  auto* fileForm = new QFormLayout(filePage);
  fileForm->setContentsMargins(0, 0, 0, 0);
  fileForm->setVerticalSpacing(4);
  fileForm->setHorizontalSpacing(8);
  name_ = label(tr("No file yet"), "title");
  name_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  open_ = new QPushButton(icon("open"), tr("Open…"));
  open_->setToolTip(
      safeTip(tr("A %1 file (Ctrl+O), or drop one anywhere on the window").arg(QString::fromStdString(sequence_format_names()))));
  auto* nameRow = new QHBoxLayout;
  nameRow->addWidget(name_, 1);
  nameRow->addWidget(open_);
  fileForm->addRow(nameRow);
  columns_ = new QToolButton;
  columns_->setAccessibleName(tr("Columns"));
  columns_->setObjectName("field");
  columns_->setPopupMode(QToolButton::InstantPopup);
  columns_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  columns_->setToolTip(tr("Which columns are the input"));
  columnsMenu_ = new QMenu(columns_);
  columns_->setMenu(columnsMenu_);
  fileForm->addRow(tr("Columns"), columns_);
  time_ = new QComboBox;
  time_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  time_->setMinimumContentsLength(8);
  time_->setToolTip(tr("Which column is the time"));
  fileForm->addRow(tr("Time"), time_);
  target_ = new QComboBox;
  target_->setObjectName("target");
  target_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  target_->setMinimumContentsLength(8);
  target_->setToolTip(
      tr("What the outputs should be, for the loss: the next value of each input, or a column. A column that is picked leaves the inputs; "
         "tick it under Columns and it is both."));
  fileForm->addRow(tr("Target"), target_);
  missing_ = new QComboBox;
  missing_->setObjectName("missing");
  missing_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  missing_->setMinimumContentsLength(8);
  missing_->setPlaceholderText(tr("no cell is missing"));
  for (const auto& [how, text, tip] :
       {std::tuple{Missing::leave_out, tr("leave rows out"),
                   tr("A row with a missing cell is no step; the steps around it keep their times or numbers")},
        std::tuple{Missing::hold, tr("hold the last value"), tr("The last value before it, or the first where there is none before")},
        std::tuple{Missing::interpolate, tr("interpolate"), tr("On the line between its neighbours in time")},
        std::tuple{Missing::mask, tr("hold and mark"),
                   tr("The last value before it, and a channel for each column that has missing cells: 1 where the cell is there, 0 where "
                      "it is not")}}) {
    missing_->addItem(text, static_cast<int>(how));
    missing_->setItemData(missing_->count() - 1, safeTip(tip), Qt::ToolTipRole);
  }
  fileForm->addRow(tr("Missing"), missing_);
  standardise_ = new QCheckBox(tr("Standardise"));
  standardise_->setToolTip(tr("Subtract each column's mean and divide by its standard deviation"));
  standardise_->setChecked(true);
  fileForm->addRow(standardise_);
  pages_->addWidget(filePage);

  auto* taskPage = new QWidget;
  auto* taskForm = taskForm_ = new QFormLayout(taskPage);
  taskForm->setContentsMargins(0, 0, 0, 0);
  taskForm->setVerticalSpacing(4);
  taskForm->setHorizontalSpacing(8);
  task_ = new QComboBox;
  task_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  task_->setMinimumContentsLength(8);
  task_->setObjectName("task");
  taskForm->addRow(tr("Task"), task_);
  length_ = new IntBox;
  length_->setObjectName("length");
  length_->setRange(1, 1'000'000'000);  // as on the command line
  length_->setValue(200);
  length_->setKeyboardTracking(false);
  length_->setSuffix(tr(" steps"));
  length_->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
  taskForm->addRow(tr("Length"), length_);
  seed_ = new WholeBox;
  seed_->setObjectName("taskSeed");
  seed_->setValue(1);
  seed_->setToolTip(tr("What the sequence is drawn from; the model's own seed is in the inspector"));
  taskForm->addRow(tr("Seed"), seed_);
  modelsOwn_ = new ElidedButton(tr("The model's own task"));
  modelsOwn_->setProperty("link", true);
  modelsOwn_->setToolTip(tr("What the present model likes to be shown on"));
  taskForm->addRow(modelsOwn_);
  pages_->addWidget(taskPage);

  preview_ = new SeriesView(this);
  preview_->setMinimumHeight(44);
  preview_->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Expanding);
  preview_->setMaximumHeight(96);
  column->addWidget(preview_, 1);
  facts_ = label({}, "muted");
  facts_->setWordWrap(true);
  facts_->setFont(smallFont());
  column->addWidget(facts_);
  column->addStretch();

  connect(open_, &QPushButton::clicked, this, &SequenceView::openWanted);
  connect(fileTab_, &QPushButton::clicked, this, [this] {
    pages_->setCurrentIndex(0);
    if (lastFile_.isEmpty() || (shown_ && shown_->choice.is_file())) return;
    SequenceChoice choice;
    choice.file = lastFile_.toStdString();
    choice.load.standardise = standardise_->isChecked();
    choice.load.missing = lastMissing_;
    emit chosen(choice);
  });
  connect(taskTab_, &QPushButton::clicked, this, [this] {
    pages_->setCurrentIndex(1);
    if (!shown_ || shown_->choice.is_file()) chooseTask(TaskField::all);
  });
  connect(task_, &QComboBox::activated, this, [this] { chooseTask(TaskField::all); });
  connect(length_, &QSpinBox::valueChanged, this, [this] { chooseTask(TaskField::length); });
  connect(seed_, &WholeBox::valueChanged, this, [this] { chooseTask(TaskField::seed); });
  connect(modelsOwn_, &QPushButton::clicked, this, [this] { emit chosen(modelTask_); });
  connect(standardise_, &QCheckBox::toggled, this, [this](bool on) {
    if (showing_ || !shown_ || !shown_->choice.is_file()) return;
    SequenceChoice choice = shown_->choice;
    choice.load.standardise = on;
    emit chosen(choice);
  });
  connect(missing_, &QComboBox::activated, this, [this](int index) {
    if (!shown_ || !shown_->choice.is_file()) return;
    SequenceChoice choice = shown_->choice;
    choice.load.missing = static_cast<Missing>(missing_->itemData(index).toInt());
    emit chosen(choice);
  });
  connect(target_, &QComboBox::activated, this, [this](int index) {
    if (!shown_ || !shown_->choice.is_file()) return;
    SequenceChoice choice = shown_->choice;
    choice.load.target.clear();
    for (const QString& name : target_->itemData(index).toStringList()) choice.load.target.push_back(name.toStdString());
    for (const std::string& name : choice.load.target) std::erase(choice.load.columns, name);
    emit chosen(choice);
  });
  connect(time_, &QComboBox::activated, this, [this](int index) {
    if (!shown_ || !shown_->choice.is_file()) return;
    SequenceChoice choice = shown_->choice;
    const QString picked = time_->itemData(index).toString();
    choice.load.time.reset();
    if (!picked.isEmpty()) choice.load.time = picked.toStdString();
    std::erase(choice.load.columns, picked.toStdString());
    std::erase(choice.load.target, picked.toStdString());
    emit chosen(choice);
  });
}

void SequenceView::setLibrary(const LibraryPtr& library) {
  library_ = library;
  const QSignalBlocker quiet(task_);
  task_->clear();
  for (const TaskInfo& task : library->tasks) {
    task_->addItem(QString::fromStdString(task.title), QString::fromStdString(task.name));
    task_->setItemData(task_->count() - 1, safeTip(QString::fromStdString(task.text)), Qt::ToolTipRole);
  }
}

void SequenceView::setModelTask(const Preset& preset) {
  modelTask_ = preset.own_sequence();
  QString task = QString::fromStdString(preset.task);
  for (const auto& [key, value] : preset.task_set) task += QString(", %1 = %2").arg(inWords(key), QString::fromStdString(value));
  modelsOwn_->setText(
      tr("%1's own: %2, %3 steps")
          .arg(buttonText(QString::fromStdString(preset.title)), task, QLocale::c().toString(static_cast<qlonglong>(preset.task_length))));
}

QWidget* SequenceView::parameterEditor(const std::string& key) const {
  const auto found = parameters_.find(key);
  return found == parameters_.end() ? nullptr : found->second.widget;
}

void SequenceView::showParameters(const std::string& task, const TaskSettings& set) {
  const Hyper values = task_parameters(task, set);
  if (task != parametersOf_) {
    for (const auto& [key, editor] : parameters_) taskForm_->removeRow(editor.widget);
    parameters_.clear();
    parametersOf_ = task;
    int row = 2;  // below the task and its length
    for (const HyperSpec& spec : values.table()) {
      QWidget* editor = editorOf(spec, task);
      editor->setObjectName("parameter." + QString::fromStdString(spec.key));
      editor->setToolTip(safeTip(tipOf(spec)));
      auto* name = plainLabel(inWords(spec.key));
      name->setToolTip(safeTip(tipOf(spec)));
      name->setBuddy(editor);
      taskForm_->insertRow(row++, name, editor);
    }
  }
  for (const HyperSpec& spec : values.table()) {
    const ParameterEditor& editor = parameters_.at(spec.key);
    const QSignalBlocker quiet(editor.widget);
    editor.show(values.value(spec.key));
  }
}

QWidget* SequenceView::editorOf(const HyperSpec& spec, const std::string& task) {
  const auto changed = [this, task, key = spec.key](const std::string& text) { chooseParameter(task, key, text); };
  if (spec.kind == HyperKind::flag) {
    auto* box = new QCheckBox;
    connect(box, &QCheckBox::toggled, this, [changed](bool on) { changed(on ? "true" : "false"); });
    parameters_[spec.key] = {box, [box](const HyperValue& value) { box->setChecked(std::get<bool>(value)); }};
    return box;
  }
  if (spec.kind == HyperKind::choice) {
    auto* box = new QComboBox;
    for (const std::string& choice : spec.choices) box->addItem(QString::fromStdString(choice));
    connect(box, &QComboBox::textActivated, this, [changed](const QString& text) { changed(text.toStdString()); });
    parameters_[spec.key] = {box,
                             [box](const HyperValue& value) { box->setCurrentText(QString::fromStdString(std::get<std::string>(value))); }};
    return box;
  }
  const QString suffix = spec.unit.empty() ? QString() : " " + QString::fromStdString(spec.unit);
  if (spec.kind == HyperKind::integer) {
    auto* box = new IntBox;
    constexpr double most = std::numeric_limits<int>::max();
    box->setRange(static_cast<int>(std::max(spec.low, -most)), static_cast<int>(std::min(spec.high, most)));
    box->setKeyboardTracking(false);
    box->setSuffix(suffix);
    connect(box, &QSpinBox::valueChanged, this, [changed](int value) { changed(std::to_string(value)); });
    parameters_[spec.key] = {box, [box](const HyperValue& value) { box->setValue(static_cast<int>(std::get<std::int64_t>(value))); }};
    return box;
  }
  auto* box = new RealBox;
  box->setRange(spec.low, spec.high);
  box->setSingleStep(spec.step > 0.0 ? spec.step : (spec.high - spec.low) / 100.0);
  box->setKeyboardTracking(false);
  connect(box, &QDoubleSpinBox::valueChanged, this, [changed](double value) { changed(exact(value).toStdString()); });
  parameters_[spec.key] = {box, [box](const HyperValue& value) { box->setValue(std::get<double>(value)); }};
  return box;
}

void SequenceView::chooseParameter(const std::string& task, const std::string& key, const std::string& text) {
  if (showing_ || !shown_) return;
  SequenceChoice choice = shown_->choice.is_file() ? SequenceChoice{} : shown_->choice;
  if (choice.task != task) {
    choice.task = task;
    choice.make.set.clear();
  }
  choice.make.set.emplace_back(key, text);
  choice.make.set = settings_of(task_parameters(task, choice.make.set));
  emit chosen(choice);
}

bool SequenceView::wantsStandardised() const { return standardise_->isChecked(); }

void SequenceView::chooseTask(TaskField edited) {
  if (showing_ || task_->count() == 0) return;
  // Editing one field leaves the others as they are, also where a field cannot show its present value.
  const bool before = shown_ && !shown_->choice.is_file();
  SequenceChoice choice = before ? shown_->choice : SequenceChoice{};
  const std::string task = task_->currentData().toString().toStdString();
  if (task != choice.task) choice.make.set.clear();  // each has its own
  choice.task = task;
  if (!before || edited == TaskField::length) choice.make.length = length_->value();
  if (!before || edited == TaskField::seed) choice.make.seed = seed_->value();
  emit chosen(choice);
}

void SequenceView::setSequence(const LoadedSequencePtr& sequence) {
  shown_ = sequence;
  preview_->setSequence(sequence);
  if (!sequence) return;
  showing_ = true;
  const Sequence& series = sequence->sequence;
  const SequenceChoice& choice = sequence->choice;
  (choice.is_file() ? fileTab_ : taskTab_)->setChecked(true);
  pages_->setCurrentIndex(choice.is_file() ? 0 : 1);
  if (choice.is_file()) {
    lastFile_ = QString::fromStdString(choice.file);
    name_->setText(QFileInfo(lastFile_).fileName());
    name_->setToolTip(safeTip(lastFile_));
    lastMissing_ = choice.load.missing;
    standardise_->setChecked(choice.load.standardise);
    showMissing();
    buildColumns();
    buildTargets();
    time_->clear();
    time_->addItem(choice.load.time             ? tr("found by looking")
                   : series.time_name == "step" ? tr("found by looking: none")
                                                : tr("%1 (found)").arg(QString::fromStdString(series.time_name)),
                   QString());
    time_->addItem(tr("none, count steps"), "none");
    for (const auto& name : sequence->columns) time_->addItem(QString::fromStdString(name), QString::fromStdString(name));
    time_->setCurrentIndex(choice.load.time ? std::max(0, time_->findData(QString::fromStdString(*choice.load.time))) : 0);
  } else {
    task_->setCurrentIndex(std::max(0, task_->findData(QString::fromStdString(choice.task))));
    length_->setValue(static_cast<int>(std::min<std::int64_t>(choice.make.length, length_->maximum())));
    seed_->setValue(choice.make.seed);
    showParameters(choice.task, choice.make.set);
    if (library_)
      for (const TaskInfo& task : library_->tasks)
        if (task.name == choice.task) task_->setToolTip(safeTip(QString::fromStdString(task.text + "\n" + task.source)));
  }
  tellFacts();
  showing_ = false;
}

void SequenceView::setNext(const LoadedSequencePtr& sequence) {
  shown_ = sequence;
  preview_->setSequence(sequence);
  tellFacts();
}

void SequenceView::setInputScale(const QString& scale) {
  preview_->setInputScale(scale);
  if (shown_) tellFacts();
}

void SequenceView::tellFacts() {
  const Sequence& series = shown_->sequence;
  const QLocale locale(QLocale::English);
  const QString steps = locale.toString(static_cast<qlonglong>(series.length));
  QString facts = series.width == 1 ? tr("%1 steps, 1 input").arg(steps) : tr("%1 steps, %2 inputs").arg(steps).arg(series.width);
  if (series.standardised && !series.mean.empty() && series.width == 1)
    facts +=
        tr("; mean %1, deviation %2 taken out").arg(locale.toString(series.mean[0], 'g', 4), locale.toString(series.deviation[0], 'g', 4));
  QStringList targets;
  for (const std::string& name : series.target_names) targets << QString::fromStdString(name);
  if (series.target_kind == TargetKind::classify)
    facts += tr("; %1 classes to tell").arg(series.classes);
  else if (series.target_kind == TargetKind::regress)
    facts += targets.isEmpty() ? tr("; with a target")
                               : tr("; target: %1").arg(targets.size() <= 3 ? targets.join(", ") : tr("%1 columns").arg(targets.size()));
  if (const std::string missing = missing_words(series.missing); !missing.empty()) facts += "; " + QString::fromStdString(missing);
  if (!preview_->inputScale().isEmpty()) facts += tr("; the model reads the input times %1 (input scale)").arg(preview_->inputScale());
  facts_->setText(facts);
}

void SequenceView::showMissing() {
  const MissingCells& missing = shown_->sequence.missing;
  missing_->setEnabled(missing.any());
  missing_->setCurrentIndex(missing.any() ? missing_->findData(static_cast<int>(shown_->choice.load.missing)) : -1);
  QStringList said;
  for (const std::string& note : missing_notes(missing)) said << QString::fromStdString(note);
  missing_->setToolTip(safeTip(missing.any() ? tr("What becomes of missing cells. %1").arg(said.join(' '))
                                             : tr("The columns that are read have no missing cell, so there is nothing to choose")));
}

/// None, the next value, or a column; several columns where they were given from elsewhere.
void SequenceView::buildTargets() {
  target_->clear();
  const Sequence& series = shown_->sequence;
  QStringList chosen;
  for (const std::string& name : shown_->choice.load.target) chosen << QString::fromStdString(name);
  const bool brought = chosen.isEmpty() && series.target_kind != TargetKind::none;  // by an NPZ file of its own
  target_->addItem(brought ? tr("as in the file") : tr("none"), QStringList());
  target_->addItem(tr("next value"), QStringList{"next"});
  for (const auto& name : shown_->columns) {
    const QString text = QString::fromStdString(name);
    // The last input cannot be the target.
    const bool only = series.width - series.flags == 1 && series.names.front() == name;
    if (name != series.time_name && !only) target_->addItem(text, QStringList{text});
  }
  const auto place = [&] {
    for (int i = 0; i < target_->count(); ++i)
      if (target_->itemData(i).toStringList() == chosen) return i;
    return -1;
  };
  if (place() < 0) target_->addItem(chosen.join(", "), chosen);
  target_->setCurrentIndex(place());
}

void SequenceView::buildColumns() {
  columnsMenu_->clear();
  const Sequence& series = shown_->sequence;
  std::vector<std::string> inputs = shown_->columns;
  std::erase(inputs, series.time_name);
  for (const auto& name : inputs) {
    QAction* action = columnsMenu_->addAction(buttonText(QString::fromStdString(name)));
    action->setData(QString::fromStdString(name));
    action->setCheckable(true);
    action->setChecked(std::find(series.names.begin(), series.names.end(), name) != series.names.end());
    connect(action, &QAction::toggled, this, [this] {
      SequenceChoice choice = shown_->choice;
      choice.load.columns.clear();
      const auto actions = columnsMenu_->actions();
      for (const QAction* one : actions)
        if (one->isChecked()) choice.load.columns.push_back(one->data().toString().toStdString());
      if (choice.load.columns.empty()) {  // at least one; the menu is made anew after this action is done
        QMetaObject::invokeMethod(this, &SequenceView::buildColumns, Qt::QueuedConnection);
        return;
      }
      // All but the target, the default where nothing is chosen; with its own tick the target is an input too.
      std::vector<std::string> all;
      for (const QAction* one : actions) all.push_back(one->data().toString().toStdString());
      for (const std::string& target : choice.load.target) std::erase(all, target);
      if (choice.load.columns == all) choice.load.columns.clear();
      emit chosen(choice);
    });
  }
  QStringList chosenNames;
  for (std::int64_t j = 0; j < series.width - series.flags; ++j)
    chosenNames << QString::fromStdString(series.names[static_cast<std::size_t>(j)]);
  const QString text = chosenNames.size() <= 3 ? chosenNames.join(", ") : tr("%1 of %2").arg(chosenNames.size()).arg(inputs.size());
  columns_->setText(buttonText(columns_->fontMetrics().elidedText(text, Qt::ElideRight, 150)));
  columns_->setToolTip(safeTip(tr("Which columns are the input: %1").arg(chosenNames.join(", "))));
}

}  // namespace reclab
