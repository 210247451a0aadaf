// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/weights/fitting.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "array/error.h"
#include "experiment/weights/naming.h"
#include "models/network.h"

namespace reclab {
namespace {

constexpr std::int64_t most = 1 << 16;
constexpr std::int64_t spent_on_a_round = 60000, spent_on_all = 400000, spent_on_others = 20000, spent_on_parts = 120000;

class Search {
 public:
  Search(const Architecture& architecture, Hyper hyper, std::int64_t input, std::int64_t head, const FileIndex& file,
         std::set<std::string> kept, std::int64_t may_spend = spent_on_a_round)
      : architecture_(architecture),
        file_(file),
        kept_(std::move(kept)),
        first_{std::move(hyper), input, head},
        most_spent_(std::min(may_spend, spent_on_a_round)) {
    std::map<std::int64_t, std::size_t> times;
    for (const auto& [name, shape] : file.shapes()) {
      for (const auto n : shape)
        if (n > 0 && n <= most) ++times[n];
      std::int64_t number = -1;  // a layer's number is an integer between other parts of the name
      for (const char c : name + ".") {
        if (std::isdigit(static_cast<unsigned char>(c)) != 0)
          number = std::min<std::int64_t>(1000, std::max<std::int64_t>(0, number) * 10 + (c - '0'));
        else if (number >= 0) {
          if (depths_.size() < most_sizes) depths_.insert(number + 1);
          number = -1;
        }
      }
    }
    std::vector<std::pair<std::int64_t, std::size_t>> often(times.begin(), times.end());
    std::ranges::stable_sort(often, std::ranges::greater(), &std::pair<std::int64_t, std::size_t>::second);
    for (std::size_t i = 0; i < std::min(often.size(), most_sizes); ++i) all_.insert(often[i].first);
    // Values that do not go together, as they are set for sizes that the file is yet to tell.
    if (!goes(first_.hyper)) allowed(first_, "");
  }

  std::int64_t spent() const { return spent_; }

  FittedSizes operator()() {
    FittedSizes fit;
    if (!any_name()) return fit;
    Node best = descend(first_node(), kept_);
    if (best.score > 0 && most_are_known()) best = spread(best);
    fit.found = best.score == 0;
    if (!fit.found) return fit;
    Values now = best.values;
    go_back(now);
    most_spent_ = spent_ + spent_on_others;
    compare(now, fit);
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
  using Kept = std::set<std::string>;
  static constexpr int no_network = std::numeric_limits<int>::max();
  static constexpr std::size_t most_sizes = 48, most_others = 3;
  const Architecture& architecture_;
  const FileIndex& file_;
  Kept kept_;
  Values first_;
  std::set<std::int64_t> sizes_, all_, depths_;
  std::set<std::string> known_;          // entries that some network has had a parameter for
  bool fixed_widths_ = false;            // of input and head
  std::int64_t spent_ = 0, most_spent_;  // parameters of all networks that are tried, entries that they were looked up in, and values that
                                         // were asked whether they go together

  Node first_node() { return {first_, of(first_)}; }
  static std::string text_of(const Values& values) {
    std::string text = std::to_string(values.input) + " " + std::to_string(values.head);
    for (const auto& row : values.hyper.table()) text += " " + values.hyper.text(row.key);
    return text;
  }
  static NetworkOptions options_of(const Values& values) {
    NetworkOptions options;
    options.input = values.input;
    options.head = values.head;
    return options;
  }
  bool goes(const Hyper& hyper) const {
    try {
      if (architecture_.check) architecture_.check(hyper);
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  std::optional<Values> with(const Values& values, const HyperSpec& row, const HyperValue& value) const {
    Values tried = values;
    try {
      tried.hyper.set(row.key, value, architecture_.id);
    } catch (const Error&) {  // out of its range
      return {};
    }
    if (tried.hyper == values.hyper) return {};
    return tried;
  }
  int departures(const Values& values) const {
    int n = 0;
    for (const auto& row : values.hyper.table()) n += values.hyper.value(row.key) != first_.hyper.value(row.key);
    return n;
  }

  /// The distance of the file from the network, or no_network where the values do not go together.
  int of(const Values& values, std::string* names_and_shapes = nullptr) {
    try {
      const Network network(architecture_, values.hyper, options_of(values));
      NameMatch match = match_names(network, file_, false);
      spent_ += std::ssize(network.parameters()) + 4 + match.looked_up;
      for (const std::string& entry : match.entries)
        if (!entry.empty()) known_.insert(entry);
      const int score = misfit(network, match, file_);
      if (names_and_shapes)
        for (const auto& parameter : network.parameters()) *names_and_shapes += parameter.name + to_string(parameter.var.shape()) + '\n';
      return score;
    } catch (const Error&) {
      return no_network;
    }
  }
  std::size_t unused(const Values& values) const {
    return match_names(Network(architecture_, values.hyper, options_of(values)), file_, false).unused;
  }

  /// Whether a parameter has one of its names in the file, as it is set or with one choice made otherwise: else there is nothing to search
  /// for.
  bool any_name() const {
    const auto in = [&](const Values& values) {
      try {
        const Network network(architecture_, values.hyper, options_of(values));
        return std::ranges::any_of(names_in_files(network), [&](const std::string& name) { return !file_.called(name).empty(); });
      } catch (const Error&) {
        return false;
      }
    };
    if (in(first_)) return true;
    for (const auto& row : first_.hyper.table()) {
      if (row.initialisation_only) continue;
      std::vector<HyperValue> others;
      if (row.kind == HyperKind::flag) others.emplace_back(!first_.hyper.flag(row.key));
      for (const auto& choice : row.choices) others.emplace_back(choice);
      if (row.kind == HyperKind::integer)  // one layer may have names of its own
        for (const std::int64_t n : {std::int64_t{1}, static_cast<std::int64_t>(row.low)}) others.emplace_back(n);
      for (const HyperValue& value : others)
        if (const auto tried = with(first_, row, value); tried && in(*tried)) return true;
    }
    return false;
  }
  /// Whether the search so far has met most of the file's entries; no size makes an unknown name known.
  bool most_are_known() const { return 4 * (file_.size() - std::min(file_.size(), known_.size())) <= file_.size(); }

  // ---- directly: each number is solved for from the growth of the axes with it

  using Shapes = std::map<std::string, Shape>;
  std::optional<Shapes> shapes_of(const Values& values) {
    try {
      const Network network(architecture_, values.hyper, options_of(values));
      spent_ += std::ssize(network.parameters()) + 4;
      Shapes shapes;
      for (const auto& parameter : network.parameters()) shapes[parameter.name] = parameter.var.shape();
      return shapes;
    } catch (const Error&) {
      return {};
    }
  }
  static bool same_names(const Shapes& a, const Shapes& b) {
    return std::ranges::equal(a, b, {}, [](const auto& one) { return one.first; }, [](const auto& one) { return one.first; });
  }
  struct Axis {
    std::string parameter;
    std::size_t axis;
    std::int64_t wanted;
  };

  /// Changes of one number that can be made alone, with the numbers: at most two.
  std::vector<std::pair<Values, double>> nudged(const Values& now, const HyperSpec& row) const {
    const bool integer = row.kind == HyperKind::integer;
    const double value = value_of(now, row);
    std::vector<std::pair<Values, double>> found;
    for (const double other :
         {2.0 * value, value + 1.0, 0.5 * value, value - 1.0, value + 2.0, 3.0 * value, 1.0, 2.0, 4.0, 8.0, 16.0, row.low}) {
      if (found.size() == 2) break;
      if ((integer && other != std::floor(other)) || (!found.empty() && found[0].second == other)) continue;
      auto tried = with(now, row, integer ? HyperValue(static_cast<std::int64_t>(other)) : HyperValue(other));
      if (tried && goes(tried->hyper)) found.emplace_back(std::move(*tried), other);
    }
    return found;
  }
  static double value_of(const Values& values, const HyperSpec& row) {
    return row.kind == HyperKind::integer ? static_cast<double>(values.hyper.integer(row.key)) : values.hyper.real(row.key);
  }
  /// The values of a number at which one of the axes would fit.
  static std::set<double> solutions(double value, double step, const Shapes& before, const Shapes& after, const std::vector<Axis>& axes) {
    std::set<double> found;
    for (const Axis& axis : axes) {
      const auto own = before.find(axis.parameter), other = after.find(axis.parameter);
      if (own == before.end() || other == after.end() || own->second.size() != other->second.size()) continue;
      const double grown = static_cast<double>(other->second[axis.axis] - own->second[axis.axis]);
      if (grown != 0.0 && found.size() < most_sizes)
        found.insert(value + step * static_cast<double>(axis.wanted - own->second[axis.axis]) / grown);
    }
    return found;
  }

  std::vector<Values> aimed(const Values& now, const Kept& kept) {
    std::vector<Values> found;
    const auto own = shapes_of(now);
    if (!own) return found;
    std::vector<Axis> axes;
    look(now, &axes);
    const auto add = [&](std::optional<Values> tried, const std::string& key) {
      if (tried && allowed(*tried, key, kept)) found.push_back(std::move(*tried));
    };
    for (const HyperSpec& row : now.hyper.table()) {
      if (row.initialisation_only || kept.contains(row.key) || spent_ >= most_spent_) continue;
      if (row.kind == HyperKind::flag) add(with(now, row, !now.hyper.flag(row.key)), row.key);
      if (row.kind == HyperKind::choice)
        for (const auto& choice : row.choices) add(with(now, row, choice), row.key);
      if (row.kind == HyperKind::flag || row.kind == HyperKind::choice) continue;
      const bool integer = row.kind == HyperKind::integer;
      const auto others = nudged(now, row);
      if (others.empty()) continue;
      const auto after = shapes_of(others[0].first);
      if (!after || *after == *own) continue;
      const double value_now = value_of(now, row);
      std::set<double> values = solutions(value_now, others[0].second - value_now, *own, *after, axes);
      // Where the value stands for one that is made of others, as 0 often does, only two other ones tell.
      if (others.size() > 1)
        if (const auto further = shapes_of(others[1].first))
          values.merge(solutions(others[0].second, others[1].second - others[0].second, *after, *further, axes));
      if (!same_names(*own, *after)) {
        values.insert({row.low, row.low + 1.0});
        for (const auto n : depths_) values.insert(static_cast<double>(n));
        add(others[0].first, row.key);
      } else if (integer && row.low == 0.0) {  // 0 may leave a part out
        const auto without = with(now, row, std::int64_t{0});
        const auto shapes = without && goes(without->hyper) ? shapes_of(*without) : std::nullopt;
        if (shapes && !same_names(*own, *shapes)) values.insert(0.0);
      }
      for (const double value : values) {
        if (integer && std::abs(value - std::round(value)) > 1e-6) continue;
        add(with(now, row, integer ? HyperValue(static_cast<std::int64_t>(std::llround(value))) : HyperValue(value)), row.key);
        // Of real numbers that come to the same sizes a plain one: a fourth, a third, an eighth.
        for (const double part : {1.0, 3.0, 4.0, 8.0, 16.0})
          if (!integer) add(with(now, row, std::round(value * part) / part), row.key);
      }
    }
    if (fixed_widths_) return found;
    const auto widths = [&](std::int64_t Values::* width, bool none) {
      Values other = now;
      other.*width += 1;
      std::set<double> values;
      if (const auto after = shapes_of(other)) values = solutions(static_cast<double>(now.*width), 1.0, *own, *after, axes);
      std::set<std::int64_t> whole = sizes_;
      for (const double value : values)
        if (value == std::round(value) && value >= 1.0 && value <= static_cast<double>(most))
          whole.insert(static_cast<std::int64_t>(value));
      if (none) whole.insert(0);
      for (const auto n : whole)
        if (n != now.*width) {
          found.push_back(now);
          found.back().*width = n;
        }
    };
    widths(&Values::input, false);
    widths(&Values::head, true);
    return found;
  }

  Node descend(Node node, const Kept& kept, int rounds = 32) {
    for (int round = 0; node.score > 0 && round < rounds && spent_ < most_spent_; ++round) {
      std::optional<Node> best;
      for (Values& tried : aimed(node.values, kept)) {
        if (spent_ >= most_spent_) break;
        const int own = of(tried);
        if (own >= node.score || own == no_network) continue;
        if (!best || own < best->score || (own == best->score && departures(tried) < departures(best->values)))
          best = Node{std::move(tried), own};
      }
      if (!best) return node;
      // A model of many settings takes more than the first rounds have, as long as each leaves a fifth less that does not fit.
      if (!fixed_widths_ && best->score <= node.score - node.score / 5)
        most_spent_ = std::max(most_spent_, std::min(spent_ + spent_on_a_round, spent_on_all));
      node = std::move(*best);
    }
    return node;
  }

  // ---- with several candidates kept, since a fit of one entry may lead away from the rest

  Node spread(Node best) {
    constexpr std::size_t ways = 6;
    std::vector<Node> open{first_node(), best};
    std::set<std::string> seen{text_of(open[0].values), text_of(best.values)},
        shapes_seen;  // one of those that differ in nothing that a file shows
    for (int round = 0; best.score > 0 && !open.empty() && round < 24 && spent_ < most_spent_; ++round) {
      std::vector<Node> next;
      const auto look_at = [&](Values& tried) {
        if (spent_ >= most_spent_ || !seen.insert(text_of(tried)).second) return;
        std::string shapes;
        const int own = of(tried, &shapes);
        if (own != no_network && shapes_seen.insert(std::move(shapes)).second) next.push_back({std::move(tried), own});
      };
      for (const Node& node : open) {
        if (node.score == no_network) continue;
        for (Values& tried : aimed(node.values, kept_)) look_at(tried);
        for (std::size_t row = 0; row < node.values.hyper.table().size(); ++row)
          for (Values& tried : alternatives(node.values, row)) look_at(tried);
      }
      std::ranges::stable_sort(next, {}, &Node::score);
      if (next.size() > ways) next.resize(ways);
      if (!next.empty() && next[0].score < best.score) best = next[0];
      open = std::move(next);
    }
    return best;
  }

  /// Collects the lengths of axes in the file that differ from the model's: candidates, whole or in part, for a number.
  void look(const Values& now, std::vector<Axis>* axes = nullptr) {
    sizes_.clear();
    const Network network(architecture_, now.hyper, options_of(now));
    const NameMatch match = match_names(network, file_);
    const auto add = [&](std::int64_t n) {
      if (n > 0 && n <= most && sizes_.size() < most_sizes) sizes_.insert(n);
    };
    for (std::size_t i = 0; i < match.entries.size(); ++i) {
      if (match.entries[i].empty()) continue;
      const Shape &wanted = network.parameters()[i].var.shape(), own = shape_in_file(match, i, file_, wanted);
      for (std::size_t axis = 0; axis < own.size(); ++axis) {
        if (own.size() == wanted.size() && own[axis] == wanted[axis]) continue;
        add(own[axis]);
        if (axes && own.size() == wanted.size()) axes->push_back({network.parameters()[i].name, axis, own[axis]});
      }
    }
    for (const auto& name : match.unknown)
      for (const auto n : file_.shapes().at(name)) add(n);
  }

  /// The values with one of them changed, and those that must change with it.
  std::vector<Values> alternatives(const Values& now, std::size_t row) {
    std::vector<Values> found;
    const HyperSpec& spec = now.hyper.table()[row];
    if (spec.initialisation_only || kept_.contains(spec.key) || (spec.kind != HyperKind::integer && spec.kind != HyperKind::real))
      return found;
    const auto others = nudged(now, spec);
    if (others.empty() || shapes_of(others[0].first) == shapes_of(now)) return found;
    std::set<double> values;
    if (spec.kind == HyperKind::integer) {
      for (const auto n : sizes_)
        for (const std::int64_t part : {1, 2, 3, 4, 6, 8}) {
          if (n % part == 0) values.insert(static_cast<double>(n / part));
          if (part <= 2) values.insert({static_cast<double>(n * part), static_cast<double>(n + part), static_cast<double>(n - part)});
        }
    } else {
      for (const auto a : sizes_)
        for (const auto b : all_) values.insert(static_cast<double>(a) / static_cast<double>(b));
    }
    for (const double value : values) {
      auto tried = with(now, spec, spec.kind == HyperKind::integer ? HyperValue(static_cast<std::int64_t>(value)) : HyperValue(value));
      if (tried && allowed(*tried, spec.key, kept_)) found.push_back(std::move(*tried));
    }
    return found;
  }

  /// Whether the values go together; where one other number is in the way (as many heads as do not divide the width), with the nearest that
  /// is not.
  bool allowed(Values& values, const std::string& changed, const Kept& kept = {}) {
    if (goes(values.hyper)) return true;
    std::int64_t tries = 0;
    for (const bool of_others : {false, true})  // that 0 stands for one that is made of others comes last
      for (const auto& row : values.hyper.table()) {
        if (row.kind != HyperKind::integer || row.key == changed || kept.contains(row.key)) continue;
        const std::int64_t own = values.hyper.integer(row.key), low = static_cast<std::int64_t>(row.low);
        if (of_others && own != 0) continue;
        Values tried = values;
        for (std::int64_t away = 1; away <= (of_others ? 64 : 256); ++away) {
          const std::int64_t n = of_others ? own + away : own - away;
          if (n < low || static_cast<double>(n) > row.high) break;
          tried.hyper.set(row.key, n, architecture_.id);
          ++tries;
          if (!goes(tried.hyper)) continue;
          values = std::move(tried);
          return true;
        }
      }
    spent_ += tries / 2;  // each takes as long as so much of a network
    return false;
  }

  // ---- of those that fit

  /// Undoes the changes of the search that the fit does not need. Of two that fit, the one that uses more of the file's entries is right.
  void go_back(Values& now) {
    for (const auto& row : now.hyper.table()) {
      if (now.hyper.value(row.key) == first_.hyper.value(row.key)) continue;
      if (const auto back = with(now, row, first_.hyper.value(row.key)); back && of(*back) == 0 && unused(*back) <= unused(now))
        now = *back;
    }
    for (const auto& row : now.hyper.table()) {
      if (unused(now) == 0) break;
      if (row.initialisation_only || kept_.contains(row.key)) continue;
      std::vector<HyperValue> values;
      if (row.kind == HyperKind::flag) values.emplace_back(!now.hyper.flag(row.key));
      for (const auto& choice : row.choices) values.emplace_back(choice);
      for (const HyperValue& value : values)
        if (const auto tried = with(now, row, value); tried && of(*tried) == 0 && unused(*tried) < unused(now)) now = *tried;
    }
  }

  SizeSettings settings_of(const Values& values) const {
    SizeSettings settings;
    for (const auto& row : values.hyper.table())
      if (values.hyper.value(row.key) != first_.hyper.value(row.key)) settings.emplace_back(row.key, values.hyper.text(row.key));
    return settings;
  }

  /// Other settings that make the same shapes: one value that alone changes the shapes and not the names, with those that must change with
  /// it. The one with the fewest departures from the given values is taken, and of several the one whose choices come first in their
  /// tables.
  void compare(Values& now, FittedSizes& fit) {
    const auto place = [&](const Values& values) {  // of its choices in their tables
      std::ptrdiff_t sum = 0;
      for (const auto& row : values.hyper.table())
        if (row.kind == HyperKind::choice && values.hyper.value(row.key) != first_.hyper.value(row.key))
          sum += std::ranges::find(row.choices, values.hyper.choice(row.key)) - row.choices.begin();
      return sum;
    };
    const auto rank = [&](const Values& values) { return std::pair(departures(values), place(values)); };
    std::vector<Values> fitting{now};
    std::set<std::string> seen{text_of(now)};
    const std::size_t unused_now = unused(now);
    const auto own = shapes_of(now);
    if (!own) return;
    fixed_widths_ = true;
    // The axes that each value moves by itself, where the names stay: others must be able to move them back.
    std::vector<std::pair<const HyperSpec*, Values>> changes;
    std::map<std::string, std::set<AxisName>> moves;
    for (const HyperSpec& row : now.hyper.table()) {
      if (row.initialisation_only || kept_.contains(row.key)) continue;
      std::vector<Values> others;
      for (const HyperValue& value : other_values(now, row))
        if (auto tried = with(now, row, value); tried && allowed(*tried, row.key, kept_)) others.push_back(std::move(*tried));
      if (row.kind == HyperKind::integer || row.kind == HyperKind::real)
        for (auto& [values, number] : nudged(now, row)) moves[row.key].merge(moved(*own, values).value_or(std::set<AxisName>()));
      for (Values& other : others) {
        auto axes = moved(*own, other);
        if (!axes || axes->empty() || spent_ >= most_spent_) continue;
        if (row.kind == HyperKind::flag || row.kind == HyperKind::choice) moves[row.key].merge(*axes);
        changes.emplace_back(&row, std::move(other));
      }
    }
    for (auto& [row, tried] : changes) {
      if (spent_ >= most_spent_ || fitting.size() > most_others) break;
      const auto axes = moved(*own, tried);
      Kept with_it = kept_;
      std::set<AxisName> back;
      for (const HyperSpec& other : now.hyper.table()) {
        const auto& its = moves[other.key];
        const bool helps = other.key != row->key && std::ranges::any_of(its, [&](const AxisName& axis) { return axes->contains(axis); });
        if (helps)
          back.insert(its.begin(), its.end());
        else
          with_it.insert(other.key);
      }
      if (!std::ranges::includes(back, *axes)) continue;
      const int score = of(tried);
      Node other = descend({tried, score}, with_it, 6);
      if (other.score > 0 || unused(other.values) != unused_now) continue;
      go_back_keeping(other.values, row->key);
      if (seen.insert(text_of(other.values)).second) fitting.push_back(std::move(other.values));
    }
    const auto best = std::ranges::min_element(fitting, {}, rank);
    now = *best;
    for (const Values& other : fitting)
      if (text_of(other) != text_of(now)) fit.others.push_back(settings_of(other));
  }
  using AxisName = std::pair<std::string, std::size_t>;
  /// The axes that are of another length with these values; none where the names differ too.
  std::optional<std::set<AxisName>> moved(const Shapes& own, const Values& values) {
    const auto other = shapes_of(values);
    if (!other || other->size() != own.size()) return {};
    std::set<AxisName> axes;
    for (auto a = own.begin(), b = other->begin(); a != own.end(); ++a, ++b) {
      if (a->first != b->first || a->second.size() != b->second.size()) return {};
      for (std::size_t axis = 0; axis < a->second.size(); ++axis)
        if (a->second[axis] != b->second[axis]) axes.insert({a->first, axis});
    }
    return axes;
  }
  void go_back_keeping(Values& now, const std::string& key) {
    for (const auto& row : now.hyper.table()) {
      if (row.key == key || now.hyper.value(row.key) == first_.hyper.value(row.key)) continue;
      if (const auto back = with(now, row, first_.hyper.value(row.key)); back && of(*back) == 0) now = *back;
    }
  }
  std::vector<HyperValue> other_values(const Values& now, const HyperSpec& row) const {
    std::vector<HyperValue> values;
    if (row.kind == HyperKind::flag) values.emplace_back(!now.hyper.flag(row.key));
    for (const auto& choice : row.choices) values.emplace_back(choice);
    if (row.kind == HyperKind::integer) {
      const std::int64_t own = now.hyper.integer(row.key);
      if (now.hyper.value(row.key) != first_.hyper.value(row.key)) values.push_back(first_.hyper.value(row.key));
      for (const std::int64_t n : {2 * own, own / 2, own * 3, own / 3, 4 * own, own / 4, std::int64_t{1}})
        if (n > 0 && n != own) values.emplace_back(n);
    }
    return values;
  }
};

}  // namespace

FittedSizes fit_to_file(const Architecture& architecture, const Hyper& hyper, std::int64_t input, std::int64_t head, const FileIndex& file,
                        const std::set<std::string>& kept) {
  return Search(architecture, hyper, input, head, file, kept)();
}

std::int64_t head_in_file(const Architecture& architecture, const Hyper& hyper, std::int64_t input, const FileIndex& file) {
  NetworkOptions options;
  options.input = input;
  const Network without(architecture, hyper, options);
  const NameMatch match = match_names(without, file);
  if (match.unknown.empty() || !match.problem.empty()) return 0;
  const std::int64_t width = without.output().dim(-1);
  std::set<std::int64_t> outputs;
  for (const std::string& name : match.unknown)
    if (const Shape& shape = file.shapes().at(name); shape.size() == 2 && outputs.size() < 16)
      for (const std::size_t axis : {0, 1})
        if (shape[1 - axis] == width && shape[axis] > 0 && shape[axis] <= most) outputs.insert(shape[axis]);
  int least = misfit(without, match, file);
  std::int64_t head = 0;
  for (const std::int64_t n : outputs) {
    options.head = n;
    try {
      const Network network(architecture, hyper, options);
      if (const int own = misfit(network, file); own < least) {
        least = own;
        head = n;
      }
    } catch (const Error&) {  // a read-out that cannot have so many
      continue;
    }
  }
  return head;
}

FileShapes part_of(const FileIndex& file, const std::string& name, std::string* prefix) {
  for (const char* end : {".", "/", "_", ""})
    if (FileShapes part = file.below(name + end); !part.empty()) {
      if (prefix) *prefix = name + end;
      return part;
    }
  return {};
}

std::vector<WeightsPart> parts_that_fit(const Architecture& architecture, const Hyper& hyper, std::int64_t input, const FileIndex& file) {
  constexpr std::size_t most_parts = 12;
  std::set<std::string> names;
  try {
    const Network network(architecture, hyper, {.input = input});
    for (std::string& name : names_in_files(network)) names.insert(std::move(name));
  } catch (const Error&) {
    return {};
  }
  // The prefixes before the names of parameters, with either separator; and the prefixes around those.
  std::map<std::string, std::size_t> found;
  const auto is_end = [](char c) { return c == '.' || c == '/' || c == '_'; };
  for (const auto& [entry, shape] : file.shapes())
    for (std::size_t at = entry.size() > 160 ? entry.size() - 160 : 1; at < entry.size(); ++at) {
      if (!is_end(entry[at - 1]) || !names.contains(entry.substr(at))) continue;
      for (std::size_t end = at, above = 0; end > 1 && above < 4; ++above) {
        ++found[entry.substr(0, end)];
        for (--end; end > 0 && (entry[end - 1] != '.' && entry[end - 1] != '/');) --end;
      }
    }
  std::vector<std::pair<std::string, std::size_t>> candidates(found.begin(), found.end());
  std::ranges::stable_sort(candidates, std::ranges::greater(), &std::pair<std::string, std::size_t>::second);
  if (candidates.size() > most_parts) candidates.resize(most_parts);
  std::vector<WeightsPart> parts;
  std::int64_t left = spent_on_parts;  // of all that do not fit together: a part that does takes little
  for (const auto& [prefix, times] : candidates) {
    const std::string name = prefix.substr(0, prefix.size() - 1);
    std::string taken;
    FileShapes part = part_of(file, name, &taken);
    if (taken != prefix || part.size() == file.size()) continue;
    const bool inside = std::ranges::any_of(parts, [&, &of = prefix](const WeightsPart& other) {
      return of.size() > other.name.size() && of.starts_with(other.name) && is_end(of[other.name.size()]);
    });
    if (inside) continue;
    const std::size_t entries = part.size();
    const FileIndex own(std::move(part));
    Search search(architecture, hyper, input, 0, own, {}, left);
    if (FittedSizes sizes = search(); sizes.found)
      parts.push_back({name, entries, std::move(sizes)});
    else if ((left -= search.spent()) <= 0)
      break;
  }
  return parts;
}

}  // namespace reclab
