// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/gradient_lab/lab_settings.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QLabel>
#include <QSpinBox>
#include <QWheelEvent>
#include <memory>

#include "box_layout.h"
#include "calm_editors.h"
#include "plain_text.h"
#include "spoken.h"

namespace reclab {
namespace {

constexpr int lab_positions = 1000, most_steps = 1'000'000;

/// Leave the wheel to the column that they are in.
template <class W>
class LabCalm : public W {
 public:
  using W::W;

 protected:
  void wheelEvent(QWheelEvent* event) override { event->ignore(); }
};

}  // namespace

LabSettings::LabSettings(QWidget* parent) : QScrollArea(parent) {
  setFrameShape(QFrame::NoFrame);
  setWidgetResizable(true);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* all = new QWidget;
  auto* column = boxLayout<QVBoxLayout>(all, 6, {8, 6, 8, 6});
  cells_ = new QWidget;
  rows_ = boxLayout<QVBoxLayout>(cells_, 4);
  column->addWidget(cells_);
  auto* form = new QFormLayout;
  form->setContentsMargins(0, 0, 0, 0);
  form->setRowWrapPolicy(QFormLayout::WrapLongRows);
  const auto steps = [&](const char* name, const QString& tip) {
    auto* box = new LabCalm<QSpinBox>;
    box->setObjectName(QLatin1String(name));
    box->setRange(0, most_steps);
    box->setSpecialValueText(tr("all"));
    box->setSuffix(tr(" steps"));
    box->setKeyboardTracking(false);
    box->setToolTip(safeTip(tip));
    connect(box, &QSpinBox::valueChanged, this, &LabSettings::truncationChanged);
    return box;
  };
  every_ = steps("every", tr("Truncated backpropagation: the weights are changed after every so many steps of the sequence (k1 in the "
                             "literature). Dotted lines in the picture."));
  back_ = steps("back", tr("Truncated backpropagation: at each change of the weights the gradient goes back over so many steps (k2 in the "
                           "literature); what was before them is not learned from. The tinted part of the picture."));
  clip_ = new LabCalm<QDoubleSpinBox>;
  clip_->setObjectName(QStringLiteral("clip"));
  clip_->setRange(0.0, 1e9);
  clip_->setDecimals(3);
  clip_->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
  clip_->setSpecialValueText(tr("none"));
  clip_->setKeyboardTracking(false);
  clip_->setToolTip(tr("Clipping: where the gradient of all weights, |∂L/∂θ|, is longer than this, it is shortened to this length."));
  connect(clip_, &QDoubleSpinBox::valueChanged, this, &LabSettings::truncationChanged);
  form->addRow(plainLabel(tr("change weights every")), every_);
  form->addRow(plainLabel(tr("gradient goes back")), back_);
  form->addRow(plainLabel(tr("clip gradient at norm")), clip_);
  column->addLayout(form);
  column->addStretch();
  setWidget(all);
}

int LabSettings::every() const { return every_->value(); }
int LabSettings::back() const { return back_->value(); }
double LabSettings::clip() const { return clip_->value(); }

void LabSettings::setTruncation(int every, int back, double clip) {
  every_->setValue(every);
  back_->setValue(back);
  clip_->setValue(clip);
}

void LabSettings::setSettings(const std::vector<Panel::Setting>& settings) {
  const auto same = [&] {
    if (settings.size() != editors_.size()) return false;
    for (std::size_t i = 0; i < settings.size(); ++i)
      if (settings[i].key != editors_[i].setting.key || settings[i].choices != editors_[i].setting.choices ||
          settings[i].tip != editors_[i].setting.tip)
        return false;
    return true;
  };
  showing_ = true;
  if (!same()) {
    for (const Editor& editor : editors_) delete editor.cell;
    editors_.clear();
    for (const Panel::Setting& setting : settings) {
      editors_.push_back(setting.choices.isEmpty() ? number(setting) : choice(setting));
      rows_->addWidget(editors_.back().cell);
    }
  }
  for (std::size_t i = 0; i < settings.size(); ++i) {
    editors_[i].setting = settings[i];
    editors_[i].show(settings[i]);
    editors_[i].cell->setEnabled(settings[i].works);
    editors_[i].cell->setToolTip(joinedTips({settings[i].why, settings[i].tip}));
  }
  showing_ = false;
}

LabSettings::Editor LabSettings::number(const Panel::Setting& setting) {
  auto* cell = new QWidget;
  auto* column = boxLayout<QVBoxLayout>(cell, 0);
  auto* name = plainLabel();
  name->setTextFormat(Qt::RichText);
  name->setWordWrap(true);
  auto* slider = new CalmSlider(Qt::Horizontal);
  slider->setObjectName(QStringLiteral("lab.") + setting.key);
  slider->setRange(0, lab_positions);
  slider->setPageStep(50);
  slider->setAccessibleName(QString(setting.key).replace('_', ' '));
  column->addWidget(name);
  column->addWidget(slider);
  const auto label = [name, slider, setting, text = setting.label](const QString& value) {
    name->setText(QStringLiteral("%1 = <b>%2</b>").arg(text, value));
    setSpokenValue(slider, value.toDouble(), setting.at(0), setting.at(lab_positions));
  };
  const auto now = std::make_shared<double>(setting.value.toDouble());
  if (setting.stepped)
    slider->step = [this, slider, label, setting, now](int steps) {
      *now = setting.stepped(*now, steps);
      const QSignalBlocker quiet(slider);
      slider->setValue(setting.position(*now));
      label(setting.text(*now));
      emit wanted(setting.key, setting.text(*now), false, ++gesture_);
    };
  connect(slider, &QSlider::sliderPressed, this, [this] { ++gesture_; });
  connect(slider, &QSlider::valueChanged, this, [this, slider, label, setting, now](int position) {
    if (showing_) return;
    *now = setting.at(position);
    const QString value = setting.text(*now);
    label(value);
    emit wanted(setting.key, value, slider->isSliderDown(), slider->isSliderDown() ? gesture_ : ++gesture_);
  });
  // Let go: the same value once more, now at rest and in full.
  connect(slider, &QSlider::sliderReleased, this,
          [this, slider, setting] { emit wanted(setting.key, setting.text(setting.at(slider->value())), false, gesture_++); });
  return {setting, cell, [slider, label, now](const Panel::Setting& shown) {
            if (slider->isSliderDown()) return;
            *now = shown.value.toDouble();
            label(shown.value);
            slider->setValue(shown.position(*now));
          }};
}

LabSettings::Editor LabSettings::choice(const Panel::Setting& setting) {
  auto* cell = new QWidget;
  auto* column = boxLayout<QVBoxLayout>(cell, 0);
  auto* name = plainLabel();
  name->setTextFormat(Qt::RichText);
  name->setText(setting.label);
  name->setWordWrap(true);
  auto* box = new LabCalm<QComboBox>;
  name->setBuddy(box);
  box->setObjectName(QStringLiteral("lab.") + setting.key);
  box->addItems(setting.choices);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  column->addWidget(name);
  column->addWidget(box);
  connect(box, &QComboBox::currentTextChanged, this, [this, key = setting.key](const QString& value) {
    if (!showing_) emit wanted(key, value, false, ++gesture_);
  });
  return {setting, cell, [box](const Panel::Setting& now) { box->setCurrentText(now.value); }};
}

}  // namespace reclab
