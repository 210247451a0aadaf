// SPDX-License-Identifier: GPL-3.0-or-later
// reclab-device-bench [FILE.json]: what launches, memory and products take on this machine's CUDA device, and a pass forward of models of
// several sizes on the device, where there is one, and on the CPU, each beside the estimates that "auto" chooses a device by
// (experiment/device.h).
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../timed.h"
#include "array/backend.h"
#include "array/device_array.h"
#include "array/error.h"
#include "array/rng.h"
#include "experiment/device.h"
#include "experiment/prepared.h"
#include "files/files.h"
#include "models/network.h"
#include "models/registry.h"
#include "timing/roof.h"

using namespace reclab;
using namespace reclab::bench;
using Json = nlohmann::ordered_json;

namespace {

constexpr int least = 3, most = 30;
constexpr double budget = 0.1;

double seconds_of(Backend& backend, const std::function<void()>& work) {
  std::vector<double> seconds;
  time_calls(
      [&] {
        work();
        backend.finish();
      },
      least, most, budget, seconds);
  return summary(std::move(seconds)).median;
}

DeviceArray random_floats(Backend& backend, std::int64_t n, double low, double high) {
  Rng rng(1);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& x : values) x = static_cast<float>(rng.uniform(low, high));
  return DeviceArray(backend, std::span(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

Json launches(Backend& cuda) {
  constexpr int count = 1000;
  const DeviceArray x = random_floats(cuda, 256, 0.0, 1.0), y = random_floats(cuda, 256, 0.0, 1.0);
  DeviceArray z(cuda, y.bytes());
  const auto work = [&] {
    for (int i = 0; i < count; ++i) cuda.unary(Unary::tanh, DType::f32, 256, x.data(), z.data(), 1.0, 0.0);
  };
  Json found;
  found["asked_for_one_by_one"] = seconds_of(cuda, work) / count;
  if (const auto recording = cuda.record(work)) found["recorded"] = seconds_of(cuda, [&] { recording->replay(); }) / count;
  found["an_answer"] = seconds_of(cuda, [] {});
  std::vector<float> host(256);
  found["a_small_download"] = seconds_of(cuda, [&] { cuda.download(host.data(), z.data(), z.bytes()); });
  return found;
}

Json memory(Backend& cuda) {
  constexpr std::int64_t n = std::int64_t{1} << 28;
  DeviceArray x(cuda, n * sizeof(float)), y(cuda, n * sizeof(float));
  cuda.zero(x.data(), x.bytes());
  cuda.zero(y.data(), y.bytes());
  std::vector<char> host(std::size_t{1} << 28);
  return {
      {"copy_bytes_per_second", 2.0 * static_cast<double>(x.bytes()) / seconds_of(cuda, [&] { cuda.copy(y.data(), x.data(), x.bytes()); })},
      {"sum_of_two_bytes_per_second",
       3.0 * static_cast<double>(x.bytes()) / seconds_of(cuda, [&] { cuda.add_scaled(DType::f32, n, 1, x.data(), y.data(), true); })},
      {"upload_bytes_per_second",
       static_cast<double>(host.size()) / seconds_of(cuda, [&] { cuda.upload(x.data(), host.data(), host.size()); })},
      {"download_bytes_per_second",
       static_cast<double>(host.size()) / seconds_of(cuda, [&] { cuda.download(host.data(), x.data(), host.size()); })}};
}

Json products(Backend& cuda) {
  Json found = Json::array();
  for (const std::int64_t n : {128, 256, 512, 1024, 2048, 4096}) {
    const DeviceArray a = random_floats(cuda, n * n, -1.0, 1.0), b = random_floats(cuda, n * n, -1.0, 1.0);
    DeviceArray c(cuda, a.bytes());
    const MatMul shape{1, n, n, n, false, true, 0, 0, 0};
    const double seconds = seconds_of(cuda, [&] { cuda.matmul(DType::f32, shape, a.data(), b.data(), c.data(), false); });
    found.push_back({{"n", n}, {"seconds", seconds}, {"flops_per_second", 2.0 * std::pow(static_cast<double>(n), 3.0) / seconds}});
    std::fprintf(stderr, "  product %5ld: %9.1f us %8.0f GFLOP/s\n", static_cast<long>(n), 1e6 * seconds,
                 found.back()["flops_per_second"].get<double>() / 1e9);
  }
  return found;
}

/// A loop over time with so many entries side by side, and all steps at once.
Json recurrences(Backend& cuda) {
  Json found = Json::array();
  constexpr std::int64_t steps = 1024;
  for (std::int64_t width = 32; width <= 262144; width *= 8) {
    const DeviceArray a = random_floats(cuda, steps * width, 0.9, 1.0), b = random_floats(cuda, steps * width, -1.0, 1.0);
    DeviceArray s(cuda, a.bytes());
    for (const ScanMethod method : {ScanMethod::steps, ScanMethod::tree}) {
      const double seconds =
          seconds_of(cuda, [&] { cuda.diagonal(DType::f32, {steps, width, 0}, method, a.data(), b.data(), nullptr, s.data(), {}); });
      found.push_back({{"width", width},
                       {"method", method == ScanMethod::steps ? "step by step" : "all steps at once"},
                       {"seconds", seconds},
                       {"bytes_per_second", 3.0 * static_cast<double>(a.bytes()) / seconds}});
      std::fprintf(stderr, "  diagonal, width %6ld, %-18s %9.1f us %7.1f GB/s\n", static_cast<long>(width),
                   found.back()["method"].get<std::string>().c_str(), 1e6 * seconds, found.back()["bytes_per_second"].get<double>() / 1e9);
    }
  }
  return found;
}

double pass_forward(Backend& backend, const Network& shape, const Architecture& architecture, const Hyper& hyper,
                    const NetworkOptions& options) {
  Network network(architecture, hyper, options);
  Graph& graph = network.graph();
  graph.allocate(backend, false);
  std::vector<DeviceArray> kept;
  const auto bind = [&](Var var, const std::vector<float>& values) {
    kept.emplace_back(backend, std::span(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
    graph.bind(var, kept.back().data());
  };
  Rng rng(1);
  std::vector<float> x(static_cast<std::size_t>(count(network.input().shape())));
  for (float& value : x) value = static_cast<float>(rng.normal());
  bind(network.input(), x);
  const Parameters parameters = shape.initialise(1);
  for (std::size_t i = 0; i < network.parameters().size(); ++i) {
    const auto& values = parameters.entries()[i].values;
    bind(network.parameters()[i].var, std::vector<float>(values.begin(), values.end()));
  }
  const auto zeros = [&](Var var) {
    kept.emplace_back(backend, static_cast<std::size_t>(count(var.shape())) * bytes_of(var.dtype()));
    backend.zero(kept.back().data(), kept.back().bytes());
    graph.bind(var, kept.back().data());
  };
  for (const auto& state : network.states()) {
    zeros(state.initial);
    if (state.unscaled_initial) zeros(state.unscaled_initial);
  }
  return seconds_of(backend, [&] { graph.forward(); });
}

struct Model {
  const char *id, *form;
  std::int64_t width, steps, batch;
};

Json models(Backend* cuda) {
  Json found = Json::array();
  constexpr Model all[]{{"elman", "sequential", 64, 1000, 1},
                        {"elman", "sequential", 1024, 500, 1},
                        {"lstm", "sequential", 64, 1000, 1},
                        {"lstm", "sequential", 512, 500, 1},
                        {"lstm", "sequential", 256, 200, 64},
                        {"lstm", "sequential", 1024, 200, 16},
                        {"gru", "sequential", 64, 1000, 32},
                        {"gru", "sequential", 1024, 200, 16},
                        {"lru", "sequential", 64, 1000, 1},
                        {"lru", "sequential", 256, 4096, 1},
                        {"lru", "scan", 64, 4096, 1},
                        {"lru", "scan", 256, 4096, 1},
                        {"lru", "scan", 512, 16384, 1},
                        {"s4d", "sequential", 64, 4096, 1},
                        {"s4d", "scan", 64, 4096, 1},
                        {"s4d", "convolution", 64, 4096, 1},
                        {"s4d", "convolution", 512, 4096, 1},
                        {"mamba", "sequential", 64, 1000, 1},
                        {"mamba", "sequential", 256, 4096, 1},
                        {"mamba", "sequential", 512, 1000, 8},
                        {"mamba", "scan", 64, 4096, 1},
                        {"gla", "sequential", 128, 1000, 1},
                        {"gla", "chunkwise", 128, 4096, 1},
                        {"retnet", "chunkwise", 256, 4096, 1},
                        {"retnet", "attention", 256, 2048, 1},
                        {"deltanet", "chunkwise", 128, 4096, 1},
                        {"mlstm", "chunkwise", 128, 4096, 1},
                        {"transformer", "attention", 128, 512, 1},
                        {"transformer", "attention", 256, 2048, 1}};
  for (const Model& model : all) {
    try {
      const Architecture& architecture = builtin_registry().find(model.id);
      Hyper hyper(architecture.hyper);
      hyper.set("width", model.width, model.id);
      NetworkOptions options;
      options.steps = model.steps;
      options.batch = model.batch;
      options.input = 8;
      options.real = DType::f32;
      options.record = false;
      options.form = form_from(model.form);
      const Network shape(architecture, hyper, options);
      const Work work = work_of(shape, model.steps);
      const double on_cuda = cuda ? pass_forward(*cuda, shape, architecture, hyper, options) : std::nan(""),
                   on_cpu = pass_forward(cpu_backend(), shape, architecture, hyper, options);
      found.push_back({{"model", model.id},
                       {"form", model.form},
                       {"width", model.width},
                       {"steps", model.steps},
                       {"batch", model.batch},
                       {"flops", work.cost.flops},
                       {"bytes", work.cost.bytes},
                       {"launches", work.cost.launches},
                       {"memory", work.memory},
                       {"serial_steps", work.serial},
                       {"cuda_seconds", on_cuda},
                       {"cuda_estimate", seconds_on_cuda(work)},
                       {"cpu_seconds", on_cpu},
                       {"cpu_estimate", seconds_on_cpu(work)},
                       {"worth_cuda", worth_cuda(work)}});
      std::fprintf(stderr,
                   "  %-12s %-11s H%-5ld T%-6ld B%-3ld cuda %9.3f ms (estimate %9.3f)  cpu %9.3f ms (estimate %9.3f)  %8.0f launches, %.1e "
                   "flops, %.1e bytes, %.1e of memory%s\n",
                   model.id, model.form, static_cast<long>(model.width), static_cast<long>(model.steps), static_cast<long>(model.batch),
                   1e3 * on_cuda, 1e3 * seconds_on_cuda(work), 1e3 * on_cpu, 1e3 * seconds_on_cpu(work), work.cost.launches,
                   work.cost.flops, work.cost.bytes, work.memory, worth_cuda(work) ? ", worth cuda" : "");
    } catch (const Error& error) {
      std::fprintf(stderr, "  %s %s: %s\n", model.id, model.form, error.what());
    }
  }
  return found;
}

}  // namespace

int main(int count, char** words) {
  std::string why;
  Backend* const cuda = cuda_backend(&why);
  try {
    const Roof roof = measure_roof();
    Json result = {{"device", cuda ? Json(cuda->name()) : Json()},
                   {"cpu", {{"triad_bytes_per_second", roof.triad_bytes}, {"flops_per_second", roof.flops}}}};
    std::fprintf(stderr, "%s; CPU triad %.0f GB/s, %.0f GFLOP/s\n", cuda ? cuda->name().c_str() : ("the CPU alone: " + why).c_str(),
                 roof.triad_bytes / 1e9, roof.flops / 1e9);
    if (cuda) {
      result["launches"] = launches(*cuda);
      result["memory"] = memory(*cuda);
      std::fprintf(stderr, "  %s\n  %s\n", result["launches"].dump().c_str(), result["memory"].dump().c_str());
      result["products"] = products(*cuda);
      result["recurrences"] = recurrences(*cuda);
    }
    result["models"] = models(cuda);
    if (count > 1) write_file(words[1], result.dump(1) + "\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reclab-device-bench: %s\n", error.what());
    return 2;
  }
  return 0;
}
