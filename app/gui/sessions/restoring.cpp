// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/sessions/restoring.h"

#include <QDir>
#include <QObject>
#include <QSettings>

namespace reclab {
namespace {

constexpr int mostStarts = 2;
const QString fileKey = QStringLiteral("session/restoring"), startsKey = QStringLiteral("session/restoringStarts");

}  // namespace

bool beginRestoring(const QString& file) {
  QSettings settings;
  const int before = settings.value(fileKey).toString() == file ? settings.value(startsKey).toInt() : 0;
  if (before >= mostStarts) {
    endRestoring();
    return false;
  }
  settings.setValue(fileKey, file);
  settings.setValue(startsKey, before + 1);
  settings.sync();
  return true;
}

void endRestoring() {
  QSettings settings;
  if (!settings.contains(fileKey)) return;
  settings.remove(fileKey);
  settings.remove(startsKey);
  settings.sync();
}

QString twiceEnded(const QString& file) {
  return QObject::tr("The program ended twice while it restored %1, so it begins without it.").arg(QDir::toNativeSeparators(file));
}

}  // namespace reclab
