// SPDX-License-Identifier: GPL-3.0-or-later
// The gates of each step.
#include "experiment/record/rows.h"

namespace reclab {
namespace {

class GateValues final : public RecordedRows {
 public:
  using RecordedRows::RecordedRows;
  Kinds kinds() const override { return {Kind::gate}; }
  bool of_states() const override { return record_.wants(Kind::gate); }
  void plan() override {
    if (record_.probe().gates().empty()) record_.lacks({Kind::gate}, "It has no gates.");
  }
  double bytes_a_row() const override {
    double bytes = 0.0;
    for (const auto& gate : record_.probe().gates())
      if (record_.wants(Kind::gate)) bytes += 8.0 * static_cast<double>(count(gate.var.shape()) / gate.var.dim(0));  // of one step
    return bytes;
  }
  void begin(const Network& network) override {
    if (!record_.wants(Kind::gate)) return;
    for (std::size_t i = 0; i < network.gates().size(); ++i) {
      const auto& gate = network.gates()[i];
      const Shape shape(gate.var.shape().begin() + 2, gate.var.shape().end());
      TraceArray array = timed(key_of(Kind::gate, gate.layer, gate.name), shape, axes_of(shape, "unit"), "", gate.text);
      array.low = gate.low;
      array.high = gate.high;
      add(std::move(array), network, [i](const Network& n) { return n.gates()[i].var; });
    }
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> gates(Record& record) { return std::make_unique<GateValues>(record); }
}  // namespace analyses
}  // namespace reclab
