// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/analyses/analysis.h"

namespace reclab {
namespace analyses {

std::unique_ptr<Analysis> outside(Record& record);
std::unique_ptr<Analysis> states(Record& record);
std::unique_ptr<Analysis> gates(Record& record);
std::unique_ptr<Analysis> pasts(Record& record);
std::unique_ptr<Analysis> newton(Record& record);
std::unique_ptr<Analysis> parameters(Record& record);
std::unique_ptr<Analysis> gradients(Record& record);
std::unique_ptr<Analysis> products(Record& record);
std::unique_ptr<Analysis> spectra(Record& record);

}  // namespace analyses

std::vector<std::unique_ptr<Analysis>> analyses_of(Record& record) {
  using namespace analyses;
  std::vector<std::unique_ptr<Analysis>> all;
  for (const auto make : {outside, states, gates, pasts, newton, parameters, gradients, spectra, products}) all.push_back(make(record));
  return all;
}

}  // namespace reclab
