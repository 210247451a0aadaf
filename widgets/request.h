// SPDX-License-Identifier: GPL-3.0-or-later
// What a panel asks to be computed beside the run, and what it is told of that.
#pragma once

#include <QMetaType>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint_choice.h"
#include "timing_choice.h"
#include "trace/kinds.h"

namespace reclab {

/// How a form falls into pieces of work, for so many steps.
struct ScheduleChoice {
  std::int64_t steps = 16;
  bool operator==(const ScheduleChoice& other) const = default;
};

/// The model of these settings, beside the run; none: as its preset has them.
struct CompositionChoice {
  std::vector<std::pair<std::string, std::string>> settings = {};
  bool operator==(const CompositionChoice& other) const = default;
};

/// A model to be looked at: a preset, and what is changed of it.
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

struct Request {
  enum class Act : std::uint8_t {
    compute,  ///< now, or as soon as what runs is done; instead of what is being computed of this kind
    choose,   ///< this, when it is computed next
    stop,     ///< what was computed until now stays
    open      ///< it becomes what is looked at everywhere
  };
  Act act = Act::compute;
  Kind kind = Kind::timing;
  std::variant<std::monostate, TimingChoice, ScheduleChoice, CompositionChoice, ModelChoice, TrainingWish, CheckpointChoice,
               SettingChoice>
      choice;  ///< of the kind's own type, but for stop
};

}  // namespace reclab

Q_DECLARE_METATYPE(reclab::Request)
