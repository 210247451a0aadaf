// SPDX-License-Identifier: GPL-3.0-or-later
// What `reclab train` keeps: while it trains, when it is stopped or killed, and where anything fails; and folders of trainings that were
// changed by hand.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "files/files.h"
#include "files/npz.h"
#include "places.h"
#include "reclab.h"
#include "scratch.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;
using reclab::test::adding;
using reclab::test::contents;
using reclab::test::Process;
using reclab::test::Result;
using reclab::test::train;
using reclab::test::train_refused;
using reclab::test::trained;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* files[] = {"training.json", "weights.npz", "weights.safetensors", "optimiser.npz", "history.csv", "history.npz"};

/// All bytes of a training's folder.
std::string all_of(const fs::path& folder) {
  std::string all;
  for (const char* file : files) all += contents(folder / file);
  return all;
}
Json manifest_of(const fs::path& folder) { return Json::parse(contents(folder / "training.json")); }
std::int64_t steps_in(const fs::path& folder) { return manifest_of(folder).at("steps").get<std::int64_t>(); }

std::vector<std::string> command(std::vector<std::string> words) {
  words.insert(words.begin(), "train");
  return words;
}

/// Two channels with noise, as text.
std::string noisy_waves() {
  std::string text = "a,b\n";
  std::uint64_t random = 3;
  for (int t = 0; t < 3000; ++t) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const double noise = static_cast<double>(random >> 40) / static_cast<double>(1 << 24);
    text += std::to_string(std::sin(t / 7.0) + 0.1 * noise) + "," + std::to_string(std::cos(t / 11.0)) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("a training takes the place of no other one, unless it is told to and comes to its end or further") {
  const test::Scratch scratch;
  const std::string out = scratch / "a folder";
  trained(adding({"--steps", "20", "--export", out}));
  const std::string before = all_of(out);
  const Result again = train_refused(adding({"--steps", "20", "--export", out}), "has a training of 20 steps");
  for (const char* cure : {"--resume '", "another folder", "--replace"})
    CHECK_SAYS(again.error.find(cure) != std::string::npos, again.error);
  CHECK(all_of(out) == before);
  // One that diverges is kept beside it.
  const Result diverged = train(adding({"--steps", "20", "--optimiser", "sgd", "--lr", "1e200", "--export", out, "--replace"}));
  CHECK_EQUAL(diverged.status, 1);
  CHECK_SAYS(diverged.output.find("a folder-unfinished") != std::string::npos &&
                 diverged.output.find("keeps its training, which is further") != std::string::npos,
             diverged.output);
  CHECK(all_of(out) == before);
  CHECK_EQUAL(steps_in(out + "-unfinished"), 1);
  // So is one that is stopped, or killed.
  trained({"--resume", out, "--steps", "2000"});
  const std::string further = all_of(out);
  for (const int signal : {SIGINT, SIGKILL}) {
    Process::Options options;
    options.terminal = true;
    Process process(test::built("bin/reclab"),
                    command(adding({"--steps", "1999", "--checkpoint-every", "0", "--export", out, "--replace"})), options);
    CHECK_SAYS(process.wait_for_error_text("steps/s"), process.error);
    process.send(signal);
    CHECK_EQUAL(process.wait(), signal == SIGINT ? 130 : 128 + SIGKILL);
    CHECK(all_of(out) == further);
  }
  CHECK(steps_in(out + "-unfinished-2") > 0);
  // One that comes to its end replaces it, and leaves nothing beside it that it wrote on the way.
  trained(adding({"--steps", "10", "--checkpoint-every", "0", "--export", out, "--replace"}));
  CHECK_EQUAL(steps_in(out), 10);
  CHECK(!fs::exists(out + "-unfinished-4"));
  train_refused({"--resume", out, "--replace"}, "--replace belongs to --export");
}

TEST_CASE("files of a training's names that are of something else are not replaced") {
  const test::Scratch scratch;
  fs::create_directory(scratch / "out");
  scratch.file("out/weights.npz", "mine");
  train_refused(adding({"--steps", "2", "--export", scratch / "out"}), "has a weights.npz that is of no training");
  CHECK_EQUAL(contents(scratch / "out/weights.npz"), "mine");
  scratch.file("out/notes.txt", "mine");
  trained(adding({"--steps", "2", "--export", scratch / "out", "--replace"}));
  CHECK_EQUAL(steps_in(scratch / "out"), 2);
  CHECK_EQUAL(contents(scratch / "out/notes.txt"), "mine");
  // The last step of a resumed training goes to its own folder, and to no other's.
  trained(adding({"--steps", "1", "--export", scratch / "other"}));
  train_refused({"--resume", scratch / "out", "--steps", "3", "--export", scratch / "other"}, "has a training of 1 step");
  trained({"--resume", scratch / "out", "--steps", "3", "--export", scratch / "out/"});
  CHECK_EQUAL(steps_in(scratch / "out"), 3);
}

TEST_CASE("a truncated training that diverges keeps the weights before the step, and a folder in which nothing was gained is as it was") {
  const test::Scratch scratch;
  const auto file = scratch.file("s.csv", noisy_waves());
  const std::string out = scratch / "out";
  std::vector<std::string> words{"elman",      "--input", file, "--window", "200", "--set", "width=16", "--set", "activation=identity",
                                 "--truncate", "20"};
  words.insert(words.end(),
               {"--optimiser", "sgd", "--lr", "11", "--warm-up", "60", "--steps", "200", "--judge-every", "1000", "--export", out});
  const Result first = train(words);
  CHECK_SAYS(first.status == 1 && first.error.starts_with("reclab: training ended at step "), std::to_string(first.status) + first.error);
  const std::int64_t steps = steps_in(out);
  CHECK(steps > 0);
  CHECK_EQUAL(manifest_of(out).at("changes").get<std::int64_t>(), 10 * steps);
  const std::string before = all_of(out);
  const Result again = train({"--resume", out});
  CHECK_SAYS(again.status == 1 && again.error == first.error, again.error);
  CHECK(all_of(out) == before);
}

TEST_CASE("a step whose judgement is not finite is not made") {
  const test::Scratch scratch;
  const Result result =
      train(adding({"--steps", "5", "--judge-every", "1", "--optimiser", "sgd", "--lr", "1e200", "--export", scratch / "out"}));
  CHECK_EQUAL(result.status, 1);
  CHECK_SAYS(result.error.find("held out") != std::string::npos, result.error);
  CHECK(!fs::exists(scratch / "out"));
}

TEST_CASE("a folder that cannot be written is refused before the first step") {
  const test::Scratch scratch;
  scratch.file("afile", "mine");
  const auto steps = [](const std::string& folder) { return adding({"--steps", "100000000", "--export", folder}); };
  train_refused(steps(scratch / "afile"), "afile");
  train_refused(steps(scratch / "afile/x"), "afile");
  train_refused(steps("/proc/x/y"), "/proc/x");
  CHECK_EQUAL(contents(scratch / "afile"), "mine");
  // A disk without room for the first export.
  Process::Options full;
  full.largest_file = 2000;
  train_refused(steps(scratch / "out"), "out", full);
  CHECK(!fs::exists(scratch / "out"));
  // And one of a training that goes on.
  trained(adding({"--steps", "5", "--export", scratch / "kept"}));
  const std::string before = all_of(scratch / "kept");
  train_refused({"--resume", scratch / "kept", "--steps", "100000000"}, "kept", full);
  CHECK(all_of(scratch / "kept") == before);
}

TEST_CASE("a training that is killed is on the disk, and goes on with the bits of one that never ended") {
  const test::Scratch scratch;
  Process::Options options;
  options.terminal = true;
  Process process(test::built("bin/reclab"), command(adding({"--steps", "100000", "--checkpoint-every", "0", "--export", scratch / "out"})),
                  options);
  CHECK_SAYS(process.wait_for_error_text("steps/s"), process.error);
  while (!fs::exists(scratch / "out/training.json")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  process.send(SIGKILL);
  CHECK_EQUAL(process.wait(), 128 + SIGKILL);
  const std::int64_t steps = steps_in(scratch / "out");
  CHECK(steps > 0 && steps < 100000);
  trained({"--resume", scratch / "out", "--steps", std::to_string(steps + 3)});
  trained(adding({"--steps", std::to_string(steps + 3), "--export", scratch / "whole"}));
  CHECK(contents(scratch / "out/weights.npz") == contents(scratch / "whole/weights.npz"));
  CHECK(NpzFile(scratch / "out/history.npz").read("loss").real == NpzFile(scratch / "whole/history.npz").read("loss").real);
}

TEST_CASE("where the folder can no longer be written, the training goes on, is put elsewhere and says where") {
  const test::Scratch scratch;
  fs::create_directory(scratch / "tmp");
  Process::Options options;
  options.terminal = true;
  options.environment = {{"TMPDIR", (scratch / "tmp").string()}, {"HOME", (scratch / "tmp").string()}};
  Process process(test::built("bin/reclab"), command(adding({"--steps", "100000", "--export", scratch / "out"})), options);
  CHECK_SAYS(process.wait_for_error_text("steps/s"), process.error);
  scratch.file("out", "in the way");
  process.send(SIGINT);
  CHECK_EQUAL(process.wait(), 130);
  CHECK_SAYS(process.error.find("out is a file") != std::string::npos &&
                 process.error.find("; the training is in " + (scratch / "tmp/reclab-lstm-").string()) != std::string::npos,
             process.error);
  const auto found = fs::directory_iterator(scratch / "tmp")->path();
  CHECK_SAYS(process.output.find("go on with: reclab train --resume " + found.string()) != std::string::npos, process.output);
  trained({"--resume", found.string(), "--steps", std::to_string(steps_in(found) + 1)});
  CHECK_EQUAL(contents(scratch / "out"), "in the way");
}

TEST_CASE("a disk that fills up loses nothing that was written before") {
  const test::Scratch scratch;
  Process::Options options;
  options.largest_file = 20000;  // the history grows beyond it
  options.environment = {{"TMPDIR", scratch.path().string()}, {"HOME", scratch.path().string()}};
  const Result result = train(adding({"--steps", "400", "--checkpoint-every", "0", "--export", scratch / "out"}), options);
  CHECK_EQUAL(result.status, 2);
  CHECK_SAYS(result.error.find("no other folder can be") != std::string::npos, result.error);
  const std::int64_t steps = steps_in(scratch / "out");
  CHECK(steps > 10 && steps < 400);
  CHECK_SAYS(result.output.find("after step " + std::to_string(steps)) != std::string::npos, result.output);
  trained({"--resume", scratch / "out", "--steps", std::to_string(steps + 1)});
}

TEST_CASE("a second Ctrl-C keeps what is whole, and a third leaves the folder whole or as it was") {
  const test::Scratch scratch;
  for (const int signals : {2, 3}) {
    const std::string out = scratch / ("out-" + std::to_string(signals));
    Process::Options options;
    options.terminal = true;
    Process process(test::built("bin/reclab"),
                    {"train", "lstm", "--set", "width=128", "--task", "adding", "--length", "200", "--batch", "32", "--held-out", "32",
                     "--steps", "100000", "--export", out},
                    options);
    CHECK_SAYS(process.wait_for_error_text(" of 100000"), process.error);  // a step has been made; not every one is told
    for (int i = 0; i < signals; ++i) {
      process.send(SIGINT);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // two that come at once are one
    }
    CHECK_EQUAL(process.wait(), 130);
    if (signals == 3 && !fs::exists(out)) continue;
    CHECK_SAYS(steps_in(out) >= 1, process.error);
    trained({"--resume", out, "--steps", std::to_string(steps_in(out))});
  }
}

TEST_CASE("a training.json that says what cannot be is refused in one sentence") {
  const test::Scratch scratch;
  trained(adding({"--steps", "6", "--export", scratch / "good"}));
  const auto with = [&](const auto& change, const std::string& text) {
    fs::remove_all(scratch / "bad");
    fs::copy(scratch / "good", scratch / "bad");
    Json json = manifest_of(scratch / "good");
    change(json);
    std::ofstream(scratch / "bad/training.json") << json.dump();
    train_refused({"--resume", scratch / "bad", "--steps", "7"}, text);
  };
  for (const char* key : {"steps", "changes"})
    for (const Json& value : {Json(-1), Json(1e18), Json(1e300), Json(0.5), Json(std::uint64_t{1} << 63), Json("6"), Json(nullptr)})
      with([&](Json& json) { json[key] = value; }, std::string("has ") + key + " = ");
  for (const std::int64_t value : {std::int64_t{1'000'000'000'000}, std::int64_t{5}})
    with([&](Json& json) { json["steps"] = value; }, "training.json");
  with([](Json& json) { json["changes"] = 7; }, "changes of the weights in 6 steps");
  with([](Json& json) { json["arguments"].push_back("--help"); }, "training.json has arguments that are none of reclab train");
  with([](Json& json) { json["arguments"].push_back("--no-such"); }, "training.json has arguments that are none of reclab train");
  with([](Json& json) { json["arguments"].push_back(std::string("--set=wi\0dth=4", 14)); }, "has a control character");
  with([](Json& json) { json["files"] = Json::array(); }, "does not name weights.npz");
  with([](Json& json) { json["files"].erase(2); }, "does not name optimiser.npz");
  with([](Json& json) { json["files"].push_back(json["files"][0]); }, "names weights.npz twice");
  with([](Json& json) { json["files"][0]["name"] = "../good/weights.npz"; }, "is no file of a training");
  with([](Json& json) { json["files"][0]["bytes"] = 5; }, "weights.npz has changed since it was written");
  // Each * may stand for any letters; a try for each way to part a name would never end.
  with([](Json& json) { json["arguments"].insert(json["arguments"].end(), {"--freeze", "****************************************z"}); },
       "is the name of no weights");
  // A file of a terabyte that has none of them on the disk is not read to its end.
  fs::remove_all(scratch / "bad");
  fs::copy(scratch / "good", scratch / "bad");
  CHECK(truncate((scratch / "bad/history.csv").c_str(), off_t{1} << 40) == 0);
  train_refused({"--resume", scratch / "bad", "--steps", "7"}, "history.csv has changed since it was written");
}

TEST_CASE("arrays of a training's folder are asked for their shapes before they are read") {
  const test::Scratch scratch;
  trained(adding({"--steps", "6", "--export", scratch / "good"}));
  const std::int64_t usual = train({"--resume", scratch / "good"}).peak_bytes;
  constexpr std::int64_t entries = std::int64_t{16} << 20;  // 128 MiB
  const auto with = [&](const std::string& file, const std::string& name, const std::string& text) {
    fs::remove_all(scratch / "bad");
    fs::copy(scratch / "good", scratch / "bad");
    const NpzFile old(scratch / ("good/" + file));
    {
      const std::vector<double> large(entries);  // given back before a process is started, which would begin with as much
      AtomicFile made(scratch / ("bad/" + file));
      NpzWriter archive(made);
      for (const std::string& one : old.names())
        if (one != name) archive.add(one, old.header(one).shape, std::span<const double>(old.read(one).real));
      archive.add(name, {entries}, std::span<const double>(large));
      archive.finish();
      made.commit();
    }
    Json json = manifest_of(scratch / "good");
    for (Json& one : json["files"])
      if (one["name"] == file) {
        one["bytes"] = fs::file_size(scratch / ("bad/" + file));
        one["sha256"] = sha256_of_file(scratch / ("bad/" + file));
      }
    std::ofstream(scratch / "bad/training.json") << json.dump();
    const Result result = train_refused({"--resume", scratch / "bad", "--steps", "7"}, text);
    CHECK_SAYS(result.peak_bytes < usual + (std::int64_t{64} << 20),
               name + ": " + std::to_string(result.peak_bytes >> 20) + " MiB, usually " + std::to_string(usual >> 20));
  };
  with("optimiser.npz", "m/0/weight_ih", "has m/0/weight_ih of another shape");
  with("optimiser.npz", "m/more", "holds more than this training keeps");
  with("history.npz", "step", "has another number of steps");
  with("history.npz", "held_out/step", "has more judgements than steps");
  with("weights.npz", "param/0/weight_ih", "holds weights of another shape");
}
