// SPDX-License-Identifier: GPL-3.0-or-later
// The exact forms of a model, or of a primitive, against the length of the sequence.
#include "recurrence/primitive.h"
#include "studies/study.h"
#include "timing/primitives.h"
#include "timing/timing.h"

namespace reclab::studies_by_name {

Study time() {
  std::string primitives;
  for (const std::string& name : primitive_names()) primitives += (primitives.empty() ? "" : ", ") + name;
  Study made;
  made.command = "bench";
  made.summary = "Time the forms of a preset, or of a primitive (" + primitives + "), against length";
  made.cancelled_where = "during the timing";
  made.fields = {timing_fields().begin(), timing_fields().end()};
  made.fields.push_back(file_output("FILE", "A CSV file of everything that was measured"));
  made.fields.push_back(json_output());
  made.in_window = {{"lengths", "64,128,256,512,1024,2048"}};
  made.fills = {Kind::timing};
  made.measures = true;
  made.compute = [](const StudyInput& input, const FieldTexts& values, const StudyReport& report, std::stop_token stop) {
    RunRequest run = input.run;
    run.form = "sequential";
    // The values of the model that are others than in the run beside it; an empty one is the run's own.
    for (const auto& [key, value] : values) {
      if (value.empty()) continue;
      if (key == "device") run.device = value;
      if (key == "dtype") run.dtype = value;
      if (key == "width") run.set.emplace_back(key, value);
    }
    const Publish publish = !report.part ? Publish() : [&](TracePtr part) { report.part(std::move(part)); };
    return time_forms(input.registry, run, plan_of(timing_fields(), values), report.progress, std::move(stop), publish);
  };
  return made;
}

}  // namespace reclab::studies_by_name
