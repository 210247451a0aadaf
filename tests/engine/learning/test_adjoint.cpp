// SPDX-License-Identifier: GPL-3.0-or-later
// The adjoint method against the exact gradient of a linear equation, by matrix exponentials, and against backpropagation through the
// solver's steps; and what both keep.
#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "array/error.h"
#include "array/host.h"
#include "array/rng.h"
#include "learning/examples.h"
#include "learning/learning_rule.h"
#include "learning/losses.h"
#include "models/registry.h"
#include "recurrence/ode/ode.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

/// A model with weights away from where they start, and the gradients that rules have of it.
struct Course {
  std::deque<Sequence> batch;
  std::unique_ptr<Model> model;
  TrainingOptions options;

  Course(const std::string& id, const test::Settings& set, std::int64_t length, bool uneven = false) {
    const auto examples = task_examples("adding", {.length = length, .seed = 4});
    for (std::int64_t b = 0; b < 2; ++b) batch.push_back(examples->training(0, b));
    for (Sequence& sequence : batch)
      for (std::int64_t t = 0; uneven && t < length; ++t)
        sequence.time[static_cast<std::size_t>(t)] = static_cast<double>(t) + 0.3 * std::sin(static_cast<double>(3 * t));
    const Architecture& architecture = builtin_registry().find(id);
    const Hyper hyper = hyper_of(builtin_registry(), test::preset_of(id), set);
    Parameters parameters = Network(architecture, hyper, {.input = batch[0].width, .head = 1}).initialise(2);
    Rng numbers(9);
    for (auto& entry : parameters.entries())
      for (double& value : entry.values) value += 0.3 * numbers.normal();
    model = std::make_unique<Model>(architecture, hyper, parameters, cpu_backend(), DType::f64);
    options.batch = 2;
  }
  std::vector<double> gradient(const std::string& rule, OdeStates states = OdeStates::backward, double* loss = nullptr) {
    options.rule = rule;
    options.ode_states = states;
    const auto made = make_learning_rule({*model, options, batch[0].length, batch});
    made->begin(batch, 1);
    const LearningRule::Part part = made->learn({});
    if (loss) *loss = part.loss;
    std::vector<double> all;
    for (const DeviceArray& array : made->gradients()) {
      const auto values = to_double(model->backend(), model->real(), array.data(), array.entries());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  std::vector<double> weights(const std::string& name) const {
    const Parameters now = model->parameters();
    for (const auto& entry : now.entries())
      if (entry.name == name) return entry.values;
    return {};
  }
};

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]), size += b[i] * b[i];
  return std::sqrt(sum / size);
}

/// log2 of how much less the error is at each doubling of the steps, over the last of them.
double slope_of(const std::vector<double>& errors) { return std::log2(errors[errors.size() - 2] / errors.back()); }

using Matrix = std::vector<std::vector<double>>;

Matrix zero(std::size_t n) { return Matrix(n, std::vector<double>(n)); }
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c = zero(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < a.size(); ++k)
      for (std::size_t j = 0; j < a.size(); ++j) c[i][j] += a[i][k] * b[k][j];
  return c;
}
/// The exponential by its series, of a thousandth that is squared.
Matrix exponential(Matrix a) {
  constexpr int halvings = 10;
  for (auto& row : a)
    for (double& x : row) x = std::ldexp(x, -halvings);
  Matrix sum = zero(a.size()), term = zero(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) sum[i][i] = term[i][i] = 1.0;
  for (int k = 1; k < 20; ++k) {
    term = product(term, a);
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t j = 0; j < a.size(); ++j) {
        term[i][j] /= k;
        sum[i][j] += term[i][j];
      }
  }
  for (int k = 0; k < halvings; ++k) sum = product(sum, sum);
  return sum;
}

/// The gradient of the loss of one sequence by W = [W_x, W_s] and b of ds/dt = W [x; s] + b, exact: with z = [s; 1] and M = [W_s, W_x x +
/// b; 0, 0] a step is exp(M), and the derivative by M is the block at the top right of exp([M', l z'; 0, M']) (C. F. Van Loan, 1978).
void add_exact(const Course& course, const Sequence& sequence, std::vector<double>& W_gradient, std::vector<double>& b_gradient,
               std::vector<double>& head_gradient, double& head_bias) {
  constexpr std::size_t n = 3, in = 2, columns = in + n;
  const auto W = course.weights("0/gradient_net.0.weight"), b = course.weights("0/gradient_net.0.bias"), V = course.weights("head/weight");
  const double c = course.weights("head/bias")[0];
  const auto length = static_cast<std::size_t>(sequence.length);
  std::vector<Matrix> systems;
  std::vector<std::vector<double>> states{{0.0, 0.0, 0.0, 1.0}};
  for (std::size_t t = 0; t < length; ++t) {
    Matrix M = zero(n + 1);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) M[i][j] = W[i * columns + in + j];
      M[i][n] = b[i];
      for (std::size_t j = 0; j < in; ++j) M[i][n] += W[i * columns + j] * sequence.input[t * in + j];
    }
    const Matrix E = exponential(M);
    std::vector<double> next(n + 1);
    for (std::size_t i = 0; i <= n; ++i)
      for (std::size_t j = 0; j <= n; ++j) next[i] += E[i][j] * states.back()[j];
    states.push_back(next);
    systems.push_back(M);
  }
  std::vector<double> a(n + 1);
  for (std::size_t t = length; t-- > 0;) {
    if (sequence.mask[t] != 0.0) {
      double error = c - sequence.target[t], counted = 0.0;
      for (const double m : sequence.mask) counted += m;
      for (std::size_t i = 0; i < n; ++i) error += V[i] * states[t + 1][i];
      error /= counted;
      for (std::size_t i = 0; i < n; ++i) {
        a[i] += error * V[i];
        head_gradient[i] += error * states[t + 1][i];
      }
      head_bias += error;
    }
    Matrix both = zero(2 * (n + 1));
    for (std::size_t i = 0; i <= n; ++i)
      for (std::size_t j = 0; j <= n; ++j) {
        both[i][j] = both[n + 1 + i][n + 1 + j] = systems[t][j][i];
        both[i][n + 1 + j] = a[i] * states[t][j];
      }
    const Matrix E = exponential(both);
    std::vector<double> before(n + 1);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) W_gradient[i * columns + in + j] += E[i][n + 1 + j];
      const double of_drive = E[i][n + 1 + n];
      b_gradient[i] += of_drive;
      for (std::size_t j = 0; j < in; ++j) W_gradient[i * columns + j] += of_drive * sequence.input[t * in + j];
      for (std::size_t j = 0; j <= n; ++j) before[i] += E[i][j] * a[j];
    }
    before[n] = 0.0;  // 1 stays 1, whatever its adjoint
    a = before;
  }
}

const std::vector<std::pair<std::string, double>> orders{{"euler", 1.0}, {"midpoint", 2.0}, {"rk4", 4.0}, {"rk4_38", 4.0}};

}  // namespace

TEST_CASE("of a linear equation the adjoint method has the exact gradient, with an error of the solver's order") {
  for (const auto& [solver, order] : orders)
    for (const OdeStates states : {OdeStates::backward, OdeStates::checkpoints}) {
      std::vector<double> errors;
      for (const char* unfolds : {"4", "8", "16", "32"}) {
        Course course("neural-ode", {{"width", "3"}, {"hidden_layers", "0"}, {"solver", solver}, {"unfolds", unfolds}}, 4);
        const std::vector<double> own = course.gradient("adjoint", states);
        std::vector<double> W(15), b(3), V(3);
        double c = 0.0;
        for (const Sequence& sequence : course.batch) add_exact(course, sequence, W, b, V, c);
        std::vector<double> exact;
        for (const Model::Weight& weight : course.model->weights()) {
          const std::vector<double> part = weight.name == "0/gradient_net.0.weight" ? W
                                           : weight.name == "0/gradient_net.0.bias" ? b
                                           : weight.name == "head/weight"           ? V
                                                                                    : std::vector<double>{c};
          CHECK_EQUAL(weight.entries(), std::ssize(part));
          exact.insert(exact.end(), part.begin(), part.end());
        }
        errors.push_back(distance(own, exact));
      }
      test::measured("neural-ode", solver + " of " + std::string(to_string(states)), errors.back());
      CHECK_SAYS(std::abs(slope_of(errors) - order) <= 0.2, solver + " " + std::string(to_string(states)) + ": slope " +
                                                                test::show(slope_of(errors)) + ", error " + test::show(errors.back()));
    }
}

TEST_CASE("its distance from backpropagation through the solver's steps is of the solver's order") {
  const auto check = [](const std::string& id, test::Settings set, const std::string& solver, double order, bool uneven) {
    for (const OdeStates states : {OdeStates::backward, OdeStates::checkpoints}) {
      std::vector<double> distances;
      const bool slow = id == "ctrnn";  // the slope is that of more steps
      for (const char* unfolds : {slow ? "16" : "8", slow ? "32" : "16", slow ? "64" : "32"}) {
        test::Settings now = set;
        now.emplace_back("solver", solver);
        now.emplace_back("unfolds", unfolds);
        if (id == "ctrnn") now.emplace_back("delta_t", std::to_string(1.0 / std::atof(unfolds)));  // the length of an unfold there
        Course course(id, now, 5, uneven);
        double loss = 0.0, truth = 0.0;
        const auto own = course.gradient("adjoint", states, &loss), steps = course.gradient("bptt", states, &truth);
        CHECK_CLOSE(loss, truth, 1e-13 * std::abs(truth));  // the same states forward
        distances.push_back(distance(own, steps));
      }
      CHECK_SAYS(std::abs(slope_of(distances) - order) <= 0.2, id + " " + solver + " " + std::string(to_string(states)) + ": slope " +
                                                                   test::show(slope_of(distances)) + " to " + test::show(distances.back()));
    }
  };
  for (const auto& [solver, order] : orders)
    for (const bool uneven : {false, true}) check("neural-ode", {{"width", "4"}, {"hidden_units", "6"}}, solver, order, uneven);
  check("neural-ode", {{"width", "4"}, {"drive", "added"}}, "rk4", 4.0, true);
  for (const char* update : {"gru_unit", "gru", "rnn"}) check("ode-rnn", {{"width", "4"}, {"update", update}}, "rk4", 4.0, true);
  for (const char* form : {"of_sum", "of_state"}) check("ctrnn", {{"width", "4"}, {"form", form}, {"tau", "each"}}, "rk4", 4.0, false);
  check("continuous-fast-weights", {{"width", "8"}, {"heads", "2"}, {"rule", "delta"}}, "midpoint", 2.0, false);
}

TEST_CASE("where each observation is one step of a solver, it is off by the error of that one step") {
  const auto check = [](const std::string& id, const test::Settings& set, double order) {
    std::vector<double> distances;
    for (const char* step : {"0.02", "0.01", "0.005"}) {
      test::Settings now = set;
      now.emplace_back("width", "4");
      now.emplace_back("epsilon", step);
      Course course(id, now, 5);
      double loss = 0.0, truth = 0.0;
      const auto own = course.gradient("adjoint", OdeStates::backward, &loss), steps = course.gradient("bptt", {}, &truth);
      CHECK_CLOSE(loss, truth, 1e-13 * std::abs(truth));
      distances.push_back(distance(own, steps));
    }
    std::string said = id;
    for (const auto& [key, value] : set) said += " " + key + "=" + value;
    CHECK_SAYS(std::abs(slope_of(distances) - (order + 1.0)) <= 0.2, said + ": slope " + test::show(slope_of(distances)));
  };
  for (const char* gated : {"no", "yes"}) {
    check("lipschitz-rnn", {{"solver", "euler"}, {"gated", gated}}, 1.0);
    check("lipschitz-rnn", {{"solver", "midpoint"}, {"gated", gated}}, 2.0);
    check("antisymmetric-rnn", {{"gated", gated}}, 1.0);
  }
  check("antisymmetric-rnn", {{"activation", "identity"}}, 1.0);
  check("noisy-rnn", {{"solver", "base"}}, 1.0);
  for (const char* solver : {"explicit", "runge_kutta"}) {
    Course course("ltc", {{"width", "4"}, {"solver", solver}}, 5);
    double loss = 0.0, truth = 0.0;
    course.gradient("adjoint", OdeStates::checkpoints, &loss);
    course.gradient("bptt", {}, &truth);
    CHECK_CLOSE(loss, truth, 1e-13 * std::abs(truth));
  }
}

TEST_CASE("backpropagation through the solver's steps is the derivative of what they make, and the adjoint method is not") {
  Course course("neural-ode", {{"width", "4"}, {"hidden_units", "6"}, {"solver", "midpoint"}, {"unfolds", "2"}}, 4);
  const auto steps = course.gradient("bptt"), own = course.gradient("adjoint");
  Rng numbers(3);
  double along_steps = 0.0, along_own = 0.0, losses[2] = {};
  std::vector<double> direction(steps.size());
  for (double& x : direction) x = numbers.normal();
  for (std::size_t i = 0; i < steps.size(); ++i) along_steps += steps[i] * direction[i], along_own += own[i] * direction[i];
  constexpr double h = 1e-5;
  const Parameters parameters = course.model->parameters();
  for (int side = 0; side < 2; ++side) {
    Parameters moved = parameters;
    std::size_t at = 0;
    for (auto& entry : moved.entries())
      for (double& value : entry.values) value += (side ? -h : h) * direction[at++];
    course.model = std::make_unique<Model>(course.model->architecture(), course.model->hyper(), moved, cpu_backend(), DType::f64);
    course.gradient("bptt", {}, &losses[side]);
  }
  const double difference = (losses[0] - losses[1]) / (2 * h);
  CHECK_CLOSE(along_steps, difference, 1e-7 * std::abs(difference));
  CHECK(std::abs(along_own - difference) > 1e-4 * std::abs(difference));
}

TEST_CASE("the adjoint method keeps nothing of the solver's steps, and checkpoints a state of each") {
  const auto peak = [](const std::string& rule, const std::string& unfolds, OdeStates states) {
    Course course("neural-ode", {{"width", "32"}, {"solver", "rk4"}, {"unfolds", unfolds}}, 40);
    MemoryAccount& account = cpu_backend().account();
    account.restart();
    const std::int64_t before = account.live();
    course.gradient(rule, states);
    return account.peak() - before;
  };
  // Rows of the adjoints of weights are collected, up to a bound (docs/cpu.md), which few steps do not reach.
  const std::int64_t few = peak("adjoint", "32", OdeStates::backward), many = peak("adjoint", "96", OdeStates::backward);
  CHECK_EQUAL(few, many);
  constexpr std::int64_t state = 2 * 32 * sizeof(double);  // of both sequences
  const std::int64_t kept = peak("adjoint", "96", OdeStates::checkpoints) - peak("adjoint", "32", OdeStates::checkpoints);
  CHECK_SAYS(kept == 64 * state, std::to_string(kept));
  const std::int64_t steps = peak("bptt", "32", {}), more = peak("bptt", "96", {});
  CHECK_SAYS(static_cast<double>(more) > 2.5 * static_cast<double>(steps) && steps > 10 * few,
             std::to_string(few) + " " + std::to_string(steps) + " " + std::to_string(more));
}

TEST_CASE("the adjoint method says which models it cannot go back through, and why") {
  const auto why = [](const std::string& id, const test::Settings& set) -> std::string {
    Course course(id, set, 4);
    try {
      course.gradient("adjoint");
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  };
  CHECK_EQUAL(why("elman", {{"width", "4"}}), std::string("elman has no layer whose step solves a differential equation by explicit "
                                                          "Runge–Kutta steps, so there is none that the adjoint method could go back by: "
                                                          "choose bptt."));
  CHECK(why("neural-ode", {{"width", "4"}, {"solver", "dopri5"}}).find("chooses its steps as it goes") != std::string::npos);
  CHECK(why("ctrnn", {{"width", "4"}, {"clip", "1"}}).find("clips its state") != std::string::npos);
  CHECK(why("ltc", {{"width", "4"}}).find("semi-implicit") != std::string::npos);
  CHECK(why("noisy-rnn", {{"width", "4"}, {"solver", "noisy"}}).find("stochastic differential equation") != std::string::npos);
}

TEST_CASE("truncated, the adjoint method goes back over its window alone") {
  Course course("neural-ode", {{"width", "4"}, {"solver", "rk4"}, {"unfolds", "16"}}, 6);
  course.options.truncate = course.options.advance = 2;
  const auto parts = [&](const std::string& rule) {
    course.options.rule = rule;
    const auto made = make_learning_rule({*course.model, course.options, 6, course.batch});
    made->begin(course.batch, 1);
    std::vector<double> all;
    while (made->left()) {
      made->learn({});
      for (const DeviceArray& array : made->gradients()) {
        const auto values = to_double(course.model->backend(), course.model->real(), array.data(), array.entries());
        all.insert(all.end(), values.begin(), values.end());
      }
    }
    return all;
  };
  const auto own = parts("adjoint"), steps = parts("bptt");
  CHECK(distance(own, steps) < 1e-6 && distance(own, steps) > 0.0);
}

TEST_CASE("how a solution by the adjoint method moves is the derivative of its steps") {
  for (const auto& [solver, order] : orders) {
    Graph graph(DType::f64);
    const Var s = graph.leaf(LeafKind::variable, {2, 3}, DType::f64), W = graph.leaf(LeafKind::variable, {3, 3}, DType::f64);
    const Var end = solve_by_adjoint(solver, 3, OdeGradient::adjoint, [&](Var at) { return 0.2 * tanh(linear(at, W)); }, s);
    graph.allocate(cpu_backend(), true);
    std::vector<double> state(6), weight(9), state_move(6), weight_move(9);
    Rng numbers(5);
    for (std::vector<double>* values : {&state, &weight, &state_move, &weight_move})
      for (double& x : *values) x = numbers.normal();
    const auto ends = [&](double h) {
      std::vector<double> moved_state = state, moved_weight = weight;
      for (std::size_t i = 0; i < 6; ++i) moved_state[i] += h * state_move[i];
      for (std::size_t i = 0; i < 9; ++i) moved_weight[i] += h * weight_move[i];
      graph.bind(s, moved_state.data());
      graph.bind(W, moved_weight.data());
      graph.forward();
      return to_double(cpu_backend(), DType::f64, graph.value(end), 6);
    };
    constexpr double h = 1e-3;
    const auto up = ends(h), down = ends(-h), further_up = ends(2 * h), further_down = ends(-2 * h);
    graph.bind(s, state.data());
    graph.bind(W, weight.data());
    graph.forward();
    graph.bind_tangent(s, state_move.data());
    graph.bind_tangent(W, weight_move.data());
    graph.push_tangents();
    const auto moves = to_double(cpu_backend(), DType::f64, graph.tangent(end), 6);
    for (std::size_t i = 0; i < 6; ++i)
      CHECK_CLOSE(moves[i], (8.0 * (up[i] - down[i]) - (further_up[i] - further_down[i])) / (12.0 * h), 1e-9);
  }
}
