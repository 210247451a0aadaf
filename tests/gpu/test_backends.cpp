// SPDX-License-Identifier: GPL-3.0-or-later
// The CUDA backend against the reference, operation by operation, on this machine's device. RECLAB_CUDA_PRODUCTS says what multiplies
// matrices.
#include <cstdio>
#include <string>

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

TEST_CASE("the device has a name and is found once") {
  std::printf("device : %s\n", device().name().c_str());
  CHECK(&device() == &device());
  CHECK(device().device() == Device::cuda);
  CHECK(device().name().find("CUDA") == 0);
}
