// SPDX-License-Identifier: GPL-3.0-or-later
// Files of reference implementations whose head, memory or custom module stands under a name of its own.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "models/network.h"
#include "models/registry.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;

namespace {

using Set = std::vector<std::pair<std::string, std::string>>;

RunRequest request_of(const std::string& architecture, const Set& set) {
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = architecture;
  request.set = set;
  request.sequence = make_task("delay", {.length = 24, .seed = 1});
  return request;
}

std::vector<double> output_of(const RunRequest& request) { return *run(builtin_registry(), request, {}, {}).trace->find("output")->real; }

using Entries = std::map<std::string, NpyArray>;

Entries drawn(const RunRequest& request, const std::filesystem::path& folder) {
  save_weights(*run(builtin_registry(), request, {}, {}).trace, folder / "drawn.npz");
  Entries found;
  const NpzFile archive(folder / "drawn.npz");
  for (const std::string& name : archive.names()) found[name.substr(name.find('/') + 1)] = archive.read(name);  // without "param/"
  return found;
}

void write(const Entries& entries, const std::filesystem::path& path) {
  AtomicFile file(path);
  NpzWriter writer(file);
  for (const auto& [name, array] : entries) writer.add(name, array.shape, std::span<const double>(array.real));
  writer.finish();
  file.commit();
}

NpyArray transposed(const NpyArray& matrix) {
  NpyArray turned = matrix;
  const auto rows = matrix.shape[0], columns = matrix.shape[1];
  turned.shape = {columns, rows};
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      turned.real[static_cast<std::size_t>(j * rows + i)] = matrix.real[static_cast<std::size_t>(i * columns + j)];
  return turned;
}

}  // namespace

TEST_CASE("the head of lucidrains' compressive transformer is its to_logits, and what is of tokens is passed over") {
  const test::Scratch folder;
  RunRequest request = request_of("compressive-transformer", {{"width", "8"}, {"heads", "2"}, {"segment", "4"}, {"mem_len", "4"}});
  const auto expected = output_of(request);
  Entries theirs;
  for (const auto& [name, array] : drawn(request, folder.path()))
    theirs[name.starts_with("0/")      ? "module." + name.substr(2)
           : name.starts_with("head/") ? "module.to_logits.1." + name.substr(5)
                                       : "module.to_model_dim." + name.substr(name.find('/') + 1)] = array;
  CHECK(theirs.contains("module.to_logits.1.weight"));
  theirs["module.token_emb.weight"] = theirs.at("module.to_logits.1.weight");
  request.seed = 5;
  request.weights = folder / "w.npz";
  write(theirs, request.weights);
  CHECK(output_of(request) == expected);
}

TEST_CASE("SRU's modules are read by the names of its versions") {
  const test::Scratch folder;
  for (const Set& set : {Set{{"width", "6"}, {"layers", "2"}}, Set{{"width", "6"}, {"layers", "2"}, {"projection", "2"}},
                         Set{{"width", "6"}, {"layers", "2"}, {"custom_m", "srupp"}, {"attention_every", "2"}}}) {
    RunRequest request = request_of("sru", set);
    const auto expected = output_of(request);
    const Entries ours = drawn(request, folder.path());
    const bool projected = ours.contains("1/weight_proj"), modules = ours.contains("0/transform_module.linear1.weight");
    for (const bool latest : {false, true}) {
      Entries theirs;
      for (const auto& [name, array] : ours) {
        const std::string at = "rnn_lst." + name.substr(0, name.find('/')) + ".", rest = name.substr(name.find('/') + 1);
        const std::string factor = ours.contains(name.substr(0, 2) + "weight_proj") ? ".1" : "";
        if (name.starts_with("head/"))
          theirs[name] = array;
        else if (latest && (rest == "weight" || rest == "weight_proj"))
          theirs[at + "transform_module" + (rest == "weight_proj" ? ".0" : factor) + ".weight"] = transposed(array);
        else
          theirs[at + (rest.starts_with("transform_module.") && !latest ? "custom_m." + rest.substr(17) : rest)] = array;
      }
      CHECK(theirs.contains(modules               ? latest ? "rnn_lst.1.transform_module.alpha" : "rnn_lst.1.custom_m.alpha"
                            : projected && latest ? "rnn_lst.1.transform_module.0.weight"
                            : latest              ? "rnn_lst.1.transform_module.weight"
                                                  : "rnn_lst.1.weight"));
      RunRequest loaded = request;
      loaded.seed = 5;
      loaded.weights = folder / "w.npz";
      write(theirs, loaded.weights);
      CHECK(output_of(loaded) == expected);
    }
  }
}

TEST_CASE("an array with an axis of one entry more or fewer than the card has is read, and no other shape") {
  const test::Scratch folder;
  RunRequest request = request_of("echo-state", {{"width", "12"}, {"bias_scaling", "0.5"}});
  const auto expected = output_of(request);
  const Entries ours = drawn(request, folder.path());
  CHECK(ours.at("0/bias").shape == (Shape{12, 1}));
  request.seed = 5;
  request.weights = folder / "w.npz";
  for (const Shape& shape : {Shape{12}, Shape{1, 12, 1}}) {
    Entries theirs = ours;
    theirs.at("0/bias").shape = shape;
    write(theirs, request.weights);
    CHECK(output_of(request) == expected);
    RunRequest preset = request;
    preset.set = {{"bias_scaling", "0.5"}};
    CHECK(settings_that_fit(builtin_registry(), preset, request.weights) == (Set{{"width", "12"}}));
  }
  for (const Shape& shape : {Shape{1, 12}, Shape{3, 4}, Shape{2, 6, 1}}) {
    Entries theirs = ours;
    theirs.at("0/bias").shape = shape;
    write(theirs, request.weights);
    CHECK_ERROR(output_of(request), "the entry 0/bias has shape " + to_string(shape) + " where the model has [12, 1]");
  }
}

TEST_CASE("how the frequencies of DSS start stands in the way of no version and of no weights from a file") {
  const test::Scratch folder;
  for (const char* version : {"exp", "exp-re-im", "exp-no-scale"})
    for (const char* start : {"randn", "randn-complex"}) {
      RunRequest request = request_of("dss", {{"width", "4"}, {"state", "6"}, {"version", version}, {"Lambda_init", start}});
      const auto expected = output_of(request);
      const Entries ours = drawn(request, folder.path());
      for (const double value : ours.at("0/Lambda_log_neg_re").real) CHECK_EQUAL(value, std::log(0.5));
      request.seed = 5;
      request.weights = folder / "w.npz";
      write(ours, request.weights);
      CHECK(output_of(request) == expected);
    }
}

TEST_CASE("flax's two trees of S5 and of the LRU are one model: params of the stack, batch_stats of its norms, with slashes as with dots") {
  const test::Scratch folder;
  for (const auto& [id, norm] : {std::pair("s5", "norm"), std::pair("lru", "normalization")}) {
    RunRequest request = request_of(id, {{"width", "4"}, {"state", "6"}, {"layers", "2"}, {"norm", "batch"}});
    const Entries drawn_ones = drawn(request, folder.path());
    Entries ours = drawn_ones;
    double number = 0.0;
    for (auto& [name, array] : ours)  // statistics and scales that are not those at the start
      if (name.find("/norm.") != std::string::npos)
        for (double& value : array.real) value = 0.5 + 0.1 * std::fmod(number += 0.7, 9.0);
    RunRequest own = request;
    own.weights = folder / "own.npz";
    write(ours, own.weights);
    const auto expected = output_of(own);
    CHECK(expected != output_of(request));
    for (const char* separator : {"/", "."}) {
      Entries theirs;
      for (const auto& [name, array] : ours) {
        const auto slash = name.find('/');
        const std::string at = name.substr(0, slash), rest = name.substr(slash + 1), layer = "encoder/layers_" + at + "/";
        const bool matrix = array.shape.size() == 2;
        std::string called;
        if (at == "encoder" || at == "head")
          called = std::string("params/") + (at == "head" ? "decoder/" : "encoder/encoder/") + (matrix ? "kernel" : "bias");
        else if (rest.starts_with("norm."))
          called = (rest.starts_with("norm.running") ? "batch_stats/" : "params/") + layer + norm + "/" +
                   (rest == "norm.weight"         ? "scale"
                    : rest == "norm.bias"         ? "bias"
                    : rest == "norm.running_mean" ? "mean"
                                                  : "var");
        else if (rest.starts_with("out"))
          called = "params/" + layer + rest.substr(0, 4) + "/" + (matrix ? "kernel" : "bias");
        else
          called = "params/" + layer + "seq/" + rest;
        if (*separator == '.') std::ranges::replace(called, '/', '.');
        const bool turned = matrix && (at == "encoder" || at == "head" || rest.starts_with("out"));
        theirs[called] = turned ? transposed(array) : array;
      }
      CHECK_EQUAL(theirs.size(), ours.size());
      RunRequest loaded = request;
      loaded.seed = 5;
      loaded.weights = folder / "w.npz";
      write(theirs, loaded.weights);
      CHECK_SAYS(output_of(loaded) == expected, std::string(id) + " with " + separator);
      // One statistic fewer is missed, by its name.
      theirs.erase(std::string("batch_stats") + separator + "encoder" + separator + "layers_1" + separator + norm + separator + "var");
      CHECK_EQUAL(theirs.size() + 1, ours.size());
      write(theirs, loaded.weights);
      CHECK_ERROR(output_of(loaded), "the entry 1/norm.running_var of shape [4] is missing");
    }
  }
}

TEST_CASE("layers of AReLiT are counted from 1 in its files, and those of ReLiT from 0") {
  const test::Scratch folder;
  for (const auto& [id, first] : {std::pair("arelit", 1), std::pair("relit", 0)})
    for (const char* layers : {"1", "2"})
      for (const char* separator : {"/", "."}) {
        RunRequest request = request_of(id, {{"width", "8"}, {"heads", "2"}, {"head_dim", "4"}, {"layers", layers}});
        request.loss = LossKind::last;
        const auto expected = output_of(request);
        Entries theirs;
        for (const auto& [name, array] : drawn(request, folder.path())) {
          std::string called = "params/params/layer" + std::to_string(std::stoi(name) + first) + "/" + name.substr(name.find('/') + 1);
          std::ranges::replace(called, *separator == '/' ? '.' : '/', *separator);
          theirs[called] = array;
        }
        request.seed = 5;
        request.weights = folder / "w.npz";
        write(theirs, request.weights);
        CHECK_SAYS(output_of(request) == expected, std::string(id) + ", " + layers + " layers with " + separator);
      }
}

TEST_CASE("files of RAN are read as Keras saves them and as its export_checkpoint does; what only met zeros is passed over") {
  const test::Scratch folder;
  for (const char* review : {"yes", "no"})
    for (const bool exported : {false, true}) {
      RunRequest request = request_of("recurrent-attention-network",
                                      {{"width", "8"}, {"heads", "2"}, {"layers", "2"}, {"segment", "5"}, {"memory_review", review}});
      request.loss = LossKind::last;
      const Entries ours = drawn(request, folder.path());
      Entries theirs;
      for (auto [name, array] : ours) {
        if (!std::isdigit(static_cast<unsigned char>(name[0]))) {  // the encoder in front, which stands for an embedding
          theirs[name] = array;
          continue;
        }
        std::string rest = name.substr(2);
        if (rest.starts_with("cell_initializer_layernorm"))
          for (std::size_t i = 0; i < array.real.size(); ++i) array.real[i] = 0.1 * static_cast<double>(i * i);
        std::ranges::replace(rest, '_', '-');
        std::ranges::replace(rest, '.', '/');
        for (const char* glu : {"dense/t", "dense/g"}) CHECK(rest.find(glu) == std::string::npos);
        if (!exported && rest.starts_with("cell-initializer")) rest = "cell-initializer-group/" + rest;
        theirs[(exported ? "rannet/ran-" : "RAN-") + name.substr(0, 1) + "/" + rest] = array;
      }
      for (const char* layer : {"0", "1"}) {
        const std::string at =
            (exported ? std::string("rannet/ran-") + layer + "/" : std::string("RAN-") + layer + "/cell-initializer-group/");
        theirs[at + "cell-initializer/kernel"] = {.shape = {8, 8}, .dtype = "<f8", .real = std::vector<double>(64, 3.0), .complex = {}};
        theirs[at + "cell-initializer-layernorm/gamma"] = {
            .shape = {8}, .dtype = "<f8", .real = std::vector<double>(8, 3.0), .complex = {}};
      }
      Entries set = ours;
      for (auto& [name, array] : set)
        if (name.find("cell_initializer_layernorm") != std::string::npos)
          for (std::size_t i = 0; i < array.real.size(); ++i) array.real[i] = 0.1 * static_cast<double>(i * i);
      RunRequest own = request, loaded = request;
      own.weights = folder / "own.npz";
      write(set, own.weights);
      loaded.seed = 5;
      loaded.weights = folder / "w.npz";
      write(theirs, loaded.weights);
      const auto expected = output_of(own);
      CHECK(expected != output_of(request));
      CHECK_SAYS(output_of(loaded) == expected, std::string(review) + (exported ? ", exported" : ", as Keras saves it"));
    }
}
