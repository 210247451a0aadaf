// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "array/sentence.h"

namespace reclab {

/// A text with its control characters written out, "\x00": those below the blank, DEL, and U+0080 to U+009F, which begin commands of a
/// terminal as ESC does.
inline std::string visible(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : ' ');
    const bool later = c == 0xc2 && next >= 0x80 && next < 0xa0;
    if (later) c = next, ++i;
    if (later || c < 0x20 || c == 0x7f)
      result += {'\\', 'x', digits[c >> 4], digits[c & 15]};
    else
      result += static_cast<char>(c);
  }
  return result;
}

/// The subject of an Error. Every field may be empty; those that are filled are also in the sentence. Written with the names of the fields
/// that matter: Error("...", {.file = name, .place = "line 3"}).
struct ErrorPlace {
  std::string file{};       ///< the file, as the user named it
  std::string place{};      ///< where in it: "line 12, column 3", "header", "byte 80", a JSON key
  std::string model{};      ///< architecture or preset
  std::string parameter{};  ///< hyper-parameter, weight or option
  std::string value{};      ///< the given value
  std::string range{};      ///< the values that would be right
};

/// A mistake of the user's, or something the machine refused (a full disk, no device): one sentence for the user, which names the fault,
/// its place and the cure. what() is the sentence for a terminal, whole for all characters in its names. Mistakes in our own code are
/// assertions, never an Error.
class Error : public std::runtime_error {
 public:
  explicit Error(Sentence sentence, ErrorPlace where = {})
      : std::runtime_error(visible(sentence.terminal_text())), sentence_(std::move(sentence)), where_(std::move(where)) {}
  const Sentence& sentence() const noexcept { return sentence_; }
  const ErrorPlace& where() const noexcept { return where_; }

 private:
  Sentence sentence_;
  ErrorPlace where_;
};

/// A device that cannot go on with its work; the same can be done on the CPU, and what() says so.
class DeviceError : public Error {
 public:
  enum class Kind : std::uint8_t {
    memory,  ///< its memory ran out; with less to hold it works as before
    failed,  ///< it refused one call
    lost     ///< nothing can be done with it any more in this process
  };
  /// `words`: the device's own, "cudaErrorMemoryAllocation: out of memory".
  DeviceError(Kind kind, std::string words, const std::string& sentence)
      : Error(sentence, {.parameter = "device", .value = "cuda", .range = "cpu"}), kind_(kind), words_(std::move(words)) {}
  Kind kind() const noexcept { return kind_; }
  const std::string& words() const noexcept { return words_; }

 private:
  Kind kind_;
  std::string words_;
};

/// Thrown inside a computation whose stop token was set. Not an error: a run that ends so is "cancelled".
class Cancelled : public std::exception {
 public:
  const char* what() const noexcept override { return "cancelled"; }
};

}  // namespace reclab
