// SPDX-License-Identifier: GPL-3.0-or-later
// The parameters, as weights that another run can be given.
#include "experiment/record/analysis.h"

namespace reclab {
namespace {

class Weights final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::param}; }
  void finish(std::int64_t) override {
    for (auto& parameter : record_.prepared.parameters.entries()) {
      TraceArray array;
      array.key = key_of(Kind::param, parameter.name);
      if (!record_.wants(array.key)) continue;
      array.shape = parameter.shape;
      array.axes = axes_of(parameter.shape, "unit");
      array.text = parameter.text;
      put_real(record_.trace, std::move(array), std::move(parameter.values));  // nobody reads them any more
    }
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> parameters(Record& record) { return std::make_unique<Weights>(record); }
}  // namespace analyses
}  // namespace reclab
