// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluation of an LSTM over a thousand sequences: outputs and losses, nothing recorded.
#include "evaluation/evaluation.h"

#include <cmath>

#include "array/error.h"
#include "inputs.h"
#include "learner.h"
#include "rows.h"
#include "timed.h"

namespace reclab::bench {
namespace {

constexpr std::int64_t count = 1000;

/// The mean loss of all, by plain loops in float64.
double exact_loss(const Judging& judging) {
  const auto of = [&](const std::string& name) { return rounded(judging.judged.prepared->parameters, name); };
  const LstmWeights lstm{of("0/weight_ih"), of("0/weight_hh"), of("0/bias_ih"), of("0/bias_hh")};
  const std::vector<double> head = of("head/weight"), bias = of("head/bias");
  const auto H = static_cast<std::size_t>(Judging::width);
  double sum = 0.0;
  for (const Sequence& sequence : judging.sequences) {
    const std::vector<float> x(sequence.input.begin(), sequence.input.end());
    const std::vector<double> h = lstm_in_float64(lstm, x, sequence.length, 1, sequence.width, Judging::width);
    double loss = 0.0, steps = 0.0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(sequence.length); ++t) {
      double y = bias[0];
      for (std::size_t i = 0; i < H; ++i) y += head[i] * h[t * H + i];
      loss += sequence.mask[t] * 0.5 * (y - sequence.target[t]) * (y - sequence.target[t]);
      steps += sequence.mask[t];
    }
    sum += loss / steps;
  }
  return sum / static_cast<double>(judging.sequences.size());
}

}  // namespace

Judging::Judging(std::int64_t number) {
  request.preset.id = request.preset.architecture = "lstm";
  request.set = {{"width", std::to_string(width)}};
  request.dtype = "f32";
  request.loss = LossKind::task;
  const TaskOptions options{.length = steps};
  request.sequence = make_task("adding", options);
  for (std::int64_t i = 0; i < number; ++i) sequences.push_back(evaluation_sequence("adding", options, i));
  judged.about.name = "lstm";
  judged.prepared = std::make_unique<Prepared>(builtin_registry(), request);
  const Prepared& prepared = *judged.prepared;
  judged.model = std::make_unique<Model>(prepared.architecture, prepared.hyper, prepared.parameters, prepared.backend, prepared.real);
}

double Judging::loss(std::int64_t number, double* telling) const {
  ScoreMeans means;
  const JudgedRun run{.count = number,
                      .length = steps,
                      .at = [&](std::int64_t i) { return sequences[static_cast<std::size_t>(i)]; },
                      .loss_of = [](const Sequence& sequence) { return std::make_unique<ScoringLoss>(sequence); },
                      .done =
                          [&](std::int64_t, const Sequence&, const SequenceLoss& loss) {
                            const double begin = telling ? now() : 0.0;
                            means.add(dynamic_cast<const ScoringLoss&>(loss).score());
                            if (telling) *telling += now() - begin;
                          }};
  run_judged(judged, run, side_by_side, {});
  return means.of(ScoredBy::length).at(0).loss.estimate(0.95).mean;
}

Row evaluation(const std::string& name) {
  struct Data {
    Judging judging{count};
    double loss = 0.0, exact = 0.0;
    PresetLibrary presets{builtin_registry(), {}};
  };
  auto data = std::make_shared<Data>();
  Data& d = *data;
  d.exact = exact_loss(d.judging);
  Row row;
  row.name = name;
  row.text = "evaluation of " + std::to_string(count) + " sequences of the adding problem, LSTM H" + std::to_string(Judging::width) +
             ", float32, T" + std::to_string(Judging::steps);
  Part own{"evaluation", [&d] { d.loss = d.judging.loss(count); }};
  const double width = static_cast<double>(Judging::width), inputs = static_cast<double>(d.judging.sequences[0].width);
  own.flops = 2.0 * static_cast<double>(count * Judging::steps) * 4.0 * width * (width + inputs);
  own.floor = "the products with both matrices";
  row.parts.push_back(own);
  row.parts.push_back({"evaluation, sequences made, baselines judged, intervals", [&d] {
                         const EvaluationTable table = evaluate(builtin_registry(), d.presets, d.judging.request,
                                                                {.sequences = count, .batch = Judging::side_by_side}, {}, {});
                         if (!table.missing.empty()) throw Error(table.missing.front().why);
                       }});
  row.error = [&d] { return std::abs(d.loss - d.exact) / std::abs(d.exact); };
  row.save = [&d](NpzWriter& file) {
    const auto steps = Judging::steps, wide = d.judging.sequences[0].width;
    std::vector<float> x, target, mask;
    for (const Sequence& sequence : d.judging.sequences) {
      x.insert(x.end(), sequence.input.begin(), sequence.input.end());
      target.insert(target.end(), sequence.target.begin(), sequence.target.end());
      mask.insert(mask.end(), sequence.mask.begin(), sequence.mask.end());
    }
    reclab::bench::save(file, "x", {count, steps, wide}, x);
    reclab::bench::save(file, "target", {count, steps, 1}, target);
    reclab::bench::save(file, "mask", {count, steps}, mask);
    file.add("loss", {1}, std::span<const double>(&d.exact, 1));
    const std::int64_t H = Judging::width;
    for (const auto& [mine, theirs, shape] : {std::tuple("0/weight_ih", "weight_ih", Shape{4 * H, wide}),
                                              {"0/weight_hh", "weight_hh", Shape{4 * H, H}},
                                              {"0/bias_ih", "bias_ih", Shape{4 * H}},
                                              {"0/bias_hh", "bias_hh", Shape{4 * H}},
                                              {"head/weight", "head", Shape{1, H}},
                                              {"head/bias", "head_bias", Shape{1}}})
      file.add(theirs, shape, std::span<const double>(d.judging.judged.prepared->parameters.find(mine)->values));
  };
  row.kept = data;
  return row;
}

}  // namespace reclab::bench
