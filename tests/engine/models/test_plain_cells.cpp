// SPDX-License-Identifier: GPL-3.0-or-later
// Cells and read-outs as textbooks and surveys write them, step by step in plain loops: Elman's and Jordan's with D u and σ_y, mLSTM's
// without its block.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;
using test::Settings;

namespace {

using Vector = std::vector<double>;

/// Noise of so many columns, without a target.
Sequence columns(std::int64_t length, std::int64_t width) {
  const Sequence noise = make_task("noise", {.length = length * width, .seed = 11});
  Sequence made;
  made.name = made.source = "noise";
  made.length = length;
  made.width = width;
  made.input.assign(noise.input.begin(), noise.input.begin() + length * width);
  for (std::int64_t t = 0; t < length; ++t) made.time.push_back(static_cast<double>(t));
  made.names.assign(static_cast<std::size_t>(width), "x");
  made.mean.assign(static_cast<std::size_t>(width), 0.0);
  made.deviation.assign(static_cast<std::size_t>(width), 1.0);
  return made;
}

TracePtr run_of(const std::string& architecture, const Settings& set, const Sequence& sequence) {
  RunRequest request;
  request.preset = test::preset_of(architecture);
  request.set = set;
  request.sequence = sequence;
  request.loss = LossKind::mean;
  request.every = 1;
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return trace;
}

/// A matrix of the run by its name.
struct Matrix {
  Vector values;
  std::size_t rows, columns;
  Matrix(const Trace& trace, const std::string& name) {
    const TraceArray* array = trace.find("param/0/" + name);
    CHECK_SAYS(array != nullptr, name);
    values = *array->real;
    rows = static_cast<std::size_t>(array->shape.at(0));
    columns = values.size() / rows;
  }
  Vector operator()(const Vector& x) const {
    CHECK_EQUAL(x.size(), columns);
    Vector y(rows, 0.0);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) y[i] += values[i * columns + j] * x[j];
    return y;
  }
};

Vector operator+(Vector a, const Vector& b) {
  CHECK_EQUAL(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}
Vector each(Vector x, const std::function<double(double)>& f) {
  std::ranges::transform(x, x.begin(), f);
  return x;
}
double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }
std::function<double(double)> function_of(const std::string& name) {
  if (name == "tanh") return [](double x) { return std::tanh(x); };
  if (name == "logistic") return logistic;
  return [](double x) { return x; };
}
Vector row(const Sequence& sequence, std::int64_t t) {
  const auto from = sequence.input.begin() + t * sequence.width;
  return {from, from + sequence.width};
}

double furthest(const Vector& a, const Vector& b) {
  CHECK_EQUAL(a.size(), b.size());
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace

TEST_CASE("Elman's and Jordan's networks read out C x + D u through σ_y") {
  const Sequence sequence = columns(20, 3);
  for (const char* g : {"identity", "tanh", "logistic"})
    for (const char* through : {"no", "yes"}) {
      const auto sigma = function_of(g);
      for (const char* f : {"tanh", "identity"}) {
        const TracePtr trace = run_of(
            "elman", {{"width", "6"}, {"outputs", "4"}, {"activation", f}, {"feedthrough", through}, {"output_activation", g}}, sequence);
        const Matrix A(*trace, "weight_hh"), B(*trace, "weight_ih"), C(*trace, "weight_hy"), b(*trace, "bias_ih"), c(*trace, "bias_hh"),
            d(*trace, "bias_y");
        Vector h(6, 0.0), expected;
        for (std::int64_t t = 0; t < sequence.length; ++t) {
          h = each(A(h) + B(row(sequence, t)) + b.values + c.values, function_of(f));
          Vector y = C(h) + d.values;
          if (*through == 'y') y = y + Matrix(*trace, "weight_xy")(row(sequence, t));
          y = each(y, sigma);
          expected.insert(expected.end(), y.begin(), y.end());
        }
        CHECK_SAYS(furthest(*trace->find("output")->real, expected) < 1e-14, std::string("elman ") + f + " " + g + " " + through);
        // Without outputs of its own, C is the identity.
        const TracePtr units =
            run_of("elman", {{"width", "6"}, {"activation", f}, {"feedthrough", through}, {"output_activation", g}}, sequence);
        const auto &states = *units->find("state/0/h")->real, &output = *units->find("output")->real;
        for (std::int64_t t = 0; t < sequence.length; ++t) {
          Vector y(states.begin() + t * 6, states.begin() + (t + 1) * 6);
          if (*through == 'y') y = y + Matrix(*units, "weight_xy")(row(sequence, t));
          CHECK_SAYS(furthest({output.begin() + t * 6, output.begin() + (t + 1) * 6}, each(y, sigma)) < 1e-14,
                     std::string("elman ") + f + " " + g + " " + through);
        }
      }
      for (const char* mu : {"0", "0.5"}) {
        const TracePtr trace =
            run_of("jordan", {{"width", "6"}, {"outputs", "4"}, {"mu", mu}, {"feedthrough", through}, {"output_activation", g}}, sequence);
        const Matrix A(*trace, "weight_ch"), B(*trace, "weight_ih"), C(*trace, "weight_hy"), b(*trace, "bias_h"), d(*trace, "bias_y");
        Vector context(4, 0.0), expected;
        for (std::int64_t t = 0; t < sequence.length; ++t) {
          const Vector h = each(A(context) + B(row(sequence, t)) + b.values, function_of("tanh"));
          Vector y = C(h) + d.values;
          if (*through == 'y') y = y + Matrix(*trace, "weight_xy")(row(sequence, t));
          y = each(y, sigma);
          context = each(context, [&](double x) { return std::stod(mu) * x; }) + y;
          expected.insert(expected.end(), y.begin(), y.end());
        }
        CHECK_SAYS(furthest(*trace->find("output")->real, expected) < 1e-14, std::string("jordan ") + mu + " " + g + " " + through);
      }
    }
}

TEST_CASE("mLSTM's plain cell is the unstabilised one: max(|n·q|, 1), gates of u, an output gate") {
  const std::size_t d = 6, heads = 2, D = d / heads;
  const Sequence sequence = columns(24, static_cast<std::int64_t>(d));
  for (const char* forget : {"sigmoid", "exp"})
    for (const char* start : {"zero", "none"}) {
      // With a gain of the input the gates move, and with it their exponentials reach both sides of the 1.
      const TracePtr trace = run_of("mlstm",
                                    {{"width", "6"},
                                     {"heads", "2"},
                                     {"cell", "plain"},
                                     {"block", "none"},
                                     {"forget", forget},
                                     {"eps", "0"},
                                     {"stabiliser_start", start},
                                     {"bias", "yes"}},
                                    sequence);
      const Matrix Wq(*trace, "q_proj.weight"), Wk(*trace, "k_proj.weight"), Wv(*trace, "v_proj.weight"), Wo(*trace, "ogate.weight"),
          wi(*trace, "igate.weight"), wf(*trace, "fgate.weight");
      const Vector bo = Matrix(*trace, "ogate.bias").values, bi = Matrix(*trace, "igate.bias").values,
                   bf = Matrix(*trace, "fgate.bias").values;
      std::vector<Vector> C(heads, Vector(D * D, 0.0)), n(heads, Vector(D, 0.0));
      Vector expected;
      bool below = false, above = false;
      for (std::int64_t t = 0; t < sequence.length; ++t) {
        const Vector u = row(sequence, t), q = Wq(u), k = Wk(u), v = Wv(u), o = each(Wo(u) + bo, logistic), i = wi(u) + bi, f = wf(u) + bf;
        for (std::size_t head = 0; head < heads; ++head) {
          const double open = std::exp(i[head]), keep = *forget == 'e' ? std::exp(f[head]) : logistic(f[head]);
          double nq = 0.0;
          Vector read(D, 0.0);
          for (std::size_t a = 0; a < D; ++a) {
            const double key = k[head * D + a] / std::sqrt(static_cast<double>(D)), query = q[head * D + a];
            n[head][a] = keep * n[head][a] + open * key;
            nq += n[head][a] * query;
            for (std::size_t b = 0; b < D; ++b) {
              C[head][a * D + b] = keep * C[head][a * D + b] + open * key * v[head * D + b];
              read[b] += C[head][a * D + b] * query;
            }
          }
          (std::abs(nq) < 1.0 ? below : above) = true;
          for (std::size_t b = 0; b < D; ++b) expected.push_back(o[head * D + b] * read[b] / std::max(std::abs(nq), 1.0));
        }
      }
      const double off = furthest(*trace->find("output")->real, expected);
      CHECK_SAYS(off < 1e-13, std::string(forget) + ", " + start + ": " + test::show(off));
      CHECK_SAYS(below && (above || *forget == 's'),
                 std::string(forget) + (above ? "" : ": nothing is above 1") + (below ? "" : ": nothing is below"));
    }
}
