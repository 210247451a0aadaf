// SPDX-License-Identifier: GPL-3.0-or-later
// Files that are read: a sequence, weights or an initial state that are to fit the model; and files that are written. The last file to be
// read counts; all files are written, and none is read meanwhile.
#pragma once

#include <variant>

#include "gui/jobs/job.h"
#include "gui/session/sentences.h"
#include "gui/session/setup.h"

namespace reclab {

struct LoadKey {
  SequenceChoice choice;         ///< of a file that is opened, or of a sequence
  std::optional<FileKind> kind;  ///< the kind wanted; nothing: by the file's content
  QString preset = {};           ///< that weights or a state are to fit
  bool operator==(const LoadKey&) const = default;
};

class FileWork : public QObject {
  Q_OBJECT
 public:
  explicit FileWork(Scheduler& scheduler);
  void open(const SequenceChoice& choice);
  /// Reads a preset; presetRead follows, or a sentence.
  void openPreset(const QString& file, const LibraryPtr& library);
  void loadSequence(const SequenceChoice& choice);
  void loadFile(FileKind kind, const QString& file, const LibraryPtr& library, const Setup& setup);
  void saveWeights(const TracePtr& trace, const QString& file);
  void saveState(const std::shared_ptr<const FinalState>& state, const QString& file);

 signals:
  void isOf(reclab::FileKind kind, reclab::SequenceChoice choice);        ///< the kind of the opened file
  void presetRead(reclab::LibraryPtr library, QString id, QString file);  ///< a library with it
  void sequenceLoaded(reclab::LoadedSequencePtr sequence);
  void sequenceRefused();  ///< after the sentence that says why
  void cellsMissing(reclab::SequenceChoice choice,
                    QStringList cures);  ///< after that: of a file that is read with one of these choices of Missing
  void fileFits(reclab::FileKind kind, QString preset, QString file);
  void sizesFit(QString preset, QString file, reclab::Settings sizes);
  void partsFit(QString preset, QString file, QStringList parts);  ///< of a file that holds more than the model
  void saved(QString file);
  void said(QString sentence, reclab::Tone tone);

 private:
  struct Fits {};
  struct Misfit {
    QString sentence;
    Settings sizes;
    QStringList parts;
  };
  struct Gaps {
    QString sentence;
    QStringList cures;
  };
  struct ReadPreset {
    LibraryPtr library;
    QString id;
  };
  using Loaded = std::variant<FileKind, LoadedSequencePtr, Fits, Misfit, Gaps, ReadPreset>;
  struct SaveKey {
    FileKind kind;
    QString file;
    bool operator==(const SaveKey&) const = default;
  };
  void take(const LoadKey& key, const Loaded& loaded);
  void save(const SaveKey& key, std::function<void()> write);
  struct Nothing {};
  Job<SaveKey, Nothing> saving_;
  Job<LoadKey, Loaded> loading_;
};

}  // namespace reclab
