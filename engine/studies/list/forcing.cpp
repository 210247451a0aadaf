// SPDX-License-Identifier: GPL-3.0-or-later
// A model on its own output, and the forcing by data that it needs: a ForcingTable.
#include "evaluation/forcing.h"
#include "studies/study.h"

namespace reclab::studies_by_name {

Study forcing() {
  Study made;
  made.command = "forcing";
  made.summary =
      "Run a model on its own output: the loop's Lyapunov exponent by the share of data, the forcing it needs, how long it foretells";
  made.cancelled_where = "during the runs of the loop";
  made.fields = {forcing_fields().begin(), forcing_fields().end()};
  made.fields.push_back(file_output("DIR", "Folder for exponents.csv, by the share of data, and error.csv, by steps ahead"));
  made.fields.push_back(json_output());
  made.compute = [](const StudyInput& input, const FieldTexts& values, const StudyReport& report, std::stop_token stop) {
    RunRequest request = input.run;
    request.loss = LossKind::task;
    return std::make_shared<ForcingTable>(
        forcing_of(input.registry, request, plan_of(forcing_fields(), values), report.progress, std::move(stop)));
  };
  return made;
}

}  // namespace reclab::studies_by_name
