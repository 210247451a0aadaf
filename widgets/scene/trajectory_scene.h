// SPDX-License-Identifier: GPL-3.0-or-later
// A curve through three dimensions: the same picture as VTK geometry and as vectors for a QPainter, with one camera.
#pragma once

#include <vtkNew.h>

#include <QColor>
#include <QPainter>
#include <QPointF>
#include <QRectF>
#include <QString>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "plot/theme.h"

class vtkActor;
class vtkCamera;
class vtkPolyData;
class vtkRenderer;
class vtkTubeFilter;

namespace reclab {

using Point3 = std::array<double, 3>;

/// The way of a pinned run beside it, in the same coordinates. Without points it has none there, and `label` says so.
struct CompanionWay {
  QString label;
  QColor colour;
  std::vector<Point3> points;      ///< up to the first that is not finite
  std::vector<Point3> cube;        ///< from arrange(): those that the tube goes through
  std::vector<std::int64_t> kept;  ///< and their rows
};

/// A state's way through three coordinates, one point a recorded row.
struct Trajectory {
  std::vector<Point3> points;
  std::vector<double> time;      ///< one a point
  std::array<QString, 3> names;  ///< of the axes: "PC 1 (62 %)"
  QString timeName;              ///< with its unit
  std::vector<CompanionWay> companions;

  /// Computes the other members from the points; on any thread, before a scene gets it.
  void arrange();
  std::array<double, 3> low{}, high{};  ///< of the axes, with a margin
  std::vector<Point3> cube;             ///< every point in [-1, 1]^3, each axis by its own range
  std::vector<std::int64_t> kept;       ///< the points that the tube goes through
  double length = 0.0;                  ///< of the tube, in the cube
};

inline double distance(const Point3& a, const Point3& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

/// Row numbers of at most `most` points that keep the shape: the largest triangle in each of as many buckets (Steinarsson 2013), ends
/// included.
std::vector<std::int64_t> thinned(const std::vector<Point3>& points, std::int64_t most);

/// Two to five round numbers within [low, high], for the ticks of an axis.
std::vector<double> roundTicks(double low, double high, int about);

class TrajectoryScene {
 public:
  TrajectoryScene();
  ~TrajectoryScene();
  TrajectoryScene(const TrajectoryScene&) = delete;
  TrajectoryScene& operator=(const TrajectoryScene&) = delete;

  /// The curve, arranged, or null for nothing. The camera stays as it is.
  void setTrajectory(std::shared_ptr<const Trajectory> trajectory);
  const std::shared_ptr<const Trajectory>& trajectory() const { return trajectory_; }
  void setCursor(std::int64_t row);                            ///< -1: no marker
  void setRange(std::int64_t firstRow, std::int64_t lastRow);  ///< rows outside fade; an empty range shows all
  void setTheme(const Theme& theme);

  vtkRenderer* renderer() const { return renderer_.Get(); }
  vtkCamera* camera() const;
  void resetCamera();
  void turn(double azimuth, double elevation);  ///< degrees; the third axis stays upright
  /// Copies curve, cursor, colours, size and camera, for a picture elsewhere.
  void copyFrom(const TrajectoryScene& from);
  /// The size of the picture, in the units of the painter. The curve keeps its place in it.
  void resize(QSizeF size);
  QSizeF size() const { return size_; }
  /// A figure names all pinned runs; a low picture on the screen as many as one row has room for.
  void beFigure() { figure_ = true; }
  /// Brings the walls and the clipping to where the camera is now; to be called before a picture. `scale`: pixels a unit.
  void prepare(double scale);

  /// The row whose point is nearest to a position in the picture, -1 when none is within `reach`.
  std::int64_t pick(QPointF position, double reach) const;
  /// The place of the marker in the picture, with the room it takes; empty when there is none.
  QRectF markerArea() const;

  /// Paints the overlay: names, ticks, the bar of time, and the marker, which so is never hidden and costs no new picture.
  void paintOver(QPainter& painter) const;
  /// The whole picture in vectors: walls, depth-sorted curve, marker, labels.
  void paint(QPainter& painter) const;
  QRectF barArea() const;  ///< the bar of time and the text beside it, all that changes when the cursor moves

 private:
  struct View;
  View view() const;
  std::array<double, 3> backWalls() const;
  void eachWallLine(const std::function<void(const Point3&, const Point3&, bool edge)>& line) const;
  QRectF bar() const;
  double toCube(std::size_t axis, double value) const;
  bool hasCursor() const;
  std::vector<double> timeTicks() const;
  double fraction(std::int64_t row) const;
  QColor timeColour(double fraction) const;
  double fitDistance(QSizeF size) const;
  QColor colourAt(std::int64_t row) const;
  bool inRange(std::int64_t row) const;
  void colourTube();
  void paintMarker(QPainter& painter, const View& look) const;
  void paintLegend(QPainter& painter) const;
  void makeCompanions();
  QColor colourOf(const CompanionWay& companion, std::int64_t row) const;

  std::shared_ptr<const Trajectory> trajectory_;
  std::vector<std::int64_t> tubeRows_;  ///< the row that colours each point of the tube
  std::array<std::vector<double>, 3> ticks_;
  double radius_ = 0.01;
  std::int64_t cursor_ = -1, first_ = 0, last_ = -1;
  QSizeF size_{400, 300};
  bool figure_ = false;
  Theme theme_;

  vtkNew<vtkRenderer> renderer_;
  vtkNew<vtkPolyData> line_, walls_, beside_;
  vtkNew<vtkTubeFilter> tubeFilter_, besideFilter_;
  vtkNew<vtkActor> tube_, box_, besideTube_;
};

}  // namespace reclab
