// SPDX-License-Identifier: GPL-3.0-or-later
// Files of weights and of states: what is taken, what is refused and in which words, for every architecture that there is.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "models/network.h"
#include "models/registry.h"
#include "places.h"
#include "scratch.h"
#include "sweep.h"
#include "targets.h"
#include "test.h"

using namespace reclab;
using test::preset_of;

namespace {

/// The arrays of a file, to be changed and written again.
using Arrays = std::map<std::string, NpyArray>;

Arrays read(const std::filesystem::path& file) {
  Arrays arrays;
  const NpzFile archive(file);
  for (const auto& name : archive.names()) arrays[name] = archive.read(name);
  return arrays;
}

void write(const Arrays& arrays, const std::filesystem::path& path) {
  AtomicFile file(path);
  NpzWriter writer(file);
  for (const auto& [name, array] : arrays) {
    if (array.is_complex())
      writer.add(name, array.shape, std::span<const std::complex<double>>(array.complex));
    else
      writer.add(name, array.shape, std::span<const double>(array.real));
  }
  writer.finish();
  file.commit();
}

/// Without its last row, or with that row twice.
NpyArray with_rows(NpyArray array, std::int64_t more) {
  const std::int64_t row = count(array.shape) / array.shape[0];
  array.shape[0] += more;
  if (more > 0) array.real.insert(array.real.end(), array.real.end() - row, array.real.end());
  array.real.resize(static_cast<std::size_t>(count(array.shape)));
  return array;
}

RunRequest request_for(const Preset& preset, std::int64_t length) {
  RunRequest request;
  request.preset = preset;
  request.sequence = make_task("noise", {.length = length, .seed = 1});
  request.recording.kinds.remove(kinds_of(Stage::late) | Kinds{Kind::gradient});
  return request;
}

void refused(const RunRequest& request, const std::string& entry, const std::string& says) {
  std::string said;
  try {
    check_files(builtin_registry(), request);
  } catch (const Error& error) {
    said = error.what();
    CHECK_EQUAL(error.where().file, request.state.string());
  }
  const std::string what = request.preset.id + ", " + entry + ": \"" + said + "\" has not \"";
  CHECK_SAYS(said.find(request.state.string()) != std::string::npos, what + request.state.string());
  CHECK_SAYS(said.find(entry) != std::string::npos, what + entry);
  CHECK_SAYS(said.find(says) != std::string::npos, what + says);
  CHECK_ERROR(run(builtin_registry(), request, {}, {}), said);
}

}  // namespace

namespace {

/// A state whose caches have unequal rows, or whose position is no number of steps, is refused.
void check_states(const Preset& preset) {
  constexpr std::int64_t steps = 7;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const test::Scratch folder;
  const auto architecture = architecture_of(builtin_registry(), preset);
  const Network network(*architecture, hyper_of(builtin_registry(), preset), {});
  RunRequest request = request_for(preset, steps);
  save_state(run(builtin_registry(), request, {}, {}).state, folder / "state.npz");
  const Arrays whole = read(folder / "state.npz");
  request.state = folder / "changed.npz";
  const auto with = [&](const std::string& entry, const std::function<void(NpyArray&)>& change) {
    Arrays changed = whole;
    change(changed.at(entry));
    write(changed, request.state);
  };
  write(whole, request.state);
  check_files(builtin_registry(), request);

  bool position = false;
  for (const auto& state : network.states()) position |= state.position;
  for (const auto& state : network.states()) {
    const std::string key = "state/" + std::to_string(state.layer) + "/" + state.name;
    if (const NpyArray& own = whole.at(key); count(own.shape) > 0) {
      with(key, [&](NpyArray& array) {
        if (array.is_complex())
          array.complex.back() = nan;
        else
          array.real.back() = nan;
      });
      Shape last = own.shape;
      for (auto& index : last) --index;
      refused(request, key, "is not finite at " + to_string(last));
      with(key, [&](NpyArray& array) { array.shape.insert(array.shape.begin(), 1); });
      refused(request, key, "has shape ");
    }
    if (state.position) {
      for (const double wrong : {-1.0, 1.5, 1e300}) {
        with(key, [&](NpyArray& array) { array.real = {wrong}; });
        refused(request, key, "is no number of steps that have passed");
      }
    }
    if (!state.growing) continue;
    // A row more always differs from the position, or from another cache where there is no position; a cache by itself may be of any
    // length.
    const bool alone = !position && std::ranges::count(network.states(), true, &Network::StateVar::growing) == 1;
    for (const std::int64_t more : {-1, 1}) {
      if (whole.at(key).shape[0] + more < 1) continue;
      with(key, [&](NpyArray& array) { array = with_rows(array, more); });
      if (alone)
        check_files(builtin_registry(), request);
      else
        refused(request, "state/", position ? "steps of state/" : " has ");
    }
    for (const auto& other : network.states()) {
      if (!other.position) continue;
      const std::string clock = "state/" + std::to_string(other.layer) + "/position";
      with(clock, [&](NpyArray& array) { array.real = {static_cast<double>(steps + 1)}; });
      refused(request, "state/", "after the 8 steps of " + clock);
    }
  }
}
constexpr const char* states_are_refused = "a state whose caches have unequal rows, or whose position is no number of steps, is refused";

}  // namespace

SWEEP_PRESETS(states_are_refused, preset) { check_states(preset); }
SWEEP_ARCHITECTURES(std::string(states_are_refused) + ", with its defaults, in both directions too", architecture) {
  Preset preset = preset_of(architecture.id);
  check_states(preset);
  preset.hyper = {{"direction", std::string("both")}};
  preset.id += " both";
  check_states(preset);
}
TEST_CASE(std::string(states_are_refused) + ", for stacks") {
  for (const Preset& preset : test::mixed_stacks()) check_states(preset);
}
TEST_CASE("there are models with caches of all steps, with caches of segments and with positions") {
  int caches = 0, positions = 0, segments = 0;
  for (const Preset& preset : test::shipped().presets()) {
    const auto architecture = architecture_of(builtin_registry(), preset);
    const Network network(*architecture, hyper_of(builtin_registry(), preset), {});
    for (const auto& state : network.states()) {
      positions += state.position;
      if (state.growing) (state.period ? segments : caches)++;
    }
  }
  CHECK_SAYS(caches >= 2 && positions >= 2 && segments >= 1,
             std::to_string(caches) + ", " + std::to_string(positions) + ", " + std::to_string(segments));
}

TEST_CASE("in float32 a position beyond 2^24 is refused") {
  const test::Scratch folder;
  RunRequest request = request_for(preset_of("retnet"), 3);
  save_state(run(builtin_registry(), request, {}, {}).state, folder / "state.npz");
  Arrays state = read(folder / "state.npz");
  state.at("state/0/position").real = {16777217.0};
  request.state = folder / "late.npz";
  write(state, request.state);
  check_files(builtin_registry(), request);
  request.dtype = "f32";
  refused(request, "state/0/position", "is 16777217, and float32 cannot count beyond 2^24");
}

TEST_CASE("caches of all steps and of segments in one stack continue to the bit") {
  const test::Scratch folder;
  for (const Preset& preset : test::mixed_stacks()) {
    RunRequest whole = request_for(preset, 23), first = whole, second = whole;
    constexpr std::int64_t cut = 14;
    first.sequence.own().length = cut;
    for (auto* values : {&first.sequence.own().input, &first.sequence.own().time}) values->resize(cut);
    second.sequence.own().length = 23 - cut;
    for (auto* values : {&second.sequence.own().input, &second.sequence.own().time}) values->erase(values->begin(), values->begin() + cut);
    save_state(run(builtin_registry(), first, {}, {}).state, folder / "state.npz");
    second.state = folder / "state.npz";
    const auto all = run(builtin_registry(), whole, {}, {}).trace, rest = run(builtin_registry(), second, {}, {}).trace;
    const TraceArray *expected = all->find("output"), *found = rest->find("output");
    CHECK(found && expected);
    CHECK_SAYS(std::equal(found->real->begin(), found->real->end(), expected->real->begin() + cut * expected->row_size()), preset.id);
  }
}

namespace {

/// Other values of a row, as --set takes them.
std::vector<std::string> others(const HyperSpec& row) {
  std::vector<std::string> texts;
  Hyper table({row});
  const auto add = [&](const HyperValue& value) {
    try {
      table.set(row.key, value, "");
    } catch (const Error&) {
      return;
    }
    const std::string text = table.text(row.key);
    if (value != row.standard && std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  };
  switch (row.kind) {
    case HyperKind::flag: add(!std::get<bool>(row.standard)); break;
    case HyperKind::choice:
      for (const auto& choice : row.choices) add(choice);
      break;
    case HyperKind::integer:
      for (const std::int64_t value :
           {std::get<std::int64_t>(row.standard) * 2, std::get<std::int64_t>(row.standard) / 2, static_cast<std::int64_t>(row.low),
            std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{4}, std::int64_t{5}, std::int64_t{8}, std::int64_t{16}})
        add(value);
      break;
    case HyperKind::real:
      for (const double value : {std::get<double>(row.standard) * 0.9, std::get<double>(row.standard) * 2.0, 0.5,
                                 row.low + 0.01 * (row.high - row.low), -0.01, 0.01, row.low, row.high})
        add(value);
      break;
  }
  return texts;
}

enum class Effect { none, values, shapes, not_allowed };

/// What a change does to everything that a run with these weights records.
Effect effect_of(RunRequest request, const Trace& before, const std::string& key, const std::string& text) {
  request.set.emplace_back(key, text);
  try {
    hyper_of(builtin_registry(), request.preset, request.set);
  } catch (const Error&) {
    return Effect::not_allowed;
  }
  TracePtr after;
  try {
    after = run(builtin_registry(), request, {}, {}).trace;
  } catch (const Error& error) {
    return error.where().file.empty() ? Effect::not_allowed : Effect::shapes;  // the file is named where its shapes do not fit
  }
  if (after->arrays().size() != before.arrays().size()) return Effect::values;
  for (const auto& array : before.arrays()) {
    const TraceArray* found = after->find(array->key);
    if (!found || found->shape != array->shape) return Effect::values;
    const auto differ = [](const auto& a, const auto& b) {
      return a.size() != b.size() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) != 0;
    };  // NaN is the same as NaN
    if (array->is_complex() ? differ(*array->complex, *found->complex) : differ(*array->real, *found->real)) return Effect::values;
  }
  return Effect::none;
}

}  // namespace

SWEEP_ARCHITECTURES("with loaded weights the values that matter for drawing alone change no bit, and every other value changes something",
                    architecture) {
  const test::Scratch folder;
  // Small, and as it is by default; where a value counts only beside another, also with each flag and choice the other way, and with 2
  // layers and 2 of what there is none of.
  RunRequest plain = request_for(preset_of(architecture.id), 9);
  plain.recording.kinds.add({Kind::gradient});
  plain.sequence.own().width = 2;  // for values that name a column
  const std::vector<double> column = plain.sequence->input;
  plain.sequence.own().input.insert(plain.sequence->input.end(), column.rbegin(), column.rend());
  plain.sequence.own().names.assign(2, "x");
  const Hyper defaults(architecture.hyper);
  for (const auto& [key, value] :
       {std::pair("width", "8"), std::pair("state", "4"), std::pair("filter_order", "4"), std::pair("l_max", "8"),
        std::pair("segment", "4"), std::pair("memory", "2"), std::pair("heads", "2"), std::pair("head_size", "4")})
    if (defaults.has(key)) plain.set.emplace_back(key, value);
  std::vector<RunRequest> bases{plain};
  for (const auto& row : architecture.hyper)
    if (row.kind == HyperKind::flag || row.kind == HyperKind::choice || row.standard == HyperValue(std::int64_t{0}) || row.key == "layers")
      for (const auto& text : row.kind == HyperKind::integer ? std::vector<std::string>{"2"} : others(row)) {
        bases.push_back(plain);
        bases.back().set.emplace_back(row.key, text);
      }
  bases.push_back(plain);  // and with a target as wide as the input, for what makes the outputs
  test::aim_at(bases.back().sequence.own(), plain.sequence->input, plain.sequence->width);
  bases.push_back(plain);  // and with weights that no model starts with, for bounds that those keep
  const Hyper values = hyper_of(builtin_registry(), plain.preset, plain.set);
  std::map<std::string, bool> moves;
  for (auto& base : bases) {
    const bool trained = &base == &bases.back();
    base.weights.clear();
    const bool needed = (!trained && base.set == plain.set) || std::ranges::any_of(values.table(), [&](const HyperSpec& row) {
                          return !row.initialisation_only && !moves[row.key];
                        });
    TracePtr drawn;
    try {
      drawn = run(builtin_registry(), base, {}, {}).trace;
    } catch (const Error&) {
      continue;  // values that do not go together
    }
    save_weights(*drawn, folder / "w.npz");
    if (trained) {
      Arrays weights = read(folder / "w.npz");
      for (auto& [name, array] : weights)
        for (std::size_t i = 0; i < array.real.size(); ++i) array.real[i] += std::sin(static_cast<double>(i + 1));
      write(weights, folder / "w.npz");
    }
    base.weights = folder / "w.npz";
    const TracePtr before = run(builtin_registry(), base, {}, {}).trace;
    const auto idle = settings_without_effect(builtin_registry(), base);
    CHECK_EQUAL(idle.back(), "seed");
    RunRequest reseeded = base;
    reseeded.seed = 7;
    CHECK_SAYS(effect_of(reseeded, *before, values.table()[0].key,
                         hyper_of(builtin_registry(), base.preset, base.set).text(values.table()[0].key)) == Effect::none,
               architecture.id + ": the seed");
    for (HyperSpec row : values.table()) {
      row.standard = hyper_of(builtin_registry(), base.preset, base.set).value(row.key);
      CHECK_EQUAL(std::ranges::find(idle, row.key) != idle.end(), row.initialisation_only);
      if (!row.initialisation_only && (moves[row.key] || !needed)) continue;
      for (const auto& text : others(row)) {
        const Effect effect = effect_of(base, *before, row.key, text);
        if (row.initialisation_only)
          CHECK_SAYS(effect == Effect::none || effect == Effect::not_allowed,
                     architecture.id + ": " + row.key + " = " + text + " changes what loaded weights make");
        if (effect == Effect::values || effect == Effect::shapes) moves[row.key] = true;
        if (moves[row.key]) break;
      }
    }
  }
  for (const auto& row : values.table())
    CHECK_SAYS(row.initialisation_only || moves[row.key],
               architecture.id + ": " + row.key + " changes nothing: it is one that matters for drawing alone");
}

namespace {

/// Weights that a request draws, as a file holds them without "param/".
Arrays drawn(const RunRequest& request) {
  const test::Scratch folder;
  save_weights(*run(builtin_registry(), request, {}, {}).trace, folder / "w.npz");
  Arrays named;
  for (auto& [name, array] : read(folder / "w.npz")) named[name.substr(6)] = array;
  return named;
}

std::vector<double> output_of(const RunRequest& request) { return *run(builtin_registry(), request, {}, {}).trace->find("output")->real; }

RunRequest small(const std::string& architecture, std::vector<std::pair<std::string, std::string>> set = {}) {
  RunRequest request = request_for(preset_of(architecture), 9);
  request.set = std::move(set);
  return request;
}

/// The file with names changed.
Arrays renamed(const Arrays& arrays, const std::function<std::string(const std::string&)>& name) {
  Arrays other;
  for (const auto& [key, array] : arrays) other[name(key)] = array;
  return other;
}

}  // namespace

SWEEP_ARCHITECTURES("weights that are not finite are refused by file, entry and index", architecture) {
  const test::Scratch folder;
  RunRequest request = small(architecture.id);
  const Arrays whole = drawn(request);
  request.weights = folder / "w.npz";
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    Arrays changed = whole;
    auto& [name, array] = *changed.rbegin();
    array.real.front() = bad;
    write(changed, request.weights);
    CHECK_ERROR(run(builtin_registry(), request, {}, {}), request.weights.string() + ": the entry " + name + " is not finite at " +
                                                              to_string(Shape(array.shape.size(), 0)) + ": choose other weights.");
  }
}

TEST_CASE("a parameter that a file holds twice is refused, with both names") {
  const test::Scratch folder;
  RunRequest request = small("lru", {{"width", "4"}, {"state", "4"}});
  Arrays file = renamed(drawn(request), [](const std::string& name) { return "param/" + name; });
  file["0/D"] = file.at("param/0/D");
  file["output"] = file.at("param/0/D");  // something else of a trace.npz
  request.weights = folder / "w.npz";
  write(file, request.weights);
  CHECK_ERROR(run(builtin_registry(), request, {}, {}),
              request.weights.string() + ": the entries 0/D and param/0/D are the same parameter: remove one of them.");
  file.erase("0/D");
  write(file, request.weights);
  run(builtin_registry(), request, {}, {});
  RunRequest state = small("lstm", {{"width", "4"}});
  save_state(run(builtin_registry(), state, {}, {}).state, folder / "s.npz");
  Arrays states = read(folder / "s.npz");
  states["0/h"] = states.at("state/0/h");
  state.state = folder / "s.npz";
  write(states, state.state);
  CHECK_ERROR(run(builtin_registry(), state, {}, {}), "the entries 0/h and state/0/h are the same state: remove one of them.");
}

TEST_CASE("prefixes that wrappers put in front are taken off, unless two sets of entries could be meant") {
  const test::Scratch folder;
  RunRequest request = small("gru", {{"width", "4"}, {"layers", "2"}});
  const auto expected = output_of(request);
  const Arrays plain = drawn(request);
  request.seed = 5;
  request.weights = folder / "w.npz";
  for (const std::string prefix : {"", "model.", "module.model.rnn.", "state_dict/", "state_dict/model."}) {
    write(renamed(plain, [&](const std::string& name) { return prefix + name; }), request.weights);
    CHECK_SAYS(output_of(request) == expected, prefix);
    write(renamed(plain, [&](const std::string& name) { return prefix + name.substr(0, 1) + "." + name.substr(2); }), request.weights);
    CHECK_SAYS(output_of(request) == expected, prefix + " and a dot");
  }
  Arrays two = renamed(plain, [](const std::string& name) { return "student." + name; });
  two.merge(renamed(plain, [](const std::string& name) { return "teacher." + name; }));
  write(two, request.weights);
  CHECK_ERROR(run(builtin_registry(), request, {}, {}),
              "the entries below \"student.\" and below \"teacher.\" have the names of this model alike: keep those that you mean, or give "
              "the part: " +
                  request.weights.string() + ":student or " + request.weights.string() + ":teacher.");
  Arrays more = renamed(plain, [](const std::string& name) { return "model." + name; });
  more["optimizer.step"] = plain.at("0/bias_hh");
  write(more, request.weights);
  CHECK_ERROR(run(builtin_registry(), request, {}, {}), "the entry optimizer.step is not a parameter of this model");
}

SWEEP_ARCHITECTURES("a file of one layer is read without the layer's number, and its sizes are found", architecture) {
  const test::Scratch folder;
  RunRequest request = small(architecture.id);
  const Network network(architecture, hyper_of(builtin_registry(), request.preset, request.set), {});
  if (network.layers().size() != 1 ||
      std::ranges::any_of(network.parameters(), [](const auto& parameter) { return parameter.name.starts_with("final/"); }))
    throw test::Skip("it has more than one layer");
  const auto expected = output_of(request);
  const Arrays plain = drawn(request);
  request.seed = 5;
  request.weights = folder / "w.npz";
  for (const std::string prefix : {"", "cell."}) {
    write(renamed(plain, [&](const std::string& name) { return name.starts_with("0/") ? prefix + name.substr(2) : name; }),
          request.weights);
    CHECK_SAYS(output_of(request) == expected, architecture.id + " below \"" + prefix + "\"");
    CHECK(settings_that_fit(builtin_registry(), request, request.weights).empty());
  }
}

SWEEP_ARCHITECTURES("a file with the entries of its reference implementation is read", architecture) {
  const test::Scratch folder;
  if (std::ranges::all_of(architecture.reference, [](const ReferenceName& row) { return row.ours.empty(); }))
    throw test::Skip("it names no entries of a reference implementation as other than ours");
  RunRequest request = small(architecture.id);
  if (architecture.id != "mamba" && Hyper(architecture.hyper).has("layers")) request.set = {{"layers", "2"}};
  const auto expected = output_of(request);
  const Arrays plain = drawn(request);
  // Written out here by hand: what stands before and after a layer's number, and what the card calls the entries of the last norm.
  const auto theirs = [&](const std::string& name) -> std::string {
    const std::string &id = architecture.id, layer = name.substr(0, 1), rest = name.substr(name.find('/') + 1);
    if (id == "gateloop" && name.starts_with("final/norm.")) return "net.to_logits.0." + name.substr(11);
    if (name.starts_with("final/")) return "net." + rest;
    if (name.starts_with("encoder/")) return "embed." + rest;
    if (id == "elman" || id == "lstm" || id == "gru") return "net." + rest + "_l" + layer;
    if (id == "mamba") return "net.layers." + layer + (rest.starts_with("norm") ? "." : ".mixer.") + rest;
    if (id == "hyena") return "net.layers." + layer + (rest.starts_with("norm") || rest.starts_with("mlp") ? "." : ".mixer.") + rest;
    if (id == "s4d") {
      if (rest.starts_with("norm.")) return "net.norms." + layer + rest.substr(4);
      if (rest.starts_with("output_linear.")) return "net.s4_layers." + layer + ".output_linear.0." + rest.substr(14);
      return "net.s4_layers." + layer + (rest == "D" ? "." : ".kernel.") + rest;
    }
    if (id == "gilr" || id == "ls-lstm") {
      const std::string scope = (id == "gilr" ? "net/gilr" : "net/lin_sur_lstm") + (layer == "0" ? std::string() : "_" + layer);
      return scope + "/" + (rest.starts_with("gilr.") ? "gilr/" : "") + "fc/" + rest.back();
    }
    if (id == "unicornn") return (rest.starts_with("fc.") ? "net.DIs." : "net.RNNs.") + layer + "." + rest;
    if ((id == "hgrn" || id == "hgru") && rest == "lower_bounds") return "net." + rest;
    if (id == "performer") {
      const bool mixer = rest.starts_with("attention.");
      const std::string at = "net.performer.net.layers." + layer + (mixer ? ".0." : ".1."), own = rest.substr(rest.find('.') + 1);
      return at + (own.starts_with("norm.") ? "" : mixer ? "fn." : "fn.fn.") + own;
    }
    if (id == "sru" || id == "relit") return (id == "sru" ? "net.rnn_lst." + layer : "net.layer" + layer) + "." + rest;
    if (id == "on-lstm") return "net.cells." + layer + "." + rest;
    return std::string("net.") +
           (id.starts_with("rwkv-") || id == "mlstm" || id == "slstm" || id == "xlstm" || id == "rg-lru" || id == "griffin" ||
                    id == "ecoformer"
                ? "blocks."
                : "layers.") +
           layer + "." + rest;
  };
  request.seed = 5;
  request.weights = folder / "w.npz";
  Arrays file = renamed(plain, theirs);
  if (architecture.id == "performer") {  // PyTorch saves what two modules share twice
    const std::string once = "net.performer.net.", again = "net.performer.proj_updater.instance.";
    const Arrays all = file;
    for (const auto& [name, array] : all)
      if (name.starts_with(once)) file[again + name.substr(once.size())] = array;
    CHECK(file.size() > all.size());
  }
  write(file, request.weights);
  CHECK_SAYS(output_of(request) == expected, architecture.id);
}

TEST_CASE("without the layer's number two sets of entries below different prefixes are not guessed at") {
  const test::Scratch folder;
  RunRequest request = small("cornn", {{"width", "4"}});
  const Arrays plain = drawn(request);
  request.weights = folder / "w.npz";
  Arrays two = renamed(plain, [](const std::string& name) { return "first." + name.substr(2); });
  two.merge(renamed(plain, [](const std::string& name) { return "second." + name.substr(2); }));
  write(two, request.weights);
  CHECK_ERROR(run(builtin_registry(), request, {}, {}),
              "the entries below \"first.\" and below \"second.\" have the names of this model alike: keep those that you mean, or give "
              "the part: ");
  // A file of two layers is one of two layers.
  RunRequest layers = small("cornn", {{"width", "4"}, {"layers", "2"}});
  write(drawn(layers), request.weights);
  const test::Settings two_layers{{"layers", "2"}};
  CHECK(settings_that_fit(builtin_registry(), request, request.weights) == two_layers);
}

TEST_CASE("a reference implementation of one layer fills one layer, and none two") {
  const test::Scratch folder;
  for (const auto& [id, kept, front] :
       {std::tuple{"lem", "0/", "cell."}, std::tuple{"cornn", "0/", "cell."}, std::tuple{"neural-wave-machine", "0/", "cell."},
        std::tuple{"hgru", "0/self_attn.hgru.", "model."}}) {
    RunRequest request = small(id, {{"width", "4"}});
    if (std::string(id) == "hgru") request.set = {{"width", "4"}, {"block", "none"}, {"lower_bound", "no"}};
    request.seed = 3;
    const auto expected = output_of(request);
    const auto theirs = [&](const std::string& name) {
      return name.starts_with(kept) ? front + name.substr(std::string(kept).size()) : "encoder." + name.substr(name.find('/') + 1);
    };
    const Arrays file = renamed(drawn(request), theirs);
    request.seed = 5;
    request.weights = folder / "w.npz";
    write(file, request.weights);
    CHECK_SAYS(output_of(request) == expected, id);
    RunRequest deeper = request;
    deeper.set.emplace_back("layers", "2");
    CHECK_ERROR(run(builtin_registry(), deeper, {}, {}), " is missing, the file has ");
    CHECK(settings_that_fit(builtin_registry(), deeper, deeper.weights) == (test::Settings{{"layers", "1"}}));
    RunRequest both = request;
    both.set.emplace_back("direction", "both");
    CHECK_ERROR(run(builtin_registry(), both, {}, {}), " is missing, the file has ");
  }
}
TEST_CASE("there are architectures that name their reference implementation's entries") {
  CHECK(std::ranges::count_if(builtin_registry().all(), [](const Architecture& architecture) { return !architecture.reference.empty(); }) >=
        15);
}

SWEEP_ARCHITECTURES("sizes are read from the file: what shapes tell is found, from its defaults", architecture) {
  const test::Scratch folder;
  const std::map<std::string, std::vector<std::pair<std::string, std::string>>> others_of{
      {"lstm", {{"width", "12"}, {"layers", "3"}, {"bias", "no"}, {"projection", "5"}}},
      {"gru", {{"width", "7"}, {"direction", "both"}}},
      {"elman", {{"width", "96"}, {"layers", "2"}}},
      {"mamba", {{"width", "24"}, {"state", "6"}, {"conv", "3"}, {"layers", "2"}}},
      {"transformer", {{"width", "12"}, {"heads", "2"}, {"feed_forward", "20"}, {"layers", "2"}, {"final_norm", "no"}}},
      {"gla", {{"width", "32"}, {"expand_k", "0.25"}, {"gate_rank", "4"}}},
      {"mlstm", {{"width", "24"}, {"inner", "40"}}},
      {"s4d", {{"width", "10"}, {"state", "8"}}},
      {"lru", {{"width", "10"}, {"state", "8"}, {"block", "none"}}},
      {"hippo-legs", {{"width", "6"}, {"order", "4"}, {"memory", "2"}}},
      {"lmu", {{"width", "6"}, {"order", "4"}, {"memory_to_memory", "no"}}},
      {"hyena", {{"width", "6"}, {"l_max", "32"}, {"filter_order", "8"}}},
      {"rwkv-4", {{"width", "6"}, {"layers", "3"}}},
  };
  const Hyper usual(architecture.hyper);
  const std::int64_t usual_width =
      std::ranges::any_of(architecture.hyper, [](const HyperSpec& spec) { return spec.key == "width"; }) ? usual.integer("width") : 0;
  const auto special = others_of.find(architecture.id);
  RunRequest request =
      small(architecture.id, special != others_of.end()
                                 ? special->second
                                 : std::vector<std::pair<std::string, std::string>>{{"width", usual_width == 16 ? "32" : "16"}});
  const Network there(architecture, hyper_of(builtin_registry(), request.preset, request.set), {});
  write(drawn(request), folder / "w.npz");
  RunRequest asks = small(architecture.id);
  asks.weights = folder / "w.npz";
  std::string said;
  try {
    check_files(builtin_registry(), asks);
  } catch (const MisfitError& error) {
    said = error.what();
    CHECK_SAYS(!error.settings.empty(), said);
    CHECK(error.settings == settings_that_fit(builtin_registry(), asks, asks.weights));
  }
  CHECK_SAYS(said.find(": the weights were made for ") != std::string::npos, architecture.id + ": \"" + said + "\"");
  asks.set = settings_that_fit(builtin_registry(), asks, asks.weights);
  check_files(builtin_registry(), asks);
  for (const auto& [key, text] : asks.set) CHECK_SAYS(said.find(key + " = " + text) != std::string::npos, said);
  CHECK(settings_that_fit(builtin_registry(), asks, asks.weights).empty());
  // The parameters are the same, so the same shapes were found.
  const Network here(architecture, hyper_of(builtin_registry(), asks.preset, asks.set), {});
  CHECK_EQUAL(here.parameters().size(), there.parameters().size());
  for (std::size_t i = 0; i < here.parameters().size(); ++i)
    CHECK_EQUAL(to_string(here.parameters()[i].var.shape()), to_string(there.parameters()[i].var.shape()));
}

TEST_CASE("weights of another architecture fit no sizes") {
  const test::Scratch folder;
  RunRequest request = small("lstm", {{"width", "4"}});
  write(drawn(small("gru", {{"width", "4"}})), folder / "w.npz");
  CHECK_ERROR(settings_that_fit(builtin_registry(), request, folder / "w.npz"), "w.npz: no sizes of lstm fit these weights");
}

TEST_CASE("columns and targets that weights were made for are named") {
  const test::Scratch folder;
  RunRequest request = small("gru", {{"width", "6"}});
  request.sequence.own().width = 3;
  request.sequence.own().input.resize(27, 0.25);
  write(drawn(request), folder / "w.npz");
  RunRequest asks = small("gru");
  asks.weights = folder / "w.npz";
  CHECK_ERROR(check_files(builtin_registry(), asks),
              ": the weights were made for width = 6, and 3 input columns where the sequence has 1.");
  CHECK_ERROR(
      settings_that_fit(builtin_registry(), asks, asks.weights),
      "the weights were made for width = 6, and 3 input columns where the sequence has 1: choose another sequence, or other weights.");
  RunRequest copies = small("gru", {{"width", "6"}});
  copies.sequence = make_task("copy", {.length = 40, .seed = 1});
  write(drawn(copies), folder / "w.npz");
  copies.sequence.own().target_kind = TargetKind::none;
  copies.weights = folder / "w.npz";
  CHECK_EQUAL(run(builtin_registry(), copies, {}, {}).trace->find("output")->row_size(), copies.sequence->classes);
}

TEST_CASE("state dicts under PyTorch's own names make PyTorch's own outputs") {
  // tests/oracle/pytorch_files.py made files and outputs; the settings are found from the shapes too.
  const std::filesystem::path folder = test::source("tests/oracle/golden/pytorch");
  using Set = std::vector<std::pair<std::string, std::string>>;
  const std::map<std::string, std::pair<std::string, Set>> cases{
      {"elman", {"elman", {{"width", "3"}, {"layers", "2"}}}},
      {"elman-bidirectional", {"elman", {{"width", "3"}, {"direction", "both"}}}},
      {"gru", {"gru", {{"width", "3"}, {"layers", "3"}}}},
      {"gru-bidirectional", {"gru", {{"width", "3"}, {"layers", "2"}, {"direction", "both_by_layer"}}}},
      {"lstm", {"lstm", {{"width", "3"}, {"layers", "2"}, {"bias", "no"}}}},
      {"lstm-projection", {"lstm", {{"width", "3"}, {"layers", "2"}, {"projection", "2"}}}},
      {"lstm-bidirectional", {"lstm", {{"width", "3"}, {"direction", "both"}}}},
      {"lstm-bidirectional-2", {"lstm", {{"width", "3"}, {"layers", "2"}, {"direction", "both_by_layer"}}}},
  };
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files += entry.path().extension() == ".safetensors";
  CHECK_EQUAL(files, cases.size());
  for (const auto& [name, model] : cases) {
    const Arrays golden = read(folder / (name + ".npz"));
    const NpyArray &input = golden.at("input"), &output = golden.at("output");
    RunRequest request = request_for(preset_of(model.first), input.shape[0]);
    request.sequence.own().width = input.shape[1];
    request.sequence.own().input = input.real;
    request.sequence.own().names.assign(static_cast<std::size_t>(input.shape[1]), "x");
    if (name == "gru" || name.starts_with("lstm-bidirectional")) {  // these have a head
      request.sequence.own().target_kind = TargetKind::regress;
      request.sequence.own().target_width = output.shape[1];
      request.sequence.own().target.assign(output.real.size(), 0.0);
      request.sequence.own().mask.assign(static_cast<std::size_t>(output.shape[0]), 1.0);
    }
    request.weights = folder / (name + ".safetensors");
    const auto check = [&](const std::string& how) {
      const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
      const TraceArray* found = trace->find("output");
      CHECK(found);
      CHECK_EQUAL(to_string(found->shape), to_string(output.shape));
      for (std::size_t i = 0; i < output.real.size(); ++i)
        CHECK_SAYS(std::abs((*found->real)[i] - output.real[i]) <= 1e-9, name + " " + how + " at " + test::show(i));
    };
    request.set = model.second;
    check("with its settings");
    request.set.clear();
    request.set = settings_that_fit(builtin_registry(), request, request.weights);
    check("with sizes of the file");
  }
}
