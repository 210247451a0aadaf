// SPDX-License-Identifier: GPL-3.0-or-later
// Forward propagation through time with a running mean, against the update that its authors' code makes of the same gradients, on the host.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "array/error.h"
#include "array/host.h"
#include "learning/learning_rule.h"
#include "learning/trainer.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

struct Course {
  std::unique_ptr<Examples> examples;
  Sequence first;
  std::unique_ptr<Model> model;
  std::unique_ptr<Trainer> trainer;

  explicit Course(const TrainingOptions& options, const std::string& id = "gru", DType type = DType::f64)
      : examples(task_examples("parity", {.length = 24, .seed = 4})), first(examples->training(0, 0)) {
    const Architecture& architecture = builtin_registry().find(id);
    const Hyper hyper = hyper_of(builtin_registry(), test::preset_of(id), test::small_settings(test::preset_of(id)));
    const std::int64_t head = SequenceLoss(LossKind::task, first).outputs();
    const Parameters parameters = Network(architecture, hyper, {.input = first.width, .head = head}).initialise(2);
    model = std::make_unique<Model>(architecture, hyper, parameters, cpu_backend(), type);
    trainer = std::make_unique<Trainer>(*model, *examples, options);
  }
  std::map<std::string, std::vector<double>> weights() const {
    std::map<std::string, std::vector<double>> all;
    const Parameters now = model->parameters();
    for (const auto& entry : now.entries()) all[entry.name] = entry.values;
    return all;
  }
};

TrainingOptions options_of(const std::string& rule, std::int64_t truncate) {
  TrainingOptions options;
  options.rule = rule;
  options.truncate = truncate;
  options.batch = 3;
  options.held_out = 3;
  options.optimiser = {"sgd", {}};
  options.rate.rate = 0.05;
  options.fptt_alpha = 0.3;
  options.fptt_beta = 0.4;
  return options;
}

/// The largest difference of two sets of weights.
double between(const std::map<std::string, std::vector<double>>& a, const std::map<std::string, std::vector<double>>& b) {
  double largest = 0.0;
  for (const auto& [name, values] : a)
    for (std::size_t i = 0; i < values.size(); ++i) largest = std::max(largest, std::abs(values[i] - b.at(name)[i]));
  return largest;
}

/// The update of the authors' code (post_optimizer_updates and get_regularizer_named_params with rho = 0) around stochastic gradient
/// descent: lambda -= alpha (w - m), m = (1 - beta) m + beta w - beta / alpha lambda, with the regulariser's gradient alpha (w - m) -
/// lambda.
class AuthorsUpdate {
 public:
  AuthorsUpdate(const TrainingOptions& options, std::map<std::string, std::vector<double>> start)
      : alpha_(options.fptt_alpha), beta_(options.fptt_beta), rate_(options.rate.rate), weights_(std::move(start)), mean_(weights_) {
    for (const auto& [name, values] : weights_) lambda_[name].resize(values.size());
  }
  const std::map<std::string, std::vector<double>>& weights() const { return weights_; }
  const std::map<std::string, std::vector<double>>& mean() const { return mean_; }
  void change(const std::string& name, const std::vector<double>& gradient) {
    std::vector<double>&w = weights_.at(name), &m = mean_.at(name), &l = lambda_.at(name);
    for (std::size_t i = 0; i < w.size(); ++i) {
      w[i] -= rate_ * (gradient[i] + alpha_ * (w[i] - m[i]) - l[i]);
      l[i] -= alpha_ * (w[i] - m[i]);
      m[i] = (1.0 - beta_) * m[i] + beta_ * w[i] - beta_ / alpha_ * l[i];
    }
  }

 private:
  double alpha_, beta_, rate_;
  std::map<std::string, std::vector<double>> weights_, mean_, lambda_;
};

}  // namespace

TEST_CASE("the weights go as by the authors' code") {
  for (const std::int64_t truncate : {1, 5, 1000}) {
    const TrainingOptions options = options_of("fptt", truncate);
    Course course(options), gradients(options_of("bptt", truncate));
    AuthorsUpdate wanted(options, course.weights());
    TrainingOptions plain = options_of("bptt", truncate);
    const std::deque<Sequence> shapes(3, gradients.first);
    const auto rule = make_learning_rule({*gradients.model, plain, gradients.first.length, shapes});
    int changes = 0;
    for (std::int64_t step = 0; step < 6; ++step) {
      std::deque<Sequence> batch;
      for (std::int64_t b = 0; b < 3; ++b) batch.push_back(gradients.examples->training(step, b));
      rule->begin(batch, step + 1);
      while (rule->left()) {
        if (!rule->learn({}).counts) continue;
        ++changes;
        for (std::size_t i = 0; i < gradients.model->weights().size(); ++i) {
          std::vector<double> gradient =
              to_double(cpu_backend(), DType::f64, rule->gradients()[i].data(), gradients.model->weights()[i].entries());
          for (double& one : gradient) one /= 3.0;
          wanted.change(gradients.model->weights()[i].name, gradient);
        }
        for (const auto& [name, values] : wanted.weights()) gradients.model->set(name, values);
      }
      course.trainer->step();
      CHECK(between(course.weights(), wanted.weights()) < 1e-13);
    }
    CHECK(changes >= 6);
    const auto kept = course.trainer->memory();
    for (const auto& [name, values] : wanted.mean())
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(std::abs(kept.at("running-mean/" + name)[i] - values[i]) < 1e-13);
  }
}

TEST_CASE("without the mean it is truncated backpropagation") {
  TrainingOptions options = options_of("fptt", 5), plain = options_of("bptt", 5);
  options.fptt_alpha = 0.0;
  Course course(options), truncated(plain);
  for (int step = 0; step < 4; ++step) {
    course.trainer->step();
    truncated.trainer->step();
  }
  CHECK(course.weights() == truncated.weights());
}

TEST_CASE("the mean is undone and restored with the weights") {
  const TrainingOptions options = options_of("fptt", 5);
  Course course(options), whole(options);
  for (int step = 0; step < 3; ++step) whole.trainer->step();
  course.trainer->step();
  course.trainer->step({}, true);
  course.trainer->undo();
  course.trainer->step();
  Course other(options);
  for (const auto& [name, values] : course.weights()) other.model->set(name, values);
  other.trainer->restore(2, course.trainer->optimiser().steps(), course.trainer->memory());
  other.trainer->step();
  CHECK(other.weights() == whole.weights());
  CHECK(other.trainer->memory() == whole.trainer->memory());
  CHECK(whole.trainer->memory_entries().size() == 2 * whole.model->weights().size());
  // What is missing is said, and nothing is changed.
  auto memory = whole.trainer->memory();
  const std::string gone = memory.begin()->first;
  memory.erase(memory.begin());
  CHECK_ERROR(other.trainer->restore(3, 3, memory), gone);
}

TEST_CASE("a weight that is frozen has no mean") {
  TrainingOptions options = options_of("fptt", 5);
  options.frozen = {"head/*"};
  Course course(options);
  const auto before = course.weights();
  course.trainer->step();
  bool frozen = false;
  for (const auto& [name, values] : course.weights()) {
    if (!name.starts_with("head/")) continue;
    frozen = true;
    CHECK(values == before.at(name));
    CHECK(!course.trainer->memory().contains("running-mean/" + name));
  }
  CHECK(frozen);
}

TEST_CASE("what it cannot take is said") {
  TrainingOptions options = options_of("fptt", 5);
  options.advance = 2;
  CHECK_ERROR(Course{options}, "advance");
  options = options_of("fptt", 5);
  options.fptt_beta = 1.5;
  CHECK_ERROR(Course{options}, "fptt_beta");
}
