// SPDX-License-Identifier: GPL-3.0-or-later
// A model put together from choices, with a small run of it. Its values are hyper-parameters of the preset that it begins with.
#include "composer/composer.h"
#include "models/registry.h"
#include "studies/study.h"

namespace reclab::studies_by_name {

Study compose() {
  Study made;
  made.takes_model = false;
  made.compute = [](const StudyInput& input, const FieldTexts& values, const StudyReport&, std::stop_token stop) {
    return reclab::compose(input.registry, input.presets, values, std::move(stop));
  };
  return made;
}

}  // namespace reclab::studies_by_name
