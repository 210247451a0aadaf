// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/description.h"

#include "array/backend.h"
#include "models/registry.h"

namespace reclab {
namespace {

LibraryPtr library() {
  std::string noCuda;
  if (cuda_backend(&noCuda) != nullptr) noCuda.clear();
  return std::make_shared<const Library>(Library{PresetLibrary(builtin_registry(), preset_folders()), tasks(), noCuda});
}

ModelPtr descriptionOf(const Library& library, const DescriptionKey& key) {
  auto model = std::make_shared<ModelDescription>();
  model->preset = library.presets.find(key.preset);
  model->standard = hyper_of(builtin_registry(), model->preset);
  model->hyper = hyper_of(builtin_registry(), model->preset, key.settings);
  Preset changed = model->preset;
  changed.hyper.clear();
  for (const HyperSpec& row : model->hyper.table()) changed.hyper.emplace_back(row.key, model->hyper.value(row.key));
  model->card = card(builtin_registry(), changed, key.inputWidth);
  return model;
}

}  // namespace

DescriptionWork::DescriptionWork(Desk& desk)
    : presets_(desk, {},
               {.finished = [this](const Nothing&, const LibraryPtr& read) { emit presetsRead(read); },
                .ended = [this](const Nothing&, const Ending& ending) {
                  if (ending.how == Ending::How::failed) emit said(ending.sentence, Tone::warning);
                }}),
      description_(desk, {},
                   {.finished = [this](const DescriptionKey&, const ModelPtr& model) { emit described(model); },
                    .ended = [this](const DescriptionKey&, const Ending& ending) {
                      if (ending.how == Ending::How::failed) emit said(ending.sentence, Tone::warning);
                    }}) {}

void DescriptionWork::readPresets() {
  presets_.start({}, [](const auto&, std::stop_token) { return library(); });
}

void DescriptionWork::describe(const LibraryPtr& library, const Setup& setup) {
  const DescriptionKey key{setup.preset, setup.settings(), setup.sequence ? setup.sequence->sequence.width : 1};
  if (last_ == key) return;
  last_ = key;
  description_.start(key, [library, key](const auto&, std::stop_token) { return descriptionOf(*library, key); });
}

}  // namespace reclab
