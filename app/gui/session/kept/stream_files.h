// SPDX-License-Identifier: GPL-3.0-or-later
// Streams from one start of the window to the next: in the user's data folder, a folder each, and in it one for each place where the
// stream was left: the export of `reclab stream`, which --resume goes on from, and the window's part of it. The folder of a place is
// written once, so that its ring and its weights are files like any other.
#pragma once

#include <QDateTime>
#include <QString>
#include <QStringList>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gui/session/kept/ring_marks.h"
#include "gui/session/setup.h"
#include "streams/stream.h"

namespace reclab {

/// A predictor and its errors, as the table of the window has them.
struct StreamRow {
  std::string name, text;
  bool learns = false;
  Errors mean{}, windowed{};
  double regret = std::numeric_limits<double>::quiet_NaN();  ///< of learners
  std::int64_t diverged = -1;                                ///< as StreamRun::Predictor
};

/// The errors of the predictors over the stream, by their order; NaN where there is none.
struct StreamCurves {
  std::vector<double> steps;                          ///< after which the rows are
  std::vector<std::vector<double>> windowed, regret;  ///< the first measure; regret is empty of those that do not learn
};
using StreamCurvesPtr = std::shared_ptr<const StreamCurves>;

/// The numbers of a stream at a step.
struct StreamNumbers {
  std::array<std::string, 2> measures;
  std::vector<StreamRow> rows;
  std::int64_t steps = 0, drifts = 0;
  std::int64_t leftOut = 0;  ///< steps that no picture had in its ring
  bool done = false;
  std::int64_t window = 0;      ///< the errors that a windowed one is the mean of
  std::string note = {};        ///< what of the source was lost while the window watches it, a sentence
  StreamCurvesPtr curves = {};  ///< null: none are known
};
/// Without the curves.
StreamNumbers numbersOf(const StreamRun& stream);
StreamCurvesPtr curvesOf(const StreamRun& stream);

/// A place where a stream was left.
struct StreamPlace {
  QString folder;
  std::int64_t steps = 0;
  LoadedSequencePtr ring;  ///< as a file that was opened
  QString weights() const { return folder + "/weights.safetensors"; }
};

/// What a stream goes on from.
struct StreamFiles {
  Setup setup;            ///< of its model as it began; without a sequence
  StreamRequest request;  ///< with the model
  StreamNumbers numbers;
};

/// A setup's model as a stream takes it: from rest, in the sequential form, and without a sequence.
RunRequest modelOfStream(const Setup& setup, const Preset& preset);

/// Of the user's data, where streams are kept.
QString folderOfStreams();
/// A new one in there for a stream of a preset. Throws Error.
QString newStreamFolder(const QString& preset);
/// Of a stream's folder, the place that is written anew once a minute while it goes on, and is gone when it stands.
QString checkpointIn(const QString& stream);
/// The choice of a place's ring.
SequenceChoice ringIn(const QString& folder);

/// The steps of a ring at which another regime begins than that of the step before, with the names of these.
std::vector<StepMark> marksOf(const StreamRun& stream);

/// Writes the place of a stream, whole. Throws Error.
StreamPlace leaveStream(StreamRun& stream, const Setup& setup, const StreamNumbers& numbers, const QString& folder);
/// Reads the window's part of a place. Throws Error.
StreamFiles streamFilesIn(const QString& folder, const Library& library);

/// A place on the disk, for a list of them.
struct KeptPlace {
  QString folder;
  std::string preset;
  std::int64_t steps = 0;
  QDateTime written;
  std::int64_t bytes = 0;
  bool checkpoint = false;  ///< of a program that ended while its stream went on
};
/// All in the folder of streams that can be read, the newest first.
std::vector<KeptPlace> keptPlaces();
/// Removes a place, and its stream's folder with the last one in it. Throws Error where it stays.
void removePlace(const QString& folder);
/// The places that a setup's ring and weights lie in.
QStringList placesOf(const Setup& setup);

}  // namespace reclab
