// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/serve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <system_error>

#include "array/error.h"
#include "files/npy.h"
#include "models/registry.h"
#include "serve/wire.h"
#include "text.h"
#include "trace/writers.h"

namespace reclab::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t longest_line = std::size_t{64} << 20;

/// The request is refused with a sentence; the next one is read.
struct Refused {
  std::string sentence;
};

/// What std::cout and std::cerr are given while it lives.
class Captured {
 public:
  Captured() : output_before_(std::cout.rdbuf(output_.rdbuf())), error_before_(std::cerr.rdbuf(error_.rdbuf())) {}
  ~Captured() {
    std::cout.rdbuf(output_before_);
    std::cerr.rdbuf(error_before_);
    std::cout.clear();
    std::cerr.clear();
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  std::string output() const { return output_.str(); }
  std::string error() const { return error_.str(); }

 private:
  std::ostringstream output_, error_;
  std::streambuf *output_before_, *error_before_;
};

/// The files that a request brings, in a folder of their own as long as it is carried out.
class BroughtFiles {
 public:
  BroughtFiles() = default;
  ~BroughtFiles() {
    std::error_code none;
    if (!folder_.empty()) fs::remove_all(folder_, none);
  }
  BroughtFiles(const BroughtFiles&) = delete;
  BroughtFiles& operator=(const BroughtFiles&) = delete;

  void add(const std::string& name, const std::string& bytes) {
    if (folder_.empty()) {
      std::string pattern = (fs::temp_directory_path() / "reclab-serve-XXXXXX").string();
      if (!mkdtemp(pattern.data())) throw Refused{"no folder can be made at " + pattern + ": set TMPDIR to another."};
      folder_ = pattern;
    }
    std::ofstream file(folder_ / name, std::ios::binary);
    if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
      throw Refused{(folder_ / name).string() + " cannot be written: make room there, or set TMPDIR to another folder."};
    names_.push_back(name);
  }
  /// The argument with the path of such a file in place of its name: NAME, or NAME:PART of a file of weights.
  std::string path_of(const std::string& argument) {
    for (const std::string& name : names_)
      if (argument == name || argument.starts_with(name + ":")) {
        used_ = true;
        return (folder_ / argument).string();
      }
    return argument;
  }
  bool used() const { return used_; }
  /// Names in place of paths that are gone when this is read.
  std::string with_names(std::string text) const {
    if (folder_.empty()) return text;
    const std::string path = folder_.string() + "/";
    for (std::size_t at = 0; (at = text.find(path, at)) != std::string::npos;) text.erase(at, path.size());
    return text;
  }

 private:
  fs::path folder_;
  std::vector<std::string> names_;
  bool used_ = false;
};

/// Arrays of an answer: their entries in its line, and the bytes behind it.
class AnswerArrays {
 public:
  explicit AnswerArrays(const std::vector<std::string>* wanted) : wanted_(wanted) {}

  template <class T>
  void add(const char* of, const std::string& key, const Shape& shape, std::span<const T> data) {
    if (wanted_ && std::ranges::none_of(*wanted_, [&](const std::string& start) { return key.starts_with(start); })) return;
    headers_.push_back(npy_header(shape, npy_descr(data.data())));
    const std::string_view bytes(reinterpret_cast<const char*>(data.data()), data.size_bytes());
    pieces_.push_back(headers_.back());
    pieces_.push_back(bytes);
    entries_.push_back({{"of", of}, {"key", key}, {"bytes", headers_.back().size() + bytes.size()}});
  }
  void add(const char* of, const TraceArray& array) {
    if (array.is_complex())
      add(of, array.key, array.shape, std::span<const std::complex<double>>(*array.complex));
    else
      add(of, array.key, array.shape, std::span<const double>(*array.real));
    if (!array.steps.empty())
      add(of, "step/" + array.key, {static_cast<std::int64_t>(array.steps.size())}, std::span<const std::int64_t>(array.steps));
  }
  const Json& entries() const { return entries_; }
  const std::vector<std::string_view>& pieces() const { return pieces_; }

 private:
  const std::vector<std::string>* wanted_;
  Json entries_ = Json::array();
  std::deque<std::string> headers_;
  std::vector<std::string_view> pieces_;
};

std::vector<std::string> texts_of(const Json& request, const std::string& key) {
  std::vector<std::string> texts;
  const Json& list = request.at(key);
  if (!list.is_array() || !std::ranges::all_of(list, [](const Json& one) { return one.is_string(); }))
    throw Refused{"\"" + key + "\" of the request is no list of texts; give one, as in [\"run\", \"lstm\"]."};
  for (const Json& one : list) texts.push_back(one.get<std::string>());
  return texts;
}

/// The files that the line lists, all of which are read even where one is refused, so that the next request is found.
void take_files(const Json& request, WireInput& input, BroughtFiles& files) {
  if (!request.contains("files")) return;
  const Json& list = request.at("files");
  const auto sized = [](const Json& one) {
    return one.is_object() && one.contains("bytes") && one.at("bytes").is_number_unsigned() && one.contains("name") &&
           one.at("name").is_string();
  };
  if (!list.is_array() || !std::ranges::all_of(list, sized))
    throw Refused{"\"files\" of the request is no list of {\"name\": ..., \"bytes\": ...}; what follows it is read as the next request."};
  std::string problem;
  for (const Json& one : list) {
    const std::string name = one.at("name").get<std::string>();
    const auto bytes = one.at("bytes").get<std::uint64_t>();
    if (problem.empty() && (name.empty() || name.starts_with(".") || name.starts_with("-") || name.find('/') != std::string::npos ||
                            name.find('\0') != std::string::npos || name.size() > 200))
      problem = "the file \"" + printable(name) + "\" of the request has no plain name; give one as input.npz.";
    if (problem.empty() && bytes > most_array_bytes())
      problem = "the file " + name + " of the request has " + bytes_text(static_cast<double>(bytes)) +
                ", more than a quarter of this computer's memory; give its path instead.";
    std::string contents;
    if (!input.take(bytes, problem.empty() ? &contents : nullptr)) throw Refused{"the request ends before its file " + name + " does."};
    if (problem.empty()) files.add(name, contents);
  }
  if (!problem.empty()) throw Refused{problem};
}

/// "reclab: " goes, with which a line on standard error begins.
std::string sentence_in(std::string error) {
  while (!error.empty() && error.back() == '\n') error.pop_back();
  const std::size_t line = error.rfind("\nreclab: ");
  if (line != std::string::npos) error.erase(line + 1, 8);
  return error.starts_with("reclab: ") ? error.substr(8) : error;
}

/// The end of the protocol's pipes: standard input is empty for all that is carried out, and what is printed past std::cout goes to
/// standard error.
struct StandardPipes {
  int input = -1, output = -1;
  StandardPipes() : input(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)), output(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
    const int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input < 0 || output < 0 || none < 0) throw std::system_error(errno, std::generic_category(), "standard streams");
    dup2(none, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    close(none);
    constexpr int large = 1 << 20;
    static_cast<void>(fcntl(output, F_SETPIPE_SZ, large));  // fewer turns of writer and reader; where it is refused it stays as it is
  }
  ~StandardPipes() {
    close(input);
    close(output);
  }
  StandardPipes(const StandardPipes&) = delete;
  StandardPipes& operator=(const StandardPipes&) = delete;
};

}  // namespace

const PresetLibrary& RunServer::presets_with(const std::string& id) {
  const auto has = [&] { return std::ranges::any_of(presets_->presets(), [&](const Preset& preset) { return preset.id == id; }); };
  if (!presets_ || !has()) presets_ = std::make_unique<PresetLibrary>(library());
  return *presets_;
}

int RunServer::operator()(const RunOptions& options, Interrupt& interrupt) {
  if (options.csv && options.folder.empty()) usage_error("--csv", "needs --export DIR, the folder to write to.");
  RunRequest request = request_of(options, presets_with(options.id));
  take_sizes(options, request, false);
  const auto begin = std::chrono::steady_clock::now();
  RunResult result = reclab::run(builtin_registry(), request, {}, interrupt.token(), {}, &standing_);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!options.folder.empty()) export_run(result, options.folder, options.csv);
  const RunInfo& info = result.trace->info;
  const bool finished = info.outcome == Outcome::finished;
  if (!finished) std::cerr << "reclab: " << one_line(info.sentence) << '\n';
  result_ = std::move(result);
  return finished ? 0 : 1;
}

int serve(Interrupt& interrupt, const CarryOut& carry_out) {
  interrupt.enter(Interrupt::Phase::writing);  // a signal ends it between two requests
  interrupt.watch();
  const StandardPipes pipes;
  WireInput input(pipes.input, interrupt.token());
  RunServer runs;
  while (!interrupt.token().stop_requested()) {
    const auto line = input.line(longest_line);
    if (!line) break;
    if (!line->too_long && line->text.find_first_not_of(" \t\r") == std::string::npos) continue;
    Json answer = {{"id", nullptr}, {"status", 2}, {"output", ""}, {"error", ""}};
    std::optional<AnswerArrays> arrays;
    std::vector<std::string> wanted;
    runs.forget();
    try {
      BroughtFiles files;  // gone before the answer is written, after which the program may be killed
      if (line->too_long) throw Refused{"the request is longer than " + bytes_text(longest_line) + "; send large data as files."};
      const Json request = Json::parse(line->text, nullptr, false);
      if (!request.is_object())
        throw Refused{"the request is no object of JSON; give one, as in {\"id\": 1, \"command\": [\"run\", \"lstm\"]}."};
      if (request.contains("id")) answer["id"] = request.at("id");
      take_files(request, input, files);
      for (const auto& [key, value] : request.items())
        if (key != "id" && key != "command" && key != "files" && key != "want")
          throw Refused{"the request has \"" + printable(key) + "\"; it takes id, command, files and want."};
      if (!request.contains("command")) throw Refused{"the request has no \"command\"; give one, as in [\"run\", \"lstm\"]."};
      std::vector<std::string> arguments = texts_of(request, "command");
      if (request.contains("want")) wanted = texts_of(request, "want");
      for (std::string& argument : arguments) argument = files.path_of(argument);
      if (files.used() && std::ranges::find(arguments, "--export") != arguments.end())
        throw Refused{"--export would name files that come with the request and are gone after it; give their paths instead."};
      const Captured captured;
      answer["status"] = carry_out(arguments, runs);
      answer["output"] = files.with_names(captured.output());
      answer["error"] = files.with_names(sentence_in(captured.error()));
      if (const auto& result = runs.result()) {
        answer["seconds"] = runs.seconds();
        answer["manifest"] = Json::parse(files.with_names(manifest_json(*result->trace, {})));
        arrays.emplace(request.contains("want") ? &wanted : nullptr);
        const Trace& trace = *result->trace;
        if (!trace.find("step"))
          arrays->add("trace", "step", {static_cast<std::int64_t>(trace.steps.size())}, std::span<const std::int64_t>(trace.steps));
        if (!trace.find("time"))
          arrays->add("trace", "time", {static_cast<std::int64_t>(trace.time.size())}, std::span<const double>(trace.time));
        for (const auto& array : trace.arrays()) arrays->add("trace", *array);
        for (const auto& [key, array] : result->state) arrays->add("state", array);
        answer["arrays"] = arrays->entries();
      }
    } catch (const Refused& refused) {
      answer["error"] = refused.sentence;
    }
    const std::string text = answer.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::vector<std::string_view> pieces{text};
    if (arrays) pieces.insert(pieces.end(), arrays->pieces().begin(), arrays->pieces().end());
    if (!write_all(pipes.output, pieces)) break;
  }
  return interrupt.token().stop_requested() ? interrupted_status : 0;
}

int options_of(const OptionsOptions& options, CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands({})) names.push_back(one->get_name());
  if (std::ranges::find(names, options.command) == names.end())
    usage_error("the command", "is \"" + options.command + "\"; it is one of " + joined(names) + ".");
  Json json = Json::array();
  TextTable table(2);
  for (const CLI::Option* option : app.get_subcommand(options.command)->get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    const bool flag = option->get_items_expected_max() == 0;
    const bool several = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    json.push_back({{"option", name},
                    {"argument", flag ? Json() : Json(option->get_type_name())},
                    {"several", several && !flag},
                    {"text", option->get_description()}});
    table.row({name, flag ? "" : option->get_type_name(), option->get_description()});
  }
  if (options.json)
    std::cout << json.dump(2) << '\n';
  else
    table.print(std::cout);
  return 0;
}

}  // namespace reclab::cli
