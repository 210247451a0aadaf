// SPDX-License-Identifier: GPL-3.0-or-later
// "Did you mean": the names that are closest to one that is not known.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reclab {

/// Levenshtein's distance: insertions, deletions and substitutions of one character, each at a cost of 1.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// At most `count` of the known names, nearest first, joined by ", ". A name that starts with the given one counts as near.
inline std::string nearest_names(std::string_view name, const std::vector<std::string>& known, std::size_t count = 3) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& candidate : known) {
    const bool extends = !name.empty() && candidate.starts_with(name);
    ranked.emplace_back(extends ? 1 : edit_distance(name, candidate), candidate);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min(count, ranked.size()); ++i) text += (i ? ", " : "") + ranked[i].second;
  return text;
}

}  // namespace reclab
