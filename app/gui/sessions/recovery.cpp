// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/sessions/recovery.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QUuid>
#include <algorithm>

#include "gui/sessions/session_file.h"

namespace reclab {
namespace {

std::unique_ptr<QLockFile> lockOf(const QString& folder) {
  auto lock = std::make_unique<QLockFile>(folder + ".lock");
  lock->setStaleLockTime(0);  // however long a window is open
  return lock;
}

QStringList generationsIn(const QString& folder) {
  QStringList files;
  for (const QFileInfo& file : QDir(folder).entryInfoList({"*" + QString(sessionSuffix)}, QDir::Files, QDir::Name | QDir::Reversed))
    files << file.filePath();
  return files;
}

}  // namespace

QString Recovery::standardFolder() {
  const QString set = qEnvironmentVariable("XDG_STATE_HOME");
  const QString state = QDir::isAbsolutePath(set) ? set : QDir::homePath() + "/.local/state";
  return state + '/' + QCoreApplication::organizationName() + '/' + QCoreApplication::applicationName() + "/recovery";
}

Recovery::Recovery(const QString& folder) : folder_(folder) {}

Recovery::~Recovery() = default;

QString Recovery::next() {
  if (!lock_) {
    own_ = QStringLiteral("%1/%2-%3")
               .arg(folder_)
               .arg(QCoreApplication::applicationPid())
               .arg(QUuid::createUuid().toString(QUuid::Id128).left(8));
    QDir().mkpath(folder_);
    auto lock = lockOf(own_);  // before the folder is there, which would be taken for one that was left
    if (!lock->tryLock(0) || !QDir().mkpath(own_)) return {};
    lock_ = std::move(lock);
  }
  return QStringLiteral("%1/%2%3").arg(own_).arg(++newest_, 6, 10, QLatin1Char('0')).arg(sessionSuffix);
}

QSet<QString> Recovery::needed() const {
  QSet<QString> hashes;
  for (const Generation& one : kept_) hashes.unite(one.hashes);
  return hashes;
}

void Recovery::wrote(const QString& file, const QSet<QString>& hashes) {
  kept_.push_back({file, hashes});
  for (; kept_.size() > generations; kept_.pop_front()) QFile::remove(kept_.front().file);
}

void Recovery::close() {
  if (!lock_) return;
  QDir(own_).removeRecursively();
  lock_.reset();  // removes its file
  kept_.clear();
}

void Recovery::Left::forget() {
  QDir(folder).removeRecursively();
  lock.reset();
}

std::optional<Recovery::Left> Recovery::left() const {
  QFileInfoList folders = QDir(folder_).entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot);
  std::ranges::sort(folders, std::ranges::greater(), [](const QFileInfo& one) { return one.lastModified(); });
  for (const QFileInfo& one : folders) {
    if (one.filePath() == own_) continue;
    auto lock = lockOf(one.filePath());
    if (!lock->tryLock(0)) continue;  // its window is open, or another start has found it
    Left left{generationsIn(one.filePath()), one.filePath() + "/files", one.filePath(), std::move(lock)};
    if (!left.files.isEmpty()) return left;
    left.forget();  // it ended before there was anything
  }
  return std::nullopt;
}

}  // namespace reclab
