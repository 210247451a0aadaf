// SPDX-License-Identifier: GPL-3.0-or-later
#include "terminal.h"

#include <unistd.h>

#include <string_view>

namespace reclab::cli {
namespace {

constexpr std::string_view allowed[] = {"\033[1m", "\033[0m"};

bool is_start(std::string_view text) {
  for (const std::string_view command : allowed)
    if (command.starts_with(text)) return true;
  return false;
}

}  // namespace

PlainText::PlainText(std::ostream& stream, int descriptor)
    : stream_(stream), under_(stream.rdbuf(this)), terminal_(isatty(descriptor) == 1) {}

PlainText::~PlainText() {
  sync();
  stream_.rdbuf(under_);
}

bool PlainText::put(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (!held_.empty()) {
    const bool command = held_[0] == '\033';
    std::string held = held_ + c;
    if (command && is_start(held)) {
      held_ = held.size() == allowed[0].size() ? std::string() : held;
      return !held_.empty() ||
             under_->sputn(held.data(), static_cast<std::streamsize>(held.size())) == static_cast<std::streamsize>(held.size());
    }
    held = std::move(held_);
    held_.clear();
    if (!command && byte >= 0x80 && byte < 0xa0) return pass(' ');
    if (command) held[0] = ' ';
    if (under_->sputn(held.data(), static_cast<std::streamsize>(held.size())) != static_cast<std::streamsize>(held.size())) return false;
  }
  if (byte == 0x1b || (terminal_ && byte == 0xc2)) {
    held_ = c;
    return true;
  }
  const bool control = (byte < 0x20 && c != '\n' && c != '\t') || (terminal_ && byte == 0x7f);
  return pass(control ? ' ' : c);
}

PlainText::int_type PlainText::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  return put(traits_type::to_char_type(c)) ? c : traits_type::eof();
}

std::streamsize PlainText::xsputn(const char* text, std::streamsize count) {
  for (std::streamsize i = 0; i < count; ++i)
    if (!put(text[i])) return i;
  return count;
}

int PlainText::sync() {
  if (!held_.empty()) {  // the end of the text: no command
    std::string held = std::move(held_);
    held_.clear();
    if (held[0] == '\033') held[0] = ' ';
    if (under_->sputn(held.data(), static_cast<std::streamsize>(held.size())) != static_cast<std::streamsize>(held.size())) return -1;
  }
  return under_->pubsync();
}

}  // namespace reclab::cli
