// SPDX-License-Identifier: GPL-3.0-or-later
// The command `sweep` with its own subcommands, and the exit statuses by which schedulers know how a cell ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interrupt.h"
#include "sweep/summary.h"
#include "sweeps/compute.h"

namespace CLI {
class App;
}

namespace reclab::cli {

struct SweepOptions {
  std::string plan, folder, cell, chunk, jobs, threads, target, file;
  std::vector<std::string> folders;
  bool json = false;
  SummaryOptions summary;
};
void add_sweep(CLI::App& app, SweepOptions& options, Interrupt& interrupt, int& status);

/// 0; 2, not to be tried again as it is; 75, to be tried again (EX_TEMPFAIL of sysexits.h); 1.
int status_of(CellEnd end);
constexpr int try_again_status = 75;

}  // namespace reclab::cli
