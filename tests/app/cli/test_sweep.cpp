// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab sweep` as schedulers and people use it: cells are done once, whole or not at all, whatever ends the processes.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "files/npz.h"
#include "reclab.h"
#include "scratch.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;
using namespace reclab::test;
using Json = nlohmann::json;

namespace {

const std::string small = R"("base": "reclab train lstm --set width=4 --task adding --length 10 --steps 5 --batch 4 --held-out 8")";

/// A folder of cells that are made anew from a plan.
struct Sweep {
  Scratch scratch;
  std::string folder = (scratch / "cells of it").string();

  explicit Sweep(const std::string& rest, const std::string& base = small) { plan(rest, base); }
  void plan(const std::string& rest, const std::string& base = small) const {
    const std::string file = scratch.file("plan.json", "{" + base + ", " + rest + "}").string();
    good({"sweep", file, "--into", folder});
  }
  Result says(std::vector<std::string> words, const Process::Options& options = {}) const {
    words.insert(words.begin() + 1, folder);
    words.insert(words.begin(), "sweep");
    return reclab_says(words, options);
  }
  Json status() const { return Json::parse(good({"sweep", "status", folder, "--json"})); }
  /// The table without the last column, which has the seconds.
  std::string table() const {
    std::istringstream lines(good({"sweep", "collect", folder}));
    std::string text;
    for (std::string line; std::getline(lines, line);) text += line.substr(0, line.rfind(',')) + "\n";
    return text;
  }
  /// When each result was written.
  std::map<std::string, fs::file_time_type> times() const {
    std::map<std::string, fs::file_time_type> all;
    if (fs::exists(fs::path(folder) / "cells"))
      for (const auto& entry : fs::directory_iterator(fs::path(folder) / "cells"))
        if (!entry.path().filename().string().starts_with(".") && fs::exists(entry.path() / "result.json"))
          all[entry.path().filename()] = fs::last_write_time(entry.path() / "result.json");
    return all;
  }
  /// Nothing of work that is over is left.
  void check_clean() const {
    for (const auto& entry : fs::directory_iterator(fs::path(folder) / "work"))
      fail(__FILE__, __LINE__, entry.path().string() + " is left");
  }
};

const std::string eight = R"("axes": {"seed": [1, 2, 3, 4], "set.width": [4, 8]}, "measure": ["loss", "metric"])";

/// Of a long training, which is stopped.
const std::string endless = R"("base": "reclab train lstm --set width=4 --task adding --length 10 --steps 6000 --batch 4 --held-out 8")";

/// The processes that a process has started.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> all;
  std::ifstream list("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  for (pid_t one = 0; list >> one;) all.push_back(one);
  return all;
}

}  // namespace

TEST_CASE("eight cells: a row each, with the loss that reclab train has, and none is computed twice") {
  const Sweep sweep(eight);
  CHECK_EQUAL(sweep.status().at("waiting").get<int>(), 8);
  const Result run = sweep.says({"run", "--jobs", "2"});
  CHECK_SAYS(run.status == 0 && run.error.empty() && run.output == "8 cells: 8 done\n", run.output + run.error);
  const std::string table = sweep.table();
  CHECK_EQUAL(std::ranges::count(table, '\n'), 9);
  CHECK_SAYS(table.starts_with("cell,seed,set.width,loss,metric,status\n"), table);
  CHECK(table.find(",4,8,") != std::string::npos);
  sweep.check_clean();

  const Scratch other;
  trained({"lstm", "--set", "width=8", "--task", "adding", "--length", "10", "--steps", "5", "--batch", "4", "--held-out", "8", "--seed",
           "4", "--export", (other / "one").string()});
  const Json result = [&] {
    std::istringstream lines(table);
    std::string line;
    while (std::getline(lines, line))
      if (line.find(",4,8,") != std::string::npos) break;
    return Json::parse(contents(fs::path(sweep.folder) / "cells" / line.substr(0, 16) / "result.json"));
  }();
  const NpzFile history(other / "one" / "history.npz");
  std::set<std::string> names(history.names().begin(), history.names().end());
  const auto losses = history.read("held_out/loss").real;
  CHECK_EQUAL(result.at("measures").at("loss").get<double>(), losses.back());

  const auto before = sweep.times();
  const Result again = sweep.says({"run"});
  CHECK_SAYS(again.status == 0 && again.output == "8 cells: 8 done, 8 of them before\n", again.output + again.error);
  CHECK(sweep.times() == before);
  // An added axis value, and an added axis with the value that is the default: what is done stays.
  sweep.plan(R"("axes": {"seed": [1, 2, 3, 4, 5], "set.width": [8, 4], "set.layers": [1]}, "measure": ["loss", "metric"])");
  CHECK_EQUAL(sweep.says({"run"}).output, std::string("10 cells: 10 done, 8 of them before\n"));
  for (const auto& [name, time] : before) CHECK(sweep.times().at(name) == time);
  // Another measure is not in the results.
  sweep.plan(R"("axes": {"seed": [1]}, "measure": ["loss", "norm output 3", "[max output] - [min output]"])");
  CHECK_EQUAL(sweep.status().at("waiting").get<int>(), 1);
  CHECK_EQUAL(sweep.says({"run"}).status, 0);
}

TEST_CASE("a summary has the means of the collected table, of the folder as of its file, and what is not done is in none") {
  const Sweep sweep(eight);
  for (const char* cell : {"0", "2", "4", "1"}) CHECK_EQUAL(sweep.says({"cell", cell}).status, 0);
  const std::string file = (sweep.scratch / "t.csv").string(), rows = (sweep.scratch / "rows.csv").string();
  good({"sweep", "collect", sweep.folder, "-o", file});
  std::map<std::string, std::vector<double>> losses;
  std::istringstream lines(contents(file));
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream text(line);
    for (std::string field; std::getline(text, field, ',');) fields.push_back(field);
    if (fields[5] == "done") losses[fields[2]].push_back(std::stod(fields[3]));
  }
  CHECK(losses["4"].size() == 3 && losses["8"].size() == 1);
  const std::string said = good({"sweep", "summary", file, "--by", "set.width", "--json"});
  CHECK_EQUAL(good({"sweep", "summary", sweep.folder, "--json"}), said);
  const Json groups = Json::parse(said).at("groups");
  CHECK_EQUAL(groups.size(), std::size_t{2});
  for (const Json& group : groups) {
    const auto& values = losses.at(std::to_string(group.at("axes").at("set.width").get<int>()));
    double sum = 0.0;
    for (const double value : values) sum += value;
    CHECK_CLOSE(group.at("mean").get<double>(), sum / static_cast<double>(values.size()), 1e-12);
    CHECK_EQUAL(group.at("values").get<std::size_t>(), values.size());
    CHECK_EQUAL(group.at("missing").get<std::size_t>(), 4 - values.size());
    CHECK_EQUAL(group.at("low").is_null(), values.size() < 2);
  }
  const std::string text = good({"sweep", "summary", file, "--order", "falling", "--export", rows});
  CHECK_SAYS(text.find("3 waiting") != std::string::npos && contents(rows).starts_with("set.width,rows,values,mean,low,"), text);
  for (const auto& [words, part] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{{{"--measure", "los"}, "choose one of loss"},
                                                                     {{"--by", "width"}, "set.width"},
                                                                     {{"--order", "up"}, "rising"},
                                                                     {{"--only", "seed"}, "key=value"},
                                                                     {{"--confidence", "1"}, "between 0 and 1"}}) {
    std::vector<std::string> all{"sweep", "summary", file};
    all.insert(all.end(), words.begin(), words.end());
    const Result refused = reclab_says(all);
    CHECK_SAYS(refused.status == 2 && refused.error.find(part) != std::string::npos && std::ranges::count(refused.error, '\n') == 1,
               refused.error);
  }
}

TEST_CASE("tables: NPZ as CSV, texts and integers as they are, several folders in one") {
  const Sweep one(R"("axes": {"preset": ["lstm", "gru"], "seed": [3]})"),
      two(R"("axes": {"lr": {"from": 0.001, "to": 0.1, "count": 2, "scale": "log"}})");
  CHECK_EQUAL(one.says({"run"}).status, 0);
  const std::string npz = (one.scratch / "t.npz").string();
  good({"sweep", "collect", one.folder, two.folder, "-o", npz});
  const NpzFile arrays(npz);
  CHECK(arrays.names() == std::vector<std::string>({"cell", "preset", "seed", "lr", "loss", "status", "seconds"}));
  const std::string bytes = contents(npz), texts("l\0\0\0s\0\0\0t\0\0\0m\0\0\0g\0\0\0r\0\0\0u\0\0\0\0\0\0\0n\0\0\0a\0\0\0n\0\0\0", 44);
  CHECK(bytes.find("'<U4'") != std::string::npos && bytes.find(texts) != std::string::npos);
  const auto lr = arrays.read("lr").real, seconds = arrays.read("seconds").real, loss = arrays.read("loss").real;
  CHECK(std::isnan(lr[0]) && lr[2] == 0.001 && lr[3] == 0.1);
  CHECK(loss[0] > 0.0 && std::isnan(loss[2]) && seconds[0] > 0.0 && std::isnan(seconds[3]));
  const std::string csv = good({"sweep", "collect", one.folder, two.folder});
  CHECK_SAYS(csv.starts_with("cell,preset,seed,lr,loss,status,seconds\n") && csv.find(",lstm,3,,") != std::string::npos &&
                 csv.find(",,,0.1,,waiting,\n") != std::string::npos,
             csv);
  CHECK_SAYS(reclab_says({"sweep", "collect", one.folder, "-o", (one.scratch / "t.parquet").string()}).error.find(".csv or .npz") !=
                 std::string::npos,
             "another ending");
}

TEST_CASE("mistakes are said when the plan is made, or with the cell, and its exit status is 2") {
  const Scratch scratch;
  const auto refused = [&](const std::string& plan, const std::string& text) {
    const std::string file = scratch.file("plan.json", plan).string();
    const Result result = reclab_says({"sweep", file, "--into", (scratch / "no").string()});
    CHECK_SAYS(result.status == 2 && result.output.empty() && std::ranges::count(result.error, '\n') == 1 &&
                   result.error.find(text) != std::string::npos,
               result.error);
    CHECK(!fs::exists(scratch / "no"));
  };
  refused("{" + small + R"(, "axes": {"set.width": [4, 0]}})", "cell 1 (set.width 0) cannot be");
  refused("{" + small + R"(, "axes": {"seed": [1]}, "measure": ["max outputs"]})", "records no outputs");
  CHECK(reclab_says({"sweep", "run", "x", "--job", "2"})
            .error.starts_with("reclab: sweep run has no option \"--job\"; did you mean --jobs?"));
  CHECK(reclab_says({"sweep", "run", (scratch / "no").string()}).error.find("no folder of a sweep") != std::string::npos);

  // Settings of which each is good, and which do not go together.
  refused(R"({"base": "reclab train transformer --set width=8 --task copy", "axes": {"set.heads": [2, 3]}})",
          "cell 1 (set.heads 3) cannot be");

  // A file is read with its cell.
  std::string rows = "x\n";
  for (int t = 0; t < 60; ++t) rows += std::to_string(t * 7 % 11) + "\n";
  const std::string whole = scratch.file("a.csv", rows).string(), bad_file = scratch.file("b.csv", "x,y\n1,\"2\n").string();
  const Sweep sweep("\"axes\": {\"input\": [\"" + whole + "\", \"" + bad_file + "\"]}",
                    R"("base": "reclab train lstm --set width=4 --ahead 1 --window 5 --steps 2 --batch 2")");
  const Result bad = sweep.says({"cell", "1"});
  CHECK_SAYS(bad.status == 2 && bad.error.starts_with("reclab: cell 1: "), std::to_string(bad.status) + bad.error);
  CHECK_EQUAL(sweep.says({"cell", "0"}).status, 0);
  const Json status = sweep.status();
  CHECK(status.at("failed") == 1 && status.at("done") == 1 && status.at("failures").at(0).at("cell") == 1);
  CHECK_EQUAL(sweep.says({"run"}).status, 2);
  CHECK_EQUAL(sweep.says({"cell", "2"}).status, 2);
}

TEST_CASE("a signal keeps a checkpoint and exits with 75, and the end has the bits of a cell that was not stopped") {
  const std::string axes = R"("axes": {"seed": [1]}, "measure": ["loss", "metric", "batch_loss", "steps", "norm output 5"])";
  const Sweep straight(axes, endless);
  CHECK_EQUAL(straight.says({"cell", "0"}).status, 0);
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    const Sweep sweep(axes, endless);
    int stopped = 0;
    for (int attempt = 0; attempt < 60; ++attempt) {
      Process process(built("bin/reclab"), {"sweep", "cell", sweep.folder, "0"}, {});
      // Once the lock is there the training begins; where it is over before the signal comes, that is as good.
      const auto has_lock = [&] {
        const fs::path work = fs::path(sweep.folder) / "work";
        if (!fs::exists(work)) return false;
        const std::set<std::string> names = listing(work);
        return std::ranges::any_of(names, [](const std::string& name) { return name.ends_with(".lock"); });
      };
      for (int i = 0; i < 2000 && !has_lock(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::this_thread::sleep_for(std::chrono::milliseconds(30 + 10 * attempt));
      process.send(signal);
      const int status = process.wait();
      CHECK_SAYS(status == 75 || status == 0, std::to_string(status) + process.error);
      stopped += status == 75;
      if (status == 0) break;
      CHECK_SAYS(process.error.find("cell 0: stopped") != std::string::npos, process.error);
    }
    CHECK_SAYS(stopped > 0, "no signal came before the end");
    CHECK_EQUAL(sweep.table(), straight.table());
    sweep.check_clean();
  }
}

TEST_CASE("a cell that another process has is left to it with 75; a lock whose process is gone is none") {
  const Sweep sweep(R"("axes": {"seed": [1]})");
  const std::string name = [&] {
    const std::string line = contents(fs::path(sweep.folder) / "cells.jsonl");
    return Json::parse(line.substr(0, line.find('\n'))).at("cell").get<std::string>();
  }();
  fs::create_directories(fs::path(sweep.folder) / "work");
  const fs::path lock = fs::path(sweep.folder) / "work" / (name + ".lock");
  const auto write = [&](const Json& json) { std::ofstream(lock) << json; };
  std::string host(256, '\0');
  CHECK(gethostname(host.data(), host.size()) == 0);
  host = host.c_str();
  const std::string stat = contents("/proc/self/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string begin;
  for (int field = 3; field <= 22; ++field) fields >> begin;

  write({{"host", host}, {"pid", getpid()}, {"begin", begin}});
  CHECK_EQUAL(sweep.status().at("running").get<int>(), 1);
  const Result taken = sweep.says({"cell", "0"});
  CHECK_SAYS(taken.status == 75 && taken.error.find("process " + std::to_string(getpid()) + " on " + host) != std::string::npos,
             taken.error);
  CHECK_EQUAL(sweep.says({"run"}).status, 75);
  // Of another host: as long as it is renewed.
  write({{"host", host + "-other"}, {"pid", 1}, {"begin", "1"}});
  CHECK_EQUAL(sweep.says({"cell", "0"}).status, 75);
  fs::last_write_time(lock, fs::file_time_type::clock::now() - std::chrono::minutes(16));
  CHECK_EQUAL(sweep.status().at("waiting").get<int>(), 1);
  // The number was given to another process since.
  write({{"host", host}, {"pid", getpid()}, {"begin", begin + "0"}});
  CHECK_EQUAL(sweep.says({"cell", "0"}).status, 0);
  sweep.check_clean();
}

TEST_CASE("a process is ended before each of its calls that change a folder: the next one ends with the same table") {
  const std::string axes = R"("axes": {"seed": [1]}, "keep": "training")";
  const Sweep straight(axes);
  CHECK_EQUAL(straight.says({"cell", "0"}).status, 0);
  int killed = 0, failed = 0;
  for (const char* what : {"SHIM_KILL_AT", "SHIM_FAIL_AT"})
    for (int n = 1;; ++n) {
      CHECK_SAYS(n < 80, "no cell gets through");
      const Sweep sweep(axes);
      Process::Options options;
      options.environment = {
          {what, std::to_string(n)}, {"LD_PRELOAD", built("bin/libreclab_shim.so")}, {"ASAN_OPTIONS", "verify_asan_link_order=0"}};
      const Result first = sweep.says({"cell", "0"}, options);
      CHECK_SAYS(first.status == 0 || first.status == 2 || first.status == 128 + SIGKILL, std::to_string(first.status) + first.error);
      killed += first.status == 128 + SIGKILL;
      failed += first.status == 2;
      const auto before = sweep.times();
      CHECK_EQUAL(sweep.says({"cell", "0"}).status, 0);
      for (const auto& [name, time] : before) CHECK(sweep.times().at(name) == time);
      CHECK_EQUAL(sweep.table(), straight.table());
      if (first.status == 0 && (std::string_view(what) == "SHIM_KILL_AT" || n > killed)) break;
    }
  CHECK_SAYS(killed > 5 && failed > 0, std::to_string(killed) + " " + std::to_string(failed));
}

TEST_CASE(
    "workers are killed at random, and the one that runs them: the table has the bits of the undisturbed one, nothing whole is lost") {
  const std::string axes = R"("axes": {"seed": {"from": 1, "to": 24, "count": 24, "whole": true}}, "measure": ["loss", "metric"])";
  const std::string base = R"("base": "reclab train lstm --set width=4 --task adding --length 10 --steps 1500 --batch 4 --held-out 8")";
  const Sweep straight(axes, base), sweep(axes, base);
  CHECK_EQUAL(straight.says({"run", "--jobs", "2"}).status, 0);
  std::mt19937 random(1);
  int kills = 0, begins = 0;
  std::map<std::string, fs::file_time_type> seen;
  for (; kills < 8 && begins < 40; ++begins) {
    const pid_t runner = fork();
    if (runner == 0) {
      std::freopen("/dev/null", "w", stderr);
      std::freopen("/dev/null", "w", stdout);
      execl(built("bin/reclab").c_str(), "reclab", "sweep", "run", sweep.folder.c_str(), "--jobs", "2", static_cast<char*>(nullptr));
      _exit(127);
    }
    for (int status = 0; waitpid(runner, &status, WNOHANG) == 0;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 250));
      const std::vector<pid_t> workers = children_of(runner);
      if (workers.empty() || kills >= 8) continue;
      const pid_t victim = random() % 4 == 0 ? runner : workers[random() % workers.size()];
      if (kill(victim, SIGKILL) == 0) ++kills;
    }
    for (const auto& [name, time] : seen) CHECK_SAYS(sweep.times().at(name) == time, name + " was computed twice");
    seen = sweep.times();
    if (sweep.times().size() == 24) break;
  }
  for (int i = 0; i < 20 && sweep.says({"run", "--jobs", "2"}).status != 0; ++i) {
  }
  CHECK_SAYS(kills >= 3, std::to_string(kills));
  CHECK_EQUAL(sweep.table(), straight.table());
}

TEST_CASE("on a full disk a cell fails with a sentence, and is done once there is room") {
  const Sweep sweep(R"("axes": {"seed": [1, 2]})");
  Process::Options full;
  full.largest_file = 300;
  const Result first = sweep.says({"cell", "0"}, full);
  CHECK_SAYS(first.status == 2 && std::ranges::count(first.error, '\n') == 1, std::to_string(first.status) + first.error);
  CHECK(sweep.times().empty());
  CHECK_EQUAL(sweep.says({"run"}).output, std::string("2 cells: 2 done\n"));
  sweep.check_clean();
}

TEST_CASE("a preset that changed since the plan is refused, and a training that diverges is a result") {
  const Sweep sweep(R"("axes": {"lr": [0.01, 1e30]}, "measure": ["loss", "metric"])",
                    R"("base": "reclab train elman --task adding --length 10 --steps 50 --batch 4 --held-out 8 --optimiser sgd --clip 0")");
  const Result run = sweep.says({"run"});
  CHECK_SAYS(run.status == 0, run.output + run.error);
  CHECK_SAYS(sweep.table().find(",1e+30,nan,nan,diverged\n") != std::string::npos, sweep.table());
  const fs::path cells = fs::path(sweep.folder) / "cells.jsonl";
  std::string text = contents(cells);
  text[text.find("\"cell\":\"") + 8] = text[text.find("\"cell\":\"") + 8] == '0' ? '1' : '0';
  std::ofstream(cells) << text;
  const Result changed = sweep.says({"cell", "0"});
  CHECK_SAYS(changed.status == 2 && changed.error.find("has changed since the plan") != std::string::npos, changed.error);
}

TEST_CASE("scripts for other programs: make runs its own, chunks hold all cells") {
  const Sweep sweep(R"("axes": {"seed": [1, 2, 3, 4, 5]})");
  const std::string makefile = sweep.scratch.file("Makefile", good({"sweep", "emit", sweep.folder, "make", "--chunk", "2"})).string();
  CHECK_EQUAL(std::system(("make --silent --jobs 2 --file " + makefile + " > /dev/null").c_str()), 0);
  CHECK_EQUAL(sweep.status().at("done").get<int>(), 5);
  const std::string slurm = good({"sweep", "emit", sweep.folder, "slurm", "--chunk", "2", "--jobs", "3", "--threads", "4"});
  for (const char* part :
       {"--array=0-2%3\n", "--cpus-per-task=4\n", "--requeue", "--signal=USR1@60\n", "\"$SLURM_ARRAY_TASK_ID\" --chunk 2 --threads 4\n"})
    CHECK_SAYS(slurm.find(part) != std::string::npos, slurm);
  CHECK(good({"sweep", "emit", sweep.folder, "parallel"}).find("seq 0 4 | parallel --joblog ") != std::string::npos);
  CHECK(sweep.says({"emit", "pbs"}).error.find("did you mean") != std::string::npos);
}

TEST_CASE("the memory of planning, listing and collecting does not grow with the cells") {
  std::optional<std::int64_t> first;
  for (const int cells : {500, 8000}) {
    const Scratch scratch;
    const std::string plan = scratch
                                 .file("plan.json", "{" + small + R"(, "axes": {"seed": {"from": 1, "to": )" + std::to_string(cells) +
                                                        R"(, "count": )" + std::to_string(cells) + R"(, "whole": true}}})")
                                 .string(),
                      folder = (scratch / "sweep").string(), table = (scratch / "t.csv").string();
    std::int64_t most = 0;
    for (const std::vector<std::string>& words : {std::vector<std::string>{"sweep", plan, "--into", folder},
                                                  {"sweep", "status", folder},
                                                  {"sweep", "collect", folder, "-o", table}}) {
      const Result result = reclab_says(words);
      CHECK_SAYS(result.status == 0, result.error);
      most = std::max(most, result.peak_bytes);
    }
    if (first) CHECK_SAYS(most - *first < (4 << 20), std::to_string(*first) + " " + std::to_string(most));
    first = most;
  }
}
