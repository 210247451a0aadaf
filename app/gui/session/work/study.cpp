// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/study.h"

#include <utility>

#include "gui/session/requests.h"
#include "models/registry.h"

namespace reclab {

StudyKey::StudyKey(const Study& study, const Setup& of, FieldTexts with)
    : setup(study.takes_model ? of : Setup()), values(std::move(with)) {
  setup.form.clear();
  if (!study.takes_loss) setup.loss = LossKind::automatic;
}

StudyWork::StudyWork(const Study& study, Scheduler& scheduler, std::function<Subject()> subject)
    : study_(study),
      subject_(std::move(subject)),
      values_(study.in_window),
      job_(scheduler, {.niceness = study.takes_model ? 10 : 0},
           {.began = [this](const StudyKey&) { tell(true); },
            .progressed =
                [this](const StudyKey&, double fraction, const QString& stage) {
                  state_.fraction = fraction;
                  state_.stage = stage;
                  emit moved(state_);
                },
            .finished = [this](const StudyKey& key, const StudyResult& found) { take(key, found); },
            .ended =
                [this](const StudyKey& key, const Ending& ending) {
                  tell(false);
                  if (ending.how != Ending::How::failed) return;
                  if (!study_.instead) return take(key, {}, ending.sentence);
                  emit said(ending.sentence, Tone::warning);
                  take(key, study_.instead(ending.sentence.toStdString()));  // so that the panel says it too
                }}) {}

void StudyWork::choose(const FieldTexts& values) {
  values_ = values;
  wanted_ = true;
  if (foundOf_ == key() && study_.fills.empty()) foundOf_.reset();  // the asking panel gets the result again
  start();
}

void StudyWork::start() {
  const Subject subject = subject_();
  // While the shown run is of another setup, nothing is computed: the panel asks again.
  if (!subject.library || (study_.takes_model && !subject.shown) || (!study_.takes_model && !std::exchange(wanted_, false))) return;
  const StudyKey now = key();
  if (foundOf_ == now || job_.isAt(now)) return;
  if (!study_.on_request) foundOf_.reset();
  job_.start(now, [&study = study_, library = subject.library, setup = subject.setup, values = values_](const Report<StudyResult>& report,
                                                                                                        std::stop_token stop) {
    StudyInput input{builtin_registry(), library->presets};
    if (study.takes_model) input.run = requestFor(setup, library->presets.find(setup.preset), {});
    return study.compute(input, values, {.progress = report.progress}, std::move(stop));
  });
}

void StudyWork::stop() {
  job_.drop();
  tell(false);
}

void StudyWork::setupChanged() {
  const StudyKey now = key();
  if ((job_.running() || job_.waiting()) && !job_.isAt(now)) stop();
  if (!holds(now)) foundOf_.reset();
}

void StudyWork::tell(bool running) {
  state_ = {.running = running};
  emit moved(state_);
}

void StudyWork::take(const StudyKey& key, const StudyResult& found, const QString& problem) {
  found_ = found;
  foundOf_ = key;
  emit came(problem);
}

}  // namespace reclab
