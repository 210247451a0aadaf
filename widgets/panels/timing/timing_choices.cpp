// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/timing/timing_choices.h"

#include <QGridLayout>
#include <QScreen>
#include <QStandardItemModel>
#include <algorithm>

#include "box_layout.h"
#include "plain_text.h"
#include "plot/theme.h"

namespace reclab {

namespace {

constexpr std::int64_t shortest = 16, longest = 65536, narrowest = 4, widest = 1024, most_sequences = 256;

void select(QComboBox* box, const QVariant& value) { box->setCurrentIndex(std::max(0, box->findData(value))); }

/// The powers of two of a range, both ends with it.
std::vector<std::int64_t> doublings(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> all;
  for (std::int64_t length = from; length <= to; length *= 2) all.push_back(length);
  return all;
}

}  // namespace

Popup::Popup(QWidget* parent) : QFrame(parent, Qt::Popup) {
  setObjectName(QStringLiteral("popup"));
  setFrameShape(QFrame::StyledPanel);
  auto* column = boxLayout<QVBoxLayout>(this, -1, {12, 10, 12, 10});
  column->setSizeConstraint(QLayout::SetFixedSize);
}

void Popup::openUnder(const QWidget* button) {
  ensurePolished();
  layout()->activate();
  const QSize size = sizeHint();
  const QRect room = button->screen()->availableGeometry();
  QPoint at = button->mapToGlobal(QPoint(0, button->height() + 2));
  if (at.y() + size.height() > room.bottom()) at.setY(button->mapToGlobal(QPoint(0, -2)).y() - size.height());
  at.setX(std::clamp(at.x(), room.left(), std::max(room.left(), room.right() - size.width())));
  at.setY(std::max(at.y(), room.top()));
  move(at);
  show();
}

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
  for (QComboBox* box : {from_, to_}) {
    for (const std::int64_t length : doublings(shortest, longest)) box->addItem(grouped(length), static_cast<qlonglong>(length));
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

  batch_ = combo(QStringLiteral("timingBatch"), tr("batch"), tr("How many sequences are run at once"));
  for (const std::int64_t batch : doublings(1, most_sequences)) batch_->addItem(grouped(batch), static_cast<qlonglong>(batch));
  connect(batch_, &QComboBox::activated, this, [this] {
    TimingChoice next = choice_;
    next.batch = batch_->currentData().toLongLong();
    take(next);
  });
  width_ = combo(QStringLiteral("timingWidth"), tr("width"), tr("How wide the model is while it is timed; the run keeps its own width"));
  connect(width_, &QComboBox::activated, this, [this] {
    TimingChoice next = choice_;
    next.width = width_->currentData().toLongLong();
    take(next);
  });
  device_box_ = combo(QStringLiteral("timingDevice"), tr("device"), tr("Where it is timed"));
  device_box_->addItem(tr("CPU"), QStringLiteral("cpu"));
  device_box_->addItem(tr("CUDA"), QStringLiteral("cuda"));
  connect(device_box_, &QComboBox::activated, this, [this] {
    TimingChoice next = choice_;
    const QString device = device_box_->currentData().toString();
    next.device = device.toStdString() == device_ ? QString() : device;
    take(next);
  });
  dtype_box_ = combo(QStringLiteral("timingPrecision"), tr("precision"), tr("float64 for science, float32 for speed"));
  dtype_box_->addItem(QStringLiteral("float64"), QStringLiteral("f64"));
  dtype_box_->addItem(QStringLiteral("float32"), QStringLiteral("f32"));
  connect(dtype_box_, &QComboBox::activated, this, [this] {
    TimingChoice next = choice_;
    next.dtype = dtype_box_->currentText().toStdString() == dtype_ ? QString() : dtype_box_->currentData().toString();
    take(next);
  });
  passes_ = combo(QStringLiteral("timingPasses"), tr("passes"), tr("The forward pass alone, or the gradients with it"));
  passes_->addItem(tr("both"), true);
  passes_->addItem(tr("forward alone"), false);
  connect(passes_, &QComboBox::activated, this, [this] {
    TimingChoice next = choice_;
    next.backward = passes_->currentData().toBool();
    take(next);
  });
  for (Field& field : fields_) {
    field.plain = field.editor == device_box_ || field.editor == dtype_box_;
    field.label->setProperty("role", "muted");
    field.editor->setParent(this);
    field.label->setParent(this);
  }
  form_list_->setParent(this);
  showChoice();
  arrange();
}

QComboBox* TimingChoices::combo(const QString& name, const QString& label, const QString& tip) {
  auto* box = new QComboBox;
  box->setObjectName(name);
  box->setToolTip(safeTip(tip));
  box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  fields_.push_back({plainLabel(label), box});
  return box;
}

void TimingChoices::take(TimingChoice choice) {
  if (choice == choice_) return showChoice();
  choice_ = std::move(choice);
  showChoice();
  emit changed();
}

void TimingChoices::chooseForms() {
  TimingChoice next = choice_;
  next.forms.clear();
  for (const QCheckBox* box : form_boxes_)
    if (box->isChecked()) next.forms << box->text();
  // None at all would be nothing to time: the last one stays.
  if (next.forms.isEmpty()) return showChoice();
  if (next.forms.size() == forms_.size()) next.forms.clear();
  take(next);
}

void TimingChoices::chooseLengths(bool from) {
  std::int64_t low = from_->currentData().toLongLong(), high = to_->currentData().toLongLong();
  if (low > high) (from ? high : low) = from ? low : high;
  TimingChoice next = choice_;
  next.lengths = doublings(low, high);
  take(next);
}

void TimingChoices::setRun(const RunInfo& info, const QStringList& forms) {
  device_ = info.device;
  dtype_ = info.dtype;
  TimingChoice next = choice_;
  const QString model = QString::fromStdString(info.preset);
  if (model != model_ && !std::exchange(model_, model).isEmpty()) {
    next.forms.clear();
    next.width = 0;
  }
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
    next.forms.removeIf([&](const QString& form) { return !forms_.contains(form); });
  }
  const auto width = std::find_if(info.hyper.begin(), info.hyper.end(), [](const auto& one) { return one.first == "width"; });
  const bool wide = width != info.hyper.end();
  if (!wide) next.width = 0;
  const QString own = wide ? QString::fromStdString(width->second) : QString();
  if (wide && (width_->count() == 0 || width_->itemText(0) != own)) {
    width_->clear();
    width_->addItem(own, qlonglong{0});
    for (const std::int64_t other : doublings(narrowest, widest))
      if (QString::number(other) != own) width_->addItem(grouped(other), static_cast<qlonglong>(other));
  }
  const bool shown = fields_[3].shown;
  fields_[3].shown = wide;
  const bool cuda = std::find(info.devices.begin(), info.devices.end(), "cuda") != info.devices.end() || info.device == "cuda";
  qobject_cast<QStandardItemModel*>(device_box_->model())->item(1)->setEnabled(cuda);
  if (!cuda && next.device == u"cuda") next.device.clear();
  setNoCuda(why_no_cuda_);
  if (shown != wide) arrange();
  take(next);
}

void TimingChoices::setNoCuda(const QString& why) {
  why_no_cuda_ = why;
  const bool cuda = qobject_cast<QStandardItemModel*>(device_box_->model())->item(1)->isEnabled();
  const QString reason = cuda ? QString() : why.isEmpty() ? tr("There is no CUDA device here.") : tr("CUDA cannot be used: %1").arg(why);
  device_box_->setItemData(1, safeTip(reason), Qt::ToolTipRole);
  device_box_->setToolTip(safeTip(reason.isEmpty() ? tr("Where it is timed") : tr("Where it is timed. %1").arg(reason)));
}

void TimingChoices::showChoice() {
  for (QCheckBox* box : form_boxes_) box->setChecked(choice_.forms.isEmpty() || choice_.forms.contains(box->text()));
  const qsizetype chosen = choice_.forms.size();
  const QString forms = chosen == 0   ? tr("all %1").arg(forms_.size())
                        : chosen == 1 ? choice_.forms[0]
                                      : tr("%1 of %2").arg(chosen).arg(forms_.size());
  form_button_->setText(forms + QStringLiteral(" ▾"));
  select(from_, static_cast<qlonglong>(choice_.lengths.front()));
  select(to_, static_cast<qlonglong>(choice_.lengths.back()));
  select(batch_, static_cast<qlonglong>(choice_.batch));
  select(width_, static_cast<qlonglong>(choice_.width));
  select(device_box_, choice_.device.isEmpty() ? QString::fromStdString(device_) : choice_.device);
  if (choice_.dtype.isEmpty())
    dtype_box_->setCurrentText(QString::fromStdString(dtype_));
  else
    select(dtype_box_, choice_.dtype);
  select(passes_, choice_.backward);
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
  return {{"model", model_},
          {"forms", choice_.forms},
          {"from", static_cast<qlonglong>(choice_.lengths.front())},
          {"to", static_cast<qlonglong>(choice_.lengths.back())},
          {"batch", static_cast<qlonglong>(choice_.batch)},
          {"width", static_cast<qlonglong>(choice_.width)},
          {"device", choice_.device},
          {"dtype", choice_.dtype},
          {"backward", choice_.backward}};
}

void TimingChoices::restore(const QVariantMap& saved) {
  // A settings file may hold anything: what cannot be chosen here is passed over.
  const auto one_of = [&](const QString& key, const QComboBox* box, std::int64_t standard) {
    const qlonglong value = saved.value(key).toLongLong();
    return box->findData(value) >= 0 ? value : standard;
  };
  TimingChoice next;
  const std::int64_t from = one_of("from", from_, next.lengths.front()), to = one_of("to", to_, next.lengths.back());
  next.lengths = doublings(std::min(from, to), std::max(from, to));
  next.batch = one_of("batch", batch_, 1);
  next.backward = saved.value("backward", true).toBool();
  if (const QString device = saved.value("device").toString(); device == u"cpu" || device == u"cuda") next.device = device;
  if (const QString dtype = saved.value("dtype").toString(); dtype == u"f64" || dtype == u"f32") next.dtype = dtype;
  // Forms and width are of a model: they wait for a run of it.
  model_ = saved.value("model").toString();
  next.forms = saved.value("forms").toStringList();
  const std::vector<std::int64_t> widths = doublings(narrowest, widest);
  if (const auto found = std::find(widths.begin(), widths.end(), saved.value("width").toLongLong()); found != widths.end())
    next.width = *found;
  take(next);
}

}  // namespace reclab
