// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "array/error.h"
#include "files/files.h"

namespace reclab {

/// Builds the value while the parser reads, and watches for keys that an object has twice. The parser's own builder keeps the last of them
/// without a word; watched through its callback, it goes over all members of an object for each member; and an ordered object is searched
/// from its beginning for each key. Here every key costs the same.
template <class Json>
class JsonBuilder {
 public:
  explicit JsonBuilder(Json& root, std::optional<std::string>& twice) : root_(root), twice_(twice) {}

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(typename Json::number_integer_t value) { return put(value); }
  bool number_unsigned(typename Json::number_unsigned_t value) { return put(value); }
  bool number_float(typename Json::number_float_t value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(typename Json::binary_t& value) { return put(std::move(value)); }
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    Open& object = open_.back();
    if (!object.keys.insert(name).second) {
      twice_ = name;
      return false;
    }
    auto& members = object.value->template get_ref<typename Json::object_t&>();
    if constexpr (requires { members.push_back(typename Json::object_t::value_type(name, Json())); }) {
      members.push_back(typename Json::object_t::value_type(name, Json()));
      member_ = &members.back().second;
    } else {
      member_ = &members.emplace(name, Json()).first->second;
    }
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception& error) {
    throw error;
  }

 private:
  struct Open {
    Json* value;  ///< stays where it is: its container is not added to while it is open
    std::unordered_set<std::string> keys{};
  };
  template <class Value>
  Json* place(Value&& value) {
    if (open_.empty()) {
      root_ = std::forward<Value>(value);
      return &root_;
    }
    if (!open_.back().value->is_array()) {
      *member_ = std::forward<Value>(value);
      return member_;
    }
    auto& entries = open_.back().value->template get_ref<typename Json::array_t&>();
    entries.emplace_back(std::forward<Value>(value));
    return &entries.back();
  }
  template <class Value>
  bool put(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }
  bool open(Json value) {
    open_.push_back({place(std::move(value))});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  Json& root_;
  std::optional<std::string>& twice_;
  std::vector<Open> open_;
  Json* member_ = nullptr;
};

/// The first text of a JSON value, or key, that has a control character: a NUL cuts every sentence that names it, ESC begins a command of
/// the terminal that shows it. Where a text may have several lines, line ends and tabs are none.
template <class Json>
std::optional<std::string> with_control_character(const Json& json) {
  const auto has = [](const std::string& text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]), next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
      if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0)) return true;
    }
    return false;
  };
  std::vector<const Json*> left{&json};  // no recursion: a file may be nested to any depth
  while (!left.empty()) {
    const Json& one = *left.back();
    left.pop_back();
    if (one.is_string() && has(one.template get_ref<const std::string&>())) return one.template get<std::string>();
    if (one.is_array())
      for (const Json& entry : one) left.push_back(&entry);
    if (one.is_object())
      for (auto entry = one.begin(); entry != one.end(); ++entry) {
        if (has(entry.key())) return entry.key();
        left.push_back(&entry.value());
      }
  }
  return {};
}

/// Parses JSON, as far as the first key that an object has twice, which goes to `twice`. Throws as the parser does.
template <class Json>
Json parse_json(std::string_view text, std::optional<std::string>& twice) {
  Json root;
  JsonBuilder<Json> builder(root, twice);
  Json::sax_parse(text, &builder);
  return root;
}

/// "line 12, column 3" of a byte, counted from 1.
inline std::string place_of_byte(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t start = before.rfind('\n');
  return "line " + std::to_string(line) + ", column " +
         std::to_string(before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1);
}

/// The JSON of a file's text. Throws Error, with file and place, for text that is none, for a key that an object has twice, and for control
/// characters.
template <class Json>
Json json_of_text(std::string_view text, const std::string& file) {
  const auto mistake = [&](const std::string& place, const std::string& sentence) {
    throw Error(file + ": " + printable(place) + (place.empty() ? "" : " ") + sentence, {.file = file, .place = place});
  };
  std::optional<std::string> twice;
  Json json;
  try {
    json = parse_json<Json>(text, twice);
  } catch (const typename Json::parse_error& error) {
    std::string why = error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing ..."
    if (const auto colon = why.find(": "); colon != std::string::npos) why = why.substr(colon + 2);
    for (char& c : why)
      if (static_cast<unsigned char>(c) < 0x20) c = ' ';
    constexpr std::size_t longest = 300;  // the message quotes the last token, of any length
    if (std::size_t cut = longest; why.size() > cut) {
      while ((static_cast<unsigned char>(why[cut]) & 0xc0) == 0x80) --cut;
      why = why.substr(0, cut) + "...";
    }
    mistake(place_of_byte(text, error.byte), "is not valid JSON (" + why + "); correct it there.");
  } catch (const typename Json::exception&) {
    mistake("", "holds a number that is too large for a double; write a smaller one.");
  }
  if (twice) mistake(*twice, "is given twice; keep one of them.");
  if (const auto unclean = with_control_character(json))
    mistake("", "has a control character in \"" + printable(*unclean) + "\"; leave it out.");
  return json;
}

}  // namespace reclab
