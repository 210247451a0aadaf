// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/weights/file_index.h"

#include <algorithm>
#include <cctype>

#include "models/architecture.h"
#include "trace/kinds.h"

namespace reclab {
namespace {

// No name of a parameter is longer, or has more parts; a file may have any names.
constexpr std::size_t longest = 160, most_parts = 16;

/// Whether a name is `pattern`, or ends with it below a prefix; "x.*" is all that stands below x, and {i} stands for digits.
bool stands_in(const std::string& name, const std::string& pattern) {
  if (pattern.ends_with(".*")) {
    const std::string below = pattern.substr(0, pattern.size() - 1);
    return name.starts_with(below) || name.find("." + below) != std::string::npos;
  }
  const std::size_t at = pattern.find("{i}");
  if (at == std::string::npos) return name == pattern || name.ends_with("." + pattern) || name.ends_with("/" + pattern);
  const std::string before = pattern.substr(0, at), after = pattern.substr(at + 3);
  if (!name.ends_with(after)) return false;
  std::size_t digits = name.size() - after.size(), end = digits;
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])) != 0) --digits;
  const std::string front = name.substr(0, digits);
  return digits < end && (front == before || front.ends_with("." + before) || front.ends_with("/" + before));
}

std::string with_dots(std::string name) {
  std::ranges::replace(name, '/', '.');
  return name;
}

}  // namespace

FileIndex::FileIndex(FileShapes shapes) : shapes_(std::move(shapes)) {
  const std::string param = prefix_of(Kind::param);
  for (auto at = shapes_.cbegin(); at != shapes_.cend(); ++at)
    if (at->first.starts_with(param)) entries_.push_back(at);
  of_trace_ = !entries_.empty();
  if (!of_trace_)
    for (auto at = shapes_.cbegin(); at != shapes_.cend(); ++at) entries_.push_back(at);
  for (std::size_t entry = 0; entry < entries_.size(); ++entry) {
    const std::string& name = entries_[entry]->first;
    if (name.ends_with("weight")) weights_.push_back(entry);
    std::vector<std::size_t> ends;
    if (of_trace_) {
      ends.push_back(param.size());
    } else {
      for (std::size_t end = name.size() - std::min(name.size(), std::size_t{1}); end > 0 && ends.size() < most_parts; --end)
        if (name[end - 1] == '.' || name[end - 1] == '/') ends.push_back(end);
      if (std::ranges::find(ends, std::size_t{0}) == ends.end()) ends.push_back(0);
    }
    for (const std::size_t end : ends) {
      if (name.size() - end > longest) continue;
      std::string rest = name.substr(end);
      if (!of_trace_ && rest.find('/') != std::string::npos) called_[with_dots(rest)].push_back({entry, end, true});
      called_[std::move(rest)].push_back({entry, end, false});
    }
  }
}

const std::vector<FileIndex::Hit>& FileIndex::called(std::string_view name) const {
  static const std::vector<Hit> none;
  const auto found = called_.find(std::string(name));
  return found == called_.end() ? none : found->second;
}

const std::vector<char>& FileIndex::of_no_use(const std::vector<const Architecture*>& architectures) const {
  const auto known = of_no_use_.find(architectures);
  if (known != of_no_use_.end()) return known->second;
  std::vector<char> flags(entries_.size(), 0);
  if (!of_trace_)
    for (const Architecture* architecture : architectures)
      for (const ReferenceName& row : architecture->reference) {
        if (!row.ours.empty()) continue;
        for (std::size_t i = 0; i < flags.size(); ++i)
          if (!flags[i] && (stands_in(name(i), row.theirs) || stands_in(with_dots(name(i)), row.theirs))) flags[i] = 1;
      }
  return of_no_use_.emplace(architectures, std::move(flags)).first->second;
}

FileShapes FileIndex::below(std::string_view prefix) const {
  FileShapes part;
  for (auto at = shapes_.lower_bound(prefix); at != shapes_.end() && at->first.starts_with(prefix); ++at)
    if (at->first.size() > prefix.size()) part[at->first.substr(prefix.size())] = at->second;
  return part;
}

}  // namespace reclab
