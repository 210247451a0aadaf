// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab stream` as a script sees it: its folder, a killed one that goes on, mistakes in one line.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "files/npz.h"
#include "places.h"
#include "reclab.h"
#include "scratch.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;
using reclab::test::contents;
using reclab::test::good;
using reclab::test::Process;
using reclab::test::reclab_says;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* files[] = {"stream.json", "stream.npz", "state.npz", "weights.npz", "weights.safetensors"};

std::string all_of(const fs::path& folder) {
  std::string all;
  for (const char* file : files) all += contents(folder / file);
  return all;
}

std::int64_t steps_in(const fs::path& folder) {
  return fs::exists(folder / "stream.json") ? Json::parse(contents(folder / "stream.json")).at("steps").get<std::int64_t>() : 0;
}

std::vector<std::string> several(const std::string& steps) {
  return {"stream",   "lstm",    "--set", "width=8", "--source",   "recurring",     "--source-set",
          "hold=700", "--steps", steps,   "--rates", "0.01,0.001", "--truncations", "1,10"};
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void refused(const std::vector<std::string>& words, const std::string& text) {
  const auto result = reclab_says(words);
  CHECK_SAYS(result.status == 2 && std::ranges::count(result.error, '\n') == 1, std::to_string(result.status) + ": " + result.error);
  CHECK_SAYS(result.error.find(text) != std::string::npos, result.error + " does not say " + text);
}

}  // namespace

TEST_CASE("a stream that is killed at random moments goes on to the bits of one that never was") {
  const test::Scratch scratch;
  const std::string steps = test::thorough() ? "400000" : "60000", whole = (scratch / "whole").string(),
                    killed = (scratch / "killed").string();
  const auto begun = std::chrono::steady_clock::now();
  good(with(several(steps), {"--export", whole}));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::mt19937 random(5);
  const int kills = test::thorough() ? 10 : 3;
  int happened = 0;
  for (int i = 0; i < kills; ++i) {
    std::vector<std::string> words =
        steps_in(killed) > 0 ? std::vector<std::string>{"stream", "--resume", killed} : with(several(steps), {"--export", killed});
    Process process(test::built("bin/reclab"), with(words, {"--checkpoint-every", "0.01"}), {});
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds / kills * (0.3 + static_cast<double>(random() % 1000) / 1000.0)));
    process.send(SIGKILL);
    happened += process.wait() != 0;
  }
  CHECK(happened > 0);
  CHECK(steps_in(killed) > 0);
  if (steps_in(killed) < std::stoll(steps)) good({"stream", "--resume", killed});
  CHECK_EQUAL(steps_in(killed), std::stoll(steps));
  CHECK(all_of(killed) == all_of(whole));
}

TEST_CASE("a signal keeps what was learned, and more steps than were asked for may follow") {
  const test::Scratch scratch;
  const std::string whole = (scratch / "whole").string(), stopped = (scratch / "stopped").string();
  good(with(several("20000"), {"--export", whole}));
  {
    Process process(test::built("bin/reclab"), with(several("0"), {"--export", stopped, "--checkpoint-every", "0.01"}), {});
    while (steps_in(stopped) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    process.send(SIGTERM);
    CHECK_EQUAL(process.wait(), 130);
    CHECK_SAYS(process.error.find("stopped after step") != std::string::npos, process.error);
    CHECK_SAYS(process.output.find("--resume") != std::string::npos, process.output);
  }
  const std::int64_t reached = steps_in(stopped);
  CHECK(reached > 0 && reached % 10 == 0);
  good(with(several(std::to_string(reached)), {"--export", whole, "--replace"}));
  const std::string more = std::to_string(reached + 1000);
  good({"stream", "--resume", whole, "--steps", more});
  good({"stream", "--resume", stopped, "--steps", more});
  CHECK(contents(scratch / "whole" / "state.npz") == contents(scratch / "stopped" / "state.npz"));
  // Its weights are those of a model like any other's.
  good({"run", "lstm", "--set", "width=8", "--task", "sine", "--weights", (scratch / "stopped" / "weights.npz").string()});
}

TEST_CASE("the folder has the errors, the drifts and the regret; regret is 0 for the learner that is best so far") {
  const test::Scratch scratch;
  const std::string folder = (scratch / "out").string();
  const Json said = Json::parse(good(with(several("5000"), {"--export", folder, "--json"})));
  CHECK_EQUAL(said.at("predictors").size(), 7u);
  const NpzFile archive(fs::path(folder) / "stream.npz");
  std::vector<double> least(static_cast<std::size_t>(archive.header("step").shape[0]), 1e300);
  for (const char* name : {"rate=0.01,truncate=1", "rate=0.01,truncate=10", "rate=0.001,truncate=1", "rate=0.001,truncate=10"}) {
    const auto regret = archive.read("regret/squared/" + std::string(name)).real,
               total = archive.read("total/squared/" + std::string(name)).real;
    CHECK_EQUAL(regret.size(), least.size());
    for (std::size_t i = 0; i < regret.size(); ++i) {
      CHECK(regret[i] >= 0.0);
      least[i] = std::min(least[i], regret[i]);
    }
    CHECK(total.back() > 0.0);
  }
  for (const double x : least) CHECK_EQUAL(x, 0.0);
  CHECK_EQUAL(archive.header("drift/step").shape[0], 7);
  CHECK_EQUAL(archive.header("drift/recovery/ridge").shape[0], 7);
}

TEST_CASE("the last steps are a sequence for any other command, with the weights of the folder") {
  const test::Scratch scratch;
  const fs::path folder = scratch / "out";
  good(with(several("5000"), {"--export", folder.string(), "--ring", "200"}));
  const Json kept = Json::parse(contents(folder / "stream.json"));
  CHECK_EQUAL(kept.at("files").at(4).at("name").get<std::string>(), "ring.npz");
  const NpzFile ring(folder / "ring.npz"), errors(folder / "stream.npz");
  CHECK_EQUAL(ring.read("time").real.front(), 4800.0);
  CHECK_EQUAL(ring.header("target").shape[0], 200);
  CHECK_EQUAL(errors.header("ring/prediction/last").shape[0], 200);
  CHECK_EQUAL(errors.read("ring/drift").real.at(0), 4899.0);  // the target of a step is the row after it, and 4900 is the seventh 700
  const std::string of = (scratch / "run").string();
  good({"run", "lstm", "--set", "width=8", "--input", (folder / "ring.npz").string(), "--standardise", "no", "--weights",
        (folder / "weights.npz").string(), "--export", of});
  CHECK_EQUAL(NpzFile(fs::path(of) / "trace.npz").read("target").real.size(), 200u);
  // It goes on with the same bits, the ring too.
  const std::string part = (scratch / "part").string();
  good(with(several("2500"), {"--export", part, "--ring", "200"}));
  good({"stream", "--resume", part, "--steps", "5000"});
  for (const char* file : {"ring.npz", "state.npz", "stream.npz"}) CHECK(contents(folder / file) == contents(fs::path(part) / file));
}

TEST_CASE("what was learned before a bad row is kept, and the stream goes on behind it") {
  const test::Scratch scratch;
  std::string rows, bad;
  for (int t = 0; t < 500; ++t) {
    rows += std::to_string(t % 7) + "\n";
    bad += std::to_string(t % 7) + "\n" + (t == 301 ? "seven\n" : "");
  }
  const std::vector<std::string> words{"stream", "elman", "--set", "width=4", "--steps", "0", "--truncate", "10"};
  const auto of = [&](const std::string& name, const std::string& text) {
    return with(words, {"--source", "file:" + scratch.file(name + ".csv", text).string(), "--export", (scratch / name).string()});
  };
  good(of("whole", rows));
  const auto result = reclab_says(of("bad", bad));
  CHECK_EQUAL(result.status, 2);
  CHECK_SAYS(result.error.find("line 303: \"seven\"") != std::string::npos, result.error);
  CHECK_EQUAL(steps_in(scratch / "bad"), 301);
  good({"stream", "--resume", (scratch / "bad").string()});
  CHECK_EQUAL(steps_in(scratch / "bad"), 499);
}

TEST_CASE("a folder that cannot be written is said before anything is learned") {
  const test::Scratch scratch;
  const std::string file = scratch.file("file", "x").string();
  refused({"stream", "elman", "--steps", "0", "--export", file}, "is a file");
  refused({"stream", "elman", "--steps", "0", "--export", "/proc/none"}, "/proc");
}

TEST_CASE("mistakes are one line with a cure") {
  const test::Scratch scratch;
  refused({"stream", "lstm", "--source", "radio"}, "s-abrupt");
  refused({"stream", "lstm", "--source", "file"}, "file:FILE");
  refused({"stream", "lstm", "--source", "stdin"}, "no row of numbers");
  refused({"stream", "lstm", "--rates", "0.1,x"}, "--rates");
  refused({"stream"}, "give a preset, or --resume DIR");
  refused({"stream", "transformer"}, "grows with the sequence");
  refused({"stream", "--resume", (scratch / "none").string()}, "stream.json");
  const std::string bad = scratch.file("bad.csv", "1,2\n3,4\n5,oops\n").string();
  refused({"stream", "lstm", "--source", "file:" + bad}, "line 3");
  const std::string folder = (scratch / "out").string();
  good({"stream", "elman", "--set", "width=4", "--steps", "100", "--export", folder});
  refused({"stream", "elman", "--steps", "100", "--export", folder}, "--resume");
  std::string state = contents(fs::path(folder) / "state.npz");
  state[state.size() / 2] ^= 1;
  scratch.file("out/state.npz", state);
  refused({"stream", "--resume", folder}, "has changed since it was written");
}
