// SPDX-License-Identifier: GPL-3.0-or-later
// The synthetic tasks. Everything random comes from Rng streams named after what they draw.
#include <cmath>
#include <numeric>

#include "array/error.h"
#include "array/rng.h"
#include "files/files.h"
#include "sequence/sequence.h"
#include "sequence/standardise.h"

// As in rng.cpp: the same bits whether or not the processor has a fused multiply-add.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace reclab {

namespace {

constexpr std::int64_t longest = 100'000'000;

struct Task {
  TaskInfo info;
  std::int64_t shortest;
  std::string why;  ///< why it cannot be shorter, for a sentence
  void (*make)(Sequence& sequence, const Rng& rng);
};

/// A target for every step, counted at none.
void add_target(Sequence& sequence, TargetKind kind, std::int64_t width) {
  sequence.target_kind = kind;
  sequence.target_width = width;
  sequence.target.assign(static_cast<std::size_t>(sequence.length * width), 0.0);
  sequence.mask.assign(static_cast<std::size_t>(sequence.length), 0.0);
}

void set_width(Sequence& sequence, std::vector<std::string> names) {
  sequence.names = std::move(names);
  sequence.width = static_cast<std::int64_t>(sequence.names.size());
  sequence.input.assign(static_cast<std::size_t>(sequence.length * sequence.width), 0.0);
}

void adding(Sequence& sequence, const Rng& rng) {
  set_width(sequence, {"value", "marker"});
  add_target(sequence, TargetKind::regress, 1);
  const auto length = static_cast<std::size_t>(sequence.length);
  Rng values = rng.split("values"), markers = rng.split("markers");
  for (std::size_t t = 0; t < length; ++t) sequence.input[2 * t] = values.uniform();
  const std::int64_t half = sequence.length / 2;
  const auto first = static_cast<std::size_t>(markers.integer(half)),
             second = static_cast<std::size_t>(half + markers.integer(sequence.length - half));
  sequence.input[2 * first + 1] = sequence.input[2 * second + 1] = 1.0;
  sequence.target[length - 1] = sequence.input[2 * first] + sequence.input[2 * second];
  sequence.mask[length - 1] = 1.0;
}

constexpr std::size_t kept = 10;

/// One-hot: symbols at the given steps, blanks elsewhere, and at the end as many markers, at which the symbols are the target.
void recall(Sequence& sequence, const Rng& rng, const std::vector<std::size_t>& places) {
  constexpr std::size_t symbols = 10, marker = 9;
  std::vector<std::string> names;
  for (std::size_t symbol = 0; symbol < symbols; ++symbol) names.push_back("symbol " + std::to_string(symbol));
  set_width(sequence, std::move(names));
  add_target(sequence, TargetKind::classify, 1);
  sequence.classes = symbols;
  const auto length = static_cast<std::size_t>(sequence.length);
  std::vector<std::size_t> shown(length, 0);
  Rng draw = rng.split("symbols");
  for (std::size_t i = 0; i < kept; ++i) {
    const std::size_t end = length - kept + i;
    shown[places[i]] = static_cast<std::size_t>(1 + draw.integer(8));
    shown[end] = marker;
    sequence.target[end] = static_cast<double>(shown[places[i]]);
    sequence.mask[end] = 1.0;
  }
  for (std::size_t t = 0; t < length; ++t) sequence.input[t * symbols + shown[t]] = 1.0;
}

void copy(Sequence& sequence, const Rng& rng) {
  std::vector<std::size_t> places(kept);
  std::iota(places.begin(), places.end(), std::size_t{0});
  recall(sequence, rng, places);
}

/// Every set of ten steps before the markers is as likely as any other: a step is taken with the chance of those still wanted among those left.
void selective_copy(Sequence& sequence, const Rng& rng) {
  const std::int64_t before = sequence.length - static_cast<std::int64_t>(kept);
  std::vector<std::size_t> places;
  Rng draw = rng.split("places");
  for (std::int64_t t = 0; t < before; ++t)
    if (draw.integer(before - t) < static_cast<std::int64_t>(kept - places.size())) places.push_back(static_cast<std::size_t>(t));
  recall(sequence, rng, places);
}

constexpr std::int64_t sine_period = 50;

/// sin(2 pi k / period) by its Taylor series on the first quarter, so that no library's sine takes part; error below 3e-16.
double sine(std::int64_t k, std::int64_t period) {
  k %= period;
  if (2 * k > period) return -sine(period - k, period);
  if (4 * k > period) return sine(period - 2 * k, 2 * period);  // sin(pi - x), with x in units half as large
  const double x = 6.283185307179586477 * static_cast<double>(k) / static_cast<double>(period), square = x * x;
  double series = 1.0;
  for (int n = 24; n >= 2; n -= 2) series = 1.0 - series * square / (n * (n + 1));
  return x * series;
}

void sine_stream(Sequence& sequence, const Rng&) {
  set_width(sequence, {"sine"});
  add_target(sequence, TargetKind::regress, 1);
  for (std::int64_t t = 0; t < sequence.length; ++t) {
    sequence.input[static_cast<std::size_t>(t)] = sine(t, sine_period);
    sequence.target[static_cast<std::size_t>(t)] = sine(t + 1, sine_period);
    sequence.mask[static_cast<std::size_t>(t)] = 1.0;
  }
}

void impulse(Sequence& sequence, const Rng&) {
  set_width(sequence, {"impulse"});
  sequence.input[0] = 1.0;
}

void noise(Sequence& sequence, const Rng& rng) {
  set_width(sequence, {"noise"});
  Rng draw = rng.split("noise");
  for (double& value : sequence.input) value = draw.normal();
}

const std::vector<Task>& all() {
  static const std::vector<Task> table = {
      {{"adding", "Adding problem",
        "Each step brings a number drawn uniformly from [0, 1) and a marker that is 1 at two steps, one in each half of the sequence; "
        "the target, at the last step, is the sum of the two marked numbers. The first must be held for at least half the sequence; "
        "always answering 1 has a mean squared error of 1/6.",
        200,
        "Hochreiter and Schmidhuber 1997, Long short-term memory; with a marker in each half as in Arjovsky, Shah and Bengio 2016, "
        "Unitary evolution recurrent neural networks"},
       2,
       "one marker in each half",
       adding},
      {{"copy", "Copy memory",
        "Ten symbols drawn from 1 to 8, then T blanks (0), then ten markers (9), one-hot over ten channels, T + 20 steps in all; the "
        "target, over the last ten steps, is the ten symbols in their order. Each must be held for T + 10 steps; guessing among the "
        "eight has a cross-entropy of log 8 = 2.08.",
        120,
        "after Hochreiter and Schmidhuber 1997, Long short-term memory; in this form Arjovsky, Shah and Bengio 2016, Unitary evolution "
        "recurrent neural networks"},
       21,
       "ten symbols, at least one blank and ten markers",
       copy},
      {{"selective-copy", "Selective copying",
        "Ten symbols drawn from 1 to 8 at steps drawn at random among blanks (0), then ten markers (9), one-hot over ten channels; the "
        "target, over the last ten steps, is the ten symbols in their order. What to keep depends on what is seen, not on when: the "
        "blanks between have to be passed over. Guessing among the eight has a cross-entropy of log 8 = 2.08.",
        120,
        "Gu and Dao 2023, Mamba: linear-time sequence modeling with selective state spaces; after Jing and others 2019, Gated orthogonal "
        "recurrent units"},
       21,
       "ten symbols, at least one blank and ten markers",
       selective_copy},
      {{"sine", "Sine, next value",
        "A sine of amplitude 1 and a period of 50 steps; the target, at every step, is the next value. Two numbers of memory are enough; "
        "repeating the last value is the answer to beat.",
        500,
        "a standard test signal; as an online prediction task in Tiezzi and others 2024, On the resurgence of recurrent models for long "
        "sequences (a sine at 2.8 mHz)"},
       1,
       "one step",
       sine_stream},
      {{"impulse", "Impulse",
        "1 at the first step and 0 after it, without a target. What comes out is the impulse response: for a linear model its "
        "convolution kernel, for every model how long one step is remembered.",
        200, "a standard test signal of linear systems theory"},
       1,
       "one step",
       impulse},
      {{"noise", "White noise",
        "Independent normal numbers of mean 0 and deviation 1, without a target. It drives every mode of a model alike, so that states, "
        "Jacobians and gradients show the model and not the input.",
        500, "a standard test signal of system identification"},
       1,
       "one step",
       noise},
  };
  return table;
}

}  // namespace

const std::vector<TaskInfo>& tasks() {
  static const std::vector<TaskInfo> infos = [] {
    std::vector<TaskInfo> result;
    for (const Task& task : all()) result.push_back(task.info);
    return result;
  }();
  return infos;
}

Sequence make_task(const std::string& name, const TaskOptions& options) {
  const Task* task = nullptr;
  std::string known;
  for (const Task& candidate : all()) {
    if (candidate.info.name == name) task = &candidate;
    known += (known.empty() ? "" : ", ") + candidate.info.name;
  }
  if (!task) throw Error("there is no task '" + name + "': choose from " + known, {.parameter = "task", .value = name, .range = known});
  if (options.length < task->shortest || options.length > longest) {
    const std::string range = std::to_string(task->shortest) + " to " + std::to_string(longest);
    throw Error("the task " + name + " cannot be " + std::to_string(options.length) + " steps long" +
                    (options.length < task->shortest ? " (it needs " + task->why + ")" : "") + ": choose a length from " + range,
                {.parameter = "length", .value = std::to_string(options.length), .range = range});
  }
  Sequence sequence;
  sequence.name = name;
  sequence.task = name;
  sequence.made = options;
  sequence.source = "task " + name + " --length " + std::to_string(options.length) + " --seed " + std::to_string(options.seed);
  sequence.length = options.length;
  sequence.time.resize(static_cast<std::size_t>(options.length));
  std::iota(sequence.time.begin(), sequence.time.end(), 0.0);
  task->make(sequence, Rng(options.seed).split(name));
  sequence.mean.assign(sequence.names.size(), 0.0);
  sequence.deviation.assign(sequence.names.size(), 1.0);
  if (options.standardise) standardise(sequence);
  Sha256 hash;
  hash.update(sequence.input.data(), sequence.input.size() * sizeof(double));
  hash.update(sequence.target.data(), sequence.target.size() * sizeof(double));
  sequence.sha256 = hash.hex();
  return sequence;
}

}  // namespace reclab
