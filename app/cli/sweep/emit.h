// SPDX-License-Identifier: GPL-3.0-or-later
// Scripts by which other programs compute the cells of a sweep: each calls `reclab sweep cell`, and can be run again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweeps/cells.h"

namespace reclab::cli {

struct EmitOptions {
  std::string program = "reclab";  ///< the path of reclab, for a shell
  std::int64_t chunk = 0;          ///< cells that one task takes; 0: as few as 1,000 tasks leave, of which Slurm takes no more by default
  std::int64_t at_once = 0;        ///< most tasks at a time; 0: as many as there is room for
  int threads = 1;                 ///< of a cell
};

const std::vector<std::string>& emit_targets();  ///< slurm, parallel, make
/// The script. Throws Error for a target that is none.
std::string emitted(const SweepFolder& folder, const std::string& target, const EmitOptions& options);

}  // namespace reclab::cli
