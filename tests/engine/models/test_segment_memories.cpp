// SPDX-License-Identifier: GPL-3.0-or-later
// What models that go from segment to segment see of the past.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "runs.h"
#include "test.h"

using namespace reclab;
using test::finished;
using test::request_of;
using test::Settings;
using test::values_of;

namespace {

using Numbers = std::vector<double>;

/// Eight columns of noise.
RunRequest request_for(const std::string& architecture, std::int64_t steps, Settings set) {
  const Sequence noise = make_task("noise", {.length = steps * 8, .seed = 11});
  Sequence made;
  made.name = made.source = "noise";
  made.length = steps;
  made.width = 8;
  made.input.assign(noise.input.begin(), noise.input.begin() + steps * 8);
  for (std::int64_t t = 0; t < steps; ++t) made.time.push_back(static_cast<double>(t));
  for (int j = 0; j < 8; ++j) {
    made.names.push_back("x" + std::to_string(j));
    made.mean.push_back(0.0);
    made.deviation.push_back(1.0);
  }
  return request_of(architecture, std::move(made), std::move(set));
}
double norm_of_row(const Numbers& values, std::size_t row, std::size_t width) {
  double most = 0.0;
  for (std::size_t i = row * width; i < (row + 1) * width; ++i) most = std::max(most, std::abs(values[i]));
  return most;
}

}  // namespace

TEST_CASE("Infini-attention: the memory is that of linear attention over the segments before, and so is what is read of it") {
  constexpr std::size_t T = 40, d = 8, n = 7;
  // A sigmoid of 100 is 1: the heads read the memory alone.
  const auto trace = finished(
      request_for("infini-attention", T, {{"width", "8"}, {"heads", "1"}, {"segment", "7"}, {"gate_start", "100"}, {"block", "none"}}));
  const Numbers &x = values_of(*trace, "input"), &qkv = values_of(*trace, "param/0/0.to_qkv.weight"),
                &W_o = values_of(*trace, "param/0/0.to_out.weight"), &y = values_of(*trace, "output"), &M = values_of(*trace, "state/0/M"),
                &z = values_of(*trace, "state/0/z");
  const auto projected = [&](std::size_t t, std::size_t which, std::size_t i, bool feature) {
    double sum = 0.0;
    for (std::size_t j = 0; j < d; ++j) sum += qkv[(which * d + i) * d + j] * x[t * d + j];
    return !feature ? sum : sum > 0.0 ? sum + 1.0 : std::exp(sum);
  };
  double largest = 0.0, memory_error = 0.0, read_error = 0.0, largest_read = 0.0;
  for (std::size_t t = 0; t < T; ++t) {
    // The state after the last step of a segment is what the next one reads.
    const std::size_t written = (t + 1) / n * n, seen = t / n * n;
    for (std::size_t i = 0; i < d; ++i) {
      double normaliser = 0.0;
      for (std::size_t s = 0; s < written; ++s) normaliser += projected(s, 1, i, true);
      memory_error = std::max(memory_error, std::abs(z[t * d + i] - normaliser));
      for (std::size_t j = 0; j < d; ++j) {
        double sum = 0.0;
        for (std::size_t s = 0; s < written; ++s) sum += projected(s, 1, i, true) * projected(s, 2, j, false);
        largest = std::max(largest, std::abs(sum));
        memory_error = std::max(memory_error, std::abs(M[(t * d + i) * d + j] - sum));
      }
    }
    if (seen == 0) continue;
    Numbers read(d);
    double weights = 0.0;
    for (std::size_t s = 0; s < seen; ++s) {
      double weight = 0.0;
      for (std::size_t i = 0; i < d; ++i) weight += projected(t, 0, i, true) * projected(s, 1, i, true);
      weights += weight;
      for (std::size_t j = 0; j < d; ++j) read[j] += weight * projected(s, 2, j, false);
    }
    for (std::size_t i = 0; i < d; ++i) {
      double out = 0.0;
      for (std::size_t j = 0; j < d; ++j) out += W_o[i * d + j] * read[j] / weights;
      largest_read = std::max(largest_read, std::abs(out));
      read_error = std::max(read_error, std::abs(y[t * d + i] - out));
    }
  }
  CHECK_SAYS(memory_error <= 1e-12 * largest, test::show(memory_error));
  CHECK_SAYS(read_error <= 1e-12 * largest_read, test::show(read_error));
}

TEST_CASE("Transformer-XL sees a segment further back with each layer, and no further") {
  constexpr std::size_t T = 32, n = 4, d = 8;
  for (const std::size_t layers : {1u, 2u, 3u}) {
    const auto gradient_of = [&](const std::string& stopped) {
      RunRequest request = request_for("transformer-xl", T,
                                       {{"width", "8"},
                                        {"heads", "2"},
                                        {"feed_forward", "8"},
                                        {"layers", std::to_string(layers)},
                                        {"segment", "4"},
                                        {"memory", "4"},
                                        {"stop_gradient", stopped}});
      request.loss = LossKind::last;
      return values_of(*finished(request), "gradient/input");
    };
    const Numbers through = gradient_of("false"), held = gradient_of("true");
    const std::size_t segment = T - n, reach = segment - layers * n;
    for (std::size_t t = 0; t < T; ++t) {
      const std::string where = std::to_string(layers) + " layers, step " + std::to_string(t);
      CHECK_SAYS((norm_of_row(through, t, d) > 0.0) == (t >= reach), where);
      CHECK_SAYS((norm_of_row(held, t, d) > 0.0) == (t >= segment), where + ", gradients stopped");
    }
    // What lies behind is not in the last output, and the first step that is within reach is.
    const auto last_output = [&](std::size_t changed) {
      RunRequest request = request_for(
          "transformer-xl", T,
          {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"layers", std::to_string(layers)}, {"segment", "4"}, {"memory", "4"}});
      if (changed < T) request.sequence.own().input[changed * d] += 1.0;
      const Numbers output = values_of(*finished(request), "output");
      return Numbers(output.end() - static_cast<std::ptrdiff_t>(d), output.end());
    };
    const Numbers as_it_is = last_output(T);
    CHECK(last_output(reach - 1) == as_it_is);
    CHECK(last_output(reach) != as_it_is);
  }
}

TEST_CASE("a run may be cut where segments end: the same outputs to the bit, and the same gradients") {
  const std::vector<std::pair<std::string, Settings>> models{
      {"infini-attention", {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"layers", "2"}, {"segment", "4"}, {"rule", "delta"}}},
      {"compressive-transformer",
       {{"width", "8"},
        {"heads", "2"},
        {"feed_forward", "8"},
        {"segment", "4"},
        {"mem_len", "4"},
        {"cmem_len", "4"},
        {"ratio", "2"},
        {"stop_gradient", "false"}}},
      {"block-recurrent", {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"segment", "4"}, {"states", "3"}, {"gate", "lstm"}}},
      {"memformer", {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"segment", "4"}, {"slots", "3"}}},
      {"block-state-transformer",
       {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"segment", "4"}, {"state", "4"}, {"context", "multi-head"}}},
      {"temporal-latent-bottleneck", {{"width", "8"}, {"feed_forward", "8"}, {"chunk", "4"}, {"slots", "3"}}},
      {"recurrent-memory-transformer", {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"segment", "4"}, {"memory", "2"}}},
  };
  for (const auto& [id, set] : models) {
    const RunRequest request = request_for(id, 30, set);
    const Architecture& architecture = builtin_registry().find(id);
    const Hyper hyper = hyper_of(builtin_registry(), request.preset, set);
    const Parameters parameters = Network(architecture, hyper, {.input = 8}).initialise(1);
    const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
    for (const LossKind kind : {LossKind::last, LossKind::mean}) {
      const SequenceLoss loss(kind, *request.sequence);
      std::vector<Numbers> outputs;
      std::vector<std::map<std::string, Numbers>> gradients;
      for (const std::int64_t segment : {30, 4, 8, 12}) {
        Rollout rollout(model, Batch(*request.sequence, loss), {.segment = segment});
        outputs.emplace_back();
        CHECK(!rollout.forward(
            [&](const Rollout::Segment& s) {
              const auto values =
                  to_double(cpu_backend(), DType::f64, s.network.graph().value(s.network.output()), count(s.network.output().shape()));
              outputs.back().insert(outputs.back().end(), values.begin(), values.end());
            },
            {}));
        gradients.emplace_back();
        CHECK(!rollout.backward(
            [&](const Rollout::Segment& s, int scale) {
              const auto values = to_double(cpu_backend(), DType::f64, s.network.graph().gradient(s.network.input()), s.steps * 8);
              Numbers& input = gradients.back()["input"];
              input.resize(30 * 8);
              for (std::size_t i = 0; i < values.size(); ++i)
                input[static_cast<std::size_t>(s.first * 8) + i] = std::ldexp(values[i], scale);
              for (const auto& state : s.network.states()) {
                if (!state.memory) continue;
                Numbers& norms = gradients.back()[Rollout::state_key(state)];
                norms.resize(30);
                for (std::int64_t t = 0; t < s.steps; ++t)
                  norms[static_cast<std::size_t>(s.first + t)] =
                      std::exp2(state.memory->log2_norms()[static_cast<std::size_t>(state.slot)][static_cast<std::size_t>(t)] + scale);
              }
            },
            {}));
        gradients.back().insert(rollout.parameter_gradients().begin(), rollout.parameter_gradients().end());
        CHECK_SAYS(outputs.back() == outputs[0], id + " in segments of " + std::to_string(segment));
        for (const auto& [key, whole] : gradients[0]) {
          double largest = 0.0, difference = 0.0;
          for (std::size_t i = 0; i < whole.size(); ++i) {
            largest = std::max(largest, std::abs(whole[i]));
            difference = std::max(difference, std::abs(whole[i] - gradients.back().at(key)[i]));
          }
          CHECK_SAYS(difference <= 1e-12 * largest + 1e-16, id + " in segments of " + std::to_string(segment) + ": " + key +
                                                                " differs by " + test::show(difference) + " of " + test::show(largest));
        }
      }
    }
  }
}

TEST_CASE("what comes later changes no bit of what stands before it, whether it fills the last segment or not") {
  const std::vector<std::pair<std::string, Settings>> models{
      {"infini-attention", {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"layers", "2"}, {"segment", "4"}}},
      {"compressive-transformer",
       {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"segment", "4"}, {"mem_len", "4"}, {"cmem_len", "4"}, {"ratio", "2"}}},
      {"block-recurrent",
       {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"segment", "4"}, {"states", "3"}, {"gate", "lstm"}, {"cell", "dual"}}},
      {"block-recurrent",
       {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"segment", "4"}, {"states", "3"}, {"gate", "full"}, {"feedback", "true"}}},
      {"block-recurrent",
       {{"width", "32"}, {"heads", "4"}, {"depth", "1"}, {"feed_forward", "64"}, {"segment", "16"}, {"states", "8"}, {"gate", "lstm"}}},
      {"memformer", {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"segment", "4"}, {"slots", "3"}}},
      {"block-state-transformer",
       {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"segment", "4"}, {"state", "4"}, {"context", "multi-head"}}},
      {"temporal-latent-bottleneck", {{"width", "8"}, {"feed_forward", "8"}, {"chunk", "4"}, {"slots", "3"}}},
      {"recurrent-memory-transformer", {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"segment", "4"}, {"memory", "2"}}},
  };
  for (const auto& [id, set] : models)
    for (const char* type : {"f64", "f32"}) {
      const auto run_of = [&](std::int64_t steps) {
        RunRequest request = request_for(id, steps, set);
        request.dtype = type;
        return finished(request);
      };
      const TracePtr whole = run_of(36);
      for (std::int64_t steps = 1; steps < 36; ++steps) {
        const TracePtr part = run_of(steps);
        for (const auto& pointer : part->arrays()) {
          const TraceArray& array = *pointer;
          const bool over_time = array.key == "output" || array.key.starts_with("state/") || array.key.starts_with("gate/");
          if (!over_time || !array.real) continue;
          const Numbers &all = values_of(*whole, array.key), &some = *array.real;
          CHECK_SAYS(std::equal(some.begin(), some.end(), all.begin()),
                     id + " " + type + ", " + std::to_string(steps) + " steps: " + array.key);
        }
      }
    }
}
