// SPDX-License-Identifier: GPL-3.0-or-later
// Studies as subcommands: their options come from their fields, and each has a file that shows its result.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "commands.h"
#include "studies/study.h"

namespace CLI {
class App;
}

namespace reclab::cli {

struct StudyAsked {
  StudyInput input;
  FieldTexts values{};
};
struct StudyOutput {
  std::string file;  ///< or folder, where --export names one
  bool json = false;
};

/// A study's request where it is not the model and the sequence of `reclab run`, and the output of its result.
struct StudyText {
  std::function<StudyAsked(const StudyOptions&, const PresetLibrary&)> asked;
  std::function<void(const StudyAsked&, const StudyResult&, const StudyOutput&)> show;
};
StudyText bench_text();
StudyText capacity_text();
StudyText credit_text();
StudyText credit_curves_text();
StudyText distil_text();
StudyText evaluate_text();
StudyText forcing_text();
StudyText forms_text();

/// Options for fields.
void add_fields(CLI::App& app, const std::vector<Field>& fields, std::map<std::string, std::string>& given);
/// The values typed for the fields of a study.
FieldTexts values_given(const StudyOptions& options);

void add_study(CLI::App& app, StudyOptions& options);
int run_study(const StudyOptions& options, Interrupt& interrupt);

}  // namespace reclab::cli
