// SPDX-License-Identifier: GPL-3.0-or-later
#include "parameters/typed.h"

#include <charconv>
#include <cmath>

#include "array/error.h"

namespace reclab {
namespace {

double real(const std::string& option, const std::string& text) {
  double value = 0.0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || !std::isfinite(value))
    usage_error(option, "is \"" + text + "\"; give a number.");
  return value;
}

}  // namespace

void usage_error(const std::string& option, const std::string& sentence) { throw Error(option + " " + sentence, {.parameter = option}); }

std::optional<std::int64_t> integer(const std::string& option, const std::string& text, std::int64_t low, std::int64_t high) {
  if (text.empty()) return {};
  std::int64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || value < low || value > high)
    usage_error(option, "is \"" + text + "\"; give an integer from " + std::to_string(low) + " to " + std::to_string(high) + ".");
  return value;
}

double positive(const std::string& option, const std::string& text) {
  const double value = real(option, text);
  if (value < 0.0) usage_error(option, "is \"" + text + "\"; give 0 or more.");
  return value;
}

HyperValue typed_value(const Field& field, const std::string& text) {
  const HyperSpec& row = field.row;
  const auto whole = [&](const std::string& number) {
    return *integer(field.flag, number, static_cast<std::int64_t>(row.low), static_cast<std::int64_t>(row.high));
  };
  const auto check = [&](const std::string& one) {
    if (const std::string wanted = field.wanted ? field.wanted(one) : std::string(); !wanted.empty())
      usage_error(field.flag, "is \"" + one + "\"; give " + wanted + ".");
  };
  if (field.says != Field::Says::one) {
    for (const std::string& one : names_of_list(text)) {
      if (row.kind == HyperKind::integer) whole(one);
      check(one);
    }
    return text;
  }
  check(text);
  switch (row.kind) {
    case HyperKind::integer: return whole(text);
    case HyperKind::real: return std::isinf(row.high) ? positive(field.flag, text) : real(field.flag, text);
    case HyperKind::flag: return text == "true";
    case HyperKind::choice: break;
  }
  return text;
}

}  // namespace reclab
