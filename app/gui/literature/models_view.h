// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "gui/literature/literature.h"

class QHBoxLayout;
class QLabel;
class QPushButton;
class QStackedWidget;
class QToolButton;
class QLineEdit;
class QTreeWidget;
class QTreeWidgetItem;

namespace reclab {

class LiteratureMap;

/// Every preset by family, or on the map of the literature, with a search field, and three to switch between at once.
class ModelsView : public QWidget {
  Q_OBJECT
 public:
  explicit ModelsView(QWidget* parent = nullptr);
  void setLibrary(const LibraryPtr& library, const PropertiesOf& properties);
  /// The models stay as they are; what the search finds may be others.
  void setProperties(const LibraryPtr& library, const PropertiesOf& properties);
  void setCurrent(const QString& id);
  void showMap(bool on);
  /// Shows the models to switch between at once, with the list a click away.
  void setFew(bool few);
  bool isMap() const;
  LiteratureMap* map() const { return map_; }
  const LiteraturePtr& literature() const { return literature_; }
  QPushButton* compareButton() const { return compare_; }
  QToolButton* mapButton() const { return mapButton_; }
  QTreeWidget* tree() const { return tree_; }
  QLineEdit* searchField() const { return search_; }
  QTreeWidgetItem* itemOf(const QString& id) const;

 signals:
  void picked(QString id);
  void enlargeWanted();
  void allWanted();  ///< by hand: the list needs room
  void compareWanted(QString marked);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QTreeWidgetItem* firstListed() const;
  void filter(const QString& text);
  void offerComparison();
  QHBoxLayout* quick_;
  QLineEdit* search_;
  QToolButton* mapButton_;
  QStackedWidget* views_;
  QTreeWidget* tree_;
  LiteratureMap* map_;
  QPushButton *compare_, *all_;
  std::vector<QWidget*> more_;  ///< hidden where there are few
  LiteraturePtr literature_ = std::make_shared<const Literature>();
};

}  // namespace reclab
