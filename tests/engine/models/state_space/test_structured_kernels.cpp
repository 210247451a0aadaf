// SPDX-License-Identifier: GPL-3.0-or-later
// Structured state-space models that are one another: S4 without its low-rank part, S4D and DSS have the same kernels.
#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "given_weights.h"
#include "models/network.h"
#include "models/registry.h"
#include "scratch.h"
#include "sequence/sequence.h"
#include "test.h"

using namespace reclab;

namespace {

using Complex = std::complex<double>;
using Values = std::map<std::string, std::vector<double>>;
using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t H = 3, N = 8, M = N / 2;
constexpr std::int64_t steps = 200;

/// The response of a layer alone, with these parameters, to one impulse in each channel, one after the other.
std::vector<double> response(const std::string& architecture, Settings set, const Values& values) {
  const test::Scratch folder;
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = architecture;
  request.set = {{"width", "3"}, {"block", "none"}, {"output", "none"}};
  request.set.insert(request.set.end(), set.begin(), set.end());
  Sequence& impulses = request.sequence.own();
  impulses.name = impulses.source = "impulses";
  impulses.length = steps;
  impulses.width = H;
  impulses.input.assign(static_cast<std::size_t>(steps) * H, 0.0);
  for (std::size_t h = 0; h < H; ++h) {
    impulses.input[7 * h * H + h] = 1.0;
    impulses.names.push_back("u" + std::to_string(h));
    impulses.mean.push_back(0.0);
    impulses.deviation.push_back(1.0);
  }
  for (std::int64_t t = 0; t < steps; ++t) impulses.time.push_back(static_cast<double>(t));
  request.weights = folder / "w.npz";
  test::write_given_weights(request, H, values);
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return *trace->find("output")->real;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQUAL(a.size(), b.size());
  double worst = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  CHECK(size > 0.1);
  return worst / size;
}

/// One system for all channels, each with a readout of its own.
struct System {
  Complex A[M], B[M], C[H][M];
  double log_step = std::log(0.05), D[H];
};
System drawn_system() {
  Rng rng(11);
  System s;
  for (std::size_t n = 0; n < M; ++n) {
    s.A[n] = {-0.2 - rng.uniform(), -3.0 * static_cast<double>(n) - rng.uniform()};
    s.B[n] = {rng.normal(), rng.normal()};
    for (auto& row : s.C) row[n] = {rng.normal(), rng.normal()};
  }
  for (double& d : s.D) d = rng.normal();
  return s;
}
/// As S4 and the full code of S4D name them, with one copy of A and B.
Values full_code(const System& s) {
  Values v;
  for (std::size_t n = 0; n < M; ++n) {
    v["0/A_real"].push_back(std::log(-s.A[n].real()));
    v["0/A_imag"].push_back(-s.A[n].imag());
    for (const double part : {s.B[n].real(), s.B[n].imag()}) v["0/B"].push_back(part);
  }
  for (const auto& row : s.C)
    for (const Complex& c : row)
      for (const double part : {c.real(), c.imag()}) v["0/C"].push_back(part);
  v["0/D"].assign(s.D, s.D + H);
  v["0/inv_dt"].assign(H, s.log_step);
  v["0/P"].assign(2 * M, 0.0);
  return v;
}
/// The DSS whose modes are e^Λ with a step of 1 and whose kernel is 2 Re Σ c b λᵏ: both halves of the pairs are read.
Values dss_of(const System& s, const Complex (&exponent)[M], const Complex (&input)[M], double log_step) {
  Values v;
  const double step = std::exp(log_step);
  for (std::size_t n = 0; n < M; ++n) {
    v["0/Lambda_log_neg_re"].push_back(std::log(-exponent[n].real()));
    v["0/Lambda_im"].push_back(exponent[n].imag());
  }
  for (const auto& row : s.C)
    for (std::size_t n = 0; n < M; ++n) {
      const Complex W = 2.0 * row[n] * input[n] * exponent[n] / (std::exp(step * exponent[n]) - 1.0);
      for (const double part : {W.real(), W.imag()}) v["0/W"].push_back(part);
    }
  v["0/D"].assign(s.D, s.D + H);
  v["0/log_dt"].assign(H, log_step);
  return v;
}

const Settings one_copy{{"state", "8"}, {"n_ssm", "1"}};
Settings full(const std::string& discretisation) {
  Settings set = one_copy;
  set.insert(set.end(), {{"code", "full"}, {"discretisation", discretisation}});
  return set;
}

}  // namespace

TEST_CASE("without the low-rank part the kernels of S4 and of S4D are one") {
  const Values values = full_code(drawn_system());
  CHECK(largest_difference(response("s4d", full("bilinear"), values), response("s4", one_copy, values)) <= 1e-9);
  // With it they are not, and neither are two discretisations of one system.
  Values with = values;
  for (double& p : with["0/P"]) p = 0.5;
  CHECK(largest_difference(response("s4d", full("bilinear"), values), response("s4", one_copy, with)) > 1e-3);
  CHECK(largest_difference(response("s4d", full("zoh"), values), response("s4", one_copy, values)) > 1e-3);
}

TEST_CASE("without the low-rank part the kernels of S4, S4D and DSS are one") {
  const System s = drawn_system();
  const double step = std::exp(s.log_step);
  // A zero-order hold is what DSS computes.
  Complex held[M];
  for (std::size_t n = 0; n < M; ++n) held[n] = (std::exp(step * s.A[n]) - 1.0) / s.A[n] * s.B[n];
  const Settings modes{{"state", "4"}, {"version", "exp"}};
  CHECK(largest_difference(response("dss", modes, dss_of(s, s.A, held, s.log_step)), response("s4d", full("zoh"), full_code(s))) <= 1e-9);
  // S4's bilinear modes are powers too: DSS has them with the logarithms of S4's as its Λ.
  Complex exponent[M], input[M];
  for (std::size_t n = 0; n < M; ++n) {
    const Complex below = 1.0 / (1.0 - 0.5 * step * s.A[n]);
    exponent[n] = std::log((1.0 + 0.5 * step * s.A[n]) * below);
    input[n] = step * below * s.B[n];
  }
  CHECK(largest_difference(response("dss", modes, dss_of(s, exponent, input, 0.0)), response("s4", one_copy, full_code(s))) <= 1e-9);
}
