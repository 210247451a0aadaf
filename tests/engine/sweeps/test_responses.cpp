// SPDX-License-Identifier: GPL-3.0-or-later
// What a run says of a time-invariant memory is what that memory does: an impulse and pure tones are put in front of it, where it stands in
// its model.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numbers>
#include <set>

#include "analysis/response.h"
#include "execution/rollout.h"
#include "experiment/command/command.h"
#include "sweep.h"

using namespace reclab;

namespace {

using Complex = std::complex<double>;
constexpr double turn = 2.0 * std::numbers::pi;

/// A system within a network that has run on the host in float64: what goes into it is overwritten, and what comes after is computed again.
class Probed {
 public:
  Probed(Network& network, const LinearSystem& system) : network_(network), system_(system) {
    std::ptrdiff_t number = 0;
    const auto holds = [&](Var made, Var wanted) {
      const auto *own = static_cast<const char*>(network_.graph().value(made)),
                 *at = static_cast<const char*>(network_.graph().value(wanted));
      return at >= own && at < own + count(made.shape()) * static_cast<std::int64_t>(bytes_of(made.dtype()));
    };
    network.graph().visit([&](const Operation&, std::span<const Var>, std::span<const Var> out) {
      for (const Var made : out) {
        if (holds(made, system.input)) first_ = number + 1;
        if (holds(made, system.output)) last_ = number;
      }
      ++number;
    });
    earlier_ = system.input.dim(0) - system.output.dim(0);
    still_ = respond(0, [](std::int64_t) { return 0.0; });
  }

  std::int64_t steps() const { return system_.output.dim(0); }

  /// The real part of entry `output` at every step, of a signal at entry `input` and nothing elsewhere, less what the initial state leaves.
  std::vector<double> operator()(std::int64_t input, std::int64_t output, const std::function<double(std::int64_t)>& signal) {
    std::vector<double> y = entries(respond(input, signal), output);
    const std::vector<double> still = entries(still_, output);
    for (std::size_t t = 0; t < y.size(); ++t) y[t] -= still[t];
    return y;
  }

 private:
  Network& network_;
  const LinearSystem& system_;
  std::ptrdiff_t first_ = 0, last_ = 0;  // the operations from what goes in to what comes out
  std::int64_t earlier_ = 0;
  std::vector<double> still_;

  static std::int64_t parts(Var x) { return is_complex(x.dtype()) ? 2 : 1; }
  static std::int64_t row(Var x) { return count(x.shape()) / x.dim(0) * parts(x); }

  std::vector<double> respond(std::int64_t input, const std::function<double(std::int64_t)>& signal) {
    Graph& graph = network_.graph();
    auto* u = static_cast<double*>(const_cast<void*>(graph.value(system_.input)));
    std::fill_n(u, count(system_.input.shape()) * parts(system_.input), 0.0);
    for (std::int64_t t = 0; t < steps(); ++t) u[(earlier_ + t) * row(system_.input) + input * parts(system_.input)] = signal(t);
    std::ptrdiff_t number = 0;
    graph.visit([&](const Operation& operation, std::span<const Var> in, std::span<const Var> out) {
      const std::ptrdiff_t own = number++;
      if (own < first_ || own > last_) return;
      std::vector<const void*> from;
      std::vector<void*> to;
      for (const Var x : in) from.push_back(graph.value(x));
      for (const Var y : out) to.push_back(const_cast<void*>(graph.value(y)));
      const_cast<Operation&>(operation).forward({cpu_backend(), from, to, {}});
    });
    const auto* y = static_cast<const double*>(graph.value(system_.output));
    return {y, y + count(system_.output.shape()) * parts(system_.output)};
  }
  std::vector<double> entries(const std::vector<double>& y, std::int64_t output) const {
    std::vector<double> own;
    for (std::int64_t t = 0; t < steps(); ++t)
      own.push_back(y[static_cast<std::size_t>(t * row(system_.output) + output * parts(system_.output))]);
    return own;
  }
};

/// Σ_t h_t e^{-iωt} at all angles 2π j / length, radix 2.
std::vector<Complex> fourier(std::vector<Complex> x) {
  const std::size_t n = x.size();
  if (n == 1) return x;
  std::vector<Complex> even, odd;
  for (std::size_t i = 0; i < n; i += 2) {
    even.push_back(x[i]);
    odd.push_back(x[i + 1]);
  }
  even = fourier(std::move(even));
  odd = fourier(std::move(odd));
  for (std::size_t j = 0; j < n / 2; ++j) {
    const Complex turned = std::polar(1.0, -turn * static_cast<double>(j) / static_cast<double>(n)) * odd[j];
    x[j] = even[j] + turned;
    x[j + n / 2] = even[j] - turned;
  }
  return x;
}

bool finite(Complex z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }

/// The channels that are looked at: the first, the last, and some between.
std::vector<std::size_t> some_of(std::size_t channels) {
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < 4; ++i) some.push_back(i * (channels - 1) / 3);
  some.erase(std::unique(some.begin(), some.end()), some.end());
  return some;
}

struct Worst {
  double kernel = 0.0, transform = 0.0, tone = 0.0;
};

Worst check(const std::string& what, Network& network, const LinearSystem& system) {
  constexpr double tolerance = 1e-9;
  const Response response(system, cpu_backend(), 1024);
  Probed probed(network, system);
  const auto L = static_cast<std::size_t>(std::bit_floor(static_cast<std::uint64_t>(probed.steps())));
  CHECK_SAYS(L >= 16, what + ": " + std::to_string(probed.steps()) + " steps are too few to see anything");
  std::vector<double> angles;
  for (std::size_t j = 0; j <= L / 2; ++j) angles.push_back(turn * static_cast<double>(j) / static_cast<double>(L));
  const std::size_t channels = response.channels().size();
  const auto H = response.responses(angles), tail = response.after(static_cast<std::int64_t>(L)).responses(angles);
  const auto kernel = response.kernels(static_cast<std::int64_t>(L));
  Worst worst;
  for (const std::size_t c : some_of(channels)) {
    const auto [input, output, alike] = response.channels()[c];
    const std::string channel = what + ", channel " + std::to_string(input) + " to " + std::to_string(output);
    const std::vector<double> h = probed(input, output, [](std::int64_t t) { return t == 0 ? 1.0 : 0.0; });
    double size = 0.0;
    for (std::size_t t = 0; t < L; ++t) size = std::max(size, std::abs(h[t]));
    CHECK_SAYS(size > 0.0, channel + ": an impulse leaves nothing");
    for (std::size_t t = 0; t < L; ++t) worst.kernel = std::max(worst.kernel, std::abs(kernel[t * channels + c] - h[t]) / size);
    // What came out within the window is the whole less what comes after it, A^L b seen through the same transition.
    const auto seen = fourier(std::vector<Complex>(h.begin(), h.begin() + static_cast<std::ptrdiff_t>(L)));
    double largest = 0.0;
    for (std::size_t j = 0; j < angles.size(); ++j)
      if (finite(H[j * channels + c])) largest = std::max(largest, std::abs(H[j * channels + c]));
    std::size_t looked_at = 0;
    for (std::size_t j = 0; j < angles.size(); ++j) {
      const Complex all = H[j * channels + c], later = tail[j * channels + c];
      if (!finite(all)) continue;  // a pole on the circle: the sum of the kernel has no limit
      ++looked_at;
      worst.transform = std::max(worst.transform, std::abs(seen[j] + later - all) / largest);
    }
    CHECK_SAYS(looked_at + 1 >= angles.size(), channel + " has a response at few frequencies");
    // Tones that are none of the transform's: at each step the steady tone, less what the kernel's rest from there on would have added of
    // the time before.
    for (const double cycles : {0.0137, 0.2113}) {
      const double omega = turn * cycles;
      const double at[] = {omega};
      const Complex gain = response.responses(at)[c];
      const std::vector<double> y = probed(input, output, [&](std::int64_t t) { return std::cos(omega * static_cast<double>(t)); });
      for (const std::size_t t : {L / 2, L - 3, L - 2, L - 1}) {
        const Complex before = response.after(static_cast<std::int64_t>(t) + 1).responses(at)[c] * std::polar(1.0, -omega);
        const double steady = std::abs(gain) * std::cos(omega * static_cast<double>(t) + std::arg(gain));
        worst.tone = std::max(worst.tone, std::abs(y[t] + before.real() - steady) / std::max(std::abs(gain), largest));
      }
    }
  }
  CHECK_SAYS(worst.kernel < tolerance, what + ": the kernel differs by " + test::show(worst.kernel));
  CHECK_SAYS(worst.transform < tolerance,
             what + ": the response and the transform of the impulse response differ by " + test::show(worst.transform));
  CHECK_SAYS(worst.tone < tolerance, what + ": a tone differs by " + test::show(worst.tone));
  return worst;
}

}  // namespace

SWEEP_PRESETS(
    "frequency responses are the transforms of impulse responses, and a tone comes out with the gain and the phase that a run says",
    preset) {
  const Hyper hyper = hyper_of(builtin_registry(), preset);
  const auto architecture = architecture_of(builtin_registry(), preset);
  const Network shapes(*architecture, hyper, {.input = 1});
  std::int64_t slowest = 1;  // a layer at a slower rate has as many steps less
  for (const auto& layer : shapes.layers()) slowest = std::max(slowest, layer.stride);
  const Sequence sequence = make_task("noise", {.length = 64 * slowest, .seed = 3});
  const SequenceLoss loss(LossKind::last, sequence);
  const Parameters parameters = shapes.initialise(1);
  const Model model(*architecture, hyper, parameters, cpu_backend(), DType::f64);
  RunRequest request;
  request.preset = preset;
  request.sequence = sequence;
  request.recording = recording_of({"kernel", "response", "time_constant"});
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  const auto recorded = trace->of(Kind::kernel);
  CHECK_SAYS(
      recorded.empty() == trace->info.absent.contains(Kind::kernel),
      preset.id + (recorded.empty() ? " has no kernel and does not say that there is none" : " has kernels and says that there are none"));
  if (recorded.empty()) {
    CHECK_SAYS(std::ranges::any_of(trace->info.note_kinds, [](const auto& note) { return note.first == Kind::kernel; }),
               preset.id + " has no kernel and does not say why");
    return;
  }
  const TraceArray* frequencies = trace->find("response/frequency");
  CHECK_SAYS(frequencies, preset.id);
  std::vector<double> angles;
  for (const double f : *frequencies->real) angles.push_back(turn * f);
  CHECK_EQUAL(frequencies->real->back(), 0.5);
  std::size_t systems = 0, told = 0;
  Worst worst;
  Rollout rollout(model, Batch(sequence, loss), {.segment = shapes.needs_one_segment() ? 0 : sequence.length});
  rollout.visit_first(
      [&](const Rollout::Segment& segment) {
        std::vector<LinearSystem> found;
        segment.network.graph().visit([&](const Operation& operation, std::span<const Var>, std::span<const Var>) {
          if (const auto* has = dynamic_cast<const HasLinearSystem*>(&operation); has && has->linear_system())
            found.push_back(*has->linear_system());
        });
        for (const LinearSystem& system : found) {
          // A run records them in the order of the graph, all but those of what is no part of the transition.
          const Response response(system, cpu_backend(), 1024);
          const TraceArray* kernel = told < recorded.size() ? recorded[told] : nullptr;
          if (kernel && response.kernels(kernel->shape[0]) == *kernel->real) {
            const std::string name = kernel->key.substr(kernel->key.find('/'));
            const TraceArray *response_of = trace->find("response" + name), *constants = trace->find("time_constant" + name);
            CHECK_SAYS(response_of && *response_of->complex == response.responses(angles) && constants &&
                           *constants->real == response.time_constants(),
                       preset.id + ": " + kernel->key);
            ++told;
          }
          const Worst own = check(preset.id + ", system " + std::to_string(systems++), segment.network, system);
          worst = {std::max(worst.kernel, own.kernel), std::max(worst.transform, own.transform), std::max(worst.tone, own.tone)};
        }
      },
      {});
  CHECK_EQUAL(told, recorded.size());
  std::printf("  %s: %zu systems, kernel %.1e, transform %.1e, tone %.1e\n", preset.id.c_str(), systems, worst.kernel, worst.transform,
              worst.tone);
}

TEST_CASE("there are presets whose memories have each structure that a system can have") {
  std::set<LinearSystem::Structure> seen;
  for (const Preset& preset : test::shipped().presets()) {
    Network network(*architecture_of(builtin_registry(), preset), hyper_of(builtin_registry(), preset), {.steps = 2});
    network.graph().visit([&](const Operation& operation, std::span<const Var>, std::span<const Var>) {
      if (const auto* has = dynamic_cast<const HasLinearSystem*>(&operation); has && has->linear_system())
        seen.insert(has->linear_system()->structure);
    });
  }
  CHECK_EQUAL(seen.size(), std::size_t{4});
}
