// SPDX-License-Identifier: GPL-3.0-or-later
// Discretisation rules for one eigenvalue, from continuous to discrete time and back: the factor that a rule has for exp(λ t) after a step.
// w is λ times the step.
#pragma once

#include <complex>
#include <string>
#include <string_view>
#include <vector>

namespace reclab {

struct Discretisation {
  std::string_view name;  ///< "forward", "backward", "bilinear", "generalised", "exponential"
  double share = 0.0;     ///< of the new state in the step's slope; without meaning for exponential
  bool operator==(const Discretisation&) const = default;
};

/// All rules, `share` being that of generalised.
std::vector<Discretisation> discretisations(double share = 0.75);

/// (1 + (1 - share) w)/(1 - share w), or e^w.
std::complex<double> discrete(const Discretisation& rule, std::complex<double> w);
/// The w of which discrete() is z; of exponential the one that turns by at most half a turn. Infinite where there is none.
std::complex<double> continuous(const Discretisation& rule, std::complex<double> z);

}  // namespace reclab
