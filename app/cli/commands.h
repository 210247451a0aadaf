// SPDX-License-Identifier: GPL-3.0-or-later
// What the subcommands of reclab do, once their options are read. Each returns the exit status and throws Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "interrupt.h"

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
/// The parameters of all tasks as a table, for help.
std::string task_parameters_text();

/// What `run`, `forms` and `bench` share: text as it was typed, empty where it was not.
struct ModelOptions {
  std::string id;
  std::vector<std::string> set;
  std::string seed, device = "auto", dtype = "f64", weights, sizes, state;
  // The sequence.
  std::string input, task, length, task_seed, time, missing, standardise, loss;
  std::vector<std::string> columns, target, task_set;
  bool trained = false;
  std::map<std::string, std::string> given;  ///< for the fields of a training or a study, by their flags; "" for none
  bool is_set(const std::string& flag) const { return given.contains(flag) && !given.at(flag).empty(); }
};

struct RunOptions : ModelOptions {
  std::string form = "sequential", every, folder;
  std::vector<std::string> record;
  bool csv = false;
};
int run(const RunOptions& options, Interrupt& interrupt);

struct FormsOptions : ModelOptions {
  bool json = false;
};
int forms(const FormsOptions& options, Interrupt& interrupt);

/// Of a study that has a subcommand: `given` is what was typed for its fields.
struct StudyOptions : RunOptions {
  std::string study;  ///< its id
};

struct TrainOptions : ModelOptions {
  std::string form = "sequential";
  bool replace = false;
  std::string folder, resume, checkpoint_every;
};
int train(const TrainOptions& options, Interrupt& interrupt);

struct ComplexitiesOptions {
  std::vector<std::string> ids, lengths;  ///< ids: of the presets in the tables; all where there are none
  std::string file;
  bool json = false;
};
int complexities(const ComplexitiesOptions& options, Interrupt& interrupt);

struct TaskOptionsText {
  std::string name, length, seed, standardise, file;
  std::vector<std::string> set;
};
int task(const TaskOptionsText& options);

struct CheckDeviceOptions {
  std::vector<std::string> ids;
  bool json = false;
};
/// 0 when the CUDA device agrees with the CPU or there is none, 1 when it does not.
int check_device(const CheckDeviceOptions& options, Interrupt& interrupt);

/// After Ctrl-C: says so and ends the program.
int cancelled(const std::string& where);
/// A user's mistake in an option, one sentence.
[[noreturn]] void usage_error(const std::string& option, const std::string& sentence);
/// What --missing says; refuse where it is not given.
Missing missing_of(const std::string& text);

/// --sizes weights: what the file's shapes tell goes after what was set, and is told.
void take_sizes(const ModelOptions& options, RunRequest& request, bool tell = true);
/// The request that the model's options ask for; `length`: of a task, where none is given.
RunRequest request_of(const ModelOptions& options, const Preset& preset, const Registry& registry);
Sequence sequence_of(const ModelOptions& options, const Preset& preset, std::int64_t length);
/// The presets of this machine. Their mistakes go to standard error, a line each, when `tell` is set.
PresetLibrary library(bool tell = false);
/// "key=value" texts as pairs. `option`, `example`: for the sentence about one that is none.
std::vector<std::pair<std::string, std::string>> settings(const std::vector<std::string>& texts, const std::string& option = "--set",
                                                          const std::string& example = "width=64");
/// An integer that was typed; empty text gives nothing.
std::optional<std::int64_t> integer(const std::string& option, const std::string& text, std::int64_t low, std::int64_t high);
/// A number from 0 on that was typed.
double positive(const std::string& option, const std::string& text);
/// A seed, likewise.
std::optional<std::uint64_t> seed(const std::string& option, const std::string& text);

}  // namespace reclab::cli
