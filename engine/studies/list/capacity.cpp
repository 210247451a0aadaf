// SPDX-License-Identifier: GPL-3.0-or-later
// The error of matrix memories against the pairs that are written into them, without training: a CapacityTable.
#include "evaluation/capacity.h"
#include "studies/study.h"

namespace reclab::studies_by_name {

Study capacity() {
  Study made;
  made.command = "capacity";
  made.summary = "Write random pairs into matrix memories and read them back: the error of each feature map and rule, without training";
  made.cancelled_where = "during the measurement";
  made.fields = {capacity_fields().begin(), capacity_fields().end()};
  made.fields.push_back(file_output("FILE", "A CSV file of all rows"));
  made.fields.push_back(json_output());
  made.takes_model = false;
  made.compute = [](const StudyInput&, const FieldTexts& values, const StudyReport& report, std::stop_token stop) {
    return std::make_shared<CapacityTable>(capacity(plan_of(capacity_fields(), values), report.progress, std::move(stop)));
  };
  return made;
}

}  // namespace reclab::studies_by_name
