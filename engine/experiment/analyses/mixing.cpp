// SPDX-License-Identifier: GPL-3.0-or-later
// The mixing matrices: the weight of each step's value in a memory's read at each step, for memories that are linear in the values written.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>

#include "analysis/mixing.h"
#include "experiment/record/analysis.h"
#include "experiment/weights/weights.h"

namespace reclab {
namespace {

/// Columns that a picture can show, groups beside one another, and entries of an array.
constexpr std::int64_t most_columns = 512, most_groups = 16, most_entries = std::int64_t{1} << 21;
/// The limit for all of the steps as one segment, in bytes.
constexpr double most_bytes = 2048.0 * 1048576.0;
/// Seconds that it may take unless it was asked for by name, and those of a floating-point operation and of a call of the backend, of the
/// slower kind.
constexpr double most_seconds = 5.0, an_operation = 2e-10, a_call = 5e-7;

/// Of an exponential that is shown as it is: its sums and squares are numbers too, and it is one in float32.
constexpr double most_exponent = 80.0;

class MixingMatrices final : public Analysis {
 public:
  using Analysis::Analysis;
  Kinds kinds() const override { return {Kind::mixing, Kind::mixing_unnormalised}; }

  void plan() override {
    const auto& mixings = record_.shape_network().mixings();
    if (mixings.empty())
      record_.mark_unavailable(
          kinds(),
          "No memory of this model is linear, entry by entry, in what is written into it: what a step adds is changed on its way "
          "by what else the state holds, so no fixed weight says what is left of it.");
    else if (std::ranges::none_of(mixings, [](const Network::MixingVar& own) { return own.mixing.unnormalised || own.mixing.normaliser; }))
      record_.mark_unavailable(
          {Kind::mixing_unnormalised},
          "What this model reads is not divided by a normaliser that its memory has beside it: there is one mixing matrix.");
    if (wanted()) parameters_ = record_.prepared.parameters;  // they become part of the trace when the recording ends
  }

  bool revisit(Rollout& run) override {
    if (!wanted() || record_.shape_network().mixings().empty()) return false;
    record_.where = "in the mixing matrices";
    const double bytes =
        static_cast<double>(run.bytes()) / static_cast<double>(run.segment_steps()) * static_cast<double>(record_.length());
    if (bytes > most_bytes) {
      record_.note(kinds(), "The mixing matrices were left out: all steps at once would take about " +
                                std::to_string(std::llround(bytes / 1e9)) + " GB; take a shorter sequence.");
      return false;
    }
    Prepared& prepared = record_.prepared;
    const Model model(prepared.architecture, prepared.hyper, parameters_, prepared.backend, prepared.real);
    InitialState initial;
    if (!record_.request.state.empty()) {
      initial = load_state(record_.request.state, record_.shape_network());
      record_.note(kinds(), "mixing has the weights of what was written in this run; what the state at its start adds is beside them.");
    }
    Rollout::Options options;
    options.segment = record_.length();
    options.cached_steps = initial.cached_steps;
    Rollout rollout(model, Batch(record_.request.sequence, prepared.loss, 1), options);
    rollout.set_initial(initial.values);
    double pushes = 0.0;
    for (const Network::MixingVar& own : rollout.network().mixings())
      pushes += own.mixing.joined ? static_cast<double>(mixing_weights(rollout.network(), own.mixing)) /
                                        static_cast<double>(own.mixing.groups * own.mixing.reads)
                                  : 1.0;
    const std::int64_t n = columns(rollout.cost(), pushes);
    if (rollout.forward([&](const Rollout::Segment& segment) { put(segment.network, n); }, record_.stop)) return false;
    return true;
  }

 private:
  Parameters parameters_;

  /// As the sensitivities only where they were chosen: as wide as the sequence is long.
  bool wanted() const {
    const RecordingOptions& recording = record_.request.recording;
    return (record_.wants(Kind::mixing) || record_.wants(Kind::mixing_unnormalised)) &&
           (!recording.only.empty() || !recording.kinds.has_all(recordable()));
  }

  /// The number of columns that are worth their time.
  std::int64_t columns(const Cost& cost, double pushes) {
    const std::int64_t all = record_.length();
    if (record_.request.every > 0) return all;
    const double column = 2.0 * pushes * (cost.flops * an_operation + cost.launches * a_call);
    std::int64_t n = std::min(all, most_columns);
    if (record_.request.recording.only.empty()) n = std::clamp(static_cast<std::int64_t>(most_seconds / column), std::int64_t{1}, n);
    if (n < all)
      record_.note(
          kinds(),
          "Mixing matrices have the columns of " + std::to_string(n) + " of the " + std::to_string(all) + " steps, evenly spaced" +
              (n < std::min(all, most_columns) ? "; those of " + std::to_string(std::min(all, most_columns)) + " would take about " +
                                                     duration_text(column * static_cast<double>(std::min(all, most_columns)))
                                               : std::string()) +
              ".");
    return n;
  }

  void put(Network& network, std::int64_t columns) {
    std::size_t done = 0;
    for (const Network::MixingVar& own : network.mixings()) {
      const std::string key = key_of(Kind::mixing, own.layer, own.mixing.name),
                        plain = key_of(Kind::mixing_unnormalised, own.layer, own.mixing.name);
      if (record_.wants(key))
        put(network, own, own.mixing.output, key, columns,
            own.mixing.unnormalised ? ", divided by what its keys weigh"
            : own.mixing.is_share   ? ", shares that sum to one"
                                    : "");
      if (own.mixing.unnormalised && record_.wants(plain))
        put(network, own, own.mixing.unnormalised, plain, columns, ", before it is divided by what its keys weigh");
      if (own.mixing.normaliser && record_.wants(plain)) put_exponentials(network, own, plain, columns);
      record_.report(0.9 + 0.1 * static_cast<double>(++done) / static_cast<double>(network.mixings().size()), "mixing matrices");
    }
  }

  /// The numerators of a softmax: exp(score); in a head whose scores would overflow, relative to the exponential of the largest score.
  void put_exponentials(Network& network, const Network::MixingVar& own, const std::string& key, std::int64_t columns) {
    const std::int64_t length = record_.length();
    std::vector<double> logs = own.mixing.normaliser->log_normalisers();
    std::string of_head;
    for (std::int64_t head = 0; head * length < std::ssize(logs); ++head) {
      const auto begin = logs.begin() + head * length;
      // The sum of so many exponentials is at least the largest of them.
      const double most = *std::max_element(begin, begin + length);
      if (most <= most_exponent) continue;
      std::for_each(begin, begin + length, [&](double& log) { log -= most; });
      of_head += (of_head.empty() ? "" : ", ") + std::to_string(head) + " (" + std::to_string(std::llround(most)) + ")";
    }
    if (!of_head.empty())
      record_.note({Kind::mixing_unnormalised}, key +
                                                    " is exp(score - c) where exponentials of scores would be too large: c is the "
                                                    "logarithm of the largest normaliser of the head, of head " +
                                                    of_head + ".");
    put(network, own, own.mixing.output, key, columns, ", the exponential of the score, before it is divided by the sum of them", logs);
  }

  void put(Network& network, const Network::MixingVar& own, Var output, const std::string& key, std::int64_t n, const std::string& how,
           const std::vector<double>& log_factors = {}) {
    const std::int64_t length = record_.length(), groups = mixing_weights(network, own.mixing), reads = own.mixing.reads;
    std::vector<std::int64_t> all(static_cast<std::size_t>(length)), each(static_cast<std::size_t>(groups));
    std::iota(all.begin(), all.end(), 0);
    std::iota(each.begin(), each.end(), 0);
    const std::vector<std::int64_t> steps = thinned(all, n), some = record_.request.every > 0 ? each : thinned(each, most_groups);
    const std::vector<std::int64_t> rows =
        record_.request.every > 0 ? record_.trace.steps
                                  : thinned(record_.trace.steps, std::max<std::int64_t>(2, most_entries / (n * std::ssize(some))));
    // Of all groups at once, some columns at a time, of which the groups that are kept are taken.
    const auto in_layer = [&](std::int64_t step) { return own.reversed ? length - 1 - step : step; };
    std::vector<std::complex<double>> values(rows.size() * steps.size() * some.size());
    for (std::size_t column = 0; column < steps.size(); ++column) {
      record_.check();
      const std::int64_t written[] = {in_layer(steps[column])};
      const auto weights = mixing_columns(network, own.mixing, output, written, record_.stop);
      for (std::size_t row = 0; row < rows.size(); ++row)
        for (std::size_t at = 0; at < some.size(); ++at) {
          auto& value = values[(row * steps.size() + column) * some.size() + at];
          value = weights[static_cast<std::size_t>(in_layer(rows[row]) * groups + some[at])];
          if (!log_factors.empty()) value *= std::exp(log_factors[static_cast<std::size_t>(some[at] * length + in_layer(rows[row]))]);
        }
    }
    const std::string group = own.mixing.group.empty() ? "channel" : own.mixing.group, one = own.mixing.joined ? "entry" : group;
    TraceArray array = timed(key, {std::ssize(steps), std::ssize(some)}, {{"step written", "", {}}, {one, "", {}}}, "",
                             "The weight that what was written at a step has in what is read of " + own.mixing.name + " at step t" + how +
                                 (own.mixing.joined ? ": y_t = Σ_s M[t, s] v_s, each M[t, s] a matrix, of which there are single entries."
                                                    : ": y_t = Σ_s M[t, s] v_s."));
    for (const std::int64_t step : steps) array.axes[1].labels.push_back(std::to_string(step));
    const std::int64_t of_group = groups / own.mixing.groups;
    for (const std::int64_t at : some) {
      const std::string which = std::to_string(at / of_group),
                        entries = std::to_string(at % of_group / reads) + " → " + std::to_string(at % reads);
      if (own.mixing.joined)
        array.axes[2].labels.push_back(own.mixing.groups > 1 ? entries + " of " + group + " " + which : entries);
      else
        array.axes[2].labels.push_back(reads > 1 ? which + ", read " + std::to_string(at % reads) : which);
    }
    array.shape[0] = std::ssize(rows);
    if (rows != record_.trace.steps) array.steps = rows;
    if (std::ssize(some) < groups)
      record_.note({parse_key(key)->kind},
                   "Mixing matrices were recorded of " + std::to_string(some.size()) + " of the " +
                       (own.mixing.joined ? std::to_string(groups) + " pairs of an entry written and an entry read" : plural(groups, one)) +
                       " of " + own.mixing.name + " in layer " + std::to_string(own.layer) + ", evenly spaced.");
    if (std::ranges::all_of(values, [](const std::complex<double>& x) { return x.imag() == 0.0; })) {
      std::vector<double> plain(values.size());
      std::ranges::transform(values, plain.begin(), [](const std::complex<double>& x) { return x.real(); });
      put_real(record_.trace, std::move(array), std::move(plain));
    } else {
      array.complex = std::make_shared<const std::vector<std::complex<double>>>(std::move(values));
      record_.trace.put(std::move(array));
    }
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> mixing(Record& record) { return std::make_unique<MixingMatrices>(record); }
}  // namespace analyses
}  // namespace reclab
