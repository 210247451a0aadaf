// SPDX-License-Identifier: GPL-3.0-or-later
// cuFFT, where the machine has it. It is looked for when the program runs and never linked, as cuBLAS is (cublas.h), and only a library of
// the header's major version is taken.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>

#include "array/cuda/spectra.h"

#if __has_include(<cufft.h>)
#include <cufft.h>
#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <type_traits>
#include <vector>

namespace reclab {

class Cufft {
 public:
  /// Null where there is none that works; then `why_not` says why.
  static std::unique_ptr<Cufft> open(cudaStream_t stream, std::string& why_not) {
    const std::string file = "libcufft.so." + std::to_string(CUFFT_VER_MAJOR);
    std::unique_ptr<Cufft> cufft(new Cufft(stream));
    // Never closed: its registrations with the driver stay until the process ends.
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* words = dlerror();
      why_not = words ? words : file + " was not found";
      return nullptr;
    }
#define RECLAB_TAKE(member, name) take(library, #name, cufft->member)
    const bool complete = RECLAB_TAKE(create_, cufftCreate) && RECLAB_TAKE(destroy_, cufftDestroy) &&
                          RECLAB_TAKE(version_, cufftGetVersion) && RECLAB_TAKE(set_stream_, cufftSetStream) &&
                          RECLAB_TAKE(set_allocation_, cufftSetAutoAllocation) && RECLAB_TAKE(make_plan_, cufftMakePlanMany64) &&
                          RECLAB_TAKE(set_work_area_, cufftSetWorkArea) && RECLAB_TAKE(there_f32_, cufftExecR2C) &&
                          RECLAB_TAKE(back_f32_, cufftExecC2R) && RECLAB_TAKE(there_f64_, cufftExecD2Z) &&
                          RECLAB_TAKE(back_f64_, cufftExecZ2D);
#undef RECLAB_TAKE
    if (!complete) {
      why_not = file + " lacks a function of its own header";
      return nullptr;
    }
    int version = 0;
    if (const cufftResult status = cufft->version_(&version); status != CUFFT_SUCCESS) {
      why_not = file + " could not be started (" + words_of(status) + ")";
      return nullptr;
    }
    cufft->name_ = "cuFFT " + std::to_string(version / 1000) + "." + std::to_string(version / 100 % 10);
    return cufft;
  }
  Cufft(const Cufft&) = delete;
  Cufft& operator=(const Cufft&) = delete;
  ~Cufft() {
    for (const Plan& plan : plans_) destroy_(plan.handle);
  }
  const std::string& name() const { return name_; }

  struct Outcome {
    std::string failure;  ///< empty: it was asked for
    bool no_memory = false;
  };
  /// work_area(bytes) gives the memory that these transforms need besides, for as long as they run.
  template <class T, class WorkArea>
  Outcome transform(const kernel::RealTransforms<T>& t, const WorkArea& work_area) {
    // A plan has one work area at a time: the calls of two threads must not mix.
    const std::lock_guard lock(mutex_);
    cufftResult status = plan(t);
    if (status == CUFFT_SUCCESS) {
      const Plan& made = plans_.front();
      status = set_work_area_(made.handle, work_area(std::max<std::size_t>(made.work_bytes, 1)));
      if (status == CUFFT_SUCCESS) status = run(made.handle, t);
    }
    if (status == CUFFT_SUCCESS) return {};
    return {words_of(status), status == CUFFT_ALLOC_FAILED};
  }

 private:
  static constexpr std::size_t kept = 16;  ///< plans: those of a model's convolutions there and back, in a few lengths
  struct Plan {
    cufftType type;
    kernel::Index size, row, count;
    cufftHandle handle;
    std::size_t work_bytes;
  };

  explicit Cufft(cudaStream_t stream) : stream_(stream) {}
  template <class F>
  static bool take(void* library, const char* name, F*& function) {
    function = reinterpret_cast<F*>(dlsym(library, name));
    return function != nullptr;
  }
  template <class T>
  static cufftType type_of(bool back) {
    if constexpr (std::is_same_v<T, float>)
      return back ? CUFFT_C2R : CUFFT_R2C;
    else
      return back ? CUFFT_Z2D : CUFFT_D2Z;
  }

  /// Puts the plan for these transforms in front, made where there is none; the one that was used longest ago goes for it.
  template <class T>
  cufftResult plan(const kernel::RealTransforms<T>& t) {
    const cufftType type = type_of<T>(t.back);
    const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const Plan& known) {
      return known.type == type && known.size == t.size && known.row == t.row && known.count == t.count;
    });
    if (found != plans_.end()) {
      std::rotate(plans_.begin(), found, found + 1);
      return CUFFT_SUCCESS;
    }
    plans_.reserve(kept);
    if (plans_.size() == kept) {
      destroy_(plans_.back().handle);
      plans_.pop_back();
    }
    Plan made{type, t.size, t.row, t.count, 0, 0};
    cufftResult status = create_(&made.handle);
    if (status != CUFFT_SUCCESS) return status;
    long long size = t.size, numbers = 2 * t.row, coefficients = t.row;
    long long &from = t.back ? coefficients : numbers, &to = t.back ? numbers : coefficients;
    status = set_allocation_(made.handle, 0);
    if (status == CUFFT_SUCCESS) status = make_plan_(made.handle, 1, &size, &from, 1, from, &to, 1, to, type, t.count, &made.work_bytes);
    if (status == CUFFT_SUCCESS) status = set_stream_(made.handle, stream_);
    if (status == CUFFT_SUCCESS)
      plans_.insert(plans_.begin(), made);
    else
      destroy_(made.handle);
    return status;
  }
  cufftResult run(cufftHandle handle, const kernel::RealTransforms<float>& t) const {
    auto* coefficients = reinterpret_cast<cufftComplex*>(t.data);
    return t.back ? back_f32_(handle, coefficients, t.data) : there_f32_(handle, t.data, coefficients);
  }
  cufftResult run(cufftHandle handle, const kernel::RealTransforms<double>& t) const {
    auto* coefficients = reinterpret_cast<cufftDoubleComplex*>(t.data);
    return t.back ? back_f64_(handle, coefficients, t.data) : there_f64_(handle, t.data, coefficients);
  }
  /// The library has no words of its own.
  static std::string words_of(cufftResult status) {
    switch (status) {
      case CUFFT_INVALID_PLAN: return "CUFFT_INVALID_PLAN";
      case CUFFT_ALLOC_FAILED: return "CUFFT_ALLOC_FAILED";
      case CUFFT_INVALID_TYPE: return "CUFFT_INVALID_TYPE";
      case CUFFT_INVALID_VALUE: return "CUFFT_INVALID_VALUE";
      case CUFFT_INTERNAL_ERROR: return "CUFFT_INTERNAL_ERROR";
      case CUFFT_EXEC_FAILED: return "CUFFT_EXEC_FAILED";
      case CUFFT_SETUP_FAILED: return "CUFFT_SETUP_FAILED";
      case CUFFT_INVALID_SIZE: return "CUFFT_INVALID_SIZE";
      case CUFFT_NO_WORKSPACE: return "CUFFT_NO_WORKSPACE";
      case CUFFT_NOT_SUPPORTED: return "CUFFT_NOT_SUPPORTED";
      default: return "cuFFT's status " + std::to_string(static_cast<int>(status));
    }
  }

  decltype(&cufftCreate) create_ = nullptr;
  decltype(&cufftDestroy) destroy_ = nullptr;
  decltype(&cufftGetVersion) version_ = nullptr;
  decltype(&cufftSetStream) set_stream_ = nullptr;
  decltype(&cufftSetAutoAllocation) set_allocation_ = nullptr;
  decltype(&cufftMakePlanMany64) make_plan_ = nullptr;
  decltype(&cufftSetWorkArea) set_work_area_ = nullptr;
  decltype(&cufftExecR2C) there_f32_ = nullptr;
  decltype(&cufftExecC2R) back_f32_ = nullptr;
  decltype(&cufftExecD2Z) there_f64_ = nullptr;
  decltype(&cufftExecZ2D) back_f64_ = nullptr;
  cudaStream_t stream_;
  std::string name_;
  std::mutex mutex_;
  std::vector<Plan> plans_;  // the last used first
};

}  // namespace reclab

#else  // a toolkit without cuFFT

namespace reclab {

class Cufft {
 public:
  static std::unique_ptr<Cufft> open(cudaStream_t, std::string& why_not) {
    why_not = "this build's CUDA Toolkit has no cuFFT";
    return nullptr;
  }
  const std::string& name() const { return name_; }
  struct Outcome {
    std::string failure;
    bool no_memory = false;
  };
  template <class T, class WorkArea>
  Outcome transform(const kernel::RealTransforms<T>&, const WorkArea&) {
    return {"this build's CUDA Toolkit has no cuFFT"};
  }

 private:
  std::string name_;
};

}  // namespace reclab

#endif
