// SPDX-License-Identifier: GPL-3.0-or-later
#include "sweep/sweep.h"

#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "array/cpu/processor/threads.h"
#include "array/error.h"
#include "commands.h"
#include "experiment/command/command.h"
#include "files/files.h"
#include "options.h"
#include "parameters/typed.h"
#include "sweep/emit.h"
#include "sweep/workers.h"
#include "sweeps/table.h"
#include "text.h"

namespace reclab::cli {
namespace {

namespace fs = std::filesystem;

int count_of(const std::string& option, const std::string& text, int usual) {
  return static_cast<int>(integer(option, text, 1, 1'000'000).value_or(usual));
}

int plan_sweep(const SweepOptions& options, Interrupt& interrupt) {
  if (options.plan.empty())
    usage_error("sweep", "needs a plan, or one of: run, cell, status, collect, summary, emit; see `reclab sweep --help`.");
  if (options.folder.empty()) usage_error("--into", "is missing: give the folder for the cells.");
  const SweepPlan plan = sweep_plan(read_file(options.plan), options.plan);
  const PresetLibrary all = library();
  interrupt.enter(Interrupt::Phase::running);
  try {
    check_measures(plan, all, interrupt.token());
  } catch (const Cancelled&) {
    cancelled("before the cells were written");
  }
  interrupt.enter(Interrupt::Phase::writing);
  SweepFolder::write(options.folder, plan, all);
  std::cout << "Wrote " << options.folder << ": " << counted(plan.cells(), "cell");
  std::error_code none;
  if (fs::exists(fs::path(options.folder) / "cells", none)) {
    const SweepStatus status = status_of(SweepFolder(options.folder));
    std::cout << ", of which " << status.of(CellState::done) + status.of(CellState::diverged) << " are done";
  }
  std::cout << ". Compute them: reclab sweep run " << shell_word(options.folder) << '\n';
  return 0;
}

int processors() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? std::max(1, CPU_COUNT(&allowed)) : 1;
}

int run_sweep(const SweepOptions& options, Interrupt& interrupt) {
  const SweepFolder folder(options.folder);
  const int threads = threads_of(options.threads, 1);
  const int jobs = count_of("--jobs", options.jobs, std::max(1, processors() / threads));
  const RunCounts counts = run_cells(folder, jobs, threads, interrupt.token());
  tidy(folder);
  std::cout << counted(folder.size(), "cell") << ": " << counts.before + counts.done << " done";
  if (counts.before > 0) std::cout << ", " << counts.before << " of them before";
  if (const auto failed = counts.mistakes + counts.faults; failed > 0) std::cout << "; " << failed << " failed";
  if (counts.taken > 0) std::cout << "; " << counts.taken << " are computed elsewhere";
  std::cout << '\n';
  if (interrupt.token().stop_requested()) {
    std::cerr << "stopped; go on with: reclab sweep run " << shell_word(options.folder) << std::endl;
    return try_again_status;
  }
  return counts.faults > 0 ? 1 : counts.mistakes > 0 ? 2 : counts.taken > 0 ? try_again_status : 0;
}

int compute_cells(const SweepOptions& options, Interrupt& interrupt) {
  const SweepFolder folder(options.folder);
  const PresetLibrary all = library();
  cpu::use_threads(threads_of(options.threads, 1));
  if (options.cell == "-") {
    serve_cells(folder, all, interrupt.token());
    return 0;
  }
  const std::int64_t chunk = count_of("--chunk", options.chunk, 1);
  const std::int64_t first = chunk * integer("the cell", options.cell, 0, std::numeric_limits<std::int32_t>::max()).value_or(0);
  int worst = 0;
  for (std::int64_t i = first; i == first || (i < first + chunk && i < folder.size()); ++i) {
    const CellOutcome outcome = compute_cell(folder, folder.cell(i), all, interrupt.token());
    const int status = status_of(outcome.end);
    if (status == 0)
      std::cout << "cell " << i << ": done" << std::endl;
    else
      std::cerr << "reclab: cell " << i << ": " << one_line(outcome.sentence) << std::endl;
    if (outcome.end == CellEnd::interrupted) return status;
    const auto rank = [](int one) { return one == 1 ? 3 : one == 2 ? 2 : one == 0 ? 0 : 1; };
    if (rank(status) > rank(worst)) worst = status;
  }
  return worst;
}

int tell_status(const SweepOptions& options) {
  const SweepFolder folder(options.folder);
  const SweepStatus status = status_of(folder);
  if (options.json) {
    nlohmann::ordered_json json = {{"cells", folder.size()}};
    for (std::size_t i = 0; i < cell_states.size(); ++i) json[std::string(cell_states[i])] = status.count[i];
    json["seconds"] = status.seconds;
    json["failures"] = nlohmann::ordered_json::array();
    for (const auto& [cell, why] : status.failures) json["failures"].push_back({{"cell", cell}, {"sentence", why}});
    std::cout << json.dump(2) << '\n';
    return 0;
  }
  TextTable table(2);
  for (std::size_t i = 0; i < cell_states.size(); ++i)
    if (status.count[i] > 0) table.row({std::string(cell_states[i]), std::to_string(status.count[i])});
  table.row({"cells", std::to_string(folder.size())});
  table.right_align(1);
  table.print(std::cout);
  for (const auto& [cell, why] : status.failures) paragraph(std::cout, "Cell " + std::to_string(cell) + ": " + why);
  return 0;
}

int collect_table(const SweepOptions& options) {
  std::vector<SweepFolder> folders(options.folders.begin(), options.folders.end());
  if (options.file.empty())
    collect(folders, [](std::string_view text) { std::cout << text; });
  else
    collect(folders, fs::path(options.file));
  if (!options.file.empty()) std::cout << "Wrote " << options.file << '\n';
  return 0;
}

int emit_script(const SweepOptions& options) {
  const SweepFolder folder(options.folder);
  EmitOptions emit{.program = fs::read_symlink("/proc/self/exe").string()};
  emit.chunk = integer("--chunk", options.chunk, 1, 1'000'000).value_or(0);
  emit.at_once = integer("--jobs", options.jobs, 1, 1'000'000).value_or(0);
  emit.threads = threads_of(options.threads, 1);
  std::cout << emitted(folder, options.target, emit);
  return 0;
}

}  // namespace

int status_of(CellEnd end) {
  switch (end) {
    case CellEnd::done: return 0;
    case CellEnd::mistake: return 2;
    case CellEnd::interrupted:
    case CellEnd::taken: return try_again_status;
    case CellEnd::fault: break;
  }
  return 1;
}

void add_sweep(CLI::App& app, SweepOptions& options, Interrupt& interrupt, int& status) {
  CLI::App* sweep = app.add_subcommand(
      "sweep", "A line of reclab train or run for all values of some options, as cells that are computed here or anywhere");
  sweep->require_subcommand(0, 1);
  sweep->add_option("plan", options.plan, "The plan, a JSON file")->type_name("FILE");
  sweep->add_option("--into", options.folder, "The folder for the cells")->type_name("DIR");
  sweep->footer(
      "A plan: {\"base\": \"reclab train lstm --task adding --length 20 --steps 5\",\n"
      "         \"axes\": {\"seed\": [1, 2, 3, 4], \"set.width\": [4, 8]}, \"measure\": [\"loss\"]}\n"
      "An axis is an option without its minuses, set.KEY, task-set.KEY or preset; its values are a list, {\"from\": 1, \"to\": 100, "
      "\"count\": 5},\n"
      "with \"scale\": \"log\" and \"whole\": true where wanted, or drawn: {\"from\": 1, \"to\": 100, \"random\": 20, \"seed\": 1}.\n"
      "Measures: loss, metric, baseline, batch_loss, steps of a training, and what `reclab lesson measures` lists.\n"
      "Exit status: 0 done, 2 a mistake, 75 to be tried again (interrupted, or computed elsewhere), 1 a fault of reclab.");
  // A signal is heard and never ends the process: what is learned is kept first.
  const auto computing = [&](const std::string& name, const std::string& text, int (*compute)(const SweepOptions&, Interrupt&)) {
    CLI::App* made = sweep->add_subcommand(name, text);
    made->add_option("folder", options.folder, "The folder of the sweep")->required()->type_name("DIR");
    made->add_option("--threads", options.threads, "Threads of a cell (1)")->type_name("N");
    made->callback([&options, &interrupt, &status, compute] {
      interrupt.enter(Interrupt::Phase::writing);
      interrupt.watch(true);
      status = compute(options, interrupt);
    });
    return made;
  };
  const auto telling = [&](const std::string& name, const std::string& text, int (*tell)(const SweepOptions&)) {
    CLI::App* made = sweep->add_subcommand(name, text);
    made->callback([&options, &status, tell] { status = tell(options); });
    return made;
  };
  computing("run", "Computes the cells that are not done", run_sweep)
      ->add_option("--jobs", options.jobs, "Cells at a time (one a processor)")
      ->type_name("N");
  CLI::App* cell = computing("cell", "Computes one cell, as a scheduler asks for it; nothing where it is done", compute_cells);
  cell->add_option("cell", options.cell, "Its number, from 0; -: numbers are read from standard input")->required()->type_name("K");
  cell->add_option("--chunk", options.chunk, "Of so many cells the K-th group (1)")->type_name("N");
  CLI::App* state = telling("status", "How many cells are done, running, interrupted, failed, waiting", tell_status);
  state->add_option("folder", options.folder, "The folder of the sweep")->required()->type_name("DIR");
  state->add_flag("--json", options.json, "For scripts");
  CLI::App* collected = telling("collect", "The table: a row a cell with axes, measures, status and seconds", collect_table);
  collected->add_option("folders", options.folders, "Folders of sweeps")->required()->type_name("DIR");
  collected->add_option("-o,--output", options.file, "A CSV file, or NPZ by its name (CSV to standard output)")->type_name("FILE");
  add_summary(*sweep, options.summary, status);
  CLI::App* emit = telling("emit", "Prints the script by which another program computes the cells", emit_script);
  emit->add_option("folder", options.folder, "The folder of the sweep")->required()->type_name("DIR");
  emit->add_option("target", options.target, listed(emit_targets(), "or"))->required()->type_name("TARGET");
  emit->add_option("--chunk", options.chunk, "Cells of a task (as few as 1,000 tasks leave)")->type_name("N");
  emit->add_option("--jobs", options.jobs, "Most tasks at a time")->type_name("N");
  emit->add_option("--threads", options.threads, "Threads of a cell (1)")->type_name("N");
  sweep->callback([sweep, &options, &interrupt, &status] {
    if (!sweep->get_subcommands().empty()) return;
    interrupt.watch();
    status = plan_sweep(options, interrupt);
  });
}

}  // namespace reclab::cli
