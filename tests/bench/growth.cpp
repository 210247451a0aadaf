// SPDX-License-Identifier: GPL-3.0-or-later
// Time and peak memory of a rollout, float32, step by step, nothing recorded, over length, width and layers. Each point is a process of its
// own, so that its peak is its own.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>

#include "array/error.h"
#include "execution/rollout.h"
#include "inputs.h"
#include "learning/losses.h"
#include "models/registry.h"
#include "processes.h"
#include "rows.h"
#include "timed.h"

namespace reclab::bench {
namespace {

using Json = nlohmann::ordered_json;

/// The most memory that this process has had at once.
double peak_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;)
    if (word == "VmHWM:") {
      double kilobytes = 0.0;
      if (file >> kilobytes) return 1024.0 * kilobytes;
    }
  throw Error("/proc/self/status does not say the peak of this process's memory.");
}

/// The slope of log y over log x by least squares.
double exponent(std::span<const double> x, std::span<const double> y) {
  const double n = static_cast<double>(x.size());
  double mx = 0.0, my = 0.0, xy = 0.0, xx = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mx += std::log(x[i]) / n;
    my += std::log(y[i]) / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (std::log(x[i]) - mx) * (std::log(y[i]) - my);
    xx += (std::log(x[i]) - mx) * (std::log(x[i]) - mx);
  }
  return xy / xx;
}

struct Series {
  std::string over, model;
  std::vector<std::int64_t> values;
  std::int64_t width, steps, layers;
  double time_power, memory_power;  ///< of the theory, where the values are large
};

}  // namespace

Json growth_cell(const std::vector<std::string>& words) {
  const std::string& id = words[1];
  const std::int64_t steps = std::stoll(words[3]);
  const double start = peak_bytes();
  const Architecture& architecture = builtin_registry().find(id);
  Hyper hyper(architecture.hyper);
  hyper.set_text("width", words[2], id);
  hyper.set_text("layers", words[4], id);
  const Model model(architecture, hyper, Network(architecture, hyper, {.input = 1, .real = DType::f32}).initialise(1), cpu_backend(),
                    DType::f32);
  Sequence sequence;
  sequence.name = "noise";
  sequence.length = steps;
  sequence.width = 1;
  sequence.names = {"x"};
  Rng rng(1);
  sequence.input.reserve(static_cast<std::size_t>(steps));
  sequence.time.reserve(static_cast<std::size_t>(steps));
  for (std::int64_t t = 0; t < steps; ++t) {
    sequence.input.push_back(rng.normal());
    sequence.time.push_back(static_cast<double>(t));
  }
  const SequenceLoss loss(LossKind::last, sequence);
  Rollout rollout(model, Batch(sequence, loss), {.record = false, .gradients = GradientsOn::device, .forward_only = true});
  const auto run = [&] {
    if (const auto bad = rollout.forward({}, {})) throw Error(sentence(*bad) + ".");
  };
  const double warm = burst(run, 1);
  const Timing timing = warm > 2.0 ? timing_of({burst(run, 1)}) : timed(run, 5, 30, 2.0);
  return {
      {"seconds", timing.seconds}, {"spread", timing.spread}, {"runs", timing.runs}, {"peak_bytes", peak_bytes()}, {"start_bytes", start}};
}

Json growth(int threads) {
  std::vector<Series> all;
  for (const char* model : {"elman", "lstm", "s4d", "mamba", "gla"})
    all.push_back({"steps", model, {1'000, 10'000, 100'000, 1'000'000, 10'000'000}, 16, 0, 1, 1.0, 1.0});
  for (const char* model : {"elman", "lstm"}) all.push_back({"width", model, {16, 64, 256, 1024, 2048}, 0, 1000, 1, 2.0, 2.0});
  all.push_back({"width", "indrnn", {16, 64, 256, 1024, 2048}, 0, 1000, 1, 1.0, 1.0});
  all.push_back({"layers", "mamba", {1, 2, 4, 8, 16, 24}, 64, 1000, 0, 1.0, 1.0});
  const std::string text = "growth of a rollout's time and memory, float32, step by step, nothing recorded, " + std::to_string(threads) +
                           (threads == 1 ? " thread" : " threads");
  std::fprintf(stderr, "\ngrow  %s\n  Memory: the peak of a process beyond what it has at its start, the sequence included.\n",
               text.c_str());
  Json rows = Json::array();
  for (const Series& series : all) {
    std::vector<double> x, seconds, bytes;
    Json points = Json::array();
    std::fprintf(stderr, "  %s over %s%s\n", series.model.c_str(), series.over.c_str(),
                 series.over == "steps"   ? ", width 16"
                 : series.over == "width" ? ", 1000 steps"
                                          : ", width 64, 1000 steps");
    for (const std::int64_t value : series.values) {
      const auto of = [&](const char* what, std::int64_t fixed) { return std::to_string(series.over == what ? value : fixed); };
      Json point = {{series.over, value}};
      try {
        point.update(itself({"--threads", std::to_string(threads), "--cell", "grow", series.model, of("width", series.width),
                             of("steps", series.steps), of("layers", series.layers)}));
      } catch (const Error& error) {
        std::fprintf(stderr, "    %10lld   %s\n", static_cast<long long>(value), error.what());
        continue;
      }
      x.push_back(static_cast<double>(value));
      seconds.push_back(point["seconds"].get<double>());
      bytes.push_back(point["peak_bytes"].get<double>() - point["start_bytes"].get<double>());
      std::fprintf(stderr, "    %10lld %14.3f ms +- %-10.3f %10.1f MB\n", static_cast<long long>(value), 1e3 * seconds.back(),
                   1e3 * point["spread"].get<double>(), bytes.back() / 1e6);
      points.push_back(std::move(point));
    }
    Json row = {{"over", series.over},
                {"model", series.model},
                {"points", std::move(points)},
                {"time_power_of_theory", series.time_power},
                {"memory_power_of_theory", series.memory_power}};
    if (x.size() >= 3) {
      const auto last = [](const std::vector<double>& v) { return std::span(v).last(3); };
      row["time_exponent"] = exponent(last(x), last(seconds));
      row["memory_exponent"] = exponent(last(x), last(bytes));
      std::fprintf(stderr, "    exponents of the last three: time %.2f (theory %.0f), memory %.2f (theory %.0f)\n",
                   row["time_exponent"].get<double>(), series.time_power, row["memory_exponent"].get<double>(), series.memory_power);
    }
    rows.push_back(std::move(row));
  }
  return {{"row", "grow"}, {"text", text}, {"threads", threads}, {"series", std::move(rows)}};
}

}  // namespace reclab::bench
