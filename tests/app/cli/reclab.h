// SPDX-License-Identifier: GPL-3.0-or-later
// The program as a script sees it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "places.h"
#include "process.h"
#include "test.h"

namespace reclab::test {

struct Result {
  int status;
  std::string output, error;
  std::int64_t peak_bytes;
};

inline Result reclab_says(const std::vector<std::string>& arguments, const Process::Options& options = {}) {
  Process process(built("bin/reclab"), arguments, options);
  const int status = process.wait();
  return {status, process.output, process.error, process.peak_bytes};
}

/// The output of a command that succeeds.
inline std::string good(const std::vector<std::string>& arguments, const Process::Options& options = {}) {
  const Result result = reclab_says(arguments, options);
  CHECK_SAYS(result.status == 0 && result.error.empty(), arguments[0] + ": " + std::to_string(result.status) + ": " + result.error);
  return result.output;
}

/// `reclab train`, where all is well; and where it is refused, with one line on standard error that has the text.
inline Result train(std::vector<std::string> arguments, const Process::Options& options = {}) {
  arguments.insert(arguments.begin(), "train");
  return reclab_says(arguments, options);
}
inline Result trained(const std::vector<std::string>& arguments) {
  const Result result = train(arguments);
  CHECK_SAYS(result.status == 0 && result.error.empty(), result.error);
  return result;
}
inline Result train_refused(const std::vector<std::string>& arguments, const std::string& text, const Process::Options& options = {}) {
  const Result result = train(arguments, options);
  CHECK_SAYS(result.status == 2 && result.output.empty() && std::ranges::count(result.error, '\n') == 1,
             std::to_string(result.status) + ": " + result.error + result.output);
  CHECK_SAYS(result.error.find(text) != std::string::npos, result.error + " does not say " + text);
  return result;
}

/// A small training; of the usual options those that are given again are as they are given.
inline std::vector<std::string> adding(const std::vector<std::string>& more) {
  std::vector<std::string> words{"lstm", "--set", "width=8", "--task", "adding", "--length", "20"};
  for (const auto& [option, value] :
       {std::pair("--batch", "8"), std::pair("--lr", "0.01"), std::pair("--held-out", "16"), std::pair("--judge-every", "5")})
    if (std::ranges::find(more, option) == more.end()) words.insert(words.end(), {option, value});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  CHECK_SAYS(stream.good(), file.string());
  std::stringstream buffer;
  buffer << stream.rdbuf();
  return buffer.str();
}

/// The text without line breaks: paragraphs and cells of tables are wrapped.
inline std::string flat(const std::string& text) {
  std::string one;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n';
    if (!space || (!one.empty() && one.back() != ' ')) one += space ? ' ' : c;
  }
  return one;
}

}  // namespace reclab::test
