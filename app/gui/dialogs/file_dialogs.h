// SPDX-License-Identifier: GPL-3.0-or-later
// The dialogs that ask where to: a folder that need not exist, and figures with how they are drawn.
#pragma once

#include <QDialog>
#include <QWidget>

#include "gui/session/files.h"

class QCheckBox;
class QComboBox;
class QDialogButtonBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;

namespace reclab {

/// Asks whether files are replaced; `there`: a sentence that names them.
bool mayReplace(QWidget* parent, const QString& title, const QString& there, bool several = false);
/// Asks the same of those of these files that are in the folder; true, and unasked, where none is.
bool mayReplaceFiles(QWidget* parent, const QString& title, const QString& folder, const QStringList& files);

/// A line with the path of a folder, and a button to choose an existing one. A new one is made when it is written into.
class FolderField : public QWidget {
  Q_OBJECT
 public:
  FolderField(const QString& folder, const QString& title, QWidget* parent);
  QString folder() const;  ///< absolute; "~" is the home folder
  QLineEdit* line() const { return line_; }

 signals:
  void changed();

 private:
  QLineEdit* line_;
};

class FolderDialog : public QDialog {
  Q_OBJECT
 public:
  FolderDialog(const QString& title, const QString& folder, QWidget* parent);
  QString folder() const { return field_->folder(); }

 private:
  FolderField* field_;
};

class FigureDialog : public QDialog {
  Q_OBJECT
 public:
  /// Begins with the last choices.
  FigureDialog(FigureQuestion question, const QString& folder, QWidget* parent);
  FigureAnswer answer() const;
  void accept() override;  ///< asks before files are replaced

 private:
  void update();
  QStringList files() const;
  FigureQuestion question_;
  FolderField* folder_;
  QLineEdit* name_;
  QComboBox *format_, *width_;
  QDoubleSpinBox *own_width_, *font_;
  QCheckBox *title_, *caption_, *cursor_;
  QLabel* said_;
  QDialogButtonBox* buttons_;
};

}  // namespace reclab
