// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMenu>
#include <vector>

#include "gui/session/setup.h"
#include "panel.h"

namespace reclab {

class WindowFrame;

/// The menu of files to read and write: sequences, weights and states, figures, exports.
class FileMenu : public QMenu {
  Q_OBJECT
 public:
  explicit FileMenu(WindowFrame* frame);

 signals:
  void fileWanted(QString file);  ///< a sequence, or another file that a drop takes

 private:
  void addFiles(QMenu* menu, const QStringList& paths);
  void offerData();
  void loadFile(FileKind kind);
  void saveFile(FileKind kind);
  std::vector<Panel*> openPanels() const;
  void saveAllFigures(Panel::Format format);
  void exportData();

  WindowFrame* frame_;
};

}  // namespace reclab
