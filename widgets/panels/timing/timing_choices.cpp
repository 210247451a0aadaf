// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/timing/timing_choices.h"

#include <QGridLayout>
#include <QStandardItemModel>
#include <algorithm>

#include "box_layout.h"
#include "plain_text.h"
#include "plot/theme.h"

namespace reclab {

namespace {

constexpr std::int64_t shortest = 16, longest = 65536, narrowest = 4, widest = 1024, most_sequences = 256;

/// The powers of two of a range, both ends with it.
QStringList doublings(std::int64_t from, std::int64_t to) {
  QStringList all;
  for (std::int64_t number = from; number <= to; number *= 2) all << QString::number(number);
  return all;
}
std::string lengthsFrom(const QString& from, const QString& to) {
  return doublings(from.toLongLong(), to.toLongLong()).join(u',').toStdString();
}

bool isOfModel(const std::string& key) { return key == "forms" || key == "width"; }

}  // namespace

TimingChoices::TimingChoices(QWidget* parent) : QWidget(parent) {
  form_button_ = new QToolButton;
  form_button_->setObjectName(QStringLiteral("field"));
  form_button_->setToolTip(tr("Which execution forms are timed; only exact ones are offered"));
  form_list_ = new QWidget;
  boxLayout<QVBoxLayout>(form_list_, 6);
  form_popup_ = new Popup(this);
  connect(form_button_, &QToolButton::clicked, this, [this] { form_popup_->openUnder(form_button_); });
  fields_.push_back({plainLabel(tr("forms")), form_button_});

  lengths_ = new QWidget;
  auto* range = boxLayout<QHBoxLayout>(lengths_, 4);
  from_ = new QComboBox;
  to_ = new QComboBox;
  from_->setObjectName(QStringLiteral("timingFrom"));
  to_->setObjectName(QStringLiteral("timingTo"));
  from_->setAccessibleName(tr("Shortest length"));
  to_->setAccessibleName(tr("Longest length"));
  for (QComboBox* box : {from_, to_}) {
    for (const QString& length : doublings(shortest, longest)) box->addItem(grouped(length.toLongLong()), length);
    box->setToolTip(tr("The lengths: each twice as long as the one before. Long ones take long"));
    range->addWidget(box);
    connect(box, &QComboBox::activated, this, [this, box] { chooseLengths(box == from_); });
    if (box == to_) continue;
    auto* to = plainLabel(tr("to"));
    to->setProperty("role", "muted");
    range->addWidget(to);
  }
  range->addStretch();
  fields_.push_back({plainLabel(tr("lengths")), lengths_});

  std::vector<std::pair<QString, QString>> batches;
  for (const QString& batch : doublings(1, most_sequences)) batches.emplace_back(grouped(batch.toLongLong()), batch);
  combo("batch", QStringLiteral("timingBatch"), tr("batch"), tr("How many sequences are run at once"), batches);
  combo("width", QStringLiteral("timingWidth"), tr("width"), tr("How wide the model is while it is timed; the run keeps its own width"));
  combo("device", QStringLiteral("timingDevice"), tr("device"), tr("Where it is timed"), {{tr("CPU"), "cpu"}, {tr("CUDA"), "cuda"}});
  combo("dtype", QStringLiteral("timingPrecision"), tr("precision"), tr("float64 for science, float32 for speed"),
        {{"float64", "f64"}, {"float32", "f32"}});
  combo("forward_only", QStringLiteral("timingPasses"), tr("passes"), tr("The forward pass alone, or the gradients with it"),
        {{tr("both"), "false"}, {tr("forward alone"), "true"}});
  for (Field& field : fields_) {
    field.plain = field.editor == boxes_["device"] || field.editor == boxes_["dtype"];
    field.label->setProperty("role", "muted");
    field.editor->setParent(this);
    field.label->setParent(this);
  }
  form_list_->setParent(this);
  showChoice();
  arrange();
}

TimingChoices::Values TimingChoices::usual() {
  return {{"forms", ""},
          {"lengths", "64,128,256,512,1024,2048"},
          {"batch", "1"},
          {"width", ""},
          {"device", ""},
          {"dtype", ""},
          {"forward_only", "false"}};
}

QComboBox* TimingChoices::combo(const std::string& key, const QString& name, const QString& label, const QString& tip,
                                const std::vector<std::pair<QString, QString>>& offered) {
  auto* box = new QComboBox;
  box->setObjectName(name);
  box->setToolTip(safeTip(tip));
  box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  for (const auto& [text, value] : offered) box->addItem(text, value);
  connect(box, &QComboBox::activated, this, [this, key, box] { choose(key, box->currentData().toString()); });
  auto* words = plainLabel(label);
  words->setBuddy(box);
  fields_.push_back({words, box});
  return boxes_[key] = box;
}

void TimingChoices::choose(const std::string& key, const QString& value) {
  Values next = kept_;
  if (isOfModel(key) && of_ != model_) next["forms"].clear(), next["width"].clear();
  const auto own = own_.find(key);
  next[key] = own != own_.end() && own->second == value.toStdString() ? std::string() : value.toStdString();
  if (isOfModel(key)) of_ = model_;
  take(std::move(next));
}

void TimingChoices::take(Values kept) {
  kept_ = std::move(kept);
  if (kept_["forms"].empty() && kept_["width"].empty()) of_.clear();
  Values choice = inForce();
  if (choice == choice_) return showChoice();
  choice_ = std::move(choice);
  showChoice();
  emit changed();
}

TimingChoices::Values TimingChoices::inForce() const {
  Values choice = kept_;
  const bool here = of_ == model_;
  QStringList known = here ? QString::fromStdString(kept_.at("forms")).split(u',', Qt::SkipEmptyParts) : QStringList();
  known.removeIf([this](const QString& form) { return !forms_.contains(form); });
  choice["forms"] = known.join(u',').toStdString();
  if (!here || !fields_[3].shown) choice["width"].clear();
  if (choice["device"] == "cuda" && !cuda_) choice["device"].clear();
  return choice;
}

void TimingChoices::chooseForms() {
  QStringList chosen;
  for (const QCheckBox* box : form_boxes_)
    if (box->isChecked()) chosen << box->text();
  // None at all would be nothing to time: the last one stays.
  if (chosen.isEmpty()) return showChoice();
  choose("forms", chosen.size() == forms_.size() ? QString() : chosen.join(u','));
}

void TimingChoices::chooseLengths(bool from) {
  QString low = from_->currentData().toString(), high = to_->currentData().toString();
  if (low.toLongLong() > high.toLongLong()) (from ? high : low) = from ? low : high;
  choose("lengths", QString::fromStdString(lengthsFrom(low, high)));
}

void TimingChoices::setRun(const RunInfo& info, const QStringList& forms) {
  own_ = {{"device", info.device}, {"dtype", info.dtype == "float32" ? "f32" : "f64"}};
  model_ = QString::fromStdString(info.preset);
  if (forms != forms_) {
    forms_ = forms;
    for (QCheckBox* box : form_boxes_) box->deleteLater();
    form_boxes_.clear();
    for (const QString& form : forms_) {
      auto* box = new QCheckBox(form);
      box->setObjectName(QStringLiteral("form.") + form);
      connect(box, &QCheckBox::clicked, this, &TimingChoices::chooseForms);
      form_list_->layout()->addWidget(box);
      form_boxes_.push_back(box);
    }
  }
  const auto width = std::find_if(info.hyper.begin(), info.hyper.end(), [](const auto& one) { return one.first == "width"; });
  const bool wide = width != info.hyper.end();
  const QString own = wide ? QString::fromStdString(width->second) : QString();
  QComboBox* widths = boxes_["width"];
  if (wide && (widths->count() == 0 || widths->itemText(0) != own)) {
    widths->clear();
    widths->addItem(own, QString());
    for (const QString& other : doublings(narrowest, widest))
      if (other != own) widths->addItem(grouped(other.toLongLong()), other);
  }
  const bool shown = fields_[3].shown;
  fields_[3].shown = wide;
  cuda_ = std::find(info.devices.begin(), info.devices.end(), "cuda") != info.devices.end() || info.device == "cuda";
  qobject_cast<QStandardItemModel*>(boxes_["device"]->model())->item(1)->setEnabled(cuda_);
  setNoCuda(why_no_cuda_);
  if (shown != wide) arrange();
  take(kept_);
}

void TimingChoices::setNoCuda(const QString& why) {
  why_no_cuda_ = why;
  QComboBox* devices = boxes_["device"];
  const bool cuda = qobject_cast<QStandardItemModel*>(devices->model())->item(1)->isEnabled();
  const QString reason = cuda ? QString() : why.isEmpty() ? tr("There is no CUDA device here.") : tr("CUDA cannot be used: %1").arg(why);
  devices->setItemData(1, safeTip(reason), Qt::ToolTipRole);
  devices->setToolTip(safeTip(reason.isEmpty() ? tr("Where it is timed") : tr("Where it is timed. %1").arg(reason)));
}

void TimingChoices::showChoice() {
  const QStringList chosen = list("forms"), lengths = list("lengths");
  for (QCheckBox* box : form_boxes_) box->setChecked(chosen.isEmpty() || chosen.contains(box->text()));
  const QString forms = chosen.isEmpty()     ? tr("all %1").arg(forms_.size())
                        : chosen.size() == 1 ? chosen[0]
                                             : tr("%1 of %2").arg(chosen.size()).arg(forms_.size());
  form_button_->setText(forms + QStringLiteral(" ▾"));
  const auto select = [](QComboBox* box, const QString& value) { box->setCurrentIndex(std::max(0, box->findData(value))); };
  select(from_, lengths.front());
  select(to_, lengths.back());
  for (const auto& [key, box] : boxes_) {
    const auto own = own_.find(key);
    select(box, QString::fromStdString(own != own_.end() && choice_[key].empty() ? own->second : choice_[key]));
  }
}

void TimingChoices::setColumn(bool column) {
  if (column == column_) return;
  column_ = column;
  arrange();
}

void TimingChoices::arrange() {
  delete layout();
  auto* grid = new QGridLayout(this);
  grid->setHorizontalSpacing(column_ ? 12 : 6);
  grid->setVerticalSpacing(6);
  grid->setContentsMargins(column_ ? 0 : 8, 0, column_ ? 0 : 8, column_ ? 0 : 4);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    QWidget* editor = fields_[i].editor;
    if (i == 0) {
      form_list_->setVisible(column_);
      form_button_->setVisible(!column_);
      if (column_)
        editor = form_list_;
      else
        form_popup_->layout()->addWidget(form_list_);
      form_list_->setVisible(true);
    }
    const int at = static_cast<int>(i);
    grid->addWidget(fields_[i].label, column_ ? at : 0, column_ ? 0 : 2 * at, column_ && i == 0 ? Qt::AlignTop : Qt::AlignVCenter);
    grid->addWidget(editor, column_ ? at : 0, column_ ? 1 : 2 * at + 1);
    fields_[i].label->setVisible(fields_[i].shown && (column_ || !fields_[i].plain));
    if (i > 0) editor->setVisible(fields_[i].shown);
  }
  if (!column_) grid->setColumnStretch(2 * static_cast<int>(fields_.size()), 1);
}

int TimingChoices::rowWidth() const {
  int width = 16;
  for (const Field& field : fields_)
    if (field.shown) width += (field.plain ? 0 : field.label->sizeHint().width() + 6) + field.editor->sizeHint().width() + 6;
  return width;
}

QVariantMap TimingChoices::saved() const {
  QVariantMap all{{"model", of_}};
  for (const auto& [key, value] : kept_) all.insert(QString::fromStdString(key), QString::fromStdString(value));
  return all;
}

void TimingChoices::restore(const QVariantMap& saved) {
  // A settings file may hold anything: invalid choices are ignored.
  const auto kept = [&](const std::string& key) { return saved.value(QString::fromStdString(key)).toString(); };
  Values next = usual();
  for (const auto& [key, box] : boxes_)
    if (const QString value = kept(key); box->findData(value) >= 0) next[key] = value.toStdString();
  const QStringList lengths = kept("lengths").split(u',');
  if (from_->findData(lengths.front()) >= 0 && to_->findData(lengths.back()) >= 0)
    if (const std::string all = lengthsFrom(lengths.front(), lengths.back()); !all.empty()) next["lengths"] = all;
  of_ = kept("model");
  next["forms"] = kept("forms").toStdString();
  if (const QString width = kept("width"); doublings(narrowest, widest).contains(width)) next["width"] = width.toStdString();
  take(std::move(next));
}

}  // namespace reclab
