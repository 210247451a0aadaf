// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/docks/layouts.h"

#include <QDir>
#include <QFile>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "array/error.h"
#include "gui/look/look.h"
#include "panel.h"

namespace reclab {

PanelLayout layoutFrom(const QByteArray& json) try {
  PanelLayout layout;
  std::set<QString> named;
  const auto panel = [&named](const std::string& id) {
    const QString name = QString::fromStdString(id);
    if (std::ranges::find(panels(), name, &PanelInfo::id) == panels().end()) throw Error("A layout names no panel: " + id + ".");
    if (!named.insert(name).second) throw Error("A layout names a panel twice: " + id + ".");
    return name;
  };
  const auto file = nlohmann::json::parse(json.begin(), json.end());
  for (const auto& [key, value] : file.items()) {
    if (key == "name")
      layout.name = QString::fromStdString(value);
    else if (key == "place")
      layout.place = value;
    else if (key == "calm")
      layout.calm = value;
    else if (key == "learns")
      layout.learns = panel(value);
    else if (key != "rows")
      throw Error("A layout has no " + key + ".");
    else
      for (const auto& row : value.get<std::vector<std::vector<std::vector<std::string>>>>()) {
        QStringList& cells = layout.rows.emplace_back();
        for (const auto& cell : row) {
          QStringList tabs;
          for (const std::string& id : cell) tabs << panel(id);
          cells << tabs.join('|');
        }
      }
  }
  if (layout.name.isEmpty() || layout.rows.empty()) throw Error("A layout has a name and rows of panels.");
  return layout;
} catch (const nlohmann::json::exception& error) {
  throw Error(std::string("A layout cannot be read: ") + error.what());
}

const std::vector<PanelLayout>& panelLayouts() {
  static const std::vector<PanelLayout> all = [] {
    loadResources();
    std::vector<PanelLayout> read;
    for (const QFileInfo& info : QDir(":/layouts").entryInfoList()) {
      QFile file(info.filePath());
      if (!file.open(QIODevice::ReadOnly)) throw Error(info.fileName().toStdString() + " cannot be read.");
      read.push_back(layoutFrom(file.readAll()));
    }
    std::ranges::sort(read, {}, &PanelLayout::place);
    return read;
  }();
  return all;
}

}  // namespace reclab
