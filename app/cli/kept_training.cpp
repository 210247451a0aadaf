// SPDX-License-Identifier: GPL-3.0-or-later
#include "kept_training.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "array/error.h"
#include "experiment/command/command.h"

namespace reclab::cli {
namespace {

namespace fs = std::filesystem;

/// A checkpoint that takes long to write is written less often: no more than a twentieth of the time goes into them.
constexpr double most_share = 0.05;

fs::path free_name(const fs::path& wanted) {
  fs::path name = wanted;
  std::error_code none;
  for (int i = 2; fs::exists(fs::symlink_status(name, none)); ++i) name = wanted.string() + "-" + std::to_string(i);
  return name;
}

/// "trained", of "trained/" too.
fs::path without_slash(const fs::path& folder) { return folder.has_filename() ? folder : folder.parent_path(); }

}  // namespace

void refuse_to_replace(const fs::path& folder) {
  const TrainingFolder there = training_in(folder);
  const std::string name = folder.string(), cures = "give another folder, or --replace.";
  if (there.holds == TrainingFolder::Holds::training)
    throw Error("--export: " + name + " has a training of " + std::to_string(there.steps) + (there.steps == 1 ? " step" : " steps") +
                    ": go on from it with --resume " + shell_word(name) + ", " + cures,
                {.file = name, .parameter = "--export"});
  if (there.holds == TrainingFolder::Holds::other)
    throw Error("--export: " + name + " has a " + there.file + " that is of no training: " + cures,
                {.file = name, .place = there.file, .parameter = "--export"});
}

KeptTraining::KeptTraining(const Training& training, fs::path folder, double seconds)
    : training_(training), folder_(std::move(folder)), seconds_(seconds) {}

void KeptTraining::check() const {
  if (!folder_.empty()) check_export(training_, folder_);
}

bool KeptTraining::due() const {
  const double wait = seconds_ > 0.0 ? std::max(seconds_, cost_ / most_share) : 0.0;
  return !folder_.empty() && std::chrono::duration<double>(Clock::now() - last_).count() >= wait;
}

/// A training that is further than this one stays, unless this one has come to its end.
fs::path KeptTraining::target() {
  if (training_.done() || training_in(folder_).steps <= training_.trainer().steps()) return folder_;
  if (beside_.empty()) beside_ = free_name(without_slash(folder_).string() + "-unfinished");
  return beside_;
}

bool KeptTraining::write_to(const fs::path& folder, std::string& why) {
  try {
    export_training(training_, folder);
    place_ = folder;
    written_ = training_.trainer().steps();
    return true;
  } catch (const std::bad_alloc&) {
    why = "there is no memory to write it with";
  } catch (const std::exception& error) {
    why = error.what();
  }
  return false;
}

/// Of a folder that was written here: its files, and it too where nothing else is in it.
void KeptTraining::remove_copy(fs::path& folder) {
  std::error_code none;
  if (!folder.empty() && folder != place_) {
    for (const char* name : {"training.json", "weights.npz", "weights.safetensors", "optimiser.npz", "history.csv", "history.npz"})
      fs::remove(folder / name, none);
    fs::remove(folder, none);
    folder.clear();
  }
}

void KeptTraining::write_elsewhere(std::string why) {
  if (why.ends_with('.')) why.pop_back();
  std::vector<fs::path> others;
  const std::string name = "reclab-" + training_.request().run.preset.id + "-" + std::to_string(getpid());
  if (!elsewhere_.empty()) others.push_back(elsewhere_);
  for (const char* variable : {"TMPDIR", "HOME"})
    if (const char* there = std::getenv(variable); there && *there) others.push_back(free_name(fs::path(there) / name));
  others.push_back(free_name(fs::path("/tmp") / name));
  others.push_back(free_name(fs::absolute(name)));
  std::string ignored;  // the error reported is that of the user's own folder
  const auto found = std::ranges::find_if(others, [&](const fs::path& other) { return write_to(other, ignored); });
  if (found != others.end()) elsewhere_ = *found;
  problem_ = why + "; the training is " +
             (found != others.end() ? "in " + found->string() + " instead" : std::string("not written, and no other folder can be"));
}

void KeptTraining::write() noexcept {
  if (folder_.empty() || written()) return;
  const auto begun = Clock::now();
  problem_.clear();
  try {
    std::string why;
    fs::path wanted;
    try {
      wanted = target();
    } catch (const Error& error) {
      why = error.what();
    }
    if (why.empty() && write_to(wanted, why)) {
      remove_copy(elsewhere_);
      if (place_ == folder_) remove_copy(beside_);
    } else {
      write_elsewhere(why);
    }
  } catch (const std::exception& error) {
    problem_ = error.what();
  }
  last_ = Clock::now();
  cost_ = std::chrono::duration<double>(last_ - begun).count();
}

}  // namespace reclab::cli
