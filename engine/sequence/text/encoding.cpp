// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/text/encoding.h"

#include <cstdint>

#include "array/error.h"
#include "sequence/format.h"

namespace reclab {
namespace {

bool valid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t more = lead < 0x80                      ? 0
                             : lead >> 5 == 6 && lead > 0xc1  ? 1
                             : lead >> 4 == 14                ? 2
                             : lead >> 3 == 30 && lead < 0xf5 ? 3
                                                              : 4;
    if (more == 4 || text.size() - i <= more) return false;
    for (std::size_t k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    i += more + 1;
  }
  return true;
}

void append_utf8(std::string& to, std::uint32_t point) {
  const auto tail = [&](int shift) { to += static_cast<char>(0x80 | (point >> shift & 63)); };
  if (point < 0x80) {
    to += static_cast<char>(point);
  } else if (point < 0x800) {
    to += static_cast<char>(0xc0 | point >> 6);
    tail(0);
  } else if (point < 0x10000) {
    to += static_cast<char>(0xe0 | point >> 12);
    tail(6), tail(0);
  } else {
    to += static_cast<char>(0xf0 | point >> 18);
    tail(12), tail(6), tail(0);
  }
}

std::string from_utf16(std::string_view bytes, bool big) {
  const auto unit = [&](std::size_t i) {
    const auto first = static_cast<unsigned char>(bytes[i]), second = static_cast<unsigned char>(bytes[i + 1]);
    return static_cast<std::uint32_t>(big ? first << 8 | second : second << 8 | first);
  };
  std::string text;
  for (std::size_t i = 2; i + 1 < bytes.size(); i += 2) {
    std::uint32_t point = unit(i);
    if (point >> 10 == 0x36 && i + 3 < bytes.size() && unit(i + 2) >> 10 == 0x37) {
      point = 0x10000 + ((point & 1023) << 10 | (unit(i + 2) & 1023));
      i += 2;
    }
    append_utf8(text, point >> 11 == 0x1b ? 0xfffd : point);  // half a pair is no character
  }
  return text;
}

}  // namespace

std::string to_utf8(std::string_view text) {
  if (valid_utf8(text)) return std::string(text);
  std::string result;
  for (const char c : text) append_utf8(result, static_cast<unsigned char>(c));
  return result;
}

std::string decoded(std::string bytes, const std::string& file) {
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) {
    bytes = from_utf16(bytes, bytes[0] == '\xfe');
  } else if (bytes.starts_with("\xef\xbb\xbf")) {
    bytes.erase(0, 3);
  }
  struct Known {
    std::string_view start;
    const char *what, *cure;
  };
  static constexpr Known known[] = {
      {"\xd0\xcf\x11\xe0", "an old Office file", "save the table as CSV"},
      {"\x1f\x8b", "compressed with gzip", "unpack it with gunzip"},
      {"\x89HDF", "an HDF5 file", "save the series as CSV or NPY"},
      {"MATLAB 5.0 MAT-file", "a MATLAB file", "save the series as CSV or NPY"},
      {"\x80\x04\x95", "a Python pickle", "save the series with numpy.save"},
      {"\x80\x05\x95", "a Python pickle", "save the series with numpy.save"},
      {"RIFF", "a sound or video file", "save the samples as CSV or NPY"},
      {"%PDF", "a PDF document", "save the table as CSV"},
      {"PAR1", "a Parquet file", "save the table as CSV"},
  };
  for (const auto& [start, what, cure] : known)
    if (bytes.starts_with(start))
      throw Error(file + " is not a table of text: it is " + what + "; " + cure, {.file = file, .place = "byte 0"});
  const auto is_text = [](char byte) {
    const auto c = static_cast<unsigned char>(byte);
    return c >= 32 || (c >= 9 && c <= 13);
  };
  constexpr std::size_t block = 256;
  std::size_t i = 0;
  for (; i + block <= bytes.size(); i += block) {
    const char* const at = bytes.data() + i;
    std::uint8_t others = 0;
    for (std::size_t k = 0; k < block; ++k) {  // without a way out, in vectors
      const auto c = static_cast<std::uint8_t>(at[k]), from_tab = static_cast<std::uint8_t>(c - 9);
      const std::uint8_t control = c < 32 ? 255 : 0, no_blank = from_tab > 4 ? 255 : 0;
      others |= control & no_blank;
    }
    if (others) break;
  }
  for (; i < bytes.size(); ++i) {
    if (is_text(bytes[i])) continue;
    const auto c = static_cast<unsigned char>(bytes[i]);
    throw Error(file + " is neither text nor " + sequence_format_names(false) + ": byte " + std::to_string(i) + " is " + std::to_string(c) +
                    ", which no text has; save the series as CSV (UTF-8) or NPY",
                {.file = file, .place = "byte " + std::to_string(i)});
  }
  return bytes;
}

}  // namespace reclab
