// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab stream`.
#include "streams/stream.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

#include "array/error.h"
#include "commands.h"
#include "experiment/command/command.h"
#include "experiment/command/run_fields.h"
#include "models/registry.h"
#include "options.h"
#include "parameters/typed.h"
#include "streams/follow.h"
#include "text.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

StreamRequest stream_request_of(const StreamOptions& options, const PresetLibrary& presets) {
  if (options.id.empty()) usage_error("ID", "is missing: give a preset, or --resume DIR.");
  StreamRequest request;
  request.run = model_request_of(options, presets.find(options.id), builtin_registry());
  for (const PlanField<StreamRequest>& field : stream_fields())
    if (options.is_set(field.flag)) field.set(request, typed_value(field, options.given.at(field.flag)));
  check(request.options.optimiser);
  request.source.seed = request.run.seed;
  return request;
}

/// --resume: everything as it was, but for how many steps there are to be, and how fast.
StreamRequest resumed_request(const StreamOptions& options, const PresetLibrary& presets) {
  StreamOptions kept = stream_options(stream_arguments_in(options.resume));
  if (!options.id.empty() && options.id != kept.id)
    usage_error("--resume", "is a stream of " + kept.id + ", not of " + options.id + "; leave out the preset.");
  for (const char* flag : {"--steps", "--pace"})
    if (options.is_set(flag)) kept.given[flag] = options.given.at(flag);
  return stream_request_of(kept, presets);
}

/// The folder while the stream runs: a checkpoint that takes long to write is written less often.
class KeptStream {
 public:
  KeptStream(StreamRun& stream, std::string folder, double seconds) : stream_(stream), folder_(std::move(folder)), seconds_(seconds) {}
  bool due() const {
    constexpr double most_share = 0.05;
    return !folder_.empty() && std::chrono::duration<double>(Clock::now() - last_).count() >= std::max(seconds_, cost_ / most_share);
  }
  void write() {
    const auto begun = Clock::now();
    export_stream(stream_, folder_);
    last_ = Clock::now();
    cost_ = std::chrono::duration<double>(last_ - begun).count();
  }

 private:
  StreamRun& stream_;
  std::string folder_;
  double seconds_, cost_ = 0.0;
  Clock::time_point last_ = Clock::now();
};

void print_summary(const StreamRun& stream) {
  const auto measures = measures_of(stream.form());
  TextTable table(2);
  const std::string window = "last " + std::to_string(stream.request().errors.window);
  const bool drifts = stream.drifts().drifts() > 0;
  const auto learners = std::ranges::count_if(stream.predictors(), [](const StreamRun::Predictor& one) { return one.learns; });
  std::vector<std::string> head{"", measures[0], measures[1], window + ": " + measures[0]};
  if (learners > 1) head.push_back("regret");
  if (drifts) head.insert(head.end(), {"after a drift", "settled", "recovery", "forgetting"});
  head.push_back("");  // so that the last numbers are aligned too
  table.row(head);
  TextTable notes(2);
  for (std::size_t p = 0; p < stream.predictors().size(); ++p) {
    const StreamRun::Predictor& predictor = stream.predictors()[p];
    const Prequential& errors = stream.errors()[p];
    std::vector<std::string> row{predictor.name, number_text(errors.mean()[0]), number_text(errors.mean()[1]),
                                 number_text(errors.windowed()[0])};
    if (learners > 1) row.push_back(predictor.learns ? number_text(stream.regret(p)) : "");
    if (drifts) {
      const auto means = stream.drifts().mean(p);
      row.insert(row.end(), {number_text(means[1]), number_text(means[2]), counted(std::llround(means[3]), "step"), number_text(means[5])});
    }
    row.push_back("");
    table.row(row);
    notes.row(
        {predictor.name, predictor.diverged >= 0 ? "not finite from step " + std::to_string(predictor.diverged) + " on" : predictor.text});
  }
  for (std::size_t column = 1; column + 1 < head.size(); ++column) table.right_align(column);
  table.print(std::cout);
  std::cout << '\n';
  notes.print(std::cout);
  if (!stream.note().empty()) std::cout << stream.note() << '\n';
  if (drifts) std::cout << counted(stream.drifts().drifts(), "drift") << "; the figures beside them are means over those that are over\n";
}

void print_json(const StreamRun& stream) {
  const auto measures = measures_of(stream.form());
  Json json = {{"steps", stream.steps()}, {"drifts", stream.drifts().drifts()}, {"predictors", Json::array()}};
  for (std::size_t p = 0; p < stream.predictors().size(); ++p) {
    const Errors mean = stream.errors()[p].mean(), windowed = stream.errors()[p].windowed();
    Json one = {{"name", stream.predictors()[p].name},
                {"mean", {{measures[0], mean[0]}, {measures[1], mean[1]}}},
                {"windowed", {{measures[0], windowed[0]}, {measures[1], windowed[1]}}}};
    if (stream.predictors()[p].learns) one["regret"] = stream.regret(p);
    if (stream.predictors()[p].diverged >= 0) one["diverged"] = stream.predictors()[p].diverged;
    if (stream.drifts().drifts() > 0) {
      const auto means = stream.drifts().mean(p);
      for (std::size_t i = 0; i < means.size(); ++i) one["drifts"][RegimeErrors::names[i]] = means[i];
    }
    json["predictors"].push_back(std::move(one));
  }
  std::cout << json.dump(2) << '\n';
}

}  // namespace

int stream(const StreamOptions& options, Interrupt& interrupt) {
  const PresetLibrary all = library();
  const bool resumed = !options.resume.empty();
  const std::string folder = options.folder.empty() ? options.resume : options.folder;
  if (options.replace && options.folder.empty()) usage_error("--replace", "belongs to --export.");
  if (!options.checkpoint_every.empty() && folder.empty()) usage_error("--checkpoint-every", "belongs to --export.");
  if (!options.folder.empty() && options.folder != options.resume && holds_stream(folder) && !options.replace)
    usage_error("--export", "is " + folder + ", which has a stream: go on from it with --resume " + shell_word(folder) +
                                ", give another folder, or --replace.");
  const double every = options.checkpoint_every.empty() ? 60.0 : positive("--checkpoint-every", options.checkpoint_every);
  const StreamRequest request = resumed ? resumed_request(options, all) : stream_request_of(options, all);
  const auto made = resumed ? resume_stream(builtin_registry(), request, options.resume)
                            : std::make_unique<StreamRun>(builtin_registry(), request, nullptr);
  StreamRun& running = *made;
  KeptStream kept(running, folder, every);
  if (!folder.empty()) check_stream_export(running, folder);
  if (!options.json)
    std::cout << heading(running.title()) << " learns from " << request.source.id
              << (request.source.argument.empty() ? "" : ":" + request.source.argument) << " by " << request.options.rule << ", seed "
              << request.run.seed << std::endl;
  interrupt.enter(Interrupt::Phase::training);
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const std::int64_t begun_at = running.steps();
  const auto begun = Clock::now();
  auto told = begun;
  StreamPace pace(request.pace);
  std::exception_ptr failed;
  try {
    while (!running.done() && !interrupt.token().stop_requested()) {
      running.advance(interrupt.token());
      const auto now = Clock::now();
      if (terminal && now - told > std::chrono::milliseconds(100)) {
        told = now;
        const double reached = static_cast<double>(running.steps() - begun_at) / std::chrono::duration<double>(now - begun).count();
        std::fprintf(stderr, "\r\033[K%lld steps, %s steps/s, error of the last ones %s", static_cast<long long>(running.steps()),
                     number_text(reached, 3).c_str(), number_text(running.errors()[running.best()].faded()[0], 4).c_str());
        std::fflush(stderr);
      }
      if (!running.done() && kept.due()) kept.write();
      if (!running.done()) pace.wait(running.steps(), interrupt.token());
    }
  } catch (const Error&) {  // the source's: what was learned is written first
    failed = std::current_exception();
  }
  if (terminal) std::fputs("\r\033[K", stderr);
  interrupt.enter(Interrupt::Phase::writing);
  const bool moved = running.steps() > begun_at || !resumed;
  if (!folder.empty() && moved) kept.write();
  if (options.json)
    print_json(running);
  else
    print_summary(running);
  if (!folder.empty() && !options.json)
    std::cout << "Wrote " << folder << (running.done() ? "" : "; go on with: reclab stream --resume " + shell_word(folder)) << '\n';
  std::cout.flush();
  if (failed) std::rethrow_exception(failed);
  const auto diverged = running.predictors()[running.best()].diverged;
  if (diverged >= 0) {
    std::cerr << "reclab: no learner is finite any more, the last of them since step " << diverged
              << ": choose a smaller rate (--lr), or clip the gradient (--clip 1).\n";
    return 1;
  }
  if (running.done()) return 0;
  std::cerr << "stopped after step " << running.steps() << (folder.empty() ? "; nothing was kept, for which --export DIR is needed" : "")
            << std::endl;
  return interrupted_status;
}

}  // namespace reclab::cli
