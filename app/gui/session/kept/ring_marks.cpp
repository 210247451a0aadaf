// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/kept/ring_marks.h"

#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

namespace reclab {

QString windowsPartOfPlace() { return QStringLiteral("/window/stream.json"); }

QString placeOf(const std::filesystem::path& file) {
  if (file.empty()) return {};
  const QString folder = QFileInfo(QString::fromStdString(file.string())).absolutePath();
  return QFileInfo(folder + windowsPartOfPlace()).isFile() ? folder : QString();
}

std::vector<StepMark> marksOfRing(const std::filesystem::path& file) {
  const QString place = file.filename() == "ring.npz" ? placeOf(file) : QString();
  QFile written(place + windowsPartOfPlace());
  std::vector<StepMark> marks;
  if (place.isEmpty() || !written.open(QIODevice::ReadOnly)) return marks;
  for (const QJsonValue mark : QJsonDocument::fromJson(written.readAll()).object()["marks"].toArray())
    marks.push_back({mark["at"].toInteger(), mark["regime"].toString()});
  return marks;
}

}  // namespace reclab
