// SPDX-License-Identifier: GPL-3.0-or-later
// What options of architectures do beyond the golden data: documents run backward, weights that stand once for all layers, the start of B.
#include <algorithm>
#include <cmath>
#include <complex>
#include <span>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "models/network.h"
#include "models/registry.h"
#include "runs.h"
#include "scratch.h"
#include "sequence/sequence.h"
#include "test.h"

using namespace reclab;
using test::finished;
using test::request_of;
using test::Settings;
using test::values_of;

namespace {

/// Columns of noise, and the column `marks` among them as number `column` (from 1).
RunRequest request_for(const std::string& architecture, const std::vector<double>& marks, std::int64_t column, Settings set) {
  const Sequence noise = make_task("noise", {.length = static_cast<std::int64_t>(marks.size()) * 2, .seed = 5});
  Sequence made;
  made.name = made.source = "documents";
  made.length = static_cast<std::int64_t>(marks.size());
  made.width = 3;
  for (std::size_t t = 0; t < marks.size(); ++t) {
    made.time.push_back(static_cast<double>(t));
    std::vector<double> row{noise.input[2 * t], noise.input[2 * t + 1]};
    row.insert(row.begin() + column - 1, marks[t]);
    made.input.insert(made.input.end(), row.begin(), row.end());
  }
  for (int j = 0; j < 3; ++j) {
    made.names.push_back("x" + std::to_string(j));
    made.mean.push_back(0.0);
    made.deviation.push_back(1.0);
  }
  return request_of(architecture, std::move(made), std::move(set));
}

/// The rows from `first` on, as a sequence of its own.
RunRequest part_of(RunRequest request, std::size_t first, std::size_t last) {
  Sequence& s = request.sequence.own();
  const auto width = static_cast<std::size_t>(s.width);
  s.input = std::vector<double>(s.input.begin() + static_cast<std::ptrdiff_t>(first * width),
                                s.input.begin() + static_cast<std::ptrdiff_t>(last * width));
  s.time = std::vector<double>(s.time.begin() + static_cast<std::ptrdiff_t>(first), s.time.begin() + static_cast<std::ptrdiff_t>(last));
  s.length = static_cast<std::int64_t>(last - first);
  return request;
}

const std::vector<double> marks{0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0};
const std::vector<std::size_t> bounds{0, 3, 8, 9, 12};

}  // namespace

TEST_CASE("documents of one sequence are what each is alone, in both directions") {
  for (const std::string direction : {"forward", "backward", "both"})
    for (const std::string block : {"none", "recurrent", "residual"}) {
      const RunRequest request =
          request_for("rg-lru", marks, 2,
                      {{"width", "4"}, {"heads", "2"}, {"layers", "2"}, {"block", block}, {"reset_column", "2"}, {"direction", direction}});
      const auto whole = finished(request);
      const std::vector<double>& all = values_of(*whole, "output");
      const std::size_t row = all.size() / marks.size();
      for (std::size_t d = 0; d + 1 < bounds.size(); ++d) {
        const auto alone = finished(part_of(request, bounds[d], bounds[d + 1]));
        const std::vector<double>& values = values_of(*alone, "output");
        CHECK_EQUAL(values.size(), (bounds[d + 1] - bounds[d]) * row);
        for (std::size_t i = 0; i < values.size(); ++i) CHECK_CLOSE(all[bounds[d] * row + i], values[i], 1e-12);
      }
    }
}

TEST_CASE("no gradient passes from one document to the one before, and none to the column of marks") {
  const RunRequest request = request_for("rg-lru", marks, 3, {{"width", "4"}, {"heads", "2"}, {"reset_column", "3"}});
  const auto trace = finished(request);  // the loss is that of the last step, whose document begins at step 9
  const std::vector<double>& gradient = values_of(*trace, "gradient/input");
  for (std::size_t t = 0; t < marks.size(); ++t)
    for (std::size_t j = 0; j < 3; ++j) CHECK((gradient[3 * t + j] != 0.0) == (t >= 9 && j != 2));
}

TEST_CASE("a column of marks may be standardised, and one that is not there is refused") {
  std::vector<double> standardised;
  for (const double mark : marks) standardised.push_back((mark - 0.25) / 0.433);
  const Settings set{{"width", "4"}, {"heads", "2"}, {"reset_column", "1"}};
  const auto plain = finished(request_for("rg-lru", marks, 1, set)), other = finished(request_for("rg-lru", standardised, 1, set));
  CHECK(values_of(*plain, "output") == values_of(*other, "output"));
  CHECK_ERROR(finished(request_for("rg-lru", marks, 1, {{"width", "4"}, {"heads", "2"}, {"reset_column", "4"}})),
              "the input has 3 columns");
  RunRequest narrow;
  narrow.preset.id = narrow.preset.architecture = "rg-lru";
  narrow.set = set;
  narrow.sequence = make_task("noise", {.length = 5, .seed = 1});
  CHECK_EQUAL(narrow.sequence->width, 1);
  CHECK_ERROR(finished(narrow), "leaves no column to read");
}

TEST_CASE("shared biases stand once, and are what equal ones in all layers are") {
  const Settings set{{"width", "4"},  {"heads", "2"},           {"layers", "3"},      {"segment", "3"},
                     {"memory", "2"}, {"shared_biases", "yes"}, {"direction", "both"}};
  const auto trace = finished(request_for("transformer-xl", marks, 1, set));
  std::size_t found = 0;
  for (const TraceArray* array : trace->matching("param/")) found += array->key.ends_with("r_w_bias");
  CHECK_EQUAL(found, std::size_t{2});  // one a direction: the layers 0 to 2 and 3 to 5
  CHECK(trace->find("param/0/r_w_bias") && trace->find("param/3/r_w_bias"));
}

TEST_CASE("where each layer reads both directions below, what a direction's layers share stands in the lowest of them") {
  const Settings set{{"width", "4"},
                     {"heads", "2"},
                     {"layers", "3"},
                     {"segment", "3"},
                     {"memory", "2"},
                     {"shared_biases", "yes"},
                     {"direction", "both_by_layer"}};
  const auto trace = finished(request_for("transformer-xl", marks, 1, set));
  std::size_t found = 0;
  for (const TraceArray* array : trace->matching("param/")) found += array->key.ends_with("r_w_bias");
  CHECK_EQUAL(found, std::size_t{2});  // one a direction: the layers 0, 2, 4 and 1, 3, 5
  CHECK(trace->find("param/0/r_w_bias") && trace->find("param/1/r_w_bias"));
}

TEST_CASE("the past that a trained window holds is compared over that window, not over the one it started with") {
  const test::Scratch scratch;
  const auto with_window = [&](const std::string& theta, double inverse) {
    RunRequest request;
    request.preset.id = request.preset.title = request.preset.architecture = "lmu";
    request.set = {{"hidden", "none"}, {"memory_to_memory", "no"}, {"input_to_hidden", "no"}, {"order", "6"}, {"theta", theta}};
    if (inverse != 0.0) request.set.emplace_back("trainable_theta", "yes");
    request.sequence = make_task("noise", {.length = 90, .seed = 2});
    for (std::size_t t = 0; t < 90; ++t) request.sequence.own().input[t] = std::sin(0.21 * static_cast<double>(t));
    request.every = 1;
    request.weights = scratch / ("weights" + std::to_string(inverse) + ".npz");
    AtomicFile file(request.weights);
    NpzWriter writer(file);
    writer.add("param/0/input_encoders", {1, 1}, std::span<const double>(std::vector<double>{1.0}));
    if (inverse != 0.0) writer.add("param/0/theta_inv", {1}, std::span<const double>(std::vector<double>{inverse}));
    writer.finish();
    file.commit();
    return finished(request);
  };
  const auto fixed = with_window("20", 0.0), trained = with_window("300", 0.05), turned = with_window("300", -1e-3);
  for (const std::string key : {"reconstruction/0/m/error", "reconstruction/0/m/window", "output"}) {
    const std::vector<double>&a = values_of(*fixed, key), &b = values_of(*trained, key);
    CHECK_EQUAL(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      CHECK_SAYS((std::isnan(a[i]) && std::isnan(b[i])) || std::abs(a[i] - b[i]) <= 1e-9, key + "[" + std::to_string(i) + "]");
  }
  CHECK_EQUAL(values_of(*trained, "reconstruction/0/m/window").back(), 20.0);
  CHECK(std::ranges::all_of(values_of(*turned, "reconstruction/0/m/window"), [](double x) { return std::isnan(x); }));
}

TEST_CASE("S4's B starts as the reference's, where that is cut too") {
  // hippo.nplr('legs', 8, B_clip=2) in float64: B and P of the kept half in its own phases. What does not depend on those is B conj(P).
  const std::vector<std::complex<double>> expected{{7.30075408980984, -0.289425445880128},
                                                   {2.40405879964881, 1.29779486632996e-16},
                                                   {0.97618274521808, -1.85578098911552e-16},
                                                   {0.451941662007118, -2.70945409751807e-17}};
  for (const std::string clip : {"0", "2"}) {
    Preset preset;
    preset.id = preset.architecture = "s4";
    const Hyper hyper = hyper_of(builtin_registry(), preset, {{"state", "8"}, {"width", "2"}, {"B_clip", clip}});
    Parameters parameters = Network(builtin_registry().find("s4"), hyper, {.input = 2}).initialise(1);
    const std::vector<double>&B = parameters.find("0/B")->values, &P = parameters.find("0/P")->values;
    for (std::size_t n = 0; n < 4; ++n) {
      const std::complex<double> b(B[2 * n], B[2 * n + 1]), p(P[2 * n], P[2 * n + 1]),
          theirs = clip == "2" ? expected[n] : std::abs(p) * std::abs(p) * std::sqrt(2.0);
      CHECK_CLOSE(std::abs(b * std::conj(p) - theirs), 0.0, 1e-9 * std::abs(theirs));
    }
    CHECK_CLOSE(std::hypot(B[0], B[1]), clip == "2" ? 2.0042 : 5.1557, 1e-3);
  }
}
