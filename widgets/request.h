// SPDX-License-Identifier: GPL-3.0-or-later
// Requests of a panel for computations beside the run, and the state of them.
#pragma once

#include <QMetaType>
#include <QString>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace reclab {

/// A study to be computed beside the run: its id, and values by the keys of its fields, as text; those that are not said have their
/// defaults.
struct StudyChoice {
  enum class Act : std::uint8_t {
    compute,  ///< now, or as soon as the running work is done; instead of a computation of this study under way
    choose,   ///< this, when it is computed next
    stop      ///< the result until now stays
  };
  std::string study;
  std::vector<std::pair<std::string, std::string>> values = {};
  Act act = Act::compute;
};

/// The state of a study, for a panel that shows it.
struct StudyState {
  bool running = false;
  double fraction = 0.0;
  QString stage = {};  ///< the stage of the computation, in words
  QString waits = {};  ///< a sentence: why it waits, or was stopped by something else
};

/// A model to be looked at: a preset, and its changed settings.
struct ModelChoice {
  std::string preset, title;
  std::vector<std::pair<std::string, std::string>> settings;
};

/// A setting of the model that is looked at. `live`: a slider is on its way, and has the same gesture from when it is taken until it is let
/// go.
struct SettingChoice {
  std::string key, value;
  bool live = false;
  int gesture = 0;
};

/// Weights of a training to be looked at: those that are kept nearest to a step of it.
struct CheckpointChoice {
  std::uint64_t training = 0;
  std::int64_t step = 0;
  bool moving = false;  ///< more are about to follow
};

using Request = std::variant<StudyChoice, ModelChoice, CheckpointChoice, SettingChoice>;

}  // namespace reclab

Q_DECLARE_METATYPE(reclab::Request)
