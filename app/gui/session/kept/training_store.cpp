// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/kept/training_store.h"

#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>
#include <algorithm>
#include <utility>

#include "gui/session/sentences.h"
#include "gui/session/work/training.h"

namespace reclab {
namespace {

/// The folders of trainings, the newest first.
QFileInfoList foldersIn(const QString& folder) {
  QFileInfoList all = QDir(folder).entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot);
  const auto of = [](const QFileInfo& one) { return QFileInfo(one.filePath() + "/window/learner.json"); };
  all.removeIf([&](const QFileInfo& one) { return !of(one).isFile(); });
  std::ranges::sort(all, std::ranges::greater(), [&](const QFileInfo& one) { return of(one).lastModified(); });
  return all;
}

}  // namespace

QString TrainingStore::standardFolder() { return QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + "/trainings"; }

TrainingStore::TrainingStore(const QString& folder) : folder_(folder) {
  if (!QDir().mkpath(folder_)) return;  // a later write there reports the reason
  lock_ = std::make_unique<QLockFile>(folder_ + "/lock");
  lock_->setStaleLockTime(0);
  mine_ = lock_->tryLock(0);
}

KeptTrainings TrainingStore::readTrainings(const QStringList& folders, const LibraryPtr& library) {
  KeptTrainings kept;
  std::vector<std::pair<SequenceChoice, LoadedSequencePtr>> sequences;  // of several trainings on one it is one
  const auto load = [&](const SequenceChoice& choice) {
    const auto found = std::ranges::find(sequences, choice, &std::pair<SequenceChoice, LoadedSequencePtr>::first);
    return found != sequences.end() ? found->second : sequences.emplace_back(choice, loadChoice(choice)).second;
  };
  // The number that it had, so that forks find their parents; of two windows at once the same may come twice.
  const auto number = [&](std::uint64_t before) {
    const auto taken = [&](std::uint64_t one) {
      return std::ranges::any_of(kept.learners, [&](const auto& learner) { return learner->number() == one; });
    };
    before = std::max<std::uint64_t>(1, before);
    while (taken(before)) ++before;
    return before;
  };
  for (const QString& one : folders) try {
      kept.learners.push_back(Learner::kept(one, number, library, load));
    } catch (...) {
      kept.problems << sentenceOf(std::current_exception());
    }
  return kept;
}

KeptTrainings TrainingStore::read(const QString& folder, const LibraryPtr& library) {
  QStringList newest;
  for (const QFileInfo& one : foldersIn(folder).mid(0, static_cast<qsizetype>(mostShown))) newest.prepend(one.filePath());
  KeptTrainings kept = readTrainings(newest, library);
  for (const QFileInfo& file : QDir(folder + "/weights").entryInfoList({"*.npz"}, QDir::Files)) try {
      kept.weights.emplace(file.fileName(), readWeights(file.filePath().toStdString()));
    } catch (...) {
      kept.problems << sentenceOf(std::current_exception());
    }
  return kept;
}

void TrainingStore::remove(const QStringList& ids) const {
  for (const QString& id : ids) QDir(folderOf(id)).removeRecursively();
}

void TrainingStore::removeOthers(const QSet<QString>& weights) const {
  if (!mine_) return;
  for (const QFileInfo& file : QDir(folder_ + "/weights").entryInfoList({"*.npz"}, QDir::Files))
    if (!weights.contains(file.fileName())) QFile::remove(file.filePath());
}

QStringList TrainingStore::oldest() const {
  QStringList ids;
  if (mine_)
    for (const QFileInfo& old : foldersIn(folder_).mid(static_cast<qsizetype>(most))) ids << old.fileName();
  return ids;
}

}  // namespace reclab
