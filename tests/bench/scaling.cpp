// SPDX-License-Identifier: GPL-3.0-or-later
// A step of training and an evaluation over the number of threads: measured for those of this machine, and predicted for any number from
// the seconds, on one thread, of a part that one thread runs from end to end, and of the rest, which no other thread helps with:
// seconds(n) = rest + ceil(parts / n) * part, n being no more than the engine has threads.
#include <algorithm>
#include <cstdio>

#include "array/cpu/processor/threads.h"
#include "array/error.h"
#include "execution/batch_rollout.h"
#include "learner.h"
#include "processes.h"
#include "rows.h"
#include "timed.h"

namespace reclab::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t batches[] = {32, 256};
constexpr std::int64_t judged = 1000;
constexpr std::int64_t of_part = BatchRollout::sequences_of_part(4 * 64 * (64 + 2 + 2) + 65);  // the LSTM's weights

double seconds_of(const std::function<void()>& run) { return timed(run, 20, 60, 2.0).seconds; }

/// A batch with its losses, made anew as a step of training makes it.
struct Made {
  std::deque<Sequence> sequences;
  std::deque<SequenceLoss> losses;
  Made(const Examples& examples, std::int64_t size) {
    for (std::int64_t b = 0; b < size; ++b) losses.emplace_back(LossKind::task, sequences.emplace_back(examples.training(0, b)));
  }
  Batch batch() const {
    std::vector<Example> all;
    for (std::size_t i = 0; i < sequences.size(); ++i) all.push_back({&sequences[i], &losses[i]});
    return Batch(std::move(all));
  }
};

/// The seconds of what a step does around its parts: the batch is made, gradients are added up, the weights change.
double rest_of_step(std::int64_t size) {
  const OneBatch examples(size);
  Learner learner("lstm", {{"width", "64"}}, "sequential", DType::f32, examples);
  Model& model = *learner.model;
  Backend& backend = model.backend();
  auto made = std::make_unique<Made>(examples, size);
  BatchRollout rollout(model, made->batch(), Form::sequential);
  const double batch = seconds_of([&] {
    auto next = std::make_unique<Made>(examples, size);
    rollout.set_batch(next->batch());
    made = std::move(next);
  });
  if (rollout.forward({}, true) || rollout.backward({})) throw Error("The LSTM's gradient is not finite.");
  std::vector<DeviceArray> sums;
  for (const DeviceArray& gradient : rollout.device_gradients()) sums.emplace_back(backend, gradient.bytes());
  const double added = seconds_of([&] {
    for (std::size_t i = 0; i < sums.size(); ++i)
      backend.add_scaled(model.real(), model.weights()[i].entries(), 0, rollout.device_gradients()[i].data(), sums[i].data(), true);
  });
  Optimiser optimiser(model, learner.trainer->options().optimiser);
  const double change = seconds_of([&] {
    for (std::size_t i = 0; i < sums.size(); ++i)
      backend.unary(Unary::affine, model.real(), model.weights()[i].entries(), rollout.device_gradients()[i].data(), sums[i].data(),
                    1.0 / static_cast<double>(size), 0.0);
    norm_of(backend, model.real(), sums);
    optimiser.step(1e-4, sums);
  });
  return batch + static_cast<double>(rollout.parts() - 1) * added + change;
}

double part_of_step() {
  const OneBatch examples(of_part);
  Learner learner("lstm", {{"width", "64"}}, "sequential", DType::f32, examples);
  const Made made(examples, of_part);
  BatchRollout rollout(*learner.model, made.batch(), Form::sequential);
  return seconds_of([&] {
    if (rollout.forward({}, true) || rollout.backward({})) throw Error("The LSTM's gradient is not finite.");
  });
}

std::string step_name(std::int64_t size) { return "a step of training, batch of " + std::to_string(size); }
const std::string evaluation_name = "an evaluation of " + std::to_string(judged) + " sequences";

}  // namespace

Json scaling_cell(const std::vector<std::string>& /*words*/) {
  Json found = {{"part", part_of_step()}};
  for (const std::int64_t size : batches) {
    const OneBatch examples(size);
    Learner learner("lstm", {{"width", "64"}}, "sequential", DType::f32, examples);
    found[step_name(size)] = {{"measured", seconds_of([&] { learner.trainer->step(); })}, {"rest", rest_of_step(size)}};
  }
  const Judging judging(judged);
  constexpr std::int64_t one = Judging::side_by_side;
  // A batch beyond the first needs no new rollout; what it takes beyond the scores is a part's.
  constexpr std::int64_t more = 8;
  std::vector<double> tellings;
  for (int i = 0; i < 10; ++i) judging.loss(judged, &tellings.emplace_back(0.0));
  const double telling = half_sample_mode(tellings);
  const double first = seconds_of([&] { judging.loss(one); }), some = seconds_of([&] { judging.loss((1 + more) * one); });
  const double told = telling * static_cast<double>(one) / static_cast<double>(judged),
               of_batch = (some - first) / static_cast<double>(more);
  found[evaluation_name] = {
      {"measured", seconds_of([&] { judging.loss(judged); })}, {"rest", telling + first - of_batch}, {"part", of_batch - told}};
  return found;
}

Json scaling(int threads) {
  const std::string text = "training and evaluation over threads, LSTM H64, float32, T100: predicted from one thread's parts";
  std::fprintf(stderr, "\nS1  %s\n", text.c_str());
  std::map<int, Json> measured;
  for (const int n : {1, threads})
    if (!measured.contains(n)) measured[n] = itself({"--threads", std::to_string(n), "--cell", "S1"});
  std::vector<int> counts{1, 2, 4, 16, 64};
  if (std::ranges::find(counts, threads) == counts.end()) counts.push_back(threads);
  std::ranges::sort(counts);
  Json rows = Json::array();
  const auto add = [&](const std::string& name, std::int64_t parts, double part, double rest) {
    Json points = Json::array();
    std::fprintf(stderr, "  %s: %lld parts of %.3f ms, the rest %.3f ms\n", name.c_str(), static_cast<long long>(parts), 1e3 * part,
                 1e3 * rest);
    const auto predicted = [&](int n) {
      const std::int64_t side_by_side = std::min(n, cpu::most_threads);
      return rest + static_cast<double>((parts + side_by_side - 1) / side_by_side) * part;
    };
    for (const int n : counts) {
      Json point = {{"threads", n}, {"predicted_seconds", predicted(n)}, {"predicted_speed_up", predicted(1) / predicted(n)}};
      std::fprintf(stderr, "    %3d %s predicted %10.3f ms, %5.2f times one thread", n, n == 1 ? "thread, " : "threads,",
                   1e3 * predicted(n), predicted(1) / predicted(n));
      if (const auto it = measured.find(n); it != measured.end()) {
        const double seconds = it->second.at(name).at("measured").get<double>(),
                     alone = measured.at(1).at(name).at("measured").get<double>();
        point["measured_seconds"] = seconds;
        point["measured_speed_up"] = alone / seconds;
        std::fprintf(stderr, "; measured %10.3f ms, %5.2f times; predicted / measured %.2f", 1e3 * seconds, alone / seconds,
                     predicted(n) / seconds);
      }
      std::fprintf(stderr, "\n");
      points.push_back(std::move(point));
    }
    rows.push_back({{"name", name}, {"parts", parts}, {"part_seconds", part}, {"rest_seconds", rest}, {"points", std::move(points)}});
  };
  const Json& one = measured.at(1);
  for (const std::int64_t size : batches)
    add(step_name(size), size / of_part, one.at("part").get<double>(), one.at(step_name(size)).at("rest").get<double>());
  const Json& evaluation = one.at(evaluation_name);
  add(evaluation_name, (judged + Judging::side_by_side - 1) / Judging::side_by_side, evaluation.at("part").get<double>(),
      evaluation.at("rest").get<double>());
  return {{"row", "S1"}, {"text", text}, {"threads", threads}, {"studied", std::move(rows)}};
}

}  // namespace reclab::bench
