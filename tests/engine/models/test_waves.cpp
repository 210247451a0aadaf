// SPDX-License-Identifier: GPL-3.0-or-later
// The waves of the neural wave machine are those of its kernels: the spectrum is their dispersion relation, and a pulse goes at the speed
// that they say.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <numbers>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algebra/eigen.h"
#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "models/network.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// A network of one layer on a sequence of one column, with weights that a test changes first.
struct Machine {
  Machine(const Settings& set, std::int64_t steps)
      : architecture(builtin_registry().find("neural-wave-machine")),
        hyper(hyper_of(builtin_registry(), preset(), set)),
        parameters(Network(architecture, hyper, {}).initialise(3)) {
    sequence = make_task("impulse", {.length = steps});
    std::ranges::fill(sequence.input, 0.0);
  }
  static Preset preset() {
    Preset preset;
    preset.id = preset.title = preset.architecture = "neural-wave-machine";
    return preset;
  }
  std::vector<double>& weight(const std::string& name) {
    auto* entry = parameters.find("0/" + name);
    CHECK_SAYS(entry, name);
    return entry->values;
  }
  /// Calls visit with each segment's network after it was run.
  void run(const Rollout::Visit& visit) const {
    const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
    const SequenceLoss loss(LossKind::last, sequence);
    Rollout rollout(model, Batch(sequence, loss), {});
    CHECK(!rollout.forward(visit, {}));
  }
  /// The positions at each step, [steps, rings * units].
  std::vector<double> positions() const {
    std::vector<double> all;
    run([&](const Rollout::Segment& segment) {
      const Var y = segment.network.output();
      const auto* values = static_cast<const double*>(segment.network.graph().value(y));
      all.insert(all.end(), values, values + count(y.shape()));
    });
    return all;
  }

  const Architecture& architecture;
  Hyper hyper;
  Parameters parameters;
  Sequence sequence;
};

/// The place of the largest entry among some in a row, between entries by a parabola.
double peak(const double* row, std::size_t from, std::size_t to) {
  const auto at = static_cast<std::size_t>(std::max_element(row + from + 1, row + to - 1) - row);
  const double left = row[at - 1], here = row[at], right = row[at + 1];
  return static_cast<double>(at) + 0.5 * (left - right) / (left - 2.0 * here + right);
}

/// The same path of a pulse that starts in the middle of n places, at two times: units a step, of the half that goes up.
double speed_of(const std::vector<double>& rows, std::size_t n, std::size_t first, std::size_t last) {
  return (peak(&rows[last * n], n / 2, n) - peak(&rows[first * n], n / 2, n)) / static_cast<double>(last - first);
}

}  // namespace

TEST_CASE("at rest the spectrum is the dispersion relation of the kernels, wave number by wave number") {
  // With w(k) = sum over taps of w e^(i k place), each wave number has z' = z + dt ((w_y(k) - gamma) y + (w_z(k) - epsilon) z), y' = y + dt
  // z'.
  constexpr double dt = 0.3, gamma = 1.1, epsilon = 0.4;
  for (const auto& [coupling, R, n] :
       {std::tuple{"1d", 2, 7}, std::tuple{"1d", 1, 8}, std::tuple{"2d", 3, 5}, std::tuple{"2d", 4, 4}, std::tuple{"none", 2, 3}}) {
    Machine machine({{"coupling", coupling},
                     {"rings", std::to_string(R)},
                     {"width", std::to_string(n)},
                     {"dt", "0.3"},
                     {"gamma", "1.1"},
                     {"epsilon", "0.4"}},
                    1);
    const std::string kind = coupling;
    std::ranges::fill(machine.weight("Wx.bias"), 0.0);
    if (kind != "none") machine.weight("Wz.bias")[0] = machine.weight("Wy.bias")[0] = 0.0;
    const auto transform = [&](const std::string& name, int p, int q) {
      const auto& w = machine.weight(kind == "none" ? name : name + ".weight");
      if (w.size() == 1) return std::complex<double>(w[0]);
      std::complex<double> sum = 0.0;
      const int rows = w.size() == 9 ? 3 : 1;
      for (int a = 0; a < rows; ++a)
        for (int b = 0; b < 3; ++b) {
          const double phase =
              2.0 * std::numbers::pi * (static_cast<double>(p * (rows == 3 ? a - 1 : 0)) / R + static_cast<double>(q * (b - 1)) / n);
          sum += w[static_cast<std::size_t>(a * 3 + b)] * std::polar(1.0, phase);
        }
      return sum;
    };
    std::vector<std::complex<double>> expected, found;
    for (int p = 0; p < R; ++p)
      for (int q = 0; q < n; ++q) {
        const auto pull = dt * (transform("Wy", p, q) - gamma), keep = 1.0 + dt * (transform("Wz", p, q) - epsilon);
        const auto trace = 1.0 + dt * pull + keep;  // of [[1 + dt pull, dt keep], [pull, keep]], whose determinant is keep
        const auto root = std::sqrt(trace * trace - 4.0 * keep);
        expected.push_back((trace + root) / 2.0);
        expected.push_back((trace - root) / 2.0);
      }
    machine.run([&](const Rollout::Segment& segment) {
      Memory* memory = segment.network.memories(0).at(0);
      const Transition of = memory->transition();
      std::vector<double> matrices(static_cast<std::size_t>(of.entries()));
      memory->jacobian(0, matrices);
      const auto size = static_cast<std::size_t>(of.size);
      for (std::size_t block = 0; block < static_cast<std::size_t>(of.count); ++block)
        for (const auto& value : eigenvalues(std::span<const double>(matrices).subspan(block * size * size, size * size), of.size))
          found.push_back(value);
    });
    CHECK_EQUAL(found.size(), expected.size());
    double worst = 0.0;
    for (const auto& value : expected) {
      const auto nearest = std::ranges::min_element(found, {}, [&](const std::complex<double>& other) { return std::abs(other - value); });
      worst = std::max(worst, std::abs(*nearest - value));
      found.erase(nearest);
    }
    std::printf("%s, %d rings of %d: worst error of an eigenvalue %.1e\n", coupling, R, n, worst);
    CHECK(worst < 1e-12);
  }
}

TEST_CASE("a pulse goes at the speed of its kernel, along rings and across them") {
  // Long waves of y'' = c^2 (y_{j-1} - 2 y_j + y_{j+1}) go c units per unit of time. A bump of deviation 8 units has waves long enough for
  // 0.5 %.
  constexpr std::size_t n = 256;
  double speeds[3] = {};
  std::size_t at = 0;
  for (const char* c : {"0.5", "1", "2"}) {
    for (const bool across : {false, true}) {
      const double expected = std::stod(c) * 0.4;  // the two bumps have left each other after 40 units
      const auto first = static_cast<std::size_t>(40.0 / expected), last = static_cast<std::size_t>(90.0 / expected);
      Machine machine({{"coupling", across ? "2d" : "1d"},
                       {"rings", across ? "256" : "1"},
                       {"width", across ? "2" : "256"},
                       {"dt", "0.4"},
                       {"gamma", "0"},
                       {"epsilon", "0"},
                       {"start", "wave"},
                       {"speed", c}},
                      static_cast<std::int64_t>(last) + 1);
      machine.sequence.input[0] = 1e-4;  // tanh is straight there
      auto& W = machine.weight("Wx.weight");
      for (std::size_t i = 0; i < W.size(); ++i) {
        const double away = (static_cast<double>(across ? i / 2 : i) - n / 2.0) / 8.0;
        W[i] = std::exp(-0.5 * away * away) * -away;  // a slope, so that the positions, its integral, are two bumps
      }
      std::vector<double> rows = machine.positions();
      if (across) {  // the first unit of each ring
        for (std::size_t i = 0; 2 * i < rows.size(); ++i) rows[i] = rows[2 * i];
        rows.resize(rows.size() / 2);
      }
      for (double& value : rows) value = std::abs(value);
      const double speed = speed_of(rows, n, first, last);
      std::printf("c %s, %s: %.5f units a step, expected %.5f\n", c, across ? "across rings" : "along a ring", speed, expected);
      CHECK_SAYS(std::abs(speed - expected) < 0.005 * expected, test::show(speed));
      if (!across) speeds[at] = speed;
    }
    ++at;
  }
  CHECK(speeds[1] > 1.9 * speeds[0] && speeds[2] > 1.9 * speeds[1]);
}

TEST_CASE("a kernel that looks to one side alone drives waves to the other") {
  // w_z = (a, 0, -a): velocities are carried along the ring, z' = z + dt a (z_{j-1} - z_{j+1}), to higher places at 2 a dt units a step.
  constexpr std::size_t n = 128, steps = 120;
  Machine machine({{"rings", "1"}, {"width", "128"}, {"dt", "0.05"}, {"gamma", "0"}, {"epsilon", "0"}, {"start", "wave"}, {"speed", "0"}},
                  steps);
  machine.sequence.input[0] = 1e-4;
  for (std::size_t i = 0; i < n; ++i) {
    const double away = (static_cast<double>(i) - 40.0) / 8.0;
    machine.weight("Wx.weight")[i] = std::exp(-0.5 * away * away);
  }
  machine.weight("Wz.weight") = {2.0, 0.0, -2.0};
  std::vector<double> z;
  machine.run([&](const Rollout::Segment& segment) {
    for (const auto& state : segment.network.states()) {
      if (state.name != "hz") continue;
      const auto* values = static_cast<const double*>(segment.network.graph().value(state.trajectory));
      z.insert(z.end(), values, values + count(state.trajectory.shape()));
    }
  });
  const double speed = (peak(&z[100 * n], 0, n) - peak(&z[20 * n], 0, n)) / 80.0;
  std::printf("carried along: %.4f units a step, expected %.4f\n", speed, 2.0 * 2.0 * 0.05);
  CHECK_SAYS(std::abs(speed - 0.2) < 0.004, test::show(speed));
}
