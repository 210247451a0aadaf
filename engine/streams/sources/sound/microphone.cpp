// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/sources/sound/microphone.h"

#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "array/error.h"
#include "experiment/prepared.h"
#include "files/files.h"

#ifdef RECLAB_ALSA
#include <alsa/asoundlib.h>
#endif

namespace reclab {

#ifdef RECLAB_ALSA
namespace {

/// ALSA prints its errors, and they are thrown here.
void silent(const char*, int, const char*, int, const char*, ...) {}

class Microphone final : public SeriesSource {
 public:
  Microphone(std::string device, std::int64_t rate, std::int64_t channels, std::int64_t standardise)
      : SeriesSource({"value"}, standardise), device_(std::move(device)), channels_(static_cast<std::size_t>(channels)) {
    snd_lib_error_set_handler(silent);
    snd_pcm_t* opened = nullptr;
    if (const int failed = snd_pcm_open(&opened, device_.c_str(), SND_PCM_STREAM_CAPTURE, SND_PCM_NONBLOCK); failed < 0)
      refuse("cannot be opened", failed);
    pcm_.reset(opened);
    constexpr unsigned latency = 500'000;  // microseconds that are kept while the model learns
    if (const int failed = snd_pcm_set_params(opened, SND_PCM_FORMAT_S16, SND_PCM_ACCESS_RW_INTERLEAVED, static_cast<unsigned>(channels),
                                              static_cast<unsigned>(rate), 1, latency);
        failed < 0)
      refuse("does not take " + std::to_string(rate) + " samples a second of " + plural(channels, "channel"), failed);
    std::vector<std::string> names;
    for (std::size_t j = 1; j <= channels_; ++j) names.push_back(channels_ == 1 ? "value" : "channel " + std::to_string(j));
    set_names(names);
    if (const int failed = snd_pcm_start(opened); failed < 0) refuse("cannot be started", failed);
  }

  std::string note() const override {
    if (gaps_ == 0) return {};
    return "The sound has " + plural(gaps_, "gap") +
           ", since it came faster than it was taken: choose fewer samples a second, or more steps.";
  }

 protected:
  Next row(std::vector<double>& values, std::int64_t& regime, std::stop_token stop) override {
    regime = -1;
    if (at_ == block_.size())
      if (const Next next = fill(stop); next != Next::step) return next;
    values.clear();
    constexpr double largest = 32768.0;
    for (std::size_t j = 0; j < channels_; ++j) values.push_back(static_cast<double>(block_[at_++]) / largest);
    return Next::step;
  }
  void keep_place(StreamState&) override {}  // it goes on with what is heard then

 private:
  [[noreturn]] void refuse(const std::string& what, int failed) const {
    throw Error("The sound device " + printable(device_) + " " + what + " (" + snd_strerror(failed) +
                    "): name one that `arecord -L` lists, sound:alsa=NAME, or a sound file, sound:FILE.",
                {.parameter = "source", .value = device_});
  }
  Next fill(const std::stop_token& stop) {
    constexpr snd_pcm_uframes_t frames = 1024;
    constexpr int patience = 50;  // ms
    block_.resize(frames * channels_);
    at_ = 0;
    for (;;) {
      if (stop.stop_requested()) {
        block_.clear();
        return Next::stopped;
      }
      const snd_pcm_sframes_t read = snd_pcm_readi(pcm_.get(), block_.data(), frames);
      if (read > 0) {
        block_.resize(static_cast<std::size_t>(read) * channels_);
        return Next::step;
      }
      if (read == -EPIPE || read == -ESTRPIPE) {
        ++gaps_;
        if (const int failed = snd_pcm_recover(pcm_.get(), static_cast<int>(read), 1); failed < 0) refuse("has stopped", failed);
        if (const int failed = snd_pcm_start(pcm_.get()); failed < 0) refuse("cannot be started again", failed);
      } else if (read == 0 || read == -EAGAIN) {
        snd_pcm_wait(pcm_.get(), patience);
      } else {
        refuse("has stopped", static_cast<int>(read));
      }
    }
  }

  struct Close {
    void operator()(snd_pcm_t* pcm) const { snd_pcm_close(pcm); }
  };
  std::string device_;
  std::size_t channels_, at_ = 0;  // at_: in block_
  std::int64_t gaps_ = 0;
  std::unique_ptr<snd_pcm_t, Close> pcm_;
  std::vector<std::int16_t> block_;
};

}  // namespace

std::unique_ptr<StreamSource> microphone(const std::string& device, std::int64_t rate, std::int64_t channels, std::int64_t standardise) {
  return std::make_unique<Microphone>(device, rate, channels, standardise);
}

#else

std::unique_ptr<StreamSource> microphone(const std::string&, std::int64_t, std::int64_t, std::int64_t) {
  throw Error(
      "The source sound without a file is the microphone, and this build has no ALSA: give a sound file, sound:FILE, or build with ALSA "
      "(Debian: libasound2-dev).",
      {.parameter = "source"});
}

#endif

}  // namespace reclab
