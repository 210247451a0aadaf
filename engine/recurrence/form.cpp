// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/error.h"
#include "recurrence/memory.h"

namespace reclab {

std::string_view to_string(Form form) {
  switch (form) {
    case Form::sequential: return "sequential";
    case Form::scan: return "scan";
    case Form::convolution: return "convolution";
    case Form::attention: return "attention";
  }
  return "unknown";
}

Form form_from(std::string_view text) {
  for (const Form form : {Form::sequential, Form::scan, Form::convolution, Form::attention})
    if (to_string(form) == text) return form;
  throw Error("There is no form \"" + std::string(text) + "\": choose sequential, scan, convolution or attention (auto for the fastest).",
              {.parameter = "form", .value = std::string(text), .range = "sequential, scan, convolution, attention, auto"});
}

}  // namespace reclab
