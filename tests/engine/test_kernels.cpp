// SPDX-License-Identifier: GPL-3.0-or-later
// The CUDA backend's kernels, run by the host, against the CPU backend. What only a device can show is tests/gpu/.
#include "backend_parity.h"
#include "host_machine.h"
#include "test.h"

namespace {

using namespace reclab;
using namespace reclab::test;

const bool registered = [] {
  for (const ParityCase& parity : parity_cases())
    cases().push_back({parity.name, [parity] {
                         HostBackend host;
                         parity.body(host);
                       }});
  return true;
}();

}  // namespace
