// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/weights.h"

#include <algorithm>

#include "array/error.h"
#include "array/npz.h"
#include "experiment/rollout.h"

namespace reclab {
namespace {

/// The entries to read: those under the prefix when there are any (so a trace.npz serves), else all.
std::map<std::string, std::string> entries_under(const NpzFile& file, const std::string& prefix) {
  std::map<std::string, std::string> found, all;
  for (const auto& name : file.names()) {
    all[name] = name;
    if (name.starts_with(prefix)) found[name.substr(prefix.size())] = name;
  }
  return found.empty() ? all : found;
}

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& entry, const std::string& what, const std::string& range = {}) {
  throw Error(file.string() + ": " + what, {.file = file.string(), .place = entry, .parameter = entry, .range = range});
}

}  // namespace

void load_weights(const std::filesystem::path& path, Parameters& parameters, std::int64_t input_width) {
  const NpzFile file(path);
  auto entries = entries_under(file, "param/");
  std::vector<std::vector<double>> values;
  for (const auto& parameter : parameters.entries()) {
    const auto found = entries.find(parameter.name);
    if (found == entries.end())
      refuse(path, parameter.name, "the entry " + parameter.name + " of shape " + to_string(parameter.shape) + " is missing: save it under that name or as param/" + parameter.name + ".");
    NpyArray array = file.read(found->second);
    if (array.is_complex()) refuse(path, parameter.name, "the entry " + parameter.name + " is complex: save real numbers, or real and imaginary parts as the card names them.");
    if (array.shape != parameter.shape) {
      std::string cure = "save it with that shape, or change the hyper-parameters to those of the weights.";
      if (array.shape.size() == 2 && parameter.shape.size() == 2 && array.shape[0] == parameter.shape[0] && parameter.shape[1] == input_width)
        cure = "the weights were made for " + std::to_string(array.shape[1]) + " input columns and the sequence has " + std::to_string(input_width) +
               ": choose as many columns with --columns, or other weights.";
      refuse(path, parameter.name, "the entry " + parameter.name + " has shape " + to_string(array.shape) + " where the model has " + to_string(parameter.shape) + "; " + cure,
             to_string(parameter.shape));
    }
    values.push_back(std::move(array.real));
    entries.erase(found);
  }
  if (!entries.empty())
    refuse(path, entries.begin()->first,
           "the entry " + entries.begin()->first + " is not a parameter of this model: remove it, or change the hyper-parameters to those of the weights (reclab show lists the names).");
  for (std::size_t i = 0; i < values.size(); ++i) parameters.entries()[i].values = std::move(values[i]);
}

std::map<std::string, std::vector<std::complex<double>>> load_state(const std::filesystem::path& path, const Network& network) {
  const NpzFile file(path);
  auto entries = entries_under(file, "state/");
  std::map<std::string, std::vector<std::complex<double>>> states;
  for (const auto& state : network.states()) {
    const std::string key = Rollout::state_key(state);
    auto found = entries.find(key.substr(6));
    if (found == entries.end()) refuse(path, key, "the state " + key + " of shape " + to_string(state.shape) + " is missing: take the state.npz of a run of this model.");
    const NpyArray array = file.read(found->second);
    Shape wanted = state.shape;
    if (state.growing) wanted.insert(wanted.begin(), array.shape.empty() ? 0 : array.shape[0]);
    if (array.shape != wanted)
      refuse(path, key, "the state " + key + " has shape " + to_string(array.shape) + " where the model has " + to_string(wanted) + ": take the state.npz of a run with the same hyper-parameters.",
             to_string(wanted));
    const bool complex = is_complex(state.initial.dtype());
    if (array.is_complex() && !complex) refuse(path, key, "the state " + key + " is complex where the model's is real: save its real part.");
    auto& values = states[key];
    if (array.is_complex())
      values = array.complex;
    else
      values.assign(array.real.begin(), array.real.end());
    entries.erase(found);
  }
  if (!entries.empty())
    refuse(path, entries.begin()->first, "the state " + entries.begin()->first + " is not one of this model: take the state.npz of a run of the same model.");
  return states;
}

}  // namespace reclab
