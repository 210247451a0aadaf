// SPDX-License-Identifier: GPL-3.0-or-later
// The messages of `reclab serve`: a line of JSON, and after it the bytes of the files or arrays that it lists, without anything between.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

namespace reclab::cli {

/// What is left of a pipe, in lines and blocks of bytes. A stop ends it as the end of the pipe does.
class WireInput {
 public:
  WireInput(int descriptor, std::stop_token stop);
  ~WireInput();
  WireInput(const WireInput&) = delete;
  WireInput& operator=(const WireInput&) = delete;

  struct Line {
    std::string text;       ///< without the line's end
    bool too_long = false;  ///< it had more than `most` bytes, and was passed over
  };
  /// The next line; nothing at the end.
  std::optional<Line> line(std::size_t most);
  /// The next bytes, into `to` unless that is null; false where the input ends before.
  bool take(std::uint64_t bytes, std::string* to);

 private:
  bool fill();
  int descriptor_, stopped_;
  std::stop_token stop_;
  std::string buffer_;
  std::size_t at_ = 0;
};

/// Writes all of it; false where nobody reads any more.
bool write_all(int descriptor, std::span<const std::string_view> pieces);

}  // namespace reclab::cli
