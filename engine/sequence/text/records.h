// SPDX-License-Identifier: GPL-3.0-or-later
// Text in records of cells. Inside the floor only.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "array/error.h"
#include "sequence/text/cells.h"

namespace reclab {

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }
inline bool is_end(char c) { return c == '\n' || c == '\r'; }

/// Cuts text into records of cells (RFC 4180, and every end of line). The delimiter ' ' stands for any run of blanks, '\0' for none.
class Records {
 public:
  Records(std::string_view text, char delimiter, const std::string& file) : text_(text), file_(file), delimiter_(delimiter) {
    for (int i = 0; i < 256; ++i) {
      const auto c = static_cast<char>(i);
      skipped_[static_cast<std::size_t>(i)] = is_blank(c) && (c != delimiter || delimiter == ' ');
      ending_[static_cast<std::size_t>(i)] = is_end(c) || separates(c);
    }
  }

  /// The next record, false at the end. A line without anything on it is a record without cells.
  bool next(std::vector<TableCell>& cells) {
    cells.clear();
    if (at_ >= text_.size()) return false;
    record_line_ = line_;
    const char* const end = text_.data() + text_.size();
    const char* p = text_.data() + at_;
    for (;;) {
      while (p < end && skipped_[static_cast<unsigned char>(*p)]) ++p;
      if ((p == end || is_end(*p)) && (cells.empty() || delimiter_ == ' ')) break;
      const char* const start = p;
      bool quoted = false;
      if (p < end && *p == '"') {
        const std::int64_t opened = line_;
        const char* close = p + 1;
        for (; close < end && !(*close == '"' && (close + 1 == end || close[1] != '"')); close += *close == '"' ? 2 : 1)
          if (*close == '\n' || (*close == '\r' && (close + 1 == end || close[1] != '\n'))) ++line_;
        if (close >= end)
          throw Error(file_ + ": line " + std::to_string(opened) + ", column " + std::to_string(cells.size() + 1) +
                          " opens a quote that is never closed: add the missing \"",
                      {.file = file_, .place = "line " + std::to_string(opened) + ", column " + std::to_string(cells.size() + 1)});
        const char* after = close + 1;
        while (after < end && is_blank(*after) && *after != delimiter_) ++after;
        if (after == end || is_end(*after) || separates(*after)) {
          cells.push_back({{start + 1, static_cast<std::size_t>(close - start - 1)}, true});
          quoted = true;
          p = after;
        }
      }
      if (!quoted) {
        while (p < end && !ending_[static_cast<unsigned char>(*p)]) ++p;
        const char* last = p;
        while (last > start && is_blank(last[-1])) --last;
        cells.push_back({{start, static_cast<std::size_t>(last - start)}, false});
      }
      if (p == end || is_end(*p)) break;
      ++p;
    }
    if (p < end) {
      if (*p == '\r' && p + 1 < end && p[1] == '\n') ++p;
      ++p;
    }
    ++line_;
    at_ = static_cast<std::size_t>(p - text_.data());
    return true;
  }

  /// Whether the next record is nothing but finite numbers, one a value, each followed by the delimiter or the end of the line. `points`:
  /// whether any has a point. It is still the next one, until it is taken.
  bool next_is(std::vector<double>& values, bool& points) {
    const char* const end = text_.data() + text_.size();
    const char* p = text_.data() + at_;
    points = false;
    for (std::size_t j = 0; j < values.size(); ++j) {
      bool point = false;
      const char* after = short_decimal(p, end, values[j], point);
      const bool last = j + 1 == values.size();
      const auto ends = [&] {
        if (after == p || after == end) return false;
        after += last && *after == '\r' && after + 1 < end;
        return *after == (last ? '\n' : delimiter_);
      };
      if (!ends()) {  // an exponent, or more digits
        const auto [stop, code] = std::from_chars(p, end, values[j]);
        after = stop;
        if (code != std::errc{} || !std::isfinite(values[j]) || !ends()) return false;
        point = std::find(p, stop, '.') != stop;
      }
      p = after + 1;
      points |= point;
    }
    ahead_ = static_cast<std::size_t>(p - text_.data());
    return true;
  }
  void take() {
    at_ = ahead_;
    record_line_ = line_++;
  }

  std::int64_t line() const { return record_line_; }  ///< where the last record began, from 1
  std::int64_t next_line() const { return line_; }
  std::size_t position() const { return at_; }
  void start_at(std::size_t position, std::int64_t line) {
    at_ = position;
    line_ = line;
  }

 private:
  bool separates(char c) const { return delimiter_ == ' ' ? is_blank(c) : c == delimiter_ && c != '\0'; }

  std::string_view text_;
  const std::string& file_;
  char delimiter_;
  std::array<bool, 256> skipped_{}, ending_{};  ///< bytes: in front of a cell, and at its end
  std::size_t at_ = 0, ahead_ = 0;
  std::int64_t line_ = 1, record_line_ = 1;
};

/// The rows of a piece of a table, in so far as all are nothing but numbers.
struct PlainRows {
  std::size_t begin = 0, end = 0;   ///< the piece: whole lines
  std::vector<double> data, times;  ///< of the wanted columns, row-major, and of the time
  std::int64_t rows = 0;
  bool whole = false;   ///< there are no others
  bool points = false;  ///< some have a decimal point
  bool rises = true;    ///< each time is later than that of the row above
  void begin_anew(std::size_t from, std::size_t after) {
    begin = from;
    end = after;
    data.clear();
    times.clear();
    rows = 0;
    whole = points = false;
    rises = true;
  }
};

/// Reads the rows of a piece, whose begin and end are given. `time`: the column of the time, or none.
inline void read_plain_rows(PlainRows& piece, std::string_view text, char delimiter, const std::string& file, std::size_t columns,
                            const std::vector<std::size_t>& wanted, const std::size_t* time) {
  Records records(text.substr(0, piece.end), delimiter, file);
  records.start_at(piece.begin, 1);
  std::vector<double> numbers(columns);
  for (bool points = false; records.next_is(numbers, points); ++piece.rows) {
    records.take();
    piece.points |= points;
    for (const std::size_t column : wanted) piece.data.push_back(numbers[column]);
    if (!time) continue;
    piece.rises = piece.rises && (piece.times.empty() || numbers[*time] > piece.times.back());
    piece.times.push_back(numbers[*time]);
  }
  piece.whole = records.position() == piece.end;
}

}  // namespace reclab
