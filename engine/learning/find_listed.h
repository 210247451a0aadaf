// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "array/error.h"

namespace reclab {

/// The row of that id. Throws Error naming all rows; `what`: "optimiser"; `option`: the one that chooses it.
template <class Row>
const Row& find_listed(const std::vector<Row>& all, std::string_view id, const std::string& what, const std::string& option) {
  std::string known;
  for (const Row& row : all) {
    if (row.id == id) return row;
    known += (known.empty() ? "" : ", ") + row.id;
  }
  throw Error("there is no " + what + " \"" + std::string(id) + "\": choose " + known + ".",
              {.parameter = option, .value = std::string(id), .range = known});
}

}  // namespace reclab
