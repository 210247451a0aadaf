// SPDX-License-Identifier: GPL-3.0-or-later
// reclab: the lab without a window. Mistakes of the user's are one line on standard error and exit status 2.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "array/cpu/processor/threads.h"
#include "array/error.h"
#include "commands.h"
#include "experiment/experiment.h"
#include "files/files.h"
#include "options.h"
#include "parameters/nearest.h"
#include "sequence/format.h"
#include "serve/serve.h"
#include "study/subcommand.h"
#include "sweep/sweep.h"
#include "terminal.h"
#include "text.h"

namespace {

using namespace reclab;
using namespace reclab::cli;

constexpr int mistake_status = 2;

int complain(const std::string& sentence, int status = mistake_status) {
  std::cout.flush();
  std::cerr << "reclab: " << one_line(sentence_after_colon(sentence)) << '\n';
  return status;
}

/// Before anything is opened: a standard stream that is closed must not be the next file.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) static_cast<void>(open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

/// `reclab list | head -1`: the reader closed the pipe.
bool reader_is_gone() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

/// Refuses empty values, which unset shell variables leave.
void refuse_empty_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    const std::string type = option->get_type_name();
    const std::string wanted = type == "FILE"        ? "a file"
                               : type == "DIR"       ? "a folder"
                               : type == "KEY=VALUE" ? "key=value"
                               : type == "A,B"       ? "a list"
                               : type.size() == 1    ? "a value"
                                                     : "a name";
    option->check([name = option->get_name(), wanted](const std::string& value) {
      if (value.empty()) usage_error(name, "is empty; give " + wanted + ".");
      return std::string();
    });
  }
}

/// CLI11's complaint in a line of ours, with the nearest name that there is.
std::string sentence_of(const CLI::ParseError& error, CLI::App& app, const std::vector<std::string>& arguments) {
  CLI::App* command = &app;
  std::string name;  // "sweep run"
  for (auto used = app.get_subcommands(); !used.empty(); used = command->get_subcommands()) {
    command = used.front();
    name += (name.empty() ? "" : " ") + command->get_name();
  }
  const std::string help = "`reclab " + name + (name.empty() ? "" : " ") + "--help`";

  if (command == &app) {
    std::vector<std::string> commands;
    for (const CLI::App* sub : app.get_subcommands({})) commands.push_back(sub->get_name());
    if (arguments.empty()) return "give a command: " + joined(commands) + "; see " + help + ".";
    return "there is no command \"" + arguments[0] + "\"; did you mean " + nearest_names(arguments[0], commands, 1) + "? See " + help + ".";
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    const auto extras = command->remaining(true);
    const std::string extra = extras.empty() ? "" : extras.front();
    std::vector<std::string> known;
    for (const CLI::Option* option : command->get_options())
      for (const std::string& one : option->get_lnames()) known.push_back("--" + one);
    if (extra.starts_with("-"))
      return name + " has no option \"" + extra + "\"; did you mean " + nearest_names(extra, known, 1) + "? See " + help + ".";
    return name + ": \"" + extra + "\" is one argument too many; see " + help + ".";
  }
  return name + ": " + std::string(error.what()) + "; see " + help + ".";
}

/// Carries the line out by the callbacks of its options; the exit status where that ends with a complaint.
std::optional<int> parse(CLI::App& app, const std::vector<std::string>& arguments) {
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from the end
  } catch (const CLI::Success& help) {
    app.exit(help);
  } catch (const CLI::ParseError& error) {
    return complain(sentence_of(error, app, arguments));
  } catch (const MisfitError& error) {
    std::string sentence = error.what();
    if (!error.settings.empty() && sentence.ends_with('.'))
      sentence.replace(sentence.size() - 1, 1, ": give --sizes weights to take that from the file.");
    return complain(sentence);
  } catch (const Error& error) {
    return complain(error.what());
  } catch (const std::bad_alloc&) {
    return complain(
        "there is not enough memory for this; record less with --every or --record, or take a shorter sequence or a smaller width.");
  }
  return {};
}

/// `reclab run` as `reclab serve` answers it: without the options of all other commands, which take longer to set up than a small run.
int answer_run(const std::vector<std::string>& arguments, Interrupt& interrupt, RunServer& runs) {
  CLI::App app("", "reclab");
  RunOptions options;
  int status = 0;
  CLI::App* run = app.add_subcommand("run", "");
  add_run(*run, options);
  run->callback([&] { status = runs(options, interrupt); });
  refuse_empty_values(*run);
  return parse(app, arguments).value_or(status);
}

/// `runs`: of `reclab serve`; null: none.
int reclab_main(const std::vector<std::string>& arguments, Interrupt& interrupt, RunServer* runs = nullptr) {
  if (runs && !arguments.empty() && arguments[0] == "run") return answer_run(arguments, interrupt, *runs);
  CLI::App app{"See how recurrent sequence models behave, without a window.\nErrors are one line on standard error; exit status 2.",
               "reclab"};
  app.set_version_flag("--version", RECLAB_VERSION, "Print the version");
  app.require_subcommand(1);
  app.get_formatter()->column_width(28);

  int status = 0;
  std::string threads;  // of the process, so a line that `reclab serve` carries out chooses none
  const auto add_threads = [&](CLI::App& command) {
    if (!runs)
      command.add_option("--threads", threads, "Threads that compute; results have the same bits with any number (one a processor)")
          ->type_name("N");
  };
  const auto choose_threads = [&] {
    if (!threads.empty()) cpu::use_threads(threads_of(threads, 0));
  };
  const auto computing = [&]<class Options>(const std::string& name, const std::string& text, int (*compute)(const Options&, Interrupt&),
                                            const Options& options) {
    CLI::App* made = app.add_subcommand(name, text);
    add_threads(*made);
    made->callback([&status, &interrupt, &options, &choose_threads, compute] {
      choose_threads();
      interrupt.watch();
      status = compute(options, interrupt);
    });
    return made;
  };

  ListOptions list_options;
  CLI::App* sub = app.add_subcommand("list", "Every preset");
  sub->add_option("--family", list_options.family, "Of this family only")->type_name("F");
  sub->add_flag("--json", list_options.json, "For scripts");
  sub->callback([&] { status = list(list_options); });

  ShowOptions show_options;
  sub = app.add_subcommand("show", "The card of a preset: equations, hyper-parameters, parameters, source");
  sub->add_option("id", show_options.id, "The preset")->required()->type_name("ID");
  sub->add_option("--set", show_options.set, "A hyper-parameter that shapes depend on")->allow_extra_args(false)->type_name("KEY=VALUE");
  sub->add_option("--inputs", show_options.inputs, "Width of the input that shapes depend on (1)")->type_name("N");
  sub->add_flag("--json", show_options.json, "For scripts");
  sub->callback([&] { status = show(show_options); });

  RunOptions run_options;
  add_run(*computing("run", "Run a preset on a file or a task; prints a summary, or exports everything", run, run_options), run_options);

  std::map<std::string, StudyOptions> study_options;
  const auto add_subcommand_of = [&](const Study& study) {
    StudyOptions& options = study_options[study.id];
    options.study = study.id;
    add_study(*computing(study.command, study.summary, run_study, options), options);
  };
  for (const char* first : {"forms", "time"}) add_subcommand_of(study(first));

  TrainOptions train_options;
  add_train(*computing("train", "Train a preset on a task or a file, and go on with what was trained", train, train_options),
            train_options);

  RulesOptions rules_options;
  sub = computing("rules", "Learning rules: their gradients, costs and sources, and the presets that each can train", rules, rules_options);
  sub->add_option("id", rules_options.ids, "Presets to ask for (all)")->type_name("ID");
  sub->add_flag("--json", rules_options.json, "For scripts");

  ComplexitiesOptions complexities_options;
  sub = computing("complexities", "The survey's tables of complexities beside exponents of time and memory that are measured here",
                  complexities, complexities_options);
  sub->add_option("id", complexities_options.ids, "Presets of the tables (all)")->type_name("ID");
  sub->add_option("--lengths", complexities_options.lengths, "Lengths to time (512,1024,...,16384)")->delimiter(',')->type_name("A,B");
  sub->add_option("--export", complexities_options.file, "A CSV file, or JSON by its name")->type_name("FILE");
  sub->add_flag("--json", complexities_options.json, "For scripts");

  for (const Study& study : studies())
    if (!study.command.empty() && !study_options.contains(study.id)) add_subcommand_of(study);

  TaskOptionsText task_options;
  sub = app.add_subcommand("task", "Write a synthetic sequence to a file");
  add_task(*sub, task_options);
  sub->callback([&] { status = task(task_options); });

  LessonOptions lesson_options;
  add_lesson(app, lesson_options, interrupt, status);

  SweepOptions sweep_options;
  add_sweep(app, sweep_options, interrupt, status);

  CheckDeviceOptions check_options;
  sub = computing("check-device", "Every primitive and preset on the CPU and on the CUDA device: the largest relative errors", check_device,
                  check_options);
  sub->add_option("id", check_options.ids, "Presets and primitives (all)")->type_name("ID");
  sub->add_flag("--json", check_options.json, "For scripts");

  StreamOptions stream_options;
  add_stream(*computing("stream", "A preset learns from a sequence without an end: one pass, an update a step, errors as it goes", stream,
                        stream_options),
             stream_options);

  bool kinds_json = false;
  sub = app.add_subcommand("kinds", "The kinds of arrays of a run: their keys, axes and units");
  sub->add_flag("--json", kinds_json, "For scripts");
  sub->callback([&] { status = kinds(kinds_json); });

  OptionsOptions options_options;
  sub = app.add_subcommand("options", "The options of a command");
  sub->add_option("command", options_options.command, "The command")->required()->type_name("COMMAND");
  sub->add_flag("--json", options_options.json, "For scripts");
  sub->callback([&] { status = options_of(options_options, app); });

  bool stdio = false;
  sub = app.add_subcommand("serve", "Carries out such lines one after the other, for programs that ask often (engine/docs/python.md)");
  sub->add_flag("--stdio", stdio, "Requests on standard input, answers on standard output")->required();
  add_threads(*sub);
  sub->callback([&] {
    choose_threads();
    if (runs) usage_error("serve", "is what carries this out; give another command.");
    status =
        serve(interrupt, [&](const std::vector<std::string>& words, RunServer& server) { return reclab_main(words, interrupt, &server); });
  });

  for (CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);

  if (const auto complained = parse(app, arguments)) return *complained;
  std::cout.flush();
  if (std::cout) return status;
  if (reader_is_gone()) {  // as a program ends that does not look
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
  }
  const bool exported = !run_options.folder.empty() || !train_options.folder.empty() || !train_options.resume.empty() ||
                        !stream_options.folder.empty() || !stream_options.resume.empty() || !complexities_options.file.empty() ||
                        !task_options.file.empty() ||
                        std::ranges::any_of(study_options, [](const auto& one) { return one.second.is_set("--export"); });
  return complain("standard output cannot be written; is it closed, or the disk full?" +
                  std::string(exported ? " The export is whole." : ""));
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  // A write that fails says why, which is a sentence; a signal would end the process in the middle of it.
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  const PlainText plain_output(std::cout, STDOUT_FILENO), plain_errors(std::cerr, STDERR_FILENO);
  try {
    Interrupt interrupt;
    return reclab_main({argv + std::min(argc, 1), argv + argc}, interrupt);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again)
      return complain(std::string("a mistake in reclab itself, not yours: ") + error.what(), 1);
    return complain(
        "no thread can be started here: end other programs, or raise the limit on processes (ulimit -u) or memory (ulimit -v).");
  } catch (const std::exception& error) {
    return complain(std::string("a mistake in reclab itself, not yours: ") + error.what(), 1);
  }
}
