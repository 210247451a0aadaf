// SPDX-License-Identifier: GPL-3.0-or-later
// The states after each step.
#include "experiment/record/rows.h"

namespace reclab {
namespace {

class States final : public RecordedRows {
 public:
  using RecordedRows::RecordedRows;
  Kinds kinds() const override { return {Kind::state}; }
  bool of_states() const override { return record_.wants(Kind::state); }
  double bytes_a_row() const override {
    double bytes = 0.0;
    for (const auto& state : record_.shape_network().states())
      if (state.trajectory && record_.wants(Rollout::state_key(state)))
        bytes += static_cast<double>(count(state.row_shape())) * (is_complex(state.initial.dtype()) ? 16.0 : 8.0);
    return bytes;
  }
  void begin(const Network& network) override {
    if (!record_.wants(Kind::state)) return;
    for (std::size_t i = 0; i < network.states().size(); ++i)
      if (const auto& state = network.states()[i]; state.trajectory)
        add(
            timed(Rollout::state_key(state), state.row_shape(), axes_of(state.row_shape(), "unit"), "", state.text), network,
            [i](const Network& n) { return n.states()[i].trajectory; }, state.reversed);
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> states(Record& record) { return std::make_unique<States>(record); }
}  // namespace analyses
}  // namespace reclab
