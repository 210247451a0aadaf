// SPDX-License-Identifier: GPL-3.0-or-later
// Roofs, the most that this machine's processors and memory can do, which a time is compared with.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>

namespace reclab {

struct Roof {
  double triad_bytes = 0.0;   ///< a second: a = b + s c over memory, stores past the caches, all threads, 3 arrays counted
  double cached_bytes = 0.0;  ///< a second: reading an array of half a megabyte a thread again and again
  double flops = 0.0;         ///< a second: float32 fused multiply-adds, each as two, all threads
  double flops64 = 0.0;       ///< the same in float64
};

/// The best of several tries of each, on all processors; about a second. Throws Cancelled when stopped.
Roof measure_roof(std::stop_token stop = {});

/// The file of the roof of a user's machine: recurrence-lab/roof.json in $XDG_CACHE_HOME or ~/.cache; empty where there is neither.
std::filesystem::path roof_file();

/// The roof that the file holds, if it is this machine's and this program's (processor, threads, instructions, version); else it is
/// measured and the file written. A file that cannot be read is measured anew; one that cannot be written leaves a sentence in `problem`.
/// The better of two measurements, of each.
Roof best_of(const Roof& x, const Roof& y);

/// A roof is the best that was seen: one that was taken while something else ran is too low. So it is raised where the file is older than a
/// day, and where the machine is clearly faster than it was then: `pace`, the seconds of a fixed computation now (0: not known), is less
/// than `clearly` times the one noted with the roof.
Roof roof_of_machine(const std::filesystem::path& file, std::stop_token stop, std::string* problem = nullptr, double pace = 0.0);

/// Measures again and keeps the best of both, in the file too.
Roof raised(const Roof& roof, const std::filesystem::path& file, std::stop_token stop, std::string* problem = nullptr, double pace = 0.0);
inline constexpr double clearly = 0.95;

}  // namespace reclab
