// SPDX-License-Identifier: GPL-3.0-or-later
// The session's part in streams: while one goes on, its last steps are the sequence that is looked at, and the weights that it has learned
// by then are those of the model.
#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <algorithm>
#include <utility>

#include "experiment/command/command.h"
#include "gui/session/session_controller.h"
#include "plot/parts/learned_text.h"
#include "plot/theme.h"
#include "window_text.h"

namespace reclab {
namespace {

/// A setup with the model of a stream: all else, as the settings of other models, stays.
Setup withModelOf(Setup setup, const Setup& stream) {
  if (std::exchange(setup.preset, stream.preset) != stream.preset) setup.form = "auto";  // another model may not have this one's
  if (const auto set = stream.set.find(stream.preset); set != stream.set.end())
    setup.set[stream.preset] = set->second;
  else
    setup.set.erase(stream.preset);
  setup.seed = stream.seed;
  setup.device = stream.device;
  setup.dtype = stream.dtype;
  setup.loss = stream.loss;
  setup.states.erase(stream.preset);
  return setup;
}

/// The same at a place where it was left: ring and weights are files.
Setup atPlace(Setup setup, const StreamPlace& place) {
  setup.sequence = place.ring;
  setup.learned.erase(setup.preset);
  setup.weights[setup.preset] = place.weights().toStdString();
  return setup;
}

}  // namespace

/// Throws Error. What is asked for at each change of the settings is read once.
std::shared_ptr<const StreamFiles> SessionController::streamFiles(const QString& folder) const {
  constexpr std::size_t most = 4;
  const QDateTime written = QFileInfo(folder + windowsPartOfPlace()).lastModified();
  const auto found = std::ranges::find_if(
      readPlaces_, [&](const ReadPlace& one) { return one.folder == folder && one.written == written && one.library == library_; });
  if (found != readPlaces_.end()) return found->files;
  auto files = std::make_shared<const StreamFiles>(streamFilesIn(folder, *library_));
  std::erase_if(readPlaces_, [&](const ReadPlace& one) { return one.folder == folder; });
  if (readPlaces_.size() >= most) readPlaces_.erase(readPlaces_.begin());
  readPlaces_.push_back({folder, written, library_, files});
  return files;
}

void SessionController::connectStreams() {
  connect(&streams_, &StreamWork::pictured, this, &SessionController::showPicture);
  connect(&streams_, &StreamWork::stood, this, &SessionController::leaveStreaming);
  connect(&streams_, &StreamWork::said, this, &SessionController::said);
  connect(&runs_, &RunWork::ended, this, &SessionController::showPicture,  // that came while the run of the one before went on
          Qt::QueuedConnection);
}

StreamRequest SessionController::streamOf(const StreamRequest& choice, Setup& setup) const {
  // A stream that begins anew begins with what the one before began with.
  if (const QString place = placeOf(fileOf(setup.weights, setup.preset)); !place.isEmpty() && !setup.learnedWeights()) {
    const auto before = streamFiles(place);
    if (const auto file = fileOf(before->setup.weights, before->setup.preset); file.empty())
      setup.weights.erase(setup.preset);
    else
      setup.weights[setup.preset] = file;
  }
  setup.sequence.reset();
  setup.states.erase(setup.preset);
  setup.loss = LossKind::automatic;
  StreamRequest request = choice;
  request.run = modelOfStream(setup, library_->presets.find(setup.preset));
  request.source.seed = setup.seed;
  request.ring = std::max<std::int64_t>(2, request.ring);
  return request;
}

QString SessionController::streamCommand(const StreamRequest& choice) const {
  if (streams_.running()) return QString::fromStdString(stream_->command());
  if (!library_ || setup_.preset.empty()) return {};
  try {
    Setup setup = setup_;
    const StreamRequest request = streamOf(choice, setup);
    const std::string text = command_of(request);
    return QString::fromStdString(request.run.learned ? request.run.learned->command + " && " + text : text);
  } catch (const Error&) {
    return {};  // Start says why
  }
}

void SessionController::startStream(const StreamRequest& choice) {
  if (!ready()) return emit said(tr("There is no model to learn yet; choose one first."), Tone::warning);
  holdStream();
  trainings_.pause();
  try {
    Setup setup = setup_;
    StreamRequest request = streamOf(choice, setup);
    const QString folder = newStreamFolder(QString::fromStdString(setup.preset));
    if (request.run.learned) {  // what it begins with is a file too, so that its line can be repeated
      const QString begins = folder + "/begin.npz";
      writeWeights(begins.toStdString(), request.run.learned->values);
      setup.learned.erase(setup.preset);
      setup.weights[setup.preset] = begins.toStdString();
      request.run = modelOfStream(setup, library_->presets.find(setup.preset));
    }
    followStream(std::make_shared<LiveStream>(library_, setup, request, folder), {});
  } catch (const Error& error) {
    emit said(windowText(error), Tone::warning);
  }
}

void SessionController::goOnWithStream(std::int64_t pace) {
  const QString from = streamFolder();
  if (streams_.running() || from.isEmpty()) return;
  trainings_.pause();
  try {
    if (stream_ && stream_->place().folder == from) {
      stream_->setPace(pace);
      return followStream(stream_, stream_->numbers());
    }
    StreamFiles kept = *streamFiles(from);
    kept.request.pace = pace;
    const QString folder = newStreamFolder(QString::fromStdString(kept.setup.preset));
    followStream(std::make_shared<LiveStream>(library_, kept, from, folder), kept.numbers);
  } catch (const Error& error) {
    emit said(windowText(error), Tone::warning);
  }
}

void SessionController::followStream(const std::shared_ptr<LiveStream>& stream, const StreamNumbers& from) {
  stream_ = stream;
  pictures_.begin(from);
  streamBegins_ = true;
  stream_->setKeepsEvery(streamKeptEvery_);
  streams_.start(stream_);
  emit streamChanged();
}

void SessionController::setStreamPace(std::int64_t pace) {
  if (streams_.running()) stream_->setPace(pace);
}

void SessionController::showPicture() {
  if (!streams_.running() || !stream_ || runs_.running()) return;  // the newest is shown when the run of the one before is done
  const auto [picture, drifts] = stream_->takePicture();
  if (!picture) return;
  const StreamPlace place = stream_->place();
  auto ring = std::make_shared<LoadedSequence>();
  const std::string export_to = stream_->setup().preset + "-stream-" + std::to_string(picture->steps);
  ring->choice = ringIn(place.folder);
  ring->sequence = picture->ring;
  ring->sequence.source = export_to + "/ring.npz";
  ring->sequence.load = ring->choice.load;
  ring->overview = overviewOf(ring->sequence);
  ring->columns = ring->sequence.names;
  ring->marks = drifts;
  auto weights = std::make_shared<LearnedWeights>();
  weights->step = picture->steps;
  weights->values = picture->weights;
  weights->from = from_stream;
  weights->folder = export_to;
  weights->command = stream_->commandTo(picture->steps, export_to);
  pictures_.add(picture->steps - picture->ring.length, picture->steps);
  stream_->notePictured(pictures_);

  const bool begins = std::exchange(streamBegins_, false);
  const auto show = [&] {
    if (begins) steady_ = atPlace(withModelOf(setup_, stream_->setup()), place);
    Setup live = *steady_;
    live.sequence = ring;
    live.learned[live.preset] = weights;
    live_ = {ring, weights, live.preset};
    following_ = false;
    if (begins) {
      take(live);
      describe();
    } else {
      setup_ = std::move(live);  // one of the same model, which streamChanged tells of
    }
    runs_.start(true);
  };
  showStream(begins, show);
  if (begins)
    emit said(tr("%1 learns from the stream as it comes; Pause looks back at its last steps.")
                  .arg(QString::fromStdString(library_->presets.find(setup_.preset).title)),
              Tone::info);
  emit streamChanged();
}

/// Its first picture is a change, and all that come after it are the state that this one leads to.
void SessionController::showStream(bool begins, const std::function<void()>& show) {
  if (!begins) return show();
  showsPicture_ = true;
  asChange_(tr("stream"), show);
  showsPicture_ = false;
}

void SessionController::leaveStreaming(const QString& problem) {
  const StreamPlace place = stream_->place();
  const StreamNumbers numbers = stream_->numbers();
  const bool begins = std::exchange(streamBegins_, false);
  if (place.folder.isEmpty() || (begins && place.steps <= pictures_.pictured())) {
    // Not a step was made: everything is as it was.
    if (place.folder.isEmpty()) {
      QDir(stream_->folder()).removeRecursively();
      stream_.reset();
    } else {
      QDir().rmdir(stream_->folder());  // a new one, with nothing in it
    }
    emit streamChanged();
    if (!problem.isEmpty()) emit said(problem, Tone::warning);
    return;
  }
  if (stream_->kept()) {
    pictures_.add(place.steps - (place.ring ? place.ring->sequence.length : 0), place.steps);
    stream_->notePictured(pictures_);
    const auto show = [&] {
      const Setup left = atPlace(begins ? withModelOf(setup_, stream_->setup()) : setup_, place);
      steady_.reset();
      take(left);
      describe();
      runs_.start(false);
    };
    showStream(begins, show);
  } else {
    runs_.start(false);  // what it learned is in memory alone
  }
  emit streamChanged();
  const QString at = grouped(numbers.steps);
  const QString sentence = !problem.isEmpty() ? tr("The stream stands at step %1: %2").arg(at, problem)
                           : numbers.done     ? tr("The stream is at its end, step %1, and kept.").arg(at)
                                              : tr("The stream is paused at step %1, and kept; Go on continues it.").arg(at);
  // The run of its last steps ends after it, and has the last word else.
  connect(
      &runs_, &RunWork::ended, this, [this, sentence, bad = !problem.isEmpty()] { emit said(sentence, bad ? Tone::warning : Tone::info); },
      static_cast<Qt::ConnectionType>(Qt::QueuedConnection | Qt::SingleShotConnection));
}

void SessionController::holdStream() {
  if (!showsPicture_) streams_.hold();
}

void SessionController::endStream() {
  holdStream();
  if (!stream_ || !stream_->kept()) return;
  stream_.reset();  // its source is closed; its folder is there
  emit streamChanged();
}

QString SessionController::keepStream() {
  holdStream();
  if (!stream_ || stream_->kept()) return {};
  try {
    stream_->keep();
    leaveStreaming({});
  } catch (const Error& error) {
    return windowText(error);
  }
  return {};
}

void SessionController::exportStream(const QString& folder) {
  const QString from = streamFolder();
  holdStream();
  if (from.isEmpty()) return;
  try {
    auto stream = stream_;
    if (!stream || stream->place().folder != streamFolder())
      stream = std::make_shared<LiveStream>(library_, *streamFiles(streamFolder()), streamFolder(), QString());
    streams_.exportTo(stream, folder);
  } catch (const Error& error) {
    emit said(windowText(error), Tone::warning);
  }
}

QString SessionController::streamFolder() const {
  if (stream_ && streams_.running()) return stream_->place().folder;
  if (const QStringList places = placesOf(setup_); !places.isEmpty()) {
    const QString checkpoint = checkpointIn(QFileInfo(places[0]).path());  // of a stream that the program did not see stand
    return QFileInfo::exists(checkpoint + "/stream.json") ? checkpoint : places[0];
  }
  return stream_ ? stream_->place().folder : QString();
}

void SessionController::lookAtPlace(const QString& folder) {
  if (!library_) return;
  holdStream();
  try {
    const auto kept = streamFiles(folder);
    const StreamPlace place{folder, kept->numbers.steps, loadChoice(ringIn(folder))};
    const Setup there = atPlace(withModelOf(setup_, kept->setup), place);
    asChange_(tr("kept stream"), [&] { apply(there, false); });
  } catch (const Error& error) {
    emit said(windowText(error), Tone::warning);
  }
}

QStringList SessionController::placesInUse() const {
  QStringList places = placesOf(setup_) + placesOf(steadySetup());
  places << streamFolder();
  if (streams_.running()) places << stream_->place().folder << checkpointIn(stream_->folder());
  places.removeAll(QString());
  places.removeDuplicates();
  return places;
}

Streaming SessionController::streaming() const {
  Streaming now;
  now.running = streams_.running();
  now.waits = streams_.waits();
  now.folder = streamFolder();
  if (stream_ && (now.running || stream_->place().folder == now.folder)) {
    now.numbers = stream_->numbers();
    now.numbers.leftOut = pictures_.leftOut();
    now.made = stream_->pictures();
    now.drawn = pictures_.count();
    if (now.running) {
      now.pace = pictures_.stepsASecond();
      now.pictures = pictures_.picturesASecond();
      now.limit = stream_->pace();
    }
    now.command = QString::fromStdString(stream_->command());
    now.of = stream_->setup().preset;
  } else if (!now.folder.isEmpty() && library_) {
    try {
      const auto kept = streamFiles(now.folder);
      now.numbers = kept->numbers;
      now.command = QString::fromStdString(command_of(kept->request));
      now.of = kept->setup.preset;
    } catch (const Error& error) {
      now.problem = windowText(error);
    }
  }
  return now;
}

Setup SessionController::asKept(Setup setup) const {
  if (!stream_ || live_.ring == nullptr || !stream_->kept()) return setup;
  const StreamPlace place = stream_->place();
  if (setup.sequence == live_.ring) setup.sequence = place.ring;
  if (const auto found = setup.learned.find(live_.preset); found != setup.learned.end() && found->second == live_.weights) {
    setup.learned.erase(found);
    setup.weights[live_.preset] = place.weights().toStdString();
  }
  return setup;
}

}  // namespace reclab
