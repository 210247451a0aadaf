// SPDX-License-Identifier: GPL-3.0-or-later
// A device that fails in the middle of a run: at every allocation and every launch there is, thinned. The run is then the CPU's, to the
// bit, says so in one sentence, and nothing is left behind. And the computer's own memory that runs out: an Error, and nothing else.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "array/error.h"
#include "checks/check_device.h"
#include "experiment/device.h"
#include "experiment/experiment.h"
#include "experiment/training/training.h"
#include "faulty_machine.h"
#include "models/registry.h"
#include "places.h"
#include "test.h"

namespace {

/// Counts down large allocations on the thread that set it; at 0 there is no memory.
thread_local std::int64_t memory_left = -1;
constexpr std::size_t large = 128;

void* taken(std::size_t bytes) {
  if (bytes >= large && memory_left >= 0 && memory_left-- == 0) throw std::bad_alloc();
  void* memory = std::malloc(bytes ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return taken(bytes); }
void* operator new[](std::size_t bytes) { return taken(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return taken(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace reclab;
using reclab::test::FaultyBackend;
using Fault = reclab::test::FaultyMachine::Fault;

RunRequest request_for(const std::string& id, std::int64_t length, const std::string& form = "sequential",
                       const std::string& dtype = "f64") {
  const PresetLibrary presets(builtin_registry(), {test::source("presets")});
  RunRequest request;
  request.preset = presets.find(id);
  for (const auto& [key, value] : request.preset.hyper)
    if (key == "width")
      request.set.emplace_back(key, "4");
    else if (key == "state")
      request.set.emplace_back(key, "4");
  TaskOptions make;
  make.length = length;
  make.seed = 3;
  request.sequence = make_task(request.preset.task, make);
  request.form = form;
  request.dtype = dtype;
  return request;
}

bool same_bits(const TraceArray& a, const TraceArray& b) {
  if (a.key != b.key || a.shape != b.shape || a.is_complex() != b.is_complex()) return false;
  const auto bytes = [](const auto& values) { return values.size() * sizeof(values[0]); };
  if (a.is_complex()) return std::memcmp(a.complex->data(), b.complex->data(), bytes(*a.complex)) == 0;
  return std::memcmp(a.real->data(), b.real->data(), bytes(*a.real)) == 0;
}
/// Empty, or what differs.
std::string difference(const RunResult& a, const RunResult& b) {
  if (a.trace->arrays().size() != b.trace->arrays().size()) return "the number of arrays";
  for (std::size_t i = 0; i < a.trace->arrays().size(); ++i)
    if (!same_bits(*a.trace->arrays()[i], *b.trace->arrays()[i])) return a.trace->arrays()[i]->key;
  if (a.state.size() != b.state.size()) return "the number of states";
  for (const auto& [key, array] : a.state)
    if (!same_bits(array, b.state.at(key))) return "final " + key;
  const RunInfo &x = a.trace->info, &y = b.trace->info;
  if (x.device != y.device || x.command != y.command || x.form != y.form || x.outcome != y.outcome || x.sentence != y.sentence ||
      x.loss_value != y.loss_value)
    return "what is told of the run";
  return {};
}

std::int64_t count_of(const std::vector<Sentence>& notes, const std::string& text) {
  return std::count_if(notes.begin(), notes.end(),
                       [&](const Sentence& note) { return note.terminal_text().find(text) != std::string::npos; });
}

/// All of 1..n when they are few, else about `most` of them, the first and the last ones all.
std::vector<std::int64_t> thinned(std::int64_t n, std::int64_t most) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 1; i <= n; ++i)
    if (n <= most || i <= 8 || i > n - 4 || i % (n / most + 1) == 0) chosen.push_back(i);
  return chosen;
}

void sweep(const RunRequest& asked, std::int64_t most) {
  RunRequest request = asked;
  const RunResult cpu = run(builtin_registry(), request, {}, {});
  CHECK_SAYS(cpu.trace->info.outcome == Outcome::finished, cpu.trace->info.sentence);
  request.device = "cuda";
  std::int64_t allocations = 0, launches = 0;
  {
    FaultyBackend device;
    request.cuda = &device;
    const RunResult whole = run(builtin_registry(), request, {}, {});
    CHECK_EQUAL(whole.trace->info.device, std::string("cuda"));
    CHECK_EQUAL(count_of(whole.trace->info.notes, "done on the CPU"), 0);
    allocations = device.machine().allocations();
    launches = device.machine().launches();
    CHECK(allocations > 5 && launches > 20);
  }
  for (const auto& [fault, calls, words, happened] :
       {std::tuple(Fault::allocation, allocations, test::FaultyMachine::no_memory, "ran out of memory"),
        std::tuple(Fault::launch, launches, test::FaultyMachine::refused, "failed"),
        std::tuple(Fault::end, launches, test::FaultyMachine::gone, "was lost")})
    for (const std::int64_t at : thinned(calls, most)) {
      const std::string where =
          request.preset.id + ", " + happened + ", call " + std::to_string(at) + " of " + std::to_string(calls) + ": ";
      auto device = std::make_unique<FaultyBackend>();
      device->machine().fail(fault, at, at % 2 == 0);
      request.cuda = device.get();
      int published_after = 0;
      const RunResult result =
          run(builtin_registry(), request, {}, {}, [&](TracePtr trace) { published_after += trace->info.device == "cpu"; });
      CHECK_SAYS(difference(result, cpu).empty(), where + difference(result, cpu) + " differs");
      CHECK_SAYS(published_after > 0, where + "no stage was published");
      const auto& notes = result.trace->info.notes;
      CHECK_SAYS(count_of(notes, "the run was done on the CPU") == 1,
                 where + std::to_string(count_of(notes, "done on the CPU")) + " sentences");
      CHECK_SAYS(notes.size() == cpu.trace->info.notes.size() + 1, where + "other notes");
      CHECK_SAYS(notes.front().terminal_text().starts_with(std::string("The CUDA device ") + happened) &&
                     notes.front().terminal_text().find(words) != std::string::npos,
                 where + notes.front().terminal_text());
      CHECK_SAYS(device->machine().asked_when_lost() == 0, where + "a lost device was asked");
      CHECK_EQUAL(device->lost(), std::string(fault == Fault::end ? words : ""));
      // Roots of unity stay with the backend; all else is given back.
      CHECK_SAYS(device->machine().alive() <= 1, where + std::to_string(device->machine().alive()) + " arrays are left");
      if (fault != Fault::end && at % 5 == 0) {  // what failed once works again
        device->machine().fail(Fault::none, 0);
        const RunResult again = run(builtin_registry(), request, {}, {});
        CHECK_EQUAL(again.trace->info.device, std::string("cuda"));
      }
    }
}

}  // namespace

TEST_CASE("an LSTM's device may fail anywhere") { sweep(request_for("lstm", 150), 40); }
TEST_CASE("Mamba's device may fail anywhere, float32") { sweep(request_for("mamba", 24, "sequential", "f32"), 40); }
TEST_CASE("a Newton form's device may fail anywhere") { sweep(request_for("gru", 20, "newton"), 30); }
TEST_CASE("a convolution's device may fail anywhere, and what the sequential form records after it") {
  sweep(request_for("s4d", 20, "convolution"), 40);
}

TEST_CASE("a device that was lost is not asked again, and runs go on on the CPU") {
  FaultyBackend device;
  device.machine().fail(Fault::end, 30);
  RunRequest request = request_for("lstm", 10);
  request.cuda = &device;
  request.device = "cuda";
  run(builtin_registry(), request, {}, {});
  const auto allocations = device.machine().allocations();
  const RunResult later = run(builtin_registry(), request, {}, {});
  CHECK_EQUAL(device.machine().allocations(), allocations);
  CHECK_EQUAL(later.trace->info.device, std::string("cpu"));
  CHECK_EQUAL(count_of(later.trace->info.notes, "The CUDA device was lost before the first step"), 1);
  CHECK_ERROR(device.allocate(8), "start the program again");
  device.release(nullptr);
  request.device = "auto";
  request.dtype = "f32";
  CHECK_EQUAL(count_of(run(builtin_registry(), request, {}, {}).trace->info.notes, "CUDA"), 0);
}

TEST_CASE("a comparison of forms on a device that fails is the CPU's") {
  RunRequest request = request_for("gru", 20);
  const auto cpu = compare_forms(builtin_registry(), request, {});
  FaultyBackend device;
  device.machine().fail(Fault::allocation, 12);
  request.cuda = &device;
  request.device = "cuda";
  const auto reports = compare_forms(builtin_registry(), request, {});
  CHECK_EQUAL(reports.size(), cpu.size());
  CHECK_SAYS(reports[0].note.starts_with("The CUDA device ran out of memory in the sequential form") &&
                 reports[0].note.find("the comparison was done on the CPU.") != std::string::npos,
             reports[0].note);
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    CHECK_EQUAL(reports[i].device, std::string("cpu"));
    CHECK_EQUAL(reports[i].output_error, cpu[i].output_error);
    CHECK_EQUAL(reports[i].gradient_error, cpu[i].gradient_error);
  }
}

TEST_CASE("a comparison of devices says which line the device failed in, and ends with the device") {
  const PresetLibrary presets(builtin_registry(), {test::source("presets/recurrent/elman.json")});
  std::vector<std::string> told;
  FaultyBackend device;
  DeviceCheck check{.length = 130, .cuda = &device, .found = [&](const DeviceReport& report) { told.push_back(report.id); }};
  const auto all = check_device(builtin_registry(), presets, {}, {}, check);
  CHECK_EQUAL(told.size(), all.size());
  for (const DeviceReport& report : all)
    CHECK_SAYS(report.agrees() && report.verdict() == "agrees",
               report.id + ", " + report.form + ", " + report.dtype + ": " + report.verdict().terminal_text());
  CHECK(device.machine().replays() > 0);
  const auto presets_from = std::ranges::find(all, false, &DeviceReport::primitive) - all.begin();
  CHECK(presets_from > 40);
  CHECK_EQUAL(all.size() - static_cast<std::size_t>(presets_from), std::size_t{8});  // Elman in four forms and two precisions
  const auto newton = [&](std::ptrdiff_t from, std::ptrdiff_t to) {
    return std::ranges::count(all.begin() + from, all.begin() + to, "newton", &DeviceReport::form);
  };
  CHECK(newton(0, presets_from) >= 2);  // of a stepped recurrence at least
  CHECK_EQUAL(newton(presets_from, std::ssize(all)), std::ptrdiff_t{2});

  FaultyBackend another;
  DeviceCheck some{.length = 130, .only = {"diagonal", "elman"}, .cuda = &another};
  const auto asked = check_device(builtin_registry(), presets, {}, {}, some);
  CHECK(asked.size() > 8 && asked.size() < all.size());
  CHECK_EQUAL(std::ranges::count(asked, "elman", &DeviceReport::id), std::ptrdiff_t{8});
  some.only = {"elmann"};
  CHECK_ERROR(check_device(builtin_registry(), presets, {}, {}, some), "elman");

  const std::int64_t launches = device.machine().launches(), allocations = device.machine().allocations();
  device.machine().fail(Fault::allocation, allocations - 3);
  const auto refused = check_device(builtin_registry(), presets, {}, {}, check);
  CHECK_EQUAL(refused.size(), all.size());
  CHECK_EQUAL(std::ranges::count_if(refused, [](const DeviceReport& report) { return !report.agrees(); }), 1);
  CHECK_SAYS(refused.back().verdict().terminal_text().find("ran out of memory") != std::string::npos,
             refused.back().verdict().terminal_text());

  device.machine().fail(Fault::end, launches / 2);
  const auto lost = check_device(builtin_registry(), presets, {}, {}, check);
  CHECK(lost.size() < all.size() && !lost.back().agrees());
  CHECK_SAYS(lost.back().verdict().terminal_text().find(test::FaultyMachine::gone) != std::string::npos,
             lost.back().verdict().terminal_text());
  CHECK_ERROR(check_device(builtin_registry(), presets, {}, {}, check), "lost");

  const std::string csv = to_csv(lost);
  CHECK_EQUAL(std::ranges::count(csv, '\n'), std::ssize(lost) + 1);
  CHECK_SAYS(csv.find("\nprimitive,\"diagonal, real\",sequential,f64,") != std::string::npos, csv);
}

TEST_CASE("a run that is cancelled while it begins anew is cancelled") {
  FaultyBackend device;
  device.machine().fail(Fault::launch, 50);
  RunRequest request = request_for("lstm", 40);
  request.cuda = &device;
  request.device = "cuda";
  std::stop_source stop;
  stop.request_stop();
  CHECK(run(builtin_registry(), request, {}, stop.get_token()).trace->info.outcome == Outcome::cancelled);
}

TEST_CASE("the computer's memory may run out at every large allocation: an Error, and the next run has the same bits") {
  const RunRequest request = request_for("lstm", 120);
  run(builtin_registry(), request, {}, {});  // what is made once in a program is made
  memory_left = std::int64_t{1} << 40;
  const RunResult whole = run(builtin_registry(), request, {}, {});
  const std::int64_t large_ones = (std::int64_t{1} << 40) - memory_left;
  memory_left = -1;
  CHECK(large_ones > 100);
  int errors = 0;
  for (const std::int64_t at : thinned(large_ones, 60)) {
    memory_left = at - 1;
    std::string said;
    try {
      run(builtin_registry(), request, {}, {});
    } catch (const Error& error) {
      said = error.what();
    }
    memory_left = -1;
    CHECK_SAYS(said.find("memory ran out") != std::string::npos, "allocation " + std::to_string(at) + ": " + said);
    ++errors;
  }
  CHECK(errors > 30);
  CHECK_EQUAL(difference(run(builtin_registry(), request, {}, {}), whole), std::string());
}

namespace {

TrainingRequest training_for(const std::string& device, reclab::test::FaultyBackend* cuda) {
  TrainingRequest request;
  request.run = request_for("elman", 4);
  request.run.sequence = {};
  request.run.device = device;
  request.run.cuda = cuda;
  request.from.task = "adding";
  request.from.make.length = 6;
  request.steps = 12;
  request.options.batch = 2;
  request.options.rate.shape = schedule_shape("cosine");
  request.judge_every = 3;
  return request;
}

}  // namespace

TEST_CASE("a training whose device fails goes on on the CPU, from where it was last looked at, with its schedule and its history") {
  for (const std::int64_t kept_at : {std::int64_t{0}, std::int64_t{4}}) {
    FaultyBackend device;
    Training training(builtin_registry(), training_for("cuda", &device));
    CHECK_EQUAL(training.device(), std::string("cuda"));
    std::optional<TrainingState> state;
    for (int i = 0; i < 7; ++i) {
      training.advance();
      if (kept_at > 0 && training.trainer().steps() == kept_at) state = training.state();
    }
    const std::vector<TrainingStep> before = training.history();
    training.extend(3);
    device.machine().fail(Fault::end, 20);
    std::string said;
    try {
      training.advance();
    } catch (const DeviceError& error) {
      said = training.leave_device(builtin_registry(), error, state);
    }
    CHECK_SAYS(said.starts_with("The CUDA device was lost at step 8 of training") &&
                   said.find("goes on on the CPU, from step " + std::to_string(kept_at)) != std::string::npos,
               said);
    CHECK(training.device() == "cpu" && training.trainer().steps() == kept_at && training.request().steps == 15);
    CHECK_EQUAL(std::ssize(training.history()), kept_at);
    // What follows is the CPU's, of one that was begun with the same number of steps and extended in the same way.
    Training cpu(builtin_registry(), training_for("cpu", nullptr));
    cpu.extend(3);
    if (state) {
      Parameters now = training.model().parameters();
      for (const auto& entry : state->weights.entries()) CHECK(now.find(entry.name)->values == entry.values);
    } else {
      while (!cpu.done()) cpu.advance();
    }
    while (!training.done()) training.advance();
    CHECK_EQUAL(std::ssize(training.history()), std::int64_t{15});
    for (std::int64_t i = 0; i < 15; ++i) {
      const TrainingStep& step = training.history()[static_cast<std::size_t>(i)];
      if (i < kept_at) CHECK(step.loss == before[static_cast<std::size_t>(i)].loss);
      if (!state)
        CHECK(step.loss == cpu.history()[static_cast<std::size_t>(i)].loss && step.rate == cpu.history()[static_cast<std::size_t>(i)].rate);
      // Beside one that never left the CPU, to rounding.
      if (state && i < 7) CHECK(std::abs(step.loss - before[static_cast<std::size_t>(i)].loss) < 1e-9 * (1.0 + std::abs(step.loss)));
    }
    std::vector<std::int64_t> judged;
    for (const Evaluation& one : training.evaluations()) judged.push_back(one.step);
    CHECK(judged == (std::vector<std::int64_t>{0, 3, 6, 9, 12, 15}));
    CHECK_EQUAL(device.machine().asked_when_lost(), std::int64_t{0});
  }
}

TEST_CASE("auto is the CPU for float64, for small work and without a device, and CUDA for large float32") {
  FaultyBackend device;
  RunRequest request = request_for("lstm", 40, "sequential", "f32");
  request.device = "auto";
  request.cuda = &device;
  CHECK_EQUAL(run(builtin_registry(), request, {}, {}).trace->info.device, std::string("cpu"));
  CHECK(backend_for(request, [] { return Work{{1e12, 1e11, 100.0}, 1e11}; }).device() == Device::cuda);
  CHECK(backend_for(request, [] { return Work{{1e6, 1e6, 100.0}, 1e6}; }).device() == Device::cpu);
  request.dtype = "f64";
  CHECK(backend_for(request, []() -> Work { test::fail(__FILE__, __LINE__, "nobody needs to know"); }).device() == Device::cpu);
  request.dtype = "f32";
  request.cuda = nullptr;
  if (!cuda_backend()) CHECK(backend_for(request, [] { return Work{{1e12, 1e11, 100.0}, 1e11}; }).device() == Device::cpu);
  // As measured: a thousand steps of a small cell are launches, five hundred of one with a thousand units are products; a scan is worth it,
  // and the loop over the same sequence, which is one kernel, too; what takes the CPU a millisecond is not.
  CHECK(!worth_cuda({{3.7e7, 3.4e8, 11002.0}, 1.5e6}));       // an LSTM of 64 units
  CHECK(worth_cuda({{1.1e9, 1.05e10, 1503.0}, 8.2e6}));       // an Elman network of 1024
  CHECK(worth_cuda({{3.5e8, 2.3e9, 38.0}, 2.5e8}));           // S4D by a scan
  CHECK(worth_cuda({{2.2e8, 7.1e8, 38.0}, 2.5e8, 4096.0}));   // and step by step
  CHECK(!worth_cuda({{5.2e7, 1.4e7, 32.0}, 5.9e6, 1000.0}));  // an LRU of 64 units
  CHECK(!worth_cuda({{0.0, 0.0, 1.0}}));
}

TEST_CASE("where the scan and the chunkwise form are one kernel a run says so, and where they are two it does not") {
  FaultyBackend device;
  const auto said = [](const Trace& trace) {
    return std::ranges::any_of(trace.info.notes, [](const Sentence& note) {
      return note.terminal_text().find("the scan and the chunkwise form of this model are one kernel") != std::string::npos;
    });
  };
  for (const std::string form : {"scan", "chunkwise", "sequential"}) {
    RunRequest request = request_for("lru", 20, form);
    CHECK(!said(*run(builtin_registry(), request, {}, {}).trace));  // on the CPU
    request.device = "cuda";
    request.cuda = &device;
    const auto trace = run(builtin_registry(), request, {}, {}).trace;
    CHECK_EQUAL(trace->info.device, "cuda");
    CHECK_EQUAL(said(*trace), form != "sequential");
  }
  // With decays by head both are there too, and are made of other operations.
  RunRequest request = request_for("retnet", 24, "chunkwise");
  request.set.emplace_back("heads", "2");
  request.device = "cuda";
  request.cuda = &device;
  CHECK(!said(*run(builtin_registry(), request, {}, {}).trace));
}
