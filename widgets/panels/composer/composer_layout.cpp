// SPDX-License-Identifier: GPL-3.0-or-later
// The composer's layout: tiles, and beside or under them the model that they make.
#include <QScrollBar>
#include <algorithm>

#include "box_layout.h"
#include "calm_editors.h"
#include "panels/composer/composer_panel.h"
#include "plain_text.h"

namespace reclab {
namespace {

constexpr int narrow = 360;             // pixels, below which the verdict has a line of its own
constexpr int two_columns = 700;        // pixels, from which the model is beside the tiles
constexpr int margin = 10, space = 10;  // pixels round the page and between its parts

/// Whether the model is beside the tiles.
bool besides(int width) { return width >= two_columns; }

/// A label whose first link is the keyboard's as soon as the label is, so that Enter opens it.
class LinkLabel : public QLabel {
 public:
  LinkLabel() { setTextFormat(Qt::RichText); }

 protected:
  void focusInEvent(QFocusEvent* event) override {
    QLabel::focusInEvent(event);
    if (event->reason() == Qt::TabFocusReason || event->reason() == Qt::BacktabFocusReason)
      QLabel::focusNextPrevChild(event->reason() == Qt::TabFocusReason);
  }
};

}  // namespace

void ComposerPanel::makeWidgets() {
  code_ = plainLabel();
  code_->setObjectName(QStringLiteral("code"));
  code_->setToolTip(tr("The code e-o-s-a: the numbers of the chosen expand, oscillation, shrink and activation."));
  code_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  verdict_ = new LinkLabel;
  verdict_->setObjectName(QStringLiteral("verdict"));
  verdict_->setTextFormat(Qt::RichText);
  verdict_->setWordWrap(true);
  verdict_->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
  open_ = new QPushButton(tr("Open as a model"));
  open_->setObjectName(QStringLiteral("open"));
  auto* top = new QWidget;
  top_ = new QGridLayout(top);
  top_->setContentsMargins(8, 4, 8, 4);
  top_->setHorizontalSpacing(10);
  top_->setVerticalSpacing(2);
  top_->setColumnStretch(1, 1);
  top_->addWidget(code_, 0, 0);
  top_->addWidget(open_, 0, 2);

  words_ = plainLabel();
  words_->setObjectName(QStringLiteral("words"));
  words_->setTextFormat(Qt::RichText);
  words_->setWordWrap(true);
  words_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
  words_->setAlignment(Qt::AlignTop);
  number_name_ = plainLabel();
  number_slider_ = new CalmSlider(Qt::Horizontal);
  number_slider_->setObjectName(QStringLiteral("numberSlider"));
  number_slider_->setRange(0, slider_positions);
  number_slider_->setMinimumWidth(40);
  number_slider_->setMaximumWidth(220);
  number_box_ = new CalmBox<QDoubleSpinBox>;
  number_box_->setObjectName(QStringLiteral("number"));
  number_box_->setDecimals(3);
  number_box_->setStepType(QAbstractSpinBox::AdaptiveDecimalStepType);
  number_box_->setKeyboardTracking(false);
  token_ = new CalmBox<QSpinBox>;
  token_->setObjectName(QStringLiteral("token"));
  token_->setRange(0, 0);
  token_->setToolTip(tr("The token at which the memory is read; a click in the right picture sets it too."));
  token_->setAccessibleName(tr("Read at token"));
  const auto group = [](std::initializer_list<QWidget*> widgets) {
    auto* made = new QWidget;
    auto* line = boxLayout<QHBoxLayout>(made, 6);
    for (QWidget* one : widgets) line->addWidget(one);
    line->addStretch(1);
    return made;
  };
  page_ = new QWidget;
  page_->setBackgroundRole(QPalette::Base);
  words_->setParent(page_);
  number_fields_ = group({number_name_, number_slider_, number_box_});
  token_fields_ = group({plainLabel(tr("read at token")), token_});
  factors_ = new FactorsView;
  for (QWidget* one : std::initializer_list<QWidget*>{number_fields_, token_fields_, factors_}) one->setParent(page_);

  scroll_ = new QScrollArea;
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll_->setBackgroundRole(QPalette::Base);
  scroll_->setWidget(page_);
  scroll_->setFocusPolicy(Qt::NoFocus);

  auto* shown = new QWidget;
  shown->setBackgroundRole(QPalette::Base);
  shown->setAutoFillBackground(true);
  auto* shown_column = boxLayout<QVBoxLayout>(shown, 0);
  shown_column->addWidget(top);
  shown_column->addWidget(scroll_, 1);
  sentence_ = plainLabel();
  sentence_->setObjectName(QStringLiteral("sentence"));
  sentence_->setWordWrap(true);
  sentence_->setAlignment(Qt::AlignCenter);
  sentence_->setContentsMargins(24, 16, 24, 16);
  compose_ = new QPushButton(tr("Put another one together"));
  compose_->setObjectName(QStringLiteral("compose"));
  auto* instead = new QWidget;
  instead->setBackgroundRole(QPalette::Base);
  instead->setAutoFillBackground(true);
  auto* instead_column = boxLayout<QVBoxLayout>(instead);
  instead_column->addStretch(1);
  instead_column->addWidget(sentence_);
  instead_column->addWidget(compose_, 0, Qt::AlignHCenter);
  instead_column->addStretch(1);
  pages_ = new QStackedWidget;
  pages_->addWidget(shown);
  pages_->addWidget(instead);
  auto* all = boxLayout<QVBoxLayout>(this);
  all->addWidget(pages_);
}

void ComposerPanel::arrange() {
  if (width() < narrow)
    top_->addWidget(verdict_, 1, 0, 1, 3);
  else
    top_->addWidget(verdict_, 0, 1);
  if (tiles_.empty()) return;
  const QSize room = scroll_->size();
  // Small tiles where large ones would leave less than half of the room to the model, or be more than half as high again as the room.
  const auto dress = [this](bool compact) {
    for (const auto& [key, tiles] : tiles_) tiles->setCompact(compact);
  };
  dress(false);
  if (placeTiles(room.width()) > (besides(room.width()) ? room.height() * 3 / 2 : room.height() / 2)) dress(true);
  int height = place(room.width(), room.height());
  if (height > room.height())
    height = place(room.width() - style()->pixelMetric(QStyle::PM_ScrollBarExtent, nullptr, scroll_) - 2, room.height());
  page_->resize(page_->width(), std::max(height, room.height()));
}

int ComposerPanel::widthOfTiles(int width) const {
  const int inner = width - 2 * margin;
  if (!besides(width)) return inner;
  int widest = 0, most = 6;
  for (const auto& [key, tiles] : tiles_) {
    widest = std::max(widest, tiles->minimumSizeHint().width());
    if (tiles->isCompact()) most = std::max(most, static_cast<int>(tiles->row().choices.size()));
  }
  return std::clamp(inner * 57 / 100 / widest, 2, most) * widest;
}

/// The rows under each other. Returns their height.
int ComposerPanel::placeTiles(int width) {
  const int left = widthOfTiles(width);
  // Rows of few tiles stand beside each other.
  int y = 2, x = margin;
  std::vector<TileRow*> few;
  for (const Composition::Row& row : composition_->rows)
    if (row.choices.size() <= beside_each_other) few.push_back(tiles_[row.key]);
  const int part = (left - space * (static_cast<int>(few.size()) - 1)) / std::max(1, static_cast<int>(few.size()));
  const bool in_line = std::ranges::all_of(few, [&](const TileRow* row) { return row->sizeHint().width() <= part; });
  for (TileRow* row : few) {
    const int own = in_line ? part : left, high = row->heightForWidth(own);
    row->setGeometry(x, y, own, high);
    if (in_line && row != few.back())
      x += own + space;
    else
      x = margin, y += high + space / 2;
  }
  for (const Composition::Row& row : composition_->rows) {
    TileRow* tiles = tiles_[row.key];
    if (std::ranges::find(few, tiles) != few.end()) continue;
    const int high = tiles->heightForWidth(left);
    tiles->setGeometry(margin, y, left, high);
    y += high + space / 2;
  }
  return y;
}

/// Lays out a page of that width: the model beside the tiles, or under them where there is no room. Returns the height.
int ComposerPanel::place(int width, int height) {
  const bool beside = besides(width);
  const int left = widthOfTiles(width);
  page_->resize(width, page_->height());
  const int y = placeTiles(width);
  const int from = beside ? margin + left + 2 * space : margin, wide = width - margin - from;
  int at = beside ? 2 : y;
  const auto put = [&](QWidget* one, int own, int high, int indent = 0) { one->setGeometry(from + indent, at, own, high); };
  put(words_, wide, words_->heightForWidth(wide));
  at += words_->height() + space;
  if (!factors_->isHidden()) {
    const QSize number = number_fields_->minimumSizeHint(), token = token_fields_->sizeHint();
    const int high = std::max(number.height(), token.height());
    const bool one_line = number.width() + 2 * space + token.width() <= wide;
    put(number_fields_, one_line ? std::min(wide - token.width() - 2 * space, 360) : wide, high);
    if (!one_line) at += high + space / 2;
    put(token_fields_, token.width() + space, high, one_line ? wide - token.width() - space : 0);
    at += high + space;
    const bool pair = wide >= FactorsView::side_by_side;  // a disk is no higher than it is wide
    put(factors_, wide,
        std::clamp(std::max(y, height) - at - space, pair ? 246 : 420, std::max(pair ? 246 : 420, pair ? wide * 6 / 10 + 60 : 520)));
    at += factors_->height() + space;
  }
  return std::max(y, at);
}

}  // namespace reclab
