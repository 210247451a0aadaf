// SPDX-License-Identifier: GPL-3.0-or-later
// The eigenvalues in continuous time, before an exponential that has forgotten whole turns.
#include "experiment/record/analysis.h"

namespace reclab {
namespace {

class Flows final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::flow}; }
  bool needs_outputs() const override { return true; }
  bool needs_states() const override { return false; }

  /// The same at every step, so those of the first segment.
  void forward(const Rollout::Segment& segment) override {
    if (segment.first != 0) return;
    const Graph& graph = segment.network.graph();
    for (std::size_t layer = 0; layer < record_.layers(); ++layer) {
      const Flow* flow = segment.network.flow(static_cast<int>(layer));
      if (!flow || !flow->exponents || !record_.wants(key_of(Kind::flow, layer))) continue;
      const std::int64_t n = count(flow->exponents.shape());
      TraceArray array;
      array.key = key_of(Kind::flow, layer);
      array.shape = {1, n};
      array.axes = {{"time", "", {}}, {"eigenvalue", "", {}}};
      array.text = "The eigenvalues in continuous time, times the step, the same at every step.";
      array.complex = std::make_shared<const std::vector<std::complex<double>>>(
          to_complex(graph.backend(), flow->exponents.dtype(), graph.value(flow->exponents), n, 0));
      record_.trace.put(std::move(array));
    }
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> flows(Record& record) { return std::make_unique<Flows>(record); }
}  // namespace analyses
}  // namespace reclab
