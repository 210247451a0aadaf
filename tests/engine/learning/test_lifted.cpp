// SPDX-License-Identifier: GPL-3.0-or-later
// Predictive coding against adjoints that are cut off after K steps; quadratic penalties against the least value that a dense solution of
// all states has; and multipliers, which become the adjoints of backpropagation.
#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "array/error.h"
#include "execution/step_map.h"
#include "learning/losses.h"
#include "rule_course.h"
#include "test.h"

using namespace reclab;

namespace {

struct Course : test::RuleCourse {
  Course(const std::string& id, std::int64_t length, const std::string& task = "adding", const test::Settings& set = {})
      : RuleCourse(id, task, length, set.empty() ? test::small_settings(test::preset_of(id)) : set) {}
  std::vector<double> gradient(const std::string& id) {
    options.rule = id;
    std::vector<double> all;
    for (const std::vector<double>& values : test::gradients_of(*model, *learned())) all.insert(all.end(), values.begin(), values.end());
    return all;
  }
};

double largest(const std::vector<double>& all) {
  double found = 0.0;
  for (const double value : all) found = std::max(found, std::abs(value));
  return found;
}
/// The largest difference, as a share of the largest entry.
double off(const std::vector<double>& a, const std::vector<double>& b) {
  double found = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) found = std::max(found, std::abs(a[i] - b[i]));
  return found / largest(b);
}

/// Each loss alone goes back over `steps` states.
std::vector<double> cut_off(Course& course, std::int64_t steps) {
  StepMap step(*course.model, course.batch[0].width, SequenceLoss(LossKind::task, course.batch[0]).outputs());
  std::vector<double> gradient(step.weights());
  for (const Sequence& sequence : course.batch) {
    const SequenceLoss loss(LossKind::task, sequence);
    const auto input = [&](std::int64_t t) {
      return std::span(sequence.input).subspan(static_cast<std::size_t>(t * sequence.width), static_cast<std::size_t>(sequence.width));
    };
    std::vector<std::vector<double>> states{step.start()};
    for (std::int64_t t = 0; t < sequence.length; ++t) {
      step.evaluate(states.back(), input(t));
      states.push_back(step.next());
    }
    for (std::int64_t t = 0; t < sequence.length; ++t) {
      std::vector<double> adjoint;
      for (std::int64_t back = 0; back <= std::min(steps, t); ++back) {
        step.evaluate(states[static_cast<std::size_t>(t - back)], input(t - back));
        std::vector<double> output(step.outputs());
        if (back == 0) loss.segment(t, 1, std::ssize(output), step.output(), output);
        step.pull_back(adjoint, output);
        for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += step.weight_adjoint()[i];
        adjoint = step.state_adjoint();
      }
    }
  }
  return gradient;
}

/// A linear network of two units and one output on one sequence, whose weights are W, U, b, V, c one after another.
struct Plain {
  const Sequence& sequence;
  double penalty;
  static constexpr std::size_t units = 2;
  std::size_t width() const { return static_cast<std::size_t>(sequence.width); }

  double value(const std::vector<double>& s, const std::vector<double>& W, const std::vector<double>& U, const std::vector<double>& b,
               const std::vector<double>& V, double c) const {
    double sum = 0.0, counted = 0.0;
    for (const double m : sequence.mask) counted += m;
    for (std::size_t t = 0; t < static_cast<std::size_t>(sequence.length); ++t) {
      double y = c;
      for (std::size_t i = 0; i < units; ++i) {
        double n = b[i];
        for (std::size_t j = 0; j < units; ++j) n += t > 0 ? W[i * units + j] * s[(t - 1) * units + j] : 0.0;
        for (std::size_t j = 0; j < width(); ++j) n += U[i * width() + j] * sequence.input[t * width() + j];
        sum += 0.5 * penalty * (n - s[t * units + i]) * (n - s[t * units + i]);
        y += V[i] * n;
      }
      sum += 0.5 * sequence.mask[t] / counted * (y - sequence.target[t]) * (y - sequence.target[t]);
    }
    return sum;
  }
  /// The least value over all states: of a quadratic function, by its values at unit vectors.
  template <class... Weights>
  double least(const Weights&... weights) const {
    const std::size_t n = units * static_cast<std::size_t>(sequence.length);
    const auto at = [&](std::size_t i, double a, std::size_t j, double b) {
      std::vector<double> s(n);
      s[i] += a;
      s[j] += b;
      return value(s, weights...);
    };
    const double zero = at(0, 0.0, 0, 0.0);
    std::vector<double> H(n * n), g(n);
    for (std::size_t i = 0; i < n; ++i) {
      g[i] = 0.5 * (at(i, 1.0, i, 0.0) - at(i, -1.0, i, 0.0));
      for (std::size_t j = 0; j < n; ++j)
        H[i * n + j] = i == j ? at(i, 1.0, i, 0.0) + at(i, -1.0, i, 0.0) - 2.0 * zero
                              : at(i, 1.0, j, 1.0) - at(i, 1.0, i, 0.0) - at(j, 1.0, j, 0.0) + zero;
    }
    std::vector<double> A = H, s = g;  // H s = g by elimination
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t row = 0; row < n; ++row) {
        if (row == k) continue;
        const double factor = A[row * n + k] / A[k * n + k];
        for (std::size_t j = k; j < n; ++j) A[row * n + j] -= factor * A[k * n + j];
        s[row] -= factor * s[k];
      }
    for (std::size_t i = 0; i < n; ++i) s[i] /= -A[i * n + i];
    return value(s, weights...);
  }
};

}  // namespace

TEST_CASE("after K iterations of predictive coding each loss has gone K steps back, and after all it is backpropagation") {
  for (const char* id : {"elman", "gru", "lstm"}) {
    Course course(id, 7, "parity");
    for (const std::int64_t steps : {1, 2, 4, 6}) {
      course.options.pc_iterations = steps;
      CHECK_SAYS(off(course.gradient("predictive-coding"), cut_off(course, steps)) < 1e-12, std::string(id) + std::to_string(steps));
    }
    course.options.pc_iterations = 0;
    CHECK_SAYS(off(course.gradient("predictive-coding"), course.gradient("bptt")) < 1e-12, id);
  }
}

TEST_CASE("errors that relax at a smaller rate come to the same rest") {
  Course course("gru", 6);
  course.options.pc_rate = 0.5;
  course.options.pc_iterations = 10;
  const double soon = off(course.gradient("predictive-coding"), course.gradient("bptt"));
  course.options.pc_iterations = 120;
  CHECK(off(course.gradient("predictive-coding"), course.gradient("bptt")) < 1e-12);
  CHECK(soon > 1e-6);
}

TEST_CASE("quadratic penalties: the gradient of the least value over all states, which a dense solution has too") {
  Course course("elman", 4, "adding", {{"width", "2"}, {"activation", "identity"}});
  course.options.lifted_penalty = 0.7;
  course.options.lifted_iterations = 60;
  const std::vector<double> own = course.gradient("lifted");
  const Parameters now = course.model->parameters();
  std::vector<std::vector<double>> weights;  // in the model's order
  for (const auto& entry : now.entries()) weights.push_back(entry.values);
  const auto index = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(now.entries(), name, [](const Parameters::Entry& entry) { return entry.name; }) -
                                    now.entries().begin());
  };
  const auto least = [&] {
    std::vector<double> bias(2);
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (now.entries()[i].name.starts_with("0/bias"))
        for (std::size_t j = 0; j < 2; ++j) bias[j] += weights[i][j];
    double sum = 0.0;
    for (const Sequence& sequence : course.batch)
      sum += Plain{sequence, course.options.lifted_penalty}.least(weights[index("0/weight_hh")], weights[index("0/weight_ih")], bias,
                                                                  weights[index("head/weight")], weights[index("head/bias")][0]);
    return sum;
  };
  constexpr double h = 1e-5;
  std::size_t at = 0;
  for (std::vector<double>& weight : weights)
    for (double& value : weight) {
      const double before = std::exchange(value, value + h);
      const double above = least();
      value = before - h;
      const double slope = (above - least()) / (2.0 * h);
      value = before;
      CHECK_CLOSE(own[at++], slope, 1e-7);
    }
  CHECK_EQUAL(at, own.size());
}

TEST_CASE("the error of quadratic penalties falls as one over the penalty") {
  Course course("gru", 5);
  const std::vector<double> truth = course.gradient("bptt");
  course.options.lifted_iterations = 400;
  std::vector<double> errors;
  for (const double penalty : {10.0, 100.0, 1000.0}) {
    course.options.lifted_penalty = penalty;
    errors.push_back(off(course.gradient("lifted"), truth));
  }
  CHECK_SAYS(errors[0] / errors[1] > 7.0 && errors[0] / errors[1] < 13.0, test::show(errors[0]) + " " + test::show(errors[1]));
  CHECK_SAYS(errors[1] / errors[2] > 7.0 && errors[1] / errors[2] < 13.0, test::show(errors[1]) + " " + test::show(errors[2]));
}

TEST_CASE("local propagation: multipliers become the adjoints of backpropagation") {
  for (const char* id : {"elman", "gru"}) {
    Course course(id, 4);
    course.options.lifted_penalty = 20.0;
    course.options.lifted_rounds = 1;
    course.options.lifted_iterations = 100;
    const std::vector<double> truth = course.gradient("bptt");
    const double once = off(course.gradient("local-propagation"), truth);
    course.options.lifted_rounds = 25;
    const double often = off(course.gradient("local-propagation"), truth);
    CHECK_SAYS(once > 1e-4 && often < 1e-6, std::string(id) + " " + test::show(once) + " " + test::show(often));
  }
}

TEST_CASE("options out of range are refused with a sentence") {
  Course course("gru", 5);
  course.options.pc_rate = 0.0;
  CHECK_ERROR(course.gradient("predictive-coding"), "pc_rate");
  course.options.pc_rate = 1.0;
  course.options.truncate = 3;
  CHECK_ERROR(course.gradient("predictive-coding"), "leave truncate at 0");
  course.options.truncate = 0;
  course.options.lifted_penalty = 0.0;
  CHECK_ERROR(course.gradient("lifted"), "lifted_penalty");
  course.options.lifted_penalty = 1.0;
  course.options.lifted_rounds = 0;
  CHECK_ERROR(course.gradient("local-propagation"), "lifted_rounds");
  course.options.lifted_rounds = 1;
  course.options.lifted_iterations = 0;
  CHECK_ERROR(course.gradient("lifted"), "lifted_iterations");
}
