// SPDX-License-Identifier: GPL-3.0-or-later
// That a batch in parts, a thread each, is the batch: the same loss and gradients as side by side, the same bits on any number of threads,
// and the first value that is not finite, in whichever part it is.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "array/error.h"
#include "execution/batch_rollout.h"
#include "learning/losses.h"
#include "models/registry.h"
#include "one_processor.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t T = 12, B = 40;

struct Examples {
  std::deque<Sequence> sequences;
  std::deque<SequenceLoss> losses;
  std::vector<Example> all;

  explicit Examples(std::uint64_t seed) {
    for (std::int64_t b = 0; b < B; ++b)
      sequences.push_back(make_task("adding", {.length = T, .seed = seed + static_cast<std::uint64_t>(b)}));
    for (const Sequence& sequence : sequences) all.push_back({&sequence, &losses.emplace_back(LossKind::task, sequence)});
  }
};

Parameters start_of(const Architecture& architecture, const Hyper& hyper, const Examples& examples) {
  return Network(architecture, hyper, {.input = examples.sequences[0].width, .head = examples.losses[0].outputs()}).initialise(1);
}

std::vector<double> numbers(const Model& model, double loss, std::span<const DeviceArray> gradients) {
  std::vector<double> all{loss};
  for (const DeviceArray& gradient : gradients) {
    const auto own = to_double(model.backend(), model.real(), gradient.data(), gradient.entries());
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

struct Case {
  const char* id;
  Form form;
};
constexpr Case cases[] = {{"lstm", Form::sequential}, {"gru", Form::sequential}, {"mamba", Form::scan}, {"transformer", Form::attention}};

std::vector<double> in_parts(const Case& one, DType real) {
  const Architecture& architecture = builtin_registry().find(one.id);
  const Hyper hyper(architecture.hyper);
  const Examples first(1), second(1000);
  const Model model(architecture, hyper, start_of(architecture, hyper, first), cpu_backend(), real);
  BatchRollout rollout(model, Batch(first.all), one.form);
  CHECK_EQUAL(rollout.parts(), 2);
  std::vector<double> all;
  for (const Examples* examples : {&first, &second}) {
    rollout.set_batch(Batch(examples->all));
    CHECK(!rollout.forward({}));
    CHECK(!rollout.backward({}));
    const auto own = numbers(model, rollout.loss(), rollout.device_gradients());
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

std::vector<double> of_all() {
  std::vector<double> all;
  for (const Case& one : cases) {
    const auto own = in_parts(one, DType::f32);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace

TEST_CASE("a batch in parts has the loss and the gradients of the batch") {
  for (const Case& one : cases) {
    const Architecture& architecture = builtin_registry().find(one.id);
    const Hyper hyper(architecture.hyper);
    const Examples first(1), second(1000);
    const Model model(architecture, hyper, start_of(architecture, hyper, first), cpu_backend(), DType::f64);
    Rollout whole(model, Batch(first.all), {.form = one.form, .record = false, .gradients = GradientsOn::device});
    std::vector<double> expected;
    for (const Examples* examples : {&first, &second}) {
      whole.set_batch(Batch(examples->all));
      CHECK(!whole.forward({}, {}));
      CHECK(!whole.backward({}, {}));
      const auto own = numbers(model, whole.loss(), whole.device_gradients());
      expected.insert(expected.end(), own.begin(), own.end());
    }
    const auto found = in_parts(one, DType::f64);
    CHECK_EQUAL(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK_CLOSE(found[i], expected[i], 1e-12 * std::max(1.0, std::abs(expected[i])));
  }
}

TEST_CASE("parts at the same time give the bits of parts one after the other, every time") {
  for (const Case& one : cases) {
    const Architecture& architecture = builtin_registry().find(one.id);
    const Hyper hyper(architecture.hyper);
    const Examples examples(1);
    const Model model(architecture, hyper, start_of(architecture, hyper, examples), cpu_backend(), DType::f32);
    double loss = 0.0;
    std::vector<DeviceArray> sums;
    for (int part = 0; part < 2; ++part) {
      Rollout rollout(model, Batch(std::vector<Example>(examples.all.begin() + part * B / 2, examples.all.begin() + (part + 1) * B / 2)),
                      {.form = one.form, .record = false, .gradients = GradientsOn::device});
      CHECK(!rollout.forward({}, {}));
      CHECK(!rollout.backward({}, {}));
      loss += rollout.loss();
      for (std::size_t i = 0; i < rollout.device_gradients().size(); ++i) {
        const DeviceArray& own = rollout.device_gradients()[i];
        if (part == 0) sums.emplace_back(cpu_backend(), DType::f32, own.entries());
        cpu_backend().add_scaled(DType::f32, own.entries(), 0, own.data(), sums[i].data(), part > 0);
      }
    }
    const auto expected = numbers(model, loss, sums);
    BatchRollout rollout(model, Batch(examples.all), one.form);
    for (int again = 0; again < 20; ++again) {
      CHECK(!rollout.forward({}));
      CHECK(!rollout.backward({}));
      CHECK_SAYS(numbers(model, rollout.loss(), rollout.device_gradients()) == expected, one.id);
    }
  }
}

TEST_CASE("the parts of a batch give the same bits on any number of threads") {
  const std::vector<double> here = of_all();
  for (const int threads : {1, 3, 64}) CHECK_SAYS(test::on_threads(threads, "writes what the parts gave") == here, std::to_string(threads));
}

TEST_CASE("writes what the parts gave") { test::write_numbers(of_all); }

TEST_CASE("the first value that is not finite is told of whichever part it is in") {
  const Architecture& architecture = builtin_registry().find("elman");
  const Hyper hyper(architecture.hyper);
  Examples examples(1);
  const Model model(architecture, hyper, start_of(architecture, hyper, examples), cpu_backend(), DType::f64);
  BatchRollout rollout(model, Batch(examples.all), Form::sequential);
  CHECK(!rollout.forward({}));
  const auto spoil = [&](std::int64_t b, std::int64_t t) {
    examples.sequences[static_cast<std::size_t>(b)].input[static_cast<std::size_t>(t * examples.sequences[0].width)] =
        std::numeric_limits<double>::infinity();
  };
  spoil(3, 9);
  spoil(B - 1, 5);
  rollout.set_batch(Batch(examples.all));
  const auto bad = rollout.forward({});
  CHECK(bad.has_value());
  CHECK_EQUAL(bad->step, 5);
  CHECK_EQUAL(bad->array, "input");
}

TEST_CASE("a batch of another size is refused") {
  const Architecture& architecture = builtin_registry().find("elman");
  const Hyper hyper(architecture.hyper);
  const Examples examples(1);
  const Model model(architecture, hyper, start_of(architecture, hyper, examples), cpu_backend(), DType::f64);
  BatchRollout rollout(model, Batch(examples.all), Form::sequential);
  CHECK_ERROR(rollout.set_batch(Batch(std::vector<Example>(examples.all.begin(), examples.all.begin() + 3))), "made for 40");
}
