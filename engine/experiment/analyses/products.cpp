// SPDX-License-Identifier: GPL-3.0-or-later
// Singular values of the products of Jacobians, ds_T/ds_t.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "analysis/product.h"
#include "experiment/record/analysis.h"

namespace reclab {
namespace {

/// Seconds: the limit for all products unless named in the request, and an operation of JacobianProduct::work() on one core of the slower
/// kind.
constexpr double product_seconds = 60.0, product_operation = 8e-11;
constexpr double infinity = std::numeric_limits<double>::infinity();

class JacobianProducts final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::jacobian, Kind::jacobian_min}; }
  bool of_states() const override { return wanted(); }

  void plan() override {
    if (!record_.any_transition())
      record_.mark_unavailable(
          {Kind::jacobian, Kind::jacobian_min},
          "No step of this model computes its state from the state before, so there is no Jacobian ds_T/ds_t between them.");
    for (std::size_t layer = 0; layer < record_.layers(); ++layer) {
      const Transition own = record_.transition(layer);
      // The least work: each factor multiplies the product so far. The first factor shows the rest.
      const double product = 2.0 * static_cast<double>(own.entries()) * static_cast<double>(own.size) * product_operation *
                             static_cast<double>(record_.length());
      affordable_.push_back(!own.in_blocks() || !wanted() || may_take(layer, product));
    }
  }

  bool revisit(Rollout& rollout) override {
    if (!wanted()) return false;
    record_.where = "in the products of Jacobians";
    std::vector<LayerProduct> products(record_.layers());
    for (std::size_t layer = 0; layer < products.size(); ++layer) {
      auto& own = products[layer];
      own.of = record_.transition(layer);
      const bool dense = own.of.in_blocks();
      if (dense && !affordable_[layer]) own.of = {};
      if (own.of.kind == Transition::Kind::none) continue;
      own.k = std::min<std::int64_t>(record_.request.recording.singular_values, own.of.width());
      own.steps = dense ? thinned(record_.trace.steps, record_.request.recording.dense_rows) : record_.trace.steps;
      own.known = !dense || record_.length() == 1;
      own.make_room();
      if (dense)
        for (std::int64_t block = 0; block < own.of.count; ++block) own.dense.push_back(std::make_unique<JacobianProduct>(own.of.size));
      else
        own.diagonal = std::make_unique<DiagonalProduct>(own.of.width());
    }
    if (std::ranges::none_of(products, [](const LayerProduct& own) { return own.of.kind != Transition::Kind::none; })) return false;
    const auto visit = [&](const Rollout::Segment& segment) {
      for (std::size_t layer = 0; layer < products.size(); ++layer)
        if (products[layer].of.kind != Transition::Kind::none) visit_layer(segment, layer, products[layer]);
    };
    if (record_.all_invariant())  // nothing to run again
      rollout.visit_first([&](const Rollout::Segment& segment) { visit({segment.network, 0, record_.length()}); }, record_.stop);
    else
      rollout.revisit(visit, record_.stop);
    for (std::size_t layer = 0; layer < products.size(); ++layer)
      if (products[layer].of.kind != Transition::Kind::none) put(layer, products[layer]);
    return true;
  }

 private:
  struct LayerProduct {
    Transition of;
    std::vector<std::int64_t> steps;
    std::vector<double> largest, smallest;
    std::vector<std::unique_ptr<JacobianProduct>> dense;  // one a block
    std::unique_ptr<DiagonalProduct> diagonal;
    std::int64_t k = 0;
    bool known = true;  // which steps there will be; of Jacobians in blocks when the first was seen
    void make_room() {
      largest.resize(steps.size() * static_cast<std::size_t>(k));
      smallest.resize(steps.size());
    }
  };
  std::vector<bool> affordable_;  // by layer

  bool wanted() const { return record_.wants(Kind::jacobian) || record_.wants(Kind::jacobian_min); }

  /// Whether the product of all of a layer's Jacobians is worth its time; a note says where it is not.
  bool may_take(std::size_t layer, double seconds) {
    if (seconds <= product_seconds || (!record_.request.recording.only.empty() && record_.wants(Kind::jacobian))) return true;
    record_.note({Kind::jacobian}, "The singular values of ds_T/ds_t of layer " + std::to_string(layer) +
                                       " were left out, they would take about " + duration_text(seconds) +
                                       Remedy{": ", "ask for them with ", {"record", "jacobian"}} +
                                       Remedy{", or ", "take a smaller width"} + ".");
    return false;
  }

  /// Whether a layer's products are worth their time, and at which of the steps their singular values are, by the time of two factors and
  /// of their singular values.
  bool afford(std::size_t layer, Memory& memory, const Rollout::Segment& segment, std::vector<std::int64_t>& steps) {
    double values = 0.0;
    const double factors = over_blocks(memory, memory.next_move(record_.own_step(segment, layer, last_of(steps, segment))),
                                       [&](std::span<const double> jacobian, std::int64_t size) {
                                         JacobianProduct product(size);
                                         product.multiply(jacobian);
                                         product.multiply(jacobian);
                                         static_cast<void>(product.rank());  // factorises the pending factors too
                                         const double multiplied = product.work();
                                         static_cast<void>(product.log10_largest(record_.request.recording.singular_values));
                                         static_cast<void>(product.log10_smallest());
                                         values += product.work() - multiplied;
                                         return 0.5 * multiplied;
                                       });
    const std::int64_t blocks = memory.transition().count;
    values *= static_cast<double>(blocks) / static_cast<double>(std::min(blocks, sampled_blocks));
    if (!may_take(layer, (factors * product_operation + jacobian_seconds(memory, segment.steps)) * static_cast<double>(record_.length())))
      return false;
    if (!record_.request.recording.dense_rows)
      steps = record_.rows_within_budget(key_of(Kind::jacobian, layer), steps, values * product_operation);
    return true;
  }

  void visit_layer(const Rollout::Segment& segment, std::size_t layer, LayerProduct& own) {
    const std::int64_t length = record_.length();
    const auto memories = segment.network.memories(static_cast<int>(layer));
    if (!std::exchange(own.known, true) && !afford(layer, *memories[0], segment, own.steps)) {
      own.of = {};
      return;
    }
    own.make_room();
    bool known = false;  // the factors of a time-invariant memory are read once
    std::vector<double> matrices, logs;
    std::vector<std::complex<double>> factors;
    for (std::int64_t t = segment.steps - 1; t >= 0; --t) {
      record_.check();
      // A layer that runs backward goes on to the first step: its product is ds_0/ds_t.
      const std::int64_t step = segment.first + (record_.reversed(layer) ? segment.steps - 1 - t : t);
      const auto row = std::lower_bound(own.steps.begin(), own.steps.end(), step);
      if (row != own.steps.end() && *row == step) record_values(own, row - own.steps.begin());
      if (segment.first + t == 0) break;  // ds_T/ds_0 is recorded; the step before the first is not
      if (own.diagonal) {
        if (!known) {
          factors.resize(static_cast<std::size_t>(own.of.width()));
          logs.resize(factors.size());
          factors_at(memories, t, factors);
          for (std::size_t i = 0; i < logs.size(); ++i) logs[i] = std::log(std::abs(factors[i]));
          known = !record_.per_step(layer) && own.of.every == 1;
        }
        own.diagonal->multiply(logs);
      } else {
        const auto square = static_cast<std::size_t>(own.of.size * own.of.size);
        matrices.resize(own.dense.size() * square);
        memories[0]->jacobian(t, matrices);
        for (std::size_t block = 0; block < own.dense.size(); ++block)
          own.dense[block]->multiply(std::span(matrices).subspan(block * square, square));
      }
      if (t % 256 == 0)
        record_.report(0.85 + 0.15 * static_cast<double>(length - segment.first - t) / static_cast<double>(length), "singular values");
    }
  }

  static void record_values(LayerProduct& own, std::ptrdiff_t row) {
    std::vector<double> largest;
    double smallest = infinity;
    if (own.diagonal) {
      largest = own.diagonal->log10_largest(static_cast<int>(own.k));
      smallest = own.diagonal->log10_smallest();
    }
    for (const auto& block : own.dense) {
      const auto some = block->log10_largest(static_cast<int>(std::min(own.k, own.of.size)));
      for (std::int64_t column = 0; column < std::min(own.of.repeats, own.k); ++column)
        largest.insert(largest.end(), some.begin(), some.end());
      const double least = block->log10_smallest();
      smallest = std::isnan(least) || least < smallest ? least : smallest;
    }
    if (std::any_of(largest.begin(), largest.end(), [](double x) { return std::isnan(x); })) {  // has no order
      std::fill(largest.begin(), largest.end(), std::numeric_limits<double>::quiet_NaN());
      smallest = std::numeric_limits<double>::quiet_NaN();
    }
    if (own.of.count * own.of.repeats > 1 && !own.dense.empty()) std::sort(largest.begin(), largest.end(), std::greater<>());
    std::copy_n(largest.begin(), own.k, own.largest.begin() + row * own.k);
    own.smallest[static_cast<std::size_t>(row)] = smallest;
  }

  void put(std::size_t layer, LayerProduct& own) {
    const std::string product = record_.reversed(layer) ? "ds_0/ds_t, the layer running from the end to the start" : "ds_T/ds_t";
    const auto rows = static_cast<std::int64_t>(own.steps.size());
    const bool thin = own.steps != record_.trace.steps;
    TraceArray array = timed(key_of(Kind::jacobian, layer), {own.k}, {{"rank", "", {}}}, "log10",
                             "log10 of the largest singular values of " + product + ".");
    array.shape[0] = rows;
    if (thin) array.steps = own.steps;
    record_.note_not_finite(array.key, own.steps, std::ssize(own.largest),
                            [&](std::size_t i) { return !std::isnan(own.largest[i]) && own.largest[i] != infinity; });
    if (record_.wants(array.key)) put_real(record_.trace, std::move(array), std::move(own.largest));
    TraceArray least =
        timed(key_of(Kind::jacobian_min, layer), {}, {}, "log10", "log10 of the smallest singular value of " + product + ".");
    least.shape[0] = rows;
    if (thin) least.steps = own.steps;
    if (record_.wants(least.key)) put_real(record_.trace, std::move(least), std::move(own.smallest));
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> products(Record& record) { return std::make_unique<JacobianProducts>(record); }
}  // namespace analyses
}  // namespace reclab
