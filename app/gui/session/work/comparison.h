// SPDX-License-Identifier: GPL-3.0-or-later
// Two presets beside one another: their cards, properties, costs of a step, and spectra on the tasks that they are shown on.
#pragma once

#include <array>
#include <complex>

#include "gui/jobs/job.h"
#include "gui/session/setup.h"

namespace reclab {

struct Compared {
  Card card;
  Properties properties;
  StepCost cost;
  std::vector<std::complex<double>> eigenvalues;  ///< of the first layer that has any, of the steps of the preset's own run
  QString noSpectrum;                             ///< why there are none, a sentence
};
/// Throws Error for a preset that cannot be built.
Compared comparedOf(const Preset& preset, std::stop_token stop);

struct ComparisonKey {
  std::string one, other;
  bool operator==(const ComparisonKey&) const = default;
};
using ComparedPair = std::array<Compared, 2>;

class ComparisonWork : public QObject {
  Q_OBJECT
 public:
  explicit ComparisonWork(Scheduler& scheduler);
  void compare(const LibraryPtr& library, const ComparisonKey& key);

 signals:
  void compared(const reclab::ComparisonKey& key, const reclab::ComparedPair& both);
  void failed(QString sentence);

 private:
  Job<ComparisonKey, ComparedPair> job_;
};

}  // namespace reclab
