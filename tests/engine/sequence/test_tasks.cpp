// SPDX-License-Identifier: GPL-3.0-or-later
// The synthetic tasks: what each is made of, the same bits on every machine, and what is refused.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numbers>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "array/error.h"
#include "places.h"
#include "sequence/elapsed.h"
#include "sequence/sequence.h"
#include "test.h"

using namespace reclab;

TEST_CASE("every task is listed, runs at its default length, and is the same each time") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::source("engine/sequence/tasks")))
    files += entry.path().extension() == ".cpp";
  CHECK_EQUAL(tasks().size(), files);
  for (const TaskInfo& info : tasks()) {
    CHECK_SAYS(!info.title.empty() && !info.text.empty() && !info.source.empty(), info.name);
    TaskOptions options;
    options.length = info.default_length;
    const Sequence one = make_task(info.name, options), two = make_task(info.name, options);
    CHECK_EQUAL(one.length, info.default_length);
    CHECK_EQUAL(static_cast<std::int64_t>(one.input.size()), one.length * one.width);
    CHECK_EQUAL(static_cast<std::int64_t>(one.names.size()), one.width);
    CHECK_EQUAL(static_cast<std::int64_t>(one.time.size()), one.length);
    CHECK(one.input == two.input && one.target == two.target);
    CHECK_EQUAL(one.sha256.size(), 64u);
    CHECK_EQUAL(one.sha256, two.sha256);
    CHECK_EQUAL(one.source, "task " + info.name + " --length " + std::to_string(info.default_length) + " --seed 1");
    if (one.target_kind != TargetKind::none) {
      CHECK_EQUAL(static_cast<std::int64_t>(one.target.size()), one.length * one.target_width);
      CHECK_EQUAL(static_cast<std::int64_t>(one.mask.size()), one.length);
    }
    options.seed = 2;
    for (const HyperSpec& row : info.parameters)
      CHECK_SAYS(!row.text.empty() && !row.text.ends_with('.') && (!row.symbol.empty() || row.kind == HyperKind::choice),
                 info.name + ": " + row.key);
    const bool random = !std::set<std::string>{"sine", "impulse", "step", "square", "chirp"}.contains(info.name);
    CHECK_EQUAL(make_task(info.name, options).input != one.input, random);
    options.standardise = true;
    const Sequence standardised = make_task(info.name, options);
    CHECK(standardised.standardised);
    double sum = 0.0;
    for (std::int64_t t = 0; t < standardised.length; ++t) sum += standardised.input[static_cast<std::size_t>(t * standardised.width)];
    CHECK_CLOSE(sum / static_cast<double>(standardised.length), 0.0, 1e-12);
  }
}

TEST_CASE("tasks are the same bits on every machine") {
  // The digests of input and target; a change of compiler, processor or library must not change them.
  const std::pair<const char*, const char*> digests[] = {{"adding", "4fbfc7884eea3034d7148f2f8fcea30e580a470571aa4fb529ef4090f8f480d0"},
                                                         {"copy", "a2522af5e2849319fff8e11f29241e74eb9d8bfaef2aa5e20cbb00d7ca67be96"},
                                                         {"sine", "c962bf0ea8e0affd51990441b43092e4c16d01624b5ac3521312d44d1cc2e650"},
                                                         {"impulse", "54ddad6daf320b3e443bfbf77b7b38536a643142addba4e6888a2004fd4324a6"},
                                                         {"irregular", "31390e31b50e5b3fea8f9a0dcd4cbe8a34d2127435c73a17e4fd567ca9a0c525"},
                                                         {"noise", "26149436c369c175b18fc8e0e9dab15dc79a6e5c144da4d654913e0c8d2eb544"}};
  for (const auto& [name, digest] : digests) {
    TaskOptions options;
    options.length = 1000;
    CHECK_EQUAL(make_task(name, options).sha256, digest);
  }
}

TEST_CASE("adding: two marked numbers, one in each half, and their sum at the end") {
  bool early = false, late = false;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::int64_t length = seed % 2 ? 21 : 20;
    const Sequence sequence = make_task("adding", {.length = length, .seed = seed});
    CHECK(sequence.names == (std::vector<std::string>{"value", "marker"}));
    double sum = 0.0;
    int first = 0, second = 0;
    for (std::int64_t t = 0; t < length; ++t) {
      const double value = sequence.input[static_cast<std::size_t>(2 * t)], marker = sequence.input[static_cast<std::size_t>(2 * t + 1)];
      CHECK(value >= 0.0 && value < 1.0);
      CHECK(marker == 0.0 || marker == 1.0);
      sum += marker * value;
      if (marker == 1.0) {
        ++(t < length / 2 ? first : second);
        early = early || t == 0;
        late = late || t == length - 1;
      }
      CHECK_EQUAL(sequence.mask[static_cast<std::size_t>(t)], t == length - 1 ? 1.0 : 0.0);
    }
    CHECK_EQUAL(first, 1);
    CHECK_EQUAL(second, 1);
    CHECK_EQUAL(sequence.target.back(), sum);
    CHECK(sequence.target_kind == TargetKind::regress && sequence.target_width == 1);
  }
  CHECK(early && late);  // every step can be marked
}

TEST_CASE("adding: the values' distribution does not depend on the length") {
  const Sequence brief = make_task("adding", {.length = 10, .seed = 3}), longer = make_task("adding", {.length = 100, .seed = 3});
  for (std::size_t t = 0; t < 10; ++t) CHECK_EQUAL(brief.input[2 * t], longer.input[2 * t]);
}

TEST_CASE("copy: ten symbols, blanks, ten markers, and the symbols again") {
  for (const std::int64_t length : {21, 120}) {
    const Sequence sequence = make_task("copy", {.length = length, .seed = 9});
    CHECK_EQUAL(sequence.width, 10);
    CHECK_EQUAL(sequence.names[9], "symbol 9");
    CHECK(sequence.target_kind == TargetKind::classify);
    CHECK_EQUAL(sequence.classes, 10);
    std::vector<int> symbols;
    for (std::int64_t t = 0; t < length; ++t) {
      int symbol = -1;
      for (int k = 0; k < 10; ++k) {
        const double value = sequence.input[static_cast<std::size_t>(t * 10 + k)];
        CHECK(value == 0.0 || value == 1.0);
        if (value == 1.0) {
          CHECK_EQUAL(symbol, -1);
          symbol = k;
        }
      }
      symbols.push_back(symbol);
    }
    for (std::int64_t t = 0; t < length; ++t) {
      const auto i = static_cast<std::size_t>(t);
      if (t < 10) {
        CHECK(symbols[i] >= 1 && symbols[i] <= 8);
      } else {
        CHECK_EQUAL(symbols[i], t < length - 10 ? 0 : 9);
      }
      const bool recall = t >= length - 10;
      CHECK_EQUAL(sequence.mask[i], recall ? 1.0 : 0.0);
      CHECK_EQUAL(sequence.target[i], recall ? symbols[static_cast<std::size_t>(t - (length - 10))] : 0.0);
    }
  }
}

TEST_CASE("selective-copy: ten symbols anywhere among blanks, ten markers, and the symbols in their order") {
  std::vector<int> taken(25, 0);
  bool gaps = false;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const std::int64_t length = 35;
    const Sequence sequence = make_task("selective-copy", {.length = length, .seed = seed});
    CHECK_EQUAL(sequence.width, 10);
    CHECK(sequence.target_kind == TargetKind::classify && sequence.classes == 10);
    std::vector<double> kept, recalled;
    for (std::int64_t t = 0; t < length; ++t) {
      double sum = 0.0, symbol = -1.0;
      for (int k = 0; k < 10; ++k) {
        sum += sequence.input[static_cast<std::size_t>(t * 10 + k)];
        if (sequence.input[static_cast<std::size_t>(t * 10 + k)] == 1.0) symbol = k;
      }
      CHECK_EQUAL(sum, 1.0);
      const bool end = t >= length - 10;
      CHECK_EQUAL(symbol == 9.0, end);
      if (symbol > 0.0 && !end) {
        kept.push_back(symbol);
        ++taken[static_cast<std::size_t>(t)];
        gaps = gaps || t > 10;
      }
      CHECK_EQUAL(sequence.mask[static_cast<std::size_t>(t)], end ? 1.0 : 0.0);
      if (end)
        recalled.push_back(sequence.target[static_cast<std::size_t>(t)]);
      else
        CHECK_EQUAL(sequence.target[static_cast<std::size_t>(t)], 0.0);
    }
    CHECK_EQUAL(kept.size(), 10u);
    CHECK(kept == recalled);
  }
  CHECK(gaps);
  for (const int count : taken) CHECK_CLOSE(count, 800.0, 110.0);  // 5 deviations: every step is as likely
  const Sequence tightest = make_task("selective-copy", {.length = 21, .seed = 3});
  CHECK_EQUAL(tightest.length, 21);
}

TEST_CASE("sine: a period of 50 steps, and the next value as target") {
  const Sequence sequence = make_task("sine", {.length = 1000, .seed = 1});
  for (std::size_t t = 0; t < 1000; ++t) {
    const long double angle = 2.0L * std::numbers::pi_v<long double> * static_cast<long double>(t % 50) / 50.0L;
    CHECK_CLOSE(sequence.input[t], static_cast<double>(std::sin(angle)), 3e-16);
    CHECK_EQUAL(sequence.mask[t], 1.0);
    if (t > 0) CHECK_EQUAL(sequence.target[t - 1], sequence.input[t]);
  }
  CHECK_EQUAL(sequence.input[25], 0.0);
}

TEST_CASE("impulse and noise have no target") {
  const Sequence impulse = make_task("impulse", {.length = 5, .seed = 1});
  CHECK(impulse.input == (std::vector<double>{1, 0, 0, 0, 0}));
  CHECK(impulse.target_kind == TargetKind::none && impulse.target.empty());
  const Sequence noise = make_task("noise", {.length = 100'000, .seed = 1});
  double sum = 0.0, squares = 0.0, next = 0.0;
  for (std::size_t t = 0; t < noise.input.size(); ++t) {
    sum += noise.input[t];
    squares += noise.input[t] * noise.input[t];
    if (t > 0) next += noise.input[t] * noise.input[t - 1];
  }
  CHECK_CLOSE(sum / 1e5, 0.0, 0.016);
  CHECK_CLOSE(squares / 1e5, 1.0, 0.023);
  CHECK_CLOSE(next / 1e5, 0.0, 0.016);
  CHECK(noise.target_kind == TargetKind::none);
}

TEST_CASE("a task has parameters of its own, and says which are set") {
  const Sequence made =
      make_task("copy", {.length = 60, .seed = 2, .set = {{"symbols", "3"}, {"delay", "5"}, {"symbols", "4"}, {"alphabet", "8"}}});
  CHECK(made.made.set ==
        (TaskSettings{{"delay", "5"}, {"symbols", "4"}}));  // in the table's order, the last that was said, without the defaults
  CHECK_EQUAL(made.source, "task copy --length 60 --seed 2 --task-set delay=5 --task-set symbols=4");
  CHECK_EQUAL(made.name, "copy (delay = 5, symbols = 4)");
  CHECK_EQUAL(made.task, "copy");
  const Sequence plain = make_task("copy", {.length = 60, .seed = 2, .set = {{"symbols", "10"}}});
  CHECK(plain.made == (TaskOptions{.length = 60, .seed = 2}));
  CHECK_EQUAL(plain.sha256, make_task("copy", {.length = 60, .seed = 2}).sha256);
  CHECK_EQUAL(plain.name, "copy");
}

TEST_CASE(
    "every parameter of every task, at both ends of its range or with each of its choices, makes another sequence or says what would be "
    "right") {
  for (const TaskInfo& info : tasks())
    for (const HyperSpec& row : info.parameters) {
      std::vector<std::string> ends = row.choices;
      if (ends.empty())
        for (const double end : {row.low, row.high})
          ends.push_back(row.kind == HyperKind::integer ? std::to_string(static_cast<std::int64_t>(end)) : test::show(end));
      for (const std::string& text : ends) {
        const TaskOptions options{.length = info.default_length, .seed = 3, .set = {{row.key, text}}};
        try {
          const Sequence made = make_task(info.name, options);
          const bool standard = made.made.set.empty();
          CHECK_SAYS((made.sha256 == make_task(info.name, {.length = info.default_length, .seed = 3}).sha256) == standard,
                     info.name + ": " + row.key + " = " + text);
          CHECK(std::ranges::all_of(made.input, [](double value) { return std::isfinite(value); }));
        } catch (const Error& error) {
          CHECK_SAYS(std::string(error.what()).find("choose a length") != std::string::npos, error.what());
        }
      }
    }
}

TEST_CASE("the target of every task may be the next input: a class of tokens, or its numbers") {
  for (const TaskInfo& info : tasks()) {
    const bool has = std::ranges::any_of(info.parameters, [](const HyperSpec& row) { return row.key == "target"; });
    const Sequence own = make_task(info.name, {.length = info.default_length, .seed = 3});
    const auto width = static_cast<std::size_t>(own.width), length = static_cast<std::size_t>(own.length);
    const auto next = [&](std::size_t t, std::size_t j) { return own.input[(t + 1) * width + j]; };
    if (!has) {  // it is so already
      CHECK_SAYS(own.target_kind == TargetKind::regress && own.target_width == own.width, info.name);
      for (std::size_t t = 0; t + 1 < length; ++t)
        for (std::size_t j = 0; j < width; ++j) CHECK_CLOSE(own.target[t * width + j], next(t, j), 1e-12);
      continue;
    }
    const Sequence made = make_task(info.name, {.length = info.default_length, .seed = 3, .set = {{"target", "next-input"}}});
    CHECK_SAYS(made.input == own.input && made.shown.empty(), info.name);
    CHECK_EQUAL(made.mask.back(), 0.0);
    if (made.target_kind == TargetKind::classify) CHECK_EQUAL(made.classes, own.width);
    for (std::size_t t = 0; t + 1 < length; ++t) {
      CHECK_EQUAL(made.mask[t], 1.0);
      for (std::size_t j = 0; j < width; ++j)
        CHECK_EQUAL(
            made.target_kind == TargetKind::classify ? (made.target[t] == static_cast<double>(j) ? 1.0 : 0.0) : made.target[t * width + j],
            next(t, j));
    }
  }
  CHECK(make_task("copy", {.length = 60, .set = {{"target", "next-input"}}}).target_kind == TargetKind::classify);
  CHECK(make_task("adding", {.length = 60, .set = {{"target", "next-input"}}}).target_kind == TargetKind::regress);
}

TEST_CASE("irregular: a sine at its own times, whose steps are unequal") {
  const Sequence sequence = make_task("irregular", {.length = 400, .seed = 3, .set = {{"period", "10"}, {"gap", "5"}}});
  CHECK_EQUAL(sequence.time_name, "time");
  CHECK(uneven(sequence.time));
  std::size_t gaps = 0;
  for (std::size_t t = 0; t < 400; ++t) {
    CHECK_CLOSE(sequence.input[t], std::sin(2.0 * std::numbers::pi * sequence.time[t] / 10.0), 1e-12);
    if (t == 0) continue;
    CHECK(sequence.target[t - 1] == sequence.input[t]);
    const double step = sequence.time[t] - sequence.time[t - 1];
    gaps += step == 5.0;
    CHECK(step == 5.0 || (step >= 0.125 && step <= 1.875));
  }
  CHECK(gaps > 25 && gaps < 80);
}

TEST_CASE("copy: the delay is the blanks between, what is left stands in front") {
  const Sequence sequence = make_task("copy", {.length = 40, .seed = 5, .set = {{"delay", "6"}, {"symbols", "3"}, {"alphabet", "4"}}});
  CHECK_EQUAL(sequence.width, 6);
  CHECK_EQUAL(sequence.classes, 6);
  std::vector<std::size_t> shown;
  for (std::size_t t = 0; t < 40; ++t)
    for (std::size_t j = 0; j < 6; ++j)
      if (sequence.input[6 * t + j] == 1.0) shown.push_back(j);
  CHECK_EQUAL(shown.size(), 40u);
  for (std::size_t t = 0; t < 40; ++t) {
    const bool symbol = t >= 28 && t < 31, marker = t >= 37;
    CHECK(symbol ? shown[t] >= 1 && shown[t] <= 4 : shown[t] == (marker ? 5u : 0u));
    CHECK_EQUAL(sequence.mask[t], marker ? 1.0 : 0.0);
    if (marker) CHECK_EQUAL(sequence.target[t], static_cast<double>(shown[t - 9]));
  }
}

TEST_CASE("adding: as many markers as are wanted, one in each part") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Sequence sequence = make_task("adding", {.length = 23, .seed = seed, .set = {{"markers", "5"}}});
    double sum = 0.0;
    for (std::size_t part = 0; part < 5; ++part) {
      int marked = 0;
      for (std::size_t t = 23 * part / 5; t < 23 * (part + 1) / 5; ++t)
        if (sequence.input[2 * t + 1] == 1.0) ++marked, sum += sequence.input[2 * t];
      CHECK_EQUAL(marked, 1);
    }
    CHECK_EQUAL(sequence.target[22], sum);
  }
}

TEST_CASE("delay: the target is the input of so many steps before, and counts where there is one") {
  for (const std::int64_t delay : {0, 1, 7, 29}) {
    const Sequence sequence = make_task("delay", {.length = 30, .seed = 6, .set = {{"delay", std::to_string(delay)}}});
    CHECK_EQUAL(sequence.target_width, 1);
    for (std::int64_t t = 0; t < 30; ++t) {
      const auto at = static_cast<std::size_t>(t);
      CHECK_EQUAL(sequence.mask[at], t >= delay ? 1.0 : 0.0);
      CHECK_EQUAL(sequence.target[at], t >= delay ? sequence.input[static_cast<std::size_t>(t - delay)] : 0.0);
    }
  }
  CHECK_ERROR(make_task("delay", {.length = 20}), "choose a length from 21 to");
}

TEST_CASE("sine, impulse and noise as they are set") {
  const Sequence sine = make_task("sine", {.length = 100, .set = {{"period", "7"}}});
  for (std::size_t t = 0; t < 100; ++t) CHECK_CLOSE(sine.input[t], std::sin(2.0 * std::numbers::pi * static_cast<double>(t) / 7.0), 1e-12);
  const Sequence impulse = make_task("impulse", {.length = 9, .set = {{"at", "4"}}});
  for (std::size_t t = 0; t < 9; ++t) CHECK_EQUAL(impulse.input[t], t == 4 ? 1.0 : 0.0);
  const Sequence noise = make_task("noise", {.length = 100'000, .set = {{"correlation", "0.8"}}});
  double squares = 0.0, next = 0.0;
  for (std::size_t t = 1; t < noise.input.size(); ++t) {
    squares += noise.input[t] * noise.input[t];
    next += noise.input[t] * noise.input[t - 1];
  }
  CHECK_CLOSE(squares / 1e5, 1.0, 0.05);
  CHECK_CLOSE(next / squares, 0.8, 0.01);
}

TEST_CASE("tasks that cannot be are refused with what would be right") {
  CHECK_ERROR(make_task("adding!", {}),
              "no task 'adding!': choose from adding, associative-recall, copy, delay, digits, dyck, held-bits, induction-heads, "
              "irregular, lorenz, lstm-2b");
  CHECK_ERROR(make_task("copy", {.length = 20}), "cannot be 20 steps long");
  CHECK_ERROR(make_task("copy", {.length = 20}), "from 21 to");
  CHECK_ERROR(make_task("selective-copy", {.length = 20}), "from 21 to");
  CHECK_ERROR(make_task("adding", {.length = 1}), "from 2 to");
  CHECK_ERROR(make_task("copy", {.set = {{"dely", "4"}}}),
              "the task copy has no parameter \"dely\"; it has delay, symbols, alphabet and target.");
  CHECK_ERROR(make_task("copy", {.set = {{"delay", "-4"}}}),
              "the task copy: delay = -4 is not possible; give an integer from 0 to 100000000.");
  CHECK_ERROR(make_task("copy", {.length = 100, .set = {{"delay", "100"}}}),
              "at least 100 blanks and 10 markers): choose a length from 120 to");
  CHECK_ERROR(make_task("copy", {.length = 100'000'000, .set = {{"alphabet", "1000"}}}),
              "1002 channels does not fit into memory: choose a length of at most 998003");
  CHECK_ERROR(make_task("impulse", {.length = 10, .set = {{"at", "10"}}}), "choose a length from 11 to");
  CHECK_ERROR(make_task("noise", {.length = 0}), "from 1 to");
  CHECK_ERROR(make_task("noise", {.length = -5}), "from 1 to");
  CHECK_ERROR(make_task("noise", {.length = std::int64_t{1} << 60}), "choose a length");
}
