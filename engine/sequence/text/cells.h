// SPDX-License-Identifier: GPL-3.0-or-later
// The kinds of cells in a table of text. Inside the floor only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reclab {

struct TableCell {
  std::string_view text;  ///< without blanks around it and without its quotes
  bool quoted = false;
};
/// The text of a cell in UTF-8, quotes inside it once.
std::string unquoted(const TableCell& cell);

enum class CellKind { number, date, empty, missing, nan, infinite, too_large, grouped, word };
inline constexpr std::size_t cell_kinds = 9;
CellKind kind_of(const TableCell& cell, bool allow_comma);

/// Whether they are the same but for case; `lower` has none.
bool same_word(std::string_view text, std::string_view lower);

/// Reads a decimal of at most 15 digits without an exponent, such as -12.5, at the beginning of a text: the whole number over a power of
/// ten are both float64 then, so that their quotient is the nearest float64 (W. D. Clinger, How to read floating point numbers accurately,
/// 1990). Returns where it ends, or `from` where there is none of these; `point`: whether it has one.
const char* short_decimal(const char* from, const char* end, double& value, bool& point);

/// A number with a decimal point, or with a decimal comma where the comma is no delimiter. comma tells which; a number with neither leaves
/// it.
CellKind number(std::string_view text, bool allow_comma, double& value, std::optional<bool>& comma);

/// An instant: whole seconds since 1970 (UTC) and the fraction of the next.
struct Instant {
  std::int64_t seconds = 0;
  double fraction = 0.0;
};
/// ISO 8601: 2024-05-17, 2024-05, 2024/05/17, with a time 12:30[:15[.25]] after T or blank, and a zone Z or +02:00.
std::optional<Instant> iso_date(std::string_view text);
/// "2024-05-17", and " 12:30:15" where it is not midnight.
std::string iso_text(std::int64_t seconds);

}  // namespace reclab
