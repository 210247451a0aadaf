// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/weights.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "experiment/naming.h"
#include "experiment/prepared.h"
#include "files/archive.h"
#include "files/npz.h"
#include "sequence/format.h"

namespace reclab {
namespace {

[[noreturn]] void refuse(const Archive& file, const std::string& entry, const std::string& what, const Shape& wanted = {}) {
  const std::string name = file.path().string();
  throw Error(name + ": " + what, {.file = name, .place = entry, .parameter = entry, .range = wanted.empty() ? "" : to_string(wanted)});
}

/// The entries of a file of states, with or without the prefix. Where any has it, what has not is something else.
class Entries {
 public:
  Entries(const std::filesystem::path& path, std::string prefix) : file_(path), prefix_(std::move(prefix)) {
    for (const auto& name : file_.names())
      if (name.starts_with(prefix_)) left_.insert(name);
    if (left_.empty()) left_.insert(file_.names().begin(), file_.names().end());
  }
  NpyArray take(const std::string& name, const std::string& what, const Shape& wanted, const std::string& cure) {
    const bool full = file_.has(prefix_ + name);
    if (full && file_.has(name)) refuse(name, "the entries " + name + " and " + prefix_ + name + " are the same state: remove one of them.");
    const std::string key = full ? prefix_ + name : name;
    if (!file_.has(key)) refuse(name, what + " of shape " + to_string(wanted) + " is missing, the file has " + some_of(file_.names()) + ": " + cure, wanted);
    left_.erase(key);
    // Of an array that cannot fit the shape alone is read: it is refused for that, and may be of any size.
    const NpyArray unread{.shape = file_.shape(key), .dtype = "<f8", .real = {}, .complex = {}};
    return may_hold(unread.shape, wanted) ? file_.read(key) : unread;
  }
  /// The first entry that was not taken.
  std::optional<std::string> left() const { return left_.empty() ? std::optional<std::string>() : *left_.begin(); }
  bool has(const std::string& name) const { return file_.has(prefix_ + name) || file_.has(name); }
  /// A file may have these where the model has not.
  void ignore(const std::string& ending) {
    std::erase_if(left_, [&](const std::string& name) { return name.ends_with(ending); });
  }
  std::string shape(const std::string& key) const { return to_string(file_.shape(key)); }
  [[noreturn]] void refuse(const std::string& entry, const std::string& what, const Shape& wanted = {}) const { reclab::refuse(file_, entry, what, wanted); }

 private:
  /// Whether the sizes are those of `wanted`, perhaps with rows in front (what grows) and real and imaginary parts behind.
  static bool may_hold(const Shape& found, const Shape& wanted) {
    return std::search(found.begin(), found.end(), wanted.begin(), wanted.end()) != found.end() || wanted.empty();
  }

  Archive file_;
  std::string prefix_;
  std::set<std::string> left_;
};

/// The row-major number of the first entry that is not finite.
std::optional<std::int64_t> first_not_finite(const NpyArray& array) {
  for (std::size_t i = 0; i < array.real.size(); ++i)
    if (!std::isfinite(array.real[i])) return static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i < array.complex.size(); ++i)
    if (!std::isfinite(array.complex[i].real()) || !std::isfinite(array.complex[i].imag())) return static_cast<std::int64_t>(i);
  return std::nullopt;
}
/// "[2, 0]", as an index into the array is written.
std::string index_text(std::int64_t entry, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; entry /= shape[axis]) index[axis] = entry % shape[axis];
  return to_string(index);
}
/// The shortest digits that are read back as the same number.
std::string text_of(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

using Settings = std::vector<std::pair<std::string, std::string>>;

/// "width = 32 and layers = 2"
std::string in_words(const Settings& settings) {
  std::string text;
  for (std::size_t i = 0; i < settings.size(); ++i)
    text += (i == 0 ? "" : i + 1 == settings.size() ? " and " : ", ") + settings[i].first + " = " + settings[i].second;
  return text;
}

/// A file of weights and the shapes of its arrays. What does not fit is refused for these, and may be of any size.
struct WeightsFile {
  explicit WeightsFile(const std::filesystem::path& path) : file(path) {
    for (const auto& name : file.names()) shapes[name] = file.shape(name);
  }
  Archive file;
  FileShapes shapes;
};

/// What to change so that the file fits: settings, and widths of the sequence and of its target.
std::string cure_of(const FittedSizes& fit, const NetworkOptions& now) {
  std::vector<std::string> wanted;
  if (!fit.settings.empty()) wanted.push_back(in_words(fit.settings));
  if (fit.input != now.input)
    wanted.push_back(std::to_string(fit.input) + " input column" + (fit.input == 1 ? "" : "s") + " where the sequence has " + std::to_string(now.input));
  if (fit.head != now.head)
    wanted.push_back(fit.head == 0 ? "no head, a sequence without a target"
                                   : "a target of " + std::to_string(fit.head) + (fit.head == 1 ? " output" : " outputs") + (now.head ? " where the sequence's has " + std::to_string(now.head) : ", of which the sequence has none"));
  std::string text;
  for (std::size_t i = 0; i < wanted.size(); ++i) text += (i == 0 ? "" : i + 1 == wanted.size() ? ", and " : ", ") + wanted[i];
  return text;
}

/// Why the file does not fit, with the settings that would make it.
[[noreturn]] void refuse_misfit(const WeightsFile& weights, const std::string& entry, const std::string& what, const std::string& otherwise, const Shape& wanted, const Network& network,
                                const Architecture& architecture, const Hyper& hyper) {
  const std::string file = weights.file.path().string();
  const ErrorPlace place{.file = file, .place = entry, .parameter = entry, .range = wanted.empty() ? "" : to_string(wanted)};
  const NetworkOptions& now = network.options();
  const FittedSizes fit = fit_to_file(architecture, hyper, now.input, now.head, weights.shapes);
  if (!fit.found) throw MisfitError(file + ": " + what + otherwise, place, {});
  const bool settings_alone = fit.input == now.input && fit.head == now.head;
  throw MisfitError(file + ": " + what + ": the weights were made for " + cure_of(fit, now) + ".", place, settings_alone ? fit.settings : Settings{});
}

}  // namespace

void load_weights(const std::filesystem::path& path, Parameters& parameters, const Network& network, const Architecture& architecture, const Hyper& hyper) {
  WeightsFile weights(path);
  const NameMatch match = match_names(network, weights.shapes);
  if (!match.problem.empty()) refuse(weights.file, "", match.problem);
  const auto misfit = [&](const std::string& entry, const std::string& what, const std::string& otherwise, const Shape& wanted = {}) {
    refuse_misfit(weights, entry, what, otherwise, wanted, network, architecture, hyper);
  };
  auto& own = parameters.entries();
  std::vector<std::vector<double>> values;
  assert(own.size() == match.entries.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::string& name = own[i].name;
    const std::string& entry = match.entries[i];
    if (entry.empty())
      misfit(name, "the entry " + name + " of shape " + to_string(own[i].shape) + " is missing, the file has " + some_of(weights.file.names()),
             ": save it under that name or as param/" + name + ".", own[i].shape);
    const NpyHeader header = weights.file.header(entry);
    const auto rows = match.rows.find(i);
    const Shape found = shape_in_file(match, i, weights.shapes);
    const std::string in_file = rows == match.rows.end() ? entry : entry + " to " + rows->second.back();
    const std::string what = "the entry " + name + (entry == name || entry == key_of(Kind::param, name) ? "" : ", in the file " + in_file + ",");
    const std::string shapes = "shape " + to_string(found) + " where the model has " + to_string(own[i].shape) + (match.transposed.contains(i) ? " (the file's is transposed)" : "");
    if (header.kind == 'c')
      refuse(weights.file, name, what + " is complex, of " + shapes + ": save real numbers, or real and imaginary parts as a last axis of 2 where the card says so.", own[i].shape);
    if (found != own[i].shape) {
      const bool transposed = found.size() == own[i].shape.size() && std::equal(found.begin(), found.end(), own[i].shape.rbegin());
      misfit(name, what + " has " + shapes, transposed ? ": save it transposed." : ": save it with that shape.", own[i].shape);
    }
    std::vector<double> all;
    for (const std::string& part : rows == match.rows.end() ? std::vector<std::string>{entry} : rows->second) {
      const NpyArray array = weights.file.read(part);
      if (const auto bad = first_not_finite(array)) refuse(weights.file, name, what + " is not finite at " + index_text(*bad, array.shape) + ": choose other weights.");
      all.insert(all.end(), array.real.begin(), array.real.end());
    }
    if (match.transposed.contains(i)) {
      const auto height = static_cast<std::size_t>(found.at(0)), width = static_cast<std::size_t>(found.at(1));
      std::vector<double> turned(all.size());
      for (std::size_t row = 0; row < height; ++row)
        for (std::size_t column = 0; column < width; ++column) turned[row * width + column] = all[column * height + row];
      all = std::move(turned);
    }
    values.push_back(std::move(all));
  }
  if (!match.unknown.empty()) {
    const std::string& extra = match.unknown.front();
    const auto parsed = parse_key(extra);
    const std::string name = parsed && parsed->kind == Kind::param ? parsed->name : extra;
    misfit(name, "the entry " + name + " is not a parameter of this model, and has shape " + to_string(weights.shapes.at(extra)), ": remove it (the model's card lists the names).");
  }
  for (std::size_t i = 0; i < own.size(); ++i) own[i].values = std::move(values[i]);
}

namespace {

/// Whether a layer runs backward and keeps nothing, where others of its architecture keep states: what it makes of a step it makes of all steps at once.
bool reads_all_at_once(const Network& network, int layer) {
  const auto& layers = network.layers();
  const auto keeps = [&](int number) { return std::ranges::any_of(network.states(), [&](const Network::StateVar& s) { return s.layer == number; }); };
  const auto& own = layers[static_cast<std::size_t>(layer)];
  if (!own.reversed || keeps(layer)) return false;
  for (int other = 0; other < static_cast<int>(layers.size()); ++other)
    if (layers[static_cast<std::size_t>(other)].architecture == own.architecture && keeps(other)) return true;
  return false;
}

}  // namespace

InitialState load_state(const std::filesystem::path& path, const Network& network) {
  for (int layer = 0; layer < static_cast<int>(network.layers().size()); ++layer)
    if (reads_all_at_once(network, layer)) {
      const Architecture& a = *network.layers()[static_cast<std::size_t>(layer)].architecture;
      throw Error(path.string() + ": " + a.id + " cannot start from a state with these settings, since layer " + std::to_string(layer) +
                      " makes all its outputs of the whole sequence, from its end: run the whole sequence without a state, or choose settings without that layer.",
                  {.file = path.string(), .model = a.id, .parameter = "state"});
    }
  Entries file(path, prefix_of(Kind::state));
  InitialState loaded;
  const DType real = network.options().real;
  const std::string other = "take the state.npz of a run of this model.";
  const Network::StateVar* counted = nullptr;  // what tells how many steps have passed: the position, or else a cache
  for (const auto& state : network.states()) {
    const std::string key = Rollout::state_key(state), what = "the state " + key;
    if (state.clock && !file.has(key.substr(6))) continue;  // the state of a run whose steps were equal
    const NpyArray array = file.take(key.substr(6), what, state.shape, other);
    Shape wanted = state.shape;
    if (state.growing) wanted.insert(wanted.begin(), array.shape.empty() ? 0 : array.shape[0]);
    const bool complex = is_complex(state.initial.dtype());
    Shape parts = wanted;  // of a complex state as real numbers: some formats have no others
    parts.push_back(2);
    const bool in_parts = complex && !array.is_complex() && array.shape == parts;
    if (array.shape != wanted && !in_parts)
      file.refuse(key, what + " has shape " + to_string(array.shape) + " where the model has " + to_string(wanted) +
                           (complex ? " of complex numbers (or " + to_string(parts) + ", last axis re and im)" : "") +
                           ": take the state.npz of a run with the same hyper-parameters.",
                  wanted);
    if (array.is_complex() && !complex)
      file.refuse(key, what + " of shape " + to_string(wanted) + " is complex where the model's is real: save its real part.", wanted);
    if (const auto bad = first_not_finite(array)) file.refuse(key, what + " is not finite at " + index_text(*bad, array.shape) + ": " + other);
    auto& values = loaded.values[key];
    if (in_parts)
      for (std::size_t i = 0; i < array.real.size(); i += 2) values.emplace_back(array.real[i], array.real[i + 1]);
    else if (array.is_complex())
      values = array.complex;
    else
      values.assign(array.real.begin(), array.real.end());

    if (state.position) {
      const double steps = array.real[0], most = std::ldexp(1.0, std::numeric_limits<double>::digits), most_single = std::ldexp(1.0, std::numeric_limits<float>::digits);
      if (!(steps >= 0.0) || steps != std::floor(steps) || steps > most)
        file.refuse(key, what + " is " + text_of(steps) + ", which is no number of steps that have passed: save a whole number from 0 to 2^53.");
      if (real == DType::f32 && steps > most_single)
        file.refuse(key, what + " is " + text_of(steps) + ", and float32 cannot count beyond 2^24: choose float64.");
      counted = &state;
      loaded.cached_steps = static_cast<std::int64_t>(steps);
    }
  }
  if (network.knows_time()) file.ignore("/clock");  // that of a run whose steps were unequal, for one whose steps are equal
  if (const auto extra = file.left())
    file.refuse(*extra, "the state " + *extra + " is not one of this model, and has shape " + file.shape(*extra) + ": take the state.npz of a run of the same model.");

  // All that grows has a row for each step that has passed, or for each since the last multiple of its period.
  const auto rows_of = [&](const Network::StateVar& state) { return static_cast<std::int64_t>(loaded.values.at(Rollout::state_key(state)).size()) / count(state.shape); };
  for (const auto& state : network.states()) {
    if (!state.growing) continue;
    const std::string key = Rollout::state_key(state);
    const std::int64_t rows = rows_of(state);
    if (!counted) {
      counted = &state;
      loaded.cached_steps = rows;
    }
    const std::int64_t wanted = state.period ? loaded.cached_steps % state.period : loaded.cached_steps;
    if (rows == wanted) continue;
    const std::string why = counted->position ? "and after the " + text_of(static_cast<double>(loaded.cached_steps)) + " steps of " + Rollout::state_key(*counted) + " it has " + std::to_string(wanted)
                                              : "and " + Rollout::state_key(*counted) + " has " + std::to_string(wanted);
    file.refuse(key, "the state " + key + " has " + std::to_string(rows) + (rows == 1 ? " row, " : " rows, ") + why + ": " + other);
  }
  return loaded;
}

FileKind kind_of_file(const std::filesystem::path& path) {
  if (!Archive::recognises(path)) return FileKind::sequence;
  const Archive file(path);
  const auto any = [&](const std::string& prefix) { return std::ranges::any_of(file.names(), [&](const std::string& name) { return name.starts_with(prefix); }); };
  if (any(prefix_of(Kind::param))) return FileKind::weights;
  if (any(prefix_of(Kind::state))) return FileKind::state;
  const SequenceFormat& format = sequence_format_of_file(path);
  return format.holds_sequence && format.holds_sequence(file.names()) ? FileKind::sequence : FileKind::weights;
}

std::vector<std::pair<std::string, std::string>> settings_that_fit(const Registry& registry, const RunRequest& request, const std::filesystem::path& file) {
  RunRequest drawn = request;  // whether files fit is no question of a device, nor of those that are chosen now
  drawn.device = "cpu";
  drawn.weights.clear();
  const Prepared prepared(registry, drawn);
  const WeightsFile weights(file);
  const NetworkOptions& now = prepared.probe->options();
  const NameMatch match = match_names(*prepared.probe, weights.shapes);
  if (!match.problem.empty()) refuse(weights.file, "", match.problem);
  const FittedSizes fit = fit_to_file(prepared.architecture, prepared.hyper, now.input, now.head, weights.shapes);
  const std::string name = file.string();
  if (!fit.found)
    throw Error(name + ": no sizes of " + prepared.architecture.id + " fit these weights, the file has " + some_of(weights.file.names()) + ": choose another model, or compare with the names on its card.",
                {.file = name, .model = prepared.architecture.id});
  if (fit.input != now.input || fit.head != now.head) throw Error(name + ": the weights were made for " + cure_of(fit, now) + ": choose another sequence, or other weights.", {.file = name, .parameter = "input"});
  return fit.settings;
}

}  // namespace reclab
