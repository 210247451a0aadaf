// SPDX-License-Identifier: GPL-3.0-or-later
// What coRNN, UnICORNN and LEM promise: states and gradients within bounds that hold for all weights and inputs, and a step of UnICORNN
// that can be undone. The bounds are those that follow from a step as it stands, in the comments; the papers have the same ones with
// constants of their own.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "models/network.h"
#include "models/registry.h"
#include "runs.h"
#include "test.h"

using namespace reclab;
using test::finished;
using test::request_of;
using test::Settings;
using test::values_of;

namespace {

RunRequest request_for(const std::string& architecture, std::int64_t length, Settings set) {
  return request_of(architecture, make_task("noise", {.length = length, .seed = 7}), std::move(set));
}

double largest(const std::vector<double>& values) {
  double most = 0.0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}
double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// The transition of the first layer at each step, of the weights that run() draws.
struct Transitions {
  Transition of;
  std::vector<std::vector<double>> steps;
};
Transitions transitions_of(const RunRequest& request) {
  const Architecture& architecture = builtin_registry().find(request.preset.architecture);
  const Hyper hyper = hyper_of(builtin_registry(), request.preset, request.set);
  NetworkOptions one;
  one.input = request.sequence->width;
  const Model model(architecture, hyper, Network(architecture, hyper, one).initialise(1), cpu_backend(), DType::f64);
  const SequenceLoss loss(LossKind::last, *request.sequence);
  Rollout rollout(model, Batch(*request.sequence, loss), {});
  Transitions found;
  CHECK(!rollout.forward(
      [&](const Rollout::Segment& segment) {
        Memory* memory = segment.network.memories(0).at(0);
        found.of = memory->transition();
        for (std::int64_t t = 0; t < segment.steps; ++t) {
          found.steps.emplace_back(static_cast<std::size_t>(found.of.entries()));
          memory->jacobian(t, found.steps.back());
        }
      },
      {}));
  CHECK_EQUAL(std::ssize(found.steps), request.sequence->length);
  return found;
}

/// The largest and the smallest singular value of a 2 x 2 matrix.
std::pair<double, double> singular_values(double a, double b, double c, double d) {
  const double sum = a * a + b * b + c * c + d * d, determinant = a * d - b * c,
               rest = std::sqrt(std::max(0.0, sum * sum - 4.0 * determinant * determinant));
  const double top = std::sqrt((sum + rest) / 2.0);
  return {top, std::abs(determinant) / top};
}

/// The norm of dL/ds_t of both states together.
double gradient_at(const Trace& trace, const std::string& first, const std::string& second, std::size_t t) {
  const double a = values_of(trace, "gradient/state/0/" + first)[t], b = values_of(trace, "gradient/state/0/" + second)[t];
  return std::sqrt(std::pow(10.0, 2.0 * a) + std::pow(10.0, 2.0 * b));
}

double norm_of(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("each unit's transition of UnICORNN has the determinant 1 at every step, whatever the input") {
  for (const char* scale : {"0.1", "3", "100"}) {
    const Transitions found =
        transitions_of(request_for("unicornn", 500, {{"width", "8"}, {"dt", "0.3"}, {"alpha", "5"}, {"input_scale", scale}}));
    CHECK(found.of.kind == Transition::Kind::blocks);
    CHECK_EQUAL(found.of.count, 8);
    CHECK_EQUAL(found.of.size, 2);
    double moved = 0.0;
    for (const auto& step : found.steps)
      for (std::size_t unit = 0; unit < 8; ++unit) {
        const auto J = std::span<const double>(step).subspan(4 * unit, 4);
        CHECK_CLOSE(J[0] * J[3] - J[1] * J[2], 1.0, 1e-14);
        moved = std::max(moved, std::abs(J[2] - found.steps[0][4 * unit + 2]));
      }
    CHECK_SAYS(moved > 1e-3, "the transition does not depend on the state: " + test::show(moved));
  }
}

TEST_CASE("UnICORNN is run back from its last state to its first by the inverse of its step") {
  constexpr std::size_t T = 2000, H = 8;
  const auto trace = finished(request_for("unicornn", T, {{"width", "8"}, {"dt", "0.3"}, {"alpha", "5"}, {"input_scale", "3"}}));
  const auto &w = values_of(*trace, "param/0/weight_hh"), &c = values_of(*trace, "param/0/c_"), &V = values_of(*trace, "param/0/fc.weight"),
             &b = values_of(*trace, "param/0/fc.bias");
  const auto &x = values_of(*trace, "input"), &all_y = values_of(*trace, "state/0/hy"), &all_z = values_of(*trace, "state/0/hz");
  double worst = 0.0;
  for (std::size_t i = 0; i < H; ++i) {
    double y = all_y[(T - 1) * H + i], z = all_z[(T - 1) * H + i];
    const double s = 0.3 * logistic(c[i]);
    for (std::size_t t = T; t-- > 0;) {
      y -= s * z;
      z += s * (std::tanh(w[i] * y + V[i] * 3.0 * x[t] + b[i]) + 5.0 * y);
      const double expected_y = t ? all_y[(t - 1) * H + i] : 0.0, expected_z = t ? all_z[(t - 1) * H + i] : 0.0;
      worst = std::max({worst, std::abs(y - expected_y), std::abs(z - expected_z)});
    }
  }
  std::printf("UnICORNN back over 2000 steps: worst error of any state %.1e, states up to %.2f\n", worst,
              std::max(largest(all_y), largest(all_z)));
  CHECK(worst < 1e-11);
  CHECK(largest(all_z) > 0.1);
}

TEST_CASE("UnICORNN's states grow with time at most as fast as its force allows, and its gradients neither grow nor fade") {
  // With Q = z^2 + alpha y^2 - s alpha y z, which a step without tanh keeps, a step adds at most s to sqrt(Q), since |tanh| <= 1 and
  // Q(s^2, s) = s^2; and Q >= (1 - s sqrt(alpha)/2)(z^2 + alpha y^2).
  constexpr std::size_t T = 2000, H = 8;
  const double dt = 0.3, alpha = 5.0;
  for (const char* scale : {"1", "100"}) {
    const auto trace = finished(request_for("unicornn", T, {{"width", "8"}, {"dt", "0.3"}, {"alpha", "5"}, {"input_scale", scale}}));
    const auto &w = values_of(*trace, "param/0/weight_hh"), &c = values_of(*trace, "param/0/c_"), &y = values_of(*trace, "state/0/hy"),
               &z = values_of(*trace, "state/0/hz");
    double closest = 0.0;
    for (std::size_t i = 0; i < H; ++i) {
      const double s = dt * logistic(c[i]), under = std::sqrt(1.0 - s * std::sqrt(alpha) / 2.0);
      for (std::size_t t = 0; t < T; ++t) {
        const double energy = std::hypot(z[t * H + i], std::sqrt(alpha) * y[t * H + i]), bound = s * static_cast<double>(t + 1) / under;
        CHECK_SAYS(energy <= bound * (1.0 + 1e-12), "step " + std::to_string(t));
        closest = std::max(closest, energy / bound);
      }
    }
    if (std::string(scale) == "100") CHECK_SAYS(closest > 0.5, "the bound is far from what is reached: " + test::show(closest));
    // A step is [[1, s], [0, 1]] [[1, 0], [-s k, 1]] with alpha <= k <= alpha + w, and the norm of such a triangle is s/2 + sqrt(1 +
    // s^2/4).
    double step = 0.0;
    for (std::size_t i = 0; i < H; ++i) {
      const double s = dt * logistic(c[i]), k = alpha + std::max(0.0, w[i]);
      step = std::max(step, (s / 2.0 + std::sqrt(1.0 + s * s / 4.0)) * (s * k / 2.0 + std::sqrt(1.0 + s * s * k * k / 4.0)));
    }
    const auto &top = values_of(*trace, "jacobian/0"), &least = values_of(*trace, "jacobian_min/0");
    const std::size_t ranks = top.size() / T;
    double most = 0.0;
    for (std::size_t t = 0; t < T; ++t) {
      CHECK(top[t * ranks] <= static_cast<double>(T - 1 - t) * std::log10(step) + 1e-9);
      CHECK_CLOSE(least[t], -top[t * ranks], 1e-9);  // of each unit the two have the product 1
      most = std::max(most, top[t * ranks]);
    }
    std::printf("UnICORNN, input times %s: states at %.0f %% of their bound, ds_T/ds_t over 2000 steps within a factor of %.2f of 1\n",
                scale, 100.0 * closest, std::pow(10.0, most));
    CHECK_SAYS(most < 1.0, test::show(most));
  }
}

TEST_CASE("LEM's states stay within the least of 1 and the root of time, and its gradients within an exponential of time") {
  // (1 - d) a + d tanh with 0 < d < dt <= 1 is a mean, so squares do not pass (1 - d) a^2 + d, hence neither 1 nor the sum of the steps.
  // With eta the largest row sum of |W| and |state| <= 1, |sigmoid'| <= 1/4, |tanh - a| <= 2: a row of dz_t/ds sums to at most 1 + 3/2 eta
  // dt, and so, with y moved by the new z, one of dy_t/ds to 1 + Gamma dt, Gamma = 3/2 eta (1 + eta dt).
  constexpr std::size_t T = 400, H = 12;
  for (const char* dt_text : {"1", "0.1", "0.01"})
    for (const char* scale : {"1", "100"}) {
      const RunRequest request = request_for("lem", T, {{"width", "12"}, {"dt", dt_text}, {"input_scale", scale}});
      const auto trace = finished(request);
      const double dt = std::stod(dt_text);
      double reached = 0.0;
      for (const char* state : {"state/0/y", "state/0/z"}) {
        const auto& values = values_of(*trace, state);
        for (std::size_t t = 0; t < T; ++t)
          for (std::size_t i = 0; i < H; ++i)
            CHECK(std::abs(values[t * H + i]) <= std::min(1.0, std::sqrt(dt * static_cast<double>(t + 1))));
        reached = std::max(reached, largest(values));
      }
      double eta = 0.0;
      for (const char* matrix : {"param/0/hid2hid.weight", "param/0/transform_z.weight"}) {
        const auto& W = values_of(*trace, matrix);
        for (std::size_t row = 0; row < W.size(); row += H) {
          double sum = 0.0;
          for (std::size_t i = 0; i < H; ++i) sum += std::abs(W[row + i]);
          eta = std::max(eta, sum);
        }
      }
      const double gamma = 1.5 * eta * (1.0 + eta * dt);
      double steepest = 0.0;
      for (const auto& J : transitions_of(request).steps)
        for (std::size_t row = 0; row < 2 * H; ++row) {
          double sum = 0.0;
          for (std::size_t i = 0; i < 2 * H; ++i) sum += std::abs(J[row * 2 * H + i]);
          steepest = std::max(steepest, sum);
        }
      CHECK_SAYS(steepest <= 1.0 + gamma * dt, test::show(steepest));
      const auto& top = values_of(*trace, "jacobian/0");
      const double end = norm_of(std::span(values_of(*trace, "output")).last(H));
      for (std::size_t t = 0; t < T; ++t) {
        const double bound = 0.5 * std::log10(2.0 * H) + static_cast<double>(T - 1 - t) * std::log10(1.0 + gamma * dt);
        CHECK(top[t * (top.size() / T)] <= bound + 1e-9);
        CHECK(std::log10(gradient_at(*trace, "y", "z", t)) <= bound + std::log10(end) + 1e-9);
      }
      std::printf("LEM, dt %s, input times %s: states up to %.3f, a step's Jacobian %.3f of at most %.3f\n", dt_text, scale, reached,
                  steepest, 1.0 + gamma * dt);
      if (dt == 1.0 && std::string(scale) == "100") CHECK(reached > 0.9);
      if (dt == 0.01) CHECK(top[0] > -4.0);  // 400 steps are a time of 4, over which no gradient is lost
    }
  // With a step above 1 it is no mean any more.
  CHECK(largest(values_of(*finished(request_for("lem", T, {{"width", "12"}, {"dt", "3"}, {"input_scale", "100"}})), "state/0/y")) > 1.0);
}

TEST_CASE("coRNN's states stay within what its damped oscillators make of a force of 1, for any weights and any length") {
  // (y, z) <- A (y, z) + b f with |f| <= 1: y_t is at most the sum of |A^k b| over k, each unit for itself.
  for (const auto& [dt_text, gamma_text, epsilon_text] :
       {std::tuple{"0.042", "2.7", "4.7"}, std::tuple{"0.1", "10", "0.5"}, std::tuple{"0.01", "1", "1"}}) {
    const double dt = std::stod(dt_text), gamma = std::stod(gamma_text), epsilon = std::stod(epsilon_text);
    const double A[4] = {1.0 - dt * dt * gamma, dt * (1.0 - dt * epsilon), -dt * gamma, 1.0 - dt * epsilon};
    double p = dt * dt, q = dt, bound_y = 0.0, bound_z = 0.0;
    for (int k = 0; k < 100000; ++k) {
      bound_y += std::abs(p);
      bound_z += std::abs(q);
      const double next = A[0] * p + A[1] * q;
      q = A[2] * p + A[3] * q;
      p = next;
    }
    double reached = 0.0;
    for (const char* scale : {"1", "100"}) {
      RunRequest request = request_for(
          "cornn", 3000, {{"width", "10"}, {"dt", dt_text}, {"gamma", gamma_text}, {"epsilon", epsilon_text}, {"input_scale", scale}});
      for (std::size_t t = 0; t < 3000; ++t)
        request.sequence.own().input[t] = 1.0 + 0.1 * request.sequence->input[t];  // a force that lasts
      request.recording.kinds.remove(kinds_of(Stage::late));
      const auto trace = finished(request);
      CHECK(largest(values_of(*trace, "state/0/hy")) <= bound_y);
      CHECK(largest(values_of(*trace, "state/0/hz")) <= bound_z);
      reached = std::max(reached, largest(values_of(*trace, "state/0/hy")) / bound_y);
      // The paper's: the energy of all units together is at most their number times the time.
      const auto &y = values_of(*trace, "state/0/hy"), &z = values_of(*trace, "state/0/hz");
      for (std::size_t t = 0; t < 3000 && dt * static_cast<double>(t + 1) <= 1.0; ++t) {
        const double energy =
            std::pow(norm_of(std::span(y).subspan(10 * t, 10)), 2) + std::pow(norm_of(std::span(z).subspan(10 * t, 10)), 2);
        CHECK(energy <= 10.0 * dt * static_cast<double>(t + 1));
      }
    }
    std::printf("coRNN, dt %s, gamma %s, epsilon %s: y up to %.0f %% of its bound %.3f\n", dt_text, gamma_text, epsilon_text,
                100.0 * reached, bound_y);
    CHECK_SAYS(reached > (epsilon > 4.0 ? 0.99 : 0.2), test::show(reached));
  }
}

TEST_CASE("with a step of 1/T coRNN's gradients neither grow nor fade by more than a power of e over T steps") {
  // J = A + (dt^2, dt) f' [W_y W_z], |f'| <= 1: its singular values are within dt sqrt(1 + dt^2) |W| of those of A.
  constexpr std::size_t H = 12;
  for (const std::size_t T : {std::size_t{100}, std::size_t{1000}}) {
    const double dt = 1.0 / static_cast<double>(T);
    const auto trace =
        finished(request_for("cornn", static_cast<std::int64_t>(T),
                             {{"width", "12"}, {"dt", test::show(dt)}, {"gamma", "1"}, {"epsilon", "1"}, {"input_scale", "3"}}));
    const auto& W = values_of(*trace, "param/0/i2h.weight");
    const std::size_t columns = W.size() / H;
    double sum = 0.0;
    for (std::size_t i = 0; i < W.size(); ++i)
      if (i % columns >= columns - 2 * H) sum += W[i] * W[i];
    const double off = dt * std::sqrt(1.0 + dt * dt) * std::sqrt(sum);
    const auto [high, low] = singular_values(1.0 - dt * dt, dt * (1.0 - dt), -dt, 1.0 - dt);
    const auto &top = values_of(*trace, "jacobian/0"), &least = values_of(*trace, "jacobian_min/0");
    const double end = std::log10(norm_of(std::span(values_of(*trace, "output")).last(H)));
    for (std::size_t t = 0; t < T; ++t) {
      const double past = static_cast<double>(T - 1 - t), above = past * std::log10(high + off), below = past * std::log10(low - off);
      CHECK(top[t * (top.size() / T)] <= above + 1e-9);
      CHECK(least[t] >= below - 1e-9);
      const double gradient = std::log10(gradient_at(*trace, "hy", "hz", t));
      CHECK(gradient <= end + above + 1e-9 && gradient >= end + below - 1e-9);
    }
    const double N = static_cast<double>(T - 1), ways = std::log10(std::exp(1.0));
    std::printf("coRNN over %zu steps of 1/%zu: ds_T/ds_0 has singular values from e^%.2f to e^%.2f, within e^%.2f and e^%.2f\n", T, T,
                least[0] / ways, top[0] / ways, N * std::log(low - off), N * std::log(high + off));
    CHECK(N * std::log(high + off) < 4.0 && N * std::log(low - off) > -6.0);
  }
}
