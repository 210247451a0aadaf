// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/weights/naming.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <optional>
#include <set>

#include "array/error.h"
#include "files/npz.h"

namespace reclab {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

/// The reference implementation's name of `name` by this row; nothing where the row is of another parameter.
std::optional<std::string> renamed(const std::string& name, const ReferenceName& row) {
  std::string theirs = row.theirs;
  const std::size_t star = row.ours.find('*');
  if (star == std::string::npos) return name == row.ours ? std::optional(theirs) : std::nullopt;
  const std::string_view before = std::string_view(row.ours).substr(0, star), after = std::string_view(row.ours).substr(star + 1);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return std::nullopt;
  replace_all(theirs, "*", name.substr(before.size(), name.size() - before.size() - after.size()));
  return theirs;
}

/// bare: a name of a model of one layer without that layer's number, read where no layer's entry has a name of another kind, or beside
/// those that have.
enum class Naming { own, dotted, reference, bare };

/// A name under which a parameter may stand in a file.
struct Spelling {
  std::size_t parameter;
  Naming naming;
  std::int64_t row = -1;  ///< not -1: of this row alone
  bool transposed = false;
};

/// The number that a layer's parameters begin with; nothing for the encoder, the head and the final layer.
std::optional<std::size_t> layer_of(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == 0 || slash == std::string::npos ||
      !std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(slash), [](unsigned char c) { return std::isdigit(c) != 0; }))
    return std::nullopt;
  return static_cast<std::size_t>(std::stoul(name.substr(0, slash)));
}
/// A linear map before or after the layers: it belongs to no architecture.
bool is_dense(const std::string& name) { return name.starts_with("encoder") || name.starts_with("head/"); }

}  // namespace

std::vector<std::pair<std::string, bool>> reference_names(const Network& network, const std::string& name) {
  std::vector<std::pair<std::string, bool>> names;
  const auto& layers = network.layers();
  const auto layer = layer_of(name);
  const auto around = [](const std::string& of) {
    return of.starts_with("encoder/") ? "encoder/" : of.starts_with("head/") ? "head/" : "";
  };
  const std::string place = around(name);
  const Architecture& architecture = *(place == "head/" ? layers.back() : layers[layer ? *layer : 0]).architecture;
  for (const ReferenceName& row : architecture.reference) {
    if (row.ours.empty() || place != around(row.ours)) continue;
    if (place.empty() && layer.has_value() == row.ours.starts_with("final/")) continue;
    auto theirs = renamed(layer ? name.substr(name.find('/') + 1) : name, row);
    if (!theirs) continue;
    if (layer) {
      const bool backward = layers[*layer].reversed;
      const auto of_direction = [&](const Network::LayerInfo& other) { return other.reversed == backward; };
      const auto number = std::count_if(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(*layer), of_direction);
      const bool both = std::any_of(layers.begin(), layers.end(), [](const Network::LayerInfo& other) { return !other.reversed; });
      // A name without a number is that of a reference implementation of one layer.
      if (number > 0 && std::ranges::none_of(std::array{"{n}", "{n+1}", "{_n}", "{2n}", "{2n+1}", "{path}"},
                                             [&](const char* mark) { return theirs->find(mark) != std::string::npos; }))
        continue;
      replace_all(*theirs, "{path}", layers[*layer].path);
      replace_all(*theirs, "{n}", std::to_string(number));
      replace_all(*theirs, "{n+1}", std::to_string(number + 1));
      // Where a layer of ours is two of theirs, {2n} and {2n+1} are their numbers.
      replace_all(*theirs, "{2n}", std::to_string(2 * number));
      replace_all(*theirs, "{2n+1}", std::to_string(2 * number + 1));
      replace_all(*theirs, "{_n}", number ? "_" + std::to_string(number) : "");
      replace_all(*theirs, "{_reverse}", backward && both ? "_reverse" : "");
    }
    names.emplace_back(*theirs, row.transposed);
  }
  return names;
}

namespace {

std::string dotted(std::string name) {
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

/// The names that the parameters of a network may have in a file.
std::multimap<std::string, Spelling> spellings_of(const Network& network, bool of_trace) {
  const auto& parameters = network.parameters();
  // Parameters of a final layer, bare, would be named like a layer's own.
  const auto in_order = [](const Network::ParameterVar& parameter) { return layer_of(parameter.name) || is_dense(parameter.name); };
  const bool one_layer = network.layers().size() == 1 && std::ranges::all_of(parameters, in_order);
  std::multimap<std::string, Spelling> spellings;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& own = parameters[i].name;
    spellings.emplace(own, Spelling{i, Naming::own});
    if (of_trace) continue;
    spellings.emplace(dotted(own), Spelling{i, Naming::dotted});
    for (const auto& [theirs, transposed] : reference_names(network, own)) {
      if (theirs.find("{i}") == std::string::npos) {
        spellings.emplace(theirs, Spelling{i, Naming::reference, -1, transposed});
        continue;
      }
      for (std::int64_t row = 0; row < parameters[i].var.dim(0); ++row) {
        std::string one = theirs;
        replace_all(one, "{i}", std::to_string(row));
        spellings.emplace(std::move(one), Spelling{i, Naming::reference, row});
      }
    }
    if (one_layer && layer_of(own)) spellings.emplace(dotted(own.substr(own.find('/') + 1)), Spelling{i, Naming::bare});
  }
  return spellings;
}

/// The axes that are not of length 1.
Shape without_ones(Shape shape) {
  std::erase(shape, 1);
  return shape;
}

/// The destination of an entry: a parameter, or a row of it.
struct EntryPlace {
  std::size_t parameter;
  std::int64_t row;
  bool transposed;
  auto operator<=>(const EntryPlace&) const = default;
};

/// One way of naming below one prefix.
using Manner = std::pair<Naming, std::string>;
using Entries = std::map<EntryPlace, std::vector<std::size_t>>;

/// The entries of a file under all names that a network's parameters may have.
struct LookedUp {
  std::map<Manner, Entries> found;
  std::int64_t hits = 0;
};

/// The key of the cached answer: networks of other sizes have the same names.
std::string question_of(const Network& network) {
  std::string text;
  bool by_rows = false;
  for (const auto& layer : network.layers()) {
    text += layer.architecture->id + (layer.reversed ? "<" : ">") + layer.path + '\n';
    by_rows = by_rows || std::ranges::any_of(layer.architecture->reference,
                                             [](const ReferenceName& row) { return row.theirs.find("{i}") != std::string::npos; });
  }
  for (const auto& parameter : network.parameters()) {
    text += parameter.name;
    if (by_rows && !parameter.var.shape().empty()) text += ' ' + std::to_string(parameter.var.dim(0));
    text += '\n';
  }
  return text;
}

/// The search of match_names for the entries of one network.
class Matching {
 public:
  Matching(const Network& network, const FileIndex& file) : network_(network), parameters_(network.parameters()), file_(file) {
    match_.entries.resize(parameters_.size());
  }

  NameMatch operator()(bool list) {
    for (const auto& parameter : parameters_)
      if (file_.of_trace() && file_.shapes().contains(key_of(Kind::param, parameter.name)) && file_.shapes().contains(parameter.name)) {
        match_.problem = "the entries " + parameter.name + " and param/" + parameter.name + " are the same parameter: remove one of them.";
        return match_;
      }
    auto& known = file_.answer(question_of(network_));
    if (!known) known = std::make_shared<const LookedUp>(look_up());
    const auto& all = *static_cast<const LookedUp*>(known.get());
    found_ = &all.found;
    match_.looked_up = all.hits;
    if (!choose()) return match_;
    if (best_) take_best();
    take_dense();
    count(list);
    return match_;
  }

 private:
  LookedUp look_up() const {
    LookedUp all;
    for (const auto& [text, spelling] : spellings_of(network_, file_.of_trace()))
      for (const FileIndex::Hit& hit : file_.called(text)) {
        if (hit.dotted && spelling.naming == Naming::own) continue;
        std::string prefix = file_.name(hit.entry).substr(0, hit.prefix);
        for (const char* end : {"/", "."})
          replace_all(prefix, std::string("batch_stats") + end, std::string("params") + end);  // flax has two trees of one model
        all.found[{spelling.naming, prefix}][{spelling.parameter, spelling.row, spelling.transposed}].push_back(hit.entry);
        ++all.hits;
      }
    for (auto& [manner, places] : all.found)
      for (auto& [place, entries] : places) {  // two rows of Architecture::reference may say the same
        std::ranges::sort(entries);
        entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
      }
    return all;
  }

  std::ptrdiff_t layers_in(const Entries& places) const {
    return std::ranges::count_if(places, [&](const auto& place) { return !is_dense(parameters_[place.first.parameter].name); });
  }
  /// Takes the manner that finds most parameters of layers. False where two find as many in different entries.
  bool choose() {
    for (const bool bare : {false, true}) {
      std::ptrdiff_t most = 0;
      for (const auto& [manner, places] : *found_)
        if (const auto n = layers_in(places); (manner.first == Naming::bare) == bare && n > most) {
          best_ = &manner;
          most = n;
        }
      if (!best_) continue;
      for (const auto& [manner, places] : *found_)
        if ((manner.first == Naming::bare) == bare && layers_in(places) == most &&
            (&manner == best_ || found_->at(*best_).begin()->second != places.begin()->second))
          match_.rivals.emplace_back(manner.second);
      if (match_.rivals.size() == 1) match_.rivals.clear();
      if (match_.rivals.empty()) return true;
      match_.problem = "the entries below \"" + match_.rivals[0] + "\" and below \"" + match_.rivals[1] +
                       "\" have the names of this model alike: keep those that you mean.";
      return false;
    }
    return true;
  }

  void take(const EntryPlace& place, const std::vector<std::size_t>& entries) {
    if (taken_.contains(entries[0])) return;  // one entry is one parameter: the parameters of a second layer or direction are then missing
    const std::string& first = file_.name(entries[0]);
    if (entries.size() > 1)
      match_.problem = "the entries " + first + " and " + file_.name(entries[1]) + " are the same parameter: remove one of them.";
    taken_.insert(entries[0]);
    if (place.row < 0) {
      match_.entries[place.parameter] = first;
      if (place.transposed) match_.transposed.insert(place.parameter);
      return;
    }
    auto& rows = match_.rows[place.parameter];
    rows.resize(static_cast<std::size_t>(parameters_[place.parameter].var.dim(0)));
    rows[static_cast<std::size_t>(place.row)] = first;
    if (std::ranges::none_of(rows, &std::string::empty)) match_.entries[place.parameter] = rows[0];
  }

  /// Takes the best manner, and its missing parameters from others: of layers below the same prefix.
  void take_best() {
    for (const auto& [place, entries] : found_->at(*best_)) take(place, entries);
    for (const auto& [manner, places] : *found_)
      if (manner.second == best_->second)
        for (const auto& [place, entries] : places)
          if (match_.entries[place.parameter].empty() && place.row < 0 && !is_dense(parameters_[place.parameter].name))
            take(place, entries);
  }

  void take_dense() {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!match_.entries[i].empty() || !is_dense(parameters_[i].name)) continue;
      for (const auto& [manner, places] : *found_)
        for (const bool transposed : {false, true})
          if (const auto own = places.find({i, -1, transposed}); own != places.end() && match_.entries[i].empty())
            take(own->first, own->second);
    }
    // A linear map by any other name, where exactly one pair of a weight and a bias (or one weight without) has the shapes.
    for (std::size_t i = 0; i < parameters_.size() && !file_.of_trace(); ++i) {
      const std::string& own = parameters_[i].name;
      if (!is_dense(own) || !own.ends_with("/weight") || !match_.entries[i].empty()) continue;
      const bool with_bias = i + 1 < parameters_.size() && parameters_[i + 1].name == own.substr(0, own.size() - 6) + "bias";
      if (with_bias && !match_.entries[i + 1].empty()) continue;
      std::vector<std::string> pairs;
      for (const std::size_t entry : file_.weights()) {
        ++match_.looked_up;
        if (file_.shape(entry) != parameters_[i].var.shape() || taken_.contains(entry)) continue;
        const std::string front = file_.name(entry).substr(0, file_.name(entry).size() - 6);
        if (!front.empty() && !front.ends_with('.') && !front.ends_with('/')) continue;
        const auto bias = entry_called(front + "bias");
        const bool fits = with_bias ? bias && !taken_.contains(*bias) && file_.shape(*bias) == parameters_[i + 1].var.shape() : !bias;
        if (fits) pairs.push_back(front);
      }
      if (pairs.size() != 1) continue;
      take({i, -1, false}, {*entry_called(pairs[0] + "weight")});
      if (with_bias) take({i + 1, -1, false}, {*entry_called(pairs[0] + "bias")});
    }
  }
  std::optional<std::size_t> entry_called(const std::string& name) const {
    for (const FileIndex::Hit& hit : file_.called(name))
      if (hit.prefix == 0 && !hit.dotted) return hit.entry;
    return {};
  }

  void count(bool list) {
    std::vector<const Architecture*> architectures;
    for (const auto& layer : network_.layers()) architectures.push_back(layer.architecture);
    std::ranges::sort(architectures);
    architectures.erase(std::unique(architectures.begin(), architectures.end()), architectures.end());
    const std::vector<char>& of_no_use = file_.of_no_use(architectures);
    match_.unused = static_cast<std::size_t>(std::ranges::count(of_no_use, 1));
    for (const std::size_t entry : taken_) match_.unused -= of_no_use[entry] ? 1 : 0;
    match_.left = file_.size() - taken_.size() - match_.unused;
    for (std::size_t i = 0; list && i < file_.size(); ++i)
      if (!of_no_use[i] && !taken_.contains(i)) match_.unknown.push_back(file_.name(i));
  }

  const Network& network_;
  const std::vector<Network::ParameterVar>& parameters_;
  const FileIndex& file_;
  NameMatch match_;
  const std::map<Manner, Entries>* found_ = nullptr;
  const Manner* best_ = nullptr;
  std::set<std::size_t> taken_;
};

}  // namespace

NameMatch match_names(const Network& network, const FileIndex& file, bool list) { return Matching(network, file)(list); }
NameMatch match_names(const Network& network, const FileShapes& file) { return match_names(network, FileIndex(file)); }

std::vector<std::string> names_in_files(const Network& network) {
  std::vector<std::string> names;
  for (const auto& [text, spelling] : spellings_of(network, false))
    if (!is_dense(network.parameters()[spelling.parameter].name)) names.push_back(text);
  return names;
}

Shape shape_in_file(const NameMatch& match, std::size_t i, const FileIndex& file, const Shape& wanted) {
  Shape shape = file.shapes().at(match.entries[i]);
  if (match.transposed.contains(i)) std::ranges::reverse(shape);
  const auto rows = match.rows.find(i);
  if (rows == match.rows.end()) return shape.size() != wanted.size() && without_ones(shape) == without_ones(wanted) ? wanted : shape;
  if (shape == Shape{1}) shape.clear();
  for (const std::string& row : rows->second) {
    Shape other = file.shapes().at(row);
    if (other == Shape{1}) other.clear();
    if (other != shape) return file.shapes().at(row);  // of no common shape: that of the row that differs
  }
  shape.insert(shape.begin(), std::ssize(rows->second));
  return shape;
}

int misfit(const Network& network, const FileIndex& file) {
  const NameMatch match = match_names(network, file, false);
  return misfit(network, match, file);
}

int misfit(const Network& network, const NameMatch& match, const FileIndex& file) {
  int sum = 0;
  for (std::size_t i = 0; i < match.entries.size(); ++i) {
    const Shape& wanted = network.parameters()[i].var.shape();
    const int all = static_cast<int>(wanted.size());
    if (match.entries[i].empty()) {
      sum += all + 2;
      continue;
    }
    const Shape own = shape_in_file(match, i, file, wanted);
    if (own.size() != wanted.size()) {
      sum += all + 1;
      continue;
    }
    for (std::size_t axis = 0; axis < own.size(); ++axis) sum += own[axis] != wanted[axis];
  }
  return sum + 2 * static_cast<int>(match.left) + (match.problem.empty() ? 0 : 1);
}

}  // namespace reclab
