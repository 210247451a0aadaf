// SPDX-License-Identifier: GPL-3.0-or-later
// A study: a computation as a value, an id and values for its fields. From its row follow the subcommand with its help, the requests of a
// window and its answers, the key of the job, and the kept choices. The build lists studies/list/<id>.cpp, each of which defines `Study
// <id>()`.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiment.h"
#include "parameters/field.h"
#include "trace/study_result.h"

namespace reclab {

/// The input of a study, beside its own values.
struct StudyInput {
  const Registry& registry;
  const PresetLibrary& presets;
  RunRequest run{};  ///< the model, its weights and the sequence; of no use to one that takes no model
};

struct StudyReport {
  Progress progress{};
  std::function<void(StudyResult)> part{};  ///< receives the part of the result that is there already
};

struct Study {
  std::string id{};                                     ///< the name of its file
  std::string command{}, summary{}, cancelled_where{};  ///< of `reclab`: its subcommand, or none; one line of help; "during the timing"
  std::vector<Field> fields{};                          ///< in the order of the command line
  FieldTexts in_window{};                               ///< where a window begins otherwise than with the defaults
  bool takes_model = true;                              ///< false: it is of a model of its own
  bool takes_form = false;                              ///< it runs in the form of the run, and not in one or all of its own
  bool takes_loss = false;                              ///< its result depends on the loss of the run
  Kinds fills{};                                        ///< the kinds of a trace that its result has; none: it is of a type of its own
  bool measures = false;                                ///< time: nothing is to compute beside it
  bool on_request = false;                              ///< a window computes it when asked to by hand alone, and its last result stays
  /// Throws Error, and Cancelled where it is stopped. Fields that are not among the values have their defaults.
  std::function<StudyResult(const StudyInput&, const FieldTexts& values, const StudyReport&, std::stop_token)> compute{};
  std::function<StudyResult(const std::string& why)> instead{};  ///< a result that says why there is none; may be empty
};

/// All studies.
const std::vector<Study>& studies();
const Study& study(std::string_view id);

/// A trace of one array of a kind, <kind>/none, whose text says why a study has none.
TracePtr trace_without(Kind kind, const std::string& why);

/// Rows of a study that say where its result goes.
Field json_output();
Field file_output(std::string argument, std::string text);

}  // namespace reclab
