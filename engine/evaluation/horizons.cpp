// SPDX-License-Identifier: GPL-3.0-or-later
// Errors by horizon: a model is given the first steps of a window, then its own outputs, one after the other.
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "array/stop.h"
#include "evaluation/judged.h"
#include "learning/baselines.h"

namespace reclab {
namespace {

/// Keeps the outputs of the last step.
class LastOutputs final : public SequenceLoss {
 public:
  explicit LastOutputs(const Sequence& sequence) : SequenceLoss(LossKind::task, sequence), steps_(sequence.length) {}
  bool sees_outputs() const override { return true; }
  void see(std::int64_t first, std::int64_t steps, std::int64_t width, std::span<const double> output) const override {
    if (first + steps == steps_) last_.assign(output.end() - width, output.end());
  }
  const std::vector<double>& last() const { return last_; }

 private:
  std::int64_t steps_;
  mutable std::vector<double> last_;
};

/// The first steps of a window; of those after the first `given` steps the inputs are these values, which count as there.
Sequence beginning(Sequence window, std::int64_t steps, std::int64_t given, const std::vector<std::vector<double>>& values) {
  const auto width = static_cast<std::size_t>(window.width), own = static_cast<std::size_t>(window.target_width);
  window.length = steps;
  window.input.resize(static_cast<std::size_t>(steps) * width);
  for (std::int64_t t = given; t < steps; ++t) {
    const auto row = window.input.begin() + t * window.width;
    std::ranges::copy(values[static_cast<std::size_t>(t - given)], row);
    std::fill(row + static_cast<std::ptrdiff_t>(own), row + static_cast<std::ptrdiff_t>(width), 1.0);
  }
  window.target.resize(static_cast<std::size_t>(steps) * own);
  window.mask.resize(static_cast<std::size_t>(steps));
  window.time.resize(static_cast<std::size_t>(steps));
  return window;
}

/// The error of these outputs, which are h steps ahead of the `given` ones.
void add_error(ScoreMeans& means, const Sequence& window, std::int64_t given, std::int64_t h, std::span<const double> y) {
  const auto t = static_cast<std::size_t>(given + h - 2);  // its target is the value of the next step
  ScoreSum sum{.weight = window.mask[t], .from = h, .to = h};
  if (sum.weight == 0.0) return;
  for (std::size_t j = 0; j < y.size(); ++j) sum.metric += std::pow(y[j] - window.target[t * y.size() + j], 2);
  sum.metric *= sum.weight;
  sum.loss = sum.metric / 2.0;
  means.add(ScoredBy::horizon, static_cast<std::size_t>(h - 1), sum);
}

}  // namespace

void add_horizons(const std::vector<JudgedModel>& models, const std::shared_ptr<const Sequence>& file, const EvaluationPlan& plan,
                  std::int64_t length, EvaluationTable& table, std::stop_token stop) {
  WindowOptions windows = plan.windows;
  windows.length = length + plan.horizon - 1;
  std::shared_ptr<const Examples> long_ones;
  try {
    long_ones = window_examples(file, windows);
  } catch (const Error& error) {
    for (const JudgedModel& model : models) table.missing.push_back({model.about.name, length, error.sentence()});
    return;
  }
  const std::int64_t count = std::min(plan.sequences, long_ones->held_out_count());
  for (const JudgedModel& model : models) {
    std::vector<std::vector<std::vector<double>>> outputs(static_cast<std::size_t>(count));  // [window][horizon]
    ScoreMeans means;
    try {
      for (std::int64_t h = 1; h <= plan.horizon; ++h)
        run_judged(model,
                   {.count = count,
                    .length = length + h - 1,
                    .at =
                        [&](std::int64_t i) {
                          return beginning(long_ones->held_out(i), length + h - 1, length, outputs[static_cast<std::size_t>(i)]);
                        },
                    .loss_of = [](const Sequence& sequence) { return std::make_unique<LastOutputs>(sequence); },
                    .done =
                        [&](std::int64_t i, const Sequence&, const SequenceLoss& loss) {
                          const auto& last = dynamic_cast<const LastOutputs&>(loss).last();
                          outputs[static_cast<std::size_t>(i)].push_back(last);
                          add_error(means, long_ones->held_out(i), length, h, last);
                        }},
                   plan.batch, stop);
      add_rows(table, model.about.name, length, means);
    } catch (const DeviceError&) {
      throw;
    } catch (const Error& error) {
      table.missing.push_back({model.about.name, length, error.sentence()});
    }
  }
  ScoreMeans held, linear;
  windows.length = length;
  for (std::int64_t h = 1; h <= plan.horizon; ++h) {
    windows.ahead = h;
    const auto predictor = LinearPredictor::fitted(*window_examples(file, windows), long_ones->held_out(0));
    for (std::int64_t i = 0; i < count; ++i) {
      check_stop();
      const Sequence window = long_ones->held_out(i);
      const auto own = static_cast<std::size_t>(window.target_width), from = static_cast<std::size_t>((length - 1) * window.width);
      add_error(held, window, length, h, std::span(window.input).subspan(from, own));
      if (predictor) add_error(linear, window, length, h, predictor->at(window, length - 1));
    }
  }
  add_rows(table, "last value", length, held);
  add_rows(table, "linear predictor", length, linear);
}

}  // namespace reclab
