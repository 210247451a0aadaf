// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/docks/flat_dock.h"

#include <QApplication>
#include <QFontMetrics>
#include <QHBoxLayout>
#include <QLabel>
#include <QMouseEvent>
#include <QStyle>
#include <QToolButton>

#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {

FlatHeader::FlatHeader(const QString& title, QWidget* parent) : QFrame(parent) {
  setAttribute(Qt::WA_StyledBackground);
  row_ = new QHBoxLayout(this);
  row_->setContentsMargins(10, 3, 6, 3);
  row_->setSpacing(8);
  title_ = label(title, "title", this);
  auto* room = new QWidget(this);  // with no layout: another number does not lay out the window anew
  headline_ = label({}, "muted", room);
  headline_->setFont(numberFont());
  headline_->setTextFormat(Qt::PlainText);
  row_->addWidget(title_);
  row_->addWidget(room, 1);
  setMinimumHeight(30);
}

void FlatHeader::setHeadline(const QString& text) {
  full_ = text;
  headline_->setToolTip(safeTip(text));
  elide();
}

void FlatHeader::elide() {
  headline_->resize(headline_->parentWidget()->size());
  headline_->setText(headline_->fontMetrics().elidedText(full_, Qt::ElideRight, headline_->width()));
}

void FlatHeader::resizeEvent(QResizeEvent* event) {
  QFrame::resizeEvent(event);
  row_->activate();
  elide();
}

void FlatHeader::mouseDoubleClickEvent(QMouseEvent* event) {
  event->accept();  // not the dock's floating, which nobody expects of a title
  emit doubleClicked();
}

QToolButton* FlatHeader::addButton(const QString& iconName, const QString& tip) {
  auto* button = new QToolButton(this);
  button->setIcon(icon(iconName, QPalette::Dark));
  button->setIconSize({14, 14});
  button->setToolTip(safeTip(tip));
  button->setAutoRaise(true);
  button->setFocusPolicy(Qt::NoFocus);
  row_->addWidget(button);
  return button;
}

FlatDock::FlatDock(const QString& id, const QString& title, QWidget* parent)
    : QDockWidget(title, parent), header_(new FlatHeader(title, this)) {
  setObjectName(id);
  setTitleBarWidget(header_);
  setFeatures(DockWidgetMovable | DockWidgetFloatable | DockWidgetClosable);
  connect(qApp, &QApplication::focusChanged, this, [this](const QWidget*, const QWidget* now) {
    const bool here = now != nullptr && isAncestorOf(now);
    if (header_->property("current").toBool() == here) return;
    header_->setProperty("current", here);
    header_->style()->unpolish(header_);
    header_->style()->polish(header_);
  });
}

}  // namespace reclab
