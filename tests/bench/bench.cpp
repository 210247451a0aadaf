// SPDX-License-Identifier: GPL-3.0-or-later
// reclab-bench [--peers PYTHON] ROW...: one JSON object a row on standard output, a table on standard error.
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "array/error.h"
#include "files/files.h"
#include "rows.h"
#include "timed.h"

using namespace reclab;
using namespace reclab::bench;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

// Before the peers, and again after them: a machine that is slower for a while is so for all.
constexpr int least = 10, most = 30;
constexpr double budget = 3.0;

std::string quoted(const std::string& text) {
  std::string safe = "'";
  for (const char c : text) safe += c == '\'' ? "'\\''" : std::string(1, c);
  return safe + "'";
}

/// What the peers' script says: {"part": [{"name", "version", "seconds", "error"}]}.
Json peers_of(const std::string& python, const Row& row, const fs::path& folder) {
  AtomicFile file(folder / "inputs.npz");
  NpzWriter archive(file);
  row.save(archive);
  archive.finish();
  file.commit();
  const std::string command = quoted(python) + " " + quoted(std::string(RECLAB_SOURCE_DIR) + "/tests/bench/peers.py") + " " + row.name +
                              " " + quoted(folder / "inputs.npz");
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw Error("The peers could not be started: " + command + ".");
  std::string text;
  char piece[4096];
  for (std::size_t n; (n = fread(piece, 1, sizeof piece, pipe)) > 0;) text.append(piece, n);
  const int status = pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Error("The peers of " + row.name + " failed; what they said is above.");
  return Json::parse(text);
}

Json measured(const Row& row, const std::string& python, const fs::path& folder) {
  const bool on_host = row.name[0] != 'G';
  std::vector<std::vector<double>> seconds(row.parts.size());
  Json all = Json::array();
  double error = 0.0;
  Roof roof = measure_roof();
  for (std::size_t i = 0; i < row.parts.size(); ++i) {
    time_calls(row.parts[i].run, least, most, budget, seconds[i]);
    if (i == 0) error = row.error();
  }
  const Json peers = python.empty() ? Json::object() : peers_of(python, row, folder);
  for (std::size_t i = 0; i < row.parts.size(); ++i) time_calls(row.parts[i].run, least, most, budget, seconds[i]);
  roof = best_of(roof, measure_roof());
  std::vector<Timing> times;
  for (auto& of : seconds) times.push_back(summary(std::move(of)));
  for (std::size_t i = 0; i < row.parts.size(); ++i) {
    const Part& part = row.parts[i];
    const double floor = floor_of(part, on_host ? roof : Roof{});
    Json of = {{"part", part.name},
               {"ours_seconds", times[i].median},
               {"ours_quartiles", {times[i].low, times[i].high}},
               {"runs", times[i].runs},
               {"floor_seconds", floor > 0.0 ? Json(floor) : Json()},
               {"floor", part.floor},
               {"roof_fraction", floor > 0.0 ? Json(floor / times[i].median) : Json()},
               {"peers", Json::array()}};
    if (part.facts)
      for (const auto& [name, value] : part.facts()) of[name] = value;
    if (const auto found = peers.find(part.name); found != peers.end())
      for (Json peer : *found) {
        peer["ratio"] = peer.at("seconds").get<double>() / times[i].median;
        of["peers"].push_back(std::move(peer));
      }
    all.push_back(std::move(of));
  }
  Json result = {{"row", row.name}, {"text", row.text}, {"device", row.name[0] == 'G' ? "cuda" : "cpu"}};
  for (const char* key : {"ours_seconds", "floor_seconds", "roof_fraction"}) result[key] = all[0][key];
  result["error"] = error;
  result["peers"] = all[0]["peers"];
  result["parts"] = all;
  result["roof"] = {
      {"triad_bytes_per_second", roof.triad_bytes}, {"cached_bytes_per_second", roof.cached_bytes}, {"flops_per_second", roof.flops}};
  return result;
}

void print(const Json& result) {
  std::fprintf(stderr, "\n%s  %s, error %.1e\n", result["row"].get<std::string>().c_str(), result["text"].get<std::string>().c_str(),
               result["error"].get<double>());
  const auto roof = [&](const char* key) { return result["roof"][key].get<double>() / 1e9; };
  std::fprintf(stderr, "  of this host: triad %.1f GB/s, read from the caches %.0f GB/s, %.0f GFLOP/s\n", roof("triad_bytes_per_second"),
               roof("cached_bytes_per_second"), roof("flops_per_second"));
  for (const Json& part : result["parts"]) {
    std::fprintf(stderr, "  %-20s %10.3f ms", part["part"].get<std::string>().c_str(), 1e3 * part["ours_seconds"].get<double>());
    if (part["floor_seconds"].is_number())
      std::fprintf(stderr, "   floor %8.3f ms, %3.0f %% of the roof (%s)", 1e3 * part["floor_seconds"].get<double>(),
                   100.0 * part["roof_fraction"].get<double>(), part["floor"].get<std::string>().c_str());
    if (part.contains("iterations"))
      std::fprintf(stderr, "   %.0f iterations, residual %.1e%s", part["iterations"].get<double>(), part["residual"].get<double>(),
                   part["converged"].get<double>() > 0.0 ? "" : ", not converged: run step by step");
    std::fprintf(stderr, "\n");
    for (const Json& peer : part["peers"])
      std::fprintf(stderr, "    %-28s %10.3f ms   %6.2f times ours, error %.1e\n",
                   (peer["name"].get<std::string>() + " " + peer["version"].get<std::string>()).c_str(),
                   1e3 * peer["seconds"].get<double>(), peer["ratio"].get<double>(), peer["error"].get<double>());
  }
}

}  // namespace

int main(int count, char** words) {
  std::vector<std::string> rows;
  std::string python;
  for (int i = 1; i < count; ++i) {
    if (std::string(words[i]) == "--peers" && i + 1 < count)
      python = words[++i];
    else
      rows.emplace_back(words[i]);
  }
  if (rows.empty()) {
    std::cerr << "reclab-bench: name rows, of " << some_of(row_names()) << ".\n";
    return 2;
  }
  std::string scratch = (fs::temp_directory_path() / "reclab-bench-XXXXXX").string();
  if (!mkdtemp(scratch.data())) {
    std::cerr << "reclab-bench: no folder could be made in " << fs::temp_directory_path().string() << "; make room there.\n";
    return 2;
  }
  int status = 0;
  for (const std::string& name : rows) {
    try {
      const Row row = make_row(name);
      const Json result = measured(row, python, scratch);
      print(result);
      std::cout << result.dump() << std::endl;
    } catch (const std::exception& error) {
      std::cerr << "reclab-bench: " << error.what() << '\n';
      status = 2;
    }
  }
  fs::remove_all(scratch);
  return status;
}
