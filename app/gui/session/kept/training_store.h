// SPDX-License-Identifier: GPL-3.0-or-later
// The files of trainings from one start of the window to the next: in the user's data folder, a folder each, and beside them the weights of
// setups and pins.
#pragma once

#include <QJsonObject>
#include <QLockFile>
#include <QSet>
#include <QString>
#include <QStringList>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "gui/session/setup.h"

namespace reclab {

class Learner;

/// Weights as they are on a card, in a file of their own. Throws Error.
void writeWeights(const std::filesystem::path& file, const Parameters& weights);
Parameters readWeights(const std::filesystem::path& file);

/// The manifest of a training that was kept, window/learner.json, with each file of its setup as `place` says.
std::string learnerWithFiles(const std::string& manifest, const std::function<QString(const QString& file)>& place);

/// The contents of a store.
struct KeptTrainings {
  std::vector<std::shared_ptr<Learner>> learners;  ///< the newest last
  std::map<QString, Parameters> weights;           ///< of setups and pins, by the names of their files
  QStringList problems;                            ///< on files that cannot be read, a sentence each; they stay where they lie
};

class TrainingStore {
 public:
  static constexpr std::size_t mostShown = 6;                      ///< trainings that come back at a start, the newest
  static constexpr std::size_t most = 24;                          ///< folders; of more a person is asked
  static constexpr std::int64_t largest = std::int64_t{64} << 20;  ///< bytes of weights of a setup or pin

  explicit TrainingStore(const QString& folder = standardFolder());
  static QString standardFolder();
  const QString& folder() const { return folder_; }
  QString folderOf(const QString& id) const { return folder_ + "/" + id; }
  QString fileOf(const QString& name) const { return folder_ + "/weights/" + name; }
  /// Whether no other window has it. One that does not have it leaves files of others alone.
  bool isMine() const { return mine_; }
  /// Reads the store, in any thread.
  static KeptTrainings read(const QString& folder, const LibraryPtr& library);
  /// Reads these trainings, a folder each, without weights of setups.
  static KeptTrainings readTrainings(const QStringList& folders, const LibraryPtr& library);
  /// Removes trainings that were forgotten.
  void remove(const QStringList& ids) const;
  /// The oldest, where there are more than `most` and no other window has them.
  QStringList oldest() const;
  /// Removes all files of weights but these.
  void removeOthers(const QSet<QString>& weights) const;

 private:
  QString folder_;
  std::unique_ptr<QLockFile> lock_;
  bool mine_ = false;
};

}  // namespace reclab
