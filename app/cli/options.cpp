// SPDX-License-Identifier: GPL-3.0-or-later
#include "options.h"

#include <CLI/CLI.hpp>
#include <iterator>

#include "array/cpu/processor/threads.h"
#include "array/error.h"
#include "experiment/command/run_fields.h"
#include "experiment/training/plan.h"
#include "files/files.h"
#include "parameters/typed.h"
#include "sequence/format.h"
#include "streams/stream.h"
#include "study/subcommand.h"
#include "text.h"

namespace reclab::cli {

void add_list(CLI::App& app, const Field& field, const std::string& text, std::string& list) {
  const auto take = [&list, whole = field.says == Field::Says::texts](const std::vector<std::string>& given) {
    std::vector<std::string> names;
    for (const std::string& one : given) std::ranges::move(whole ? std::vector{one} : names_of_list(one), std::back_inserter(names));
    list = list_of_names(names);
    return true;
  };
  app.add_option(field.flag, CLI::callback_t(take), text)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name(field.argument);
}

namespace {

template <class Plan>
void add_fields_but(CLI::App& app, const std::vector<PlanField<Plan>>& all, ModelOptions& options,
                    const std::set<std::string_view>& without) {
  std::vector<Field> fields;
  for (const PlanField<Plan>& field : all)
    if (!without.contains(field.row.key)) fields.push_back(field);
  add_fields(app, fields, options.given);
}

}  // namespace

void add_model(CLI::App& app, ModelOptions& options, const std::set<std::string_view>& without) {
  app.add_option("id", options.id, "The preset; `reclab list` shows all")->required()->type_name("ID");
  add_fields_but(app, sequence_fields(), options, {});
  add_fields_but(app, run_fields(), options, without);
  app.add_option("--sizes", options.sizes, "preset, or weights: width, layers and whatever else the shapes of --weights tell (preset)")
      ->type_name("FROM");
}

void add_run(CLI::App& app, RunOptions& options) {
  add_model(app, options, {});
  app.add_flag("--csv", options.csv, "With --export: a CSV for every array too");
  app.add_option("--export", options.folder, "Folder for manifest.json, trace.npz and state.npz")->type_name("DIR");
  app.footer(
      "Arrays of an NPZ file: input [T, columns], or the only array there is; time [T], increasing; target [T, outputs], which the\n"
      "output is to be, or with classes (their number) a class from 0 on a step, [T] or [T, 1]; mask [T], 1 where the target\n"
      "counts and 0 elsewhere (1 everywhere). Only input is needed; a model has a linear head where there is a target.");
}

std::vector<PlanField<SequenceChoice>> task_fields() {
  std::vector<PlanField<SequenceChoice>> fields;
  for (PlanField<SequenceChoice> field : sequence_fields()) {
    if (field.of != Field::Of::task && field.row.key != "standardise") continue;
    if (field.row.key == "seed") {
      field.flag = "--seed";
      field.row.text = "Seed (1)";
    }
    if (field.row.key == "set") field.row.text = "A parameter of the task, as listed below";
    fields.push_back(std::move(field));
  }
  return fields;
}

void add_task(CLI::App& app, TaskOptionsText& options) {
  std::vector<std::string> names;
  for (const TaskInfo& task : tasks()) names.push_back(task.name);
  app.add_option("name", options.id, joined(names))->required()->type_name("NAME");
  add_fields_but(app, task_fields(), options, {});
  app.get_option("--length")->required();
  app.footer(task_parameters_text());
  app.add_option("--export", options.file, "The file, " + listed(saved_sequence_suffixes(), "or"))->required()->type_name("FILE");
}

void add_train(CLI::App& app, TrainOptions& options) {
  app.add_option("id", options.id, "The preset; `reclab list` shows all")->type_name("ID");
  add_fields_but(app, sequence_fields(), options, {});
  add_fields_but(app, run_fields(), options, {"state", "loss", "every", "record"});
  add_fields_but(app, training_fields(), options, {});
  app.add_option("--export", options.folder, "Folder for weights, history and what it takes to go on; written while it trains, too")
      ->type_name("DIR");
  app.add_option("--checkpoint-every", options.checkpoint_every, "Seconds between two writings of that folder while it trains (60)")
      ->type_name("S");
  app.add_flag("--replace", options.replace,
               "With --export: where the folder has a training, this one takes its place, once it is done or further");
  app.add_option("--resume", options.resume, "Goes on from such a folder, and writes to it; --steps may be more than they were")
      ->type_name("DIR");
}

void add_stream(CLI::App& app, StreamOptions& options) {
  app.add_option("id", options.id, "The preset; `reclab list` shows all")->type_name("ID");
  add_fields_but(app, stream_fields(), options, {});
  add_fields_but(app, run_fields(), options, {"state", "loss", "every", "record", "form"});
  app.add_option("--export", options.folder, "Folder for errors, weights and what it takes to go on; written while it runs, too")
      ->type_name("DIR");
  app.add_option("--checkpoint-every", options.checkpoint_every, "Seconds between two writings of that folder while it runs (60)")
      ->type_name("S");
  app.add_flag("--replace", options.replace, "With --export: where the folder has a stream, this one takes its place");
  app.add_option("--resume", options.resume,
                 "Goes on from such a folder, and writes to it; --steps may be more than they were, and --pace another")
      ->type_name("DIR");
  app.add_flag("--json", options.json, "The summary for scripts");
  std::string text = "Sources:\n";
  for (const StreamSourceInfo& source : stream_sources()) {
    text += "  " + source.id + (source.argument.empty() ? "" : ":" + source.argument) + "\n";
    for (const std::string& line : wrapped(source.text + ".", page_width - 6)) text += "      " + line + "\n";
    for (const HyperSpec& row : source.parameters) text += "      " + row.key + ": " + row.text + " (" + as_text(row.standard) + ")\n";
  }
  app.footer(text);
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
StreamOptions stream_options(const std::vector<std::string>& arguments) { return parsed(add_stream, arguments); }
StudyOptions study_options(const std::string& study, const std::vector<std::string>& arguments) {
  StudyOptions options;
  options.study = study;
  return parsed(add_study, arguments, options);
}

int threads_of(const std::string& text, int usual) {
  return static_cast<int>(integer("--threads", text, 1, cpu::most_threads).value_or(usual));
}

}  // namespace reclab::cli
