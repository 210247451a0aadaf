// SPDX-License-Identifier: GPL-3.0-or-later
#include "studies/study.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "array/demand.h"
#include "experiment/prepared.h"

namespace reclab {

const Study& study(std::string_view id) {
  const auto found = std::ranges::find(studies(), id, &Study::id);
  RECLAB_DEMAND(found != studies().end());
  return *found;
}

TracePtr trace_without(Kind kind, const std::string& why) {
  Trace none;
  TraceArray array;
  array.key = key_of(kind, "none");
  array.text = why;
  array.shape = {1};
  array.axes = {{"reason", "", {}}};
  put_real(none, std::move(array), {1.0});
  return std::make_shared<const Trace>(std::move(none));
}

Field json_output() {
  Field made{.row = hyper_flag("json", false, "For scripts"), .flag = flag_of("json")};
  made.output = true;
  return made;
}

Field file_output(std::string argument, std::string text) {
  Field made{.row = hyper_choice("export", {}, {}, std::move(text)), .flag = flag_of("export"), .argument = std::move(argument)};
  made.output = true;
  return made;
}

}  // namespace reclab
