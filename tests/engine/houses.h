// SPDX-License-Identifier: GPL-3.0-or-later
// The floors of the engine, of the window and of its widgets: a table each of the floors that a floor may include.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

namespace fs = std::filesystem;

/// What each floor may include, beside itself.
using Floors = std::map<std::string, std::set<std::string>>;

inline std::set<std::string> with(std::set<std::string> floors, std::set<std::string> more) {
  more.merge(floors);
  return more;
}
inline const std::set<std::string> to_models{"array", "algebra", "parameters", "autodiff", "recurrence", "trace"},
    to_execution = with(to_models, {"files", "sequence", "models"}),
    to_experiment = with(to_execution, {"execution", "analysis", "learning"}), to_studies = with(to_experiment, {"experiment"});
inline const Floors below{{"array", {}},
                          {"algebra", {"array"}},
                          {"files", {"array"}},
                          {"trace", {"array", "files"}},
                          {"sequence", {"array", "files", "trace", "parameters"}},
                          {"autodiff", {"array"}},
                          {"parameters", {"array"}},
                          {"recurrence", {"array", "autodiff", "parameters"}},
                          {"models", to_models},
                          {"execution", to_execution},
                          {"analysis", with(to_execution, {"execution"})},
                          {"learning", with(to_execution, {"execution"})},
                          {"experiment", to_experiment},
                          {"timing", to_studies},
                          {"schedule", to_studies},
                          {"checks", to_studies},
                          {"composer", to_studies},
                          {"distillation", to_studies},
                          {"evaluation", to_studies},
                          {"studies", with(to_studies, {"timing", "schedule", "composer", "distillation", "evaluation"})},
                          {"streams", to_studies},
                          {"measures", to_studies},
                          {"lessons", with(to_studies, {"measures"})},
                          {"sweeps", with(to_studies, {"measures", "evaluation"})}};

inline const std::set<std::string> under_features{"look", "time", "session", "start", "views", "dialogs", "docks", "frame"};

/// Folders of the window; main.cpp, which lies beside them, includes any.
inline const Floors gui_below{{"look", {}},
                              {"time", {}},
                              {"jobs", {}},
                              {"session", {"look", "jobs"}},
                              {"start", {"look", "session", "docks"}},
                              {"views", {"look", "time", "session"}},
                              {"dialogs", {"look", "jobs", "session"}},
                              {"docks", {"look", "time", "session"}},
                              {"frame", {"look", "time", "session", "views", "docks"}},
                              {"comparing", under_features},
                              {"learning", under_features},
                              {"lessons", with(under_features, {"jobs"})},
                              {"literature", under_features},
                              {"results", with(under_features, {"jobs"})},
                              {"opening", under_features},
                              {"palette", under_features},
                              {"sessions", with(under_features, {"jobs"})},
                              {"streams", under_features},
                              {"window", with(under_features, {"jobs", "comparing", "learning", "lessons", "literature", "opening",
                                                               "results", "palette", "sessions", "streams"})}};

/// Folders of the widgets: "" is of the files beside them, and "panels/*" is each panel's own, which no other includes.
inline const Floors widgets_below{
    {"", {}}, {"plot", {""}}, {"scene", {"", "plot"}}, {"panels", {"", "plot", "scene"}}, {"panels/*", {"", "plot", "scene", "panels"}}};

struct House {
  std::string folder, included_from;
  const Floors& floors;

  /// The floor that a path inside the house is on, and the row of the table that it has.
  static std::string floor_of(const fs::path& inside) {
    const fs::path folder = inside.parent_path();
    return folder.empty() ? "" : *folder.begin() == "panels" ? folder.generic_string() : folder.begin()->string();
  }
  auto row_of(const std::string& floor) const { return floors.find(floor.starts_with("panels/") ? "panels/*" : floor); }
};
inline const House houses[] = {{"engine", "engine", below}, {"app/gui", "app", gui_below}, {"widgets", "widgets", widgets_below}};
inline const House& engine_house = houses[0];
