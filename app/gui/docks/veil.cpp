// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/docks/veil.h"

#include <QEvent>
#include <QPainter>

#include "gui/look/look.h"

namespace reclab {

Veil::Veil(QWidget* over) : QWidget(over) {
  setAttribute(Qt::WA_TransparentForMouseEvents);
  setFocusPolicy(Qt::NoFocus);
  over->installEventFilter(this);
  hide();
}

void Veil::cover(const QString& name) {
  if (name == name_) return;
  name_ = name;
  place();
}

void Veil::withhold(const QString& words) {
  if (words == words_) return;
  words_ = words;
  place();
}

void Veil::place() {
  setVisible(!name_.isEmpty() || !words_.isEmpty());
  setAccessibleName(words_);
  if (isHidden()) return;
  setGeometry(parentWidget()->rect());
  raise();
  update();
}

bool Veil::eventFilter(QObject* watched, QEvent* event) {
  if (watched == parent() && event->type() == QEvent::Resize) setGeometry(parentWidget()->rect());
  return QWidget::eventFilter(watched, event);
}

void Veil::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  QColor ground = palette().color(QPalette::Base);
  if (!words_.isEmpty()) {
    painter.fillRect(rect(), ground);
    painter.setFont(font());
    painter.setPen(palette().color(QPalette::PlaceholderText));
    return painter.drawText(rect().adjusted(12, 12, -12, -12), Qt::AlignCenter | Qt::TextWordWrap, words_);
  }
  ground.setAlphaF(0.5f);
  painter.fillRect(rect(), ground);
  // The name in the middle, where neither verdict nor legend nor axis is, on paper of its own: the picture under it is dimmed.
  const QFont font = smallFont();
  const QFontMetrics metrics(font, this);
  const QString text = metrics.elidedText(tr("still %1").arg(name_), Qt::ElideRight, std::max(40, width() - 40));
  QRectF box(0, 0, metrics.horizontalAdvance(text) + 16, metrics.height() + 6);
  box.moveCenter(QPointF(width() / 2.0, height() / 2.0));
  painter.setPen(palette().color(QPalette::Mid));
  painter.setBrush(palette().color(QPalette::Base));
  painter.drawRoundedRect(box.translated(0.5, 0.5), 4, 4);
  painter.setFont(font);
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(box, Qt::AlignCenter, text);
}

}  // namespace reclab
