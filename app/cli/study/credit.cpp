// SPDX-License-Identifier: GPL-3.0-or-later
// How `reclab credit` shows how near the gradients of learning rules come to the true ones.
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "learning/learning_rule.h"
#include "study/subcommand.h"
#include "text.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The arrays of a rule, by what they are of.
class Given {
 public:
  Given(const Trace& trace, std::string rule) : trace_(trace), rule_(std::move(rule)) {}
  std::vector<double> operator()(const std::string& what) const {
    const TraceArray* array = trace_.find(key_of(Kind::credit, rule_ + "/" + what));
    return array && array->real ? *array->real : std::vector<double>{};
  }
  /// The mean over the steps that have a value.
  double mean(const std::string& what) const {
    double sum = 0.0;
    int count = 0;
    for (const double value : (*this)(what))
      if (std::isfinite(value)) sum += value, ++count;
    return count ? sum / count : std::nan("");
  }

 private:
  const Trace& trace_;
  std::string rule_;
};

std::vector<std::string> rules_of(const Trace& trace) {
  std::vector<std::string> rules;
  const std::string end = "/exact";
  for (const TraceArray* array : trace.of(Kind::credit))
    if (const Key key = *parse_key(array->key); key.name.ends_with(end)) rules.push_back(key.name.substr(0, key.name.size() - end.size()));
  return rules;
}

void show_credit(const StudyAsked&, const StudyResult& found, const StudyOutput& output) {
  const TracePtr trace = found.get<Trace>();
  if (!output.file.empty()) export_run({trace, {}}, output.file, false);
  Json json = Json::array();
  TextTable table(2);
  table.row({"rule", "gradient", "cosine", "ratio", "bias", "deviation", "of the sum", "memory", "time a step"});
  for (const std::string& id : rules_of(*trace)) {
    const Given of(*trace, id);
    const std::string gradient(of("exact").at(0) != 0.0 ? "exact" : to_string(learning_rule(id).gradient));
    const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
    Json delays = Json::array();
    for (const double cosine : of("cosine_by_delay")) delays.push_back(finite(cosine));
    json.push_back({{"rule", id},
                    {"gradient", gradient},
                    {"cosine", finite(of.mean("cosine"))},
                    {"ratio", finite(of.mean("ratio"))},
                    {"bias", finite(of.mean("bias"))},
                    {"deviation", finite(of.mean("deviation"))},
                    {"cosine_of_sum", finite(of.mean("cosine_of_sum"))},
                    {"cosine_by_delay", std::move(delays)},
                    {"bytes", of.mean("bytes")},
                    {"seconds", of.mean("seconds")}});
    table.row({id, gradient, number_text(of.mean("cosine"), 3), number_text(of.mean("ratio"), 3), number_text(of.mean("bias"), 3),
               number_text(of.mean("deviation"), 3), number_text(of.mean("cosine_of_sum"), 3), bytes_text(of.mean("bytes")),
               seconds_text(of.mean("seconds"))});
  }
  if (output.json) {
    std::cout << json.dump(2) << '\n';
    return;
  }
  std::cout << heading(trace->info.title) << ", " << counted(trace->info.length, "step")
            << ": gradients of learning rules beside the true ones, the mean over the steps that have a loss\n";
  for (const std::size_t column : {2, 3, 4, 5, 6, 7, 8}) table.right_align(column);
  table.print(std::cout);
  if (!output.file.empty()) std::cout << "Wrote " << output.file << '\n';
}

}  // namespace

StudyText credit_text() { return {{}, show_credit}; }

}  // namespace reclab::cli
