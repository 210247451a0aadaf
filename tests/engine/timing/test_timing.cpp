// SPDX-License-Identifier: GPL-3.0-or-later
// The timing lab: its keys, its bands and exponents on times that are known, the roof and its file, the growth of states. No wall time is
// asserted.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "analysis/scaling.h"
#include "array/rng.h"
#include "experiment/compare.h"
#include "files/files.h"
#include "models/registry.h"
#include "test.h"
#include "timing/pace.h"
#include "timing/primitives.h"
#include "timing/roof.h"
#include "timing/timing.h"
#include "trace/crossing.h"

using namespace reclab;

namespace {

/// A cache of its own for as long as it lives.
struct Cache {
  std::string before;
  explicit Cache(const std::filesystem::path& folder) {
    if (const char* there = std::getenv("XDG_CACHE_HOME")) before = there;
    setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  ~Cache() { before.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before.c_str(), 1); }
};
/// No test reads or writes what a user keeps.
const Cache of_tests(std::filesystem::temp_directory_path() / ("reclab-test-timing-cache-" + std::to_string(getpid())));

RunRequest request_for(const std::string& architecture, std::int64_t length = 64) {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  request.sequence = make_task("noise", {.length = length, .seed = 1});
  return request;
}

std::vector<double> values(const Trace& trace, const std::string& key) {
  const TraceArray* array = trace.find("timing/" + key);
  CHECK_SAYS(array && array->real, "timing/" + key);
  return *array->real;
}

/// Repeats of a time: lognormal around it, and a drift of each visit.
Visits times(Rng& rng, double seconds, double repeats_vary, double visits_vary) {
  Visits all;
  for (int v = 0; v < visits; ++v) {
    const double drift = visits_vary * rng.normal();
    all.emplace_back();
    for (int i = 0; i < 9; ++i) all.back().push_back(seconds * std::exp(drift + repeats_vary * rng.normal()));
  }
  return all;
}

}  // namespace

TEST_CASE("quantiles lie between the values next to them") {
  CHECK_CLOSE(median({3.0, 1.0, 2.0}), 2.0, 0.0);
  CHECK_CLOSE(median({4.0, 1.0, 2.0, 3.0}), 2.5, 0.0);
  CHECK_CLOSE(quantile({1.0, 2.0, 3.0, 4.0, 5.0}, 0.05), 1.2, 1e-12);
  CHECK(std::isnan(median({})));
}

TEST_CASE("the band of a median holds the median of another run nine times out of ten") {
  Rng rng(7);
  for (const double drift : {0.0, 0.05}) {
    int held = 0;
    constexpr int pairs = 400;
    for (int i = 0; i < pairs; ++i) {
      const Banded one = median_band(times(rng, 1e-3, 0.05, drift), drift), other = median_band(times(rng, 1e-3, 0.05, drift), drift);
      CHECK(one.low <= one.value && one.value <= one.high);
      held += one.low <= other.value && other.value <= one.high;
    }
    CHECK_SAYS(held >= 0.88 * pairs, std::to_string(held) + " of " + std::to_string(pairs));
  }
  // Without spread there is a band of noise alone.
  const Banded still = median_band({{2.0, 2.0}, {2.0}}, 0.1);
  CHECK_CLOSE(still.high / still.value, std::exp(std::sqrt(0.02)), 1e-12);
  CHECK_CLOSE(still.low * still.high, 4.0, 1e-12);
}

TEST_CASE("the band holds another run too where the machine differs from run to run") {
  // Runs of a machine whose pace differs by 8 % from one to another, which no repeat of one run shows.
  constexpr double differs = 0.08;
  Rng rng(11);
  const auto median_of = [&] { return 1e-4 * std::exp(differs * rng.normal()); };
  int held = 0, held_without = 0;
  double widths = 0.0;
  constexpr int pairs = 1000;
  for (int i = 0; i < pairs; ++i) {
    std::vector<double> paces;
    for (int run = 0; run < 20; ++run) paces.push_back(median_of());
    const double offset = paces.back() / 1e-4, another = median_of() / 1e-4;
    const Visits here = times(rng, 1e-3 * offset, 0.03, 0.02), there = times(rng, 1e-3 * another, 0.03, 0.02);
    const double noise = 0.02, seen = median_band(there, noise).value;
    const Banded band = median_band(here, std::hypot(noise, between_runs(paces))), narrow = median_band(here, noise);
    held += band.low <= seen && seen <= band.high;
    held_without += narrow.low <= seen && seen <= narrow.high;
    widths += std::log(band.high / band.low) / 2.0 / pairs;
  }
  CHECK_SAYS(held >= 0.88 * pairs, std::to_string(held) + " of " + std::to_string(pairs));
  CHECK_SAYS(held_without <= 0.6 * pairs, std::to_string(held_without) + " of " + std::to_string(pairs));  // what it is for
  // And it is no wider than it must be: 1.645 sqrt(2) 8 % is 18.6 %.
  CHECK_SAYS(widths <= 0.23, test::show(widths));
}

TEST_CASE("the spread of runs is what is usual where there are none, and then what they vary by") {
  // Ends of Student's distribution at 4, 5 and 23 degrees, from tables.
  const double t4 = 2.1318, t5 = 2.0150, t23 = 1.7139;
  CHECK_CLOSE(between_runs({}), t4 * usual_spread, 2e-3);
  CHECK_CLOSE(between_runs(std::vector<double>{3.0}), t4 * usual_spread, 2e-3);
  // Two that differ by a factor e^0.2: off the middle, (e^0.2 + 1)/2, by 0.1 about; the variance of five counts is their sum's fifth.
  const double middle = std::log((std::exp(0.2) + 1.0) / 2.0);
  CHECK_CLOSE(between_runs(std::vector<double>{std::exp(0.2), 1.0}),
              t5 * std::sqrt((4 * 0.0025 + middle * middle + (0.2 - middle) * (0.2 - middle)) / 5.0), 2e-3);
  // The unit of time does not matter, nor the order.
  CHECK_CLOSE(between_runs(std::vector<double>{1.0, 1.1, 1.3}), between_runs(std::vector<double>{2.6e-4, 2e-4, 2.2e-4}), 1e-12);
  const std::vector<double> still(20, 1.0);
  CHECK_CLOSE(between_runs(still), t23 * usual_spread * std::sqrt(4.0 / 23.0), 1e-4);
  // One beside a compilation, at a third of the pace, counts as one that is 15 % off.
  std::vector<double> one = still;
  one.back() = 3.0;
  CHECK_CLOSE(between_runs(one), t23 * std::sqrt((4 * 0.0025 + 0.0225) / 23.0), 1e-4);
  // Two states, as of a core that a neighbour shares at times: half of the distance is the deviation.
  std::vector<double> two;
  for (int i = 0; i < 10; ++i) two.insert(two.end(), {1.0, std::exp(0.2)});
  CHECK_CLOSE(between_runs(two), t23 * 0.1, 0.02);
}

TEST_CASE("an exponent is found in noisy times, and its band holds it") {
  const std::vector<double> lengths{2048, 4096, 8192, 16384};
  Rng rng(3);
  for (const double p : {0.0, 1.0, 2.0}) {
    int held = 0;
    constexpr int tries = 100;
    for (int i = 0; i < tries; ++i) {
      std::vector<Banded> costs;
      for (const double T : lengths) costs.push_back(median_band(times(rng, 1e-9 * std::pow(T, p), 0.05, 0.03), 0.03));
      const Banded found = exponent(lengths, costs);
      CHECK_CLOSE(found.value, p, 0.15);
      CHECK(found.low <= found.value && found.value <= found.high);
      held += found.low <= p && p <= found.high;
    }
    CHECK_SAYS(held >= 85, std::to_string(held) + " of 100");
  }
  const std::vector<Banded> exact{{1.0, 1.0, 1.0}, {4.0, 4.0, 4.0}, {16.0, 16.0, 16.0}};
  const std::vector<double> three{1.0, 2.0, 4.0};
  CHECK_CLOSE(exponent(three, exact).value, 2.0, 1e-12);
  CHECK_CLOSE(exponent(three, exact).high, 2.0, 1e-12);
  CHECK(std::isnan(exponent(std::vector<double>{5.0}, std::vector<Banded>{{1.0, 1.0, 1.0}}).value));
  CHECK_EQUAL(longer_half(6), std::size_t{2});
  CHECK_EQUAL(longer_half(3), std::size_t{0});
}

TEST_CASE("how far times follow the machine's pace is told from visits") {
  for (const double power : {0.0, 0.5, 1.0}) {
    PaceFit fit;
    for (const double seconds : {1e-3, 5e-2, 2.0}) {
      Visits times;
      const std::vector<double> pace{1.0, 1.4, 0.9, 1.1};
      for (const double p : pace) times.push_back({seconds * std::pow(p, power), seconds * std::pow(p, power)});
      fit.add(times, pace);
    }
    CHECK_CLOSE(fit.power(), power, 1e-12);
  }
  PaceFit against, still;
  against.add({{1.0}, {2.0}}, std::vector<double>{2.0, 1.0});
  CHECK_CLOSE(against.power(), 0.0, 0.0);
  still.add({{1.0}, {2.0}}, std::vector<double>{1.0, 1.0});
  CHECK_CLOSE(still.power(), 0.0, 0.0);
}

TEST_CASE("a timing has all keys of the contract, a row a length") {
  for (const std::string id : {"elman", "linear-attention"}) {
    const TracePtr trace = time_forms(builtin_registry(), request_for(id), {.lengths = {16, 32, 64}}, {}, {});
    CHECK(trace->info.outcome == Outcome::finished);
    CHECK(trace->info.forms.size() > 1);
    CHECK_EQUAL(trace->info.devices.front(), std::string("cpu"));
    CHECK_EQUAL(trace->info.command, "reclab bench " + id + " --task noise --length 64 --seed 1 --lengths 16,32,64");
    for (const std::string& form : trace->info.forms) {
      CHECK(values(*trace, form + "/length") == (std::vector<double>{16, 32, 64}));
      for (const std::string of : {"", "forward", "backward"}) {
        const std::string at = form + "/" + of + (of.empty() ? "" : "_");
        const auto median = values(*trace, form + "/" + (of.empty() ? "seconds" : of)), low = values(*trace, at + "low90"),
                   high = values(*trace, at + "high90");
        CHECK_EQUAL(median.size(), std::size_t{3});
        for (std::size_t i = 0; i < median.size(); ++i)
          CHECK_SAYS(0.0 < low[i] && low[i] <= median[i] && median[i] <= high[i], at + std::to_string(i));
        const double p = values(*trace, at + "exponent").at(0);
        CHECK(values(*trace, at + "exponent_low").at(0) <= p && p <= values(*trace, at + "exponent_high").at(0));
      }
      const auto seconds = values(*trace, form + "/seconds"), low = values(*trace, form + "/low"), high = values(*trace, form + "/high");
      for (std::size_t i = 0; i < seconds.size(); ++i) CHECK(low[i] <= seconds[i] && seconds[i] <= high[i]);
      const auto memory = values(*trace, form + "/memory"), flops = values(*trace, form + "/flops"),
                 bytes = values(*trace, form + "/bytes");
      CHECK(memory[0] < memory[1] && memory[1] < memory[2] && flops[0] > 0.0 && flops[0] < flops[2] && bytes[0] < bytes[2]);
      CHECK_CLOSE(values(*trace, form + "/memory_exponent").at(0), std::log(memory[2] / memory[0]) / std::log(4.0), 0.2);
      for (const double error : values(*trace, form + "/output_error")) CHECK(error <= 1e-9);
      for (const double error : values(*trace, form + "/gradient_error")) CHECK(error <= 1e-9);
      const bool newton = form.find("newton") != std::string::npos;
      CHECK_EQUAL(trace->find("timing/" + form + "/iterations") != nullptr, newton);
      if (newton) {
        CHECK(values(*trace, form + "/converged") == (std::vector<double>{1, 1, 1}));
        for (const double n : values(*trace, form + "/iterations")) CHECK(n >= 1.0);
      }
    }
    for (const char* key : {"roof/triad", "roof/cached", "roof/flops"}) CHECK(values(*trace, key).at(0) > 0.0);
    CHECK(values(*trace, "noise").at(0) >= 0.0 && values(*trace, "between").at(0) > 0.0);
    CHECK(std::isfinite(values(*trace, "lyapunov").at(0)));
  }
}

TEST_CASE("float32, a batch, some forms, the forward pass alone") {
  RunRequest request = request_for("linear-attention");
  request.dtype = "f32";
  const TracePtr trace =
      time_forms(builtin_registry(), request, {.forms = {"chunkwise"}, .lengths = {32, 16, 32}, .batch = 3, .backward = false}, {}, {});
  CHECK_EQUAL(trace->info.batch, 3);
  CHECK_EQUAL(trace->info.dtype, std::string("float32"));
  CHECK(values(*trace, "chunkwise/length") == (std::vector<double>{16, 32}));
  CHECK(trace->matching("timing/sequential/").empty());
  for (const char* key : {"backward", "backward_low90", "backward_exponent", "gradient_error"})
    CHECK(!trace->find(std::string("timing/chunkwise/") + key));
  CHECK(values(*trace, "chunkwise/seconds") == values(*trace, "chunkwise/forward"));
  for (const double error : values(*trace, "chunkwise/output_error")) CHECK(error > 0.0 && error <= 1e-3);
  const TracePtr single = time_forms(builtin_registry(), request, {.forms = {"chunkwise"}, .lengths = {32}, .backward = false}, {}, {});
  CHECK(values(*trace, "chunkwise/flops").at(1) > 2.5 * values(*single, "chunkwise/flops").at(0));
  CHECK(values(*trace, "chunkwise/memory").at(1) > 1.5 * values(*single, "chunkwise/memory").at(0));

  CHECK_ERROR(time_forms(builtin_registry(), request, {.forms = {"scam"}, .lengths = {8}}, {}, {}), "scam");
  CHECK_ERROR(time_forms(builtin_registry(), request, {.forms = {"newton"}, .lengths = {8}}, {}, {}), "no exact newton form");
  CHECK_ERROR(time_forms(builtin_registry(), request, {.lengths = {0}}, {}, {}), "at least 1");
  CHECK_ERROR(time_forms(builtin_registry(), request, {.lengths = {8}, .batch = 0}, {}, {}), "at least 1");
}

TEST_CASE("a bare pass computes what a full one does") {
  // The gradients of a bare pass are those of the mean loss times the length; both are run twice, since arrays are kept.
  const Sequence sequence = make_task("noise", {.length = 90, .seed = 2});
  for (const std::string id : {"lstm", "linear-attention", "mamba"}) {
    const Architecture& architecture = builtin_registry().find(id);
    const Hyper hyper(architecture.hyper);
    NetworkOptions one;
    one.input = sequence.width;
    const Parameters parameters = Network(architecture, hyper, one).initialise(1);
    const SequenceLoss loss(LossKind::mean, sequence);
    const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
    for (const std::int64_t segment : {90, 25}) {
      std::vector<double> input[2];
      for (const bool bare : {false, true}) {
        Rollout rollout(model, Batch(sequence, loss), {.segment = segment, .record = false, .timing_only = bare});
        for (int again = 0; again < 2; ++again) {
          CHECK(!rollout.forward({}, {}));
          input[bare].assign(sequence.input.size(), 0.0);
          rollout.backward(
              [&](const Rollout::Segment& s, int scale) {
                const auto values = to_double(cpu_backend(), DType::f64, s.network.graph().gradient(s.network.input()), s.steps);
                for (std::size_t i = 0; i < values.size(); ++i)
                  input[bare][static_cast<std::size_t>(s.first) + i] = std::ldexp(values[i], scale);
              },
              {});
        }
        CHECK(bare == rollout.parameter_gradients().empty());
      }
      for (std::size_t i = 0; i < input[0].size(); ++i) CHECK_CLOSE(input[1][i], 90.0 * input[0][i], 1e-9 * std::abs(input[1][i]) + 1e-12);
    }
  }
}

TEST_CASE("a timing that is cancelled keeps what was measured") {
  std::stop_source stop;
  int published = 0;
  const TracePtr trace = time_forms(builtin_registry(), request_for("elman"), {.forms = {"sequential"}, .lengths = {16, 32, 64, 128}}, {},
                                    stop.get_token(), [&](const TracePtr& stage) {
                                      CHECK_EQUAL(values(*stage, "sequential/seconds").size(), static_cast<std::size_t>(published) + 1);
                                      if (++published == 2) stop.request_stop();
                                    });
  CHECK(trace->info.outcome == Outcome::cancelled);
  CHECK(values(*trace, "sequential/length") == (std::vector<double>{16, 32}));
  CHECK_EQUAL(values(*trace, "sequential/seconds").size(), std::size_t{2});
  CHECK_EQUAL(published, 2);
}

TEST_CASE("a length at which a form diverges is left out, with a note; the others are timed") {
  RunRequest wild = request_for("elman");
  wild.set = {{"activation", "identity"}, {"spectral_radius", "2"}, {"width", "8"}};
  const TracePtr diverged = time_forms(builtin_registry(), wild, {.forms = {"sequential"}, .lengths = {16, 4000}}, {}, {});
  CHECK(values(*diverged, "sequential/length") == std::vector<double>{16});
  CHECK(!diverged->info.notes.empty() &&
        diverged->info.notes.front().terminal_text().find("4,000 was left out: its output is not finite") != std::string::npos);
}

TEST_CASE("the largest Lyapunov exponent leaves out the first quarter of the steps, where the state still comes from its start") {
  RunRequest request;
  request.preset = primitive_preset("diagonal");
  request.set = {{"width", "3"}};
  request.sequence = primitive_input("diagonal", hyper_of(primitives(), request.preset, request.set), 1024, 1);
  for (std::size_t t = 0; t < 1024; ++t)
    for (std::size_t j = 0; j < 3; ++j) request.sequence.own().input[t * 6 + j] = t < 250 ? 0.1 : 0.9;  // the factors a_t
  CHECK_CLOSE(largest_lyapunov(primitives(), request, {}).value(), std::log(0.9), 1e-9);
}

TEST_CASE("the largest Lyapunov exponent is the logarithm that closed forms have") {
  for (const double radius : {0.5, 0.95, 1.1}) {
    RunRequest request = request_for("elman", 300);
    request.set = {{"activation", "identity"}, {"spectral_radius", std::to_string(radius)}, {"width", "8"}};
    CHECK_CLOSE(largest_lyapunov(builtin_registry(), request, {}).value(), std::log(radius), 1e-9);
  }
  // A diagonal one: the largest |a|.
  RunRequest request = request_for("lru", 300);
  request.set = {{"layers", "1"}};
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  double largest = 0.0;
  for (const auto& a : *trace->find("spectrum/0")->complex) largest = std::max(largest, std::abs(a));
  CHECK_CLOSE(largest_lyapunov(builtin_registry(), request, {}).value(), std::log(largest), 1e-9);
  // The identity forgets nothing and makes nothing grow.
  const std::optional<double> sum = largest_lyapunov(builtin_registry(), request_for("linear-attention", 300), {});
  CHECK_CLOSE(sum.value(), 0.0, 1e-12);
  CHECK(!largest_lyapunov(builtin_registry(), request_for("transformer"), {}));
  // The largest of two layers.
  request = request_for("elman", 300);
  request.set = {{"activation", "identity"}, {"spectral_radius", "0.9"}, {"width", "4"}, {"layers", "2"}, {"direction", "both"}};
  CHECK_CLOSE(largest_lyapunov(builtin_registry(), request, {}).value(), std::log(0.9), 1e-9);
}

TEST_CASE("the roof is measured once and kept; a broken file is measured anew") {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "reclab-test-timing" / "deep" / "roof.json";
  std::filesystem::remove_all(file.parent_path());
  std::string problem;
  const Roof roof = roof_of_machine(file, {}, &problem);
  CHECK_EQUAL(problem, std::string());
  CHECK(roof.triad_bytes > 0.0 && roof.cached_bytes > 0.0 && roof.flops > 0.0 && roof.flops64 > 0.0);
  const std::string text = read_file(file);
  const Roof again = roof_of_machine(file, {});
  CHECK(again.triad_bytes == roof.triad_bytes && again.cached_bytes == roof.cached_bytes && again.flops == roof.flops &&
        again.flops64 == roof.flops64);
  for (const std::string& broken :
       {std::string("{\"machine\": 3}"), text.substr(0, text.size() / 2), std::string(text).replace(text.find("threads") + 10, 1, "97")}) {
    write_file(file, broken);
    CHECK(roof_of_machine(file, {}).flops > 0.0);
    CHECK(read_file(file) != broken);
  }
  // A folder that is a file: the roof is there, and a sentence.
  write_file(file.parent_path() / "plain", "x");
  CHECK(roof_of_machine(file.parent_path() / "plain" / "roof.json", {}, &problem).flops > 0.0);
  CHECK(!problem.empty());
  std::stop_source stop;
  stop.request_stop();
  bool cancelled = false;
  try {
    measure_roof(stop.get_token());
  } catch (const Cancelled&) {
    cancelled = true;
  }
  CHECK(cancelled);
  std::filesystem::remove_all(file.parent_path());
}

TEST_CASE("a roof that was taken beside other work is raised; the best stays") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "reclab-test-timing-raised", file = folder / "roof.json";
  std::filesystem::remove_all(folder);
  roof_of_machine(file, {}, nullptr, 1e-4);
  auto json = nlohmann::ordered_json::parse(read_file(file));
  CHECK_CLOSE(json.at("yardstick_seconds").get<double>(), 1e-4, 1e-12);
  const auto plant = [&](double flops) {
    json["flops_per_second"] = flops;
    write_file(file, json.dump());
  };
  const auto kept = [&] { return nlohmann::ordered_json::parse(read_file(file)); };
  // As fast as then, or slower, or not known: it is believed.
  plant(1.0);
  for (const double pace : {0.0, 0.97e-4, 2e-4}) CHECK_CLOSE(roof_of_machine(file, {}, nullptr, pace).flops, 1.0, 0.0);
  // Clearly faster: it is measured again, and with it the pace is noted.
  CHECK(roof_of_machine(file, {}, nullptr, 0.9e-4).flops > 1e6);
  CHECK_CLOSE(kept().at("yardstick_seconds").get<double>(), 0.9e-4, 1e-12);
  CHECK(kept().at("flops_per_second").get<double>() > 1e6);
  // What was more stays, whatever is measured later.
  plant(1e30);
  CHECK_CLOSE(roof_of_machine(file, {}, nullptr, 1e-6).flops, 1e30, 1e15);
  // After a day it is looked at again; then it is young.
  plant(1.0);
  json = kept();
  CHECK_CLOSE(roof_of_machine(file, {}).flops, 1.0, 0.0);
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  CHECK(roof_of_machine(file, {}).flops > 1e6);
  plant(1.0);
  CHECK_CLOSE(roof_of_machine(file, {}).flops, 1.0, 0.0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("the last paces of a machine are kept, by device; a broken file is begun anew") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "reclab-test-pace", file = folder / "deep" / "pace.json";
  std::filesystem::remove_all(folder);
  CHECK(paces_of_machine(file, "CPU").empty() && paces_of_machine({}, "CPU").empty());
  std::string problem;
  for (int i = 1; i <= 25; ++i) keep_pace(file, "CPU", 1e-4 * i, &problem);
  keep_pace(file, "NVIDIA H100", 3e-5, &problem);
  CHECK_EQUAL(problem, std::string());
  const auto paces = paces_of_machine(file, "CPU");
  CHECK_EQUAL(paces.size(), paces_kept);
  CHECK_CLOSE(paces.front(), 6e-4, 1e-12);
  CHECK_CLOSE(paces.back(), 25e-4, 1e-12);
  CHECK(paces_of_machine(file, "NVIDIA H100") == std::vector<double>{3e-5});
  CHECK(paces_of_machine(file, "another").empty());
  const std::string text = read_file(file);
  std::string negative = text;
  negative.replace(negative.find("3e-05"), 5, "-3e-5");
  for (const std::string& broken : {std::string("{\"machine\": 3}"), text.substr(0, text.size() / 2),
                                    std::string(text).replace(text.find("threads") + 10, 1, "97"), negative}) {
    write_file(file, broken);
    CHECK(paces_of_machine(file, "CPU").empty());
    keep_pace(file, "CPU", 2e-4, &problem);
    CHECK(paces_of_machine(file, "CPU") == std::vector<double>{2e-4});
  }
  CHECK_EQUAL(problem, std::string());
  write_file(folder / "plain", "x");
  keep_pace(folder / "plain" / "pace.json", "CPU", 1e-4, &problem);
  CHECK(!problem.empty());
  std::filesystem::remove_all(folder);
}

TEST_CASE("a timing keeps its pace, and the paces before it widen its bands") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "reclab-test-timing-pace";
  std::filesystem::remove_all(folder);
  const Cache cache(folder);
  CHECK(pace_file() == folder / "recurrence-lab" / "pace.json" && roof_file() == folder / "recurrence-lab" / "roof.json");
  const auto timed = [] {
    return time_forms(builtin_registry(), request_for("elman"), {.forms = {"sequential"}, .lengths = {16}}, {}, {});
  };
  const TracePtr first = timed();
  CHECK_CLOSE(values(*first, "between").at(0), between_runs({}), 1e-12);  // of itself alone
  const std::string device = cpu_backend().name();
  const auto paces = paces_of_machine(pace_file(), device);
  CHECK_EQUAL(paces.size(), std::size_t{1});
  // Paces far from each other, planted: the band of the next is as wide as they say, at least.
  for (int i = 0; i < 10; ++i) keep_pace(pace_file(), device, paces[0] * (i % 2 ? 1.5 : 1.0));
  const TracePtr second = timed();
  CHECK_EQUAL(paces_of_machine(pace_file(), device).size(), std::size_t{12});
  CHECK_SAYS(values(*second, "between").at(0) > 0.2, test::show(values(*second, "between").at(0)));
  const double widest = std::sqrt(2.0) * values(*second, "between").at(0), median_of = values(*second, "sequential/seconds").at(0);
  CHECK(std::log(values(*second, "sequential/high90").at(0) / median_of) > 0.999 * widest &&
        std::log(median_of / values(*second, "sequential/low90").at(0)) > 0.999 * widest);
  // A cancelled one is no timing of the machine, nor one of nothing.
  CHECK_CLOSE(values(*time_forms(builtin_registry(), request_for("elman"), {.lengths = {}}, {}, {}), "lyapunov").size(), 1.0, 0.0);
  std::stop_source stop;
  stop.request_stop();
  bool stopped = false;  // while the weights were drawn, before anything could be measured
  try {
    time_forms(builtin_registry(), request_for("elman"), {.forms = {"sequential"}, .lengths = {16}}, {}, stop.get_token());
  } catch (const Cancelled&) {
    stopped = true;
  }
  CHECK(stopped);
  CHECK_EQUAL(paces_of_machine(pace_file(), device).size(), std::size_t{12});
  // A folder that cannot be made: it is timed all the same, and a note says so.
  std::filesystem::remove_all(folder);
  write_file(folder, "x");
  const TracePtr third = timed();
  CHECK(third->info.outcome == Outcome::finished);
  CHECK(std::ranges::any_of(
      third->info.notes, [](const Sentence& note) { return note.terminal_text().starts_with("The pace of this machine was not kept"); }));
  std::filesystem::remove_all(folder);
}

TEST_CASE("one form overtakes another where the bands show it") {
  const double none = std::nan("");
  const auto curve = [](const std::string& name, std::vector<double> value, double band) {
    Curve c{name, {64, 128, 256, 512}, value, value, value};
    for (double& x : c.low) x /= band;
    for (double& x : c.high) x *= band;
    return c;
  };
  const Curve line = curve("line", {1, 2, 4, 8}, 1.1),
              flat = curve("flat", {2.8284271247461903, 2.8284271247461903, 2.8284271247461903, 2.8284271247461903}, 1.1);
  CHECK_CLOSE(overtakes(flat, line), 128 * std::sqrt(2.0), 1e-9);
  CHECK_CLOSE(overtakes(line, flat), 0.0, 0.0);
  std::vector<Curve> both{line, flat};
  const auto first = leader(both);
  CHECK(first && first->best == "flat" && first->overtaken == "line");
  CHECK_CLOSE(first->length, 128 * std::sqrt(2.0), 1e-9);
  // Bands that touch at every length show nothing.
  both = {curve("line", {1, 2, 4, 8}, 2.0), curve("flat", {2.8, 2.8, 2.8, 2.8}, 2.0)};
  CHECK_CLOSE(overtakes(both[1], both[0]), 0.0, 0.0);
  const auto second = leader(both);
  CHECK(second && second->best == "flat" && second->overtaken.empty());
  CHECK_CLOSE(second->length, 512.0, 0.0);
  // Ends that are not there are the value; a length that one lacks is passed over.
  Curve bare = flat;
  bare.low.assign(4, none);
  bare.high.clear();
  CHECK_CLOSE(overtakes(bare, line), 128 * std::sqrt(2.0), 1e-9);
  bare.value[1] = none;
  CHECK_CLOSE(overtakes(bare, line), 128 * std::sqrt(2.0), 1e-9);
  CHECK(!leader({}));
}

TEST_CASE("every primitive runs in every form and agrees with its sequential one") {
  CHECK(is_primitive("diagonal") && is_primitive("outer") && is_primitive("delta") && !is_primitive("lstm"));
  for (const std::string& id : primitive_names()) {
    RunRequest request;
    request.preset = primitive_preset(id);
    request.sequence = primitive_input(id, hyper_of(primitives(), request.preset), 100, 1);
    for (const FormReport& report : compare_forms(primitives(), request, {})) {
      CHECK_SAYS(report.output_error <= 1e-9 && report.gradient_error <= 1e-9, id + " " + report.form);
      CHECK_SAYS(report.converged, id + " " + report.form);
    }
  }
  RunRequest request;
  request.preset = primitive_preset("outer");
  request.set = {{"decay", "key"}};
  request.sequence = primitive_input("outer", hyper_of(primitives(), request.preset, request.set), 32, 1);
  const TracePtr trace = time_forms(primitives(), request, {.lengths = {16, 32}}, {}, {});
  CHECK(trace->info.forms == (std::vector<std::string>{"sequential", "scan", "chunkwise"}));
  CHECK_EQUAL(values(*trace, "chunkwise/seconds").size(), std::size_t{2});
  for (const Sentence& note : trace->info.notes) CHECK_SAYS(false, note.terminal_text());
}
