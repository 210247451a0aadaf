// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/palette/palette.h"

#include <QAbstractListModel>
#include <QAccessible>
#include <QApplication>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListView>
#include <QPainter>
#include <QSettings>
#include <QStyledItemDelegate>
#include <QTextLayout>
#include <QVBoxLayout>
#include <utility>

#include "gui/look/look.h"

namespace reclab {
namespace {

constexpr int mostKept = 12;  ///< of the last used
const QString usedKey = QStringLiteral("palette/used");

enum Role : int { detailRole = Qt::UserRole, keysRole, marksRole };

}  // namespace

/// The entries that were found, a row each.
class PaletteModel : public QAbstractListModel {
 public:
  using QAbstractListModel::QAbstractListModel;
  void setIndex(PaletteIndex index) {
    beginResetModel();
    matches_.clear();
    index_ = std::move(index);
    endResetModel();
  }
  void find(const QString& query) {
    beginResetModel();
    query_ = query;
    matches_ = index_.find(query);
    endResetModel();
  }
  const PaletteIndex::Match* at(const QModelIndex& row) const {
    return row.isValid() ? &matches_[static_cast<std::size_t>(row.row())] : nullptr;
  }
  int firstEnabled() const {
    const auto found = std::ranges::find_if(matches_, &PaletteIndex::Match::enabled);
    return found == matches_.end() ? -1 : static_cast<int>(found - matches_.begin());
  }

  int rowCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : static_cast<int>(matches_.size()); }
  Qt::ItemFlags flags(const QModelIndex& row) const override {
    const PaletteIndex::Match* match = at(row);
    if (match == nullptr) return {};
    return match->enabled() ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemNeverHasChildren : Qt::ItemFlags(Qt::ItemNeverHasChildren);
  }
  QVariant data(const QModelIndex& row, int role) const override {
    const PaletteIndex::Match* match = at(row);
    if (match == nullptr) return {};
    const QString text = match->value.isEmpty() ? match->entry->text : match->entry->text + " = " + match->value,
                  detail = match->whyNot.isEmpty() ? match->entry->detail : match->whyNot;
    switch (role) {
      case Qt::DisplayRole: return text;
      case Qt::AccessibleTextRole: return QStringList{text, detail, match->entry->keys}.join(QStringLiteral(", "));
      case detailRole: return detail;
      case keysRole: return match->entry->keys;
      case marksRole: return QVariant::fromValue(markedBy(query_, match->entry->text));
      default: return {};
    }
  }

 private:
  PaletteIndex index_;
  std::vector<PaletteIndex::Match> matches_;
  QString query_;
};

namespace {

/// A row: the name, its found letters in bold, beside it in grey its kind or why it cannot be done, and at the end its keys.
class PaletteRow : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex&) const override { return {100, option.fontMetrics.height() + 10}; }
  void paint(QPainter* painter, const QStyleOptionViewItem& given, const QModelIndex& row) const override {
    QStyleOptionViewItem option = given;
    initStyleOption(&option, row);
    option.text.clear();
    option.widget->style()->drawControl(QStyle::CE_ItemViewItem, &option, painter, option.widget);
    const QPalette::ColorGroup group = row.flags() & Qt::ItemIsEnabled ? QPalette::Active : QPalette::Disabled;
    QRect room = option.rect.adjusted(10, 0, -10, 0);
    painter->save();
    painter->setPen(option.palette.color(group, QPalette::PlaceholderText));
    if (const QString keys = row.data(keysRole).toString(); !keys.isEmpty()) {
      painter->drawText(room, Qt::AlignRight | Qt::AlignVCenter, keys);
      room.setRight(room.right() - option.fontMetrics.horizontalAdvance(keys) - 16);
    }
    QList<QTextLayout::FormatRange> bold;
    for (const int place : row.data(marksRole).value<QList<int>>()) {
      QTextCharFormat format;
      format.setFontWeight(QFont::Bold);
      bold << QTextLayout::FormatRange{place, 1, format};
    }
    QTextLayout name(option.fontMetrics.elidedText(row.data(Qt::DisplayRole).toString(), Qt::ElideRight, room.width()), option.font);
    name.setFormats(bold);
    name.beginLayout();
    const QTextLine line = name.createLine();
    name.endLayout();
    painter->setPen(option.palette.color(group, QPalette::Text));
    name.draw(painter, {static_cast<qreal>(room.left()), room.top() + (room.height() - line.height()) / 2.0});
    room.setLeft(room.left() + static_cast<int>(line.naturalTextWidth()) + 14);
    painter->setPen(option.palette.color(group, QPalette::PlaceholderText));
    if (room.width() > 20)
      painter->drawText(room, Qt::AlignLeft | Qt::AlignVCenter,
                        option.fontMetrics.elidedText(row.data(detailRole).toString(), Qt::ElideRight, room.width()));
    painter->restore();
  }
};

}  // namespace

Palette::Palette(QWidget* window, std::function<std::vector<PaletteEntry>()> entries,
                 std::function<void(const std::function<void()>& does)> act)
    : QFrame(window), entries_(std::move(entries)), act_(std::move(act)), line_(new QLineEdit(this)), list_(new QListView(this)) {
  setObjectName("palette");
  setAttribute(Qt::WA_StyledBackground);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 8);
  column->setSpacing(6);
  line_->setObjectName("paletteLine");
  line_->setPlaceholderText(tr("A model, a panel, an action, or a setting and its value: radius 0.9"));
  line_->setAccessibleName(tr("Find anything"));
  line_->installEventFilter(this);
  list_->setObjectName("paletteList");
  list_->setAccessibleName(tr("Entries that are found"));
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setUniformItemSizes(true);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  list_->setItemDelegate(new PaletteRow(list_));
  model_ = new PaletteModel(this);
  list_->setModel(model_);
  column->addWidget(line_);
  column->addWidget(list_, 1);
  connect(line_, &QLineEdit::textChanged, this, &Palette::search);
  connect(list_, &QListView::clicked, this, [this](const QModelIndex& row) {
    list_->setCurrentIndex(row);
    doCurrent();
  });
  connect(list_->selectionModel(), &QItemSelectionModel::currentChanged, this, &Palette::tellCurrent);
  connect(qApp, &QApplication::focusChanged, this, [this](const QWidget*, const QWidget* now) {
    if (isVisible() && now != nullptr && !isAncestorOf(now)) shut(false);
  });
  window->installEventFilter(this);
  hide();
}

void Palette::open() {
  if (isVisible()) return shut(true);
  before_ = window()->focusWidget();
  refill();
  show();
  raise();
  line_->setFocus(Qt::ShortcutFocusReason);
}

void Palette::refill() {
  model_->setIndex(PaletteIndex(entries_(), QSettings().value(usedKey).toStringList()));
  const QSignalBlocker quiet(line_);
  if (!isVisible()) line_->clear();
  search();
}

void Palette::place() {
  const QWidget* over = parentWidget();
  const int rows = std::min(model_->rowCount(), 15) * list_->sizeHintForRow(0) + 2 * list_->frameWidth();
  const QSize size(std::min(680, over->width() - 40),
                   std::min(line_->sizeHint().height() + (model_->rowCount() > 0 ? rows + 6 : 0) + 18, over->height() - 100));
  setGeometry(QRect(QPoint((over->width() - size.width()) / 2, 48), size));
}

void Palette::search() {
  model_->find(line_->text());
  list_->setCurrentIndex(model_->index(model_->firstEnabled()));
  list_->scrollToTop();
  list_->setVisible(model_->rowCount() > 0);
  place();
  tellCurrent();
}

void Palette::tellCurrent() {
  const QString said = list_->currentIndex().data(Qt::AccessibleTextRole).toString();
  line_->setAccessibleDescription(said.isEmpty() ? tr("Nothing is found") : said);
}

void Palette::doCurrent() {
  const PaletteIndex::Match* match = model_->at(list_->currentIndex());
  if (match == nullptr || !match->enabled()) return;
  const PaletteEntry entry = *match->entry;
  const QString value = match->value;
  if (!entry.does && value.isEmpty()) {  // its value is still to be typed
    line_->setText(entry.text + ' ');
    return;
  }
  QStringList used = QSettings().value(usedKey).toStringList();
  used.removeAll(PaletteIndex::keyOf(entry));
  used.prepend(PaletteIndex::keyOf(entry));
  QSettings().setValue(usedKey, used.mid(0, mostKept));
  shut(true);
  if (entry.show) act_(entry.show);
  act_([&] { value.isEmpty() ? entry.does() : entry.values->set(value); });
}

void Palette::shut(bool giveFocusBack) {
  if (giveFocusBack && before_) before_->setFocus(Qt::OtherFocusReason);
  hide();
}

bool Palette::eventFilter(QObject* watched, QEvent* event) {
  if (watched == parentWidget()) {
    if (event->type() == QEvent::Resize && isVisible()) place();
    return false;
  }
  if (event->type() != QEvent::KeyPress && event->type() != QEvent::ShortcutOverride) return false;
  const int key = static_cast<QKeyEvent*>(event)->key();
  switch (key) {
    case Qt::Key_Escape:
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_PageUp:
    case Qt::Key_PageDown:
    case Qt::Key_Tab:
    case Qt::Key_Backtab: break;
    default: return false;
  }
  event->accept();  // no shortcut of the window, and no move of the keyboard
  if (event->type() == QEvent::ShortcutOverride) return true;
  if (key == Qt::Key_Escape)
    shut(true);
  else if (key == Qt::Key_Return || key == Qt::Key_Enter)
    doCurrent();
  else if (key != Qt::Key_Tab && key != Qt::Key_Backtab)
    QCoreApplication::sendEvent(list_, event);
  return true;
}

}  // namespace reclab
