// SPDX-License-Identifier: GPL-3.0-or-later
// Block coordinate descent of lifted states: every block of a linear network against a dense solution of the function written out, no block
// raises it, and it comes to rest where the method of penalties does.
#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "array/error.h"
#include "execution/step_map.h"
#include "learning/lifted/conjugate_descent.h"
#include "learning/lifted/lifted.h"
#include "learning/losses.h"
#include "rule_course.h"
#include "test.h"

using namespace reclab;

namespace {

struct Course : test::RuleCourse {
  Course(const std::string& id, std::int64_t length, const std::string& task = "adding", const test::Settings& set = {})
      : RuleCourse(id, task, length, set.empty() ? test::small_settings(test::preset_of(id)) : set) {
    options.rule = "block-descent";
  }
  std::unique_ptr<StepMap> step() const { return std::make_unique<StepMap>(*model, batch[0].width, outputs()); }
  void learn(std::vector<bool> frozen = {}) { learned(std::move(frozen)); }
  std::vector<double> flat() const {
    std::vector<double> all;
    const Parameters now = model->parameters();
    for (const auto& entry : now.entries()) all.insert(all.end(), entry.values.begin(), entry.values.end());
    return all;
  }
};

double off(const std::vector<double>& a, const std::vector<double>& b) {
  double found = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    found = std::max(found, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return found / largest;
}

/// Where a quadratic function is least, by its values at unit vectors from 0 and elimination.
std::vector<double> least(std::size_t n, const std::function<double(const std::vector<double>&)>& value) {
  const auto at = [&](std::size_t i, double a, std::size_t j, double b) {
    std::vector<double> x(n);
    x[i] += a;
    x[j] += b;
    return value(x);
  };
  const double zero = at(0, 0.0, 0, 0.0);
  std::vector<double> A(n * n), x(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = -0.5 * (at(i, 1.0, i, 0.0) - at(i, -1.0, i, 0.0));
    for (std::size_t j = 0; j < n; ++j)
      A[i * n + j] = i == j ? at(i, 1.0, i, 0.0) + at(i, -1.0, i, 0.0) - 2.0 * zero
                            : at(i, 1.0, j, 1.0) - at(i, 1.0, i, 0.0) - at(j, 1.0, j, 0.0) + zero;
  }
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t row = 0; row < n; ++row) {
      if (row == k) continue;
      const double factor = A[row * n + k] / A[k * n + k];
      for (std::size_t j = k; j < n; ++j) A[row * n + j] -= factor * A[k * n + j];
      x[row] -= factor * x[k];
    }
  for (std::size_t i = 0; i < n; ++i) x[i] /= A[i * n + i];
  return x;
}

/// A linear network of two units and one output: n = W s + U x + b + d, y = V n + c, whose weights are kept by name.
struct Plain {
  static constexpr std::size_t units = 2;
  std::vector<double> W, U, b, d, V, c;
  double penalty = 0.7;

  explicit Plain(const Model& model) {
    const Parameters now = model.parameters();
    for (const auto& entry : now.entries()) of(entry.name) = entry.values;
  }
  std::vector<double>& of(const std::string& name) {
    return name == "0/weight_hh"   ? W
           : name == "0/weight_ih" ? U
           : name == "0/bias_ih"   ? b
           : name == "0/bias_hh"   ? d
           : name == "head/weight" ? V
                                   : c;
  }
  std::vector<double> recurrence(const Sequence& sequence) const {
    std::vector<double> s(units * static_cast<std::size_t>(sequence.length));
    for (std::size_t t = 0; t < s.size() / units; ++t)
      for (std::size_t i = 0; i < units; ++i) s[t * units + i] = next(sequence, s, t, i);
    return s;
  }
  double next(const Sequence& sequence, const std::vector<double>& s, std::size_t t, std::size_t i) const {
    const auto width = static_cast<std::size_t>(sequence.width);
    double n = b[i] + d[i];
    for (std::size_t j = 0; j < units; ++j) n += t > 0 ? W[i * units + j] * s[(t - 1) * units + j] : 0.0;
    for (std::size_t j = 0; j < width; ++j) n += U[i * width + j] * sequence.input[t * width + j];
    return n;
  }
  double value(const Sequence& sequence, const std::vector<double>& s) const {
    double sum = 0.0, counted = 0.0;
    for (const double m : sequence.mask) counted += m;
    for (std::size_t t = 0; t < s.size() / units; ++t) {
      double y = c[0];
      for (std::size_t i = 0; i < units; ++i) {
        const double n = next(sequence, s, t, i), away = n - s[t * units + i];
        sum += 0.5 * penalty * away * away;
        y += V[i] * n;
      }
      sum += 0.5 * sequence.mask[t] / counted * (y - sequence.target[t]) * (y - sequence.target[t]);
    }
    return sum;
  }
  /// States one after another, the last first.
  void sweep(const Sequence& sequence, std::vector<double>& s) const {
    for (std::size_t t = s.size() / units; t-- > 0;) {
      const auto with = [&](const std::vector<double>& own) {
        std::vector<double> all = s;
        std::ranges::copy(own, all.begin() + static_cast<std::ptrdiff_t>(t * units));
        return all;
      };
      s = with(least(units, [&](const std::vector<double>& own) { return value(sequence, with(own)); }));
    }
  }
};

constexpr const char* linear_task = "mackey-glass";
const test::Settings of_linear{{"width", "2"}, {"activation", "identity"}};

}  // namespace

TEST_CASE("each state of a linear network goes to the dense solution of its block") {
  const Course course("elman", 6, linear_task, of_linear);
  const Plain plain(*course.model);
  const auto step = course.step();
  for (const Sequence& sequence : course.batch) {
    LiftedSequence lifted(*step, sequence, {});
    std::vector<double> states = plain.recurrence(sequence);
    CHECK(off(lifted.states(), states) < 1e-14);
    for (int round = 0; round < 3; ++round) {
      const std::vector<double> before = states;
      plain.sweep(sequence, states);
      lifted.sweep(plain.penalty, 1);
      CHECK_SAYS(off(lifted.states(), states) < 1e-10, test::show(off(lifted.states(), states)));
      CHECK(off(states, before) > 1e-6);
      CHECK_CLOSE(lifted.objective(plain.penalty, {}), plain.value(sequence, states), 1e-12);
    }
  }
}

TEST_CASE("the read-out and then the other weights of a linear network go to the dense solution of their blocks") {
  Course course("elman", 7, linear_task, of_linear);
  Plain plain(*course.model);
  course.options.lifted_penalty = plain.penalty;
  course.options.lifted_proximal = 0.3;
  course.options.lifted_iterations = 80;
  course.options.lifted_rounds = 2;
  const Parameters begun = course.model->parameters();
  course.learn();
  std::vector<std::vector<double>> states;
  for (const Sequence& sequence : course.batch) states.push_back(plain.recurrence(sequence));
  for (std::int64_t round = 0; round < course.options.lifted_rounds; ++round) {
    for (std::size_t s = 0; s < states.size(); ++s) plain.sweep(course.batch[s], states[s]);
    for (const bool read_out : {true, false}) {
      std::vector<std::string> names;
      std::vector<double> before;
      for (const auto& entry : begun.entries())
        if (entry.name.starts_with("head/") == read_out) {
          names.push_back(entry.name);
          before.insert(before.end(), plain.of(entry.name).begin(), plain.of(entry.name).end());
        }
      const auto with = [&](const std::vector<double>& x) {
        Plain other = plain;
        std::size_t at = 0;
        for (const std::string& name : names)
          for (double& one : other.of(name)) one = x[at++];
        return other;
      };
      plain = with(least(before.size(), [&](const std::vector<double>& x) {
        const Plain other = with(x);
        double sum = 0.0;
        for (std::size_t s = 0; s < states.size(); ++s) sum += 0.5 * other.value(course.batch[s], states[s]);
        for (std::size_t i = 0; i < x.size(); ++i) sum += 0.5 * course.options.lifted_proximal * (x[i] - before[i]) * (x[i] - before[i]);
        return sum;
      }));
    }
  }
  const Parameters ended = course.model->parameters();
  for (std::size_t i = 0; i < ended.entries().size(); ++i) {
    const auto& entry = ended.entries()[i];
    CHECK_SAYS(off(entry.values, plain.of(entry.name)) < 1e-10, entry.name + " " + test::show(off(entry.values, plain.of(entry.name))));
    CHECK_SAYS(off(entry.values, begun.entries()[i].values) > 1e-4, entry.name);
  }
}

TEST_CASE("no block raises the function") {
  for (const char* id : {"elman", "gru", "lstm", "lru", "mamba"})
    for (const char* task : {"mackey-glass", "parity"}) {
      Course course(id, 6, task);
      const auto step = course.step();
      LiftedSequence lifted(*step, course.batch[0], {});
      constexpr double penalty = 0.4, rounding = 1e-14;
      double now = lifted.objective(penalty, {});
      const double begun = now;
      const auto falls = [&](double then, const std::string& what) {
        CHECK_SAYS(then <= now + rounding * std::abs(now), std::string(id) + " " + task + " " + what + " " + test::show(then - now));
        now = then;
      };
      const Parameters weights = course.model->parameters();
      for (int round = 0; round < 3; ++round) {
        for (std::size_t t = static_cast<std::size_t>(course.batch[0].length); t-- > 0;) {
          lifted.settle(t, penalty, 4);
          falls(lifted.objective(penalty, {}), "state " + std::to_string(t));
        }
        std::vector<double> x = course.flat();
        const auto value = [&](const std::vector<double>& at, std::vector<double>& gradient) {
          Parameters moved = weights;
          std::size_t from = 0;
          for (auto& entry : moved.entries())
            for (double& one : entry.values) one = at[from++];
          course.model->set(moved);
          gradient.assign(step->weights(), 0.0);
          return lifted.objective(penalty, gradient);
        };
        std::vector<double> gradient;
        for (int turn = 0; turn < 3; ++turn) {
          conjugate_descent(x, value, {.iterations = 2});
          falls(value(x, gradient), "weights");
        }
      }
      CHECK_SAYS(now < 0.999 * begun, std::string(id) + " " + task + " " + test::show(now / begun));
    }
}

TEST_CASE("states come to rest where the method of penalties does") {
  for (const auto& [id, task, set] : std::vector<std::tuple<std::string, std::string, test::Settings>>{
           {"elman", linear_task, of_linear}, {"gru", "mackey-glass", {}}, {"lstm", "parity", {}}}) {
    const Course course(id, 5, task, set);
    const auto step = course.step();
    LiftedSequence blocks(*step, course.batch[0], {}), whole(*step, course.batch[0], {});
    constexpr double penalty = 0.6;
    whole.lift(penalty, 1, 400);
    for (int round = 0; round < 200; ++round) blocks.sweep(penalty, 4);
    CHECK_SAYS(off(blocks.states(), whole.states()) < 1e-7, id + " " + test::show(off(blocks.states(), whole.states())));
    std::vector<double> own(step->weights()), other(step->weights());
    blocks.objective(penalty, own);
    whole.pull_back(other);
    CHECK_SAYS(off(own, other) < 1e-7, id + " " + test::show(off(own, other)));
  }
}

TEST_CASE("conjugate gradients come to the least value of a function that is not quadratic") {
  std::vector<double> x{-1.2, 1.0};
  conjugate_descent(x,
                    [](const std::vector<double>& at, std::vector<double>& gradient) {
                      const double a = 1.0 - at[0], b = at[1] - at[0] * at[0];
                      gradient = {-2.0 * a - 400.0 * at[0] * b, 200.0 * b};
                      return a * a + 100.0 * b * b;
                    },
                    {.iterations = 400});
  CHECK_CLOSE(x[0], 1.0, 1e-8);
  CHECK_CLOSE(x[1], 1.0, 1e-8);
}

TEST_CASE("frozen weights stay, and options out of range are refused with a sentence") {
  Course course("gru", 5);
  std::vector<bool> frozen(course.model->weights().size());
  frozen[0] = frozen.back() = true;
  const Parameters before = course.model->parameters();
  course.learn(frozen);
  const Parameters after = course.model->parameters();
  for (std::size_t i = 0; i < frozen.size(); ++i) CHECK_EQUAL(before.entries()[i].values == after.entries()[i].values, frozen[i]);
  course.options.lifted_proximal = 0.0;
  CHECK_ERROR(course.learn(), "lifted_proximal");
  course.options.lifted_proximal = 1.0;
  course.options.lifted_penalty = -1.0;
  CHECK_ERROR(course.learn(), "lifted_penalty");
  course.options.lifted_penalty = 1.0;
  course.options.advance = 2;
  CHECK_ERROR(course.learn(), "leave advance at 0");
}
