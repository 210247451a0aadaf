// SPDX-License-Identifier: GPL-3.0-or-later
// The synthetic tasks: what each is made of, the same bits on every machine, and what is refused.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "array/error.h"
#include "sequence/sequence.h"
#include "test.h"

using namespace reclab;

TEST_CASE("every task is listed, runs at its default length, and is the same each time") {
  CHECK_EQUAL(tasks().size(), 6u);
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
    const bool random = info.name != "sine" && info.name != "impulse";
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

TEST_CASE("tasks that cannot be are refused with what would be right") {
  CHECK_ERROR(make_task("adding!", {}), "no task 'adding!': choose from adding, copy, selective-copy, sine, impulse, noise");
  CHECK_ERROR(make_task("copy", {.length = 20}), "cannot be 20 steps long");
  CHECK_ERROR(make_task("copy", {.length = 20}), "from 21 to");
  CHECK_ERROR(make_task("selective-copy", {.length = 20}), "from 21 to");
  CHECK_ERROR(make_task("adding", {.length = 1}), "from 2 to");
  CHECK_ERROR(make_task("noise", {.length = 0}), "from 1 to");
  CHECK_ERROR(make_task("noise", {.length = -5}), "from 1 to");
  CHECK_ERROR(make_task("noise", {.length = std::int64_t{1} << 60}), "choose a length");
}
