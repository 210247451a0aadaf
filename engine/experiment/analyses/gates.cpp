// SPDX-License-Identifier: GPL-3.0-or-later
// The gates of each step.
#include <utility>
#include <variant>
#include <vector>

#include "experiment/record/rows.h"
#include "parameters/hyper.h"

namespace reclab {
namespace {

class GateValues final : public RecordedRows {
 public:
  using RecordedRows::RecordedRows;
  Kinds kinds() const override { return {Kind::gate}; }
  bool of_states() const override { return record_.wants(Kind::gate); }
  void plan() override {
    if (record_.shape_network().gates().empty()) record_.mark_unavailable({Kind::gate}, "It has no gates.");
  }
  double bytes_a_row() const override {
    double bytes = 0.0;
    for (const auto& gate : record_.shape_network().gates())
      if (record_.wants(Kind::gate)) bytes += 8.0 * static_cast<double>(count(gate.var.shape()) / gate.var.dim(0));  // of one step
    return bytes;
  }
  void begin(const Network& network) override {
    if (!record_.wants(Kind::gate)) return;
    for (std::size_t i = 0; i < network.gates().size(); ++i) {
      const auto& gate = network.gates()[i];
      const Shape shape(gate.var.shape().begin() + 2, gate.var.shape().end());
      std::vector<Axis> axes = axes_of(shape, "unit");
      if (is_of_heads(shape)) axes[0].name = "head";
      TraceArray array = timed(key_of(Kind::gate, gate.layer, gate.name), shape, std::move(axes), "", gate.text);
      array.low = gate.low;
      array.high = gate.high;
      add(std::move(array), network, [i](const Network& n) { return n.gates()[i].var; });
    }
  }

 private:
  /// As many entries as the model has heads, and not as many as it has units.
  bool is_of_heads(const Shape& shape) const {
    const Hyper& hyper = record_.prepared.hyper;
    const auto is = [&](const char* key) {
      return hyper.has(key) && std::holds_alternative<std::int64_t>(hyper.value(key)) && hyper.integer(key) == shape[0];
    };
    return !shape.empty() && shape[0] == count(shape) && is("heads") && !is("width");
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> gates(Record& record) { return std::make_unique<GateValues>(record); }
}  // namespace analyses
}  // namespace reclab
