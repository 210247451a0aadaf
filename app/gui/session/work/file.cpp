// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/file.h"

#include <QDir>
#include <QFileInfo>
#include <utility>

#include "gui/session/requests.h"
#include "models/registry.h"

namespace reclab {

FileWork::FileWork(Scheduler& scheduler)
    : saving_(scheduler, {.order = JobBase::Order::all},
              {.ended =
                   [this](const SaveKey& key, const Ending& ending) {
                     if (ending.how != Ending::How::finished) return emit said(ending.sentence, Tone::warning);
                     emit said((key.kind == FileKind::weights ? tr("The weights are in %1.") : tr("The final state is in %1."))
                                   .arg(QDir::toNativeSeparators(key.file)),
                               Tone::info);
                     emit saved(key.file);
                   }}),
      loading_(scheduler, {.yieldsTo = {&saving_}},
               {.finished = [this](const LoadKey& key, const Loaded& loaded) { take(key, loaded); },
                .ended =
                    [this](const LoadKey& key, const Ending& ending) {
                      if (ending.how != Ending::How::failed) return;
                      emit said(ending.sentence, Tone::warning);
                      if (key.kind == FileKind::sequence) emit sequenceRefused();
                    }}) {}

void FileWork::open(const SequenceChoice& choice) {
  loading_.start({choice, {}}, [choice](const auto&, std::stop_token) -> Loaded { return kind_of_file(choice.file); });
}

void FileWork::openPreset(const QString& file, const LibraryPtr& library) {
  LoadKey key;
  key.choice.file = file.toStdString();
  loading_.start(std::move(key), [library, path = std::filesystem::path(file.toStdString())](const auto&, std::stop_token) -> Loaded {
    std::vector<std::filesystem::path> places = preset_folders();
    for (const Preset& preset : library->presets.presets()) places.push_back(preset.file);  // those that were opened before
    places.push_back(path);
    auto more = std::make_shared<Library>(*library);
    more->presets = PresetLibrary(builtin_registry(), places);
    for (const Preset& preset : more->presets.presets())
      if (std::filesystem::equivalent(preset.file, path)) return ReadPreset{more, QString::fromStdString(preset.id)};
    for (const std::string& problem : more->presets.problems())
      if (problem.starts_with(path.string())) throw Error(problem);
    throw Error(path.string() + " is no preset.");
  });
}

void FileWork::loadSequence(const SequenceChoice& choice) {
  if (choice.is_file()) emit said(tr("Reading %1…").arg(QFileInfo(QString::fromStdString(choice.file)).fileName()), Tone::busy);
  loading_.start({choice, FileKind::sequence}, [choice](const auto&, std::stop_token) -> Loaded {
    try {
      return loadChoice(choice);
    } catch (const MissingCellError& error) {
      return Gaps{sentenceOf(std::current_exception()), QString::fromStdString(error.where().range).split(',')};
    }
  });
}

void FileWork::loadFile(FileKind kind, const QString& file, const LibraryPtr& library, const Setup& setup) {
  emit said(tr("Reading %1…").arg(QFileInfo(file).fileName()), Tone::busy);
  Setup with = setup;
  with.weights.clear();  // the sentence is to be about this file alone
  with.states.clear();
  with.learned.clear();
  with.files(kind)[with.preset] = file.toStdString();
  LoadKey key{{}, kind, QString::fromStdString(setup.preset)};
  key.choice.file = file.toStdString();
  loading_.start(std::move(key), [library, with](const auto&, std::stop_token) -> Loaded {
    try {
      check_files(builtin_registry(), requestFor(with, library->presets.find(with.preset), {}));
      return Fits{};
    } catch (const MisfitError& error) {
      QStringList parts;
      for (const std::string& part : error.parts) parts << QString::fromStdString(part);
      return Misfit{sentenceOf(std::current_exception()), error.settings, parts};
    }
  });
}

void FileWork::take(const LoadKey& key, const Loaded& loaded) {
  const QString file = QString::fromStdString(key.choice.file);
  if (const auto* kind = std::get_if<FileKind>(&loaded)) {
    emit isOf(*kind, key.choice);
  } else if (const auto* preset = std::get_if<ReadPreset>(&loaded)) {
    emit presetRead(preset->library, preset->id, file);
  } else if (const auto* sequence = std::get_if<LoadedSequencePtr>(&loaded)) {
    emit sequenceLoaded(*sequence);
  } else if (const auto* gaps = std::get_if<Gaps>(&loaded)) {
    emit said(gaps->sentence, Tone::warning);
    emit sequenceRefused();
    emit cellsMissing(key.choice, gaps->cures);
  } else if (const auto* misfit = std::get_if<Misfit>(&loaded)) {
    emit said(misfit->sentence, Tone::warning);
    if (!misfit->sizes.empty()) emit sizesFit(key.preset, file, misfit->sizes);
    if (!misfit->parts.isEmpty()) emit partsFit(key.preset, file, misfit->parts);
  } else {
    emit fileFits(*key.kind, key.preset, file);
  }
}

void FileWork::saveWeights(const TracePtr& trace, const QString& file) {
  save({FileKind::weights, file}, [trace, file] { save_weights(*trace, file.toStdString()); });
}

void FileWork::saveState(const std::shared_ptr<const FinalState>& state, const QString& file) {
  save({FileKind::state, file}, [state, file] { save_state(*state, file.toStdString()); });
}

void FileWork::save(const SaveKey& key, std::function<void()> write) {
  saving_.start(key, [write = std::move(write)](const auto&, std::stop_token) -> Nothing {
    write();
    return {};
  });
}

}  // namespace reclab
