// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/naming.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "array/error.h"
#include "files/npz.h"

namespace reclab {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

/// What `pattern` calls `name` where `ours` is what we call it; nothing where this row is of another parameter.
std::optional<std::string> renamed(const std::string& name, const ReferenceName& row) {
  std::string theirs = row.theirs;
  const std::size_t star = row.ours.find('*');
  if (star == std::string::npos) return name == row.ours ? std::optional(theirs) : std::nullopt;
  const std::string_view before = std::string_view(row.ours).substr(0, star), after = std::string_view(row.ours).substr(star + 1);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return std::nullopt;
  replace_all(theirs, "*", name.substr(before.size(), name.size() - before.size() - after.size()));
  return theirs;
}

/// bare: a name of a model of one layer without that layer's number, read where no entry has a name of another kind.
enum class Naming { own, dotted, reference, bare };

/// A name under which a parameter may stand in a file.
struct Spelling {
  std::size_t parameter;
  Naming naming;
  std::int64_t row = -1;  ///< not -1: of this row alone
  bool transposed = false;
};

/// Whether a name is `pattern`, or ends with it below a prefix; "x.*" is all that stands below x, and {i} stands for digits.
bool stands_in(const std::string& name, const std::string& pattern) {
  if (pattern.ends_with(".*")) {
    const std::string below = pattern.substr(0, pattern.size() - 1);
    return name.starts_with(below) || name.find("." + below) != std::string::npos;
  }
  const std::size_t at = pattern.find("{i}");
  if (at == std::string::npos) return name == pattern || name.ends_with("." + pattern) || name.ends_with("/" + pattern);
  const std::string before = pattern.substr(0, at), after = pattern.substr(at + 3);
  if (!name.ends_with(after)) return false;
  std::size_t digits = name.size() - after.size(), end = digits;
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1])) != 0) --digits;
  const std::string front = name.substr(0, digits);
  return digits < end && (front == before || front.ends_with("." + before) || front.ends_with("/" + before));
}

/// The number that a layer's parameters begin with; nothing for encoder, head and what comes after the last layer.
std::optional<std::size_t> layer_of(const std::string& name) {
  const std::size_t slash = name.find('/');
  if (slash == 0 || slash == std::string::npos || !std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(slash), [](unsigned char c) { return std::isdigit(c) != 0; })) return std::nullopt;
  return static_cast<std::size_t>(std::stoul(name.substr(0, slash)));
}
/// A linear map before or after the layers: it belongs to no architecture.
bool is_dense(const std::string& name) { return name.starts_with("encoder") || name.starts_with("head/"); }

/// What the reference implementation may call a parameter, and whether it is transposed there.
std::vector<std::pair<std::string, bool>> reference_names(const Network& network, const std::string& name) {
  std::vector<std::pair<std::string, bool>> names;
  const auto& layers = network.layers();
  const auto layer = layer_of(name);
  const auto around = [](const std::string& of) { return of.starts_with("encoder/") ? "encoder/" : of.starts_with("head/") ? "head/" : ""; };
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
      if (number > 0 && std::ranges::none_of(std::array{"{n}", "{_n}", "{2n}", "{2n+1}", "{path}"}, [&](const char* mark) { return theirs->find(mark) != std::string::npos; })) continue;
      replace_all(*theirs, "{path}", layers[*layer].path);
      replace_all(*theirs, "{n}", std::to_string(number));
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

std::string dotted(std::string name) {
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

/// A prefix and the length of it in front of an entry's name, "" among them: all that end before a name begins.
std::vector<std::size_t> prefixes_of(const std::string& entry) {
  std::vector<std::size_t> ends{0};
  for (std::size_t i = 0; i + 1 < entry.size(); ++i)
    if (entry[i] == '.' || entry[i] == '/') ends.push_back(i + 1);
  return ends;
}

}  // namespace

NameMatch match_names(const Network& network, const FileShapes& file) {
  const auto& parameters = network.parameters();
  NameMatch match;
  match.entries.resize(parameters.size());

  // Where any has "param/", what has not is something else, a trace.npz holds more than weights; unless it is the same parameter again.
  std::vector<std::string> names;
  for (const auto& [name, shape] : file)
    if (name.starts_with(prefix_of(Kind::param))) names.push_back(name);
  const bool of_trace = !names.empty();
  if (!of_trace)
    for (const auto& [name, shape] : file) names.push_back(name);

  // What comes after the last layer would be named like a layer's own.
  const bool one_layer = network.layers().size() == 1 && std::ranges::all_of(parameters, [](const Network::ParameterVar& parameter) { return layer_of(parameter.name) || is_dense(parameter.name); });
  std::multimap<std::string, Spelling> spellings;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string& own = parameters[i].name;
    if (of_trace && file.contains(key_of(Kind::param, own)) && file.contains(own)) {
      match.problem = "the entries " + own + " and param/" + own + " are the same parameter: remove one of them.";
      return match;
    }
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

  // One way of naming below one prefix: that which finds most parameters.
  using Manner = std::pair<Naming, std::string>;
  struct Place {
    std::size_t parameter;
    std::int64_t row;
    bool transposed;
    auto operator<=>(const Place&) const = default;
  };
  std::map<Manner, std::map<Place, std::vector<std::string>>> found;
  for (const auto& name : names)
    for (const std::size_t end : of_trace ? std::vector<std::size_t>{6} : prefixes_of(name)) {
      const std::string rest = name.substr(end);
      const auto take_if = [&](const std::string& spelling, bool reference_alone) {
        const auto [first, last] = spellings.equal_range(spelling);
        for (auto at = first; at != last; ++at) {
          if (reference_alone && at->second.naming != Naming::reference) continue;
          auto& entries = found[{at->second.naming, name.substr(0, end)}][{at->second.parameter, at->second.row, at->second.transposed}];
          if (entries.empty() || entries.back() != name) entries.push_back(name);  // two rows of Architecture::reference may say the same
        }
      };
      take_if(rest, false);
      if (rest.find('/') != std::string::npos) take_if(dotted(rest), true);  // as trees of arrays are flattened in JAX
    }
  const auto layers_in = [&](const auto& arrays) {
    return std::count_if(arrays.begin(), arrays.end(), [&](const auto& array) { return !is_dense(parameters[array.first.parameter].name); });
  };
  const Manner* best = nullptr;
  std::ptrdiff_t most = 0;
  bool bare = false;
  const auto choose = [&] {
    for (const auto& [kind, arrays] : found) {
      if ((kind.first == Naming::bare) != bare) continue;
      const auto n = layers_in(arrays);
      if (n > most) {
        best = &kind;
        most = n;
      } else if (best && n == most && found.at(*best).begin()->second != arrays.begin()->second) {
        match.problem = "the entries below \"" + best->second + "\" and below \"" + kind.second + "\" have the names of this model alike: keep those that you mean.";
      }
    }
  };
  choose();
  if (!best) {
    bare = true;
    choose();
  }
  // A later, larger set settles what two smaller ones left open.
  if (best && !match.problem.empty()) {
    std::ptrdiff_t equal = 0;
    for (const auto& [kind, arrays] : found) equal += (kind.first == Naming::bare) == bare && layers_in(arrays) == most && (&kind == best || found.at(*best).begin()->second != arrays.begin()->second);
    if (equal > 1) return match;
    match.problem.clear();
  }

  std::set<std::string> taken;
  const auto take = [&](const Place& place, const std::vector<std::string>& entries) {
    if (taken.contains(entries[0])) return;  // one entry is one parameter: what is left of a second layer or direction is missing
    if (entries.size() > 1) match.problem = "the entries " + entries[0] + " and " + entries[1] + " are the same parameter: remove one of them.";
    taken.insert(entries[0]);
    if (place.row < 0) {
      match.entries[place.parameter] = entries[0];
      if (place.transposed) match.transposed.insert(place.parameter);
      return;
    }
    auto& rows = match.rows[place.parameter];
    rows.resize(static_cast<std::size_t>(parameters[place.parameter].var.dim(0)));
    rows[static_cast<std::size_t>(place.row)] = entries[0];
    if (std::ranges::none_of(rows, &std::string::empty)) match.entries[place.parameter] = rows[0];
  };
  if (best)
    for (const auto& [place, entries] : found.at(*best)) take(place, entries);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!match.entries[i].empty() || !is_dense(parameters[i].name)) continue;
    for (const auto& [kind, arrays] : found)
      for (const bool transposed : {false, true})
        if (const auto own = arrays.find({i, -1, transposed}); own != arrays.end() && match.entries[i].empty()) take(own->first, own->second);
  }

  // A linear map by any other name, where exactly one pair of a weight and a bias (or one weight without) has the shapes.
  for (std::size_t i = 0; i < parameters.size() && !of_trace; ++i) {
    const std::string& own = parameters[i].name;
    if (!is_dense(own) || !own.ends_with("/weight") || !match.entries[i].empty()) continue;
    const bool with_bias = i + 1 < parameters.size() && parameters[i + 1].name == own.substr(0, own.size() - 6) + "bias";
    if (with_bias && !match.entries[i + 1].empty()) continue;
    std::vector<std::string> pairs;
    for (const auto& name : names) {
      if (!name.ends_with("weight") || taken.contains(name) || file.at(name) != parameters[i].var.shape()) continue;
      const std::string front = name.substr(0, name.size() - 6);
      if (!front.empty() && !front.ends_with('.') && !front.ends_with('/')) continue;
      const auto bias = file.find(front + "bias");
      const bool fits = with_bias ? bias != file.end() && !taken.contains(bias->first) && bias->second == parameters[i + 1].var.shape() : bias == file.end();
      if (fits) pairs.push_back(front);
    }
    if (pairs.size() != 1) continue;
    take({i, -1, false}, {pairs[0] + "weight"});
    if (with_bias) take({i + 1, -1, false}, {pairs[0] + "bias"});
  }
  const auto of_no_use = [&](const std::string& name) {  // counts and other buffers of the reference implementation
    return !of_trace && std::ranges::any_of(network.layers(), [&](const Network::LayerInfo& layer) {
             return std::ranges::any_of(layer.architecture->reference, [&](const ReferenceName& row) { return row.ours.empty() && (stands_in(name, row.theirs) || stands_in(dotted(name), row.theirs)); });
           });
  };
  for (const auto& name : names)
    if (!taken.contains(name)) {
      if (of_no_use(name))
        ++match.unused;
      else
        match.unknown.push_back(name);
    }
  return match;
}

Shape shape_in_file(const NameMatch& match, std::size_t i, const FileShapes& file) {
  Shape shape = file.at(match.entries[i]);
  if (match.transposed.contains(i)) std::ranges::reverse(shape);
  const auto rows = match.rows.find(i);
  if (rows == match.rows.end()) return shape;
  if (shape == Shape{1}) shape.clear();
  for (const std::string& row : rows->second) {
    Shape other = file.at(row);
    if (other == Shape{1}) other.clear();
    if (other != shape) return file.at(row);  // of no common shape: that of the row that differs
  }
  shape.insert(shape.begin(), std::ssize(rows->second));
  return shape;
}

int misfit(const Network& network, const FileShapes& file) {
  const NameMatch match = match_names(network, file);
  int sum = 0;
  for (std::size_t i = 0; i < match.entries.size(); ++i) {
    const Shape& wanted = network.parameters()[i].var.shape();
    const int all = static_cast<int>(wanted.size());
    if (match.entries[i].empty()) {
      sum += all + 2;
      continue;
    }
    const Shape own = shape_in_file(match, i, file);
    if (own.size() != wanted.size()) {
      sum += all + 1;
      continue;
    }
    for (std::size_t axis = 0; axis < own.size(); ++axis) sum += own[axis] != wanted[axis];
  }
  return sum + 2 * static_cast<int>(match.unknown.size()) + (match.problem.empty() ? 0 : 1);
}

namespace {

/// The search of fit_to_file: value after value, those first that bring the file nearest.
class Search {
 public:
  Search(const Architecture& architecture, Hyper hyper, std::int64_t input, std::int64_t head, const FileShapes& file)
      : architecture_(architecture), file_(file), first_{std::move(hyper), input, head} {
    for (const auto& [name, shape] : file) {
      for (const auto n : shape)
        if (n > 0 && n <= most_) all_.insert(n);
      std::int64_t number = -1;  // a layer's number is an integer between other parts of the name
      for (const char c : name + ".") {
        if (std::isdigit(static_cast<unsigned char>(c)) != 0)
          number = std::min<std::int64_t>(1000, std::max<std::int64_t>(0, number) * 10 + (c - '0'));
        else if (number >= 0) {
          depths_.insert(number + 1);
          number = -1;
        }
      }
    }
  }

  FittedSizes operator()() {
    // Straight on, which nearly always arrives; then with several ways kept open, for what fits one entry may lead away from the rest.
    Node best = first_node();
    for (const std::size_t ways : {std::size_t{1}, std::size_t{6}}) {
      std::vector<Node> open{first_node()};
      std::set<std::string> seen{text_of(open[0].values)};
      for (int round = 0; best.score > 0 && !open.empty() && round < 24 && spent_ < most_spent_; ++round) {
        std::vector<Node> next;
        for (const Node& node : open) {
          look(node.values);
          for (std::size_t row = 0; row < node.values.hyper.table().size() + 2; ++row)
            for (Values& tried : alternatives(node.values, row)) {
              if (spent_ >= most_spent_ || !seen.insert(text_of(tried)).second) continue;
              const int own = of(tried);
              if (own != no_network && (ways > 1 || own < node.score)) next.push_back({std::move(tried), own});
            }
        }
        std::ranges::stable_sort(next, {}, &Node::score);
        if (next.size() > ways) next.resize(ways);
        if (!next.empty() && next[0].score < best.score) best = next[0];
        open = std::move(next);
      }
    }
    Values now = best.values;
    const int score = best.score;
    FittedSizes fit;
    fit.found = score == 0;
    if (!fit.found) return fit;
    // What was changed on the way and need not have been goes back.
    for (const auto& row : now.hyper.table()) {
      if (now.hyper.value(row.key) == first_.hyper.value(row.key)) continue;
      Values back = now;
      back.hyper.set(row.key, first_.hyper.value(row.key), architecture_.id);
      if (of(back) == 0 && unused(back) <= unused(now)) now = back;
    }
    // Of two that fit, a file was made for the one that has more of its entries.
    for (std::size_t row = 0; row < now.hyper.table().size() && unused(now) > 0; ++row)
      for (const Values& tried : alternatives(now, row))
        if (of(tried) == 0 && unused(tried) < unused(now)) now = tried;
    for (const auto& row : now.hyper.table())
      if (now.hyper.value(row.key) != first_.hyper.value(row.key)) fit.settings.emplace_back(row.key, now.hyper.text(row.key));
    fit.input = now.input;
    fit.head = now.head;
    return fit;
  }

 private:
  struct Values {
    Hyper hyper;
    std::int64_t input, head;
  };
  struct Node {
    Values values;
    int score;
  };
  static constexpr int no_network = std::numeric_limits<int>::max();
  static constexpr std::int64_t most_spent_ = 60000;  // parameters of all networks that are tried: a second or so
  static constexpr std::int64_t most_ = 1 << 16;
  const Architecture& architecture_;
  const FileShapes& file_;
  Values first_;
  std::set<std::int64_t> sizes_, all_, depths_;
  std::int64_t spent_ = 0;

  Node first_node() { return {first_, of(first_)}; }
  static std::string text_of(const Values& values) {
    std::string text = std::to_string(values.input) + " " + std::to_string(values.head);
    for (const auto& row : values.hyper.table()) text += " " + values.hyper.text(row.key);
    return text;
  }

  /// What the axes are long that are not as the model has them: one of these, or a part of it, is what a number should be.
  void look(const Values& now) {
    sizes_.clear();
    const Network network(architecture_, now.hyper, options_of(now));
    const NameMatch match = match_names(network, file_);
    const auto add = [&](std::int64_t n) {
      if (n > 0 && n <= most_) sizes_.insert(n);
    };
    for (std::size_t i = 0; i < match.entries.size(); ++i) {
      if (match.entries[i].empty()) continue;
      const Shape own = shape_in_file(match, i, file_), &wanted = network.parameters()[i].var.shape();
      for (std::size_t axis = 0; axis < own.size(); ++axis)
        if (own.size() != wanted.size() || own[axis] != wanted[axis]) add(own[axis]);
    }
    for (const auto& name : match.unknown)
      for (const auto n : file_.at(name)) add(n);
  }

  static NetworkOptions options_of(const Values& values) {
    NetworkOptions options;
    options.input = values.input;
    options.head = values.head;
    return options;
  }
  /// Of values under which everything fits.
  std::size_t unused(const Values& values) const { return match_names(Network(architecture_, values.hyper, options_of(values)), file_).unused; }
  int of(const Values& values) {
    try {
      const Network network(architecture_, values.hyper, options_of(values));
      spent_ += std::ssize(network.parameters()) + 4;
      return misfit(network, file_);
    } catch (const Error&) {  // values that do not go together
      return no_network;
    }
  }

  /// The values with one of them changed, and what must go with it.
  std::vector<Values> alternatives(const Values& now, std::size_t row) const {
    std::vector<Values> found;
    const auto& table = now.hyper.table();
    if (row >= table.size()) {
      for (const auto n : sizes_) {
        Values tried = now;
        (row == table.size() ? tried.input : tried.head) = n;
        found.push_back(std::move(tried));
      }
      if (row > table.size()) {
        found.push_back(now);
        found.back().head = 0;
      }
      return found;
    }
    const HyperSpec& spec = table[row];
    if (spec.draws_only) return found;
    const auto add = [&](const HyperValue& value) {
      Values tried = now;
      try {
        tried.hyper.set(spec.key, value, architecture_.id);
      } catch (const Error&) {
        return;
      }
      if (tried.hyper == now.hyper) return;
      if (allowed(tried, spec.key)) found.push_back(std::move(tried));
    };
    switch (spec.kind) {
      case HyperKind::flag: add(!now.hyper.flag(spec.key)); break;
      case HyperKind::choice:
        for (const auto& choice : spec.choices) add(choice);
        break;
      case HyperKind::integer: {
        std::set<std::int64_t> values = depths_;
        const auto low = static_cast<std::int64_t>(spec.low);
        values.insert({low, low + 1});
        for (const auto n : sizes_)
          for (const std::int64_t part : {1, 2, 3, 4, 6, 8}) {
            if (n % part == 0) values.insert(n / part);
            if (part <= 2) values.insert({n * part, n + part, n - part});
          }
        if (!shapes_depend(now, spec)) break;
        for (const auto value : values) add(value);
        break;
      }
      case HyperKind::real: {
        if (!shapes_depend(now, spec)) break;
        std::set<double> values;
        for (const auto a : sizes_)
          for (const auto b : all_) values.insert(static_cast<double>(a) / static_cast<double>(b));
        for (const double value : values) add(value);
        break;
      }
    }
    return found;
  }

  std::vector<std::pair<std::string, Shape>> shapes_of(const Values& values) const {
    std::vector<std::pair<std::string, Shape>> shapes;
    const Network network(architecture_, values.hyper, options_of(values));
    for (const auto& parameter : network.parameters()) shapes.emplace_back(parameter.name, parameter.var.shape());
    return shapes;
  }
  /// Whether a number tells on names and shapes at all: most do not, and need not be tried.
  bool shapes_depend(const Values& now, const HyperSpec& spec) const {
    const auto own = shapes_of(now);
    const bool integer = spec.kind == HyperKind::integer;
    const double value = integer ? static_cast<double>(now.hyper.integer(spec.key)) : now.hyper.real(spec.key);
    // Several, for one may be rounded to the same sizes, and others do not go with the rest.
    std::vector<double> others{2.0 * value, 2.0 * value + 2.0, 0.5 * value, value + 1.0, value - 1.0, spec.low, 1.0, 2.0, 4.0, 16.0, 64.0};
    others.insert(others.end(), sizes_.begin(), sizes_.end());
    for (const double other : others) {
      Values tried = now;
      try {
        tried.hyper.set(spec.key, integer ? HyperValue(static_cast<std::int64_t>(other)) : HyperValue(other), architecture_.id);
        if (tried.hyper == now.hyper || !allowed(tried, spec.key)) continue;
        if (shapes_of(tried) != own) return true;
      } catch (const Error&) {
        continue;
      }
    }
    return false;
  }

  /// Whether the values go together; where one other number is in the way (as many heads as do not divide the width), with the nearest that is not.
  bool allowed(Values& values, const std::string& changed) const {
    const auto goes = [&](const Values& tried) {
      try {
        if (architecture_.check) architecture_.check(tried.hyper);
        return true;
      } catch (const Error&) {
        return false;
      }
    };
    if (goes(values)) return true;
    for (const auto& row : values.hyper.table()) {
      if (row.kind != HyperKind::integer || row.key == changed) continue;
      const std::int64_t own = values.hyper.integer(row.key);
      for (std::int64_t n = own - 1; n >= std::max<std::int64_t>(static_cast<std::int64_t>(row.low), own - 256); --n) {
        Values tried = values;
        tried.hyper.set(row.key, n, architecture_.id);
        if (!goes(tried)) continue;
        values = tried;
        return true;
      }
    }
    return false;
  }
};

}  // namespace

FittedSizes fit_to_file(const Architecture& architecture, const Hyper& hyper, std::int64_t input, std::int64_t head, const FileShapes& file) {
  return Search(architecture, hyper, input, head, file)();
}

}  // namespace reclab
