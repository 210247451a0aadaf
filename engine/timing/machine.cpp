// SPDX-License-Identifier: GPL-3.0-or-later
#include "timing/machine.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "files/files.h"

namespace reclab {

nlohmann::ordered_json machine() {
  std::string processor;
  std::ifstream cpu("/proc/cpuinfo");
  for (std::string line; processor.empty() && std::getline(cpu, line);)
    if (line.starts_with("model name")) processor = line.substr(std::min(line.size(), line.find(':') + 2));
#if defined(__AVX512F__)
  const char* instructions = "AVX-512";
#elif defined(__AVX__)
  const char* instructions = "AVX";
#else
  const char* instructions = "plain";
#endif
  return {{"processor", processor},
          {"instructions", instructions},
          {"threads", std::max(1u, std::thread::hardware_concurrency())},
          {"version", RECLAB_VERSION}};
}

std::filesystem::path cache_file(const char* name) {
  std::filesystem::path folder;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg == '/') {
    folder = xdg;
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    folder = std::filesystem::path(home) / ".cache";
  }
  return folder.empty() ? folder : folder / "recurrence-lab" / name;
}

void write_cache(const std::filesystem::path& file, const nlohmann::ordered_json& json) {
  std::error_code none;  // a folder that cannot be made shows when the file is written
  std::filesystem::create_directories(file.parent_path(), none);
  write_file(file, json.dump(2) + "\n");
}

}  // namespace reclab
