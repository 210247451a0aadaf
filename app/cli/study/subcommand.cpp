// SPDX-License-Identifier: GPL-3.0-or-later
#include "study/subcommand.h"

#include <CLI/CLI.hpp>
#include <map>

#include "array/error.h"
#include "models/registry.h"
#include "options.h"
#include "progress_line.h"

namespace reclab::cli {
namespace {

/// The texts of the studies with a subcommand.
const std::map<std::string, StudyText (*)()> texts{
    {"capacity", capacity_text}, {"credit", credit_text},     {"credit-curves", credit_curves_text},
    {"distil", distil_text},     {"evaluate", evaluate_text}, {"forcing", forcing_text},
    {"forms", forms_text},       {"time", bench_text}};

StudyAsked usual(const StudyOptions& options, const PresetLibrary& all) {
  StudyAsked made{{builtin_registry(), all}, values_given(options)};
  made.input.run = request_of(options, all);
  take_sizes(options, made.input.run, !options.is_set("--json"));
  return made;
}

}  // namespace

void add_fields(CLI::App& app, const std::vector<Field>& fields, std::map<std::string, std::string>& all_given) {
  for (const Field& field : fields) {
    if (field.flag.empty()) continue;
    std::string& given = all_given[field.flag];
    if (field.row.kind == HyperKind::flag) {
      app.add_flag_callback(field.flag, [&given] { given = "true"; }, field.row.text);
      continue;
    }
    const bool list = field.says != Field::Says::one;
    const std::string usual = field.usual.value_or(list ? std::string() : as_text(field.row.standard));
    const std::string text = field.row.text + (usual.empty() ? "" : " (" + usual + ")");
    if (list)
      add_list(app, field, text, given);
    else
      app.add_option(field.flag, given, text)->type_name(field.argument);
  }
}

FieldTexts values_given(const StudyOptions& options) {
  FieldTexts values;
  for (const Field& field : study(options.study).fields)
    if (!field.output && options.is_set(field.flag))
      values.emplace_back(field.row.key, as_text(typed_value(field, options.given.at(field.flag))));
  return values;
}

void add_study(CLI::App& app, StudyOptions& options) {
  const Study& of = study(options.study);
  std::set<std::string_view> without{"every", "record"};
  if (!of.takes_form) without.insert("form");
  if (!of.takes_loss) without.insert("loss");
  if (of.takes_model) add_model(app, options, without);
  add_fields(app, of.fields, options.given);
}

int run_study(const StudyOptions& options, Interrupt& interrupt) {
  const PresetLibrary all = library();
  const Study& of = study(options.study);
  const StudyText text = texts.at(of.id)();
  const StudyAsked asked = text.asked ? text.asked(options, all) : usual(options, all);

  const StudyResult found = computed(interrupt, of.cancelled_where, [&](const Progress& progress) {
    StudyResult made = of.compute(asked.input, asked.values, {progress}, interrupt.token());
    if (const TracePtr trace = made.get<Trace>(); trace && trace->info.outcome == Outcome::cancelled) throw Cancelled();
    return made;
  });
  interrupt.enter(Interrupt::Phase::writing);
  text.show(asked, found, {options.is_set("--export") ? options.given.at("--export") : std::string(), options.is_set("--json")});
  return 0;
}

}  // namespace reclab::cli
