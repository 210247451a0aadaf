// SPDX-License-Identifier: GPL-3.0-or-later
#include "sweep/emit.h"

#include <algorithm>

#include "array/error.h"
#include "experiment/command/command.h"
#include "files/files.h"
#include "parameters/nearest.h"

namespace reclab::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t most_tasks = 1000;

struct Script {
  std::string cell;         ///< "reclab sweep cell DIR"
  std::string chunk;        ///< " --chunk 10 --threads 2", or nothing
  std::string folder;       ///< absolute
  std::int64_t last, jobs;  ///< tasks are 0 to last
  int threads;
};

/// What the job stands at is the exit status of srun: 75 is a checkpoint, and the same task goes on from it.
std::string slurm(const Script& script) {
  const std::string at_once = script.jobs > 0 ? "%" + std::to_string(script.jobs) : "";
  return "#!/bin/sh\n#SBATCH --job-name=" + shell_word(fs::path(script.folder).filename().string()) + "\n#SBATCH --array=0-" +
         std::to_string(script.last) + at_once + "\n#SBATCH --ntasks=1 --cpus-per-task=" + std::to_string(script.threads) +
         "\n#SBATCH --requeue --open-mode=append\n#SBATCH --signal=USR1@60\n#SBATCH --output=" +
         shell_word(script.folder + "/slurm-%a.txt") + "\nsrun " + script.cell + " \"$SLURM_ARRAY_TASK_ID\"" + script.chunk +
         "\nstatus=$?\n[ $status -ne 75 ] || scontrol requeue \"$SLURM_JOB_ID\"\nexit $status\n";
}

std::string parallel(const Script& script) {
  return "#!/bin/sh\n# Arguments go to parallel: --retry-failed computes again what failed.\nseq 0 " + std::to_string(script.last) +
         " | parallel --joblog " + shell_word(script.folder + "/parallel.txt") +
         (script.jobs > 0 ? " --jobs " + std::to_string(script.jobs) : std::string()) + " \"$@\" " +
         shell_word(script.cell + " {}" + script.chunk) + "\n";
}

std::string make(const Script& script) {
  const auto dollars = [](const std::string& text) {
    std::string doubled;
    for (const char c : text) doubled += c == '$' ? std::string("$$") : std::string(1, c);
    return doubled;
  };
  return "# make --keep-going --jobs 2 --file THIS\ncells := $(shell seq 0 " + std::to_string(script.last) +
         ")\n.PHONY: all $(cells)\nall: $(cells)\n$(cells):\n\t@" + dollars(script.cell) + " $@" + script.chunk + "\n";
}

}  // namespace

const std::vector<std::string>& emit_targets() {
  static const std::vector<std::string> all{"slurm", "parallel", "make"};
  return all;
}

std::string emitted(const SweepFolder& folder, const std::string& target, const EmitOptions& options) {
  const std::int64_t chunk = options.chunk > 0 ? options.chunk : (folder.size() + most_tasks - 1) / most_tasks;
  Script script{.cell = {},
                .chunk = chunk > 1 ? " --chunk " + std::to_string(chunk) : std::string(),
                .folder = fs::absolute(folder.path()).lexically_normal().string(),
                .last = (folder.size() - 1) / chunk,
                .jobs = options.at_once,
                .threads = options.threads};
  if (options.threads > 1) script.chunk += " --threads " + std::to_string(options.threads);
  if (script.folder.ends_with('/')) script.folder.pop_back();
  script.cell = shell_word(options.program) + " sweep cell " + shell_word(script.folder);
  if (target == "slurm") return slurm(script);
  if (target == "parallel") return parallel(script);
  if (target == "make") return make(script);
  throw Error("There is no script for \"" + printable(target) + "\"; did you mean " + nearest_names(target, emit_targets(), 1) + "?",
              {.value = target, .range = listed(emit_targets(), "or")});
}

}  // namespace reclab::cli
