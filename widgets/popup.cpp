// SPDX-License-Identifier: GPL-3.0-or-later
#include "popup.h"

#include <QScreen>
#include <algorithm>

#include "box_layout.h"
#include "plain_text.h"

namespace reclab {

Popup::Popup(QWidget* parent) : QFrame(parent, Qt::Popup) {
  setObjectName(QStringLiteral("popup"));
  setFrameShape(QFrame::StyledPanel);
  auto* column = boxLayout<QVBoxLayout>(this, -1, {12, 10, 12, 10});
  column->setSizeConstraint(QLayout::SetFixedSize);
}

void Popup::addChoice(const QString& name, QWidget* editor) {
  auto* line = boxLayout<QHBoxLayout>(nullptr, 8);
  auto* words = plainLabel(name);
  words->setProperty("role", "muted");
  words->setBuddy(editor);
  line->addWidget(words);
  line->addStretch();
  line->addWidget(editor);
  static_cast<QVBoxLayout*>(layout())->addLayout(line);
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

}  // namespace reclab
