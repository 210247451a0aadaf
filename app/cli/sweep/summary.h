// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab sweep summary`: a measure of a table of results by the values of its axes, with intervals.
#pragma once

#include <map>
#include <string>

namespace CLI {
class App;
}

namespace reclab::cli {

struct SummaryOptions {
  std::string place;
  std::map<std::string, std::string> given{};  ///< by flag
};
void add_summary(CLI::App& sweep, SummaryOptions& options, int& status);

}  // namespace reclab::cli
