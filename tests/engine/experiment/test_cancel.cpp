// SPDX-License-Identifier: GPL-3.0-or-later
// A run ends within 100 ms of being asked to, at sizes where a single step, decomposition or matrix of weights takes far longer.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "algebra/eigen.h"
#include "analysis/product.h"
#include "array/backend.h"
#include "array/cpu/processor/threads.h"
#include "array/rng.h"
#include "array/stop.h"
#include "experiment/command/command.h"
#include "experiment/experiment.h"
#include "experiment/training/training.h"
#include "load.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double allowed = 0.5;  // computation takes several times as long under a sanitiser
#else
constexpr double allowed = 0.1;
#endif

/// Asks for a stop so long after something happened, and knows when.
class Stopper {
 public:
  /// `events`: how many happen() there are to be before the wait.
  Stopper(int events, std::chrono::milliseconds wait)
      : left_(events), thread_([this, wait] {
          std::unique_lock lock(guard_);
          happened_.wait(lock, [this] { return left_ <= 0; });
          lock.unlock();
          std::this_thread::sleep_for(wait);
          load_ = std::make_unique<test::Load>();
          source_.request_stop();
        }) {}
  void happen() {
    const std::lock_guard lock(guard_);
    --left_;
    happened_.notify_all();
  }
  std::stop_token token() const { return source_.get_token(); }
  /// Wall time from the request till now, beside what is allowed under the load that there was. What never came to its event is let go.
  /// Empty where it was in time.
  std::string late() {
    {
      const std::lock_guard lock(guard_);
      left_ = 0;
      happened_.notify_all();
    }
    thread_.join();
    return load_->end() <= load_->allowed(allowed) ? std::string() : load_->text(allowed);
  }

 private:
  std::mutex guard_;
  std::condition_variable happened_;
  int left_;
  std::stop_source source_;
  std::unique_ptr<test::Load> load_;
  std::jthread thread_;
};

RunRequest request_for(const std::string& architecture, std::vector<std::pair<std::string, std::string>> set, std::int64_t length,
                       const std::string& form = "sequential") {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  request.set = std::move(set);
  request.sequence = make_task("noise", {.length = length, .seed = 1});
  request.form = form;
  return request;
}

/// Stops the run so long after its `stage`-th publication (0: after its start).
RunResult check_stops(const RunRequest& request, int stage, int wait) {
  Stopper stopper(stage, std::chrono::milliseconds(wait));
  const RunResult result = run(builtin_registry(), request, {}, stopper.token(), [&](const TracePtr&) { stopper.happen(); });
  const std::string what =
      request.preset.id + " " + request.form + ", stage " + std::to_string(stage) + ", after " + std::to_string(wait) + " ms";
  CHECK_SAYS(result.trace->info.outcome == Outcome::cancelled, what + ": had ended");
  const std::string late = stopper.late();
  CHECK_SAYS(late.empty(), what + ": took " + late);
  return result;
}

}  // namespace

TEST_CASE("calls of parallel work that have not begun are left out when a stop is asked for, and the next work is whole") {
  std::stop_source source;
  std::atomic<int> begun{0};
  bool thrown = false;
  {
    const StopScope scope(source.get_token());
    try {
      cpu::parallel(1000, [&](std::int64_t) {
        if (++begun == 10) source.request_stop();
      });
    } catch (const Cancelled&) {
      thrown = true;
    }
  }
  CHECK(thrown);
  CHECK_SAYS(begun < 100, std::to_string(begun));
  begun = 0;
  cpu::parallel(1000, [&](std::int64_t) { ++begun; });
  CHECK_EQUAL(begun.load(), 1000);
  CHECK(!StopScope::current());
}

TEST_CASE("a copy looks for a stop, however small it is") {  // the Jacobian of one wide step makes thousands of them
  std::stop_source source;
  const StopScope scope(source.get_token());
  Backend& backend = cpu_backend();
  const double from = 1.0;
  double to = 0.0;
  backend.copy(&to, &from, sizeof to);
  CHECK_EQUAL(to, 1.0);
  source.request_stop();
  const auto stops = [](auto&& work) {
    try {
      work();
      return false;
    } catch (const Cancelled&) {
      return true;
    }
  };
  CHECK(stops([&] { backend.copy(&to, &from, sizeof to); }));
  CHECK(stops([&] { backend.zero(&to, sizeof to); }));
  CHECK_EQUAL(to, 1.0);
}

TEST_CASE("one decomposition and one product of large matrices stop in the middle") {
  constexpr std::int64_t n = 1024;
  Rng rng(1);
  std::vector<double> matrix(n * n);
  for (double& x : matrix) x = rng.normal() / std::sqrt(static_cast<double>(n));
  for (const bool product : {false, true}) {
    Stopper stopper(0, std::chrono::milliseconds(150));
    const StopScope scope(stopper.token());
    bool thrown = false;
    try {
      if (product) {
        JacobianProduct all(n);
        for (int i = 0; i < 20; ++i) {
          all.multiply(matrix);
          all.log10_smallest();
        }
      } else {
        for (int i = 0; i < 20; ++i) eigenvalues(matrix, n);
      }
    } catch (const Cancelled&) {
      thrown = true;
    }
    const std::string late = stopper.late();
    CHECK(thrown);
    CHECK_SAYS(late.empty(), (product ? "product: " : "eigenvalues: ") + late);
  }
}

TEST_CASE("the drawing of weights is stopped") {
  check_stops(request_for("elman", {{"width", "2048"}}, 20), 0, 300);
  check_stops(request_for("lstm", {{"width", "2048"}, {"layers", "4"}}, 20), 0, 60);
}

TEST_CASE("a wide model is stopped while its weights are drawn, looked at and copied") {
  for (int wait = 150; wait <= 750; wait += 100) check_stops(request_for("lstm", {{"width", "2048"}}, 300), 0, wait);
}

TEST_CASE("a run of a million steps is stopped at every stage") {
  for (const int wait : {20, 400, 1500}) check_stops(request_for("lstm", {}, 1000000), 0, wait);
}

TEST_CASE("a Newton form is stopped in the middle of an iteration") {
  // Whole, it takes many seconds, all of them in the one segment's iteration.
  for (const int wait : {100, 400})
    CHECK_EQUAL(check_stops(request_for("lstm", {{"width", "64"}}, 20000, "newton"), 0, wait).trace->info.sentence,
                "cancelled after 0 steps of 20000");
}

TEST_CASE("a wide run is stopped forward and back") {
  for (const int wait : {400, 1200, 2500}) check_stops(request_for("lstm", {{"width", "1024"}}, 600), 0, wait);
  for (const int wait : {300, 900}) check_stops(request_for("transformer", {{"width", "512"}}, 3000), 0, wait);
  for (const int wait : {300, 900}) check_stops(request_for("mamba", {{"width", "512"}, {"layers", "2"}}, 4000), 0, wait);
}

TEST_CASE("forms that take all steps at once are stopped") {
  for (const int wait : {300, 900}) check_stops(request_for("s4d", {{"width", "512"}}, 8000, "convolution"), 0, wait);
  for (const int wait : {300, 900}) check_stops(request_for("hyena", {{"width", "256"}}, 6000, "convolution"), 0, wait);
  for (const int wait : {300, 700, 900}) check_stops(request_for("lru", {{"width", "512"}, {"state", "1024"}}, 6000, "scan"), 0, wait);
  for (const int wait : {300, 900}) check_stops(request_for("gru", {{"width", "256"}}, 500, "newton"), 0, wait);
}

TEST_CASE("eigenvalues and products of Jacobians of a wide run are stopped") {
  RunRequest request = request_for("lstm", {{"width", "512"}}, 24);
  request.recording.kinds.remove({Kind::gradient});
  for (const int wait : {20, 500}) check_stops(request, 1, wait);
  request.recording.kinds.remove({Kind::spectrum});
  for (const int wait : {20, 700, 1500}) check_stops(request, 1, wait);
  request.recording = recording_of({"lyapunov"});  // all of them, however long they take
  for (const int wait : {20, 700, 1500}) check_stops(request, 1, wait);
}

TEST_CASE("a training is stopped in a step and in a judgement, and stands where it stood") {
  TrainingRequest request;
  request.run.preset.id = request.run.preset.architecture = "lstm";
  request.run.set = {{"width", "256"}};
  request.from.task = "adding";
  request.from.make.length = 400;
  request.options.batch = 32;
  request.options.held_out = 512;
  request.judge_every = 1;
  Training training(builtin_registry(), request);
  for (const int wait : {50, 400}) {
    Stopper stopper(0, std::chrono::milliseconds(wait));
    bool thrown = false;
    try {
      training.begin(stopper.token());
    } catch (const Cancelled&) {
      thrown = true;
    }
    const std::string late = stopper.late();
    CHECK(thrown && training.evaluations().empty());
    CHECK_SAYS(late.empty(), "the first judgement, after " + std::to_string(wait) + " ms: " + late);
  }
  training.begin();
  const auto weights = [&] {
    std::vector<double> all;
    const Parameters now = training.model().parameters();
    for (const auto& entry : now.entries()) all.insert(all.end(), entry.values.begin(), entry.values.end());
    return all;
  };
  auto before = weights();
  auto memory = training.trainer().optimiser().memory();
  // The step alone is measured, so that the stop comes in it, or in the evaluation after it.
  Training step_alone(builtin_registry(), request);
  const auto begin = std::chrono::steady_clock::now();
  step_alone.trainer().step();
  const auto step = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  const auto after = std::chrono::steady_clock::now();
  step_alone.trainer().evaluate();
  const auto judgement = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - after);
  // The machine is not equally fast each time: a step first, then places along the evaluation until the stop comes in one.
  std::int64_t at = 0;
  int judging = 0;
  for (int place = 0; place < 8 && judging == 0; ++place) {
    const auto wait = place == 0 ? step / 3 : step + judgement * place / 8;
    Stopper stopper(0, std::chrono::duration_cast<std::chrono::milliseconds>(wait));
    bool thrown = false;
    try {
      training.advance(stopper.token());
    } catch (const Cancelled&) {
      thrown = true;
    }
    const std::string late = stopper.late();
    CHECK_SAYS(late.empty(), "after " + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(wait).count()) +
                                 " ms of a step of " + std::to_string(step.count()) + ": " + late);
    if (!thrown) {  // it was faster than when it was measured: the step is made
      at = training.trainer().steps();
      before = weights();
      memory = training.trainer().optimiser().memory();
      continue;
    }
    judging += place > 0;
    CHECK_EQUAL(training.trainer().steps(), at);
    CHECK(std::ssize(training.history()) == at && std::ssize(training.evaluations()) == at + 1 && std::ssize(training.changes()) == at);
    CHECK(weights() == before && training.trainer().optimiser().memory() == memory && training.trainer().optimiser().steps() == at);
  }
  CHECK(judging > 0);
}
