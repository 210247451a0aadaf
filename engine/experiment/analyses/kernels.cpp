// SPDX-License-Identifier: GPL-3.0-or-later
// The convolution kernel, the frequency response and the time constant of each channel, for every memory that is linear and the same at
// every step.
#include <algorithm>
#include <map>
#include <numbers>
#include <set>

#include "analysis/response.h"
#include "experiment/record/analysis.h"

namespace reclab {
namespace {

/// Of a memory: channels that differ, and lags, so that a kernel is at most 16 MiB.
constexpr std::int64_t most_channels = 1024, most_lags = 4096, most_entries = std::int64_t{1} << 21;
/// Seconds that an array may take that was not asked for by name, and those of a floating-point operation of the slower kind.
constexpr double most_seconds = 10.0, an_operation = 5e-10;

class Kernels final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::kernel, Kind::response, Kind::time_constant}; }
  bool of_states() const override { return wanted(); }

  /// Whether a memory is a linear system is known when its graph is built.
  void plan() override {
    Network& network = *record_.prepared.shape_network;
    std::set<const Memory*> known;
    std::set<int> layers_with;
    visit(network, [&](const LinearSystem&, const Memory* memory, const Network::StateVar& state, const std::string&) {
      known.insert(memory);
      layers_with.insert(state.layer);
    });
    for (int layer = 0; layer < static_cast<int>(record_.layers()); ++layer) {
      const auto memories = network.memories(layer);
      if (memories.empty() && !layers_with.contains(layer)) reasons_[transition_of(memories).why].push_back(layer);
      for (const Memory* memory : memories)
        if (!known.contains(memory)) {
          auto& layers = reasons_[why_not(*memory)];
          if (layers.empty() || layers.back() != layer) layers.push_back(layer);
        }
    }
    if (!layers_with.empty()) return;
    std::string all;
    for (const std::string& sentence : sentences()) all += (all.empty() ? "" : " ") + sentence;
    record_.mark_unavailable(kinds(), all);
  }

  void begin(const Network&) override { found_.clear(); }

  /// The systems are the same in every segment.
  void forward(const Rollout::Segment& segment) override {
    if (!wanted() || !found_.empty()) return;
    visit(segment.network, [&](const LinearSystem& system, const Memory*, const Network::StateVar& state, const std::string& name) {
      if (wants(state.layer, name))
        found_.push_back({state.layer, name, record_.reversed(static_cast<std::size_t>(state.layer)), reads_states(system),
                          Response(system, record_.prepared.backend, most_channels)});
    });
  }

  bool revisit(Rollout&) override {
    if (!wanted()) return false;
    record_.where = "in the kernels";
    if (asked())
      for (const std::string& sentence : sentences()) record_.note(kinds(), sentence);
    const std::vector<double> frequencies = response_frequencies();
    std::vector<double> angles;
    for (const double f : frequencies) angles.push_back(2.0 * std::numbers::pi * f);
    const auto points = std::ssize(frequencies);
    bool any = false;
    for (const Found& own : found_) {
      const auto& channels = own.response.channels();
      const std::int64_t n = std::ssize(channels);
      if (n == 0) continue;
      std::vector<std::string> labels;
      for (const auto& channel : channels) labels.push_back(label(own.response, channel));
      const Axis channel{"channel", "", labels};
      const std::string of = " of layer " + std::to_string(own.layer) + "'s " + own.name + way(own);
      const std::string columns = text_of_columns(own);
      const std::int64_t lags = std::max<std::int64_t>(1, std::min({record_.length(), most_lags, most_entries / n}));
      if (const std::string key = key_of(Kind::kernel, own.layer, own.name);
          within_budget(key, own.response.kernel_work() * static_cast<double>(lags)))
        any = put(key, {lags, n}, {{"lag", "steps", {}}, channel}, "",
                  "The kernel" + of + ": what each channel returns so many steps after an impulse." + columns, own.response.kernels(lags));
      if (const std::string key = response_key(own.layer, own.name);
          within_budget(key, own.response.response_work() * static_cast<double>(points))) {
        if (const std::string axis = key_of(Kind::response, "frequency"); !record_.trace.find(axis))
          put(axis, {points}, {{"frequency", "1/step", {}}}, "1/step", "The frequencies of every response, in cycles a step.", frequencies);
        TraceArray array;
        array.key = key;
        array.shape = {points, n};
        array.axes = {{"frequency", "1/step", {}}, channel};
        array.text = "The frequency response" + of +
                     ": a tone of each frequency is multiplied with its size and moved by its phase, once what was before has died away; "
                     "infinite where it meets an eigenvalue on the unit circle." +
                     columns;
        array.complex = std::make_shared<const std::vector<std::complex<double>>>(own.response.responses(angles));
        record_.trace.put(std::move(array));
        any = true;
      }
      if (const std::string key = key_of(Kind::time_constant, own.layer, own.name); record_.wants(key))
        any = put(key, {n}, {channel}, "steps",
                  "The time constant of each channel" + of +
                      (own.response.finite() ? ": the lag within which its kernel has 1 − 1/e of the sum of its sizes."
                                             : ": −1/ln|λ| of the slowest eigenvalue; infinite where it does not fall off.") +
                      columns,
                  own.response.time_constants());
      if (const std::int64_t left = own.response.left_out())
        record_.note(kinds(), "kernel, response and time_constant" + of + " have " + plural(n, "channel") + "; " + std::to_string(left) +
                                  " more are left out.");
    }
    return any;
  }

 private:
  using Producer = std::vector<Var>;
  struct Found {
    std::int64_t layer;
    std::string name;
    bool reversed;
    bool of_states;  ///< no read-out is part of the system: a channel is an entry of the state
    Response response;
  };
  std::vector<Found> found_;
  std::map<std::string, std::vector<int>> reasons_;

  bool wanted() const { return record_.wants(Kind::kernel) || record_.wants(Kind::response) || record_.wants(Kind::time_constant); }
  bool wants(std::int64_t layer, const std::string& name) const {
    return record_.wants(key_of(Kind::kernel, layer, name)) || record_.wants(response_key(layer, name)) ||
           record_.wants(key_of(Kind::time_constant, layer, name));
  }
  /// Whether these kinds were chosen, and not just everything that there is: only then is it worth saying that most models have none.
  bool asked() const { return !record_.request.recording.only.empty() || !record_.request.recording.kinds.has_all(recordable()); }

  /// Whether an array is wanted and its operations take at most most_seconds; one named in the request always is.
  bool within_budget(const std::string& key, double operations) {
    if (!record_.wants(key)) return false;
    const double seconds = operations * an_operation;
    if (seconds <= most_seconds || !record_.request.recording.only.empty()) return true;
    record_.note({parse_key(key)->kind},
                 key + " would take about " + duration_text(seconds) + Remedy{"; ", "", {"record", key}, " makes it"} + ".");
    return false;
  }
  static std::string response_key(std::int64_t layer, const std::string& name) {
    return key_of(Kind::response, std::to_string(layer) + "/" + name);
  }

  /// f(system, its memory or null, the state that it makes or the buffer that it reads, its name in keys) of each.
  template <class F>
  static void visit(Network& network, const F& f) {
    std::map<int, Producer> producers;
    std::set<std::pair<int, std::string>> named;
    network.graph().visit([&](const Operation& operation, std::span<const Var> in, std::span<const Var> out) {
      for (const Var made : out) producers[made.id] = {in.begin(), in.end()};
      const auto* has = dynamic_cast<const HasLinearSystem*>(&operation);
      if (!has || !has->linear_system()) return;
      const auto* memory = dynamic_cast<const Memory*>(&operation);
      const Network::StateVar* state = memory ? state_of(network, memory) : buffer_of(network, has->linear_system()->input, producers);
      if (!state || state->auxiliary) return;
      std::string name = state->name;
      for (int again = 2; !named.emplace(state->layer, name).second; ++again) name = state->name + std::to_string(again);
      f(*has->linear_system(), memory, *state, name);
    });
  }

  static const Network::StateVar* state_of(const Network& network, const Memory* memory) {
    for (const auto& state : network.states())
      if (state.memory == memory) return &state;
    return nullptr;
  }

  /// The buffer that a convolution of the last inputs, or of all of them, reads: its input is the buffer, then the sequence.
  static const Network::StateVar* buffer_of(const Network& network, Var read, const std::map<int, Producer>& producers) {
    Producer around{read};
    for (int joins = 0; joins < 2; ++joins)  // of the two, and of copies of that
      for (const Var var : Producer(around))
        if (const auto made = producers.find(var.id); made != producers.end())
          around.insert(around.end(), made->second.begin(), made->second.end());
    for (const auto& state : network.states())
      if (!state.memory &&
          (state.final_state.id == read.id || std::ranges::any_of(around, [&](Var var) { return var.id == state.initial.id; })))
        return &state;
    return nullptr;
  }

  static std::string why_not(const Memory& memory) {
    const Transition own = memory.transition();
    if (own.kind == Transition::Kind::none) return own.why;
    if (own.varies) return "what a step does to its state changes from step to step, with the input or with the state itself";
    // A memory with HasLinearSystem that gives none is stabilised; the others that are the same at every step have no decay.
    if (dynamic_cast<const HasLinearSystem*>(&memory)) return "its state is held in units that change from step to step";
    return "its state is a plain sum of all that was written, whose kernel is 1 at every lag";
  }

  std::vector<std::string> sentences() const {
    std::vector<std::string> all;
    for (const auto& [why, layers] : reasons_) {
      std::string names;
      for (const int layer : layers) names += (names.empty() ? "" : ", ") + std::to_string(layer);
      all.push_back((layers.size() == 1 ? "Layer " + names + " has" : "Layers " + names + " have") + " no convolution kernel, because " +
                    why + ".");
    }
    return all;
  }

  std::string way(const Found& own) const { return own.reversed ? ", which runs from the end of the sequence to its start," : ""; }
  static bool reads_states(const LinearSystem& system) {
    return (system.structure == LinearSystem::Structure::modes || system.structure == LinearSystem::Structure::matrix) && !system.c;
  }
  /// Describes the columns where they are more than channels of the model's input.
  static std::string text_of_columns(const Found& own) {
    std::string text;
    if (own.of_states) text += " A channel is an entry of the state by itself, before the model reads it.";
    if (std::ranges::any_of(own.response.channels(), [](const auto& channel) { return channel.alike > 1; }))
      text += " Channels that are alike to the bit are one, whose label counts them.";
    return text;
  }
  static std::string label(const Response& response, const Response::Channel& channel) {
    const bool same = std::ranges::all_of(response.channels(), [](const auto& one) { return one.input == one.output; });
    std::string text = same ? std::to_string(channel.output) : std::to_string(channel.input) + " to " + std::to_string(channel.output);
    return channel.alike > 1 ? text + " (" + std::to_string(channel.alike) + " alike)" : text;
  }

  bool put(const std::string& key, Shape shape, std::vector<Axis> axes, const std::string& unit, std::string text,
           std::vector<double> values) {
    TraceArray array;
    array.key = key;
    array.shape = std::move(shape);
    array.axes = std::move(axes);
    array.unit = unit;
    array.text = std::move(text);
    put_real(record_.trace, std::move(array), std::move(values));
    return true;
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> kernels(Record& record) { return std::make_unique<Kernels>(record); }
}  // namespace analyses
}  // namespace reclab
