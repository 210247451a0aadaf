// SPDX-License-Identifier: GPL-3.0-or-later
// The command line that does a request again. A POSIX shell reads it; `reclab` makes an equal request of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/timing.h"

namespace reclab {

/// "reclab run ...", without --export. `device`: that which ran.
std::string command_of(const RunRequest& request, const std::string& device);
/// "reclab bench ..."
std::string command_of(const RunRequest& request, const TimingRequest& timing, const std::string& device);

/// The kinds of arrays that --record takes, and the probe of such names (keys of trace.npz or their beginnings): what is not asked for is not
/// computed either.
const std::vector<std::string>& recorded_kinds();
Probe probe_of(const std::vector<std::string>& record);

/// A text as one word of a POSIX shell.
std::string shell_word(std::string_view text);
/// The names of a list as an option takes it, "a,b": a comma inside a name stands behind a backslash.
std::vector<std::string> names_of_list(std::string_view list);

}  // namespace reclab
