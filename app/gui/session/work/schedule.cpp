// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/schedule.h"

#include <utility>

#include "gui/session/requests.h"
#include "models/registry.h"
#include "schedule/schedule.h"

namespace reclab {
namespace {

std::filesystem::path pathIn(const std::map<std::string, std::filesystem::path>& files, const std::string& preset) {
  const auto found = files.find(preset);
  return found == files.end() ? std::filesystem::path() : found->second;
}

}  // namespace

ScheduleKey::ScheduleKey(const Setup& setup, std::int64_t ofSteps)
    : preset(setup.preset),
      device(setup.device),
      dtype(setup.dtype),
      seed(setup.seed),
      sequence(setup.sequence),
      weights(pathIn(setup.weights, setup.preset)),
      state(pathIn(setup.states, setup.preset)),
      learned(setup.learnedWeights()),
      settings(setup.settings()),
      steps(ofSteps) {}

ScheduleWork::ScheduleWork(Desk& desk, std::function<Subject()> subject)
    : subject_(std::move(subject)),
      job_(desk, {.niceness = 10},
           {.finished = [this](const ScheduleKey& key, const TracePtr& laid) { take(key, laid); },
            .ended =
                [this](const ScheduleKey& key, const Ending& ending) {
                  if (ending.how != Ending::How::failed) return;
                  emit said(ending.sentence, Tone::warning);
                  take(key, no_schedule(ending.sentence.toStdString()));  // so that the panel says it too
                }}) {}

void ScheduleWork::start() {
  const ScheduleKey now = key();
  if ((laid_ && laidOf_ == now) || job_.isAt(now)) return;
  laid_.reset();
  job_.start(now, [library = subject_().library, setup = subject_().setup, steps = steps_](const auto&, std::stop_token stop) {
    return form_schedule(builtin_registry(), requestFor(setup, library->presets.find(setup.preset), {}), steps, stop);
  });
}

void ScheduleWork::setupChanged() {
  const ScheduleKey now = key();
  if (!job_.isAt(now)) job_.drop();
  if (laidOf_ != now) laid_.reset();
}

void ScheduleWork::take(const ScheduleKey& key, const TracePtr& laid) {
  laid_ = laid;
  laidOf_ = key;
  emit came();
}

}  // namespace reclab
