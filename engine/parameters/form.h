// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace reclab {

/// How an option is edited in a window; without a label it is not.
struct FormRow {
  std::string label, tip;
  double low = 0.0, high = 0.0;      ///< of a number
  std::vector<std::string> choices;  ///< what the row's choices are called
};

}  // namespace reclab
