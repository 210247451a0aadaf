// SPDX-License-Identifier: GPL-3.0-or-later
// Local representation alignment and parallel temporal neural coding against two layers of tanh written out, over several changes of
// weights and of feedback.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "array/error.h"
#include "learning/losses.h"
#include "rule_course.h"
#include "test.h"

using namespace reclab;

namespace {

using Vector = std::vector<double>;

Vector times(const Vector& A, const Vector& x) {  // A [y, x]
  Vector y(A.size() / x.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += A[i * x.size() + j] * x[j];
  return y;
}
void add_outer(Vector& A, double factor, const Vector& x, const Vector& y) {
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t j = 0; j < y.size(); ++j) A[i * y.size() + j] += factor * x[i] * y[j];
}
void add(Vector& to, double factor, const Vector& x) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * x[i];
}

struct Course : test::RuleCourse {
  Course(const std::string& id, const std::string& task, const test::Settings& set) : RuleCourse(id, task, 9, set) {}
  std::unique_ptr<LearningRule> rule(const std::string& id) {
    options.rule = id;
    return RuleCourse::rule();
  }
};

std::map<std::string, Vector> gradient_of(const Model& model, const LearningRule& rule) {
  const std::vector<Vector> gradients = test::gradients_of(model, rule);
  std::map<std::string, Vector> all;
  for (std::size_t i = 0; i < gradients.size(); ++i) all[model.weights()[i].name] = gradients[i];
  return all;
}

/// Layers of units h = tanh(U v + b + W h + d), v the input or the layer below, and y = V h + c of the last.
struct Plain {
  std::map<std::string, Vector> w;  // by the model's names
  std::vector<Vector> E, P;         // E[k] and P[k] = W[k] of layer k, 0 the one that is read
  std::size_t layers;
  bool predicts;
  double beta, alpha;

  std::string name(std::size_t k, const char* what) const { return std::to_string(layers - 1 - k) + "/" + what; }

  void learn(const Sequence& sequence, std::map<std::string, Vector>& down, std::vector<Vector>& dE, std::vector<Vector>& dP) const {
    const std::size_t n = w.at(name(0, "bias_hh")).size(), width = static_cast<std::size_t>(sequence.width),
                      outputs = w.at("head/bias").size();
    double counted = 0.0;
    for (const double m : sequence.mask) counted += m;
    std::vector<Vector> h(layers, Vector(n)), before;
    for (std::size_t t = 0; t < static_cast<std::size_t>(sequence.length); ++t) {
      before = h;
      std::vector<Vector> v(layers);
      for (std::size_t k = layers; k-- > 0;) {
        const auto x = sequence.input.begin() + static_cast<std::ptrdiff_t>(t * width);
        v[k] = k + 1 == layers ? Vector(x, x + static_cast<std::ptrdiff_t>(width)) : h[k + 1];
        Vector net = times(w.at(name(k, "weight_ih")), v[k]);
        add(net, 1.0, w.at(name(k, "bias_ih")));
        add(net, 1.0, times(w.at(name(k, "weight_hh")), before[k]));
        add(net, 1.0, w.at(name(k, "bias_hh")));
        for (std::size_t i = 0; i < n; ++i) h[k][i] = std::tanh(net[i]);
      }
      if (sequence.mask[t] == 0.0) continue;
      Vector e = times(w.at("head/weight"), h[0]);
      add(e, 1.0, w.at("head/bias"));
      if (sequence.target_kind == TargetKind::classify) {
        double sum = 0.0;
        for (double& one : e) sum += one = std::exp(one);
        for (double& one : e) one /= sum;
        e[static_cast<std::size_t>(sequence.target[t])] -= 1.0;
      } else {
        for (std::size_t o = 0; o < outputs; ++o) e[o] -= sequence.target[t * outputs + o];
      }
      add_outer(down["head/weight"], 1.0 / counted, e, h[0]);
      add(down["head/bias"], 1.0 / counted, e);
      std::vector<Vector> d(layers), p(layers);
      for (std::size_t k = 0; k + 1 < layers && predicts; ++k) {
        p[k] = times(P[k + 1], h[k + 1]);
        add(p[k], -1.0, h[k]);
        add_outer(dP[k + 1], 1.0 / counted, p[k], h[k + 1]);
      }
      for (std::size_t k = 0; k < layers; ++k) {
        const Vector& error = k == 0 ? e : predicts ? p[k - 1] : d[k - 1];
        d[k] = times(E[k], error);
        if (!p[k].empty()) add(d[k], -alpha, p[k]);
        for (double& one : d[k]) one *= beta;
        add_outer(dE[k], 1.0 / counted, h[k], error);
      }
      for (std::size_t k = 0; k < layers; ++k) {
        Vector back(n);
        for (std::size_t i = 0; i < n; ++i) back[i] = d[k][i] * (1.0 - h[k][i] * h[k][i]);
        add_outer(down[name(k, "weight_hh")], 1.0 / counted, back, before[k]);
        add_outer(down[name(k, "weight_ih")], 1.0 / counted, back, v[k]);
        for (const char* bias : {"bias_hh", "bias_ih"}) add(down[name(k, bias)], 1.0 / counted, back);
      }
      if (predicts)
        for (std::size_t k = 0; k < layers; ++k) add(h[k], -1.0, d[k]);
    }
  }
};

}  // namespace

TEST_CASE("gradients and feedback are those of layers written out, while both change") {
  for (const std::string id : {"lra", "p-tncn"})
    for (const std::string task : {"mackey-glass", "parity"})
      for (const std::size_t layers : {1U, 2U, 3U}) {
        Course course("elman", task, {{"width", "4"}, {"layers", std::to_string(layers)}});
        course.options.align_step = 0.3;
        course.options.align_prediction = 0.7;
        course.options.feedback_rate = 0.2;
        const auto rule = course.rule(id);
        CHECK(!rule->exact());
        Plain plain{{}, {}, {}, layers, id == "p-tncn", 0.3, 0.7};
        const Parameters begun = course.model->parameters();
        for (const auto& entry : begun.entries()) plain.w[entry.name] = entry.values;
        const std::size_t n = 4, outputs = plain.w.at("head/bias").size();
        const auto read = [&](std::vector<Vector>& E, std::vector<Vector>& P) {
          const Vector own = rule->memory()->values().at("feedback");
          auto at = own.begin();
          const auto next = [&](std::size_t size) {
            const Vector one(at, at + static_cast<std::ptrdiff_t>(size));
            at += static_cast<std::ptrdiff_t>(size);
            return one;
          };
          E.clear();
          P.assign(1, {});
          for (std::size_t k = 0; k < layers; ++k) E.push_back(next(n * (k == 0 ? outputs : n)));
          for (std::size_t k = 1; k < layers && plain.predicts; ++k) P.push_back(next(n * n));
          CHECK(at == own.end());
        };
        read(plain.E, plain.P);
        for (std::int64_t number = 1; number <= 4; ++number) {
          rule->begin(course.batch, number);
          rule->learn({});
          std::map<std::string, Vector> down;
          for (const auto& [name, values] : plain.w) down[name].resize(values.size());
          std::vector<Vector> dE, dP;
          for (const Vector& one : plain.E) dE.emplace_back(one.size());
          for (const Vector& one : plain.P) dP.emplace_back(one.size());
          for (const Sequence& sequence : course.batch) plain.learn(sequence, down, dE, dP);
          for (const auto& [name, own] : gradient_of(*course.model, *rule)) {
            double largest = 0.0;
            for (const double value : down.at(name)) largest = std::max(largest, std::abs(value));
            CHECK(largest > 1e-6);
            for (std::size_t i = 0; i < own.size(); ++i)
              CHECK_SAYS(std::abs(own[i] - down.at(name)[i]) < 1e-12 * std::max(1.0, largest), id + " " + task + " " + name);
          }
          for (auto& [name, values] : plain.w) {
            add(values, -0.1, down.at(name));
            course.model->set(name, values);
          }
          for (std::size_t k = 0; k < layers; ++k) {
            add(plain.E[k], -0.2 / 2.0, dE[k]);
            if (k < plain.P.size()) add(plain.P[k], -0.2 / 2.0, dP[k]);
          }
          rule->changed();
          std::vector<Vector> E, P;
          read(E, P);
          for (std::size_t k = 0; k < layers; ++k)
            for (std::size_t i = 0; i < E[k].size(); ++i) CHECK_CLOSE(E[k][i], plain.E[k][i], 1e-12);
          for (std::size_t k = 1; k < P.size(); ++k)
            for (std::size_t i = 0; i < P[k].size(); ++i) CHECK_CLOSE(P[k][i], plain.P[k][i], 1e-12);
        }
      }
}

TEST_CASE("feedback comes from the seed, and stays as it was drawn at a rate of 0") {
  Course course("elman", "mackey-glass", {{"width", "4"}});
  course.options.feedback_rate = 0.0;
  const auto drawn = [&] { return course.rule("lra")->memory()->values().at("feedback"); };
  const Vector first = drawn();
  CHECK(first == drawn());
  const auto rule = course.rule("lra");
  rule->begin(course.batch, 1);
  rule->learn({});
  rule->changed();
  CHECK(rule->memory()->values().at("feedback") == first);
  course.options.seed = 7;
  CHECK(first != drawn());
}

TEST_CASE("weights of gates and of linear layers learn, too, each from its own layer alone") {
  for (const char* id : {"lstm", "lru", "mamba", "columnar-lstm"}) {
    const Preset preset = test::preset_of(id);
    Course course(id, "mackey-glass", test::small_settings(preset));
    for (const char* name : {"lra", "p-tncn"}) {
      const auto rule = course.rule(name);
      rule->begin(course.batch, 1);
      rule->learn({});
      std::size_t moved = 0;
      for (const auto& [weight, values] : gradient_of(*course.model, *rule)) {
        CHECK(std::ranges::all_of(values, [](double x) { return std::isfinite(x); }));
        moved += std::ranges::any_of(values, [](double x) { return x != 0.0; });
      }
      CHECK_SAYS(moved + 1 >= course.model->weights().size() * 3 / 4, std::string(id) + " " + std::to_string(moved));
    }
  }
}

TEST_CASE("what local alignment cannot do is said by name") {
  Course course("gru", "mackey-glass", {{"width", "4"}});
  course.options.align_step = 0.0;
  CHECK_ERROR(course.rule("lra"), "align_step is out of range");
  course.options.align_step = 0.1;
  course.options.align_prediction = -1.0;
  CHECK_ERROR(course.rule("p-tncn"), "align_prediction is out of range");
  course.options.align_prediction = 1.0;
  course.options.feedback_rate = -1.0;
  CHECK_ERROR(course.rule("lra"), "feedback_rate is out of range");
  course.options.feedback_rate = 0.0;
  course.options.truncate = 3;
  CHECK_ERROR(course.rule("lra"), "leave truncate at 0");
}
