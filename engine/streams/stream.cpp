// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/stream.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include "array/error.h"
#include "execution/model.h"
#include "learning/learning_rule.h"
#include "learning/trainer.h"

namespace reclab {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t usual_truncation = 20, longest_block = 100'000, most_features = 256;

/// A sequence of the stream's form, with the steps that there are.
Sequence sequence_of(const StreamForm& form, const StreamBlock& block) {
  Sequence sequence;
  sequence.name = "the stream";
  sequence.length = block.steps;
  sequence.width = form.width();
  sequence.names = form.names;
  sequence.mean.assign(form.names.size(), 0.0);
  sequence.deviation.assign(form.names.size(), 1.0);
  sequence.input = block.input;
  sequence.time.resize(static_cast<std::size_t>(block.steps));
  std::iota(sequence.time.begin(), sequence.time.end(), 0.0);
  sequence.target_kind = form.target_kind;
  sequence.target_width = form.target_width;
  sequence.classes = form.classes;
  sequence.target = block.target;
  sequence.mask.assign(block.counts.begin(), block.counts.end());
  return sequence;
}

StreamBlock zeros_of(const StreamForm& form) {
  StreamBlock block;
  block.add({.input = std::vector<double>(form.names.size()), .target = std::vector<double>(static_cast<std::size_t>(form.target_width))});
  return block;
}

void softmax(std::span<double> values) {
  const double largest = std::ranges::max(values);
  double sum = 0.0;
  for (double& x : values) sum += x = std::exp(x - largest);
  for (double& x : values) x /= sum;
}

}  // namespace

/// A model with its rule and optimiser.
struct StreamRun::Learner {
  Learner(const Prepared& prepared, const StreamForm& form, const TrainingOptions& asked, bool reset)
      : options(asked),
        model(prepared.architecture, prepared.hyper, prepared.parameters, prepared.backend, prepared.real),
        optimiser(model, options.optimiser),
        rule(stream_rule({model, form, options, reset})) {}

  /// Throws TrainingDiverged.
  void change(std::int64_t step) {
    Backend& backend = model.backend();
    std::span<const DeviceArray> gradients = rule->gradients();
    const double norm = norm_of(backend, model.real(), gradients);
    if (!std::isfinite(norm)) throw TrainingDiverged(step, "the gradient's norm became non-finite", "gradient");
    if (options.clip_norm > 0.0 && norm > options.clip_norm) {
      clipped.resize(gradients.size());
      for (std::size_t i = 0; i < gradients.size(); ++i)
        backend.unary(Unary::affine, model.real(), gradients[i].entries(), gradients[i].data(),
                      clipped[i].resize(backend, model.real(), gradients[i].entries()), options.clip_norm / (norm + 1e-6), 0.0);
      gradients = clipped;
    }
    optimiser.step(options.rate.rate, gradients);
  }

  /// False where the kept weights are not finite: the next step would have found that.
  bool keep(StreamState& state) {
    bool finite = true;
    const Parameters now = model.parameters();
    for (const auto& entry : now.entries()) {
      std::vector<double> values = entry.values;
      state.same("weight/" + entry.name, values);
      finite = finite && std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
      if (state.reads() && finite) model.set(entry.name, values);
    }
    if (state.reads() && !finite) return false;
    std::int64_t steps = optimiser.steps();
    auto memory = optimiser.memory();
    state.whole("changes", steps);
    for (auto& [name, values] : memory) state.same("optimiser/" + name, values);
    if (state.reads()) optimiser.restore(steps, memory);
    state.in("rule", [&] { rule->keep(state); });
    return true;
  }

  TrainingOptions options;
  Model model;
  Optimiser optimiser;
  std::unique_ptr<StreamRule> rule;
  std::vector<DeviceArray> clipped;
};

StreamRun::~StreamRun() = default;

std::unique_ptr<StreamRun::Learner> StreamRun::learner(const Prepared& prepared, const Pace& pace, bool learns) const {
  const std::int64_t truncate = pace.truncate;
  TrainingOptions options = request_.options;
  options.rate.rate = pace.rate;
  options.advance = pace.advance;
  options.seed = request_.run.seed;
  if (!learns) {
    options.rule = "bptt";
    options.truncate = options.advance = block_steps_;
  } else if (const LearningRuleInfo& info = learning_rule(options.rule); info.online) {
    if (truncate > 0)
      throw Error(info.title +
                      " goes forward with the derivatives of all steps, so there is nothing to truncate: choose the rule bptt, or "
                      "no truncation.",
                  {.parameter = "truncate", .value = std::to_string(truncate), .range = "0"});
    options.advance = std::max<std::int64_t>(1, options.advance);
  } else if (info.id != "bptt") {
    throw Error(info.title + " takes whole sequences, and a stream has no end: choose the rule bptt, or one that is online.",
                {.parameter = "rule", .value = info.id});
  } else {
    options.truncate = truncate > 0 ? truncate : usual_truncation;
    if (options.advance == 0) options.advance = options.truncate;
    if (options.advance > options.truncate)
      throw Error("advance = " + std::to_string(options.advance) + " is more steps than truncate = " + std::to_string(options.truncate) +
                      ", so some would be learned from by no change: choose advance up to truncate.",
                  {.parameter = "advance", .value = std::to_string(options.advance), .range = "1 to " + std::to_string(options.truncate)});
  }
  return std::make_unique<Learner>(prepared, form(), options, learns && request_.reset);
}

std::vector<StreamRun::Pace> StreamRun::paces() const {
  const auto several = [](const auto& list, auto one) { return list.empty() ? std::vector{one} : list; };
  std::vector<Pace> all;
  for (const double rate : several(request_.rates, request_.options.rate.rate))
    for (const std::int64_t truncate : several(request_.truncations, request_.options.truncate))
      for (const std::int64_t advance : several(request_.advances, request_.options.advance)) all.push_back({rate, truncate, advance});
  return all;
}

/// By the values of which there are several.
void StreamRun::name_learner(const Pace& pace) {
  std::string name, text;
  const auto add = [&](std::size_t values, const std::string& key, const std::string& value, const std::string& words) {
    if (values < 2) return;
    name += (name.empty() ? "" : ",") + key + "=" + value;
    text += (text.empty() ? "" : ", ") + words;
  };
  add(request_.rates.size(), "rate", as_text(pace.rate), "rate " + as_text(pace.rate));
  add(request_.truncations.size(), "truncate", std::to_string(pace.truncate), "truncated after " + std::to_string(pace.truncate));
  add(request_.advances.size(), "advance", std::to_string(pace.advance), "changed every " + plural(pace.advance, "step"));
  predictors_.push_back({.name = name.empty() ? "model" : name, .text = text.empty() ? title_ : text, .learns = true});
}

StreamRun::StreamRun(const Registry& registry, const StreamRequest& request, StreamState* state, std::stop_token stop)
    : request_(request), source_(open_source(request.source)) {
  if (!request_.run.state.empty()) throw Error("a stream begins from rest: leave out the state.", {.parameter = "state"});
  const bool again = can_be_read_again(request_.source);
  if (request_.offline > 0 && !again)
    throw Error("the source " + request_.source.id +
                    " cannot be read twice, so nothing can be trained beforehand on it: choose a file or a "
                    "generator.",
                {.parameter = "offline"});
  RunRequest run = request_.run;
  run.sequence = sequence_of(form(), zeros_of(form()));
  run.loss = LossKind::task;
  const Prepared prepared(registry, run);
  if (!prepared.readout_note.empty())
    throw Error(prepared.architecture.id +
                    " has a read-out that is fitted to a whole target at once, and a stream has none: choose another "
                    "model.",
                {.model = prepared.architecture.id});
  title_ = run.preset.title.empty() ? prepared.architecture.title : run.preset.title;
  architecture_ = prepared.owner;

  for (const Pace& pace : paces()) {
    learners_.push_back(learner(prepared, pace, true));
    block_steps_ = std::lcm(block_steps_, learners_.back()->options.advance);
    if (block_steps_ > longest_block)
      throw Error("the weights of these learners change together only after more than " + std::to_string(longest_block) +
                      " steps: choose truncations that divide each other, or one advance for all.",
                  {.parameter = "truncations"});
    name_learner(pace);
  }
  if (request_.offline > 0) {
    learners_.push_back(learner(prepared, {request_.options.rate.rate, 0, 0}, false));
    predictors_.push_back(
        {.name = "offline", .text = "trained on the first " + std::to_string(request_.offline) + " steps, then left as it is"});
    if (!state) train_offline(*learners_.back(), stop);
  }
  predictors_.push_back({.name = "last", .text = "the last value"});
  const std::int64_t past = std::clamp<std::int64_t>(most_features / form().width(), 1, request_.past);
  const std::string of = " on the last " + plural(past, "step");
  predictors_.push_back({.name = "ridge", .text = "least squares" + of});
  predictors_.push_back({.name = "fading-ridge", .text = "least squares that fade by " + as_text(request_.forget) + of});
  for (const double forget : {1.0, request_.forget}) ridges_.emplace_back(form().width(), form().outputs(), past, request_.ridge, forget);
  last_.assign(static_cast<std::size_t>(form().outputs()), 0.0);
  for (const Predictor& predictor : predictors_) {
    PrequentialOptions options = request_.errors;
    if (predictor.name == "offline") options.burn_in = std::max(options.burn_in, request_.offline);
    errors_.emplace_back(options);
  }
  curve_ = PrequentialCurve(predictors_.size());
  drifts_.emplace(predictors_.size(), form().concepts.size());
  if (request_.ring > 0) ring_.emplace(form(), request_.ring, predictors_.size());
  predictions_.resize(predictors_.size());
  if (state) keep(*state);
}

/// In batches of windows out of the first steps, in any order.
void StreamRun::train_offline(Learner& learner, std::stop_token stop) const {
  const auto source = open_source(request_.source);
  StreamBlock block;
  StreamStep step;
  while (block.steps < request_.offline) {
    if (source->next(step, stop) != StreamSource::Next::step)
      throw Error("The source ended after " + std::to_string(block.steps) + " steps, and " + std::to_string(request_.offline) +
                      " were to be trained on" + Remedy{": ", "choose fewer (", {"offline"}, ")"} + ".",
                  {.parameter = "offline"});
    block.add(step);
  }
  WindowOptions windows{.standardise = false, .seed = request_.run.seed};
  TrainingOptions options = request_.options;
  windows.length =
      std::min(longest_window(block.steps, true, windows),
               std::max({std::int64_t{60}, options.truncate, request_.truncations.empty() ? 0 : std::ranges::max(request_.truncations)}));
  options.rule = "bptt";
  options.truncate = options.advance = 0;
  options.batch = 32;
  const auto examples = window_examples(std::make_shared<const Sequence>(sequence_of(form(), block)), windows);
  Trainer trainer(learner.model, *examples, options);
  for (std::int64_t i = 0; i < request_.offline_batches; ++i) trainer.step(stop);
}

void StreamRun::predict(std::size_t predictor, Learner& learner) {
  Predictor& of = predictors_[predictor];
  const auto outputs = static_cast<std::size_t>(form().outputs());
  std::vector<double>& all = predictions_[predictor];
  for (std::int64_t t = 0; t < block_.steps && of.diverged < 0; t += learner.options.advance) {
    const std::int64_t steps = std::min(learner.options.advance, block_.steps - t);
    const auto to = std::span(all).subspan(static_cast<std::size_t>(t) * outputs, static_cast<std::size_t>(steps) * outputs);
    try {
      if (learner.rule->take(block_, t, steps, to, of.learns)) learner.change(block_.first + t);
    } catch (const TrainingDiverged&) {
      of.diverged = block_.first + t;
      break;
    }
    if (form().target_kind == TargetKind::classify)
      for (std::size_t i = 0; i < to.size(); i += outputs) softmax(to.subspan(i, outputs));
  }
}

/// The baselines' predictions, and all errors, step after step.
void StreamRun::compare() {
  const auto outputs = static_cast<std::size_t>(form().outputs()), width = static_cast<std::size_t>(form().width()),
             target_width = static_cast<std::size_t>(form().target_width), first = learners_.size();
  std::vector<double> wanted(outputs), firsts(predictors_.size());
  for (std::size_t t = 0; t < static_cast<std::size_t>(block_.steps); ++t) {
    const std::int64_t step = block_.first + static_cast<std::int64_t>(t);
    const auto row = [&](std::size_t predictor) { return std::span(predictions_[predictor]).subspan(t * outputs, outputs); };
    const auto input = std::span(block_.input).subspan(t * width, width),
               target = std::span(block_.target).subspan(t * target_width, target_width);
    std::ranges::copy(last_, row(first).begin());
    for (std::size_t i = 0; i < ridges_.size(); ++i) ridges_[i].predict(input, row(first + 1 + i));
    if (block_.counts[t]) {
      for (std::size_t p = 0; p < predictors_.size(); ++p) {
        const Errors errors = errors_of(form(), row(p), target);
        firsts[p] = errors[0];
        errors_[p].add(step, errors);
      }
      drifts_->add(step, block_.regimes[t], firsts);
      spread(form(), target, wanted);
      for (OnlineRidge& ridge : ridges_) ridge.learn(wanted);
      last_ = wanted;
    }
    if (curve_.due(step + 1)) curve_.add(step + 1, errors_);
  }
}

void StreamRun::advance(std::stop_token stop) {
  block_.clear(steps_);
  const std::int64_t wanted = request_.length > 0 ? std::min(block_steps_, request_.length - steps_) : block_steps_;
  StreamStep step;
  std::exception_ptr failed;
  try {
    while (block_.steps < wanted) {
      const StreamSource::Next next = source_->next(step, stop);
      ended_ = next == StreamSource::Next::ended;
      if (next != StreamSource::Next::step) break;
      block_.add(step);
    }
  } catch (const Error&) {  // the steps before it are learned from
    failed = std::current_exception();
  }
  for (std::vector<double>& all : predictions_) all.assign(static_cast<std::size_t>(block_.steps * form().outputs()), nan);
  for (std::size_t i = 0; i < learners_.size(); ++i) predict(i, *learners_[i]);
  ended_ = ended_ || std::ranges::none_of(predictors_, [](const Predictor& one) { return one.learns && one.diverged < 0; });
  compare();
  if (ring_) ring_->add(block_, predictions_);
  steps_ += block_.steps;
  if (failed) std::rethrow_exception(failed);
}

std::size_t StreamRun::best() const {
  std::size_t found = 0;
  for (std::size_t i = 1; i < predictors_.size() && predictors_[i].learns; ++i)
    if (predictors_[found].diverged >= 0 || (predictors_[i].diverged < 0 && errors_[i].total()[0] < errors_[found].total()[0])) found = i;
  return found;
}

Parameters StreamRun::weights(std::size_t learner) const { return learners_[learner]->model.parameters(); }

std::int64_t StreamRun::bytes() const {
  std::int64_t total = 0;
  for (const auto& one : learners_) total += one->rule->bytes() + one->optimiser.bytes() + one->model.bytes();
  return total;
}

void StreamRun::keep(StreamState& state) {
  state.whole("steps", steps_);
  std::int64_t ended = ended_;
  state.whole("ended", ended, 0, 1);
  ended_ = ended != 0;
  state.in("source", [&] { source_->keep(state); });
  state.same("last", last_);
  for (std::size_t i = 0; i < learners_.size(); ++i) {
    std::int64_t& diverged = predictors_[i].diverged;
    state.whole("diverged/" + std::to_string(i), diverged, -1);
    if (diverged < 0) state.in("learner/" + std::to_string(i), [&] { diverged = learners_[i]->keep(state) ? -1 : steps_; });
  }
  for (std::size_t i = 0; i < ridges_.size(); ++i) state.in("ridge/" + std::to_string(i), [&] { ridges_[i].keep(state); });
  for (std::size_t i = 0; i < errors_.size(); ++i) state.in("errors/" + std::to_string(i), [&] { errors_[i].keep(state); });
  state.in("curve", [&] { curve_.keep(state); });
  state.in("drifts", [&] { drifts_->keep(state); });
  if (ring_) state.in("ring", [&] { ring_->keep(state); });
}

}  // namespace reclab
