// SPDX-License-Identifier: GPL-3.0-or-later
// The state of the lab as JSON. Weights that were learned are named by the training and the step that they are of, and lie in files of
// their own; sequences are named by their file or task.
#pragma once

#include <QJsonObject>
#include <QStringList>
#include <functional>
#include <optional>

#include "gui/frame/lab_state.h"
#include "gui/session/kept_setup.h"

namespace reclab {

constexpr int labVersion = 1;  ///< "version"; a state of another one is not read

/// `training`: the id of the training that a pinned run is shown with, by the run's id; empty for none.
QJsonObject toJson(const LabState& state, const PutLearned& put, const std::function<QString(std::uint64_t run)>& training);

QJsonObject toJson(const Arranged& arranged);
std::optional<Arranged> arrangedOf(const QJsonObject& object);  ///< nothing of one that is damaged

/// The look of the window: arrangement, panels, parts and time, which need no model. Nothing of an arrangement that is damaged.
struct WrittenView {
  std::optional<Arranged> arranged;
  QMap<QString, QVariantMap> panels, parts;
  TimeView time;
};
WrittenView viewOf(const QJsonObject& json);

/// The runs: setup and pins, without their sequence.
struct WrittenRuns {
  KeptSetup shown;
  bool follows = false;
  std::vector<PinValue> pins;                  ///< those that can still be run
  std::map<std::uint64_t, QString> trainings;  ///< that pins are shown with
  QStringList unlearned;                       ///< names of pins whose learned weights are there no more
};
/// The runs of a state; nothing where the model that is shown, or a value of it, is unknown.
std::optional<WrittenRuns> runsOf(const QJsonObject& json, const Library& library, const GetLearned& get);

}  // namespace reclab
