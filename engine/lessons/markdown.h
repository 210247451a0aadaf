// SPDX-License-Identifier: GPL-3.0-or-later
// Markdown as the blocks and words that a lesson is made of. Tables, pictures, quotations and HTML are refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lessons/lesson.h"

namespace reclab {

struct MarkdownBlock {
  enum class Kind : std::uint8_t { heading, paragraph, item, code };
  Kind kind = Kind::paragraph;
  int level = 0;       ///< of a heading
  std::string info{};  ///< of code: the word behind ```
  std::string code{};
  Prose words{};
  int line = 0;  ///< from 1; 0 where it has no words
};

/// Throws Error with the line.
std::vector<MarkdownBlock> blocks_of(std::string_view markdown);

}  // namespace reclab
