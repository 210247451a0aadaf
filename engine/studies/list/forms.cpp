// SPDX-License-Identifier: GPL-3.0-or-later
// Each exact form of a model against the sequential one: FormReports.
#include "studies/study.h"

namespace reclab::studies_by_name {

Study forms() {
  Study made;
  made.command = "forms";
  made.summary = "Each exact form against the sequential one: errors of outputs and gradients";
  made.cancelled_where = "during the comparison";
  made.fields = {json_output()};
  made.takes_loss = true;
  made.compute = [](const StudyInput& input, const FieldTexts&, const StudyReport&, std::stop_token stop) {
    return std::make_shared<FormReports>(compare_forms(input.registry, input.run, std::move(stop)));
  };
  return made;
}

}  // namespace reclab::studies_by_name
