// SPDX-License-Identifier: GPL-3.0-or-later
#include "trace/discretisation.h"

#include <limits>

namespace reclab {

std::vector<Discretisation> discretisations(double share) {
  return {{"forward", 0.0}, {"backward", 1.0}, {"bilinear", 0.5}, {"generalised", share}, {"exponential", 0.0}};
}

std::complex<double> discrete(const Discretisation& rule, std::complex<double> w) {
  if (rule.name == "exponential") return std::exp(w);
  return (1.0 + (1.0 - rule.share) * w) / (1.0 - rule.share * w);
}

std::complex<double> continuous(const Discretisation& rule, std::complex<double> z) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (rule.name == "exponential") return z == 0.0 ? -infinity : std::log(z);
  const std::complex<double> below = 1.0 - rule.share + rule.share * z;
  return below == 0.0 ? std::complex<double>(-infinity) : (z - 1.0) / below;
}

}  // namespace reclab
