// SPDX-License-Identifier: GPL-3.0-or-later
// A sweep as a form: a line of reclab, the options along which it varies, and what is measured of each.
#pragma once

#include <QDialog>
#include <QStringList>
#include <vector>

#include "gui/jobs/worker.h"
#include "gui/session/files.h"
#include "gui/session/setup.h"

class QCheckBox;
class QComboBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;

namespace reclab {

struct SweepDraft {
  QString line;  ///< "reclab train lstm ..."
  struct Axis {
    QString name, values;
  };
  std::vector<Axis> axes;
  QString measures;  ///< between commas
  bool keeps = false;
};
/// The plan as JSON. Values are a list, "1, 2, adam", or a range, "4..64 in 5", with "log" behind it where wanted. Throws Error.
std::string plan_json(const SweepDraft& draft);

class SweepForm : public QDialog {
  Q_OBJECT
 public:
  /// `options`: names that an axis may have.
  SweepForm(LibraryPtr library, const FileChooser* chooser, const SweepDraft& draft, const QStringList& options, QWidget* parent);
  ~SweepForm() override;
  SweepDraft draft() const;
  QString sentence() const;  ///< how many cells it has, or what is wrong with it
  QPushButton* makeButton() const { return make_; }

 signals:
  void made(QString folder);

 private:
  void addAxis(const QString& name, const QString& values);
  void tell();
  void make();
  void busy(bool is);
  LibraryPtr library_;
  const FileChooser* chooser_;
  QStringList options_;
  QPlainTextEdit* line_;
  QGridLayout* grid_;
  struct Row {
    QComboBox* name;
    QLineEdit* values;
  };
  std::vector<Row> axes_;
  QLineEdit *measures_, *folder_;
  QCheckBox* keeps_;
  QLabel* sentence_;
  QPushButton *more_, *make_;
  bool making_ = false;
  Worker worker_;
};

}  // namespace reclab
