// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/flossing/flossing.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "array/backend.h"
#include "array/error.h"
#include "array/rng.h"
#include "array/stop.h"
#include "learning/online/influence.h"
#include "learning/optimiser.h"

namespace reclab {
namespace {

using Columns = std::vector<std::vector<double>>;

constexpr double distance = 1e-5;  // h of the central differences; directions have length 1

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Y = Q R with R[i][i] > 0, by Gram-Schmidt twice, which leaves Q orthonormal to rounding; y becomes Q. R is [k][k], row by row.
Columns orthonormalise(Columns& y) {
  const std::size_t k = y.size();
  Columns R(k, std::vector<double>(k));
  for (std::size_t j = 0; j < k; ++j) {
    for (int again = 0; again < 2; ++again)
      for (std::size_t i = 0; i < j; ++i) {
        const double part = dot(y[i], y[j]);
        R[i][j] += part;
        add_scaled(y[j], -part, y[i]);
      }
    R[j][j] = std::sqrt(dot(y[j], y[j]));
    for (double& x : y[j]) x /= R[j][j];
  }
  return R;
}

/// The adjoint of Y by those of Q and of R's diagonal: (Q' + Q S) R^-T, S the lower triangle of M = R R'^T - Q'^T Q and its mirror image
/// (M. Seeger and others, arXiv:1710.08717, for LQ).
Columns pulled_through(const Columns& Q, const Columns& R, const Columns& q_adjoint, const std::vector<double>& diagonal) {
  const std::size_t k = Q.size();
  Columns z = q_adjoint;
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      const double m = R[i][j] * diagonal[j] - dot(q_adjoint[i], Q[j]);
      add_scaled(z[j], m, Q[i]);
      if (i != j) add_scaled(z[i], m, Q[j]);
    }
  for (std::size_t j = k; j-- > 0;) {
    for (std::size_t i = j + 1; i < k; ++i) add_scaled(z[j], -R[j][i], z[i]);
    for (double& x : z[j]) x /= R[j][j];
  }
  return z;
}

void check(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
}

}  // namespace

FlossLoss floss_loss(StepMap& step, const Sequence& sequence, std::int64_t exponents, bool with_gradient, std::stop_token stop) {
  const std::size_t n = step.states(), width = step.inputs(), length = static_cast<std::size_t>(sequence.length);
  if (n == 0) throw Error("flossing needs a model with a state: choose another model, or no flossing.", {.parameter = "floss"});
  const std::size_t k = std::min(static_cast<std::size_t>(exponents), n);
  const auto input = [&](std::size_t t) { return std::span(sequence.input).subspan(t * width, width); };
  Columns Q(k, std::vector<double>(n));
  Rng rng = Rng(1).split("flossing");
  for (auto& column : Q)
    for (double& x : column) x = rng.normal();
  orthonormalise(Q);
  FlossLoss found;
  found.exponents.assign(k, 0.0);
  std::vector<std::vector<double>> states;
  std::vector<Columns> frames{Q}, triangles;  // Q[t-1]; R[t]
  std::vector<double> state = step.start();
  for (std::size_t t = 0; t < length; ++t) {
    check(stop);
    step.evaluate(state, input(t));
    for (auto& column : Q) {
      step.push_forward(column, {});
      column = step.next_move();
    }
    Columns R = orthonormalise(Q);
    for (std::size_t i = 0; i < k; ++i) found.exponents[i] += std::log(R[i][i]) / static_cast<double>(length);
    for (std::size_t i = 0; i < k; ++i)
      if (!std::isfinite(found.exponents[i]))
        throw Error("flossing follows " + std::to_string(k) + " exponents of " + sequence.name + ", and the " + std::to_string(i + 1) +
                        ". is not finite at step " + std::to_string(t) + ": choose fewer exponents, or no flossing.",
                    {.parameter = "floss_exponents", .value = std::to_string(exponents)});
    if (with_gradient) {
      states.push_back(state);
      triangles.push_back(std::move(R));
      frames.push_back(Q);
    }
    state = step.next();
  }
  for (const double exponent : found.exponents) found.value += exponent * exponent / static_cast<double>(k);
  if (!with_gradient) return found;

  found.gradient.assign(step.weights(), 0.0);
  Columns q_adjoint(k, std::vector<double>(n));
  std::vector<double> state_adjoint(n), diagonal(k), moved(n);
  for (std::size_t t = length; t-- > 0;) {
    check(stop);
    for (std::size_t i = 0; i < k; ++i) diagonal[i] = 2.0 * found.exponents[i] / static_cast<double>(k * length) / triangles[t][i][i];
    const Columns y_adjoint = pulled_through(frames[t + 1], triangles[t], q_adjoint, diagonal);
    step.evaluate(states[t], input(t));
    step.pull_back(state_adjoint, {});
    state_adjoint = step.state_adjoint();
    add_scaled(found.gradient, 1.0, step.weight_adjoint());
    for (std::size_t c = 0; c < k; ++c) {
      step.pull_back(y_adjoint[c], {});
      q_adjoint[c] = step.state_adjoint();
    }
    // d(y' J q) for each direction, by the state and by the weights.
    for (std::size_t c = 0; c < k; ++c)
      for (const double side : {1.0, -1.0}) {
        moved = states[t];
        add_scaled(moved, side * distance, frames[t][c]);
        step.evaluate(moved, input(t));
        step.pull_back(y_adjoint[c], {});
        add_scaled(state_adjoint, side / (2.0 * distance), step.state_adjoint());
        add_scaled(found.gradient, side / (2.0 * distance), step.weight_adjoint());
      }
  }
  return found;
}

FlossReport floss(Model& model, const Examples& examples, std::int64_t outputs, const FlossOptions& options,
                  const std::vector<bool>& frozen, std::stop_token stop) {
  const Sequence first = examples.training(0, 0);
  Model flossed(model.architecture(), model.hyper(), model.parameters(), cpu_backend(), DType::f64);
  StepMap step(flossed, first.width, outputs);
  Optimiser optimiser(flossed, {.rule = "adam"}, frozen);
  std::vector<DeviceArray> gradients;
  for (const Model::Weight& weight : flossed.weights()) gradients.emplace_back(flossed.backend(), flossed.real(), weight.entries());
  FlossReport report{.before = floss_loss(step, first, options.exponents, false, stop).exponents};
  for (std::int64_t i = 0; i < options.steps; ++i) {
    const FlossLoss loss = floss_loss(step, examples.training(i, 0), options.exponents, true, stop);
    if (!std::ranges::all_of(loss.gradient, [](double x) { return std::isfinite(x); }))
      throw Error("flossing had a gradient that is not finite at its step " + std::to_string(i + 1) +
                      ": choose fewer exponents or a smaller rate of flossing, or shorter sequences.",
                  {.parameter = "floss_rate"});
    upload_gradients(flossed, loss.gradient, gradients);
    optimiser.step(options.rate, gradients);
  }
  report.after = floss_loss(step, first, options.exponents, false, stop).exponents;
  check(stop);
  const StopScope whole{std::stop_token()};  // weights of which some are changed are nobody's
  model.set(flossed.parameters());
  return report;
}

}  // namespace reclab
