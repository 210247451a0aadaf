// SPDX-License-Identifier: GPL-3.0-or-later
// How `reclab credit-curves` shows the loss curves of learning rules.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "study/subcommand.h"
#include "text.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;

void show_curves(const StudyAsked&, const StudyResult& found, const StudyOutput& output) {
  const TracePtr trace = found.get<Trace>();
  if (!output.file.empty()) export_run({trace, {}}, output.file, false);
  Json json = Json::array();
  TextTable table(2);
  table.row({"rule", "first loss", "last loss", "held out, before", "after", "steps"});
  std::vector<std::string> ended;
  const std::string end = "/loss";
  for (const TraceArray* array : trace->of(Kind::rule_curve)) {
    const Key key = *parse_key(array->key);
    if (!key.name.ends_with(end)) continue;
    const std::string rule = key.name.substr(0, key.name.size() - end.size());
    const std::vector<double>& loss = *array->real;
    const TraceArray* problem = trace->find(key_of(Kind::rule_curve, rule + "/problem"));
    const auto steps = static_cast<std::size_t>(problem ? problem->real->at(0) : static_cast<double>(loss.size()));
    const std::vector<double>& held_out = *trace->find(key_of(Kind::rule_curve, rule + "/held_out"))->real;
    const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
    Json losses = Json::array();
    for (const double value : loss) losses.push_back(finite(value));
    json.push_back({{"rule", rule},
                    {"steps", steps},
                    {"loss", std::move(losses)},
                    {"held_out_before", finite(held_out.at(0))},
                    {"held_out_after", finite(held_out.at(1))},
                    {"problem", problem ? Json(problem->text) : Json()}});
    const auto shown = [](double value) { return std::isfinite(value) ? number_text(value, 4) : std::string("–"); };
    table.row({rule, shown(steps > 0 ? loss.front() : NAN), shown(steps > 0 ? loss[steps - 1] : NAN), shown(held_out.at(0)),
               shown(held_out.at(1)), std::to_string(steps)});
    if (problem) ended.push_back(rule + ": " + problem->text);
  }
  if (output.json) {
    std::cout << json.dump(2) << '\n';
    return;
  }
  std::cout << heading(trace->info.title) << ": trained by each rule from the same weights with the same sequences\n";
  for (const std::size_t column : {1, 2, 3, 4, 5}) table.right_align(column);
  table.print(std::cout);
  for (const std::string& sentence : ended) std::cout << sentence << '\n';
  if (!output.file.empty()) std::cout << "Wrote " << output.file << '\n';
}

}  // namespace

StudyText credit_curves_text() { return {{}, show_curves}; }

}  // namespace reclab::cli
