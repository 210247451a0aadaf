// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/stack.h"

#include <string>

#include "array/error.h"

namespace reclab {

Architecture stack_of(const std::vector<std::pair<const Architecture*, Hyper>>& parts) {
  Architecture a;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [part, hyper] = parts[i];
    a.stack.push_back(part);
    const std::string prefix = std::to_string(i) + ".";
    a.id += (i ? " + " : "") + part->id;
    a.title += (i ? ", " : "") + part->title;
    a.equations.push_back("part " + std::to_string(i) + ", " + part->title + ":");
    for (const auto& line : part->equations) a.equations.push_back("  " + line);
    for (const auto& note : part->notes) a.notes.push_back(part->title + ": " + note);
    for (HyperSpec row : part->hyper) {
      row.standard = hyper.value(row.key);
      row.key = prefix + row.key;
      a.hyper.push_back(std::move(row));
    }
    if (a.spectrum.find(part->spectrum) == std::string::npos) a.spectrum += (i ? "; " : "") + part->title + ": " + part->spectrum;
  }
  a.check = [stack = a.stack](const Hyper& all) {
    Architecture of;
    of.stack = stack;
    for (std::size_t i = 0; i < stack.size(); ++i) {
      if (!stack[i]->check) continue;
      try {
        stack[i]->check(hyper_of_stack(of, all, i));
      } catch (const Error& error) {
        ErrorPlace where = error.where();
        if (!where.parameter.empty()) where.parameter = std::to_string(i) + "." + where.parameter;
        throw Error("part " + std::to_string(i) + ", " + error.sentence(), where);
      }
    }
  };
  return a;
}

Hyper hyper_of_stack(const Architecture& stack, const Hyper& hyper, std::size_t part) {
  const Architecture& own = *stack.stack[part];
  Hyper values(own.hyper);
  for (const auto& row : own.hyper) values.set(row.key, hyper.value(std::to_string(part) + "." + row.key), own.id);
  return values;
}

}  // namespace reclab
