// SPDX-License-Identifier: GPL-3.0-or-later
// How many pairs a matrix memory holds without training, against what linear algebra says of it.
#include "evaluation/capacity.h"

#include <algorithm>
#include <cmath>

#include "test.h"

using namespace reclab;

namespace {
const CapacityRow& row(const CapacityTable& table, const std::string& map, WriteRule rule, double load) {
  const auto found = std::ranges::find_if(table.rows, [&](const CapacityRow& one) {
    return one.map == map && one.rule == rule && one.pairs == static_cast<std::int64_t>(load * static_cast<double>(one.features));
  });
  CHECK_SAYS(found != table.rows.end(), map);
  return *found;
}
}  // namespace

TEST_CASE("each feature map holds as many pairs without error as it has features, and no more") {
  CapacityPlan plan;
  plan.key = 8;
  plan.value = 6;
  plan.random = 20;
  plan.draws = 6;
  const CapacityTable table = capacity(plan, {}, {});
  CHECK_EQUAL(table.knees.size(), capacity_maps().size());
  for (const CapacityKnee& knee : table.knees) {
    const std::int64_t nu = knee.map.starts_with("dpfp-") ? knee.map.back() - '0' : 0;
    CHECK_EQUAL(knee.features, nu ? 2 * nu * plan.key : knee.map == "random" ? plan.random : plan.key);
    CHECK_SAYS(knee.high == knee.features, knee.map + " " + std::to_string(knee.high));
    // Entries of relu are 0 half of the time, so that two of few keys may be alike.
    CHECK_SAYS(2 * knee.low >= knee.features, knee.map + " " + std::to_string(knee.low));
    // Random values that are fitted by n of N directions keep 1 - n / N of their square.
    for (const double load : capacity_loads) {
      const CapacityRow& best = row(table, knee.map, WriteRule::best, load);
      const double expected = load > 1.0 ? 1.0 - 1.0 / load : 0.0, spread = best.error.high - best.error.low;
      if (load <= 1.0 && knee.low == knee.features) CHECK_SAYS(best.error.mean < 1e-12, knee.map);
      if (load > 1.0) CHECK_CLOSE(best.error.mean, expected, 3.0 * spread + 0.02);
      CHECK_SAYS(row(table, knee.map, WriteRule::delta, load).error.mean >= best.error.mean - 1e-12, knee.map);
    }
  }
}

TEST_CASE("the delta rule holds the last pair whole, and sums err as far as features overlap") {
  // Keys of one number have parallel features, 1 or -1.
  CapacityPlan plan;
  plan.maps = {"identity"};
  plan.key = 1;
  plan.value = 500;
  plan.draws = 40;
  const CapacityTable table = capacity(plan, {}, {});
  CHECK_EQUAL(table.knees[0].high, 1);
  CHECK(row(table, "identity", WriteRule::delta, 1.0).error.mean < 1e-25);
  // Of three pairs the first two are read as ± the third: |v3 ∓ v|² is 2 |v|² in the mean.
  const Estimate& delta = row(table, "identity", WriteRule::delta, 3.0).error;
  CHECK_CLOSE(delta.mean, 2.0 * 2.0 / 3.0, 0.02);
  // Each value is read with those of the others times the quotient of their keys.
  const Estimate& sum = row(table, "identity", WriteRule::sum, 1.0).error;
  CHECK(sum.mean < 1e-25 && row(table, "identity", WriteRule::sum, 3.0).error.mean > 0.5);
  plan.maps = {"dpfp-3"};
  plan.key = 3;
  CHECK_ERROR(capacity(plan, {}, {}), "choose longer keys");
  plan.maps = {"elu"};
  CHECK_ERROR(capacity(plan, {}, {}), "the nearest is elu+1");
}
