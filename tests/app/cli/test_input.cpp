// SPDX-License-Identifier: GPL-3.0-or-later
// Weights of other programs give those programs' numbers on a file, and weights from here give these numbers there; where the input is
// multiplied, it is said.
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "array/rng.h"
#include "files/npz.h"
#include "places.h"
#include "reclab.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;
using reclab::test::bytes_of_file;
using reclab::test::flat;
using reclab::test::Process;
using reclab::test::Scratch;
using Json = nlohmann::json;

namespace {

using Row = std::vector<double>;

std::string good(const std::vector<std::string>& arguments) {
  Process process(test::built("bin/reclab"), arguments, {});
  const int status = process.wait();
  CHECK_SAYS(status == 0, arguments[1] + ": " + process.error);
  return process.output;
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// W x + b, row by row.
Row affine(const Row& W, const Row& b, const Row& x) {
  Row y = b;
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += W[i * x.size() + j] * x[j];
  return y;
}

struct Weights {
  Row W_ih, W_hh, b_ih, b_hh;
};

/// The outputs of torch.nn.RNN, GRU and LSTM of one layer, by their documentation's equations, from rest.
Row torch_says(const std::string& model, const Weights& w, const std::vector<Row>& inputs) {
  const std::size_t gates = model == "lstm" ? 4 : model == "gru" ? 3 : 1, H = w.b_ih.size() / gates;
  Row h(H, 0.0), c(H, 0.0), outputs;
  for (const Row& x : inputs) {
    const Row u = affine(w.W_ih, w.b_ih, x), v = affine(w.W_hh, w.b_hh, h);
    for (std::size_t k = 0; k < H; ++k) {
      const auto both = [&](std::size_t gate) { return u[gate * H + k] + v[gate * H + k]; };
      if (model == "elman") {
        h[k] = std::tanh(both(0));
      } else if (model == "gru") {
        const double r = sigmoid(both(0)), z = sigmoid(both(1)), n = std::tanh(u[2 * H + k] + r * v[2 * H + k]);
        h[k] = (1.0 - z) * n + z * h[k];
      } else {
        c[k] = sigmoid(both(1)) * c[k] + sigmoid(both(0)) * std::tanh(both(2));
        h[k] = sigmoid(both(3)) * std::tanh(c[k]);
      }
    }
    outputs.insert(outputs.end(), h.begin(), h.end());
  }
  return outputs;
}

std::vector<Row> rows_of(const Row& all, std::size_t width) {
  std::vector<Row> rows;
  for (std::size_t at = 0; at < all.size(); at += width)
    rows.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(at + width));
  return rows;
}

void check_alike(const Row& ours, const Row& theirs, const std::string& what) {
  CHECK_EQUAL(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    CHECK_SAYS(std::abs(ours[i] - theirs[i]) <= 1e-12,
               what + ", entry " + std::to_string(i) + ": " + test::show(ours[i]) + ", not " + test::show(theirs[i]));
}

}  // namespace

TEST_CASE("weights saved by torch.nn.RNN, GRU and LSTM give their outputs on a file, with nothing set") {
  const Scratch folder;
  Rng rng(7);
  constexpr std::size_t T = 60, inputs = 3, H = 5;
  std::string csv = "a,b,c\n";
  std::vector<Row> read;
  for (std::size_t t = 0; t < T; ++t) {
    Row row(inputs);
    for (double& x : row) x = std::round(rng.uniform(-3.0, 5.0) * 1000.0) / 1000.0;
    csv += test::show(row[0]) + "," + test::show(row[1]) + "," + test::show(row[2]) + "\n";
    read.push_back(row);
  }
  const std::string file = folder.file("series.csv", csv);
  for (const std::string model : {"elman", "gru", "lstm"}) {
    const std::size_t rows = H * (model == "lstm" ? 4 : model == "gru" ? 3 : 1);
    Weights w{Row(rows * inputs), Row(rows * H), Row(rows), Row(rows)};
    for (Row* one : {&w.W_ih, &w.W_hh, &w.b_ih, &w.b_hh})
      for (double& x : *one) x = rng.uniform(-0.7, 0.7);
    const std::string weights = folder / (model + ".npz");
    {
      AtomicFile out(weights);
      NpzWriter archive(out);
      const auto n = static_cast<std::int64_t>(rows);
      archive.add("weight_ih_l0", {n, static_cast<std::int64_t>(inputs)}, std::span<const double>(w.W_ih));
      archive.add("weight_hh_l0", {n, static_cast<std::int64_t>(H)}, std::span<const double>(w.W_hh));
      archive.add("bias_ih_l0", {n}, std::span<const double>(w.b_ih));
      archive.add("bias_hh_l0", {n}, std::span<const double>(w.b_hh));
      archive.finish();
      out.commit();
    }
    for (const bool standardised : {false, true}) {
      const std::string out = folder / (model + (standardised ? "-standardised" : ""));
      std::vector<std::string> arguments{"run", model, "--input", file, "--weights", weights, "--sizes", "weights", "--export", out};
      if (!standardised)
        arguments.insert(arguments.end(),
                         {"--standardise", "no"});  // a file's columns have mean 0 and deviation 1 otherwise, as input says
      const std::string said = good(arguments);
      CHECK_SAYS(said.find("input_scale") == std::string::npos && said.find("input_gain") == std::string::npos, said);
      const NpzFile trace(out + "/trace.npz");
      const Row input = trace.read("input").real;
      if (!standardised)
        for (std::size_t i = 0; i < input.size(); ++i) CHECK_EQUAL(input[i], read[i / inputs][i % inputs]);
      check_alike(trace.read("output").real, torch_says(model, w, rows_of(input, inputs)), model);
    }
  }
}

TEST_CASE("weights that a run exports are all that other programs need for its outputs") {
  const Scratch folder;
  for (const std::string model : {"elman", "gru", "lstm"})
    for (const bool trained : {false, true}) {
      if (trained && model == "elman") continue;
      const std::string out = folder / (model + (trained ? "-trained" : ""));
      std::vector<std::string> arguments{"run", model, "--task", "adding", "--length", "50", "--export", out};
      if (trained) arguments.emplace_back("--trained");
      good(arguments);
      const NpzFile trace(out + "/trace.npz");
      const auto parameter = [&](const std::string& name) { return trace.read("param/0/" + name).real; };
      const Weights w{parameter("weight_ih"), parameter("weight_hh"), parameter("bias_ih"), parameter("bias_hh")};
      check_alike(trace.read("state/0/h").real, torch_says(model, w, rows_of(trace.read("input").real, 2)), model);
    }
}

TEST_CASE("an input that is multiplied is said in summary, manifest and training") {
  const Scratch folder;
  const std::string sentence = "The model reads the input times 6";
  for (const bool scaled : {false, true}) {
    std::vector<std::string> set;
    if (scaled) set = {"--set", "input_scale=6"};
    const auto with = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), set.begin(), set.end());
      return flat(good(arguments));
    };
    const std::string summary = with({"run", "lstm", "--length", "30"}), out = folder / (scaled ? "scaled" : "plain");
    CHECK_SAYS((summary.find("times 6 (input_scale)") != std::string::npos) == scaled, summary);
    CHECK_SAYS((summary.find(sentence) != std::string::npos) == scaled, summary);
    CHECK((with({"run", "lstm", "--length", "30", "--export", out}).find(sentence) != std::string::npos) == scaled);
    const Json manifest = Json::parse(bytes_of_file(out + "/manifest.json"));
    CHECK_EQUAL(manifest.at("input").contains("scale"), scaled);
    if (scaled) CHECK_EQUAL(manifest.at("input").at("scale").get<double>(), 6.0);
    CHECK((manifest.at("notes").dump().find(sentence) != std::string::npos) == scaled);
    CHECK_EQUAL(manifest.at("hyper").at("input_scale").get<double>(), scaled ? 6.0 : 1.0);
    const std::string training = with({"train", "lstm", "--task", "adding", "--length", "10", "--steps", "1", "--batch", "2"});
    CHECK_SAYS((training.find(sentence) != std::string::npos) == scaled, training);
  }
}

TEST_CASE("a summary says that a file's columns were standardised") {
  const Scratch folder;
  const std::string file = folder.file("series.csv", "a,b\n1,2\n3,5\n4,1\n");
  CHECK(flat(good({"run", "elman", "--input", file})).find("standardised, each column to mean 0 and deviation 1") != std::string::npos);
  CHECK(flat(good({"run", "elman", "--input", file, "--set", "input_scale=2"})).find("then times 2 (input_scale)") != std::string::npos);
  CHECK(flat(good({"run", "elman", "--input", file, "--standardise", "no"})).find("standardised") == std::string::npos);
  CHECK(flat(good({"run", "elman", "--length", "10"})).find("standardised") == std::string::npos);
}
