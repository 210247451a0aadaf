// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/inspector_view.h"

#include <QAbstractItemView>
#include <QButtonGroup>
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QRandomGenerator>
#include <QStandardItemModel>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <tuple>

#include "gui/look/look.h"
#include "gui/session/sentences.h"
#include "gui/views/card_view.h"
#include "gui/views/whole_box.h"
#include "plain_text.h"
#include "plot/theme.h"
#include "spoken.h"
#include "trace/input_scale.h"

namespace reclab {
namespace {

constexpr int positions = 1000;

double number(const HyperValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return 0.0;
}

QString textOf(const HyperSpec& spec, double value) {
  return spec.kind == HyperKind::integer ? QString::number(std::llround(value)) : exact(value);
}

/// A logarithmic slider needs a range that has logarithms; one from 0 (or below) gets a straight one.
bool logarithmic(const HyperSpec& spec) { return spec.logarithmic && spec.low > 0.0; }

/// Wide whole-number ranges also move in ratios: from 1 to 4096 the first hundred matter most.
bool ratio(const HyperSpec& spec) {
  return logarithmic(spec) || (spec.kind == HyperKind::integer && spec.low >= 1.0 && spec.high / spec.low > 100.0);
}

/// Three digits of the range, or of the value where the range is one of ratios: a step that a hand can aim at, and short to read.
double grainAt(const HyperSpec& spec, double value) {
  return std::pow(10.0, std::floor(std::log10(ratio(spec) ? std::abs(value) : spec.high - spec.low)) - 2.0);
}

}  // namespace

QString tipOf(const HyperSpec& spec) {
  QString text = "<p>" + QString::fromStdString(spec.text).toHtmlEscaped() + "</p><p>";
  if (!spec.symbol.empty()) text += QObject::tr("Symbol %1. ").arg(mathHtml(spec.symbol));
  if (spec.kind == HyperKind::integer || spec.kind == HyperKind::real) {
    text += QObject::tr("From %1 to %2").arg(spec.low).arg(spec.high);
    if (!spec.unit.empty()) text += " " + QString::fromStdString(spec.unit).toHtmlEscaped();
    text += ". ";
  }
  return htmlTip(text + QObject::tr("Key <tt>%1</tt>.").arg(QString::fromStdString(spec.key)) + "</p>");
}

double valueAt(const HyperSpec& spec, int position) {
  const double share = static_cast<double>(position) / positions;
  double value = ratio(spec) ? spec.low * std::pow(spec.high / spec.low, share) : spec.low + share * (spec.high - spec.low);
  if (spec.kind == HyperKind::integer) return std::round(value);
  if (position <= 0) return spec.low;
  if (position >= positions) return spec.high;
  if (spec.step > 0.0) return std::clamp(onGrid(value, spec.step, spec.low), spec.low, spec.high);
  return std::clamp(onGrid(value, grainAt(spec, value)), spec.low, spec.high);
}

double steppedBy(const HyperSpec& spec, double value, int steps) {
  if (spec.kind == HyperKind::integer) return std::clamp(std::round(value) + steps * std::max(1.0, spec.step), spec.low, spec.high);
  double step = spec.step > 0.0 ? spec.step : grainAt(spec, value);
  if (spec.step <= 0.0 && ratio(spec)) {
    step *= 10.0;                                                        // two digits
    if (steps < 0 && value <= 10.0 * step * (1.0 + 1e-9)) step /= 10.0;  // from 0.1 down by 0.001, not to 0.09
  }
  // A typed value between two steps stays between them.
  const double digits = std::min(step, std::pow(10.0, std::floor(std::log10(step))));
  const double fine = std::abs(onGrid(value, digits) - value) < 1e-9 * std::max(1.0, std::abs(value)) ? digits : digits * 1e-6;
  return std::clamp(onGrid(value + steps * step, fine), spec.low, spec.high);
}

int positionOf(const HyperSpec& spec, double value) {
  if (!(spec.high > spec.low)) return 0;
  const double share = ratio(spec) ? std::log(std::max(value, spec.low) / spec.low) / std::log(spec.high / spec.low)
                                   : (value - spec.low) / (spec.high - spec.low);
  return static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * positions));
}

QString whyNotDrawn(const QString& weights) {
  if (weights.isEmpty()) return {};
  return InspectorView::tr(
             "The weights come from %1, so nothing is drawn from a seed. File ▸ Forget weights and initial state draws them again.")
      .arg(QFileInfo(weights).fileName());
}

QString whyIdle(const HyperSpec& spec, const ModelPtr& model, const QString& weights) {
  if (!spec.initialisation_only) return {};
  if (!weights.isEmpty()) return whyNotDrawn(weights);
  const auto idle = std::ranges::find(model->idle, spec.key, &IdleSetting::key);
  return idle == model->idle.end() ? QString() : QString::fromStdString(idle->why).replace('_', ' ');
}

std::vector<Panel::Setting> settings_beside(const ModelPtr& model, const QString& weights) {
  std::vector<Panel::Setting> settings;
  if (!model) return settings;
  for (const HyperSpec& spec : model->hyper.table()) {
    if (spec.kind != HyperKind::real && spec.kind != HyperKind::choice) continue;
    Panel::Setting one;
    one.key = QString::fromStdString(spec.key);
    one.label = inWords(spec.key).toHtmlEscaped() + (spec.symbol.empty() ? QString() : ' ' + mathHtml(spec.symbol));
    one.tip = tipOf(spec);
    one.value = QString::fromStdString(model->hyper.text(spec.key));
    one.why = whyIdle(spec, model, weights);
    one.works = one.why.isEmpty();
    for (const auto& choice : spec.choices) one.choices << QString::fromStdString(choice);
    if (spec.kind == HyperKind::real) {
      one.at = [spec](int position) { return valueAt(spec, position); };
      one.position = [spec](double value) { return positionOf(spec, value); };
      one.text = [spec](double value) { return textOf(spec, value); };
      one.stepped = [spec](double value, int steps) { return steppedBy(spec, value, steps); };
    }
    settings.push_back(std::move(one));
  }
  return settings;
}

InspectorView::InspectorView(QWidget* parent) : QScrollArea(parent) {
  setWidgetResizable(true);
  setAccessibleName(tr("Inspector"));
  setFrameShape(NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  build();
}

void InspectorView::build() {
  auto* page = new QWidget;
  page->setObjectName("paper");
  rows_ = new QVBoxLayout(page);
  rows_->setContentsMargins(10, 8, 12, 12);
  rows_->setSpacing(4);
  editors_.clear();
  sliders_.clear();
  more_.clear();

  trainedRow_ = new QWidget;
  trainedRow_->setObjectName("trained");
  auto* choice = new QHBoxLayout(trainedRow_);
  choice->setContentsMargins(0, 0, 0, 4);
  choice->setSpacing(4);
  auto* either = new QButtonGroup(trainedRow_);
  const auto tab = [&](const QString& name, const QString& text, const QString& tip, bool trained) {
    auto* made = new QPushButton(text);
    made->setObjectName(name);
    made->setToolTip(safeTip(tip));
    made->setCheckable(true);
    either->addButton(made);
    choice->addWidget(made, 1);
    connect(made, &QPushButton::clicked, this, [this, trained] { emit trainedWanted(trained); });
    return made;
  };
  drawn_ = tab("trained.drawn", tr("as drawn"), tr("Weights drawn from the seed"), false);
  trained_ = tab("trained.trained", tr("pretrained"), tr("The weights that came with this preset, on the task that they learned"), true);
  rows_->addWidget(trainedRow_);
  showTrained();
  weightsText_ = label({}, "muted");
  weightsText_->setObjectName("weightsText");
  weightsText_->setWordWrap(true);
  weightsText_->setFont(smallFont());
  weightsText_->setTextFormat(Qt::PlainText);
  rows_->addWidget(weightsText_);

  if (model_) {
    for (const HyperSpec& spec : model_->hyper.table()) {
      Editor editor;
      QWidget* made = spec.kind == HyperKind::flag     ? flagEditor(spec, editor)
                      : spec.kind == HyperKind::choice ? choiceEditor(spec, editor)
                                                       : numberEditor(spec, editor);
      made->setToolTip(safeTip(tipOf(spec)));
      made->setObjectName("setting." + QString::fromStdString(spec.key));
      editor.cell = made;
      editor.tip = tipOf(spec);
      rows_->addWidget(made);
      editors_[spec.key] = editor;
      more_ << made;
    }
    // Two real numbers, which a run follows while they move, and the gain of the input weights rather than the scale of the input; where
    // there are fewer, sizes.
    int left = 3;
    const auto show = [&](const HyperSpec& spec) {
      if (left > 0 && !scales_input(spec.key) && more_.removeOne(editors_[spec.key].cell)) --left;
    };
    for (const char* key : {"input_gain", "0.input_gain"})  // of a stack that of the lowest part
      for (const HyperSpec& spec : model_->hyper.table())
        if (spec.key == key) show(spec);
    for (const HyperKind kind : {HyperKind::real, HyperKind::integer})
      for (const HyperSpec& spec : model_->hyper.table())
        if (spec.kind == kind) show(spec);
  } else {
    auto* nothing = label(tr("Choose a model; its hyper-parameters are edited here."), "muted");
    nothing->setWordWrap(true);
    rows_->addWidget(nothing);
  }

  auto* rule = new QFrame;
  rule->setObjectName("rule");
  rows_->addSpacing(4);
  rows_->addWidget(rule);
  rows_->addSpacing(4);
  const quint64 seed = seed_ != nullptr ? seed_->value() : 1;
  auto* seedRow = new QHBoxLayout;
  seedRow->setSpacing(4);
  seedLabel_ = plainLabel(tr("Seed"));
  seedRow->addWidget(seedLabel_);
  seedRow->addStretch();
  seed_ = new WholeBox;
  seed_->setObjectName("seed");
  seed_->setValue(seed);
  seed_->setMaximumWidth(110);
  seedLabel_->setBuddy(seed_);
  dice_ = new QToolButton;
  dice_->setIcon(icon("dice"));
  dice_->setAccessibleName(tr("Another seed"));
  seedRow->addWidget(seed_);
  seedRow->addWidget(dice_);
  rows_->addLayout(seedRow);

  auto* lossRow = new QHBoxLayout;
  lossRow->setContentsMargins(0, 4, 0, 0);
  lossRow->setSpacing(4);
  auto* lossLabel = plainLabel(tr("Loss"));
  lossLabel->setToolTip(tr("What the gradients are of"));
  loss_ = new CalmBox<QComboBox>;
  loss_->setObjectName("loss");
  loss_->setMinimumWidth(108);
  lossLabel->setBuddy(loss_);
  for (const auto& [text, value, tip] :
       {std::tuple{tr("auto"), "auto", tr("The target's when the sequence has one, else that of the last step")},
        {tr("last step"), "last",
         tr("L = ½ |y_T|²: only what reaches the last output counts, so its gradient shows what is remembered until then")},
        {tr("mean"), "mean", tr("L = 1/(2T) Σ_t |y_t|²: every output counts")},
        {tr("target"), "task", tr("Half the squared error, or the cross-entropy, of the steps at which the target counts")}}) {
    loss_->addItem(text, value);
    loss_->setItemData(loss_->count() - 1, safeTip(tip), Qt::ToolTipRole);
  }
  lossRow->addWidget(lossLabel);
  lossRow->addStretch();
  lossRow->addWidget(loss_);
  rows_->addLayout(lossRow);
  lossText_ = label({}, "muted");
  lossText_->setObjectName("lossText");
  lossText_->setWordWrap(true);
  lossText_->setFont(smallFont());
  rows_->addWidget(lossText_);
  connect(loss_, &QComboBox::activated, this, [this](int index) { emit lossEdited(loss_->itemData(index).toString()); });
  connect(seed_, &WholeBox::valueChanged, this, [this](quint64 value) {
    if (!showing_) emit seedEdited(value, ++gesture_);
  });
  connect(dice_, &QToolButton::clicked, this, [this] { seed_->setValue(QRandomGenerator::global()->bounded(1, 10000)); });

  reset_ = new QPushButton(icon("reset"), tr("Back to the preset"));
  reset_->setProperty("link", true);
  reset_->setToolTip(tr("Every hyper-parameter as the preset has it; the seed stays."));
  rows_->addSpacing(4);
  rows_->addWidget(reset_, 0, Qt::AlignLeft);
  rows_->addStretch();
  connect(reset_, &QPushButton::clicked, this, &InspectorView::resetWanted);
  reset_->setEnabled(false);
  more_ << rule << seedLabel_ << seed_ << dice_ << lossLabel << loss_ << lossText_ << reset_;
  all_ = new QPushButton(tr("All settings…"));
  all_->setObjectName("allSettings");
  all_->setProperty("link", true);
  all_->setToolTip(tr("Every hyper-parameter of the model, the seed and the loss"));
  rows_->insertWidget(rows_->count() - 1, all_, 0, Qt::AlignLeft);
  connect(all_, &QPushButton::clicked, this, [this] { setFew(false); });
  showFew();
  setWidget(page);
  showWeights();
  showLoss();
}

void InspectorView::setFew(bool few) {
  few_ = few;
  showFew();
}

void InspectorView::showFew() {
  const bool few = few_ && model_;
  for (QWidget* one : more_) one->setVisible(!few);
  all_->setVisible(few);
}

void InspectorView::setTrained(bool there, bool trained, bool drawn) {
  hasTrained_ = there;
  isTrained_ = trained;
  isDrawn_ = drawn;
  showTrained();
}

void InspectorView::showTrained() {
  trainedRow_->setVisible(hasTrained_);
  drawn_->group()->setExclusive(false);  // other weights are neither
  drawn_->setChecked(isDrawn_);
  trained_->setChecked(isTrained_);
  drawn_->group()->setExclusive(true);
}

void InspectorView::setWeights(const QString& file) {
  weights_ = file;
  showWeights();
}

void InspectorView::showWeights() {
  const bool drawn = weights_.isEmpty();
  const QString why = whyNotDrawn(weights_);
  weightsText_->setVisible(!drawn && model_);
  weightsText_->setText(tr("Weights of %1. Values in grey are for drawn weights.").arg(QFileInfo(weights_).fileName()));
  seedLabel_->setToolTip(safeTip(drawn ? tr("What the weights are drawn from: the same seed, model and device give the same bits.") : why));
  seed_->setToolTip(safeTip(seedLabel_->toolTip()));
  dice_->setToolTip(safeTip(drawn ? tr("Another seed") : why));
  for (QWidget* one : std::initializer_list<QWidget*>{seedLabel_, seed_, dice_}) one->setEnabled(drawn);
  if (!model_) return;
  for (const HyperSpec& spec : model_->hyper.table()) {
    const auto found = editors_.find(spec.key);
    if (found == editors_.end() || !spec.initialisation_only) continue;
    const Editor& editor = found->second;
    const QString reason = whyIdle(spec, model_, weights_);
    editor.cell->setEnabled(reason.isEmpty() || editor.held());
    editor.cell->setToolTip(joinedTips({reason, editor.tip}));
  }
}

void InspectorView::setLoss(const std::string& choice, bool hasTarget) {
  lossChoice_ = choice;
  hasTarget_ = hasTarget;
  showLoss();
}

void InspectorView::setLossValue(const RunInfo& run) {
  // "last: L = ..."
  const QString loss = QString::fromStdString(run.loss), formula = loss.section(": ", 1);
  lossShown_ = loss.isEmpty() ? QString() : tr("%1. It is %2.").arg(formula.isEmpty() ? loss : formula, number(run.loss_value, 5));
  if (lossText_->text() != lossShown_) lossText_->setText(lossShown_);
}

void InspectorView::showLoss() {
  loss_->setCurrentIndex(std::max(0, loss_->findData(QString::fromStdString(lossChoice_))));
  const int target = loss_->findData("task");
  auto* item = qobject_cast<QStandardItemModel*>(loss_->model())->item(target);
  item->setEnabled(hasTarget_);
  item->setToolTip(safeTip(hasTarget_ ? tr("Half the squared error, or the cross-entropy, of the steps at which the target counts")
                                      : tr("The sequence has no target: choose one under Sequence, or a task that has one.")));
  lossText_->setText(lossShown_);
}

QString InspectorView::lossText() const { return lossText_->text(); }

QWidget* InspectorView::numberEditor(const HyperSpec& spec, Editor& editor) {
  auto* cell = new QWidget;
  auto* grid = new QVBoxLayout(cell);
  grid->setContentsMargins(0, 2, 0, 4);
  grid->setSpacing(0);
  auto* top = new QHBoxLayout;
  top->setSpacing(6);
  const QString symbol =
      spec.symbol.empty()
          ? QString()
          : QString("  <span style='color:%1'>%2</span>").arg(palette().color(QPalette::PlaceholderText).name(), mathHtml(spec.symbol));
  auto* name = plainLabel();
  name->setTextFormat(Qt::RichText);
  name->setText(inWords(spec.key).toHtmlEscaped() + symbol);
  name->setWordWrap(true);
  name->setMinimumWidth(40);
  editor.label = name;
  top->addWidget(name, 1);
  auto* box = new RealBox;
  box->setRange(spec.low, spec.high);
  box->setSingleStep(spec.kind == HyperKind::integer ? std::max(1.0, spec.step)
                     : spec.step > 0.0               ? spec.step
                                                     : (spec.high - spec.low) / 100.0);
  box->setStepped([spec](double value, int steps) { return steppedBy(spec, value, steps); });
  box->setKeyboardTracking(false);
  box->setMaximumWidth(92);
  box->setMinimumWidth(76);
  box->setFont(numberFont());
  box->setAlignment(Qt::AlignRight);
  top->addWidget(box);
  auto* unit = label(QString::fromStdString(spec.unit), "muted");
  unit->setFont(smallFont());
  if (!spec.unit.empty()) top->addWidget(unit);
  auto* slider = new CalmSlider(Qt::Horizontal);
  slider->setRange(0, positions);
  slider->setPageStep(50);
  slider->setObjectName("slider." + QString::fromStdString(spec.key));
  slider->step = [box](int steps) { box->stepBy(steps); };
  grid->addLayout(top);
  grid->addWidget(slider);
  sliders_[QString::fromStdString(spec.key)] = slider;
  for (QWidget* one : std::initializer_list<QWidget*>{box, slider}) one->setAccessibleName(inWords(spec.key));
  setSpokenValue(slider, box->value(), spec.low, spec.high);
  connect(slider, &QSlider::valueChanged, slider, [spec, box, slider] { setSpokenValue(slider, box->value(), spec.low, spec.high); });

  const QString key = QString::fromStdString(spec.key);
  connect(slider, &QSlider::sliderPressed, this, [this] {
    ++gesture_;
    moved_ = false;
  });
  connect(slider, &QSlider::valueChanged, this, [this, spec, key, box, slider](int position) {
    if (showing_) return;
    const double value = valueAt(spec, position);
    if (value == box->value()) return;
    const QSignalBlocker quiet(box);
    box->setValue(value);
    moved_ = true;
    emit edited(key, textOf(spec, value), slider->isSliderDown(), slider->isSliderDown() ? gesture_ : ++gesture_);
  });
  // Let go: the same value once more, now at rest and in full.
  connect(slider, &QSlider::sliderReleased, this, [this, spec, key, box] {
    if (moved_) emit edited(key, textOf(spec, box->value()), false, gesture_++);
  });
  connect(box, &QDoubleSpinBox::valueChanged, this, [this, spec, key, box, slider](double typed) {
    if (showing_) return;
    const double value = spec.kind == HyperKind::integer ? std::round(typed) : typed;
    const QSignalBlocker quietSlider(slider), quietBox(box);
    box->setValue(value);
    slider->setValue(positionOf(spec, value));
    emit edited(key, textOf(spec, value), false, ++gesture_);
  });
  editor.show = [spec, box, slider](const HyperValue& value) {
    box->setValue(number(value));
    slider->setValue(positionOf(spec, number(value)));
    setSpokenValue(slider, number(value), spec.low, spec.high);
  };
  editor.held = [slider] { return slider->isSliderDown(); };
  return cell;
}

QWidget* InspectorView::flagEditor(const HyperSpec& spec, Editor& editor) {
  auto* box = new QCheckBox(inWords(spec.key));
  box->setContentsMargins(0, 4, 0, 4);
  const QString key = QString::fromStdString(spec.key);
  connect(box, &QCheckBox::toggled, this, [this, key](bool on) {
    if (!showing_) emit edited(key, on ? "true" : "false", false, ++gesture_);
  });
  editor.label = box;
  editor.show = [box](const HyperValue& value) { box->setChecked(std::get_if<bool>(&value) != nullptr && std::get<bool>(value)); };
  auto* cell = new QWidget;
  auto* row = new QHBoxLayout(cell);
  row->setContentsMargins(0, 4, 0, 4);
  row->addWidget(box);
  return cell;
}

QWidget* InspectorView::choiceEditor(const HyperSpec& spec, Editor& editor) {
  auto* cell = new QWidget;
  auto* row = new QHBoxLayout(cell);
  row->setContentsMargins(0, 4, 0, 4);
  auto* name = plainLabel(inWords(spec.key));
  name->setWordWrap(true);
  auto* combo = new CalmBox<QComboBox>;
  combo->setSizeAdjustPolicy(QComboBox::AdjustToContents);  // as wide as its longest choice, where the view is
  combo->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  combo->setMinimumWidth(108);
  name->setBuddy(combo);
  for (const auto& choice : spec.choices) combo->addItem(QString::fromStdString(choice));
  combo->view()->setMinimumWidth(combo->view()->sizeHintForColumn(0) + 16);
  row->addWidget(name, 1);
  row->addWidget(combo);
  const QString key = QString::fromStdString(spec.key);
  connect(combo, &QComboBox::currentTextChanged, this, [this, key](const QString& text) {
    if (!showing_) emit edited(key, text, false, ++gesture_);
  });
  editor.label = name;
  editor.show = [combo](const HyperValue& value) {
    if (const auto* text = std::get_if<std::string>(&value)) combo->setCurrentText(QString::fromStdString(*text));
  };
  return cell;
}

void InspectorView::setModel(const ModelPtr& model) {
  const auto keys = [](const ModelPtr& one) {
    std::vector<std::string> all;
    if (one)
      for (const HyperSpec& spec : one->hyper.table()) all.push_back(spec.key);
    return all;
  };
  const bool same = model_ && model && model_->preset.id == model->preset.id && keys(model_) == keys(model);
  model_ = model;
  showing_ = true;
  if (!same) build();
  if (model_) {
    for (auto& [key, editor] : editors_) {
      if (!editor.held()) editor.show(model_->hyper.value(key));
      // Values that differ from the preset are bold.
      QFont font = editor.label->font();
      font.setBold(!(model_->hyper.value(key) == model_->standard.value(key)));
      editor.label->setFont(font);
    }
    reset_->setEnabled(!(model_->hyper == model_->standard));
    showWeights();
  }
  showing_ = false;
}

void InspectorView::setSeed(std::uint64_t seed) {
  showing_ = true;
  seed_->setValue(seed);
  showing_ = false;
}

void InspectorView::takeKeyboard() {
  for (QSlider* one : widget()->findChildren<QSlider*>())
    if (one->isVisible() && one->isEnabled()) {
      ensureWidgetVisible(one);
      return one->setFocus(Qt::OtherFocusReason);
    }
}

QSlider* InspectorView::slider(const QString& key) const {
  const auto found = sliders_.find(key);
  return found == sliders_.end() ? nullptr : found->second;
}

}  // namespace reclab
