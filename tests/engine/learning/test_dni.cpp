// SPDX-License-Identifier: GPL-3.0-or-later
// Synthetic gradients: with the true adjoint in the synthesiser's place they are backpropagation; learned ones against a network written
// out, and against the closed form that a linear network has.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "array/error.h"
#include "array/host.h"
#include "learning/examples.h"
#include "learning/feedback/synthetic_gradient.h"
#include "learning/learning_rule.h"
#include "learning/losses.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

using Vector = std::vector<double>;

struct Course {
  std::deque<Sequence> batch;
  std::unique_ptr<Model> model;
  TrainingOptions options;

  Course(const std::string& id, const std::string& task, std::int64_t length, const test::Settings& set = {}) {
    const auto examples = task_examples(task, {.length = length, .seed = 4});
    for (std::int64_t b = 0; b < 2; ++b) batch.push_back(examples->training(0, b));
    const Architecture& architecture = builtin_registry().find(id);
    const Preset preset = test::preset_of(id);
    const Hyper hyper = hyper_of(builtin_registry(), preset, set.empty() ? test::small_settings(preset) : set);
    model = std::make_unique<Model>(architecture, hyper,
                                    Network(architecture, hyper, {.input = batch[0].width, .head = outputs()}).initialise(2), cpu_backend(),
                                    DType::f64);
    options.batch = 2;
    options.rule = "dni";
  }
  std::int64_t outputs() const { return SequenceLoss(LossKind::task, batch[0]).outputs(); }
  std::unique_ptr<LearningRule> rule() { return make_learning_rule({*model, options, batch[0].length, batch}); }
};

Vector gradient_of(Course& course, LearningRule& rule, std::int64_t number = 1) {
  rule.begin(course.batch, number);
  rule.learn({});
  Vector all;
  for (const DeviceArray& array : rule.gradients()) {
    const Vector values = to_double(course.model->backend(), course.model->real(), array.data(), array.entries());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("with the true adjoint in the synthesiser's place the gradient is that of backpropagation") {
  for (const char* id : {"elman", "gru", "lstm", "lru", "mamba", "columnar-lstm"})
    for (const char* task : {"mackey-glass", "parity", "adding"}) {
      Course course(id, task, 8);
      StepMap step(*course.model, course.batch[0].width, course.outputs());
      Vector own(step.weights());
      for (const Sequence& sequence : course.batch) {
        const SequenceLoss loss(LossKind::task, sequence);
        const auto input = [&](std::size_t t) { return std::span(sequence.input).subspan(t * step.inputs(), step.inputs()); };
        const auto length = static_cast<std::size_t>(sequence.length);
        std::vector<Vector> states{step.start()}, adjoints(length, Vector(step.states()));
        for (std::size_t t = 0; t < length; ++t) {
          step.evaluate(states.back(), input(t));
          states.push_back(step.next());
        }
        for (std::size_t t = length; t-- > 1;) {
          Vector error(step.outputs());
          step.evaluate(states[t], input(t));
          loss.segment(static_cast<std::int64_t>(t), 1, std::ssize(error), step.output(), error);
          step.pull_back(adjoints[t], error);
          adjoints[t - 1] = step.state_adjoint();
        }
        SequenceGradient found;
        found.gradient.resize(step.weights());
        std::size_t seen = 0;
        synthetic_gradient(
            step, sequence, [&](std::size_t t, std::span<const double>) { return adjoints[t]; },
            [&](std::span<const double>, std::span<const double> synthesised, std::span<const double> target) {
              ++seen;  // and it is its own target
              for (std::size_t i = 0; i < target.size(); ++i) CHECK_CLOSE(synthesised[i], target[i], 1e-12);
            },
            found, {});
        CHECK_EQUAL(seen, length - 1);
        for (std::size_t i = 0; i < own.size(); ++i) own[i] += found.gradient[i];
      }
      course.options.rule = "bptt";
      const auto bptt = course.rule();
      const Vector truth = gradient_of(course, *bptt);
      double largest = 0.0;
      for (const double value : truth) largest = std::max(largest, std::abs(value));
      for (std::size_t i = 0; i < own.size(); ++i)
        CHECK_SAYS(std::abs(own[i] - truth[i]) < 1e-12 * largest, std::string(id) + " " + task + " " + test::show(own[i] - truth[i]));
    }
}

TEST_CASE("weights and synthesiser learn as those of a network written out") {
  for (const std::string task : {"mackey-glass", "parity"}) {
    constexpr std::size_t n = 3;
    Course course("elman", task, 7, {{"width", "3"}});
    course.options.dni_rate = 0.4;
    const auto rule = course.rule();
    CHECK(!rule->exact());
    std::map<std::string, Vector> w;
    const Parameters begun = course.model->parameters();
    for (const auto& entry : begun.entries()) w[entry.name] = entry.values;
    const std::size_t outputs = w.at("head/bias").size(), features = n + outputs + 1;
    Vector M(n * features);
    for (std::int64_t number = 1; number <= 5; ++number) {
      const Vector own = gradient_of(course, *rule, number);
      std::map<std::string, Vector> down;
      for (const auto& [name, values] : w) down[name].resize(values.size());
      Vector dM(M.size());
      double squares = 0.0;
      for (const Sequence& sequence : course.batch) {
        const auto length = static_cast<std::size_t>(sequence.length), width = static_cast<std::size_t>(sequence.width);
        double counted = 0.0;
        for (const double m : sequence.mask) counted += m;
        std::vector<Vector> h(length, Vector(n)), e(length, Vector(outputs)), f(length, Vector(features)), a(length, Vector(n));
        for (std::size_t t = 0; t < length; ++t) {  // states, errors, features, and the synthesised adjoints a
          for (std::size_t i = 0; i < n; ++i) {
            double net = w["0/bias_ih"][i] + w["0/bias_hh"][i];
            for (std::size_t j = 0; j < width; ++j) net += w["0/weight_ih"][i * width + j] * sequence.input[t * width + j];
            for (std::size_t j = 0; j < n; ++j) net += t > 0 ? w["0/weight_hh"][i * n + j] * h[t - 1][j] : 0.0;
            h[t][i] = f[t][i] = std::tanh(net);
          }
          f[t].back() = 1.0;
          if (sequence.mask[t] != 0.0) {
            double sum = 0.0;
            for (std::size_t o = 0; o < outputs; ++o) {
              e[t][o] = w["head/bias"][o];
              for (std::size_t i = 0; i < n; ++i) e[t][o] += w["head/weight"][o * n + i] * h[t][i];
              sum += std::exp(e[t][o]);
            }
            for (std::size_t o = 0; o < outputs; ++o) {
              if (sequence.target_kind == TargetKind::classify) {
                const double is = o == static_cast<std::size_t>(sequence.target[t]) ? 1.0 : 0.0;
                e[t][o] = (std::exp(e[t][o]) / sum - is) / counted;
                f[t][n + o] = is;
              } else {
                e[t][o] = (e[t][o] - sequence.target[t * outputs + o]) / counted;
                f[t][n + o] = sequence.target[t * outputs + o];
              }
            }
          }
          for (std::size_t i = 0; i < n && t + 1 < length; ++i)
            for (std::size_t j = 0; j < features; ++j) a[t][i] += M[i * features + j] * f[t][j];
        }
        for (std::size_t t = 0; t < length; ++t) {
          Vector back(n);  // of the sum before tanh
          for (std::size_t i = 0; i < n; ++i) {
            double of_state = a[t][i];
            for (std::size_t o = 0; o < outputs; ++o) {
              of_state += w["head/weight"][o * n + i] * e[t][o];
              down["head/weight"][o * n + i] += e[t][o] * h[t][i];
            }
            back[i] = of_state * (1.0 - h[t][i] * h[t][i]);
            for (std::size_t j = 0; j < width; ++j) down["0/weight_ih"][i * width + j] += back[i] * sequence.input[t * width + j];
            for (std::size_t j = 0; j < n && t > 0; ++j) down["0/weight_hh"][i * n + j] += back[i] * h[t - 1][j];
            down["0/bias_ih"][i] += back[i];
            down["0/bias_hh"][i] += back[i];
          }
          for (std::size_t o = 0; o < outputs; ++o) down["head/bias"][o] += e[t][o];
          if (t == 0) continue;
          for (const double one : f[t - 1]) squares += one * one;
          for (std::size_t j = 0; j < n; ++j) {
            double target = 0.0;
            for (std::size_t i = 0; i < n; ++i) target += w["0/weight_hh"][i * n + j] * back[i];
            for (std::size_t k = 0; k < features; ++k) dM[j * features + k] += (a[t - 1][j] - target) * f[t - 1][k];
          }
        }
      }
      std::size_t at = 0;
      for (const Model::Weight& weight : course.model->weights())
        for (const double value : down.at(weight.name)) CHECK_CLOSE(own[at++], value, 1e-12);
      for (auto& [name, values] : w) {
        for (std::size_t i = 0; i < values.size(); ++i) values[i] -= 0.2 * down.at(name)[i];
        course.model->set(name, values);
      }
      for (std::size_t i = 0; i < M.size(); ++i) M[i] -= 0.4 * dM[i] / squares;
      rule->changed();
      const Vector synthesiser = rule->memory()->values().at("synthesiser");
      CHECK_EQUAL(synthesiser.size(), M.size());
      double largest = 0.0;
      for (std::size_t i = 0; i < M.size(); ++i) {
        CHECK_CLOSE(synthesiser[i], M[i], 1e-12);
        largest = std::max(largest, std::abs(M[i]));
      }
      CHECK(largest > 1e-4);
    }
  }
}

TEST_CASE("of a linear network whose target stays 0 the synthesiser becomes the closed form") {
  constexpr std::size_t n = 2;
  constexpr std::int64_t length = 24;
  Course course("elman", "adding", length, {{"width", "2"}, {"activation", "identity"}});
  const Vector W{0.2, -0.1, 0.15, 0.1}, V{0.8, -0.5};
  course.model->set("0/weight_hh", W);
  course.model->set("0/weight_ih", Vector{1.0, 0.3, -0.4, 1.2});
  course.model->set("head/weight", V);
  for (const char* bias : {"0/bias_ih", "0/bias_hh"}) course.model->set(bias, Vector(n));
  course.model->set("head/bias", Vector(1));
  for (std::size_t b = 0; b < course.batch.size(); ++b) {  // an impulse, and then nothing
    Sequence& sequence = course.batch[b];
    std::ranges::fill(sequence.input, 0.0);
    sequence.input[b] = 1.0;
    std::ranges::fill(sequence.target, 0.0);
    std::ranges::fill(sequence.mask, 1.0);
  }
  // lambda[t] = M s[t] with M = W' (V' V / T + M) W: iterated, since W contracts.
  Vector M(n * n);
  for (int k = 0; k < 200; ++k) {
    Vector inner = M, moved(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) inner[i * n + j] += V[i] * V[j] / static_cast<double>(length);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t a = 0; a < n; ++a)
          for (std::size_t b = 0; b < n; ++b) moved[i * n + j] += W[a * n + i] * inner[a * n + b] * W[b * n + j];
    M = moved;
  }
  course.options.dni_rate = 1.9;
  const auto rule = course.rule();
  const std::size_t features = n + 2;
  const auto off = [&] {
    const Vector own = rule->memory()->values().at("synthesiser");
    double found = 0.0, largest = 0.0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < features; ++j) {
        found = std::max(found, std::abs(own[i * features + j] - (j < n ? M[i * n + j] : 0.0)));
        largest = std::max(largest, std::abs(own[i * features + j]));
      }
    return largest > 0.0 ? found / largest : 1.0;
  };
  Vector closed(n * features);
  for (std::size_t i = 0; i < n; ++i)
    std::copy_n(M.begin() + static_cast<std::ptrdiff_t>(i * n), n, closed.begin() + static_cast<std::ptrdiff_t>(i * features));
  rule->memory()->restore({{"synthesiser", closed}}, "the test");
  for (int k = 0; k < 20; ++k) {
    gradient_of(course, *rule);
    rule->changed();
  }
  CHECK_SAYS(off() < 1e-10, test::show(off()));  // it is a fixed point
  rule->memory()->restore({{"synthesiser", Vector(n * features)}}, "the test");
  for (int k = 0; k < 2000; ++k) {
    gradient_of(course, *rule);
    rule->changed();
  }
  CHECK_SAYS(off() < 1e-6, test::show(off()));  // to which it is drawn
  course.options.rule = "bptt";
  const Vector own = gradient_of(course, *rule), truth = gradient_of(course, *course.rule());
  for (std::size_t i = 0; i < own.size(); ++i) CHECK_CLOSE(own[i], truth[i], 1e-7);
}

TEST_CASE("options out of range are refused with a sentence") {
  Course course("gru", "mackey-glass", 6);
  course.options.dni_rate = 2.0;
  CHECK_ERROR(course.rule(), "dni_rate is out of range");
  course.options.dni_rate = 0.5;
  course.options.advance = 2;
  CHECK_ERROR(course.rule(), "leave advance at 0");
}
