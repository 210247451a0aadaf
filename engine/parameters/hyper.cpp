// SPDX-License-Identifier: GPL-3.0-or-later
#include "parameters/hyper.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "array/error.h"
#include "parameters/nearest.h"

namespace reclab {
namespace {

HyperSpec spec(std::string key, std::string symbol, std::string unit, HyperKind kind, HyperValue standard, std::string text) {
  HyperSpec made;
  made.key = std::move(key);
  made.symbol = std::move(symbol);
  made.unit = std::move(unit);
  made.kind = kind;
  made.standard = std::move(standard);
  made.text = std::move(text);
  return made;
}

/// std::to_chars without a precision: the shortest text that reads back to the same number, in every locale.
template <class Number>
std::string shortest(Number number) {
  char buffer[40];
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), number);
  return {std::begin(buffer), end.ptr};
}

template <class Number>
bool reads(std::string_view text, Number& number) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

/// The range of this row's values, in words: "an integer from 1 to 4096".
std::string range_of(const HyperSpec& row) {
  switch (row.kind) {
    case HyperKind::flag: return "true or false";
    case HyperKind::integer:
      return "an integer from " + shortest(static_cast<std::int64_t>(row.low)) + " to " + shortest(static_cast<std::int64_t>(row.high));
    case HyperKind::real: return "a number from " + shortest(row.low) + " to " + shortest(row.high);
    case HyperKind::choice: break;
  }
  std::string text = row.choices.empty() ? "a text" : row.choices.size() > 1 ? "one of " : "";
  for (std::size_t i = 0; i < row.choices.size(); ++i) text += (i ? ", " : "") + row.choices[i];
  return text;
}

[[noreturn]] void refuse(const HyperSpec& row, const std::string& value, std::string_view model) {
  ErrorPlace place;
  place.model = model;
  place.parameter = row.key;
  place.value = value;
  place.range = range_of(row);
  throw Error(place.model + ": " + row.key + " = " + value + " is not possible; give " + place.range + ".", place);
}

/// The value in the type of its row, or an Error.
HyperValue checked(const HyperSpec& row, const HyperValue& value, std::string_view model) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const auto in_range = [&row](double number) { return number >= row.low && number <= row.high; };  // false for NaN
  switch (row.kind) {
    case HyperKind::flag:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case HyperKind::integer:
      if (integer && in_range(static_cast<double>(*integer))) return value;
      // JSON writers and people write 64.0 and 1e3 for whole numbers.
      if (real && std::abs(*real) < 9007199254740992.0 && std::trunc(*real) == *real && in_range(*real))
        return static_cast<std::int64_t>(*real);
      break;
    case HyperKind::real:
      if (real && in_range(*real)) return value;
      if (integer && in_range(static_cast<double>(*integer))) return static_cast<double>(*integer);
      break;
    case HyperKind::choice:
      if (const auto* text = std::get_if<std::string>(&value);
          text && (row.choices.empty() || std::ranges::find(row.choices, *text) != row.choices.end()))
        return value;
      break;
  }
  refuse(row, as_text(value), model);
}

constexpr std::size_t missing = static_cast<std::size_t>(-1);

std::size_t find(const std::vector<HyperSpec>& table, std::string_view key) {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].key == key) return i;
  return missing;
}

/// The row that a user's key names, or an Error with the nearest keys.
std::size_t known(const std::vector<HyperSpec>& table, std::string_view key, std::string_view model) {
  const std::size_t i = find(table, key);
  if (i != missing) return i;
  std::vector<std::string> keys;
  for (const HyperSpec& row : table) keys.push_back(row.key);
  ErrorPlace place;
  place.model = model;
  place.parameter = key;
  place.range = nearest_names(key, keys, keys.size());
  throw Error(place.model + " has no hyper-parameter \"" + place.parameter + "\"; it has " + (keys.empty() ? "none" : place.range) + ".",
              place);
}

}  // namespace

std::string as_text(const HyperValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return shortest(*integer);
  if (const auto* real = std::get_if<double>(&value)) return shortest(*real);
  return std::get<std::string>(value);
}

HyperSpec hyper_integer(std::string key, std::string symbol, std::int64_t standard, std::int64_t low, std::int64_t high, std::string text,
                        std::string unit) {
  HyperSpec made = spec(std::move(key), std::move(symbol), std::move(unit), HyperKind::integer, standard, std::move(text));
  made.low = static_cast<double>(low);
  made.high = static_cast<double>(high);
  made.step = 1.0;
  return made;
}

HyperSpec hyper_real(std::string key, std::string symbol, double standard, double low, double high, std::string text, bool logarithmic,
                     std::string unit) {
  HyperSpec made = spec(std::move(key), std::move(symbol), std::move(unit), HyperKind::real, standard, std::move(text));
  made.low = low;
  made.high = high;
  made.logarithmic = logarithmic;
  return made;
}

HyperSpec hyper_flag(std::string key, bool standard, std::string text) {
  return spec(std::move(key), {}, {}, HyperKind::flag, standard, std::move(text));
}

HyperSpec hyper_choice(std::string key, std::string standard, std::vector<std::string> choices, std::string text) {
  HyperSpec made = spec(std::move(key), {}, {}, HyperKind::choice, std::move(standard), std::move(text));
  made.choices = std::move(choices);
  return made;
}

Hyper::Hyper(const std::vector<HyperSpec>& table) : table_(table) {
  for (std::size_t i = 0; i < table_.size(); ++i) {
    if (find(table_, table_[i].key) != i) throw std::logic_error("the hyper-parameter " + table_[i].key + " is in the table twice");
    values_.push_back(checked(table_[i], table_[i].standard, "the default of an architecture"));
  }
}

void Hyper::set(std::string_view key, const HyperValue& value, std::string_view model) {
  const std::size_t i = known(table_, key, model);
  values_[i] = checked(table_[i], value, model);
}

void Hyper::set_text(std::string_view key, std::string_view text, std::string_view model) {
  const std::size_t i = known(table_, key, model);
  const HyperSpec& row = table_[i];
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);

  HyperValue value = std::string(text);
  std::int64_t integer = 0;
  double real = 0.0;
  switch (row.kind) {
    case HyperKind::flag:
      if (text == "true" || text == "yes" || text == "on" || text == "1") value = true;
      if (text == "false" || text == "no" || text == "off" || text == "0") value = false;
      break;
    case HyperKind::integer:
    case HyperKind::real:
      if (reads(text, integer)) {
        value = integer;
      } else if (reads(text, real)) {
        value = real;
      }
      break;
    case HyperKind::choice: break;
  }
  // The user's own spelling goes into the sentence ("64x", not 64).
  try {
    values_[i] = checked(row, value, model);
  } catch (const Error&) {
    refuse(row, text.empty() ? "(nothing)" : std::string(text), model);
  }
}

bool Hyper::has(std::string_view key) const { return find(table_, key) != missing; }
std::int64_t Hyper::integer(std::string_view key) const { return std::get<std::int64_t>(values_[index(key)]); }
double Hyper::real(std::string_view key) const { return std::get<double>(values_[index(key)]); }
bool Hyper::flag(std::string_view key) const { return std::get<bool>(values_[index(key)]); }
const std::string& Hyper::choice(std::string_view key) const { return std::get<std::string>(values_[index(key)]); }
const HyperValue& Hyper::value(std::string_view key) const { return values_[index(key)]; }
std::string Hyper::text(std::string_view key) const { return as_text(value(key)); }

std::size_t Hyper::index(std::string_view key) const {
  const std::size_t i = find(table_, key);
  if (i == missing) throw std::logic_error("no hyper-parameter " + std::string(key) + " in this architecture's table");
  return i;
}

}  // namespace reclab
