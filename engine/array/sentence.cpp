// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/sentence.h"

#include <utility>

namespace reclab {

Sentence::Sentence(std::string text) {
  if (!text.empty()) pieces_.emplace_back(std::move(text));
}

std::string Sentence::text(const std::function<std::optional<std::string>(const Remedy&)>& words) const {
  std::string all, separator;
  bool any = false;  // of the remedies beside each other
  for (const auto& piece : pieces_)
    if (const auto* remedy = std::get_if<Remedy>(&piece)) {
      if (separator.empty() || any) separator = remedy->separator;
      if (const auto said = words(*remedy)) all += separator + *said, any = true;
    } else {
      separator.clear(), any = false;
      all += std::get<std::string>(piece);
    }
  return all;
}

std::string Sentence::terminal_text() const {
  return text([](const Remedy& remedy) {
    const auto& [name, value] = remedy.control;
    return remedy.before + (name.empty() ? "" : "--" + name) + (value.empty() ? "" : " " + value) + remedy.after;
  });
}

Sentence& Sentence::operator+=(const Sentence& more) {
  for (const auto& piece : more.pieces_) {
    const auto* text = std::get_if<std::string>(&piece);
    auto* last = text && !pieces_.empty() ? std::get_if<std::string>(&pieces_.back()) : nullptr;
    if (last)
      *last += *text;
    else
      pieces_.push_back(piece);
  }
  return *this;
}

Sentence operator+(Sentence left, const Sentence& right) { return left += right; }

}  // namespace reclab
