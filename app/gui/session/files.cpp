// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/files.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QSaveFile>
#include <QSettings>

namespace reclab {
namespace {

QString lastFolder() {
  const QString folder = QSettings().value("lastFolder").toString();
  return !folder.isEmpty() && QFileInfo(folder).isDir() ? folder : QDir::homePath();
}

QString remembered(const QString& path, bool isFolder) {
  if (!path.isEmpty()) QSettings().setValue("lastFolder", isFolder ? path : QFileInfo(path).absolutePath());
  return path;
}

QString makeFolder(const QString& folder) {
  if (QDir().mkpath(folder)) return {};
  return QObject::tr("%1 cannot be made or written to; choose another folder.").arg(QDir::toNativeSeparators(folder));
}

}  // namespace

FileChooser dialogChooser() {
  return {[](QWidget* parent, const QString& title, const QString& filter) {
            return remembered(QFileDialog::getOpenFileName(parent, title, lastFolder(), filter), false);
          },
          [](QWidget* parent, const QString& title, const QString& name, const QString& filter) {
            return remembered(QFileDialog::getSaveFileName(parent, title, QDir(lastFolder()).filePath(name), filter), false);
          },
          [](QWidget* parent, const QString& title) { return remembered(QFileDialog::getExistingDirectory(parent, title, lastFolder()), true); }};
}

QString suffixOf(Panel::Format format) { return format == Panel::Format::png ? "png" : format == Panel::Format::svg ? "svg" : "pdf"; }

QString writeText(const QString& file, const QString& text) {
  QSaveFile out(file);
  const QByteArray bytes = text.toUtf8();
  if (out.open(QIODevice::WriteOnly) && out.write(bytes) == bytes.size() && out.commit()) return {};
  return QObject::tr("%1 cannot be written: %2; choose another place.").arg(QDir::toNativeSeparators(file), out.errorString());
}

void tellPlace(const Preset& preset, Panel* panel) {
  for (const std::string& place : preset.look_at)
    if (const QString text = QString::fromStdString(place); text.section(':', 0, 0) == panel->id())
      return panel->lookAt(QString::fromStdString(preset.id), text.section(':', 1), false);  // of two places in a panel the first counts
}

QStringList problemsOfPlaces(const std::vector<Preset>& presets) {
  QStringList problems;
  for (const Preset& preset : presets)
    for (const std::string& place : preset.look_at)
      if (const QString problem = problem_of_place(QString::fromStdString(printable(place))); !problem.isEmpty())
        problems << QObject::tr("%1: look_at %2.").arg(QString::fromStdString(preset.file.string()), problem);
  return problems;
}

QStringList saveFigures(const std::vector<Panel*>& panels, const QString& folder, Panel::Format format, QString* sentence) {
  QStringList written;
  *sentence = makeFolder(folder);
  if (!sentence->isEmpty()) return written;
  for (Panel* panel : panels) {
    const QString file = QDir(folder).filePath(panel->id() + "." + suffixOf(format));
    *sentence = panel->saveFigure(file, format);
    if (!sentence->isEmpty()) return written;
    written << file;
  }
  return written;
}

QStringList saveData(const std::vector<Panel*>& panels, const QString& folder, QString* sentence) {
  QStringList written;
  *sentence = makeFolder(folder);
  if (!sentence->isEmpty()) return written;
  for (Panel* panel : panels) {
    const QString text = panel->dataAsCsv();
    if (text.isEmpty()) continue;  // nothing to show, nothing behind it
    const QString file = QDir(folder).filePath(panel->id() + ".csv");
    *sentence = writeText(file, text);
    if (!sentence->isEmpty()) return written;
    written << file;
  }
  return written;
}

}  // namespace reclab
