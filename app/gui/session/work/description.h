// SPDX-License-Identifier: GPL-3.0-or-later
// The presets that there are, and the card of the one that is set with its own values.
#pragma once

#include "gui/jobs/job.h"
#include "gui/session/sentences.h"
#include "gui/session/setup.h"

namespace reclab {

struct DescriptionKey {
  std::string preset;
  Settings settings;
  std::int64_t inputWidth = 1;
  bool trained = false;  ///< of the trained weights that came with it
  bool operator==(const DescriptionKey&) const = default;
};

class DescriptionWork : public QObject {
  Q_OBJECT
 public:
  explicit DescriptionWork(Scheduler& scheduler);
  void readPresets();
  void findProperties(const LibraryPtr& library);                ///< of all presets: they are tried, so it is no part of the start
  void describe(const LibraryPtr& library, const Setup& setup);  ///< unless that was done last

 signals:
  void presetsRead(reclab::LibraryPtr library);
  void propertiesFound(reclab::PropertiesOf properties);
  void described(reclab::ModelPtr model);
  void said(QString sentence, reclab::Tone tone);

 private:
  void findEffects(const DescriptionKey& key, const ModelPtr& model);
  struct Nothing {};
  Job<Nothing, LibraryPtr> presets_;
  Job<Nothing, PropertiesOf> properties_;
  std::optional<DescriptionKey> last_;
  Job<DescriptionKey, ModelPtr> description_;
  Job<DescriptionKey, ModelPtr> effects_;  ///< the same with the settings that have no effect: weights are drawn many times for that
  ModelPtr lastDescribed_;
};

}  // namespace reclab
