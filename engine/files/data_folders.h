// SPDX-License-Identifier: GPL-3.0-or-later
// The folders of data that the program comes with, and those of the user.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace reclab {

/// The folders that are there: those that the environment's `variable` names, with colons between them; share/recurrence-lab/`name` of the
/// installation, or `in_source` of the source of a build tree; and the user's own, recurrence-lab/`name` below $XDG_DATA_HOME.
std::vector<std::filesystem::path> data_folders(const char* variable, const std::string& name, const std::string& in_source);

}  // namespace reclab
