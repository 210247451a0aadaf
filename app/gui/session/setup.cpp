// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/setup.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <algorithm>
#include <cmath>
#include <limits>

#include "gui/session/kept/ring_marks.h"
#include "models/registry.h"

namespace reclab {

bool isOneHot(const Sequence& sequence) {
  const auto width = static_cast<std::size_t>(sequence.width);
  for (std::size_t t = 0; t < static_cast<std::size_t>(sequence.length); ++t) {
    int on = 0;
    for (std::size_t channel = 0; channel < width; ++channel) {
      const double value = sequence.input[t * width + channel];
      if (value != 0.0 && value != 1.0) return false;
      on += value == 1.0;
    }
    if (on != 1) return false;
  }
  return true;
}

Overview overviewOf(const Sequence& sequence) {
  constexpr std::int64_t most_bins = 4096, most_channels = 4;
  Overview overview;
  const std::int64_t bins = std::min(sequence.length, most_bins), width = sequence.width;
  overview.low = std::numeric_limits<double>::infinity();
  overview.high = -overview.low;
  for (std::int64_t channel = 0; channel < std::min(width, most_channels); ++channel) {
    Overview::Channel made;
    for (std::int64_t bin = 0; bin < bins; ++bin) {
      const std::int64_t first = bin * sequence.length / bins, last = (bin + 1) * sequence.length / bins;
      double low = sequence.input[static_cast<std::size_t>(first * width + channel)], high = low;
      for (std::int64_t t = first + 1; t < last; ++t) {
        const double value = sequence.input[static_cast<std::size_t>(t * width + channel)];
        low = std::min(low, value);
        high = std::max(high, value);
      }
      made.low.push_back(low);
      made.high.push_back(high);
      overview.low = std::min(overview.low, low);
      overview.high = std::max(overview.high, high);
    }
    overview.channels.push_back(std::move(made));
  }
  constexpr std::int64_t most_symbols = 256;
  if (width >= 3 && width <= most_symbols && isOneHot(sequence)) {
    overview.symbols = width;
    overview.raster.assign(static_cast<std::size_t>(bins * width), 0.0f);
    for (std::int64_t t = 0; t < sequence.length; ++t) {
      const std::int64_t bin = t * bins / sequence.length;
      for (std::int64_t channel = 0; channel < width; ++channel)
        if (sequence.input[static_cast<std::size_t>(t * width + channel)] != 0.0)
          overview.raster[static_cast<std::size_t>(bin * width + channel)] += 1.0f;
    }
  }
  if (!(overview.low < overview.high)) {
    overview.low = std::isfinite(overview.low) ? overview.low - 1.0 : -1.0;
    overview.high = overview.low + 2.0;
  }
  return overview;
}

namespace {
/// The file with all of its columns, also where those that are not read have missing cells; empty where it cannot be read so.
Sequence wholeFile(const std::string& file) {
  for (const Missing missing : {Missing::hold, Missing::leave_out}) {
    LoadOptions options;
    options.standardise = false;
    options.missing = missing;
    try {
      return load_sequence(file, options);
    } catch (const Error& error) {
      if (error.where().parameter != "missing") throw;
    }
  }
  return {};
}
}  // namespace

LoadedSequencePtr loadChoice(const SequenceChoice& choice) {
  auto loaded = std::make_shared<LoadedSequence>();
  loaded->choice = choice;
  loaded->sequence = load_sequence(choice);
  if (choice.is_file()) {
    // With columns chosen, the others are still there to be chosen.
    const bool all = choice.load.columns.empty() && !choice.load.time && choice.load.target.empty();
    const Sequence whole = all ? Sequence{} : wholeFile(choice.file);
    const Sequence& source = all || whole.length == 0 ? loaded->sequence : whole;
    loaded->marks = marksOfRing(choice.file);
    loaded->columns.assign(source.names.begin(), source.names.end() - source.flags);
    if (source.time_name != "step") loaded->columns.insert(loaded->columns.begin(), source.time_name);
  }
  loaded->overview = overviewOf(loaded->sequence);
  return loaded;
}

Settings Setup::settings() const {
  const auto found = set.find(preset);
  return found == set.end() ? Settings{} : found->second;
}

void Setup::setValue(const std::string& key, const std::string& text) {
  Settings& values = set[preset];
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& entry) { return entry.first == key; });
  if (found == values.end())
    values.emplace_back(key, text);
  else
    found->second = text;
}

std::filesystem::path fileOf(const std::map<std::string, std::filesystem::path>& files, const std::string& preset) {
  const auto found = files.find(preset);
  return found == files.end() ? std::filesystem::path() : found->second;
}

LearnedPtr Setup::learnedWeights() const {
  const auto found = learned.find(preset);
  return found == learned.end() ? nullptr : found->second;
}

bool Setup::sameRun(const Setup& other) const {
  return static_cast<const RunSettings&>(*this) == other && preset == other.preset && settings() == other.settings() &&
         sequence == other.sequence && learnedWeights() == other.learnedWeights() &&
         fileOf(weights, preset) == fileOf(other.weights, preset) && fileOf(states, preset) == fileOf(other.states, preset);
}

void useTrained(Setup& setup, const Preset& preset) {
  const Preset as = as_trained(preset);
  setup.learned.erase(preset.id);
  setup.states.erase(preset.id);
  setup.set.erase(preset.id);
  const Hyper standard = hyper_of(builtin_registry(), preset), values = hyper_of(builtin_registry(), as);
  for (const HyperSpec& row : standard.table())
    if (standard.text(row.key) != values.text(row.key)) setup.setValue(row.key, values.text(row.key));
  setup.weights[preset.id] = preset.trained->weights;
}

bool isTrained(const Setup& setup, const Preset& preset) {
  return preset.trained && !setup.learnedWeights() && fileOf(setup.weights, preset.id) == preset.trained->weights;
}

bool isOwnRun(const Setup& setup, const Preset& preset) {
  const bool trained = isTrained(setup, preset);
  if (setup.learnedWeights() || !fileOf(setup.states, preset.id).empty() || setup.seed != 1 || setup.loss != LossKind::automatic)
    return false;
  if (!trained && !fileOf(setup.weights, preset.id).empty()) return false;
  const Preset as = trained ? as_trained(preset) : preset;
  if (!setup.sequence || !(setup.sequence->choice == as.own_sequence())) return false;
  return hyper_of(builtin_registry(), preset, setup.settings()) == hyper_of(builtin_registry(), as);
}

QString dataFile(const QString& name) {
  for (const QString& folder : {QCoreApplication::applicationDirPath() + "/../share/recurrence-lab", QString(RECLAB_SOURCE_RESOURCES),
                                QString(RECLAB_INSTALL_RESOURCES)}) {
    const QFileInfo file(QDir(folder).filePath(name));
    if (file.isReadable()) return file.canonicalFilePath();
  }
  return {};
}

}  // namespace reclab
