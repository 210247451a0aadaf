// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/first_hint.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSettings>
#include <QStringList>
#include <QTimer>
#include <QToolButton>
#include <algorithm>
#include <utility>

#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {
namespace {

constexpr int gap = 12;
const QString seenKey = QStringLiteral("hintSeen"), doneKey = QStringLiteral("hintDone");

QString textOf(FirstHint::Gesture gesture) {
  switch (gesture) {
    case FirstHint::drag: return FirstHint::tr("drag a slider");
    case FirstHint::train: return FirstHint::tr("press Train, and watch it learn");
    default: return FirstHint::tr("a first lesson: three minutes");
  }
}

}  // namespace

FirstHint::FirstHint(QWidget* parent) : QFrame(parent) {
  setObjectName("hint");
  setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 4, 8, 4);
  row->setSpacing(gap);
  title_ = label(tr("To try:"), "title", this);
  row->addWidget(title_);
  for (int i = 0; i < gestures; ++i) {
    const auto gesture = static_cast<Gesture>(i);
    auto* words = words_[gesture] = new QPushButton(this);
    words->setProperty("link", true);
    row->addWidget(words);
    connect(words, &QPushButton::clicked, this, [this, gesture] { emit wanted(gesture); });
  }
  row->addStretch();
  shut_ = new QToolButton(this);
  shut_->setIcon(icon("close", QPalette::Dark));
  shut_->setIconSize({14, 14});
  shut_->setToolTip(tr("Close (Help ▸ First things to try brings it back)"));
  row->addWidget(shut_);
  connect(shut_, &QToolButton::clicked, this, &FirstHint::end);
  setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);  // it asks for no width of its own
  setVisible(!QSettings().value(seenKey).toBool());
  const QStringList before = QSettings().value(doneKey).toStringList();
  for (int i = 0; i < gestures; ++i) {
    done_[static_cast<std::size_t>(i)] = before.contains(QString::number(i));
    tell(static_cast<Gesture>(i));
  }
}

QToolButton* FirstHint::addButton(const QString& iconName, const QString& text, const QString& tip) {
  auto* button = new QToolButton(this);
  button->setIcon(icon(iconName));
  button->setText(text);
  button->setToolTip(safeTip(tip));
  button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  button->setPopupMode(QToolButton::InstantPopup);
  auto* row = qobject_cast<QHBoxLayout*>(layout());
  row->insertWidget(row->count() - 1, button);
  buttons_.push_back(button);
  return button;
}

void FirstHint::resizeEvent(QResizeEvent* event) {
  QFrame::resizeEvent(event);
  fit();
}

void FirstHint::fit() {
  int left = width() - 20 - title_->sizeHint().width() - shut_->sizeHint().width() - 2 * gap;
  for (const QToolButton* button : buttons_) left -= button->sizeHint().width() + gap;
  for (const bool done : {false, true})  // hints still to be tried come first
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (done_[i] != done) continue;
      left -= words_[i]->sizeHint().width() + gap;
      words_[i]->setVisible(left >= 0);
    }
}

void FirstHint::tell(Gesture gesture) {
  words_[gesture]->setText((done_[gesture] ? QStringLiteral("✓ ") : QString()) + textOf(gesture));
  words_[gesture]->setEnabled(!done_[gesture]);
}

void FirstHint::done(Gesture gesture) {
  if (isHidden() || std::exchange(done_[gesture], true)) return;
  tell(gesture);
  fit();
  QStringList all;
  for (int i = 0; i < gestures; ++i)
    if (isDone(static_cast<Gesture>(i))) all << QString::number(i);
  QSettings().setValue(doneKey, all);
  if (std::all_of(done_.begin(), done_.end(), [](bool one) { return one; })) QTimer::singleShot(1500, this, &FirstHint::end);
}

void FirstHint::again() {
  QSettings().remove(seenKey);
  QSettings().remove(doneKey);
  done_.fill(false);
  for (int i = 0; i < gestures; ++i) tell(static_cast<Gesture>(i));
  show();
  fit();
}

void FirstHint::end() {
  QSettings().setValue(seenKey, true);
  hide();
}

}  // namespace reclab
