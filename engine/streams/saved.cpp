// SPDX-License-Identifier: GPL-3.0-or-later
// The folder of a stream.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "files/files.h"
#include "files/json.h"
#include "files/npz.h"
#include "files/safetensors.h"
#include "sequence/format.h"
#include "streams/stream.h"
#include "trace/kinds.h"

namespace reclab {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* manifest = "stream.json";
constexpr int schema = 1;
constexpr const char* exported_files[] = {"stream.npz", "state.npz", "weights.npz", "weights.safetensors"};
constexpr const char* ring_file = "ring.npz";  // where one is asked for
constexpr std::uint64_t longest_manifest = std::uint64_t{1} << 20;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw Error(file.string() + " " + what + ": give the folder of a stream that `reclab stream --export` wrote.", {.file = file.string()});
}

void add(NpzWriter& archive, const std::string& name, const std::vector<double>& values) {
  archive.add(name, {std::ssize(values)}, std::span<const double>(values));
}

/// As save_sequence() does.
void write_sequence(const Sequence& sequence, AtomicFile& file) {
  std::ranges::find(sequence_formats(), ".npz", &SequenceFormat::saved_as)->save(sequence, file);
}

void write_errors(const StreamRun& stream, AtomicFile& file) {
  NpzWriter archive(file);
  const PrequentialCurve& curve = stream.curve();
  const auto measures = measures_of(stream.form());
  const auto& predictors = stream.predictors();
  archive.add("step", {curve.rows()}, std::span<const std::int64_t>(curve.steps()));
  const auto rows = [&](const auto& value) {
    std::vector<double> values;
    for (std::int64_t row = 0; row < curve.rows(); ++row) values.push_back(value(row));
    return values;
  };
  const std::pair<PrequentialCurve::Column, const char*> columns[] = {
      {PrequentialCurve::windowed, "windowed"}, {PrequentialCurve::faded, "faded"}, {PrequentialCurve::total, "total"}};
  for (const auto& [column, name] : columns)
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t p = 0; p < predictors.size(); ++p)
        add(archive, std::string(name) + "/" + measures[i] + "/" + predictors[p].name,
            rows([&, which = column](std::int64_t row) { return curve.at(row, p, which, i); }));
  // Of the learners: the sum of errors until then, less that of the learner for which it is least then.
  for (std::size_t p = 0; p < predictors.size() && predictors[p].learns; ++p)
    add(archive, "regret/" + measures[0] + "/" + predictors[p].name, rows([&](std::int64_t row) {
          double least = curve.at(row, p, PrequentialCurve::total, 0);
          for (std::size_t other = 0; other < predictors.size() && predictors[other].learns; ++other)
            if (const double x = curve.at(row, other, PrequentialCurve::total, 0); !(x >= least)) least = std::isnan(x) ? least : x;
          return curve.at(row, p, PrequentialCurve::total, 0) - least;
        }));
  if (stream.ring() && stream.ring()->length() > 0) {
    const StreamRing& ring = *stream.ring();
    const auto regimes = ring.regimes(), drifts = ring.drifts();
    archive.add("ring/regime", {std::ssize(regimes)}, std::span<const std::int64_t>(regimes));
    archive.add("ring/drift", {std::ssize(drifts)}, std::span<const std::int64_t>(drifts));
    for (std::size_t p = 0; p < predictors.size(); ++p)
      archive.add("ring/prediction/" + predictors[p].name, {ring.length(), stream.form().outputs()},
                  std::span<const double>(ring.predictions(p)));
  }
  const auto& drifts = stream.drifts().rows();
  std::vector<std::int64_t> steps, regimes;
  for (const DriftLog::Row& row : drifts) {
    steps.push_back(row.step);
    regimes.push_back(row.regime);
  }
  archive.add("drift/step", {std::ssize(steps)}, std::span<const std::int64_t>(steps));
  archive.add("drift/regime", {std::ssize(regimes)}, std::span<const std::int64_t>(regimes));
  for (std::size_t i = 0; i < RegimeErrors::values; ++i)
    for (std::size_t p = 0; p < predictors.size(); ++p) {
      std::vector<double> values;
      for (const DriftLog::Row& row : drifts) values.push_back(row.of[p].numbers()[i]);
      add(archive, std::string("drift/") + RegimeErrors::names[i] + "/" + predictors[p].name, values);
    }
  archive.finish();
}

Json predictor_json(const StreamRun& stream, std::size_t p) {
  const StreamRun::Predictor& predictor = stream.predictors()[p];
  const auto measures = measures_of(stream.form());
  Json json = {{"name", predictor.name}, {"text", predictor.text}, {"learns", predictor.learns}};
  if (predictor.learns) json["regret"] = stream.regret(p);
  if (predictor.diverged >= 0) json["diverged"] = predictor.diverged;
  const Prequential& errors = stream.errors()[p];
  const std::pair<const char*, Errors> all[] = {{"mean", errors.mean()}, {"windowed", errors.windowed()}, {"faded", errors.faded()}};
  for (const auto& [name, values] : all) json[name] = {{measures[0], values[0]}, {measures[1], values[1]}};
  if (stream.drifts().drifts() > 0) {
    const auto means = stream.drifts().mean(p);
    for (std::size_t i = 0; i < means.size(); ++i) json["drifts"][RegimeErrors::names[i]] = means[i];
  }
  return json;
}

Json read_manifest(const std::filesystem::path& folder) {
  const auto file = folder / manifest;
  if (InputFile(file).size() > longest_manifest) fail(file, "is too long to be one of a stream");
  std::optional<std::string> twice;
  try {
    Json json = parse_json<Json>(read_file(file), twice);
    if (twice) fail(file, "has " + printable(*twice) + " twice");
    if (json.at("schema").get<int>() != schema) fail(file, "is of another version");
    std::vector<std::string> names(std::begin(exported_files), std::end(exported_files));
    if (json.at("files").size() > names.size()) names.emplace_back(ring_file);
    if (json.at("files").size() != names.size()) fail(file, "does not name its files");
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Json& one = json.at("files").at(i);
      const auto path = folder / names[i];
      if (one.at("name").get<std::string>() != names[i]) fail(file, "does not name " + names[i]);
      if (InputFile(path).size() != one.at("bytes").get<std::uint64_t>() || sha256_of_file(path) != one.at("sha256").get<std::string>())
        fail(path, "has changed since it was written");
    }
    return json;
  } catch (const Json::exception&) {
    fail(file, "cannot be read");
  }
}

}  // namespace

namespace {
void write_stream(StreamRun& stream, AtomicFolder& out) {
  std::vector<WrittenFile> files;
  const auto write = [&](const std::string& name, const auto& writer) {
    AtomicFile& file = out.file(name);
    writer(file);
    files.push_back(out.finish(file));
  };
  write("stream.npz", [&](AtomicFile& file) { write_errors(stream, file); });
  write("state.npz", [&](AtomicFile& file) {
    StreamState state;
    stream.keep(state);
    NpzWriter archive(file);
    for (const auto& [name, values] : state.arrays()) add(archive, name, values);
    archive.finish();
  });
  const Parameters weights = stream.weights(stream.best());
  write("weights.npz", [&](AtomicFile& file) {
    NpzWriter archive(file);
    for (const auto& entry : weights.entries())
      archive.add(prefix_of(Kind::param) + entry.name, entry.shape, std::span<const double>(entry.values));
    archive.finish();
  });
  write("weights.safetensors", [&](AtomicFile& file) {
    std::vector<SafetensorsEntry> entries;
    for (const auto& entry : weights.entries()) entries.push_back({entry.name, entry.shape, entry.values});
    write_safetensors(file, entries, stream.request().run.dtype == "f32");
  });
  if (stream.ring() && stream.ring()->length() > 0)
    write(ring_file, [&](AtomicFile& file) { write_sequence(stream.ring()->sequence(), file); });
  Json json = {{"schema", schema}, {"version", RECLAB_VERSION}, {"preset", stream.request().run.preset.id}, {"title", stream.title()}};
  json["command"] = command_of(stream.request());
  json["arguments"] = arguments_of(stream.request());
  json["steps"] = stream.steps();
  json["stride"] = stream.curve().stride();
  json["drifts"] = stream.drifts().drifts();
  json["regimes"] = stream.form().concepts;
  json["weights_of"] = stream.predictors()[stream.best()].name;
  json["predictors"] = Json::array();
  for (std::size_t p = 0; p < stream.predictors().size(); ++p) json["predictors"].push_back(predictor_json(stream, p));
  json["files"] = Json::array();
  for (const WrittenFile& file : files) json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  write(manifest, [&](AtomicFile& file) { file.write(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); });
}
}  // namespace

void export_stream(StreamRun& stream, const std::filesystem::path& folder) {
  AtomicFolder out(folder);
  write_stream(stream, out);
  out.commit();
}

void check_stream_export(StreamRun& stream, const std::filesystem::path& folder) {
  AtomicFolder out(folder);
  write_stream(stream, out);
}

bool holds_stream(const std::filesystem::path& folder) {
  std::error_code none;
  if (const auto status = std::filesystem::status(folder, none); std::filesystem::exists(status) && !std::filesystem::is_directory(status))
    throw Error(folder.string() + " is a file: give a folder.", {.file = folder.string()});
  const auto there = [&](const char* name) { return std::filesystem::exists(std::filesystem::symlink_status(folder / name, none)); };
  if (there(manifest)) return true;
  std::vector<std::string> names(std::begin(exported_files), std::end(exported_files));
  names.emplace_back(ring_file);
  for (const std::string& name : names)
    if (there(name.c_str()))
      throw Error(folder.string() + " has a " + name + " that is of no stream: give another folder.",
                  {.file = folder.string(), .place = name});
  return false;
}

std::vector<std::string> stream_arguments_in(const std::filesystem::path& folder) {
  const Json json = read_manifest(folder);
  try {
    return json.at("arguments").get<std::vector<std::string>>();
  } catch (const Json::exception&) {
    fail(folder / manifest, "has no arguments");
  }
}

std::unique_ptr<StreamRun> resume_stream(const Registry& registry, const StreamRequest& request, const std::filesystem::path& folder) {
  read_manifest(folder);
  const auto file = folder / "state.npz";
  const NpzFile archive(file);
  StreamState::Arrays arrays;
  for (const std::string& name : archive.names()) {
    const NpyHeader header = archive.header(name);
    if (header.kind != 'f' || header.shape.size() != 1) fail(file, "has " + printable(name) + ", which is no row of numbers");
    arrays.emplace(name, archive.read(name).real);
  }
  StreamState state(std::move(arrays), file.string());
  return std::make_unique<StreamRun>(registry, request, &state);
}

}  // namespace reclab
