// SPDX-License-Identifier: GPL-3.0-or-later
// What an error at the last step sends back through a layer's states, factor by factor: dL/ds_T of the outputs of that step alone, passed from Jacobian to Jacobian.
//
// Of a layer that multiplies its state with a matrix W (recurrence/mixing), ds_t/ds_{t-1} = diag(gate) + diag(slope) W is taken apart into what keeps, the
// activation's slope and W; and W bounds ds_T/ds_t. Any other has the bound of its Jacobians.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>

#include "algebra/eigen.h"
#include "analysis/product.h"
#include "experiment/record/analysis.h"

namespace reclab {
namespace {

using Complex = std::complex<double>;
constexpr std::int64_t most_rows = 128;
/// Seconds that a layer's Jacobians may take, and those of an operation of JacobianProduct::work() on one core of the slower kind.
constexpr double most_seconds = 20.0, product_operation = 8e-11;
constexpr double fits = 1e-6;  // of a row of a Jacobian, what is not made of gate, slope and matrix: float32 rounds them
constexpr double infinity = std::numeric_limits<double>::infinity(), unknown = std::numeric_limits<double>::quiet_NaN();

double norm_of(const std::vector<Complex>& x) {
  double norm = 0.0;
  for (const Complex& entry : x) norm = std::hypot(norm, std::abs(entry));
  return norm;
}

class Adjoints final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::jacobian_bound, Kind::jacobian_factor, Kind::alignment}; }
  bool goes_back() const override { return record_.wants(Kind::jacobian_factor) || record_.wants(Kind::alignment); }
  bool of_states() const override { return wanted(); }

  void plan() override {
    if (!record_.any_transition()) {
      record_.lacks(kinds(), "No step maps its state to the next, so nothing is passed back from state to state.");
      return;
    }
    bool whole = false, apart = false;
    for (std::size_t layer = 0; layer < record_.layers(); ++layer) {
      whole = whole || is_whole(record_.transition(layer));
      apart = apart || record_.transition(layer).kind == Transition::Kind::diagonal || record_.probe().recurrent_matrix(static_cast<int>(layer));
    }
    if (!whole) record_.lacks(kinds(), "The state of this model is a matrix in columns that its transition treats alike: what is passed back is drawn of states that are vectors.");
    if (whole && !apart) record_.lacks({Kind::jacobian_factor}, "What a step does to a gradient is told apart where the state is multiplied with one matrix, or each entry with a gate of its own.");
  }

  void begin(const Network&) override {
    errors_.assign(record_.layers(), {});
    read_inside_.assign(record_.layers(), false);
  }

  void backward(const Rollout::Segment& segment, int) override {
    if (segment.first + segment.steps != record_.length()) return;
    Network& network = segment.network;
    Graph& graph = network.graph();
    for (std::size_t layer = 0; layer < errors_.size(); ++layer) {
      errors_[layer].clear();
      for (const Memory* memory : network.memories(static_cast<int>(layer)))
        for (const Network::StateVar& state : network.states()) {
          if (state.memory != memory || !state.trajectory) continue;
          const void* gradient = graph.gradient(state.trajectory);
          const auto& norms = state.memory->log2_norms();
          const auto slot = static_cast<std::size_t>(state.slot);
          if (slot < norms.size() && !norms[slot].empty() && std::isfinite(norms[slot].back())) read_inside_[layer] = true;
          const std::int64_t n = count(state.trajectory.shape()) / segment.steps;
          if (!gradient) continue;
          const std::int64_t at = (segment.steps - 1) * n;
          if (is_complex(state.trajectory.dtype())) {
            const auto values = to_complex(record_.prepared.backend, state.trajectory.dtype(), gradient, n, at);
            errors_[layer].insert(errors_[layer].end(), values.begin(), values.end());
          } else {
            const auto values = to_double(record_.prepared.backend, state.trajectory.dtype(), gradient, n, at);
            errors_[layer].insert(errors_[layer].end(), values.begin(), values.end());
          }
        }
    }
  }

  bool revisit(Rollout& rollout) override {
    if (!wanted()) return false;
    record_.where = "in what is passed back from state to state";
    std::vector<Passed> all(record_.layers());
    bool any = false;
    for (std::size_t layer = 0; layer < all.size(); ++layer) any = begin(layer, all[layer]) || any;
    if (!any) return false;
    rollout.revisit(
        [&](const Rollout::Segment& segment) {
          for (std::size_t layer = 0; layer < all.size(); ++layer)
            if (all[layer].there) visit(segment, layer, all[layer]);
        },
        record_.stop);
    for (std::size_t layer = 0; layer < all.size(); ++layer)
      if (all[layer].there) put(layer, all[layer]);
    return true;
  }

 private:
  enum Factor : std::uint8_t { gate, slope, matrix, factors };
  struct Passed {
    bool there = false, apart = true;  // apart: each Jacobian is made of gate, slope and matrix
    Transition of;
    std::vector<Complex> error;        // of length 1, or empty where nothing is passed
    std::vector<double> recurrent;     // W, [n, n]; empty: none
    double largest_slope = 1.0;
    bool keeps = false;                // some gate is not 0
    double largest = -infinity;        // log10 of the largest singular value of a Jacobian
    std::vector<std::array<double, factors>> passes;  // log10, by the layer's step
    std::vector<std::int64_t> steps;                  // of the directions
    std::vector<std::vector<Complex>> directions;
  };
  std::vector<std::vector<Complex>> errors_;  // by layer
  std::vector<bool> read_inside_;             // by layer: the loss moves the state of the last step, in whatever way

  bool wanted() const {
    const Probe& probe = record_.request.probe;
    return (record_.wants(Kind::jacobian_bound) || goes_back()) && (!probe.only.empty() || !probe.kinds.has_all(recordable()));
  }
  static bool is_whole(const Transition& of) { return of.kind == Transition::Kind::diagonal || (of.in_blocks() && of.count == 1 && of.repeats == 1); }

  bool begin(std::size_t layer, Passed& own) {
    own.of = record_.transition(layer);
    if (!is_whole(own.of)) return false;
    const double n = static_cast<double>(own.of.size);
    const double seconds = own.of.in_blocks() ? (16.0 * n * n * n * product_operation) * static_cast<double>(record_.length()) : 0.0;
    if (seconds > most_seconds && record_.request.probe.only.empty()) {
      record_.note(kinds(), "What is passed back in layer " + std::to_string(layer) + " was left out, it would take about " + about(seconds) + ": take a smaller width.");
      return false;
    }
    if (layer < errors_.size() && std::ssize(errors_[layer]) == own.of.width()) {
      own.error = errors_[layer];
      const double norm = norm_of(own.error);
      if (norm > 0.0 && std::isfinite(norm))
        for (Complex& entry : own.error) entry /= norm;
      else
        own.error.clear();
    }
    if (own.error.empty() && goes_back() && read_inside_[layer])
      record_.note({Kind::jacobian_factor, Kind::alignment}, "The memory of layer " + std::to_string(layer) + " is read inside its own operation, which tells how much an error of the last step sends to its state and not in which direction.");
    else if (own.error.empty() && goes_back())
      record_.note({Kind::jacobian_factor, Kind::alignment}, "The outputs of the last step have no loss that moves the state of layer " + std::to_string(layer) + " there, so nothing is passed back from it.");
    own.passes.assign(static_cast<std::size_t>(record_.length()), {unknown, unknown, unknown});
    own.steps = thinned(record_.trace.steps, most_rows);
    if (record_.reversed(layer)) {
      for (std::int64_t& step : own.steps) step = record_.length() - 1 - step;
      std::ranges::reverse(own.steps);
    }
    own.directions.resize(own.steps.size());
    own.there = true;
    return true;
  }

  void visit(const Rollout::Segment& segment, std::size_t layer, Passed& own) {
    Network& network = segment.network;
    const auto memories = network.memories(static_cast<int>(layer));
    if (const RecurrentMatrix* given = network.recurrent_matrix(static_cast<int>(layer)); given && own.recurrent.empty() && count(given->matrix.shape()) == own.of.size * own.of.size) {
      own.recurrent = to_double(record_.prepared.backend, given->matrix.dtype(), network.graph().value(given->matrix), count(given->matrix.shape()));
      own.largest_slope = given->slope;
    }
    std::vector<double> jacobian;
    std::vector<Complex> diagonal;
    for (std::int64_t t = segment.steps - 1; t >= 0; --t) {
      record_.check();
      const std::int64_t step = segment.first + t;
      const auto here = std::ranges::lower_bound(own.steps, step) - own.steps.begin();
      if (here < std::ssize(own.steps) && own.steps[static_cast<std::size_t>(here)] == step) own.directions[static_cast<std::size_t>(here)] = own.error;
      auto& passes = own.passes[static_cast<std::size_t>(step)];
      if (own.of.in_blocks()) {
        jacobian.resize(static_cast<std::size_t>(own.of.entries()));
        memories[0]->jacobian(t, jacobian);
        if (own.recurrent.empty()) {
          JacobianProduct one(own.of.size);
          one.multiply(jacobian);
          own.largest = std::max(own.largest, one.log10_largest(1)[0]);
        }
        pass(jacobian, own, passes);
      } else {
        diagonal.resize(static_cast<std::size_t>(own.of.width()));
        factors_at(memories, t, diagonal);
        for (const Complex& a : diagonal) own.largest = std::max(own.largest, std::log10(std::abs(a)));
        if (!own.error.empty()) {
          for (std::size_t i = 0; i < diagonal.size(); ++i) own.error[i] *= std::conj(diagonal[i]);
          passes = {shorten(own.error), 0.0, 0.0};
        }
      }
    }
  }

  /// To length 1; returns log10 of what it was. What has no length is gone.
  static double shorten(std::vector<Complex>& x) {
    const double norm = norm_of(x);
    if (!(norm > 0.0) || !std::isfinite(norm)) {
      x.clear();
      return norm == 0.0 ? -infinity : unknown;
    }
    for (Complex& entry : x) entry /= norm;
    return std::log10(norm);
  }

  /// One Jacobian: the error through it, and what of that is whose.
  static void pass(const std::vector<double>& J, Passed& own, std::array<double, factors>& passes) {
    const auto n = static_cast<std::size_t>(own.of.size);
    std::vector<double> keeps(n), slopes(n);
    const bool known = !own.recurrent.empty() && take_apart(J, own.recurrent, n, keeps, slopes);
    own.apart = own.apart && known;
    own.keeps = own.keeps || std::ranges::any_of(keeps, [](double x) { return x != 0.0; });
    if (own.error.empty()) return;
    std::vector<Complex> next(n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) next[j] += J[i * n + j] * own.error[i];
    double by_slope = unknown, by_matrix = unknown;
    if (known) {
      std::vector<Complex> sloped(n), turned(n);
      for (std::size_t i = 0; i < n; ++i) sloped[i] = slopes[i] * own.error[i];
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) turned[j] += own.recurrent[i * n + j] * sloped[i];
      by_slope = std::log10(norm_of(sloped));
      by_matrix = std::log10(norm_of(turned)) - by_slope;
    }
    own.error = std::move(next);
    const double whole = shorten(own.error);
    passes = {known && own.keeps ? whole - by_slope - by_matrix : known ? 0.0 : unknown, by_slope, by_matrix};
  }

  /// J = diag(keeps) + diag(slopes) W, row by row by least squares, at first without what is kept; false where that is not what it is.
  static bool take_apart(const std::vector<double>& J, const std::vector<double>& W, std::size_t n, std::vector<double>& keeps, std::vector<double>& slopes) {
    for (std::size_t i = 0; i < n; ++i) {
      double jj = 0.0, jw = 0.0, ww = 0.0;
      for (std::size_t j = 0; j < n; ++j) jj += J[i * n + j] * J[i * n + j], jw += J[i * n + j] * W[i * n + j], ww += W[i * n + j] * W[i * n + j];
      const double own_j = J[i * n + i], own_w = W[i * n + i];
      const auto rest = [&] {
        double sum = 0.0;
        for (std::size_t j = 0; j < n; ++j) {
          const double left = J[i * n + j] - slopes[i] * W[i * n + j] - (i == j ? keeps[i] : 0.0);
          sum += left * left;
        }
        return std::sqrt(sum);
      };
      keeps[i] = 0.0;
      slopes[i] = ww > 0.0 ? jw / ww : 0.0;
      if (rest() <= fits * std::sqrt(jj)) continue;
      const double determinant = ww - own_w * own_w;
      if (determinant <= 1e-12 * ww) return false;
      slopes[i] = (jw - own_w * own_j) / determinant;
      keeps[i] = own_j - slopes[i] * own_w;
      if (rest() > fits * std::sqrt(jj)) return false;
    }
    return true;
  }

  void put(std::size_t layer, Passed& own) {
    const auto number = static_cast<std::int64_t>(layer);
    const std::int64_t length = record_.length();
    const std::vector<std::int64_t>& steps = record_.trace.steps;
    const auto in_layer = [&](std::int64_t step) { return record_.reversed(layer) ? length - 1 - step : step; };
    const bool of_matrix = !own.recurrent.empty() && own.apart && !own.keeps;
    if (record_.wants(key_of(Kind::jacobian_bound, number))) {
      double singular = own.largest, eigen = own.of.in_blocks() ? unknown : own.largest;
      if (of_matrix) {
        JacobianProduct one(own.of.size);
        one.multiply(own.recurrent);
        singular = one.log10_largest(1)[0] + std::log10(own.largest_slope);
        eigen = std::log10(spectral_radius(own.recurrent, own.of.size)) + std::log10(own.largest_slope);
      }
      std::vector<double> values;
      for (const std::int64_t step : steps)
        for (const double log10 : {singular, eigen}) {
          const std::int64_t passed = length - 1 - in_layer(step);
          values.push_back(passed ? static_cast<double>(passed) * log10 : std::isnan(log10) ? unknown : 0.0);
        }
      TraceArray array = timed(key_of(Kind::jacobian_bound, number), {2}, {{"bound", "", {"singular value", "eigenvalue"}}}, "log10",
                               of_matrix ? "log10 of what the largest singular value of W, times the largest slope of the activation, lets ds_T/ds_t be at most, and of the same of the largest eigenvalue of W."
                                         : "log10 of what the largest singular value of any step's ds_t/ds_{t-1} lets ds_T/ds_t be at most, and of the same of the largest factor where each entry has its own.");
      array.shape[0] = std::ssize(steps);
      put_real(record_.trace, std::move(array), std::move(values));
    }
    if (own.directions.back().empty() || !goes_back()) return;
    if (record_.wants(key_of(Kind::jacobian_factor, number)) && (own.apart || own.of.kind == Transition::Kind::diagonal)) {
      std::vector<double> values;
      for (const std::int64_t step : steps) {
        const auto& passes = own.passes[static_cast<std::size_t>(in_layer(step))];
        values.insert(values.end(), passes.begin(), passes.end());
      }
      TraceArray array = timed(key_of(Kind::jacobian_factor, number), {factors}, {{"factor", "", {"gate", "slope", "matrix"}}}, "log10",
                               "log10 of what a gate, the activation's slope and the matrix of ds_t/ds_{t-1} do to the length of what an error at the last step sends back through step t; their sum is what the step does.");
      array.shape[0] = std::ssize(steps);
      put_real(record_.trace, std::move(array), std::move(values));
    }
    if (record_.wants(key_of(Kind::alignment, number))) put_alignment(layer, own);
  }

  void put_alignment(std::size_t layer, Passed& own) {
    const std::size_t n = own.steps.size();
    std::vector<double> values(n * n, unknown);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const auto &x = own.directions[i], &y = own.directions[j];
        if (x.empty() || y.empty()) continue;
        double sum = 0.0;
        for (std::size_t k = 0; k < x.size(); ++k) sum += (std::conj(x[k]) * y[k]).real();
        values[i * n + j] = std::clamp(sum, -1.0, 1.0);
      }
    if (record_.reversed(layer)) {
      std::ranges::reverse(values);
      for (std::int64_t& step : own.steps) step = record_.length() - 1 - step;
      std::ranges::reverse(own.steps);
    }
    TraceArray array = timed(key_of(Kind::alignment, static_cast<std::int64_t>(layer)), {static_cast<std::int64_t>(n)}, {{"earlier step", "", {}}}, "",
                             "The cosine between what an error at the last step sends back to the state of step t and to that of another step: 1 where they are the same direction.");
    for (const std::int64_t step : own.steps) array.axes.back().labels.push_back(std::to_string(step));
    array.shape[0] = static_cast<std::int64_t>(n);
    if (own.steps != record_.trace.steps) array.steps = own.steps;
    put_real(record_.trace, std::move(array), std::move(values));
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> adjoints(Record& record) { return std::make_unique<Adjoints>(record); }
}  // namespace analyses
}  // namespace reclab
