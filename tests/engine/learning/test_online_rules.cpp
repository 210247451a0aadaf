// SPDX-License-Identifier: GPL-3.0-or-later
// Online learning rules: those that draw signs are RTRL in the mean over all of them, those that leave something out are RTRL with that
// left out, written plainly here, and hand-worked values of others' tests come out.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <string>
#include <vector>

#include "array/backend.h"
#include "array/error.h"
#include "array/rng.h"
#include "files/npz.h"
#include "learning/losses.h"
#include "learning/online/credit.h"
#include "learning/online/kronecker.h"
#include "learning/structure/step_pattern.h"
#include "learning/trainer.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

using Rows = std::vector<std::vector<double>>;

/// A model with a linear head of two outputs over a random input, and a random dL/dy at each step.
struct Course {
  Course(const std::string& id, const test::Settings& set, std::int64_t steps, std::int64_t width, std::int64_t head = 2) : outputs(head) {
    const Architecture& architecture = builtin_registry().find(id);
    const Hyper hyper = hyper_of(builtin_registry(), test::preset_of(id), set);
    const Parameters parameters = Network(architecture, hyper, {.input = width, .head = head}).initialise(3);
    model = std::make_unique<Model>(architecture, hyper, parameters, cpu_backend(), DType::f64);
    step = std::make_unique<StepMap>(*model, width, head);
    Rng rng(7);
    const auto drawn = [&](std::size_t n) {
      std::vector<double> values(n);
      for (double& value : values) value = rng.normal();
      return values;
    };
    for (std::int64_t t = 0; t < steps; ++t) {
      inputs.push_back(drawn(static_cast<std::size_t>(width)));
      adjoints.push_back(drawn(step->outputs()));
    }
  }

  OnlineSetup setup() const { return {*model, options, static_cast<std::int64_t>(inputs.front().size()), outputs}; }
  OnlineMethod method(const std::string& rule) const { return learning_rule(rule).online(setup()); }

  /// The gradient of the sum of all steps' losses.
  std::vector<double> gradient(Influence& influence, const Signs& signs = {}) const {
    std::vector<double> sum(step->weights()), state = step->start();
    influence.start(signs);
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      step->evaluate(state, inputs[t]);
      influence.credit(*step, adjoints[t], true, sum);
      if (t + 1 < inputs.size()) influence.advance(*step, true);
      state = step->next();
    }
    return sum;
  }
  std::vector<double> gradient(const std::string& rule) const { return gradient(*method(rule).influence(), signs_of(1, 1, 0)); }

  /// The same by P[t] = J' P[t-1] + D, all of it and written plainly: `jacobian(J, D, state)` gives J', and of P the entries are kept where
  /// `kept` says so. With `of_state`, dL[t]/ds[t], a step's loss is not taken through that step whole but by P[t], with its mask.
  template <class Jacobian, class Kept>
  std::vector<double> plain(const Jacobian& jacobian, const Kept& kept, const Rows& of_state = {}) const {
    const std::size_t n = step->states(), p = step->weights();
    Rows P(n, std::vector<double>(p));
    std::vector<double> sum(p), state = step->start();
    for (std::size_t t = 0; t < inputs.size(); ++t) {
      step->evaluate(state, inputs[t]);
      if (of_state.empty()) {
        step->pull_back({}, adjoints[t]);
        for (std::size_t w = 0; w < p; ++w) {
          sum[w] += step->weight_adjoint()[w];
          for (std::size_t i = 0; i < n; ++i) sum[w] += step->state_adjoint()[i] * P[i][w];
        }
      }
      Rows J, D;
      for (std::size_t i = 0; i < n; ++i) {
        std::vector<double> unit(n);
        unit[i] = 1.0;
        step->pull_back(unit, {});
        J.push_back(step->state_adjoint());
        D.push_back(step->weight_adjoint());
      }
      const Rows used = jacobian(J, D, state);
      Rows next(n, std::vector<double>(p));
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t w = 0; w < p; ++w) {
          if (!kept(i, w)) continue;
          next[i][w] = D[i][w];
          for (std::size_t j = 0; j < n; ++j) next[i][w] += used[i][j] * P[j][w];
        }
      P = next;
      if (!of_state.empty())
        for (std::size_t w = 0; w < p; ++w)
          for (std::size_t i = 0; i < n; ++i) sum[w] += of_state[t][i] * P[i][w];
      state = step->next();
    }
    return sum;
  }

  std::int64_t outputs;
  TrainingOptions options;
  std::unique_ptr<Model> model;
  std::unique_ptr<StepMap> step;
  Rows inputs, adjoints;
};

double norm(const std::vector<double>& x) {
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQUAL(a.size(), b.size());
  std::vector<double> difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return norm(difference) / norm(b);
}

const auto as_it_is = [](const Rows& J, const Rows&, const std::vector<double>&) { return J; };
const auto all_of_it = [](std::size_t, std::size_t) { return true; };

const test::Settings three_units{{"width", "3"}, {"layers", "1"}};

/// The mean of a rule's gradient over all patterns of so many signs, and the largest distance of one of them, both from RTRL.
std::pair<double, double> enumerated(const Course& course, const std::string& rule, int signs) {
  const OnlineMethod method = course.method(rule);
  CHECK(!method.exact);
  const auto influence = method.influence();
  const std::vector<double> truth = course.gradient("rtrl");
  std::vector<double> mean(truth.size());
  double farthest = 0.0;
  for (unsigned pattern = 0; pattern < 1U << signs; ++pattern) {
    int drawn = 0;
    const std::vector<double> one = course.gradient(*influence, [&] {
      CHECK(drawn < signs);
      return pattern >> drawn++ & 1U ? 1.0 : -1.0;
    });
    CHECK_EQUAL(drawn, signs);
    for (std::size_t w = 0; w < mean.size(); ++w) mean[w] += one[w] / static_cast<double>(1U << signs);
    farthest = std::max(farthest, distance(one, truth));
  }
  return {distance(mean, truth), farthest};
}

}  // namespace

TEST_CASE("UORO and KF-RTRL are RTRL in the mean over all patterns of signs, and none of one pattern alone is") {
  // The last step of all has no use for a P of its own: four steps whose D is drawn, and a fifth.
  const Course course("elman", three_units, 5, 2);
  CHECK_EQUAL(course.step->states(), 3U);
  CHECK(distance(course.gradient("rtrl"), course.plain(as_it_is, all_of_it)) <= 1e-14);
  const auto [uoro, uoro_off] = enumerated(course, "uoro", 12);
  const auto [kf, kf_off] = enumerated(course, "kf-rtrl", 8);
  std::printf("UORO: mean off by %.1e, one by up to %.2g; KF-RTRL: %.1e, %.2g\n", uoro, uoro_off, kf, kf_off);
  CHECK(uoro <= 1e-13 && uoro_off > 0.1);
  CHECK(kf <= 1e-13 && kf_off > 0.1);
}

TEST_CASE("KF-RTRL is RTRL in the mean where weights act on several vectors within a step, too") {
  // The hidden bias of the candidate is within the reset gate, so those weights are two matrices on two vectors.
  const Course gru("gru", {{"width", "2"}, {"layers", "1"}}, 4, 2);
  CHECK(kronecker_matrices(gru.setup()).size() > 1);
  CHECK(enumerated(gru, "kf-rtrl", 6).first <= 1e-13);
  CHECK(enumerated(Course("lstm", {{"width", "2"}, {"layers", "2"}}, 4, 2), "kf-rtrl", 6).first <= 1e-13);
  CHECK_ERROR(Course("mamba", {{"width", "3"}, {"state", "2"}}, 3, 1).method("kf-rtrl"), "do not act as a matrix on one vector");
}

TEST_CASE("joined products have the hand-worked values of vanilla-rtrl") {
  const std::vector<double> ones2(2, 1.0), seen{1, 1, 2, 2, 1};
  {  // UORO: A = (1, 1) and B = 1 of 2 by 5, J = I, nu = (1, -1), nu^T D with the rows seen and -seen
    std::vector<double> a = ones2, b(10, 1.0), projected;
    for (const double sign : {1.0, -1.0})
      for (const double x : seen) projected.push_back(sign * x);
    const std::vector<double> nu{1.0, -1.0};
    join_products(1.0, a, b, 1.0, nu, projected);
    const double p0 = std::pow(5.0, 0.25), p1 = std::pow(11.0, 0.25);
    for (std::size_t i = 0; i < 2; ++i) CHECK_CLOSE(a[i], p0 + p1 * nu[i], 1e-15);
    for (std::size_t i = 0; i < 10; ++i) CHECK_CLOSE(b[i], 1.0 / p0 + projected[i] / p1, 1e-15);
  }
  {  // KF-RTRL: u = 1 of 5, J A = 1 of 2 by 2, v = seen, Q = I, signs 1 and -1
    std::vector<double> u(5, 1.0), A(4, 1.0);
    const std::vector<double> Q{1, 0, 0, 1};
    join_products(1.0, u, A, -1.0, seen, Q);
    const double p0 = std::sqrt(2.0 / std::sqrt(5.0)), p1 = std::pow(2.0 / 11.0, 0.25);
    for (std::size_t i = 0; i < 5; ++i) CHECK_CLOSE(u[i], p0 - p1 * seen[i], 1e-15);
    for (std::size_t i = 0; i < 4; ++i) CHECK_CLOSE(A[i], 1.0 / p0 - Q[i] / p1, 1e-15);
  }
  std::vector<double> x{0.0}, y{0.0};  // a product that is 0 leaves the other as it is
  join_products(1.0, x, y, 1.0, std::vector<double>{2.0}, std::vector<double>{8.0});
  CHECK_CLOSE(x[0] * y[0], 16.0, 1e-14);
}

TEST_CASE("the toy of Zucchet's tests comes out to the last digit") {
  // lambda = 0.5, B = 2 + 2i, C = 2 + i, x = 1, 2, 3, and dL/dy = y - 1: dL/dlambda = 53 + 159i, whose conjugate is ours,
  // dL/dgamma = 85.75, dL/dB = 85.75 - 42.875i.
  for (const std::string rule : {"diagonal-rtrl", "rtrl"}) {
    Course course("lru", {{"width", "1"}, {"state", "1"}, {"layers", "1"}, {"block", "none"}}, 3, 1, 0);
    const double theta_log = -40.0;  // a phase of 4e-18, which leaves lambda real to rounding
    for (const auto& [name, value] : std::vector<std::pair<std::string, double>>{{"theta_log", theta_log},
                                                                                 {"nu_log", std::log(std::numbers::ln2)},
                                                                                 {"gamma_log", 0.0},
                                                                                 {"B_re", 2.0},
                                                                                 {"B_im", 2.0},
                                                                                 {"C_re", 2.0},
                                                                                 {"C_im", 1.0},
                                                                                 {"D", 0.0}})
      course.model->set("0/" + name, std::vector<double>{value});
    const double y[] = {2.0, 5.0, 8.5};
    for (std::size_t t = 0; t < 3; ++t) {
      course.inputs[t] = {static_cast<double>(t + 1)};
      course.adjoints[t] = {y[t] - 1.0};
    }
    CHECK(course.method(rule).exact);
    const std::vector<double> gradient = course.gradient(rule);
    const auto of = [&](const std::string& name) {
      std::size_t at = 0;
      while (course.model->weights()[at].name != "0/" + name) ++at;
      return gradient[at];
    };
    CHECK_CLOSE(of("nu_log"), 53.0 * -0.5 * std::numbers::ln2, 1e-13);
    CHECK_CLOSE(of("theta_log"), -159.0 * 0.5 * std::exp(theta_log), 1e-12 * std::exp(theta_log) * 80.0);
    CHECK_CLOSE(of("gamma_log"), 85.75, 1e-12);
    CHECK_CLOSE(of("B_re"), 85.75, 1e-12);
    CHECK_CLOSE(of("B_im"), -42.875, 1e-12);
  }
}

TEST_CASE("SnAp-n keeps the entries that n steps reach: it nests, is RTRL with its mask, and RTRL from the graph's diameter on") {
  const std::vector<std::pair<std::string, test::Settings>> models{{"elman", {{"width", "4"}, {"layers", "3"}}},
                                                                   {"lstm", {{"width", "3"}, {"layers", "2"}}},
                                                                   {"mamba", {{"width", "3"}, {"state", "2"}, {"layers", "1"}}},
                                                                   {"lru", {{"width", "3"}, {"state", "3"}, {"layers", "3"}}},
                                                                   {"hippo-legs", {{"width", "3"}}},
                                                                   {"h3", {{"width", "2"}, {"state", "6"}, {"mlp", "2"}, {"layers", "1"}}}};
  std::size_t between = 0;
  for (const auto& [id, set] : models) {
    Course course(id, set, 6, 2);
    const std::size_t n = course.step->states(), p = course.step->weights();
    const StepPattern pattern = step_pattern(course.setup());
    const std::vector<double> exact = course.gradient("rtrl");
    std::vector<std::vector<bool>> reached(n, std::vector<bool>(p));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t w = 0; w < p; ++w) reached[i][w] = pattern.direct.at(i, w);
    for (std::int64_t order = 1;; ++order) {
      CHECK(order <= static_cast<std::int64_t>(n) + 1);
      course.options.snap_order = order;
      const OnlineMethod method = course.method("snap");
      const std::vector<double> own = course.gradient(*method.influence());
      const auto masked = course.plain(as_it_is, [&](std::size_t i, std::size_t w) { return bool(reached[i][w]); });
      CHECK_SAYS(distance(own, masked) <= 1e-13, id + " " + std::to_string(order));
      auto further = reached;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
          if (pattern.jacobian.at(i, j))
            for (std::size_t w = 0; w < p; ++w)
              if (reached[j][w]) further[i][w] = true;
      const bool diameter = further == reached;
      CHECK_SAYS(method.exact == diameter, id + " " + std::to_string(order));
      if (diameter) {
        CHECK_SAYS(distance(own, exact) <= 1e-13, id);
        break;
      }
      if (order <= 3)
        CHECK_SAYS(distance(own, exact) > 1e-9, id + " " + std::to_string(order));  // a mask that took nothing would be no test
      between += order > 1 ? 1 : 0;
      reached = further;
    }
  }
  CHECK(between >= 2);
}

TEST_CASE("SnAp-n of a tanh network is that of braintrace") {
  const NpzFile file(std::filesystem::path(test::source("tests/oracle/training")) / "braintrace.npz");
  Course course("elman", {{"width", "4"}, {"layers", "1"}}, 7, 2);
  Parameters weights = course.model->parameters();
  for (auto& entry : weights.entries()) {
    const std::string name = "param/" + entry.name;
    const bool there = file.has(name);
    CHECK_SAYS(there != (entry.name == "0/bias_hh"), entry.name);  // braintrace has one bias
    const std::vector<double> values = there ? file.read(name).real : std::vector<double>(entry.values.size());
    CHECK_EQUAL(values.size(), entry.values.size());
    course.model->set(entry.name, values);
  }
  const std::vector<double> x = file.read("input").real, target = file.read("target").real, V = file.read("param/head/weight").real;
  Rows of_state;
  std::vector<double> state = course.step->start();
  for (std::size_t t = 0; t < 7; ++t) {
    course.inputs[t] = {x[2 * t], x[2 * t + 1]};
    course.step->evaluate(state, course.inputs[t]);
    std::vector<double>& adjoint = course.adjoints[t];
    for (std::size_t j = 0; j < 2; ++j) adjoint[j] = 2.0 * (course.step->output()[j] - target[2 * t + j]);
    std::vector<double>& own = of_state.emplace_back(4);
    for (std::size_t i = 0; i < 4; ++i) own[i] = V[i] * adjoint[0] + V[4 + i] * adjoint[1];
    state = course.step->next();
  }
  const StepPattern pattern = step_pattern(course.setup());
  const auto compare = [&](const std::vector<double>& gradient, const std::string& rule) {
    std::size_t at = 0;
    for (const auto& entry : weights.entries()) {
      if (file.has(rule + "/" + entry.name) && !entry.name.starts_with("head/")) {
        const std::vector<double> expected = file.read(rule + "/" + entry.name).real;
        for (std::size_t i = 0; i < expected.size(); ++i)
          CHECK_SAYS(std::abs(gradient[at + i] - expected[i]) <= 1e-12 * std::max(1.0, std::abs(expected[i])),
                     rule + " " + entry.name + " " + test::show(gradient[at + i]) + " " + test::show(expected[i]));
      }
      at += entry.values.size();
    }
    CHECK_EQUAL(at, gradient.size());
  };
  compare(course.plain(as_it_is, [&](std::size_t i, std::size_t w) { return pattern.direct.at(i, w); }, of_state), "snap-1");
  compare(course.plain(as_it_is, all_of_it, of_state), "snap-2");
  compare(course.gradient("rtrl"), "snap-2");
  course.options.snap_order = 2;
  compare(course.gradient("snap"), "snap-2");
  // Here the last step is taken whole, and there it has the mask, too.
  course.options.snap_order = 1;
  const auto kept = [&](std::size_t i, std::size_t w) { return pattern.direct.at(i, w); };
  CHECK(distance(course.gradient("snap"), course.plain(as_it_is, kept)) <= 1e-13);
}

TEST_CASE("RTRL of diagonal transitions keeps what a weight reaches in its own layer") {
  Course course("lru", {{"width", "3"}, {"state", "2"}, {"layers", "2"}}, 6, 2);
  const std::size_t n = course.step->states();
  const OnlineMethod method = course.method("diagonal-rtrl");
  CHECK(!method.exact);
  // A weight is of the lowest layer that it acts on, as the read-out of the first layer is of the second.
  const auto in_second = [&](std::size_t i) { return i >= n / 2; };
  const StepPattern pattern = step_pattern(course.setup());
  const auto plain = course.plain(
      [&](Rows J, const Rows&, const std::vector<double>&) {
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t j = 0; j < n; ++j)
            if (in_second(i) != in_second(j)) J[i][j] = 0.0;
        return J;
      },
      [&](std::size_t i, std::size_t w) {
        bool acts = false, acts_below = false;
        for (std::size_t j = 0; j < n; ++j) {
          acts |= j / 2 == i / 2 && pattern.direct.at(j, w);  // the two parts of a complex number
          acts_below |= !in_second(j) && pattern.direct.at(j, w);
        }
        return acts && !(in_second(i) && acts_below);
      });
  const auto own = course.gradient(*method.influence());
  CHECK(distance(own, plain) <= 1e-13);
  CHECK(distance(own, course.gradient("rtrl")) > 1e-6);
  CHECK_ERROR(Course("elman", {{"width", "6"}, {"layers", "1"}}, 3, 1).method("diagonal-rtrl"), "neither diagonal nor in blocks");
  // The memory of one layer grows as the weights, and not as states by weights.
  const auto numbers = [](const std::string& states) {
    const Course one("lru", {{"width", "2"}, {"state", states}, {"layers", "1"}, {"block", "none"}}, 2, 2);
    CHECK(one.method("diagonal-rtrl").exact);
    return one.method("diagonal-rtrl").numbers;
  };
  CHECK(numbers("32") / numbers("16") < 2.1);
}

TEST_CASE("random feedback local online learning is as in Murray's equations, for units that leak") {
  for (const std::string activation : {"tanh", "relu"}) {
    const std::size_t H = 4, in = 2;
    const double dt = 0.25;
    Course course("ctrnn", {{"width", "4"}, {"layers", "1"}, {"unfolds", "1"}, {"delta_t", "0.25"}, {"activation", activation}}, 6, 2);
    const auto weights = [&](const std::string& name) {
      const Parameters now = course.model->parameters();
      for (const Parameters::Entry& entry : now.entries())
        if (entry.name == name) return entry.values;
      return std::vector<double>();
    };
    const auto W = weights("0/W_step"), b = weights("0/bias_step"), V = weights("head/weight"), c = weights("head/bias");
    CHECK(W.size() == (in + H) * H && b.size() == H && V.size() == 2 * H && c.size() == 2);
    Rng rng = Rng(course.options.seed).split("feedback");
    std::vector<double> B;  // [unit, output]
    for (std::size_t i = 0; i < 2 * H; ++i) B.push_back(rng.uniform(-0.5, 0.5));
    // dW = sum_t (B^T e[t]) p[t], p[t] = (1 - dt/tau) p[t-1] + dt phi'(u[t]) (x[t], h[t-1]), tau = 1; the read-out's own gradient is exact.
    std::vector<double> h(H), dW(W.size()), db(H), dV(V.size()), dc(2), trace(W.size()), trace_b(H);
    for (std::size_t t = 0; t < course.inputs.size(); ++t) {
      std::vector<double> from = course.inputs[t], next(H);
      from.insert(from.end(), h.begin(), h.end());
      for (std::size_t i = 0; i < H; ++i) {
        double u = b[i];
        for (std::size_t k = 0; k < in + H; ++k) u += W[k * H + i] * from[k];
        const bool relu = activation == "relu";
        const double phi = relu ? std::max(u, 0.0) : std::tanh(u), slope = !relu ? 1.0 - phi * phi : u > 0.0 ? 1.0 : 0.0;
        next[i] = (1.0 - dt) * h[i] + dt * phi;
        trace_b[i] = (1.0 - dt) * trace_b[i] + dt * slope;
        for (std::size_t k = 0; k < in + H; ++k) trace[k * H + i] = (1.0 - dt) * trace[k * H + i] + dt * slope * from[k];
      }
      h = next;
      const auto& e = course.adjoints[t];
      for (std::size_t i = 0; i < H; ++i) {
        const double back = B[2 * i] * e[0] + B[2 * i + 1] * e[1];
        db[i] += back * trace_b[i];
        for (std::size_t k = 0; k < in + H; ++k) dW[k * H + i] += back * trace[k * H + i];
        for (std::size_t o = 0; o < 2; ++o) dV[o * H + i] += e[o] * h[i];
      }
      for (std::size_t o = 0; o < 2; ++o) dc[o] += e[o];
    }
    std::vector<double> expected;
    for (const Model::Weight& weight : course.model->weights()) {
      const auto& part = weight.name == "0/W_step" ? dW : weight.name == "0/bias_step" ? db : weight.name == "head/weight" ? dV : dc;
      expected.insert(expected.end(), part.begin(), part.end());
    }
    CHECK_SAYS(distance(course.gradient("rflo"), expected) <= 1e-12, activation);
  }
  CHECK_ERROR(Course("elman", {{"width", "4"}, {"layers", "2"}}, 3, 1).method("rflo"), "has several layers");
  CHECK_ERROR(Course("lru", {{"width", "4"}}, 3, 1).method("rflo"), "choose another rule");
}

TEST_CASE("e-prop of an LSTM is its first rule: errors at its gates go no further back, the cell alone carries them") {
  const std::size_t H = 4, in = 2, all = 4 * H;
  Course course("lstm", {{"width", "4"}, {"layers", "1"}}, 7, 2);
  const auto weights = [&](const std::string& name) {
    const Parameters now = course.model->parameters();
    for (const Parameters::Entry& entry : now.entries())
      if (entry.name == name) return entry.values;
    return std::vector<double>();
  };
  const auto U = weights("0/weight_ih"), W = weights("0/weight_hh"), V = weights("head/weight");
  std::vector<double> b(all);
  int biases = 0;
  for (const Model::Weight& weight : course.model->weights())
    if (weight.name.starts_with("0/bias")) {
      ++biases;
      for (std::size_t i = 0; i < all; ++i) b[i] += weights(weight.name)[i];
    }
  CHECK(U.size() == all * in && W.size() == all * H && V.size() == 2 * H && biases > 0);
  // With h[t-1] in the net inputs held, dc/dw = f dc/dw + the derivative of this step, for the weights of rows i f g o.
  std::vector<double> h(H), c(H), dU(U.size()), dW(W.size()), db(all), dV(V.size()), dc(2);
  Rows trace(all, std::vector<double>(in + H + 1));
  for (std::size_t t = 0; t < course.inputs.size(); ++t) {
    std::vector<double> from = course.inputs[t];
    from.insert(from.end(), h.begin(), h.end());
    from.push_back(1.0);
    std::vector<double> net = b;
    for (std::size_t r = 0; r < all; ++r) {
      for (std::size_t k = 0; k < in; ++k) net[r] += U[r * in + k] * from[k];
      for (std::size_t k = 0; k < H; ++k) net[r] += W[r * H + k] * h[k];
    }
    const auto sigmoid = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
    std::vector<double> next(H);
    const auto& e = course.adjoints[t];
    for (std::size_t u = 0; u < H; ++u) {
      const double i = sigmoid(net[u]), f = sigmoid(net[H + u]), g = std::tanh(net[2 * H + u]), o = sigmoid(net[3 * H + u]), before = c[u];
      c[u] = f * before + i * g;
      const double squashed = std::tanh(c[u]);
      next[u] = o * squashed;
      const double slopes[] = {g * i * (1.0 - i), before * f * (1.0 - f), i * (1.0 - g * g), 0.0};
      const double back = V[u] * e[0] + V[H + u] * e[1];
      for (std::size_t gate = 0; gate < 4; ++gate) {
        const std::size_t r = gate * H + u;
        for (std::size_t k = 0; k < from.size(); ++k) {
          trace[r][k] = f * trace[r][k] + slopes[gate] * from[k];
          const double at_h = gate == 3 ? squashed * o * (1.0 - o) * from[k] : o * (1.0 - squashed * squashed) * trace[r][k];
          double& into = k < in ? dU[r * in + k] : k < in + H ? dW[r * H + k - in] : db[r];
          into += back * at_h;
        }
      }
    }
    h = next;
    for (std::size_t k = 0; k < 2; ++k) {
      dc[k] += e[k];
      for (std::size_t u = 0; u < H; ++u) dV[k * H + u] += e[k] * h[u];
    }
  }
  std::vector<double> expected;
  for (const Model::Weight& weight : course.model->weights()) {
    const auto& part = weight.name == "0/weight_ih"   ? dU
                       : weight.name == "0/weight_hh" ? dW
                       : weight.name == "head/weight" ? dV
                       : weight.name == "head/bias"   ? dc
                                                      : db;
    expected.insert(expected.end(), part.begin(), part.end());
  }
  CHECK(distance(course.gradient("e-prop"), expected) <= 1e-12);
  CHECK_ERROR(Course("lru", {{"width", "4"}}, 3, 1).method("e-prop"), "e-prop is for one layer");
}

TEST_CASE("errors that go forward miss their end where the adjoint shrinks, and are refused where the Jacobian is singular") {
  // All steps have a loss, so that the adjoint at the start, of which the early ones are nearly all, is to tell of the late ones, too.
  const auto learner = [](std::int64_t length, const std::string& radius) {
    const Architecture& architecture = builtin_registry().find("elman");
    const Hyper hyper = hyper_of(builtin_registry(), test::preset_of("elman"),
                                 {{"width", "6"}, {"layers", "1"}, {"spectral_radius", radius}, {"activation", "identity"}});
    const auto examples = task_examples("mackey-glass", {.length = length, .seed = 4});
    const Sequence first = examples->training(0, 0);
    const Parameters parameters = Network(architecture, hyper, {.input = first.width, .head = 1}).initialise(2);
    Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
    TrainingOptions options;
    options.rule = "forward-errors";
    options.batch = 2;
    options.held_out = 2;
    Trainer(model, *examples, options).step();
  };
  learner(200, "1");
  learner(12, "0.5");
  CHECK_ERROR(learner(200, "0.5"), "missed the adjoint's end");  // 2^200 times what rounding leaves
  CHECK_ERROR(Course("elman", {{"width", "4"}, {"activation", "relu"}}, 3, 1).method("forward-errors"), "is singular");
}

TEST_CASE("training by each rule has the same bits again, and after it was interrupted") {
  for (const LearningRuleInfo& rule : learning_rules()) {
    const bool staged = rule.id == "staged-columns";
    const std::string id = rule.id == "diagonal-rtrl" ? "lru" : rule.id == "adjoint" ? "ctrnn" : staged ? "columnar-lstm" : "gru";
    TrainingOptions options;
    options.rule = rule.id;
    options.stage_steps = 2;
    options.batch = 3;
    options.held_out = 3;
    options.seed = 5;
    const auto examples = task_examples(rule.id == "forcing" ? "lorenz" : "adding", {.length = 12, .seed = 4});
    const Sequence first = examples->training(0, 0);
    const Architecture& architecture = builtin_registry().find(id);
    const Hyper hyper =
        hyper_of(builtin_registry(), test::preset_of(id), {{"width", "5"}, {staged ? "stages" : "layers", staged ? "3" : "1"}});
    const std::int64_t head = SequenceLoss(LossKind::task, first).outputs();
    const Parameters parameters = Network(architecture, hyper, {.input = first.width, .head = head}).initialise(2);
    const auto trained = [&](int interrupted, std::uint64_t seed) {
      options.seed = seed;
      Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
      Trainer trainer(model, *examples, options);
      for (int step = 0; step < interrupted; ++step) trainer.step();
      Model again(architecture, hyper, model.parameters(), cpu_backend(), DType::f64);
      Trainer other(again, *examples, options);
      other.restore(trainer.steps(), trainer.optimiser().steps(), trainer.memory());
      for (int step = interrupted; step < 6; ++step) other.step();
      std::vector<double> all;
      const Parameters now = again.parameters();
      for (const auto& entry : now.entries()) all.insert(all.end(), entry.values.begin(), entry.values.end());
      return all;
    };
    const auto whole = trained(0, 5);
    CHECK_SAYS(whole == trained(3, 5), rule.id);
    const bool draws = rule.gradient == GradientKind::unbiased || rule.id == "rflo" || rule.id == "lra" || rule.id == "p-tncn";
    CHECK_SAYS((whole != trained(0, 6)) == draws, rule.id);
  }
}

TEST_CASE("the credit of a rule is one where it is exact, and its parts are what they say") {
  const Architecture& architecture = builtin_registry().find("elman");
  const Hyper hyper = hyper_of(builtin_registry(), test::preset_of("elman"), three_units);
  const Sequence sequence = make_task("noise", {.length = 7, .seed = 2});
  const SequenceLoss loss(LossKind::random, sequence, 2);
  const Parameters parameters = Network(architecture, hyper, {.input = sequence.width, .head = 2}).initialise(3);
  const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
  CreditPlan plan;
  plan.rules = {"rtrl", "uoro", "snap", "rflo"};
  plan.repeats = 4000;
  plan.delays = 4;
  const auto credit = credit_of(model, sequence, loss, plan, 1, {}, {});
  CHECK_EQUAL(credit.size(), 4U);
  const CreditOfRule &rtrl = credit[0], &uoro = credit[1], &snap = credit[2], &rflo = credit[3];
  CHECK(rtrl.exact && !uoro.exact && !snap.exact && !rflo.exact);
  for (std::size_t t = 0; t < 7; ++t) {
    CHECK_CLOSE(rtrl.whole.cosine[t], 1.0, 1e-14);
    CHECK_CLOSE(rtrl.whole.ratio[t], 1.0, 1e-14);
    CHECK(rtrl.bias[t] == 0.0 && rtrl.deviation[t] <= 1e-7);
    // What is off in the mean of N repeats is their deviation over sqrt(N).
    CHECK(uoro.bias[t] <= 4.0 * uoro.deviation[t] / std::sqrt(4000.0) + 1e-12);
    CHECK(snap.deviation[t] <= 1e-7);
  }
  CHECK(uoro.deviation[6] > 0.1 && snap.bias[6] > 1e-3);
  // The last step of a gradient is exact: SnAp of a dense network leaves out what is two steps back, and RFLO has another way back at once.
  for (const std::size_t d : {0U, 1U}) CHECK_CLOSE(snap.by_delay.cosine[d], 1.0, 1e-12);
  CHECK(snap.by_delay.cosine[2] < 0.999 && rflo.by_delay.cosine[0] < 0.999);
  CHECK_CLOSE(uoro.by_delay.cosine[0], 1.0, 1e-12);
  CHECK(uoro.by_delay.cosine[1] < 0.999);
  const std::size_t head = snap.by_weight.size() - 1;
  CHECK(model.weights()[head].name.starts_with("head/"));
  for (const CreditOfRule& rule : credit) CHECK_CLOSE(rule.by_weight[head].cosine[6], 1.0, 1e-14);
  CHECK_CLOSE(uoro.bytes, 8.0 * static_cast<double>(2 * 3 + (3 + 9 + 3 + 3 + 6 + 2)), 1e-9);
  plan.rules = {"bptt"};
  CHECK_ERROR(credit_of(model, sequence, loss, plan, 1, {}, {}), "choose an online rule");
}
