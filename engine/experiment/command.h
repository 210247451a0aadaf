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

/// Whether a request's weights are from a file that is not that of its trained preset, so that --weights has to name it.
bool has_own_weights(const RunRequest& request);

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
  explicit CommandLine(std::string start) : text_(std::move(start)) {}
  /// A value that begins with a minus would be taken for an option of its own.
  void option(const std::string& name, const std::string& value);
  void option(const std::string& name, std::uint64_t value) { option(name, std::to_string(value)); }
  void flag(const std::string& name) { text_ += ' ' + name; }
  void word(const std::string& value) { text_ += ' ' + shell_word(value); }
  /// A list as options of one name each, so that a backslash at a name's end stays one.
  void list(const std::string& name, const std::vector<std::string>& values);
  /// A list as one option, its values between commas; nothing for an empty one.
  void joined(const std::string& name, const std::vector<std::string>& values);
  /// Which model on which sequence, from where, and on which device: what all commands that run one have.
  void model(const RunRequest& request, const std::string& device);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace reclab
