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
inline constexpr int most_threads = 256;
/// As many threads, the caller's included, however many processors there are; before anything is computed. 0, as at first: one a processor.
void use_threads(int count);

}  // namespace reclab::cpu
