// SPDX-License-Identifier: GPL-3.0-or-later
// The identity of this machine, and the files with its measurements.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace reclab {

/// The conditions that a measurement of this machine holds for: processor, instructions, threads and this program's version.
nlohmann::ordered_json machine();

/// A file of that name in recurrence-lab in $XDG_CACHE_HOME or ~/.cache; empty where there is neither.
std::filesystem::path cache_file(const char* name);

/// Writes a file of the cache, with its folder; it appears whole or not at all. Throws an Error.
void write_cache(const std::filesystem::path& file, const nlohmann::ordered_json& json);

}  // namespace reclab
