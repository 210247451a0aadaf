// SPDX-License-Identifier: GPL-3.0-or-later
// The course of the Newton forms, layer by layer.
#include <algorithm>
#include <cmath>

#include "experiment/record/analysis.h"

namespace reclab {
namespace {

class Newton final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::newton}; }
  bool needs_outputs() const override { return true; }  // of the form that was asked for
  bool needs_states() const override { return false; }
  void ran(Network& network) override {
    RunInfo& info = record_.trace.info;
    bool any = false, sequential = true;
    for (int layer = 0; layer < static_cast<int>(info.layers); ++layer) {
      const auto memories = network.memories(layer);
      const auto stepped = std::count_if(memories.begin(), memories.end(), [](const Memory* m) { return m->newton(); });
      std::int64_t number = 0;
      for (const Memory* memory : memories) {
        const NewtonReport* report = memory->newton();
        if (!report) continue;
        ++number;
        any = true;
        sequential = sequential && !report->converged;
        const std::string which = stepped == 1 ? "" : "/" + std::to_string(number);
        info.notes.push_back((info.layers > 1 || stepped > 1 ? "Layer " + std::to_string(layer) + which + ": " : "") +
                             newton_sentence(*report));
        TraceArray array;
        array.key = key_of(Kind::newton, layer, stepped == 1 ? "residual" : std::to_string(number) + "/residual");
        if (!record_.wants(array.key) || report->residuals.empty()) continue;
        array.axes = {{"iteration", "", {}}};
        array.unit = "log10";
        array.text =
            "log10 of the largest |s_t - f(s_{t-1})| relative to the size of the states: of the first guess, then after each iteration "
            "over the whole sequence.";
        std::vector<double> logs;
        for (const double residual : report->residuals)
          if (std::isfinite(residual)) logs.push_back(std::log10(residual));  // the sentence tells of the others
        array.shape = {static_cast<std::int64_t>(logs.size())};
        put_real(record_.trace, std::move(array), std::move(logs));
      }
    }
    // No layer converged: only the sequential form ran.
    if (any && sequential) info.form = info.record_form = to_string(Form::sequential);
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> newton(Record& record) { return std::make_unique<Newton>(record); }
}  // namespace analyses
}  // namespace reclab
