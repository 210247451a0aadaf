// SPDX-License-Identifier: GPL-3.0-or-later

#include "array/demand.h"
#include "array/error.h"
#include "recurrence/memory.h"

namespace reclab {

std::string_view to_string(Form form) {
  switch (form) {
    case Form::sequential: return "sequential";
    case Form::scan: return "scan";
    case Form::chunkwise: return "chunkwise";
    case Form::convolution: return "convolution";
    case Form::attention: return "attention";
    case Form::newton: return "newton";
    case Form::quasi_newton: return "quasi-newton";
    case Form::damped_newton: return "damped-newton";
  }
  return "unknown";
}

Form form_from(std::string_view text) {
  std::string known;
  for (const Form form : all_forms) {
    if (to_string(form) == text) return form;
    known += std::string(to_string(form)) + ", ";
  }
  throw Error("There is no form \"" + std::string(text) + "\": choose one of " + known + "or auto for the fastest.",
              {.parameter = "form", .value = std::string(text), .range = known + "auto"});
}

void Memory::low_rank(std::int64_t, std::span<double>, std::span<double>, std::span<double>) {
  RECLAB_DEMAND(!"this memory's transition is not of low rank");
}
void Memory::factors(std::int64_t, std::span<std::complex<double>>) { RECLAB_DEMAND(!"this memory's transition is not diagonal"); }
void Memory::jacobian(std::int64_t, std::span<double>) { RECLAB_DEMAND(!"this memory's transition is not in blocks"); }

}  // namespace reclab
