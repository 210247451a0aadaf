// SPDX-License-Identifier: GPL-3.0-or-later
// reclab-bench [--threads N] [--peers PYTHON] ROW...: one JSON object a row on standard output, a table on standard error.
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "array/backend.h"
#include "array/cpu/processor/threads.h"
#include "array/device_array.h"
#include "array/error.h"
#include "parameters/typed.h"
#include "processes.h"
#include "rows.h"
#include "timed.h"

namespace reclab::bench {

std::vector<std::string> study_names() { return {"grow", "S1"}; }

nlohmann::ordered_json study(const std::string& name, int threads) { return name == "grow" ? growth(threads) : scaling(threads); }

nlohmann::ordered_json study_cell(const std::vector<std::string>& words) {
  if (words.size() == 5 && words[0] == "grow") return growth_cell(words);
  if (words.size() == 1 && words[0] == "S1") return scaling_cell(words);
  throw Error("--cell is what the studies call this program with: ask for a study, " + study_names()[0] + " or " + study_names()[1] + ".");
}

}  // namespace reclab::bench

using namespace reclab;
using namespace reclab::bench;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

namespace {

constexpr int least = 20, most = 100;  // rounds
constexpr double budget = 4.0;         // seconds of rounds beyond the least
constexpr double slow = 1.0;           // what takes longer a call takes part in every fourth round
constexpr int slow_every = 4;
constexpr double idle = 0.05;  // the share of the processors that others may use

/// What a device's memory does at most: a copy of a gigabyte, both sides counted.
Roof roof_of_device(Backend& device) {
  constexpr std::size_t bytes = std::size_t{1} << 30;
  DeviceArray from(device, bytes), to(device, bytes);
  device.zero(from.data(), bytes);
  const Timing timing = timed(
      [&] {
        device.copy(to.data(), from.data(), bytes);
        device.finish();
      },
      10, 30, 3.0);
  Roof roof;
  roof.triad_bytes = 2.0 * static_cast<double>(bytes) / timing.seconds;
  return roof;
}

/// One that takes part in the rounds: a part of the row, or a peer of it.
struct Competitor {
  std::function<double(std::int64_t)> sample;  ///< the mean seconds of so many calls
  double warm = 0.0;                           ///< seconds of a call, roughly
  std::string failed{};                        ///< why it is out
  std::vector<double> samples{};
};

/// A sample of each in turn, round after round: a machine that is slower for a while is so for all.
void rounds(std::vector<Competitor*> all) {
  const double begin = now();
  for (int round = 0; round < least || (round < most && now() - begin < budget); ++round)
    for (Competitor* one : all) {
      if (!one->failed.empty() || (one->warm > slow && round % slow_every != 0)) continue;
      try {
        one->samples.push_back(one->sample(burst_of(one->warm)));
      } catch (const Error& error) {
        one->failed = error.what();
      }
    }
}

Json measured(const Row& row, Peers* with, const fs::path& folder, int threads) {
  Backend* const device = row.name[0] == 'G' ? cuda_backend() : nullptr;
  const auto roof_now = [&] { return device ? roof_of_device(*device) : measure_roof(); };
  Roof roof = roof_now();
  std::vector<Competitor> ours;
  // The first part last, since what it leaves is checked.
  for (auto part = row.parts.rbegin(); part != row.parts.rend(); ++part) {
    part->run();
    ours.insert(ours.begin(), {[&run = part->run](std::int64_t calls) { return burst(run, calls); }, burst(part->run, 1)});
  }
  const double error = row.error();
  Json peers = with ? with->prepare(row, folder) : Json::object();
  std::map<std::string, std::vector<std::pair<Json, Competitor>>> others;
  for (auto& [part, list] : peers.items())
    for (Json& peer : list)
      others[part].emplace_back(
          peer, Competitor{[with, number = peer.at("number").get<int>()](std::int64_t calls) { return with->time(number, calls); },
                           peer.at("seconds").get<double>()});
  const double busy = others_share();
  if (busy > idle)
    std::fprintf(stderr, "  %s: others use %.0f %% of the processors: no figure of this row counts.\n", row.name.c_str(), 100.0 * busy);
  std::vector<std::string> groups;
  for (const Part& part : row.parts)
    if (std::ranges::find(groups, part.group()) == groups.end()) groups.push_back(part.group());
  for (const std::string& group : groups) {
    std::vector<Competitor*> all;
    for (std::size_t i = 0; i < row.parts.size(); ++i)
      if (row.parts[i].group() == group) all.push_back(&ours[i]);
    for (auto& [about, peer] : others[group]) all.push_back(&peer);
    rounds(all);
    for (const auto& [about, peer] : others[group])
      if (!peer.failed.empty())
        std::fprintf(stderr, "  %s, %s: failed while it was timed: %s\n", about.at("name").get<std::string>().c_str(), group.c_str(),
                     peer.failed.c_str());
  }
  roof = best_of(roof, roof_now());
  Json all = Json::array();
  for (std::size_t i = 0; i < row.parts.size(); ++i) {
    const Part& part = row.parts[i];
    if (!ours[i].failed.empty()) throw Error(row.name + ", " + part.name + ": " + ours[i].failed);
    const double floor = floor_of(part, roof);
    const Timing timing = timing_of(ours[i].samples);
    Json of = {{"part", part.name},
               {"ours_seconds", timing.seconds},
               {"spread", timing.spread},
               {"runs", timing.runs},
               {"floor_seconds", floor > 0.0 ? Json(floor) : Json()},
               {"floor", part.floor},
               {"roof_fraction", floor > 0.0 ? Json(floor / timing.seconds) : Json()},
               {"peers", Json::array()}};
    if (part.facts)
      for (const auto& [name, value] : part.facts()) of[name] = value;
    std::vector<Json> list;
    for (const auto& [about, peer] : others[part.group()]) {
      if (!peer.failed.empty()) continue;
      const Timing its = timing_of(peer.samples);
      list.push_back({{"name", about.at("name")},
                      {"version", about.at("version")},
                      {"seconds", its.seconds},
                      {"spread", its.spread},
                      {"error", about.at("error")},
                      {"runs", its.runs},
                      {"ratio", its.seconds / timing.seconds}});
    }
    std::ranges::sort(list, {}, [](const Json& peer) { return peer.at("seconds").get<double>(); });
    for (Json& peer : list) of["peers"].push_back(std::move(peer));
    all.push_back(std::move(of));
  }
  Json result = {{"row", row.name},
                 {"text", row.text + (device ? "" : ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads"))},
                 {"device", device ? device->name() : "cpu"},
                 {"threads", threads}};
  for (const char* key : {"ours_seconds", "spread", "floor_seconds", "roof_fraction"}) result[key] = all[0][key];
  result["others_share"] = busy;
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
    std::fprintf(stderr, "  %-20s %10.3f ms +- %.3f", part["part"].get<std::string>().c_str(), 1e3 * part["ours_seconds"].get<double>(),
                 1e3 * part["spread"].get<double>());
    const auto named = [](const Json& peer) { return peer["name"].get<std::string>() + " " + peer["version"].get<std::string>(); };
    if (!part["peers"].empty())
      std::fprintf(stderr, "   best peer %.2f times ours: %s", part["peers"][0]["ratio"].get<double>(), named(part["peers"][0]).c_str());
    std::fprintf(stderr, "\n");
    if (part["floor_seconds"].is_number())
      std::fprintf(stderr, "    floor %.3f ms, %.0f %% of the roof (%s)\n", 1e3 * part["floor_seconds"].get<double>(),
                   100.0 * part["roof_fraction"].get<double>(), part["floor"].get<std::string>().c_str());
    if (part.contains("iterations"))
      std::fprintf(stderr, "    %.0f iterations, residual %.1e%s\n", part["iterations"].get<double>(), part["residual"].get<double>(),
                   part["converged"].get<double>() > 0.0 ? "" : ", not converged: run step by step");
    for (const Json& peer : part["peers"])
      std::fprintf(stderr, "    %-58s %10.3f ms +- %-8.3f %6.2f times ours, error %.1e\n", named(peer).c_str(),
                   1e3 * peer["seconds"].get<double>(), 1e3 * peer["spread"].get<double>(), peer["ratio"].get<double>(),
                   peer["error"].get<double>());
  }
}

int run(std::vector<std::string> words) {
  std::vector<std::string> rows;
  std::string python;
  int threads = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool more = i + 1 < words.size();
    if (words[i] == "--peers" && more)
      python = words[++i];
    else if (words[i] == "--threads" && more)
      threads = static_cast<int>(*integer("--threads", words[++i], 1, cpu::most_threads));
    else if (words[i] == "--cell") {  // a part of a study, in a process of its own
      restrict_to(threads);
      std::cout << study_cell({words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end()}).dump() << std::endl;
      return 0;
    } else
      rows.push_back(words[i]);
  }
  if (rows.empty()) {
    std::vector<std::string> known = row_names();
    for (const std::string& name : study_names()) known.push_back(name);
    throw Error("name rows, of " + listed(known, ",") + ".");
  }
  threads = restrict_to(threads);
  std::string scratch = (fs::temp_directory_path() / "reclab-bench-XXXXXX").string();
  if (!mkdtemp(scratch.data())) throw Error("no folder could be made in " + fs::temp_directory_path().string() + "; make room there.");
  int status = 0;
  std::unique_ptr<Peers> peers;
  for (const std::string& name : rows) {
    try {
      if (const auto studies = study_names(); std::ranges::find(studies, name) != studies.end()) {
        std::cout << study(name, threads).dump() << std::endl;
        continue;
      }
      const Row row = make_row(name, scratch);
      if (!python.empty() && !peers) peers = std::make_unique<Peers>(python);
      const Json result = measured(row, peers.get(), scratch, threads);
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

}  // namespace

int main(int count, char** words) {
  try {
    return run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::cerr << "reclab-bench: " << error.what() << '\n';
    return 2;
  }
}
