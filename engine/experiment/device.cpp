// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/device.h"

#include <algorithm>
#include <atomic>

#include "array/backend.h"

namespace reclab {
namespace {

Backend* found(const RunRequest& request, std::string& why) {
  static std::atomic<Backend*> last{nullptr};  // the one that was there, should it be lost
  Backend* cuda = request.cuda ? request.cuda : cuda_backend(&why);
  if (cuda && !request.cuda) last = cuda;
  if (!cuda) cuda = last;
  if (!cuda) return nullptr;
  if (const std::string words = cuda->lost(); !words.empty())
    throw DeviceError(DeviceError::Kind::lost, words,
                      "The CUDA device was lost (" + words + "): choose device cpu, or start the program again.");
  return cuda;
}

}  // namespace

// Measured on an NVIDIA H100 and on two cores of an EPYC 9005 (tests/bench/results, reclab-device-bench), float32: within a factor of two
// for 26 (CPU) and 18 (CUDA) of 29 models and forms there, and the right side of worth_cuda() for 27.
double seconds_on_cuda(const Work& work) {
  // A launch that is recorded takes 1.5 to 2.5 us with its kernel, one that is asked for by itself 3.6; a step within a kernel 0.03 us
  // (diagonal) to 0.15 us (selective). Memory moves at 2.5 TB/s, repeated reads come from the device's cache.
  constexpr double launch = 2e-6, step = 0.15e-6, bytes = 2.5e12, cached_bytes = 6e12, flops = 30e12;
  const double once = std::min(work.cost.bytes, work.memory), again = work.cost.bytes - once;
  return work.cost.launches * launch + work.serial * step + std::max(work.cost.flops / flops, once / bytes + again / cached_bytes);
}

double seconds_on_cpu(const Work& work) {
  // Repeated reads come from the caches where all of the data fit.
  constexpr double call = 0.06e-6, bytes = 40e9, cached_bytes = 850e9, flops = 270e9, room = 128 << 20;
  const double once = work.memory <= room ? std::min(work.cost.bytes, work.memory) : work.cost.bytes, again = work.cost.bytes - once;
  return work.cost.launches * call + std::max(work.cost.flops / flops, once / bytes + again / cached_bytes);
}

bool worth_cuda(const Work& work) {
  // A run shorter than least_seconds on the CPU is not worth a transfer, nor is one less than twice as fast on the device.
  constexpr double least_seconds = 0.01, times_as_fast = 2.0;
  const double cpu = seconds_on_cpu(work);
  return cpu >= least_seconds && cpu >= times_as_fast * seconds_on_cuda(work);
}

Backend& backend_for(const RunRequest& request, const std::function<Work()>& work) {
  std::string why;
  if (request.device == "cpu") return cpu_backend();
  if (request.device == "auto") {
    // float64 is for science and stays where its bits are everybody's, on the CPU; a lost device is one that is not there.
    if (request.dtype != "f32" && request.dtype != "float32") return cpu_backend();
    try {
      Backend* cuda = found(request, why);
      return cuda && worth_cuda(work()) ? *cuda : cpu_backend();
    } catch (const DeviceError&) {
      return cpu_backend();
    }
  }
  if (request.device == "cuda") {
    if (Backend* cuda = found(request, why)) return *cuda;
    throw Error("the device cuda cannot be used here, " + why + Remedy{"; ", "choose ", {"device", "cpu"}} + ".",
                {.parameter = "device", .value = request.device, .range = "cpu, auto"});
  }
  throw Error("There is no device \"" + request.device + "\": choose auto, cpu or cuda.",
              {.parameter = "device", .value = request.device, .range = "auto, cpu, cuda"});
}

std::string done_on_cpu(const DeviceError& error, const std::string& where, const std::string& what) {
  const char* happened = error.kind() == DeviceError::Kind::memory ? "ran out of memory"
                         : error.kind() == DeviceError::Kind::lost ? "was lost"
                                                                   : "failed";
  return std::string("The CUDA device ") + happened + " " + where + " (" + error.words() + "): the " + what + " was done on the CPU.";
}

Error no_memory(const std::string& where, const std::string& what) {
  return Error("the computer's memory ran out " + where + ", the " + what + " needs more of it" +
               Remedy{": ", "record less with ", {"every"}} + Remedy{" or ", "", {"record"}} +
               Remedy{", ", "take a shorter sequence or a smaller width"} + ".");
}

}  // namespace reclab
