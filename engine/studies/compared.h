// SPDX-License-Identifier: GPL-3.0-or-later
// The result of the study "compare": presets beside one another.
#pragma once

#include <complex>
#include <vector>

#include "experiment/properties.h"

namespace reclab {

struct Compared {
  Card card;
  Properties properties;
  StepCost cost;
  std::vector<std::complex<double>> eigenvalues{};  ///< of the first layer that has any, of the steps of the preset's own run
  Sentence no_spectrum{};                           ///< why there are none
};
using ComparedPresets = std::vector<Compared>;

}  // namespace reclab
