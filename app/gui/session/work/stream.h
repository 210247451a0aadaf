// SPDX-License-Identifier: GPL-3.0-or-later
// A stream that learns while it is looked at: a thread of its own goes over it, and tells of its newest picture alone, so that who draws
// slowly leaves pictures out and never falls behind.
#pragma once

#include <QObject>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>

#include "gui/jobs/job.h"
#include "gui/session/kept/stream_files.h"
#include "gui/session/sentences.h"
#include "streams/follow.h"

namespace reclab {

/// What a picture is drawn from.
struct LivePicture {
  StreamPicturePtr picture;      ///< null: there is none
  std::vector<StepMark> drifts;  ///< of its ring
};

/// The pictures of a stream that were shown: what they left out, and how often they came.
class PicturesShown {
 public:
  PicturesShown() = default;
  void begin(const StreamNumbers& from);
  /// One whose ring has these steps is shown: what no ring had before is left out.
  void add(std::int64_t first, std::int64_t steps);
  std::int64_t leftOut() const { return leftOut_; }
  std::int64_t pictured() const { return pictured_; }  ///< the last step that is in one
  std::int64_t count() const { return count_; }        ///< since it began, or went on
  /// Steps and pictures a second, over the last second.
  double stepsASecond() const { return rate(true); }
  double picturesASecond() const { return rate(false); }

 private:
  using Clock = std::chrono::steady_clock;
  PicturesShown(std::int64_t leftOut, std::int64_t pictured) : leftOut_(leftOut), pictured_(pictured) {}
  double rate(bool ofSteps) const;
  std::int64_t leftOut_ = 0, pictured_ = 0, count_ = 0;
  std::deque<std::pair<Clock::time_point, std::int64_t>> last_;  ///< when, and at which step
};

/// A stream, between its thread and the window's.
class LiveStream {
 public:
  static constexpr std::chrono::duration<double> between{
      1.0 / 36.0};  ///< from one picture to the next: a block is between them, and 30 a second come

  /// One that begins, with the setup's model, and is kept below the folder.
  LiveStream(LibraryPtr library, Setup setup, StreamRequest request, QString folder);
  /// One that goes on from a place.
  LiveStream(LibraryPtr library, const StreamFiles& kept, const QString& from, QString folder);

  const Setup& setup() const { return setup_; }  ///< of its model, as it began
  const QString& folder() const { return folder_; }

  // For the thread that learns.
  /// Goes over the stream until it ends or is stopped, and leaves it at a place. `tell` is called where there is a picture and the one
  /// before was taken. Throws Error where nothing could begin, and for a source after the steps before it were learned from.
  void follow(const std::function<void()>& tell, std::stop_token stop);
  /// Writes all of it into a folder of the user's. Throws Error.
  void exportTo(const QString& folder);

  // For the window's thread.
  LivePicture takePicture();                                                      ///< the newest, once
  StreamNumbers numbers() const;                                                  ///< at the newest picture
  StreamPlace place() const;                                                      ///< the newest; without a folder there is none
  std::string command() const;                                                    ///< the line that goes over the stream
  std::string commandTo(std::int64_t steps, const std::string& export_to) const;  ///< so far and no farther
  bool kept() const;                                                              ///< everything that it has learned is at its place
  /// Leaves it at a place now, while nobody follows it. Throws Error.
  void keep();
  /// What the pictures that were shown have left out, and the last step that is in one.
  void notePictured(const PicturesShown& shown) {
    leftOut_ = shown.leftOut();
    pictured_ = shown.pictured();
  }
  std::int64_t pictures() const { return pictures_; }                           ///< that it made since it began or went on
  void setPace(std::int64_t stepsASecond) { pace_.set(stepsASecond); }          ///< at once; 0: as fast as it can
  std::int64_t pace() const { return pace_.rate(); }                            ///< the limit
  void setKeepsEvery(std::chrono::milliseconds every) { keepsEvery_ = every; }  ///< before it is followed

 private:
  void begin(std::stop_token stop);
  StreamRequest request() const;
  void leave();
  void writeCheckpoint();
  StreamNumbers numbersToKeep() const;
  const LibraryPtr library_;
  const Setup setup_;
  const StreamRequest request_;
  const QString from_, folder_;
  StreamPace pace_;
  std::chrono::milliseconds keepsEvery_{60'000};
  std::mutex run_mutex_;  ///< of run_, held while it is followed
  std::unique_ptr<StreamRun> run_;
  std::chrono::steady_clock::time_point left_;
  std::atomic<std::int64_t> leftOut_ = 0, pictured_ = 0, pictures_ = 0;
  mutable std::mutex mutex_;  ///< of all below, held for moments
  LivePicture newest_;
  bool told_ = false;
  StreamNumbers numbers_;
  StreamPlace place_;
};

class StreamWork : public QObject {
  Q_OBJECT
 public:
  /// Beside `trainings` it does not learn: it waits until they are done.
  StreamWork(Scheduler& scheduler, const JobBase& trainings);
  void start(const std::shared_ptr<LiveStream>& stream);
  void pause();  ///< after this block; stood() follows
  void hold();   ///< the same, and returns after stood()
  bool running() const { return job_.running() || job_.waiting(); }
  bool waits() const { return job_.waiting(); }  ///< for a training
  void exportTo(const std::shared_ptr<LiveStream>& stream, const QString& folder);

 signals:
  void pictured();
  void stood(QString problem);  ///< it goes on no more, with why where it is a fault
  void said(QString sentence, reclab::Tone tone);

 private:
  struct Nothing {};
  struct Key {
    std::uint64_t number = 0;
    bool operator==(const Key&) const = default;
  };
  struct ExportKey {
    QString folder;
    bool operator==(const ExportKey&) const = default;
  };
  std::stop_source pause_;
  std::shared_ptr<QString> failed_ = std::make_shared<QString>();  ///< why the newest failed, read when its thread has returned
  std::uint64_t number_ = 0;
  Job<Key, Nothing> job_;
  Job<ExportKey, Nothing> exports_;
};

}  // namespace reclab
