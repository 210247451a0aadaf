// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/literature/map_layout.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace reclab {
namespace {

constexpr double chartAxis = 24.0, leastColumn = 64.0, widestColumn = 150.0, leastLine = 18.0, widestLine = 30.0;
constexpr double mapMargin = 14.0, atTheRight = mapNameGap + widestMapName + 2 * mapDot + 12.0, yearRoom = 38.0, listLine = 20.0;

/// The line of a lane that each model stands on, the first being 1 under the lane's heading; and how many there are.
struct Packed {
  std::vector<int> line;   // of each model
  std::vector<int> lines;  // of each family
};

/// Models of a lane go to the line of the one that they descend from where that has room, else to the nearest one that has.
Packed packed(const Literature& literature, const std::map<int, int>& columns, double column,
              const std::function<double(const QString&)>& widthOf) {
  Packed made{std::vector<int>(literature.models.size(), 0), std::vector<int>(literature.families.size(), 0)};
  std::vector<std::vector<double>> ends(literature.families.size());
  for (std::size_t i = 0; i < literature.models.size(); ++i) {  // by year
    const Literature::Model& model = literature.models[i];
    auto& taken = ends[static_cast<std::size_t>(model.family)];
    const double from = columns.at(model.year) * column,
                 to = from + mapNameGap + std::min(widthOf(model.title), widestMapName) + 2 * mapDot;
    int wanted = 0;
    for (const Literature::Link& link : literature.links)
      if (link.child == static_cast<int>(i) && literature.models[static_cast<std::size_t>(link.parent)].family == model.family &&
          link.parent < static_cast<int>(i))
        wanted = made.line[static_cast<std::size_t>(link.parent)] - 1;
    int best = static_cast<int>(taken.size());
    for (int line = 0; line < static_cast<int>(taken.size()); ++line)
      if (taken[static_cast<std::size_t>(line)] <= from &&
          (best == static_cast<int>(taken.size()) || std::abs(line - wanted) < std::abs(best - wanted)))
        best = line;
    if (best == static_cast<int>(taken.size())) taken.push_back(0.0);
    taken[static_cast<std::size_t>(best)] = to;
    made.line[i] = best + 1;
  }
  for (std::size_t family = 0; family < ends.size(); ++family) made.lines[family] = static_cast<int>(ends[family].size());
  return made;
}

std::map<int, int> columnsOf(const Literature& literature) {
  std::map<int, int> columns;
  for (const Literature::Model& model : literature.models) columns[model.year] = 0;
  int next = 0;
  for (auto& [year, column] : columns) column = next++;
  return columns;
}

MapLayout chartOf(const Literature& literature, QSizeF view, double zoom, const std::function<double(const QString&)>& widthOf) {
  MapLayout made;
  made.axis = chartAxis;
  const std::map<int, int> columns = columnsOf(literature);
  // Where names stand does not depend on the zoom, so that nothing jumps.
  // The last column's names stand to the right of it.
  const double base = std::clamp((view.width() - mapMargin - atTheRight) / std::max<double>(1.0, static_cast<double>(columns.size()) - 1.0),
                                 leastColumn, widestColumn);
  const Packed lanes = packed(literature, columns, base, widthOf);
  int lines = 0;
  for (const int count : lanes.lines) lines += count + 1;
  const double line = std::clamp((view.height() - chartAxis - mapMargin) / std::max(1, lines), leastLine, widestLine) * zoom;
  // Zoomed out, years come together no further than they must to be in sight.
  const double years = static_cast<double>(columns.size()) - 1.0, wide = mapMargin + years * base + atTheRight;
  const double column =
      base * (zoom < 1.0
                  ? std::max(zoom, std::min(1.0, (view.width() - mapMargin - atTheRight) / std::max(1.0, wide - mapMargin - atTheRight)))
                  : zoom);
  made.line = line;
  made.column = column;
  for (const auto& [year, number] : columns) made.years.push_back({mapMargin + number * column, year});
  double top = chartAxis;
  std::vector<double> tops;
  for (std::size_t family = 0; family < lanes.lines.size(); ++family) {
    tops.push_back(top);
    made.lanes.push_back({top, top + (lanes.lines[family] + 1) * line, static_cast<int>(family)});
    top = made.lanes.back().to;
  }
  made.dots.resize(literature.models.size());
  made.room.assign(literature.models.size(), widestMapName);
  std::map<std::pair<int, int>, std::size_t> last;  // of each line
  for (std::size_t i = 0; i < literature.models.size(); ++i) {
    const Literature::Model& model = literature.models[i];
    made.dots[i] = {mapMargin + mapDot + columns.at(model.year) * column,
                    tops[static_cast<std::size_t>(model.family)] + (lanes.line[i] + 0.4) * line};
    const auto [before, first] = last.try_emplace({model.family, lanes.line[i]}, i);
    if (!first) {
      made.room[before->second] =
          std::min(widestMapName * std::max(zoom, 1.0), made.dots[i].x() - made.dots[before->second].x() - mapNameGap - 2 * mapDot);
      before->second = i;
    }
  }
  made.size = {mapMargin + years * column + atTheRight, top + mapMargin};
  return made;
}

MapLayout listOf(const Literature& literature, QSizeF view, double zoom) {
  MapLayout made;
  made.shape = MapLayout::Shape::list;
  const auto families = static_cast<double>(std::max<std::size_t>(1, literature.families.size()));
  const double lane = std::clamp(view.width() * 0.36 / families, 7.0, 15.0);
  made.line = listLine * zoom;
  made.axis = 14.0 * std::ceil(24.0 / lane) + 4.0;  // the sections take turns on so many lines
  made.names = 6.0 + families * lane + mapNameGap;
  for (std::size_t family = 0; family < literature.families.size(); ++family)
    made.lanes.push_back(
        {6.0 + static_cast<double>(family) * lane, 6.0 + static_cast<double>(family + 1) * lane, static_cast<int>(family)});
  int year = -1;
  for (std::size_t i = 0; i < literature.models.size(); ++i) {
    const Literature::Model& model = literature.models[i];
    made.dots.emplace_back(6.0 + (model.family + 0.5) * lane, made.axis + (static_cast<double>(i) + 0.5) * made.line);
    made.room.push_back(view.width() - made.names - yearRoom);
    if (model.year != year) made.years.push_back({made.dots.back().y(), year = model.year});
  }
  made.size = {view.width(), made.axis + static_cast<double>(literature.models.size()) * made.line + 4.0};
  return made;
}

}  // namespace

MapLayout layOut(const Literature& literature, QSizeF view, double zoom, const std::function<double(const QString&)>& widthOf) {
  return view.width() < widestMapList ? listOf(literature, view, zoom) : chartOf(literature, view, zoom, widthOf);
}

double zoomThatFits(const Literature& literature, QSizeF view, const std::function<double(const QString&)>& widthOf) {
  const MapLayout whole = layOut(literature, view, 1.0, widthOf);
  // The axis at the top does not zoom, nor does the margin below.
  return std::min(1.0, (view.height() - whole.axis - mapMargin) / std::max(1.0, whole.size.height() - whole.axis - mapMargin));
}

}  // namespace reclab
