// SPDX-License-Identifier: GPL-3.0-or-later
// What a run leaves on the disk: the manifest, the archive, the tables, and nothing when it fails.
#include <sys/mount.h>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "array/error.h"
#include "experiment/experiment.h"
#include "files/npz.h"
#include "scratch.h"
#include "test.h"
#include "trace/writers.h"

using namespace reclab;
using reclab::test::bytes_of_file;
using reclab::test::listing;
using reclab::test::Scratch;
using Numbers = std::vector<double>;
using Complex = std::vector<std::complex<double>>;
using Json = nlohmann::json;

namespace {

TraceArray real(std::string key, Shape shape, std::vector<Axis> axes, Numbers data) {
  TraceArray array;
  array.key = std::move(key);
  array.shape = std::move(shape);
  array.axes = std::move(axes);
  array.real = std::make_shared<const Numbers>(std::move(data));
  return array;
}

TraceArray complex(std::string key, Shape shape, std::vector<Axis> axes, Complex data) {
  TraceArray array;
  array.key = std::move(key);
  array.shape = std::move(shape);
  array.axes = std::move(axes);
  array.complex = std::make_shared<const Complex>(std::move(data));
  return array;
}

Trace example() {
  Trace trace;
  RunInfo& info = trace.info;
  info.version = "0.1.0";
  info.preset = "lru-demo";
  info.title = "LRU \"demo\"";
  info.architecture = "lru";
  info.family = "state_space";
  info.hyper = {{"width", "2"}, {"r_min", "0.5"}, {"gated", "true"}, {"activation", "tanh"}};
  info.seed = 18446744073709551615u;
  info.weights = "trained.npz";
  info.device = "cpu";
  info.dtype = "float64";
  info.form = "scan";
  info.record_form = "sequential";
  info.input_name = "x.csv";
  info.input_sha256 = "ab12";
  info.loss = "last";
  info.loss_value = 0.1;
  info.length = 9;
  info.every = 4;
  info.layers = 1;
  info.seconds = 0.25;
  info.bytes = 1234567890123;
  info.outcome = Outcome::diverged;
  info.sentence = "state/0/s became non-finite at step 8";
  info.notes = {"every 4th step was recorded", "second note"};
  info.spectra = {{false, true, "eigenvalues of diag(a)"}};
  info.command = "reclab run lru-demo";
  trace.steps = {0, 4, 8};
  trace.time = {1749.0, 1749.1, 1749.5};
  trace.time_name = "t";
  trace.time_unit = "year";
  trace.input_names = {"v, w"};
  trace.output_names = {"y"};
  const Axis time{"time", "year", {}};
  trace.put(real("input", {3, 1}, {time, {"channel", "", {"v, w"}}}, {0.1, -2.5, 1e-300}));
  TraceArray gate = real("gate/0/forget", {3, 2}, {time, {"unit", "", {}}}, {0, 1, 2, 3, 4, 5});
  gate.high = 1.0;
  gate.unit = "1";
  gate.text = "how much is kept";
  trace.put(std::move(gate));
  trace.put(complex("state/0/s", {3, 1, 2}, {time, {"head", "", {"h"}}, {"unit", "", {}}},
                    {{1, 2}, {3, -4}, {0.5, 0}, {0, 0}, {std::nan(""), 1}, {-INFINITY, INFINITY}}));
  trace.put(real("gradient/state/0/s", {3}, {time}, {-400.5, -2, 0}));
  trace.put(real("param/0/a", {2, 2}, {{"unit", "", {"p", "q"}}, {"channel", "", {}}}, {1, 2, 3, 4}));
  trace.put(real("scalar", {}, {}, {7}));
  TraceArray spectrum = complex("spectrum/0", {2, 1}, {time, {"eigenvalue", "", {}}}, {{1, 0}, {0, 1}});
  spectrum.steps = {4, 6};
  trace.put(std::move(spectrum));
  trace.put(complex("spectrum/1", {1, 1}, {time, {"eigenvalue", "", {}}}, {{0.5, 0}}));
  return trace;
}

RunResult result_of(Trace trace) {
  RunResult result;
  result.trace = std::make_shared<const Trace>(std::move(trace));
  result.state.emplace("state/0/s", complex("state/0/s", {1, 2}, {}, {{1, 2}, {3, 4}}));
  result.state.emplace("state/0/n", real("state/0/n", {2}, {}, {5, 6}));
  return result;
}

std::string csv_of(const Trace& trace, const std::string& key) {
  const Scratch scratch;
  AtomicFile file(scratch / "a.csv");
  write_csv(trace, *trace.find(key), file);
  file.commit();
  return bytes_of_file(scratch / "a.csv");
}

void check_holds(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) CHECK_SAYS(text.find(part) != std::string::npos, std::string("no ") + part + " in\n" + text);
}

/// JSON without its blanks outside of texts, so that its layout is no part of the test.
std::string dense(const std::string& json) {
  std::string result;
  bool text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"' && (i == 0 || json[i - 1] != '\\')) text = !text;
    if (text || (json[i] != ' ' && json[i] != '\n')) result += json[i];
  }
  return result;
}

}  // namespace

TEST_CASE("the manifest has every field of the run") {
  const std::string json = dense(manifest_json(example()));
  check_holds(json, {R"J("schema":1)J",
                     R"J("version":"0.1.0")J",
                     R"J("preset":"lru-demo")J",
                     R"J("title":"LRU \"demo\"")J",
                     R"J("architecture":"lru")J",
                     R"J("family":"state_space")J",
                     R"J("hyper":{"width":2,"r_min":0.5,"gated":true,"activation":"tanh"})J",
                     R"J("layers":1)J",
                     R"J("seed":18446744073709551615)J",
                     R"J("weights":"trained.npz")J",
                     R"J("state":null)J",
                     R"J("device":"cpu")J",
                     R"J("dtype":"float64")J",
                     R"J("form":"scan")J",
                     R"J("record_form":"sequential")J",
                     R"J("input":{"name":"x.csv","sha256":"ab12","length":9,"channels":["v, w"]})J",
                     R"J("output":{"channels":["y"]})J",
                     R"J("time":{"name":"t","unit":"year","rows":3,"every":4})J",
                     R"J("loss":{"kind":"last","value":0.1})J",
                     R"J("outcome":"diverged")J",
                     R"J("sentence":"state/0/s became non-finite at step 8")J",
                     R"J("notes":["every 4th step was recorded","second note"])J",
                     R"J("spectra":[{"of":"eigenvalues of diag(a)","continuous":false,"per_step":true}])J",
                     R"J("wall_seconds":0.25)J",
                     R"J("bytes":1234567890123)J",
                     R"J("command":"reclab run lru-demo")J"});
}

TEST_CASE("the manifest has the mean and deviation of a standardised input") {
  Trace trace = example();
  trace.info.input_mean = {4.5};
  trace.info.input_deviation = {0.25};
  check_holds(dense(manifest_json(trace)), {R"J("channels":["v, w"],"mean":[4.5],"deviation":[0.25]})J"});
}

TEST_CASE("the manifest says what the model has none of") {
  Trace trace = example();
  check_holds(dense(manifest_json(trace)), {R"J("absent":{})J"});
  trace.info.absent = {{Kind::gate, "It has no gates."}};
  check_holds(dense(manifest_json(trace)), {R"J("absent":{"gate":"It has no gates."})J"});
}

TEST_CASE("the manifest describes every array") {
  const std::string json = dense(manifest_json(example()));
  check_holds(json, {R"J({"key":"input","shape":[3,1],"dtype":"float64","unit":"","axes":[{"name":"time","unit":"year"},)J"
                     R"J({"name":"channel","unit":"","labels":["v, w"]}],"text":""})J",
                     R"J({"key":"gate/0/forget","shape":[3,2],"dtype":"float64","unit":"1","axes":[{"name":"time","unit":"year"},)J"
                     R"J({"name":"unit","unit":""}],"text":"how much is kept","range":[0.0,1.0]})J",
                     R"J({"key":"state/0/s","shape":[3,1,2],"dtype":"complex128")J", R"J("key":"scalar","shape":[])J",
                     R"J("key":"spectrum/0","shape":[2,1],"dtype":"complex128","unit":"","axes":[{"name":"time","unit":"year"},)J"
                     R"J({"name":"eigenvalue","unit":""}],"text":"","steps":"step/spectrum/0"})J"});
}

TEST_CASE("the manifest survives what JSON has no word for") {
  Trace trace = example();
  trace.info.loss_value = std::nan("");
  trace.info.input_name =
      "gr\xf6\xdf"
      "e.csv";
  trace.info.hyper = {{"a", "1e999"}, {"b", "nan"}, {"c", ""}};
  const std::string json = dense(manifest_json(trace));
  check_holds(json, {R"J("value":null)J", R"J("hyper":{"a":"1e999","b":"nan","c":""})J", R"J(e.csv")J"});
  CHECK(json.find('\xf6') == std::string::npos);
}

TEST_CASE("the archive has every array under its key, with time and step") {
  const Scratch scratch;
  const Trace trace = example();
  AtomicFile out(scratch / "trace.npz");
  write_trace_npz(trace, out);
  out.commit();
  const NpzFile archive(scratch / "trace.npz");
  CHECK_EQUAL(archive.names().size(), trace.arrays().size() + 3);
  CHECK(archive.read("time").real == trace.time);
  CHECK(archive.read("step").real == (Numbers{0, 4, 8}));
  CHECK_EQUAL(archive.read("step").dtype, "<i8");
  CHECK(archive.read("step/spectrum/0").real == (Numbers{4, 6}));
  for (const auto& array : trace.arrays()) {
    const NpyArray read = archive.read(array->key);
    CHECK(read.shape == array->shape);
    CHECK_EQUAL(read.dtype, array->is_complex() ? "<c16" : "<f8");
    if (array->is_complex())
      CHECK_EQUAL(std::memcmp(read.complex.data(), array->complex->data(), read.complex.size() * 16), 0);  // NaN too
    else
      CHECK(read.real == *array->real);
  }
}

TEST_CASE("tables of what moves with time begin with step and time") {
  const Trace trace = example();
  CHECK_EQUAL(csv_of(trace, "input"), "step,time,\"v, w\"\n0,1749,0.1\n4,1749.1,-2.5\n8,1749.5,1e-300\n");
  CHECK_EQUAL(csv_of(trace, "gate/0/forget"), "step,time,unit 0,unit 1\n0,1749,0,1\n4,1749.1,2,3\n8,1749.5,4,5\n");
  CHECK_EQUAL(csv_of(trace, "gradient/state/0/s"), "step,time,gradient/state/0/s\n0,1749,-400.5\n4,1749.1,-2\n8,1749.5,0\n");
  CHECK_EQUAL(csv_of(trace, "state/0/s"),
              "step,time,h unit 0_re,h unit 0_im,h unit 1_re,h unit 1_im\n0,1749,1,2,3,-4\n4,1749.1,0.5,0,0,0\n8,1749.5,nan,1,-inf,inf\n");
  // Rows of its own: the time of step 6 was not recorded.
  CHECK_EQUAL(csv_of(trace, "spectrum/0"), "step,time,eigenvalue 0_re,eigenvalue 0_im\n4,1749.1,1,0\n6,,0,1\n");
}

TEST_CASE("tables of the rest begin with the position on the first axis") {
  const Trace trace = example();
  CHECK_EQUAL(csv_of(trace, "param/0/a"), "unit,channel 0,channel 1\np,1,2\nq,3,4\n");
  CHECK_EQUAL(csv_of(trace, "scalar"), "scalar\n7\n");
  CHECK_EQUAL(csv_of(trace, "spectrum/1"), "row,eigenvalue 0_re,eigenvalue 0_im\n0,0.5,0\n");
}

TEST_CASE("numbers in tables read back to the same bits") {
  for (const double value : {0.1, 1.0 / 3.0, 4.9e-324, 1.7976931348623157e308, -0.0, 1e22, 123456789.125}) {
    std::string text;
    append_number(text, value);
    const double back = std::strtod(text.c_str(), nullptr);
    CHECK_EQUAL(back, value);
    CHECK_EQUAL(std::signbit(back), std::signbit(value));
  }
  CHECK_EQUAL(csv_file_name("gradient/param/0/w"), "gradient_param_0_w.csv");
}

TEST_CASE("an export has manifest, trace, state and, if asked for, a table an array") {
  const Scratch scratch;
  Trace trace = example();
  trace.put(real("param/0_a", {1}, {{"unit", "", {}}}, {9}));  // its table would take the name of param/0/a
  const RunResult result = result_of(std::move(trace));
  export_run(result, scratch / "out/run", false);
  CHECK(listing(scratch / "out/run") == (std::set<std::string>{"manifest.json", "trace.npz", "state.npz"}));
  Json manifest = Json::parse(bytes_of_file(scratch / "out/run/manifest.json"));
  CHECK_EQUAL(manifest.at("files").size(), 2u);
  for (const char* name : {"trace.npz", "state.npz"}) {
    CHECK_EQUAL(manifest.at("files").at(name).at("bytes").get<std::uintmax_t>(), std::filesystem::file_size(scratch / "out/run" / name));
    CHECK_EQUAL(manifest.at("files").at(name).at("sha256").get<std::string>(), sha256_of_file(scratch / "out/run" / name));
  }
  manifest["files"] = Json::object();
  CHECK_EQUAL(manifest.dump(), Json::parse(manifest_json(*result.trace)).dump());
  const NpzFile state(scratch / "out/run/state.npz");
  CHECK(state.read("state/0/s").complex == (Complex{{1, 2}, {3, 4}}));
  CHECK(state.read("state/0/n").real == (Numbers{5, 6}));
  export_run(result, scratch / "out/run", true);  // over the first
  const std::set<std::string> names = listing(scratch / "out/run");
  CHECK_EQUAL(names.size(), 3 + result.trace->arrays().size());
  CHECK_EQUAL(Json::parse(bytes_of_file(scratch / "out/run/manifest.json")).at("files").size(), names.size() - 1);
  for (const char* name : {"input.csv", "gate_0_forget.csv", "state_0_s.csv", "param_0_a.csv", "param_0_a_.csv", "scalar.csv"})
    CHECK_SAYS(names.count(name) == 1, name);
  CHECK_EQUAL(bytes_of_file(scratch / "out/run/param_0_a_.csv"), "unit,param/0_a\n0,9\n");
}

TEST_CASE("the same run exports to the same bytes") {
  const Scratch scratch;
  export_run(result_of(example()), scratch / "a", true);
  export_run(result_of(example()), scratch / "b", true);
  const auto names = listing(scratch / "a");
  CHECK(names == listing(scratch / "b"));
  for (const std::string& name : names) CHECK_SAYS(bytes_of_file(scratch / ("a/" + name)) == bytes_of_file(scratch / ("b/" + name)), name);
}

TEST_CASE("an export that cannot be written leaves the folder as it was") {
  const Scratch scratch;
  scratch.file("file", "x");
  CHECK_ERROR(export_run(result_of(example()), scratch / "file", true), "it is a file: choose a folder");
  CHECK_ERROR(export_run(result_of(example()), scratch / "file/out", true), "a part of its path is a file");
  CHECK_ERROR(export_run(result_of(example()), "/proc/reclab-export", true), "cannot be written");
  // A folder stands where one of the last files is to go.
  std::filesystem::create_directories(scratch / "out/spectrum_1.csv");
  scratch.file("out/manifest.json", "old");
  CHECK_ERROR(export_run(result_of(example()), scratch / "out", true), "spectrum_1.csv cannot be written because a folder has that name");
  CHECK(listing(scratch.path()) == (std::set<std::string>{"file", "out", "out/manifest.json", "out/spectrum_1.csv"}));
  CHECK_EQUAL(bytes_of_file(scratch / "out/manifest.json"), "old");
}

TEST_CASE("a disk that fills in the middle of an export leaves the folder as it was") {
  const Scratch scratch;
  std::filesystem::create_directory(scratch / "small");
  if (::mount("tmpfs", (scratch / "small").c_str(), "tmpfs", 0, "size=1m") != 0)
    throw test::Skip("a small file system cannot be mounted here");
  struct Unmount {
    std::filesystem::path path;
    ~Unmount() { ::umount(path.c_str()); }
  } unmount{scratch / "small"};
  Trace trace = example();
  const RunResult little = result_of(trace);
  export_run(little, scratch / "small/run", false);
  const std::string manifest = bytes_of_file(scratch / "small/run/manifest.json");
  Numbers many(100'000);
  std::iota(many.begin(), many.end(), 0.5);
  trace.put(real("param/large", {100'000}, {{"unit", "", {}}}, many));
  // The manifest and the archive fit, the tables no longer.
  CHECK_ERROR(export_run(result_of(trace), scratch / "small/run", true),
              "param_large.csv cannot be written because the disk is full: free some space");
  CHECK(listing(scratch / "small") == (std::set<std::string>{"run", "run/manifest.json", "run/trace.npz", "run/state.npz"}));
  CHECK_EQUAL(bytes_of_file(scratch / "small/run/manifest.json"), manifest);
  CHECK_ERROR(export_run(result_of(trace), scratch / "small/new/deep", true), "the disk is full");
  CHECK(!std::filesystem::exists(scratch / "small/new"));
}
