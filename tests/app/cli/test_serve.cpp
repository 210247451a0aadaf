// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab serve --stdio` as a program uses it: answers have what the same line has, and a bad request costs its own answer alone.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "files/npy.h"
#include "files/npz.h"
#include "reclab.h"
#include "scratch.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;
using namespace reclab::test;
using Json = nlohmann::ordered_json;

namespace {

struct Answer {
  Json line;
  std::map<std::string, NpyArray> trace, state;
  std::string error() const { return line.at("error").get<std::string>(); }
  int status() const { return line.at("status").get<int>(); }
};

/// Requests in a file, and what a server answers to them.
class Session {
 public:
  void ask(const Json& request, const std::vector<std::string>& files = {}) {
    input_ += request.dump() + "\n";
    for (const std::string& file : files) input_ += file;
  }
  void ask_text(const std::string& text) { input_ += text; }
  void command(const std::vector<std::string>& words) { ask({{"id", ++id_}, {"command", words}}); }

  std::vector<Answer> answers(Process::Options options = {}) const {
    const Scratch scratch;
    options.input = scratch.file("requests", input_).string();
    const Result result = reclab_says({"serve", "--stdio"}, options);
    CHECK_SAYS(result.status == 0 && result.error.empty(), std::to_string(result.status) + ": " + result.error);
    std::vector<Answer> all;
    for (std::size_t at = 0; at < result.output.size();) {
      const std::size_t end = result.output.find('\n', at);
      Answer answer{Json::parse(result.output.substr(at, end - at)), {}, {}};
      at = end + 1;
      if (answer.line.contains("arrays"))
        for (const Json& entry : answer.line.at("arrays")) {
          const auto bytes = entry.at("bytes").get<std::size_t>();
          auto& of = entry.at("of") == "state" ? answer.state : answer.trace;
          of[entry.at("key").get<std::string>()] = parse_npy(std::string_view(result.output).substr(at, bytes), "answer");
          at += bytes;
        }
      all.push_back(std::move(answer));
    }
    return all;
  }

 private:
  std::string input_;
  int id_ = 0;
};

Json with_files(const Json& command, const std::vector<std::pair<std::string, std::string>>& files) {
  Json request = {{"command", command}, {"files", Json::array()}};
  for (const auto& [name, contents] : files) request["files"].push_back({{"name", name}, {"bytes", contents.size()}});
  return request;
}

void check_same(const std::map<std::string, NpyArray>& answered, const fs::path& file) {
  const NpzFile exported(file);
  CHECK_EQUAL(answered.size(), exported.names().size());
  for (const std::string& name : exported.names()) {
    const NpyArray wanted = exported.read(name);
    CHECK_SAYS(answered.contains(name), name);
    const NpyArray& found = answered.at(name);
    CHECK_SAYS(found.shape == wanted.shape && found.dtype == wanted.dtype, name);
    CHECK_SAYS(found.real.size() == wanted.real.size() && std::memcmp(found.real.data(), wanted.real.data(), 8 * wanted.real.size()) == 0,
               name);
    CHECK_SAYS(found.complex.size() == wanted.complex.size() &&
                   std::memcmp(found.complex.data(), wanted.complex.data(), 16 * wanted.complex.size()) == 0,
               name);
  }
}

const std::vector<std::string> small{"run", "lstm", "--set", "width=5", "--length", "30"};

}  // namespace

TEST_CASE("an answer has the arrays, the state and the manifest of the export, to the bit, and the next of another model too") {
  const Scratch scratch;
  Session session;
  const std::vector<std::vector<std::string>> lines{
      small, small, {"run", "lru", "--task", "impulse", "--length", "40"}, {"run", "gru", "--set", "width=5", "--seed", "3"}, small};
  for (const auto& line : lines) session.command(line);
  const auto answers = session.answers();
  CHECK_EQUAL(answers.size(), lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Answer& answer = answers[i];
    CHECK_SAYS(answer.status() == 0 && answer.error().empty() && answer.line.at("output") == "", answer.error());
    CHECK_EQUAL(answer.line.at("id").get<std::size_t>(), i + 1);
    const fs::path folder = scratch / std::to_string(i);
    std::vector<std::string> line = lines[i];
    line.insert(line.end(), {"--export", folder.string()});
    good(line);
    check_same(answer.trace, folder / "trace.npz");
    check_same(answer.state, folder / "state.npz");
    Json manifest = Json::parse(contents(folder / "manifest.json")), answered = answer.line.at("manifest");
    for (const char* key : {"wall_seconds", "bytes", "files"}) manifest.erase(key), answered.erase(key);
    CHECK_SAYS(manifest == answered, answered.dump(1) + manifest.dump(1));
  }
}

TEST_CASE("a bad request is answered with one sentence, and the next one as if there had been none") {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"run lstm", "no object of JSON"},
      {"[1, 2", "no object of JSON"},
      {"[]", "no object of JSON"},
      {std::string(100'000, '['), "no object of JSON"},
      {"\xff\xfe\x01", "no object of JSON"},
      {R"({"id": 1})", "no \"command\""},
      {R"({"command": "run lstm"})", "no list of texts"},
      {R"({"command": ["run", 3]})", "no list of texts"},
      {R"({"command": ["run", "lstm"], "want": "output"})", "no list of texts"},
      {R"({"command": [], "files": []})", "give a command"},
      {R"({"command": ["run", "lstm"], "wants": []})", "takes id, command, files and want"},
      {R"({"command": ["rnn", "lstm"]})", "did you mean run"},
      {R"({"command": ["run", "lstn"]})", "lstm"},
      {R"({"command": ["run", "lstm", "--lenght", "3"]})", "did you mean --length"},
      {R"({"command": ["run", "lstm", "--set", "width=-1"]})", "width"},
      {R"({"command": ["run", "lstm", "--set", ""]})", "is empty"},
      {R"({"command": ["run", "lstm", "--input", "/nowhere/a.csv"]})", "/nowhere/a.csv"},
      {R"({"command": ["serve", "--stdio"]})", "give another command"},
      {R"({"command": ["train", "lstm", "--threads", "2"]})", "no option \"--threads\""},
      {R"({"command": ["stream", "lstm", "--source", "stdin", "--steps", "10"]})", ""},
      {R"({"command": ["run", "lstm"], "files": 3})", "no list of {"},
      {R"({"command": ["run", "lstm"], "files": [{"name": "a", "bytes": -1}]})", "no list of {"},
      {R"({"command": ["run", "lstm"], "files": [{"name": "../a", "bytes": 2}]})"
       "\n{{",
       "no plain name"},
      {R"({"command": ["run", "lstm"], "files": [{"name": "", "bytes": 2}]})"
       "\n\n\n",
       "no plain name"},
      {R"({"command": ["run", "lstm", "--input", "a.npy"], "files": [{"name": "a.npy", "bytes": 3}]})"
       "\nabc",
       "a.npy"},
      {R"({"command": ["run", "lstm", "--input", "a.csv", "--export", "out"], "files": [{"name": "a.csv", "bytes": 4}]})"
       "\n1\n2\n",
       "--export would name files"}};
  Session session;
  for (const auto& [text, sentence] : bad) {
    session.ask_text(
        text + (text.ends_with("abc") || text.find("\"bytes\": 2}") != std::string::npos || text.find("\"bytes\": 4}") != std::string::npos
                    ? ""
                    : "\n"));
    session.command(small);
  }
  const auto answers = session.answers();
  CHECK_EQUAL(answers.size(), 2 * bad.size());
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const Answer &refused = answers[2 * i], &next = answers[2 * i + 1];
    CHECK_SAYS(refused.status() != 0 && !refused.line.contains("arrays"), bad[i].first);
    CHECK_SAYS(!refused.error().empty() && std::ranges::count(refused.error(), '\n') == 0 && refused.error().size() < 1000,
               refused.error());
    CHECK_SAYS(refused.error().find(bad[i].second) != std::string::npos, refused.error() + " does not say " + bad[i].second);
    CHECK_SAYS(refused.error().find("/reclab-serve-") == std::string::npos, refused.error());
    CHECK_SAYS(next.status() == 0 && next.trace.at("output").real == answers[1].trace.at("output").real, next.error());
  }
}

TEST_CASE("files that come with a request are read under their names, and are gone after it") {
  const Scratch scratch, temporary;
  const std::string csv = "a,b\n1,2\n2,1\n3,5\n4,4\n2,3\n1,1\n5,2\n3,3\n4,1\n2,5\n1,4\n3,2\n5,1\n2,2\n4,3\n";
  const std::string by_path = scratch.file("mine.csv", csv).string();
  const fs::path learned = scratch / "learned";
  trained({"gru", "--set", "width=4", "--input", by_path, "--window", "2", "--steps", "2", "--batch", "2", "--export", learned.string()});
  const std::string weights = contents(learned / "weights.npz");

  Session session;
  session.ask(with_files({"run", "gru", "--input", "mine.csv", "--weights", "learned.npz", "--sizes", "weights"},
                         {{"mine.csv", csv}, {"learned.npz", weights}}),
              {csv, weights});
  session.ask(with_files({"run", "gru", "--set", "width=3", "--input", "mine.csv"}, {{"mine.csv", csv}, {"of no use", "abc\n"}}),
              {csv, "abc\n"});
  session.command({"run", "gru", "--input", by_path, "--weights", (learned / "weights.npz").string(), "--sizes", "weights"});
  session.command({"run", "gru", "--input", "mine.csv"});
  const auto answers = session.answers({.environment = {{"TMPDIR", temporary.path().string()}}});
  CHECK_EQUAL(answers.size(), std::size_t{4});
  for (int i = 0; i < 3; ++i) CHECK_SAYS(answers[static_cast<std::size_t>(i)].status() == 0, answers[static_cast<std::size_t>(i)].error());
  const std::string command = answers[0].line.at("manifest").at("command").get<std::string>();
  CHECK_SAYS(command.starts_with("reclab run gru ") && command.find(" --input mine.csv ") != std::string::npos &&
                 command.find(" --weights learned.npz") != std::string::npos,
             command);
  CHECK_EQUAL(answers[0].line.at("manifest").at("input").at("name").get<std::string>(), std::string("mine.csv"));
  CHECK(answers[0].trace.at("output").real == answers[2].trace.at("output").real);
  CHECK_EQUAL(answers[3].status(), 2);
  CHECK(fs::is_empty(temporary.path()));
}

TEST_CASE("of a run those arrays are sent that are wanted") {
  Session session;
  Json request = {{"id", "x"}, {"command", small}, {"want", {"gate/0/forget", "state/"}}};
  session.ask(request);
  request["want"] = Json::array();
  session.ask(request);
  const auto answers = session.answers();
  std::set<std::string> keys;
  for (const auto& [key, array] : answers.at(0).trace) keys.insert(key);
  CHECK((keys == std::set<std::string>{"gate/0/forget", "state/0/c", "state/0/h"}));
  CHECK(answers[1].trace.empty() && answers[1].state.empty() && answers[1].line.at("arrays").empty());
  CHECK(answers[1].line.at("manifest").at("arrays").size() > 3);
}

TEST_CASE("every other command is carried out with what it prints") {
  const Scratch scratch;
  const std::string trained_in = (scratch / "t").string(), cells = (scratch / "s").string();
  const std::string plan = R"({"base": "reclab train lstm --set width=4 --task adding --length 10 --steps 2 --batch 4 --held-out 8",
                               "axes": {"seed": [1, 2]}, "measure": ["loss"]})";
  const std::vector<std::string> train_line{"train",   "lstm", "--set",   "width=4", "--task",     "adding", "--length", "10",
                                            "--steps", "3",    "--batch", "4",       "--held-out", "8",      "--export"};
  const std::vector<std::string> evaluate_line{"evaluate", "lstm", "--set",       "width=4", "--task", "adding",
                                               "--length", "10",   "--sequences", "20",      "--json"};
  Session session;
  std::vector<std::string> line = train_line;
  line.push_back(trained_in);
  session.command(line);
  session.command(evaluate_line);
  session.ask(with_files({"sweep", "plan.json", "--into", cells}, {{"plan.json", plan}}), {plan});
  session.command({"sweep", "run", cells});
  session.command({"sweep", "collect", cells});
  session.command({"show", "lstm", "--json"});
  session.command({"kinds", "--json"});
  session.command({"options", "train", "--json"});
  session.command({"run", "--help"});
  const auto answers = session.answers();
  CHECK_EQUAL(answers.size(), std::size_t{9});
  for (const Answer& answer : answers) CHECK_SAYS(answer.status() == 0 && answer.error().empty(), answer.error());
  CHECK(fs::exists(fs::path(trained_in) / "weights.npz"));
  CHECK_EQUAL(answers[1].line.at("output").get<std::string>(), good(evaluate_line));
  CHECK_EQUAL(std::ranges::count(answers[4].line.at("output").get<std::string>(), '\n'), 3);
  CHECK_EQUAL(answers[5].line.at("output").get<std::string>(), good({"show", "lstm", "--json"}));
  CHECK_EQUAL(answers[6].line.at("output").get<std::string>(), good({"kinds", "--json"}));
  bool steps = false;
  for (const Json& row : Json::parse(answers[7].line.at("output").get<std::string>())) steps = steps || row.at("option") == "--steps";
  CHECK(steps);
  CHECK(answers[8].line.at("output").get<std::string>().find("--input") != std::string::npos);
}

TEST_CASE("an input that ends within a request is said, and ends the server") {
  Session session;
  session.command(small);
  session.ask(with_files({"run", "lstm", "--input", "a.csv"}, {{"a.csv", "1\n2\n3\n"}}), {"1\n2"});
  const auto answers = session.answers();
  CHECK_EQUAL(answers.size(), std::size_t{2});
  CHECK_SAYS(answers[1].status() == 2 && answers[1].error().find("before its file a.csv") != std::string::npos, answers[1].error());
}

TEST_CASE("names of the reference implementation are on the card") {
  const Json card = Json::parse(good({"show", "lstm", "--set", "layers=2", "--json"}));
  std::set<std::string> names;
  for (const Json& row : card.at("parameters"))
    for (const Json& reference : row.at("reference")) names.insert(reference.at("name").get<std::string>());
  CHECK(names.contains("weight_ih_l0") && names.contains("bias_hh_l1"));
}
