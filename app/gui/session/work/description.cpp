// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/description.h"

#include "array/backend.h"
#include "array/error.h"
#include "array/stop.h"
#include "models/registry.h"

namespace reclab {
namespace {

LibraryPtr library() {
  std::string noCuda;
  if (cuda_backend(&noCuda) != nullptr) noCuda.clear();
  return std::make_shared<const Library>(Library{PresetLibrary(builtin_registry(), preset_folders()), tasks(), noCuda});
}

/// Whether drawing its weights takes some milliseconds.
bool isQuick(const Card& card) {
  std::int64_t parameters = 0;
  for (const ParameterInfo& one : card.parameters) parameters += count(one.shape);
  return parameters <= 200'000;
}

ModelPtr descriptionOf(const Library& library, const DescriptionKey& key) {
  auto model = std::make_shared<ModelDescription>();
  model->preset = library.presets.find(key.preset);
  if (key.trained) {
    model->preset.idea = model->preset.trained->idea;
    model->preset.claims = model->preset.trained->claims;
  }
  model->standard = hyper_of(builtin_registry(), model->preset);
  model->hyper = hyper_of(builtin_registry(), model->preset, key.settings);
  Preset changed = model->preset;
  changed.hyper.clear();
  for (const HyperSpec& row : model->hyper.table()) changed.hyper.emplace_back(row.key, model->hyper.value(row.key));
  model->card = card(builtin_registry(), changed, key.inputWidth);
  const bool quick = isQuick(model->card);
  model->properties = properties_of(builtin_registry(), quick ? changed : model->preset, quick ? key.inputWidth : 1);
  const auto titleOf = [&](const std::string& id) {
    for (const Preset& preset : library.presets.presets())
      if (preset.id == id) return preset.title;
    return std::string();
  };
  for (const Descent& descent : model->preset.descends_from) model->from.push_back({descent.id, titleOf(descent.id), descent.changed});
  for (const Preset& preset : library.presets.presets())
    for (const Descent& descent : preset.descends_from)
      if (descent.id == key.preset) model->ledTo.push_back({preset.id, preset.title, descent.changed});
  return model;
}

PropertiesOf propertiesOfAll(const Library& library, const std::stop_token& stop) {
  PropertiesOf all;
  for (const Preset& preset : library.presets.presets()) {
    if (stop.stop_requested()) break;
    try {
      all.emplace(preset.id, properties_of(builtin_registry(), preset));
    } catch (const Error&) {  // one that cannot be built says so when it is picked
    }
  }
  return all;
}

}  // namespace

DescriptionWork::DescriptionWork(Scheduler& scheduler)
    : presets_(scheduler, {},
               {.finished = [this](const Nothing&, const LibraryPtr& read) { emit presetsRead(read); },
                .ended =
                    [this](const Nothing&, const Ending& ending) {
                      if (ending.how == Ending::How::failed) emit said(ending.sentence, Tone::warning);
                    }}),
      properties_(scheduler, {.niceness = 10},
                  {.finished = [this](const Nothing&, const PropertiesOf& found) { emit propertiesFound(found); }}),
      description_(scheduler, {},
                   {.finished =
                        [this](const DescriptionKey& key, const ModelPtr& found) {
                          // Until the effects are known anew, the former ones hold.
                          auto model = std::make_shared<ModelDescription>(*found);
                          if (lastDescribed_ && lastDescribed_->preset.id == model->preset.id) model->idle = lastDescribed_->idle;
                          lastDescribed_ = model;
                          emit described(model);
                          findEffects(key, model);
                        },
                    .ended =
                        [this](const DescriptionKey&, const Ending& ending) {
                          if (ending.how == Ending::How::failed) emit said(ending.sentence, Tone::warning);
                        }}),
      effects_(scheduler, {.niceness = 10}, {.finished = [this](const DescriptionKey& key, const ModelPtr& model) {
                 if (last_ != key || !lastDescribed_ || lastDescribed_->idle == model->idle) return;
                 lastDescribed_ = model;
                 emit described(model);
               }}) {}

void DescriptionWork::findEffects(const DescriptionKey& key, const ModelPtr& model) {
  effects_.start(key, [model](const auto&, std::stop_token) -> ModelPtr {
    auto known = std::make_shared<ModelDescription>(*model);
    known->idle.clear();
    if (isQuick(known->card)) known->idle = idle_settings(*architecture_of(builtin_registry(), known->preset), known->hyper, 1);
    return known;
  });
}

void DescriptionWork::readPresets() {
  presets_.start({}, [](const auto&, std::stop_token) { return library(); });
}

void DescriptionWork::findProperties(const LibraryPtr& library) {
  properties_.start({}, [library](const auto&, std::stop_token stop) { return propertiesOfAll(*library, stop); });
}

void DescriptionWork::describe(const LibraryPtr& library, const Setup& setup) {
  const DescriptionKey key{setup.preset, setup.settings(), setup.sequence ? setup.sequence->sequence.width : 1,
                           isTrained(setup, library->presets.find(setup.preset))};
  if (last_ == key) return;
  last_ = key;
  description_.start(key, [library, key](const auto&, std::stop_token) { return descriptionOf(*library, key); });
}

}  // namespace reclab
