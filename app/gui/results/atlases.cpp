// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/atlases.h"

#include <QFileInfo>
#include <nlohmann/json.hpp>

#include "array/error.h"
#include "files/files.h"
#include "files/json.h"

namespace reclab {

std::vector<Atlas> readAtlases(const QString& file) {
  const std::string path = file.toStdString();
  const QString folder = QFileInfo(file).absolutePath() + '/';
  std::vector<Atlas> all;
  try {
    const nlohmann::json list = nlohmann::json::parse(read_file(path));
    for (const nlohmann::json& one : list) {
      const auto text = [&](const char* key) { return QString::fromStdString(one.value(key, std::string())); };
      Atlas atlas{text("title"), text("text"), text("command"), folder + text("file"), {}, {}, {}};
      const nlohmann::json plans = one.value("plans", nlohmann::json::array());
      for (const nlohmann::json& plan : plans)
        atlas.plans.push_back((folder + QString::fromStdString(plan.get<std::string>())).toStdString());
      const nlohmann::json picture = one.value("picture", nlohmann::json::object());
      const std::string view = picture.value("view", "map");
      atlas.choice.view = view == "curves"     ? ResultView::curves
                          : view == "ranking"  ? ResultView::ranking
                          : view == "points"   ? ResultView::points
                          : view == "parallel" ? ResultView::parallel
                                               : ResultView::map;
      atlas.choice.measure = picture.value("measure", std::string());
      atlas.choice.against = picture.value("against", std::string());
      atlas.choice.across = picture.value("across", std::string());
      atlas.choice.upright = picture.value("upright", std::string());
      atlas.choice.apart = picture.value("apart", std::string());
      atlas.choice.falling = picture.value("falling", false);
      atlas.choice.logarithmic = picture.value("logarithmic", false);
      const nlohmann::json only = picture.value("only", nlohmann::json::object());
      for (const auto& [axis, level] : only.items()) atlas.choice.only.emplace_back(axis, level.get<std::string>());
      all.push_back(std::move(atlas));
    }
  } catch (const nlohmann::json::exception& error) {
    throw Error(path + " is no list of atlases: " + error.what() + "; install the program again.", {.file = path});
  }
  return all;
}

TypedRun lineOf(const std::vector<std::string>& plans, std::int64_t row) {
  for (const std::string& file : plans) {
    const SweepPlan plan = sweep_plan(read_file(file), file);
    if (row < plan.cells()) return plan.line(row);
    row -= plan.cells();
  }
  throw Error("The table has more rows than its plans have cells; install the program again.");
}

}  // namespace reclab
