// SPDX-License-Identifier: GPL-3.0-or-later
// What is said of Jordan's network, of independent units and of light gates, in numbers.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "array/error.h"
#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "models/registry.h"
#include "scratch.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

TracePtr run_of(const std::string& architecture, const test::Settings& set, const Sequence& sequence) {
  RunRequest request;
  request.preset = test::preset_of(architecture);
  request.set = set;
  request.sequence = sequence;
  request.every = 1;
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return trace;
}

std::int64_t weights_of(const Trace& trace, const std::string& but = "none") {
  std::int64_t sum = 0;
  for (const TraceArray* array : trace.matching("param/"))
    if (array->key.find("head") == std::string::npos && array->key.find(but) == std::string::npos) sum += array->size();
  return sum;
}

}  // namespace

TEST_CASE("with u within 2^(-1/T) and 2^(1/T) each unit of an IndRNN that stays on multiplies its gradient over T steps by 1/2 to 2") {
  // Section 3 of the paper: the gradient of a unit is the product of its own slopes.
  const std::int64_t T = 1000;
  const double high = std::pow(2.0, 1.0 / static_cast<double>(T)), low = 1.0 / high;
  const auto trace = run_of("indrnn", {{"width", "48"}, {"u_min", std::to_string(low)}, {"u_max", std::to_string(high)}},
                            make_task("adding", {.length = T, .seed = 3}));
  const auto& slopes = *trace->find("spectrum/0")->complex;
  const auto& u = *trace->find("param/0/weight_hh")->real;
  const std::size_t n = u.size();
  std::size_t on = 0, off = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double product = 1.0;
    for (std::size_t t = 0; t < slopes.size() / n; ++t) {
      CHECK(slopes[t * n + i] == std::complex<double>(u[i]) || slopes[t * n + i] == 0.0);
      product *= slopes[t * n + i].real();
    }
    if (product == 0.0) {
      ++off;
      continue;
    }
    ++on;
    CHECK_SAYS(product > 0.499 && product < 2.002, test::show(product));
    CHECK_CLOSE(product, std::pow(u[i], static_cast<double>(T)), 1e-9);
  }
  CHECK(on > 10 && off > 10);
}

TEST_CASE("a Jordan network's state is its output: no wider, of no higher rank than its hidden layer, and without it nothing is left") {
  const Sequence sequence = make_task("noise", {.length = 60, .seed = 2});
  const auto trace = run_of("jordan", {{"width", "3"}, {"outputs", "5"}, {"direction", "forward"}}, sequence);
  CHECK(trace->find("state/0/c")->shape == (Shape{60, 5}));
  CHECK(*trace->find("state/0/c")->real == *trace->find("output")->real);
  // 5 outputs of 3 hidden units: two directions are lost at once.
  for (std::size_t t = 0; t + 1 < 60; ++t) CHECK_EQUAL((*trace->find("jacobian_min/0")->real)[t], -std::numeric_limits<double>::infinity());
  // With a context that keeps a share of itself every direction is kept, and the output is what came to it.
  const auto fading = run_of("jordan", {{"width", "3"}, {"outputs", "5"}, {"mu", "0.8"}}, sequence);
  const auto &c = *fading->find("state/0/c")->real, &y = *fading->find("output")->real;
  for (std::size_t i = 5; i < c.size(); ++i) CHECK_CLOSE(c[i], 0.8 * c[i - 5] + y[i], 1e-12);
  CHECK(std::isfinite((*fading->find("jacobian_min/0")->real)[40]));
}

TEST_CASE("a Li-GRU has two thirds of a GRU's weights, and between kept and written state only what its gate says") {
  const Sequence sequence = make_task("noise", {.length = 80, .seed = 2});
  const auto light = run_of("li-gru", {{"width", "24"}, {"norm", "none"}, {"input_scale", "3"}}, sequence),
             full = run_of("gru", {{"width", "24"}, {"bias", "false"}}, sequence);
  CHECK_EQUAL(3 * weights_of(*light), 2 * weights_of(*full));
  const auto &h = *light->find("state/0/h")->real, &z = *light->find("gate/0/update")->real, &c = *light->find("gate/0/candidate")->real;
  double most = 0.0;
  for (std::size_t i = 24; i < h.size(); ++i) {
    CHECK_CLOSE(h[i], z[i] * h[i - 24] + (1.0 - z[i]) * c[i], 1e-12);
    CHECK(c[i] >= 0.0);
    most = std::max(most, c[i]);
  }
  CHECK(most > 1.5);  // no tanh
  const auto normal = run_of("li-gru", {{"width", "24"}}, sequence);
  CHECK(normal->find("param/0/norm.running_var") != nullptr && weights_of(*normal, "norm") == weights_of(*light));
}

TEST_CASE("state dicts of the reference implementations are read by their names, and their buffers are left aside") {
  struct Case {
    std::string architecture;
    test::Settings set;
    std::map<std::string, std::string> names;  ///< ours to theirs
    std::vector<std::string> buffers;
  };
  const std::vector<Case> cases{
      {"li-gru",
       {{"width", "4"}, {"layers", "2"}},
       {{"0/", "encoder.rnn.0."}, {"1/", "encoder.rnn.1."}},
       {"encoder.rnn.0.norm.num_batches_tracked", "encoder.rnn.1.h_init", "encoder.rnn.1.drop_mask_te", "encoder.rnn.0.drop_masks"}},
      {"indrnn",
       {{"width", "4"}, {"norm", "before"}},
       {{"0/weight_ih", "DIs.0.fc.weight"},
        {"0/bias_ih", "DIs.0.fc.bias"},
        {"0/weight_hh", "RNNs.0.indrnn1.weight_hh"},
        {"0/norm.", "RNNs.0.norm1.bn."}},
       {"RNNs.0.norm1.bn.num_batches_tracked"}},
      {"indrnn",
       {{"width", "4"}, {"norm", "within"}, {"layers", "2"}},
       {{"0/norm.", "bns.0.0."}, {"1/norm.", "bns.1.0."}, {"0/", "cells.0.0."}, {"1/", "cells.1.0."}},
       {"bns.1.0.num_batches_tracked", "h0"}},
  };
  const Sequence sequence = make_task("noise", {.length = 12, .seed = 2});
  for (const Case& one : cases) {
    const auto drawn = run_of(one.architecture, one.set, sequence);
    const test::Scratch folder;
    const auto file_with = [&](const std::string& name, const std::vector<std::string>& more) {
      AtomicFile file(folder / name);
      NpzWriter writer(file);
      for (const TraceArray* array : drawn->matching("param/")) {
        std::string key = array->key.substr(6), longest;
        for (const auto& [ours, theirs] : one.names)
          if (key.starts_with(ours) && ours.size() > longest.size()) longest = ours;
        CHECK_SAYS(!longest.empty(), key);
        writer.add(one.names.at(longest) + key.substr(longest.size()), array->shape, std::span<const double>(*array->real));
      }
      const std::vector<double> one_number{1.0};
      for (const std::string& buffer : more) writer.add(buffer, {1}, std::span<const double>(one_number));
      writer.finish();
      file.commit();
      return folder / name;
    };
    RunRequest request;
    request.preset = test::preset_of(one.architecture);
    request.set = one.set;
    request.sequence = sequence;
    request.seed = 9;
    request.weights = file_with("theirs.npz", one.buffers);
    CHECK(*run(builtin_registry(), request, {}, {}).trace->find("output")->real == *drawn->find("output")->real);
    request.weights = file_with("more.npz", {"rnn.0.something"});
    CHECK_ERROR(run(builtin_registry(), request, {}, {}), "something is not a parameter of this model");
  }
}
