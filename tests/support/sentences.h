// SPDX-License-Identifier: GPL-3.0-or-later
// The sentences of errors, looked at.
#pragma once

#include <initializer_list>
#include <string>

#include "array/error.h"
#include "test.h"

namespace reclab::test {

/// The sentence of the error that something throws; fails the test when there is none.
template <class F>
std::string sentence_of(F&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  fail(__FILE__, __LINE__, "no error");
}

inline void check_says(const std::string& sentence, std::initializer_list<const char*> parts) {
  for (const char* part : parts) CHECK_SAYS(sentence.find(part) != std::string::npos, "\"" + sentence + "\" has no \"" + part + "\"");
  CHECK_SAYS(sentence.find('\n') == std::string::npos, sentence);
}

}  // namespace reclab::test
