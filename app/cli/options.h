// SPDX-License-Identifier: GPL-3.0-or-later
// The options of `run`, `train`, `task` and the studies, and the request that those of `train` ask for.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "commands.h"
#include "experiment/training/training.h"

namespace CLI {
class App;
}

namespace reclab::cli {

/// An option of a list, whose names go into `list`.
void add_list(CLI::App& app, const Field& field, const std::string& text, std::string& list);
/// A preset, and which fields of a run there are, but for some, by their keys.
void add_model(CLI::App& app, ModelOptions& options, const std::set<std::string_view>& without);
void add_run(CLI::App& app, RunOptions& options);
void add_train(CLI::App& app, TrainOptions& options);
void add_stream(CLI::App& app, StreamOptions& options);
void add_task(CLI::App& app, TaskOptionsText& options);
/// The command `lesson` with its own subcommands.
void add_lesson(CLI::App& app, LessonOptions& options, Interrupt& interrupt, int& status);
/// The fields of a task's sequence that are options of `reclab task`.
std::vector<PlanField<SequenceChoice>> task_fields();

/// The options of the arguments after `reclab run`, `train` or the name of a study. Throws Error for arguments that CLI11 refuses.
RunOptions run_options(const std::vector<std::string>& arguments);
TrainOptions train_options(const std::vector<std::string>& arguments);
StreamOptions stream_options(const std::vector<std::string>& arguments);
StudyOptions study_options(const std::string& study, const std::vector<std::string>& arguments);

/// The value of --threads; `usual` where there is none. Throws Error for another number than the engine can have.
int threads_of(const std::string& text, int usual);

/// The request of `reclab train` without --resume. Throws Error.
TrainingRequest training_request_of(const TrainOptions& options, const PresetLibrary& presets);

}  // namespace reclab::cli
