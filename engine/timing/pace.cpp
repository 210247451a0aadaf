// SPDX-License-Identifier: GPL-3.0-or-later
#include "timing/pace.h"

#include <cmath>
#include <map>

#include "array/error.h"
#include "files/files.h"
#include "timing/machine.h"

namespace reclab {
namespace {

using Paces = std::map<std::string, std::vector<double>>;  // by device

/// The paces in a file; none where it is damaged or of another machine.
Paces kept_in(const std::filesystem::path& file) {
  try {
    const auto json = nlohmann::ordered_json::parse(read_file(file));
    if (json.at("machine") != machine()) return {};
    const auto paces = json.at("yardstick_seconds").get<Paces>();
    for (const auto& [device, seconds] : paces)
      for (const double s : seconds)
        if (!(s > 0.0) || !std::isfinite(s)) return {};
    return paces;
  } catch (const Error&) {
    return {};  // not there, or not to be read: it is a cache
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

}  // namespace

std::filesystem::path pace_file() { return cache_file("pace.json"); }

std::vector<double> paces_of_machine(const std::filesystem::path& file, const std::string& device) {
  if (file.empty()) return {};
  return kept_in(file)[device];
}

void keep_pace(const std::filesystem::path& file, const std::string& device, double seconds, std::string* problem) {
  if (file.empty()) return;
  Paces paces = kept_in(file);
  std::vector<double>& own = paces[device];
  own.push_back(seconds);
  if (own.size() > paces_kept) own.erase(own.begin(), own.end() - static_cast<std::ptrdiff_t>(paces_kept));
  try {
    write_cache(file, {{"machine", machine()}, {"yardstick_seconds", paces}});
  } catch (const Error& error) {
    if (problem) *problem = error.what();
  }
}

}  // namespace reclab
