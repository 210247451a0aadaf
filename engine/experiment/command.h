// SPDX-License-Identifier: GPL-3.0-or-later
// The command line that does a request again. A POSIX shell reads it; `reclab` makes an equal request of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "parameters/field.h"

namespace reclab {

/// "reclab run ...", without --export. `device`: that which ran.
std::string command_of(const RunRequest& request, const std::string& device);

/// The names that --record takes, and whether a name, which may go on after a slash, begins with one of them.
std::vector<std::string> recorded_names();
bool is_recorded_name(std::string_view name);
/// The recording of such names (keys of trace.npz or their beginnings): what is not asked for is not computed either.
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
  /// A list as options of one name each, so that a backslash at a name's end stays one.
  void list(const std::string& name, const std::vector<std::string>& values);
  /// A field, where its value has to be said.
  void field(const Field& field, const HyperValue& value);
  /// What goes in: a task, by the seed of the weights where its own is that, or a file.
  void task(const std::string& name, const TaskOptions& made, bool standardised, std::uint64_t seed);
  void file(const std::string& name, const LoadOptions& load, bool standardised);
  /// What a request changes of its preset, and whose weights it has.
  void changes(const RunRequest& request);
  /// Which model on which sequence, from where, and on which device: what all commands that run one have.
  void model(const RunRequest& request, const std::string& device);
  const std::vector<std::string>& words() const { return words_; }
  /// "reclab run ..." for a POSIX shell.
  std::string text(const std::string& command) const;

 private:
  std::vector<std::string> words_;
};

}  // namespace reclab
