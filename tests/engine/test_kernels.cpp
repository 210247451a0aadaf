// SPDX-License-Identifier: GPL-3.0-or-later
// The CPU backend, and the CUDA backend's kernels run by the host, against the reference. What only a device can show is tests/gpu/.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "backend_parity.h"
#include "host_machine.h"
#include "test.h"

namespace {

using namespace reclab;
using namespace reclab::test;

const bool registered = [] {
  for (const ParityCase& parity : parity_cases()) {
    cases().push_back({"CPU, " + parity.name, [parity] { parity.body(cpu_backend()); }});
    cases().push_back({"kernels, " + parity.name, [parity] {
                         HostBackend host;
                         parity.body(host);
                       }});
    // Those that multiply matrices, with a machine that has a library for it.
    if (parity.name.starts_with("product: matrix") || parity.name.starts_with("outer:"))
      cases().push_back({"library, " + parity.name, [parity] {
                           LibraryBackend host;
                           parity.body(host);
                           CHECK(host.machine().products() > 0);
                         }});
    // Those that transform real sequences.
    if (parity.name.starts_with("convolution: long"))
      cases().push_back({"library, " + parity.name, [parity] {
                           LibraryBackend host;
                           parity.body(host);
                           CHECK(host.machine().transforms_made() > 0);
                         }});
  }
  return true;
}();

}  // namespace

TEST_CASE("the reference: a recurrence, a softmax and a product that one can check by hand") {
  Backend& reference = reference_backend();
  // s_t = a s_{t-1} + b_t with a = 1/2, from s_{-1} = 4: 1/2 4 + 1 = 3, 1/2 3 + 2 = 3.5.
  const double half = 0.5, b[] = {1.0, 2.0}, start = 4.0;
  double s[2] = {}, gb[2] = {7.0, 7.0}, ga = 7.0, gstart = 0.0;
  reference.diagonal(DType::f64, {2, 1, 1}, ScanMethod::steps, &half, b, &start, s, {});
  CHECK_EQUAL(s[0], 3.0);
  CHECK_EQUAL(s[1], 3.5);
  // Of the loss s_1: ds_1/db = (1/2, 1), ds_1/da = s_0 + a s_{-1} = 3 + 2, ds_1/ds_{-1} = 1/4.
  const double g[] = {0.0, 1.0};
  reference.diagonal_adjoint(DType::f64, {2, 1, 1}, ScanMethod::steps, &half, s, &start, g, nullptr, &ga, false, gb, false, &gstart,
                             nullptr, nullptr, {});
  CHECK_EQUAL(gb[0], 0.5);
  CHECK_EQUAL(gb[1], 1.0);
  CHECK_EQUAL(ga, 5.0);
  CHECK_EQUAL(gstart, 0.25);
  reference.diagonal_adjoint(DType::f64, {2, 1, 1}, ScanMethod::steps, &half, s, &start, g, nullptr, &ga, true, gb, true, nullptr, nullptr,
                             nullptr, {});
  CHECK_EQUAL(gb[0], 1.0);
  CHECK_EQUAL(gb[1], 2.0);
  CHECK_EQUAL(ga, 10.0);
  // Two rows, the second of which sees both columns: e^0 : e^(log 3) is 1 : 3.
  double scores[] = {7.0, 9.0, 0.0, std::log(3.0)};
  reference.softmax(DType::f64, 1, 2, 2, 0, nullptr, scores);
  CHECK_EQUAL(scores[0], 1.0);
  CHECK_EQUAL(scores[1], 0.0);
  CHECK_CLOSE(scores[2], 0.25, 1e-15);
  CHECK_CLOSE(scores[3], 0.75, 1e-15);
  // (1 2; 3 4) (5 6; 7 8)^T = (17 23; 39 53).
  const double left[] = {1.0, 2.0, 3.0, 4.0}, right[] = {5.0, 6.0, 7.0, 8.0};
  double product[4] = {};
  reference.matmul(DType::f64, {1, 2, 2, 2, false, true}, left, right, product, false);
  CHECK_EQUAL(product[0], 17.0);
  CHECK_EQUAL(product[1], 23.0);
  CHECK_EQUAL(product[2], 39.0);
  CHECK_EQUAL(product[3], 53.0);
}

TEST_CASE("a library is asked for what one call of it can say: factors change places, sums and rows are joined") {
  // 3 matrices, (4 x 5) (5 x 7): as a library sees it, (7 x 5) (5 x 4).
  const double a[3 * 4 * 5] = {}, b[3 * 5 * 7] = {};
  double c[3 * 4 * 7] = {};
  const kernel::Gemm<double> plain{a, b, c, 4, 7, 5, 5, 7, 7, 20, 35, 28, 0, 3, 1, 1, false, false, true};
  const auto asked = kernel::column_product(plain);
  CHECK(asked && asked->a == b && asked->b == a && asked->c == c);
  CHECK(asked->m == 7 && asked->n == 4 && asked->k == 5 && asked->batch == 3);
  CHECK(asked->lda == 7 && asked->ldb == 5 && asked->ldc == 7);
  CHECK(asked->stride_a == 35 && asked->stride_b == 20 && asked->stride_c == 28);
  CHECK(!asked->transpose_a && !asked->transpose_b && asked->beta == 1.0);
  CHECK_EQUAL(asked->multiplications(), 3.0 * 4 * 5 * 7);

  auto transposed = plain;  // A is stored 5 x 4
  transposed.transpose_a = true;
  transposed.lda = 4;
  transposed.accumulate = false;
  const auto second = kernel::column_product(transposed);
  CHECK(second && !second->transpose_a && second->transpose_b && second->beta == 0.0);

  auto one_b = plain;
  one_b.stride_b = 0;
  const auto joined = kernel::column_product(one_b);
  CHECK(joined && joined->batch == 1 && joined->n == 12);
  one_b.stride_a = 40;  // the rows of A lie apart
  CHECK(kernel::column_product(one_b)->batch == 3);

  auto one_c = transposed;  // the sum of A^T B
  one_c.batch = 1;
  one_c.inner = 3;
  one_c.stride_c = 0;
  const auto longer = kernel::column_product(one_c);
  CHECK(longer && longer->batch == 1 && longer->k == 15);
  one_c.transpose_b = true;
  CHECK(!kernel::column_product(one_c));

  auto refused = plain;
  refused.k = 0;
  CHECK(!kernel::column_product(refused));
  refused = plain;
  refused.lda = 4;  // rows that overlap
  CHECK(!kernel::column_product(refused));
  refused = plain;
  refused.m = std::int64_t{1} << 31;
  CHECK(!kernel::column_product(refused));
}

TEST_CASE("no library is asked while work is recorded, and the product is the same") {
  LibraryBackend host;
  const double left[] = {1.0, 2.0, 3.0, 4.0}, right[] = {5.0, 6.0, 7.0, 8.0};
  double product[4] = {};
  const auto recording = host.record([&] { host.matmul(DType::f64, {1, 2, 2, 2, false, true}, left, right, product, false); });
  CHECK(recording != nullptr);
  recording->replay();
  CHECK_EQUAL(host.machine().products(), 0);
  CHECK(product[0] == 17.0 && product[1] == 23.0 && product[2] == 39.0 && product[3] == 53.0);
  host.matmul(DType::f64, {1, 2, 2, 2, false, true}, left, right, product, true);
  CHECK_EQUAL(host.machine().products(), 1);
  CHECK(product[0] == 34.0 && product[1] == 46.0 && product[2] == 78.0 && product[3] == 106.0);
}

TEST_CASE("a library's transforms are as long as a convolution needs, by less than a fifth longer, and of small factors") {
  for (std::int64_t steps = 1; steps < 5000; ++steps) {
    const std::int64_t size = kernel::transform_length(steps);
    CHECK(size >= 2 * steps - 1 && size % 2 == 0 && 5 * size <= 12 * steps);
    std::int64_t left = size;
    for (const int factor : {2, 3, 5, 7})
      while (left % factor == 0) left /= factor;
    CHECK_EQUAL(left, 1);
    const kernel::SpectrumLayout spectra = kernel::spectra_of(steps);
    CHECK(spectra.row >= size / 2 + 1 && spectra.row % 8 == 0);
  }
  CHECK_EQUAL(kernel::transform_length(4096), 8192);
}

TEST_CASE("no library transforms what is recorded, and a spectrum for later is not recorded") {
  LibraryBackend host;
  const std::int64_t steps = 3, batch = 1, channels = 2;
  const double kernel[] = {1.0, 2.0, 3.0, 1.0, 0.0, -1.0}, u[] = {1.0, 4.0, 2.0, 5.0, 3.0, 6.0};
  const double expected[] = {1.0, 4.0, 4.0, 5.0, 10.0, 2.0};
  double y[6] = {};
  const auto is_expected = [&] {
    for (int i = 0; i < 6; ++i) CHECK_CLOSE(y[i], expected[i], 1e-13);
  };
  std::vector<double> spectrum(host.spectrum_size(DType::f64, steps, channels) / sizeof(double));
  CHECK(!spectrum.empty());
  CHECK(host.record([&] { host.spectrum(DType::f64, steps, channels, kernel, spectrum.data()); }) == nullptr);
  CHECK_EQUAL(host.machine().transforms_made(), 0);
  host.spectrum(DType::f64, steps, channels, kernel, spectrum.data());
  CHECK_EQUAL(host.machine().transforms_made(), 1);

  for (const bool with_spectrum : {false, true}) {
    const auto recording = host.record([&] {
      if (with_spectrum)
        host.convolve_with(DType::f64, steps, batch, channels, kernel, spectrum.data(), u, y);
      else
        host.convolve(DType::f64, steps, batch, channels, kernel, u, y);
    });
    CHECK(recording != nullptr);
    std::fill(std::begin(y), std::end(y), 0.0);
    recording->replay();
    is_expected();
    CHECK_EQUAL(host.machine().transforms_made(), 1);
  }
  std::fill(std::begin(y), std::end(y), 0.0);
  host.convolve_with(DType::f64, steps, batch, channels, kernel, spectrum.data(), u, y);
  is_expected();
  CHECK_EQUAL(host.machine().transforms_made(), 3);

  // Complex sequences, and those that are too long for the library's words, are not its.
  CHECK_EQUAL(host.spectrum_size(DType::c128, steps, channels), 0u);
  CHECK_EQUAL(host.spectrum_size(DType::f64, std::int64_t{1} << 31, channels), 0u);
  CHECK_EQUAL(HostBackend().spectrum_size(DType::f64, steps, channels), 0u);
}

TEST_CASE("CPU: a scan of complex numbers has the same bits wherever its state lies") {
  using Number = std::complex<float>;
  Rng rng(7);
  for (std::int64_t width = 1; width < 20; ++width) {
    const auto n = static_cast<std::size_t>(width);
    std::vector<Number> a, b, initial;
    for (std::size_t i = 0; i < n; ++i)
      for (std::vector<Number>* of : {&a, &b, &initial}) {
        const double re = rng.uniform(-1.0, 1.0), im = rng.uniform(-1.0, 1.0);
        of->emplace_back(static_cast<float>(re), static_cast<float>(im));
      }
    // The initial state right before the result, and far from it.
    std::vector<Number> near(2 * n), far(n + 1000);
    std::copy(initial.begin(), initial.end(), near.begin());
    std::copy(initial.begin(), initial.end(), far.begin());
    const DiagonalDims d{1, width, 0};
    cpu_backend().diagonal(DType::c64, d, ScanMethod::tree, a.data(), b.data(), near.data(), near.data() + n, {});
    cpu_backend().diagonal(DType::c64, d, ScanMethod::tree, a.data(), b.data(), far.data(), far.data() + 1000, {});
    CHECK_SAYS(std::memcmp(near.data() + n, far.data() + 1000, n * sizeof(Number)) == 0, "of width " + std::to_string(width));
  }
}
