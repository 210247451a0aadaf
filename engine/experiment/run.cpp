// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <ranges>
#include <utility>

#include "array/stop.h"
#include "execution/rollout.h"
#include "experiment/command/command.h"
#include "experiment/device.h"
#include "experiment/experiment.h"
#include "experiment/prepared.h"
#include "experiment/record/analysis.h"
#include "experiment/standing.h"
#include "experiment/weights/naming.h"
#include "experiment/weights/weights.h"
#include "models/registry.h"
#include "models/stack.h"
#include "sequence/elapsed.h"
#include "trace/input_scale.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The limit for the eigenvalues of one step, above which states and gradients are published before them; seconds.
constexpr double focus_seconds = 0.1;

/// "2nd", "3rd", "11th", "21st"
std::string ordinal(std::int64_t n) {
  const std::int64_t tens = n % 100, ones = n % 10;
  return std::to_string(n) + (tens >= 11 && tens <= 13 ? "th" : ones == 1 ? "st" : ones == 2 ? "nd" : ones == 3 ? "rd" : "th");
}

class Run {
 public:
  /// `where`: is kept up to date with where the run is, in words. `said`: to begin the notes with.
  Run(const Registry& registry, const RunRequest& request, const Progress& progress, std::stop_token stop, const Publish& publish,
      StandingModel& standing, std::string& where, const std::string& said)
      : request_(request),
        prepared_(registry, request, {}, standing.structure()),
        publish_(publish),
        standing_(standing),
        record_(request_, prepared_, progress, std::move(stop), where) {
    if (!said.empty()) info_.notes.push_back(said);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() { standing_.end_run(); }

  RunResult operator()() {
    describe();
    analyses_ = analyses_of(record_);
    plan();
    RunResult result;
    try {
      record();
      for (const auto& [key, values] : states_) result.state[key] = state_array(key, values);
      if (info_.outcome == Outcome::finished) analyse();
    } catch (const Cancelled&) {
      info_.outcome = Outcome::cancelled;
      info_.sentence = "cancelled after " + plural(done_steps_, "step") + " of " + std::to_string(request_.sequence->length);
      if (!finished_) finish(done_steps_);
    }
    record_.report(1.0, "done");
    // When nothing came after the last stage that was published, that is the result.
    const bool same = published_ && published_->arrays() == record_.trace.arrays() && published_->info.notes == info_.notes &&
                      published_->info.outcome == info_.outcome;
    result.trace = same ? published_ : std::make_shared<const Trace>(record_.trace);
    return result;
  }

 private:
  const RunRequest& request_;
  Prepared prepared_;
  const Publish& publish_;
  StandingModel& standing_;
  Record record_;
  RunInfo& info_ = record_.trace.info;
  std::vector<std::unique_ptr<Analysis>> analyses_;
  TracePtr published_;
  Form form_ = Form::sequential;
  Rollout* rollout_ = nullptr;
  std::map<std::string, std::vector<std::complex<double>>> states_;
  std::int64_t done_steps_ = 0;
  bool finished_ = false;

  void publish() {
    if (!publish_) return;
    published_ = std::make_shared<const Trace>(record_.trace);
    publish_(published_);
  }

  void describe() {
    const Sequence& sequence = request_.sequence;
    prepared_.describe(request_, info_);
    info_.input_name = sequence.name;
    info_.input_sha256 = sequence.sha256;
    if (sequence.standardised) {
      info_.input_mean = sequence.mean;
      info_.input_deviation = sequence.deviation;
    }
    info_.missing = sequence.missing;
    info_.loss = std::string(to_string(prepared_.loss.kind())) + ": " + prepared_.loss.formula();
    info_.length = sequence.length;
    info_.layers = std::ssize(prepared_.shape_network->layers());
    for (const auto& layer : prepared_.shape_network->layers()) info_.each_layer.push_back({layer.name, layer.reversed});
    info_.command = command_of(request_, info_.device);
    for (std::string& note : missing_notes(info_.missing)) info_.notes.push_back(std::move(note));
    if (!prepared_.readout_note.empty()) info_.notes.push_back(prepared_.readout_note);
    if (const std::string scale = input_scale_of(info_); !scale.empty()) info_.notes.push_back(input_scale_note(scale));
    if (prepared_.head_without_target() > 0)
      info_.notes.emplace_back("The output is that of the head that came with the weights; the loss compares it with no target.");
    record_.trace.time_name = sequence.time_name;
    record_.trace.time_unit = sequence.time_unit;
    record_.trace.input_names = sequence.names;

    if (request_.form == "auto") {
      const auto forms = prepared_.shape_network->forms();
      // For recording a run, the form that makes the states at once; a scan does more work than a loop on one processor.
      form_ = forms.front();
    } else {
      form_ = form_from(request_.form);
    }
    require_form(*prepared_.shape_network, form_, request_.preset.id);
    info_.form = std::string(to_string(form_));
    info_.record_form = info_.form;
    if ((form_ == Form::scan || form_ == Form::chunkwise) && scans_are_one(prepared_, request_))
      info_.notes.emplace_back(
          "On CUDA the scan and the chunkwise form of this model are one kernel: chunks that are joined by their last states.");
    for (int layer = 0; layer < static_cast<int>(info_.layers); ++layer) {
      const auto memories = prepared_.shape_network->memories(layer);
      const bool invariant = std::all_of(memories.begin(), memories.end(), [](const Memory* m) { return !m->transition().varies; });
      info_.spectra.push_back({.continuous = false, .per_step = !invariant, .of = prepared_.shape_network->spectrum(layer)});
      if (const Flow* flow = prepared_.shape_network->flow(layer)) {
        info_.spectra.back().continuous = true;
        info_.spectra.back().rule = to_string(flow->rule);
        info_.spectra.back().share = flow->share;
      }
    }
    if (uneven(sequence.time)) {
      char unit[32];
      std::snprintf(unit, sizeof unit, "%.6g", typical_step(sequence.time));
      const std::string column = "The steps of the time column \"" + sequence.time_name + "\" are unequal";
      if (prepared_.shape_network->knows_time()) {
        std::string note = column + ": the model is given the elapsed times; the median step is " + unit +
                           (sequence.time_unit.empty() ? "" : " " + sequence.time_unit) + ".";
        // A part of the sequence cannot know the median of all of it.
        if (std::ranges::any_of(prepared_.shape_network->elapsed(), [](const Network::ElapsedVar& wanted) { return wanted.unit == 0.0; })) {
          char exact[32];
          *std::to_chars(exact, exact + sizeof exact - 1, typical_step(sequence.time)).ptr = '\0';
          note += std::string(" It is the unit: with time_unit=") + exact +
                  " parts of the sequence, each continued from the one before, give the same to the bit.";
        }
        info_.notes.push_back(std::move(note));
      } else
        info_.notes.push_back(column + ", which " + info_.title + " does not use: all steps count alike.");
    }
    if (std::ranges::any_of(prepared_.shape_network->layers(), &Network::LayerInfo::reversed) && !request_.state.empty())
      info_.notes.push_back(
          "The layers that run backward begin at the last step with the states given for them: what came after this sequence is not known "
          "to a continued run.");
  }

  /// Decides every how many steps a row is recorded, from the bytes of a row.
  void plan() {
    const std::int64_t length = request_.sequence->length;
    double row = 0.0;
    for (const auto& analysis : analyses_) {
      analysis->plan();
      row += analysis->bytes_a_row();
    }
    const double rows = static_cast<double>(length);
    std::int64_t every = request_.every;
    if (every <= 0) {
      const double limit = std::max<double>(1.0, static_cast<double>(request_.record_limit));
      every = static_cast<std::int64_t>(std::max(1.0, std::ceil(rows * row / limit)));
      if (every > 1)
        info_.notes.push_back("Every " + ordinal(every) + " step was recorded: all " + std::to_string(length) + " would take " +
                              std::to_string(static_cast<std::int64_t>(rows * row / 1048576.0)) + " MiB" +
                              Remedy{"; ", "", {"every", "1"}, " records them all"} + ".");
    }
    info_.every = record_.every = std::min(every, length);
    for (std::int64_t t = 0; t < length; ++t)
      if (record_.is_recorded(t)) {
        record_.trace.steps.push_back(t);
        record_.trace.time.push_back(request_.sequence->time[static_cast<std::size_t>(t)]);
      }
  }

  Rollout* make_rollout(Form form) {
    Rollout::Options options;
    options.form = form;
    // Norms of adjoints and transitions too are those of memories that keep their states.
    options.record = std::ranges::any_of(analyses_, [](const auto& analysis) { return analysis->of_states(); });
    options.network = prepared_.shape_network;
    InitialState initial;
    if (!request_.state.empty()) initial = load_state(request_.state, *prepared_.shape_network);
    options.cached_steps = initial.cached_steps;
    Rollout& made = standing_.rollout(prepared_, Batch(request_.sequence, prepared_.loss), options);
    made.set_initial(initial.values);
    return &made;
  }

  using Part = std::vector<Analysis*>;
  template <class F>
  Part those(const F& which) const {
    Part part;
    for (const auto& analysis : analyses_)
      if (which(*analysis)) part.push_back(analysis.get());
    return part;
  }

  /// Runs the rollout forward with some of the analyses. `of`: the place that a sentence about a divergence names.
  std::optional<Divergence> forward(const Part& part, const std::string& of, bool reported) {
    const std::int64_t length = request_.sequence->length;
    done_steps_ = 0;  // a cancelled run ends with the rows that have all arrays
    for (Analysis* analysis : part) analysis->begin(rollout_->network());
    return rollout_->forward(
        [&](const Rollout::Segment& segment) {
          for (Analysis* analysis : part) analysis->forward(segment);
          done_steps_ = segment.first + segment.steps;
          record_.where = "after step " + std::to_string(done_steps_ - 1) + of;
          if (reported) record_.report(0.4 * static_cast<double>(done_steps_) / static_cast<double>(length), "forward");
        },
        record_.stop);
  }

  void go_back(const Part& part) {
    if (std::ranges::none_of(part, [](const Analysis* analysis) { return analysis->goes_back(); })) return;
    record_.where = "on the way back, before step " + std::to_string(request_.sequence->length);
    const auto bad = rollout_->backward(
        [&](const Rollout::Segment& segment, int scale) {
          record_.where = "on the way back, before step " + std::to_string(segment.first);
          for (Analysis* analysis : part)
            if (analysis->goes_back()) analysis->backward(segment, scale);
        },
        record_.stop);
    if (bad && info_.sentence.empty()) info_.sentence = adjoint_sentence(*bad);
    for (Analysis* analysis : part) analysis->went_back(*rollout_);
  }

  void record() {
    const auto start = Clock::now();
    // Forms that never form the state leave the analyses of states to the sequential form on the same weights.
    const bool inside = forms_states(form_);
    rollout_ = make_rollout(form_);
    const Part first = those([&](const Analysis& one) { return inside || one.needs_outputs(); });
    const auto divergence = forward(first, "", true);
    info_.loss_value = rollout_->loss();
    for (Analysis* analysis : first) analysis->ran(rollout_->network());
    if (divergence) {
      info_.outcome = Outcome::diverged;
      info_.sentence = sentence(*divergence) + "; what came before it is shown";
      info_.seconds = since(start) - record_.excluded_seconds;
      return finish(divergence->good);
    }
    states_ = rollout_->final_states();
    if (rollout_->loss_step() >= 0)
      record_.note({Kind::gradient}, "The loss became non-finite at step " + std::to_string(rollout_->loss_step()) +
                                         ", where the output is still finite: its square is out of range.");
    go_back(first);
    info_.seconds = since(start) - record_.excluded_seconds;

    if (!inside) {
      info_.record_form = std::string(to_string(Form::sequential));
      info_.notes.push_back(
          "The " + info_.form +
          " form never forms the state: states, gates and their gradients were recorded by the sequential form on the same weights.");
      rollout_ = make_rollout(Form::sequential);
      const Part second = those([](const Analysis& one) { return one.needs_states(); });
      if (const auto bad = forward(second, " of the sequential form", false))
        throw Error("In the sequential form " + sentence(*bad) + ", in the " + info_.form + " form it did not: choose form sequential.");
      states_ = rollout_->final_states();
      go_back(second);
    }
    finish(request_.sequence->length);
  }

  /// The recording ends with the rows of so many steps.
  void finish(std::int64_t steps) {
    finished_ = true;
    Trace& trace = record_.trace;
    const auto rows = static_cast<std::int64_t>(std::lower_bound(trace.steps.begin(), trace.steps.end(), steps) - trace.steps.begin());
    trace.steps.resize(static_cast<std::size_t>(rows));
    trace.time.resize(static_cast<std::size_t>(rows));
    for (const auto& analysis : analyses_) analysis->finish(rows);
    std::int64_t bytes = rollout_ ? rollout_->bytes() : 0;
    for (const auto& array : trace.arrays()) bytes += array->size() * (array->is_complex() ? 16 : 8);
    info_.bytes = bytes;
  }

  /// The analyses that need passes of their own, with the first results published before.
  void analyse() {
    double seconds = 0.0;
    for (const auto& analysis : analyses_) seconds += analysis->seconds_at_focus();
    if (seconds > focus_seconds) publish();
    for (const auto& analysis : analyses_) analysis->at_focus();
    publish();
    for (const auto& analysis : analyses_)
      if (analysis->revisit(*rollout_)) publish();
  }

  TraceArray state_array(const std::string& key, const std::vector<std::complex<double>>& values) const {
    TraceArray array;
    array.key = key;
    for (const auto& state : prepared_.shape_network->states())
      if (Rollout::state_key(state) == key) {
        array.shape = state.shape;
        const std::int64_t row = count(state.shape);
        if (state.growing) array.shape.insert(array.shape.begin(), row ? static_cast<std::int64_t>(values.size()) / row : 0);
        array.text = state.text;
        array.axes = axes_of(array.shape, "unit");
        if (is_complex(state.initial.dtype())) {
          array.complex = std::make_shared<const std::vector<std::complex<double>>>(values);
        } else {
          std::vector<double> real;
          for (const auto& z : values) real.push_back(z.real());
          array.real = std::make_shared<const std::vector<double>>(std::move(real));
        }
      }
    return array;
  }
};

}  // namespace

std::shared_ptr<const Architecture> architecture_of(const Registry& registry, const Preset& preset) {
  if (preset.stack.empty()) return {std::shared_ptr<const void>(), &registry.find(preset.architecture)};
  std::vector<std::pair<const Architecture*, Hyper>> parts;
  for (const auto& [id, values] : preset.stack) {
    const Architecture& part = registry.find(id);
    Hyper hyper(part.hyper);
    for (const auto& [key, value] : values) hyper.set(key, value, id);
    parts.emplace_back(&part, std::move(hyper));
  }
  Architecture stack = stack_of(parts);
  stack.family = preset.family;
  stack.source = preset.source;
  return std::make_shared<const Architecture>(std::move(stack));
}

Hyper hyper_of(const Registry& registry, const Preset& preset, const std::vector<std::pair<std::string, std::string>>& set) {
  return hyper_of(*architecture_of(registry, preset), preset, set);
}

Hyper hyper_of(const Architecture& architecture, const Preset& preset, const std::vector<std::pair<std::string, std::string>>& set,
               Together together) {
  const std::string& model = preset.id.empty() ? architecture.id : preset.id;
  Hyper hyper(architecture.hyper);
  for (const auto& [key, value] : preset.hyper) hyper.set(key, value, model);
  for (const auto& [key, text] : set) hyper.set_text(key, text, model);
  if (architecture.check && together == Together::checked) architecture.check(hyper);
  return hyper;
}

namespace {

/// Outputs of the head that a preset has on its own task; 0: the task has no target.
std::int64_t outputs_of_task(const Preset& preset) {
  try {
    const Sequence sequence = make_task(preset.task, preset.task_options());
    return sequence.target_kind == TargetKind::none ? 0 : SequenceLoss(LossKind::task, sequence).outputs();
  } catch (const Error&) {  // a task that is not known here: the card is of the model
    return 0;
  }
}

/// What a card tells of: the network of a preset, with a head for the outputs of its task.
struct CardNetwork {
  CardNetwork(const Registry& registry, const Preset& preset, std::int64_t input_width)
      : kept(architecture_of(registry, preset)),
        hyper(hyper_of(*kept, preset, {})),
        outputs(outputs_of_task(preset)),
        network(*kept, hyper, options(input_width)) {}

  std::shared_ptr<const Architecture> kept;
  Hyper hyper;
  std::int64_t outputs;  ///< 0: the task has no target
  Network network;

 private:
  NetworkOptions options(std::int64_t input_width) const {
    NetworkOptions options;
    options.input = input_width;
    const bool tied = hyper.has("read_out") &&
                      hyper.choice("read_out") == "tied";  // a head without parameters of its own, for a target as wide as the input
    options.head = tied ? 0 : std::max<std::int64_t>(outputs, 1);
    return options;
  }
};

}  // namespace

ReferenceNames reference_names(const Registry& registry, const Preset& preset, std::int64_t input_width) {
  const CardNetwork of(registry, preset, input_width);
  ReferenceNames names;
  for (const auto& parameter : of.network.parameters()) names[parameter.name] = reference_names(of.network, parameter.name);
  return names;
}

Card card(const Registry& registry, const Preset& preset, std::int64_t input_width) {
  const CardNetwork of(registry, preset, input_width);
  const Architecture& architecture = *of.kept;
  const Hyper& hyper = of.hyper;
  const std::int64_t outputs = of.outputs;
  const Network& network = of.network;
  Card card;
  card.id = preset.id;
  card.title = preset.title.empty() ? architecture.title : preset.title;
  card.family = preset.family.empty() ? architecture.family : preset.family;
  card.architecture = architecture.id;
  card.idea = preset.idea;
  card.equations = architecture.equations;
  card.notes = architecture.notes;
  card.hyper = architecture.hyper;
  for (auto& spec : card.hyper) spec.standard = hyper.value(spec.key);
  const auto when = [&](const std::string& name) -> std::string {
    if (name.starts_with("head/"))
      return "where the sequence has a target, or weights from a file have it, with a row for each output" +
             (outputs ? " (" + std::to_string(outputs) + " in the task " + preset.task + ")" : std::string());
    return name.starts_with("encoder") ? "where what it reads is not as wide as the model" : "";
  };
  for (const auto& parameter : network.parameters())
    card.parameters.push_back({parameter.name, parameter.var.shape(), parameter.text, when(parameter.name)});
  // Of one layer: the first, and of a stack or of two directions, the first of each.
  const auto& layers = network.layers();
  const auto shown = [&](int layer) { return layers[static_cast<std::size_t>(std::max(layer, 0))].first; };
  const bool several = std::ranges::count(layers, true, &Network::LayerInfo::first) > 1;
  const auto named = [&](int layer, const std::string& name) { return several ? std::to_string(std::max(layer, 0)) + "/" + name : name; };
  for (const auto& state : network.states())
    if (shown(state.layer))
      card.states.push_back({named(state.layer, state.name), state.row_shape(), is_complex(state.initial.dtype()),
                             static_cast<bool>(state.trajectory) || state.memory != nullptr, state.text});
  for (const auto& gate : network.gates())
    if (shown(gate.layer))
      card.gates.push_back(
          {named(gate.layer, gate.name), Shape(gate.var.shape().begin() + 2, gate.var.shape().end()), gate.low, gate.high, gate.text});
  card.spectrum = architecture.spectrum;
  // Where no layer has one because of this preset's settings, the reason that its run gives.
  const auto all = std::views::iota(0, static_cast<int>(layers.size()));
  const auto has_none = [&](int layer) { return network.spectrum(layer).starts_with("none"); };
  const auto by_settings = std::ranges::find_if(
      all, [&](int layer) { return network.spectrum(layer) != layers[static_cast<std::size_t>(layer)].architecture->spectrum; });
  if (by_settings != all.end() && std::ranges::all_of(all, has_none)) card.spectrum = network.spectrum(*by_settings);
  for (const Form form : network.forms()) card.forms.emplace_back(to_string(form));
  // A preset of another paper than its architecture's says so.
  card.source = preset.source.year && preset.source.year != architecture.source.year ? preset.source : architecture.source;
  return card;
}

void check_files(const Registry& registry, const RunRequest& request) {
  RunRequest on_cpu = request;  // whether files fit is no question of a device
  on_cpu.device = "cpu";
  const Structure structure(registry, on_cpu);
  if (!request.weights.empty() && !request.learned) structure.loaded(on_cpu);
  if (!request.state.empty()) load_state(request.state, *structure.shape_network);
}

std::vector<std::string> settings_without_effect(const Registry& registry, const RunRequest& request) {
  std::vector<std::string> keys;
  if (request.weights.empty() && !request.learned) return keys;
  for (const auto& row : architecture_of(registry, request.preset)->hyper)
    if (row.initialisation_only) keys.push_back(row.key);
  if (!request.new_head) keys.emplace_back("seed");  // which a head is drawn from
  return keys;
}

RunResult run(const Registry& registry, const RunRequest& request, const Progress& progress, std::stop_token stop, const Publish& publish,
              StandingModel* standing) {
  const StopScope scope(stop);
  StandingModel own;
  if (progress) progress(0.0, "drawing the weights");
  std::string where = "before the first step";
  try {
    return or_on_cpu(request, "run", where, [&](const RunRequest& asked, const std::string& said) {
      where = "before the first step";
      return Run(registry, asked, progress, stop, publish, standing ? *standing : own, where, said)();
    });
  } catch (const Cancelled&) {  // while the weights were drawn, so that there is nothing to show
    auto trace = std::make_shared<Trace>();
    trace->info.preset = request.preset.id;
    trace->info.length = request.sequence->length;
    trace->info.outcome = Outcome::cancelled;
    trace->info.sentence = "cancelled before the first step";
    return {std::move(trace), {}};
  }
}

}  // namespace reclab
