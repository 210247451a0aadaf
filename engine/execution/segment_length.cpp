// SPDX-License-Identifier: GPL-3.0-or-later
#include "execution/segment_length.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>

#include "array/error.h"
#include "execution/plan.h"

namespace reclab {
namespace {

constexpr std::int64_t segment_bytes = std::int64_t{8} << 20;  // the working set that stays in the caches between one operation and the
                                                               // next
constexpr std::int64_t shortest_segment = 16;
constexpr std::int64_t sample_steps = 32;  // the graph whose memory gives the bytes of a step

/// Between layers the adjoints of a segment share one power of two, so a segment must be short enough that none of them leaves the
/// range of the number format on the way: with 256 steps (float: 64) they may lose more than a decade (half a decade) a step.
std::int64_t longest_segment(std::int64_t layers, DType real) { return layers == 1 ? 4096 : real == DType::f64 ? 256 : 64; }

constexpr std::int64_t most_bytes = std::int64_t{8} << 30;

/// Bytes that this process can still take, of the system's memory without swapping and of its own limit.
double available_memory() {
  double available = std::numeric_limits<double>::infinity();
  std::ifstream system("/proc/meminfo");
  for (std::string line; std::getline(system, line);)
    if (line.starts_with("MemAvailable:")) available = 1024.0 * std::strtod(line.c_str() + line.find(':') + 1, nullptr);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return available;
  std::ifstream own("/proc/self/statm");
  double pages = 0.0;
  own >> pages;
  return std::min(available, static_cast<double>(limit.rlim_cur) - pages * static_cast<double>(sysconf(_SC_PAGESIZE)));
}

/// Refuses a run that would take most of the memory that is left: half of it, since a pass goes back as well.
void check_memory(const Model& model, std::int64_t steps, double needed) {
  constexpr double small = static_cast<double>(std::int64_t{256} << 20);
  if (needed < small || model.backend().device() != Device::cpu) return;
  const double available = available_memory();
  if (needed <= available / 2.0) return;
  const auto mib = [](double bytes) { return std::to_string(static_cast<std::int64_t>(std::max(0.0, bytes) / 1048576.0)) + " MiB"; };
  throw Error(model.architecture().id + " would need " + mib(needed) + " for " + std::to_string(steps) + (steps == 1 ? " step" : " steps") +
                  " at once, which is more than half of the " + mib(available) +
                  " that are free: choose a smaller width, a shorter sequence or fewer sequences side by side.",
              {.model = model.architecture().id});
}

/// The memory of a network for all its steps at once: exactly for few steps, else from a line through two smaller ones.
double memory_of(const Model& model, NetworkOptions build, std::int64_t length) {
  const auto planned = [&](std::int64_t steps) {
    build.steps = steps;
    return static_cast<double>(planned_memory(model.architecture(), model.hyper(), build, model.backend()));
  };
  constexpr std::int64_t some = 32, more = 64;
  if (length <= more) return planned(length);
  const double least = planned(some), slope = (planned(more) - least) / static_cast<double>(more - some);
  return least + slope * static_cast<double>(length - some);
}

/// The period after which the growing states of all layers are reset, so that a run may be cut there; 0: never.
std::int64_t period_of(const Network& network) {
  std::int64_t period = 0;
  for (const auto& state : network.states()) {
    if (!state.growing) continue;
    if (!state.period) return 0;
    period = period ? std::lcm(period, state.period) : state.period;
  }
  return std::ranges::any_of(network.layers(), [](const Network::LayerInfo& layer) { return layer.reversed; }) ? 0 : period;
}

/// The steps of a segment that fits: a whole number of periods, at whose ends all growing states are reset. Throws Error where none fits.
std::int64_t periods_that_fit(const Model& model, const Network& sample, std::int64_t length, double each, double needed,
                              std::int64_t longest) {
  const NetworkOptions& build = sample.options();
  const std::int64_t period = build.form == Form::sequential ? period_of(sample) : 0;
  if (!period || build.cached_steps % period || each * static_cast<double>(period) > static_cast<double>(most_bytes))
    throw Error((sample.needs_one_segment() ? model.architecture().id : "The " + std::string(to_string(build.form)) + " form") +
                    " takes all " + std::to_string(length) + " steps at once and would need " +
                    std::to_string(static_cast<std::int64_t>(needed) >> 20) + " MiB: shorten the sequence" +
                    (sample.needs_one_segment() ? "." : " or choose form sequential."),
                {.parameter = "form", .value = std::string(to_string(build.form)), .range = "sequential"});
  const std::int64_t most = std::min(static_cast<std::int64_t>(static_cast<double>(segment_bytes) / each), longest);
  return std::max<std::int64_t>(1, most / period) * period;
}

}  // namespace

std::int64_t sampled_steps(std::int64_t length) {
  constexpr std::int64_t short_enough = 512;  // a graph of more steps seldom is one segment
  return length <= short_enough ? length : std::min(length, sample_steps);
}

std::int64_t segment_length(const Model& model, const Network& sample, std::int64_t length) {
  NetworkOptions build = sample.options();
  double each = static_cast<double>(sample.graph().planned_bytes(true)) / static_cast<double>(build.steps);
  const double steps = static_cast<double>(length), fits = static_cast<double>(segment_bytes);
  const std::int64_t longest = longest_segment(std::ssize(sample.layers()), build.real);
  if (build.form != Form::sequential || sample.needs_one_segment()) {
    // Arrays and weights far from the limit have no scratch that would reach it.
    const double limit = static_cast<double>(most_bytes), arrays = each * steps,
                 scratch_at_most = 15.0 * (arrays + static_cast<double>(model.bytes()));
    const double needed = arrays > limit || arrays + scratch_at_most <= limit ? arrays : memory_of(model, build, length);
    return needed > limit ? periods_that_fit(model, sample, length, each, needed, longest) : length;
  }
  // A graph of `sample_steps` divides memory that does not grow with the steps among them, so a step takes at most this many times its
  // bytes there.
  const double at_most = each * std::max(1.0, static_cast<double>(build.steps) / static_cast<double>(sample_steps));
  if (length <= longest && build.steps == length && at_most * steps <= fits) return length;
  if (build.steps > sample_steps) {
    build.steps = sample_steps;
    each = static_cast<double>(Network(model.architecture(), model.hyper(), build).graph().planned_bytes(true)) /
           static_cast<double>(sample_steps);
  }
  const std::int64_t least = std::min(length, shortest_segment);
  check_memory(model, least, each * static_cast<double>(least));
  const std::int64_t most = std::clamp(static_cast<std::int64_t>(fits / each), shortest_segment, longest);
  // All segments but the last are run again on the way back: where two would do, one that leaves the caches of a processor now and then is
  // faster.
  return model.backend().device() == Device::cpu && length <= std::min(2 * most, longest) ? length : most;
}

}  // namespace reclab
