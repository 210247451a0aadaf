// SPDX-License-Identifier: GPL-3.0-or-later
// The parts that the geometry of a trajectory's scene and its drawing in vectors share.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "scene/trajectory_scene.h"

namespace reclab {

constexpr double companionRadius = 0.6;  ///< of a pinned run's tube, in radii of the tube itself
constexpr double viewAngle = 25.0;       ///< degrees

inline QColor wallEdge(const Theme& theme) { return mixed(theme.text, theme.base, 0.3); }

/// The camera's projection of the cube into the painter's plane.
struct TrajectoryScene::View {
  std::array<double, 16> m;
  QSizeF size;
  struct Seen {
    QPointF at;
    double depth;  ///< distance along the line of sight
  };
  Seen operator()(const Point3& p) const {
    std::array<double, 4> clip{};
    for (std::size_t i = 0; i < 4; ++i) clip[i] = m[4 * i] * p[0] + m[4 * i + 1] * p[1] + m[4 * i + 2] * p[2] + m[4 * i + 3];
    const double w = std::max(clip[3], 1e-6);
    return {{(clip[0] / w + 1.0) / 2.0 * size.width(), (1.0 - clip[1] / w) / 2.0 * size.height()}, clip[3]};
  }
  /// Painter's units that one unit of the cube covers at a depth.
  double scale(double depth) const {
    return size.height() / (2.0 * std::tan(viewAngle * std::numbers::pi / 360.0) * std::max(depth, 1e-6));
  }
};

}  // namespace reclab
