// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "evaluation/evaluation.h"
#include "files/files.h"
#include "trace/writers.h"

namespace reclab {
namespace {

/// The numbers of a row, by the names of their columns and arrays.
struct TableColumn {
  const char* name;
  const char* text;
  double (*of)(const EvaluationRow&);
};
constexpr TableColumn columns[] = {
    {"sequences", "Sequences that have such steps.", [](const EvaluationRow& row) { return static_cast<double>(row.sequences); }},
    {"loss", "Mean over sequences of the mean loss of these steps.", [](const EvaluationRow& row) { return row.loss.mean; }},
    {"loss_low", "The lower end of its confidence interval.", [](const EvaluationRow& row) { return row.loss.low; }},
    {"loss_high", "The upper end of its confidence interval.", [](const EvaluationRow& row) { return row.loss.high; }},
    {"metric", "Mean over sequences of the metric of these steps.", [](const EvaluationRow& row) { return row.metric.mean; }},
    {"metric_low", "The lower end of its confidence interval.", [](const EvaluationRow& row) { return row.metric.low; }},
    {"metric_high", "The upper end of its confidence interval.", [](const EvaluationRow& row) { return row.metric.high; }},
};
constexpr TableColumn ends[] = {
    {"from", "The first position, delay, class or horizon of the part.",
     [](const EvaluationRow& row) { return static_cast<double>(row.from); }},
    {"to", "The last position, delay, class or horizon of the part.", [](const EvaluationRow& row) { return static_cast<double>(row.to); }},
};

}  // namespace

std::string csv_of(const EvaluationTable& table) {
  std::string text = "model,length,by,from,to";
  for (const TableColumn& column : columns) text += "," + std::string(column.name);
  for (const EvaluationRow& row : table.rows) {
    text += "\n" + csv_cell(row.model) + "," + std::to_string(row.length) + "," + std::string(to_string(row.by)) + "," +
            std::to_string(row.from) + "," + std::to_string(row.to);
    for (const TableColumn& column : columns) {
      text += ",";
      append_number(text, column.of(row));
    }
  }
  return text + "\n";
}

Trace trace_of(const EvaluationTable& table) {
  Trace trace;
  trace.info.version = RECLAB_VERSION;
  trace.info.command = table.command;
  std::vector<std::int64_t> lengths;
  for (const EvaluationRow& row : table.rows)
    if (lengths.empty() || lengths.back() < row.length) lengths.push_back(row.length);
  for (const NotEvaluated& one : table.missing)
    trace.info.notes.push_back(one.model + " on " + std::to_string(one.length) + ": " + one.why);
  const auto put = [&](const std::string& name, const std::string& text, Shape shape, std::vector<double> values) {
    TraceArray array;
    array.key = key_of(Kind::evaluation, name);
    array.text = text;
    array.axes = {{"length", "steps", {}}};
    if (shape.size() > 1) array.axes.push_back({"part", "", {}});
    array.shape = std::move(shape);
    array.real = std::make_shared<const std::vector<double>>(std::move(values));
    trace.put(std::move(array));
  };
  const auto count = std::ssize(lengths);
  put("length", "The steps of the sequences.", {count}, {lengths.begin(), lengths.end()});
  std::map<std::pair<std::string, ScoredBy>, std::vector<const EvaluationRow*>> groups;
  std::vector<std::pair<std::string, ScoredBy>> order;
  for (const EvaluationRow& row : table.rows) {
    auto& group = groups[{row.model, row.by}];
    if (group.empty()) order.emplace_back(row.model, row.by);
    group.push_back(&row);
  }
  for (const auto& key : order) {
    const auto& group = groups[key];
    std::vector<std::size_t> parts(lengths.size(), 0), row_of, part_of;
    for (const EvaluationRow* row : group) {
      row_of.push_back(static_cast<std::size_t>(std::ranges::lower_bound(lengths, row->length) - lengths.begin()));
      part_of.push_back(parts[row_of.back()]++);
    }
    const std::size_t most = std::ranges::max(parts);
    const auto add = [&](const TableColumn& column) {
      std::vector<double> values(lengths.size() * most, std::numeric_limits<double>::quiet_NaN());
      for (std::size_t i = 0; i < group.size(); ++i) values[row_of[i] * most + part_of[i]] = column.of(*group[i]);
      put(key.first + "/" + std::string(to_string(key.second)) + "/" + column.name, column.text, {count, static_cast<std::int64_t>(most)},
          std::move(values));
    };
    for (const TableColumn& column : ends) add(column);
    for (const TableColumn& column : columns) add(column);
  }
  return trace;
}

void export_evaluation(const EvaluationTable& table, const std::filesystem::path& folder) {
  const Trace trace = trace_of(table);
  AtomicFolder out(folder);
  std::vector<WrittenFile> files;
  const auto write = [&](const std::string& name, const auto& writer) {
    AtomicFile& file = out.file(name);
    writer(file);
    files.push_back(out.finish(file));
  };
  write("evaluation.csv", [&](AtomicFile& file) { file.write(csv_of(table)); });
  write("trace.npz", [&](AtomicFile& file) { write_trace_npz(trace, file); });
  auto manifest = nlohmann::ordered_json::parse(manifest_json(trace, files));
  auto& own = manifest["evaluation"] = {
      {"data", table.data}, {"metric", table.metric}, {"intervals", table.intervals}, {"confidence", table.confidence}};
  for (const auto& [name, models] : {std::pair("models", &table.models), std::pair("baselines", &table.baselines)}) {
    own[name] = nlohmann::ordered_json::array();
    for (const EvaluatedModel& model : *models)
      own[name].push_back({{"name", model.name},
                           {"title", model.title},
                           {"weights", model.weights},
                           {"form", model.form},
                           {"dtype", model.dtype},
                           {"device", model.device}});
  }
  // The last file of a folder is the one that is never there without the others, and this one names them.
  write("manifest.json", [&](AtomicFile& file) { file.write(manifest.dump(2) + "\n"); });
  out.commit();
}

}  // namespace reclab
