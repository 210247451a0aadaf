// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/composition.h"

#include <utility>

#include "composer/composer.h"
#include "models/registry.h"

namespace reclab {

CompositionWork::CompositionWork(Desk& desk)
    : job_(desk, {},
           {.finished = [this](const CompositionChoice&, const CompositionPtr& made) { emit composed(made, {}); },
            .ended =
                [this](const CompositionChoice&, const Ending& ending) {
                  if (ending.how == Ending::How::failed) emit composed(nullptr, ending.sentence);
                }}) {}

void CompositionWork::setLibrary(const LibraryPtr& library) {
  library_ = library;
  start();
}

void CompositionWork::choose(const CompositionChoice& choice) {
  wanted_ = choice;
  start();
}

void CompositionWork::start() {
  if (!library_ || !wanted_) return;
  CompositionChoice choice = *std::exchange(wanted_, std::nullopt);
  job_.start(choice, [library = library_, settings = choice.settings](const auto&, std::stop_token stop) {
    return compose(builtin_registry(), library->presets, settings, std::move(stop));
  });
}

}  // namespace reclab
