// SPDX-License-Identifier: GPL-3.0-or-later
// Whole models: the files of their reference implementations, embedding and read-out included, and what a stack is when its options leave
// one part of it.
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "experiment/experiment.h"
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

using Array = std::pair<Shape, std::vector<double>>;
using Values = std::map<std::string, Array>;

/// One-hot tokens in, a class of them out.
Sequence tokens() { return make_task("selective-copy", {.length = 60, .seed = 3}); }

RunRequest request_for(const std::string& architecture, const test::Settings& set, Sequence sequence) {
  RunRequest request;
  request.preset = test::preset_of(architecture);
  request.set = set;
  request.sequence = std::move(sequence);
  request.recording.kinds.remove(kinds_of(Stage::late));
  return request;
}

void write(const Values& values, const std::filesystem::path& path) {
  AtomicFile file(path);
  NpzWriter writer(file);
  for (const auto& [name, value] : values) writer.add(name, value.first, std::span<const double>(value.second));
  writer.finish();
  file.commit();
}

std::vector<double> output_of(const RunRequest& request) {
  const RunResult result = run(builtin_registry(), request, {}, {});
  CHECK_SAYS(result.trace->info.outcome == Outcome::finished, result.trace->info.sentence);
  return *result.trace->find("output")->real;
}

/// The weights that a run of the sequence's task draws, by our names.
Values drawn(const RunRequest& request) {
  Values values;
  const auto trace = run(builtin_registry(), request, {}, {}).trace;
  for (const TraceArray* array : trace->matching("param/")) values[array->key.substr(6)] = {array->shape, *array->real};
  return values;
}

Array turned(const Array& a) {
  const auto rows = static_cast<std::size_t>(a.first.at(0)), columns = static_cast<std::size_t>(a.first.at(1));
  Array result{{a.first[1], a.first[0]}, std::vector<double>(a.second.size())};
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) result.second[j * rows + i] = a.second[i * columns + j];
  return result;
}

struct Theirs {
  std::string name;
  bool transposed = false;
};

/// The output with the weights under their names, some of no use beside them, is that with the weights drawn; other weights give another.
void read_like_ours(RunRequest request, const std::function<Theirs(const std::string&)>& theirs,
                    const std::map<std::string, std::string>& again = {}) {
  const test::Scratch folder;
  const auto expected = output_of(request);
  Values file;
  for (const auto& [name, value] : drawn(request)) {
    const Theirs called = theirs(name);
    file[called.name] = called.transposed ? turned(value) : value;
  }
  for (const auto& [name, of] : again) file[name] = file.at(of);
  request.seed = 9;
  CHECK(output_of(request) != expected);
  request.weights = folder / "theirs.npz";
  write(file, request.weights);
  CHECK_SAYS(output_of(request) == expected, request.preset.architecture);
}

std::string layer_of(const std::string& name) { return name.substr(0, name.find('/')); }
std::string rest_of(const std::string& name) { return name.substr(name.find('/') + 1); }

}  // namespace

TEST_CASE("recurrentgemma's Griffin and Hawk are read whole, their embedding twice") {
  const auto called = [](const std::string& name) -> Theirs {
    if (name == "encoder/weight") return {"model.embedder.input_embedding", true};
    return {"model." + (name.starts_with("final/") ? rest_of(name) : "blocks." + layer_of(name) + "." + rest_of(name))};
  };
  const test::Settings language{{"width", "8"},         {"heads", "2"},       {"layers", "4"},   {"mlp", "6"},
                                {"encoder_bias", "no"}, {"read_out", "tied"}, {"soft_cap", "3"}, {"input_scale", "2.8284271247461903"}};
  read_like_ours(request_for("griffin", language, tokens()), called);
  read_like_ours(request_for("rg-lru", language, tokens()), called);
}

TEST_CASE("mamba_ssm's language models are read, tied and not, and with attention in some blocks") {
  const auto called = [](const std::string& name) -> Theirs {
    if (name == "encoder/weight") return {"backbone.embedding.weight", true};
    if (name == "head/weight") return {"lm_head.weight"};
    if (name.starts_with("final/")) return {"backbone." + rest_of(name)};
    const std::string rest = rest_of(name);
    const bool around = rest.starts_with("norm") || rest.starts_with("mlp.") || rest.starts_with("mixer.");
    return {"backbone.layers." + layer_of(name) + (around ? "." : ".mixer.") + rest};
  };
  for (const std::string model : {"mamba", "mamba-2"}) {
    const test::Settings language{{"width", "8"},         {"layers", "2"},      {"mlp", "5"},
                                  {"encoder_bias", "no"}, {"read_out", "tied"}, {"block_norm", "layer"}};
    read_like_ours(request_for(model, language, tokens()), called, {{"lm_head.weight", "backbone.embedding.weight"}});
    test::Settings own = language;
    own[4].second = "no-bias";
    read_like_ours(request_for(model, own, tokens()), called);
    own.insert(own.end(), {{"attn", "yes"},
                           {"attn_layers", "2"},
                           {"attn_head", "6"},
                           {"attn_kv_heads", "1"},
                           {"attn_mlp", "8"},
                           {"attn_conv", "4"},
                           {"attn_rotary", "4"}});
    read_like_ours(request_for(model, own, tokens()), called);
  }
}

TEST_CASE("safari's language model of Hyena is read, with the constants that stand in its files") {
  const auto called = [](const std::string& name) -> Theirs {
    if (name == "encoder/weight") return {"backbone.embeddings.word_embeddings.weight", true};
    if (name.starts_with("final/")) return {"backbone." + rest_of(name)};
    const std::string rest = rest_of(name);
    return {"backbone.layers." + layer_of(name) + (rest.starts_with("norm") || rest.starts_with("mlp.") ? "." : ".mixer.") + rest};
  };
  const std::string filter = "backbone.layers.0.mixer.filter_fn.";
  read_like_ours(
      request_for("hyena",
                  {{"width", "8"}, {"layers", "2"}, {"l_max", "64"}, {"filter_order", "4"}, {"encoder_bias", "no"}, {"read_out", "tied"}},
                  tokens()),
      called,
      {{"lm_head.weight", "backbone.embeddings.word_embeddings.weight"},
       {filter + "implicit_filter.3.freq", filter + "implicit_filter.1.freq"},
       {filter + "pos_emb.t", filter + "pos_emb.z"},
       {filter + "modulation.deltas", filter + "implicit_filter.1.freq"}});
}

TEST_CASE("the trees of S5 and minimal-LRU are read, below params and batch_stats, and with slashes as with dots") {
  for (const auto& [model, norm] : {std::pair<std::string, std::string>{"s5", "norm"}, {"lru", "normalization"}})
    for (const std::string mark : {".", "/"}) {
      const auto called = [&](const std::string& name) -> Theirs {
        const auto path = [&](std::string text) {
          for (char& c : text)
            if (c == '.') c = mark[0];
          return text;
        };
        if (name.starts_with("encoder/") || name.starts_with("head/"))
          return {path(std::string("params.") + (name.starts_with("head/") ? "decoder." : "encoder.encoder.") +
                       (name.ends_with("weight") ? "kernel" : "bias")),
                  name.ends_with("weight")};
        const std::string rest = rest_of(name),
                          layer = "encoder.layers_" +
                                  std::to_string(model == "s5" ? std::stoi(layer_of(name)) / 2 : std::stoi(layer_of(name))) + ".";
        if (rest.starts_with("norm.running_")) return {path("batch_stats." + layer + norm + (rest.ends_with("mean") ? ".mean" : ".var"))};
        if (rest.starts_with("norm.")) return {path("params." + layer + norm + (rest.ends_with("weight") ? ".scale" : ".bias"))};
        if (rest.starts_with("out"))
          return {path("params." + layer + rest.substr(0, 5) + (rest.ends_with("weight") ? "kernel" : "bias")), rest.ends_with("weight")};
        return {path("params." + layer + "seq." + rest)};
      };
      test::Settings set{{"width", "6"}, {"state", "8"}, {"layers", "2"}, {"norm", "batch"}};
      if (model == "s5") set.emplace_back("bidirectional", "yes");
      read_like_ours(request_for(model, set, tokens()), called);
    }
}

TEST_CASE("Griffin without attention is Hawk, and with its first block alone another part of it") {
  const test::Scratch folder;
  const test::Settings common{{"width", "8"}, {"heads", "2"}, {"layers", "3"}, {"mlp", "6"}};
  test::Settings none = common;
  none.emplace_back("attention_every", "0");
  CHECK(output_of(request_for("griffin", none, tokens())) == output_of(request_for("rg-lru", common, tokens())));
  test::Settings other = common;
  other.emplace_back("attention_first", "0");
  const RunRequest pattern = request_for("griffin", common, tokens()), first = request_for("griffin", other, tokens());
  const Values two_to_one = drawn(pattern), from_the_first = drawn(first);
  for (const std::string block : {"0", "1", "2"}) {
    CHECK_EQUAL(two_to_one.contains(block + "/attention_block.proj_q.weight"), block == "2");
    CHECK_EQUAL(from_the_first.contains(block + "/attention_block.proj_q.weight"), block == "0");
  }
}

TEST_CASE("a tied read-out is the encoder's matrix, gets both gradients, and says where it cannot be") {
  RunRequest request = request_for("mamba", {{"width", "8"}, {"layers", "1"}, {"encoder_bias", "no"}, {"read_out", "tied"}}, tokens());
  const auto trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK(!trace->find("param/head/weight"));
  const TraceArray* embedding = trace->find("gradient/param/encoder/weight");
  CHECK(embedding && embedding->shape == trace->find("param/encoder/weight")->shape);
  // A token that never comes in has the gradient of the read-out alone: it is not 0.
  const std::int64_t columns = request.sequence->width;
  RunRequest rare = request;
  for (std::int64_t t = 0; t < rare.sequence->length; ++t) {  // token 1 becomes token 2 on the way in
    double* row = &rare.sequence.own().input[static_cast<std::size_t>(t * columns)];
    row[2] += row[1];
    row[1] = 0.0;
  }
  const auto unread = run(builtin_registry(), rare, {}, {}).trace;
  double sum = 0.0;
  const TraceArray* gradient = unread->find("gradient/param/encoder/weight");
  for (std::int64_t channel = 0; channel < 8; ++channel)
    sum += std::abs((*gradient->real)[static_cast<std::size_t>(channel * columns + 1)]);
  CHECK(sum > 1e-6);
  request.set[0].second = std::to_string(columns);  // as wide as the tokens
  CHECK_ERROR(run(builtin_registry(), request, {}, {}), "there is no encoder");
  request = request_for("mamba", {{"width", "8"}, {"read_out", "tied"}}, make_task("adding", {.length = 20, .seed = 3}));
  CHECK_ERROR(run(builtin_registry(), request, {}, {}), "is not that for 1 outputs of 8 channels");
}
