// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/text/cells.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "sequence/text/encoding.h"

namespace reclab {
namespace {

/// A number in the C notation, in every locale.
CellKind plain_number(const char* from, const char* end, double& value) {
  if (end - from > 1 && *from == '+' && from[1] != '-') ++from;
  const auto [stop, code] = std::from_chars(from, end, value);
  if (stop != end || code == std::errc::invalid_argument) return CellKind::word;
  if (code == std::errc::result_out_of_range) {
    long double wide = 0.0L;  // tells 1e-400, which is 0 to a double, from 1e400
    if (std::from_chars(from, end, wide).ec != std::errc{} || std::abs(wide) > std::numeric_limits<double>::max())
      return CellKind::too_large;
    value = static_cast<double>(wide);
    return CellKind::number;
  }
  return std::isfinite(value) ? CellKind::number : std::isnan(value) ? CellKind::nan : CellKind::infinite;
}

/// 1,234 or 1.234.567,8 or 12'000: meant as a number, but which one depends on the country.
bool has_thousands(std::string_view text) {
  std::size_t at = !text.empty() && (text[0] == '+' || text[0] == '-');
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - from;
  };
  const std::size_t lead = digits();
  if (lead < 1 || lead > 3 || at == text.size() || std::string_view(",.' ").find(text[at]) == std::string_view::npos) return false;
  const char separator = text[at];
  while (at < text.size() && text[at] == separator) {
    ++at;
    if (digits() != 3) return false;
  }
  if (at < text.size() && (text[at] == '.' || text[at] == ',')) {
    ++at;
    digits();
  }
  return at == text.size();
}

}  // namespace

std::string unquoted(const TableCell& cell) {
  std::string text(cell.text);
  if (cell.quoted)
    for (std::size_t at = 0; (at = text.find("\"\"", at)) != std::string::npos; ++at) text.erase(at, 1);
  return to_utf8(text);
}

bool same_word(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() && std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

const char* short_decimal(const char* from, const char* end, double& value, bool& point) {
  static constexpr double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const char* at = from;
  const bool negative = at < end && *at == '-';
  at += negative;
  const auto digits = [&at, end](std::uint64_t& whole) {
    const char* const first = at;
    for (; at < end; ++at) {
      const auto digit = static_cast<std::uint64_t>(static_cast<unsigned char>(*at)) - '0';
      if (digit > 9) break;
      whole = 10 * whole + digit;  // of more digits than fit it is not used
    }
    return at - first;
  };
  std::uint64_t whole = 0;
  std::ptrdiff_t all = digits(whole), fraction = 0;
  point = at < end && *at == '.';
  if (point) {
    ++at;
    fraction = digits(whole);
    all += fraction;
  }
  if (all < 1 || all > 15) return from;
  const double size = static_cast<double>(whole) / powers[fraction];
  value = negative ? -size : size;
  return at;
}

CellKind number(std::string_view text, bool allow_comma, double& value, std::optional<bool>& comma) {
  bool point = false;
  if (const char* const end = text.data() + text.size(); short_decimal(text.data(), end, value, point) == end && !text.empty()) {
    if (allow_comma && point) comma = false;
    return CellKind::number;
  }
  const CellKind kind = plain_number(text.data(), text.data() + text.size(), value);
  if (kind != CellKind::word) {
    if (allow_comma && kind == CellKind::number && text.find('.') != std::string_view::npos) comma = false;
    return kind;
  }
  if (!allow_comma || text.size() > 60) return kind;
  const std::size_t at = text.find(',');
  if (at == std::string_view::npos || at + 1 == text.size() || text[at + 1] < '0' || text[at + 1] > '9' ||
      text.find('.') != std::string_view::npos)
    return kind;
  char copy[64];
  std::copy(text.begin(), text.end(), copy);
  copy[at] = '.';
  const CellKind with_point = plain_number(copy, copy + text.size(), value);
  if (with_point == CellKind::number) comma = true;
  return with_point;
}

std::optional<Instant> iso_date(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&](std::size_t count) -> int {
    int value = 0;
    if (text.size() - at < count) return -1;
    for (std::size_t i = 0; i < count; ++i) {
      const char c = text[at + i];
      if (c < '0' || c > '9') return -1;
      value = value * 10 + (c - '0');
    }
    at += count;
    return value;
  };
  const auto accept = [&](char c) { return at < text.size() && text[at] == c && (++at, true); };
  const int year = digits(4);
  const char separator = at < text.size() ? text[at] : '\0';
  if (year < 0 || (separator != '-' && separator != '/')) return {};
  ++at;
  const int month = digits(2), day = accept(separator) ? digits(2) : 1;
  if (month < 1 || day < 1) return {};
  using namespace std::chrono;
  const year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                            std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return {};
  Instant instant{std::int64_t{86400} * sys_days{date}.time_since_epoch().count(), 0.0};
  if (at == text.size()) return instant;
  if (!accept('T') && !accept(' ')) return {};
  const int hour = digits(2);
  if (hour < 0 || hour > 24 || !accept(':')) return {};
  const int minute = digits(2), second = accept(':') ? digits(2) : 0;
  if (minute < 0 || minute > 59 || second < 0 || second > 60) return {};
  instant.seconds += hour * 3600 + minute * 60 + second;
  if (at < text.size() && (text[at] == '.' || text[at] == ',')) {
    double place = 0.1;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, place /= 10) instant.fraction += place * (text[at] - '0');
  }
  if (accept('Z')) return at == text.size() ? std::optional(instant) : std::nullopt;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    const int sign = text[at++] == '+' ? -1 : 1;
    const int zone_hour = digits(2);
    accept(':');
    const int zone_minute = digits(2);
    if (zone_hour < 0 || zone_minute < 0) return {};
    instant.seconds += sign * (zone_hour * 3600 + zone_minute * 60);
  }
  return at == text.size() ? std::optional(instant) : std::nullopt;
}

CellKind kind_of(const TableCell& cell, bool allow_comma) {
  if (cell.text.empty()) return CellKind::empty;
  double ignored = 0.0;
  std::optional<bool> comma;
  const CellKind kind = number(cell.text, allow_comma, ignored, comma);
  if (kind != CellKind::word) return kind;
  for (const std::string_view mark : {"na", "n/a", "#n/a", "null", "none", "missing", "nat", ".", "-", "--", "?"})
    if (same_word(cell.text, mark)) return CellKind::missing;
  if (has_thousands(cell.text)) return CellKind::grouped;
  return iso_date(cell.text) ? CellKind::date : CellKind::word;
}

std::string iso_text(std::int64_t seconds) {
  using namespace std::chrono;
  const sys_seconds instant{std::chrono::seconds{seconds}};
  const auto day = floor<days>(instant);
  const year_month_day date{day};
  const hh_mm_ss clock{instant - day};
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()));
  std::string result = text;
  if (instant != day) {
    std::snprintf(text, sizeof text, " %02d:%02d:%02d", static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                  static_cast<int>(clock.seconds().count()));
    result += text;
  }
  return result;
}

}  // namespace reclab
