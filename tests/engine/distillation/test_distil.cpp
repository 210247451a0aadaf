// SPDX-License-Identifier: GPL-3.0-or-later
// Models whose long filters are distilled: what is found is what they convolve with, and the model that is made of it runs as they do.
#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <tuple>
#include <vector>

#include "distillation/distil.h"
#include "files/npz.h"
#include "models/registry.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

RunRequest request_for(const std::string& architecture, const Settings& set, const std::string& task = "noise", std::int64_t length = 60) {
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = architecture;
  request.preset.task = task;
  request.preset.task_length = length;
  request.set = set;
  request.sequence = make_task(task, {.length = length, .seed = 3});
  request.every = 1;
  return request;
}

Distillation distilled(const RunRequest& model, std::int64_t modes, std::int64_t taps) {
  return distil(builtin_registry(), {model, modes, taps}, {}, {});
}

std::vector<double> output_of(const RunRequest& request) {
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return *trace->find("output")->real;
}

/// The distilled model as a user opens it: its preset found in the folder, its weights from the file beside it.
RunRequest opened(const Distillation& found, const test::Scratch& folder, const SharedSequence& sequence) {
  export_distillation(found, folder / "out");
  const PresetLibrary library(builtin_registry(), {folder / "out"});
  CHECK_SAYS(library.problems().empty(), library.problems().empty() ? "" : library.problems().front());
  RunRequest request;
  request.preset = library.find(found.preset.id);
  request.sequence = sequence;
  request.weights = folder / "out" / weights_file(found);
  request.every = 1;
  return request;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQUAL(a.size(), b.size());
  double most = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return most / size;
}

}  // namespace

TEST_CASE("a distilled filter returns the convolution with the distilled kernel, in every form") {
  const test::Scratch folder;
  for (const auto& [architecture, set] :
       std::vector<std::pair<std::string, Settings>>{{"sgconv", {{"width", "3"}, {"block", "none"}, {"output", "none"}}},
                                                     {"tnn", {{"width", "2"}, {"normalize", "yes"}}},
                                                     {"dss", {{"width", "3"}, {"state", "4"}}}}) {
    const Distillation found = distilled(request_for(architecture, set), 5, 120);
    CHECK_SAYS(!found.whole, architecture);
    Sequence input = make_task("noise", {.length = 90, .seed = 8});
    const std::int64_t T = input.length, D = input.width, C = found.filters[0].filter.channels;
    std::vector<double> expected(static_cast<std::size_t>(T * C), 0.0);
    double cancels = 1.0;  // by how much the modes are larger than the filter that is left of their sum
    for (std::int64_t c = 0; c < C; ++c) {
      const std::vector<double> h = found.filters[0].fits[static_cast<std::size_t>(c)].back().filter.taps(T);
      double modes = 0.0, largest = 0.0;
      for (const std::complex<double> residue : found.filters[0].fits[static_cast<std::size_t>(c)].back().filter.residues)
        modes += std::abs(residue);
      for (const double tap : h) largest = std::max(largest, std::abs(tap));
      cancels = std::max(cancels, modes / largest);
      for (std::int64_t t = 0; t < T; ++t)
        for (std::int64_t k = 0; k <= t; ++k)
          expected[static_cast<std::size_t>(t * C + c)] +=
              h[static_cast<std::size_t>(k)] * input.input[static_cast<std::size_t>((t - k) * D + c % D)];
    }
    RunRequest request = opened(found, folder, input);
    for (const char* form : {"sequential", "scan", "convolution"}) {
      request.form = form;
      const double error = difference(output_of(request), expected);
      CHECK_SAYS(error <= 1e-13 * cancels,
                 architecture + ", " + form + ": " + test::show(error) + " of modes " + test::show(cancels) + " times as large");
    }
  }
}

TEST_CASE("filters that are modes are recovered with as many, and are what the model's own systems are") {
  // Each of the complex modes of S4D and DSS is a conjugate pair of a real filter.
  for (const auto& [architecture, set, modes] :
       std::vector<std::tuple<std::string, Settings, std::int64_t>>{{"s4d", {{"width", "3"}, {"state", "6"}, {"dt_min", "0.02"}}, 6},
                                                                    {"dss", {{"width", "3"}, {"state", "3"}, {"dt_min", "0.02"}}, 6},
                                                                    {"s4", {{"width", "2"}, {"state", "6"}, {"dt_min", "0.02"}}, 6},
                                                                    {"laughing-hyena", {{"width", "3"}, {"state", "2"}}, 4}}) {
    const Distillation found = distilled(request_for(architecture, set), modes, 300);
    std::printf("%s: %lld modes leave %.1e of the filter\n", architecture.c_str(), static_cast<long long>(modes), found.rows.back().l2);
    CHECK_SAYS(found.rows.back().l2 <= 1e-9, architecture + ": " + test::show(found.rows.back().l2));
    CHECK_SAYS(found.rows[found.rows.size() - 2].l2 > 1e-9,
               architecture + ": fewer modes leave " + test::show(found.rows[found.rows.size() - 2].l2));
    CHECK(found.singular_values.size() > static_cast<std::size_t>(modes));
    CHECK_SAYS(found.singular_values[static_cast<std::size_t>(modes)] <= 1e-12,
               architecture + ": " + test::show(found.singular_values[static_cast<std::size_t>(modes)]));
  }
}

TEST_CASE("where filters have fewer modes than were asked for, name and card say how many there are") {
  const Distillation found = distilled(request_for("laughing-hyena", {{"width", "3"}, {"state", "2"}}), 16, 300);
  std::int64_t most = 0;
  for (const DistilledFilter& filter : found.filters)
    for (const auto& fits : filter.fits) most = std::max(most, fits.back().filter.order());
  CHECK_EQUAL(found.used, most);
  CHECK_SAYS(found.used >= 4 && found.used < 16, std::to_string(found.used));
  CHECK_SAYS(found.preset.title.ends_with(", " + std::to_string(found.used) + " modes"), found.preset.title);
  CHECK_SAYS(found.preset.idea.find("a sum of " + std::to_string(found.used) +
                                    " exponentials a channel (16 were asked for, and no filter has more than these)") != std::string::npos,
             found.preset.idea);
}

TEST_CASE("a whole model whose filters are modes is the same model after distillation") {
  const test::Scratch folder;
  for (const Settings& set : std::vector<Settings>{{{"width", "4"}, {"state", "2"}, {"layers", "2"}},
                                                   {{"width", "3"}, {"state", "2"}, {"order", "3"}, {"block", "none"}},
                                                   {{"width", "4"}, {"state", "1"}, {"block", "striped"}, {"heads", "2"}}}) {
    const RunRequest source = request_for("laughing-hyena", set, "adding", 50);
    const Distillation found = distilled(source, 4, 200);
    CHECK(found.whole);
    const double error = difference(output_of(opened(found, folder, source.sequence)), output_of(source));
    CHECK_SAYS(error <= 1e-9, test::show(error));
  }
}

TEST_CASE("a whole model of S4's kind becomes S4D with the modes of its filters") {
  const test::Scratch folder;
  const Settings small{{"width", "3"}, {"layers", "2"}, {"state", "4"}, {"dt_min", "0.05"}, {"dt_max", "0.3"}};
  const auto with = [&](Settings more) {
    more.insert(more.begin(), small.begin(), small.end());
    return more;
  };
  for (const auto& [architecture, set] : std::vector<std::pair<std::string, Settings>>{
           {"s4", with({})},
           {"s4", with({{"low_rank", "free"}, {"n_ssm", "1"}, {"prenorm", "no"}, {"l_kernel", "64"}})},
           {"s4", with({{"block", "none"}, {"output", "none"}, {"direction", "backward"}})},
           {"s4d", with({{"code", "minimal"}, {"discretisation", "bilinear"}})},
           {"s4d", with({{"is_real", "yes"}, {"input_matrix", "trained"}})},
           {"liquid-s4", with({{"order", "1"}})},
           {"dss", with({{"postact", "glu"}})}}) {
    const RunRequest source = request_for(architecture, set, "adding", 50);
    const Distillation found = distilled(source, 8, 200);
    CHECK_SAYS(found.whole && found.why_not.empty(), architecture + ": " + found.why_not);
    CHECK_EQUAL(found.preset.architecture, std::string("s4d"));
    const double error = difference(output_of(opened(found, folder, source.sequence)), output_of(source));
    std::printf("%s: output off by %.1e, filters by %.1e\n", architecture.c_str(), error, found.rows.back().l2);
    CHECK_SAYS(error <= 1e-9, architecture + ": " + test::show(error));
  }
}

TEST_CASE("SGConv with a gated output becomes S4D: the more modes, the nearer") {
  const test::Scratch folder;
  const RunRequest source = request_for("sgconv", {{"width", "3"}, {"layers", "2"}, {"kernel_dim", "8"}, {"postact", "glu"}}, "adding", 60);
  const std::vector<double> expected = output_of(source);
  double before = 1e300;
  for (const std::int64_t modes : {2, 8, 24}) {
    const Distillation found = distilled(source, modes, 60);
    CHECK_SAYS(found.whole, found.why_not);
    const double error = difference(output_of(opened(found, folder, source.sequence)), expected);
    std::printf("%lld modes: output off by %.1e, filters by %.1e\n", static_cast<long long>(modes), error, found.rows.back().l2);
    CHECK(error < before);
    before = error;
  }
}

TEST_CASE("where a model is not distilled whole, what there is no place for is named") {
  for (const auto& [architecture, set, why] : std::vector<std::tuple<std::string, Settings, std::string>>{
           {"s4", {{"width", "3"}, {"bidirectional", "yes"}}, "s4d has none with bidirectional = true"},
           {"dss", {{"width", "3"}}, "s4d has none with postact = none"},
           {"s4", {{"width", "3"}, {"channels", "2"}}, "s4d has none with channels = 2"},
           {"sashimi", {{"width", "2"}, {"state", "4"}}, "sashimi has no filter_modes"},
           {"tnn", {{"width", "2"}, {"normalize", "yes"}}, "normalize = yes does not go with filter_modes"},
           {"tnn", {{"width", "2"}, {"filter_modes", "3"}}, "tnn has its filters as modes"}}) {
    const Distillation found = distilled(request_for(architecture, set), 2, 40);
    CHECK(!found.whole);
    CHECK_SAYS(found.why_not.starts_with("laughing-hyena") && found.why_not.find(why) != std::string::npos,
               architecture + ": " + found.why_not);
    CHECK_EQUAL(found.preset.architecture, std::string("laughing-hyena"));
  }
}

TEST_CASE("models round other long filters keep all but these, which become their filter_modes") {
  const test::Scratch folder;
  for (const auto& [architecture, set, modes] : std::vector<std::tuple<std::string, Settings, std::int64_t>>{
           {"gss", {{"width", "4"}, {"state", "3"}, {"layers", "2"}}, 6},
           {"gss", {{"width", "4"}, {"state", "2"}, {"causal", "no"}}, 4},
           {"h3", {{"width", "4"}, {"state", "4"}, {"layers", "2"}, {"dt_min", "0.05"}, {"dt_max", "0.3"}}, 4},
           {"h3", {{"width", "4"}, {"head_dim", "2"}, {"state", "4"}, {"dt_min", "0.05"}, {"dt_max", "0.3"}}, 4},
           {"h3", {{"width", "3"}, {"state", "2"}, {"mode", "ema"}}, 2},
           {"lssl", {{"width", "3"}, {"order", "3"}, {"channels", "2"}, {"dt_min", "0.05"}, {"dt_max", "0.3"}}, 3},
           {"mega", {{"width", "3"}, {"ndim", "2"}, {"zdim", "4"}, {"hdim", "5"}}, 2}}) {
    const RunRequest source = request_for(architecture, set, "adding", 50);
    const Distillation found = distilled(source, modes, 300);
    CHECK_SAYS(found.whole && found.why_not.empty(), architecture + ": " + found.why_not);
    CHECK_EQUAL(found.preset.architecture, architecture);
    const double error = difference(output_of(opened(found, folder, source.sequence)), output_of(source));
    std::printf("%s: output off by %.1e, filters by %.1e, the next singular value %.1e\n", architecture.c_str(), error,
                found.rows.back().l2, found.rows.back().below);
    CHECK_SAYS(error <= 1e-9, architecture + ": " + test::show(error));
    CHECK_SAYS(found.rows.back().l2 <= 1e-9,
               architecture + ": " + test::show(found.rows.back().l2));  // of these filters alone, not of H3's short ones
  }
}

TEST_CASE(
    "TNN becomes a model with a state, one way and both: the more modes, the nearer, within the bounds of the Hankel singular values") {
  const test::Scratch folder;
  for (const char* causal : {"yes", "no"}) {
    const RunRequest source =
        request_for("tnn", {{"width", "2"}, {"layers", "2"}, {"inner", "6"}, {"gamma", "0.9"}, {"causal", causal}}, "adding", 60);
    const std::vector<double> expected = output_of(source);
    double before = 1e300;
    for (const std::int64_t modes : {1, 4, 12}) {
      const Distillation found = distilled(source, modes, 60);
      CHECK_SAYS(found.whole, found.why_not);
      CHECK_EQUAL(found.preset.architecture, std::string("tnn"));
      const ModesRow& row = found.rows.back();
      CHECK(row.l2 <= row.above * (1.0 + 1e-12));
      CHECK(row.hankel >= row.below * (1.0 - 1e-9));
      const double error = difference(output_of(opened(found, folder, source.sequence)), expected);
      std::printf("tnn, causal=%s: %lld modes: output off by %.1e, filters by %.1e\n", causal, static_cast<long long>(modes), error,
                  row.l2);
      CHECK(error < before);
      before = error;
    }
    CHECK(before < 1e-2);
  }
}

TEST_CASE("Hyena becomes a model with a state: the more modes, the nearer") {
  const test::Scratch folder;
  const RunRequest source =
      request_for("hyena", {{"width", "4"}, {"layers", "2"}, {"order", "3"}, {"l_max", "64"}, {"filter_order", "6"}}, "adding", 64);
  const std::vector<double> expected = output_of(source);
  double before = 1e300;
  for (const std::int64_t modes : {1, 4, 12}) {
    const Distillation found = distilled(source, modes, 64);
    CHECK(found.whole);
    CHECK_EQUAL(found.filters.size(), std::size_t{4});
    CHECK_EQUAL(found.preset.architecture, std::string("laughing-hyena"));
    const RunRequest there = opened(found, folder, source.sequence);
    const Card shown = card(builtin_registry(), there.preset);
    CHECK(std::ranges::find(shown.forms, "scan") != shown.forms.end());
    const double error = difference(output_of(there), expected);
    std::printf("%lld modes: output off by %.1e, filters by %.1e\n", static_cast<long long>(modes), error, found.rows.back().l2);
    CHECK(error < before);
    before = error;
  }
  CHECK(before < 1e-2);
}

TEST_CASE("errors fall with the modes, and every row keeps to its bounds") {
  const Distillation found = distilled(request_for("hyena", {{"width", "3"}, {"l_max", "200"}, {"filter_order", "8"}}), 12, 200);
  CHECK(mode_counts(12) == (std::vector<std::int64_t>{1, 2, 3, 4, 6, 8, 12}));
  CHECK(mode_counts(1) == (std::vector<std::int64_t>{1}));
  CHECK(mode_counts(5) == (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  CHECK_EQUAL(found.rows.size(), std::size_t{7});
  for (std::size_t i = 0; i < found.rows.size(); ++i) {
    const ModesRow& row = found.rows[i];
    CHECK(row.l2 <= row.above * (1.0 + 1e-12));
    CHECK(row.hankel >= row.below * (1.0 - 1e-9));
    CHECK_CLOSE(row.below, found.singular_values[static_cast<std::size_t>(row.modes)], 1e-15);
    if (i) CHECK(row.l2 <= found.rows[i - 1].l2 + 1e-17);  // the last ones are the rounding of the filter alone
  }
  const std::string csv = to_csv(found.rows);
  CHECK_EQUAL(std::ranges::count(csv, '\n'), 8);
}

TEST_CASE("every model that offers the convolution form has filters, or says that it has none") {
  std::size_t with = 0;
  for (const Architecture& architecture : builtin_registry().all()) {
    RunRequest request = request_for(architecture.id, {}, "noise", 8);
    const Card shown = card(builtin_registry(), request.preset);
    if (std::ranges::find(shown.forms, "convolution") == shown.forms.end()) continue;
    if (Hyper(architecture.hyper).has("width")) request.set = {{"width", "4"}};
    try {
      const Prepared prepared(builtin_registry(), request);
      const auto filters = long_filters(prepared, request, 24, {});
      CHECK(!filters.empty());
      for (const LongFilter& filter : filters) CHECK_EQUAL(filter.taps.size(), static_cast<std::size_t>(filter.channels * 24));
      ++with;
    } catch (const Error& error) {
      std::printf("%s\n", error.what());
      CHECK_SAYS(std::string(error.what()).find("has no long filter") != std::string::npos, error.what());
    }
  }
  std::printf("%zu architectures have long filters\n", with);
  CHECK(with >= 10);
  CHECK_ERROR(distilled(request_for("elman", {}), 4, 32), "elman has no long filter");
}

TEST_CASE("a model that offers the convolution form and keeps modes is told so, and not that models with that form have filters") {
  for (const auto& [architecture, set] : std::vector<std::pair<std::string, Settings>>{{"lru", {}},
                                                                                       {"s5", {}},
                                                                                       {"s4d", {{"code", "full"}, {"channels", "2"}}},
                                                                                       {"dlr", {{"channels", "2"}}},
                                                                                       {"dss", {{"channels", "2"}}}})
    CHECK_ERROR(distilled(request_for(architecture, set), 4, 32), architecture + " has no long filter: its memory is kept as modes");
  CHECK_ERROR(distilled(request_for("elman", {}), 4, 32),
              "elman has no long filter: no memory of it is a convolution with the same kernel at every step. reclab forms elman");
}

TEST_CASE("a distillation is stopped") {
  std::stop_source source;
  source.request_stop();
  bool stopped = false;
  try {
    static_cast<void>(distil(builtin_registry(), {request_for("hyena", {{"width", "4"}}), 8, 256}, {}, source.get_token()));
  } catch (const Cancelled&) {
    stopped = true;
  }
  CHECK(stopped);
}
