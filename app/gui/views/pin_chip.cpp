// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/pin_chip.h"

#include <QContextMenuEvent>
#include <QHBoxLayout>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPainter>
#include <QToolButton>
#include <QToolTip>
#include <algorithm>

#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {
namespace {

constexpr int editorWidth = 150, leastName = 56, margin = 4, dots = 30;  // pixels

/// Differences are at the end of a name, so the middle is elided.
class NameLabel : public ElidedLabel {
 public:
  using ElidedLabel::ElidedLabel;

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.drawText(contentsRect(), Qt::AlignVCenter | Qt::AlignLeft,
                     fontMetrics().elidedText(text(), Qt::ElideMiddle, contentsRect().width()));
  }
};

}  // namespace

PinChip::PinChip(QWidget* parent) : QFrame(parent) {
  setObjectName("chip");
  setFocusPolicy(Qt::StrongFocus);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(8, 1, 4, 1);
  row->setSpacing(6);
  dot_ = plainLabel();
  dot_->setFixedSize(9, 9);
  name_ = new NameLabel;
  name_->setMaximumWidth(220);
  name_->setTextFormat(Qt::PlainText);
  editor_ = new QLineEdit;
  editor_->setMinimumWidth(leastName);
  editor_->setMaximumWidth(editorWidth);
  editor_->setMaxLength(60);
  editor_->setPlaceholderText(tr("by what differs"));
  editor_->setAccessibleName(tr("Name"));
  editor_->hide();
  editor_->installEventFilter(this);
  close_ = new QToolButton;
  close_->setIcon(icon("close", QPalette::Dark));
  close_->setIconSize({10, 10});
  close_->setFocusPolicy(Qt::NoFocus);
  close_->setToolTip(tr("Unpin (Delete)"));
  row->addWidget(dot_);
  row->addWidget(name_);
  row->addWidget(editor_);
  row->addWidget(close_);
  connect(close_, &QToolButton::clicked, this, &PinChip::unpinWanted);
  connect(editor_, &QLineEdit::editingFinished, this, [this] { endRename(true); });

  menu_ = new QMenu(this);
  title_ = menu_->addAction(QString());
  title_->setEnabled(false);
  title_->setVisible(false);
  menu_->addAction(tr("Rename…\tF2"), this, &PinChip::startRename);
  automatic_ = menu_->addAction(tr("Name it by what differs"), this, [this] { emit renamed({}); });
  menu_->addAction(tr("What differs…\tEnter"), this, &PinChip::compareWanted);
  menu_->addAction(tr("Look at this run"), this, &PinChip::lookWanted);
  menu_->addSeparator();
  menu_->addAction(icon("close"), tr("Unpin\tDelete"), this, &PinChip::unpinWanted);
}

void PinChip::show(const Pin& pin) {
  whole_ = pin.plain;
  const bool shown = pin.comparable;
  const QColor muted = palette().color(QPalette::PlaceholderText);
  // A run that is not in the plots has a hollow dot.
  const QString colour = pinColour(pin.colour).name();
  dot_->setStyleSheet(
      (shown ? QString("background:%1; border-radius:4px") : QString("border:1px solid %1; border-radius:4px")).arg(colour));
  said_ = (!pin.problem.isEmpty() ? tr("%1: not on this input").arg(pin.name)
           : shown                ? pin.name
           : pin.running          ? tr("%1: running").arg(pin.name)
                                  : tr("%1: waits").arg(pin.name));
  leaveOut(left_);
  name_->setStyleSheet(shown ? QString() : QString("color:%1").arg(muted.name()));
  setAccessibleName(tr("Pinned run %1").arg(pin.name));
  automatic_->setEnabled(!pin.given.isEmpty());
  title_->setText(buttonText(said_));
}

void PinChip::leaveOut(qsizetype letters) {
  left_ = letters;
  name_->setText(letters > 0 && said_.size() > letters ? said_.mid(letters) : said_);
}

void PinChip::setCompact(bool compact) {
  compact_ = compact;
  title_->setVisible(compact);
  name_->setVisible(!compact && editor_->isHidden());
  close_->setVisible(!compact);
  static_cast<QHBoxLayout*>(layout())->setContentsMargins(8, 1, compact ? 8 : 4, 1);
}

int PinChip::wholeWidth() const {
  const int name = editor_->isHidden() ? std::min(name_->maximumWidth(), name_->fontMetrics().horizontalAdvance(said_) + 2) : editorWidth;
  return 8 + dot_->width() + 6 + name + 6 + close_->sizeHint().width() + 4 + 2 * frameWidth();
}

QString PinChip::text() const { return said_; }

void PinChip::startRename() {
  editor_->setText(whole_);
  name_->hide();
  editor_->show();
  editor_->selectAll();
  editor_->setFocus(Qt::OtherFocusReason);
}

void PinChip::endRename(bool keep) {
  if (editor_->isHidden()) return;
  editor_->hide();
  setCompact(compact_);
  if (keep && editor_->text().simplified() != whole_) emit renamed(editor_->text());
}

bool PinChip::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && tip_) {
    QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), safeTip(tip_()), this);
    return true;
  }
  return QFrame::event(event);
}

bool PinChip::eventFilter(QObject* watched, QEvent* event) {
  // Escape gives the name up and stops no run; Enter takes it and is not the chip's own.
  if (watched == editor_ && (event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress)) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (const bool enter = key == Qt::Key_Return || key == Qt::Key_Enter; enter || key == Qt::Key_Escape) {
      event->accept();
      if (event->type() == QEvent::KeyPress) {
        endRename(enter);
        setFocus(Qt::OtherFocusReason);
      }
      return true;
    }
  }
  return QFrame::eventFilter(watched, event);
}

void PinChip::mousePressEvent(QMouseEvent* event) {
  if (compact_ && event->button() == Qt::LeftButton)
    menu_->popup(mapToGlobal(QPoint(0, height())));
  else
    QFrame::mousePressEvent(event);
}

void PinChip::mouseDoubleClickEvent(QMouseEvent*) { startRename(); }

void PinChip::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_F2: return startRename();
    case Qt::Key_Delete:
    case Qt::Key_Backspace: emit unpinWanted(); return;
    case Qt::Key_Return:
    case Qt::Key_Enter: emit compareWanted(); return;
    default: QFrame::keyPressEvent(event);
  }
}

void PinChip::contextMenuEvent(QContextMenuEvent* event) { menu_->popup(event->globalPos()); }

PinRow::PinRow(QWidget* parent) : QWidget(parent) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(margin, 0, margin, 0);
  row->setSpacing(margin);
}

void PinRow::add(PinChip* chip) {
  chips_.push_back(chip);
  layout()->addWidget(chip);
}

void PinRow::removeLast() {
  chips_.back()->hide();
  chips_.back()->deleteLater();
  chips_.pop_back();
}

int PinRow::wanted() const {
  int width = margin;
  for (const PinChip* one : chips_) width += one->wholeWidth() + margin;
  return width;
}

/// The length of the names' common beginning, in whole words, with a word left in each.
static qsizetype commonWords(const std::vector<PinChip*>& chips) {
  if (chips.size() < 2) return 0;
  qsizetype common = 0;
  const QString& first = chips.front()->name();
  for (qsizetype at = first.indexOf(u' '); at > 0 && at + 1 < first.size(); at = first.indexOf(u' ', at + 1)) {
    const QStringView words = QStringView(first).left(at + 1);
    if (!std::ranges::all_of(chips, [&](const PinChip* one) { return one->name().startsWith(words) && one->name().size() > words.size(); }))
      break;
    common = words.size();
  }
  return common;
}

void PinRow::fit() {
  // Words that all names share are left out before their differences.
  const qsizetype common = wanted() > width() ? commonWords(chips_) : 0;
  for (PinChip* one : chips_) one->leaveOut(common);
  // Names end in dots as long as their beginnings can be read.
  const int each = chips_.empty() ? 0 : (width() - margin) / static_cast<int>(chips_.size()) - margin;
  const bool compact = wanted() > width() && each < leastName + dots + 20;
  for (PinChip* one : chips_) one->setCompact(compact);
  updateGeometry();
}

QSize PinRow::sizeHint() const { return {wanted(), QWidget::sizeHint().height()}; }
QSize PinRow::minimumSizeHint() const {
  return {margin + static_cast<int>(chips_.size()) * (dots + margin), QWidget::minimumSizeHint().height()};
}

void PinRow::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fit();
}

}  // namespace reclab
