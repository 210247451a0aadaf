// SPDX-License-Identifier: GPL-3.0-or-later
// Hankel singular values against matrices written out, and modal fits against what these values allow.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <string>
#include <vector>

#include "algebra/eigen.h"
#include "array/rng.h"
#include "distillation/modal_fit.h"
#include "test.h"

using namespace reclab;
using Complex = std::complex<double>;

namespace {

double norm(const std::vector<double>& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

std::vector<double> difference(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> e(a.size());
  for (std::size_t k = 0; k < e.size(); ++k) e[k] = a[k] - b[k];
  return e;
}

/// The moduli of the eigenvalues of the matrix written out.
std::vector<double> written_out(const std::vector<double>& taps, HankelOf of) {
  const auto m = static_cast<std::size_t>(hankel_size(of, std::ssize(taps)));
  std::vector<double> H(m * m, 0.0);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < m; ++j)
      if (i + j + 1 < taps.size()) H[i * m + j] = taps[i + j + 1];
  std::vector<double> values;
  for (const Complex value : eigenvalues(H, static_cast<std::int64_t>(m))) values.push_back(std::abs(value));
  std::ranges::sort(values, std::greater());
  return values;
}

/// A filter that is no small system: a decaying mixture of a chirp and noise.
std::vector<double> rough(std::int64_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> h;
  for (std::int64_t k = 0; k < count; ++k) {
    const double t = static_cast<double>(k) / static_cast<double>(count);
    h.push_back(std::exp(-4.0 * t) * (std::cos(40.0 * t * t) + 0.05 * rng.normal()));
  }
  return h;
}

ModalFilter system_of(std::vector<Complex> poles, std::vector<Complex> residues, double direct) {
  return {std::move(poles), std::move(residues), direct};
}

}  // namespace

TEST_CASE("Hankel singular values are those of the matrix, whether it is factored whole or in part") {
  for (const std::int64_t count : {2, 3, 30, 61, 400, 900}) {
    const std::vector<double> h = rough(count, 3);
    for (const HankelOf of : {HankelOf::taps, HankelOf::ending}) {
      const HankelFactors found = hankel_factors(h, of, 12);
      const std::vector<double> expected = written_out(h, of);
      CHECK_EQUAL(found.size, std::ssize(expected));
      CHECK(found.values.size() >= std::min<std::size_t>(12, expected.size()));
      for (std::size_t i = 0; i < found.values.size(); ++i) CHECK_CLOSE(found.values[i], expected[i], 1e-12 * expected[0]);
      CHECK_CLOSE(hankel_norm(h, of), expected[0], 1e-12 * expected[0]);
      // Of values that are not computed the tail says no less than they sum to.
      for (const std::size_t n : {std::size_t{0}, std::size_t{5}, expected.size()})
        CHECK(found.tail(static_cast<std::int64_t>(n)) >=
              (1.0 - 1e-10) *
                      std::accumulate(expected.begin() + static_cast<std::ptrdiff_t>(std::min(n, expected.size())), expected.end(), 0.0) -
                  1e-12 * expected[0]);
    }
  }
}

TEST_CASE("singular values that are one another's equals are all found") {
  std::vector<double> h(600, 0.0);
  h[250] = 1.0;  // 250 of the taps' matrix are 1, all others 0
  const HankelFactors found = hankel_factors(h, HankelOf::taps, 20);
  for (std::int64_t i = 0; i < 20; ++i) CHECK_CLOSE(found.value(i), 1.0, 1e-12);
}

TEST_CASE("a filter that is n modes is recovered, also where it has not fallen by its last tap") {
  const std::vector<ModalFilter> systems{
      system_of({{0.9, 0.0}}, {{1.5, 0.0}}, 0.25),
      system_of({std::polar(0.97, 0.3), {-0.6, 0.0}, {0.85, 0.0}}, {{1.0, -0.4}, {0.5, 0.0}, {-2.0, 0.0}}, -1.0),
      system_of({std::polar(0.999, 0.05), std::polar(0.99, 1.0), std::polar(0.95, 2.5)}, {{0.3, 0.8}, {-1.0, 0.1}, {0.6, 0.6}}, 0.0),
      system_of({{1.0, 0.0}, std::polar(1.0, 0.4)}, {{0.1, 0.0}, {0.2, 0.3}}, 2.0)};
  for (const ModalFilter& system : systems)
    for (const std::int64_t count : {40, 301, 1000}) {
      const std::vector<double> h = system.taps(count);
      const std::int64_t orders[] = {system.order()};
      const ModalFit fit = modal_fits(h, filter_spectrum(h, orders[0]), orders)[0];
      CHECK_SAYS(norm(difference(h, fit.filter.taps(count))) <= 1e-9 * norm(h),
                 std::to_string(system.order()) + " modes, " + std::to_string(count) + " taps: " + test::show(fit.error.l2 / norm(h)));
      CHECK_CLOSE(fit.filter.direct, system.direct, 1e-9 * norm(h));
      CHECK_EQUAL(fit.filter.order(), system.order());
      for (const Complex pole : system.poles) {
        const auto nearest = std::ranges::min(fit.filter.poles, {}, [&](Complex p) { return std::abs(p - pole); });
        CHECK_SAYS(std::abs(nearest - pole) <= 1e-9, test::show(pole) + " was found as " + test::show(nearest));
      }
    }
}

TEST_CASE("the error falls with the modes as the Hankel singular values bound it") {
  const std::vector<std::int64_t> orders{1, 2, 3, 4, 6, 8, 12, 16};
  for (const std::uint64_t seed : {1, 2, 3}) {
    const std::vector<double> h = rough(240, seed);
    const FilterSpectrum spectrum = filter_spectrum(h, orders.back());
    const std::vector<ModalFit> fits = modal_fits(h, spectrum, orders);
    double before = norm(h);
    for (const ModalFit& fit : fits) {
      const std::vector<double> error = difference(h, fit.filter.taps(240));
      CHECK_CLOSE(fit.error.l2, norm(error), 1e-12 * norm(h));
      CHECK_CLOSE(fit.error.largest, std::abs(*std::ranges::max_element(error, {}, [](double e) { return std::abs(e); })), 1e-12 * norm(h));
      CHECK(fit.filter.order() <= fit.order);
      for (const Complex pole : fit.filter.poles) CHECK(std::abs(pole) <= 1.0 + 1e-12);
      // No system of n modes comes nearer than the next singular value, and balanced truncation not further than twice the sum of the
      // others.
      const double below = spectrum.taps.value(fit.order), above = 2.0 * spectrum.ending.tail(fit.order);
      const std::vector<double> sizes = written_out(error, HankelOf::taps);
      CHECK_CLOSE(fit.error.hankel, sizes[0], 1e-9 * sizes[0]);
      CHECK_SAYS(fit.error.hankel >= below * (1.0 - 1e-9),
                 std::to_string(fit.order) + " modes: " + test::show(fit.error.hankel) + " under " + test::show(below));
      CHECK_SAYS(fit.error.l2 <= above, std::to_string(fit.order) + " modes: " + test::show(fit.error.l2) + " over " + test::show(above));
      CHECK_SAYS(fit.error.l2 <= before,
                 std::to_string(fit.order) + " modes: " + test::show(fit.error.l2) + " after " + test::show(before));
      before = fit.error.l2;
    }
    std::printf("order 1 to 16: l2 %.2e to %.2e of %.2e\n", fits.front().error.l2, fits.back().error.l2, norm(h));
    CHECK(fits.back().error.l2 < 0.2 * fits.front().error.l2);
  }
}

TEST_CASE("the refinement leaves a point where no move of a pole makes the error smaller") {
  const std::vector<double> h = rough(160, 5);
  const std::int64_t orders[] = {4};
  const ModalFit fit = modal_fits(h, filter_spectrum(h, 4), orders)[0];
  const auto error_at = [&](const ModalFilter& filter) { return norm(difference(h, filter.taps(160))); };
  const double found = error_at(fit.filter);
  CHECK_CLOSE(found, fit.error.l2, 1e-12);
  for (std::size_t n = 0; n < fit.filter.poles.size(); ++n)
    for (const Complex step : {Complex(1e-4, 0.0), Complex(-1e-4, 0.0), Complex(0.0, 1e-4), Complex(0.0, -1e-4)})
      for (const bool of_residue : {false, true}) {
        ModalFilter moved = fit.filter;
        if (fit.filter.poles[n].imag() == 0.0 && step.imag() != 0.0) continue;
        (of_residue ? moved.residues : moved.poles)[n] += step;
        moved.direct = 0.0;
        moved.direct = h[0] - moved.taps(1)[0];
        if (std::abs(moved.poles[n]) > 1.0) continue;
        CHECK_SAYS(error_at(moved) >= found * (1.0 - 1e-9), "pole or residue " + std::to_string(n));
      }
}

TEST_CASE("filters of a tap or two, of zeros and of impulses have fits") {
  const std::int64_t orders[] = {1, 2, 4};
  for (const std::vector<double>& h : {std::vector<double>{2.0},
                                       {1.0, -0.5},
                                       {0.0, 0.0, 0.0, 0.0, 0.0, 0.0},
                                       {0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0},
                                       {1.0, 1.0, 1.0, 1.0, 1.0}}) {
    const auto fits = modal_fits(h, filter_spectrum(h, 4), orders);
    CHECK_EQUAL(fits.size(), std::size_t{3});
    for (const ModalFit& fit : fits) {
      CHECK(std::isfinite(fit.error.l2) && std::isfinite(fit.error.hankel) && std::isfinite(fit.filter.direct));
      CHECK_CLOSE(fit.filter.taps(1)[0], h[0], 1e-14);
    }
  }
}

TEST_CASE("a filter in another unit has the same modes, errors and bounds in that unit") {
  const std::vector<std::int64_t> orders{1, 2, 4, 8};
  const std::vector<double> h = rough(600, 3);
  const FilterSpectrum spectrum = filter_spectrum(h, 8);
  const auto fits = modal_fits(h, spectrum, orders);
  for (const int power : {-1000, -600, 600, 1000}) {
    std::vector<double> scaled = h;
    for (double& tap : scaled) tap = std::ldexp(tap, power);
    const FilterSpectrum own = filter_spectrum(scaled, 8);
    const auto own_fits = modal_fits(scaled, own, orders);
    const auto same = [&](double a, double b, const char* what) {
      CHECK_SAYS(std::abs(std::ldexp(a, -power) - b) <= 1e-9 * std::abs(b), std::string(what) + " in units of 2^" + std::to_string(power) +
                                                                                ": " + test::show(std::ldexp(a, -power)) + ", not " +
                                                                                test::show(b));
    };
    for (std::int64_t n = 0; n < 9; ++n) {
      same(own.taps.value(n), spectrum.taps.value(n), "a singular value");
      same(own.ending.tail(n), spectrum.ending.tail(n), "a bound");
    }
    for (std::size_t i = 0; i < orders.size(); ++i) {
      same(own_fits[i].error.l2, fits[i].error.l2, "l2");
      same(own_fits[i].error.largest, fits[i].error.largest, "the largest error");
      same(own_fits[i].error.hankel, fits[i].error.hankel, "the Hankel norm");
    }
  }
}

TEST_CASE("filters of modes that fall at any speed have fits between finite bounds") {
  const std::vector<std::int64_t> orders{1, 2, 4, 12};
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    std::vector<double> h(400, 0.0);
    const double spread = 1.0 + static_cast<double>(seed % 5), centre = static_cast<double>(seed % 7) - 3.0;
    for (int n = 0; n < 16; ++n) {
      const Complex lambda(-std::exp(centre + spread * rng.normal()), std::exp(spread * rng.normal())), weight(rng.normal(), rng.normal());
      for (std::size_t k = 0; k < h.size(); ++k)
        h[k] += (weight * std::exp(lambda * static_cast<double>(k)) * (std::exp(lambda) - 1.0) / lambda).real();
    }
    const FilterSpectrum spectrum = filter_spectrum(h, 24);
    for (const ModalFit& fit : modal_fits(h, spectrum, orders)) {
      const std::string at = "seed " + std::to_string(seed) + ", " + std::to_string(fit.order) + " modes: ";
      const double above = 2.0 * spectrum.ending.tail(fit.order), below = spectrum.taps.value(fit.order), rounding = 1e-12 * norm(h);
      CHECK_SAYS(std::isfinite(above) && std::isfinite(fit.error.l2) && std::isfinite(fit.error.largest) && std::isfinite(fit.error.hankel),
                 at + "not finite");
      CHECK_SAYS(fit.error.hankel >= below - rounding, at + test::show(fit.error.hankel) + " under " + test::show(below));
      CHECK_SAYS(fit.error.l2 <= above + rounding, at + test::show(fit.error.l2) + " over " + test::show(above));
      for (const Complex pole : fit.filter.poles) CHECK(std::abs(pole) <= 1.0 + 1e-12);
    }
  }
}
