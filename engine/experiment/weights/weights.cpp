// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/weights/weights.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "array/demand.h"
#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "experiment/prepared.h"
#include "experiment/weights/fitting.h"
#include "experiment/weights/naming.h"
#include "files/archive.h"
#include "files/npz.h"
#include "sequence/format.h"

namespace reclab {
namespace {

[[noreturn]] void refuse(const Archive& file, const std::string& entry, const std::string& what, const Shape& wanted = {}) {
  const std::string name = file.path().string();
  throw Error(name + ": " + what, {.file = name, .place = entry, .parameter = entry, .range = wanted.empty() ? "" : to_string(wanted)});
}

/// The entries of a file of states, with or without the prefix. Where any has it, entries without it are not states.
class Entries {
 public:
  Entries(const std::filesystem::path& path, std::string prefix) : file_(path), prefix_(std::move(prefix)) {
    for (const auto& name : file_.names())
      if (name.starts_with(prefix_)) left_.insert(name);
    if (left_.empty()) left_.insert(file_.names().begin(), file_.names().end());
  }
  NpyArray take(const std::string& name, const std::string& what, const Shape& wanted, const std::string& cure) {
    const bool full = file_.has(prefix_ + name);
    if (full && file_.has(name))
      refuse(name, "the entries " + name + " and " + prefix_ + name + " are the same state: remove one of them.");
    const std::string key = full ? prefix_ + name : name;
    if (!file_.has(key))
      refuse(name, what + " of shape " + to_string(wanted) + " is missing, the file has " + some_of(file_.names()) + ": " + cure, wanted);
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
  [[noreturn]] void refuse(const std::string& entry, const std::string& what, const Shape& wanted = {}) const {
    reclab::refuse(file_, entry, what, wanted);
  }

 private:
  /// Whether the sizes are those of `wanted`, perhaps with rows in front (a growing state) and real and imaginary parts behind.
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

using Settings = SizeSettings;

/// "width = 32 and layers = 2"
std::string in_words(const Settings& settings) {
  std::string text;
  for (std::size_t i = 0; i < settings.size(); ++i)
    text += (i == 0 ? "" : i + 1 == settings.size() ? " and " : ", ") + settings[i].first + " = " + settings[i].second;
  return text;
}

/// "FILE" or "FILE:PART": a part of a file that holds more than one model. A file that exists by the whole name is taken whole.
std::pair<std::filesystem::path, std::string> parts_of_path(const std::filesystem::path& path) {
  const std::string text = path.string();
  std::error_code none;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size() || std::filesystem::exists(path, none)) return {path, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

/// A file of weights, or a part of one, and the shapes of its arrays. The shapes are checked before any array is read, since a file that
/// does not fit may be of any size.
struct WeightsFile {
  explicit WeightsFile(const std::filesystem::path& path)
      : file(parts_of_path(path).first), part(parts_of_path(path).second), index(shapes_of(file, part, prefix)) {}
  std::string text() const { return file.path().string() + (part.empty() ? "" : ":" + part); }
  NpyHeader header(const std::string& entry) const { return file.header(prefix + entry); }
  NpyArray read(const std::string& entry) const { return file.read(prefix + entry); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, shape] : index.shapes()) all.push_back(name);
    return all;
  }

  Archive file;
  std::string part, prefix;
  FileIndex index;

 private:
  static FileShapes shapes_of(const Archive& file, const std::string& part, std::string& prefix) {
    FileShapes shapes;
    for (const auto& name : file.names()) shapes[name] = file.shape(name);
    if (part.empty()) return shapes;
    FileShapes below = part_of(FileIndex(std::move(shapes)), part, &prefix);
    if (below.empty())
      refuse(file, part,
             "no entry begins with " + part + ", the file has " + some_of(file.names()) + ": give a prefix that entries begin with.");
    return below;
  }
};

/// The changes with which the file fits: settings, and widths of the sequence and of its target. `free_head`: no target says how wide the
/// head is.
std::string cure_of(const FittedSizes& fit, const NetworkOptions& now, bool free_head) {
  std::vector<std::string> wanted;
  if (!fit.settings.empty()) wanted.push_back(in_words(fit.settings));
  if (fit.input != now.input)
    wanted.push_back(std::to_string(fit.input) + " input column" + (fit.input == 1 ? "" : "s") + " where the sequence has " +
                     std::to_string(now.input));
  if (fit.head != now.head && !free_head)
    wanted.push_back((fit.head == 0 ? std::string("no head")
                                    : "a target of " + std::to_string(fit.head) + (fit.head == 1 ? " output" : " outputs") +
                                          " where the sequence's has " + std::to_string(now.head)) +
                     " (the losses last and mean need no target)");
  std::string text;
  for (std::size_t i = 0; i < wanted.size(); ++i) text += (i == 0 ? "" : i + 1 == wanted.size() ? ", and " : ", ") + wanted[i];
  return text;
}

/// "The shapes alone fit width = 4 and pooling = ifo as well."
std::string choice_of(const FittedSizes& fit) {
  std::string text;
  for (const Settings& other : fit.others)
    text += (text.empty() ? "" : ", or ") + (other.empty() ? "the values as they are" : in_words(other));
  return text;
}

/// The parts of a file that holds more than this model, in words, and their names.
std::string parts_in_words(const WeightsFile& weights, const std::vector<WeightsPart>& parts, const NetworkOptions& now) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string what = cure_of(parts[i].sizes, now, true);
    text += (i == 0                  ? ""
             : i + 1 == parts.size() ? " or "
                                     : ", ") +
            weights.text() + ":" + parts[i].name + (what.empty() ? "" : " (" + what + ")");
  }
  return text;
}
std::vector<std::string> names_of(const std::vector<WeightsPart>& parts) {
  std::vector<std::string> names;
  for (const WeightsPart& part : parts) names.push_back(part.name);
  return names;
}
std::vector<WeightsPart> parts_in(const WeightsFile& weights, const Architecture& architecture, const Hyper& hyper,
                                  const NetworkOptions& now) {
  return weights.part.empty() ? parts_that_fit(architecture, hyper, now.input, weights.index) : std::vector<WeightsPart>();
}

/// Two sets of entries have the names of the model alike.
[[noreturn]] void refuse_match(const WeightsFile& weights, const NameMatch& match, const Architecture& architecture, const Hyper& hyper,
                               const NetworkOptions& now) {
  const auto parts = match.rivals.empty() ? std::vector<WeightsPart>() : parts_in(weights, architecture, hyper, now);
  const std::string file = weights.text();
  if (parts.empty()) throw Error(file + ": " + match.problem, {.file = file});
  throw MisfitError(
      file + ": " + match.problem.substr(0, match.problem.size() - 1) + ", or give the part: " + parts_in_words(weights, parts, now) + ".",
      {.file = file}, {}, names_of(parts));
}

/// Why the file does not fit, with the settings that would make it, or the part of it that does.
[[noreturn]] void refuse_misfit(const WeightsFile& weights, const std::string& entry, const std::string& what, const std::string& otherwise,
                                const Shape& wanted, const Network& network, const Architecture& architecture, const Hyper& hyper,
                                bool free_head) {
  const std::string file = weights.text();
  const ErrorPlace place{.file = file, .place = entry, .parameter = entry, .range = wanted.empty() ? "" : to_string(wanted)};
  const NetworkOptions& now = network.options();
  const FittedSizes fit = fit_to_file(architecture, hyper, now.input, now.head, weights.index);
  if (!fit.found) {
    const auto parts = parts_in(weights, architecture, hyper, now);
    if (parts.empty()) throw MisfitError(file + ": " + what + otherwise, place, {}, {});
    throw MisfitError(
        file + ": " + what + ": the file holds more than this model; give the part that fits: " + parts_in_words(weights, parts, now) + ".",
        place, {}, names_of(parts));
  }
  const bool settings_alone = fit.input == now.input && (free_head || fit.head == now.head);
  throw MisfitError(file + ": " + what + ": the weights were made for " + cure_of(fit, now, free_head) + ".", place,
                    settings_alone ? fit.settings : Settings{}, {});
}

}  // namespace

Parameters load_weights(const std::filesystem::path& path, const Network& network, const Architecture& architecture, const Hyper& hyper,
                        bool free_head) {
  WeightsFile weights(path);
  const NameMatch match = match_names(network, weights.index);
  if (!match.problem.empty()) refuse_match(weights, match, architecture, hyper, network.options());
  const auto misfit = [&](const std::string& entry, const std::string& what, const std::string& otherwise, const Shape& wanted = {}) {
    refuse_misfit(weights, entry, what, otherwise, wanted, network, architecture, hyper, free_head);
  };
  Parameters parameters = network.undrawn();
  auto& own = parameters.entries();
  RECLAB_DEMAND(own.size() == match.entries.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::string& name = own[i].name;
    const std::string& entry = match.entries[i];
    if (entry.empty())
      misfit(name, "the entry " + name + " of shape " + to_string(own[i].shape) + " is missing, the file has " + some_of(weights.names()),
             ": save it under that name or as param/" + name + ".", own[i].shape);
    const NpyHeader header = weights.header(entry);
    const auto rows = match.rows.find(i);
    const Shape found = shape_in_file(match, i, weights.index, own[i].shape);
    const std::string in_file = rows == match.rows.end() ? entry : entry + " to " + rows->second.back();
    const std::string what =
        "the entry " + name + (entry == name || entry == key_of(Kind::param, name) ? "" : ", in the file " + in_file + ",");
    const std::string shapes = "shape " + to_string(found) + " where the model has " + to_string(own[i].shape) +
                               (match.transposed.contains(i) ? " (the file's is transposed)" : "");
    if (header.kind == 'c')
      refuse(weights.file, name,
             what + " is complex, of " + shapes +
                 ": save real numbers, or real and imaginary parts as a last axis of 2 where the card says so.",
             own[i].shape);
    if (found != own[i].shape) {
      const bool transposed = found.size() == own[i].shape.size() && std::equal(found.begin(), found.end(), own[i].shape.rbegin());
      misfit(name, what + " has " + shapes, transposed ? ": save it transposed." : ": save it with that shape.", own[i].shape);
    }
    std::vector<double>& all = own[i].values;
    for (const std::string& part : rows == match.rows.end() ? std::vector<std::string>{entry} : rows->second) {
      const NpyArray array = weights.read(part);
      if (const auto bad = first_not_finite(array))
        refuse(weights.file, name, what + " is not finite at " + index_text(*bad, array.shape) + ": choose other weights.");
      all.insert(all.end(), array.real.begin(), array.real.end());
    }
    if (match.transposed.contains(i) && found.size() == 2) {
      const auto height = static_cast<std::size_t>(found.at(0)), width = static_cast<std::size_t>(found.at(1));
      std::vector<double> turned(all.size());
      for (std::size_t row = 0; row < height; ++row)
        for (std::size_t column = 0; column < width; ++column) turned[row * width + column] = all[column * height + row];
      all = std::move(turned);
    }
  }
  if (!match.unknown.empty()) {
    const std::string& extra = match.unknown.front();
    const auto parsed = parse_key(extra);
    const std::string name = parsed && parsed->kind == Kind::param ? parsed->name : extra;
    misfit(name, "the entry " + name + " is not a parameter of this model, and has shape " + to_string(weights.index.shapes().at(extra)),
           ": remove it (the model's card lists the names).");
  }
  return parameters;
}

namespace {

/// Whether a layer runs backward and keeps nothing, where others of its architecture keep states: it maps all steps at once.
bool reads_all_at_once(const Network& network, int layer) {
  const auto& layers = network.layers();
  const auto keeps = [&](int number) {
    return std::ranges::any_of(network.states(), [&](const Network::StateVar& s) { return s.layer == number; });
  };
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
                      " makes all its outputs of the whole sequence, from its end: run the whole sequence without a state, or choose "
                      "settings without that layer.",
                  {.file = path.string(), .model = a.id, .parameter = "state"});
    }
  Entries file(path, prefix_of(Kind::state));
  InitialState loaded;
  const DType real = network.options().real;
  const std::string other = "take the state.npz of a run of this model.";
  const Network::StateVar* counted = nullptr;  // the state that counts the steps passed: the position, or else a cache
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
      file.refuse(key,
                  what + " has shape " + to_string(array.shape) + " where the model has " + to_string(wanted) +
                      (complex ? " of complex numbers (or " + to_string(parts) + ", last axis re and im)" : "") +
                      ": take the state.npz of a run with the same hyper-parameters.",
                  wanted);
    if (array.is_complex() && !complex)
      file.refuse(key, what + " of shape " + to_string(wanted) + " is complex where the model's is real: save its real part.", wanted);
    if (const auto bad = first_not_finite(array))
      file.refuse(key, what + " is not finite at " + index_text(*bad, array.shape) + ": " + other);
    auto& values = loaded.values[key];
    if (in_parts)
      for (std::size_t i = 0; i < array.real.size(); i += 2) values.emplace_back(array.real[i], array.real[i + 1]);
    else if (array.is_complex())
      values = array.complex;
    else
      values.assign(array.real.begin(), array.real.end());

    if (state.position) {
      const double steps = array.real[0], most = std::ldexp(1.0, std::numeric_limits<double>::digits),
                   most_single = std::ldexp(1.0, std::numeric_limits<float>::digits);
      if (!(steps >= 0.0) || steps != std::floor(steps) || steps > most)
        file.refuse(key,
                    what + " is " + text_of(steps) + ", which is no number of steps that have passed: save a whole number from 0 to 2^53.");
      if (real == DType::f32 && steps > most_single)
        file.refuse(key, what + " is " + text_of(steps) + ", and float32 cannot count beyond 2^24: choose float64.");
      counted = &state;
      loaded.cached_steps = static_cast<std::int64_t>(steps);
    }
  }
  if (network.knows_time()) file.ignore("/clock");  // that of a run whose steps were unequal, for one whose steps are equal
  if (const auto extra = file.left())
    file.refuse(*extra, "the state " + *extra + " is not one of this model, and has shape " + file.shape(*extra) +
                            ": take the state.npz of a run of the same model.");

  // A growing state has a row for each step passed, or for each since the last multiple of its period.
  const auto rows_of = [&](const Network::StateVar& state) {
    return static_cast<std::int64_t>(loaded.values.at(Rollout::state_key(state)).size()) / count(state.shape);
  };
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
    const std::string why = counted->position ? "and after the " + text_of(static_cast<double>(loaded.cached_steps)) + " steps of " +
                                                    Rollout::state_key(*counted) + " it has " + std::to_string(wanted)
                                              : "and " + Rollout::state_key(*counted) + " has " + std::to_string(wanted);
    file.refuse(key, "the state " + key + " has " + std::to_string(rows) + (rows == 1 ? " row, " : " rows, ") + why + ": " + other);
  }
  return loaded;
}

FileKind kind_of_file(const std::filesystem::path& path) {
  if (!Archive::recognises(path)) return FileKind::sequence;
  const Archive file(path);
  const auto any = [&](const std::string& prefix) {
    return std::ranges::any_of(file.names(), [&](const std::string& name) { return name.starts_with(prefix); });
  };
  if (any(prefix_of(Kind::param))) return FileKind::weights;
  if (any(prefix_of(Kind::state))) return FileKind::state;
  const SequenceFormat& format = sequence_format_of_file(path);
  return format.holds_sequence && format.holds_sequence(file.names()) ? FileKind::sequence : FileKind::weights;
}

SizesInFile sizes_in_file(const Registry& registry, const RunRequest& request, const std::filesystem::path& path) {
  const auto architecture = architecture_of(registry, request.preset);
  // Values that were set are held to the file's sizes, not to the preset's: they need go together with these alone.
  const Hyper hyper = hyper_of(*architecture, request.preset, request.set, Together::unchecked);
  const WeightsFile weights(path);
  const SequenceLoss loss(request.loss, request.sequence);
  NetworkOptions now;
  now.input = request.sequence->width;
  now.head = loss.outputs();
  const bool free_head = loss.kind() != LossKind::task;
  std::set<std::string> kept;
  for (const auto& [key, text] : request.set) kept.insert(key);
  FittedSizes fit = fit_to_file(*architecture, hyper, now.input, now.head, weights.index, kept);
  if (!fit.found && !kept.empty()) fit = fit_to_file(*architecture, hyper, now.input, now.head, weights.index);
  const std::string name = weights.text();
  if (!fit.found) {
    try {
      const Network network(*architecture, hyper, now);
      if (const NameMatch match = match_names(network, weights.index); !match.problem.empty())
        refuse_match(weights, match, *architecture, hyper, now);
    } catch (const MisfitError&) {
      throw;
    } catch (const Error& error) {
      if (!error.where().file.empty()) throw;
    }
    const ErrorPlace place{.file = name, .model = architecture->id};
    const std::string what = name + ": no sizes of " + architecture->id + " fit these weights, the file has " + some_of(weights.names());
    const auto parts = parts_in(weights, *architecture, hyper, now);
    if (!parts.empty())
      throw MisfitError(what + ": it holds more than this model; give the part that fits: " + parts_in_words(weights, parts, now) + ".",
                        place, {}, names_of(parts));
    throw Error(what + ": choose another model, or compare with the names on its card.", place);
  }
  if (fit.input != now.input || (fit.head != now.head && !free_head))
    throw Error(name + ": the weights were made for " + cure_of(fit, now, free_head) + ": choose another sequence, or other weights.",
                {.file = name, .parameter = "input"});
  return {fit.settings, choice_of(fit)};
}

std::vector<std::pair<std::string, std::string>> settings_that_fit(const Registry& registry, const RunRequest& request,
                                                                   const std::filesystem::path& file) {
  return sizes_in_file(registry, request, file).settings;
}

std::int64_t head_of_weights(const std::filesystem::path& path, const Architecture& architecture, const Hyper& hyper, std::int64_t input) {
  return head_in_file(architecture, hyper, input, WeightsFile(path).index);
}

}  // namespace reclab
