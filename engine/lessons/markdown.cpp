// SPDX-License-Identifier: GPL-3.0-or-later
#include "lessons/markdown.h"

#include <md4c.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "array/error.h"

namespace reclab {
namespace {

// A number stands as its index between two characters of the private use area while Markdown is read, so that no * or _ in it is markup.
constexpr std::string_view opens = "\uE000", closes = "\uE001";

std::string without_numbers(std::string_view text, std::vector<std::string>& numbers) {
  std::string made;
  std::size_t at = 0;
  while (true) {
    const std::size_t begin = text.find("{{", at), end = begin == std::string_view::npos ? begin : text.find("}}", begin);
    if (end == std::string_view::npos) return made += text.substr(at);
    made += text.substr(at, begin - at);
    made += std::string(opens) + std::to_string(numbers.size()) + std::string(closes);
    numbers.emplace_back(text.substr(begin + 2, end - begin - 2));
    made.append(static_cast<std::size_t>(std::ranges::count(numbers.back(), '\n')), '\n');
    at = end + 2;
  }
}

struct Reader {
  std::string_view source;
  const std::vector<std::string>& numbers;
  std::vector<MarkdownBlock> blocks{};
  std::vector<ProseSpan::Kind> manners{};
  std::string target{}, refused{};
  int items = 0;
  bool open = false;

  int line_of(const char* at) {
    if (at < source.data() || at > source.data() + source.size()) return 0;
    const auto place = static_cast<std::size_t>(at - source.data());
    if (place < counted) counted = 0, line = 1;
    line += static_cast<int>(std::count(source.data() + counted, at, '\n'));
    counted = place;
    return line;
  }
  std::size_t counted = 0;  // characters whose ends of lines are counted
  int line = 1;

  void begin(MarkdownBlock::Kind kind) {
    if (kind == MarkdownBlock::Kind::paragraph && items > 0) kind = MarkdownBlock::Kind::item;
    if (open && blocks.back().words.empty() && kind == blocks.back().kind) return;  // the paragraph of a loose list's item
    blocks.push_back({.kind = kind});
    open = true;
  }

  void put(ProseSpan::Kind kind, const std::string& text) {
    Prose& words = blocks.back().words;
    if (kind != ProseSpan::Kind::number && !words.empty() && words.back().kind == kind && words.back().target == target)
      words.back().text += text;
    else
      words.push_back({kind, text, target});
  }

  /// Text with numbers in it, each back in its place; in code as it was written.
  void put_text(ProseSpan::Kind kind, std::string_view text) {
    while (!text.empty()) {
      const std::size_t begin = text.find(opens), end = begin == std::string_view::npos ? begin : text.find(closes, begin);
      if (end == std::string_view::npos) return put(kind, std::string(text));
      if (begin > 0) put(kind, std::string(text.substr(0, begin)));
      std::size_t index = 0;
      std::from_chars(text.data() + begin + opens.size(), text.data() + end, index);
      const std::string& number = numbers.at(index);
      if (kind == ProseSpan::Kind::code || kind == ProseSpan::Kind::formula)
        put(kind, "{{" + number + "}}");
      else
        put(ProseSpan::Kind::number, number);
      text.remove_prefix(end + closes.size());
    }
  }

  int enter(MD_BLOCKTYPE type, void* detail) {
    switch (type) {
      case MD_BLOCK_H:
        begin(MarkdownBlock::Kind::heading);
        blocks.back().level = static_cast<int>(static_cast<MD_BLOCK_H_DETAIL*>(detail)->level);
        break;
      case MD_BLOCK_LI:
        ++items;
        begin(MarkdownBlock::Kind::paragraph);
        break;
      case MD_BLOCK_P: begin(MarkdownBlock::Kind::paragraph); break;
      case MD_BLOCK_CODE: {
        begin(MarkdownBlock::Kind::code);
        const MD_ATTRIBUTE& info = static_cast<MD_BLOCK_CODE_DETAIL*>(detail)->info;
        blocks.back().info.assign(info.text, info.size);
        blocks.back().line = line_of(info.text);
        break;
      }
      case MD_BLOCK_QUOTE: return refuse("a quotation");
      case MD_BLOCK_TABLE: return refuse("a table");
      case MD_BLOCK_HTML: return refuse("HTML");
      default: break;
    }
    return 0;
  }
  int leave(MD_BLOCKTYPE type) {
    if (type == MD_BLOCK_LI) --items;
    if (type == MD_BLOCK_H || type == MD_BLOCK_P || type == MD_BLOCK_CODE || type == MD_BLOCK_LI) open = false;
    return 0;
  }
  int enter(MD_SPANTYPE type, void* detail) {
    switch (type) {
      case MD_SPAN_EM: manners.push_back(ProseSpan::Kind::emphasis); break;
      case MD_SPAN_STRONG: manners.push_back(ProseSpan::Kind::strong); break;
      case MD_SPAN_CODE: manners.push_back(ProseSpan::Kind::code); break;
      case MD_SPAN_LATEXMATH:
      case MD_SPAN_LATEXMATH_DISPLAY: manners.push_back(ProseSpan::Kind::formula); break;
      case MD_SPAN_A: {
        const MD_ATTRIBUTE& href = static_cast<MD_SPAN_A_DETAIL*>(detail)->href;
        target.assign(href.text, href.size);
        manners.push_back(ProseSpan::Kind::link);
        break;
      }
      case MD_SPAN_IMG: return refuse("a picture");
      default: return refuse("markup that lessons do not have");
    }
    return 0;
  }
  int leave(MD_SPANTYPE type) {
    if (type == MD_SPAN_A) target.clear();
    if (!manners.empty()) manners.pop_back();
    return 0;
  }
  int text(MD_TEXTTYPE type, const char* text, MD_SIZE size) {
    if (blocks.empty()) return 0;
    MarkdownBlock& block = blocks.back();
    if (block.line == 0) block.line = line_of(text);
    const std::string_view words(text, size);
    if (block.kind == MarkdownBlock::Kind::code) {
      block.code += words;
      return 0;
    }
    if (!open) begin(MarkdownBlock::Kind::paragraph);  // an item's words behind a list inside it
    // A link's words are all the link's.
    const bool link = std::ranges::find(manners, ProseSpan::Kind::link) != manners.end();
    const ProseSpan::Kind kind = link ? ProseSpan::Kind::link : manners.empty() ? ProseSpan::Kind::text : manners.back();
    switch (type) {
      case MD_TEXT_BR:
      case MD_TEXT_SOFTBR: put(kind, " "); break;
      case MD_TEXT_NULLCHAR: return refuse("a null character");
      case MD_TEXT_ENTITY: put(kind, entity(words)); break;
      default: put_text(kind, words);
    }
    return 0;
  }
  static std::string entity(std::string_view name) {
    static const std::vector<std::pair<std::string_view, std::string>> known{
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&nbsp;", "\u00a0"}};
    const auto found = std::ranges::find(known, name, [](const auto& one) { return one.first; });
    return found == known.end() ? std::string(name) : found->second;
  }
  int refuse(const std::string& what) {
    refused = what;
    return -1;
  }
};

}  // namespace

std::vector<MarkdownBlock> blocks_of(std::string_view markdown) {
  if (markdown.find(opens) != std::string_view::npos || markdown.find(closes) != std::string_view::npos)
    throw Error("a character of the private use area stands in the text.", {});
  std::vector<std::string> numbers;
  const std::string source = without_numbers(markdown, numbers);
  Reader reader{source, numbers};
  MD_PARSER parser{};
  parser.flags = MD_FLAG_LATEXMATHSPANS | MD_FLAG_NOHTML | MD_FLAG_NOINDENTEDCODEBLOCKS | MD_FLAG_TABLES;
  parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* self) { return static_cast<Reader*>(self)->enter(type, detail); };
  parser.leave_block = [](MD_BLOCKTYPE type, void*, void* self) { return static_cast<Reader*>(self)->leave(type); };
  parser.enter_span = [](MD_SPANTYPE type, void* detail, void* self) { return static_cast<Reader*>(self)->enter(type, detail); };
  parser.leave_span = [](MD_SPANTYPE type, void*, void* self) { return static_cast<Reader*>(self)->leave(type); };
  parser.text = [](MD_TEXTTYPE type, const char* text, MD_SIZE size, void* self) {
    return static_cast<Reader*>(self)->text(type, text, size);
  };
  if (md_parse(source.data(), static_cast<MD_SIZE>(source.size()), &parser, &reader) != 0) {
    const int line = reader.blocks.empty() ? 1 : reader.blocks.back().line;
    throw Error("line " + std::to_string(std::max(line, 1)) + " or below it has " +
                    (reader.refused.empty() ? "what is no Markdown" : reader.refused + ", which a lesson cannot have") + ".",
                {});
  }
  std::erase_if(reader.blocks, [](const MarkdownBlock& block) { return block.kind != MarkdownBlock::Kind::code && block.words.empty(); });
  for (MarkdownBlock& block : reader.blocks) {
    if (block.kind != MarkdownBlock::Kind::code) continue;
    std::string code;  // with its numbers as they were written
    std::string_view rest = block.code;
    while (true) {
      const std::size_t begin = rest.find(opens), end = begin == std::string_view::npos ? begin : rest.find(closes, begin);
      if (end == std::string_view::npos) break;
      std::size_t index = 0;
      std::from_chars(rest.data() + begin + opens.size(), rest.data() + end, index);
      code += std::string(rest.substr(0, begin)) + "{{" + numbers.at(index) + "}}";
      rest.remove_prefix(end + closes.size());
    }
    block.code = code + std::string(rest);
  }
  return std::move(reader.blocks);
}

}  // namespace reclab
