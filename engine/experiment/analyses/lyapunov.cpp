// SPDX-License-Identifier: GPL-3.0-or-later
// The Lyapunov exponents of each layer along the sequence: how fast nearby states part, direction by direction.
//
// An orthonormal frame Q is carried by the Jacobians J_t = ds_t/ds_{t-1} and made orthonormal again at every step, J_t Q_{t-1} = Q_t R_t;
// the exponents are the means over t of ln R_t[j][j]. Only logarithms are added up, so nothing under- or overflows. A diagonal transition
// needs no frame: its exponents are the means of ln|a_t|. Blocks have a frame each, and an exponent of a block counts for every column that
// it acts on. Sources: Benettin, Galgani, Giorgilli & Strelcyn, Meccanica 15 (1980) 9 and 21; Engelken, Wolf & Abbott, Phys. Rev. Research
// 5 (2023) 043044 (recurrent networks); Vogt, Puelma Touzel, Shlizerman & Lajoie, Front. Appl. Math. Stat. 8 (2022) 818799 (trained ones,
// under an input).
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "algebra/columns.h"
#include "array/rng.h"
#include "array/stop.h"
#include "experiment/record/analysis.h"

namespace reclab {
namespace {

using namespace columns;

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Seconds: the limit for all exponents of a layer, above which only the leading ones are computed; the limit for one, above which none is
/// computed unless named in the request; and a floating-point operation of a frame on one core of the slower kind.
constexpr double all_seconds = 10.0, one_seconds = 60.0, frame_operation = 4e-10;
constexpr std::int64_t most_entries = std::int64_t{1} << 20;  ///< of a layer's array; more rows are thinned, which a running mean bears

/// k orthonormal directions among n, carried by one Jacobian after another.
class Frame {
 public:
  Frame(std::int64_t n, std::int64_t k)
      : n_(n), k_(k), q_(n, k), y_(n, k), reflectors_(n, k), rows_(n, n), taus_(static_cast<std::size_t>(k)), logs_(taus_.size()) {
    // A drawn direction is almost surely not orthogonal to any direction of a model, so that the first column turns to the one that grows
    // most.
    Rng rng = Rng(1).split("lyapunov");
    for (std::int64_t j = 0; j < k; ++j)
      for (std::int64_t i = 0; i < n; ++i) y_[j][i] = rng.normal();
    orthonormalise();
  }

  /// Of n, k: operations a factor.
  static double work(double n, double k) { return 2.0 * n * n * k + 4.0 * n * k * k; }

  /// ln R[j][j] of one more factor, row-major [n, n]; -infinity where a column vanished to rounding. False where it is not finite.
  bool multiply(std::span<const double> jacobian) {
    double largest = 0.0, poison = 0.0;
    for (const double x : jacobian) {
      largest = std::max(largest, std::abs(x));
      poison += 0.0 * x;  // NaN as soon as one is not finite
    }
    if (std::isnan(poison)) return false;
    // In units of a power of two near the largest entry, so that no product of two leaves the range.
    const int exponent = largest > 0.0 ? std::clamp(std::ilogb(largest), -1000, 1000) : 0;
    const double unit = std::ldexp(1.0, -exponent);
    for (std::int64_t i = 0; i < n_; ++i) {
      check_stop();
      const double* row = jacobian.data() + i * n_;
      for (std::int64_t j = 0; j < n_; ++j) rows_[i][j] = row[j] * unit;
    }
    for (std::int64_t j = 0; j < k_; ++j) {
      check_stop();
      std::int64_t i = 0;
      for (; i + 4 <= n_; i += 4) {
        const double* four[4] = {rows_[i], rows_[i + 1], rows_[i + 2], rows_[i + 3]};
        dot4(q_[j], four, y_[j] + i, 0, rows_.height());
      }
      for (; i < n_; ++i) y_[j][i] = dot(q_[j], rows_[i], 0, rows_.height());
    }
    orthonormalise();
    for (double& log : logs_) log += exponent * std::log(2.0);
    return true;
  }
  std::span<const double> logs() const { return logs_; }

 private:
  /// y = q R by Householder reflections, which leave q orthonormal where columns of y depend on each other too.
  void orthonormalise() {
    for (std::int64_t j = 0; j < k_; ++j) {
      check_stop();
      double* x = y_[j];
      const double whole = norm(x, 0, n_), rest = norm(x, j, n_);
      logs_[static_cast<std::size_t>(j)] =
          rest > 2.0 * static_cast<double>(n_) * std::numeric_limits<double>::epsilon() * whole ? std::log(rest) : -infinity;
      double* v = reflectors_[j];
      std::fill_n(v, reflectors_.height(), 0.0);
      taus_[static_cast<std::size_t>(j)] = 0.0;
      if (rest == 0.0) continue;
      for (std::int64_t i = j; i < n_; ++i) v[i] = x[i] / rest;
      taus_[static_cast<std::size_t>(j)] = 1.0 / (1.0 + std::abs(v[j]));
      v[j] += std::copysign(1.0, v[j]);
      reflect(v, taus_[static_cast<std::size_t>(j)], y_, j + 1, k_, chunk_floor(j), y_.height());
    }
    q_.clear();
    for (std::int64_t j = k_ - 1; j >= 0; --j) {
      check_stop();
      q_[j][j] = 1.0;
      reflect(reflectors_[j], taus_[static_cast<std::size_t>(j)], q_, j, k_, chunk_floor(j), q_.height());
    }
  }

  std::int64_t n_, k_;
  Columns q_, y_, reflectors_, rows_;
  std::vector<double> taus_, logs_;
};

/// Sums of logarithms over the steps from one to another, of several directions: the sum before them is subtracted from a running sum.
/// Compensated, so that a million terms cost no digits; a logarithm of zero is remembered by its step.
class GrowthSums {
 public:
  explicit GrowthSums(std::size_t n) : sum_(n), carry_(n), last_zero_(n, -1) {}
  void add(std::size_t i, double log, std::int64_t step) {
    if (log == -infinity) {
      last_zero_[i] = step;
      return;
    }
    const double y = log - carry_[i], t = sum_[i] + y;
    carry_[i] = (t - sum_[i]) - y;
    sum_[i] = t;
  }
  std::size_t size() const { return sum_.size(); }
  double total(std::size_t i) const { return sum_[i] - carry_[i]; }
  /// Since a step, by which the total was `before`.
  double since(std::size_t i, std::int64_t first, double before) const { return last_zero_[i] >= first ? -infinity : total(i) - before; }

 private:
  std::vector<double> sum_, carry_;
  std::vector<std::int64_t> last_zero_;
};

class Lyapunov final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::lyapunov}; }
  bool of_states() const override { return wanted(); }

  void plan() override {
    if (!record_.any_transition())
      record_.mark_unavailable({Kind::lyapunov},
                               "No step of this model computes its state from the state before, so it has no Lyapunov exponents.");
    if (!wanted()) return;
    for (std::size_t layer = 0; layer < record_.layers(); ++layer)
      if (const Transition own = record_.transition(layer);
          own.kind == Transition::Kind::none && record_.carries(layer) && record_.wants(key_of(Kind::lyapunov, layer)))
        record_.note({Kind::lyapunov}, "Layer " + std::to_string(layer) + " has no Lyapunov exponents, because " + own.why + ".");
  }

  double bytes_a_row() const override {
    double bytes = 0.0;
    for (std::size_t layer = 0; layer < record_.layers(); ++layer)
      if (record_.wants(key_of(Kind::lyapunov, layer))) {
        const auto width = static_cast<double>(record_.transition(layer).width());
        bytes +=
            8.0 * (record_.request.every > 0 ? width
                                             : std::min(width, static_cast<double>(most_entries) / static_cast<double>(record_.length())));
      }
    return bytes;
  }

  bool revisit(Rollout& rollout) override {
    if (!wanted()) return false;
    record_.where = "in the Lyapunov exponents";
    std::vector<LayerExponents> layers;
    for (std::size_t layer = 0; layer < record_.layers(); ++layer)
      if (record_.wants(key_of(Kind::lyapunov, layer)) && record_.transition(layer).kind != Transition::Kind::none)
        layers.emplace_back(layer, record_.transition(layer));
    if (layers.empty()) return false;
    const auto visit = [&](const Rollout::Segment& segment) {
      for (LayerExponents& own : layers) visit_layer(segment, own);
    };
    if (record_.all_invariant())  // nothing to run again
      rollout.visit_first([&](const Rollout::Segment& segment) { visit({segment.network, 0, record_.length()}); }, record_.stop);
    else
      rollout.revisit(visit, record_.stop, Rollout::Order::first_first);
    bool any = false;
    for (LayerExponents& own : layers) any = put(own) || any;
    return any;
  }

 private:
  struct LayerExponents {
    LayerExponents(std::size_t at, Transition transition) : layer(at), of(std::move(transition)), sums(0) {}
    std::size_t layer;
    Transition of;
    bool begun = false, finite = true;
    std::int64_t k = 0;               // exponents that are recorded; 0: too long
    std::vector<std::int64_t> steps;  // of the rows, as the layer goes: those of one that runs backward are turned round at the end
    std::vector<Frame> frames;        // one a block
    GrowthSums sums;
    std::vector<double> before;       // [rows, sums]: the sums at the step with which a row begins
    std::size_t begins = 0, row = 0;  // the next row to begin, and to end
    std::vector<double> values;       // [rows, k]
    std::vector<double> jacobians, logs;
    std::vector<std::complex<double>> factors;
    bool read = false;  // the Jacobian of a transition that does not change
  };

  bool wanted() const { return record_.wants(Kind::lyapunov); }
  /// A row is the mean over the steps from this one on. The first quarter of those before it is left out: the state still comes from where
  /// it began, and the frame turns to the directions that grow most.
  static std::int64_t first_of(std::int64_t step) { return (step + 1) / 4; }

  /// Sets the number of exponents of a layer, by their cost, and the steps at which they are taken.
  void begin(const Rollout::Segment& segment, Memory& memory, LayerExponents& own) {
    own.begun = true;
    const std::int64_t width = own.of.width();
    own.k = width;
    if (own.of.in_blocks()) {
      const bool named = !record_.request.recording.only.empty();
      const auto size = static_cast<double>(own.of.size), blocks = static_cast<double>(own.of.count),
                 steps = static_cast<double>(record_.length());
      const auto seconds = [&](std::int64_t k) {
        return steps * (jacobian_seconds(memory, segment.steps) + blocks * Frame::work(size, static_cast<double>(k)) * frame_operation);
      };
      std::int64_t k = own.of.size;
      if (!named)
        while (k > 1 && seconds(k) > all_seconds) --k;
      const std::string key = key_of(Kind::lyapunov, own.layer);
      if (!named && seconds(k) > one_seconds) {
        record_.note({Kind::lyapunov}, "The Lyapunov exponents of layer " + std::to_string(own.layer) +
                                           " were left out, the largest alone would take about " + duration_text(seconds(k)) +
                                           Remedy{": ", "ask for them with ", {"record", "lyapunov"}} +
                                           Remedy{", or ", "take a smaller width"} + ".");
        own.k = 0;
        return;
      }
      if (k < own.of.size) {
        own.k = k;
        record_.note({Kind::lyapunov}, key + " has the largest " + std::to_string(k) + " of the " + std::to_string(width) +
                                           " Lyapunov exponents; all would take about " + duration_text(seconds(own.of.size)) +
                                           Remedy{": ", "ask for them with ", {"record", "lyapunov"}} + ".");
      }
      for (std::int64_t block = 0; block < own.of.count; ++block) own.frames.emplace_back(own.of.size, k);
      own.sums = GrowthSums(static_cast<std::size_t>(own.of.count * k));
    } else {
      own.sums = GrowthSums(static_cast<std::size_t>(width));
    }
    own.logs.resize(own.sums.size());
    const std::vector<std::int64_t>& all = record_.trace.steps;
    own.steps = record_.request.every > 0 ? all : thinned(all, std::max<std::int64_t>(2, most_entries / own.k));
    if (own.steps.size() < all.size())
      record_.note({Kind::lyapunov}, key_of(Kind::lyapunov, own.layer) + " has " + plural(std::ssize(own.steps), "row") + " of the " +
                                         std::to_string(all.size()) + " recorded, since a running mean moves slowly" +
                                         Remedy{"; ", "", {"every", std::to_string(record_.every)}, " makes them all"} + ".");
    if (record_.reversed(own.layer)) {
      for (std::int64_t& step : own.steps) step = record_.length() - 1 - step;
      std::ranges::reverse(own.steps);
    }
    own.before.resize(own.steps.size() * own.sums.size());
    own.values.resize(own.steps.size() * static_cast<std::size_t>(own.k));
  }

  void visit_layer(const Rollout::Segment& segment, LayerExponents& own) {
    const auto memories = segment.network.memories(static_cast<int>(own.layer));
    if (!own.begun) begin(segment, *memories[0], own);
    if (own.k == 0) return;
    for (std::int64_t t = 0; t < segment.steps; ++t) {
      record_.check();
      const std::int64_t step = segment.first + t;  // as the layer goes
      while (own.begins < own.steps.size() && first_of(own.steps[own.begins]) == step) {
        for (std::size_t i = 0; i < own.sums.size(); ++i) own.before[own.begins * own.sums.size() + i] = own.sums.total(i);
        ++own.begins;
      }
      own.finite = own.finite && logs_at(memories, t, own);
      for (std::size_t i = 0; i < own.sums.size(); ++i) own.sums.add(i, own.logs[i], step);
      if (own.row < own.steps.size() && own.steps[own.row] == step) record_values(own);
      if (t % 256 == 0)
        record_.report(0.85 + 0.15 * static_cast<double>(step) / static_cast<double>(record_.length()), "Lyapunov exponents");
    }
  }

  /// The logarithm of each direction's stretch at a step of the segment; false where one is not finite.
  bool logs_at(const std::vector<Memory*>& memories, std::int64_t t, LayerExponents& own) {
    const bool again = own.read;
    own.read = !record_.per_step(own.layer) && own.of.every == 1;
    if (own.of.kind == Transition::Kind::diagonal) {
      if (again) return true;
      own.factors.resize(own.logs.size());
      factors_at(memories, t, own.factors);
      std::ranges::transform(own.factors, own.logs.begin(), [](const std::complex<double>& a) { return std::log(std::abs(a)); });
      return std::ranges::none_of(own.logs, [](double log) { return std::isnan(log) || log == infinity; });
    }
    const auto square = static_cast<std::size_t>(own.of.size * own.of.size);
    if (!again) {
      own.jacobians.resize(own.frames.size() * square);
      memories[0]->jacobian(t, own.jacobians);
    }
    auto to = own.logs.begin();
    for (std::size_t block = 0; block < own.frames.size(); ++block) {
      if (!own.frames[block].multiply(std::span<const double>(own.jacobians).subspan(block * square, square))) return false;
      to = std::ranges::copy(own.frames[block].logs(), to).out;
    }
    return true;
  }

  static void record_values(LayerExponents& own) {
    const std::int64_t step = own.steps[own.row], first = first_of(step);
    const auto to = own.values.begin() + static_cast<std::ptrdiff_t>(own.row) * own.k;
    const double* before = own.before.data() + own.row++ * own.sums.size();
    if (!own.finite) {  // has no order
      std::fill_n(to, own.k, std::numeric_limits<double>::quiet_NaN());
      return;
    }
    std::vector<double> all;
    for (std::size_t i = 0; i < own.sums.size(); ++i)
      for (std::int64_t column = 0; column < own.of.repeats; ++column)
        all.push_back(own.sums.since(i, first, before[i]) / static_cast<double>(step + 1 - first));
    std::ranges::sort(all, std::greater<>());
    std::copy_n(all.begin(), own.k, to);
  }

  bool put(LayerExponents& own) {
    if (own.k == 0) return false;
    if (record_.reversed(own.layer)) {
      const auto rows = static_cast<std::ptrdiff_t>(own.steps.size());
      for (std::ptrdiff_t row = 0; row < rows / 2; ++row)
        std::swap_ranges(own.values.begin() + row * own.k, own.values.begin() + (row + 1) * own.k,
                         own.values.begin() + (rows - 1 - row) * own.k);
      for (std::int64_t& step : own.steps) step = record_.length() - 1 - step;
      std::ranges::reverse(own.steps);
    }
    TraceArray array =
        timed(key_of(Kind::lyapunov, own.layer), {own.k}, {{"rank", "", {}}}, "1/step",
              std::string("Lyapunov exponents, natural logarithm a step, largest first: the mean over the steps up to this one") +
                  (record_.reversed(own.layer) ? ", the layer running from the end to the start," : "") + " without their first quarter.");
    array.shape[0] = std::ssize(own.steps);
    if (own.steps != record_.trace.steps) array.steps = own.steps;
    record_.note_not_finite(array.key, own.steps, std::ssize(own.values),
                            [&](std::size_t i) { return !std::isnan(own.values[i]) && own.values[i] != infinity; });
    array.real = std::make_shared<const std::vector<double>>(std::move(own.values));
    record_.trace.put(std::move(array));
    return true;
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> lyapunov(Record& record) { return std::make_unique<Lyapunov>(record); }
}  // namespace analyses
}  // namespace reclab
