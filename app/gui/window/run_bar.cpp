// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/run_bar.h"

#include <QComboBox>
#include <QStandardItemModel>
#include <QToolButton>
#include <algorithm>

#include "gui/docks/panel_area.h"
#include "gui/frame/window_frame.h"
#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {
namespace {

void select(QComboBox* box, const std::string& value) { box->setCurrentIndex(std::max(0, box->findData(QString::fromStdString(value)))); }

}  // namespace

RunBar::RunBar(WindowFrame* frame) : QToolBar(tr("Run"), frame->window()), frame_(frame) {
  setObjectName("toolbar");
  setMovable(false);
  setIconSize({16, 16});
  setToolButtonStyle(Qt::ToolButtonTextBesideIcon);

  auto* run = frame_->add("run", "run", tr("Run"), QKeySequence(Qt::Key_F5), [this] { frame_->session()->run(); });
  run->setToolTip(tr("Run once more, in full (F5)"));
  auto* stop = frame_->add("stop", "stop", tr("Stop"), QKeySequence(Qt::Key_Escape), [this] { frame_->session()->stop(); });
  stop->setToolTip(tr("Stop what is running, and pause what trains (Esc); what is shown stays"));
  auto* primary = new QToolButton(this);  // not of the action: its icon stands on the accent, the menu's does not
  primary->setObjectName("primary");
  primary->setIcon(icon("run", QPalette::HighlightedText));
  primary->setText(run->text());
  primary->setToolTip(safeTip(run->toolTip()));
  primary->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  connect(primary, &QToolButton::clicked, run, &QAction::trigger);
  calmHides_.push_back(addWidget(primary));
  addAction(stop);
  addActions(frame_->offered(ActionPlace::barTrain));
  addSeparator();

  std::vector<QAction*> boxes;
  const auto field = [&](const QString& name, const QString& tip) {
    auto* words = label(name, "muted", this);
    words->setContentsMargins(6, 0, 4, 0);
    fieldWords_.push_back(addWidget(words));
    auto* box = new QComboBox(this);
    box->setToolTip(safeTip(tip));
    box->setAccessibleName(name);
    words->setBuddy(box);
    box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    boxes.push_back(addWidget(box));
    return box;
  };
  device_ =
      field(tr("Device"), tr("Where the next run computes; auto: on a CUDA device what is float32 and large enough, all else on the CPU"));
  device_->addItem(tr("auto"), "auto");
  device_->addItem(tr("CPU"), "cpu");
  device_->addItem(tr("CUDA"), "cuda");
  form_ = field(tr("Form"), tr("How the recurrence is computed: all of them give the same numbers, at different speeds"));
  form_->addItem(tr("auto"), "auto");
  form_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);  // one width for every model's forms
  form_->setMinimumContentsLength(11);
  precision_ = field(tr("Precision"), tr("float64 for science, float32 for speed"));
  precision_->addItem("float64", "f64");
  precision_->addItem("float32", "f32");
  const auto pick = [this](QComboBox* box, std::string Setup::* field_, const QString& text) {
    connect(box, &QComboBox::activated, this, [this, box, field_, text](int index) {
      Setup after = frame_->session()->setup();
      after.*field_ = box->itemData(index).toString().toStdString();
      if (after.*field_ != frame_->session()->setup().*field_) frame_->change(after, text);
    });
  };
  pick(device_, &Setup::device, tr("device"));
  pick(form_, &Setup::form, tr("form"));
  pick(precision_, &Setup::dtype, tr("precision"));
  layout_ = field(tr("Layout"), tr("Which panels are shown, and where"));
  for (const PanelLayout& one : frame_->area()->layouts()) layout_->addItem(one.name);
  calmHides_.insert(calmHides_.end(), boxes.begin(), boxes.end() - 1);
  addSeparator();

  addActions(frame_->offered(ActionPlace::barCompare));

  if (auto* more = findChild<QToolButton*>("qt_toolbar_ext_button")) more->setIcon(icon("menu"));  // the button for actions without room
  for (QToolButton* button : findChildren<QToolButton*>()) button->setFocusPolicy(Qt::TabFocus);  // a tool bar takes the keyboard from them
}

void RunBar::setNoCuda(const QString& why) {
  const int cuda = device_->findData("cuda");
  qobject_cast<QStandardItemModel*>(device_->model())->item(cuda)->setEnabled(false);
  device_->setItemData(cuda, safeTip(why), Qt::ToolTipRole);
  device_->setToolTip(safeTip(tr("Where the next run computes. CUDA cannot be used: %1").arg(why)));
}

void RunBar::showSetup(const Setup& setup) {
  select(device_, setup.device);
  select(form_, setup.form);
  select(precision_, setup.dtype);
}

void RunBar::setForms(const std::vector<std::string>& forms) {
  form_->clear();
  form_->addItem(tr("auto"), "auto");
  for (const std::string& form : forms) form_->addItem(QString::fromStdString(form), QString::fromStdString(form));
  select(form_, frame_->session()->setup().form);
}

void RunBar::fit(bool calm, bool narrow) {
  for (QAction* words : fieldWords_) words->setVisible(!narrow && (!calm || words == fieldWords_.back()));
  for (QAction* one : calmHides_) one->setVisible(!calm);
}

}  // namespace reclab
