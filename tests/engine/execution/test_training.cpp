// SPDX-License-Identifier: GPL-3.0-or-later
// That training can stand on a model, its batches and its gradients on the device: plain gradient descent, held against a loop that has
// none of them, and against itself on another number of threads.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "execution/rollout.h"
#include "learning/losses.h"
#include "models/registry.h"
#include "one_processor.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t T = 20, B = 16;
constexpr int steps = 40;
constexpr double rate = 0.1;

/// The batch of a step: other sequences at each.
struct Examples {
  std::deque<Sequence> sequences;
  std::deque<SequenceLoss> losses;
  std::vector<Example> all;

  explicit Examples(int step) {
    for (std::int64_t b = 0; b < B; ++b) {
      sequences.push_back(make_task("adding", {.length = T, .seed = static_cast<std::uint64_t>(1 + step * B + b)}));
      losses.emplace_back(LossKind::task, sequences.back());
      all.push_back({&sequences.back(), &losses.back()});
    }
  }
};
const Examples& held_out() {
  static const Examples examples(1000);
  return examples;
}

struct Trained {
  std::vector<double> losses;        ///< of the batch of each step, the mean of its sequences
  double before = 0.0, after = 0.0;  ///< of sequences that were never trained on
  Parameters weights;
};

Parameters start_of(const Architecture& architecture, const Hyper& hyper) {
  const Examples first(0);
  return Network(architecture, hyper, {.input = first.sequences[0].width, .head = first.losses[0].outputs()}).initialise(1);
}

/// One model, one rollout, all of a step on the device.
Trained trained_in_place(const Architecture& architecture, const Hyper& hyper) {
  Trained result;
  Model model(architecture, hyper, start_of(architecture, hyper), cpu_backend(), DType::f64);
  Rollout rollout(model, Batch(held_out().all), {.record = false, .gradients = GradientsOn::device});
  const auto loss = [&] {
    CHECK(!rollout.forward({}, {}));
    return rollout.loss() / static_cast<double>(B);
  };
  result.before = loss();
  std::int64_t arrays = 0;
  for (int step = 0; step < steps; ++step) {
    const Examples examples(step);
    rollout.set_batch(Batch(examples.all));
    result.losses.push_back(loss());
    CHECK(!rollout.backward({}, {}));
    model.add(-rate / static_cast<double>(B), rollout.device_gradients());
    // The first step takes all memory that there is to take.
    if (step == 0) arrays = cpu_backend().account().arrays();
    CHECK_EQUAL(cpu_backend().account().arrays(), arrays);
  }
  rollout.set_batch(Batch(held_out().all));
  result.after = loss();
  result.weights = model.parameters();
  return result;
}

/// The same with what there was before: a model and a rollout for each sequence of each step, weights that change on the host.
Trained trained_plainly(const Architecture& architecture, const Hyper& hyper) {
  Trained result;
  Parameters weights = start_of(architecture, hyper);
  for (int step = 0; step < steps; ++step) {
    const Examples examples(step);
    std::map<std::string, std::vector<double>> sums;
    double loss = 0.0;
    for (const Example& example : examples.all) {
      const Model model(architecture, hyper, weights, cpu_backend(), DType::f64);
      Rollout rollout(model, Batch(*example.sequence, *example.loss), {});
      CHECK(!rollout.forward({}, {}));
      CHECK(!rollout.backward({}, {}));
      loss += rollout.loss();
      for (const auto& [name, values] : rollout.parameter_gradients()) {
        auto& sum = sums[name];
        sum.resize(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
      }
    }
    result.losses.push_back(loss / static_cast<double>(B));
    for (auto& entry : weights.entries())
      for (std::size_t i = 0; i < entry.values.size(); ++i) entry.values[i] -= rate / static_cast<double>(B) * sums.at(entry.name)[i];
  }
  result.weights = weights;
  return result;
}

std::vector<double> all_numbers(const Trained& trained) {
  std::vector<double> all = trained.losses;
  all.insert(all.end(), {trained.before, trained.after});
  for (const auto& entry : trained.weights.entries()) all.insert(all.end(), entry.values.begin(), entry.values.end());
  return all;
}

constexpr const char* models[] = {"elman", "lstm"};

/// Everything that training all of them makes.
std::vector<double> trained() {
  std::vector<double> numbers;
  for (const char* id : models) {
    const Architecture& architecture = builtin_registry().find(id);
    const auto own = all_numbers(trained_in_place(architecture, Hyper(architecture.hyper)));
    numbers.insert(numbers.end(), own.begin(), own.end());
  }
  return numbers;
}

}  // namespace

TEST_CASE("gradient descent in place lowers the loss and is what a plain loop does") {
  for (const char* id : models) {
    const Architecture& architecture = builtin_registry().find(id);
    const Hyper hyper(architecture.hyper);
    const Trained here = trained_in_place(architecture, hyper), plain = trained_plainly(architecture, hyper);
    CHECK_SAYS(here.after < 0.5 * here.before,
               std::string(id) + ": the loss is " + test::show(here.after) + ", was " + test::show(here.before));
    for (std::size_t i = 0; i < here.losses.size(); ++i) CHECK_CLOSE(here.losses[i], plain.losses[i], 1e-10);
    for (std::size_t e = 0; e < here.weights.entries().size(); ++e) {
      const auto& own = here.weights.entries()[e];
      const auto& other = plain.weights.entries()[e];
      CHECK_EQUAL(own.name, other.name);
      for (std::size_t i = 0; i < own.values.size(); ++i) CHECK_CLOSE(own.values[i], other.values[i], 1e-10);
    }
  }
}

TEST_CASE("one thread and several train the same weights to the bit") {
  CHECK(test::on_one_processor("writes what was trained") == trained());
}

TEST_CASE("writes what was trained") { test::write_numbers(trained); }
