// SPDX-License-Identifier: GPL-3.0-or-later
// Presets: JSON files, schema 1. Anything unknown in them is an Error, one sentence that names the file and the key.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <system_error>
#include <tuple>

#include "experiment/experiment.h"
#include "files/data_folders.h"
#include "files/files.h"
#include "files/json.h"
#include "models/families.h"
#include "models/registry.h"
#include "parameters/nearest.h"

namespace reclab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;  // hyper-parameters keep the order of the file
constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t most_parts = 64;  // of a stack, as of layers

[[noreturn]] void mistake(const fs::path& file, const std::string& place, const std::string& sentence) {
  ErrorPlace where;
  where.file = file.string();
  where.place = place;
  throw Error(where.file + ": " + printable(place) + (place.empty() ? "" : " ") + sentence, where);
}

std::string kind_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return value.empty() ? "an empty list" : "a list";
    case Json::value_t::string: return "the text " + printable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
    default: return value.dump();
  }
}

/// One object of the file: hands out its keys by type, and complains about those that nobody asked for.
class Object {
 public:
  Object(const Json& json, const fs::path& file, std::string place) : json_(json), file_(file), place_(std::move(place)) {
    if (!json.is_object())
      mistake(file, place_, (place_.empty() ? "the preset " : "") + std::string("must be an object in braces, not ") + kind_of(json) + ".");
  }

  std::string name(const std::string& key) const { return place_.empty() ? key : place_ + "." + key; }
  const Json* find(const std::string& key) {
    asked_.push_back(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  const Json& need(const std::string& key, const std::string& what) {
    const Json* value = find(key);
    if (!value) mistake(file_, name(key), "is missing; it is " + what + ".");
    return *value;
  }
  static constexpr bool required = true;
  std::string text(const std::string& key, const std::string& what, bool must = required) {
    const Json* value = must ? &need(key, what) : find(key);
    if (!value) return {};
    if (!value->is_string() || value->get_ref<const std::string&>().empty())
      mistake(file_, name(key), "must be " + what + " in quotes, not " + kind_of(*value) + ".");
    return value->get<std::string>();
  }
  std::int64_t integer(const std::string& key, const std::string& what, std::int64_t low, std::int64_t high, const Json& value) const {
    const bool fits = value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > largest);
    if (!fits || value.get<std::int64_t>() < low || value.get<std::int64_t>() > high)
      mistake(file_, name(key),
              "must be " + what + (low == high ? "" : ", an integer from " + std::to_string(low) + " to " + std::to_string(high)) +
                  ", not " + kind_of(value) + ".");
    return value.get<std::int64_t>();
  }
  void nothing_else() const {
    for (const auto& [key, value] : json_.items())
      if (std::ranges::find(asked_, key) == asked_.end())
        mistake(file_, name(key), "is not a key of a preset; did you mean " + nearest_names(key, asked_, 1) + "?");
  }

 private:
  const Json& json_;
  const fs::path& file_;
  std::string place_;
  std::vector<std::string> asked_;
};

bool is_id(const std::string& text) {
  return !text.empty() && text.front() != '-' &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

HyperValues read_hyper(const Json& json, const fs::path& file, const std::string& place) {
  if (!json.is_object()) mistake(file, place, "must be an object of keys and values, not " + kind_of(json) + ".");
  HyperValues values;
  for (const auto& [key, value] : json.items()) {
    HyperValue read;
    if (value.is_boolean()) {
      read = value.get<bool>();
    } else if (value.is_number_unsigned() && value.get<std::uint64_t>() > largest) {
      read = value.get<double>();
    } else if (value.is_number_integer()) {
      read = value.get<std::int64_t>();
    } else if (value.is_number_float()) {
      read = value.get<double>();
    } else if (value.is_string()) {
      read = value.get<std::string>();
    } else {
      mistake(file, place + "." + key, "must be a number, true, false or a text in quotes, not " + kind_of(value) + ".");
    }
    values.emplace_back(key, std::move(read));
  }
  return values;
}

/// Calls a check, and adds file and place to its errors: the architecture's name, or the hyper-parameter below `hyper`.
template <class Check>
void checked(const fs::path& file, const std::string& architecture, const std::string& hyper, const Check& check) {
  try {
    check();
  } catch (const Error& error) {
    const std::string& key = error.where().parameter;
    mistake(file, key.empty() ? architecture + ":" : hyper + "." + key + ":", error.what());
  }
}

/// The parts of a stack, each checked by itself.
void read_stack(const Json& json, const Registry& registry, const fs::path& file, Preset& preset) {
  if (!json.is_array() || json.empty() || json.size() > most_parts)
    mistake(file, "stack",
            "must be a list of 1 to " + std::to_string(most_parts) + " architectures with their hyper-parameters, not " +
                (json.size() > most_parts ? "of " + std::to_string(json.size()) : kind_of(json)) + ".");
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string place = "stack[" + std::to_string(i) + "]";
    Object part(json[i], file, place);
    const std::string id = part.text("architecture", "the name of an architecture of this program");
    HyperValues values;
    if (const Json* hyper = part.find("hyper")) values = read_hyper(*hyper, file, place + ".hyper");
    part.nothing_else();
    checked(file, place + ".architecture", place + ".hyper", [&] {
      Preset alone;
      alone.id = alone.architecture = id;
      alone.hyper = values;
      hyper_of(registry, alone);
    });
    preset.architecture += (i ? " + " : "") + id;
    preset.stack.emplace_back(id, std::move(values));
  }
}

/// The places to look at, by the window's names, which only the window can check.
std::vector<std::string> read_look_at(const Json& json, const fs::path& file) {
  if (!json.is_array()) mistake(file, "look_at", "must be a list of panels, not " + kind_of(json) + ".");
  std::vector<std::string> places;
  for (const Json& entry : json) {
    if (!entry.is_string() || entry.get_ref<const std::string&>().empty())
      mistake(file, "look_at", "must hold names of panels in quotes, not " + kind_of(entry) + ".");
    places.push_back(entry.get<std::string>());
  }
  return places;
}

/// The claims of the idea. Their words must occur in it, so that a changed sentence brings its claim to attention.
std::vector<Claim> read_claims(const Json& json, const std::string& idea, const fs::path& file, const std::string& list = "claims") {
  if (!json.is_array()) mistake(file, list, "must be a list of objects with text, measure and range, not " + kind_of(json) + ".");
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string place = list + "[" + std::to_string(i) + "]";
    Object object(json[i], file, place);
    Claim claim;
    claim.text = object.text("text", "words of the idea");
    if (idea.find(claim.text) == std::string::npos)
      mistake(file, place + ".text", "must be words that stand in the idea, not " + kind_of(claim.text) + ".");
    claim.measure = object.text("measure", "what is measured, and of what");
    const Json& range = object.need("range", "a list of the least and the largest number");
    if (!range.is_array() || range.size() != 2 || !range[0].is_number() || !range[1].is_number() ||
        !(range[0].get<double>() <= range[1].get<double>()))
      mistake(file, place + ".range", "must be a list of the least and the largest number, not " + kind_of(range) + ".");
    claim.low = range[0].get<double>();
    claim.high = range[1].get<double>();
    object.nothing_else();
    claims.push_back(std::move(claim));
  }
  return claims;
}

/// The models that this one is a variation of. One that is no preset here is no mistake: presets of users' name those of others.
std::vector<Descent> read_descent(const Json& json, const std::string& id, const fs::path& file) {
  if (!json.is_array() || json.empty())
    mistake(file, "descends_from", "must be a list of objects with id and changed, not " + kind_of(json) + ".");
  std::vector<Descent> all;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string place = "descends_from[" + std::to_string(i) + "]";
    Object object(json[i], file, place);
    Descent descent;
    descent.id = object.text("id", "the id of a preset");
    if (!is_id(descent.id))
      mistake(file, place + ".id",
              "must be the id of a preset, of lower-case letters, digits and minus signs, not " + kind_of(descent.id) + ".");
    if (descent.id == id) mistake(file, place + ".id", "is the preset itself; name the one that it was made from.");
    if (std::ranges::find(all, descent.id, &Descent::id) != all.end())
      mistake(file, place + ".id", "\"" + descent.id + "\" is given twice; keep one of them.");
    descent.changed = object.text("changed", "what it changed, a clause");
    object.nothing_else();
    all.push_back(std::move(descent));
  }
  return all;
}

/// The task that a preset, or one that was trained, is shown on.
template <class Shown>
void read_sequence(const Json& json, const fs::path& file, const std::string& place, Shown& shown) {
  Object object(json, file, place);
  shown.task = object.text("task", "the name of a task");
  shown.task_set.clear();
  std::vector<std::string> known;
  for (const TaskInfo& task : tasks()) known.push_back(task.name);
  if (std::ranges::find(known, shown.task) == known.end())
    mistake(file, place + ".task",
            "names no task: \"" + shown.task + "\"; the tasks are " + nearest_names(shown.task, known, known.size()) + ".");
  if (const Json* length = object.find("length"))
    shown.task_length = object.integer("length", "a number of steps", 1, 1'000'000'000, *length);
  if (const Json* seed = object.find("seed"))
    shown.task_seed = static_cast<std::uint64_t>(object.integer("seed", "a seed", 0, std::numeric_limits<std::int64_t>::max(), *seed));
  if (const Json* parameters = object.find("parameters")) {
    const std::string below = place + ".parameters";
    Hyper values = task_parameters(shown.task, {});
    for (const auto& [key, value] : read_hyper(*parameters, file, below)) {
      if (!values.has(key)) checked(file, below, below, [&, name = key] { task_parameters(shown.task, {{name, ""}}); });
      checked(file, below, below, [&, name = key, given = value] { values.set(name, given, "the task " + shown.task); });
    }
    shown.task_set = settings_of(values);
  }
  object.nothing_else();
}

/// Whether a text is one command with its words and nothing more, as a POSIX shell reads it: outside of single quotes nothing that a shell
/// acts on. A command that is shown is copied into a terminal.
bool is_plain_command(std::string_view text) {
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       std::string_view(" _@%+=:,./-").find(c) != std::string_view::npos;
    if (c == '\n') return false;
    if (c == '\'')
      quoted = !quoted;
    else if (!quoted && c == '\\' && i + 1 < text.size() && text[i + 1] == '\'')
      ++i;
    else if (!quoted && !plain)
      return false;
  }
  return !quoted;
}

/// The weights that a preset was trained to; the preset itself has been read.
TrainedPreset read_trained(const Json& json, const Registry& registry, const Preset& preset) {
  const fs::path& file = preset.file;
  Object object(json, file, "trained");
  TrainedPreset trained;
  const std::string name = object.text("weights", "the name of a safetensors file beside the preset");
  if (fs::path(name).filename() != name || !name.ends_with(".safetensors"))
    mistake(file, "trained.weights", "must be the name of a .safetensors file in the preset's own folder, not " + kind_of(name) + ".");
  trained.weights = file.parent_path() / name;
  std::error_code missing;
  const auto bytes = fs::file_size(trained.weights, missing);
  if (missing)
    mistake(file, "trained.weights",
            "names " + printable(name) + ", which cannot be read beside it (" + missing.message() +
                "); put it there, or train it with trained.command.");
  if (fs::canonical(trained.weights, missing).parent_path() != fs::canonical(file, missing).parent_path())
    mistake(file, "trained.weights", "names " + printable(name) + ", a link that leads out of the preset's folder; put the file there.");
  if (bytes > TrainedPreset::largest)
    mistake(file, "trained.weights",
            "names " + printable(name) + " of " + std::to_string(bytes) + " bytes, and " + std::to_string(TrainedPreset::largest) +
                " is the most; train a smaller model, or in float32.");
  trained.command = object.text("command", "the command that trained it");
  const std::string start = "reclab train " + preset.id;
  if (trained.command != start && !trained.command.starts_with(start + " "))
    mistake(file, "trained.command", "must begin with \"" + start + "\", not be " + kind_of(trained.command) + ".");
  if (!is_plain_command(trained.command))
    mistake(file, "trained.command",
            "must be one command, with single quotes round words that have other signs than letters, digits and _@%+=:,./-, not be " +
                kind_of(trained.command) + ".");
  trained.idea = object.text("idea", "what the trained model has learned, what to look at and where it breaks");
  if (const Json* claims = object.find("claims")) trained.claims = read_claims(*claims, trained.idea, file, "trained.claims");
  if (const Json* hyper = object.find("hyper")) {
    if (!preset.stack.empty()) mistake(file, "trained.hyper", "cannot be given for a stack; write the values into its parts.");
    trained.hyper = read_hyper(*hyper, file, "trained.hyper");
    checked(file, "trained.hyper", "trained.hyper", [&] {
      Preset alone = preset;
      alone.hyper = trained.hyper;
      hyper_of(registry, alone);
    });
  }
  trained.task = preset.task;
  trained.task_length = preset.task_length;
  trained.task_seed = preset.task_seed;
  trained.task_set = preset.task_set;
  if (const Json* sequence = object.find("sequence")) read_sequence(*sequence, file, "trained.sequence", trained);
  object.nothing_else();
  return trained;
}

Preset load_preset(const Registry& registry, const fs::path& file) {
  const Json json = json_of_text<Json>(read_file(file), file.string());
  Preset preset;
  preset.file = file;

  Object root(json, file, "");
  root.integer("schema", "1, the number of the format that the file is written in", 1, 1,
               root.need("schema", "the number 1, the format that the file is written in"));
  preset.id = root.text("id", "the name on the command line");
  if (!is_id(preset.id)) mistake(file, "id", "must be of lower-case letters, digits and minus signs, not \"" + preset.id + "\".");
  const Json* stack = root.find("stack");
  if (stack && root.find("architecture")) mistake(file, "stack", "and architecture are both given; keep one of them.");
  if (stack && root.find("hyper")) mistake(file, "hyper", "belongs into the parts of the stack; write it there.");
  if (stack)
    read_stack(*stack, registry, file, preset);
  else
    preset.architecture = root.text("architecture", "the name of an architecture of this program");
  preset.title = root.text("title", "the name for people");
  preset.family = root.text("family", "the name of the family that it is listed under");
  if (!is_id(preset.family))
    mistake(file, "family", "must be of lower-case letters, digits and minus signs, not \"" + preset.family + "\".");
  preset.idea = root.text("idea", "what it changed, what to look at and where it breaks");

  if (const Json* hyper = root.find("hyper")) preset.hyper = read_hyper(*hyper, file, "hyper");
  if (const Json* sequence = root.find("sequence")) read_sequence(*sequence, file, "sequence", preset);
  if (const Json* look_at = root.find("look_at")) preset.look_at = read_look_at(*look_at, file);
  if (const Json* claims = root.find("claims")) preset.claims = read_claims(*claims, preset.idea, file);
  if (const Json* descent = root.find("descends_from")) preset.descends_from = read_descent(*descent, preset.id, file);
  Object source(root.need("source", "an object with authors, year and title"), file, "source");
  preset.source.authors = source.text("authors", "the authors' names");
  preset.source.year =
      static_cast<int>(source.integer("year", "the year of publication", 1900, 2200, source.need("year", "the year of publication")));
  preset.source.title = source.text("title", "the title of the paper");
  preset.source.venue = source.text("venue", "where it was published", !Object::required);
  preset.source.url = source.text("url", "an address", !Object::required);
  if (const std::string& url = preset.source.url; !url.empty() && !url.starts_with("https://") && !url.starts_with("http://"))
    mistake(file, "source.url", "must be an address on the web that begins with https:// or http://, not \"" + url + "\".");
  source.nothing_else();
  const Json* trained = root.find("trained");
  root.nothing_else();

  if (!stack) checked(file, "architecture", "hyper", [&] { hyper_of(registry, preset); });
  if (trained) preset.trained = read_trained(*trained, registry, preset);
  return preset;
}

/// Every *.json below the folder, sorted, so that a library is the same on every machine. A folder that cannot be read is reported and
/// hides no other.
std::vector<fs::path> preset_files(const fs::path& folder, std::vector<std::string>& problems) {
  std::error_code no_file;
  if (folder.extension() == ".json" && fs::is_regular_file(folder, no_file)) return {folder};
  std::vector<fs::path> files;
  const auto problem = [&](const fs::path& where, const std::error_code& code) {
    problems.push_back(where.string() + ": the folder of presets cannot be read (" + code.message() + "); make it, or correct the path.");
  };
  std::vector<fs::path> waiting{folder};
  while (!waiting.empty()) {
    const fs::path here = std::move(waiting.back());
    waiting.pop_back();
    std::error_code code;
    for (fs::directory_iterator entry(here, code), end; !code && entry != end; entry.increment(code)) {
      std::error_code unresolved;  // a file that cannot be resolved is told when it is opened
      if (entry->is_directory(unresolved) && !entry->is_symlink(unresolved))
        waiting.push_back(entry->path());
      else if (entry->path().extension() == ".json" && !entry->is_directory(unresolved))
        files.push_back(entry->path());
    }
    if (code) problem(here, code);
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

PresetLibrary::PresetLibrary(const Registry& registry, const std::vector<fs::path>& folders) {
  std::set<fs::path> seen;
  for (const fs::path& folder : folders) {
    for (const fs::path& file : preset_files(folder, problems_)) {
      std::error_code ignored;  // a file that cannot be resolved is reported when it is opened
      const fs::path real = fs::weakly_canonical(file, ignored);
      if (!seen.insert(ignored ? file : real).second) continue;
      try {
        Preset preset = load_preset(registry, file);
        const auto same = std::ranges::find(presets_, preset.id, &Preset::id);
        if (same != presets_.end()) mistake(file, "id", "\"" + preset.id + "\" is taken by " + same->file.string() + "; give it another.");
        presets_.push_back(std::move(preset));
      } catch (const Error& error) {
        problems_.emplace_back(error.what());
      }
    }
  }
  std::ranges::sort(presets_, {}, [](const Preset& p) { return std::tuple(family_place(p.family), p.family, p.source.year, p.id); });
}

const Preset& PresetLibrary::find(std::string_view id) const {
  const auto found = std::ranges::find(presets_, id, &Preset::id);
  if (found != presets_.end()) return *found;
  ErrorPlace where;
  where.model = id;
  // A preset that was found but could not be read is better explained by its mistake.
  for (const std::string& problem : problems_)
    if (!id.empty() && problem.find("/" + where.model + ".json: ") != std::string::npos) throw Error(problem, where);
  std::vector<std::string> known;
  for (const Preset& preset : presets_) known.push_back(preset.id);
  where.range = nearest_names(id, known);
  if (known.empty())
    throw Error("there is no preset \"" + where.model + "\", and none was found at all; set RECLAB_PRESETS to the folder that holds them.",
                where);
  // It may be in an unreadable folder, or in a file with a mistake before its id.
  const std::string hidden = problems_.empty()
                                 ? ""
                                 : " But not everything could be read: " + problems_.front() +
                                       (problems_.size() > 1 ? " (and " + std::to_string(problems_.size() - 1) + " more)" : "");
  throw Error("there is no preset \"" + where.model + "\"; the nearest are " + where.range + ", and `reclab list` shows all." + hidden,
              where);
}

Preset as_trained(const Preset& preset) {
  if (preset.is_trained) return preset;
  if (!preset.trained)
    throw Error(preset.id + " has no trained weights" + Remedy{": ", "leave out ", {"trained"}} +
                    Remedy{", or ", "train it with `reclab train " + preset.id + "`"} + ".",
                {.model = preset.id, .parameter = "trained"});
  const TrainedPreset& trained = *preset.trained;
  Preset result = preset;
  result.is_trained = true;
  for (const auto& [key, value] : trained.hyper) {
    const auto own = std::ranges::find(result.hyper, key, &HyperValues::value_type::first);
    if (own == result.hyper.end())
      result.hyper.emplace_back(key, value);
    else
      own->second = value;
  }
  result.task = trained.task;
  result.task_length = trained.task_length;
  result.task_seed = trained.task_seed;
  result.task_set = trained.task_set;
  result.idea = trained.idea;
  result.claims = trained.claims;
  return result;
}

void use_trained(RunRequest& request) {
  request.preset = as_trained(request.preset);
  request.weights = request.preset.trained->weights;
}

std::vector<fs::path> preset_folders() { return data_folders("RECLAB_PRESETS", "presets", "presets"); }

}  // namespace reclab
