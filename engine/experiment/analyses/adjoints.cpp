// SPDX-License-Identifier: GPL-3.0-or-later
// The adjoints of a layer's states from an error at the last step, factor by factor: dL/ds_T of the outputs of that step alone, passed from
// Jacobian to Jacobian.
//
// A cell's Jacobian is a sum (recurrence/mixing/passed_back.h): the part that passes no matrix, which is the gates', and the part through
// the matrices, which is first scaled by slopes and then turned. In a linear recurrence with a matrix all is the matrix's part, in one with
// a factor for each entry all the gates'. Where a layer names the one matrix W (recurrence/mixing/mixing.h) and keeps no other state, W
// bounds ds_T/ds_t; any other has the bound of its Jacobians.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>

#include "algebra/eigen.h"
#include "analysis/product.h"
#include "experiment/record/analysis.h"
#include "recurrence/linear_system.h"
#include "recurrence/mixing/passed_back.h"

namespace reclab {
namespace {

using Complex = std::complex<double>;
constexpr std::int64_t most_rows = 128;
/// Seconds that a layer's Jacobians may take, and those of an operation of JacobianProduct::work() on one core of the slower kind.
constexpr double most_seconds = 20.0, product_operation = 8e-11;
constexpr double fits = 1e-6;  // share of an error that W does not explain, up to the rounding of float32
constexpr double infinity = std::numeric_limits<double>::infinity(), unknown = std::numeric_limits<double>::quiet_NaN();

class Adjoints final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::jacobian_bound, Kind::jacobian_factor, Kind::jacobian_share, Kind::alignment}; }
  bool goes_back() const override {
    return record_.wants(Kind::jacobian_factor) || record_.wants(Kind::jacobian_share) || record_.wants(Kind::alignment);
  }
  bool of_states() const override { return wanted(); }

  void plan() override {
    if (!record_.any_transition()) {
      record_.mark_unavailable(
          kinds(), "No step of this model computes its state from the state before, so no gradient is passed back from state to state.");
      return;
    }
    bool whole = false, apart = false;
    for (std::size_t layer = 0; layer < record_.layers(); ++layer) {
      whole = whole || is_whole(record_.transition(layer));
      apart = apart || is_apart(layer);
    }
    if (!whole)
      record_.mark_unavailable(
          kinds(),
          "The state of this model is a matrix, and a step does the same to each of its columns. The bound, the factors and the "
          "alignment are worked out for states that are vectors alone.");
    if (whole && !apart)
      record_.mark_unavailable(
          of_factors,
          "The factors of a step (gate, slope, matrix) are worked out for cells, for a matrix that is the whole step, and where "
          "each entry of the state has a factor of its own; this model's step is none of these.");
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
  static constexpr Kinds of_factors{Kind::jacobian_factor, Kind::jacobian_share};
  struct Step {
    double gate = unknown, slope = unknown, matrix = unknown, whole = unknown;  // log10 of lengths
    double share_of_gate = unknown, share_of_matrix = unknown;
  };
  struct Passed {
    bool there = false, apart = false;
    Transition of;
    std::vector<Complex> error;     // of length 1, or empty where nothing is passed
    std::vector<double> recurrent;  // W, [n, n]; empty: none
    double largest_slope = 1.0;
    bool bounds = false;              // some step is diag(slope) W, so that W bounds it
    double largest = -infinity;       // log10 of the largest singular value of a Jacobian, of the steps that W does not bound
    double radius = unknown;          // log10 of the spectral radius of a Jacobian that is the same at every step
    std::vector<Step> passes;         // by the layer's step
    std::vector<std::int64_t> steps;  // of the directions
    std::vector<std::vector<Complex>> directions;
  };
  std::vector<std::vector<Complex>> errors_;  // by layer
  std::vector<bool> read_inside_;             // by layer: the loss depends on the state of the last step

  bool wanted() const {
    const RecordingOptions& recording = record_.request.recording;
    return (record_.wants(Kind::jacobian_bound) || goes_back()) && (!recording.only.empty() || !recording.kinds.has_all(recordable()));
  }
  static bool is_whole(const Transition& of) {
    return of.kind == Transition::Kind::diagonal || (of.in_blocks() && of.count == 1 && of.repeats == 1);
  }

  /// Whether the parts of its Jacobian can be told apart.
  bool is_apart(std::size_t layer) const {
    const Transition of = record_.transition(layer);
    if (of.kind == Transition::Kind::diagonal) return true;
    const std::vector<Memory*> memories = record_.shape_network().memories(static_cast<int>(layer));
    return is_whole(of) && (dynamic_cast<const TellsApart*>(memories[0]) || dynamic_cast<const HasLinearSystem*>(memories[0]));
  }

  bool begin(std::size_t layer, Passed& own) {
    own.of = record_.transition(layer);
    if (!is_whole(own.of)) return false;
    own.apart = is_apart(layer);
    const double n = static_cast<double>(own.of.size);
    const double seconds = own.of.in_blocks() ? (16.0 * n * n * n * product_operation) * static_cast<double>(record_.length()) : 0.0;
    if (seconds > most_seconds && record_.request.recording.only.empty()) {
      record_.note(kinds(), "What is passed back in layer " + std::to_string(layer) + " was left out, it would take about " +
                                duration_text(seconds) + ": take a smaller width.");
      return false;
    }
    if (layer < errors_.size() && std::ssize(errors_[layer]) == own.of.width()) {
      own.error = errors_[layer];
      const double norm = length_of(own.error);
      if (norm > 0.0 && std::isfinite(norm))
        for (Complex& entry : own.error) entry /= norm;
      else
        own.error.clear();
    }
    if (own.error.empty() && goes_back() && read_inside_[layer])
      record_.note({Kind::jacobian_factor, Kind::jacobian_share, Kind::alignment},
                   "The memory of layer " + std::to_string(layer) +
                       " is read by the same operation that updates it, which tells how long the gradient at its last state is but not "
                       "which way it points: there are no factors and no alignment.");
    else if (own.error.empty() && goes_back())
      record_.note(
          {Kind::jacobian_factor, Kind::jacobian_share, Kind::alignment},
          "The loss does not depend on the last state of layer " + std::to_string(layer) + ", so no gradient is passed back from it.");
    own.passes.assign(static_cast<std::size_t>(record_.length()), {});
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
    if (const RecurrentMatrix* given = network.recurrent_matrix(static_cast<int>(layer));
        given && own.recurrent.empty() && count(given->matrix.shape()) == own.of.size * own.of.size) {
      own.recurrent =
          to_double(record_.prepared.backend, given->matrix.dtype(), network.graph().value(given->matrix), count(given->matrix.shape()));
      own.largest_slope = given->slope;
    }
    std::vector<double> jacobian;
    std::vector<Complex> diagonal;
    for (std::int64_t t = segment.steps - 1; t >= 0; --t) {
      record_.check();
      const std::int64_t step = segment.first + t;
      const auto here = std::ranges::lower_bound(own.steps, step) - own.steps.begin();
      if (here < std::ssize(own.steps) && own.steps[static_cast<std::size_t>(here)] == step)
        own.directions[static_cast<std::size_t>(here)] = own.error;
      auto& passes = own.passes[static_cast<std::size_t>(step)];
      if (own.of.in_blocks()) {
        jacobian.resize(static_cast<std::size_t>(own.of.entries()));
        memories[0]->jacobian(t, jacobian);
        if (pass(*memories[0], t, jacobian, own, passes))
          own.bounds = true;
        else
          bound(jacobian, own);
      } else {
        diagonal.resize(static_cast<std::size_t>(own.of.width()));
        factors_at(memories, t, diagonal);
        for (const Complex& a : diagonal) own.largest = std::max(own.largest, std::log10(std::abs(a)));
        if (!own.error.empty()) {
          for (std::size_t i = 0; i < diagonal.size(); ++i) own.error[i] *= std::conj(diagonal[i]);
          passes.gate = passes.whole = shorten(own.error);
          passes.slope = -infinity;
          passes.share_of_gate = own.error.empty() ? unknown : 1.0;
          passes.share_of_matrix = own.error.empty() ? unknown : 0.0;
        }
      }
    }
  }

  /// Scales x to length 1 and returns log10 of its length before; empties x of length 0 or not finite.
  static double shorten(std::vector<Complex>& x) {
    const double norm = length_of(x);
    if (!(norm > 0.0) || !std::isfinite(norm)) {
      x.clear();
      return norm == 0.0 ? -infinity : unknown;
    }
    for (Complex& entry : x) entry /= norm;
    return std::log10(norm);
  }

  static void bound(const std::vector<double>& J, Passed& own) {
    JacobianProduct one(own.of.size);
    one.multiply(J);
    own.largest = std::max(own.largest, one.log10_largest(1)[0]);
    if (!own.of.varies && std::isnan(own.radius)) own.radius = std::log10(spectral_radius(J, own.of.size));
  }

  /// One Jacobian: the error through it, and the parts of gates and matrix in it; returns whether it is diag(slope) W.
  static bool pass(Memory& memory, std::int64_t t, const std::vector<double>& J, Passed& own, Step& passes) {
    const auto n = static_cast<std::size_t>(own.of.size);
    std::vector<double> error(n);
    if (own.error.empty())
      for (std::size_t i = 0; i < n; ++i)
        error[i] = std::cos(static_cast<double>(i + 1));  // any direction, to tell which share is kept and whether W returns the rest
    else
      for (std::size_t i = 0; i < n; ++i) error[i] = own.error[i].real();
    std::vector<double> next(n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) next[j] += J[i * n + j] * error[i];
    PassedBack parts;
    if (auto* tells = own.apart ? dynamic_cast<TellsApart*>(&memory) : nullptr) {
      if (auto told = tells->pass_back(t, error))
        parts = std::move(*told);
      else
        own.apart = false;
    } else if (own.apart) {
      parts = {std::vector<double>(n), error, next};
    }
    const bool by_matrix = own.apart && !own.recurrent.empty() && length_of(parts.kept) == 0.0 && is_turned(own.recurrent, parts);
    if (own.error.empty()) return by_matrix;
    const double whole = length_of(next);
    if (own.apart) {
      const double sloped = length_of(parts.sloped);
      passes.gate = std::log10(length_of(parts.kept));
      passes.slope = std::log10(sloped);
      if (sloped > 0.0) passes.matrix = std::log10(length_of(parts.returned) / sloped);
      passes.whole = std::log10(whole);
      double of_gate = 0.0, of_matrix = 0.0;
      for (std::size_t i = 0; i < n; ++i)
        of_gate += parts.kept[i] / whole * (next[i] / whole), of_matrix += parts.returned[i] / whole * (next[i] / whole);
      if (whole > 0.0) passes.share_of_gate = of_gate, passes.share_of_matrix = of_matrix;
    }
    own.error.assign(next.begin(), next.end());
    shorten(own.error);
    return by_matrix;
  }

  /// Whether the error returned through the matrix is W^T of the error scaled by slopes.
  static bool is_turned(const std::vector<double>& W, const PassedBack& parts) {
    const std::size_t n = parts.returned.size();
    if (parts.sloped.size() != n) return false;
    std::vector<double> rest = parts.returned;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) rest[j] -= W[i * n + j] * parts.sloped[i];
    return length_of(rest) <= fits * length_of(parts.returned);
  }

  void put(std::size_t layer, Passed& own) {
    const auto number = static_cast<std::int64_t>(layer);
    const std::int64_t length = record_.length();
    const std::vector<std::int64_t>& steps = record_.trace.steps;
    const auto in_layer = [&](std::int64_t step) { return record_.reversed(layer) ? length - 1 - step : step; };
    if (record_.wants(key_of(Kind::jacobian_bound, number))) {
      const bool of_matrix = own.bounds && own.largest == -infinity;
      double singular = own.largest, eigen = own.of.in_blocks() ? own.radius : own.largest;
      if (own.bounds) {
        JacobianProduct one(own.of.size);
        one.multiply(own.recurrent);
        singular = std::max(singular, one.log10_largest(1)[0] + std::log10(own.largest_slope));
        if (of_matrix) eigen = std::log10(spectral_radius(own.recurrent, own.of.size)) + std::log10(own.largest_slope);
      }
      std::vector<double> values;
      for (const std::int64_t step : steps)
        for (const double log10 : {singular, eigen}) {
          const std::int64_t passed = length - 1 - in_layer(step);
          values.push_back(passed ? static_cast<double>(passed) * log10 : std::isnan(log10) ? unknown : 0.0);
        }
      TraceArray array =
          timed(key_of(Kind::jacobian_bound, number), {2}, {{"bound", "", {"singular value", "eigenvalue"}}}, "log10",
                of_matrix ? "log10 of what the largest singular value of W, times the largest slope of the activation, lets ds_T/ds_t be "
                            "at most, and of the same of the largest eigenvalue of W."
                          : "log10 of what the largest singular value of any step's ds_t/ds_{t-1} lets ds_T/ds_t be at most, and of the "
                            "same of the largest eigenvalue where all steps have one transition or each entry has a factor of its own.");
      array.shape[0] = std::ssize(steps);
      put_real(record_.trace, std::move(array), std::move(values));
    }
    if (own.directions.back().empty() || !goes_back()) return;
    if (own.apart)
      put_factors(layer, own);
    else if (is_apart(layer))
      record_.note(of_factors,
                   "The units of layer " + std::to_string(layer) +
                       " read each other directly and not through a matrix, so a step cannot be split into gates and matrices.");
    if (record_.wants(key_of(Kind::alignment, number))) put_alignment(layer, own);
  }

  void put_factors(std::size_t layer, const Passed& own) {
    std::vector<double> lengths, shares;
    for (const std::int64_t step : record_.trace.steps) {
      const Step& own_step = own.passes[static_cast<std::size_t>(record_.reversed(layer) ? record_.length() - 1 - step : step)];
      for (const double x : {own_step.gate, own_step.slope, own_step.matrix, own_step.whole}) lengths.push_back(x);
      for (const double x : {own_step.share_of_gate, own_step.share_of_matrix}) shares.push_back(x);
    }
    const auto put = [&](Kind kind, const std::vector<std::string>& names, const std::string& unit, const std::string& text,
                         std::vector<double> values) {
      const std::string key = key_of(kind, static_cast<std::int64_t>(layer));
      if (!record_.wants(key)) return;
      TraceArray array = timed(key, {std::ssize(names)}, {{"factor", "", names}}, unit, text);
      array.shape[0] = std::ssize(record_.trace.steps);
      put_real(record_.trace, std::move(array), std::move(values));
    };
    put(Kind::jacobian_factor, {"gate", "slope", "matrix", "step"}, "log10",
        "log10 of what ds_t/ds_{t-1} does to the length of what an error at the last step sends back through step t: along its gates, "
        "which passes no matrix; by the slopes of its activations, times the gates on that "
        "way; by its matrices after them; and in all. What comes along the gates and what the slopes and the matrices make of the rest, "
        "two vectors, add up to the last.",
        std::move(lengths));
    put(Kind::jacobian_share, {"gate", "matrix"}, "",
        "Which part of what an error at the last step sends back through step t comes along the gates and which through the matrices: each "
        "one's projection on the sum of both, as a share of it. They sum to 1; one "
        "below 0 takes away from the other.",
        std::move(shares));
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
    TraceArray array =
        timed(key_of(Kind::alignment, static_cast<std::int64_t>(layer)), {static_cast<std::int64_t>(n)}, {{"earlier step", "", {}}}, "",
              "The cosine between what an error at the last step sends back to the state of step t and to that of another step: 1 where "
              "they are the same direction.");
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
