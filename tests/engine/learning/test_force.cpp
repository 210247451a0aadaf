// SPDX-License-Identifier: GPL-3.0-or-later
// FORCE: without feedback against the closed form of its least squares, with feedback against its equations written out.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <span>
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

using Vector = std::vector<double>;
constexpr std::size_t units = 14, n = units + 1;  // n: the regressors with the 1 of the bias

struct Reservoir {
  std::unique_ptr<Examples> examples;
  std::unique_ptr<Model> model;
  std::unique_ptr<Trainer> trainer;

  Reservoir(const TrainingOptions& options, const std::string& task, std::int64_t length, const test::Settings& further,
            const std::string& id = "echo-state")
      : examples(task_examples(task, {.length = length, .seed = 4})) {
    const Architecture& architecture = builtin_registry().find(id);
    test::Settings set{{"width", "14"}};
    if (id == "echo-state") set.insert(set.end(), {{"density", "0.5"}, {"readout", "drawn"}, {"bias_scaling", "0.3"}});
    set.insert(set.end(), further.begin(), further.end());
    const Hyper hyper = hyper_of(builtin_registry(), test::preset_of(id), set);
    const Sequence first = examples->training(0, 0);
    const std::int64_t head = SequenceLoss(LossKind::task, first).outputs();
    model = std::make_unique<Model>(architecture, hyper, Network(architecture, hyper, {.input = first.width, .head = head}).initialise(2),
                                    cpu_backend(), DType::f64);
    trainer = std::make_unique<Trainer>(*model, *examples, options);
  }
  std::map<std::string, std::vector<double>> weights() const {
    std::map<std::string, std::vector<double>> all;
    const Parameters now = model->parameters();
    for (const auto& entry : now.entries()) all[entry.name] = entry.values;
    return all;
  }
};

TrainingOptions by_force(std::int64_t batch) {
  TrainingOptions options;
  options.rule = "force";
  options.batch = options.held_out = batch;
  options.force_alpha = 0.7;
  return options;
}

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// A layer of tanh units, h = tanh(W h + U x + b), whose bias may have two parts; and feedback of a number where there is a V.
struct Units {
  Vector W, U, b, V{};
  Vector h = Vector(units);
  /// [h, 1] of the next step
  Vector next(std::span<const double> x, double fed_back = 0.0) {
    Vector made(n, 1.0);
    for (std::size_t i = 0; i < units; ++i)
      made[i] = std::tanh(dot(std::span(W).subspan(i * units, units), h) + dot(std::span(U).subspan(i * x.size(), x.size()), x) + b[i] +
                          (V.empty() ? 0.0 : V[i] * fed_back));
    h.assign(made.begin(), made.end() - 1);
    return made;
  }
};

Vector solved(Vector A, Vector b) {
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column; row < n; ++row)
      if (std::abs(A[row * n + column]) > std::abs(A[pivot * n + column])) pivot = row;
    for (std::size_t j = 0; j < n; ++j) std::swap(A[column * n + j], A[pivot * n + j]);
    std::swap(b[column], b[pivot]);
    for (std::size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = A[row * n + column] / A[column * n + column];
      for (std::size_t j = column; j < n; ++j) A[row * n + j] -= factor * A[column * n + j];
      b[row] -= factor * b[column];
    }
  }
  for (std::size_t i = 0; i < n; ++i) b[i] /= A[i * n + i];
  return b;
}

/// (alpha I + R'R) w = alpha w0 + R' target, over all steps of the sequences that were added.
struct Regression {
  Vector normal = Vector(n * n), right;
  Regression(double alpha, const Vector& weight, double bias) : right(weight) {
    right.push_back(bias);
    for (double& one : right) one *= alpha;
    for (std::size_t i = 0; i < n; ++i) normal[i * n + i] = alpha;
  }
  void add(Units layer, const Sequence& sequence) {
    const auto width = static_cast<std::size_t>(sequence.width);
    for (std::size_t t = 0; t < static_cast<std::size_t>(sequence.length); ++t) {
      const Vector row = layer.next(std::span(sequence.input).subspan(t * width, width));
      if (sequence.mask[t] == 0.0) continue;
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) normal[i * n + j] += row[i] * row[j];
        right[i] += sequence.target[t] * row[i];
      }
    }
  }
  void check(const Vector& weight, double bias) const {
    const Vector wanted = solved(normal, right);
    for (std::size_t i = 0; i < units; ++i) CHECK_CLOSE(weight[i], wanted[i], 1e-9);
    CHECK_CLOSE(bias, wanted[units], 1e-9);
  }
};

}  // namespace

TEST_CASE("without feedback the read-out is the ridge regression that is drawn to where it began") {
  const TrainingOptions options = by_force(3);
  Reservoir course(options, "narma", 40, {});
  const auto before = course.weights();
  const Units layer{before.at("0/W"), before.at("0/Win"), before.at("0/bias")};
  Regression regression(options.force_alpha, before.at("head/weight"), before.at("head/bias").front());
  for (std::int64_t step = 0; step < 2; ++step) {
    for (std::int64_t b = 0; b < 3; ++b) regression.add(layer, course.examples->training(step, b));
    course.trainer->step();
    const auto now = course.weights();
    regression.check(now.at("head/weight"), now.at("head/bias").front());
    for (const auto& [name, values] : before)
      if (!name.starts_with("head/")) CHECK_SAYS(now.at(name) == values, name);
  }
}

TEST_CASE("the read-out of another model is the same regression, on its states") {
  const TrainingOptions options = by_force(1);
  Reservoir course(options, "narma", 30, {}, "elman");
  const auto before = course.weights();
  Units layer{before.at("0/weight_hh"), before.at("0/weight_ih"), Vector(units)};
  for (const auto& [name, values] : before)
    if (name.starts_with("0/bias"))
      for (std::size_t i = 0; i < units; ++i) layer.b[i] += values[i];
  Regression regression(options.force_alpha, before.at("head/weight"), before.at("head/bias").front());
  regression.add(layer, course.examples->training(0, 0));
  course.trainer->step();
  const auto now = course.weights();
  regression.check(now.at("head/weight"), now.at("head/bias").front());
}

TEST_CASE("with feedback the weights are those of the equations, step by step") {
  TrainingOptions options = by_force(2);
  options.force_forget = 0.98;
  Reservoir course(options, "sine", 50, {{"feedback", "1"}, {"noise_feedback", "0"}});
  const auto before = course.weights();
  Vector w = before.at("0/Wout"), P(n * n);
  w.push_back(before.at("0/Wout_bias").front());
  for (std::size_t i = 0; i < n; ++i) P[i * n + i] = 1.0 / options.force_alpha;
  double loss = 0.0;
  for (std::int64_t b = 0; b < 2; ++b) {
    const Sequence sequence = course.examples->training(0, b);
    Units layer{before.at("0/W"), before.at("0/Win"), before.at("0/bias"), before.at("0/Wfb")};
    double y = 0.0, counted = 0.0, squares = 0.0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(sequence.length); ++t) {
      const Vector r = layer.next(std::span(sequence.input).subspan(t, 1), y);
      y = dot(w, r);
      if (sequence.mask[t] == 0.0) continue;
      const double error = y - sequence.target[t];
      squares += error * error;
      counted += 1.0;
      Vector Pr(n), rP(n), k(n);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) Pr[i] += P[i * n + j] * r[j], rP[j] += r[i] * P[i * n + j];
      for (std::size_t i = 0; i < n; ++i) k[i] = Pr[i] / (options.force_forget + dot(r, Pr));
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) P[i * n + j] = (P[i * n + j] - k[i] * rP[j]) / options.force_forget;
      for (std::size_t i = 0; i < n; ++i) w[i] -= error * k[i];
    }
    loss += 0.5 * 0.5 * squares / counted;  // half of the squared error, and half of the batch
  }
  const TrainingStep step = course.trainer->step();
  CHECK_CLOSE(step.loss, loss, 1e-9);
  const auto now = course.weights();
  for (std::size_t i = 0; i < units; ++i) CHECK_CLOSE(now.at("0/Wout")[i], w[i], 1e-8);
  CHECK_CLOSE(now.at("0/Wout_bias").front(), w[units], 1e-8);
  CHECK_EQUAL(now.at("head/weight").front(), 1.0);
  CHECK_EQUAL(now.at("head/bias").front(), 0.0);
}

TEST_CASE("a training that goes on has the bits of one that was never interrupted") {
  const TrainingOptions options = by_force(2);
  Reservoir whole(options, "narma", 30, {}), first(options, "narma", 30, {}), second(options, "narma", 30, {});
  for (int i = 0; i < 3; ++i) whole.trainer->step();
  for (int i = 0; i < 2; ++i) first.trainer->step();
  second.model->set(first.model->parameters());
  second.trainer->restore(2, 2 * first.trainer->changes_per_step(), first.trainer->memory());
  second.trainer->step();
  CHECK(second.weights() == whole.weights());
  CHECK(second.trainer->memory() == whole.trainer->memory());
}

TEST_CASE("a step that is stopped or undone leaves weights and P as they were") {
  Reservoir course(by_force(2), "sine", 30, {{"feedback", "1"}});
  const auto before = course.weights();
  const auto memory = course.trainer->memory();
  std::stop_source stop;
  stop.request_stop();
  bool cancelled = false;
  try {
    course.trainer->step(stop.get_token());
  } catch (const Cancelled&) {
    cancelled = true;
  }
  CHECK(cancelled);
  CHECK(course.weights() == before);
  course.trainer->step({}, true);
  CHECK(course.weights() != before);
  course.trainer->undo();
  CHECK(course.weights() == before);
  CHECK(course.trainer->memory() == memory);
}

TEST_CASE("options and tasks that it has no least squares for are refused with a sentence") {
  TrainingOptions options = by_force(2);
  CHECK_ERROR(Reservoir(options, "parity", 20, {}), "numbers");
  options.truncate = 5;
  CHECK_ERROR(Reservoir(options, "narma", 20, {}), "leave truncate at 0");
  options.truncate = 0;
  options.force_alpha = 0.0;
  CHECK_ERROR(Reservoir(options, "narma", 20, {}), "force_alpha");
  options.force_alpha = 1.0;
  options.force_forget = 1.5;
  CHECK_ERROR(Reservoir(options, "narma", 20, {}), "force_forget");
  options.force_forget = 1.0;
  options.frozen = {"head/*"};
  CHECK_ERROR(Reservoir(options, "narma", 20, {}), "freeze");
}
