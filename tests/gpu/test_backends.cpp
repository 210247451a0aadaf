// SPDX-License-Identifier: GPL-3.0-or-later
// The CUDA backend against the reference, operation by operation, on this machine's device. RECLAB_CUDA_PRODUCTS says what multiplies
// matrices, RECLAB_CUDA_TRANSFORMS what makes Fourier transforms.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "array/rng.h"
#include "backend_parity.h"
#include "test.h"

namespace {

using namespace reclab;
using namespace reclab::test;

Backend& device() {
  std::string why_not;
  Backend* backend = cuda_backend(&why_not);
  if (!backend) throw Skip(why_not);
  return *backend;
}

const bool registered = [] {
  for (const ParityCase& parity : parity_cases()) cases().push_back({parity.name, [parity] { parity.body(device()); }});
  return true;
}();

}  // namespace

TEST_CASE("memory that there is not is one sentence with a cure, and nothing is lost") {
  Backend& cuda = device();
  CHECK_ERROR(cuda.allocate(std::size_t{1} << 50), "choose device cpu");
  void* memory = cuda.allocate(64);
  const double sent = 3.25;
  double back = 0.0;
  cuda.upload(memory, &sent, sizeof sent);
  cuda.download(&back, memory, sizeof back);
  cuda.release(memory);
  CHECK_EQUAL(back, sent);
}

TEST_CASE("what was recorded is done again as a whole, and what waits is not recorded") {
  Backend& cuda = device();
  constexpr std::int64_t n = 4096;
  void* x = cuda.allocate(n * sizeof(double));
  void* y = cuda.allocate(sizeof(double));
  const std::vector<double> ones(n, 1.0);
  cuda.upload(x, ones.data(), n * sizeof(double));
  double sum = 0.0;
  {
    const auto recording = cuda.record([&] {
      cuda.add_scaled(DType::f64, n, 1, x, x, false);
      cuda.sum(DType::f64, 1, n, 1, 1.0, x, y);  // in two passes, through memory of the recording's own
    });
    CHECK(recording != nullptr);
    for (int i = 0; i < 3; ++i) recording->replay();
    cuda.download(&sum, y, sizeof sum);
    CHECK_EQUAL(sum, 8.0 * n);
  }
  CHECK(cuda.record([&] { cuda.finish(); }) == nullptr);
  cuda.sum(DType::f64, 1, n, 1, 1.0, x, y);
  cuda.download(&sum, y, sizeof sum);
  CHECK_EQUAL(sum, 8.0 * n);
  cuda.release(x);
  cuda.release(y);
}

TEST_CASE("a product that is worth a library is the reference's, alone, of many matrices and as a sum of them") {
  for (const DType type : {DType::f32, DType::f64})
    for (const MatMul& s : {MatMul{1, 200, 170, 150, false, true, 0, 0, 0}, MatMul{16, 70, 66, 80, false, false, 70 * 80, 80 * 66, 70 * 66},
                            MatMul{16, 70, 66, 80, true, false, 70 * 80, 80 * 66, 0}}) {
      Parity parity(device(), 8);
      const std::size_t a = parity.array(type, s.batch * s.m * s.k), b = parity.array(type, s.batch * s.k * s.n),
                        c = parity.array(type, s.batch * s.m * s.n);
      parity.run([&](Backend& backend, const Parity::Pointers& p, Parity::Host&) {
        backend.matmul(type, s, p[a], p[b], p[c], true);
        return 0;
      });
    }
}

TEST_CASE("a very long convolution and its adjoint, of few taps, are what a plain loop says") {
  Backend& cuda = device();
  constexpr std::int64_t batch = 2, channels = 3, row = batch * channels;
  for (const std::int64_t steps : {std::int64_t{100000}, std::int64_t{1} << 17, (std::int64_t{1} << 17) + 1}) {
    const std::int64_t taps[] = {0, 1, 777, steps / 2, steps - 1};
    Rng rng(21);
    std::vector<float> kernel(static_cast<std::size_t>(channels * steps)), u(static_cast<std::size_t>(steps * row)), g(u.size());
    for (std::int64_t c = 0; c < channels; ++c)
      for (const std::int64_t j : taps) kernel[static_cast<std::size_t>(c * steps + j)] = static_cast<float>(rng.uniform(-1.0, 1.0));
    for (std::vector<float>* values : {&u, &g})
      for (float& value : *values) value = static_cast<float>(rng.uniform(-1.0, 1.0));
    std::vector<void*> on_device;
    for (const std::vector<float>* values : {&kernel, &u, &g, &u, &u, &kernel}) {
      on_device.push_back(cuda.allocate(values->size() * sizeof(float)));
      cuda.upload(on_device.back(), values->data(), values->size() * sizeof(float));
    }
    void *k = on_device[0], *x = on_device[1], *gy = on_device[2], *y = on_device[3], *gu = on_device[4], *gk = on_device[5];
    cuda.zero(gu, u.size() * sizeof(float));
    cuda.zero(gk, kernel.size() * sizeof(float));
    cuda.convolve(DType::f32, steps, batch, channels, k, x, y);
    cuda.convolve_adjoint(DType::f32, steps, batch, channels, k, x, gy, gk, gu);
    std::vector<float> there(u.size()), back(u.size()), gradient(kernel.size());
    cuda.download(there.data(), y, u.size() * sizeof(float));
    cuda.download(back.data(), gu, u.size() * sizeof(float));
    cuda.download(gradient.data(), gk, kernel.size() * sizeof(float));
    for (void* memory : on_device) cuda.release(memory);
    double worst = 0.0, worst_gradient = 0.0;
    for (std::int64_t i = 0; i < steps * row; ++i) {
      const std::int64_t t = i / row, c = i % channels;
      double sum = 0.0, adjoint = 0.0;
      for (const std::int64_t j : taps) {
        const double tap = static_cast<double>(kernel[static_cast<std::size_t>(c * steps + j)]);
        if (t >= j) sum += tap * static_cast<double>(u[static_cast<std::size_t>(i - j * row)]);
        if (t + j < steps) adjoint += tap * static_cast<double>(g[static_cast<std::size_t>(i + j * row)]);
      }
      worst = std::max({worst, std::abs(sum - static_cast<double>(there[static_cast<std::size_t>(i)])),
                        std::abs(adjoint - static_cast<double>(back[static_cast<std::size_t>(i)]))});
    }
    for (std::int64_t c = 0; c < channels; ++c)
      for (const std::int64_t j : taps) {
        double sum = 0.0;
        for (std::int64_t i = j * row; i < steps * row; ++i)
          if (i % channels == c)
            sum += static_cast<double>(g[static_cast<std::size_t>(i)]) * static_cast<double>(u[static_cast<std::size_t>(i - j * row)]);
        worst_gradient = std::max(worst_gradient, std::abs(sum - static_cast<double>(gradient[static_cast<std::size_t>(c * steps + j)])));
      }
    CHECK_SAYS(worst < 2e-5, "of " + std::to_string(steps) + " steps differs by " + show(worst));
    CHECK_SAYS(worst_gradient < 1e-3, "the kernel's gradient of " + std::to_string(steps) + " steps differs by " + show(worst_gradient));
  }
}

TEST_CASE("a convolution is recorded, and is the one that is not, whatever made its transforms") {
  Backend& cuda = device();
  constexpr std::int64_t steps = 100, channels = 3;
  std::vector<double> kernel(steps * channels), u(steps * channels), there(steps * channels), recorded(steps * channels);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    kernel[i] = 1.0 / static_cast<double>(i + 1);
    u[i] = i % 7 ? -0.5 : 2.0;
  }
  const std::size_t bytes = kernel.size() * sizeof(double);
  void *k = cuda.allocate(bytes), *x = cuda.allocate(bytes), *y = cuda.allocate(bytes);
  cuda.upload(k, kernel.data(), bytes);
  cuda.upload(x, u.data(), bytes);
  cuda.convolve(DType::f64, steps, 1, channels, k, x, y);
  cuda.download(there.data(), y, bytes);
  cuda.zero(y, bytes);
  {
    const auto recording = cuda.record([&] { cuda.convolve(DType::f64, steps, 1, channels, k, x, y); });
    CHECK(recording != nullptr);
    recording->replay();
    cuda.download(recorded.data(), y, bytes);
  }
  for (std::size_t i = 0; i < there.size(); ++i) CHECK_CLOSE(recorded[i], there[i], 1e-12);
  for (void* memory : {k, x, y}) cuda.release(memory);
}

TEST_CASE("a long convolution for which there is not enough memory is a sentence, and the next one is made") {
  Backend& cuda = device();
  const double numbers[] = {1.0, 2.0, 3.0};
  void *memory = cuda.allocate(sizeof numbers), *y = cuda.allocate(sizeof numbers);
  cuda.upload(memory, numbers, sizeof numbers);
  CHECK_ERROR(cuda.convolve(DType::f64, 1024, std::int64_t{1} << 36, 1, memory, memory, y), "choose device cpu");
  cuda.convolve(DType::f64, 3, 1, 1, memory, memory, y);
  double back[3] = {};
  cuda.download(back, y, sizeof back);
  CHECK_CLOSE(back[0], 1.0, 1e-14);
  CHECK_CLOSE(back[1], 4.0, 1e-14);
  CHECK_CLOSE(back[2], 10.0, 1e-14);
  cuda.release(memory);
  cuda.release(y);
}

TEST_CASE("the device has a name and is found once") {
  std::printf("device : %s\n", device().name().c_str());
  CHECK(&device() == &device());
  CHECK(device().device() == Device::cuda);
  CHECK(device().name().find("CUDA") == 0);
}
