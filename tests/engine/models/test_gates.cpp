// SPDX-License-Identifier: GPL-3.0-or-later
// What the papers of gated recurrent networks claim of them, in numbers, and the conventions that their cards say are the same.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "extremes.h"
#include "models/registry.h"
#include "runs.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;
using test::finished;
using test::Numbers, test::says;
using test::request_of;
using test::Settings;
using test::values_of;

namespace {

/// A model with one input column.
RunRequest request_for(const std::string& architecture, std::int64_t length, Settings set, const std::string& task = "noise") {
  RunRequest request = request_of(architecture, make_task(task, {.length = length, .seed = 4}), std::move(set));
  request.recording.kinds.remove(kinds_of(Stage::late));
  return request;
}
/// One step without input.
RunRequest at_rest(const std::string& architecture, Settings set) {
  RunRequest request = request_for(architecture, 1, std::move(set));
  request.sequence.own().input.assign(1, 0.0);
  return request;
}

/// Kolmogorov and Smirnov's largest distance of a sample's distribution from the uniform one.
double distance_from_uniform(Numbers sample, double low, double high) {
  std::ranges::sort(sample);
  double most = 0.0;
  const auto n = static_cast<double>(sample.size());
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const double share = std::clamp((sample[i] - low) / (high - low), 0.0, 1.0);
    most = std::max({most, std::abs(share - static_cast<double>(i) / n), std::abs(share - static_cast<double>(i + 1) / n)});
  }
  return most;
}
/// Of a uniform sample of n one in a hundred is further away.
double usual_distance(std::size_t n) { return 1.63 / std::sqrt(static_cast<double>(n)); }

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// The outputs with weights that the change makes of those that the first settings draw.
Numbers output_with(const RunRequest& drawn, const Settings& set,
                    const std::function<double(const std::string& name, std::size_t entry, double value)>& change) {
  const test::Scratch folder;
  const Network network(builtin_registry().find(drawn.preset.architecture), hyper_of(builtin_registry(), drawn.preset, drawn.set),
                        {.input = drawn.sequence->width});
  const Network other(builtin_registry().find(drawn.preset.architecture), hyper_of(builtin_registry(), drawn.preset, set),
                      {.input = drawn.sequence->width});
  const Parameters parameters = network.initialise(1);
  AtomicFile file(folder / "w.npz");
  NpzWriter writer(file);
  for (const auto& entry : parameters.entries()) {
    if (std::ranges::find(other.parameters(), entry.name, &Network::ParameterVar::name) == other.parameters().end()) continue;
    Numbers values = entry.values;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = change(entry.name, i, values[i]);
    writer.add("param/" + entry.name, entry.shape, std::span<const double>(values));
  }
  writer.finish();
  file.commit();
  RunRequest request = drawn;
  request.set = set;
  request.weights = folder / "w.npz";
  return values_of(*finished(request), "output");
}
Numbers output_of(const RunRequest& request) {
  return output_with(request, request.set, [](const std::string&, std::size_t, double value) { return value; });
}
void same(const Numbers& a, const Numbers& b, double tolerance) {
  CHECK_EQUAL(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK_CLOSE(a[i], b[i], tolerance);
}

}  // namespace

TEST_CASE("lstm: chrono's time constants are uniform from 2 to t_max, and the input gate is what the forget gate leaves") {
  for (const double longest : {50.0, 784.0}) {
    const Settings set{{"width", "1000"}, {"bias_init", "chrono"}, {"t_max", std::to_string(static_cast<int>(longest))}};
    const auto trace = finished(at_rest("lstm", set));
    const Numbers &forget = values_of(*trace, "gate/0/forget"), &input = values_of(*trace, "gate/0/input");
    Numbers constants;
    for (std::size_t j = 0; j < forget.size(); ++j) {
      constants.push_back(1.0 / (1.0 - forget[j]));
      CHECK_CLOSE(input[j], 1.0 - forget[j], 1e-15);
    }
    CHECK_EQUAL(constants.size(), std::size_t{1000});
    CHECK(std::ranges::min(constants) >= 2.0 - 1e-9 && std::ranges::max(constants) <= longest * (1.0 + 1e-9));
    const double distance = distance_from_uniform(constants, 2.0, longest);
    std::printf("chrono, T_max = %g: distance from uniform %.4f, usual %.4f\n", longest, distance, usual_distance(1000));
    CHECK(distance < usual_distance(1000));
    // The biases that PyTorch draws are nowhere near.
    const auto usual = finished(at_rest("lstm", {{"width", "1000"}, {"forget_bias", "0"}}));
    Numbers others;
    for (const double f : values_of(*usual, "gate/0/forget")) others.push_back(1.0 / (1.0 - f));
    CHECK(distance_from_uniform(others, 2.0, longest) > 0.9);
  }
}

TEST_CASE("lstm: without input and recurrent weights a cell fades by its own time constant") {
  const Settings set{{"width", "32"}, {"bias_init", "chrono"}, {"t_max", "100"}};
  RunRequest request = request_for("lstm", 60, set, "impulse");
  const test::Scratch folder;
  request.weights = folder / "w.npz";
  test::write_weights(request, request.weights,
                      [](const std::string& name, double value) { return says(name, "weight_hh") ? 0.0 : value; });
  const auto trace = finished(request);
  const Numbers &c = values_of(*trace, "state/0/c"), &bias = values_of(*trace, "param/0/bias_ih");
  for (std::size_t j = 0; j < 32; ++j) {
    const double constant = 1.0 + std::exp(bias[32 + j]);
    CHECK_CLOSE(c[59 * 32 + j] / c[j], std::pow(1.0 - 1.0 / constant, 59.0), 1e-12);
  }
}

TEST_CASE("gru: chrono's time constants are uniform from 2 to t_max, whichever the update gate multiplies") {
  for (const std::string update : {"keeps", "writes"}) {
    const auto trace = finished(at_rest("gru", {{"width", "1000"}, {"update", update}, {"bias_init", "chrono"}, {"t_max", "100"}}));
    Numbers constants;
    for (const double z : values_of(*trace, "gate/0/update")) constants.push_back(1.0 / (update == "keeps" ? 1.0 - z : z));
    CHECK_EQUAL(constants.size(), std::size_t{1000});
    CHECK(std::ranges::min(constants) >= 2.0 - 1e-9 && std::ranges::max(constants) <= 100.0 * (1.0 + 1e-9));
    CHECK(distance_from_uniform(constants, 2.0, 100.0) < usual_distance(1000));
  }
}

TEST_CASE("lstm and gru: chrono needs a bias to start") {
  for (const std::string architecture : {"lstm", "gru"})
    CHECK_ERROR(finished(at_rest(architecture, {{"bias_init", "chrono"}, {"bias", "no"}})), "leaves no bias to start");
}

TEST_CASE("ur-lstm: forget gates start uniform, from 1/H to 1 - 1/H") {
  const auto trace = finished(at_rest("ur-lstm", {{"width", "1000"}}));
  Numbers gates;
  for (const double beta : values_of(*trace, "param/0/forget_bias")) gates.push_back(logistic(beta));
  CHECK(std::ranges::min(gates) >= 1e-3 && std::ranges::max(gates) <= 1.0 - 1e-3);
  const double distance = distance_from_uniform(gates, 1e-3, 1.0 - 1e-3);
  std::printf("uniform gates: distance from uniform %.4f, usual %.4f\n", distance, usual_distance(1000));
  CHECK(distance < usual_distance(1000));
}

TEST_CASE("ur-lstm: with no gate driven further than 4 the refined gate reaches 0.999, and the plain one stays below 0.983") {
  // sigmoid(4) = 0.98201; a plain gate would have to be driven to 6.9.
  for (const bool refine : {true, false}) {
    const std::string refined = refine ? "yes" : "no";
    RunRequest request = at_rest("ur-lstm", {{"width", "16"}, {"refine", refined}});
    const test::Scratch folder;
    request.weights = folder / "w.npz";
    test::write_weights(request, request.weights, [](const std::string& name, double value) {
      return says(name, "igates.bias") ? 4.0 : says(name, "forget_bias") || says(name, "hgates.bias") ? 0.0 : value;
    });
    const auto trace = finished(request);
    const Numbers &plain = values_of(*trace, "gate/0/forget"), &effective = values_of(*trace, "gate/0/effective");
    std::printf("driven to 4: plain gate %.6f, effective gate %.6f with refine=%s\n", plain[0], effective[0], refined.c_str());
    for (std::size_t j = 0; j < plain.size(); ++j) {
      CHECK(plain[j] > 0.982 && plain[j] < 0.983);
      if (refine)
        CHECK(effective[j] > 0.999);
      else
        CHECK_EQUAL(effective[j], plain[j]);
    }
  }
}

TEST_CASE("ur-lstm: the refined gate stays in its band, and what it leaves keeps its digits next to 1") {
  const auto trace = finished(request_for("ur-lstm", 50, {{"width", "16"}, {"input_scale", "20"}}));
  const Numbers &f = values_of(*trace, "gate/0/forget"), &g = values_of(*trace, "gate/0/effective");
  for (std::size_t i = 0; i < f.size(); ++i)
    CHECK(g[i] >= f[i] * f[i] * (1.0 - 1e-12) && g[i] <= 1.0 - (1.0 - f[i]) * (1.0 - f[i]) + 1e-15);
  // f and r driven to 30: 1 - g = q² r + q (1 - r)(1 + f), about 3e-26, is nothing as a difference to 1.
  RunRequest request = at_rest("ur-lstm", {{"width", "4"}});
  const test::Scratch folder;
  request.weights = folder / "w.npz";
  test::write_weights(request, request.weights, [](const std::string& name, double value) {
    return says(name, "igates.bias") ? 30.0 : says(name, "forget_bias") || says(name, "hgates.bias") ? 0.0 : value;
  });
  const double q = std::exp(-30.0) / (1.0 + std::exp(-30.0));
  const auto driven = finished(request);
  for (const double c : values_of(*driven, "state/0/c")) CHECK_CLOSE(c / (3.0 * q * q), 1.0, 1e-9);
}

TEST_CASE("on-lstm: the last level is never written, and a step that writes a level writes all below it as much") {
  const auto trace = finished(request_for("on-lstm", 60, {{"width", "24"}, {"chunk", "3"}, {"input_scale", "10"}}));
  const Numbers &c = values_of(*trace, "state/0/c"), &written = values_of(*trace, "gate/0/master_input"),
                &kept = values_of(*trace, "gate/0/master_forget");
  const Numbers &distance = values_of(*trace, "gate/0/distance"), &distance_in = values_of(*trace, "gate/0/distance_in");
  for (std::size_t t = 0; t < 60; ++t) {
    double open = 0.0, in = 0.0;
    for (std::size_t k = 0; k < 8; ++k) {
      open += kept[t * 8 + k];
      in += written[t * 8 + k];
      if (k) CHECK(written[t * 8 + k] <= written[t * 8 + k - 1] && kept[t * 8 + k] >= kept[t * 8 + k - 1]);
    }
    CHECK_CLOSE(distance[t], 1.0 - open / 8.0, 1e-14);
    CHECK_CLOSE(distance_in[t], in / 8.0, 1e-14);
    CHECK_CLOSE(kept[t * 8 + 7], 1.0, 1e-14);
    CHECK_EQUAL(written[t * 8 + 7], 0.0);
    for (std::size_t j = 21; j < 24; ++j) CHECK_EQUAL(c[t * 24 + j], 0.0);
  }
  CHECK_ERROR(finished(request_for("on-lstm", 4, {{"width", "24"}, {"chunk", "5"}})), "does not divide width = 24");
}

TEST_CASE("sru: v and w of 0 are the network without them") {
  RunRequest request = request_for("sru", 40, {{"width", "6"}, {"layers", "2"}});
  const auto without_v = [](const std::string& name, std::size_t, double value) { return says(name, "weight_c") ? 0.0 : value; };
  const Numbers with = output_with(request, request.set, without_v);
  same(with, output_with(request, {{"width", "6"}, {"layers", "2"}, {"state_gates", "no"}}, without_v), 1e-14);
  CHECK(test::largest(with) > 0.1 && with != output_of(request));
}

TEST_CASE("qrnn and gru: a gate that writes is one that keeps, its rows negated") {
  for (const std::string pooling : {"f", "fo", "ifo"}) {
    const RunRequest request = request_for("qrnn", 40, {{"width", "6"}, {"pooling", pooling}});
    const std::size_t row = pooling == "ifo" ? 2 : 1;
    Settings other = request.set;
    other.emplace_back("gate", "keeps");
    const Numbers writes = output_of(request),
                  keeps = output_with(request, other, [&](const std::string& name, std::size_t entry, double value) {
                    const std::size_t unit = says(name, "bias") ? entry : entry / 2;  // one column, window 2
                    return unit / 6 == row ? -value : value;
                  });
    same(writes, keeps, 1e-14);
    CHECK(test::largest(writes) > 0.01);
  }
  for (const std::string reset : {"after", "before"}) {
    const RunRequest request = request_for("gru", 40, {{"width", "6"}, {"reset", reset}});
    Settings other = request.set;
    other.emplace_back("update", "writes");
    const Numbers keeps = output_of(request),
                  writes = output_with(request, other, [&](const std::string& name, std::size_t entry, double value) {
                    const std::size_t unit = says(name, "weight_hh") ? entry / 6 : entry;
                    return unit / 6 == 1 ? -value : value;
                  });
    same(keeps, writes, 1e-14);
    CHECK(test::largest(keeps) > 0.01);
  }
}
