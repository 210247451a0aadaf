// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/start/options.h"

#include <QCommandLineParser>
#include <QFileInfo>
#include <QUrl>
#include <algorithm>
#include <iterator>

#include "experiment/command/run_fields.h"
#include "files/files.h"
#include "gui/docks/layouts.h"
#include "gui/session/session_controller.h"
#include "gui/start/link.h"
#include "lessons/lesson.h"
#include "models/registry.h"
#include "parameters/typed.h"

namespace reclab {
namespace {

/// The fields that the window begins with: those of a sequence, and of a run all but the recording and a new head, which is for trainings.
std::vector<Field> beginningFields() {
  std::vector<Field> all(sequence_fields().begin(), sequence_fields().end());
  for (const Field& field : run_fields())
    if (field.row.key != "every" && field.row.key != "record" && field.row.key != "new_head") all.push_back(field);
  return all;
}

std::string nameOf(const Field& field) { return field.flag.substr(2); }

}  // namespace

Options readOptions(const QStringList& arguments) {
  if (arguments.size() == 2 && isLink(arguments[1])) {
    const Options options = readOptions(QStringList{arguments[0]} + argumentsOf(arguments[1]));
    if (options.given.contains("--input") || !options.session.isEmpty())
      throw Error("The link names a file, which no link may; it was not opened.");
    return options;
  }
  QCommandLineParser parser;
  parser.setApplicationDescription("See how recurrent sequence models remember and forget.");
  parser.addPositionalArgument("ID", "The model to begin with, as `reclab list` names it.", "[ID]");
  parser.addPositionalArgument("FILE", "The sequence, as of --input; or a session, NAME.reclab; or a link, reclab:run?...", "[FILE]");
  const auto help = parser.addHelpOption();
  const auto version = parser.addVersionOption();
  const std::vector<Field> fields = beginningFields();
  for (const Field& field : fields) {
    const QString name = QString::fromStdString(nameOf(field)), text = QString::fromStdString(field.row.text) + '.';
    if (field.row.kind == HyperKind::flag)
      parser.addOption({name, text});
    else
      parser.addOption({name, text, QString::fromStdString(field.argument)});
  }
  parser.addOption({"layout", "Which panels are shown, by a name of the box Layout: Explore, Learn, \"First steps\".", "NAME"});
  parser.addOption({"lesson", "The lesson to begin with, as `reclab lesson list` names it.", "ID"});
  parser.addOption({"print", "Draw the pages of the lesson into this PDF, without a window.", "FILE"});
  parser.addOption({"step", "Of the lesson: print this one alone, by the name behind its title.", "ID"});
  parser.addOption({"theme", "light, dark or system.", "NAME"});
  parser.addOption({"figures", "Draw every panel into this folder, without a window.", "DIR"});
  parser.addOption({"panels", "Draw these alone, with commas between them: gradients,spectrum.", "ID,ID"});
  parser.addOption({"format", "Of the figures: png, svg (the default) or pdf.", "FORMAT"});
  parser.addOption({"width", "Of the figures, in mm (174, two columns of a journal; 85 is one).", "MM"});
  parser.addOption({"font-size", "Of their smallest text, in points (7); lines and markers follow.", "PT"});
  parser.addOption(
      {"with", "What is drawn with the pictures, with commas between them: title,caption,cursor. Else nothing is.", "PART,PART"});

  const auto refuse = [](const QString& sentence) -> void { throw Error(sentence.toStdString()); };
  if (!parser.parse(arguments))
    refuse(parser.errorText().remove('\n') + (parser.errorText().endsWith('.') ? "" : ".") + " See recurrence-lab --help.");
  Options options;
  options.help = parser.isSet(help);
  options.version = parser.isSet(version);
  // Qt asks the application for its name, and there is none yet.
  if (options.help) options.text = parser.helpText().replace("<executable_name>", "recurrence-lab");
  if (options.version) options.text = "recurrence-lab " RECLAB_VERSION "\n";
  QString file;
  for (const QString& argument : parser.positionalArguments()) {
    const QUrl url(argument);
    const QString given = url.isLocalFile() ? url.toLocalFile() : argument;  // file managers give either
    if (given.endsWith(QStringLiteral(".reclab"), Qt::CaseInsensitive)) {
      if (!options.session.isEmpty()) refuse(options.session + " and " + given + " are two sessions; give one of them.");
      options.session = given;
      continue;
    }
    const bool isFile = given.contains('.') || given.contains('/') || QFileInfo(given).isFile();  // no model has such a name
    QString& one = isFile ? file : options.model;
    if (!one.isEmpty() && &one == &file) refuse(one + " and " + given + " are two sequences; give one of them.");
    if (!one.isEmpty()) refuse("One model is looked at at a time, and " + given + " is a second; pin it for comparison in the window.");
    one = given;
  }
  for (const char* name : {"layout", "lesson", "print", "step", "theme", "figures", "panels", "format", "width", "font-size",
                           "with"})  // a shell variable that is not set
    if (parser.isSet(name) && parser.value(name).isEmpty()) refuse(QString("--%1 is empty; give a value, or leave it out.").arg(name));
  for (const Field& field : fields) {
    const QString name = QString::fromStdString(nameOf(field));
    if (!parser.isSet(name)) continue;
    std::string& given = options.given[field.flag];
    if (field.row.kind == HyperKind::flag) {
      given = "true";
      continue;
    }
    std::vector<std::string> names;
    for (const QString& value : parser.values(name)) {
      if (value.isEmpty()) refuse(QString("--%1 is empty; give a value, or leave it out.").arg(name));
      if (field.says == Field::Says::one || field.says == Field::Says::texts)
        names.push_back(value.toStdString());
      else
        std::ranges::move(names_of_list(value.toStdString()), std::back_inserter(names));
    }
    given = field.says == Field::Says::one ? names.back() : list_of_names(names);
    typed_value(field, given);
  }
  const bool isFile = options.given.contains("--input");
  if (!file.isEmpty() && isFile) refuse("--input and " + file + " are two sequences; give one of them.");
  if (!file.isEmpty()) options.given["--input"] = file.toStdString();
  if (options.given.contains("--input") && options.given.contains("--task"))
    refuse("--input and --task are two sequences; give one of them.");
  const SequenceChoice kind{.file = options.given.contains("--input") ? options.given.at("--input") : std::string()};
  refuse_misplaced(options.given, sequence_fields(), kind);
  const bool asked = kind.is_file() || options.given.contains("--task") || !options.model.isEmpty();
  for (const Field& field : sequence_fields())
    if (!asked && options.given.contains(field.flag))
      usage_error(field.flag, "belongs to a sequence that is named; give --task or --input, or a model.");
  if (!options.session.isEmpty() && options.named())
    refuse(options.session + " is a session, which has its models and their values; give it alone.");
  options.figures = parser.value("figures");
  if (!options.session.isEmpty() && !options.figures.isEmpty()) refuse("--figures draws a run, and " + options.session + " is a session.");
  options.layout = parser.value("layout");
  options.lesson = parser.value("lesson");
  options.print = parser.value("print");
  options.step = parser.value("step");
  if (!options.print.isEmpty() && options.lesson.isEmpty()) refuse("--print belongs to --lesson; name the lesson that is printed.");
  if (!options.step.isEmpty() && options.print.isEmpty()) refuse("--step belongs to --print.");
  if (!options.print.isEmpty() && !options.figures.isEmpty()) refuse("--print and --figures are two things to draw; give one of them.");
  if (!options.lesson.isEmpty() && !options.figures.isEmpty())
    refuse("--figures draws a run, and --lesson begins a lesson in the window; give one of them.");
  if (parser.isSet("theme")) {
    const QString name = parser.value("theme");
    if (name != "light" && name != "dark" && name != "system") refuse("--theme is " + name + "; it is light, dark or system.");
    options.theme = themeChoice(name);
    if (!options.print.isEmpty() && options.theme != ThemeChoice::light)
      refuse("--theme is " + name + ", and --print draws on white paper; leave it out.");
  }
  if (parser.isSet("format")) {
    const QString name = parser.value("format");
    if (options.figures.isEmpty()) refuse("--format belongs to --figures.");
    if (name == "png")
      options.format = Panel::Format::png;
    else if (name == "pdf")
      options.format = Panel::Format::pdf;
    else if (name != "svg")
      refuse("--format is " + name + "; it is png, svg or pdf.");
  }
  for (const auto& [name, value] : {std::pair{"width", &options.style.width}, {"font-size", &options.style.fontSize}}) {
    if (!parser.isSet(name)) continue;
    if (options.figures.isEmpty()) refuse(QString("--%1 belongs to --figures.").arg(name));
    bool good = false;
    *value = parser.value(name).toDouble(&good);
    if (!good || !(*value > 0))
      refuse(QString("--%1 is %2; it takes a number, %3.")
                 .arg(name, parser.value(name), *name == 'w' ? "of mm, such as 85" : "of points, such as 7"));
  }
  if (const QString problem = options.style.problem(); !problem.isEmpty()) refuse(problem);
  if (parser.isSet("with")) {
    if (options.figures.isEmpty()) refuse("--with belongs to --figures.");
    for (const QString& part : parser.value("with").split(',', Qt::SkipEmptyParts)) {
      if (part == "title")
        options.style.title = true;
      else if (part == "caption")
        options.style.caption = true;
      else if (part == "cursor")
        options.style.cursor = true;
      else
        refuse("--with names " + part + "; the parts are title, caption and cursor.");
    }
  }
  if (parser.isSet("panels")) {
    if (options.figures.isEmpty()) refuse("--panels belongs to --figures.");
    options.panels = parser.value("panels").split(',', Qt::SkipEmptyParts);
  }
  if (parser.isSet("figures") && options.figures.isEmpty()) refuse("--figures has no folder; write --figures DIR.");
  return options;
}

Options optionsOf(const TypedRun& run) {
  Options options;
  options.model = QString::fromStdString(run.id);
  options.given = run.given;
  return options;
}

void checkLayout(const Options& options) {
  QStringList layouts;
  for (const PanelLayout& one : panelLayouts()) layouts << one.name;
  if (!options.layout.isEmpty() && !layouts.contains(options.layout, Qt::CaseInsensitive))
    throw Error(("--layout is " + options.layout + "; it is one of " + layouts.join(", ") + ".").toStdString());
}

void checkLesson(const Options& options) {
  if (options.lesson.isEmpty()) return;
  const LessonLibrary library = lesson_library(lesson_folders());
  std::vector<std::string> ids;
  for (const Lesson& lesson : library.lessons) ids.push_back(lesson.id);
  if (library.find(options.lesson.toStdString()) == nullptr)
    throw Error("--lesson is " + options.lesson.toStdString() + "; the lessons are " + listed(ids, "and") + ".");
}

SequenceChoice beginningSequence(const Options& options, const Library& library) {
  const auto& given = options.given;
  const bool named = given.contains("--input") || given.contains("--task");
  const QString sample = dataFile("samples/sunspots.csv");
  SequenceChoice choice;
  if (!named && options.model.isEmpty() && !sample.isEmpty()) {
    choice.file = sample.toStdString();
  } else if (!named) {
    const Preset& preset = library.presets.find(options.model.isEmpty() ? "lstm" : options.model.toStdString());
    choice = (given.contains("--trained") ? as_trained(preset) : preset).own_sequence();
  } else if (const auto task = given.find("--task"); task != given.end()) {
    if (given.contains("--seed")) choice.make.seed = seed_of(given.at("--seed"));
    for (const TaskInfo& one : library.tasks)
      if (one.name == task->second) choice.make.length = one.default_length;
  }
  for (const auto& field : sequence_fields())
    if (const auto found = given.find(field.flag); found != given.end()) field.set(choice, typed_value(field, found->second));
  return choice;
}

Setup beginning(const Options& options, const Library& library) {
  Setup setup;
  const Preset& preset = library.presets.find(options.model.isEmpty() ? "lstm" : options.model.toStdString());
  setup.preset = preset.id;
  if (options.given.contains("--trained")) useTrained(setup, preset);
  RunRequest asked;
  static_cast<RunSettings&>(asked) = setup;
  for (const auto& field : run_fields())
    if (const auto found = options.given.find(field.flag); found != options.given.end() && field.row.key != "trained")
      field.set(asked, typed_value(field, found->second));
  static_cast<RunSettings&>(setup) = asked;
  for (const auto& [key, value] : asked.set) setup.setValue(key, value);
  if (!asked.weights.empty()) setup.weights[setup.preset] = asked.weights;
  if (!asked.state.empty()) setup.states[setup.preset] = asked.state;
  return setup;
}

Setup loadedBeginning(const Options& options) {
  const Library library{PresetLibrary(builtin_registry(), preset_folders()), tasks()};
  Setup setup = beginning(options, library);
  hyper_of(builtin_registry(), library.presets.find(setup.preset), setup.settings());
  setup.sequence = loadChoice(beginningSequence(options, library));
  if (!setup.weights.empty() || !setup.states.empty())
    check_files(builtin_registry(), requestFor(setup, library.presets.find(setup.preset), {}));
  return setup;
}

}  // namespace reclab
