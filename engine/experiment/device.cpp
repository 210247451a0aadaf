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

double seconds_on_cuda(const Work& work) {
  // First estimates, to be measured again: a kernel after another in one stream; float32 on a device with about 4 TB/s, which has 430 000
  // entries in flight when it is full and is as many times slower as it is emptier (a thread an entry, each waiting for its own memory).
  constexpr double launch_seconds = 2.5e-6, full = 430e3, bytes = 4e12, flops = 30e12;
  const double filled = std::clamp(work.in_flight / full, 1.0 / full, 1.0);
  return work.cost.launches * launch_seconds + std::max(work.cost.flops / flops, work.cost.bytes / bytes) / filled;
}

double seconds_on_cpu(const Work& work) {
  // Two cores that read 40 GB/s, as in a scan over memory, and multiply 200 GFLOP/s, two thirds of what they can.
  constexpr double bytes = 40e9, flops = 200e9;
  return std::max(work.cost.flops / flops, work.cost.bytes / bytes);
}

bool worth_cuda(const Work& work) {
  // What the CPU does in the blink of a slider is not worth a transfer, and less than twice as fast is nothing to change a device for.
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
