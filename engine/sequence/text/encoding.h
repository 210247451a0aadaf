// SPDX-License-Identifier: GPL-3.0-or-later
// The bytes of a table as text. Inside the floor only.
#pragma once

#include <string>
#include <string_view>

namespace reclab {

/// Text that is not UTF-8 is taken as Latin-1, in which every byte is a character.
std::string to_utf8(std::string_view text);
/// Decodes the bytes of a file, and refuses those that are no text.
std::string decoded(std::string bytes, const std::string& file);

}  // namespace reclab
