// SPDX-License-Identifier: GPL-3.0-or-later
// ds_T/ds_t beside its bounds, the factors of a step, all pairs of steps and the alignment of gradients, in cases where each of them is known.
#include <algorithm>
#include <cmath>
#include <limits>

#include "experiment/command.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;
constexpr double infinity = std::numeric_limits<double>::infinity();

TracePtr traced(const std::string& architecture, std::int64_t length, Settings set) {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  request.set = std::move(set);
  request.sequence = make_task("noise", {.length = length, .seed = 1});
  request.loss = LossKind::last;
  request.probe = probe_of({"jacobian", "jacobian_pairs", "jacobian_bound", "jacobian_factor", "alignment", "gradient", "state"});
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return trace;
}

double at(const Trace& trace, const std::string& key, std::int64_t row, std::int64_t column = 0) {
  const TraceArray* array = trace.find(key);
  CHECK_SAYS(array && array->real, key);
  return (*array->real)[static_cast<std::size_t>(row * array->row_size() + column)];
}

void check_near(double own, double expected, double error, const std::string& what) { CHECK_SAYS(std::abs(own - expected) <= error, what + ": " + std::to_string(own) + " and not " + std::to_string(expected)); }

Settings elman(const std::string& activation, const std::string& start, const std::string& rho) {
  return {{"width", "12"}, {"activation", activation}, {"recurrent_init", start}, {"spectral_radius", rho}};
}

/// The last row of the map is ds_T/ds_t, its diagonal the identity, and nothing comes before what changed it.
void check_pairs(const Trace& trace) {
  const TraceArray& pairs = *trace.find("jacobian_pairs/0");
  const auto n = pairs.shape[0];
  CHECK_EQUAL(n, pairs.shape[1]);
  const std::vector<std::int64_t>& steps = pairs.steps.empty() ? trace.steps : pairs.steps;
  for (std::int64_t j = 0; j < n; ++j) {
    const std::int64_t step = steps[static_cast<std::size_t>(j)];
    CHECK_EQUAL(at(trace, pairs.key, n - 1, j), at(trace, "jacobian/0", trace.row_of_step(step)));
    CHECK_EQUAL(at(trace, pairs.key, j, j), 0.0);
    for (std::int64_t later = j + 1; later < n; ++later) CHECK_EQUAL(at(trace, pairs.key, j, later), -infinity);
  }
}

}  // namespace

TEST_CASE("of a linear network whose matrix is a multiple of a rotation what is measured is what both bounds say") {
  constexpr std::int64_t length = 60;
  for (const auto& [start, rho] : {std::pair{"orthogonal", 0.9}, std::pair{"orthogonal", 1.1}, std::pair{"identity", 0.8}}) {
    const TracePtr trace = traced("elman", length, elman("identity", start, std::to_string(rho)));
    for (std::int64_t t = 0; t < length; ++t) {
      const double expected = static_cast<double>(length - 1 - t) * std::log10(rho);
      check_near(at(*trace, "jacobian/0", t), expected, 1e-9, "measured");
      check_near(at(*trace, "jacobian_bound/0", t, 0), expected, 1e-9, "by the singular value");
      check_near(at(*trace, "jacobian_bound/0", t, 1), expected, 1e-9, "by the eigenvalue");
      check_near(at(*trace, "jacobian_factor/0", t, 1), 0.0, 1e-12, "slope");
      check_near(at(*trace, "jacobian_factor/0", t, 2), std::log10(rho), 1e-12, "matrix");
    }
    check_pairs(*trace);
  }
}

TEST_CASE("the largest singular value bounds a network with tanh at every step and the eigenvalue need not") {
  constexpr std::int64_t length = 80;
  bool above = false;
  for (const auto& [start, rho] : {std::pair{"orthogonal", "1.3"}, std::pair{"uniform", "1"}, std::pair{"antisymmetric", "1.2"}, std::pair{"diagonal", "0.9"}}) {
    const TracePtr trace = traced("elman", length, elman("tanh", start, rho));
    bool below = false;
    for (std::int64_t t = 0; t < length; ++t) {
      const double measured = at(*trace, "jacobian/0", t), bound = at(*trace, "jacobian_bound/0", t, 0);
      CHECK_SAYS(measured <= bound + 1e-9, std::string(start) + " at step " + std::to_string(t) + ": " + std::to_string(measured) + " above " + std::to_string(bound));
      CHECK(at(*trace, "jacobian_bound/0", t, 1) <= bound + 1e-9);
      below = below || measured < bound - 0.01;
      above = above || measured > at(*trace, "jacobian_bound/0", t, 1) + 1e-6;
    }
    CHECK_SAYS(below, std::string("the slopes of tanh take nothing away: ") + start);
    check_pairs(*trace);
  }
  CHECK(above);
}

TEST_CASE("the factors of a step multiply to what the gradient of the loss does at that step") {
  constexpr std::int64_t length = 50;
  for (const char* activation : {"tanh", "relu", "identity"}) {
    const TracePtr trace = traced("elman", length, elman(activation, "orthogonal", "1.05"));
    for (std::int64_t t = 1; t < length; ++t) {
      const double whole = at(*trace, "gradient/state/0/h", t - 1) - at(*trace, "gradient/state/0/h", t);
      double sum = 0.0;
      for (std::int64_t factor = 0; factor < 3; ++factor) sum += at(*trace, "jacobian_factor/0", t, factor);
      if (std::isinf(at(*trace, "gradient/state/0/h", t - 1))) continue;
      check_near(sum, whole, 1e-9, std::string(activation) + " step " + std::to_string(t));
      CHECK(std::string(activation) == "identity" || at(*trace, "jacobian_factor/0", t, 1) <= 1e-12);
      CHECK_EQUAL(at(*trace, "jacobian_factor/0", t, 0), 0.0);
    }
  }
}

TEST_CASE("gates of single entries are the whole of a step") {
  constexpr std::int64_t length = 40;
  const TracePtr trace = traced("lru", length, {{"state", "8"}, {"width", "4"}});
  check_pairs(*trace);
  for (std::int64_t t = 1; t < length; ++t) {
    check_near(at(*trace, "jacobian_factor/0", t, 0), at(*trace, "gradient/state/0/h", t - 1) - at(*trace, "gradient/state/0/h", t), 1e-9, "step " + std::to_string(t));
    CHECK(at(*trace, "jacobian/0", t) <= at(*trace, "jacobian_bound/0", t, 0) + 1e-9);
  }
}

TEST_CASE("gradients that pass a multiple of the identity stay aligned and those that are turned do not") {
  constexpr std::int64_t length = 30;
  const TracePtr same = traced("elman", length, elman("identity", "identity", "0.9"));
  const TracePtr turned = traced("elman", length, elman("identity", "orthogonal", "1"));
  double least = 1.0;
  for (std::int64_t i = 0; i < length; ++i)
    for (std::int64_t j = 0; j < length; ++j) {
      check_near(at(*same, "alignment/0", i, j), 1.0, 1e-12, "aligned");
      check_near(at(*turned, "alignment/0", i, j), at(*turned, "alignment/0", j, i), 1e-15, "symmetric");
      if (i == j) check_near(at(*turned, "alignment/0", i, j), 1.0, 1e-12, "itself");
      // A rotation does the same at every step, so only the distance counts.
      if (i > 0 && j > 0) check_near(at(*turned, "alignment/0", i, j), at(*turned, "alignment/0", i - 1, j - 1), 1e-9, "of the distance");
      least = std::min(least, at(*turned, "alignment/0", i, j));
    }
  CHECK(least < 0.5);
}

TEST_CASE("a model without such a matrix has the bound of its Jacobians and says why its factors are not told apart") {
  const TracePtr trace = traced("lstm", 40, {{"width", "6"}});
  CHECK(trace->info.absent.contains(Kind::jacobian_factor) && !trace->has(Kind::jacobian_factor));
  for (std::int64_t t = 0; t < 40; ++t) {
    CHECK(at(*trace, "jacobian/0", t) <= at(*trace, "jacobian_bound/0", t, 0) + 1e-9);
    CHECK(t == 39 || std::isnan(at(*trace, "jacobian_bound/0", t, 1)));
  }
  check_pairs(*trace);
  const TracePtr none = traced("transformer", 20, {});
  for (const Kind kind : {Kind::jacobian_pairs, Kind::jacobian_bound, Kind::jacobian_factor, Kind::alignment}) CHECK(none->info.absent.contains(kind) && !none->has(kind));
}
