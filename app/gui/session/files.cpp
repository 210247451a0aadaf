// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/files.h"

#include <QDir>
#include <QFileInfo>
#include <QSaveFile>

#include "files/files.h"

namespace reclab {
namespace {

QString makeFolder(const QString& folder) {
  if (QDir().mkpath(folder)) return {};
  return QObject::tr("%1 cannot be made or written to; choose another folder.").arg(QDir::toNativeSeparators(folder));
}

}  // namespace

QString FigureAnswer::file() const { return QDir(folder).filePath(stem + "." + suffixOf(format)); }

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

QString folderNameOf(const std::string& model, const QString& what) {
  QString name = QString::fromStdString(model) + '-' + what;
  return name.replace('/', '-');
}

QString folderNameOf(const TracePtr& run) {
  return run ? folderNameOf(run->info.preset, QFileInfo(QString::fromStdString(run->info.input_name)).completeBaseName()) : QString();
}

QString stemOf(const Panel& panel, const QString& model) {
  const QString of = panel.fileModel(model);
  return of.isEmpty() ? panel.id() : of + '-' + panel.id();
}

QString saveFigure(Panel* panel, const FigureAnswer& answer) {
  const QString problem = makeFolder(answer.folder);
  return problem.isEmpty() ? panel->saveFigure(answer.file(), answer.format, answer.style) : problem;
}

SavedFigures saveFigures(const std::vector<Panel*>& panels, const QString& model, const QString& folder, Panel::Format format,
                         const FigureStyle& style) {
  SavedFigures saved;
  saved.problem = style.problem();
  if (saved.problem.isEmpty()) saved.problem = makeFolder(folder);
  if (!saved.problem.isEmpty()) return saved;
  for (Panel* panel : panels) {
    panel->finish();
    if (const QString reason = panel->emptyReason(); !reason.isEmpty()) {
      saved.without << QObject::tr("There is no figure of %1: %2").arg(panel->title(), reason);
      continue;
    }
    const QString file = QDir(folder).filePath(stemOf(*panel, model) + "." + suffixOf(format));
    saved.problem = panel->saveFigure(file, format, style);
    if (!saved.problem.isEmpty()) return saved;
    saved.files << file;
  }
  return saved;
}

std::vector<PanelData> dataOf(const std::vector<Panel*>& panels, const QString& model) {
  std::vector<PanelData> all;
  for (Panel* panel : panels) {
    panel->finish();
    if (QString text = panel->dataAsCsv(); !text.isEmpty())
      all.push_back({stemOf(*panel, model) + ".csv", std::move(text)});  // nothing to show, nothing behind it
  }
  return all;
}

QString saveData(const std::vector<PanelData>& data, const QString& folder) {
  QString sentence = makeFolder(folder);
  for (const PanelData& one : data)
    if (sentence.isEmpty()) sentence = writeText(QDir(folder).filePath(one.file), one.text);
  return sentence;
}

}  // namespace reclab
