// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/streams/stream_settings.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>

#include "gui/session/sentences.h"

namespace reclab {
namespace {

constexpr int leastEditor = 96, leastName = 110;
constexpr std::int64_t usualRing = 200;
/// At 25 pictures a second and more each step is in one of them, with that ring.
constexpr std::int64_t usualPace = 5'000;

/// What a stream of the window is asked for where nothing else is chosen.
StreamRequest usualRequest() {
  StreamRequest request;
  request.length = 0;
  request.ring = usualRing;
  request.pace = usualPace;
  return request;
}

/// The fields of the form, in the order of a person's questions.
std::vector<const PlanField<StreamRequest>*> fieldsOf(const std::vector<std::string>& flags, bool others) {
  std::vector<const PlanField<StreamRequest>*> found;
  const auto add = [&](const PlanField<StreamRequest>& field) { found.push_back(&field); };
  if (others) {
    for (const auto& field : stream_fields())
      if (std::ranges::find(flags, field.flag) == flags.end()) add(field);
  } else {
    for (const std::string& flag : flags)
      for (const auto& field : stream_fields())
        if (field.flag == flag) add(field);
  }
  return found;
}

/// A parameter of a source as a row of a form.
Field fieldOf(const HyperSpec& row) {
  Field field;
  field.row = row;
  constexpr double most = std::numeric_limits<int>::max();
  field.form = {.label = QString::fromStdString(row.key).replace('_', ' ').toStdString(),
                .tip = row.text,
                .low = row.kind == HyperKind::integer ? std::max(row.low, -most) : row.low,
                .high = row.kind == HyperKind::integer ? std::min(row.high, most) : row.high,
                .choices = row.choices};
  return field;
}

}  // namespace

StreamSettings::StreamSettings(const FileChooser* chooser, QWidget* parent) : QWidget(parent) {
  choice_ = usualRequest();
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(4);
  const auto grid = [&] {
    auto* form = new QWidget(this);
    auto* made = new QGridLayout(form);
    made->setContentsMargins(0, 0, 0, 0);
    made->setHorizontalSpacing(8);
    made->setVerticalSpacing(4);
    made->setColumnMinimumWidth(0, leastName);
    made->setColumnStretch(1, 1);
    column->addWidget(form);
    return made;
  };
  QGridLayout* top = grid();
  source_ = new QComboBox(this);
  source_->setObjectName("stream.source");
  source_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  source_->setMinimumContentsLength(8);
  for (const StreamSourceInfo& source : stream_sources()) {
    source_->addItem(inWords(source.id), QString::fromStdString(source.id));
    source_->setItemData(source_->count() - 1, safeTip(QString::fromStdString(source.text)), Qt::ToolTipRole);
  }
  auto* sourceName = label(tr("source"), "muted", this);
  sourceName->setBuddy(source_);
  top->addWidget(sourceName, 0, 0);
  top->addWidget(source_, 0, 1);
  argumentName_ = label({}, "muted", this);
  argumentRow_ = new QWidget(this);
  auto* line = new QHBoxLayout(argumentRow_);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(4);
  argument_ = new QLineEdit(argumentRow_);
  argument_->setObjectName("stream.argument");
  argumentName_->setBuddy(argument_);
  open_ = new QToolButton(argumentRow_);
  open_->setObjectName("stream.open");
  open_->setIcon(icon("open"));
  open_->setText(tr("Choose a file"));
  open_->setToolTip(tr("Choose a file"));
  open_->setFocusPolicy(Qt::TabFocus);
  line->addWidget(argument_, 1);
  line->addWidget(open_);
  top->addWidget(argumentName_, 1, 0);
  top->addWidget(argumentRow_, 1, 1);
  about_ = label({}, "muted", this);
  about_->setFont(smallFont());
  about_->setWordWrap(true);
  column->addWidget(about_);
  parameters_ = grid();
  rows_.setLeastWidth(leastEditor);
  const std::vector<std::string> first{"--pace", "--steps", "--ring", "--standardise-by"};
  rows_.add(grid(), fieldsOf(first, false), QStringLiteral("stream."), [this] { take(); });
  column->addWidget(label(tr("Learning"), "section", this));
  rows_.add(grid(), fieldsOf(first, true), QStringLiteral("stream."), [this] { take(); });

  const std::pair<const char*, QString> withoutNumber[]{{"stream.pace", tr("as fast as it can")},
                                                        {"stream.steps", tr("without end")},
                                                        {"stream.standardise_by", tr("as they are")},
                                                        {"stream.offline", tr("none")}};
  for (const auto& [name, words] : withoutNumber) findChild<QSpinBox*>(name)->setSpecialValueText(words);
  for (QComboBox* box : findChildren<QComboBox*>()) {  // their longest entry does not widen the dock
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(6);
  }
  connect(source_, &QComboBox::activated, this, &StreamSettings::takeSource);
  connect(argument_, &QLineEdit::editingFinished, this, [this] {
    if (showing_ || argument_->text().toStdString() == choice_.source.argument) return;
    choice_.source.argument = argument_->text().toStdString();
    emit changed();
  });
  connect(open_, &QToolButton::clicked, this, [this, chooser] {
    const QString file = chooser->open(window(), tr("The source of the stream"), tr("All files (*)"));
    if (file.isEmpty()) return;
    choice_.source.argument = file.toStdString();
    showSource();
    emit changed();
  });
  showSource();
  rows_.show(choice_);
}

void StreamSettings::takeSource() {
  const std::string id = source_->currentData().toString().toStdString();
  if (showing_ || id == choice_.source.id) return;
  const bool again = stream_source(id).argument == stream_source(choice_.source.id).argument;
  choice_.source.id = id;
  choice_.source.set.clear();  // each has its own
  if (!again) choice_.source.argument.clear();
  showSource();
  emit changed();
}

void StreamSettings::showSource() {
  showing_ = true;
  const StreamSourceInfo& source = stream_source(choice_.source.id);
  source_->setCurrentIndex(std::max(0, source_->findData(QString::fromStdString(source.id))));
  about_->setText(QString::fromStdString(source.text) + '.');
  for (QWidget* one : {static_cast<QWidget*>(argumentName_), argumentRow_}) one->setVisible(!source.argument.empty());
  argumentName_->setText(QString::fromStdString(source.argument).replace('|', tr(" or ")).toLower());
  argument_->setPlaceholderText(QString::fromStdString(source.argument).replace('|', tr(" or ")));
  argument_->setToolTip(safeTip(QString::fromStdString(source.text)));
  argument_->setText(QString::fromStdString(choice_.source.argument));
  open_->setVisible(source.argument == "FILE");
  showing_ = false;
  showParameters();
}

/// A row for each parameter of the source, made anew.
void StreamSettings::showParameters() {
  for (const Parameter& one : editors_)
    for (QWidget* widget : {one.name, one.editor}) {
      widget->hide();
      widget->deleteLater();
    }
  editors_.clear();
  const StreamSourceInfo& source = stream_source(choice_.source.id);
  const Hyper values = source_parameters({.id = source.id, .set = choice_.source.set});
  QWidget* form = parameters_->parentWidget();
  int row = 0;
  editors_.reserve(source.parameters.size());
  for (const HyperSpec& spec : source.parameters) {
    Parameter& one = editors_.emplace_back(Parameter{fieldOf(spec), nullptr, nullptr});
    one.editor = fieldEditor(one.field, form, [this] { take(); });
    one.editor->setObjectName("stream.source." + QString::fromStdString(spec.key));
    one.editor->setMinimumWidth(leastEditor);
    if (auto* box = qobject_cast<QComboBox*>(one.editor)) {
      box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
      box->setMinimumContentsLength(6);
    }
    auto* name = label(QString::fromStdString(one.field.form.label), "muted", form);
    name->setBuddy(one.editor);
    name->setToolTip(safeTip(one.editor->toolTip()));
    one.name = name;
    parameters_->addWidget(one.name, row, 0);
    parameters_->addWidget(one.editor, row++, 1);
    showing_ = true;
    showIn(one.editor, values.value(spec.key));
    showing_ = false;
  }
  form->setVisible(!editors_.empty());
}

void StreamSettings::take() {
  if (showing_) return;
  rows_.take(choice_);
  Hyper values(stream_source(choice_.source.id).parameters);
  for (const Parameter& one : editors_)
    if (const auto value = valueIn(one.field, one.editor)) values.set(one.field.row.key, *value, choice_.source.id);
  choice_.source.set = settings_of(values);
  rows_.show(choice_);
  emit changed();
}

QVariantMap StreamSettings::saved() const {
  QVariantMap all = rows_.saved(choice_);
  QVariantMap set;
  for (const auto& [key, value] : choice_.source.set) set[QString::fromStdString(key)] = QString::fromStdString(value);
  all["source"] = QString::fromStdString(choice_.source.id);
  all["argument"] = QString::fromStdString(choice_.source.argument);
  all["set"] = set;
  return all;
}

void StreamSettings::restore(const QVariantMap& saved) {
  StreamRequest next = usualRequest();
  rows_.restore(saved, next);
  const std::string id = saved.value("source").toString().toStdString();
  if (std::ranges::any_of(stream_sources(), [&](const StreamSourceInfo& one) { return one.id == id; })) {
    next.source.id = id;
    next.source.argument = saved.value("argument").toString().toStdString();
    const QVariantMap set = saved.value("set").toMap();
    for (auto one = set.begin(); one != set.end(); ++one)
      next.source.set.emplace_back(one.key().toStdString(), one.value().toString().toStdString());
    try {
      next.source.set = settings_of(source_parameters({.id = id, .set = next.source.set}));
    } catch (const Error&) {
      next.source.set.clear();  // of a table that has changed
    }
  }
  choice_ = next;
  showSource();
  rows_.show(choice_);
  emit changed();
}

}  // namespace reclab
