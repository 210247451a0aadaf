// SPDX-License-Identifier: GPL-3.0-or-later
// The options of `run`, `forms`, `train` and the studies, and the requests that those of `run` and `train` ask for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "commands.h"
#include "experiment/training/training.h"

namespace CLI {
class App;
}

namespace reclab::cli {

void add_list(CLI::App& app, const char* flag, std::function<void(const std::vector<std::string>&)> take, const std::string& text);
void add_list(CLI::App& app, const char* flag, std::vector<std::string>& values, const char* text);
void add_model(CLI::App& app, ModelOptions& options, bool required = true);
void add_sequence(CLI::App& app, ModelOptions& options);
void add_loss(CLI::App& app, ModelOptions& options);
void add_run(CLI::App& app, RunOptions& options);
void add_train(CLI::App& app, TrainOptions& options);

/// What was typed after `reclab run`, `train` or the name of a study, as options. Throws Error for what CLI11 refuses.
RunOptions run_options(const std::vector<std::string>& arguments);
TrainOptions train_options(const std::vector<std::string>& arguments);
StudyOptions study_options(const std::string& study, const std::vector<std::string>& arguments);

/// Of a request what is about the model alone; no sequence is read. Throws Error.
RunRequest model_request_of(const RunOptions& options, const PresetLibrary& presets);
/// The request of `reclab run`; reads the sequence. Throws Error.
RunRequest request_of(const RunOptions& options, const PresetLibrary& presets);
/// The request of `reclab train` without --resume. Throws Error.
TrainingRequest training_request_of(const TrainOptions& options, const PresetLibrary& presets);

}  // namespace reclab::cli
