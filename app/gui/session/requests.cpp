// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/requests.h"

#include "panel.h"

namespace reclab {

Kinds pairwiseKinds() { return {Kind::sensitivity, Kind::mixing, Kind::mixing_unnormalised, Kind::jacobian_pairs, Kind::alignment}; }

RecordingOptions recordingFor(const QStringList& visible, bool live, std::int64_t focus, const Kinds& also) {
  const Kinds needs = needs_of(visible);
  RecordingOptions recording;
  recording.kinds = kinds_of(Stage::always);
  recording.kinds.remove({Kind::newton});  // drawn nowhere; a request of panels never equals the default of all kinds
  for (const KindInfo& row : kind_table())
    if (needs.has(row.kind) && recordable().has(row.kind) && !(live && row.stage == Stage::late && !also.has(row.kind)))
      recording.kinds.add({row.kind});
  if (needs.has(Kind::spectrum)) recording.focus = focus;
  recording.dense_rows = 400;
  return recording;
}

RunRequest requestFor(const Setup& setup, const Preset& preset, const RecordingOptions& recording) {
  RunRequest request;
  static_cast<RunSettings&>(request) = setup;
  request.preset = preset;
  request.set = setup.settings();
  if (setup.sequence) request.sequence = SharedSequence(std::shared_ptr<const Sequence>(setup.sequence, &setup.sequence->sequence));
  if (const auto found = setup.weights.find(setup.preset); found != setup.weights.end()) request.weights = found->second;
  if (const auto found = setup.states.find(setup.preset); found != setup.states.end()) request.state = found->second;
  request.learned = setup.learnedWeights();
  request.recording = recording;
  return request;
}

TracePtr merged(const TracePtr& trace, const TracePtr& more) {
  if (!more) return trace;
  if (!trace) return more;
  auto both = std::make_shared<Trace>(*trace);
  for (const auto& array : more->arrays()) both->put(*array);
  return both;
}
TracePtr withTiming(const TracePtr& trace, const TracePtr& timing) {
  if (!timing || !trace) return merged(trace, timing);
  auto both = std::make_shared<Trace>(*merged(trace, timing));
  both->timed = std::make_shared<const RunInfo>(timing->info);
  return both;
}

std::string shapesOf(const Card& card) {
  std::string all;
  const auto add = [&](const auto& one) {
    all += one.name;
    for (const auto extent : one.shape) all += ' ' + std::to_string(extent);
    all += '\n';
  };
  for (const ParameterInfo& parameter : card.parameters) add(parameter);
  for (const StateInfo& state : card.states) add(state);
  for (const std::string& form : card.forms) all += form + ' ';
  return all;
}

}  // namespace reclab
