// SPDX-License-Identifier: GPL-3.0-or-later
#include "trace/input_scale.h"

#include <algorithm>

namespace reclab {

bool scales_input(std::string_view key) { return key == "input_scale" || key == "0.input_scale"; }

std::string input_scale_of(const RunInfo& run) {
  const auto found = std::ranges::find_if(run.hyper, [](const auto& one) { return scales_input(one.first); });
  return found == run.hyper.end() || found->second == "1" ? std::string() : found->second;
}

std::string input_words(const RunInfo& run) {
  const std::string scale = input_scale_of(run);
  return scale.empty() ? run.input_name : run.input_name + " × " + scale;
}

std::string input_scale_note(const std::string& scale) {
  return "The model reads the input times " + scale +
         " (input_scale): another program that runs these weights must multiply its input too.";
}

}  // namespace reclab
