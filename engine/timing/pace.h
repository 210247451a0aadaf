// SPDX-License-Identifier: GPL-3.0-or-later
// The paces of this machine in its last timings, whose variation one timing alone cannot know.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace reclab {

/// Timings that are remembered of each device.
inline constexpr std::size_t paces_kept = 20;

/// The file of the paces: recurrence-lab/pace.json in $XDG_CACHE_HOME or ~/.cache; empty where there is neither.
std::filesystem::path pace_file();

/// Seconds of the yardstick, a fixed computation, in the last timings on a device of this machine, the latest last. None where the file is
/// not there, cannot be read, or is of another machine or version.
std::vector<double> paces_of_machine(const std::filesystem::path& file, const std::string& device);

/// Adds one and forgets all but the last paces_kept; a file that cannot be read is begun anew. One that cannot be written leaves a sentence
/// in `problem`.
void keep_pace(const std::filesystem::path& file, const std::string& device, double seconds, std::string* problem = nullptr);

}  // namespace reclab
