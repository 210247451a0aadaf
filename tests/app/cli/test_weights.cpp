// SPDX-License-Identifier: GPL-3.0-or-later
// Weights of PyTorch's modules, saved as they are, on a CSV: tests/oracle/pytorch_files.py made files and outputs. And the way back: what
// an export holds, under the names of the modules, makes the outputs of the lab, by loops that are written out here.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "files/files.h"
#include "files/npz.h"
#include "places.h"
#include "reclab.h"
#include "scratch.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;
using reclab::test::good;
using reclab::test::reclab_says;
using reclab::test::Result;
using Json = nlohmann::json;

namespace {

const fs::path golden = test::source("tests/oracle/golden/pytorch/commands");

/// The array as a table with a header, every digit of it.
std::string csv_of(const NpyArray& array) {
  std::string text;
  const auto width = static_cast<std::size_t>(array.shape[1]);
  for (std::size_t j = 0; j < width; ++j) text += (j ? ",x" : "x") + std::to_string(j);
  for (std::size_t i = 0; i < array.real.size(); ++i) {
    char digits[32];
    text += (i % width ? "," : "\n") + std::string(digits, std::to_chars(digits, digits + sizeof digits, array.real[i]).ptr);
  }
  return text + "\n";
}

/// The output of `reclab run` with the weights of a golden file on its input.
NpyArray output_of(const test::Scratch& folder, const std::string& model, const std::string& file, const std::string& part = {},
                   const std::vector<std::string>& more = {}) {
  const std::string out = (folder / "out").string();
  std::vector<std::string> arguments{
      "run",           model,     "--input",   folder.file("a.csv", csv_of(NpzFile(golden / (file + ".npz")).read("input"))).string(),
      "--standardise", "no",      "--weights", (golden / (file + ".safetensors")).string() + part,
      "--sizes",       "weights", "--export",  out};
  if (model != "elman") arguments.insert(arguments.end(), {"--set", "input_scale=1"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  good(arguments);
  return NpzFile(folder / "out/trace.npz").read("output");
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQUAL(a.size(), b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// ---- the modules as PyTorch documents them, a loop over steps, gates and units

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

std::vector<double> rows_of(const NpyArray& weight, const NpyArray& bias, const double* x) {
  std::vector<double> y = bias.real;
  for (std::int64_t i = 0; i < weight.shape[0]; ++i)
    for (std::int64_t j = 0; j < weight.shape[1]; ++j)
      y[static_cast<std::size_t>(i)] += weight.real[static_cast<std::size_t>(i * weight.shape[1] + j)] * x[j];
  return y;
}

std::vector<double> module(const std::string& model, const NpzFile& weights, std::vector<double> input, std::size_t steps) {
  for (int layer = 0; weights.has("param/" + std::to_string(layer) + "/weight_ih"); ++layer) {
    const auto of = [&](const std::string& name) { return weights.read("param/" + std::to_string(layer) + "/" + name); };
    const NpyArray W = of("weight_ih"), U = of("weight_hh"), b = of("bias_ih"), d = of("bias_hh");
    const auto H = static_cast<std::size_t>(U.shape[1]), in = input.size() / steps;
    std::vector<double> h(H), c(H), outputs;
    for (std::size_t t = 0; t < steps; ++t) {
      const auto x = rows_of(W, b, input.data() + t * in), s = rows_of(U, d, h.data());
      for (std::size_t k = 0; k < H; ++k) {
        const auto sum = [&](std::size_t gate) { return x[gate * H + k] + s[gate * H + k]; };
        if (model == "elman") h[k] = std::tanh(sum(0));
        if (model == "gru") {
          const double r = sigmoid(sum(0)), z = sigmoid(sum(1)), n = std::tanh(x[2 * H + k] + r * s[2 * H + k]);
          h[k] = (1.0 - z) * n + z * h[k];
        }
        if (model == "lstm") {
          c[k] = sigmoid(sum(1)) * c[k] + sigmoid(sum(0)) * std::tanh(sum(2));
          h[k] = sigmoid(sum(3)) * std::tanh(c[k]);
        }
      }
      outputs.insert(outputs.end(), h.begin(), h.end());
    }
    input = outputs;
  }
  if (!weights.has("param/head/weight")) return input;
  const NpyArray W = weights.read("param/head/weight"), b = weights.read("param/head/bias");
  std::vector<double> outputs;
  for (std::size_t t = 0; t < steps; ++t)
    for (const double y : rows_of(W, b, input.data() + t * input.size() / steps)) outputs.push_back(y);
  return outputs;
}

}  // namespace

TEST_CASE(
    "state dicts of LSTM, GRU, RNN and of their cells run on a CSV without a setting, and what is exported makes the same outputs "
    "elsewhere") {
  for (const auto& [file, model] :
       {std::pair("lstm-module", "lstm"), std::pair("gru-module", "gru"), std::pair("rnn-module", "elman"), std::pair("lstm-cell", "lstm"),
        std::pair("gru-cell", "gru"), std::pair("rnn-cell", "elman"), std::pair("lstm-head", "lstm")}) {
    const test::Scratch folder;
    const NpyArray expected = NpzFile(golden / (std::string(file) + ".npz")).read("output"), found = output_of(folder, model, file);
    CHECK_EQUAL(to_string(found.shape), to_string(expected.shape));
    CHECK_SAYS(largest_difference(found.real, expected.real) < 1e-12,
               std::string(file) + ": off by " + test::show(largest_difference(found.real, expected.real)));
    const NpzFile exported(folder / "out/trace.npz");
    const auto again = module(model, exported, exported.read("input").real, static_cast<std::size_t>(found.shape[0]));
    CHECK_SAYS(largest_difference(found.real, again) < 1e-12,
               std::string(file) + ", back: off by " + test::show(largest_difference(found.real, again)));
  }
}

TEST_CASE("weights that were trained here make the same outputs by the modules' equations") {
  for (const char* model : {"lstm", "gru", "elman"}) {
    const test::Scratch folder;
    NpyArray waves{.shape = {60, 3}, .dtype = "<f8", .real = {}, .complex = {}};
    for (int i = 0; i < 180; ++i) waves.real.push_back(std::sin(0.3 * i) + 0.2 * std::cos(1.7 * i));
    const std::string csv = folder.file("a.csv", csv_of(waves)).string(), learned = (folder / "learned").string(),
                      out = (folder / "out").string();
    good({"train", model, "--input", csv, "--window", "10", "--set", "width=5", "--steps", "3", "--batch", "2", "--held-out", "2",
          "--export", learned});
    good({"run", model, "--input", csv, "--standardise", "no", "--weights", learned + "/weights.safetensors", "--sizes", "weights",
          "--export", out, "--set", "input_scale=1"});
    const NpzFile exported(folder / "out/trace.npz");
    const NpyArray found = exported.read("output");
    CHECK_EQUAL(to_string(found.shape), "[60, 3]");  // of the head, though the file has no target
    const auto again = module(model, exported, exported.read("input").real, 60);
    CHECK_SAYS(largest_difference(found.real, again) < 1e-12,
               std::string(model) + ": off by " + test::show(largest_difference(found.real, again)));
  }
}

TEST_CASE("a head runs without a target, and a column can be input and target") {
  const test::Scratch folder;
  const NpyArray expected = NpzFile(golden / "lstm-head.npz").read("output");
  for (const std::vector<std::string>& more : {std::vector<std::string>{},
                                               {"--columns", "x0,x1,x2", "--target", "x1,x2"},
                                               {"--columns", "x0,x1,x2", "--target", "x1,x2", "--loss", "mean"}}) {
    CHECK_SAYS(largest_difference(output_of(folder, "lstm", "lstm-head", "", more).real, expected.real) < 1e-12, test::show(more.size()));
    const Json manifest = Json::parse(read_file(folder / "out/manifest.json"));
    const bool task = manifest.at("loss").at("kind").get<std::string>().starts_with("task");
    CHECK_EQUAL(task, more.size() == 4);
    CHECK_EQUAL(manifest.at("notes").dump().find("The output is that of the head that came with the weights") != std::string::npos, !task);
    CHECK_EQUAL(NpzFile(folder / "out/trace.npz").read("input").shape[1], 3);
  }
  // A target of another width has no such head; without one it runs.
  const std::string csv = (folder / "a.csv").string(), weights = (golden / "lstm-head.safetensors").string();
  const Result refused =
      reclab_says({"run", "lstm", "--input", csv, "--columns", "x0,x1,x2", "--target", "x1", "--weights", weights, "--sizes", "weights"});
  CHECK_EQUAL(refused.status, 2);
  CHECK_SAYS(
      refused.error.find("a target of 2 outputs where the sequence's has 1 (the losses last and mean need no target)") != std::string::npos,
      refused.error);
  good({"run", "lstm", "--input", csv, "--columns", "x0,x1,x2", "--target", "x1", "--loss", "last", "--weights", weights, "--sizes",
        "weights"});
}

TEST_CASE("of a file that holds more than the model the part that fits is named, and taken when it is given") {
  const test::Scratch folder;
  for (const auto& [file, model, parts] : {std::tuple("cell-beside-convolutions", "lstm", std::vector<std::string>{"decoder.rnn"}),
                                           std::tuple("encoder-and-decoder", "gru", std::vector<std::string>{"decoder", "encoder"})}) {
    const std::string weights = (golden / (std::string(file) + ".safetensors")).string();
    const NpyArray expected = NpzFile(golden / (std::string(file) + ".npz")).read("output");
    CHECK(largest_difference(output_of(folder, model, file, ":" + parts[0]).real, expected.real) < 1e-12);
    for (const bool sizes : {false, true}) {
      std::vector<std::string> arguments{"run", model, "--input", (folder / "a.csv").string(), "--weights", weights};
      if (sizes) arguments.insert(arguments.end(), {"--sizes", "weights"});
      const Result result = reclab_says(arguments);
      CHECK_EQUAL(result.status, 2);
      for (const std::string& part : parts) CHECK_SAYS(result.error.find(weights + ":" + part) != std::string::npos, result.error);
    }
    const Result wrong = reclab_says({"run", model, "--input", (folder / "a.csv").string(), "--weights", weights + ":nothing"});
    CHECK_EQUAL(wrong.status, 2);
    CHECK_SAYS(wrong.error.find("no entry begins with nothing") != std::string::npos, wrong.error);
  }
  // What runs says the part, and its command gives it again.
  output_of(folder, "gru", "encoder-and-decoder", ":encoder");
  const Json manifest = Json::parse(read_file(folder / "out/manifest.json"));
  CHECK(manifest.at("weights").get<std::string>().ends_with("encoder-and-decoder.safetensors:encoder"));
  CHECK(manifest.at("command").get<std::string>().find("encoder-and-decoder.safetensors:encoder") != std::string::npos);
}
