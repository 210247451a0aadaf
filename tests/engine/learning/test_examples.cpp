// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/examples.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "array/error.h"
#include "test.h"

using namespace reclab;

namespace {

/// A sequence whose every value tells its step.
std::shared_ptr<Sequence> counting(std::int64_t length) {
  auto all = std::make_shared<Sequence>();
  all->name = "counting";
  all->length = length;
  all->width = 2;
  all->names = {"step", "minus"};
  for (std::int64_t t = 0; t < length; ++t) {
    all->input.insert(all->input.end(), {static_cast<double>(t), static_cast<double>(-t)});
    all->time.push_back(static_cast<double>(t));
  }
  return all;
}

}  // namespace

TEST_CASE("no window that is learned from reads a step that is held out, or has it as target, and none the other way round") {
  constexpr std::int64_t length = 200, split = 150;
  for (const std::int64_t ahead : {1, 7}) {
    const auto examples =
        window_examples(counting(length), {.length = 20, .ahead = ahead, .held_out = 0.25, .standardise = false, .seed = 3});
    double first = length, last = -1.0;
    std::set<double> begins;
    for (std::int64_t step = 0; step < 300; ++step) {
      const Sequence window = examples->training(step, step % 3);
      CHECK_EQUAL(window.length, 20);
      for (std::size_t t = 0; t < 20; ++t) {
        CHECK_EQUAL(window.target[2 * t], window.input[2 * t] + static_cast<double>(ahead));
        CHECK_EQUAL(window.target[2 * t + 1], window.input[2 * t + 1] - static_cast<double>(ahead));
      }
      begins.insert(window.input[0]);
      first = std::min(first, window.input[0]);
      last = std::max(last, window.target[38]);
    }
    CHECK_EQUAL(first, 0.0);
    CHECK_EQUAL(last, static_cast<double>(split - 1));  // and every step of the part is used
    CHECK(begins.size() > 60);
    double low = length, high = -1.0;
    for (std::int64_t i = 0; i < 2 * examples->held_out_count(); ++i) {
      const Sequence window = examples->held_out(i);
      low = std::min(low, window.input[0]);
      high = std::max(high, window.target[38]);
    }
    CHECK(low >= static_cast<double>(split));
    CHECK(high <= static_cast<double>(length - 1));
  }
}

TEST_CASE("what is held out does not take part in mean and deviation") {
  auto changed = counting(200);
  for (std::size_t t = 2 * 160; t < changed->input.size(); ++t) changed->input[t] *= 1e6;
  const WindowOptions options{.length = 10, .held_out = 0.2, .seed = 1};
  const auto one = window_examples(counting(200), options), other = window_examples(changed, options);
  for (std::int64_t step = 0; step < 20; ++step) {
    CHECK(one->training(step, 0).input == other->training(step, 0).input);
    CHECK(one->training(step, 0).target == other->training(step, 0).target);
  }
  CHECK(one->held_out(0).input != other->held_out(0).input);
  const Sequence window = one->training(0, 0);
  CHECK_CLOSE(window.mean[0], 79.5, 1e-12);
  CHECK_CLOSE(window.deviation[0], std::sqrt((160.0 * 160.0 - 1.0) / 12.0), 1e-12);
}

TEST_CASE("a target of the sequence's own is that of each window, standardised as the inputs are") {
  auto all = counting(100);
  all->target_kind = TargetKind::regress;
  all->target_width = 1;
  for (std::int64_t t = 0; t < 100; ++t) {
    all->target.push_back(static_cast<double>(10 * t));
    all->mask.push_back(t % 2 ? 1.0 : 0.0);
  }
  const auto examples = window_examples(all, {.length = 8, .held_out = 0.5, .seed = 2});
  const Sequence window = examples->training(4, 1);
  const double mean = 245.0, deviation = 10.0 * std::sqrt((50.0 * 50.0 - 1.0) / 12.0);
  for (std::size_t t = 0; t < 8; ++t) {
    CHECK_CLOSE(window.target[t], (10.0 * window.time[t] - mean) / deviation, 1e-12);
    CHECK_EQUAL(window.mask[t], std::fmod(window.time[t], 2.0));
  }
}

TEST_CASE("a task is made anew for every example, the same for the same seed") {
  const auto one = task_examples("adding", {.length = 20, .seed = 5}), again = task_examples("adding", {.length = 20, .seed = 5}),
             other = task_examples("adding", {.length = 20, .seed = 6});
  std::set<std::string> seen;
  for (std::int64_t step = 0; step < 10; ++step)
    for (std::int64_t index = 0; index < 4; ++index) {
      const Sequence sequence = one->training(step, index);
      CHECK(sequence.input == again->training(step, index).input);
      CHECK(sequence.input != other->training(step, index).input);
      CHECK(seen.insert(sequence.sha256).second);
    }
  for (std::int64_t index = 0; index < 40; ++index) CHECK(seen.insert(one->held_out(index).sha256).second);
}

TEST_CASE("a sequence that is too short for its windows is refused, with what would fit") {
  CHECK_ERROR(window_examples(counting(100), {.length = 21, .held_out = 0.2}), "choose a shorter window");
  CHECK_ERROR(window_examples(counting(100), {.length = 20, .ahead = 1, .held_out = 0.2}), "80 to learn from, 20 held out");
  CHECK_ERROR(window_examples(counting(100), {.length = 0}), "window = 0");
  CHECK_ERROR(window_examples(counting(100), {.length = 5, .ahead = 0}), "ahead = 0");
  CHECK_ERROR(window_examples(counting(100), {.length = 5, .held_out = 1.0}), "held-out");
  window_examples(counting(100), {.length = 19, .ahead = 1, .held_out = 0.2});
}
