// SPDX-License-Identifier: GPL-3.0-or-later
// A sentence of an Error is whole whatever stands in the names that it tells: control characters are written out.
#include <cstring>
#include <string>

#include "array/error.h"
#include "test.h"

using namespace reclab;

TEST_CASE("control characters in an error's sentence are written out, and nothing else is touched") {
  const std::string name("a\0b\x1b]0;t\x07\n\t\x7f", 12);
  const Error error("there is no preset \"" + name + "\": choose λ – or \xc2\xa0 \\x00", {.file = name});
  CHECK_EQUAL(std::string(error.what()), "there is no preset \"a\\x00b\\x1b]0;t\\x07\\x0a\\x09\\x7f\": choose λ – or \xc2\xa0 \\x00");
  CHECK_EQUAL(error.where().file, name);  // what programs look at is as it was
  CHECK_EQUAL(std::string(DeviceError(DeviceError::Kind::failed, "", std::string("a\0b", 3)).what()), "a\\x00b");
}

TEST_CASE("the control characters above ASCII begin commands of a terminal too") {
  CHECK_EQUAL(visible("\xc2\x9b"
                      "31m"),
              "\\x9b31m");
  CHECK_EQUAL(visible("\xc2\x80\xc2\x9f"), "\\x80\\x9f");
  CHECK_EQUAL(visible("\xc2\xa0\xc3\x9b"), "\xc2\xa0\xc3\x9b");  // a blank that does not break, and Û
  CHECK_EQUAL(visible("\xc2"), "\xc2");
  CHECK_EQUAL(visible(""), "");
}
