// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/demand.h"

#include <cstdio>
#include <cstdlib>

namespace reclab {

void demand_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "recurrence-lab: a mistake of the program's own at %s:%d: %s does not hold.\n", file, line, condition);
  std::abort();
}

}  // namespace reclab
