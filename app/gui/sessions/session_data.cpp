// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/sessions/session_data.h"

#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QObject>
#include <algorithm>
#include <utility>

#include "array/error.h"
#include "experiment/experiment.h"
#include "files/files.h"
#include "gui/session/kept_setup.h"
#include "gui/session/setup.h"

namespace reclab {
namespace {

constexpr int mostListed = 20'000;  ///< files of a folder in which one is looked for
constexpr int mostFolders = 4;      ///< of the program's data, one in another, with the file

/// The name of a file that a path ends in, in this folder.
QString inFolder(const QString& folder, const QString& path) {
  const QString name = QFileInfo(path).fileName();
  return QDir(folder).absoluteFilePath(name.isEmpty() || name == u"." || name == u".." ? QStringLiteral("unnamed") : name);
}

/// A place in the folder with this file's name and no file: one that is not taken is missed there.
QString missingIn(QString folder, const QString& path) {
  do {
    folder += QStringLiteral("/not taken");
  } while (QFileInfo(folder).isSymLink() || QFileInfo::exists(folder));
  return inFolder(folder, path);
}

QString native(const QString& path) { return QDir::toNativeSeparators(path); }

}  // namespace

QJsonObject withFilesOfState(QJsonObject state, const std::function<QString(const QString& file)>& place) {
  state["shown"] = withFiles(state.value("shown").toObject(), place);
  QJsonArray pins = state.value("pins").toArray();
  for (QJsonValueRef pin : pins) pin = withFiles(pin.toObject(), place);
  state["pins"] = pins;
  return state;
}

DataPlaces::DataPlaces(const std::vector<SessionData>& data, const QString& folder, bool own) : data_(data), folder_(folder), own_(own) {}

/// Whether a file, or where there is none the name of one, is of the folder; of "file:part" the file is.
bool DataPlaces::liesInside(const QString& file) const {
  const QString home = QFileInfo(folder_).canonicalFilePath(), within = home.endsWith('/') ? home : home + '/';
  const auto inside = [&](const QString& one) {
    const QString real = QFileInfo(one).canonicalFilePath();
    return real.isEmpty() || real.startsWith(within);
  };
  const qsizetype colon = file.lastIndexOf(':');
  return inside(file) && (colon < 0 || inside(file.left(colon)));
}

QString DataPlaces::place(const QString& path) {
  const auto before = found_.constFind(path);
  if (before != found_.constEnd()) return *before;
  const auto named = [&](const QString& name) { return std::ranges::find(data_, name, &SessionData::path); };
  const auto colon = path.lastIndexOf(':');
  QString part;
  auto data = named(path);
  if (data == data_.end() && colon > 0) {
    data = named(path.left(colon));
    part = path.mid(colon);
  }
  if (data != data_.end()) {
    if (part.isEmpty()) return found_[path] = find(*data);
    const QString file = place(data->path);
    return found_[path] = file + part;
  }
  // Not among the data: what lies in its own folders is the session's, and nothing else.
  const QDir own(folder_);
  const QString there = QDir::cleanPath(own.absoluteFilePath(path));
  const QString within = there.startsWith(own.absolutePath() + '/') ? there : inFolder(folder_, path);
  if (own_ || liesInside(within)) return found_[path] = within;
  notes_ << QObject::tr("%1 is a link that leads out of the session's folder, so it is not taken.").arg(native(path));
  return found_[path] = missingIn(folder_, path);
}

QString DataPlaces::find(const SessionData& data) {
  // Relative, wherever a session comes from.
  const QString there = QDir::isRelativePath(data.path) ? QDir::cleanPath(QDir(folder_).absoluteFilePath(data.path)) : QString();
  bool changed = false;
  if (!there.isEmpty() && QFileInfo(there).isFile()) try {
      if (QString::fromStdString(sha256_of_file(there.toStdString())) == data.sha256) return there;
      changed = true;
    } catch (const Error& error) {
      notes_ << QString::fromUtf8(error.what());
    }
  if (const QString own = ofTheProgram(data); !own.isEmpty()) return own;
  if (const QString other = withHash(data); !other.isEmpty()) {
    notes_ << (changed ? QObject::tr("%1 has changed since the session was saved; what it held then is %2, which is taken.")
                             .arg(native(data.path), native(QDir(folder_).relativeFilePath(other)))
                       : QObject::tr("%1 is now %2.").arg(native(data.path), native(QDir(folder_).relativeFilePath(other))));
    return other;
  }
  if (changed && !own_ && !liesInside(there)) {
    notes_ << QObject::tr(
                  "%1 has changed since the session was saved and lies outside its folder, so it is not taken: put it beside the "
                  "session, or open it in the window.")
                  .arg(native(data.path));
    return missingIn(folder_, data.path);
  }
  if (changed)
    notes_
        << QObject::tr("%1 has changed since the session was saved, so what it shows is not what was shown then.").arg(native(data.path));
  else
    notes_ << QObject::tr("%1 is missing, and no file beside the session or in its folders holds the same.").arg(native(data.path));
  return there.isEmpty() ? inFolder(folder_, data.path) : there;
}

/// Samples, and the weights that presets and lessons bring, lie elsewhere in another installation: the same file there, by the end of its
/// path.
QString DataPlaces::ofTheProgram(const SessionData& data) {
  const QStringList parts = QDir::fromNativeSeparators(data.path).split('/', Qt::SkipEmptyParts);
  for (qsizetype from = parts.size() - 1; from >= 0 && parts.size() - from <= mostFolders; --from) {
    if (parts[from] == u"..") break;
    const QString end = parts.mid(from).join('/');
    QStringList files{dataFile(end)};
    for (const auto& folder : preset_folders()) files << QDir(QString::fromStdString(folder.string())).filePath(end);  // in the source tree
    for (const QString& file : std::as_const(files)) try {
        if (QFileInfo(file).isFile() && QString::fromStdString(sha256_of_file(file.toStdString())) == data.sha256) return file;
      } catch (const Error&) {  // one that cannot be read is not the one
      }
  }
  return {};
}

QString DataPlaces::withHash(const SessionData& data) {
  if (!std::exchange(listed_, true)) {
    QDirIterator files(folder_, QDir::Files, QDirIterator::Subdirectories);  // no hidden ones; links to folders are not followed
    for (int count = 0; files.hasNext() && count < mostListed; ++count) {
      files.next();
      bySize_[files.fileInfo().size()] << files.filePath();
    }
  }
  for (const QString& file : bySize_.value(data.bytes)) try {
      if (QString::fromStdString(sha256_of_file(file.toStdString())) == data.sha256) return file;
    } catch (const Error&) {  // one that cannot be read is not the one
    }
  return {};
}

QString HashedFolder::put(const QByteArray& bytes) {
  QDir().mkpath(folder_);  // where it cannot be made, the file says why
  const QString hash = QString::fromStdString(sha256_hex({bytes.constData(), static_cast<std::size_t>(bytes.size())}));
  QFile there(place(hash));
  const bool same = there.size() == bytes.size() && there.open(QIODevice::ReadOnly) && there.readAll() == bytes;
  if (!same) write_file(place(hash).toStdString(), {bytes.constData(), static_cast<std::size_t>(bytes.size())});
  return hash;
}

QString HashedFolder::putFile(const QString& file) {
  const std::string bytes = read_file(file.toStdString());
  return put(QByteArray::fromRawData(bytes.data(), static_cast<qsizetype>(bytes.size())));
}

QByteArray HashedFolder::get(const QString& hash) const {
  const std::string file = place(hash).toStdString();
  if (!QFileInfo::exists(place(hash))) throw Error(file + " is missing: bring back the file.", {.file = file});
  const std::string bytes = read_file(file);
  if (sha256_hex(bytes) != hash.toStdString())
    throw Error(file + " is damaged: it does not hold what its name says; bring back the file.", {.file = file});
  return QByteArray::fromStdString(bytes);
}

void HashedFolder::keepOnly(const QSet<QString>& hashes) const {
  constexpr int hashLength = 64;
  for (const QFileInfo& file : QDir(folder_).entryInfoList(QDir::Files))
    if (file.filePath() == unnamed() || (file.fileName().size() == hashLength && !hashes.contains(file.fileName())))
      QFile::remove(file.filePath());
  QDir().rmdir(folder_);  // fails where anything is left
}

}  // namespace reclab
