// SPDX-License-Identifier: GPL-3.0-or-later
// An export over an older one is ended before each of its calls that change a folder, or one of them fails: what lies there is the old
// export or the new one, whole, and the next export removes what was left behind.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "files/files.h"
#include "places.h"
#include "process.h"
#include "scratch.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;
using reclab::test::bytes_of_file;
using reclab::test::listing;
using reclab::test::Process;
using reclab::test::Scratch;
using Json = nlohmann::json;

namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;
constexpr int killed = 128 + SIGKILL, failed = 2;

/// Exit status, and what was said.
std::pair<int, std::string> exported(const fs::path& folder, int seed, Environment environment = {}) {
  Process::Options options;
  options.environment = std::move(environment);
  if (!options.environment.empty()) {
    options.environment.emplace_back("LD_PRELOAD", test::built("bin/libreclab_shim.so"));
    options.environment.emplace_back("ASAN_OPTIONS", "verify_asan_link_order=0");
  }
  Process process(test::built("bin/reclab"),
                  {"run", "elman", "--set", "width=4", "--length", "8", "--record", "output", "--seed", std::to_string(seed), "--export",
                   folder.string()},
                  options);
  const int status = process.wait();
  return {status, process.error};
}

/// The seed of the export in a folder, all of whose files are those that its manifest names; 0 where there is no manifest.
int whole_seed(const fs::path& folder) {
  if (!fs::exists(folder / "manifest.json")) return 0;
  const Json manifest = Json::parse(bytes_of_file(folder / "manifest.json"));
  CHECK(manifest.at("files").size() == 2);
  for (const auto& [name, file] : manifest.at("files").items()) {
    const std::string bytes = bytes_of_file(folder / name);
    CHECK_SAYS(bytes.size() == file.at("bytes").get<std::size_t>(), name);
    CHECK_SAYS(sha256_hex(bytes) == file.at("sha256").get<std::string>(), name + " is not of this manifest");
  }
  return manifest.at("seed").get<int>();
}

ino_t inode(const fs::path& path) {
  struct stat status{};
  CHECK(stat(path.c_str(), &status) == 0);
  return status.st_ino;
}

struct Place {
  fs::path folder;                 ///< of the export
  std::function<void()> make_old;  ///< puts an export of seed 1 there, and what else is in the folder
  std::set<std::string> whole;     ///< everything in the scratch folder when an export is whole
  bool may_be_unfinished = false;  ///< a kill may leave a folder that is seen to have no manifest
};

/// Ends an export of seed 2 before its n-th call, for n = 1, 2, ... until one gets through.
void sweep(const Scratch& scratch, const Place& place, const Environment& environment) {
  int unfinished = 0, old = 0, renewed = 0;
  for (int n = 1;; ++n) {
    CHECK_SAYS(n < 60, "no export gets through");
    fs::remove_all(scratch.path());
    fs::create_directory(scratch.path());
    place.make_old();
    const std::set<std::string> before = listing(scratch.path());
    Environment at = environment;
    at.emplace_back("SHIM_KILL_AT", std::to_string(n));
    const auto [status, said] = exported(place.folder, 2, at);
    CHECK_SAYS(status == 0 || status == killed, std::to_string(status) + said);
    const int seed = whole_seed(place.folder);
    const std::string where = "killed before call " + std::to_string(n);
    CHECK_SAYS(seed == 1 || seed == 2 || (seed == 0 && (place.may_be_unfinished || !before.contains(place.folder.filename().string()))),
               where);
    (seed == 0 ? unfinished : seed == 1 ? old : renewed) += 1;
    for (const std::string& name : before)
      if (name.find("notes") != std::string::npos) CHECK_SAYS(bytes_of_file(scratch / name) == "mine", where + " lost " + name);
    if (status == 0) CHECK(seed == 2 && listing(scratch.path()) == place.whole);
    CHECK_SAYS(exported(place.folder, 2).first == 0, where);
    CHECK_SAYS(whole_seed(place.folder) == 2, where);
    std::string there;
    for (const std::string& name : listing(scratch.path())) there += " " + name;
    CHECK_SAYS(listing(scratch.path()) == place.whole, where + " leaves" + there);
    if (status == 0) {
      CHECK_SAYS(n > 2, "the calls are not counted");
      CHECK(renewed > 0);
      CHECK((unfinished > 0) == (place.may_be_unfinished || !before.contains(place.folder.filename().string())));
      return;
    }
  }
}

/// An export of seed 1, made once and copied.
const fs::path& first_export() {
  static const Scratch scratch;
  static const fs::path folder = [] {
    CHECK(exported(scratch / "a", 1).first == 0);
    return scratch / "a";
  }();
  return folder;
}

std::set<std::string> names_of(const std::set<std::string>& more) {
  std::set<std::string> all{"d", "d/manifest.json", "d/trace.npz", "d/state.npz"};
  all.insert(more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("killed before any call, an export that is exchanged is the old one or the new one") {
  const Scratch scratch;
  const fs::path folder = scratch / "d";
  sweep(scratch,
        {folder,
         [&] {
           fs::copy(first_export(), folder);
           scratch.file("d/notes.txt", "mine");
           fs::create_symlink("notes.txt", folder / "link to notes");
         },
         names_of({"d/notes.txt", "d/link to notes"})},
        {{"SHIM_THREADS", "99"}});
  const ino_t before = inode(folder);
  CHECK(exported(folder, 2).first == 0);
  CHECK_SAYS(inode(folder) != before, "the folders are exchanged");
  CHECK(fs::read_symlink(folder / "link to notes") == "notes.txt");
}

TEST_CASE("killed before any call, an export that is renamed file by file is whole or without a manifest") {
  const Scratch scratch;
  const fs::path folder = scratch / "d";
  const auto old = [&] {
    fs::copy(first_export(), folder);
    scratch.file("d/notes.txt", "mine");
  };
  // The file system cannot exchange; the folder holds folders, and so may be more than an export.
  sweep(scratch, {folder, old, names_of({"d/notes.txt"}), true}, {{"SHIM_NO_EXCHANGE", "1"}});
  sweep(scratch,
        {folder,
         [&] {
           old();
           fs::create_directory(folder / "more");
           scratch.file("d/more/notes.txt", "mine");
         },
         names_of({"d/notes.txt", "d/more", "d/more/notes.txt"}), true},
        {{"SHIM_THREADS", "99"}});
  const ino_t before = inode(folder);
  CHECK(exported(folder, 2).first == 0);
  CHECK_EQUAL(inode(folder), before);
}

TEST_CASE("killed before any call, a first export is there or it is not") {
  const Scratch scratch;
  sweep(scratch, {scratch / "d", [] {}, names_of({})}, {{"SHIM_THREADS", "99"}});
  sweep(scratch, {scratch / "d", [] {}, names_of({})}, {{"SHIM_NO_EXCHANGE", "1"}});
}

TEST_CASE("where any call fails the old export stays, whole, or the new one is there") {
  const Scratch scratch;
  const fs::path folder = scratch / "d";
  for (const bool exchange : {true, false}) {
    int refused = 0;
    for (int n = 1;; ++n) {
      CHECK(n < 60);
      fs::remove_all(folder);
      fs::copy(first_export(), folder);
      scratch.file("d/notes.txt", "mine");
      Environment environment{{"SHIM_FAIL_AT", std::to_string(n)}};
      if (!exchange) environment.emplace_back("SHIM_NO_EXCHANGE", "1");
      const auto [status, said] = exported(folder, 2, environment);
      CHECK_SAYS(status == 0 || (status == failed && said.find("cannot be written") != std::string::npos), std::to_string(status) + said);
      CHECK_SAYS(whole_seed(folder) == (status == 0 ? 2 : 1), "call " + std::to_string(n));
      CHECK_EQUAL(bytes_of_file(folder / "notes.txt"), "mine");
      refused += status != 0;
      // What could not be removed is removed by the next export.
      if (status == 0 && listing(scratch.path()) == names_of({"d/notes.txt"}) && n > 12) break;
      CHECK(exported(folder, 2).first == 0);
      CHECK(listing(scratch.path()) == names_of({"d/notes.txt"}));
    }
    CHECK_SAYS(refused > 0, "no call failed");
  }
}

TEST_CASE("two exports to one folder at once never mix") {
  const Scratch scratch;
  const fs::path folder = scratch / "d";
  for (int round = 0; round < 8; ++round) {
    Process::Options options;
    if (round % 2 == 1)
      options.environment = {
          {"LD_PRELOAD", test::built("bin/libreclab_shim.so")}, {"SHIM_NO_EXCHANGE", "1"}, {"ASAN_OPTIONS", "verify_asan_link_order=0"}};
    const auto start = [&](const char* seed) {
      return std::make_unique<Process>(test::built("bin/reclab"),
                                       std::vector<std::string>{"run", "elman", "--set", "width=4", "--length", "8", "--record", "output",
                                                                "--seed", seed, "--export", folder.string()},
                                       options);
    };
    const auto one = start("1"), two = start("2");
    CHECK_EQUAL(one->wait(), 0);
    CHECK_EQUAL(two->wait(), 0);
    const int seed = whole_seed(folder);
    CHECK(seed == 1 || seed == 2);
    CHECK(listing(scratch.path()) == names_of({}));
  }
}
