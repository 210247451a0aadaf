// SPDX-License-Identifier: GPL-3.0-or-later
#include "scene/trajectory_projection.h"

#include <vtkActor.h>
#include <vtkCamera.h>
#include <vtkCellArray.h>
#include <vtkCellData.h>
#include <vtkMatrix4x4.h>
#include <vtkPointData.h>
#include <vtkPoints.h>
#include <vtkPolyData.h>
#include <vtkPolyDataMapper.h>
#include <vtkProperty.h>
#include <vtkRenderer.h>
#include <vtkTubeFilter.h>
#include <vtkUnsignedCharArray.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace reclab {
namespace {

constexpr double roomFor = 1.54;  ///< radius of the ball around the cube that fits into the picture, perspective included
/// The labels' margins around the ball, in the painter's units.
constexpr double marginLeft = 48, marginRight = 66, marginTop = 4, marginBottom = 38;

/// The points of a tube. Where it turns sharply it gets one more just before and after, so that the ring at the corner, which lies in the
/// plane between both directions, does not flatten it all along.
template <class Add>
void tubeAlong(const Trajectory& way, double radius, const Add& add) {
  const std::size_t count = way.kept.size();
  const auto at = [&](std::size_t i) -> const Point3& { return way.cube[std::size_t(way.kept[i])]; };
  const bool thin = count > 1000;  // too thin, and too many, for corners to matter
  for (std::size_t i = 0; i < count; ++i) {
    const Point3& p = at(i);
    bool sharp = false;
    Point3 before{}, after{};
    if (!thin && i > 0 && i + 1 < count) {
      const double back = distance(p, at(i - 1)), forth = distance(p, at(i + 1));
      double cosine = 0.0;
      for (std::size_t k = 0; k < 3; ++k) {
        const double u = (p[k] - at(i - 1)[k]) / back, v = (at(i + 1)[k] - p[k]) / forth;
        cosine += u * v;
        before[k] = p[k] - u * std::min(radius, 0.3 * back);
        after[k] = p[k] + v * std::min(radius, 0.3 * forth);
      }
      sharp = cosine < 0.94;
    }
    if (sharp) add(before, way.kept[i]);
    add(p, way.kept[i]);
    if (sharp) add(after, way.kept[i]);
  }
}

void setColour(vtkUnsignedCharArray* array, vtkIdType index, const QColor& colour) {
  const unsigned char rgb[3] = {static_cast<unsigned char>(colour.red()), static_cast<unsigned char>(colour.green()),
                                static_cast<unsigned char>(colour.blue())};
  array->SetTypedTuple(index, rgb);
}

}  // namespace

TrajectoryScene::TrajectoryScene() {
  vtkCamera* eye = camera();
  eye->SetViewAngle(viewAngle);
  renderer_->SetLightFollowCamera(true);

  vtkNew<vtkPolyDataMapper> tubeMapper;
  tubeFilter_->SetInputData(line_);
  tubeFilter_->SetNumberOfSides(6);
  tubeFilter_->CappingOn();
  tubeMapper->SetInputConnection(tubeFilter_->GetOutputPort());
  tube_->SetMapper(tubeMapper);
  tube_->GetProperty()->SetAmbient(0.42);
  tube_->GetProperty()->SetDiffuse(0.64);
  tube_->GetProperty()->SetSpecular(0.15);
  tube_->GetProperty()->SetSpecularPower(20.0);

  vtkNew<vtkPolyDataMapper> besideMapper;
  besideFilter_->SetInputData(beside_);
  besideFilter_->SetNumberOfSides(6);
  besideFilter_->CappingOn();
  besideMapper->SetInputConnection(besideFilter_->GetOutputPort());
  besideTube_->SetMapper(besideMapper);
  besideTube_->GetProperty()->DeepCopy(tube_->GetProperty());

  vtkNew<vtkPolyDataMapper> boxMapper;
  boxMapper->SetInputData(walls_);
  box_->SetMapper(boxMapper);
  box_->GetProperty()->LightingOff();

  renderer_->AddActor(box_);
  renderer_->AddActor(tube_);
  renderer_->AddActor(besideTube_);
  tube_->VisibilityOff();
  besideTube_->VisibilityOff();
  resetCamera();
}

TrajectoryScene::~TrajectoryScene() = default;

vtkCamera* TrajectoryScene::camera() const { return renderer_->GetActiveCamera(); }

double TrajectoryScene::fitDistance(QSizeF size) const {
  const double room = std::max(40.0, std::min(size.width() - marginLeft - marginRight, size.height() - marginTop - marginBottom));
  return roomFor * std::max(size.height(), 1.0) / (room * std::tan(viewAngle * std::numbers::pi / 360.0));
}

void TrajectoryScene::resetCamera() {
  constexpr double azimuth = -58.0 * std::numbers::pi / 180.0, elevation = 20.0 * std::numbers::pi / 180.0;
  const double d = fitDistance(size_);
  vtkCamera* eye = camera();
  eye->SetFocalPoint(0, 0, 0);
  eye->SetPosition(d * std::cos(elevation) * std::cos(azimuth), d * std::cos(elevation) * std::sin(azimuth), d * std::sin(elevation));
  eye->SetViewUp(0, 0, 1);
}

void TrajectoryScene::turn(double azimuth, double elevation) {
  vtkCamera* eye = camera();
  std::array<double, 3> at{}, to{};
  eye->GetPosition(at.data());
  eye->GetFocalPoint(to.data());
  const Point3 d{at[0] - to[0], at[1] - to[1], at[2] - to[2]};
  const double r = std::hypot(d[0], d[1], d[2]);
  constexpr double degree = std::numbers::pi / 180.0;
  const double a = std::atan2(d[1], d[0]) + azimuth * degree;
  const double e = std::clamp(std::asin(std::clamp(d[2] / r, -1.0, 1.0)) + elevation * degree, -89.0 * degree, 89.0 * degree);
  eye->SetPosition(to[0] + r * std::cos(e) * std::cos(a), to[1] + r * std::cos(e) * std::sin(a), to[2] + r * std::sin(e));
  eye->SetViewUp(0, 0, 1);
}

void TrajectoryScene::copyFrom(const TrajectoryScene& from) {
  size_ = from.size_;
  camera()->DeepCopy(from.camera());
  setTheme(from.theme_);
  setTrajectory(from.trajectory_);
  setRange(from.first_, from.last_);
  setCursor(from.cursor_);
}

void TrajectoryScene::resize(QSizeF size) {
  if (size.isEmpty() || size == size_) return;
  vtkCamera* eye = camera();
  eye->Dolly(fitDistance(size_) / fitDistance(size));
  size_ = size;
}

void TrajectoryScene::setTrajectory(std::shared_ptr<const Trajectory> trajectory) {
  trajectory_ = std::move(trajectory);
  if (trajectory_ && trajectory_->cube.empty()) trajectory_.reset();
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> lines;
  tubeRows_.clear();
  if (trajectory_) {
    radius_ = std::clamp(0.1 / std::sqrt(std::max(trajectory_->length, 1e-3)), 0.006, 0.018);
    for (std::size_t k = 0; k < 3; ++k) ticks_[k] = roundTicks(trajectory_->low[k], trajectory_->high[k], 4);
    tubeAlong(*trajectory_, radius_, [&](const Point3& at, std::int64_t row) {
      points->InsertNextPoint(at.data());
      tubeRows_.push_back(row);
    });
    lines->InsertNextCell(static_cast<int>(points->GetNumberOfPoints()));
    for (vtkIdType i = 0; i < points->GetNumberOfPoints(); ++i) lines->InsertCellPoint(i);
  }
  line_->SetPoints(points);
  line_->SetLines(lines);
  tubeFilter_->SetRadius(radius_);
  tube_->SetVisibility(points->GetNumberOfPoints() > 1);
  colourTube();
}

/// It fades outside the visible range as the curve itself does, where its rows are those of the same steps.
QColor TrajectoryScene::colourOf(const CompanionWay& companion, std::int64_t row) const {
  const bool fades = companion.points.size() == trajectory_->points.size() && !inRange(row);
  return fades ? mixed(companion.colour, theme_.base, 0.15) : companion.colour;
}

void TrajectoryScene::makeCompanions() {
  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> lines;
  vtkNew<vtkUnsignedCharArray> colours;
  colours->SetNumberOfComponents(3);
  if (trajectory_) {
    for (const CompanionWay& companion : trajectory_->companions) {
      if (companion.cube.size() < 2) continue;
      lines->InsertNextCell(static_cast<int>(companion.cube.size()));
      for (std::size_t i = 0; i < companion.cube.size(); ++i) {
        lines->InsertCellPoint(points->InsertNextPoint(companion.cube[i].data()));
        colours->InsertNextTuple3(0, 0, 0);
        setColour(colours, colours->GetNumberOfTuples() - 1, colourOf(companion, companion.kept[i]));
      }
    }
  }
  beside_->SetPoints(points);
  beside_->SetLines(lines);
  beside_->GetPointData()->SetScalars(colours);
  beside_->Modified();
  besideFilter_->SetRadius(companionRadius * radius_);
  besideTube_->SetVisibility(points->GetNumberOfPoints() > 1);
}

double TrajectoryScene::toCube(std::size_t k, double value) const {
  return 2.0 * (value - trajectory_->low[k]) / (trajectory_->high[k] - trajectory_->low[k]) - 1.0;
}

bool TrajectoryScene::hasCursor() const { return trajectory_ && cursor_ >= 0 && cursor_ < std::int64_t(trajectory_->cube.size()); }

double TrajectoryScene::fraction(std::int64_t row) const {
  const std::vector<double>& time = trajectory_->time;
  const double first = time.front(), last = time.back();
  if (last > first) return std::clamp((time[std::size_t(row)] - first) / (last - first), 0.0, 1.0);
  return time.size() > 1 ? double(row) / double(time.size() - 1) : 0.0;
}

bool TrajectoryScene::inRange(std::int64_t row) const { return first_ > last_ || (row >= first_ && row <= last_); }

/// Viridis without the end that the ground would swallow.
QColor TrajectoryScene::timeColour(double f) const {
  const double at = theme_.dark ? 0.2 + 0.8 * f : 0.92 * f;
  return QColor::fromRgb(viridis()[static_cast<std::size_t>(std::lround(255.0 * at))]);
}

QColor TrajectoryScene::colourAt(std::int64_t row) const {
  const QColor colour = timeColour(fraction(row));
  return inRange(row) ? colour : mixed(colour, theme_.base, 0.15);
}

void TrajectoryScene::colourTube() {
  vtkNew<vtkUnsignedCharArray> colours;
  colours->SetNumberOfComponents(3);
  colours->SetNumberOfTuples(line_->GetNumberOfPoints());
  for (vtkIdType i = 0; i < line_->GetNumberOfPoints(); ++i) {
    setColour(colours, i, colourAt(tubeRows_[std::size_t(i)]));
  }
  line_->GetPointData()->SetScalars(colours);
  line_->Modified();
  makeCompanions();
}

void TrajectoryScene::setCursor(std::int64_t row) { cursor_ = row; }

void TrajectoryScene::setRange(std::int64_t firstRow, std::int64_t lastRow) {
  if (first_ == firstRow && last_ == lastRow) return;
  first_ = firstRow;
  last_ = lastRow;
  colourTube();
}

void TrajectoryScene::setTheme(const Theme& theme) {
  theme_ = theme;
  renderer_->SetBackground(theme.base.redF(), theme.base.greenF(), theme.base.blueF());
  colourTube();
}

std::array<double, 3> TrajectoryScene::backWalls() const {
  std::array<double, 3> eye{};
  camera()->GetPosition(eye.data());
  for (double& x : eye) x = x > 0.0 ? -1.0 : 1.0;
  return eye;
}

/// The three walls behind the curve, with a line at each tick.
void TrajectoryScene::eachWallLine(const std::function<void(const Point3&, const Point3&, bool)>& line) const {
  const std::array<double, 3> back = backWalls();
  for (int a = 0; a < 3; ++a) {
    const auto wall = std::size_t(a);
    for (int turned = 1; turned <= 2; ++turned) {
      const auto along = std::size_t((a + turned) % 3), across = std::size_t((a + 3 - turned) % 3);
      Point3 from{}, to{};
      from[wall] = to[wall] = back[wall];
      from[along] = -1.0;
      to[along] = 1.0;
      for (double tick : ticks_[across]) {
        from[across] = to[across] = toCube(across, tick);
        line(from, to, false);
      }
      for (double end : {-1.0, 1.0}) {
        // An edge that two walls share is drawn once, by the first of them.
        if (end == back[across] && across < wall) continue;
        from[across] = to[across] = end;
        line(from, to, true);
      }
    }
  }
}

void TrajectoryScene::prepare(double scale) {
  vtkCamera* eye = camera();
  const double d = eye->GetDistance();
  std::array<double, 3> at{};
  eye->GetPosition(at.data());
  const double centre = std::hypot(at[0], at[1], at[2]);
  eye->SetClippingRange(std::max(0.02, centre - 2.0), std::max(centre, d) + 2.0);
  eye->SetWindowCenter((marginRight - marginLeft) / std::max(1.0, size_.width()),
                       (marginTop - marginBottom) / std::max(1.0, size_.height()));

  vtkNew<vtkPoints> points;
  vtkNew<vtkCellArray> lines;
  vtkNew<vtkUnsignedCharArray> colours;
  colours->SetNumberOfComponents(3);
  if (trajectory_) {
    eachWallLine([&](const Point3& from, const Point3& to, bool edge) {
      lines->InsertNextCell({points->InsertNextPoint(from.data()), points->InsertNextPoint(to.data())});
      colours->InsertNextTuple3(0, 0, 0);
      setColour(colours, colours->GetNumberOfTuples() - 1, edge ? wallEdge(theme_) : theme_.grid);
    });
  }
  walls_->SetPoints(points);
  walls_->SetLines(lines);
  walls_->GetCellData()->SetScalars(colours);
  box_->GetProperty()->SetLineWidth(float(std::max(1.0, scale)));
}

TrajectoryScene::View TrajectoryScene::view() const {
  View view;
  view.size = size_;
  vtkMatrix4x4* m = camera()->GetCompositeProjectionTransformMatrix(size_.width() / std::max(1.0, size_.height()), -1, 1);
  std::copy_n(m->GetData(), 16, view.m.begin());
  return view;
}

std::int64_t TrajectoryScene::pick(QPointF position, double reach) const {
  if (!trajectory_) return -1;
  const View look = view();
  std::int64_t best = -1;
  double nearest = reach;
  double depth = 0.0;
  for (std::size_t i = 0; i < trajectory_->cube.size(); ++i) {
    if (!inRange(std::int64_t(i))) continue;
    const View::Seen seen = look(trajectory_->cube[i]);
    const double away = std::hypot(seen.at.x() - position.x(), seen.at.y() - position.y());
    // Of two strands as near to the pointer, the one in front.
    if (away < nearest - 1.0 || (away < nearest + 1.0 && away <= reach && best >= 0 && seen.depth < depth)) {
      nearest = std::min(nearest, away);
      depth = seen.depth;
      best = std::int64_t(i);
    }
  }
  return best;
}

}  // namespace reclab
