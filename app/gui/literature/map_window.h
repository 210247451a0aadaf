// SPDX-License-Identifier: GPL-3.0-or-later
// The map of the literature enlarged, in a window of its own, with two of its models side by side.
#pragma once

#include <QWidget>

#include "gui/literature/map_view.h"
#include "gui/session/files.h"
#include "studies/compared.h"
#include "trace/study_result.h"

class QLabel;
class QLineEdit;
class QSplitter;
class QTextBrowser;

namespace reclab {

class MapWindow : public QWidget {
  Q_OBJECT
 public:
  MapWindow(const FileChooser* chooser, QWidget* parent);

  void setLiterature(const LiteraturePtr& literature);
  void setCurrent(const QString& id);
  void setResult(const std::string& study, const StudyResult& result, const QString& problem);  ///< of "compare"
  LiteratureMap* map() const { return map_; }
  QLineEdit* searchField() const { return search_; }
  QTextBrowser* comparison() const { return comparison_; }
  void redraw();  ///< after the theme changed

 signals:
  void picked(QString id);
  void compareWanted(QString one, QString other);
  void said(QString sentence, bool bad);

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  void compare();
  void save(Panel::Format format);

  const FileChooser* chooser_;
  LiteraturePtr literature_ = std::make_shared<const Literature>();
  QLineEdit* search_;
  LiteratureMap* map_;
  QSplitter* halves_;
  QTextBrowser* comparison_;
  std::shared_ptr<const ComparedPresets> compared_;
};

/// Two models side by side as HTML; the pictures of their spectra are "spectrum:0" and "spectrum:1".
QString comparisonHtml(const Literature& literature, const ComparedPresets& both, const QPalette& palette);
/// Eigenvalues around the unit circle, or around the imaginary axis where they are those of a differential equation.
QPixmap spectrumPicture(const Compared& compared, int side, double scale, const QPalette& palette);

/// A search field for models, with the properties that can be asked for in a menu.
void makeModelSearch(QLineEdit* field);

}  // namespace reclab
