// SPDX-License-Identifier: GPL-3.0-or-later
// |ds_t/ds_s| over all pairs of steps: the largest singular value of the product of the Jacobians between them.
//
// The steps are gone through once, last first; each row of the picture begins a product of its own at its step, which all factors before it
// join.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "analysis/product.h"
#include "experiment/record/analysis.h"

namespace reclab {
namespace {

constexpr std::int64_t most_rows = 128, least_rows = 8;
/// Seconds that all may take, and those of an operation of JacobianProduct::work() on one core of the slower kind.
constexpr double most_seconds = 8.0, product_operation = 8e-11;
constexpr double infinity = std::numeric_limits<double>::infinity();

class JacobianPairs final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::jacobian_pairs}; }
  bool of_states() const override { return wanted(); }

  void plan() override {
    if (!record_.any_transition())
      record_.mark_unavailable(
          kinds(), "No step of this model computes its state from the state before, so there is no Jacobian ds_t/ds_s between them.");
  }

  bool revisit(Rollout& rollout) override {
    if (!wanted()) return false;
    record_.where = "in the products of Jacobians of all pairs";
    std::vector<LayerPairs> all(record_.layers());
    for (std::size_t layer = 0; layer < all.size(); ++layer) begin(layer, all[layer]);
    if (std::ranges::all_of(all, [](const LayerPairs& own) { return own.steps.empty(); })) return false;
    rollout.revisit(
        [&](const Rollout::Segment& segment) {
          for (std::size_t layer = 0; layer < all.size(); ++layer)
            if (!all[layer].steps.empty()) visit(segment, layer, all[layer]);
        },
        record_.stop);
    for (std::size_t layer = 0; layer < all.size(); ++layer)
      if (!all[layer].steps.empty()) put(layer, all[layer]);
    return true;
  }

 private:
  /// The product from one row's step down to where the walk is.
  struct Row {
    std::vector<JacobianProduct> dense;     // one a block
    std::vector<DiagonalProduct> diagonal;  // one, or none
  };
  struct LayerPairs {
    Transition of;
    std::vector<std::int64_t> steps;  // of rows and columns, as the layer goes
    std::vector<Row> rows;
    std::vector<double> values;  // [rows, columns]
  };

  bool wanted() const {
    const RecordingOptions& recording = record_.request.recording;
    return record_.wants(Kind::jacobian_pairs) && (!recording.only.empty() || !recording.kinds.has_all(recordable()));
  }

  void begin(std::size_t layer, LayerPairs& own) {
    own.of = record_.transition(layer);
    if (own.of.kind == Transition::Kind::none || !record_.wants(key_of(Kind::jacobian_pairs, static_cast<std::int64_t>(layer)))) return;
    const double n = static_cast<double>(own.of.size), length = static_cast<double>(record_.length());
    // A row has as many factors as steps before it, each of them and each singular value about 8 n³ operations a block.
    const double factor = own.of.in_blocks() ? 8.0 * n * n * n * static_cast<double>(own.of.count) * product_operation
                                             : static_cast<double>(own.of.width()) * 1e-9;
    const auto seconds = [&](double rows) { return 0.5 * rows * (length + rows) * factor * static_cast<double>(record_.layers()); };
    std::int64_t rows = std::min<std::int64_t>(most_rows, std::ssize(record_.trace.steps));
    while (rows > least_rows && seconds(static_cast<double>(rows)) > most_seconds) --rows;
    const std::string key = key_of(Kind::jacobian_pairs, static_cast<std::int64_t>(layer));
    if (seconds(static_cast<double>(rows)) > 8.0 * most_seconds && record_.request.recording.only.empty()) {
      record_.note(kinds(), key + " was left out, it would take about " + duration_text(seconds(static_cast<double>(rows))) +
                                Remedy{": ", "ask for it with ", {"record", "jacobian_pairs"}} + Remedy{", or ", "take a smaller width"} +
                                ".");
      return;
    }
    own.steps = thinned(record_.trace.steps, rows);
    if (own.steps.size() < record_.trace.steps.size())
      record_.note(kinds(), "The map of all pairs in layer " + std::to_string(layer) + " is of " + std::to_string(own.steps.size()) +
                                " of the " + std::to_string(record_.trace.steps.size()) + " steps recorded, evenly spaced.");
    if (record_.reversed(layer)) {
      for (std::int64_t& step : own.steps) step = record_.length() - 1 - step;
      std::ranges::reverse(own.steps);
    }
    own.rows.resize(own.steps.size());
    own.values.assign(own.steps.size() * own.steps.size(), -infinity);
  }

  void visit(const Rollout::Segment& segment, std::size_t layer, LayerPairs& own) {
    const auto memories = segment.network.memories(static_cast<int>(layer));
    const auto square = static_cast<std::size_t>(own.of.size * own.of.size);
    std::vector<double> matrices(own.of.in_blocks() ? static_cast<std::size_t>(own.of.entries()) : 0), logs;
    std::vector<std::complex<double>> factors;
    for (std::int64_t t = segment.steps - 1; t >= 0; --t) {
      record_.check();
      const std::int64_t step = segment.first + t;
      const auto here = std::ranges::lower_bound(own.steps, step) - own.steps.begin();
      if (here < std::ssize(own.steps) && own.steps[static_cast<std::size_t>(here)] == step) {
        Row& fresh = own.rows[static_cast<std::size_t>(here)];
        if (own.of.in_blocks())
          for (std::int64_t block = 0; block < own.of.count; ++block) fresh.dense.emplace_back(own.of.size);
        else
          fresh.diagonal.emplace_back(own.of.width());
        for (auto row = static_cast<std::size_t>(here); row < own.rows.size(); ++row)
          own.values[row * own.steps.size() + static_cast<std::size_t>(here)] = largest_of(own.rows[row]);
      }
      if (step == 0) break;
      if (own.of.in_blocks()) {
        memories[0]->jacobian(t, matrices);
      } else {
        factors.resize(static_cast<std::size_t>(own.of.width()));
        factors_at(memories, t, factors);
        logs.resize(factors.size());
        std::ranges::transform(factors, logs.begin(), [](const std::complex<double>& a) { return std::log(std::abs(a)); });
      }
      for (Row& row : own.rows) {
        for (std::size_t block = 0; block < row.dense.size(); ++block)
          row.dense[block].multiply(std::span<const double>(matrices).subspan(block * square, square));
        for (DiagonalProduct& product : row.diagonal) product.multiply(logs);
      }
      if (t % 64 == 0)
        record_.report(0.85 + 0.15 * static_cast<double>(record_.length() - step) / static_cast<double>(record_.length()),
                       "pairs of steps");
    }
  }

  static double largest_of(const Row& row) {
    double largest = -infinity;
    const auto take = [&](double x) {
      largest = std::isnan(x) || std::isnan(largest) ? std::numeric_limits<double>::quiet_NaN() : std::max(largest, x);
    };
    for (const JacobianProduct& block : row.dense) take(block.log10_largest(1)[0]);
    for (const DiagonalProduct& product : row.diagonal) take(product.log10_largest(1)[0]);
    return largest;
  }

  void put(std::size_t layer, LayerPairs& own) {
    const std::size_t n = own.steps.size();
    if (record_.reversed(layer)) {
      std::ranges::reverse(own.values);
      for (std::int64_t& step : own.steps) step = record_.length() - 1 - step;
      std::ranges::reverse(own.steps);
    }
    TraceArray array = timed(
        key_of(Kind::jacobian_pairs, static_cast<std::int64_t>(layer)), {static_cast<std::int64_t>(n)}, {{"earlier step", "", {}}}, "log10",
        std::string(
            "log10 of the largest singular value of ds_t/ds_s, what is left at step t of a change of the state at step s; −∞ where ") +
            (record_.reversed(layer) ? "s comes before t, the layer running from the end to the start." : "s comes after t."));
    for (const std::int64_t step : own.steps) array.axes.back().labels.push_back(std::to_string(step));
    array.shape[0] = static_cast<std::int64_t>(n);
    if (own.steps != record_.trace.steps) array.steps = own.steps;
    record_.note_not_finite(array.key, own.steps, std::ssize(own.values),
                            [&](std::size_t i) { return !std::isnan(own.values[i]) && own.values[i] != infinity; });
    put_real(record_.trace, std::move(array), std::move(own.values));
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> pairs(Record& record) { return std::make_unique<JacobianPairs>(record); }
}  // namespace analyses
}  // namespace reclab
