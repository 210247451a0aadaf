// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/literature/models_view.h"

#include <QButtonGroup>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QStackedWidget>
#include <QToolButton>
#include <QTreeWidget>
#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "gui/literature/map_view.h"
#include "gui/literature/map_window.h"
#include "gui/look/look.h"
#include "gui/session/sentences.h"
#include "models/families.h"
#include "plain_text.h"

namespace reclab {
namespace {

constexpr int idRole = Qt::UserRole;

QString tip(const Preset& preset) {
  const Reference& source = preset.source;
  QString text = "<p style='white-space:pre-wrap'><b>" + QString::fromStdString(preset.title).toHtmlEscaped() + "</b></p><p>" +
                 QString::fromStdString(preset.idea).toHtmlEscaped() + "</p>";
  if (!source.title.empty())
    text += "<p>" + QString::fromStdString(source.authors).toHtmlEscaped() + " (" + QString::number(source.year) + "): <i>" +
            QString::fromStdString(source.title).toHtmlEscaped() + "</i></p>";
  return htmlTip(text);
}

}  // namespace

ModelsView::ModelsView(QWidget* parent) : QWidget(parent) {
  setObjectName("paper");
  setAttribute(Qt::WA_StyledBackground);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 0);
  column->setSpacing(8);
  quick_ = new QHBoxLayout;
  quick_->setSpacing(4);
  column->addLayout(quick_);
  auto* row = new QHBoxLayout;
  row->setSpacing(2);
  column->addLayout(row);
  search_ = new QLineEdit(this);
  makeModelSearch(search_);
  row->addWidget(search_, 1);
  const auto button = [&](const QString& name, const QString& tip) {
    auto* made = new QToolButton(this);
    made->setIcon(icon(name));
    made->setIconSize({14, 14});
    made->setAutoRaise(true);
    made->setToolTip(safeTip(tip));
    made->setFocusPolicy(Qt::TabFocus);
    row->addWidget(made);
    return made;
  };
  mapButton_ = button("map", tr("The map of the literature: models by year and family, and what was made from which"));
  mapButton_->setObjectName("showMap");
  mapButton_->setCheckable(true);
  auto* enlarge = button("enlarge", tr("The map in a window of its own, and two models side by side"));
  enlarge->setObjectName("enlargeMap");
  more_ = {search_, mapButton_, enlarge};
  connect(mapButton_, &QToolButton::toggled, this, &ModelsView::showMap);
  connect(enlarge, &QToolButton::clicked, this, &ModelsView::enlargeWanted);
  views_ = new QStackedWidget(this);
  column->addWidget(views_, 1);
  tree_ = new QTreeWidget(this);
  tree_->setObjectName("models");
  tree_->setAccessibleName(tr("Models"));
  tree_->setColumnCount(2);
  tree_->setHeaderHidden(true);
  tree_->setIndentation(14);
  tree_->setUniformRowHeights(true);
  tree_->header()->setStretchLastSection(false);
  tree_->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  tree_->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
  tree_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  views_->addWidget(tree_);
  map_ = new LiteratureMap(this);
  map_->setAccessibleName(tr("Map of the literature"));
  views_->addWidget(map_);
  more_.push_back(views_);
  all_ = new QPushButton(this);
  all_->setObjectName("allModels");
  all_->setProperty("link", true);
  all_->setFocusPolicy(Qt::TabFocus);
  all_->hide();
  column->addWidget(all_, 0, Qt::AlignLeft);
  column->addStretch();
  connect(all_, &QPushButton::clicked, this, [this] {
    setFew(false);
    emit allWanted();
  });
  compare_ = new ElidedButton(this);
  compare_->setProperty("link", true);
  compare_->setObjectName("compareModels");
  compare_->setFocusPolicy(Qt::TabFocus);
  compare_->hide();
  column->addWidget(compare_);
  connect(compare_, &QPushButton::clicked, this, [this] { emit compareWanted(map_->marked()); });
  connect(map_, &LiteratureMap::picked, this, &ModelsView::picked);
  connect(map_, &LiteratureMap::markedChanged, this, &ModelsView::offerComparison);
  connect(search_, &QLineEdit::textChanged, map_, &LiteratureMap::setQuery);
  connect(search_, &QLineEdit::textChanged, this, &ModelsView::filter);
  search_->installEventFilter(this);
  connect(tree_, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* item) {
    const QString id = item != nullptr ? item->data(0, idRole).toString() : QString();
    if (!id.isEmpty()) emit picked(id);
  });
}

void ModelsView::setFew(bool few) {
  if (few && isMap()) showMap(false);
  for (QWidget* one : more_) one->setVisible(!few);
  all_->setVisible(few);
}

bool ModelsView::isMap() const { return views_->currentWidget() == map_; }

void ModelsView::showMap(bool on) {
  const bool inside = views_->isAncestorOf(focusWidget() != nullptr ? focusWidget() : this);
  views_->setCurrentWidget(on ? static_cast<QWidget*>(map_) : tree_);
  mapButton_->setChecked(on);
  for (int i = 0; i < quick_->count(); ++i)  // the map needs the room
    if (QWidget* button = quick_->itemAt(i)->widget()) button->setVisible(!on);
  if (inside) views_->currentWidget()->setFocus();
  if (on) map_->bringIntoSight(map_->current());
  offerComparison();
}

/// Under the map, where a second model is marked.
void ModelsView::offerComparison() {
  const int current = literature_->indexOf(map_->current()), marked = literature_->indexOf(map_->marked());
  const bool both = isMap() && current >= 0 && marked >= 0;
  if (both)
    compare_->setText(tr("Compare %1 with %2")
                          .arg(literature_->models[static_cast<std::size_t>(current)].title,
                               literature_->models[static_cast<std::size_t>(marked)].title));
  compare_->setVisible(both);
}

void ModelsView::setProperties(const LibraryPtr& library, const PropertiesOf& properties) {
  literature_ = std::make_shared<const Literature>(literatureOf(library->presets, properties));
  map_->setLiterature(literature_);
  filter(search_->text());
}

void ModelsView::setLibrary(const LibraryPtr& library, const PropertiesOf& properties) {
  const QSignalBlocker quiet(tree_);
  tree_->clear();
  std::map<std::pair<std::size_t, std::string>, std::vector<const Preset*>> families;
  for (const Preset& preset : library->presets.presets()) families[{family_place(preset.family), preset.family}].push_back(&preset);
  for (auto& [family, presets] : families) {
    const auto text = [](std::string_view one) { return QString::fromUtf8(one.data(), static_cast<qsizetype>(one.size())); };
    const Family* known = family.first < reclab::families().size() ? &reclab::families()[family.first] : nullptr;
    auto* branch =
        new QTreeWidgetItem(tree_, {known != nullptr ? text(known->title) : QString::fromStdString(family_heading(family.second))});
    if (known != nullptr)
      branch->setToolTip(0, safeTip(known->section.empty() ? text(known->text)
                                                           : tr("%1\nSection %2 of Tiezzi et al. (2024), State-Space Modeling in Long "
                                                                "Sequence Processing: A Survey on Recurrence in the Transformer Era")
                                                                 .arg(text(known->text), text(known->section))));
    branch->setFlags(Qt::ItemIsEnabled);
    branch->setFirstColumnSpanned(true);
    branch->setForeground(0, palette().color(QPalette::PlaceholderText));
    std::sort(presets.begin(), presets.end(),
              [](const Preset* a, const Preset* b) { return std::pair(a->source.year, a->title) < std::pair(b->source.year, b->title); });
    for (const Preset* preset : presets) {
      auto* item = new QTreeWidgetItem(
          branch, {QString::fromStdString(preset->title), preset->source.year > 0 ? QString::number(preset->source.year) : QString()});
      item->setData(0, idRole, QString::fromStdString(preset->id));
      item->setForeground(1, palette().color(QPalette::PlaceholderText));
      item->setToolTip(0, safeTip(tip(*preset)));
      item->setToolTip(1, safeTip(tip(*preset)));
    }
    branch->setExpanded(true);
  }

  setProperties(library, properties);
  all_->setText(tr("All %1 models…").arg(library->presets.presets().size()));

  while (QLayoutItem* old = quick_->takeAt(0)) {
    delete old->widget();
    delete old;
  }
  auto* group = new QButtonGroup(this);
  for (const char* id : {"lstm", "lru", "mamba"}) {  // one of each kind: gated, linear and time-invariant, selective
    QTreeWidgetItem* item = itemOf(id);
    if (item == nullptr) continue;
    auto* button = new QPushButton(buttonText(item->text(0)), this);
    button->setProperty("segment", true);
    button->setProperty("preset", id);
    button->setCheckable(true);
    button->setFocusPolicy(Qt::TabFocus);
    button->setToolTip(safeTip(item->toolTip(0)));
    group->addButton(button);
    button->setVisible(!isMap());
    quick_->addWidget(button, 1);
    connect(button, &QPushButton::clicked, this, [this, item] { tree_->setCurrentItem(item); });
  }
}

QTreeWidgetItem* ModelsView::itemOf(const QString& id) const {
  for (int i = 0; i < tree_->topLevelItemCount(); ++i) {
    QTreeWidgetItem* branch = tree_->topLevelItem(i);
    for (int j = 0; j < branch->childCount(); ++j)
      if (branch->child(j)->data(0, idRole).toString() == id) return branch->child(j);
  }
  return nullptr;
}

void ModelsView::setCurrent(const QString& id) {
  map_->setCurrent(id);
  offerComparison();
  const QSignalBlocker quiet(tree_);
  if (QTreeWidgetItem* item = itemOf(id)) {
    tree_->setCurrentItem(item);
    tree_->scrollToItem(item);
  }
  for (int i = 0; i < quick_->count(); ++i) {
    auto* button = qobject_cast<QPushButton*>(quick_->itemAt(i)->widget());
    if (button == nullptr) continue;
    auto* group = button->group();
    group->setExclusive(false);
    button->setChecked(button->property("preset").toString() == id);
    group->setExclusive(true);
  }
}

/// Before a shortcut of the window takes it, or as it is pressed.
static bool isEscape(const QEvent* event) {
  return (event->type() == QEvent::ShortcutOverride || event->type() == QEvent::KeyPress) &&
         static_cast<const QKeyEvent*>(event)->key() == Qt::Key_Escape;
}

bool ModelsView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == search_ && isEscape(event)) {  // the key belongs to the field; it stops no run
    if (event->type() == QEvent::KeyPress) {    // takes the search back, then leaves it
      if (search_->text().isEmpty()) views_->currentWidget()->setFocus(Qt::OtherFocusReason);
      search_->clear();
    }
    event->accept();
    return true;
  }
  if (watched == search_ && event->type() == QEvent::KeyPress) {
    // Enter picks the first that fits, Down goes into the list where it is.
    const int key = static_cast<QKeyEvent*>(event)->key();
    const bool enter = key == Qt::Key_Return || key == Qt::Key_Enter;
    if (enter || key == Qt::Key_Down) {
      search_->setModified(false);
      if (isMap()) {
        map_->setFocus(Qt::TabFocusReason);
        const QString found = enter ? literature_->firstOf(search_->text()) : QString();
        if (!found.isEmpty()) emit picked(found);
        return true;
      }
      QTreeWidgetItem* item = tree_->currentItem();
      const bool listed = item != nullptr && !item->isHidden() && item->parent() != nullptr;
      if (!listed || (enter && !search_->text().isEmpty())) item = firstListed();
      if (item == nullptr) return true;
      tree_->setFocus(Qt::TabFocusReason);
      item->parent()->setExpanded(true);
      tree_->setCurrentItem(item);
      tree_->scrollToItem(item);
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

/// The model whose name was typed; else the first of the list.
QTreeWidgetItem* ModelsView::firstListed() const {
  if (QTreeWidgetItem* one = itemOf(literature_->named(search_->text())); one != nullptr && !one->isHidden()) return one;
  for (int i = 0; i < tree_->topLevelItemCount(); ++i)
    for (int j = 0; j < tree_->topLevelItem(i)->childCount(); ++j)
      if (QTreeWidgetItem* item = tree_->topLevelItem(i)->child(j); !item->isHidden()) return item;
  return nullptr;
}

void ModelsView::filter(const QString& text) {
  const ModelQuery query(text);
  for (int i = 0; i < tree_->topLevelItemCount(); ++i) {
    QTreeWidgetItem* branch = tree_->topLevelItem(i);
    int left = 0;
    for (int j = 0; j < branch->childCount(); ++j) {
      QTreeWidgetItem* item = branch->child(j);
      const int model = literature_->indexOf(item->data(0, idRole).toString());
      const bool fits = query.isEmpty() || (model >= 0 && query.fits(literature_->models[static_cast<std::size_t>(model)]));
      item->setHidden(!fits);
      left += fits;
    }
    branch->setHidden(left == 0);
  }
}

}  // namespace reclab
