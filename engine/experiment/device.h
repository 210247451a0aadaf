// SPDX-License-Identifier: GPL-3.0-or-later
// The device that a request runs on. When it fails, the same is done on the CPU, from the beginning, with a sentence that says so.
#pragma once

#include <functional>
#include <new>
#include <string>

#include "array/error.h"
#include "autodiff/graph.h"
#include "experiment/experiment.h"

namespace reclab {

/// The work of one pass forward, for the choice of a device.
struct Work {
  Cost cost;
  double memory = 0.0;  ///< bytes of all arrays together; cost.bytes beyond them are read again
  double serial = 0.0;  ///< steps that a kernel takes one after the other by itself, all recurrences together
};
/// The seconds that it takes there, estimated.
double seconds_on_cuda(const Work& work);
double seconds_on_cpu(const Work& work);
/// Whether a CUDA device is worth its launches.
bool worth_cuda(const Work& work);

/// The backend for a request's device, "cpu", "cuda" or "auto"; `work` is asked for with "auto" alone, where it can matter. Throws Error
/// for a device that is not there, DeviceError for one that was there and is lost.
Backend& backend_for(const RunRequest& request, const std::function<Work()>& work);

/// "The CUDA device ran out of memory at step 12 (cudaErrorMemoryAllocation: out of memory): the run was done on the CPU."
std::string done_on_cpu(const DeviceError& error, const std::string& where, const std::string& what);
/// The Error for the computer itself, where the CPU's own memory ran out.
Error no_memory(const std::string& where, const std::string& what);

/// Calls work(request, ""); when its device fails, work(the same on the CPU, the sentence that says so). `where`: the place that the work
/// keeps up to date: "at step 12". Memory of the computer's that ran out is an Error.
template <class F>
auto or_on_cpu(const RunRequest& request, const std::string& what, const std::string& where, const F& work) {
  const auto with_memory = [&](const RunRequest& asked, const std::string& said) {
    try {
      return work(asked, said);
    } catch (const std::bad_alloc&) {
      throw no_memory(where, what);
    }
  };
  std::string said;
  try {
    return with_memory(request, said);
  } catch (const DeviceError& error) {
    said = done_on_cpu(error, where, what);
  }
  RunRequest again = request;
  again.device = "cpu";
  return with_memory(again, said);
}

}  // namespace reclab
