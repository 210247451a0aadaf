// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/opening/exported.h"

#include <QDir>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>

#include "experiment/command/run_fields.h"
#include "experiment/command/typed_run.h"
#include "files/files.h"
#include "sequence/choice.h"

namespace reclab {
namespace {

/// Without the options of a training and of the recording; the weights of the folder have the head of then.
QStringList ofTheRun(const QStringList& words) {
  const auto isOfRun = [](const QString& word) {
    const std::string flag = word.section('=', 0, 0).toStdString();
    const auto named = [&](const Field& field) { return field.flag == flag; };
    const auto run = std::ranges::find_if(run_fields(), named);
    return std::ranges::any_of(sequence_fields(), named) ||
           (run != run_fields().end() && run->row.key != "every" && run->row.key != "record" && run->row.key != "new_head");
  };
  QStringList kept;
  bool keeps = true;
  for (const QString& word : words) {
    if (word.startsWith("--")) keeps = isOfRun(word);
    if (keeps) kept << word;
  }
  return kept;
}

QJsonObject readJson(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
}

}  // namespace

bool isDescription(const QString& file) {
  const QFileInfo info(file);
  return (info.fileName() == u"manifest.json" && QFileInfo::exists(info.dir().filePath("trace.npz"))) ||
         (info.fileName() == u"training.json" && QFileInfo::exists(info.dir().filePath("weights.safetensors")));
}

Exported exportedIn(const QString& folder) {
  const QDir dir(folder);
  const QString run = dir.filePath("manifest.json"), training = dir.filePath("training.json");
  Exported exported;
  if (isDescription(run)) {
    const QJsonObject manifest = readJson(run);
    QStringList words;
    for (const std::string& word : shell_words(manifest["command"].toString().toStdString())) words << QString::fromStdString(word);
    words = words.mid(words.lastIndexOf("&&") + 1);  // after the training that it learned in
    if (words.size() > 2) exported.arguments = ofTheRun(words.mid(2));
    if (!manifest["weights"].isNull() || !manifest["learned"].isNull()) {
      exported.weights = dir.filePath("trace.npz");
      for (qsizetype at; (at = exported.arguments.indexOf("--weights")) >= 0;) exported.arguments.remove(at, 2);
      exported.arguments.removeAll("--trained");
    }
  } else if (isDescription(training)) {
    QStringList words;
    for (const QJsonValue word : readJson(training)["arguments"].toArray()) words << word.toString();
    exported.arguments = ofTheRun(words);
    exported.weights = dir.filePath("weights.safetensors");
  }
  if (exported.arguments.isEmpty())
    throw Error(printable(QDir::toNativeSeparators(folder).toStdString()) +
                " is a folder, and none of an exported run or training; drop a file, or a folder with manifest.json or training.json.");
  return exported;
}

}  // namespace reclab
