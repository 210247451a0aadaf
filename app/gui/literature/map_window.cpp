// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/literature/map_window.h"

#include <QAction>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QShortcut>
#include <QSplitter>
#include <QTextBrowser>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {

void makeModelSearch(QLineEdit* field) {
  field->setPlaceholderText(QObject::tr("Search"));
  field->setAccessibleName(QObject::tr("Search models"));
  field->setToolTip(
      QObject::tr("By name, family, author, year or property: linear, gated, time-invariant, diagonal, complex, growing (Ctrl+F). "
                  "is:linear and not:gated ask for the "
                  "property alone. Enter picks the first that fits, the down arrow goes on to the models."));
  field->setClearButtonEnabled(true);
  field->addAction(icon("search", QPalette::Dark), QLineEdit::LeadingPosition);
  auto* menu = new QMenu(field);
  menu->setObjectName("properties");
  menu->setToolTipsVisible(true);
  const auto text = [](std::string_view one) { return QString::fromUtf8(one.data(), static_cast<qsizetype>(one.size())); };
  for (const PropertyInfo& info : property_infos()) {
    const QString word = text(info.word);
    QAction* one = menu->addAction(word);
    one->setToolTip(safeTip(text(info.text)));
    one->setCheckable(true);
    QObject::connect(one, &QAction::triggered, field, [field, word](bool on) { field->setText(withProperty(field->text(), word, on)); });
    QObject::connect(menu, &QMenu::aboutToShow, one, [field, word, one] { one->setChecked(asksFor(field->text(), word)); });
  }
  QAction* filter = field->addAction(icon("filter", QPalette::Dark), QLineEdit::TrailingPosition);
  filter->setToolTip(QObject::tr("Only models with a property"));
  QObject::connect(filter, &QAction::triggered, menu, [field, menu] { menu->popup(field->mapToGlobal(QPoint(0, field->height()))); });
}

MapWindow::MapWindow(const FileChooser* chooser, QWidget* parent) : QWidget(parent, Qt::Window), chooser_(chooser) {
  setObjectName("mapWindow");
  setWindowTitle(tr("Map of the literature"));
  setAttribute(Qt::WA_StyledBackground);
  setAcceptDrops(true);
  setProperty("takesFiles", true);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(8, 8, 8, 8);
  row->setSpacing(4);
  column->addLayout(row);
  search_ = new QLineEdit(this);
  search_->setMaximumWidth(320);
  makeModelSearch(search_);
  row->addWidget(search_, 1);
  const auto button = [&](const QString& text, const QString& tip, auto does) {
    auto* made = new QToolButton(this);
    made->setText(text);
    made->setToolTip(safeTip(tip));
    made->setFocusPolicy(Qt::TabFocus);
    row->addWidget(made);
    if constexpr (!std::is_null_pointer_v<decltype(does)>) connect(made, &QToolButton::clicked, this, does);
    return made;
  };
  button(QString::fromUtf8("−"), tr("Smaller (−, or Ctrl and the wheel)"), [this] { map_->setZoom(map_->zoom() / 1.2); });
  button("+", tr("Larger (+, or Ctrl and the wheel)"), [this] { map_->setZoom(map_->zoom() * 1.2); });
  button(tr("All"), tr("All of the map in sight (0)"), [this] { map_->fit(); })->setObjectName("fit");
  button(tr("Readable"), tr("So large that every name has room"), [this] { map_->setZoom(1.0); });
  auto* save = button(tr("Save"), tr("Save the map as a figure"), nullptr);
  save->setIcon(icon("image"));
  save->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  save->setPopupMode(QToolButton::InstantPopup);
  auto* formats = new QMenu(save);
  for (const auto& [name, format] : {std::pair{"PNG", Panel::Format::png}, {"SVG", Panel::Format::svg}, {"PDF", Panel::Format::pdf}})
    formats->addAction(tr("As %1…").arg(name), this, [this, format = format] { this->save(format); });
  save->setMenu(formats);
  auto* how = new ElidedLabel(tr("A click loads a model. Ctrl-click, or Space, marks another to compare it with."), this);
  how->setProperty("role", "muted");
  row->addSpacing(12);
  row->addWidget(how, 2);

  halves_ = new QSplitter(Qt::Horizontal, this);
  halves_->setChildrenCollapsible(false);
  map_ = new LiteratureMap(halves_);
  map_->setMinimumWidth(static_cast<int>(widestMapList));
  comparison_ = new QTextBrowser(halves_);
  comparison_->setFrameShape(QFrame::NoFrame);
  comparison_->setFont(smallFont());
  comparison_->document()->setDocumentMargin(12);
  comparison_->setMinimumWidth(380);
  comparison_->setAccessibleName(tr("Two models side by side"));
  comparison_->hide();
  halves_->addWidget(map_);
  halves_->addWidget(comparison_);
  halves_->setStretchFactor(0, 3);
  halves_->setStretchFactor(1, 2);
  halves_->setSizes({900, 600});
  column->addWidget(halves_, 1);

  connect(search_, &QLineEdit::textChanged, map_, &LiteratureMap::setQuery);
  connect(search_, &QLineEdit::returnPressed, this, [this] {
    const QString found = literature_->firstOf(search_->text());
    if (found.isEmpty()) return;
    map_->setFocus(Qt::TabFocusReason);
    emit picked(found);
  });
  connect(new QShortcut(QKeySequence::Cancel, search_, nullptr, nullptr, Qt::WidgetShortcut), &QShortcut::activated, search_,
          &QLineEdit::clear);
  connect(map_, &LiteratureMap::picked, this, &MapWindow::picked);
  connect(map_, &LiteratureMap::markedChanged, this, &MapWindow::compare);
  connect(new QShortcut(QKeySequence::Find, this), &QShortcut::activated, search_, [this] {
    search_->setFocus(Qt::ShortcutFocusReason);
    search_->selectAll();
  });
  connect(new QShortcut(QKeySequence::Close, this), &QShortcut::activated, this, &QWidget::close);
  map_->setFocus();
}

void MapWindow::setLiterature(const LiteraturePtr& literature) {
  literature_ = literature;
  map_->setLiterature(literature);
}

void MapWindow::setCurrent(const QString& id) {
  if (id == map_->current()) return;
  map_->setCurrent(id);
  compare();
}

void MapWindow::compare() {
  if (map_->marked().isEmpty() || map_->current().isEmpty()) {
    comparison_->hide();
    compared_.reset();
    return;
  }
  emit compareWanted(map_->current(), map_->marked());
}

void MapWindow::setResult(const std::string& study, const StudyResult& result, const QString& problem) {
  if (study != "compare") return;
  const auto both = result.get<ComparedPresets>();
  const auto is = [](const Compared& one, const QString& id) { return one.card.id == id.toStdString(); };
  if (both && !(is(both->front(), map_->current()) && is(both->back(), map_->marked()))) return;  // others are marked meanwhile
  compared_ = both;
  if (both)
    redraw();
  else
    comparison_->setPlainText(problem);
  comparison_->show();
}

void MapWindow::redraw() {
  map_->viewport()->update();
  if (!compared_) return;
  for (int i = 0; i < 2; ++i)
    comparison_->document()->addResource(QTextDocument::ImageResource, QUrl(QString("spectrum:%1").arg(i)),
                                         spectrumPicture((*compared_)[static_cast<std::size_t>(i)], 150, devicePixelRatioF(), palette()));
  comparison_->setHtml(comparisonHtml(*literature_, *compared_, palette()));
}

void MapWindow::save(Panel::Format format) {
  const QString suffix = format == Panel::Format::png ? "png" : format == Panel::Format::svg ? "svg" : "pdf";
  if (!chooser_->save) return;
  QString file = chooser_->save(this, tr("Save the map"), "literature." + suffix, tr("%1 figure (*.%2)").arg(suffix.toUpper(), suffix));
  if (file.isEmpty()) return;
  if (!file.endsWith("." + suffix, Qt::CaseInsensitive)) file += "." + suffix;
  const QString sentence = map_->saveFigure(file, format);
  emit said(sentence.isEmpty() ? tr("The map is in %1.").arg(file) : sentence, !sentence.isEmpty());
}

void MapWindow::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) {
    if (map_->marked().isEmpty())
      close();
    else
      map_->setMarked({});
    return;
  }
  QWidget::keyPressEvent(event);
}

}  // namespace reclab
