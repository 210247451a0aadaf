// SPDX-License-Identifier: GPL-3.0-or-later
#include "processes.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "array/error.h"
#include "files/files.h"

namespace reclab::bench {

using Json = nlohmann::ordered_json;

Child::Child(std::vector<std::string> command) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) throw Error("No pipe to another process could be made.");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  const int failure = posix_spawnp(&process_, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to[0]);
  close(from[1]);
  to_ = fdopen(to[1], "w");
  from_ = fdopen(from[0], "r");
  if (failure != 0) {
    fclose(to_);
    fclose(from_);
    throw Error(command[0] + " could not be started: " + std::generic_category().message(failure) + ".");
  }
}

Child::~Child() {
  fclose(to_);
  fclose(from_);
  waitpid(process_, nullptr, 0);
}

void Child::say(const std::string& line) {
  std::fprintf(to_, "%s\n", line.c_str());
  std::fflush(to_);
}

std::string Child::hear() {
  char* line = nullptr;
  std::size_t room = 0;
  const ssize_t length = getline(&line, &room, from_);
  const std::string text = length > 0 ? std::string(line, static_cast<std::size_t>(length)) : std::string();
  free(line);
  return text;
}

Peers::Peers(const std::string& python) : child_({python, std::string(RECLAB_SOURCE_DIR) + "/tests/bench/peers"}) {}

Json Peers::answer(const std::string& line) {
  child_.say(line);
  const std::string text = child_.hear();
  if (text.empty()) throw Error("The peers' process ended at \"" + line + "\"; what it said is above.");
  return Json::parse(text);
}

Json Peers::prepare(const Row& row, const std::filesystem::path& folder) {
  AtomicFile file(folder / "inputs.npz");
  NpzWriter archive(file);
  row.save(archive);
  archive.finish();
  file.commit();
  return answer("prepare " + row.name + " " + (folder / "inputs.npz").string());
}

double Peers::time(int number, std::int64_t calls) {
  const Json seconds = answer("time " + std::to_string(number) + " " + std::to_string(calls));
  if (!seconds.is_number()) throw Error(seconds.at("failed").get<std::string>());
  return seconds.get<double>();
}

Json itself(const std::vector<std::string>& words) {
  std::vector<std::string> command{"/proc/self/exe"};
  command.insert(command.end(), words.begin(), words.end());
  Child child(command);
  const std::string line = child.hear();
  std::string said;
  for (const std::string& word : words) said += " " + word;
  if (line.empty()) throw Error("reclab-bench" + said + " failed; what it said is above.");
  return Json::parse(line);
}

int restrict_to(int threads) {
  cpu_set_t allowed, some;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) throw Error("The processors of this process cannot be asked for.");
  const int all = CPU_COUNT(&allowed);
  if (threads == 0) return all;
  if (threads < 1 || threads > all)
    throw Error("--threads " + std::to_string(threads) + ": this process may run on " + std::to_string(all) + " processors; give 1 to " +
                std::to_string(all) + ".");
  CPU_ZERO(&some);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&some) < threads; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &some);
  if (sched_setaffinity(0, sizeof some, &some) != 0)
    throw Error("This process cannot be restricted to " + std::to_string(threads) + " processors.");
  return threads;
}

double others_share() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) throw Error("The processors of this process cannot be asked for.");
  // Of each processor a line "cpu0 user nice system idle iowait irq softirq steal ...", in hundredths of a second.
  const auto counted = [&] {
    std::pair<double, double> idle_and_all;
    std::ifstream file("/proc/stat");
    for (std::string line; std::getline(file, line);) {
      int cpu = 0;
      double of[8];
      if (std::sscanf(line.c_str(), "cpu%d %lf %lf %lf %lf %lf %lf %lf %lf", &cpu, of, of + 1, of + 2, of + 3, of + 4, of + 5, of + 6,
                      of + 7) != 9 ||
          cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed))
        continue;
      idle_and_all.first += of[3] + of[4];
      for (const double ticks : of) idle_and_all.second += ticks;
    }
    return idle_and_all;
  };
  const auto before = counted();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const auto after = counted();
  const double all = after.second - before.second;
  if (all <= 0.0) throw Error("/proc/stat does not say how busy the processors are.");
  return 1.0 - (after.first - before.first) / all;
}

}  // namespace reclab::bench
