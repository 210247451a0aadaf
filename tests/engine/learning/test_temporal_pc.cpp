// SPDX-License-Identifier: GPL-3.0-or-later
// Temporal predictive coding against states that go down F step by step until they rest, of a network that is written out.
#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "array/error.h"
#include "learning/losses.h"
#include "rule_course.h"
#include "test.h"

using namespace reclab;

namespace {

struct Course : test::RuleCourse {
  Course(const std::string& id, const std::string& task, const test::Settings& set) : RuleCourse(id, task, 20, set) {
    options.rule = "temporal-pc";
    options.tpc_precision = 2.5;
  }
  std::vector<double> weights(const std::string& name) const {
    const Parameters now = model->parameters();
    for (const auto& entry : now.entries())
      if (entry.name == name) return entry.values;
    return {};
  }
  std::vector<std::vector<double>> gradient() { return test::gradients_of(*model, *learned()); }
};

}  // namespace

TEST_CASE("estimates are where F is least, and weights go down F there") {
  constexpr std::size_t units = 4;
  for (const std::string activation : {"tanh", "identity"})
    for (const std::string task : {"narma", "lorenz"}) {
      Course course("elman", task, {{"width", "4"}, {"activation", activation}});
      const auto W = course.weights("0/weight_hh"), U = course.weights("0/weight_ih"), V = course.weights("head/weight"),
                 c = course.weights("head/bias");
      std::vector<double> b(units);
      for (const Model::Weight& weight : course.model->weights())
        if (weight.name.starts_with("0/bias"))
          for (std::size_t i = 0; i < units; ++i) b[i] += course.weights(weight.name)[i];
      const std::size_t outputs = c.size(), width = static_cast<std::size_t>(course.batch[0].width);
      const double w = course.options.tpc_precision;
      std::vector<double> dW(W.size()), dU(U.size()), db(units), dV(V.size()), dc(outputs);
      for (const Sequence& sequence : course.batch) {
        double counted = 0.0;
        for (const double m : sequence.mask) counted += m;
        std::vector<double> before(units);
        for (std::size_t t = 0; t < static_cast<std::size_t>(sequence.length); ++t) {
          std::vector<double> n(units), slope(units);
          for (std::size_t i = 0; i < units; ++i) {
            double net = b[i];
            for (std::size_t j = 0; j < units; ++j) net += W[i * units + j] * before[j];
            for (std::size_t j = 0; j < width; ++j) net += U[i * width + j] * sequence.input[t * width + j];
            n[i] = activation == "tanh" ? std::tanh(net) : net;
            slope[i] = activation == "tanh" ? 1.0 - n[i] * n[i] : 1.0;
          }
          std::vector<double> r = n, off(outputs);
          const auto look = [&] {
            for (std::size_t a = 0; a < outputs; ++a) {
              off[a] = c[a] - sequence.target[t * outputs + a];
              for (std::size_t k = 0; k < units; ++k) off[a] += V[a * units + k] * r[k];
            }
          };
          if (sequence.mask[t] != 0.0) {
            for (int k = 0; k < 4000; ++k) {
              look();
              for (std::size_t i = 0; i < units; ++i) {
                double down = r[i] - n[i];
                for (std::size_t a = 0; a < outputs; ++a) down += w * V[a * units + i] * off[a];
                r[i] -= 0.1 * down;
              }
            }
            look();
            for (std::size_t i = 0; i < units; ++i) {
              const double back = (n[i] - r[i]) * slope[i] / counted;
              for (std::size_t j = 0; j < units; ++j) dW[i * units + j] += back * before[j];
              for (std::size_t j = 0; j < width; ++j) dU[i * width + j] += back * sequence.input[t * width + j];
              db[i] += back;
            }
            for (std::size_t a = 0; a < outputs; ++a) {
              for (std::size_t k = 0; k < units; ++k) dV[a * units + k] += w * off[a] * r[k] / counted;
              dc[a] += w * off[a] / counted;
            }
          }
          before = r;
        }
      }
      const auto own = course.gradient();
      for (std::size_t i = 0; i < own.size(); ++i) {
        const std::string& name = course.model->weights()[i].name;
        const auto& wanted = name == "0/weight_hh"   ? dW
                             : name == "0/weight_ih" ? dU
                             : name == "head/weight" ? dV
                             : name == "head/bias"   ? dc
                                                     : db;
        for (std::size_t k = 0; k < wanted.size(); ++k) CHECK_CLOSE(own[i][k], wanted[k], 1e-9);
      }
    }
}

TEST_CASE("models, tasks and options that it does not take are refused with a sentence") {
  CHECK_ERROR(Course("lru", "narma", {{"width", "4"}}).gradient(), "Temporal predictive coding is for states");
  CHECK_ERROR(Course("elman", "parity", {{"width", "4"}}).gradient(), "numbers");
  Course course("elman", "narma", {{"width", "4"}});
  course.options.tpc_precision = 0.0;
  CHECK_ERROR(course.gradient(), "tpc_precision");
  course.options.tpc_precision = 1.0;
  course.options.truncate = 4;
  CHECK_ERROR(course.gradient(), "leave truncate at 0");
}
