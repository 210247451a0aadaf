// SPDX-License-Identifier: GPL-3.0-or-later
// The row of controls of a timing: views, passes, forms and lengths, and the button that times them.
#include <QStyle>
#include <algorithm>

#include "box_layout.h"
#include "panels/timing/timing.h"
#include "panels/timing/timing_names.h"
#include "plain_text.h"

namespace reclab {

constexpr int controls_gap = 8;

void TimingPanel::makeControls() {
  segments_ = new QWidget;
  auto* row = boxLayout<QHBoxLayout>(segments_, 4);
  auto* group = new QButtonGroup(this);
  view_box_ = makeChoice("timingView", false, tr("What is drawn of the timing"));
  view_box_->setAccessibleName(tr("View"));
  for (const TimingViewText& view : view_texts) {
    auto* button = new QToolButton;
    button->setObjectName(QStringLiteral("timingView.") + QLatin1String(view.name));
    button->setText(tr(view.text));
    button->setToolTip(safeTip(tr(view.tip)));
    button->setCheckable(true);
    button->setAutoRaise(true);
    button->setFocusPolicy(Qt::TabFocus);
    group->addButton(button);
    row->addWidget(button);
    segment_.push_back(button);
    connect(button, &QToolButton::clicked, this, [this, view] { setView(view.view); });
  }
  connect(view_box_, &QComboBox::activated, this, [this](int index) { setView(static_cast<View>(view_box_->itemData(index).toInt())); });

  pass_box_ = makeChoice("timingPass", false,
                         tr("The time of which passes: of both together, of one, or of each by itself (forward solid, backward dashed)"));
  pass_box_->setAccessibleName(tr("Passes shown"));
  pass_box_->addItem(tr("both"), static_cast<int>(Pass::sum));
  pass_box_->addItem(tr("forward"), static_cast<int>(Pass::forward));
  pass_box_->addItem(tr("backward"), static_cast<int>(Pass::backward));
  pass_box_->addItem(tr("apart"), static_cast<int>(Pass::apart));
  connect(pass_box_, &QComboBox::activated, this, [this](int index) { setPass(static_cast<Pass>(pass_box_->itemData(index).toInt())); });

  pass_row_ = new QWidget;
  auto* pass = boxLayout<QHBoxLayout>(pass_row_);
  pass_label_ = plainLabel(tr("passes shown"));
  pass_label_->setProperty("role", "muted");
  pass_label_->hide();
  pass->addWidget(pass_label_);
  pass->addWidget(pass_box_);

  more_ = new QToolButton;
  more_->setObjectName(QStringLiteral("timingChoices"));
  more_->setText(tr("Choices…"));
  more_->setToolTip(tr("Which forms, lengths, batch, width, device, precision and passes are timed"));
  more_->setAutoRaise(true);
  time_ = new QPushButton;
  time_->setObjectName(QStringLiteral("timingStart"));
  connect(time_, &QPushButton::clicked, this, [this] { ask(state_.running ? StudyChoice::Act::stop : StudyChoice::Act::compute); });
  controls_->addWidget(segments_);
  controls_->addWidget(view_box_);
  controls_->addWidget(pass_row_);
  controls_->addStretch();
  controls_->addWidget(more_);
  controls_->addWidget(time_);

  choices_ = new TimingChoices;
  popup_ = new Popup(this);
  connect(more_, &QToolButton::clicked, this, [this] { popup_->openUnder(more_); });
  strip_ = new QWidget;
  auto* strip = boxLayout<QHBoxLayout>(strip_);
  strip->addWidget(choices_);
  connect(choices_, &TimingChoices::changed, this, [this] {
    changed_ = true;
    showButtons();
    ask(StudyChoice::Act::choose);
  });

  bar_ = new QProgressBar;
  bar_->setRange(0, 1000);
  bar_->setTextVisible(false);
  bar_->setFixedHeight(3);
  QSizePolicy kept = bar_->sizePolicy();
  kept.setRetainSizeWhenHidden(true);  // so that the plot does not jump
  bar_->setSizePolicy(kept);
  bar_->hide();

  // Above the plot and above the sentence alike. They never ask for more width than there is.
  for (QWidget* one : {control_row_, strip_}) {
    one->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    one->setMinimumWidth(0);
  }
  auto* all = static_cast<QVBoxLayout*>(layout());
  all->setSpacing(0);
  all->insertWidget(0, control_row_);
  all->insertWidget(1, strip_);
  all->insertWidget(2, bar_);
}

/// As much in the row as there is room for: segments, then a box in their place, then the passes go into the sheet, then words are short.
void TimingPanel::arrange() {
  const bool row = width() >= choices_->rowWidth() && height() >= 320, passes = pass_box_->isVisibleTo(pass_row_),
             views = view_box_->count() > 0;
  const auto wanted = [](const QWidget* one) { return one->sizeHint().width() + controls_gap; };
  int level = 0;
  for (;; ++level) {
    more_->setText(level < 3 ? tr("Choices…") : QStringLiteral("…"));
    time_->setText(state_.running ? tr("Stop") : level < 2 ? tr("Time the forms") : tr("Time"));
    if (level == 3) break;
    const bool sheet = !row || (passes && level == 2);
    const int taken = (!views ? 0 : wanted(level == 0 ? segments_ : static_cast<QWidget*>(view_box_))) +
                      (passes && level < 2 ? wanted(pass_box_) : 0) + (sheet ? wanted(more_) : 0) + wanted(time_);
    if (taken + controls_gap <= width()) break;
  }
  segments_->setVisible(views && level == 0);
  view_box_->setVisible(views && level > 0);
  QWidget *home = row ? strip_ : static_cast<QWidget*>(popup_), *pass_home = level < 2 ? control_row_ : static_cast<QWidget*>(popup_);
  if (choices_->parentWidget() != home) {
    popup_->hide();
    home->layout()->addWidget(choices_);
    choices_->setColumn(!row);
    choices_->show();
  }
  if (pass_row_->parentWidget() != pass_home) {
    popup_->hide();
    if (level < 2)
      controls_->insertWidget(2, pass_row_);
    else
      static_cast<QVBoxLayout*>(popup_->layout())->insertWidget(0, pass_row_);
    pass_label_->setVisible(level >= 2);
  }
  pass_row_->setVisible(passes);
  strip_->setVisible(trace_ && row);
  more_->setVisible(!row || (passes && level >= 2));
  control_row_->setVisible(trace_ != nullptr);
}

void TimingPanel::showViews() {
  QList<int> offered, present;
  for (const TimingViewText& view : view_texts)
    if (has(view.view)) offered << static_cast<int>(view.view);
  for (int i = 0; i < view_box_->count(); ++i) present << view_box_->itemData(i).toInt();
  if (offered != present) {
    view_box_->clear();
    for (const int view : offered) {
      view_box_->addItem(tr(view_texts[view].text), view);
      view_box_->setItemData(view_box_->count() - 1, safeTip(tr(view_texts[view].tip)), Qt::ToolTipRole);
    }
  }
  view_box_->setCurrentIndex(view_box_->findData(static_cast<int>(view())));
  view_box_->setEnabled(!offered.isEmpty());
  for (std::size_t i = 0; i < segment_.size(); ++i) {
    segment_[i]->setVisible(offered.contains(static_cast<int>(i)) || (offered.isEmpty() && i == 0));
    segment_[i]->setEnabled(!offered.isEmpty());
    segment_[i]->setChecked(static_cast<View>(i) == view());
  }
  const bool timed = view() == View::time || view() == View::throughput;
  pass_box_->setVisible(
      timed && std::any_of(timings_.forms.begin(), timings_.forms.end(), [](const TimedForm& form) { return form.backward.known(); }));
}

void TimingPanel::showButtons() {
  time_->setToolTip(safeTip(state_.running ? tr("Stop the timing; what has been timed stays")
                                           : tr("Time the forms that are chosen, at the lengths that are chosen")));
  time_->setVisible(!offer_->isVisibleTo(this));
  const bool stands_out = changed_ && !state_.running;
  if (time_->property("primary").toBool() != stands_out) {
    time_->setProperty("primary", stands_out);  // the timing shown is not of the present choices
    time_->style()->unpolish(time_);
    time_->style()->polish(time_);
  }
  bar_->setVisible(state_.running);
  arrange();
}

}  // namespace reclab
