// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab train`.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>

#include "array/error.h"
#include "commands.h"
#include "experiment/command/command.h"
#include "experiment/training/training.h"
#include "kept_training.h"
#include "models/registry.h"
#include "options.h"
#include "study/subcommand.h"
#include "text.h"
#include "trace/input_scale.h"

namespace reclab::cli {
namespace {

void only_with(const std::string& option, bool given, const std::string& other) {
  if (given) usage_error(option, "belongs to " + other + ".");
}

/// The progress of a training: a line at the bottom of a terminal, or a line at each judgement where standard error is none.
class TrainingProgress {
 public:
  explicit TrainingProgress(const Training& training)
      : training_(training), terminal_(isatty(STDERR_FILENO) == 1), first_(training.trainer().steps()), begin_(Clock::now()) {}
  ~TrainingProgress() { clear(); }

  void tell() {
    const Trainer& trainer = training_.trainer();
    const auto now = Clock::now();
    const auto& judged = training_.evaluations();
    told_ = std::min(told_, judged.size());  // of a training that went back to before a judgement
    if (judged.size() > told_) {
      told_ = judged.size();
      clear();
      std::string line = "step " + std::to_string(judged.back().step) + " of " + std::to_string(training_.request().steps) + ": loss ";
      if (!training_.history().empty()) line += number_text(training_.history().back().loss, 4) + " of the batch, ";
      line += number_text(judged.back().loss, 4) + " held out, " + trainer.metric() + " " + number_text(judged.back().metric, 4);
      if (training_.request().options.gate_penalty > 0.0 && !training_.history().empty())
        line += ", gate penalty " + number_text(training_.history().back().gate_penalty, 4);
      if (const std::string pace = pace_of(now); !pace.empty()) line += ", " + pace;
      std::cout << line << std::endl;
    }
    if (!terminal_ || now - last_ < std::chrono::milliseconds(50) || training_.history().empty()) return;
    last_ = now;
    shown_ = true;
    const double done = static_cast<double>(trainer.steps()) / static_cast<double>(std::max<std::int64_t>(1, training_.request().steps));
    constexpr int width = 24;
    std::string bar;
    for (int i = 0; i < width; ++i) bar += i < static_cast<int>(done * width) ? "\u2588" : "\u2591";
    std::fprintf(stderr, "\r\033[K%s %lld of %lld  loss %s  %s", bar.c_str(), static_cast<long long>(trainer.steps()),
                 static_cast<long long>(training_.request().steps), number_text(training_.history().back().loss, 4).c_str(),
                 pace_of(now).c_str());
    std::fflush(stderr);
  }
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string pace_of(Clock::time_point now) const {
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const auto steps = static_cast<double>(training_.trainer().steps() - first_);
    if (steps < 1.0 || seconds <= 0.0) return {};
    const double left = static_cast<double>(training_.request().steps - training_.trainer().steps()) * seconds / steps;
    return number_text(steps / seconds, 3) + " steps/s" + (left > 0.0 ? ", " + seconds_text(left) + " left" : "");
  }
  const Training& training_;
  bool terminal_, shown_ = false;
  std::size_t told_ = 0;
  std::int64_t first_;
  Clock::time_point begin_, last_;
};

}  // namespace

TrainingRequest training_request_of(const TrainOptions& options, const PresetLibrary& presets) {
  if (options.id.empty()) usage_error("ID", "is missing: give a preset, or --resume DIR.");
  const Preset& preset = presets.find(options.id);
  model_request_of(options, preset, builtin_registry());
  return reclab::training_request_of(options.given, preset);
}

namespace {

/// --resume: everything as it was, but for how many steps there are to be.
TrainingRequest resumed_request(const TrainOptions& options, const PresetLibrary& presets) {
  TrainOptions kept;
  try {
    kept = train_options(arguments_in(options.resume));
  } catch (const MisfitError&) {
    throw;
  } catch (const Error& error) {
    if (!error.where().file.empty()) throw;
    const std::string file = (std::filesystem::path(options.resume) / "training.json").string();
    throw Error(file + " has arguments that are none of reclab train (" + one_line(error.what()) +
                    "): give the folder of a training that `reclab train --export` wrote.",
                {.file = file});
  }
  if (!options.id.empty() && options.id != kept.id)
    usage_error("--resume", "is a training of " + kept.id + ", not of " + options.id + "; leave out the preset.");
  if (options.is_set("--steps")) kept.given["--steps"] = options.given.at("--steps");
  kept.given["--until"] = options.given.at("--until");
  return training_request_of(kept, presets);
}

void print_summary(const Training& training, const std::string& how) {
  const Trainer& trainer = training.trainer();
  const Evaluation& last = training.evaluations().back();
  TextTable table(2);
  table.row({"steps", how});
  const std::string when = last.step == trainer.steps() ? "" : " after step " + std::to_string(last.step);
  table.row({"loss", number_text(last.loss, 5) + " of what is held out" + when + "; the baseline, " + trainer.baseline_text() + ", has " +
                         number_text(trainer.baseline().loss, 5)});
  std::string others = "; the baseline has " + number_text(trainer.baseline().metric, 5);
  if (const auto& linear = trainer.linear_predictor()) others += ", " + linear->text + " " + number_text(linear->metric, 5);
  table.row({trainer.metric(), number_text(last.metric, 5) + others});
  if (const auto& flossed = training.flossed()) {
    const auto listed = [](const std::vector<double>& exponents) {
      std::string text;
      for (const double exponent : exponents) text += (text.empty() ? "" : ", ") + number_text(exponent, 3);
      return text;
    };
    table.row({"exponents", listed(flossed->before) + " before flossing, " + listed(flossed->after) + " after it, a step"});
  }
  if (trainer.options().gate_penalty > 0.0 && !training.history().empty())
    table.row({"gate penalty", number_text(training.history().back().gate_penalty, 5) + " of the last batch, " +
                                   number_text(training.history().front().gate_penalty, 5) + " of the first; no part of the loss"});
  table.row({"memory", bytes_text(static_cast<double>(trainer.bytes()))});
  table.print(std::cout);
}

/// Whether two names are of one folder.
bool same_folder(const std::string& a, const std::string& b) {
  std::error_code none;
  return a == b || std::filesystem::equivalent(a, b, none);
}

}  // namespace

int train(const TrainOptions& options, Interrupt& interrupt) {
  const PresetLibrary all = library();
  const bool resumed = !options.resume.empty();
  const std::string folder = options.folder.empty() ? options.resume : options.folder;
  const bool goes_on = resumed && same_folder(folder, options.resume);
  only_with("--replace", options.replace && options.folder.empty(), "--export");
  only_with("--checkpoint-every", !options.checkpoint_every.empty() && folder.empty(), "--export");
  if (!folder.empty() && !goes_on && !options.replace) refuse_to_replace(folder);
  const TrainingRequest request = resumed ? resumed_request(options, all) : training_request_of(options, all);
  const auto made = resumed ? resume(builtin_registry(), request, options.resume) : std::make_unique<Training>(builtin_registry(), request);
  Training& training = *made;
  const std::int64_t begun_at = training.trainer().steps();
  KeptTraining kept(training, folder, options.checkpoint_every.empty() ? 60.0 : positive("--checkpoint-every", options.checkpoint_every));
  if (!training.done()) kept.check();
  std::cout << heading(training.title()) << " learns from " << training.examples().text() << "; " << request.options.batch
            << " a batch, seed " << request.run.seed << std::endl;
  const Hyper hyper = hyper_of(builtin_registry(), request.run.preset, request.run.set);
  for (const HyperSpec& row : hyper.table())
    if (scales_input(row.key) && hyper.text(row.key) != "1") paragraph(std::cout, input_scale_note(hyper.text(row.key)));

  TrainingProgress standing(training);
  interrupt.enter(Interrupt::Phase::training);
  const auto complain = [&](const std::string& problem) {
    standing.clear();
    if (!problem.empty()) std::cerr << "reclab: " << one_line(problem) << std::endl;
  };
  // A device that fails is left: training goes on on the CPU, from where it stood a second before.
  using Clock = std::chrono::steady_clock;
  std::optional<TrainingState> state;
  auto since = Clock::now();
  const auto look = [&] {
    state = training.state();
    since = Clock::now();
  };
  const auto sturdily = [&](const auto& step) {
    for (;;) try {
        return step();
      } catch (const DeviceError& error) {
        complain(training.leave_device(builtin_registry(), error, state));
      }
  };
  std::string diverged;
  std::exception_ptr failed;
  try {
    if (training.device() != "cpu" && begun_at > 0) look();  // a device that fails at once leaves the folder as it is
    sturdily([&] { training.begin(interrupt.token()); });
    standing.tell();
    while (!training.done() && !interrupt.token().stop_requested()) {
      sturdily([&] {
        training.advance(interrupt.token());
        if (training.device() != "cpu" && Clock::now() - since >= std::chrono::seconds(1)) look();
      });
      standing.tell();
      if (training.done() || !kept.due()) continue;
      kept.write();
      complain(kept.problem());
    }
  } catch (const Cancelled&) {
  } catch (const TrainingDiverged& error) {
    diverged = error.what();
  } catch (...) {  // the trained weights are written first
    failed = std::current_exception();
  }
  standing.clear();
  const Trainer& trainer = training.trainer();
  const std::int64_t steps = trainer.steps();
  // A training without a new step is not written, unless it had no steps to do.
  const bool worth = trainer.whole() && (steps > begun_at || (training.done() && diverged.empty() && !failed));
  if (worth) kept.write();
  complain(kept.problem());
  if (!training.evaluations().empty() && trainer.whole())
    print_summary(training, std::to_string(steps) + " of " + std::to_string(request.steps) + ", " + training.request().run.dtype + ", " +
                                training.device());
  if (!kept.place().empty()) {
    const std::string place = kept.place().string();
    std::cout << "Wrote " << place << (kept.written() ? "" : " after step " + std::to_string(kept.steps()));
    std::cout << (kept.steps() >= request.steps ? "\n" : "; go on with: reclab train --resume " + shell_word(place) + "\n");
    if (kept.is_beside()) std::cout << folder << " keeps its training, which is further.\n";
  }
  std::cout.flush();
  if (failed) std::rethrow_exception(failed);
  if (!diverged.empty()) {
    complain(sentence_after_colon(diverged));
    return 1;
  }
  if (training.done()) return folder.empty() || (kept.written() && kept.problem().empty()) ? 0 : 2;
  std::string left;
  if (folder.empty()) left = "; nothing was kept, for which --export DIR is needed";
  if (!folder.empty() && kept.place().empty())
    left = resumed ? "; no step was made, and " + folder + " is as it was" : "; there was nothing to keep yet";
  std::cerr << "stopped after step " << steps << left << std::endl;
  return interrupted_status;
}

}  // namespace reclab::cli
