// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/stop.h"

#include <utility>

namespace reclab {
namespace {
thread_local const std::stop_token* innermost = nullptr;
}

StopScope::StopScope(std::stop_token stop) : own_(std::move(stop)), before_(innermost) { innermost = &own_; }
StopScope::StopScope(const std::stop_token* of_other) : before_(innermost) { innermost = of_other; }
StopScope::~StopScope() { innermost = before_; }
const std::stop_token* StopScope::current() { return innermost; }

}  // namespace reclab
