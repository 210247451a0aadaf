// SPDX-License-Identifier: GPL-3.0-or-later
// Files of reference implementations whose head, memory or custom module stands under a name of its own.
#include <algorithm>
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
    for (std::int64_t j = 0; j < columns; ++j) turned.real[static_cast<std::size_t>(j * rows + i)] = matrix.real[static_cast<std::size_t>(i * columns + j)];
  return turned;
}

}  // namespace

TEST_CASE("the head of lucidrains' compressive transformer is its to_logits, and what is of tokens is passed over") {
  const test::Scratch folder;
  RunRequest request = request_of("compressive-transformer", {{"width", "8"}, {"heads", "2"}, {"segment", "4"}, {"mem_len", "4"}});
  const auto expected = output_of(request);
  Entries theirs;
  for (const auto& [name, array] : drawn(request, folder.path()))
    theirs[name.starts_with("0/") ? "module." + name.substr(2) : name.starts_with("head/") ? "module.to_logits.1." + name.substr(5) : "module.to_model_dim." + name.substr(name.find('/') + 1)] = array;
  CHECK(theirs.contains("module.to_logits.1.weight"));
  theirs["module.token_emb.weight"] = theirs.at("module.to_logits.1.weight");
  request.seed = 5;
  request.weights = folder / "w.npz";
  write(theirs, request.weights);
  CHECK(output_of(request) == expected);
}

TEST_CASE("SRU's modules are read by the names of its versions") {
  const test::Scratch folder;
  for (const Set& set : {Set{{"width", "6"}, {"layers", "2"}}, Set{{"width", "6"}, {"layers", "2"}, {"projection", "2"}}, Set{{"width", "6"}, {"layers", "2"}, {"custom_m", "srupp"}, {"attention_every", "2"}}}) {
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
      CHECK(theirs.contains(modules ? latest ? "rnn_lst.1.transform_module.alpha" : "rnn_lst.1.custom_m.alpha" : projected && latest ? "rnn_lst.1.transform_module.0.weight" : latest ? "rnn_lst.1.transform_module.weight" : "rnn_lst.1.weight"));
      RunRequest loaded = request;
      loaded.seed = 5;
      loaded.weights = folder / "w.npz";
      write(theirs, loaded.weights);
      CHECK(output_of(loaded) == expected);
    }
  }
}
