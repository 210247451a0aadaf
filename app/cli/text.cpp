// SPDX-License-Identifier: GPL-3.0-or-later
#include "text.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace reclab::cli {

std::size_t columns_of(std::string_view utf8) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<unsigned char>(utf8[i]);
    if ((byte & 0xc0) == 0x80) continue;  // the rest of a character
    const unsigned next = i + 1 < utf8.size() ? static_cast<unsigned char>(utf8[i + 1]) : 0;
    const bool combining = byte == 0xcc || (byte == 0xcd && next < 0xb0);  // U+0300 to U+036F
    if (!combining) ++columns;
  }
  return columns;
}

std::string padded(std::string_view utf8, std::size_t columns) {
  const std::size_t have = columns_of(utf8);
  return std::string(utf8) + std::string(have < columns ? columns - have : 0, ' ');
}

std::string shortened(const std::string& utf8, std::size_t columns) {
  if (columns_of(utf8) <= columns) return utf8;
  std::string text;
  std::size_t used = 0;
  for (const char c : utf8) {
    const bool starts = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (starts && used + 3 == columns) break;
    if (starts) ++used;
    text += c;
  }
  return text + "...";
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    const std::size_t columns = columns_of(word);
    if (used > 0 && used + 1 + columns > width) {
      lines.emplace_back();
      used = 0;
    }
    if (used > 0) lines.back() += ' ', ++used;
    lines.back() += word;
    used += columns;
  }
  return lines;
}

namespace {

/// A word that is wider than its column goes on in the next line, after a sign between its parts where it has one.
std::string broken(std::string_view text, std::size_t width) {
  std::string out;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space);
    while (columns_of(word) > width) {
      std::size_t end = 0;  // bytes of so many columns
      for (std::size_t columns = 0; columns < width; ++columns) do
          ++end;
        while (end < word.size() && (static_cast<unsigned char>(word[end]) & 0xC0) == 0x80);
      const std::size_t sign = word.substr(0, end).find_last_of("_=/-.:");
      if (sign != std::string_view::npos && sign + 1 >= end / 2) end = sign + 1;
      out.append(word.substr(0, end)) += ' ';
      word.remove_prefix(end);
    }
    out += word;
    if (!text.empty()) out += ' ', text.remove_prefix(1);
  }
  return out;
}

}  // namespace

void paragraph(std::ostream& out, std::string_view text, std::size_t indent) {
  for (const std::string& line : wrapped(text, page_width - indent)) out << std::string(indent, ' ') << line << '\n';
}

std::string heading(std::string_view text) {
  static const bool bold = isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  return bold ? "\033[1m" + std::string(text) + "\033[0m" : std::string(text);
}

void TextTable::print(std::ostream& out) const {
  std::vector<std::size_t> widths;
  for (const auto& cells : rows_) {
    if (cells.size() == 1) continue;
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], columns_of(cells[i]));
  }
  constexpr std::size_t gap = 2;
  constexpr std::size_t least = 20;  // of the last column
  constexpr std::size_t narrowest = 10;
  std::size_t left = indent_;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) left += widths[i] + gap;
  // Where the page is too narrow, the others are broken into lines too, the widest first.
  while (left + least > page_width && widths.size() > 2) {
    const auto widest = std::max_element(widths.begin(), widths.end() - 1);
    if (*widest <= narrowest) break;
    --*widest, --left;
  }
  const std::size_t rest = page_width > left + least ? page_width - left : least;
  for (const auto& cells : rows_) {
    if (cells.size() == 1) {
      out << '\n' << std::string(indent_, ' ') << reclab::cli::heading(cells[0]) << '\n';
      continue;
    }
    std::vector<std::vector<std::string>> lines;
    std::size_t high = 1;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool last = i + 1 == cells.size();
      lines.push_back(last                               ? wrapped(broken(cells[i], rest), rest)
                      : columns_of(cells[i]) > widths[i] ? wrapped(broken(cells[i], widths[i]), widths[i])
                                                         : std::vector<std::string>{cells[i]});
      high = std::max(high, lines.back().size());
    }
    for (std::size_t row = 0; row < high; ++row) {
      std::string line(indent_, ' ');
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::string cell = row < lines[i].size() ? lines[i][row] : std::string();
        if (i + 1 == cells.size()) {
          line += cell;
          continue;
        }
        const bool right = std::ranges::find(right_, i) != right_.end();
        if (right) line += std::string(widths[i] - std::min(widths[i], columns_of(cell)), ' ') + cell;
        if (!right) line += padded(cell, widths[i]);
        line += std::string(gap, ' ');
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out << line << '\n';
    }
  }
}

std::string number_text(double value, int digits) {
  std::array<char, 40> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*g", digits, value);
  return buffer.data();
}

std::string bytes_text(double bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1023.5 && unit + 1 < units.size()) bytes /= 1024, ++unit;
  return number_text(bytes, bytes < 9.95 && unit > 0 ? 2 : 4) + " " + units[unit];
}

std::string seconds_text(double seconds) {
  if (seconds < 1e-3) return number_text(seconds * 1e6, 3) + " µs";
  if (seconds < 1.0) return number_text(seconds * 1e3, 3) + " ms";
  if (seconds < 120.0) return number_text(seconds, 3) + " s";
  return number_text(std::round(seconds / 6.0) / 10.0, 4) + " min";
}

std::string shape_text(const Shape& shape) {
  if (shape.empty()) return "1";
  std::string text;
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? " × " : "") + std::to_string(shape[i]);
  return text;
}

std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i ? std::string(between) : "") + parts[i];
  return text;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string sentence_after_colon(std::string sentence) {
  const std::string_view first = std::string_view(sentence).substr(0, sentence.find(' '));
  static constexpr std::string_view words[] = {"A", "An", "In", "It", "No", "Nothing", "The", "There", "This", "Training"};
  if (std::ranges::find(words, first) != std::end(words)) sentence[0] = static_cast<char>(sentence[0] - 'A' + 'a');
  return sentence;
}

std::string one_line(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7f) text[i] = ' ';
    // U+0080 to U+009F, which begin commands of a terminal as ESC does.
    if (c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
        static_cast<unsigned char>(text[i + 1]) < 0xa0)
      text[i] = text[i + 1] = ' ';
  }
  return text;
}

}  // namespace reclab::cli
