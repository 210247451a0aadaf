// SPDX-License-Identifier: GPL-3.0-or-later
// A sound file (WAV, FLAC, AIFF, Ogg) read piece by piece through libsndfile, so that it may be of any length; or the microphone.
#include <cmath>

#include "array/error.h"
#include "files/files.h"
#include "streams/series.h"
#include "streams/sources/sound/microphone.h"

#ifdef RECLAB_SNDFILE
#include <sndfile.h>
#endif

namespace reclab::sources_by_name {
namespace {

#ifdef RECLAB_SNDFILE

class Sound final : public SeriesSource {
 public:
  Sound(const SourceChoice& choice, const Hyper& parameters)
      : SeriesSource({"value"}, choice.standardise), file_(choice.argument), repeat_(parameters.flag("repeat")) {
    SF_INFO info{};
    sound_.reset(sf_open(file_.c_str(), SFM_READ, &info));
    if (!sound_) refuse("cannot be read as sound (" + why() + ")");
    constexpr int most_channels = 64;
    if (info.channels < 1 || info.channels > most_channels)
      refuse("has " + std::to_string(info.channels) + " channels, and up to " + std::to_string(most_channels) + " are read");
    if (!info.seekable) refuse("cannot be begun anew");
    sf_command(sound_.get(), SFC_SET_NORM_DOUBLE, nullptr, SF_TRUE);
    channels_ = static_cast<std::size_t>(info.channels);
    std::vector<std::string> names;
    for (std::size_t j = 1; j <= channels_; ++j) names.push_back(channels_ == 1 ? "value" : "channel " + std::to_string(j));
    set_names(names);
    if (!fill()) refuse("has no sample");
  }

 protected:
  Next row(std::vector<double>& values, std::int64_t& regime, std::stop_token) override {
    regime = -1;
    if (at_ == block_.size() && !fill()) {
      if (!repeat_) return Next::ended;
      seek(0);
      if (!fill()) refuse("has no sample");
    }
    values.assign(block_.begin() + static_cast<std::ptrdiff_t>(at_), block_.begin() + static_cast<std::ptrdiff_t>(at_ + channels_));
    for (const double x : values)
      if (!std::isfinite(x)) refuse("has a value that is no number, at sample " + std::to_string(frame_ + 1));
    at_ += channels_;
    ++frame_;
    return Next::step;
  }
  void keep_place(StreamState& state) override {
    std::int64_t frame = frame_;
    state.whole("frame", frame);
    if (state.reads()) seek(frame);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(file_ + " " + what + ": give a sound file that can be read, WAV or FLAC.", {.file = file_});
  }
  std::string why() const {
    std::string text = sf_strerror(sound_.get());
    while (!text.empty() && (text.back() == '.' || text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return printable(text);
  }
  /// False at the end.
  bool fill() {
    block_.resize(block_frames * channels_);
    const sf_count_t read = sf_readf_double(sound_.get(), block_.data(), block_frames);
    if (sf_error(sound_.get()) != SF_ERR_NO_ERROR) refuse("is damaged after " + std::to_string(frame_) + " samples (" + why() + ")");
    block_.resize(static_cast<std::size_t>(read) * channels_);
    at_ = 0;
    return read > 0;
  }
  void seek(std::int64_t frame) {
    if (sf_seek(sound_.get(), frame, SEEK_SET) != frame) refuse("is shorter than what was read of it");
    frame_ = frame;
    block_.clear();
    at_ = 0;
  }

  static constexpr sf_count_t block_frames = 4096;
  struct Close {
    void operator()(SNDFILE* sound) const { sf_close(sound); }
  };
  std::string file_;
  std::unique_ptr<SNDFILE, Close> sound_;
  bool repeat_;
  std::size_t channels_ = 1, at_ = 0;  // at_: in block_
  std::int64_t frame_ = 0;             // the next one of the file
  std::vector<double> block_;
};

std::unique_ptr<StreamSource> file_of(const SourceChoice& choice) { return std::make_unique<Sound>(choice, source_parameters(choice)); }

#else

std::unique_ptr<StreamSource> file_of(const SourceChoice& choice) {
  throw Error(choice.argument +
                  " is to be read as sound, and this build has no libsndfile: save the samples as lines of numbers for the "
                  "source file, or build with libsndfile (Debian: libsndfile1-dev).",
              {.file = choice.argument});
}

#endif

constexpr std::string_view device_word = "alsa=";

bool is_device(const SourceChoice& choice) { return choice.argument.empty() || choice.argument.starts_with(device_word); }

std::unique_ptr<StreamSource> opened(const SourceChoice& choice) {
  if (!is_device(choice)) return file_of(choice);
  const Hyper parameters = source_parameters(choice);
  return microphone(choice.argument.empty() ? "default" : choice.argument.substr(device_word.size()), parameters.integer("rate"),
                    parameters.integer("channels"), choice.standardise);
}

}  // namespace

StreamSourceInfo sound() {
  return {.argument = "FILE|alsa=DEVICE",
          .text = "A sound file of any length, or without one the microphone; a sample a step, a column a channel, of values from -1 to 1",
          .parameters = {hyper_flag("repeat", false, "A file is played again and again, and not once"),
                         hyper_integer("rate", "", 4000, 1000, 192'000, "Samples a second of the microphone"),
                         hyper_integer("channels", "", 1, 1, 64, "Channels of the microphone")},
          .alone = true,
          .once = is_device,
          .make = opened};
}

}  // namespace reclab::sources_by_name
