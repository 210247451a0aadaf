// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>

namespace reclab::cpu {

/// Calls f(i) once for each 0 <= i < n, on all processors and in no order; f's results must not depend on the calling thread. Calls that
/// come while another one has the threads run on their own. The first exception is thrown again here, after all calls that began have
/// ended. When the caller is to stop (StopScope), calls that have not begun are left out, and Cancelled is thrown.
void parallel(std::int64_t n, const std::function<void(std::int64_t)>& f);
/// The number of threads, the caller's included.
int thread_count();
/// No more threads than these, the caller's included; before anything is computed.
void limit_threads(int most);

}  // namespace reclab::cpu
