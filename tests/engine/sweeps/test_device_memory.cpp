// SPDX-License-Identifier: GPL-3.0-or-later
// Whole runs on a device whose memory the host cannot see: in the place of the CUDA backend stands one that runs the same kernels on the
// host, in memory that is closed to everything else. A model, a memory or a rollout that reads device memory by itself ends this program.
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <complex>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>

#include "checks/check_device.h"
#include "experiment/experiment.h"
#include "host_machine.h"
#include "models/registry.h"
#include "places.h"
#include "sweep.h"
#include "test.h"

namespace {

using namespace reclab;

bool falsify = false;  ///< the kernels' results are then wrong by one part in a hundred

class GuardedMachine {
 public:
  GuardedMachine() {
    region_ = static_cast<char*>(mmap(nullptr, reserved + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (region_ == MAP_FAILED) test::fail(__FILE__, __LINE__, "no address space");
    region_ += page - reinterpret_cast<std::uintptr_t>(region_) % page;
    madvise(region_, reserved + page, MADV_HUGEPAGE);
  }
  std::string name() const { return "CUDA, in a test"; }
  void* allocate(std::size_t bytes) {
    const std::size_t size = std::bit_ceil(std::max<std::size_t>(bytes, 4096));  // few sizes, so that what was given back serves again
    char* memory = nullptr;
    if (auto& free = free_[size]; !free.empty()) {
      memory = free.back();
      free.pop_back();
    } else {
      memory = region_ + used_;
      used_ += size;
      if (used_ > reserved) throw Error("The device has not enough memory: choose device cpu.");
    }
    sizes_[memory] = size;
    const Open open(*this);
    std::memset(memory, 0xff, bytes);
    return memory;
  }
  void release(void* memory) noexcept { free_[sizes_.at(memory)].push_back(static_cast<char*>(memory)); }
  void zero(void* memory, std::size_t bytes) {
    within([&] { host_.zero(memory, bytes); });
  }
  void upload(void* to, const void* from, std::size_t bytes) {
    within([&] { host_.upload(to, from, bytes); });
  }
  void download(void* to, const void* from, std::size_t bytes) {
    within([&] { host_.download(to, from, bytes); });
  }
  void copy(void* to, const void* from, std::size_t bytes) {
    within([&] { host_.copy(to, from, bytes); });
  }
  void finish() {}
  template <class F>
  void each(std::int64_t n, const F& f) {
    within([&] { host_.each(n, f); });
  }
  template <class F>
  void blocks(std::int64_t n, const F& f) {
    within([&] {
      host_.blocks(n, f);
      if constexpr (requires { f.ldc; })
        if (falsify) f.c[0] += f.c[0] / 100;
    });
  }

 private:
  static constexpr std::size_t reserved = std::size_t{8} << 30;
  struct Open {
    GuardedMachine& machine;
    explicit Open(GuardedMachine& m) : machine(m) { mprotect(m.region_, m.whole_pages(), PROT_READ | PROT_WRITE); }
    ~Open() { mprotect(machine.region_, machine.whole_pages(), PROT_NONE); }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;
  };
  template <class F>
  void within(F&& f) {
    const Open open(*this);
    f();
  }
  /// In pages of 2 MiB, which are opened and closed much faster than small ones.
  static constexpr std::size_t page = std::size_t{2} << 20;
  std::size_t whole_pages() const { return (used_ + page - 1) / page * page; }
  char* region_ = nullptr;
  std::size_t used_ = 0;
  std::map<std::size_t, std::vector<char*>> free_;
  std::map<void*, std::size_t> sizes_;
  test::HostMachine host_;
};

}  // namespace

/// Taken by the linker before the library's own.
reclab::Backend* reclab::cuda_backend(std::string*) {
  static kernel::KernelBackend<GuardedMachine> backend;
  return &backend;
}

namespace {

/// check_device takes the primitives and a folder of presets: a case a family. With --thorough the presets once more, as long as their own
/// tasks, on a device that records: what an operation keeps is first asked for while steps are recorded.
void same_on_a_device(const std::filesystem::path& folder) {
  const PresetLibrary presets(builtin_registry(), {folder});
  CHECK(!presets.presets().empty());
  auto reports = check_device(builtin_registry(), presets, {}, {}, {.length = 24});
  if (test::thorough()) {
    test::HostBackend recording;
    DeviceCheck check{.cuda = &recording};
    for (const Preset& preset : presets.presets()) check.only.push_back(preset.id);
    const auto whole = check_device(builtin_registry(), presets, {}, {}, check);
    reports.insert(reports.end(), whole.begin(), whole.end());
  }
  CHECK(reports.size() >= 2 * presets.presets().size());
  std::string wrong;
  for (const DeviceReport& report : reports)
    if (!report.agrees())
      wrong += "\n  " + report.id + ", " + report.form + ", " + report.dtype + ": " + test::show(report.forward_error) + " " +
               report.forward_array + ", " + test::show(report.gradient_error) + " " + report.gradient_array + " " +
               report.problem.terminal_text();
  CHECK_SAYS(wrong.empty(), wrong);
}
const bool registered = [] {
  std::set<std::string> families;
  for (const Preset& preset : test::shipped().presets())
    if (families.insert(preset.family).second)
      test::add_case(preset.family,
                     "every preset gives the same on a device as on the CPU, in every form and precision, gradients included",
                     preset.family, [folder = preset.file.parent_path()] { same_on_a_device(folder); });
  return true;
}();

/// Row by row, each eigenvalue with the nearest one not yet taken: which of two of the same modulus comes first is up to their rounding.
double spectrum_difference(const std::vector<std::complex<double>>& actual, const std::vector<std::complex<double>>& expected,
                           std::size_t width) {
  double worst = 0.0;
  for (std::size_t row = 0; row < expected.size(); row += width) {
    std::vector<std::complex<double>> left(actual.begin() + static_cast<std::ptrdiff_t>(row),
                                           actual.begin() + static_cast<std::ptrdiff_t>(row + width));
    for (std::size_t i = row; i < row + width; ++i) {
      const auto nearest =
          std::ranges::min_element(left, {}, [&](const std::complex<double>& value) { return std::abs(value - expected[i]); });
      worst = std::max(worst, std::abs(*nearest - expected[i]));
      left.erase(nearest);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("a device that calculates wrongly is noticed") {
  CHECK(registered);
  const PresetLibrary presets(builtin_registry(),
                              {test::source("presets/recurrent/lstm.json"), test::source("presets/enhanced/mlstm.json")});
  falsify = true;
  const auto reports = check_device(builtin_registry(), presets, {}, {}, {.length = 8});
  falsify = false;
  CHECK(!reports.empty());
  for (const DeviceReport& report : reports) {
    if (report.primitive && report.id != "step" && report.id != "dense") continue;  // made of other kernels
    CHECK_SAYS(!report.agrees(), report.id + ", " + report.dtype);
    CHECK_SAYS(report.verdict().terminal_text().starts_with("differs: "), report.verdict().terminal_text());
    CHECK(!report.forward_array.empty());
  }
}

SWEEP_PRESETS("spectra and Jacobian products of a run on a device are those of the CPU", preset) {
  RunRequest request;
  request.preset = preset;
  // Small, for the eigenvalues of large HiPPO matrices move far more than what rounds their entries.
  for (const auto& [key, value] : preset.hyper)
    if (key == "state") request.set.emplace_back(key, "8");
  TaskOptions make;
  make.length = 24;
  make.seed = 2;
  request.sequence = make_task(preset.task, make);
  const TracePtr cpu = run(builtin_registry(), request, {}, {}).trace;
  request.device = "cuda";
  const TracePtr device = run(builtin_registry(), request, {}, {}).trace;
  CHECK_EQUAL(device->info.device, std::string("cuda"));
  CHECK_SAYS(device->info.outcome == Outcome::finished, device->info.sentence);
  CHECK_EQUAL(device->arrays().size(), cpu->arrays().size());
  for (const char* prefix : {"spectrum/", "jacobian"})
    for (const TraceArray* expected : cpu->matching(prefix)) {
      const TraceArray* array = device->find(expected->key);
      CHECK_SAYS(array && array->shape == expected->shape, preset.id + " " + expected->key);
      // A smallest singular value far below the largest is of the size of the rounding errors of the steps' Jacobians.
      const TraceArray* above = array->key.starts_with("jacobian_min/") ? cpu->find("jacobian/" + array->key.substr(13)) : nullptr;
      if (array->is_complex()) {
        const double difference = spectrum_difference(*array->complex, *expected->complex, static_cast<std::size_t>(expected->row_size()));
        CHECK_SAYS(difference <= 1e-6, preset.id + " " + expected->key + " differs by " + test::show(difference));
        continue;
      }
      for (std::size_t i = 0; i < static_cast<std::size_t>(array->size()); ++i) {
        if (above && (*expected->real)[i] < (*above->real)[i * static_cast<std::size_t>(above->row_size())] - 8.0) continue;
        const double difference = (*array->real)[i] == (*expected->real)[i] ? 0.0 : std::abs((*array->real)[i] - (*expected->real)[i]);
        CHECK_SAYS(difference <= 1e-6,
                   preset.id + " " + expected->key + " differs by " + test::show(difference) + " at " + std::to_string(i));
      }
    }
}
