// SPDX-License-Identifier: GPL-3.0-or-later
// Sound files as sequences: a channel is a column, the time is in seconds; what is damaged is refused, and nothing is promised memory.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numbers>
#include <string>
#include <vector>

#include "array/error.h"
#include "files/files.h"
#include "places.h"
#include "scratch.h"
#include "sequence/format.h"
#include "sequence/sequence.h"
#include "sounds/wav.h"
#include "test.h"

using namespace reclab;
using reclab::test::Scratch;
using test::number;
using test::wav;
using Numbers = std::vector<double>;
using Names = std::vector<std::string>;

namespace {

/// 8000 samples a second as an extended number of 80 bits, as AIFF has it.
std::string aiff(const std::vector<std::int16_t>& samples) {
  std::string data;
  for (const std::int16_t sample : samples) data += number(static_cast<std::uint16_t>(sample), 2, true);
  const std::string common = "COMM" + number(18, 4, true) + number(1, 2, true) + number(samples.size(), 4, true) + number(16, 2, true) +
                             number(0x400b, 2, true) + number(0xfa00000000000000, 8, true);
  const std::string sound = "SSND" + number(8 + data.size(), 4, true) + number(0, 8, true) + data;
  return "FORM" + number(4 + common.size() + sound.size(), 4, true) + "AIFF" + common + sound;
}

/// Eight steps of two channels, -0.5 to 0.375 by 0.125, at 8000 a second, as libFLAC 1.4.2 writes them.
const char flac[] =
    "664c6143000000221000100000001200001201f402f00000000881db33eea933ed13b96db91f20a54ea384000028200000007265666572656e6365206c6962464c4143"
    "20312e342e322032303232313032"
    "3200000000fff864880007fd03000ee0ee080800fc2d03";

std::string unhex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) bytes += static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16));
  return bytes;
}

LoadOptions raw() {
  LoadOptions options;
  options.standardise = false;
  return options;
}

Sequence load(const std::string& bytes, const std::string& name = "x.wav", const LoadOptions& options = raw()) {
  const Scratch scratch;
  return load_sequence(scratch.file(name, bytes), options);
}

/// Skips the case in a build that has no libsndfile.
void need_sound() {
  try {
    load(wav({1}, 1, 8000));
  } catch (const Error& error) {
    if (std::string(error.what()).find("this build has no libsndfile") == std::string::npos) throw;
    throw test::Skip("this build has no libsndfile");
  }
}

void check_refused(const std::string& bytes, std::initializer_list<const char*> parts) {
  std::string sentence = "no error";
  try {
    load(bytes);
  } catch (const Error& error) {
    CHECK_SAYS(error.where().file.ends_with("x.wav") && !error.where().place.empty(), error.what());
    sentence = error.what();
  }
  CHECK_SAYS(sentence.find('\n') == std::string::npos, sentence);
  for (const char* part : parts) CHECK_SAYS(sentence.find(part) != std::string::npos, "\"" + sentence + "\" has no \"" + part + "\"");
}

}  // namespace

TEST_CASE("sound is told by its beginning, and is on the list of what is read") {
  for (const std::string& start : {wav({1}, 1, 8000), aiff({1}), unhex(flac), std::string("OggS")})
    CHECK_EQUAL(sequence_format_of(start).names[0], "WAV");
  CHECK_EQUAL(sequence_format_of(std::string("RIFF\0\0\0\0AVI ", 12)).names[0], "CSV");  // a video is none
  CHECK_EQUAL(sequence_format_of("FORM,1\n").names[0], "CSV");
  CHECK_EQUAL(sequence_format_names(), "CSV, TSV, NPY, NPZ, WAV, FLAC, AIFF or Ogg");
}

TEST_CASE("a build without libsndfile says so, with the cure") {
  try {
    load(wav({1}, 1, 8000));
  } catch (const Error& error) {
    const std::string sentence = error.what();
    CHECK_SAYS(sentence.find("x.wav") != std::string::npos && sentence.find("no libsndfile") != std::string::npos &&
                   sentence.find("CSV or NPY") != std::string::npos,
               sentence);
    return;
  }
  throw test::Skip("this build has libsndfile");
}

TEST_CASE("channels are columns, values lie between -1 and 1, the time is in seconds") {
  need_sound();
  const Sequence mono = load(wav({0, 16384, -32768, 32767}, 1, 4), "heart.wav");
  CHECK(mono.names == Names{"heart"});
  CHECK(mono.input == (Numbers{0.0, 0.5, -1.0, 32767.0 / 32768.0}));
  CHECK(mono.time == (Numbers{0.0, 0.25, 0.5, 0.75}));
  CHECK_EQUAL(mono.time_name, "time");
  CHECK_EQUAL(mono.time_unit, "s");
  const Sequence two = load(wav({0, 8192, 16384, 24576}, 2, 8000), "x.csv");  // by content, not by the ending
  CHECK(two.names == (Names{"channel 1", "channel 2"}));
  CHECK(two.input == (Numbers{0.0, 0.25, 0.5, 0.75}));
  CHECK_EQUAL(two.time[1], 1.0 / 8000.0);
  CHECK(load(aiff({0, 16384, -32768})).input == (Numbers{0.0, 0.5, -1.0}));
  const Sequence packed = load(unhex(flac));
  CHECK_EQUAL(packed.length, 8);
  for (std::size_t i = 0; i < 16; ++i) CHECK_EQUAL(packed.input[i], (static_cast<double>(i % 8) - 4.0) / 8.0);
}

TEST_CASE("Ogg is read: a tone of 440 Hz has its 44 periods in a tenth of a second") {
  need_sound();
  std::ifstream file(test::source("tests/engine/sequence/a440.opus"), std::ios::binary);
  const Sequence tone = load(std::string(std::istreambuf_iterator<char>(file), {}));
  CHECK_EQUAL(tone.length, 4800);
  double power = 0.0, real = 0.0, imaginary = 0.0;
  for (std::size_t t = 0; t < 4800; ++t) {
    const double angle = 2.0 * std::numbers::pi * 44.0 * static_cast<double>(t) / 4800.0;
    power += tone.input[t] * tone.input[t];
    real += tone.input[t] * std::cos(angle);
    imaginary += tone.input[t] * std::sin(angle);
  }
  CHECK_CLOSE(std::sqrt(2.0 * power / 4800.0), 0.5, 0.05);
  CHECK((real * real + imaginary * imaginary) / 2400.0 > 0.95 * power);  // nearly all of it is the tone
}

TEST_CASE("columns, time and target are chosen of sound as of any other file") {
  need_sound();
  const std::string bytes = wav({0, 8192, 16384, 24576}, 2, 2);
  LoadOptions options = raw();
  options.columns = {"channel 2"};
  const Sequence chosen = load(bytes, "x.wav", options);
  CHECK(chosen.names == Names{"channel 2"});
  CHECK(chosen.input == (Numbers{0.25, 0.75}));
  CHECK(chosen.time == (Numbers{0.0, 0.5}));
  options = raw();
  options.time = "none";
  options.target = {"1"};
  const Sequence target = load(bytes, "x.wav", options);
  CHECK(target.time == (Numbers{0.0, 1.0}));
  CHECK(target.input == (Numbers{0.25, 0.75}) && target.target == (Numbers{0.0, 0.5}));
}

TEST_CASE("sound that is damaged or none is refused with file, place and cure") {
  need_sound();
  const std::string good = wav({1, 2, 3, 4}, 1, 8000);
  check_refused(good.substr(0, 20), {"x.wav is", "again"});
  check_refused(good.substr(0, good.size() - 4), {"x.wav is cut short: its header says 52 bytes, and it has 48", "again"});
  check_refused(wav({}, 1, 8000), {"without a sample"});
  check_refused(wav({1}, 0, 8000), {"x.wav is a sound file"});
  check_refused(wav({1}, 1, 0), {"x.wav is a sound file"});
  check_refused(unhex(flac).substr(0, 80), {"x.wav", "again"});
  check_refused("OggS and nothing that follows", {"cannot be read", "again"});
  // The one in a million that libsndfile itself reads: values that are no numbers.
  std::string floats = wav({0, 0}, 1, 8000);
  floats.replace(20, 2, number(3, 2))
      .replace(28, 4, number(32000, 4))
      .replace(32, 2, number(4, 2))
      .replace(34, 2, number(32, 2))
      .replace(44, 4, number(0x7fc00000, 4));
  check_refused(floats, {"row 1, column 1 is NaN"});
}

TEST_CASE("a header that promises more than there is takes no memory for it") {
  need_sound();
  // FLAC's count of samples has 36 bits; all of them are set, which are 500 GB of numbers.
  std::string bytes = unhex(flac);
  bytes.replace(21, 1, "\xff").replace(22, 4, "\xff\xff\xff\xff");
  check_refused(bytes, {"x.wav", "again"});
  // Of a header that could be true the length is looked at before what follows it is read.
  bytes = unhex(flac);
  bytes.replace(22, 4, number(200'000'000, 4, true));
  check_refused(bytes, {"x.wav has more than 50000000 samples a channel"});
  // A file of 1.2 GB, of which nothing is on the disk, is not read into memory.
  const Scratch scratch;
  const auto large = scratch.file("large.wav", wav({1, 2, 3}, 1, 8000));
  std::filesystem::resize_file(large, 1'200'000'000);
  CHECK_ERROR(load_sequence(large, raw()), "large.wav has 1144 MiB, and a sound file of more than 826 MiB has more than");
  // What is written into a pipe has no size in its header, and is read to its end.
  std::string stream = wav({1, 2, 3}, 1, 8000);
  stream.replace(4, 4, number(0xffffffff, 4)).replace(40, 4, number(0xffffffff, 4));
  CHECK_EQUAL(load(stream).length, 3);
}
