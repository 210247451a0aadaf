// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/rows.h"

namespace reclab::sources_by_name {

StreamSourceInfo follow() {
  return {.argument = "FILE",
          .text = "Lines of numbers of a text file that grows, whose end is waited at",
          .make = [](const SourceChoice& choice) -> std::unique_ptr<StreamSource> {
            return std::make_unique<TextRows>(open_stream_file(choice.argument), choice.argument, TextRows::At::end_waits, true,
                                              choice.standardise);
          }};
}

}  // namespace reclab::sources_by_name
