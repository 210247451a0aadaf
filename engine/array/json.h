// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reclab {

/// Parses JSON. The parser keeps the last of two equal keys without a word, so they are watched for while it reads: the last key that an
/// object has twice goes to `twice`. Throws what the parser throws.
template <class Json>
Json parse_json(std::string_view text, std::optional<std::string>& twice) {
  std::vector<std::set<std::string>> keys;
  return Json::parse(text, [&](int, typename Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.template get<std::string>()).second)
      twice = parsed.template get<std::string>();
    return true;
  });
}

}  // namespace reclab
