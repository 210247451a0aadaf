// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <unistd.h>

#include "streams/rows.h"

namespace reclab::sources_by_name {

StreamSourceInfo stdin() {
  return {.text = "Lines of numbers from standard input",
          .again = false,
          .make = [](const SourceChoice& choice) -> std::unique_ptr<StreamSource> {
            return std::make_unique<TextRows>(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0), "standard input", TextRows::At::end_ends, false,
                                              choice.standardise);
          }};
}

}  // namespace reclab::sources_by_name
