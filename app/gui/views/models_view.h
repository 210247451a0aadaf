// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "gui/session/setup.h"

class QHBoxLayout;
class QLineEdit;
class QTreeWidget;
class QTreeWidgetItem;

namespace reclab {

/// Every preset by family, with a search field, and three to switch between at once.
class ModelsView : public QWidget {
  Q_OBJECT
 public:
  explicit ModelsView(QWidget* parent = nullptr);
  void setLibrary(const LibraryPtr& library);
  void setCurrent(const QString& id);
  QTreeWidget* tree() const { return tree_; }
  QLineEdit* searchField() const { return search_; }
  QTreeWidgetItem* itemOf(const QString& id) const;

 signals:
  void picked(QString id);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QTreeWidgetItem* firstListed() const;
  void filter(const QString& text);
  QHBoxLayout* quick_;
  QLineEdit* search_;
  QTreeWidget* tree_;
};

}  // namespace reclab
