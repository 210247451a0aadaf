// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/first_hint.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QSettings>
#include <QStringList>
#include <QStyle>
#include <QTimer>
#include <QToolButton>
#include <algorithm>
#include <utility>

#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {

FirstHint::FirstHint(QWidget* parent) : QFrame(parent) {
  setObjectName("hint");
  setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(12, 4, 8, 4);
  row->setSpacing(16);
  title_ = label(tr("To try:"), "title", this);
  row->addWidget(title_);
  const QString texts[] = {tr("drag a slider in the Inspector"), tr("press Train, and watch it learn"),
                           tr("drag along the time line below"), tr("pin this run (Ctrl+P), then change something")};
  for (int i = 0; i < gestures; ++i) {
    words_[static_cast<std::size_t>(i)] = plainLabel(texts[i], this);
    row->addWidget(words_[static_cast<std::size_t>(i)]);
  }
  row->addStretch();
  auto* shut = new QToolButton(this);
  shut->setIcon(icon("close", QPalette::Dark));
  shut->setIconSize({14, 14});
  shut->setToolTip(tr("Close; this does not come again"));
  row->addWidget(shut);
  connect(shut, &QToolButton::clicked, this, &FirstHint::end);
  setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);  // it asks for no width of its own
  setVisible(!QSettings().value("hintSeen").toBool());
  const QStringList before = QSettings().value("hintDone").toStringList();
  for (int i = 0; i < gestures; ++i)
    if (before.contains(QString::number(i))) done(static_cast<Gesture>(i));
}

void FirstHint::resizeEvent(QResizeEvent* event) {
  QFrame::resizeEvent(event);
  fit();
}

void FirstHint::fit() {
  int left = width() - 90 - title_->sizeHint().width();
  for (const bool done : {false, true})  // hints still to be tried come first
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (done_[i] != done) continue;
      left -= words_[i]->sizeHint().width() + 16;
      words_[i]->setVisible(left >= 0);
    }
}

void FirstHint::done(Gesture gesture) {
  if (isHidden() || std::exchange(done_[gesture], true)) return;
  QLabel* words = words_[gesture];
  words->setText(QStringLiteral("✓ ") + words->text());
  words->setProperty("role", "muted");
  words->style()->unpolish(words);
  words->style()->polish(words);
  fit();
  QStringList all;
  for (int i = 0; i < gestures; ++i)
    if (isDone(static_cast<Gesture>(i))) all << QString::number(i);
  QSettings().setValue("hintDone", all);
  if (std::all_of(done_.begin(), done_.end(), [](bool one) { return one; })) QTimer::singleShot(1500, this, &FirstHint::end);
}

void FirstHint::end() {
  QSettings().setValue("hintSeen", true);
  hide();
}

}  // namespace reclab
