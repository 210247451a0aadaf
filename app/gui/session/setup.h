// SPDX-License-Identifier: GPL-3.0-or-later
// The setup of a run: a value that undo keeps, the inspector edits and a run is made from. Cheap to copy.
#pragma once

#include <QMetaType>
#include <QString>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/properties.h"
#include "experiment/training/learned.h"
#include "plot/parts/step_mark.h"
#include "sequence/choice.h"

namespace reclab {

/// The smallest and largest value in each of at most 4096 equal stretches of a channel: all that a line on a screen can show.
struct Overview {
  struct Channel {
    std::vector<double> low, high;
  };
  std::vector<Channel> channels;  ///< the first four
  double low = 0.0, high = 1.0;   ///< of all of them
  /// Of symbols (each step one channel of several is 1, all others 0): how often each channel is on, [bins, symbols], as lines would hide
  /// each other.
  std::vector<float> raster;
  std::int64_t symbols = 0;  ///< channels of the raster; 0: these are no symbols
};
Overview overviewOf(const Sequence& sequence);
/// Whether every step has one channel that is 1 and the others 0.
bool isOneHot(const Sequence& sequence);

/// A sequence as it was chosen, loaded, and how it looks from afar. Immutable.
struct LoadedSequence {
  SequenceChoice choice;
  Sequence sequence;
  Overview overview;
  std::vector<std::string> columns;  ///< every column that may be chosen, for files
  std::vector<StepMark> marks = {};  ///< of the ring of a stream: where another regime begins
};
using LoadedSequencePtr = std::shared_ptr<const LoadedSequence>;
/// Reads the file or makes the task. Throws Error.
LoadedSequencePtr loadChoice(const SequenceChoice& choice);

using Settings = std::vector<std::pair<std::string, std::string>>;

struct Setup : RunSettings {
  Setup() { form = device = "auto"; }
  std::string preset;
  std::map<std::string, Settings> set;                           ///< changed settings by preset, kept when another is current
  std::map<std::string, std::filesystem::path> weights, states;  ///< loaded files by preset, kept as well
  std::map<std::string, LearnedPtr> learned;                     ///< trained weights by preset, in place of drawn or loaded ones
  LoadedSequencePtr sequence;

  bool operator==(const Setup& other) const = default;  ///< of loaded sequences and learned weights, whether they are the same ones
  Settings settings() const;                            ///< of the present preset
  void setValue(const std::string& key, const std::string& text);
  /// Whether both are run alike: changed settings of other presets do not matter.
  bool sameRun(const Setup& other) const;
  LearnedPtr learnedWeights() const;  ///< of the present preset; null where it has learned nothing
  std::map<std::string, std::filesystem::path>& files(FileKind kind) { return kind == FileKind::weights ? weights : states; }
};

/// The file of a preset, of such that are loaded; empty where it has none.
std::filesystem::path fileOf(const std::map<std::string, std::filesystem::path>& files, const std::string& preset);

/// Takes the trained weights that the preset brings, with its values, in place of the weights, state and values that there were; the
/// sequence stays.
void useTrained(Setup& setup, const Preset& preset);
/// Whether the weights are those that came trained with the preset.
bool isTrained(const Setup& setup, const Preset& preset);

/// Whether it is the run that the sentences of the preset's card were measured on: the preset's values, weights and sequence, or those of
/// its training.
bool isOwnRun(const Setup& setup, const Preset& preset);

/// Everything that there is to choose from.
struct Library {
  PresetLibrary presets;
  std::vector<TaskInfo> tasks;
  std::string noCuda = {};  ///< why the CUDA device cannot be used; empty when it can
};
using LibraryPtr = std::shared_ptr<const Library>;

using PropertiesOf = std::map<std::string, Properties>;  ///< by preset; those that are known

/// A preset with the values that are set now, its shapes as they are with these.
struct ModelDescription {
  Preset preset;
  Card card;
  Hyper hyper, standard;  ///< now, and as the preset has them
  Properties properties =
      {};  ///< with these values; of one that is too large to be tried between two moves of a slider, those of the preset
  struct Kin {
    std::string id, title, changed;  ///< title: empty for one that is no preset here
  };
  std::vector<Kin> from = {}, ledTo = {};
  std::vector<IdleSetting> idle = {};  ///< of the settings that draw weights, those that do nothing beside the others; found after all else
};
using ModelPtr = std::shared_ptr<const ModelDescription>;

/// The installed resources: a file below share/recurrence-lab, or below resources/ in the source tree; empty when there is none.
QString dataFile(const QString& name);

}  // namespace reclab

Q_DECLARE_METATYPE(reclab::SequenceChoice)
