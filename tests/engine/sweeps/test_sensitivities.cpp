// SPDX-License-Identifier: GPL-3.0-or-later
// What a run says of |dy_t/du_s|, for every preset: the norms of what the adjoint says, over segments, and nothing where an output does not
// move.
#include <algorithm>
#include <cmath>
#include <limits>

#include "execution/rollout.h"
#include "experiment/command/command.h"
#include "sweep.h"

using namespace reclab;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One output of one step.
class OneOutput final : public Loss {
 public:
  OneOutput(std::int64_t step, std::int64_t channel) : step_(step), channel_(channel) {}
  std::int64_t outputs() const override { return 0; }
  LossForm form() const override { return {LossTerm::product, true}; }
  void rows(std::int64_t first, std::span<double> weights, std::span<double> targets) const override {
    if (step_ < first || step_ >= first + std::ssize(weights)) return;
    weights[static_cast<std::size_t>(step_ - first)] = 1.0;
    targets[static_cast<std::size_t>((step_ - first) * (std::ssize(targets) / std::ssize(weights)) + channel_)] = 1.0;
  }

 private:
  std::int64_t step_, channel_;
};

}  // namespace

SWEEP_PRESETS("sensitivities are those of the adjoint", preset) {
  test::Settings set = preset.stack.empty() ? test::small_settings(preset) : test::Settings{};
  test::Settings through = set;
  through.emplace_back("stop_gradient", "no");
  if (preset.stack.empty() && test::possible(preset, through)) set = through;
  const Hyper hyper = hyper_of(builtin_registry(), preset, set);
  const auto architecture = architecture_of(builtin_registry(), preset);
  constexpr std::int64_t length = 150;
  RunRequest request;
  request.preset = preset;
  request.set = set;
  request.sequence = make_task("noise", {.length = length, .seed = 3});
  request.recording = recording_of({"sensitivity", "param", "output"});
  request.recording.only = {"sensitivity", "param", "output"};
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, preset.id + ": " + trace->info.sentence);
  const TraceArray* recorded = trace->find("sensitivity");
  CHECK_SAYS(recorded && recorded->shape == (Shape{length, length}), preset.id);
  const std::int64_t outputs = trace->find("output")->shape[1], width = request.sequence->width;

  const Network shapes(*architecture, hyper, {.input = width});
  Parameters parameters = shapes.initialise(request.seed);
  const Model model(*architecture, hyper, parameters, cpu_backend(), DType::f64);
  double worst = 0.0;
  for (const std::int64_t t : {length - 1, length / 3}) {
    std::vector<OneOutput> losses;
    for (std::int64_t j = 0; j < outputs; ++j) losses.emplace_back(t, j);
    std::vector<Example> examples;
    for (const OneOutput& loss : losses) examples.push_back({&*request.sequence, &loss});
    Rollout rollout(model, Batch(examples), {.record = false});
    CHECK_SAYS(!rollout.forward({}, {}), preset.id);
    std::vector<double> squares(length);
    rollout.backward(
        [&](const Rollout::Segment& segment, int scale) {
          const auto* gradient = static_cast<const double*>(segment.network.graph().gradient(segment.network.input()));
          if (!gradient) return;
          for (std::int64_t s = 0; s < segment.steps; ++s)
            for (std::int64_t k = 0; k < outputs * width; ++k) {
              const double x = std::ldexp(gradient[s * outputs * width + k], scale);
              squares[static_cast<std::size_t>(segment.first + s)] += x * x;
            }
        },
        {});
    const double unit = std::sqrt(*std::ranges::max_element(squares));
    for (std::int64_t s = 0; s < length; ++s) {
      const double own = std::pow(10.0, (*recorded->real)[static_cast<std::size_t>(t * length + s)]),
                   other = std::sqrt(squares[static_cast<std::size_t>(s)]);
      worst = std::max(worst, unit > 0.0 ? std::abs(own - other) / unit : own);
    }
  }
  CHECK_SAYS(worst < 1e-8, preset.id + ": " + std::to_string(worst));

  // An output that stays the same to the bit when an input moves does not depend on it, and nothing comes out before it goes in where no
  // layer runs backward.
  const bool forward = std::ranges::none_of(shapes.layers(), &Network::LayerInfo::reversed);
  for (const std::int64_t s : {length / 2, length - 20}) {
    bool ahead = false;
    std::vector<bool> moves(length);
    for (const double by : {0.7, -1.3}) {
      Sequence other = *request.sequence;
      for (std::int64_t i = 0; i < width; ++i) other.input[static_cast<std::size_t>(s * width + i)] += by;
      RunRequest moved = request;
      moved.sequence = other;
      moved.recording = recording_of({"output"});
      const TracePtr its = run(builtin_registry(), moved, {}, {}).trace;
      for (std::int64_t t = 0; t < length; ++t)
        for (std::int64_t j = 0; j < outputs; ++j) {
          const auto at = static_cast<std::size_t>(t * outputs + j);
          if ((*its->find("output")->real)[at] != (*trace->find("output")->real)[at]) moves[static_cast<std::size_t>(t)] = true;
        }
    }
    for (std::int64_t t = 0; t < s; ++t) {
      const double own = (*recorded->real)[static_cast<std::size_t>(t * length + s)];
      ahead = ahead || own != -infinity;
      if (!moves[static_cast<std::size_t>(t)])
        CHECK_SAYS(own == -infinity,
                   preset.id + " says that the input of step " + std::to_string(s) + " moves the output of step " + std::to_string(t));
    }
    if (!forward) CHECK_SAYS(ahead, preset.id + " has a layer that runs backward and nothing above the diagonal");
  }
}
