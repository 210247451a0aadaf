// SPDX-License-Identifier: GPL-3.0-or-later
// Liquid-S4 by order: of order 1 it is S4, each order adds what is of that degree in the input, and with as many orders as steps it is the
// recurrence.
#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "array/error.h"
#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "models/network.h"
#include "models/registry.h"
#include "scratch.h"
#include "sequence/sequence.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t H = 3, N = 8, M = N / 2;
using Settings = std::vector<std::pair<std::string, std::string>>;

/// One entry of a file of weights.
struct Entry {
  Shape shape;
  std::vector<double> values;
};
using File = std::map<std::string, Entry>;

/// The same parameters as Liquid-S4's reference names them and as S4's does.
struct Weights {
  File liquid, s4;
};
Weights drawn() {
  Rng rng(7);
  const auto some = [&](std::int64_t n, double centre, double scale) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(centre + scale * rng.normal());
    return values;
  };
  Weights w;
  const auto both = [&](const std::string& theirs, const std::string& ours, Shape shape, Shape as, const std::vector<double>& values,
                        double sign = 1.0) {
    w.liquid[theirs] = {std::move(shape), values};
    std::vector<double> turned = values;
    for (double& value : turned) value *= sign;
    w.s4["0/" + ours] = {std::move(as), turned};
  };
  both("model.layers.0.layer.kernel.kernel.log_dt", "inv_dt", {H}, {H, 1}, some(H, -2.0, 0.3));
  both("model.layers.0.layer.kernel.kernel.inv_w_real", "A_real", {H, M}, {H, M}, some(H * M, -0.7, 0.2));
  both("model.layers.0.layer.kernel.kernel.w_imag", "A_imag", {H, M}, {H, M}, some(H * M, -3.0, 1.0), -1.0);
  for (const std::string name : {"B", "P"})
    both("model.layers.0.layer.kernel.kernel." + name, name, {1, H, M, 2}, {1, H, M, 2}, some(2 * H * M, 0.0, 0.7));
  both("model.layers.0.layer.kernel.kernel.C", "C", {1, H, M, 2}, {1, H, M, 2}, some(2 * H * M, 0.0, 0.7));
  both("model.layers.0.layer.D", "D", {1, H}, {1, H}, some(H, 0.0, 1.0));
  both("model.layers.0.layer.output_linear.0.weight", "output_linear.weight", {2 * H, H}, {2 * H, H}, some(2 * H * H, 0.0, 0.5));
  both("model.layers.0.layer.output_linear.0.bias", "output_linear.bias", {2 * H}, {2 * H}, some(2 * H, 0.0, 0.3));
  return w;
}

/// The output for noise of this size; `alone`: of the systems, without what follows them.
std::vector<double> output(const std::string& architecture, Settings set, const File& weights, std::int64_t steps, double size,
                           bool alone) {
  const test::Scratch folder;
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = architecture;
  request.set = {{"width", "3"}, {"state", "8"}, {"block", "none"}};
  if (alone) request.set.emplace_back("output", "none");
  request.set.insert(request.set.end(), set.begin(), set.end());
  Sequence& noise = request.sequence.own();
  noise.name = noise.source = "noise";
  noise.length = steps;
  noise.width = H;
  Rng rng(23);
  for (std::int64_t i = 0; i < steps * H; ++i) noise.input.push_back(size * rng.normal());
  for (std::int64_t h = 0; h < H; ++h) {
    noise.names.push_back("u" + std::to_string(h));
    noise.mean.push_back(0.0);
    noise.deviation.push_back(1.0);
  }
  for (std::int64_t t = 0; t < steps; ++t) noise.time.push_back(static_cast<double>(t));
  request.weights = folder / "w.npz";
  {
    AtomicFile file(request.weights);
    NpzWriter writer(file);
    for (const auto& [name, entry] : weights)
      if (!alone || name.find("output_linear") == std::string::npos) writer.add(name, entry.shape, std::span<const double>(entry.values));
    writer.finish();
    file.commit();
  }
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return *trace->find("output")->real;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQUAL(a.size(), b.size());
  double worst = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

}  // namespace

TEST_CASE("Liquid-S4 of order 1 is S4") {
  const Weights w = drawn();
  for (const bool alone : {true, false}) {
    const std::vector<double> s4 = output("s4", {}, w.s4, 200, 1.0, alone);
    CHECK(difference(output("liquid-s4", {{"order", "1"}}, w.liquid, 200, 1.0, alone), s4) <= 1e-12);
    // The second order is not in it.
    CHECK(difference(output("liquid-s4", {{"order", "2"}}, w.liquid, 200, 1.0, alone), s4) > 1e-2);
  }
}

TEST_CASE("Liquid-S4 with as many orders as steps is the recurrence") {
  const Weights w = drawn();
  const std::vector<double> whole = output("liquid-s4", {{"order", "0"}}, w.liquid, 8, 1.0, true);
  CHECK(difference(output("liquid-s4", {{"order", "8"}}, w.liquid, 8, 1.0, true), whole) <= 1e-12);
  CHECK(difference(output("liquid-s4", {{"order", "4"}}, w.liquid, 8, 1.0, true), whole) > 1e-6);
}

TEST_CASE("what Liquid-S4 of order p leaves out is of degree p + 1 in the input") {
  const Weights w = drawn();
  for (const int order : {1, 2, 3}) {
    const auto left_out = [&](double size) {
      return difference(output("liquid-s4", {{"order", std::to_string(order)}}, w.liquid, 60, size, true),
                        output("liquid-s4", {{"order", "0"}}, w.liquid, 60, size, true));
    };
    const double degree = std::log2(left_out(0.02) / left_out(0.01));
    CHECK_SAYS(std::abs(degree - (order + 1)) < 0.1, std::to_string(degree));
  }
}

TEST_CASE("Liquid-S4 with terms from the end of the sequence is not started from a state, and says so") {
  const test::Scratch folder;
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = "liquid-s4";
  request.set = {{"width", "3"}, {"state", "8"}};
  request.sequence = make_task("noise", {.length = 20, .seed = 1});
  for (const auto& [kernel, bidirectional, refused] :
       {std::tuple{"polyb", "no", true}, {"kb", "no", true}, {"causal", "yes", false}, {"causal", "no", false}}) {
    RunRequest first = request;
    first.set.insert(first.set.end(), {{"liquid_kernel", kernel}, {"bidirectional", bidirectional}, {"order", "2"}});
    export_run(run(builtin_registry(), first, {}, {}), folder / kernel / bidirectional, false);
    RunRequest second = first;
    second.state = folder / kernel / bidirectional / "state.npz";
    if (refused)
      CHECK_ERROR(run(builtin_registry(), second, {}, {}), "run the whole sequence without a state");
    else
      CHECK(run(builtin_registry(), second, {}, {}).trace->info.outcome == Outcome::finished);
  }
}
