// SPDX-License-Identifier: GPL-3.0-or-later
// The points of a trajectory in the cube, and the subset that is drawn.
#include <algorithm>
#include <cmath>

#include "scene/trajectory_scene.h"

namespace reclab {
namespace {

constexpr std::int64_t tubePoints = 2000;
constexpr std::int64_t companionPoints = 1000;

/// Twice the area of a triangle.
double area(const Point3& a, const Point3& b, const Point3& c) {
  const Point3 u{b[0] - a[0], b[1] - a[1], b[2] - a[2]}, v{c[0] - a[0], c[1] - a[1], c[2] - a[2]};
  return std::hypot(u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]);
}

}  // namespace

std::vector<std::int64_t> thinned(const std::vector<Point3>& points, std::int64_t most) {
  const auto count = static_cast<std::int64_t>(points.size());
  std::vector<std::int64_t> kept;
  if (count <= most || most < 3) {
    kept.resize(points.size());
    for (std::int64_t i = 0; i < count; ++i) kept[static_cast<std::size_t>(i)] = i;
    return kept;
  }
  const auto at = [&](std::int64_t i) -> const Point3& { return points[static_cast<std::size_t>(i)]; };
  const auto bucket = [&](std::int64_t b) { return 1 + b * (count - 2) / (most - 2); };
  kept.reserve(static_cast<std::size_t>(most));
  kept.push_back(0);
  for (std::int64_t b = 0; b < most - 2; ++b) {
    const std::int64_t first = bucket(b), end = bucket(b + 1);
    const std::int64_t next_end = b + 1 < most - 2 ? bucket(b + 2) : count;
    Point3 mean{};
    for (std::int64_t i = end; i < next_end; ++i)
      for (std::size_t k = 0; k < 3; ++k) mean[k] += at(i)[k] / double(next_end - end);
    std::int64_t best = first;
    double largest = -1.0;
    for (std::int64_t i = first; i < end; ++i) {
      const double size = area(at(kept.back()), at(i), mean);
      if (size > largest) largest = size, best = i;
    }
    kept.push_back(best);
  }
  kept.push_back(count - 1);
  return kept;
}

std::vector<double> roundTicks(double low, double high, int about) {
  if (!(high > low) || about < 1) return {low};
  const double raw = (high - low) / about;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double lead = raw / power;
  const double step = power * (lead < 1.5 ? 1.0 : lead < 3.5 ? 2.0 : lead < 7.5 ? 5.0 : 10.0);
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1.0) ticks.push_back(k * step);
  return ticks;
}

void Trajectory::arrange() {
  if (points.empty()) return;
  double widest = 0.0;
  for (std::size_t k = 0; k < 3; ++k) {
    low[k] = high[k] = points.front()[k];
    for (const Point3& p : points) low[k] = std::min(low[k], p[k]), high[k] = std::max(high[k], p[k]);
    for (const CompanionWay& companion : companions)
      for (const Point3& p : companion.points) low[k] = std::min(low[k], p[k]), high[k] = std::max(high[k], p[k]);
    widest = std::max(widest, high[k] - low[k]);
  }
  for (std::size_t k = 0; k < 3; ++k) {
    // An axis along which nothing moves but rounding is drawn flat, not blown up to the size of the others.
    double pad = 0.04 * (high[k] - low[k]);
    if (high[k] - low[k] <= 1e-9 * std::max({widest, std::abs(high[k]), std::abs(low[k])})) pad = widest > 0.0 ? 0.5 * widest : 1.0;
    low[k] -= pad;
    high[k] += pad;
  }
  cube.resize(points.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t k = 0; k < 3; ++k) cube[i][k] = 2.0 * (points[i][k] - low[k]) / (high[k] - low[k]) - 1.0;
  kept.clear();
  length = 0.0;
  for (std::int64_t row : thinned(cube, tubePoints)) {
    const double step = kept.empty() ? 1.0 : distance(cube[std::size_t(kept.back())], cube[std::size_t(row)]);
    if (step < 1e-6) continue;  // coincident neighbours have no direction for a tube to follow
    if (!kept.empty()) length += step;
    kept.push_back(row);
  }
  for (CompanionWay& companion : companions) {
    std::vector<Point3> all(companion.points.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t k = 0; k < 3; ++k) all[i][k] = 2.0 * (companion.points[i][k] - low[k]) / (high[k] - low[k]) - 1.0;
    companion.cube.clear();
    companion.kept.clear();
    for (const std::int64_t row : thinned(all, companionPoints)) {
      const Point3& at = all[std::size_t(row)];
      if (!companion.cube.empty() && distance(companion.cube.back(), at) < 1e-6) continue;
      companion.cube.push_back(at);
      companion.kept.push_back(row);
    }
  }
}

}  // namespace reclab
