// SPDX-License-Identifier: GPL-3.0-or-later
#include "evaluation/evaluation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "array/error.h"
#include "array/stop.h"
#include "evaluation/judged.h"
#include "experiment/command/command.h"
#include "experiment/command/typed_run.h"
#include "experiment/training/learned.h"
#include "learning/baselines.h"

namespace reclab {
namespace {

/// The request of a line "ID --weights FILE".
RunRequest request_of_line(const PresetLibrary& presets, const std::string& line) {
  const TypedRun typed = typed_run("reclab run " + line);
  for (const PlanField<SequenceChoice>& field : sequence_fields())
    if (is_given(typed.given, field.flag))
      throw Error(
          "The model \"" + line + "\" brings a sequence of its own: all are judged on the same, so leave out its " + field.row.key + ".",
          {.parameter = "others", .value = line});
  return request_of(typed.given, presets.find(typed.id));
}

std::string weights_in_words(const RunRequest& request, const std::string& readout) {
  if (request.learned) return "of step " + std::to_string(request.learned->step) + " of a training";
  if (request.preset.is_trained && request.weights == request.preset.trained->weights) return "the trained ones that it brings";
  if (!request.weights.empty()) return request.weights.string();
  return "drawn from seed " + std::to_string(request.seed) +
         (readout.empty() ? ", not trained" : "; its read-out is fitted to one sequence");
}

JudgedModel judged_of(const Registry& registry, RunRequest request, const Examples& examples) {
  if (!request.state.empty()) throw Error("an evaluation begins from rest: leave out the state.", {.parameter = "state"});
  request.sequence = examples.training(0, 0);
  request.loss = LossKind::task;
  if (request.sequence->target_kind == TargetKind::none)
    throw Error(request.sequence->name + " has no target, so there is nothing to judge by: choose a task with a target, or a file.",
                {.parameter = "task", .value = request.sequence->name});
  JudgedModel made;
  made.prepared = std::make_unique<Prepared>(registry, request);
  const Prepared& prepared = *made.prepared;
  made.form = form_from(request.form == "auto" ? "sequential" : request.form);
  require_form(*prepared.shape_network, made.form, prepared.architecture.id);
  made.model = std::make_unique<Model>(prepared.architecture, prepared.hyper, prepared.parameters, prepared.backend, prepared.real);
  made.about = {.name = request.preset.id,
                .title = request.preset.title.empty() ? prepared.architecture.title : request.preset.title,
                .weights = weights_in_words(request, prepared.readout_note),
                .form = std::string(to_string(made.form)),
                .dtype = prepared.real == DType::f64 ? "float64" : "float32",
                .device = prepared.backend.device() == Device::cpu ? "cpu" : "cuda"};
  return made;
}

/// A file as it was measured, or nothing for a task.
std::shared_ptr<const Sequence> file_of(const SequenceChoice& choice) {
  if (!choice.is_file()) return nullptr;
  LoadOptions load = choice.load;
  load.standardise = false;
  return std::make_shared<const Sequence>(load_sequence(choice.file, load));
}

Judged judged_on(const SequenceChoice& choice, const std::shared_ptr<const Sequence>& file, const EvaluationPlan& plan,
                 std::int64_t length) {
  Judged made{.length = length};
  if (file) {
    WindowOptions windows = plan.windows;
    windows.length = length;
    windows.standardise = choice.load.standardise;
    made.examples = window_examples(file, windows);
    made.count = std::min(plan.sequences, made.examples->held_out_count());
    made.at = [examples = made.examples](std::int64_t i) { return examples->held_out(i); };
    return made;
  }
  TaskOptions options = choice.make;
  options.length = length;
  made.examples = task_examples(choice.task, options);
  const std::vector<std::uint64_t> seeds = plan.seeds.empty() ? std::vector{options.seed} : plan.seeds;
  made.count = plan.sequences * std::ssize(seeds);
  made.at = [task = choice.task, options, seeds, each = plan.sequences](std::int64_t i) {
    TaskOptions own = options;
    own.seed = seeds[static_cast<std::size_t>(i / each)];
    return evaluation_sequence(task, own, i % each);
  };
  return made;
}

/// A baseline that says something at every step.
template <class Outputs>
ScoreMeans means_of(const Judged& on, const Outputs& outputs) {
  ScoreMeans means;
  for (std::int64_t i = 0; i < on.count; ++i) {
    check_stop();
    const Sequence sequence = on.at(i);
    SequenceScore score(sequence);
    for (std::int64_t t = 0; t < sequence.length; ++t)
      if (sequence.mask[static_cast<std::size_t>(t)] != 0.0) score.add(t, outputs(sequence, t));
    means.add(score);
  }
  return means;
}

void add_baselines(EvaluationTable& table, const Judged& on, bool foretold) {
  const auto known = [&](const std::string& name, const std::string& words) {
    if (std::ranges::find(table.baselines, name, &EvaluatedModel::name) == table.baselines.end())
      table.baselines.push_back({.name = name, .title = words});
  };
  BestConstant constant;
  for (std::int64_t i = 0; i < on.count; ++i) {
    check_stop();
    constant.add(on.at(i));
  }
  if (constant.sequences() == 0) return;
  const Baseline best = constant.best();
  known("best constant", best.text);
  EvaluationRow row{.model = "best constant", .length = on.length, .from = on.length, .to = on.length, .sequences = constant.sequences()};
  row.loss.mean = best.loss;
  row.metric.mean = best.metric;
  table.rows.push_back(row);
  if (foretold) {
    known("last value", "the last value that was seen");
    add_rows(table, "last value", on.length, means_of(on, [](const Sequence& sequence, std::int64_t t) {
               return std::span(sequence.input)
                   .subspan(static_cast<std::size_t>(t * sequence.width), static_cast<std::size_t>(sequence.target_width));
             }));
  }
  if (const auto linear = LinearPredictor::fitted(*on.examples, on.at(0))) {
    known("linear predictor", linear->text());
    add_rows(table, "linear predictor", on.length,
             means_of(on, [&](const Sequence& sequence, std::int64_t t) { return linear->at(sequence, t); }));
  }
}

std::string data_in_words(const SequenceChoice& choice, const Judged& first, const EvaluationPlan& plan) {
  if (choice.is_file()) return plural(first.count, "window") + " of those that are held out: " + first.examples->text();
  const std::size_t seeds = std::max<std::size_t>(1, plan.seeds.size());
  return plural(plan.sequences, "sequence") + " of the task " + choice.task +
         (seeds > 1 ? " of each of " + std::to_string(seeds) + " seeds" : "") + ", drawn by no training";
}

std::string intervals_in_words(const EvaluationPlan& plan, bool shares, bool file) {
  char percent[16];
  std::snprintf(percent, sizeof percent, "%g", 100.0 * plan.confidence);
  return std::string(percent) + " % over sequences, Student's t" +
         (shares ? "; of an accuracy that is 0 or 1 in each sequence, Wilson's score interval" : "") +
         (file ? "; windows of one series depend on each other, so these are too narrow" : "");
}

/// "ID --weights FILE --set KEY=VALUE": the model of a request without its sequence.
std::string line_of(const RunRequest& request) {
  CommandLine line;
  line.model(request, request.device, {"loss", "every", "record", "state"});
  std::string text;
  bool keeps = true;
  for (const std::string& word : line.words()) {
    if (word.size() > 2 && word[0] == '-' && word[1] == '-')
      keeps = std::ranges::none_of(sequence_fields(), [&](const Field& field) { return field.flag == word.substr(0, word.find('=')); });
    if (keeps) text += (text.empty() ? "" : " ") + shell_word(word);
  }
  return text;
}

/// With the trainings that models learned in before it; nothing where two of these write into one folder.
std::string command_of(const RunRequest& request, const SequenceChoice& choice, EvaluationPlan plan,
                       const std::vector<JudgedRequest>& beside) {
  std::map<std::string, std::string> trainings;
  std::string before;
  const auto add = [&](const RunRequest& one) {
    if (!one.learned) return true;
    const auto [found, is_new] = trainings.try_emplace(one.learned->folder, one.learned->command);
    if (is_new) before += one.learned->command + " && ";
    return is_new || found->second == one.learned->command;
  };
  bool told = add(request);
  for (const JudgedRequest& one : beside) {
    told = add(one.request) && told;
    plan.others.push_back(line_of(one.request));
  }
  if (!told) return {};
  CommandLine line;
  line.model(request, request.device, {"loss", "every", "record", "state"});
  for (const auto& field : evaluation_fields())
    if (is_of(field, choice)) line.field(field, field.get(plan));
  return before + line.text("reclab evaluate");
}

}  // namespace

void add_rows(EvaluationTable& table, const std::string& model, std::int64_t length, const ScoreMeans& means) {
  for (const ScoredBy by : scored_by)
    for (const ScoreMeans::Part& part : means.of(by))
      if (part.loss.count() > 0)
        table.rows.push_back({model, length, by, part.from, part.to, part.loss.count(), part.loss.estimate(table.confidence),
                              part.metric.estimate(table.confidence, table.shares())});
}

EvaluationTable evaluate(const Registry& registry, const PresetLibrary& presets, const RunRequest& request, const EvaluationPlan& plan,
                         const Progress& progress, std::stop_token stop) {
  return evaluate(registry, presets, JudgedRequest{.request = request}, {}, plan, progress, std::move(stop));
}

EvaluationTable evaluate(const Registry& registry, const PresetLibrary& presets, const JudgedRequest& own,
                         const std::vector<JudgedRequest>& beside, const EvaluationPlan& asked, const Progress& progress,
                         std::stop_token stop) {
  const StopScope scope(stop);
  const RunRequest& request = own.request;
  EvaluationPlan plan = asked;
  const SequenceChoice choice = choice_of(request.sequence);
  const auto file = file_of(choice);
  const bool foretold = file && file->target_kind == TargetKind::none;
  if (plan.lengths.empty())
    plan.lengths = {file ? std::max<std::int64_t>(1, std::min(plan.windows.length, longest_window(file->length, !foretold, plan.windows)))
                         : choice.make.length};
  std::vector<JudgedRequest> requests{own};
  for (const std::string& line : plan.others) requests.push_back({{}, request_of_line(presets, line)});
  requests.insert(requests.end(), beside.begin(), beside.end());

  EvaluationTable table{.confidence = plan.confidence};
  std::vector<JudgedModel> models;
  double steps = 0.0, all = 0.0;
  for (const std::int64_t length : plan.lengths) {  // a length that there is not is said before anything is run
    const Judged on = judged_on(choice, file, plan, length);
    all += static_cast<double>(length * on.count * std::ssize(requests));
    if (!models.empty()) continue;
    table.data = data_in_words(choice, on, plan);
    table.metric = on.at(0).target_kind == TargetKind::classify ? "accuracy" : "squared error";
    for (const JudgedRequest& one : requests) {
      JudgedModel made = judged_of(registry, one.request, *on.examples);
      if (!one.name.empty()) made.about.name = one.name;
      const std::string id = made.about.name;
      for (int again = 2; std::ranges::find(table.models, made.about.name, &EvaluatedModel::name) != table.models.end(); ++again)
        made.about.name = id + "-" + std::to_string(again);
      table.models.push_back(made.about);
      models.push_back(std::move(made));
    }
  }
  table.intervals = intervals_in_words(plan, table.shares(), choice.is_file());
  table.command = command_of(request, choice, asked, beside);

  for (const std::int64_t length : plan.lengths) {
    const Judged on = judged_on(choice, file, plan, length);
    add_baselines(table, on, foretold && plan.windows.ahead >= 1);
    for (const JudgedModel& model : models) {
      ScoreMeans means;
      const JudgedRun run{.count = on.count,
                          .length = length,
                          .at = on.at,
                          .loss_of = [](const Sequence& sequence) { return std::make_unique<ScoringLoss>(sequence); },
                          .done = [&](std::int64_t, const Sequence&,
                                      const SequenceLoss& loss) { means.add(dynamic_cast<const ScoringLoss&>(loss).score()); },
                          .progress =
                              [&](std::int64_t done) {
                                if (progress)
                                  progress((steps + static_cast<double>(done * length)) / all,
                                           model.about.name + " on " + plural(length, "step"));
                              }};
      try {
        run_judged(model, run, plan.batch, stop);
        if (means.of(ScoredBy::length).empty())
          throw Error("The target counts at no step of these sequences: choose a longer one.", {.parameter = "length"});
        add_rows(table, model.about.name, length, means);
      } catch (const DeviceError&) {
        throw;
      } catch (const Error& error) {
        table.missing.push_back({model.about.name, length, error.sentence()});
      }
      steps += static_cast<double>(length * on.count);
    }
  }
  if (foretold && plan.windows.ahead == 1 && plan.horizon > 0) {
    plan.windows.standardise = choice.load.standardise;
    add_horizons(models, file, plan, plan.lengths.front(), table, stop);
  }
  return table;
}

}  // namespace reclab
