// SPDX-License-Identifier: GPL-3.0-or-later
// The subcommands of reclab, once their options are read. Each returns the exit status and throws Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiment/command/typed_run.h"
#include "experiment/experiment.h"
#include "interrupt.h"
#include "parameters/typed.h"
#include "sequence/choice.h"

namespace reclab::cli {

struct ListOptions {
  std::string family;
  bool json = false;
};
int list(const ListOptions& options);

struct ShowOptions {
  std::string id;
  std::vector<std::string> set;
  std::string inputs;
  bool json = false;
};
int show(const ShowOptions& options);
/// The table of kinds of arrays.
int kinds(bool json);
/// The parameters of all tasks as a table, for help.
std::string task_parameters_text();

/// A preset, and text as it was typed for fields: those of its sequence and its run, of a training and of a study.
struct ModelOptions {
  std::string id, sizes;
  std::map<std::string, std::string> given{};  ///< by flag; "" for none
  bool is_set(const std::string& flag) const { return given.contains(flag) && !given.at(flag).empty(); }
};

struct RunOptions : ModelOptions {
  std::string folder;
  bool csv = false;
};
int run(const RunOptions& options, Interrupt& interrupt);

/// Of a study that has a subcommand.
struct StudyOptions : ModelOptions {
  std::string study;  ///< its id
};

struct TrainOptions : ModelOptions {
  bool replace = false;
  std::string folder, resume, checkpoint_every;
};
int train(const TrainOptions& options, Interrupt& interrupt);

struct StreamOptions : ModelOptions {
  bool replace = false, json = false;
  std::string folder, resume, checkpoint_every;
};
int stream(const StreamOptions& options, Interrupt& interrupt);

struct ComplexitiesOptions {
  std::vector<std::string> ids, lengths;  ///< ids: of the presets in the tables; all where there are none
  std::string file;
  bool json = false;
};
int complexities(const ComplexitiesOptions& options, Interrupt& interrupt);

struct RulesOptions {
  std::vector<std::string> ids;  ///< of presets; all where there are none
  bool json = false;
};
int rules(const RulesOptions& options, Interrupt& interrupt);

struct LessonOptions {
  std::vector<std::string> names;  ///< of lessons, folders or files
  bool json = false;
};

/// Of the fields of a sequence those of a task; `id`: its name.
struct TaskOptionsText : ModelOptions {
  std::string file;
};
int task(const TaskOptionsText& options);

struct CheckDeviceOptions {
  std::vector<std::string> ids;
  bool json = false;
};
/// 0 when the CUDA device agrees with the CPU or there is none, 1 when it does not.
int check_device(const CheckDeviceOptions& options, Interrupt& interrupt);

/// After Ctrl-C: says so and ends the program.
[[noreturn]] void cancelled(const std::string& where);
/// --sizes weights: settings read from the file's shapes go after the given ones, and are reported.
void take_sizes(const ModelOptions& options, RunRequest& request, bool tell = true);
/// The request that the model's options ask for, without its sequence, of which nothing is read. Throws Error.
RunRequest model_request_of(const ModelOptions& options, const Preset& preset, const Registry& registry);
/// The request with its sequence, which is read. Throws Error.
RunRequest request_of(const ModelOptions& options, const PresetLibrary& presets);
/// The presets of this machine. Their mistakes go to standard error, a line each, when `tell` is set.
PresetLibrary library(bool tell = false);
/// "key=value" texts as pairs. `option`, `example`: for the sentence about one that is none.
std::vector<std::pair<std::string, std::string>> settings(const std::vector<std::string>& texts, const std::string& option = "--set",
                                                          const std::string& example = "width=64");

}  // namespace reclab::cli
