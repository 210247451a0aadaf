// SPDX-License-Identifier: GPL-3.0-or-later
// How `reclab forms` shows the errors of the forms.
#include <iostream>
#include <nlohmann/json.hpp>

#include "study/subcommand.h"
#include "text.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;

void print_json(const RunRequest& request, const FormReports& reports) {
  Json json = {{"id", request.preset.id}, {"length", request.sequence->length}, {"dtype", request.dtype}, {"forms", Json::array()}};
  if (!reports.empty()) json["device"] = reports.front().device;
  for (const FormReport& report : reports) {
    json["forms"].push_back({{"form", report.form},
                             {"output_error", report.output_error},
                             {"gradient_error", report.gradient_error},
                             {"seconds", report.seconds},
                             {"flops", report.flops},
                             {"bytes", report.bytes}});
    if (!report.note.empty()) json["forms"].back()["note"] = report.note;
    if (report.iterations < 0) continue;
    json["forms"].back()["iterations"] = report.iterations;
    json["forms"].back()["converged"] = report.converged;
  }
  std::cout << json.dump(2) << '\n';
}

void show_forms(const StudyAsked& asked, const StudyResult& found, const StudyOutput& output) {
  const RunRequest& request = asked.input.run;
  const auto reports = found.get<FormReports>();
  if (output.json) return print_json(request, *reports);
  std::cout << heading(request.preset.title) << ", " << counted(request.sequence->length, "step") << ", " << request.dtype
            << ": errors relative to the sequential form\n";
  TextTable table(2);
  table.row({"form", "output", "gradients", "time", "flops", "bytes moved"});
  for (const FormReport& report : *reports)
    table.row({report.form, number_text(report.output_error, 2), number_text(report.gradient_error, 2), seconds_text(report.seconds),
               number_text(report.flops, 3), bytes_text(report.bytes)});
  for (const std::size_t column : {1, 2, 3, 4}) table.right_align(column);
  table.print(std::cout);
  for (const FormReport& report : *reports)
    if (!report.note.empty()) std::cout << report.note << '\n';
}

}  // namespace

StudyText forms_text() { return {{}, show_forms}; }

}  // namespace reclab::cli
