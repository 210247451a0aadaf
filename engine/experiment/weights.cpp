// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/weights.h"

#include <algorithm>
#include <set>

#include "array/archive.h"
#include "experiment/experiment.h"
#include "experiment/rollout.h"

namespace reclab {
namespace {

/// The entries of a file by the model's names, with or without the prefix. Where any has the prefix, what has not is something else: a
/// trace.npz holds more than weights.
class Entries {
 public:
  Entries(const std::filesystem::path& path, std::string prefix) : file_(path), prefix_(std::move(prefix)) {
    for (const auto& name : file_.names())
      if (name.starts_with(prefix_)) left_.insert(name);
    if (left_.empty()) left_.insert(file_.names().begin(), file_.names().end());
  }
  NpyArray take(const std::string& name, const std::string& what, const Shape& wanted, const std::string& cure) {
    const std::string key = file_.has(prefix_ + name) ? prefix_ + name : name;
    if (!file_.has(key)) refuse(name, what + " of shape " + to_string(wanted) + " is missing, the file has " + some_of(file_.names()) + ": " + cure, wanted);
    left_.erase(key);
    // Of an array that cannot fit the shape alone is read: it is refused for that, and may be of any size.
    const NpyArray unread{.shape = file_.shape(key), .dtype = "<f8", .real = {}, .complex = {}};
    return may_hold(unread.shape, wanted) ? file_.read(key) : unread;
  }
  /// The first entry that was not taken.
  std::optional<std::string> left() const { return left_.empty() ? std::optional<std::string>() : *left_.begin(); }
  std::string shape(const std::string& key) const { return to_string(file_.shape(key)); }
  [[noreturn]] void refuse(const std::string& entry, const std::string& what, const Shape& wanted = {}) const {
    const std::string file = file_.path().string();
    throw Error(file + ": " + what, {.file = file, .place = entry, .parameter = entry, .range = wanted.empty() ? "" : to_string(wanted)});
  }

 private:
  /// Whether the sizes are those of `wanted`, perhaps with rows in front (what grows) and real and imaginary parts behind.
  static bool may_hold(const Shape& found, const Shape& wanted) {
    return std::search(found.begin(), found.end(), wanted.begin(), wanted.end()) != found.end() || wanted.empty();
  }

  Archive file_;
  std::string prefix_;
  std::set<std::string> left_;
};

/// Why weights of another shape do not fit, and what to do.
std::string cure_of(const Shape& found, const Shape& wanted, std::int64_t input_width) {
  if (found.size() == 2 && wanted.size() == 2 && found[0] == wanted[0] && wanted[1] == input_width)
    return "the weights were made for " + std::to_string(found[1]) + " input columns and the sequence has " + std::to_string(input_width) +
           ": choose as many columns with --columns, or other weights.";
  if (found.size() == wanted.size() && std::equal(found.begin(), found.end(), wanted.rbegin())) return "save it transposed.";
  return "save it with that shape, or change the hyper-parameters to those of the weights.";
}

}  // namespace

void load_weights(const std::filesystem::path& path, Parameters& parameters, std::int64_t input_width) {
  Entries file(path, "param/");
  std::vector<std::vector<double>> values;
  for (const auto& parameter : parameters.entries()) {
    const std::string what = "the entry " + parameter.name;
    NpyArray array = file.take(parameter.name, what, parameter.shape, "save it under that name or as param/" + parameter.name + ".");
    const std::string shapes = "shape " + to_string(array.shape) + " where the model has " + to_string(parameter.shape);
    if (array.is_complex())
      file.refuse(parameter.name, what + " is complex, of " + shapes + ": save real numbers, or real and imaginary parts as a last axis of 2 where the card says so.",
                  parameter.shape);
    if (array.shape != parameter.shape)
      file.refuse(parameter.name, what + " has " + shapes + "; " + cure_of(array.shape, parameter.shape, input_width), parameter.shape);
    values.push_back(std::move(array.real));
  }
  if (const auto extra = file.left()) {
    const std::string name = extra->starts_with("param/") ? extra->substr(6) : *extra;
    file.refuse(name, "the entry " + name + " is not a parameter of this model, and has shape " + file.shape(*extra) +
                          ": remove it, or change the hyper-parameters to those of the weights (reclab show lists the names).");
  }
  for (std::size_t i = 0; i < values.size(); ++i) parameters.entries()[i].values = std::move(values[i]);
}

std::map<std::string, std::vector<std::complex<double>>> load_state(const std::filesystem::path& path, const Network& network) {
  Entries file(path, "state/");
  std::map<std::string, std::vector<std::complex<double>>> states;
  for (const auto& state : network.states()) {
    const std::string key = Rollout::state_key(state), what = "the state " + key;
    const NpyArray array = file.take(key.substr(6), what, state.shape, "take the state.npz of a run of this model.");
    Shape wanted = state.shape;
    if (state.growing) wanted.insert(wanted.begin(), array.shape.empty() ? 0 : array.shape[0]);
    const bool complex = is_complex(state.initial.dtype());
    Shape parts = wanted;  // of a complex state as real numbers: some formats have no others
    parts.push_back(2);
    auto& values = states[key];
    if (complex && !array.is_complex() && array.shape == parts) {
      for (std::size_t i = 0; i < array.real.size(); i += 2) values.emplace_back(array.real[i], array.real[i + 1]);
      continue;
    }
    if (array.shape != wanted)
      file.refuse(key, what + " has shape " + to_string(array.shape) + " where the model has " + to_string(wanted) +
                           (complex ? " of complex numbers (or " + to_string(parts) + ", last axis re and im)" : "") +
                           ": take the state.npz of a run with the same hyper-parameters.",
                  wanted);
    if (array.is_complex() && !complex)
      file.refuse(key, what + " of shape " + to_string(wanted) + " is complex where the model's is real: save its real part.", wanted);
    if (array.is_complex())
      values = array.complex;
    else
      values.assign(array.real.begin(), array.real.end());
  }
  if (const auto extra = file.left())
    file.refuse(*extra, "the state " + *extra + " is not one of this model, and has shape " + file.shape(*extra) + ": take the state.npz of a run of the same model.");
  return states;
}

FileKind kind_of_file(const std::filesystem::path& path) {
  if (!Archive::recognises(path)) return FileKind::sequence;
  const Archive file(path);
  const auto any = [&](const std::string& prefix) { return std::ranges::any_of(file.names(), [&](const std::string& name) { return name.starts_with(prefix); }); };
  if (any("param/")) return FileKind::weights;
  if (any("state/")) return FileKind::state;
  return file.is_npz() && (file.has("input") || file.names().size() <= 1) ? FileKind::sequence : FileKind::weights;
}

}  // namespace reclab
