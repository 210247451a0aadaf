// SPDX-License-Identifier: GPL-3.0-or-later
// Sources of streams: the laws of the generators, places that are kept, and rows of text from files, pipes and sockets.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "array/error.h"
#include "scratch.h"
#include "sounds/wav.h"
#include "streams/source.h"
#include "test.h"

using namespace reclab;

namespace {

SourceChoice choice(const std::string& text, TaskSettings set = {}, std::int64_t standardise = 0) {
  SourceChoice made = source_choice(text);
  made.set = std::move(set);
  made.seed = 7;
  made.standardise = standardise;
  return made;
}

std::vector<StreamStep> steps_of(StreamSource& source, std::int64_t count) {
  std::vector<StreamStep> steps;
  StreamStep step;
  while (std::ssize(steps) < count && source.next(step, {}) == StreamSource::Next::step) steps.push_back(step);
  return steps;
}

bool same(const StreamStep& a, const StreamStep& b) {
  return a.input == b.input && a.target == b.target && a.counts == b.counts && a.regime == b.regime;
}

/// The sentence of the Error that f throws.
std::string refused(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  test::fail(__FILE__, __LINE__, "nothing was refused");
}

/// Whether the source is sound, which this build does not read.
bool no_sound(const SourceChoice& choice) {
  if (choice.id != "sound") return false;
  try {
    open_source(choice);
    return false;
  } catch (const Error& error) {
    if (std::string(error.what()).find("this build has no libsndfile") == std::string::npos) throw;
    return true;
  }
}

std::string file_of(const test::Scratch& scratch, const std::string& name, const std::string& text) {
  return scratch.file(name, text).string();
}

/// Sends the text to whoever connects first.
class OneServer {
 public:
  OneServer(int domain, const sockaddr* address, socklen_t size, std::string text) : listening_(socket(domain, SOCK_STREAM, 0)) {
    CHECK(listening_ >= 0 && bind(listening_, address, size) == 0 && listen(listening_, 1) == 0);
    thread_ = std::jthread([this, text = std::move(text)] {
      const int one = accept(listening_, nullptr, nullptr);
      CHECK(write(one, text.data(), text.size()) == std::ssize(text));
      close(one);
    });
  }
  ~OneServer() {
    thread_.join();
    close(listening_);
  }
  std::uint16_t port() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    CHECK(getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    return ntohs(address.sin_port);
  }

 private:
  int listening_;
  std::jthread thread_;
};

}  // namespace

TEST_CASE("every source that can be begun anew goes on from a kept place with the same bits") {
  const test::Scratch scratch;
  std::string rows;
  for (int t = 0; t < 5000; ++t) rows += std::to_string(std::sin(t)) + "," + std::to_string(t) + "\n";
  std::vector<std::int16_t> samples;
  for (int t = 0; t < 10'000; ++t) samples.push_back(static_cast<std::int16_t>(t * t % 20'011 - 10'000));
  const std::map<std::string, std::string> arguments{{"file", file_of(scratch, "rows.csv", rows)},
                                                     {"follow", file_of(scratch, "rows.csv", rows)},
                                                     {"sound", file_of(scratch, "sound.wav", test::wav(samples, 2, 8000))},
                                                     {"task", "copy"}};
  for (const StreamSourceInfo& info : stream_sources()) {
    if (!info.again) continue;
    for (const std::int64_t standardise : {std::int64_t{0}, std::int64_t{50}}) {
      if (info.id == "task" && standardise) continue;
      const auto made = choice(info.argument.empty() ? info.id : info.id + ":" + arguments.at(info.id), {}, standardise);
      if (no_sound(made)) continue;
      for (const std::int64_t before : {0, 1, 20, 50, 1500}) {
        const auto whole = open_source(made), continued = open_source(made);
        steps_of(*whole, before);
        StreamState kept;
        whole->keep(kept);
        StreamState taken(kept.arrays(), "state.npz");
        continued->keep(taken);
        const auto a = steps_of(*whole, 2500), b = steps_of(*continued, 2500);
        CHECK_EQUAL(a.size(), 2500u);
        CHECK_EQUAL(b.size(), 2500u);
        for (std::size_t i = 0; i < a.size(); ++i)
          CHECK_SAYS(same(a[i], b[i]), info.id + " after " + std::to_string(before) + ", step " + std::to_string(i));
      }
    }
  }
}

TEST_CASE("S-Abrupt and S-Gradual are autoregressions of one noise, whose coefficients change where the paper has it") {
  const auto abrupt = open_source(choice("s-abrupt")), gradual = open_source(choice("s-gradual"));
  const auto a = steps_of(*abrupt, 6000), g = steps_of(*gradual, 5000);
  const double phis[] = {0.1, 0.4, 0.6};
  const std::pair<std::int64_t, double> changes[] = {{0, 0.1},    {800, 0.25},  {1000, 0.4}, {1600, 0.5}, {1800, 0.6}, {2400, 0.35},
                                                     {2600, 0.1}, {3200, 0.25}, {3400, 0.4}, {4000, 0.5}, {4200, 0.6}, {4800, 0.35}};
  std::size_t at = 0;
  double squares = 0.0;
  for (std::int64_t t = 1; t < 5000; ++t) {  // the target of step t - 1 is the row t
    const auto i = static_cast<std::size_t>(t - 1);
    while (at + 1 < std::size(changes) && t >= changes[at + 1].first) ++at;
    const double ea = a[i].target[0] - phis[t / 1000 % 3] * a[i].input[0], eg = g[i].target[0] - changes[at].second * g[i].input[0];
    CHECK_CLOSE(ea, eg, 1e-12);
    squares += ea * ea;
    CHECK_EQUAL(a[i].regime, t / 1000 % 3);
    CHECK_EQUAL(gradual->form().concepts[static_cast<std::size_t>(g[i].regime)], "φ = " + as_text(changes[at].second));
  }
  CHECK_CLOSE(squares / 4999.0, 1.0, 0.06);  // three deviations
}

TEST_CASE("the sine has variance 1, the Lorenz system moves where it says") {
  const auto sine = open_source(choice("sine", {{"period", "48"}}));
  double sum = 0.0;
  for (const StreamStep& step : steps_of(*sine, 480)) sum += step.input[0] * step.input[0];
  CHECK_CLOSE(sum / 480.0, 1.0, 1e-13);

  const auto lorenz = open_source(choice("lorenz", {{"hold", "100"}, {"move", "20"}, {"from", "28"}, {"to", "14"}}));
  const auto steps = steps_of(*lorenz, 2400);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::size_t t = i + 1, within = t % 120;
    CHECK_EQUAL(steps[i].regime, static_cast<std::int64_t>((t / 120 % 2) * 2 + (within >= 100 ? 1 : 0)));
  }
  // At rho = 14 a focus attracts: z comes to rho - 1 while rho holds there for long.
  const auto still = open_source(choice("lorenz", {{"from", "14"}, {"to", "14"}}));
  const StreamStep last = steps_of(*still, 3000).back();
  CHECK_CLOSE(last.input[2], (13.0 - 25.0) / 10.0, 1e-6);
}

TEST_CASE("a digit moves straight on at its speed, and bounces off the sides as a ball does") {
  const TaskSettings set{{"side", "24"}, {"size", "9"}, {"speed", "0.6"}};
  SourceChoice bounces = choice("bouncing-digits", set);
  bounces.seed = 8;  // a direction that is not along a side
  const auto steps = steps_of(*open_source(bounces), 600);
  std::vector<std::array<double, 2>> places;  // the centre of mass of the ink
  for (const StreamStep& step : steps) {
    CHECK_EQUAL(step.regime, -1);
    double ink = 0.0, x = 0.0, y = 0.0;
    for (std::size_t i = 0; i < step.input.size(); ++i) {
      CHECK(step.input[i] >= 0.0 && step.input[i] <= 1.0);
      ink += step.input[i];
      x += step.input[i] * static_cast<double>(i % 24);
      y += step.input[i] * static_cast<double>(i / 24);
    }
    CHECK(ink > 5.0);
    places.push_back({x / ink, y / ink});
  }
  // Each coordinate is a triangle wave: it goes by the same distance at each step, and turns at the ends of a stretch 24 - 9 long.
  double squares = 0.0;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    double low = 1e9, high = -1e9, gone = 0.0;
    std::int64_t turns = 0;
    for (std::size_t t = 10; t < places.size(); ++t) {
      low = std::min(low, places[t][axis]);
      high = std::max(high, places[t][axis]);
      const double now = places[t][axis] - places[t - 10][axis];
      gone = std::max(gone, std::abs(now));
      if (t >= 20 && (now > 0.0) != (places[t - 1][axis] - places[t - 11][axis] > 0.0)) ++turns;
    }
    const double each = gone / 10.0;
    CHECK_CLOSE(high - low, 15.0, 0.5);
    CHECK_SAYS(std::abs(static_cast<double>(turns) - 600.0 * each / 15.0) <= 2.0,
               std::to_string(turns) + " turns at " + std::to_string(each));
    squares += each * each;
  }
  CHECK_CLOSE(std::sqrt(squares), 0.6, 0.03);

  const auto still = steps_of(*open_source(choice("bouncing-digits", {{"side", "8"}, {"size", "8"}})), 50);
  for (const StreamStep& step : still) CHECK(step.target == still[0].input);
}

TEST_CASE("digits that are held are of one kind after another, and come back written anew") {
  const TaskSettings set{{"hold", "20"}, {"side", "8"}, {"size", "8"}};
  const auto source = open_source(choice("bouncing-digits", set));
  CHECK_EQUAL(source->form().concepts.size(), 10u);
  const auto steps = steps_of(*source, 450);
  for (std::size_t i = 0; i < steps.size(); ++i) {  // the regime is that of the target, the row i + 1
    CHECK_EQUAL(steps[i].regime, static_cast<std::int64_t>((i + 1) / 20 % 10));
    CHECK_EQUAL(steps[i].target != steps[i].input, (i + 1) % 20 == 0);
  }
  double apart = 0.0;
  for (std::size_t j = 0; j < steps[0].input.size(); ++j) apart += std::abs(steps[0].input[j] - steps[200].input[j]);
  CHECK(apart > 0.5 && apart < 20.0);
}

TEST_CASE("the microphone's samples are the steps, and a device that is not there is one sentence") {
  const test::Scratch scratch;
  // ALSA's own stand-in for a device: it captures what a file has.
  std::vector<std::int16_t> samples;
  for (int t = 0; t < 6000; ++t) samples.push_back(static_cast<std::int16_t>(t * t % 20'011 - 10'000));
  const std::string raw(reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(std::int16_t));
  const std::string heard = file_of(scratch, "heard.raw", raw);
  const std::string settings = file_of(scratch, "asound.conf",
                                       "pcm.silence { type null }\npcm.heard { type file slave.pcm silence file /dev/null infile \"" +
                                           heard + "\" format raw }\npcm.!default heard\n");
  const char* before = std::getenv("ALSA_CONFIG_PATH");
  const std::string was = before != nullptr ? before : "";
  setenv("ALSA_CONFIG_PATH", settings.c_str(), 1);
  const auto restore = [&](const std::string*) { was.empty() ? unsetenv("ALSA_CONFIG_PATH") : setenv("ALSA_CONFIG_PATH", was.c_str(), 1); };
  const std::unique_ptr<const std::string, decltype(restore)> restores(&settings, restore);
  const std::string absent = refused([&] { open_source(choice("sound:alsa=none")); });
  if (absent.find("this build has no ALSA") != std::string::npos) {
    CHECK_SAYS(absent.find("give a sound file, sound:FILE") != std::string::npos, absent);
    throw test::Skip("this build has no ALSA");
  }
  for (const char* part : {"The sound device none cannot be opened", "arecord -L", "sound:FILE"})
    CHECK_SAYS(absent.find(part) != std::string::npos, absent);
  for (const std::string device : {"sound", "sound:alsa=heard"}) {
    const auto source = open_source(choice(device, {{"rate", "8000"}}));
    CHECK(source->form().names == std::vector<std::string>{"value"});
    const auto steps = steps_of(*source, 5999);
    CHECK_EQUAL(steps.size(), 5999u);
    for (std::size_t t = 0; t < steps.size(); ++t) {
      CHECK_EQUAL(steps[t].input.at(0), samples[t] / 32768.0);
      CHECK_EQUAL(steps[t].target.at(0), samples[t + 1] / 32768.0);
    }
    CHECK(source->note().empty());
  }
  const auto pairs = open_source(choice("sound:alsa=heard", {{"channels", "2"}}));
  CHECK(pairs->form().names == (std::vector<std::string>{"channel 1", "channel 2"}));
  const auto steps = steps_of(*pairs, 100);
  for (std::size_t t = 0; t < steps.size(); ++t) CHECK_EQUAL(steps[t].input.at(1), samples[2 * t + 1] / 32768.0);
  // It cannot be begun anew, as a file can; and a stop ends its waiting.
  CHECK(!can_be_read_again(choice("sound")) && can_be_read_again(choice("sound:" + heard)));
  std::stop_source stop;
  stop.request_stop();
  StreamStep step;
  const auto fresh = open_source(choice("sound"));
  CHECK(fresh->next(step, stop.get_token()) == StreamSource::Next::stopped);
}

TEST_CASE("sound comes sample by sample, as the sequence of the same file has it, once or again and again") {
  const test::Scratch scratch;
  std::vector<std::int16_t> samples;
  for (int t = 0; t < 18'000; ++t) samples.push_back(static_cast<std::int16_t>(t * 37 % 5'003 - 2'500));
  const std::string file = file_of(scratch, "two.wav", test::wav(samples, 2, 8000));
  if (no_sound(choice("sound:" + file))) throw test::Skip("this build has no libsndfile");
  LoadOptions plain;
  plain.standardise = false;
  const Sequence whole = load_sequence(std::filesystem::path(file), plain);
  const auto once = steps_of(*open_source(choice("sound:" + file)), 20'000);
  CHECK_EQUAL(once.size(), 8'999u);
  for (std::size_t t = 0; t < once.size(); ++t) {
    CHECK_EQUAL(once[t].input[0], whole.input[2 * t]);
    CHECK_EQUAL(once[t].target[1], whole.input[2 * t + 3]);
  }
  const auto again = steps_of(*open_source(choice("sound:" + file, {{"repeat", "true"}})), 20'000);
  CHECK_EQUAL(again.size(), 20'000u);
  for (std::size_t t = 0; t < again.size(); ++t) CHECK_EQUAL(again[t].input[1], whole.input[2 * (t % 9'000) + 1]);

  const auto has = [](const std::string& sentence, const std::string& part) {
    CHECK_SAYS(sentence.find(part) != std::string::npos && sentence.find("give a sound file") != std::string::npos, sentence);
  };
  has(refused([&] { open_source(choice("sound:" + file_of(scratch, "no.wav", "1,2\n3,4\n"))); }), "cannot be read as sound");
  has(refused([&] { open_source(choice("sound:" + (scratch / "none").string())); }), "cannot be read as sound");
  has(refused([&] { open_source(choice("sound:" + file_of(scratch, "empty.wav", test::wav({}, 1, 8000)))); }), "has no sample");
}

TEST_CASE("a standardised source has mean 0 and deviation 1 over the rows that it was told, and loses none") {
  const auto plain = open_source(choice("s-abrupt")), scaled = open_source(choice("s-abrupt", {}, 400));
  const auto a = steps_of(*plain, 900), b = steps_of(*scaled, 900);
  double mean = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < 400; ++i) mean += b[i].input[0] / 400.0, squares += b[i].input[0] * b[i].input[0] / 400.0;
  CHECK_CLOSE(mean, 0.0, 1e-13);
  CHECK_CLOSE(squares, 1.0, 1e-12);
  const double slope = (b[1].input[0] - b[0].input[0]) / (a[1].input[0] - a[0].input[0]);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK_CLOSE(b[i].input[0] - b[0].input[0], slope * (a[i].input[0] - a[0].input[0]), 1e-12);
}

TEST_CASE("rows of text are read with names, comments and any delimiter") {
  const test::Scratch scratch;
  const auto source = open_source(choice("file:" + file_of(scratch, "a", "# measured\nspeed;angle\n1;2\r\n\n 3 ; +4e0\n5;6")));
  CHECK_EQUAL(source->form().names[1], "angle");
  const auto steps = steps_of(*source, 10);
  CHECK_EQUAL(steps.size(), 2u);
  CHECK(steps[0].input == std::vector<double>({1, 2}) && steps[0].target == std::vector<double>({3, 4}));
  CHECK(steps[1].input == std::vector<double>({3, 4}) && steps[1].target == std::vector<double>({5, 6}));
  const auto blanks = open_source(choice("file:" + file_of(scratch, "b", "1   2 3\n4 5 6\n")));
  CHECK_EQUAL(blanks->form().width(), 3);
}

TEST_CASE("bad input is refused in a sentence with its place and a cure") {
  const test::Scratch scratch;
  const auto of = [&](const std::string& text) {
    return refused([&] { steps_of(*open_source(choice("file:" + file_of(scratch, "bad", text))), 100); });
  };
  const auto has = [](const std::string& sentence, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) CHECK_SAYS(sentence.find(part) != std::string::npos, sentence + " does not say " + part);
    CHECK_SAYS(sentence.find('\n') == std::string::npos, sentence);
  };
  has(of("1,2\n3,x\n"), {"line 2", "\"x\" in column 2", "give lines of numbers"});
  has(of("1,2\n3\n"), {"line 2", "1 cells", "first row has 2"});
  has(of("1,2\n3,nan\n"), {"line 2", "is no number"});
  has(of("a,b\n"), {"no row of numbers"});
  has(of("1,2\n" + std::string(std::size_t{3} << 20, '7')), {"line 2", "longer than"});
  has(of("1,2\n3,\x1b[2J\n"), {"line 2", "\\x1b"});
  has(refused([&] { open_source(choice("file:" + (scratch / "none").string())); }), {"none", "cannot be read"});
  has(refused([&] { open_source(choice("file:" + scratch.path().string())); }), {"is a folder"});
  has(refused([&] { open_source(choice("socket:" + (scratch / "none").string())); }), {"cannot be reached", "listens"});
  has(refused([&] { open_source(choice("socket:70000")); }), {"no port"});
  has(refused([&] { source_choice("radio"); }), {"no source \"radio\"", "s-abrupt"});
  has(refused([&] { open_source(choice("file")); }), {"file:FILE"});
  has(refused([&] { open_source(choice("sine:3")); }), {"takes nothing"});
  has(refused([&] { open_source(choice("sine", {{"periode", "3"}})); }), {"no parameter \"periode\"", "period"});
  has(refused([&] { open_source(choice("task:noise")); }), {"no target"});
}

TEST_CASE("a file that grows is waited for, and a stop ends the waiting") {
  const test::Scratch scratch;
  const std::string file = file_of(scratch, "grows", "1\n2\n3");
  const auto source = open_source(choice("follow:" + file));
  StreamStep step;
  CHECK(source->next(step, {}) == StreamSource::Next::step);
  CHECK_EQUAL(step.target[0], 2.0);
  std::stop_source stop;
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request_stop();
  });
  CHECK(source->next(step, stop.get_token()) == StreamSource::Next::stopped);  // "3" may go on as "30"
  const std::jthread writer([&] { std::ofstream(file, std::ios::app) << "0\n4\n"; });
  CHECK(source->next(step, {}) == StreamSource::Next::step);
  CHECK_EQUAL(step.target[0], 30.0);
  CHECK(source->next(step, {}) == StreamSource::Next::step);
  CHECK_EQUAL(step.target[0], 4.0);
  std::ofstream(file, std::ios::trunc) << "9\n";
  CHECK(refused([&] { source->next(step, {}); }).find("shorter") != std::string::npos);
}

TEST_CASE("sockets of this machine bring rows, by a port and by a path") {
  const test::Scratch scratch;
  sockaddr_in port{};
  port.sin_family = AF_INET;
  port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  {
    const OneServer server(AF_INET, reinterpret_cast<const sockaddr*>(&port), sizeof port, "1 2\n3 4\n5 6\n");
    CHECK_EQUAL(steps_of(*open_source(choice("socket:" + std::to_string(server.port()))), 10).size(), 2u);
  }
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  const std::string path = (scratch / "socket").string();
  std::ranges::copy(path, local.sun_path);
  const OneServer server(AF_UNIX, reinterpret_cast<const sockaddr*>(&local), sizeof local, "1\n2\n3\n4\n");
  CHECK_EQUAL(steps_of(*open_source(choice("socket:" + path)), 10).size(), 3u);
}
