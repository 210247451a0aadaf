// SPDX-License-Identifier: GPL-3.0-or-later
#include "evaluation/capacity.h"

#include <algorithm>
#include <cmath>

#include "array/backend.h"
#include "array/error.h"
#include "array/host.h"
#include "array/rng.h"
#include "array/stop.h"
#include "models/parts/features.h"
#include "parameters/nearest.h"

namespace reclab {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows drawn(Rng rng, std::int64_t rows, std::int64_t columns) {
  Rows made(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(columns)));
  for (auto& row : made)
    for (double& x : row) x = rng.normal();
  return made;
}

std::int64_t features_of(const std::string& map, const CapacityPlan& plan) {
  if (map.starts_with("dpfp-")) return 2 * (map.back() - '0') * plan.key;
  return map == "random" ? plan.random : plan.key;
}

/// The features of keys, by the functions that the models have.
Rows mapped(const std::string& map, const Rows& keys, const CapacityPlan& plan, Rng rng) {
  const std::int64_t n = features_of(map, plan);
  std::vector<double> flat;
  for (const auto& key : keys) flat.insert(flat.end(), key.begin(), key.end());
  Graph graph(DType::f64);
  Var x = graph.constant({std::ssize(keys), plan.key}, std::move(flat));
  if (map.starts_with("dpfp-")) {
    x = parts::dpfp(x, map.back() - '0');
  } else if (map == "random") {
    std::vector<double> weight(static_cast<std::size_t>(n * plan.key));
    const Shape shape{n, plan.key};
    InitContext context{rng, shape, weight, {}};
    parts::orthogonal_rows(parts::RowLength::gaussian)(context);
    x = exp(parts::softmax_exponents(x * std::pow(static_cast<double>(plan.key), -0.25), graph.constant(shape, std::move(weight))));
  } else {
    x = parts::entrywise(map, x);
  }
  graph.allocate(cpu_backend(), false);
  graph.forward();
  const auto values = to_double(cpu_backend(), DType::f64, graph.value(x), std::ssize(keys) * n);
  Rows features;
  for (auto row = values.begin(); row != values.end(); row += n) features.emplace_back(row, row + n);
  return features;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
void add(std::vector<double>& to, double factor, const std::vector<double>& x) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * x[i];
}

/// Orthonormal vectors that grow by one at a time.
class Basis {
 public:
  /// Takes out of x its part in the span, twice, since the first time leaves rounding.
  void reduce(std::vector<double>& x) const {
    for (int again = 0; again < 2; ++again)
      for (const auto& one : own_) add(x, -dot(x, one), one);
  }
  /// Whether x is no sum of the vectors before it; the part of it that is not is added.
  bool grow(std::vector<double> x) {
    const double before = std::sqrt(dot(x, x));
    reduce(x);
    const double left = std::sqrt(dot(x, x));
    if (!(left > 1e-9 * before)) return false;
    for (double& entry : x) entry /= left;
    own_.push_back(std::move(x));
    return true;
  }

 private:
  Rows own_;
};

Rows of_unit_length(Rows rows) {
  for (auto& row : rows)
    if (const double length = std::sqrt(dot(row, row)); length > 0.0)
      for (double& x : row) x /= length;
  return rows;
}

/// Σ |read - v|² / Σ |v|² of the first N pairs; features are of unit length but for sums.
double error_of(WriteRule rule, bool positive, const Rows& features, const Rows& values, std::size_t N) {
  const std::size_t n = features[0].size(), width = values[0].size();
  double wrong = 0.0, all = 0.0;
  for (std::size_t i = 0; i < N; ++i) all += dot(values[i], values[i]);
  if (rule == WriteRule::best) {
    Basis columns;
    for (std::size_t j = 0; j < n; ++j) {
      std::vector<double> column(N);
      for (std::size_t i = 0; i < N; ++i) column[i] = features[i][j];
      columns.grow(std::move(column));
    }
    for (std::size_t c = 0; c < width; ++c) {
      std::vector<double> rest(N);
      for (std::size_t i = 0; i < N; ++i) rest[i] = values[i][c];
      columns.reduce(rest);
      wrong += dot(rest, rest);
    }
    return wrong / all;
  }
  Rows memory(width, std::vector<double>(n, 0.0));
  std::vector<double> sum(n, 0.0);
  for (std::size_t i = 0; i < N; ++i) {
    for (std::size_t c = 0; c < width; ++c)
      add(memory[c], values[i][c] - (rule == WriteRule::delta ? dot(memory[c], features[i]) : 0.0), features[i]);
    add(sum, 1.0, features[i]);
  }
  for (std::size_t i = 0; i < N; ++i) {
    const double by = rule == WriteRule::delta ? 1.0 : positive ? dot(sum, features[i]) : dot(features[i], features[i]);
    for (std::size_t c = 0; c < width; ++c) wrong += std::pow((by != 0.0 ? dot(memory[c], features[i]) / by : 0.0) - values[i][c], 2);
  }
  return wrong / all;
}

template <class Of>
PlanField<CapacityPlan> count(const char* key, const char* argument, std::int64_t high, const char* text, Of of) {
  return count_field<CapacityPlan>(flag_of(key), argument, key, 1, high, text, of);
}

}  // namespace

const std::vector<std::string>& capacity_maps() {
  static const std::vector<std::string> all{"identity", "elu+1", "relu", "exp", "dpfp-1", "dpfp-2", "dpfp-3", "random"};
  return all;
}

std::string_view to_string(WriteRule rule) { return rule == WriteRule::sum ? "sum" : rule == WriteRule::delta ? "delta" : "best"; }

const std::vector<PlanField<CapacityPlan>>& capacity_fields() {
  static const std::vector<PlanField<CapacityPlan>> all = [] {
    std::string known;
    for (const std::string& map : capacity_maps()) known += (known.empty() ? "" : ", ") + map;
    auto maps = list_field<CapacityPlan>(
        flag_of("maps"), "maps", Field::Says::list, "Feature maps of " + known, [](const CapacityPlan& plan) { return plan.maps; },
        [](CapacityPlan& plan, std::vector<std::string> names) { plan.maps = std::move(names); });
    maps.usual = "all";
    maps.wanted = wanted_one_of(capacity_maps());
    auto seed = text_field<CapacityPlan>(
        flag_of("seed"), "N", "seed", "Of keys and values (1)", [](const CapacityPlan& plan) { return std::to_string(plan.seed); },
        [](CapacityPlan& plan, const std::string& text) { plan.seed = seed_of(text); });
    seed.wanted = wanted_seed;
    seed.row.standard = std::to_string(CapacityPlan().seed);
    return std::vector{std::move(maps),
                       count("key", "D", 512, "Entries of a key, each drawn from N(0, 1)", [](auto& plan) -> auto& { return plan.key; }),
                       count("value", "D", 512, "Entries of a value", [](auto& plan) -> auto& { return plan.value; }),
                       count("random", "M", 1024, "How many random features there are", [](auto& plan) -> auto& { return plan.random; }),
                       count("draws", "N", 1 << 20, "Draws of all keys and values", [](auto& plan) -> auto& { return plan.draws; }),
                       std::move(seed)};
  }();
  return all;
}

CapacityTable capacity(const CapacityPlan& plan, const Progress& progress, std::stop_token stop) {
  const StopScope scope(stop);
  const auto& maps = plan.maps.empty() ? capacity_maps() : plan.maps;
  CapacityTable table;
  for (std::size_t m = 0; m < maps.size(); ++m) {
    const std::string& map = maps[m];
    if (std::ranges::find(capacity_maps(), map) == capacity_maps().end())
      throw Error("There is no feature map \"" + map + "\"; the nearest is " + nearest_names(map, capacity_maps(), 1) + ".",
                  {.parameter = "maps", .value = map});
    if (map.starts_with("dpfp-") && plan.key <= map.back() - '0')
      throw Error(map + " needs keys of " + std::to_string(map.back() - '0' + 1) + " entries or more: choose longer keys.",
                  {.parameter = "key"});
    const std::int64_t n = features_of(map, plan), most = static_cast<std::int64_t>(3.0 * static_cast<double>(n));
    SequenceMean means[3][std::size(capacity_loads)];
    CapacityKnee knee{.map = map, .features = n};
    for (std::int64_t draw = 0; draw < plan.draws; ++draw) {
      if (progress) progress(static_cast<double>(m) / static_cast<double>(maps.size()), map);
      const Rng rng = Rng(plan.seed).split("capacity").split(std::to_string(draw));
      const Rows features = mapped(map, drawn(rng.split("keys"), most, plan.key), plan, rng.split("random")),
                 values = drawn(rng.split("values"), most, plan.value);
      const Rows unit = of_unit_length(features);
      Basis held;
      std::int64_t whole = 0;
      while (whole < most && held.grow(features[static_cast<std::size_t>(whole)])) ++whole;
      knee.low = draw == 0 ? whole : std::min(knee.low, whole);
      knee.high = std::max(knee.high, whole);
      for (const WriteRule rule : {WriteRule::sum, WriteRule::delta, WriteRule::best})
        for (std::size_t load = 0; load < std::size(capacity_loads); ++load) {
          check_stop();
          const auto N = static_cast<std::size_t>(std::max(1.0, capacity_loads[load] * static_cast<double>(n)));
          means[static_cast<std::size_t>(rule)][load].add(
              error_of(rule, map != "identity", rule == WriteRule::sum ? features : unit, values, N));
        }
    }
    table.knees.push_back(knee);
    for (const WriteRule rule : {WriteRule::sum, WriteRule::delta, WriteRule::best})
      for (std::size_t load = 0; load < std::size(capacity_loads); ++load)
        table.rows.push_back({map, n, rule, static_cast<std::int64_t>(std::max(1.0, capacity_loads[load] * static_cast<double>(n))),
                              means[static_cast<std::size_t>(rule)][load].estimate(plan.confidence)});
  }
  return table;
}

}  // namespace reclab
