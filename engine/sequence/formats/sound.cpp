// SPDX-License-Identifier: GPL-3.0-or-later
// Sound: WAV, FLAC, AIFF and Ogg (Vorbis, Opus), through libsndfile. A channel is a column, of values from -1 to 1, and the time is in
// seconds.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "array/error.h"
#include "files/files.h"
#include "sequence/arrays.h"
#include "sequence/format.h"

#ifdef RECLAB_SNDFILE
#include <sndfile.h>
#endif

namespace reclab::sequence_formats_by_name {

namespace {

bool is_sound(std::string_view start) {
  const auto at = [&](std::size_t place, std::string_view text) { return start.size() >= place && start.substr(place).starts_with(text); };
  return (at(0, "RIFF") && at(8, "WAVE")) || at(0, "fLaC") || (at(0, "FORM") && (at(8, "AIFF") || at(8, "AIFC"))) || at(0, "OggS");
}

#ifdef RECLAB_SNDFILE

constexpr std::size_t most_values = 100'000'000;  // 800 MB, 37 minutes of a channel at 44.1 kHz

/// The largest samples have 8 bytes; 64 MiB are left for other chunks.
std::string too_long(std::uint64_t bytes) {
  constexpr std::uint64_t most = sizeof(double) * most_values + (std::uint64_t{64} << 20);
  if (bytes <= most) return {};
  return "has " + std::to_string(bytes >> 20) + " MiB, and a sound file of more than " + std::to_string(most >> 20) +
         " MiB has more than the " + std::to_string(most_values) + " samples that are read: cut it, or save it with a lower sample rate";
}

/// The bytes of a file, as libsndfile reads them.
struct Bytes {
  std::string_view all;
  sf_count_t at = 0;

  static sf_count_t size(void* own) { return static_cast<sf_count_t>(static_cast<Bytes*>(own)->all.size()); }
  static sf_count_t seek(sf_count_t offset, int whence, void* own) {
    auto& bytes = *static_cast<Bytes*>(own);
    const sf_count_t from = whence == SEEK_CUR ? bytes.at : whence == SEEK_END ? size(own) : 0;
    // A damaged header may say anything; beyond the ends there is nothing to read.
    if (offset < -from || offset > size(own) - from) return -1;
    return bytes.at = from + offset;
  }
  static sf_count_t read(void* to, sf_count_t count, void* own) {
    auto& bytes = *static_cast<Bytes*>(own);
    count = std::clamp<sf_count_t>(count, 0, size(own) - bytes.at);
    std::memcpy(to, bytes.all.data() + bytes.at, static_cast<std::size_t>(count));
    bytes.at += count;
    return count;
  }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
  static sf_count_t tell(void* own) { return static_cast<Bytes*>(own)->at; }
};

/// The length of a WAV or AIFF file by its header, which libsndfile ignores; 0 if unknown.
std::uint64_t bytes_by_header(std::string_view bytes) {
  const bool big = bytes.starts_with("FORM");
  if ((!big && !bytes.starts_with("RIFF")) || bytes.size() < 8) return 0;
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size |= std::uint64_t{static_cast<unsigned char>(bytes[4 + i])} << 8 * (big ? 3 - i : i);
  constexpr std::uint64_t unknown = 0x7fff0000;  // a file that was written into a pipe has the largest number there, or half of it
  return size < unknown ? size + 8 : 0;
}

Table load(std::string bytes, const std::string& file, const LoadOptions& options) {
  const auto fail = [&](const std::string& what, const std::string& place) -> void {
    throw Error(file + " " + what, {.file = file, .place = place});
  };
  const std::string cure = ": copy it again, or save it again as WAV or FLAC";
  if (const auto [wanted, size] = std::pair(bytes_by_header(bytes), bytes.size()); wanted > size)
    fail("is cut short: its header says " + std::to_string(wanted) + " bytes, and it has " + std::to_string(size) + cure, "header");
  Bytes source{.all = bytes};
  SF_VIRTUAL_IO access{Bytes::size, Bytes::seek, Bytes::read, Bytes::write, Bytes::tell};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> sound(sf_open_virtual(&access, SFM_READ, &info, &source), sf_close);
  const auto why = [&] {
    std::string text = sf_strerror(sound.get());
    while (!text.empty() && (text.back() == '.' || text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return printable(text);
  };
  if (!sound) fail("is a sound file that cannot be read (" + why() + ")" + cure, "header");
  if (info.channels < 1 || info.samplerate < 1)
    fail("is a sound file of " + std::to_string(info.channels) + " channels with " + std::to_string(info.samplerate) + " samples a second" +
             cure,
         "header");
  const auto channels = static_cast<std::size_t>(info.channels);
  sf_command(sound.get(), SFC_SET_NORM_DOUBLE, nullptr, SF_TRUE);
  const auto refuse_length = [&] {
    fail("has more than " + std::to_string(most_values / channels) + " samples a channel, which is " +
             std::to_string(most_values / channels / static_cast<std::size_t>(info.samplerate)) +
             " s: cut it, or save it with a lower sample rate; where it has fewer, its header is damaged: save it again",
         "header");
  };
  if (info.frames > static_cast<sf_count_t>(most_values / channels) && info.frames < SF_COUNT_MAX) refuse_length();

  Table table;
  for (std::size_t j = 0; j < channels; ++j)
    table.names.push_back(channels == 1 ? default_column_name(0, 1, file) : "channel " + std::to_string(j + 1));
  // The header's own count is no promise: memory is taken for the samples present.
  std::vector<double> block(std::max<std::size_t>(channels, 65536 / channels * channels));
  for (sf_count_t frames; (frames = sf_readf_double(sound.get(), block.data(), static_cast<sf_count_t>(block.size() / channels))) > 0;) {
    const auto values = static_cast<std::size_t>(frames) * channels;
    if (table.data.size() + values > most_values) refuse_length();
    if (table.data.capacity() - table.data.size() < values) table.data.reserve(std::min(most_values, 2 * table.data.size() + values));
    table.data.insert(table.data.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(values));
  }
  table.rows = static_cast<std::int64_t>(table.data.size() / channels);
  if (sf_error(sound.get()) != SF_ERR_NO_ERROR)
    fail("is damaged after " + std::to_string(table.rows) + " samples (" + why() + ")" + cure, "sample " + std::to_string(table.rows + 1));
  if (info.frames > table.rows && info.frames < SF_COUNT_MAX)
    fail("is cut short: its header says " + std::to_string(info.frames) + " samples, and it has " + std::to_string(table.rows) + cure,
         "sample " + std::to_string(table.rows + 1));
  if (table.rows == 0) fail("is a sound file without a sample: give it at least one", "header");
  check_finite(table.data, info.channels, file, "", options.missing);
  if (!options.time) {
    table.time.resize(static_cast<std::size_t>(table.rows));
    for (std::size_t t = 0; t < table.time.size(); ++t) table.time[t] = static_cast<double>(t) / info.samplerate;
    table.time_name = "time";
    table.time_unit = "s";
  }
  choose_columns(table, file, options);
  return table;
}

#else

std::string too_long(std::uint64_t) { return {}; }

Table load(std::string, const std::string& file, const LoadOptions&) {
  throw Error(file +
                  " is a sound file, and this build has no libsndfile: save the samples as CSV or NPY, or build with libsndfile (Debian: "
                  "libsndfile1-dev)",
              {.file = file, .place = "byte 0"});
}

#endif

}  // namespace

SequenceFormat sound() {
  return {.names = {"WAV", "FLAC", "AIFF", "Ogg"},
          .suffixes = {".wav", ".flac", ".aiff", ".aif", ".ogg", ".oga", ".opus"},
          .sniff = is_sound,
          .load = load,
          .too_long = too_long};
}

}  // namespace reclab::sequence_formats_by_name
