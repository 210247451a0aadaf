// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/start/options.h"

#include <QCommandLineParser>
#include <QFileInfo>

#include "files/archive.h"
#include "gui/docks/layouts.h"
#include "gui/session/session_controller.h"
#include "models/registry.h"
#include "sequence/format.h"

namespace reclab {
namespace {

std::uint64_t wholeNumber(const QString& text, const char* option, std::uint64_t least) {
  bool good = false;
  const qulonglong value = text.toULongLong(&good);
  if (!good || value < least)
    throw Error(
        "--" + std::string(option) + " is " + text.toStdString() + "; it takes a whole number from " + std::to_string(least) + " on.",
        {.parameter = option, .value = text.toStdString()});
  return value;
}

}  // namespace

Options readOptions(const QStringList& arguments) {
  QCommandLineParser parser;
  parser.setApplicationDescription("See how recurrent sequence models remember and forget.");
  parser.addPositionalArgument("ID", "The model to begin with, as `reclab list` names it.", "[ID]");
  parser.addPositionalArgument("FILE", "The sequence, as of --input.", "[FILE]");
  const auto help = parser.addHelpOption();
  const auto version = parser.addVersionOption();
  parser.addOption({"input", QString::fromStdString("The sequence, a " + sequence_format_names() + " file."), "FILE"});
  parser.addOption({"missing",
                    QString::fromStdString("What becomes of missing cells of the file: " + listed(missing_choices(), "or") + " (refuse)."),
                    "HOW"});
  std::vector<std::string> names;
  for (const TaskInfo& task : tasks()) names.push_back(task.name);
  parser.addOption({"task", QString::fromStdString("A synthetic sequence instead: " + listed(names, ",") + "."), "NAME"});
  parser.addOption({"length", "Its length in steps.", "T"});
  parser.addOption({"task-set", "A parameter of the task, as `reclab task --help` lists them; may be given several times.", "key=value"});
  parser.addOption({"set", "A hyper-parameter; may be given several times.", "key=value"});
  parser.addOption({"weights", QString::fromStdString("Trained weights, a file in " + archive_format_names() + "."), "FILE"});
  parser.addOption({"state", "The state to begin with, likewise.", "FILE"});
  parser.addOption({"seed", "What the weights are drawn from (1).", "N"});
  parser.addOption({"layout", "Which panels are shown, by a name of the box Layout: Explore, Learn, \"First steps\".", "NAME"});
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
  for (const QString& given : parser.positionalArguments()) {
    const bool isFile = given.contains('.') || given.contains('/') || QFileInfo(given).isFile();  // no model has such a name
    QString& one = isFile ? file : options.model;
    if (!one.isEmpty() && &one == &file) refuse(one + " and " + given + " are two sequences; give one of them.");
    if (!one.isEmpty()) refuse("One model is looked at at a time, and " + given + " is a second; pin it for comparison in the window.");
    one = given;
  }
  for (const char* name : {"input", "missing", "task", "length", "weights", "state", "seed", "layout", "theme", "figures", "panels",
                           "format", "width", "font-size", "with"})  // a shell variable that is not set
    if (parser.isSet(name) && parser.value(name).isEmpty()) refuse(QString("--%1 is empty; give a value, or leave it out.").arg(name));
  options.input = parser.value("input");
  if (!file.isEmpty() && !options.input.isEmpty()) refuse("--input and " + file + " are two sequences; give one of them.");
  if (!file.isEmpty()) options.input = file;
  options.task = parser.value("task");
  options.weights = parser.value("weights");
  options.state = parser.value("state");
  options.figures = parser.value("figures");
  if (!options.input.isEmpty() && !options.task.isEmpty()) refuse("--input and --task are two sequences; give one of them.");
  if (parser.isSet("missing")) {
    const std::string word = parser.value("missing").toStdString();
    if (options.input.isEmpty()) refuse("--missing belongs to --input; a task has no missing cells.");
    if (!missing_choice(word)) refuse(QString::fromStdString("--missing is " + word + "; it is " + listed(missing_choices(), "or") + "."));
    options.missing = *missing_choice(word);
  }
  if (parser.isSet("length")) {
    if (options.task.isEmpty()) refuse("--length belongs to --task; a file is as long as it is.");
    options.length = static_cast<std::int64_t>(std::min<std::uint64_t>(wholeNumber(parser.value("length"), "length", 1), 1'000'000'000));
  }
  if (parser.isSet("seed")) options.seed = wholeNumber(parser.value("seed"), "seed", 0);
  for (const auto& [name, settings] : {std::pair{QString("set"), &options.set}, {QString("task-set"), &options.taskSet}})
    for (const QString& pair : parser.values(name)) {
      const auto at = pair.indexOf('=');
      if (at < 1) refuse("--" + name + " " + pair + " has no value; write --" + name + " key=value.");
      settings->emplace_back(pair.left(at).toStdString(), pair.mid(at + 1).toStdString());
    }
  if (!options.taskSet.empty() && options.task.isEmpty()) refuse("--task-set belongs to --task; give one.");
  options.layout = parser.value("layout");
  if (parser.isSet("theme")) {
    const QString name = parser.value("theme");
    if (name != "light" && name != "dark" && name != "system") refuse("--theme is " + name + "; it is light, dark or system.");
    options.theme = themeChoice(name);
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

void checkLayout(const Options& options) {
  QStringList layouts;
  for (const PanelLayout& one : panelLayouts()) layouts << one.name;
  if (!options.layout.isEmpty() && !layouts.contains(options.layout, Qt::CaseInsensitive))
    throw Error(("--layout is " + options.layout + "; it is one of " + layouts.join(", ") + ".").toStdString());
}

SequenceChoice beginningSequence(const Options& options, const Library& library) {
  SequenceChoice choice;
  choice.options.seed = options.seed;
  const QString sample = dataFile("samples/sunspots.csv");
  if (!options.input.isEmpty()) {
    choice.isFile = true;
    choice.file = options.input.toStdString();
    choice.load.missing = options.missing;
  } else if (!options.task.isEmpty()) {
    choice.task = options.task.toStdString();
    choice.options.length = options.length;
    choice.options.set = options.taskSet;
    for (const TaskInfo& task : library.tasks)
      if (options.length == 0 && task.name == choice.task) choice.options.length = task.default_length;
  } else if (options.model.isEmpty() && !sample.isEmpty()) {
    choice.isFile = true;
    choice.file = sample.toStdString();
  } else {
    const Preset& preset = library.presets.find(options.model.isEmpty() ? "lstm" : options.model.toStdString());
    choice.task = preset.task;
    choice.options = preset.task_options();
  }
  return choice;
}

Setup beginning(const Options& options, const Library& library) {
  Setup setup;
  setup.preset = library.presets.find(options.model.isEmpty() ? "lstm" : options.model.toStdString()).id;
  setup.seed = options.seed;
  if (!options.set.empty()) setup.set[setup.preset] = options.set;
  if (!options.weights.isEmpty()) setup.weights[setup.preset] = options.weights.toStdString();
  if (!options.state.isEmpty()) setup.states[setup.preset] = options.state.toStdString();
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
