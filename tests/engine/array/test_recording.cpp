// SPDX-License-Identifier: GPL-3.0-or-later
// Steps that a device has recorded and replays: the same bits as step by step, for far fewer calls, whatever memory and segments it is.
#include <cstring>

#include "array/device_array.h"
#include "experiment/experiment.h"
#include "faulty_machine.h"
#include "models/registry.h"
#include "places.h"
#include "test.h"
#include "timing/timing.h"

namespace {

using namespace reclab;
using reclab::test::FaultyBackend;
using reclab::test::HostBackend;

/// The kernels on the host, with nothing recorded.
class PlainMachine {
 public:
  std::string name() const { return host_.name(); }
  void* allocate(std::size_t bytes) { return host_.allocate(bytes); }
  void release(void* memory) noexcept { host_.release(memory); }
  void zero(void* memory, std::size_t bytes) { ++launches, host_.zero(memory, bytes); }
  void upload(void* to, const void* from, std::size_t bytes) { ++launches, host_.upload(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) { ++launches, host_.download(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) { ++launches, host_.copy(to, from, bytes); }
  void finish() {}
  template <class F>
  void each(std::int64_t n, const F& f) {
    ++launches, host_.each(n, f);
  }
  template <class F>
  void blocks(std::int64_t n, const F& f) {
    ++launches, host_.blocks(n, f);
  }
  std::int64_t launches = 0;

 private:
  test::HostMachine host_;
};
using PlainBackend = kernel::KernelBackend<PlainMachine>;

RunRequest request_for(const std::string& id, std::int64_t length, const std::string& dtype) {
  const PresetLibrary presets(builtin_registry(), {test::source("presets")});
  RunRequest request;
  request.preset = presets.find(id);
  for (const auto& [key, value] : request.preset.hyper)
    if (key == "width") request.set.emplace_back(key, "6");
  TaskOptions make;
  make.length = length;
  make.seed = 3;
  request.sequence = make_task(request.preset.task, make);
  request.device = "cuda";
  request.dtype = dtype;
  request.recording.kinds.remove(kinds_of(Stage::late));
  return request;
}

void same(const Trace& a, const Trace& b, const std::string& what) {
  CHECK_EQUAL(a.arrays().size(), b.arrays().size());
  for (const auto& array : a.arrays()) {
    const TraceArray* other = b.find(array->key);
    CHECK_SAYS(other && other->shape == array->shape, what + array->key);
    if (array->is_complex()) continue;
    CHECK_SAYS(std::memcmp(array->real->data(), other->real->data(), array->real->size() * sizeof(double)) == 0,
               what + array->key + " has other bits");
  }
}

}  // namespace

TEST_CASE("a stepped recurrence replayed has the bits of one that is run step by step") {
  for (const char* id : {"elman", "lstm", "gru", "slstm", "ltc", "cornn", "bidirectional-lstm"})
    for (const char* dtype : {"f64", "f32"})
      for (const std::int64_t length : {64, 200, 700}) {
        const std::string what = std::string(id) + ", " + dtype + ", " + std::to_string(length) + " steps: ";
        RunRequest request = request_for(id, length, dtype);
        PlainBackend plain;
        request.cuda = &plain;
        const TracePtr expected = run(builtin_registry(), request, {}, {}).trace;
        FaultyBackend device;
        request.cuda = &device;
        const TracePtr replayed = run(builtin_registry(), request, {}, {}).trace;
        CHECK_SAYS(replayed->info.outcome == Outcome::finished && replayed->info.device == "cuda", what + replayed->info.sentence);
        same(*replayed, *expected, what);
        CHECK_SAYS(device.machine().alive() == 0, what + "memory is left");
        if (length < 128) continue;
        CHECK_SAYS(device.machine().replays() >= length / 64, what + std::to_string(device.machine().replays()) + " replays");
        CHECK_SAYS(device.machine().launches() < plain.machine().launches, what + "no fewer calls");
      }
}

TEST_CASE("one recording serves every segment, and the passes after") {
  // 1500 steps of a wide cell are several segments; each is run forward twice.
  RunRequest request = request_for("lstm", 1500, "f32");
  request.set = {{"width", "64"}};
  request.recording.kinds.remove({Kind::state, Kind::signal, Kind::basis, Kind::reconstruction, Kind::gate});
  FaultyBackend device;
  request.cuda = &device;
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  CHECK_SAYS(device.machine().recordings() <= 6, std::to_string(device.machine().recordings()) + " recordings");
  CHECK_SAYS(device.machine().replays() > 1500 / 64 + 1,
             std::to_string(device.machine().replays()) + " replays");  // more than one pass has blocks
}

TEST_CASE("what waits for the device is not recorded, and nothing is left of the attempt") {
  FaultyBackend device;
  void* x = device.allocate(64);
  device.zero(x, 64);
  CHECK(device.record([&] { device.exponent(DType::f64, 8, x); }) == nullptr);
  CHECK(device.record([&] { device.finish(); }) == nullptr);
  device.exponent(DType::f64, 8, x);  // works again
  CHECK_EQUAL(device.machine().alive(), std::size_t{1});
  double values[8];
  const std::vector<double> ones(8, 1.0);
  device.upload(x, ones.data(), 64);
  const auto recording = device.record([&] { device.add_scaled(DType::f64, 8, 1, x, x, false); });
  device.download(values, x, 64);
  CHECK_EQUAL(values[7], 1.0);  // kept, and not done
  for (int i = 0; i < 3; ++i) recording->replay();
  device.download(values, x, 64);
  CHECK_EQUAL(values[7], 8.0);
  CHECK(cpu_backend().record([] { test::fail(__FILE__, __LINE__, "the CPU records nothing"); }) == nullptr);
  device.release(x);
}

TEST_CASE("memory that is taken while something is recorded and kept after is its taker's, whether the recording is made or not") {
  FaultyBackend device;
  constexpr std::int64_t n = 64;
  void* x = device.allocate(n * sizeof(double));
  const std::vector<double> ones(n, 1.0);
  device.upload(x, ones.data(), n * sizeof(double));
  for (const bool waits : {false, true}) {
    DeviceArray before(device, n * sizeof(double)), kept;  // a buffer that grows, and one that is new
    auto recording = device.record([&] {
      device.copy(before.data(), x, n * sizeof(double));
      before = DeviceArray(device, 2 * n * sizeof(double));
      kept = DeviceArray(device, n * sizeof(double));
      device.add_scaled(DType::f64, n, 1, x, kept.data(), false);
      if (waits) device.finish();
    });
    CHECK_EQUAL(recording == nullptr, waits);
    if (recording) {
      recording->replay();
      double first = 0.0;
      device.download(&first, kept.data(), sizeof first);
      CHECK_EQUAL(first, 2.0);
      CHECK_EQUAL(device.machine().alive(), std::size_t{4});  // with what the recorded copy writes to
      recording.reset();
    }
    CHECK_EQUAL(device.machine().alive(), std::size_t{3});
    device.upload(kept.data(), ones.data(), n * sizeof(double));
  }
  device.release(x);
  CHECK_EQUAL(device.machine().alive(), std::size_t{0});
}

TEST_CASE("memory that a recording took while it was made stays its own until it goes") {
  FaultyBackend device;
  constexpr std::int64_t n = 4096;
  void* x = device.allocate(n * sizeof(double));
  void* y = device.allocate(sizeof(double));
  const std::vector<double> ones(n, 1.0);
  device.upload(x, ones.data(), n * sizeof(double));
  auto recording = device.record([&] { device.sum(DType::f64, 1, n, 1, 1.0, x, y); });  // in two passes
  CHECK_EQUAL(device.machine().alive(), std::size_t{3});
  void* other = device.allocate(16 * sizeof(double));
  double sum = 0.0;
  recording->replay();
  device.download(&sum, y, sizeof sum);
  CHECK_EQUAL(sum, static_cast<double>(n));
  recording.reset();
  for (void* memory : {x, y, other}) device.release(memory);
  CHECK_EQUAL(device.machine().alive(), std::size_t{0});
}
