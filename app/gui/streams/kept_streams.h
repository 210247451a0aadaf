// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

#include "gui/session/kept/stream_files.h"
#include "gui/session/requests.h"

class QLabel;
class QPushButton;
class QTableWidget;

namespace reclab {

/// The places where streams were left, a row each: to look at one again, or to remove some.
class KeptStreams : public QDialog {
  Q_OBJECT
 public:
  /// `library`: of the names of models.
  KeptStreams(const LibraryPtr& library, QWidget* parent);
  /// `inUse`: the folders that are not to be removed, since they are looked at or pinned.
  void show(const std::vector<KeptPlace>& places, const QStringList& inUse);
  QTableWidget* table() const { return table_; }
  QPushButton* lookButton() const { return look_; }
  QPushButton* removeButton() const { return remove_; }
  QString words() const;  ///< how many there are, and where

 signals:
  void lookWanted(const QString& folder);
  void removeWanted(const QStringList& folders);

 private:
  void tell();
  std::vector<std::size_t> chosen() const;
  LibraryPtr library_;
  std::vector<KeptPlace> places_;
  QStringList inUse_;
  QTableWidget* table_;
  QLabel *words_, *why_;
  QPushButton *look_, *remove_;
};

}  // namespace reclab
