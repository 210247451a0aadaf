// SPDX-License-Identifier: GPL-3.0-or-later
// The command line as a script sees it: the built reclab is started, and what it says, writes and returns is read.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "files/npz.h"
#include "load.h"
#include "places.h"
#include "reclab.h"
#include "safetensors.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;
using reclab::test::contents;
using reclab::test::Process;
using reclab::test::reclab_says;
using reclab::test::Result;
using Json = nlohmann::json;

namespace {

const std::vector<std::string> shipped{"elman", "lstm", "gru", "lru", "s4d", "mamba", "linear-attention", "slstm"};

std::string joined(const std::vector<std::string>& arguments) {
  std::string text = "reclab";
  for (const std::string& argument : arguments) text += " " + argument;
  return text;
}

Result good(const std::vector<std::string>& arguments) {
  const Result result = reclab_says(arguments);
  CHECK_SAYS(result.status == 0, joined(arguments) + ": " + std::to_string(result.status) + ": " + result.error);
  CHECK_SAYS(result.error.empty(), joined(arguments) + ": " + result.error);
  return result;
}

/// Exit status 2, nothing on standard output, one line on standard error that has all the texts.
void refused(const std::vector<std::string>& arguments, const std::vector<std::string>& texts, const Process::Options& options = {}) {
  const Result result = reclab_says(arguments, options);
  const std::string all = joined(arguments) + " -> " + std::to_string(result.status) + ": " + result.error;
  CHECK_SAYS(result.status == 2, all);
  CHECK_SAYS(result.output.empty(), all + result.output);
  CHECK_SAYS(result.error.starts_with("reclab: ") && result.error.ends_with("\n") && std::ranges::count(result.error, '\n') == 1, all);
  for (const std::string& text : texts) CHECK_SAYS(result.error.find(text) != std::string::npos, all + " does not say " + text);
}

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "reclab-cli-XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return *this / name;
  }
  bool empty() const { return fs::is_empty(path_); }

 private:
  fs::path path_;
};

std::size_t columns_of(const std::string& line) {
  return static_cast<std::size_t>(std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

TEST_CASE("list shows every preset, as a table and as JSON") {
  const std::string table = good({"list"}).output;
  const Json json = Json::parse(good({"list", "--json"}).output);
  CHECK(json.is_array());
  for (const std::string& id : shipped) {
    CHECK_SAYS(table.find("\n" + id + " ") != std::string::npos, id);
    const auto found = std::ranges::find_if(json, [&](const Json& entry) { return entry.at("id") == id; });
    CHECK_SAYS(found != json.end(), id);
    for (const char* key : {"id", "title", "family", "year", "forms", "gates", "states", "properties", "descends_from"})
      CHECK_SAYS(found->contains(key), id + " has no " + key);
    CHECK(found->at("forms").at(0) == "sequential");
    CHECK(!found->at("states").empty() && found->at("year").get<int>() > 1900);
  }
  for (const Json& entry : Json::parse(good({"list", "--family", "enhanced", "--json"}).output)) CHECK(entry.at("family") == "enhanced");
  refused({"list", "--family", "enhancd"}, {"--family", "enhancd", "enhanced"});
}

TEST_CASE("show and list say what a preset descends from, and show what descends from it") {
  const Json lstm = Json::parse(good({"show", "lstm", "--json"}).output);
  CHECK_EQUAL(lstm.at("descends_from").size(), std::size_t{1});
  CHECK(lstm.at("descends_from").at(0).at("id") == "elman" && !lstm.at("descends_from").at(0).at("changed").get<std::string>().empty());
  const auto gru = std::ranges::find_if(lstm.at("led_to"), [](const Json& entry) { return entry.at("id") == "gru"; });
  CHECK(gru != lstm.at("led_to").end());
  const Json of_gru = Json::parse(good({"show", "gru", "--json"}).output).at("descends_from");
  CHECK(of_gru.at(0).at("changed") == gru->at("changed"));
  const Json list = Json::parse(good({"list", "--json"}).output);
  CHECK(std::ranges::find_if(list, [](const Json& entry) { return entry.at("id") == "gru"; })->at("descends_from") == of_gru);
  const std::string card = good({"show", "gru"}).output;
  const std::size_t lineage = card.find("Lineage\n  from  lstm  ");
  CHECK_SAYS(lineage != std::string::npos && card.find(gru->at("changed").get<std::string>(), lineage) != std::string::npos, card);
}

TEST_CASE("properties are told by list and show, and follow settings") {
  const Json list = Json::parse(good({"list", "--json"}).output);
  const auto of = [&](const std::string& id) {
    return std::ranges::find_if(list, [&](const Json& entry) { return entry.at("id") == id; })->at("properties");
  };
  CHECK(of("lru") ==
        Json::parse(R"({"linear": true, "gated": false, "time_invariant": true, "diagonal": true, "complex": true, "growing": false})"));
  CHECK(of("lstm").at("linear") == false && of("lstm").at("gated") == true);
  CHECK(Json::parse(good({"show", "elman", "--json", "--set", "activation=identity"}).output).at("properties").at("linear") == true);
  const std::string card = good({"show", "gru"}).output;
  CHECK_SAYS(card.find("Properties\n  nonlinear, gated\n") != std::string::npos, card);
}

TEST_CASE("list fits a terminal of 100 columns, whatever a preset is called") {
  Folder folder;
  std::string title;
  for (int i = 0; i < 60; ++i) title += "é";
  folder.write(
      "long.json",
      "{\"schema\": 1, \"id\": \"long-title\", \"architecture\": \"lstm\", \"title\": \"" + title +
          "\", \"family\": \"gated\", \"idea\": \"An idea.\", \"source\": {\"authors\": \"A\", \"year\": 1997, \"title\": \"T\"}}");
  Process::Options options;
  options.environment = {{"RECLAB_PRESETS", folder / ""}};
  const Result result = reclab_says({"list"}, options);
  CHECK_SAYS(result.status == 0 && result.error.empty(), result.error);
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) CHECK_SAYS(columns_of(line) <= 100, line);
  CHECK_SAYS(result.output.find("\nlong-title ") != std::string::npos && result.output.find("éé...") != std::string::npos, result.output);
  for (const char* text : {"\ngated\n", "chunkwise", "1997"}) CHECK_SAYS(result.output.find(text) != std::string::npos, result.output);
}

TEST_CASE("a card of settings that need several inputs is shown for as many") {
  for (const auto& [id, set] : {std::pair("ode-rnn", "masked=true"), std::pair("relit", "reset_column=2"),
                                std::pair("rg-lru", "reset_column=4"), std::pair("hawk", "reset_column=1")}) {
    const Json json = Json::parse(good({"show", id, "--set", set, "--inputs", "4", "--json"}).output);
    CHECK_SAYS(json.at("properties") == Json::parse(good({"show", id, "--inputs", "4", "--json"}).output).at("properties"), id);
    CHECK(good({"show", id, "--set", set, "--inputs", "4"}).output.find("Parameters for 4 inputs") != std::string::npos);
    refused({"show", id, "--set", set, "--inputs", "1"}, {std::string(set).substr(0, std::string(set).find('=')), "column"});
  }
}

TEST_CASE("show is a card of 100 columns, and its JSON has the shapes of what runs") {
  Folder folder;
  for (const std::string& id : shipped) {
    std::istringstream card(good({"show", id}).output);
    for (std::string line; std::getline(card, line);) CHECK_SAYS(columns_of(line) <= 100, id + ": " + line);

    const Json json = Json::parse(good({"show", id, "--inputs", "3", "--json"}).output);
    for (const char* key : {"id", "title", "family", "idea", "equations", "hyper", "parameters", "states", "gates", "spectrum", "forms",
                            "source", "notes", "properties", "descends_from", "led_to"})
      CHECK_SAYS(json.contains(key), id + " has no " + key);
    const std::string input = folder.write("three.csv", "a,b,c\n1,2,3\n4,1,6\n2,8,1\n");
    good({"run", id, "--input", input, "--export", folder / id, "--record", "param,output"});
    const NpzFile trace(folder / (id + "/trace.npz"));
    for (const Json& parameter : json.at("parameters")) {
      const std::string key = "param/" + parameter.at("name").get<std::string>();
      CHECK_SAYS(trace.has(key), id + ": " + key);
      CHECK_SAYS(trace.read(key).shape == parameter.at("shape").get<Shape>(), id + ": " + key);
    }
    CHECK_EQUAL(json.at("head").size(), std::size_t{2});
    for (const Json& parameter : json.at("head")) {
      CHECK(!trace.has("param/" + parameter.at("name").get<std::string>()));
      CHECK(parameter.at("when").get<std::string>().find("the sequence has a target") != std::string::npos);
    }
  }
  const Json wide = Json::parse(good({"show", "lstm", "--set", "width=5", "--json"}).output);
  CHECK(std::ranges::any_of(wide.at("parameters"), [](const Json& parameter) { return parameter.at("shape").at(0) == 20; }));
}

TEST_CASE("run writes a manifest, a trace with the keys of the contract and a state that a second run starts from") {
  Folder folder;
  for (const std::string& id : shipped) {
    const std::string out = folder / id;
    const Result result = good({"run", id, "--length", "40", "--set", "layers=2", "--export", out, "--csv"});
    CHECK_SAYS(result.output.find(out) != std::string::npos && result.output.find("trace.npz") != std::string::npos, result.output);
    const Json manifest = Json::parse(contents(out + "/manifest.json"));
    CHECK_SAYS(manifest.dump().find("\"" + id + "\"") != std::string::npos, manifest.dump());
    const NpzFile trace(out + "/trace.npz");
    const auto all = trace.names();
    for (const char* key : {"input", "output", "time", "gradient/input", "spectrum/0", "spectrum/1"})
      CHECK_SAYS(trace.has(key), id + ": " + key);
    CHECK_EQUAL(trace.read("time").shape.at(0), 40);
    for (const char* prefix : {"state/0/", "state/1/", "gradient/state/0/", "gradient/param/", "param/"})
      CHECK_SAYS(std::ranges::any_of(all, [&](const std::string& key) { return key.starts_with(prefix); }), id + ": " + prefix);
    CHECK_SAYS(trace.read("spectrum/0").is_complex(), id);
    std::size_t tables = 0;
    for (const auto& entry : fs::directory_iterator(out)) tables += entry.path().extension() == ".csv";
    // step and time are columns of every table.
    CHECK_EQUAL(tables + 2, all.size());
    good({"run", id, "--length", "40", "--set", "layers=2", "--state", out + "/state.npz", "--weights", out + "/trace.npz", "--export",
          out + "-again"});
    const NpzFile again(out + "-again/trace.npz");
    CHECK_SAYS(again.read("output").real != trace.read("output").real, id + ": the state changed nothing");
  }
}

TEST_CASE("the same seed gives the same bytes, another seed others") {
  Folder folder;
  for (const std::string& id : shipped) {
    for (const char* name : {"a", "b"}) good({"run", id, "--length", "30", "--seed", "5", "--export", folder / name});
    good({"run", id, "--length", "30", "--seed", "6", "--export", folder / "c"});
    CHECK_SAYS(contents(folder / "a/trace.npz") == contents(folder / "b/trace.npz"), id);
    CHECK_SAYS(contents(folder / "a/trace.npz") != contents(folder / "c/trace.npz"), id);
  }
}

TEST_CASE("weights of an export run as they ran") {
  Folder folder;
  for (const std::string& id : shipped) {
    good({"run", id, "--task", "sine", "--length", "30", "--seed", "5", "--export", folder / "a"});
    const std::string task = folder / "task.csv";
    good({"task", "sine", "--length", "30", "--seed", "5", "--export", task});
    good({"run", id, "--task", "sine", "--length", "30", "--seed", "5", "--weights", folder / "a/trace.npz", "--export", folder / "b"});
    CHECK_SAYS(NpzFile(folder / "a/trace.npz").read("output").real == NpzFile(folder / "b/trace.npz").read("output").real, id);
  }
}

TEST_CASE("a file that is cut at an odd step and continued from state.npz gives the bytes of the whole, for every preset") {
  Folder folder;
  good({"task", "noise", "--length", "101", "--seed", "4", "--export", folder / "all.csv"});
  std::vector<std::string> lines;
  std::istringstream text(contents(folder / "all.csv"));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  CHECK_EQUAL(lines.size(), std::size_t{102});
  const auto part = [&](const std::string& name, std::size_t first, std::size_t last) {
    std::string rows = lines[0] + "\n";
    for (std::size_t i = first; i < last; ++i) rows += lines[i + 1] + "\n";
    return folder.write(name, rows);
  };
  const std::string first = part("first.csv", 0, 37), second = part("second.csv", 37, 101);
  for (const Json& preset : Json::parse(good({"list", "--json"}).output)) {
    const std::string id = preset.at("id");
    const auto run = [&](const std::string& input, const std::string& out, std::vector<std::string> more = {}) {
      std::vector<std::string> arguments{"run", id, "--input", input, "--standardise", "no", "--record", "output,state", "--export", out};
      arguments.insert(arguments.end(), more.begin(), more.end());
      good(arguments);
    };
    run(folder / "all.csv", folder / "all");
    run(first, folder / "first");
    reclab::test::npz_to_safetensors(folder / "first/state.npz", "", folder / "state.safetensors");
    for (const std::string& state : {folder / "first/state.npz", folder / "state.safetensors"}) {
      run(second, folder / "second", {"--state", state});
      const Json manifest = Json::parse(contents(folder / "second/manifest.json"));
      const auto backward = [](const Json& layer) { return layer.at("backward").get<bool>(); };
      if (std::any_of(manifest.at("each_layer").begin(), manifest.at("each_layer").end(), backward)) {
        CHECK_SAYS(manifest.at("notes").dump().find("run backward begin at the last step") != std::string::npos, id);
        continue;
      }
      const NpzFile whole(folder / "all/trace.npz"), rest(folder / "second/trace.npz");
      for (const std::string& key : rest.names()) {
        if (key != "output" && !key.starts_with("state/")) continue;
        const NpyArray a = whole.read(key), b = rest.read(key);
        CHECK_EQUAL(b.shape.at(0), 64);
        CHECK_SAYS(std::equal(b.real.rbegin(), b.real.rend(), a.real.rbegin()) &&
                       std::equal(b.complex.rbegin(), b.complex.rend(), a.complex.rbegin()),
                   id + ": " + key);
      }
      CHECK_SAYS(contents(folder / "second/state.npz") == contents(folder / "all/state.npz"), id);
      CHECK(manifest.at("state") == state);
    }
  }
}

TEST_CASE("safetensors are weights, whatever the file is called, and a wrong one is a line") {
  Folder folder, outputs;
  good({"run", "gru", "--length", "30", "--seed", "5", "--export", folder / "a"});
  for (const char* name : {"w.safetensors", "w.npz", "w"}) {
    reclab::test::npz_to_safetensors(folder / "a/trace.npz", "param/", folder / name);
    good({"run", "gru", "--length", "30", "--seed", "5", "--weights", folder / name, "--export", folder / "b"});
    CHECK_SAYS(NpzFile(folder / "a/trace.npz").read("output").real == NpzFile(folder / "b/trace.npz").read("output").real, name);
    CHECK(Json::parse(contents(folder / "b/manifest.json")).at("weights") == folder / name);
    refused({"run", "lstm", "--length", "30", "--weights", folder / name, "--export", outputs / "out"},
            {name, "the entry 0/", "shape", "where the model has"});
    refused({"run", "gru", "--set", "width=16", "--length", "30", "--weights", folder / name, "--export", outputs / "out"},
            {name, "the entry 0/weight_ih has shape [96, ", " where the model has [48, ",
             "the weights were made for width = 32: give --sizes weights to take that from the file."});
    const std::string said = good({"run", "gru", "--set", "width=16", "--length", "30", "--weights", folder / name, "--sizes", "weights",
                                   "--export", folder / "c"})
                                 .output;
    CHECK_SAYS(said.find("The weights set width = 32.") != std::string::npos, said);
    CHECK(NpzFile(folder / "c/trace.npz").has("param/0/weight_hh"));
    CHECK_EQUAL(Json::parse(contents(folder / "c/manifest.json")).at("hyper").at("width").dump(),
                Json::parse(contents(folder / "a/manifest.json")).at("hyper").at("width").dump());
    const std::string command = Json::parse(contents(folder / "c/manifest.json")).at("command");
    CHECK_SAYS(command.find("--set width=32") != std::string::npos, command);
  }
  refused({"run", "gru", "--sizes", "weights"}, {"--sizes", "needs --weights FILE"});
  refused({"run", "gru", "--weights", folder / "w.npz", "--sizes", "file"}, {"--sizes", "preset or weights"});
  const std::string whole = contents(folder / "w.safetensors");
  refused({"run", "gru", "--weights", folder.write("cut.safetensors", whole.substr(0, whole.size() - 8)), "--export", outputs / "out"},
          {"cut.safetensors is cut short: 8 bytes", "again"});
  refused({"run", "gru", "--state", folder.write("text.safetensors", "hello, this is a text"), "--export", outputs / "out"},
          {"text.safetensors is not a safetensors file", "again"});
  CHECK(outputs.empty());
}

TEST_CASE("weights that cannot fit are refused by their shape, before they are read, whatever their size") {
  Folder folder;
  good({"run", "gru", "--task", "noise", "--length", "8", "--record", "param", "--export", folder / "a"});
  std::string bytes = contents(folder / "a/trace.npz");
  const std::string name = "param/0/weight_ih.npy";
  const std::size_t at = bytes.find(name) + name.size() + 128;  // behind the header of the array
  CHECK(at < bytes.size());
  bytes[at] ^= 1;
  const std::string file = folder.write("w.npz", bytes);
  refused({"run", "lstm", "--task", "noise", "--weights", file},
          {"w.npz: the entry 0/weight_ih has shape [96, 1] where the model has [128, 1]"});
  refused({"run", "gru", "--task", "noise", "--weights", file}, {"w.npz: param/0/weight_ih is damaged: its checksum does not agree"});
}

TEST_CASE("run without an export prints what matters") {
  for (const std::string& id : shipped) {
    const std::string summary = good({"run", id, "--length", "50"}).output;
    for (const char* text : {"50 steps", "loss", "spectrum/0", "gradient/state/0/", "memory", "float64"})
      CHECK_SAYS(summary.find(text) != std::string::npos, id + " says nothing of " + text + ": " + summary);
  }
}

TEST_CASE("records can be chosen") {
  Folder folder;
  good({"run", "lstm", "--length", "40", "--record", "state,gate/0/forget", "--every", "4", "--export", folder / "out"});
  const NpzFile trace(folder / "out/trace.npz");
  CHECK(trace.has("gate/0/forget") && !trace.has("gate/0/input") && !trace.has("spectrum/0") && !trace.has("jacobian/0"));
  const std::vector<double> time = trace.read("time").real;
  CHECK_EQUAL(time.size(), std::size_t{11});  // 0, 4, ..., 36 and the last
  CHECK(time.at(1) == 4 && time.at(9) == 36 && time.at(10) == 39);
}

TEST_CASE("the forms agree, and their JSON says so") {
  for (const std::string& id : shipped) {
    const Json json = Json::parse(good({"forms", id, "--length", "300", "--json"}).output);
    const std::string table = good({"forms", id, "--length", "300"}).output;
    for (const char* column : {"form ", "time", "flops", "bytes moved"}) CHECK_SAYS(table.find(column) != std::string::npos, table);
    CHECK(json.at("id") == id && json.at("length") == 300 && json.contains("dtype"));
    CHECK(json.at("forms").at(0).at("form") == "sequential");
    for (const Json& form : json.at("forms")) {
      for (const char* key : {"form", "output_error", "gradient_error", "seconds", "flops", "bytes"})
        CHECK_SAYS(form.contains(key), id + ": " + key);
      for (const char* key : {"seconds", "flops", "bytes"}) CHECK_SAYS(form.at(key).get<double>() > 0.0, id + ": " + form.dump());
      CHECK_SAYS(form.at("output_error").get<double>() <= 1e-9 && form.at("gradient_error").get<double>() <= 1e-9, id + ": " + form.dump());
    }
  }
}

TEST_CASE("bench times forms; its JSON keeps its keys and has the new ones, its CSV everything") {
  const Folder folder;
  const std::string csv = folder / "timing.csv";
  const Json json = Json::parse(
      good({"bench", "linear-attention", "--lengths", "16,32", "--set", "width=16", "--set", "heads=2", "--export", csv, "--json"}).output);
  CHECK(json.at("id") == "linear-attention" && json.at("device") == "cpu" && json.at("dtype") == "f64" && json.at("batch") == 1);
  CHECK(json.at("command").get<std::string>().find("--set width=16") != std::string::npos);
  CHECK(json.at("forms").size() == 3);
  for (const Json& form : json.at("forms")) {
    for (const char* key : {"form", "exponent", "lengths", "seconds", "low", "high"}) CHECK_SAYS(form.contains(key), key);
    for (const char* key : {"low90", "high90", "forward", "backward", "memory", "flops", "bytes", "output_error", "gradient_error"})
      CHECK_SAYS(form.at(key).size() == 2, std::string(key) + form.dump());
    for (const char* key : {"exponent_low", "exponent_high", "forward_exponent", "backward_exponent_high", "memory_exponent"})
      CHECK_SAYS(form.at(key).is_number(), key);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(form.at("lengths").at(i) == (i ? 32 : 16));
      CHECK(form.at("low90").at(i).get<double>() <= form.at("seconds").at(i).get<double>() &&
            form.at("seconds").at(i).get<double>() <= form.at("high90").at(i).get<double>());
      CHECK(form.at("output_error").at(i).get<double>() <= 1e-9 && form.at("gradient_error").at(i).get<double>() <= 1e-9);
    }
  }
  CHECK(json.at("crossovers").is_array() && json.at("noise").get<double>() >= 0.0 && json.at("between").get<double>() > 0.0 &&
        json.at("lyapunov").is_number());
  const std::string headline = json.at("headline");
  CHECK_SAYS(headline.ends_with(" at T = 32") || headline.find(" overtakes ") != std::string::npos, headline);
  for (const char* key : {"triad_bytes_per_second", "cached_bytes_per_second", "flops_per_second"})
    CHECK(json.at("roof").at(key).get<double>() > 0.0);
  std::istringstream lines(contents(csv));
  std::string line;
  std::getline(lines, line);
  CHECK(line.starts_with("form,length,seconds,low,high,low90,high90,forward,"));
  const auto columns = std::ranges::count(line, ',');
  std::size_t rows = 0;
  for (; std::getline(lines, line); ++rows) CHECK_SAYS(std::ranges::count(line, ',') == columns, line);
  CHECK(rows == 6);

  const Json newton = Json::parse(
      good({"bench", "elman", "--forms", "newton", "--lengths", "16", "--batch", "2", "--forward-only", "--dtype", "f32", "--json"})
          .output);
  CHECK(newton.at("batch") == 2 && newton.at("backward_timed") == false && newton.at("forms").size() == 1);
  const Json& form = newton.at("forms").at(0);
  CHECK(form.at("iterations").at(0).get<int>() > 0 && form.at("converged").at(0) == true && !form.contains("backward") &&
        !form.contains("gradient_error"));
  CHECK(form.at("exponent").is_null() && form.at("seconds") == form.at("forward"));
}

TEST_CASE("bench times a primitive by itself, and says what it has") {
  for (const std::string id : {"diagonal", "outer", "delta"}) {
    const std::string table = good({"bench", id, "--lengths", "16,32"}).output;
    for (const char* text : {"sequential", "chunkwise", "90 % band", "noise of the machine", "roof"})
      CHECK_SAYS(table.find(text) != std::string::npos, table);
  }
  CHECK(good({"bench", "--help"}).output.find("delta") != std::string::npos);
  refused({"bench", "diagonal", "--set", "heads=2"}, {"diagonal", "heads", "width"});
  refused({"bench", "diagonal", "--forms", "newton"}, {"--forms", "newton", "scan"});
  refused({"bench", "lstm", "--batch", "0"}, {"--batch", "\"0\""});
  refused({"bench", "lstm", "--threads", "0"}, {"--threads", "\"0\"", "1 to 256"});
  refused({"bench", "diagonl"}, {"\"diagonl\""});
  refused({"bench", "lstm", "--lengths", "8", "--export", "/nowhere/to/be.csv"}, {"/nowhere/to/be.csv"});
}

TEST_CASE("an orthogonal linear network loses or gains R a step, beyond what a double can hold") {
  Folder folder;
  for (const double radius : {0.5, 1.1}) {
    std::ostringstream text;
    text << radius;
    good({"run", "elman", "--set", "activation=identity", "--set", "spectral_radius=" + text.str(), "--set", "width=32", "--task", "noise",
          "--length", "2000", "--record", "jacobian", "--export", folder / text.str()});
    const NpyArray values = NpzFile(folder / (text.str() + "/trace.npz")).read("jacobian/0");
    const auto rows = values.shape.at(0), k = values.shape.at(1);
    CHECK(rows > 1);
    const double first = values.real.at(0), last = values.real.at(static_cast<std::size_t>((rows - 1) * k));
    for (const double value : values.real) CHECK(std::isfinite(value));
    // ds_T/ds_t over T - t steps: every row is one step, whatever the record's spacing.
    const double slope = (first - last) / 1999.0;
    CHECK_CLOSE(slope, std::log10(radius), 0.01 * std::abs(std::log10(radius)));
  }
}

TEST_CASE("a task is written, and read again as a file") {
  Folder folder;
  good({"task", "adding", "--length", "60", "--seed", "3", "--export", folder / "adding.csv"});
  good({"task", "adding", "--length", "60", "--seed", "3", "--export", folder / "again.csv"});
  CHECK(contents(folder / "adding.csv") == contents(folder / "again.csv"));
  good({"run", "gru", "--input", folder / "adding.csv", "--columns", "1,2", "--export", folder / "out"});
  CHECK_EQUAL(NpzFile(folder / "out/trace.npz").read("input").shape.at(0), 60);
}

TEST_CASE("a mistake in the command is one line and status 2") {
  refused({}, {"give a command", "run"});
  refused({"rnu"}, {"\"rnu\"", "did you mean run?"});
  refused({"run"}, {"id"});
  refused({"run", "lstm", "--lenght", "5"}, {"--lenght", "--length"});
  refused({"run", "lstm", "gru"}, {"\"gru\"", "one argument too many"});
  refused({"run", "lsmt"}, {"\"lsmt\"", "lstm"});
  refused({"show", "nothing-like-it"}, {"nothing-like-it", "reclab list"});
  refused({"run", "lstm", "--set", "width"}, {"--set", "key=value"});
  refused({"run", "lstm", "--set", "widht=3"}, {"lstm", "widht", "width"});
  refused({"run", "lstm", "--set", "width=0"}, {"width = 0", "an integer from 1"});
  refused({"run", "lstm", "--length", "0"}, {"--length", "\"0\""});
  refused({"run", "lstm", "--length", "ten"}, {"--length", "\"ten\""});
  refused({"run", "lstm", "--seed", "-1"}, {"--seed", "-1"});
  refused({"run", "lstm", "--task", "ading"}, {"ading", "adding"});
  refused({"run", "lstm", "--form", "sideways"}, {"sideways", "sequential"});
  refused({"run", "lstm", "--device", "gpu"}, {"--device", "cpu or cuda"});
  refused({"run", "lstm", "--dtype", "f16"}, {"--dtype", "f32 or f64"});
  refused({"run", "lstm", "--loss", "least"}, {"--loss", "last or mean or task"});
  refused({"run", "lstm", "--record", "sates"}, {"--record", "sates", "state"});
  refused({"run", "lstm", "--csv"}, {"--csv", "--export"});
  refused({"run", "lstm", "--standardise", "maybe"}, {"--standardise", "yes or no"});
  refused({"run", "lstm", "--columns", "a"}, {"--columns", "--input"});
  refused({"task", "adding", "--length", "5"}, {"--export"});
  // What a script gives whose variable is not set.
  for (const char* option : {"--input", "--export", "--weights", "--state", "--length", "--task", "--set", "--seed", "--form", "--record",
                             "--every", "--loss", "--columns", "--time", "--standardise", "--device", "--dtype"})
    refused({"run", "elman", option, ""}, {option, " is empty; give "});
  refused({"run", ""}, {"id is empty; give a name."});
  refused({"run", "elman", "--input", ""}, {"--input is empty; give a file."});
  refused({"run", "elman", "--export="}, {"--export"});
  refused({"bench", "elman", "--lengths", ""}, {"--lengths is empty; give a list."});
  refused({"task", "adding", "--length", "5", "--export", ""}, {"--export is empty; give a file."});
  refused({"list", "--family", ""}, {"--family is empty"});
  CHECK(good({"--help"}).output.find("list") != std::string::npos);
  CHECK(good({"run", "--help"}).output.find("--export") != std::string::npos);
  CHECK(!good({"--version"}).output.empty());
}

TEST_CASE("a bad file is one line with the file and the cure, and nothing is written") {
  Folder inputs, outputs;
  const std::string npy_head = std::string("\x93NUMPY\x01\x00", 8);
  const auto npy = [&](const std::string& dict) {
    const std::string padded = dict + std::string(117 - dict.size(), ' ') + "\n";
    return npy_head + std::string("\x76\x00", 2) + padded;
  };
  const std::vector<std::pair<std::string, std::string>> bad{
      {"empty.csv", ""},
      {"header.csv", "t,a,b\n"},
      {"ragged.csv", "t,a\n0,1\n1,2,3\n2,4\n"},
      {"word.csv", "t,a\n0,1\n1,two\n2,3\n"},
      {"nan.csv", "t,a\n0,1\n1,nan\n2,3\n"},
      {"inf.csv", "t,a\n0,1\n1,inf\n2,3\n"},
      {"garbage.bin", std::string("\x7f\x00\xff\xfe\x01\x02\x00\x80garbage\x00\x01", 17)},
      {"short.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (100, 2), }") + std::string(64, '\0')},
      {"objects.npy", npy("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }") + std::string(24, '\0')},
  };
  for (const auto& [name, bytes] : bad) {
    const std::string file = inputs.write(name, bytes);
    refused({"run", "lstm", "--input", file, "--export", outputs / "out"}, {name});
    CHECK_SAYS(outputs.empty(), name);
  }
  refused({"run", "lstm", "--input", inputs / "none.csv", "--export", outputs / "out"}, {"none.csv"});
  refused({"run", "lstm", "--weights", inputs / "none.npz", "--export", outputs / "out"}, {"none.npz"});

  const std::string four = inputs.write("four.csv", "a,b,c,d\n1,2,3,4\n2,3,4,6\n3,1,5,2\n"), one = inputs.write("one.csv", "a\n1\n2\n3\n");
  good({"run", "lstm", "--input", four, "--export", inputs / "four"});
  refused({"run", "lstm", "--input", one, "--weights", inputs / "four/trace.npz", "--export", outputs / "out"}, {"trace.npz"});
  CHECK(outputs.empty());
}

TEST_CASE("an export that cannot be written leaves nothing behind") {
  Folder folder;
  const std::string file = folder.write("file", "a file, not a folder");
  refused({"run", "lstm", "--length", "20", "--export", file + "/out"}, {file});
  refused({"run", "lstm", "--length", "20", "--export", "/proc/reclab-out"}, {"/proc/reclab-out"});
  Process::Options full;
  full.largest_file = 8192;
  refused({"run", "lstm", "--length", "500", "--export", folder / "out"}, {"out"}, full);
  CHECK(!fs::exists(folder / "out"));
}

TEST_CASE("a limit on the size of files is a sentence, and ends nothing by a signal") {
  Folder folder;
  Process::Options options;
  options.largest_file = 20'000;
  refused({"run", "elman", "--length", "5000", "--record", "output", "--export", folder / "out"},
          {"trace.npz cannot be written", "larger than this disk or account allows"}, options);
  CHECK(folder.empty());
}

TEST_CASE("a closed terminal ends an export as a polite kill does: finished, or not begun, with nothing left behind") {
  Folder folder;
  int written = 0;
  for (const int signal : {SIGHUP, SIGTERM, SIGINT}) {
    for (int delay = 0; delay < 12; ++delay) {
      Process process(
          test::built("bin/reclab"),
          {"run", "elman", "--set", "width=32", "--length", "3000", "--record", "output,state", "--csv", "--export", folder / "out"}, {});
      // Wherever the run is by then.
      std::this_thread::sleep_for(std::chrono::milliseconds(25 * delay));
      process.send(signal);
      const int status = process.wait();
      const bool there = fs::exists(folder / "out");
      // Before reclab has begun to look, a signal ends it as it ends any program.
      CHECK_SAYS(there ? status == 0 : status == 130 || status == 128 + signal, std::to_string(status) + process.error);
      if (there) CHECK(fs::exists(folder / "out/manifest.json"));
      written += there;
      fs::remove_all(folder / "out");
      CHECK_SAYS(folder.empty(), "a part is left after signal " + std::to_string(signal));
    }
  }
  CHECK_SAYS(written > 0, "no export was finished");
}

TEST_CASE("what cannot be printed is said, and whether the export is whole; a reader that leaves early is not a mistake") {
  Folder folder;
  Process::Options options;
  options.no_output = true;
  refused({"run", "elman", "--length", "8", "--export", folder / "out"}, {"standard output cannot be written", "The export is whole."},
          options);
  CHECK(fs::exists(folder / "out/manifest.json") && NpzFile(folder / "out/trace.npz").has("output"));
  const Result list = reclab_says({"list", "--json"}, options);
  CHECK(list.status == 2 && list.error.find("standard output cannot be written") != std::string::npos &&
        list.error.find("export") == std::string::npos);

  Process gone(test::built("bin/reclab"), {"list", "--json"}, {});
  gone.stop_reading();
  CHECK_EQUAL(gone.wait(), 128 + SIGPIPE);
  CHECK_EQUAL(gone.error, std::string());
}

TEST_CASE("where no thread can be started the list is there, and a run says why not; with one it runs") {
  Process::Options options;
  options.environment = {
      {"LD_PRELOAD", test::built("bin/libreclab_shim.so")}, {"SHIM_THREADS", "0"}, {"ASAN_OPTIONS", "verify_asan_link_order=0"}};
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"list"}, {"show", "elman"}, {"--version"}})
    CHECK_SAYS(reclab_says(arguments, options).status == 0, joined(arguments));
  refused({"run", "elman", "--length", "8"}, {"no thread can be started", "ulimit -u"}, options);
  options.environment[1].second = "1";
  const Result one = reclab_says({"run", "lstm", "--set", "width=128", "--length", "300"}, options);
  CHECK_SAYS(one.status == 0 && one.error.empty(), one.error);
}

TEST_CASE("a pipe among the presets or as weights stops nothing, and one as input is read") {
  Folder folder;
  CHECK(mkfifo((folder / "pipe.json").c_str(), 0600) == 0);
  Process::Options options;
  options.environment = {{"RECLAB_PRESETS", folder / ""}};
  const Result list = reclab_says({"list"}, options);
  CHECK(list.status == 0 && list.error.find("pipe.json is a pipe") != std::string::npos);
  CHECK_EQUAL(reclab_says({"run", "elman", "--length", "8"}, options).status, 0);
  refused({"run", "elman", "--weights", folder / "pipe.json"}, {"pipe.json is a pipe"});
  Process process(test::built("bin/reclab"), {"run", "elman", "--input", folder / "pipe.json"}, {});
  std::ofstream(folder / "pipe.json") << "a\n1\n2\n4\n";
  CHECK_EQUAL(process.wait(), 0);
  CHECK_SAYS(process.output.find("3 steps") != std::string::npos, process.output);
}

TEST_CASE("a preset with a mistake is a line on standard error and hides nothing") {
  Folder folder;
  folder.write("wrong.json", "{\"schema\": 1, \"id\": \"wrong\"}");
  Process::Options options;
  options.environment = {{"RECLAB_PRESETS", folder / ""}};
  const Result result = reclab_says({"list"}, options);
  CHECK_EQUAL(result.status, 0);
  CHECK(result.output.find("\nlstm ") != std::string::npos);
  CHECK(std::ranges::count(result.error, '\n') == 1 && result.error.find("wrong.json: architecture is missing") != std::string::npos);
  refused({"run", "wrong"}, {"wrong.json", "architecture is missing"}, options);
}

TEST_CASE("Ctrl-C ends a long run within 100 ms, with one line and nothing exported") {
  for (const std::string& id : shipped) {
    Folder folder;
    Process::Options options;
    options.terminal = true;
    Process process(test::built("bin/reclab"), {"run", id, "--task", "noise", "--length", "1000000", "--export", folder / "out"}, options);
    CHECK_SAYS(process.wait_for_error_text("%"), id + " showed no progress: " + process.error);
    test::Load load;
    process.send(SIGINT);
    const int status = process.wait();
    const double took = load.end();
    CHECK_SAYS(status == 130, id + ": " + std::to_string(status) + process.error);
    CHECK_SAYS(
        process.error.find("cancelled at step ") != std::string::npos && process.error.find("; nothing was exported") != std::string::npos,
        process.error);
    CHECK_SAYS(!fs::exists(folder / "out"), id);
    CHECK_SAYS(took <= load.allowed(0.1), id + " took " + load.text(0.1));
  }
}

TEST_CASE("a column of the file, or the next value, is the target of run, forms and bench; the loss is named and is its value") {
  Folder folder;
  const std::string file = folder.write("f.csv", "time,u,y\n0,1,10\n1,2,30\n2,4,50\n3,1,20\n4,0,10\n");
  for (const auto& [target, width] : {std::pair<std::string, std::int64_t>{"y", 1}, {"u,y", 0}, {"next", 2}}) {
    if (width == 0) {
      refused({"run", "elman", "--input", file, "--target", target}, {"f.csv", "no column of numbers beside its time", "target"});
      continue;
    }
    const std::string out = folder / target;
    good({"run", "elman", "--set", "width=4", "--input", file, "--target", target, "--export", out});
    const NpzFile trace(out + "/trace.npz");
    const NpyArray output = trace.read("output"), wanted = trace.read("target"), mask = trace.read("mask");
    CHECK((output.shape == Shape{5, width}) && output.shape == wanted.shape);
    CHECK_EQUAL(trace.read("input").shape.at(1), target == "y" ? 1 : 2);
    double sum = 0.0, counted = 0.0;
    for (std::size_t t = 0; t < 5; ++t) {
      counted += mask.real[t];
      for (std::size_t j = 0; j < static_cast<std::size_t>(width); ++j) {
        const double error = output.real[t * static_cast<std::size_t>(width) + j] - wanted.real[t * static_cast<std::size_t>(width) + j];
        sum += 0.5 * mask.real[t] * error * error;
      }
    }
    CHECK_EQUAL(counted, target == "next" ? 4.0 : 5.0);
    const Json loss = Json::parse(contents(out + "/manifest.json")).at("loss");
    CHECK_CLOSE(loss.at("value").get<double>(), sum / counted, 1e-14);
    CHECK(loss.at("kind").get<std::string>().find("½ |y_t − target_t|²") != std::string::npos);
    const std::string summary = good({"run", "elman", "--set", "width=4", "--input", file, "--target", target}).output;
    CHECK_SAYS(summary.find("task: L = mean of ½ |y_t − target_t|²") != std::string::npos, summary);
    CHECK(Json::parse(good({"forms", "elman", "--set", "width=4", "--input", file, "--target", target, "--json"}).output).at("length") ==
          5);
  }
  const std::string last = good({"run", "elman", "--set", "width=4", "--input", file, "--target", "y", "--loss", "last"}).output;
  CHECK_SAYS(last.find("last: L = ½ |y_T|²") != std::string::npos, last);
  good({"bench", "elman", "--set", "width=4", "--input", file, "--target", "y", "--lengths", "8", "--forms", "sequential", "--json"});
  refused({"run", "elman", "--target", "y"}, {"--target", "belongs to --input"});
  refused({"run", "elman", "--input", file, "--loss", "task"}, {"f.csv has no target"});
  refused({"run", "elman", "--input", file, "--task-seed", "2"}, {"--task-seed", "belongs to --task"});
}

TEST_CASE("the task has a seed of its own where it is given one") {
  Folder folder;
  const auto arrays = [&](const std::vector<std::string>& seeds) {
    std::vector<std::string> line{"run",   "elman",   "--task",   "noise",       "--length", "12",
                                  "--set", "width=4", "--record", "input,param", "--export", folder / "x"};
    line.insert(line.end(), seeds.begin(), seeds.end());
    good(line);
    const NpzFile trace(folder / "x/trace.npz");
    return std::pair{trace.read("input").real, trace.read("param/0/weight_hh").real};
  };
  const auto both = arrays({"--seed", "3"}), weights = arrays({"--seed", "3", "--task-seed", "5"}), five = arrays({"--seed", "5"});
  CHECK(weights.second == both.second && weights.first == five.first);
  CHECK(both.first != five.first && both.second != five.second);
  CHECK(arrays({"--seed", "18446744073709551615"}).second != both.second);
  refused({"run", "elman", "--task-seed", "-1"}, {"--task-seed", "-1"});
}
