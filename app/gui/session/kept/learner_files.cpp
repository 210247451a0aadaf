// SPDX-License-Identifier: GPL-3.0-or-later
// A training of the window as files: the folder that `reclab train --resume` reads, and beside it the window's part, its curve and the
// weights on its way. Both are whole or not there.
#include <QDir>
#include <QFileInfo>
#include <QJsonDocument>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "array/stop.h"
#include "files/json.h"
#include "files/npz.h"
#include "gui/session/kept/training_store.h"
#include "gui/session/kept_setup.h"
#include "gui/session/work/training.h"

namespace reclab {
namespace {

using Json = nlohmann::ordered_json;
constexpr int schema = 1;
constexpr const char* manifest = "learner.json";
constexpr std::size_t mostKept = 128;                       ///< weights on its way
constexpr std::int64_t mostBytes = std::int64_t{16} << 20;  ///< of these

std::filesystem::path pathOf(const QString& folder, const char* name) { return std::filesystem::path(folder.toStdString()) / name; }

Json jsonOf(const TrainingChoice& choice) {
  Json json;
  for (const TrainingField& field : training_fields())
    if (field.says == Field::Says::one)
      std::visit([&](const auto& value) { json[field.row.key] = value; }, field.get(choice));
    else
      json[field.row.key] = names_of_list(std::get<std::string>(field.get(choice)));
  json["beside"] = choice.beside;
  return json;
}

/// Fields missing in a file, as in one older than an option, have their defaults.
TrainingChoice choiceFrom(const Json& json) {
  TrainingChoice choice;
  for (const TrainingField& field : training_fields()) {
    const auto found = json.find(field.row.key);
    if (found == json.end()) continue;
    if (field.says == Field::Says::one)
      std::visit([&]<class T>(const T&) { field.set(choice, found->get<T>()); }, field.row.standard);
    else
      field.set(choice, list_of_names(found->get<std::vector<std::string>>()));
  }
  json.at("beside").get_to(choice.beside);
  return choice;
}

/// Every list of numbers of a curve.
template <class Curve, class F>
void listsOf(Curve& curve, const F& list) {
  list("loss", curve.loss);
  list("rate", curve.rate);
  list("gradient_norm", curve.norm);
  list("clipped_norm", curve.clipped);
  list("held_out/loss", curve.judged_loss);
  list("held_out/metric", curve.judged_metric);
}

/// And every text.
template <class Curve, class F>
void textsOf(Curve& curve, const F& text) {
  text("name", curve.name);
  text("from", curve.from);
  text("metric", curve.metric);
  text("baseline", curve.baseline);
  text("note", curve.note);
  text("problem", curve.problem);
}

Json jsonOf(const LearnedWeights& weights) {
  return {{"training", weights.training},
          {"step", weights.step},
          {"from", weights.from},
          {"command", weights.command},
          {"folder", weights.folder}};
}

void addTo(NpzWriter& archive, const std::string& prefix, const Parameters& weights) {
  for (const auto& entry : weights.entries()) archive.add(prefix + entry.name, entry.shape, std::span<const double>(entry.values));
}

/// The parameters of an archive whose names have the prefix, in its order.
Parameters readFrom(const NpzFile& archive, const std::string& prefix) {
  Parameters weights;
  for (const std::string& name : archive.names()) {
    if (!name.starts_with(prefix)) continue;
    NpyArray array = archive.read(name);
    weights.entries().push_back({name.substr(prefix.size()), {}, std::move(array.shape), std::move(array.real)});
  }
  return weights;
}

LearnedPtr learnedFrom(const Json& json, Parameters values, std::uint64_t training) {
  auto weights = std::make_shared<LearnedWeights>();
  weights->training = training;
  weights->step = json.at("step").get<std::int64_t>();
  weights->from = json.at("from").get<std::string>();
  weights->command = json.at("command").get<std::string>();
  weights->folder = json.at("folder").get<std::string>();
  weights->values = std::move(values);
  return weights;
}

/// So few that they take the room that there is for them: the first, the newest, and between them every so manieth.
std::vector<LearnedPtr> thinned(const std::vector<LearnedPtr>& all) {
  if (all.size() <= 2) return all;
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(2, mostBytes / std::max<std::int64_t>(1, all.front()->bytes())));
  const std::size_t wanted = std::min({all.size(), mostKept, room});
  std::vector<LearnedPtr> few;
  for (std::size_t i = 0; i < wanted; ++i) few.push_back(all[i * (all.size() - 1) / (wanted - 1)]);
  return few;
}

}  // namespace

Parameters readWeights(const std::filesystem::path& file) { return readFrom(NpzFile(file), prefix_of(Kind::param)); }

void writeWeights(const std::filesystem::path& file, const Parameters& weights) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);  // where it cannot be made, the file says why
  AtomicFile out(file);
  NpzWriter archive(out);
  addTo(archive, prefix_of(Kind::param), weights);
  archive.finish();
  out.commit();
}

std::string learnerWithFiles(const std::string& manifest, const std::function<QString(const QString& file)>& place) {
  std::optional<std::string> twice;
  try {
    Json json = parse_json<Json>(manifest, twice);
    std::string& setup = json.at("setup").get_ref<std::string&>();
    setup = QJsonDocument(withFiles(QJsonDocument::fromJson(QByteArray::fromStdString(setup)).object(), place))
                .toJson(QJsonDocument::Compact)
                .toStdString();
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  } catch (const Json::exception&) {
    return manifest;  // its reader says what is wrong
  }
}

bool Learner::keep(const QString& folder, const std::function<void()>& whole) {
  const std::lock_guard training(training_mutex_);
  if ((removed_ && !whole) || !writeAll(folder)) return false;
  if (whole) whole();
  // Removed since: the window's thread has removed what was there then. One that goes on from its folder wrote nothing.
  if (removed_ && training_) QDir(folder).removeRecursively();
  return true;
}

bool Learner::writeAll(const QString& folder) {
  if (!training_) return !resumes_.empty();  // the folder on disk is up to date
  try {
    updateHistory(true);
  } catch (const DeviceError& error) {
    leaveDevice(error);
  }
  const std::int64_t steps = training_->trainer().steps();
  if (steps == 0) return false;
  std::error_code unknown;
  if (steps == keptSteps_ && std::filesystem::exists(pathOf(folder, "window") / manifest, unknown)) return true;
  const StopScope whole{std::stop_token()};
  export_training(*training_, pathOf(folder, "training"));
  LearningCurve curve;
  std::vector<LearnedPtr> kept;
  {
    const std::lock_guard lock(mutex_);
    curve = curve_;
    kept = thinned(kept_.all());
  }
  AtomicFolder out(pathOf(folder, "window"));
  Json json = {{"schema", schema},
               {"number", number_},
               {"setup", QJsonDocument(toJson(setup_)).toJson(QJsonDocument::Compact).toStdString()},
               {"done", curve.done},
               {"wanted", curve.wanted},
               {"on_cpu", onCpu_},
               {"weights", curve.weights},
               {"changed", curve.changes.size()},
               {"judged", curve.judged}};
  json["choice"] = jsonOf(choice_);
  textsOf(curve, [&](const char* name, const std::string& value) { json[name] = value; });
  AtomicFile& file = out.file("curve.npz");
  NpzWriter archive(file);
  listsOf(curve, [&](const char* name, const std::vector<double>& values) {
    archive.add(name, {std::ssize(values)}, std::span<const double>(values));
  });
  std::vector<double> changes;
  for (const auto& row : curve.changes) changes.insert(changes.end(), row.begin(), row.end());
  archive.add("changes", {std::ssize(changes)}, std::span<const double>(changes));
  const std::vector<double> numbers{curve.baseline_loss, curve.baseline_metric, curve.clip};
  archive.add("numbers", {std::ssize(numbers)}, std::span<const double>(numbers));
  archive.finish();
  std::vector<WrittenFile> files{out.finish(file)};
  AtomicFile& weightsFile = out.file("weights.npz");
  NpzWriter weights(weightsFile);
  json["kept"] = Json::array();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    addTo(weights, std::to_string(i) + "/", kept[i]->values);
    json["kept"].push_back(jsonOf(*kept[i]));
  }
  if (const LearnedPtr begun = setup_.learnedWeights()) {  // a fork
    addTo(weights, "begun/", begun->values);
    json["begun"] = jsonOf(*begun);
  }
  weights.finish();
  files.push_back(out.finish(weightsFile));
  for (const WrittenFile& one : files) json["files"].push_back({{"name", one.name}, {"bytes", one.bytes}, {"sha256", one.sha256}});
  AtomicFile& last = out.file(manifest);
  last.write(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  out.commit();
  keptSteps_ = steps;
  return true;
}

std::shared_ptr<Learner> Learner::kept(const QString& folder, const std::function<std::uint64_t(std::uint64_t before)>& number,
                                       const LibraryPtr& library, const std::function<LoadedSequencePtr(const SequenceChoice&)>& load) {
  const auto file = pathOf(folder, "window") / manifest;
  const auto damaged = [&](const std::string& why) {
    return Error(file.string() + " " + why + ": the training that was kept there cannot be shown.", {.file = file.string()});
  };
  try {
    std::optional<std::string> twice;
    const Json json = parse_json<Json>(read_file(file), twice);
    if (twice || json.at("schema").get<int>() != schema) throw damaged("is of another version");
    for (const Json& one : json.at("files")) {
      const std::string name = one.at("name").get<std::string>();
      if (name != std::filesystem::path(name).filename()) throw damaged("names a file outside its folder");
      if (sha256_of_file(pathOf(folder, "window") / name) != one.at("sha256").get<std::string>()) throw damaged("does not go with " + name);
    }
    const std::optional<KeptSetup> kept =
        keptSetup(QJsonDocument::fromJson(QByteArray::fromStdString(json.at("setup").get<std::string>())).object(), *library);
    if (!kept || !kept->sequence) throw damaged("is of a model that there is not");
    Setup setup = kept->setup;
    setup.sequence = load(*kept->sequence);
    const NpzFile curves(pathOf(folder, "window") / "curve.npz"), weights(pathOf(folder, "window") / "weights.npz");
    if (json.contains("begun"))
      setup.learned[setup.preset] =
          learnedFrom(json.at("begun"), readFrom(weights, "begun/"), json.at("begun").at("training").get<std::uint64_t>());
    auto made = std::make_shared<Learner>(number(json.at("number").get<std::uint64_t>()), 0, library, setup, choiceFrom(json.at("choice")),
                                          QString());
    LearningCurve& curve = made->curve_;
    curve.waits = false;
    textsOf(curve, [&](const char* name, std::string& value) { json.at(name).get_to(value); });
    listsOf(curve, [&](const char* name, std::vector<double>& values) { values = curves.read(name).real; });
    json.at("weights").get_to(curve.weights);
    json.at("judged").get_to(curve.judged);
    json.at("done").get_to(curve.done);
    json.at("wanted").get_to(curve.wanted);
    json.at("on_cpu").get_to(made->onCpu_);
    const std::vector<double> changes = curves.read("changes").real, numbers = curves.read("numbers").real;
    const auto rows = json.at("changed").get<std::size_t>();
    const auto steps = static_cast<std::size_t>(std::max<std::int64_t>(0, curve.done - curve.first));
    bool whole = steps > 0 && numbers.size() == 3 && changes.size() == rows * curve.weights.size();
    for (const auto* one : {&curve.loss, &curve.rate, &curve.norm, &curve.clipped}) whole = whole && one->size() == steps;
    for (const auto* one : {&curve.judged_loss, &curve.judged_metric}) whole = whole && one->size() == curve.judged.size();
    if (!whole) throw damaged("does not go with curve.npz");
    for (std::size_t row = 0; row < rows; ++row) {
      const auto from = changes.begin() + static_cast<std::ptrdiff_t>(row * curve.weights.size());
      curve.changes.emplace_back(from, from + std::ssize(curve.weights));
    }
    curve.baseline_loss = numbers[0];
    curve.baseline_metric = numbers[1];
    curve.clip = numbers[2];
    const Json& all = json.at("kept");
    for (std::size_t i = 0; i < all.size(); ++i) {
      const LearnedPtr one = learnedFrom(all[i], readFrom(weights, std::to_string(i) + "/"), made->number());
      if (one->values.entries().empty() || (made->newest() && one->step <= made->newest()->step) || one->step > curve.done)
        throw damaged("does not go with weights.npz");
      made->kept_.add(one);
    }
    if (!made->newest() || made->newest()->step != curve.done) throw damaged("does not go with weights.npz");
    made->id_ = QFileInfo(folder).fileName();
    made->over_ = curve.done >= curve.wanted;
    made->resumes_ = pathOf(folder, "training");
    made->keptSteps_ = curve.done - curve.first;
    return made;
  } catch (const Json::exception&) {
    throw damaged("cannot be read");
  }
}

}  // namespace reclab
