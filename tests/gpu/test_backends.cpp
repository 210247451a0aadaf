// SPDX-License-Identifier: GPL-3.0-or-later
// The CUDA backend against the CPU backend, operation by operation, on this machine's device.
#include "backend_parity.h"
#include "test.h"

namespace {

using namespace reclab;
using namespace reclab::test;

Backend& device() {
  Backend* backend = cuda_backend();
  if (!backend) throw Skip("no CUDA device");
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

TEST_CASE("the device has a name and is found once") {
  CHECK(&device() == &device());
  CHECK(device().device() == Device::cuda);
  CHECK(device().name().find("CUDA") == 0);
}
