// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <limits>
#include <thread>
#include <utility>

#include "analysis/eigen.h"
#include "analysis/product.h"
#include "array/stop.h"
#include "experiment/command.h"
#include "experiment/device.h"
#include "experiment/experiment.h"
#include "experiment/prepared.h"
#include "experiment/reconstruction.h"
#include "experiment/rollout.h"
#include "experiment/weights.h"
#include "models/registry.h"
#include "models/stack.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr double log10_of_2 = 0.30102999566398119521;
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
/// What the rows of a dense analysis may take before fewer of them are computed, and what products of Jacobians may take at all unless they
/// are asked for by name; seconds. What an operation of eigenvalue_work() and of JacobianProduct::work() takes on one core of the slower kind.
constexpr double analysis_seconds = 10.0, product_seconds = 60.0, eigenvalue_operation = 1.5e-10, product_operation = 8e-11;
/// What a cell takes that is run forward and back for as many copies as it has states: an operation of one copy, a call, and an entry of what
/// a call makes.
constexpr double cell_operation = 1e-10, cell_call = 6e-7, cell_entry = 2e-10;
/// What the eigenvalues of one step may take before the states and gradients are published without waiting for them, and what they take at
/// most, in seconds a (size)^3.
constexpr double focus_seconds = 0.1, eigenvalue_cost = 4e-9;

/// "2nd", "3rd", "11th", "21st"
std::string ordinal(std::int64_t n) {
  const std::int64_t tens = n % 100, ones = n % 10;
  return std::to_string(n) + (tens >= 11 && tens <= 13 ? "th" : ones == 1 ? "st" : ones == 2 ? "nd" : ones == 3 ? "rd" : "th");
}
/// "40 s", "12 minutes"
std::string about(double seconds) {
  return seconds < 120.0 ? std::to_string(static_cast<long>(std::ceil(seconds))) + " s" : std::to_string(static_cast<long>(std::ceil(seconds / 60.0))) + " minutes";
}
double cores() { return std::max(1u, std::thread::hardware_concurrency()); }

/// An array that grows row by row until it goes into a trace.
struct Growing {
  TraceArray array;
  std::function<Var(const Network&)> of;  // the variable in the network of any segment: the shorter last one's may be numbered otherwise
  std::vector<double> real;
  std::vector<std::complex<double>> complex;
  bool is_complex = false;
  bool backward = false;  // row 0 of the variable is the last step

  void add(const Graph& graph, Var own, std::int64_t row, std::int64_t size) {
    Backend& backend = graph.backend();
    if (is_complex) {
      const auto values = to_complex(backend, own.dtype(), graph.value(own), size, row * size);
      complex.insert(complex.end(), values.begin(), values.end());
    } else {
      const auto values = to_double(backend, own.dtype(), graph.value(own), size, row * size);
      real.insert(real.end(), values.begin(), values.end());
    }
  }
};

/// An array whose first axis is time: axes and data from the rest.
TraceArray timed(std::string key, Shape shape, std::vector<Axis> axes, std::string unit, std::string text) {
  TraceArray array;
  array.key = std::move(key);
  array.shape = std::move(shape);
  array.shape.insert(array.shape.begin(), 0);
  array.axes = std::move(axes);
  array.axes.insert(array.axes.begin(), Axis{"time", "", {}});
  array.unit = std::move(unit);
  array.text = std::move(text);
  return array;
}

std::vector<Axis> axes_of(const Shape& shape, const std::string& one) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) axes.push_back({shape.size() == 1 ? one : one + " axis " + std::to_string(i + 1), "", {}});
  return axes;
}

/// At most `most` of the recorded steps, evenly, the last one always (0: all of them).
std::vector<std::int64_t> thinned(const std::vector<std::int64_t>& steps, std::int64_t most) {
  const auto n = static_cast<std::int64_t>(steps.size());
  if (most <= 0 || n <= most) return steps;
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < most; ++i) chosen.push_back(steps[static_cast<std::size_t>(most == 1 ? n - 1 : i * (n - 1) / (most - 1))]);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

/// That of a layer: its one memory's, or that of several memories which are all diagonal.
Transition transition_of(const std::vector<Memory*>& memories) {
  Transition all = Transition::diagonal(0, false);
  bool none = true, diagonal = true;
  for (const Memory* memory : memories) {
    Transition own = memory->transition();
    none = none && own.kind == Transition::Kind::none;
    diagonal = diagonal && own.kind != Transition::Kind::blocks;
    all.count += own.width();
    all.varies = all.varies || own.varies;
    if (memories.size() == 1) return own;
  }
  if (none) return Transition::none("it has no memory with a transition");
  return diagonal ? all : Transition::none("its memories have transitions of several kinds");
}
void factors_at(const std::vector<Memory*>& memories, std::int64_t t, std::span<std::complex<double>> factors) {
  std::size_t at = 0;
  for (const Memory* m : memories) {
    const auto n = static_cast<std::size_t>(m->transition().width());
    if (n) m->factors(t, factors.subspan(at, n));
    at += n;
  }
}
/// Puts the eigenvalues of one block where they stand among all of a step's: once for every column that it acts on.
void put_block(const Transition& of, std::int64_t block, const std::vector<std::complex<double>>& values, std::span<std::complex<double>> all) {
  for (std::int64_t column = 0; column < of.repeats; ++column) std::copy(values.begin(), values.end(), all.begin() + (block * of.repeats + column) * of.size);
}

class Run {
 public:
  /// `where`: is kept up to date with where the run is, in words. `said`: to begin the notes with.
  Run(const Registry& registry, const RunRequest& request, const Progress& progress, std::stop_token stop, const Publish& publish, std::string& where, const std::string& said)
      : request_(request), prepared_(registry, request), progress_(progress), stop_(std::move(stop)), publish_(publish), where_(where) {
    if (!said.empty()) trace_.info.notes.push_back(said);
  }

  RunResult operator()() {
    describe();
    plan();
    RunResult result;
    try {
      record();
      for (const auto& [key, values] : states_) result.state[key] = state_array(key, values);
      if (trace_.info.outcome == Outcome::finished) {
        if (const double seconds = seconds_at_focus(); seconds > 0.0) {
          if (seconds > focus_seconds) publish();
          spectrum_at_focus();
        }
        publish();
        where_ = "in the spectra";
        spectra();
        where_ = "in the products of Jacobians";
        jacobians();
      }
    } catch (const Cancelled&) {
      trace_.info.outcome = Outcome::cancelled;
      trace_.info.sentence = "cancelled after " + plural(done_steps_, "step") + " of " + std::to_string(request_.sequence.length);
      if (!finished_recording_) finish_recording(done_steps_);
    }
    report(1.0, "done");
    // When nothing came after the last stage that was published, that is the result.
    const bool same = published_ && published_->arrays() == trace_.arrays() && published_->info.notes == trace_.info.notes &&
                      published_->info.outcome == trace_.info.outcome;
    result.trace = same ? published_ : std::make_shared<const Trace>(trace_);
    return result;
  }

 private:
  const RunRequest& request_;
  Prepared prepared_;
  const Progress& progress_;
  std::stop_token stop_;
  const Publish& publish_;
  std::string& where_;
  Trace trace_;
  TracePtr published_;
  Form form_ = Form::sequential;
  std::unique_ptr<Rollout> rollout_;
  std::vector<Growing> growing_;
  std::vector<Reconstruction> pasts_;
  double past_seconds_ = 0.0;  // that comparing pasts with their signals took
  std::map<std::string, std::vector<std::complex<double>>> states_;
  std::int64_t every_ = 1, done_steps_ = 0;
  bool finished_recording_ = false;
  std::vector<bool> dense_jacobians_;  // by layer: affordable
  struct AtFocus {
    std::size_t layer;
    Transition of;
    std::vector<double> jacobians;             // of one in blocks
    std::vector<std::complex<double>> values;  // of a diagonal one
  };
  std::vector<AtFocus> at_focus_;

  void report(double fraction, std::string_view stage) const {
    if (progress_) progress_(fraction, stage);
  }
  void publish() {
    if (!publish_) return;
    published_ = std::make_shared<const Trace>(trace_);
    publish_(published_);
  }
  bool wants(std::string_view key) const {
    if (request_.probe.only.empty()) return true;
    return std::any_of(request_.probe.only.begin(), request_.probe.only.end(),
                       [&](const std::string& only) { return key.starts_with(only) || std::string_view(only).starts_with(key); });
  }

  bool wants_past(const Network::PastVar& past) const {
    const std::string name = std::to_string(past.layer) + "/" + past.state;
    return request_.probe.states && (wants("signal/" + name) || wants("basis/" + name) || wants("reconstruction/" + name));
  }

  void describe() {
    RunInfo& info = trace_.info;
    const Sequence& sequence = request_.sequence;
    prepared_.describe(request_, info);
    info.input_name = sequence.name;
    info.input_sha256 = sequence.sha256;
    if (sequence.standardised) {
      info.input_mean = sequence.mean;
      info.input_deviation = sequence.deviation;
    }
    info.loss = prepared_.loss.name() + ": " + prepared_.loss.formula();
    info.length = sequence.length;
    info.layers = std::ssize(prepared_.probe->layers());
    for (const auto& layer : prepared_.probe->layers()) info.each_layer.push_back({layer.name, layer.backward});
    info.command = command_of(request_, info.device);
    trace_.time_name = sequence.time_name;
    trace_.time_unit = sequence.time_unit;
    trace_.input_names = sequence.names;

    if (request_.form == "auto") {
      const auto forms = prepared_.probe->forms();
      // For recording a run, the form that makes the states at once; a scan does more work than a loop on one processor.
      form_ = forms.front();
    } else {
      form_ = form_from(request_.form);
    }
    require_form(*prepared_.probe, form_, request_.preset.id);
    info.form = std::string(to_string(form_));
    info.record_form = info.form;
    if ((form_ == Form::scan || form_ == Form::chunkwise) && scans_are_one(prepared_, request_))
      info.notes.emplace_back("On CUDA the scan and the chunkwise form of this model are one kernel: chunks that are joined by their last states.");
    for (int layer = 0; layer < static_cast<int>(info.layers); ++layer) {
      const auto memories = prepared_.probe->memories(layer);
      const bool invariant = std::all_of(memories.begin(), memories.end(), [](const Memory* m) { return !m->transition().varies; });
      info.spectra.push_back({false, !invariant, prepared_.probe->layers()[static_cast<std::size_t>(layer)].architecture->spectrum});
    }
  }

  /// Decides every how many steps a row is recorded, from the bytes of a row and the time that dense analyses take.
  void plan() {
    const Network& network = *prepared_.probe;
    const std::int64_t length = request_.sequence.length;
    double row = 8.0 * static_cast<double>(request_.sequence.width * 2 + network.output().dim(-1) + 2);
    for (const auto& state : network.states())
      if (state.trajectory && request_.probe.states && wants(Rollout::state_key(state)))
        row += static_cast<double>(count(state.row_shape())) * (is_complex(state.initial.dtype()) ? 16.0 : 8.0);
    for (const auto& gate : network.gates())
      if (request_.probe.gates) row += 8.0 * static_cast<double>(count(gate.var.shape()));
    for (const auto& past : network.pasts())
      if (wants_past(past)) row += 8.0 * static_cast<double>(Reconstruction::row_size(past));
    for (std::size_t layer = 0; layer < trace_.info.spectra.size(); ++layer) {
      const Transition own = transition_of(network.memories(static_cast<int>(layer)));
      const bool dense = own.kind == Transition::Kind::blocks, per_step = trace_.info.spectra[layer].per_step;
      const double cubes = static_cast<double>(own.entries()) * static_cast<double>(own.size);
      if (per_step && request_.probe.spectra && !(dense && request_.probe.spectrum_rows)) row += 16.0 * static_cast<double>(own.width());
      // A factor is multiplied with what was there at least; the first one shows what more there is to do.
      const double product = 2.0 * cubes * product_operation * static_cast<double>(length);
      dense_jacobians_.push_back(!dense || !request_.probe.jacobians || !wants("jacobian") || may_take(layer, product));
    }
    note_without_transition();
    const bool any_backward = std::ranges::any_of(network.layers(), &Network::LayerInfo::backward);
    if (any_backward && !request_.state.empty())
      trace_.info.notes.push_back("The layers that run backward begin at the last step with the states given for them: what came after this sequence is not known to a continued run.");
    for (const auto& past : network.pasts())
      if (const std::string said = Reconstruction::note(past, length, !request_.state.empty());
          !said.empty() && wants_past(past) && std::ranges::find(trace_.info.notes, said) == trace_.info.notes.end())
        trace_.info.notes.push_back(said);
    const double rows = static_cast<double>(length);
    every_ = request_.every;
    if (every_ <= 0) {
      const double limit = std::max<double>(1.0, static_cast<double>(request_.record_limit));
      every_ = static_cast<std::int64_t>(std::max(1.0, std::ceil(rows * row / limit)));
      if (every_ > 1)
        trace_.info.notes.push_back("Every " + ordinal(every_) + " step was recorded: all " + std::to_string(length) + " would take " +
                                    std::to_string(static_cast<std::int64_t>(rows * row / 1048576.0)) + " MiB; --every 1 records them all.");
    }
    every_ = std::min(every_, length);
    trace_.info.every = every_;
  }

  /// Whether the product of all of a layer's Jacobians is worth its time; a note says where it is not.
  bool may_take(std::size_t layer, double seconds) {
    if (seconds <= product_seconds || (!request_.probe.only.empty() && wants("jacobian/"))) return true;
    note({"jacobian/"}, "The singular values of ds_T/ds_t of layer " + std::to_string(layer) + " were left out, they would take about " + about(seconds) +
                                ": ask for them with --record jacobian, or take a smaller width.");
    return false;
  }

  /// Of the recorded steps those that an analysis is worth its time at. All where --every was given: then it is known what is asked for.
  std::vector<std::int64_t> worth(const std::string& key, const std::vector<std::int64_t>& steps, double seconds_row) {
    const double all = seconds_row * static_cast<double>(steps.size());
    if (request_.every > 0 || all <= analysis_seconds) return steps;
    auto some = thinned(steps, std::max<std::int64_t>(1, static_cast<std::int64_t>(analysis_seconds / seconds_row)));
    note({key.substr(0, key.find('/') + 1)}, key + " has " + plural(std::ssize(some), "row") + " of the " + std::to_string(steps.size()) + " recorded, which would take about " + about(all) +
                                "; --every " + std::to_string(every_) + " makes them all. Every other array is complete.");
    return some;
  }

  /// The last recorded step of a segment in `steps`; there is one in the last segment, which analyses visit first.
  static std::int64_t last_of(const std::vector<std::int64_t>& steps, const Rollout::Segment& segment) {
    const auto end = std::lower_bound(steps.begin(), steps.end(), segment.first + segment.steps);
    return end == steps.begin() ? segment.first : std::max(segment.first, end[-1]);
  }
  /// What making the Jacobian of one step takes: a pass forward and two back.
  static double jacobian_seconds(const Memory& memory, std::int64_t steps) {
    const Cost cost = memory.cost();
    const Transition own = memory.transition();
    return 3.0 * (cost.flops * static_cast<double>(own.size) * cell_operation + cost.launches * (cell_call + static_cast<double>(own.entries()) * cell_entry)) / static_cast<double>(steps);
  }
  static constexpr std::int64_t looked_at = 8;  // blocks, of which the others are thought to be like
  /// What some of a layer's blocks take, by the Jacobian of one step, for all of them; work(block, size).
  template <class F>
  static double over_blocks(Memory& memory, std::int64_t step, const F& work) {
    const Transition own = memory.transition();
    const auto blocks = static_cast<std::size_t>(own.count), size = static_cast<std::size_t>(own.size), some = static_cast<std::size_t>(std::min(own.count, looked_at));
    std::vector<double> matrix(blocks * size * size);
    memory.jacobian(step, matrix);
    double sum = 0.0;
    for (std::size_t block = 0; block < some; ++block)
      sum += work(std::span<const double>(matrix).subspan(block * size * size, size * size), static_cast<std::int64_t>(size));
    return sum * static_cast<double>(blocks) / static_cast<double>(some);
  }

  /// A note that is about arrays of these kinds, so that whoever shows them can say it beside them.
  void note(std::initializer_list<std::string> kinds, const std::string& sentence) {
    trace_.info.notes.push_back(sentence);
    for (const std::string& kind : kinds) trace_.info.note_kinds.emplace_back(kind, sentence);
  }

  /// Once for all layers whose memory is none that a step maps to the next.
  void note_without_transition() {
    if (!request_.probe.spectra && !request_.probe.jacobians && request_.probe.focus < 0) return;
    std::int64_t without = 0;
    std::string names;
    for (int layer = 0; layer < static_cast<int>(trace_.info.layers); ++layer) {
      if (transition_of(prepared_.probe->memories(layer)).kind != Transition::Kind::none) continue;
      names += (without++ ? ", " : "") + std::to_string(layer);
    }
    if (!without) return;
    const bool all = without == trace_.info.layers;
    note({"spectrum/", "jacobian/"}, std::string("There are no eigenvalues and no singular values of ds_T/ds_t") + (all ? "" : " of " + std::string(without == 1 ? "layer " : "layers ") + names) +
                                ": what is carried from step to step is a record of the past, or changes once a segment, and no step maps it to the next as a state of fixed size.");
  }

  bool is_recorded(std::int64_t t) const { return t % every_ == 0 || t == request_.sequence.length - 1; }

  std::unique_ptr<Rollout> make_rollout(Form form) {
    const Probe& probe = request_.probe;  // norms of adjoints and transitions too are those of memories that keep their states
    Rollout::Options options{form, prepared_.real, 0, probe.states || probe.gradients || probe.spectra || probe.jacobians || probe.focus >= 0, 0};
    InitialState initial;
    if (!request_.state.empty()) initial = load_state(request_.state, *prepared_.probe);
    options.past = initial.past;
    auto made = std::make_unique<Rollout>(prepared_.architecture, prepared_.hyper, prepared_.parameters, request_.sequence, prepared_.loss,
                                          prepared_.backend, options);
    made->set_initial(initial.values);
    return made;
  }

  void grow(TraceArray array, const Network& network, const std::function<Var(const Network&)>& of, bool backward = false) {
    if (!wants(array.key)) return;
    Growing growing;
    growing.array = std::move(array);
    growing.of = of;
    growing.is_complex = is_complex(of(network).dtype());
    growing.backward = backward;
    growing_.push_back(std::move(growing));
  }

  void list_outside(const Network& network) {
    grow(timed("input", {request_.sequence.width}, {{"channel", "", request_.sequence.names}}, "",
               request_.sequence.standardised ? "The input, standardised: each channel less its mean, divided by its deviation." : "The input."),
         network, [](const Network& n) { return n.input(); });
    grow(timed("output", {network.output().dim(-1)}, {{"channel", "", {}}}, "", "What the network returns."), network, [](const Network& n) { return n.output(); });
  }

  void list_inside(const Network& network) {
    if (request_.probe.states)
      for (std::size_t i = 0; i < network.states().size(); ++i)
        if (const auto& state = network.states()[i]; state.trajectory)
          grow(timed(Rollout::state_key(state), state.row_shape(), axes_of(state.row_shape(), "unit"), "", state.text), network,
               [i](const Network& n) { return n.states()[i].trajectory; }, state.backward);
    for (std::size_t i = 0; i < network.pasts().size(); ++i)
      if (wants_past(network.pasts()[i])) {
        pasts_.emplace_back(network, i, std::ssize(trace_.steps), !request_.state.empty());
        pasts_.back().measure(prepared_.parameters);
      }
    if (request_.probe.gates)
      for (std::size_t i = 0; i < network.gates().size(); ++i) {
        const auto& gate = network.gates()[i];
        const Shape shape(gate.var.shape().begin() + 2, gate.var.shape().end());
        TraceArray array = timed("gate/" + std::to_string(gate.layer) + "/" + gate.name, shape, axes_of(shape, "unit"), "", gate.text);
        array.low = gate.low;
        array.high = gate.high;
        grow(std::move(array), network, [i](const Network& n) { return n.gates()[i].var; });
      }
  }

  void finish_recording(std::int64_t steps) {
    finished_recording_ = true;
    const auto rows = static_cast<std::int64_t>(std::lower_bound(trace_.steps.begin(), trace_.steps.end(), steps) - trace_.steps.begin());
    trace_.steps.resize(static_cast<std::size_t>(rows));
    trace_.time.resize(static_cast<std::size_t>(rows));
    for (Growing& growing : growing_) {
      growing.array.shape[0] = rows;
      const auto size = static_cast<std::size_t>(growing.array.size());
      if (growing.is_complex) {
        growing.complex.resize(size);
        growing.array.complex = std::make_shared<const std::vector<std::complex<double>>>(std::move(growing.complex));
      } else {
        growing.real.resize(size);
        growing.array.real = std::make_shared<const std::vector<double>>(std::move(growing.real));
      }
      trace_.put(std::move(growing.array));
    }
    growing_.clear();
    for (const Reconstruction& past : pasts_) past.put(trace_, rows, [this](std::string_view key) { return wants(key); });
    pasts_.clear();
    if (rows && request_.sequence.target_kind != TargetKind::none && prepared_.loss.name() == "task") {
      const Sequence& s = request_.sequence;
      std::vector<double> target, mask;
      for (const auto t : trace_.steps) {
        target.insert(target.end(), s.target.begin() + t * s.target_width, s.target.begin() + (t + 1) * s.target_width);
        mask.push_back(s.mask[static_cast<std::size_t>(t)]);
      }
      TraceArray array = timed("target", {s.target_width}, {{"channel", "", s.target_names}}, "", "What the output should be where the mask is 1.");
      array.shape[0] = rows;
      put_real(trace_, std::move(array), std::move(target));
      TraceArray counts = timed("mask", {}, {}, "", "1 where the target counts.");
      counts.shape[0] = rows;
      put_real(trace_, std::move(counts), std::move(mask));
    }
    for (auto& parameter : prepared_.parameters.entries()) {
      if (!wants("param/" + parameter.name)) continue;
      TraceArray array;
      array.key = "param/" + parameter.name;
      array.shape = parameter.shape;
      array.axes = axes_of(parameter.shape, "unit");
      array.text = parameter.text;
      put_real(trace_, std::move(array), std::move(parameter.values));  // nobody reads them any more
    }
    std::int64_t bytes = rollout_ ? rollout_->bytes() : 0;
    for (const auto& array : trace_.arrays()) bytes += array->size() * (array->is_complex() ? 16 : 8);
    trace_.info.bytes = bytes;
  }

  void record() {
    const auto start = Clock::now();
    const std::int64_t length = request_.sequence.length;
    for (std::int64_t t = 0; t < length; ++t)
      if (is_recorded(t)) {
        trace_.steps.push_back(t);
        trace_.time.push_back(request_.sequence.time[static_cast<std::size_t>(t)]);
      }
    // Forms that never form the state leave what is inside to the sequential form on the same weights.
    const bool inside = forms_states(form_);
    rollout_ = make_rollout(form_);
    list_outside(rollout_->network());
    if (inside) list_inside(rollout_->network());
    const auto divergence = rollout_->forward([&](const Rollout::Segment& segment) {
      keep_rows(segment, 0);
      if (inside) keep_focus(segment);
      done_steps_ = segment.first + segment.steps;
      where_ = "after step " + std::to_string(done_steps_ - 1);
      report(0.4 * static_cast<double>(done_steps_) / static_cast<double>(length), "forward");
    }, stop_);
    trace_.info.loss_value = rollout_->loss();
    put_newton();
    if (divergence) {
      trace_.info.outcome = Outcome::diverged;
      trace_.info.sentence = sentence(*divergence) + "; what came before it is shown";
      trace_.info.seconds = since(start) - past_seconds_;
      finish_recording(divergence->good);
      return;
    }
    states_ = rollout_->final_states();
    if (rollout_->loss_step() >= 0)
      note({"gradient/"}, "The loss became non-finite at step " + std::to_string(rollout_->loss_step()) + ", where the output is still finite: its square is out of range.");
    std::map<std::string, std::vector<double>> norms;
    std::vector<double> input_gradient;
    const bool gradients = request_.probe.gradients && wants("gradient/");
    if (gradients) backward(*rollout_, norms, &input_gradient);
    trace_.info.seconds = since(start) - past_seconds_;
    if (gradients && prepared_.loss.name() != "task") note_constant_norm();

    if (!inside) {
      trace_.info.record_form = std::string(to_string(Form::sequential));
      trace_.info.notes.push_back("The " + trace_.info.form + " form never forms the state: states, gates and their gradients were recorded by the sequential form on the same weights.");
      rollout_ = make_rollout(Form::sequential);
      const std::size_t outside = growing_.size();
      list_inside(rollout_->network());
      done_steps_ = 0;  // of what is inside: a cancelled run ends with the rows that have all arrays
      const auto bad = rollout_->forward([&](const Rollout::Segment& segment) {
        keep_rows(segment, outside);
        keep_focus(segment);
        done_steps_ = segment.first + segment.steps;
        where_ = "after step " + std::to_string(done_steps_ - 1) + " of the sequential form";
      }, stop_);
      if (bad)
        throw Error("In the sequential form " + sentence(*bad) + ", in the " + trace_.info.form + " form it did not: choose form sequential.");
      states_ = rollout_->final_states();
      norms.clear();
      if (gradients) backward(*rollout_, norms, nullptr);
    }
    finish_recording(length);
    if (gradients) put_gradients(norms, std::move(input_gradient));
  }

  /// How the Newton forms went, layer by layer.
  void put_newton() {
    for (int layer = 0; layer < static_cast<int>(trace_.info.layers); ++layer) {
      const auto memories = rollout_->network().memories(layer);
      const auto stepped = std::count_if(memories.begin(), memories.end(), [](const Memory* m) { return m->newton(); });
      std::int64_t number = 0;
      for (const Memory* memory : memories) {
        const NewtonReport* report = memory->newton();
        if (!report) continue;
        ++number;
        const std::string which = stepped == 1 ? "" : "/" + std::to_string(number);
        trace_.info.notes.push_back((trace_.info.layers > 1 || stepped > 1 ? "Layer " + std::to_string(layer) + which + ": " : "") + newton_sentence(*report));
        TraceArray array;
        array.key = "newton/" + std::to_string(layer) + which + "/residual";
        if (!wants(array.key) || report->residuals.empty()) continue;
        array.shape = {static_cast<std::int64_t>(report->residuals.size())};
        array.axes = {{"iteration", "", {}}};
        array.unit = "log10";
        array.text = "log10 of the largest |s_t - f(s_{t-1})| relative to the size of the states: of the first guess, then after each iteration over the whole sequence.";
        std::vector<double> logs;
        for (const double residual : report->residuals)
          if (std::isfinite(residual)) logs.push_back(std::log10(residual));  // the sentence tells of the others
        array.shape = {static_cast<std::int64_t>(logs.size())};
        put_real(trace_, std::move(array), std::move(logs));
      }
    }
  }

  /// A last layer that normalises its output leaves |y|^2, and with it the loss, nearly constant.
  void note_constant_norm() {
    for (const Growing& growing : growing_) {
      if (growing.array.key != "output") continue;
      const auto width = static_cast<std::size_t>(growing.array.row_size());
      double low = std::numeric_limits<double>::infinity(), high = 0.0;
      for (std::size_t row = 0; row + width <= growing.real.size(); row += width) {
        double squares = 0.0;
        for (std::size_t j = 0; j < width; ++j) squares += growing.real[row + j] * growing.real[row + j];
        low = std::min(low, squares);
        high = std::max(high, squares);
      }
      if (width > 1 && high > 0.0 && high - low < 1e-2 * high)
        note({"gradient/"}, "The last layer normalises its output, so ½|y|² hardly depends on the state and its gradients are close to zero: their course "
                                    "through time is right, their level says little; a task with a target has a loss that does depend on it.");
    }
  }

  void keep_rows(const Rollout::Segment& segment, std::size_t from) {
    for (std::int64_t t = 0; t < segment.steps; ++t) {
      if (!is_recorded(segment.first + t)) continue;
      for (std::size_t i = from; i < growing_.size(); ++i) {
        const Var var = growing_[i].of(segment.network);
        growing_[i].add(segment.network.graph(), var, growing_[i].backward ? segment.steps - 1 - t : t, count(var.shape()) / segment.steps);
      }
    }
    const auto start = Clock::now();
    for (Reconstruction& past : pasts_) past.add(segment, [this](std::int64_t t) { return is_recorded(t); }, stop_);
    past_seconds_ += since(start);
  }

  std::map<std::string, std::vector<double>> parameter_gradients_;

  /// Norms of all state gradients by key; with `input_gradient`, that and the parameters' gradients too.
  void backward(Rollout& rollout, std::map<std::string, std::vector<double>>& norms, std::vector<double>* input_gradient) {
    const std::int64_t width = request_.sequence.width, length = request_.sequence.length;
    if (input_gradient) input_gradient->assign(trace_.steps.size() * static_cast<std::size_t>(width), 0.0);
    where_ = "on the way back, before step " + std::to_string(length);
    const auto bad = rollout.backward([&](const Rollout::Segment& segment, int scale) {
      where_ = "on the way back, before step " + std::to_string(segment.first);
      Network& network = segment.network;
      const auto gradient = to_double(prepared_.backend, prepared_.real, network.graph().gradient(network.input()), segment.steps * width);
      const auto at = std::lower_bound(trace_.steps.begin(), trace_.steps.end(), segment.first);
      for (auto row = at; input_gradient && row != trace_.steps.end() && *row < segment.first + segment.steps; ++row)
        for (std::int64_t j = 0; j < width; ++j)
          (*input_gradient)[static_cast<std::size_t>((row - trace_.steps.begin()) * width + j)] =
              std::ldexp(gradient[static_cast<std::size_t>((*row - segment.first) * width + j)], scale);
      for (const auto& state : network.states()) {
        std::vector<double> log2;
        if (state.memory) {
          if (static_cast<std::size_t>(state.slot) < state.memory->log2_norms().size()) log2 = state.memory->log2_norms()[static_cast<std::size_t>(state.slot)];
        } else if (state.trajectory) {
          const std::int64_t n = count(state.trajectory.shape()) / segment.steps;
          const auto* gradients = static_cast<const char*>(network.graph().gradient(state.trajectory));
          for (std::int64_t t = 0; t < segment.steps; ++t)
            log2.push_back(prepared_.backend.log2_norm(state.trajectory.dtype(), n, gradients + static_cast<std::size_t>(t * n) * bytes_of(state.trajectory.dtype()), 0));
        }
        if (log2.empty()) continue;
        auto& series = norms["gradient/" + Rollout::state_key(state)];
        series.resize(trace_.steps.size(), minus_infinity);
        for (auto row = at; row != trace_.steps.end() && *row < segment.first + segment.steps; ++row) {
          const std::int64_t t = *row - segment.first;
          const double value = log2[static_cast<std::size_t>(state.backward ? segment.steps - 1 - t : t)];
          series[static_cast<std::size_t>(row - trace_.steps.begin())] = std::isinf(value) ? value : (value + scale) * log10_of_2;
        }
      }
      report(0.4 + 0.3 * static_cast<double>(length - segment.first) / static_cast<double>(length), "backward");
    }, stop_);
    if (input_gradient) parameter_gradients_ = rollout.parameter_gradients();
    if (bad && trace_.info.sentence.empty()) trace_.info.sentence = way_back(*bad);
  }

  void put_gradients(const std::map<std::string, std::vector<double>>& norms, std::vector<double> input_gradient) {
    const auto rows = static_cast<std::int64_t>(trace_.steps.size());
    for (const auto& [key, values] : norms) {
      if (!wants(key)) continue;
      TraceArray array = timed(key, {}, {}, "log10", "log10 of the norm of dL/ds_t, all states of the step taken as independent coordinates.");
      array.shape[0] = rows;
      put_real(trace_, std::move(array), values);
    }
    if (!input_gradient.empty() && wants("gradient/input")) {
      TraceArray array = timed("gradient/input", {request_.sequence.width}, {{"channel", "", request_.sequence.names}}, "", "dL/dx_t.");
      array.shape[0] = rows;
      put_real(trace_, std::move(array), std::move(input_gradient));
    }
    for (const auto& parameter : prepared_.parameters.entries()) {
      if (!wants("gradient/param/" + parameter.name) || parameter_gradients_.empty()) continue;
      TraceArray array;
      array.key = "gradient/param/" + parameter.name;
      array.shape = parameter.shape;
      array.axes = axes_of(parameter.shape, "unit");
      array.text = "dL/dθ of " + parameter.name + ".";
      put_real(trace_, std::move(array), parameter_gradients_.at(parameter.name));
    }
  }

  TraceArray state_array(const std::string& key, const std::vector<std::complex<double>>& values) const {
    TraceArray array;
    array.key = key;
    for (const auto& state : prepared_.probe->states())
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

  bool backward(std::size_t layer) const { return prepared_.probe->layers()[layer].backward; }
  /// The number of a time step in the segment, as the layer counts.
  std::int64_t own_step(const Rollout::Segment& segment, std::size_t layer, std::int64_t step) const {
    return backward(layer) ? segment.steps - 1 - (step - segment.first) : step - segment.first;
  }

  /// No layer's transition changes with time or input.
  bool all_invariant() const {
    return std::none_of(trace_.info.spectra.begin(), trace_.info.spectra.end(), [](const SpectrumInfo& info) { return info.per_step; });
  }

  /// An analysis of a Jacobian that is out of range has no result; the first such step is named.
  template <class F>
  void note_not_finite(const std::string& key, const std::vector<std::int64_t>& steps, std::ptrdiff_t entries, const F& fine) {
    for (std::ptrdiff_t i = 0; i < entries; ++i)
      if (!fine(static_cast<std::size_t>(i))) {
        const auto row = static_cast<std::size_t>(i / (entries / std::ssize(steps)));
        note({key.substr(0, key.find('/') + 1)}, key + " is not finite, first at step " + std::to_string(steps[row]) + ": a transition has entries out of range.");
        return;
      }
  }

  void spectra() {
    if (!request_.probe.spectra || !wants("spectrum/")) return;
    const std::int64_t length = request_.sequence.length;
    const auto layers = static_cast<std::size_t>(trace_.info.layers);
    struct LayerSpectrum {
      std::vector<std::int64_t> steps;
      std::vector<std::complex<double>> values;
      Transition of;
      bool known = true;  // which steps there will be; of per-step Jacobians in blocks when the first was seen
    };
    std::vector<LayerSpectrum> found(layers);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const auto memories = prepared_.probe->memories(static_cast<int>(layer));
      auto& own = found[layer];
      if (wants("spectrum/" + std::to_string(layer))) own.of = transition_of(memories);
      if (own.of.kind == Transition::Kind::none) continue;
      const bool dense = own.of.kind == Transition::Kind::blocks;
      if (!trace_.info.spectra[layer].per_step)
        own.steps = {0};
      else
        own.steps = dense ? thinned(trace_.steps, request_.probe.spectrum_rows) : trace_.steps;
      own.known = !dense || !trace_.info.spectra[layer].per_step || request_.probe.spectrum_rows > 0 || request_.every > 0;
      own.values.resize(own.steps.size() * static_cast<std::size_t>(own.of.width()));
    }
    const auto visit = [&](const Rollout::Segment& segment) {
      for (std::size_t layer = 0; layer < layers; ++layer) {
        auto& own = found[layer];
        if (own.of.kind == Transition::Kind::none) continue;
        const auto n = static_cast<std::size_t>(own.of.width());
        const auto memories = segment.network.memories(static_cast<int>(layer));
        if (!std::exchange(own.known, true)) {
          const double work = over_blocks(*memories[0], own_step(segment, layer, last_of(own.steps, segment)), eigenvalue_work);
          own.steps = worth("spectrum/" + std::to_string(layer), own.steps, work * eigenvalue_operation / cores() + jacobian_seconds(*memories[0], segment.steps));
          own.values.resize(own.steps.size() * n);
        }
        const auto begin = std::lower_bound(own.steps.begin(), own.steps.end(), segment.first);
        const auto end = std::lower_bound(begin, own.steps.end(), segment.first + segment.steps);
        const auto from = static_cast<std::size_t>(begin - own.steps.begin());
        const std::span<std::complex<double>> values(own.values);
        if (own.of.kind == Transition::Kind::diagonal) {
          for (auto step = begin; step != end; ++step) {
            if (stop_.stop_requested()) throw Cancelled();
            factors_at(memories, own_step(segment, layer, *step), values.subspan(static_cast<std::size_t>(step - own.steps.begin()) * n, n));
          }
          continue;
        }
        const auto blocks = static_cast<std::size_t>(own.of.count), size = static_cast<std::size_t>(own.of.size), square = size * size;
        // As many steps at a time as keep all cores busy, but no more than 64 MiB of matrices.
        const auto fit = static_cast<std::ptrdiff_t>((std::size_t{8} << 20) / std::max<std::size_t>(1, blocks * square));
        const std::ptrdiff_t together = std::clamp<std::ptrdiff_t>(fit, std::max(1u, std::thread::hardware_concurrency()), 64);
        std::vector<double> jacobians;
        for (auto at = begin; at < end; at += std::min(together, end - at)) {
          const auto some = static_cast<std::size_t>(std::min(together, end - at));
          jacobians.resize(some * blocks * square);
          for (std::size_t i = 0; i < some; ++i) {
            if (stop_.stop_requested()) throw Cancelled();
            memories[0]->jacobian(own_step(segment, layer, at[static_cast<std::ptrdiff_t>(i)]), std::span(jacobians).subspan(i * blocks * square, blocks * square));
          }
          const std::size_t row = from + static_cast<std::size_t>(at - begin);
          eigenvalues_of_many(
              static_cast<std::int64_t>(some * blocks), static_cast<std::int64_t>(size),
              [&](std::int64_t i, std::span<double> matrix) {
                const auto source = std::span<const double>(jacobians).subspan(static_cast<std::size_t>(i) * square, square);
                std::copy(source.begin(), source.end(), matrix.begin());
              },
              [&](std::int64_t i, const std::vector<std::complex<double>>& eigenvalues) {
                put_block(own.of, i % own.of.count, eigenvalues, values.subspan((row + static_cast<std::size_t>(i) / blocks) * n, n));
              },
              stop_);
          if (stop_.stop_requested()) throw Cancelled();
        }
      }
      report(0.7 + 0.15 * static_cast<double>(length - segment.first) / static_cast<double>(length), "spectra");
    };
    if (all_invariant())
      rollout_->visit_first(visit, stop_);
    else
      rollout_->revisit(visit, stop_);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      auto& own = found[layer];
      if (own.of.kind == Transition::Kind::none) continue;
      TraceArray array = spectrum_array(layer, static_cast<std::int64_t>(own.steps.size()), own.of.width());
      if (trace_.info.spectra[layer].per_step && own.steps != trace_.steps) array.steps = own.steps;
      note_not_finite(array.key, own.steps, std::ssize(own.values), [&](std::size_t i) { return std::isfinite(own.values[i].real()) && std::isfinite(own.values[i].imag()); });
      array.complex = std::make_shared<const std::vector<std::complex<double>>>(std::move(own.values));
      trace_.put(std::move(array));
    }
    publish();
  }

  /// The transition at the focus, while the segment that holds it stands.
  void keep_focus(const Rollout::Segment& segment) {
    const std::int64_t step = focus();
    if (step < segment.first || step >= segment.first + segment.steps) return;
    at_focus_.clear();
    for (std::size_t layer = 0; layer < trace_.info.spectra.size(); ++layer) {
      const auto memories = segment.network.memories(static_cast<int>(layer));
      AtFocus own{layer, transition_of(memories), {}, {}};
      if (own.of.kind == Transition::Kind::none || !wants("spectrum/" + std::to_string(layer))) continue;
      if (own.of.kind == Transition::Kind::diagonal) {
        own.values.resize(static_cast<std::size_t>(own.of.width()));
        factors_at(memories, own_step(segment, layer, step), own.values);
      } else {
        own.jacobians.resize(static_cast<std::size_t>(own.of.entries()));
        memories[0]->jacobian(own_step(segment, layer, step), own.jacobians);
      }
      at_focus_.push_back(std::move(own));
    }
  }
  /// The step that is wanted first, within the sequence; -1: none.
  std::int64_t focus() const { return std::min(request_.probe.focus, request_.sequence.length - 1); }
  double seconds_at_focus() const {
    double seconds = 0.0;
    for (const AtFocus& own : at_focus_) {
      seconds += own.jacobians.empty() ? 1e-9 : eigenvalue_cost * static_cast<double>(own.of.entries()) * static_cast<double>(own.of.size);
    }
    return seconds;
  }

  /// spectrum/... of the focus alone.
  void spectrum_at_focus() {
    for (AtFocus& own : at_focus_) {
      const std::int64_t square = own.of.size * own.of.size;
      if (!own.jacobians.empty()) {
        own.values.resize(static_cast<std::size_t>(own.of.width()));
        eigenvalues_of_many(
            own.of.count, own.of.size,
            [&](std::int64_t i, std::span<double> matrix) { std::copy_n(own.jacobians.begin() + i * square, square, matrix.begin()); },
            [&](std::int64_t i, const std::vector<std::complex<double>>& values) { put_block(own.of, i, values, own.values); }, stop_);
        if (stop_.stop_requested()) throw Cancelled();
      }
      TraceArray array = spectrum_array(own.layer, 1, own.of.width());
      if (trace_.info.spectra[own.layer].per_step) array.steps = {focus()};
      if (!request_.probe.spectra)  // else they are noted with those of all steps
        note_not_finite(array.key, {focus()}, std::ssize(own.values), [&](std::size_t i) { return std::isfinite(own.values[i].real()) && std::isfinite(own.values[i].imag()); });
      array.complex = std::make_shared<const std::vector<std::complex<double>>>(std::move(own.values));
      trace_.put(std::move(array));
    }
    at_focus_.clear();
  }

  TraceArray spectrum_array(std::size_t layer, std::int64_t rows, std::int64_t n) const {
    TraceArray array;
    array.key = "spectrum/" + std::to_string(layer);
    array.shape = {rows, n};
    array.axes = {{"time", "", {}}, {"eigenvalue", "", {}}};
    array.text = trace_.info.spectra[layer].of;
    return array;
  }

  std::string product_of(std::size_t layer) const { return backward(layer) ? "ds_0/ds_t, the layer running from the end to the start" : "ds_T/ds_t"; }

  /// Whether a layer's products are worth their time, and at which of the steps their singular values are, by what two factors and their
  /// singular values take.
  bool afford_product(std::size_t layer, Memory& memory, const Rollout::Segment& segment, std::vector<std::int64_t>& steps) {
    const std::int64_t step = own_step(segment, layer, last_of(steps, segment));
    double values = 0.0;
    const double factors = over_blocks(memory, step, [&](std::span<const double> jacobian, std::int64_t size) {
      JacobianProduct product(size);
      product.multiply(jacobian);
      product.multiply(jacobian);
      static_cast<void>(product.rank());  // what is pending too
      const double multiplied = product.work();
      static_cast<void>(product.log10_largest(request_.probe.singular_values));
      static_cast<void>(product.log10_smallest());
      values += product.work() - multiplied;
      return 0.5 * multiplied;
    });
    const std::int64_t blocks = memory.transition().count;
    values *= static_cast<double>(blocks) / static_cast<double>(std::min(blocks, looked_at));
    if (!may_take(layer, (factors * product_operation + jacobian_seconds(memory, segment.steps)) * static_cast<double>(request_.sequence.length))) return false;
    if (!request_.probe.jacobian_rows) steps = worth("jacobian/" + std::to_string(layer), steps, values * product_operation);
    return true;
  }

  void jacobians() {
    if (!request_.probe.jacobians || !wants("jacobian")) return;
    const std::int64_t length = request_.sequence.length;
    const auto layers = static_cast<std::size_t>(trace_.info.layers);
    struct LayerProduct {
      Transition of;
      std::vector<std::int64_t> steps;
      std::vector<double> largest, smallest;
      std::vector<std::unique_ptr<JacobianProduct>> dense;  // one a block
      std::unique_ptr<DiagonalProduct> diagonal;
      std::int64_t k = 0;
      bool known = true;  // which steps there will be; of Jacobians in blocks when the first was seen
    };
    std::vector<LayerProduct> products(layers);
    for (std::size_t layer = 0; layer < layers; ++layer) {
      auto& own = products[layer];
      const auto memories = prepared_.probe->memories(static_cast<int>(layer));
      own.of = transition_of(memories);
      const bool dense = own.of.kind == Transition::Kind::blocks;
      if (dense && !dense_jacobians_[layer]) own.of = {};
      if (own.of.kind == Transition::Kind::none) continue;
      own.k = std::min<std::int64_t>(request_.probe.singular_values, own.of.width());
      own.steps = dense ? thinned(trace_.steps, request_.probe.jacobian_rows) : trace_.steps;
      own.known = !dense || length == 1;
      own.largest.resize(own.steps.size() * static_cast<std::size_t>(own.k));
      own.smallest.resize(own.steps.size());
      if (dense)
        for (std::int64_t block = 0; block < own.of.count; ++block) own.dense.push_back(std::make_unique<JacobianProduct>(own.of.size));
      else
        own.diagonal = std::make_unique<DiagonalProduct>(own.of.width());
    }
    const auto asked = std::ranges::count_if(products, [](const LayerProduct& own) { return own.of.kind != Transition::Kind::none; });
    if (asked == 0) return;
    std::vector<double> matrix, logs;
    std::vector<std::complex<double>> factors;
    const auto visit = [&](const Rollout::Segment& segment) {
      for (std::size_t layer = 0; layer < layers; ++layer) {
        auto& own = products[layer];
        if (own.of.kind == Transition::Kind::none) continue;
        bool known = false;  // the factors of a time-invariant memory are read once
        const auto memories = segment.network.memories(static_cast<int>(layer));
        if (!std::exchange(own.known, true) && !afford_product(layer, *memories[0], segment, own.steps)) {
          own.of = {};
          continue;
        }
        own.largest.resize(own.steps.size() * static_cast<std::size_t>(own.k));
        own.smallest.resize(own.steps.size());
        for (std::int64_t t = segment.steps - 1; t >= 0; --t) {
          if (stop_.stop_requested()) throw Cancelled();
          // A layer that runs backward goes on to the first step: its product is ds_0/ds_t.
          const std::int64_t step = segment.first + (backward(layer) ? segment.steps - 1 - t : t);
          const auto row = std::lower_bound(own.steps.begin(), own.steps.end(), step);
          if (row != own.steps.end() && *row == step) {
            const auto at = row - own.steps.begin();
            std::vector<double> largest;
            double smallest = std::numeric_limits<double>::infinity();
            if (own.diagonal) {
              largest = own.diagonal->log10_largest(static_cast<int>(own.k));
              smallest = own.diagonal->log10_smallest();
            }
            for (const auto& block : own.dense) {
              const auto some = block->log10_largest(static_cast<int>(std::min(own.k, own.of.size)));
              for (std::int64_t column = 0; column < std::min(own.of.repeats, own.k); ++column) largest.insert(largest.end(), some.begin(), some.end());
              const double least = block->log10_smallest();
              smallest = std::isnan(least) || least < smallest ? least : smallest;
            }
            if (std::any_of(largest.begin(), largest.end(), [](double x) { return std::isnan(x); })) {  // has no order
              std::fill(largest.begin(), largest.end(), std::numeric_limits<double>::quiet_NaN());
              smallest = std::numeric_limits<double>::quiet_NaN();
            }
            if (own.of.count * own.of.repeats > 1 && !own.dense.empty()) std::sort(largest.begin(), largest.end(), std::greater<>());
            std::copy_n(largest.begin(), own.k, own.largest.begin() + at * own.k);
            own.smallest[static_cast<std::size_t>(at)] = smallest;
          }
          if (segment.first + t == 0) break;  // ds_T/ds_0 is recorded; the step before the first is not
          if (!own.dense.empty()) {
            const auto square = static_cast<std::size_t>(own.of.size * own.of.size);
            matrix.resize(own.dense.size() * square);
            memories[0]->jacobian(t, matrix);
            for (std::size_t block = 0; block < own.dense.size(); ++block) own.dense[block]->multiply(std::span(matrix).subspan(block * square, square));
          } else {
            if (!known) {
              factors.resize(static_cast<std::size_t>(own.of.width()));
              logs.resize(factors.size());
              factors_at(memories, t, factors);
              for (std::size_t i = 0; i < logs.size(); ++i) logs[i] = std::log(std::abs(factors[i]));
              known = !trace_.info.spectra[layer].per_step;
            }
            own.diagonal->multiply(logs);
          }
          if (t % 256 == 0) report(0.85 + 0.15 * static_cast<double>(length - segment.first - t) / static_cast<double>(length), "singular values");
        }
      }
    };
    if (all_invariant()) {  // nothing to run again: one network stands for all of time
      rollout_->visit_first([&](const Rollout::Segment& segment) { visit({segment.network, 0, length}); }, stop_);
    } else {
      rollout_->revisit(visit, stop_);
    }
    for (std::size_t layer = 0; layer < layers; ++layer) {
      auto& own = products[layer];
      if (own.of.kind == Transition::Kind::none) continue;
      const auto rows = static_cast<std::int64_t>(own.steps.size());
      const bool thin = own.steps != trace_.steps;
      TraceArray array = timed("jacobian/" + std::to_string(layer), {own.k}, {{"rank", "", {}}}, "log10", "log10 of the largest singular values of " + product_of(layer) + ".");
      array.shape[0] = rows;
      if (thin) array.steps = own.steps;
      note_not_finite(array.key, own.steps, std::ssize(own.largest), [&](std::size_t i) { return !std::isnan(own.largest[i]) && own.largest[i] != -minus_infinity; });
      if (wants(array.key)) put_real(trace_, std::move(array), std::move(own.largest));
      TraceArray least = timed("jacobian_min/" + std::to_string(layer), {}, {}, "log10", "log10 of the smallest singular value of " + product_of(layer) + ".");
      least.shape[0] = rows;
      if (thin) least.steps = own.steps;
      if (wants(least.key)) put_real(trace_, std::move(least), std::move(own.smallest));
    }
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
  const auto kept = architecture_of(registry, preset);
  const Architecture& architecture = *kept;
  const std::string& model = preset.id.empty() ? architecture.id : preset.id;
  Hyper hyper(architecture.hyper);
  for (const auto& [key, value] : preset.hyper) hyper.set(key, value, model);
  for (const auto& [key, text] : set) hyper.set_text(key, text, model);
  if (architecture.check) architecture.check(hyper);
  return hyper;
}

namespace {

/// Outputs of the head that a preset has on its own task; 0: the task has no target.
std::int64_t outputs_of_task(const Preset& preset) {
  try {
    const Sequence sequence = make_task(preset.task, {.length = preset.task_length, .seed = preset.task_seed});
    return sequence.target_kind == TargetKind::none ? 0 : Loss(Loss::Kind::task, sequence).outputs();
  } catch (const Error&) {  // a task that is not known here: the card is of the model
    return 0;
  }
}

}  // namespace

Card card(const Registry& registry, const Preset& preset, std::int64_t input_width) {
  const auto kept = architecture_of(registry, preset);
  const Architecture& architecture = *kept;
  const Hyper hyper = hyper_of(registry, preset);
  NetworkOptions options;
  options.input = input_width;
  const std::int64_t outputs = outputs_of_task(preset);
  options.head = std::max<std::int64_t>(outputs, 1);
  const Network network(architecture, hyper, options);
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
      return "where the sequence has a target, with a row for each output" + (outputs ? " (" + std::to_string(outputs) + " in the task " + preset.task + ")" : std::string());
    return name.starts_with("encoder") ? "where what it reads is not as wide as the model" : "";
  };
  for (const auto& parameter : network.parameters()) card.parameters.push_back({parameter.name, parameter.var.shape(), parameter.text, when(parameter.name)});
  // Of one layer: the first, and of a stack or of two directions, the first of each.
  const auto& layers = network.layers();
  const auto shown = [&](int layer) { return layers[static_cast<std::size_t>(std::max(layer, 0))].first; };
  const bool several = std::ranges::count(layers, true, &Network::LayerInfo::first) > 1;
  const auto named = [&](int layer, const std::string& name) { return several ? std::to_string(std::max(layer, 0)) + "/" + name : name; };
  for (const auto& state : network.states())
    if (shown(state.layer)) card.states.push_back({named(state.layer, state.name), state.row_shape(), is_complex(state.initial.dtype()), static_cast<bool>(state.trajectory) || state.memory != nullptr, state.text});
  for (const auto& gate : network.gates())
    if (shown(gate.layer)) card.gates.push_back({named(gate.layer, gate.name), Shape(gate.var.shape().begin() + 2, gate.var.shape().end()), gate.low, gate.high, gate.text});
  card.spectrum = architecture.spectrum;
  for (const Form form : network.forms()) card.forms.emplace_back(to_string(form));
  // A preset of another paper than its architecture's says so.
  card.source = preset.source.year && preset.source.year != architecture.source.year ? preset.source : architecture.source;
  return card;
}

void check_files(const Registry& registry, const RunRequest& request) {
  RunRequest on_cpu = request;  // whether files fit is no question of a device
  on_cpu.device = "cpu";
  const Prepared prepared(registry, on_cpu);
  if (!request.state.empty()) load_state(request.state, *prepared.probe);
}

std::vector<std::string> settings_without_effect(const Registry& registry, const RunRequest& request) {
  std::vector<std::string> keys;
  if (request.weights.empty()) return keys;
  for (const auto& row : architecture_of(registry, request.preset)->hyper)
    if (row.draws_only) keys.push_back(row.key);
  keys.emplace_back("seed");
  return keys;
}

RunResult run(const Registry& registry, const RunRequest& request, const Progress& progress, std::stop_token stop, const Publish& publish) {
  const StopScope scope(stop);
  if (progress) progress(0.0, "drawing the weights");
  std::string where = "before the first step";
  try {
    return or_on_cpu(request, "run", where, [&](const RunRequest& asked, const std::string& said) {
      where = "before the first step";
      return Run(registry, asked, progress, stop, publish, where, said)();
    });
  } catch (const Cancelled&) {  // while the weights were drawn, so that there is nothing to show
    auto trace = std::make_shared<Trace>();
    trace->info.preset = request.preset.id;
    trace->info.length = request.sequence.length;
    trace->info.outcome = Outcome::cancelled;
    trace->info.sentence = "cancelled before the first step";
    return {std::move(trace), {}};
  }
}

}  // namespace reclab
