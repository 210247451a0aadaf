// SPDX-License-Identifier: GPL-3.0-or-later
// The command line that does a request again. A POSIX shell reads it; `reclab` makes an equal request of it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "parameters/field.h"
#include "sequence/choice.h"

namespace reclab {

/// "reclab run ...", without --export. `device`: the one that ran.
std::string command_of(const RunRequest& request, const std::string& device);

/// The names that --record has to have for a recording; none where all is kept.
std::vector<std::string> record_of(const RecordingOptions& recording);
/// The names that --record takes, and whether a name, which may go on after a slash, begins with one of them.
std::vector<std::string> recorded_names();
bool is_recorded_name(std::string_view name);
/// The recording of such names (keys of trace.npz or their beginnings): other arrays are not computed either.
RecordingOptions recording_of(const std::vector<std::string>& record);
/// A text as one word of a POSIX shell.
std::string shell_word(std::string_view text);

/// A command line that grows word by word.
class CommandLine {
 public:
  /// A value that begins with a minus would be taken for an option of its own.
  void option(const std::string& name, const std::string& value);
  void option(const std::string& name, std::uint64_t value) { option(name, std::to_string(value)); }
  void word(const std::string& value) { words_.push_back(value); }
  /// A field, where its value has to be said.
  void field(const Field& field, const HyperValue& value);
  /// The fields of the plan, without some, by their keys.
  template <class Plan>
  void fields(const std::vector<PlanField<Plan>>& all, const Plan& plan, const std::set<std::string_view>& without = {}) {
    for (const PlanField<Plan>& one : all)
      if (!without.contains(one.row.key)) field(one, one.get(plan));
  }
  /// The sequence of a model whose weights have a seed, which is a task's too where it is not said to be another.
  void sequence(const SequenceChoice& choice, std::uint64_t seed);
  /// The words that all commands with a run share: model, sequence, start and device, without the named fields.
  void model(const RunRequest& request, const std::string& device, const std::set<std::string_view>& without);
  const std::vector<std::string>& words() const { return words_; }
  /// "reclab run ..." for a POSIX shell.
  std::string text(const std::string& command) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace reclab
