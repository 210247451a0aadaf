// SPDX-License-Identifier: GPL-3.0-or-later
// reclab-bench [--peers PYTHON] ROW...: one JSON object a row on standard output, a table on standard error.
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "array/backend.h"
#include "array/device_array.h"
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

/// The peers' script, one process for all rows, since it takes seconds to begin: a line "ROW FILE" to it, a line of JSON from it.
class Peers {
 public:
  explicit Peers(const std::string& python) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw Error("No pipe to the peers could be made.");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    std::string program = python, script = std::string(RECLAB_SOURCE_DIR) + "/tests/bench/peers.py";
    char* words[] = {program.data(), script.data(), nullptr};
    const int failure = posix_spawnp(&process_, program.c_str(), &actions, nullptr, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    to_ = fdopen(to[1], "w");
    from_ = fdopen(from[0], "r");
    if (failure != 0) throw Error("The peers could not be started with " + python + ".");
  }
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  ~Peers() {
    fclose(to_);
    fclose(from_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }
  /// What they say of a row: {"part": [{"name", "version", "seconds", "error"}]}.
  Json of(const Row& row, const fs::path& folder) {
    AtomicFile file(folder / "inputs.npz");
    NpzWriter archive(file);
    row.save(archive);
    archive.finish();
    file.commit();
    std::fprintf(to_, "%s %s\n", row.name.c_str(), (folder / "inputs.npz").c_str());
    std::fflush(to_);
    char* line = nullptr;
    std::size_t room = 0;
    const ssize_t length = getline(&line, &room, from_);
    const std::string text = length > 0 ? std::string(line, static_cast<std::size_t>(length)) : std::string();
    free(line);
    if (text.empty()) throw Error("The peers of " + row.name + " failed; what they said is above.");
    return Json::parse(text);
  }

 private:
  pid_t process_ = -1;
  std::FILE *to_ = nullptr, *from_ = nullptr;
};

/// What a device's memory does at most: a copy of a gigabyte, both sides counted.
Roof roof_of_device(Backend& device) {
  constexpr std::size_t bytes = std::size_t{1} << 30;
  DeviceArray from(device, bytes), to(device, bytes);
  device.zero(from.data(), bytes);
  std::vector<double> seconds;
  time_calls(
      [&] {
        device.copy(to.data(), from.data(), bytes);
        device.finish();
      },
      least, most, budget, seconds);
  Roof roof;
  roof.triad_bytes = 2.0 * static_cast<double>(bytes) / summary(std::move(seconds)).median;
  return roof;
}

Json measured(const Row& row, Peers* with, const fs::path& folder) {
  Backend* const device = row.name[0] == 'G' ? cuda_backend() : nullptr;
  const auto roof_now = [&] { return device ? roof_of_device(*device) : measure_roof(); };
  std::vector<std::vector<double>> seconds(row.parts.size());
  Json all = Json::array();
  double error = 0.0;
  Roof roof = roof_now();
  for (std::size_t i = 0; i < row.parts.size(); ++i) {
    time_calls(row.parts[i].run, least, most, budget, seconds[i]);
    if (i == 0) error = row.error();
  }
  const Json peers = with ? with->of(row, folder) : Json::object();
  for (std::size_t i = 0; i < row.parts.size(); ++i) time_calls(row.parts[i].run, least, most, budget, seconds[i]);
  roof = best_of(roof, roof_now());
  std::vector<Timing> times;
  for (auto& of : seconds) times.push_back(summary(std::move(of)));
  for (std::size_t i = 0; i < row.parts.size(); ++i) {
    const Part& part = row.parts[i];
    const double floor = floor_of(part, roof);
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
  Json result = {{"row", row.name}, {"text", row.text}, {"device", device ? device->name() : "cpu"}};
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
  if (const auto device = result["device"].get<std::string>(); device == "cpu")
    std::fprintf(stderr, "  of this host: triad %.1f GB/s, read from the caches %.0f GB/s, %.0f GFLOP/s\n", roof("triad_bytes_per_second"),
                 roof("cached_bytes_per_second"), roof("flops_per_second"));
  else
    std::fprintf(stderr, "  %s: copies at %.0f GB/s\n", device.c_str(), roof("triad_bytes_per_second"));
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
  std::unique_ptr<Peers> peers;
  for (const std::string& name : rows) {
    try {
      if (!python.empty() && !peers) peers = std::make_unique<Peers>(python);
      const Row row = make_row(name);
      const Json result = measured(row, peers.get(), scratch);
      print(result);
      std::cout << result.dump() << std::endl;
    } catch (const std::exception& error) {
      std::cerr << "reclab-bench: " << error.what() << '\n';
      peers.reset();
      status = 2;
    }
  }
  fs::remove_all(scratch);
  return status;
}
