// SPDX-License-Identifier: GPL-3.0-or-later
// Sound files made for tests, byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reclab::test {

inline std::string number(std::uint64_t value, int bytes, bool big = false) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * (big ? bytes - 1 - i : i));
  return text;
}

/// A WAV file of PCM, 16 bits. `frames`: what the header says, where that is not what follows.
inline std::string wav(const std::vector<std::int16_t>& samples, int channels, int rate, std::int64_t frames = -1) {
  std::string data;
  for (const std::int16_t sample : samples) data += number(static_cast<std::uint16_t>(sample), 2);
  const auto bytes = frames < 0 ? data.size() : static_cast<std::uint64_t>(frames * channels * 2);
  const auto wide = static_cast<std::uint64_t>(channels), fast = static_cast<std::uint64_t>(rate);
  return "RIFF" + number(36 + bytes, 4) + "WAVEfmt " + number(16, 4) + number(1, 2) + number(wide, 2) + number(fast, 4) +
         number(fast * wide * 2, 4) + number(wide * 2, 2) + number(16, 2) + "data" + number(bytes, 4) + data;
}

}  // namespace reclab::test
