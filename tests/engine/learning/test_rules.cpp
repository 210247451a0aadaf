// SPDX-License-Identifier: GPL-3.0-or-later
// Learning rules: real-time recurrent learning against the equations of Williams and Zipser written out, where weights change at every
// step; tests/engine/sweeps/learning has it against backpropagation, which has the same gradients where they stay.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "array/error.h"
#include "learning/learning_rule.h"
#include "learning/trainer.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

struct Learner {
  std::unique_ptr<Examples> examples;
  Sequence first;
  std::unique_ptr<Model> model;
  std::unique_ptr<Trainer> trainer;

  Learner(const std::string& id, const TrainingOptions& options, std::int64_t length = 12, const std::string& task = "adding",
          const test::Settings& set = {})
      : examples(task_examples(task, {.length = length, .seed = 4})), first(examples->training(0, 0)) {
    const Architecture& architecture = builtin_registry().find(id);
    const Preset preset = test::preset_of(id);
    const Hyper hyper = hyper_of(builtin_registry(), preset, set.empty() ? test::small_settings(preset) : set);
    const std::int64_t head = SequenceLoss(LossKind::task, first).outputs();
    const Parameters parameters = Network(architecture, hyper, {.input = first.width, .head = head}).initialise(2);
    model = std::make_unique<Model>(architecture, hyper, parameters, cpu_backend(), DType::f64);
    trainer = std::make_unique<Trainer>(*model, *examples, options);
  }
  std::vector<double> numbers() const {
    std::vector<double> all;
    const Parameters now = model->parameters();
    for (const auto& entry : now.entries()) all.insert(all.end(), entry.values.begin(), entry.values.end());
    return all;
  }
};

TrainingOptions by(const std::string& rule) {
  TrainingOptions options;
  options.rule = rule;
  options.batch = 3;
  options.held_out = 3;
  options.optimiser = {"sgd", {}};
  options.rate.rate = 0.05;
  return options;
}

/// An Elman network and its linear output, trained on-line after equations 2.10 to 2.13 of Williams and Zipser (1989), with the sum over
/// the batch's sequences in place of their one: h = tanh(Wx x + bx + Wh h + bh), y = V h + c.
class WilliamsZipser {
 public:
  WilliamsZipser(const Parameters& start, double rate, std::int64_t batch) : rate_(rate), batch_(batch) {
    for (const auto& entry : start.entries()) {
      names_.push_back(entry.name);
      shapes_.push_back(entry.shape);
      first_.push_back(weights_.size());
      weights_.insert(weights_.end(), entry.values.begin(), entry.values.end());
    }
    n_ = static_cast<std::size_t>(shapes_[find("0/weight_hh")][0]);
  }
  const std::vector<double>& weights() const { return weights_; }

  void learn(const std::vector<Sequence>& sequences) {
    const std::size_t p = weights_.size();
    std::vector<std::vector<double>> h(sequences.size(), std::vector<double>(n_)), P(sequences.size(), std::vector<double>(n_ * p));
    for (std::int64_t t = 0; t < sequences[0].length; ++t) {
      std::vector<double> gradient(p);
      bool counts = false;
      for (std::size_t b = 0; b < sequences.size(); ++b) counts |= one(sequences[b], t, h[b], P[b], gradient);
      if (!counts) continue;
      for (std::size_t k = 0; k < p; ++k) weights_[k] -= rate_ * gradient[k] / static_cast<double>(batch_);
    }
  }

 private:
  std::size_t find(const std::string& name) const {
    const auto at = std::ranges::find(names_, name);
    CHECK_SAYS(at != names_.end(), name);
    return static_cast<std::size_t>(at - names_.begin());
  }
  std::size_t at(const std::string& name, std::size_t i, std::size_t j = 0) const {
    const std::size_t which = find(name);
    const auto columns = shapes_[which].size() > 1 ? static_cast<std::size_t>(shapes_[which][1]) : 1;
    return first_[which] + i * columns + j;
  }

  bool one(const Sequence& sequence, std::int64_t t, std::vector<double>& h, std::vector<double>& P, std::vector<double>& gradient) const {
    const std::size_t p = weights_.size();
    const auto width = static_cast<std::size_t>(sequence.width);
    const double* x = sequence.input.data() + static_cast<std::size_t>(t) * width;
    std::vector<double> next(n_), moved(n_ * p);
    for (std::size_t i = 0; i < n_; ++i) {
      double net = weights_[at("0/bias_ih", i)] + weights_[at("0/bias_hh", i)];
      for (std::size_t j = 0; j < width; ++j) net += weights_[at("0/weight_ih", i, j)] * x[j];
      for (std::size_t j = 0; j < n_; ++j) net += weights_[at("0/weight_hh", i, j)] * h[j];
      next[i] = std::tanh(net);
      const double slope = 1.0 - next[i] * next[i];
      for (std::size_t k = 0; k < p; ++k)
        for (std::size_t j = 0; j < n_; ++j) moved[i * p + k] += slope * weights_[at("0/weight_hh", i, j)] * P[j * p + k];
      moved[i * p + at("0/bias_ih", i)] += slope;
      moved[i * p + at("0/bias_hh", i)] += slope;
      for (std::size_t j = 0; j < width; ++j) moved[i * p + at("0/weight_ih", i, j)] += slope * x[j];
      for (std::size_t j = 0; j < n_; ++j) moved[i * p + at("0/weight_hh", i, j)] += slope * h[j];
    }
    h = next;
    P = moved;
    if (sequence.mask[static_cast<std::size_t>(t)] == 0.0) return false;
    double weight = 0.0;  // of a step: one of those that count
    for (const double m : sequence.mask) weight += m;
    const auto outputs = static_cast<std::size_t>(sequence.target_width);
    for (std::size_t o = 0; o < outputs; ++o) {
      double y = weights_[at("head/bias", o)];
      for (std::size_t i = 0; i < n_; ++i) y += weights_[at("head/weight", o, i)] * h[i];
      // The squared error is half the square, as a step's share of the mean over those that count.
      const double error = (y - sequence.target[static_cast<std::size_t>(t) * outputs + o]) / weight;
      gradient[at("head/bias", o)] += error;
      for (std::size_t i = 0; i < n_; ++i) {
        gradient[at("head/weight", o, i)] += error * h[i];
        for (std::size_t k = 0; k < p; ++k) gradient[k] += error * weights_[at("head/weight", o, i)] * P[i * p + k];
      }
    }
    return true;
  }

  double rate_;
  std::int64_t batch_;
  std::size_t n_ = 0;
  std::vector<std::string> names_;
  std::vector<Shape> shapes_;
  std::vector<std::size_t> first_;
  std::vector<double> weights_;
};

}  // namespace

TEST_CASE("weights that change at every step learn by the equations of Williams and Zipser") {
  for (const std::string task : {"adding", "mackey-glass"}) {
    TrainingOptions options = by("rtrl");
    options.advance = 1;
    Learner learner("elman", options, 9, task, {{"width", "5"}});
    CHECK_EQUAL(learner.trainer->changes_per_step(), 9);
    WilliamsZipser plain(learner.model->parameters(), options.rate.rate, options.batch);
    for (std::int64_t step = 0; step < 4; ++step) {
      std::vector<Sequence> batch;
      for (std::int64_t b = 0; b < options.batch; ++b) batch.push_back(learner.examples->training(step, b));
      learner.trainer->step();
      plain.learn(batch);
    }
    const auto own = learner.numbers();
    CHECK_EQUAL(own.size(), plain.weights().size());
    for (std::size_t i = 0; i < own.size(); ++i) CHECK_CLOSE(own[i], plain.weights()[i], 1e-11);
  }
}

TEST_CASE("what real-time recurrent learning cannot do is said by name") {
  TrainingOptions options = by("rtrl");
  options.truncate = 3;
  CHECK_ERROR(Learner("elman", options), "nothing to truncate");
  options.truncate = 0;
  CHECK_ERROR(Learner("transformer", options), "grows with the sequence");
  options.batch = 1 << 18;
  CHECK_ERROR(Learner("elman", options), "choose a narrower model, or a smaller batch");
  CHECK_ERROR(Learner("elman", by("rtlr")), "there is no learning rule \"rtlr\": choose bptt, rbp, rtrl, ");
}

TEST_CASE("real-time recurrent learning that is stopped within a sequence leaves the weights as they were") {
  TrainingOptions options = by("rtrl");
  options.advance = 2;
  Learner learner("gru", options, 40);
  const auto before = learner.numbers();
  std::stop_source source;
  source.request_stop();
  bool stopped = false;
  try {
    learner.trainer->step(source.get_token());
  } catch (const Cancelled&) {
    stopped = true;
  }
  CHECK(stopped && learner.numbers() == before && learner.trainer->steps() == 0);
}
