// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/steps/schedule.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "plain_text.h"
#include "plot/theme.h"

namespace reclab {

namespace {

constexpr double exact = -12.0;

QString trSchedule(const char* text) { return QCoreApplication::translate("reclab::StepSchedule", text); }

/// "0.41", "0.41 − 0.2i"
QString written(const std::complex<double>& z) {
  if (z.imag() == 0.0) return number(z.real());
  return number(z.real()) + (z.imag() < 0 ? QStringLiteral(" − ") : QStringLiteral(" + ")) + number(std::abs(z.imag())) + u'i';
}

}  // namespace

QString stepsText(int first, int last) {
  return first == last ? trSchedule("step %1").arg(last) : trSchedule("steps %1 to %2").arg(first).arg(last);
}

std::vector<QString> StepSchedule::forms(const Trace& trace) {
  std::vector<QString> found;
  for (const TraceArray* array : trace.of(Kind::schedule)) {
    const QString key = QString::fromStdString(array->key);
    if (key.endsWith(u"/nodes")) found.push_back(key.section(u'/', 1, -2));
  }
  return found;
}

std::optional<StepSchedule> StepSchedule::read(const Trace& trace, const QString& form) {
  const std::string at = key_of(Kind::schedule, form.toStdString() + "/");
  const auto get = [&](const char* name) { return trace.find(at + name); };
  const auto *nodes = get("nodes"), *edges = get("edges"), *kinds = get("kinds"), *rules = get("rules"), *rounds = get("rounds"),
             *work = get("work"), *depth = get("depth"), *drawing = get("drawing"), *value = get("value"), *product = get("product"),
             *error = get("error"), *steps = trace.find(key_of(Kind::schedule, "steps"));
  for (const TraceArray* needed : {nodes, edges, kinds, rules, rounds, work, depth, drawing, steps})
    if (!needed || !needed->real) return {};
  StepSchedule made;
  made.form = form;
  made.steps = static_cast<int>(steps->real->at(0));
  made.rounds = static_cast<int>(rounds->real->at(0));
  made.work = work->real->at(0);
  made.depth = depth->real->at(0);
  made.why = QString::fromStdString(rounds->text);
  made.unit = QString::fromStdString(work->text);
  made.entry = value ? QString::fromStdString(value->text) : QString();
  const std::string how = drawing->axes[0].labels.at(0);
  made.drawing = how == "triangle" ? Drawing::triangle : how == "iterations" ? Drawing::iterations : Drawing::tree;
  for (std::size_t k = 0; k < kinds->real->size(); ++k)
    made.kinds.push_back({QString::fromStdString(kinds->axes[0].labels.at(k)), QString::fromStdString(rules->axes[0].labels.at(k)),
                          static_cast<Place>(std::clamp(static_cast<int>((*kinds->real)[k]), 0, 5))});
  const auto entry = [](const TraceArray* array, std::size_t i) -> std::complex<double> {
    if (!array) return std::numeric_limits<double>::quiet_NaN();
    return array->is_complex() ? (*array->complex)[i] : std::complex<double>((*array->real)[i]);
  };
  const auto columns = static_cast<std::size_t>(nodes->shape[1]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(nodes->shape[0]); ++i) {
    const auto column = [&](std::size_t j) { return static_cast<int>((*nodes->real)[i * columns + j]); };
    made.nodes.push_back({column(0),
                          column(1),
                          column(2),
                          column(3),
                          column(4),
                          column(5),
                          (*nodes->real)[i * columns + 6],
                          entry(value, i),
                          entry(product, i),
                          {}});
    if (made.nodes.back().round > 0) made.kinds[static_cast<std::size_t>(made.nodes.back().kind)].given = false;
  }
  for (std::size_t i = 0; i + 1 < edges->real->size(); i += 2)
    made.nodes[static_cast<std::size_t>((*edges->real)[i + 1])].needs.push_back(static_cast<int>((*edges->real)[i]));
  if (error && error->real) made.error = *error->real;
  if (made.drawing == Drawing::iterations && made.error.empty()) return {};
  return made;
}

int StepSchedule::exactAfter(int iteration) const {
  int count = 0;
  while (count < steps && error[static_cast<std::size_t>(iteration * steps + count)] <= exact) ++count;
  return count;
}

std::vector<bool> StepSchedule::cone(int node) const {
  std::vector<bool> in(nodes.size(), false);
  in[static_cast<std::size_t>(node)] = true;
  for (std::size_t i = static_cast<std::size_t>(node) + 1; i-- > 0;)  // nodes come after the nodes that they need
    if (in[i])
      for (const int from : nodes[i].needs) in[static_cast<std::size_t>(from)] = true;
  return in;
}

QString StepSchedule::tip(int number_of) const {
  const Node& node = nodes[static_cast<std::size_t>(number_of)];
  const NodeKind& kind = kinds[static_cast<std::size_t>(node.kind)];
  QStringList lines;
  const QString when = node.round == 0            ? trSchedule("given")
                       : node.begin == node.round ? trSchedule("round %1").arg(node.round)
                                                  : trSchedule("rounds %1 to %2").arg(node.begin).arg(node.round);
  lines << QStringLiteral("<b>%1</b>, %2").arg(kind.name.toHtmlEscaped(), when);
  if (kind.place == Place::cell)
    lines << trSchedule("step %1 looks at step %2").arg(node.last).arg(node.first);
  else if (kind.place == Place::bar)
    lines << trSchedule("step %1, for %2").arg(node.row).arg(stepsText(node.first, node.last));
  else if (node.round > 0)
    lines << trSchedule("covers %1").arg(stepsText(node.first, node.last));
  else
    lines << stepsText(node.first, node.last);
  const bool composed = !std::isnan(node.product.real());
  if (!std::isnan(node.value.real()))
    lines << (composed ? trSchedule("a = %1, b = %2").arg(written(node.product), written(node.value))
                       : trSchedule("value %1").arg(written(node.value)));
  if (!node.needs.empty()) {
    std::map<int, std::pair<int, QStringList>> from;  // by kind: how many, and the steps of the first few
    for (const int one : node.needs) {
      const Node& need = nodes[static_cast<std::size_t>(one)];
      auto& [count, which] = from[need.kind];
      if (++count <= 2) which << stepsText(need.first, need.last);
    }
    QStringList parts;
    for (const auto& [of, found] : from) {
      const QString name = kinds[static_cast<std::size_t>(of)].name;
      parts << (found.first > 2 ? trSchedule("%1 × %2").arg(found.first).arg(name)
                                : trSchedule("%1 (%2)").arg(name, found.second.join(QStringLiteral("; "))));
    }
    lines << trSchedule("from %1").arg(parts.join(QStringLiteral(", ")).toHtmlEscaped());
  }
  lines << QStringLiteral("<i>%1</i>").arg(kind.rule.toHtmlEscaped());
  return htmlTip(QStringLiteral("<div style='max-width:320px'>%1</div>").arg(lines.join(QStringLiteral("<br>"))));
}

}  // namespace reclab
