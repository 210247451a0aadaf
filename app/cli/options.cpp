// SPDX-License-Identifier: GPL-3.0-or-later
#include "options.h"

#include <CLI/CLI.hpp>
#include <iterator>

#include "array/error.h"
#include "experiment/command.h"
#include "experiment/training/plan.h"
#include "files/archive.h"
#include "sequence/format.h"
#include "study/subcommand.h"

namespace reclab::cli {

void add_list(CLI::App& app, const char* flag, std::function<void(const std::vector<std::string>&)> take, const std::string& text) {
  const auto split = [take = std::move(take)](const std::vector<std::string>& given) {
    std::vector<std::string> names;
    for (const std::string& list : given) std::ranges::move(names_of_list(list), std::back_inserter(names));
    take(names);
    return true;
  };
  app.add_option(flag, CLI::callback_t(split), text)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("A,B");
}
void add_list(CLI::App& app, const char* flag, std::vector<std::string>& values, const char* text) {
  add_list(app, flag, [&values](const std::vector<std::string>& names) { values = names; }, text);
}

std::string missing_help() {
  return "What becomes of missing cells of the file (empty, NA, NaN): " + listed(missing_choices(), "or") +
         " (refuse). leave-out: their rows; mask: as hold, and a channel for each column that has them. A step whose target is missing "
         "does not count; a row whose time is missing is left out or refused";
}

void add_model(CLI::App& app, ModelOptions& options, bool required) {
  app.add_option("id", options.id, "The preset; `reclab list` shows all")->required(required)->type_name("ID");
  app.add_option("--set", options.set, "A hyper-parameter; `reclab show ID` lists them")->allow_extra_args(false)->type_name("KEY=VALUE");
  app.add_option("--seed", options.seed, "Of the weights (1), and of the task where --task-seed is not given")->type_name("N");
  app.add_option("--device", options.device, "auto, cpu or cuda (auto: cuda for float32 that is large enough, where there is a device)")
      ->type_name("D");
  app.add_option("--dtype", options.dtype, "f32 or f64 (f64)")->type_name("TYPE");
}

void add_sequence(CLI::App& app, ModelOptions& options) {
  app.add_option("--input", options.input, "A " + sequence_format_names() + " file (arrays of an NPZ file: `reclab run --help`, below)")
      ->type_name("FILE");
  app.add_option("--task", options.task, "A synthetic sequence (the preset's own)")->type_name("NAME");
  app.add_option("--length", options.length, "Steps of the task")->type_name("T");
  app.add_option("--task-seed", options.task_seed, "Of the task, where it is another than that of the weights")->type_name("N");
  app.add_option("--task-set", options.task_set, "A parameter of the task; `reclab task --help` lists them")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  add_list(app, "--columns", options.columns, "Columns of the file, by name or number from 1; \\, is a comma in a name");
  app.add_option("--time", options.time, "The time column of the file, or none")->type_name("NAME");
  add_list(app, "--target", options.target,
           "Columns of the file that are the target, and inputs only where --columns names them too; or next: the next value of the input");
  app.add_option("--missing", options.missing, missing_help())->type_name("HOW");
  app.add_option("--standardise", options.standardise, "yes or no (yes for files, no for tasks)")->type_name("Y");
  app.add_flag("--trained", options.trained,
               "With the trained weights that the preset brings, on what they were trained on; `reclab list` names those that have them");
  app.add_option("--weights", options.weights,
                 archive_format_names() +
                     " file, names as on the card (with or without param/) or of the reference implementation; FILE:PART is what stands "
                     "below a prefix")
      ->type_name("FILE");
  app.add_option("--sizes", options.sizes, "preset, or weights: width, layers and whatever else their shapes tell (preset)")
      ->type_name("FROM");
  app.add_option("--state", options.state, archive_format_names() + " file to start from, as state.npz of an export")->type_name("FILE");
}

void add_loss(CLI::App& app, ModelOptions& options) {
  app.add_option("--loss", options.loss, "last, mean or task (task where there is a target, else last)")->type_name("L");
}

void add_run(CLI::App& app, RunOptions& options) {
  add_model(app, options);
  add_sequence(app, options);
  app.add_option("--form", options.form, "An exact form of the preset, or auto (sequential)")->type_name("FORM");
  add_list(app, "--record", options.record, "all, or keys of trace.npz or their beginnings, as state,gate/0");
  app.add_option("--every", options.every, "Record every K-th step (chosen by the memory it takes)")->type_name("K");
  add_loss(app, options);
  app.add_flag("--csv", options.csv, "With --export: a CSV for every array too");
  app.add_option("--export", options.folder, "Folder for manifest.json, trace.npz and state.npz")->type_name("DIR");
  app.footer(
      "Arrays of an NPZ file: input [T, columns], or the only array there is; time [T], increasing; target [T, outputs], which the\n"
      "output is to be, or with classes (their number) a class from 0 on a step, [T] or [T, 1]; mask [T], 1 where the target\n"
      "counts and 0 elsewhere (1 everywhere). Only input is needed; a model has a linear head where there is a target.");
}

void add_train(CLI::App& app, TrainOptions& options) {
  const std::vector<Field> fields(training_fields().begin(), training_fields().end());
  add_model(app, options, false);
  app.add_option("--form", options.form, "The exact form that it is trained in (sequential)")->type_name("FORM");
  app.add_flag("--trained", options.trained, "Begins from the trained weights that the preset brings");
  app.add_option("--weights", options.weights,
                 archive_format_names() + " file to begin from, names as on the card or of the reference implementation")
      ->type_name("FILE");
  app.add_option("--task", options.task, "A task that is learned (the preset's own), fresh sequences at every step")->type_name("NAME");
  app.add_option("--length", options.length, "Steps of the task")->type_name("T");
  app.add_option("--task-seed", options.task_seed, "Of what is learned from, where it is another than that of the weights")->type_name("N");
  app.add_option("--task-set", options.task_set, "A parameter of the task; `reclab task --help` lists them")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  app.add_option("--input", options.input, "A " + sequence_format_names() + " file that is learned in windows; its last part is held out")
      ->type_name("FILE");
  add_fields(app, fields, options.given, true);
  add_list(app, "--columns", options.columns, "Columns of the file, by name or number from 1; \\, is a comma in a name");
  app.add_option("--time", options.time, "The time column of the file, or none")->type_name("NAME");
  add_list(app, "--target", options.target, "Columns of the file that are the target, and inputs only where --columns names them too");
  app.add_option("--missing", options.missing, missing_help())->type_name("HOW");
  app.add_option("--standardise", options.standardise, "yes or no (yes for files, by what is learned from; no for tasks)")->type_name("Y");
  add_fields(app, fields, options.given);
  app.add_option("--export", options.folder, "Folder for weights, history and what it takes to go on; written while it trains, too")
      ->type_name("DIR");
  app.add_option("--checkpoint-every", options.checkpoint_every, "Seconds between two writings of that folder while it trains (60)")
      ->type_name("S");
  app.add_flag("--replace", options.replace,
               "With --export: where the folder has a training, this one takes its place, once it is done or further");
  app.add_option("--resume", options.resume, "Goes on from such a folder, and writes to it; --steps may be more than they were")
      ->type_name("DIR");
}

namespace {
template <class Options>
Options parsed(void (*add)(CLI::App&, Options&), std::vector<std::string> arguments, Options options = {}) {
  CLI::App app;
  add(app, options);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the end
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success&) {  // --help
    throw Error("they ask for help, and for nothing else.", {});
  } catch (const CLI::ParseError& error) {
    throw Error(error.what(), {});
  }
  return options;
}
}  // namespace

RunOptions run_options(const std::vector<std::string>& arguments) { return parsed(add_run, arguments); }
TrainOptions train_options(const std::vector<std::string>& arguments) { return parsed(add_train, arguments); }
StudyOptions study_options(const std::string& study, const std::vector<std::string>& arguments) {
  StudyOptions options;
  options.study = study;
  return parsed(add_study, arguments, options);
}

}  // namespace reclab::cli
