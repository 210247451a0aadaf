// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace reclab {

/// What an Error is about. Every field may be empty; those that are filled are also in the sentence.
/// Written with the names of the fields that matter: Error("...", {.file = name, .place = "line 3"}).
struct ErrorPlace {
  std::string file{};       ///< the file, as the user named it
  std::string place{};      ///< where in it: "line 12, column 3", "header", "byte 80", a JSON key
  std::string model{};      ///< architecture or preset
  std::string parameter{};  ///< hyper-parameter, weight or option
  std::string value{};      ///< what was given
  std::string range{};      ///< what would be right
};

/// A mistake of the user's, or something the machine refused (a full disk, no device). what() is one sentence for the user:
/// what was wrong, where, and what would be right. Mistakes in our own code are assertions, never an Error.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& sentence, ErrorPlace where = {}) : std::runtime_error(sentence), where_(std::move(where)) {}
  const ErrorPlace& where() const noexcept { return where_; }

 private:
  ErrorPlace where_;
};

/// Thrown inside a computation whose stop token was set. Not an error: a run that ends so is "cancelled".
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "cancelled"; }
};

}  // namespace reclab
