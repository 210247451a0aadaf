// SPDX-License-Identifier: GPL-3.0-or-later
// ds_T/ds_t beside its bounds, the factors of a step, all pairs of steps and the alignment of gradients, in cases where each of them is
// known.
#include <algorithm>
#include <cmath>
#include <limits>

#include "experiment/command/command.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;
constexpr double infinity = std::numeric_limits<double>::infinity();

TracePtr traced(const std::string& architecture, std::int64_t length, Settings set) {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  request.set = std::move(set);
  request.sequence = make_task("noise", {.length = length, .seed = 1});
  request.loss = LossKind::last;
  request.recording = recording_of({"jacobian", "jacobian_pairs", "jacobian_bound", "jacobian_factor", "jacobian_share", "alignment",
                                    "gradient", "state", "gate", "param"});
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return trace;
}

double at(const Trace& trace, const std::string& key, std::int64_t row, std::int64_t column = 0) {
  const TraceArray* array = trace.find(key);
  CHECK_SAYS(array && array->real, key);
  return (*array->real)[static_cast<std::size_t>(row * array->row_size() + column)];
}

void check_near(double own, double expected, double error, const std::string& what) {
  CHECK_SAYS(std::abs(own - expected) <= error, what + ": " + std::to_string(own) + " and not " + std::to_string(expected));
}

Settings elman(const std::string& activation, const std::string& start, const std::string& rho) {
  return {{"width", "12"}, {"activation", activation}, {"recurrent_init", start}, {"spectral_radius", rho}};
}

using Vector = std::vector<double>;

/// A row of an array, or all of it where it has no time.
Vector row(const Trace& trace, const std::string& key, std::int64_t t) {
  const TraceArray* array = trace.find(key);
  CHECK_SAYS(array && array->real, key);
  const std::int64_t n = array->row_size();
  return {array->real->begin() + t * n, array->real->begin() + (t + 1) * n};
}
Vector whole(const Trace& trace, const std::string& key) {
  const TraceArray* array = trace.find(key);
  CHECK_SAYS(array && array->real, key);
  return *array->real;
}
double length_of(const Vector& x) {
  double sum = 0.0;
  for (const double entry : x) sum += entry * entry;
  return std::sqrt(sum);
}
double log10_of(double x) { return x > 0.0 ? std::log10(x) : -infinity; }

/// Rows [from, from + n) of a matrix W [., n] times x, or back: their transpose.
constexpr bool back = true;
Vector through(const Vector& W, std::size_t from, const Vector& x, bool transposed = false) {
  const std::size_t n = x.size();
  Vector made(n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) made[transposed ? j : i] += W[(from + i) * n + j] * x[transposed ? i : j];
  return made;
}

/// What a step does to an error, as it is recorded and as it was made by hand; returns what arrives before it, of length 1.
Vector check_step(const Trace& trace, std::int64_t t, const Vector& kept, const Vector& sloped, const Vector& returned) {
  Vector sum(kept.size());
  double of_gate = 0.0;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = kept[i] + returned[i], of_gate += kept[i] * sum[i];
  const double norm = length_of(sum), share = of_gate / (norm * norm);
  const std::string where = " of step " + std::to_string(t);
  check_near(at(trace, "jacobian_factor/0", t, 0), log10_of(length_of(kept)), 1e-9, "gate" + where);
  check_near(at(trace, "jacobian_factor/0", t, 1), log10_of(length_of(sloped)), 1e-9, "slope" + where);
  check_near(at(trace, "jacobian_factor/0", t, 2), log10_of(length_of(returned) / length_of(sloped)), 1e-9, "matrix" + where);
  check_near(at(trace, "jacobian_factor/0", t, 3), log10_of(norm), 1e-9, "whole" + where);
  check_near(at(trace, "jacobian_share/0", t, 0), share, 1e-9, "share of the gate" + where);
  check_near(at(trace, "jacobian_share/0", t, 1), 1.0 - share, 1e-9, "share of the matrix" + where);
  for (double& entry : sum) entry /= norm;
  return sum;
}

/// The last row of the map is ds_T/ds_t, its diagonal the identity, and nothing comes before what changed it.
void check_pairs(const Trace& trace) {
  const TraceArray& pairs = *trace.find("jacobian_pairs/0");
  const auto n = pairs.shape[0];
  CHECK_EQUAL(n, pairs.shape[1]);
  const std::vector<std::int64_t>& steps = pairs.steps.empty() ? trace.steps : pairs.steps;
  for (std::int64_t j = 0; j < n; ++j) {
    const std::int64_t step = steps[static_cast<std::size_t>(j)];
    CHECK_EQUAL(at(trace, pairs.key, n - 1, j), at(trace, "jacobian/0", trace.row_of_step(step)));
    CHECK_EQUAL(at(trace, pairs.key, j, j), 0.0);
    for (std::int64_t later = j + 1; later < n; ++later) CHECK_EQUAL(at(trace, pairs.key, j, later), -infinity);
  }
}

}  // namespace

TEST_CASE("of a linear network whose matrix is a multiple of a rotation what is measured is what both bounds say") {
  constexpr std::int64_t length = 60;
  for (const auto& [start, rho] : {std::pair{"orthogonal", 0.9}, std::pair{"orthogonal", 1.1}, std::pair{"identity", 0.8}}) {
    const TracePtr trace = traced("elman", length, elman("identity", start, std::to_string(rho)));
    for (std::int64_t t = 0; t < length; ++t) {
      const double expected = static_cast<double>(length - 1 - t) * std::log10(rho);
      check_near(at(*trace, "jacobian/0", t), expected, 1e-9, "measured");
      check_near(at(*trace, "jacobian_bound/0", t, 0), expected, 1e-9, "by the singular value");
      check_near(at(*trace, "jacobian_bound/0", t, 1), expected, 1e-9, "by the eigenvalue");
      check_near(at(*trace, "jacobian_factor/0", t, 1), 0.0, 1e-12, "slope");
      check_near(at(*trace, "jacobian_factor/0", t, 2), std::log10(rho), 1e-12, "matrix");
    }
    check_pairs(*trace);
  }
}

TEST_CASE("the largest singular value bounds a network with tanh at every step and the eigenvalue need not") {
  constexpr std::int64_t length = 80;
  bool above = false;
  for (const auto& [start, rho] :
       {std::pair{"orthogonal", "1.3"}, std::pair{"uniform", "1"}, std::pair{"antisymmetric", "1.2"}, std::pair{"diagonal", "0.9"}}) {
    const TracePtr trace = traced("elman", length, elman("tanh", start, rho));
    bool below = false;
    for (std::int64_t t = 0; t < length; ++t) {
      const double measured = at(*trace, "jacobian/0", t), bound = at(*trace, "jacobian_bound/0", t, 0);
      CHECK_SAYS(measured <= bound + 1e-9, std::string(start) + " at step " + std::to_string(t) + ": " + std::to_string(measured) +
                                               " above " + std::to_string(bound));
      CHECK(at(*trace, "jacobian_bound/0", t, 1) <= bound + 1e-9);
      below = below || measured < bound - 0.01;
      above = above || measured > at(*trace, "jacobian_bound/0", t, 1) + 1e-6;
    }
    CHECK_SAYS(below, std::string("the slopes of tanh take nothing away: ") + start);
    check_pairs(*trace);
  }
  CHECK(above);
}

TEST_CASE("the factors of a step multiply to what the gradient of the loss does at that step") {
  constexpr std::int64_t length = 50;
  for (const char* activation : {"tanh", "relu", "identity"}) {
    const TracePtr trace = traced("elman", length, elman(activation, "orthogonal", "1.05"));
    for (std::int64_t t = 1; t < length; ++t) {
      const double whole = at(*trace, "gradient/state/0/h", t - 1) - at(*trace, "gradient/state/0/h", t);
      if (std::isinf(at(*trace, "gradient/state/0/h", t - 1))) continue;
      const double sum = at(*trace, "jacobian_factor/0", t, 1) + at(*trace, "jacobian_factor/0", t, 2);
      check_near(sum, whole, 1e-9, std::string(activation) + " step " + std::to_string(t));
      check_near(at(*trace, "jacobian_factor/0", t, 3), whole, 1e-9, std::string(activation) + " step " + std::to_string(t));
      CHECK(std::string(activation) == "identity" || at(*trace, "jacobian_factor/0", t, 1) <= 1e-12);
      CHECK_EQUAL(at(*trace, "jacobian_factor/0", t, 0), -infinity);
      CHECK_EQUAL(at(*trace, "jacobian_share/0", t, 0), 0.0);
    }
  }
}

TEST_CASE("gates of single entries are the whole of a step") {
  constexpr std::int64_t length = 40;
  const TracePtr trace = traced("lru", length, {{"state", "8"}, {"width", "4"}});
  check_pairs(*trace);
  for (std::int64_t t = 1; t < length; ++t) {
    CHECK_EQUAL(at(*trace, "jacobian_factor/0", t, 1), -infinity);
    CHECK_EQUAL(at(*trace, "jacobian_share/0", t, 0), 1.0);
    check_near(at(*trace, "jacobian_factor/0", t, 0), at(*trace, "gradient/state/0/h", t - 1) - at(*trace, "gradient/state/0/h", t), 1e-9,
               "step " + std::to_string(t));
    CHECK(at(*trace, "jacobian/0", t) <= at(*trace, "jacobian_bound/0", t, 0) + 1e-9);
  }
}

TEST_CASE("gradients that pass a multiple of the identity stay aligned and those that are turned do not") {
  constexpr std::int64_t length = 30;
  const TracePtr same = traced("elman", length, elman("identity", "identity", "0.9"));
  const TracePtr turned = traced("elman", length, elman("identity", "orthogonal", "1"));
  double least = 1.0;
  for (std::int64_t i = 0; i < length; ++i)
    for (std::int64_t j = 0; j < length; ++j) {
      check_near(at(*same, "alignment/0", i, j), 1.0, 1e-12, "aligned");
      check_near(at(*turned, "alignment/0", i, j), at(*turned, "alignment/0", j, i), 1e-15, "symmetric");
      if (i == j) check_near(at(*turned, "alignment/0", i, j), 1.0, 1e-12, "itself");
      // A rotation does the same at every step, so only the distance counts.
      if (i > 0 && j > 0) check_near(at(*turned, "alignment/0", i, j), at(*turned, "alignment/0", i - 1, j - 1), 1e-9, "of the distance");
      least = std::min(least, at(*turned, "alignment/0", i, j));
    }
  CHECK(least < 0.5);
}

TEST_CASE("what an LSTM passes back along its forget gate and through its matrix is what its equations say") {
  constexpr std::int64_t length = 40;
  constexpr std::size_t n = 5;
  for (const char* peepholes : {"no", "yes"}) {
    const TracePtr trace = traced("lstm", length, {{"width", "5"}, {"peepholes", peepholes}, {"forget_bias", "2"}});
    const Vector W = whole(*trace, "param/0/weight_hh");
    const auto peephole = [&](const std::string& gate) {
      return trace->find("param/0/w_" + gate + "_diag") ? whole(*trace, "param/0/w_" + gate + "_diag") : Vector(n);
    };
    const Vector p_i = peephole("i"), p_f = peephole("f"), p_o = peephole("o");
    Vector x = row(*trace, "state/0/h", length - 1);  // dL/dh_T of L = ½ |h_T|²
    const double first = length_of(x);
    for (double& entry : x) entry /= first;
    x.resize(2 * n);
    for (std::int64_t t = length - 1; t > 0; --t) {
      const Vector i = row(*trace, "gate/0/input", t), f = row(*trace, "gate/0/forget", t), g = row(*trace, "gate/0/candidate", t),
                   o = row(*trace, "gate/0/output", t), c = row(*trace, "state/0/c", t), before = row(*trace, "state/0/c", t - 1);
      Vector kept(2 * n), sloped(4 * n), returned(2 * n);
      for (std::size_t k = 0; k < n; ++k) {
        const double shown = std::tanh(c[k]);
        double &of_i = sloped[k], &of_f = sloped[n + k], &of_g = sloped[2 * n + k], &of_o = sloped[3 * n + k];
        of_o = x[k] * shown * o[k] * (1.0 - o[k]);
        const double of_c = x[n + k] + x[k] * o[k] * (1.0 - shown * shown) + of_o * p_o[k];
        of_i = of_c * g[k] * i[k] * (1.0 - i[k]);
        of_f = of_c * before[k] * f[k] * (1.0 - f[k]);
        of_g = of_c * i[k] * (1.0 - g[k] * g[k]);
        kept[n + k] = of_c * f[k] + of_i * p_i[k] + of_f * p_f[k];
      }
      for (std::size_t gate = 0; gate < 4; ++gate) {
        const Vector part = through(
            W, gate * n,
            {sloped.begin() + static_cast<std::ptrdiff_t>(gate * n), sloped.begin() + static_cast<std::ptrdiff_t>(gate * n + n)}, back);
        for (std::size_t k = 0; k < n; ++k) returned[k] += part[k];
      }
      x = check_step(*trace, t, kept, sloped, returned);
    }
  }
}

TEST_CASE(
    "what a GRU passes back along its update gate and through its matrices is what its equations say, its reset gate before or after "
    "them") {
  constexpr std::int64_t length = 40;
  constexpr std::size_t n = 6;
  for (const char* reset : {"after", "before"})
    for (const char* update : {"keeps", "writes"}) {
      const TracePtr trace = traced("gru", length, {{"width", "6"}, {"reset", reset}, {"update", update}});
      const bool after = std::string(reset) == "after";
      const Vector W = whole(*trace, "param/0/weight_hh"), b = whole(*trace, "param/0/bias_hh");
      Vector x = row(*trace, "state/0/h", length - 1);
      const double first = length_of(x);
      for (double& entry : x) entry /= first;
      for (std::int64_t t = length - 1; t > 0; --t) {
        const Vector r = row(*trace, "gate/0/reset", t), z = row(*trace, "gate/0/update", t), N = row(*trace, "gate/0/candidate", t),
                     h = row(*trace, "state/0/h", t - 1), seen = through(W, 2 * n, h);
        Vector kept(n), of_r(n), of_z(n), of_n(n), inside(n);
        for (std::size_t k = 0; k < n; ++k) {
          const double keep = std::string(update) == "keeps" ? z[k] : 1.0 - z[k], sign = std::string(update) == "keeps" ? 1.0 : -1.0;
          kept[k] = keep * x[k];
          of_z[k] = sign * x[k] * (h[k] - N[k]) * z[k] * (1.0 - z[k]);
          inside[k] = x[k] * (1.0 - keep) * (1.0 - N[k] * N[k]);
          of_n[k] = after ? inside[k] * r[k] : inside[k];
          if (after) of_r[k] = inside[k] * (seen[k] + b[2 * n + k]) * r[k] * (1.0 - r[k]);
        }
        Vector sloped = of_r, returned = through(W, 2 * n, of_n, back);
        sloped.insert(sloped.end(), of_z.begin(), of_z.end());
        sloped.insert(sloped.end(), of_n.begin(), of_n.end());
        for (std::size_t k = 0; k < n && !after; ++k) {  // to r h, and on through r
          of_r[k] = returned[k] * h[k] * r[k] * (1.0 - r[k]);
          returned[k] *= r[k];
        }
        const Vector by_r = through(W, 0, of_r, back), by_z = through(W, n, of_z, back);
        for (std::size_t k = 0; k < n; ++k) returned[k] += by_r[k] + by_z[k];
        x = check_step(*trace, t, kept, sloped, returned);
      }
    }
}

TEST_CASE("a model without one matrix that makes its state has the bound of its Jacobians, and what has no factors says why") {
  const TracePtr trace = traced("lstm", 40, {{"width", "6"}});
  for (std::int64_t t = 0; t < 40; ++t) {
    CHECK(at(*trace, "jacobian/0", t) <= at(*trace, "jacobian_bound/0", t, 0) + 1e-9);
    CHECK(t == 39 || std::isnan(at(*trace, "jacobian_bound/0", t, 1)));
  }
  check_pairs(*trace);
  const TracePtr none = traced("transformer", 20, {});
  for (const Kind kind : {Kind::jacobian_pairs, Kind::jacobian_bound, Kind::jacobian_factor, Kind::jacobian_share, Kind::alignment})
    CHECK(none->info.absent.contains(kind) && !none->has(kind));
  const TracePtr taps = traced("neural-wave-machine", 20, {{"width", "4"}});
  CHECK(taps->has(Kind::jacobian_bound) && !taps->has(Kind::jacobian_factor) && !taps->has(Kind::jacobian_share));
  CHECK(std::ranges::any_of(
      taps->info.notes, [](const Sentence& note) { return note.terminal_text().find("read each other directly") != std::string::npos; }));
}
