// SPDX-License-Identifier: GPL-3.0-or-later
// The few words that engine tests are written in. They run under the main() of test_main.cpp, which prints one line a case with its
// processor time and exits with the number of failed cases.
#pragma once

#include <cmath>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace reclab::test {

struct Case {
  std::string name;
  std::function<void()> body;
  std::string family{};  ///< of models, where the case is one of a sweep (sweep.h)
};
std::vector<Case>& cases();
/// Whether sweeps take all their lengths and settings for every model: the argument --thorough.
bool& thorough();
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Thrown by a case that cannot run here; reported as skipped with the reason, never as passed.
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Register {
  Register(std::string name, std::function<void()> body) { cases().push_back({std::move(name), std::move(body), {}}); }
};
[[noreturn]] inline void fail(const char* file, int line, const std::string& what) {
  std::ostringstream text;
  text << file << ':' << line << ": " << what;
  throw Failure(text.str());
}
template <class T>
std::string show(const T& value) {
  std::ostringstream text;
  text.precision(17);
  text << value;
  return text.str();
}

}  // namespace reclab::test

#define RECLAB_JOIN2(a, b) a##b
#define RECLAB_JOIN(a, b) RECLAB_JOIN2(a, b)
/// TEST_CASE("name of the case") { ... }
#define TEST_CASE(name)                                                                                             \
  static void RECLAB_JOIN(test_body_, __LINE__)();                                                                  \
  static const ::reclab::test::Register RECLAB_JOIN(test_case_, __LINE__)(name, RECLAB_JOIN(test_body_, __LINE__)); \
  static void RECLAB_JOIN(test_body_, __LINE__)()
#define CHECK(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) ::reclab::test::fail(__FILE__, __LINE__, "not true: " #condition); \
  } while (false)
/// CHECK with an explanation: anything that + can add to a std::string.
#define CHECK_SAYS(condition, explanation)                                                                                 \
  do {                                                                                                                     \
    if (!(condition)) ::reclab::test::fail(__FILE__, __LINE__, std::string("not true: " #condition ": ") + (explanation)); \
  } while (false)
#define CHECK_EQUAL(actual, expected)                                                                                                 \
  do {                                                                                                                                \
    const auto actual_ = (actual); /* copies: a reference into a temporary of the expression would dangle */                          \
    const auto expected_ = (expected);                                                                                                \
    if (!(actual_ == expected_))                                                                                                      \
      ::reclab::test::fail(__FILE__, __LINE__,                                                                                        \
                           std::string(#actual " is ") + ::reclab::test::show(actual_) + ", not " + ::reclab::test::show(expected_)); \
  } while (false)
/// |actual - expected| <= tolerance; a NaN on either side fails.
#define CHECK_CLOSE(actual, expected, tolerance)                                                                                      \
  do {                                                                                                                                \
    const double actual_ = (actual), expected_ = (expected);                                                                          \
    if (!(std::abs(actual_ - expected_) <= (tolerance)))                                                                              \
      ::reclab::test::fail(__FILE__, __LINE__,                                                                                        \
                           std::string(#actual " is ") + ::reclab::test::show(actual_) + ", not " + ::reclab::test::show(expected_) + \
                               " within " + ::reclab::test::show(tolerance));                                                         \
  } while (false)
/// The expression throws reclab::Error (include array/error.h) whose sentence contains the text.
#define CHECK_ERROR(expression, text)                                                                       \
  do {                                                                                                      \
    std::string said_;                                                                                      \
    try {                                                                                                   \
      static_cast<void>(expression);                                                                        \
    } catch (const ::reclab::Error& error) {                                                                \
      said_ = error.what();                                                                                 \
    }                                                                                                       \
    if (said_.empty()) ::reclab::test::fail(__FILE__, __LINE__, "no error from " #expression);              \
    if (said_.find(text) == std::string::npos)                                                              \
      ::reclab::test::fail(__FILE__, __LINE__, "the error says \"" + said_ + "\", not \"" + (text) + "\""); \
  } while (false)
