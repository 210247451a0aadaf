// SPDX-License-Identifier: GPL-3.0-or-later
// Names of files that others write: of a module alone, of trees with slashes, of two trees, and of the lab's and the reference's kind in
// one file.
#include <functional>
#include <string>

#include "experiment/experiment.h"
#include "experiment/weights/fitting.h"
#include "experiment/weights/naming.h"
#include "models/network.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;
using test::Settings;

namespace {

/// How far a file is from the model whose parameters it has, each by the name that `theirs` gives it.
void check_read(const std::string& architecture, const Settings& set,
                const std::function<std::string(const std::string& layer, const std::string& rest)>& theirs) {
  const Hyper hyper = hyper_of(builtin_registry(), test::preset_of(architecture), set);
  const Network network(builtin_registry().find(architecture), hyper, {.input = hyper.integer("width")});
  FileShapes file;
  for (const auto& parameter : network.parameters()) {
    const std::size_t slash = parameter.name.find('/');
    file[theirs(parameter.name.substr(0, slash), parameter.name.substr(slash + 1))] = parameter.var.shape();
  }
  CHECK_EQUAL(file.size(), network.parameters().size());
  const NameMatch match = match_names(network, file);
  CHECK_SAYS(match.problem.empty(), architecture + ": " + match.problem);
  for (std::size_t i = 0; i < match.entries.size(); ++i)
    CHECK_SAYS(!match.entries[i].empty(), architecture + ": " + network.parameters()[i].name + " is not found");
  CHECK_SAYS(match.unknown.empty(), architecture + ": " + (match.unknown.empty() ? "" : match.unknown[0]) + " is left");
  CHECK_EQUAL(misfit(network, FileIndex(file)), 0);
}

std::string with_slashes(std::string name) {
  for (char& c : name)
    if (c == '.') c = '/';
  return name;
}

}  // namespace

TEST_CASE("the state dict of a module alone is read: its kernel below kernel., the rest beside it") {
  for (const std::string prefix : {"", "model."})
    for (const char* id : {"dss", "dlr", "s4d", "s4", "liquid-s4"}) {
      const auto theirs = [&](const std::string&, const std::string& rest) {
        if (rest.starts_with("output_linear.")) return prefix + "output_linear.0." + rest.substr(14);
        return prefix + (rest == "D" ? "" : std::string(id) == "liquid-s4" ? "kernel.kernel." : "kernel.") + rest;
      };
      check_read(id, {{"width", "4"}, {"state", "4"}, {"block", "none"}}, theirs);
    }
}

TEST_CASE("a file that has the names of the reference beside those of the card is read") {
  const auto theirs = [](const std::string& layer, const std::string& rest) {
    return rest == "D"                          ? layer + "/D"
           : rest.starts_with("output_linear.") ? layer + "." + rest
                                                : "layers." + layer + ".layer.kernel." + rest;
  };
  check_read("dss", {{"width", "4"}, {"state", "4"}, {"block", "none"}}, theirs);
}

TEST_CASE("an encoder and a decoder that their names alone tell apart are parts of a file, each by its prefix") {
  FileShapes file{{"enc_emb", {29, 8}}, {"dec_emb", {74, 8}}, {"fc_w", {74, 6}}, {"fc_b", {74}}};
  for (const char* part : {"enc", "dec"})
    for (const auto& [name, shape] :
         {std::pair("_w_ih", Shape{18, 8}), std::pair("_w_hh", Shape{18, 6}), std::pair("_b_ih", Shape{18}), std::pair("_b_hh", Shape{18})})
      file[std::string(part) + name] = shape;
  const Architecture& gru = builtin_registry().find("gru");
  const auto found = parts_that_fit(gru, hyper_of(builtin_registry(), test::preset_of("gru")), 8,
                                    FileIndex(file));  // the embeddings of tokens are of no use to a model that reads numbers
  CHECK_EQUAL(found.size(), std::size_t{2});
  for (const WeightsPart& part : found) {
    CHECK(part.name == "enc" || part.name == "dec");
    CHECK_EQUAL(part.entries, std::size_t{5});
    CHECK(part.sizes.settings == (Settings{{"width", "6"}}));
  }
}

TEST_CASE("trees of arrays are read with slashes as with dots, two layers too") {
  for (const char* layers : {"1", "2"})
    check_read("relit", {{"width", "8"}, {"layers", layers}},
               [](const std::string& layer, const std::string& rest) { return "params/layer" + layer + "/" + with_slashes(rest); });
  for (const char* id : {"relit", "arelit", "token-turing-machine", "temporal-latent-bottleneck", "block-recurrent"})
    check_read(id, {{"width", "8"}, {"heads", "2"}},
               [](const std::string& layer, const std::string& rest) { return "params/" + layer + "/" + with_slashes(rest); });
}

TEST_CASE("copies that liquid-s4's code does not save are read where the card puts them and beside the layer's own") {
  const auto names = [](const std::string& frozen) {
    return [frozen](const std::string& layer, const std::string& rest) {
      if (rest.starts_with("frozen.")) return frozen + rest;
      if (rest.starts_with("output_linear.")) return "layers." + layer + ".layer.output_linear.0." + rest.substr(14);
      if (rest == "D") return "layers." + layer + ".layer.D";
      if (rest.starts_with("norm.")) return "layers." + layer + ".norm." + rest;
      return "layers." + layer + ".layer.kernel.kernel." + rest;
    };
  };
  for (const char* frozen : {"layers.0.layer.kernel.kernel.", "layers.0.layer.", "", "0/", "0."})
    check_read("liquid-s4", {{"width", "4"}, {"state", "4"}, {"order", "2"}, {"liquid_kernel", "polyb"}}, names(frozen));
}
