// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab serve --stdio`: a process that carries out one line of reclab after the other, for programs that ask often.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "experiment/standing.h"

namespace CLI {
class App;
}

namespace reclab::cli {

/// A run that is answered with its arrays in place of a summary. The presets and the model of the run before are kept.
class RunServer {
 public:
  int operator()(const RunOptions& options, Interrupt& interrupt);
  /// The last run's result, and the seconds of its computation; nothing after a run that was refused.
  const std::optional<RunResult>& result() const { return result_; }
  double seconds() const { return seconds_; }
  void forget() { result_.reset(); }

 private:
  const PresetLibrary& presets_with(const std::string& id);
  std::unique_ptr<PresetLibrary> presets_;
  StandingModel standing_;
  std::optional<RunResult> result_;
  double seconds_ = 0.0;
};

/// Carries out the arguments of a line of reclab, without "reclab", and returns its exit status; complaints go to standard error.
using CarryOut = std::function<int(const std::vector<std::string>& arguments, RunServer& runs)>;

/// Reads requests from standard input and answers on standard output until the input ends (0) or a signal stops it. The messages are in
/// engine/docs/python.md.
int serve(Interrupt& interrupt, const CarryOut& carry_out);

/// The options of a subcommand, for `reclab options` and its callers.
struct OptionsOptions {
  std::string command;
  bool json = false;
};
int options_of(const OptionsOptions& options, CLI::App& app);

}  // namespace reclab::cli
