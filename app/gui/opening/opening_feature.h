// SPDX-License-Identifier: GPL-3.0-or-later
// Data from elsewhere: files and folders that are dropped anywhere, and tables that are pasted.
#pragma once

#include <QObject>

class QMimeData;

namespace reclab {

class WindowFrame;

class OpeningFeature : public QObject {
  Q_OBJECT
 public:
  explicit OpeningFeature(WindowFrame* frame);

  /// Opens a drop or the clipboard: the first of its files, or its text as a table. Says a sentence where it is neither.
  void take(const QMimeData* data);
  /// Opens a preset, or the folder of an exported run or training. False where the file is none of these.
  bool open(const QString& path);

 signals:
  void fileWanted(QString file);  ///< of any kind

 protected:
  /// Takes drops on a field for text, and on a dock that floats, as drops on the window.
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void showPreset(const QString& id, const QString& file);
  void openExport(const QString& folder);
  void openTable(const QString& text);
  WindowFrame* frame_;
};

}  // namespace reclab
