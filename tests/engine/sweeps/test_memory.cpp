// SPDX-License-Identifier: GPL-3.0-or-later
// What a plan says of memory, against what is really taken: arrays, what operations keep, and the scratch of the kernels.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "array/device_array.h"
#include "array/host.h"
#include "array/rng.h"
#include "execution/plan.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

/// The most that one forward and backward of the network take, where what the first makes is kept for the second.
std::int64_t taken(Network& network, const Parameters& parameters, DType real) {
  Backend& backend = cpu_backend();
  std::vector<DeviceArray> held;
  const auto bind = [&](Var var, std::vector<double> values) {
    values.resize(static_cast<std::size_t>(count(var.shape())) * (is_complex(var.dtype()) ? 2 : 1), 0.0);
    held.emplace_back(backend, narrowed(real, values));
    network.graph().bind(var, held.back().data());
    return held.back().data();
  };
  Rng rng(1);
  std::vector<double> input(static_cast<std::size_t>(count(network.input().shape())));
  for (double& x : input) x = rng.normal();
  bind(network.input(), input);
  for (std::size_t i = 0; i < network.parameters().size(); ++i) bind(network.parameters()[i].var, parameters.entries()[i].values);
  std::map<Memory*, std::vector<const void*>> carried;
  for (const auto& state : network.states()) {
    const void* start = bind(state.initial, std::vector<double>(static_cast<std::size_t>(count(state.initial.shape())), state.start));
    if (state.unscaled_initial) network.graph().bind(state.unscaled_initial, start);
    if (state.memory) carried[state.memory].push_back(bind(state.initial, {}));
    network.graph().bind(state.initial, start);
  }
  MemoryAccount& account = backend.account();
  const std::int64_t before = account.live();
  account.restart();
  network.graph().allocate(backend, true);
  network.graph().forward({}, Graph::Part::all, true);
  network.graph().clear_gradients();
  const std::int64_t outputs = count(network.output().shape());
  backend.add_scaled(real, outputs, 0, network.graph().value(network.output()), network.graph().gradient(network.output()), true);
  for (const auto& [memory, slots] : carried)
    if (memory->carries()) memory->set_final_adjoint(slots, 1);
  network.graph().backward();
  return account.peak() - before;
}

}  // namespace

SWEEP_PRESETS("no form takes more memory than planned", preset) {
  const auto architecture = architecture_of(builtin_registry(), preset);
  const Hyper hyper = hyper_of(builtin_registry(), preset);
  const Network recording(*architecture, hyper, {});
  const Parameters parameters = recording.initialise(1);
  for (const Form form : recording.forms())
    for (const bool record : {true, false})
      for (const DType real : {DType::f64, DType::f32}) {
        // What an iteration takes is as soon taken as iterated; the steps are still more than a stretch or a block of it.
        const NetworkOptions options{.steps = is_newton(form) ? 80 : 200, .batch = 2, .form = form, .real = real, .record = record};
        Network network(*architecture, hyper, options);
        const std::int64_t most = taken(network, parameters, real), planned = planned_memory(*architecture, hyper, options, cpu_backend()),
                           arrays = network.graph().planned_bytes(true);
        const std::string what = preset.id + " " + std::string(to_string(form)) + (record ? "" : ", nothing recorded") +
                                 (real == DType::f32 ? ", f32" : "") + ": planned " + std::to_string(planned) + ", taken " +
                                 std::to_string(most) + ", arrays " + std::to_string(arrays);
        CHECK_SAYS(most >= arrays, what);
        CHECK_SAYS(planned >= most, what);
        // And no plan is far off, apart from iterations, which are planned with all their ways.
        if (!is_newton(form)) CHECK_SAYS(planned <= most + most / 2, what);
      }
}

TEST_CASE("nothing of a wide product is kept when it is done") {
  Backend& backend = cpu_backend();
  for (const DType real : {DType::f64, DType::f32})
    for (const bool transpose : {false, true}) {
      const std::int64_t m = 48, n = 700, k = 900;
      DeviceArray a(backend, real, m * k), b(backend, real, k * n), c(backend, real, m * n);
      for (const DeviceArray* array : {&a, &b}) backend.zero(array->data(), array->bytes());
      const MatMul product{1, m, n, k, transpose, false};
      const std::int64_t before = backend.account().live();
      backend.account().restart();
      backend.matmul(real, product, a.data(), b.data(), c.data(), false);
      const auto scratch = static_cast<std::int64_t>(backend.matmul_scratch(real, product));
      CHECK_EQUAL(backend.account().live(), before);
      CHECK_EQUAL(backend.account().peak() - before, scratch);
      CHECK(scratch >= (k * n + (transpose ? m * k : 0)) * static_cast<std::int64_t>(bytes_of(real)));
    }
}
