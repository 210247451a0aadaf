// SPDX-License-Identifier: GPL-3.0-or-later
// Files as reference implementations write them: rows in entries of their own, transposed maps, buffers that take no part, masks of
// synapses.
#include <cmath>
#include <complex>
#include <map>
#include <string>

#include "experiment/experiment.h"
#include "experiment/properties.h"
#include "experiment/weights/weights.h"
#include "files/files.h"
#include "files/npz.h"
#include "models/network.h"
#include "models/registry.h"
#include "scratch.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

using Values = std::map<std::string, std::pair<Shape, std::vector<double>>>;

void write(const Values& values, const std::filesystem::path& path) {
  AtomicFile file(path);
  NpzWriter writer(file);
  for (const auto& [name, value] : values) writer.add(name, value.first, std::span<const double>(value.second));
  writer.finish();
  file.commit();
}

RunRequest request_for(const std::string& architecture, const test::Settings& set, Sequence sequence) {
  RunRequest request;
  request.preset = test::preset_of(architecture);
  request.set = set;
  request.sequence = std::move(sequence);
  request.recording.kinds.remove(kinds_of(Stage::late));
  return request;
}
Sequence noise() { return make_task("noise", {.length = 20, .seed = 3}); }

/// What the run draws, by our names.
Values drawn(const RunRequest& request) {
  const Architecture& architecture = builtin_registry().find(request.preset.architecture);
  const Network network(architecture, hyper_of(builtin_registry(), request.preset, request.set),
                        {.input = request.sequence->width, .head = request.sequence->target_width});
  Values values;
  const Parameters parameters = network.initialise(request.seed);
  for (const auto& entry : parameters.entries()) values[entry.name] = {entry.shape, entry.values};
  return values;
}
std::vector<double> output_of(const RunRequest& request) {
  const RunResult result = run(builtin_registry(), request, {}, {});
  CHECK_SAYS(result.trace->info.outcome == Outcome::finished, result.trace->info.sentence);
  return *result.trace->find("output")->real;
}

}  // namespace

TEST_CASE("a file of OrthoRNNCell is read as it is saved: angles and moduli one by one, P beside its logarithm") {
  const test::Scratch folder;
  RunRequest request = request_for("nnrnn", {{"width", "6"}, {"basis", "matrix"}, {"transient", "0.3"}, {"modulus", "0.9"}}, noise());
  const auto expected = output_of(request);
  const Values own = drawn(request);
  Values file;
  for (const auto& [name, value] : own) {
    const std::string rest = name.substr(2);
    if (rest != "theta" && rest != "alpha") file["rnn_cell." + rest] = value;
  }
  for (std::size_t i = 0; i < 6; ++i) {
    file["rnn_cell.theta_" + std::to_string(i)] = {{1}, {i < 3 ? own.at("0/theta").second[i] : 5.0}};  // the others take no part
    if (i < 3) file["rnn_cell.alpha_" + std::to_string(i)] = {{1}, {own.at("0/alpha").second[i]}};
  }
  file["rnn_cell.log_P"] = {{6, 6}, std::vector<double>(36, 0.5)};
  request.seed = 9;
  request.weights = folder / "theirs.npz";
  write(file, request.weights);
  CHECK(output_of(request) == expected);
  // From other settings the right ones are found, and P is not passed over.
  RunRequest other = request;
  other.set = {{"width", "4"}};
  const auto fits = settings_that_fit(builtin_registry(), other, other.weights);
  CHECK((fits == test::Settings{{"width", "6"}, {"basis", "matrix"}}));
  RunRequest exponential = request;
  exponential.set = {{"width", "6"}};
  CHECK_ERROR(run(builtin_registry(), exponential, {}, {}), "the weights were made for basis = matrix");
  // A row that is missing is a parameter that is missing.
  Values fewer = file;
  fewer.erase("rnn_cell.alpha_2");
  write(fewer, request.weights);
  CHECK_ERROR(run(builtin_registry(), request, {}, {}), "0/alpha of shape [3] is missing");
  Values more = file;
  more["rnn_cell.alpha_3"] = {{1}, {1.0}};
  write(more, request.weights);
  CHECK_ERROR(run(builtin_registry(), request, {}, {}), "rnn_cell.alpha_3 is not a parameter of this model");
}

TEST_CASE("the arrays of complex_RNN are read, its read-out transposed") {
  const test::Scratch folder;
  RunRequest request = request_for("unitary-rnn", {{"width", "3"}}, make_task("adding", {.length = 20, .seed = 3}));
  const auto expected = output_of(request);
  const Values own = drawn(request);
  Values file;
  for (const auto& [name, value] : own)
    if (name.starts_with("0/")) file[name.substr(2)] = value;
  const auto& head = own.at("head/weight");
  file["U"] = {{head.first[1], head.first[0]}, head.second};  // one output: the same numbers
  file["out_bias"] = own.at("head/bias");
  request.seed = 9;
  request.weights = folder / "theirs.npz";
  write(file, request.weights);
  CHECK(output_of(request) == expected);
  file["U"].first = head.first;
  write(file, request.weights);
  CHECK_ERROR(run(builtin_registry(), request, {}, {}), "(the file's is transposed)");
}

TEST_CASE("a transposed map of several outputs is turned, not only named") {
  const test::Scratch folder;
  Sequence sequence = make_task("adding", {.length = 12, .seed = 3});
  sequence.target_width = 2;
  std::vector<double> twice;
  for (const double value : sequence.target) twice.insert(twice.end(), {value, -value});
  sequence.target = twice;
  RunRequest request = request_for("unitary-rnn", {{"width", "3"}}, sequence);
  const auto expected = output_of(request);
  const Values own = drawn(request);
  Values file;
  for (const auto& [name, value] : own)
    if (name.starts_with("0/")) file[name.substr(2)] = value;
  std::vector<double> turned;
  for (std::size_t column = 0; column < 6; ++column)
    for (std::size_t row = 0; row < 2; ++row) turned.push_back(own.at("head/weight").second[row * 6 + column]);
  file["U"] = {{6, 2}, turned};
  file["out_bias"] = own.at("head/bias");
  request.seed = 9;
  request.weights = folder / "theirs.npz";
  write(file, request.weights);
  CHECK(output_of(request) == expected);
}

TEST_CASE("a state that is said to be complex numbers in pairs is one: turning it by a phase turns the next one") {
  const Preset preset = test::preset_of("unitary-rnn");
  CHECK(properties_of(builtin_registry(), preset).complex);
  for (const Architecture& architecture : builtin_registry().all()) {
    const Network network(architecture, hyper_of(builtin_registry(), test::preset_of(architecture.id), {}), {});
    for (const auto& state : network.states())
      if (state.pairs) CHECK_EQUAL(architecture.id + "/" + state.name, std::string("unitary-rnn/h"));
  }
  // modReLU and a unitary matrix commute with a phase where there is no input: from a state that has passed its start.
  RunRequest request = request_for("unitary-rnn", {{"width", "4"}}, noise());
  request.sequence.own().length = 1;
  request.sequence.own().input = {0.0};
  const test::Scratch folder;
  const auto after = [&](double phase) {
    Values state{{"0/h", {{8}, {}}}, {"0/position", {{1}, {5.0}}}};
    const std::complex<double> turn = std::polar(1.0, phase);
    std::vector<std::complex<double>> z;
    for (int i = 0; i < 4; ++i) z.push_back(turn * std::complex<double>(0.3 + 0.2 * i, 0.7 - 0.4 * i));
    for (const auto& one : z) state["0/h"].second.push_back(one.real());
    for (const auto& one : z) state["0/h"].second.push_back(one.imag());
    request.state = folder / "state.npz";
    write(state, request.state);
    const auto flat = output_of(request);
    std::vector<std::complex<double>> made;
    for (std::size_t i = 0; i < 4; ++i) made.emplace_back(flat[i], flat[4 + i]);
    return made;
  };
  const auto plain = after(0.0), turned = after(0.8);
  for (std::size_t i = 0; i < 4; ++i) CHECK_CLOSE(std::abs(turned[i] - std::polar(1.0, 0.8) * plain[i]), 0.0, 1e-14);
}

TEST_CASE("neural circuit policies are wired as ncps wires them, of the same seed") {
  // numpy 2.4.6, ncps 1.0.1: NCP(4, 3, 2, 2, 2, 3, 2, seed=7) and AutoNCP(8, 2, 0.5, seed=22222), built for three inputs.
  const std::vector<double> ncp{0,  0, 0,  0, 0, 0, 0, 0, 0, 0, 0,  0,  0, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0, 0, 0, 0, 0,
                                -1, 1, -1, 0, 0, 0, 0, 0, 0, 0, -1, 0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 1,  1, 0, 0, 0, 0,
                                0,  0, 0,  1, 1, 0, 0, 0, 0, 0, 0,  -1, 1, 0, 0, 0, 0, 0, 0, 0, 0, -1, 1, 0, 0, 0, 0};
  const std::vector<double> ncp_sensory{0, 0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 0, 0, 0, 1, -1, 0, 0, 0, 0, 0, 0, -1, 0, -1, -1};
  const std::vector<double> automatic{0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 1, -1, 0,  0, 0, 0, 0, 0, -1, 0, 1,  0, 0, 0, 0, 0,
                                      0, 0, 0, -1, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0,  -1, 0, 0, 0, 0, 0, 0,  0, -1, 0, 0, 0, 0, 0};
  const std::vector<double> automatic_sensory{0, 0, 0, 0, -1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, -1, -1, 0};
  const auto check = [](const test::Settings& set, const std::vector<double>& expected, const std::vector<double>& expected_sensory) {
    const Network network(builtin_registry().find("ltc"), hyper_of(builtin_registry(), test::preset_of("ltc"), set), {.input = 3});
    Parameters parameters = network.initialise(1);
    CHECK(parameters.find("0/erev")->values == expected);
    CHECK(parameters.find("0/sensory_erev")->values == expected_sensory);
    const auto absolute = [](std::vector<double> values) {
      for (double& value : values) value = std::abs(value);
      return values;
    };
    CHECK(parameters.find("0/sparsity_mask")->values == absolute(expected));
    CHECK(parameters.find("0/sensory_sparsity_mask")->values == absolute(expected_sensory));
  };
  check({{"wiring", "ncp"}, {"width", "9"}, {"command", "3"}, {"motor", "2"}, {"command_synapses", "3"}, {"wiring_seed", "7"}}, ncp,
        ncp_sensory);
  check({{"wiring", "auto_ncp"}, {"width", "8"}, {"motor", "2"}}, automatic, automatic_sensory);
  CHECK_ERROR(hyper_of(builtin_registry(), test::preset_of("ltc"), {{"wiring", "ncp"}, {"width", "6"}, {"motor", "2"}}), "");
}

TEST_CASE("a layer that runs both ways in one array does not run backward as well") {
  RunRequest request = request_for("sru", {{"width", "3"}, {"bidirectional", "yes"}, {"direction", "both"}}, noise());
  CHECK_ERROR(run(builtin_registry(), request, {}, {}), "choose direction=forward");
}

TEST_CASE("a cell of ncps with an LSTM in front is read, below its prefix and beside it") {
  const test::Scratch folder;
  RunRequest request = request_for("ltc",
                                   {{"width", "6"},
                                    {"wiring", "auto_ncp"},
                                    {"motor", "1"},
                                    {"mixed_memory", "yes"},
                                    {"capacitance", "whole"},
                                    {"output_mapping", "affine"}},
                                   noise());
  const auto expected = output_of(request);
  Values file;
  for (const auto& [name, value] : drawn(request)) {
    std::string rest = name.substr(2);
    if (rest.ends_with("W")) rest.back() = 'w';
    file[(rest.starts_with("lstm.") ? "" : "rnn_cell.") + rest] = value;
  }
  request.seed = 9;
  request.weights = folder / "theirs.npz";
  write(file, request.weights);
  CHECK(output_of(request) == expected);
}

TEST_CASE("of two models that a file fits, the one is found that has more of its entries") {
  const test::Scratch folder;
  const auto matrix = [](const char* oscillation) {
    return request_for("lcsm", {{"width", "4"}, {"state", "3"}, {"block", "none"}, {"oscillation", oscillation}}, noise());
  };
  for (const auto& [oscillation, other] :
       {std::pair("key-gated-matrix", "key-gates"), {"keys-by-value-gates", "value-gates"}, {"matrix", "ones"}, {"key-decays", "ones"}}) {
    Values file;
    for (const auto& [name, value] : drawn(matrix(oscillation)))
      file[name.starts_with("0/") ? "layers.0.sequence_mixer.mixer." + name.substr(2) : "embed." + name.substr(name.find('/') + 1)] = value;
    RunRequest request = matrix(other);  // all of whose parameters the file has: `o` may be there without being one
    request.weights = folder / "theirs.npz";
    write(file, request.weights);
    CHECK_EQUAL(output_of(request).size(), std::size_t{20 * 4});
    request.set = {{"block", "none"}};
    const test::Settings found = settings_that_fit(builtin_registry(), request, request.weights);
    CHECK_SAYS(std::ranges::find(found, std::pair(std::string("oscillation"), std::string(oscillation))) != found.end(), oscillation);
  }
}

TEST_CASE("files of transformers with memories are read with the embedding of their tokens, and with a decoder, which are of no use") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> models{
      {"compressive-transformer", {"token_emb.weight"}},
      {"memformer", {"encoder.token_emb.weight", "decoder.net.token_emb.weight", "decoder.net.norm.bias"}},
      {"block-recurrent", {"embed.embedding"}}};
  for (const auto& [id, besides] : models) {
    const test::Scratch folder;
    RunRequest request = request_for(id, {{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}, {"segment", "4"}}, noise());
    const std::vector<double> expected = output_of(request);
    Values theirs;
    for (const auto& [name, value] : drawn(request)) theirs[name.starts_with("0/") ? name.substr(2) : name] = value;
    for (const std::string& name : besides) theirs[name] = {{5, 8}, std::vector<double>(40, 1.0)};
    write(theirs, folder / "w.npz");
    request.seed = 2;
    request.weights = folder / "w.npz";
    CHECK_SAYS(output_of(request) == expected, id);
  }
}
