// SPDX-License-Identifier: GPL-3.0-or-later
#include "files/data_folders.h"

#include <cstdlib>
#include <sstream>
#include <system_error>

namespace fs = std::filesystem;

namespace reclab {

std::vector<fs::path> data_folders(const char* variable, const std::string& name, const std::string& in_source) {
  std::vector<fs::path> folders;
  if (const char* named = std::getenv(variable)) {
    std::stringstream list{named};
    for (std::string folder; std::getline(list, folder, ':');)
      if (!folder.empty()) folders.emplace_back(folder);
  }
  // An installed program reads what was installed with it, one in a build tree reads the source beside it; never both, or every id would be
  // there twice.
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none), below = fs::path("recurrence-lab") / name;
  for (const fs::path& folder : {program.parent_path().parent_path() / "share" / below, fs::path(RECLAB_SOURCE) / in_source,
                                 fs::path(RECLAB_INSTALLED_SHARE) / below}) {
    if (!fs::is_directory(folder, none)) continue;
    folders.push_back(folder);
    break;
  }
  fs::path data;
  if (const char* xdg = std::getenv("XDG_DATA_HOME"); xdg && *xdg == '/') {
    data = xdg;
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    data = fs::path(home) / ".local/share";
  }
  if (!data.empty() && fs::is_directory(data / below, none)) folders.push_back(data / below);
  return folders;
}

}  // namespace reclab
