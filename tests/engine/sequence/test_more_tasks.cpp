// SPDX-License-Identifier: GPL-3.0-or-later
// The tasks of symbols and series: each is made again here by what its text says.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "array/error.h"
#include "sequence/sequence.h"
#include "test.h"

using namespace reclab;

namespace {

/// Of a one-hot sequence the channel that is 1 at each step; asserts that it is one.
std::vector<std::int64_t> tokens_of(const Sequence& sequence) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t t = 0; t < sequence.length; ++t) {
    tokens.push_back(-1);
    for (std::int64_t j = 0; j < sequence.width; ++j) {
      const double value = sequence.input[static_cast<std::size_t>(t * sequence.width + j)];
      CHECK(value == 0.0 || value == 1.0);
      if (value == 0.0) continue;
      CHECK_EQUAL(tokens.back(), -1);
      tokens.back() = j;
    }
    CHECK(tokens.back() >= 0);
  }
  return tokens;
}
/// The steps whose target counts.
std::vector<std::size_t> asked(const Sequence& sequence) {
  std::vector<std::size_t> steps;
  for (std::size_t t = 0; t < sequence.mask.size(); ++t)
    if (sequence.mask[t] == 1.0)
      steps.push_back(t);
    else
      CHECK_EQUAL(sequence.mask[t], 0.0);
  return steps;
}
std::int64_t target(const Sequence& sequence, std::size_t step) { return static_cast<std::int64_t>(sequence.target[step]); }

}  // namespace

TEST_CASE("reverse: the symbols, then markers, at which they are wanted backwards") {
  for (const std::int64_t length : {2, 20, 21}) {
    const Sequence sequence = make_task("reverse", {.length = length, .seed = 4});
    const auto tokens = tokens_of(sequence);
    const auto steps = asked(sequence);
    CHECK_EQUAL(std::ssize(steps), length / 2);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CHECK_EQUAL(steps[i], static_cast<std::size_t>(length) - steps.size() + i);
      CHECK_EQUAL(tokens[steps[i]], 9);
      CHECK_EQUAL(target(sequence, steps[i]), tokens[steps[0] - 1 - i]);
      CHECK(target(sequence, steps[i]) >= 1 && target(sequence, steps[i]) <= 8);
    }
  }
}

TEST_CASE("induction-heads: what came after the special token the first time is wanted after the second") {
  bool first = false, last = false;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Sequence sequence = make_task("induction-heads", {.length = 12, .seed = seed, .set = {{"alphabet", "5"}}});
    const auto tokens = tokens_of(sequence);
    CHECK_EQUAL(sequence.width, 6);
    CHECK_EQUAL(sequence.classes, 5);
    CHECK_EQUAL(std::ranges::count(tokens, 5), 2);
    CHECK_EQUAL(tokens.back(), 5);
    const auto place = static_cast<std::size_t>(std::ranges::find(tokens, 5) - tokens.begin());
    CHECK(asked(sequence) == std::vector<std::size_t>{11});
    CHECK_EQUAL(target(sequence, 11), tokens[place + 1]);
    first = first || place == 0;
    last = last || place == 9;
  }
  CHECK(first && last);
}

TEST_CASE("associative-recall: the value that the key has throughout") {
  for (const std::int64_t length : {3, 40, 41}) {
    const Sequence sequence = make_task("associative-recall", {.length = length, .seed = 2, .set = {{"keys", "6"}, {"values", "4"}}});
    const auto tokens = tokens_of(sequence);
    std::map<std::int64_t, std::int64_t> value;
    const std::size_t begin = length % 2 ? 0 : 1;
    if (begin) CHECK_EQUAL(tokens[0], 0);
    for (std::size_t t = begin; t + 1 < tokens.size(); t += 2) {
      CHECK(tokens[t] >= 1 && tokens[t] <= 6 && tokens[t + 1] >= 7 && tokens[t + 1] <= 10);
      const auto [known, fresh] = value.emplace(tokens[t], tokens[t + 1]);
      CHECK_EQUAL(known->second, tokens[t + 1]);
    }
    CHECK(asked(sequence) == std::vector<std::size_t>{tokens.size() - 1});
    CHECK_EQUAL(target(sequence, tokens.size() - 1), value.at(tokens.back()) - 7);
  }
}

TEST_CASE("mqar: each key once among the pairs and once as a query, soon more often than late") {
  double near = 0.0, far = 0.0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Sequence sequence = make_task("mqar", {.length = 64, .seed = seed, .set = {{"pairs", "4"}}});
    const auto tokens = tokens_of(sequence);
    std::map<std::int64_t, std::int64_t> value;
    for (std::size_t t = 0; t < 8; t += 2) value.emplace(tokens[t], tokens[t + 1]);
    CHECK_EQUAL(value.size(), 4u);
    const auto steps = asked(sequence);
    CHECK_EQUAL(steps.size(), 4u);
    for (const std::size_t step : steps) {
      CHECK_EQUAL(target(sequence, step), value.at(tokens[step]) - 17);
      value.erase(tokens[step]);
      (step < 8 + 14 ? near : far) += 1.0;
    }
    for (std::size_t t = 8; t < 64; ++t) CHECK_EQUAL(tokens[t] == 0, sequence.mask[t] == 0.0);
  }
  CHECK_SAYS(near > 1.5 * far, test::show(near) + ", " + test::show(far));
  CHECK_ERROR(make_task("mqar", {.length = 31}), "choose a length from 32 to");
  CHECK_EQUAL(asked(make_task("mqar", {.length = 32})).size(), 8u);
}

TEST_CASE("mqar with a key and its value at one step: the same pairs and queries, in fewer steps") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const TaskSettings set{{"pairs", "4"}, {"pair_steps", "1"}};
    const Sequence sequence = make_task("mqar", {.length = 60, .seed = seed, .set = set}),
                   apart = make_task("mqar", {.length = 64, .seed = seed, .set = {{"pairs", "4"}}});
    const auto row = [](const Sequence& of, std::size_t step) {
      return std::vector<double>(of.input.begin() + static_cast<std::ptrdiff_t>(step) * of.width,
                                 of.input.begin() + static_cast<std::ptrdiff_t>(step + 1) * of.width);
    };
    for (std::size_t i = 0; i < 4; ++i) {
      auto both = row(apart, 2 * i);
      const auto value = row(apart, 2 * i + 1);
      for (std::size_t j = 0; j < both.size(); ++j) both[j] += value[j];
      CHECK(row(sequence, i) == both);
    }
    for (std::size_t t = 4; t < 60; ++t) CHECK(row(sequence, t) == row(apart, t + 4));
    CHECK((std::vector<double>(sequence.target.begin() + 4, sequence.target.end()) ==
           std::vector<double>(apart.target.begin() + 8, apart.target.end())));
  }
  CHECK_ERROR(make_task("mqar", {.length = 23, .set = {{"pair_steps", "1"}}}), "choose a length from 24 to");
}

TEST_CASE("phone-book: the number of the name that is asked for, digit by digit") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Sequence sequence = make_task("phone-book", {.length = 30, .seed = seed, .set = {{"entries", "5"}, {"digits", "3"}}});
    const auto tokens = tokens_of(sequence);
    const auto steps = asked(sequence);
    CHECK((steps == std::vector<std::size_t>{27, 28, 29}));
    std::size_t names = 0;
    bool found = false;
    for (std::size_t t = 7; t < 27; t += 4) {
      CHECK(tokens[t] >= 11 && tokens[t] < 16);
      names |= std::size_t{1} << (tokens[t] - 11);
      if (tokens[t] != tokens[27]) continue;
      found = true;
      for (std::size_t i = 0; i < 3; ++i) CHECK_EQUAL(target(sequence, 27 + i), tokens[t + 1 + i] - 1);
    }
    CHECK(found);
    CHECK_EQUAL(names, std::size_t{31});
    for (const std::size_t t : {0u, 6u, 28u, 29u}) CHECK_EQUAL(tokens[t], 0);
  }
}

TEST_CASE("lstm-2b: the first step's sign is wanted at the end") {
  int ones = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Sequence sequence = make_task("lstm-2b", {.length = 9, .seed = seed, .set = {{"symbols", "3"}}});
    CHECK(std::abs(sequence.input[0]) == 1.0);
    CHECK_EQUAL(target(sequence, 8), sequence.input[0] > 0.0 ? 1 : 0);
    ones += sequence.input[0] > 0.0;
    for (std::size_t t = 1; t < 9; ++t) {
      CHECK_EQUAL(sequence.input[4 * t], 0.0);
      CHECK_EQUAL(sequence.input[4 * t + 1] + sequence.input[4 * t + 2] + sequence.input[4 * t + 3], 1.0);
    }
    CHECK(asked(sequence) == std::vector<std::size_t>{8});
  }
  CHECK(ones > 10 && ones < 40);
}

TEST_CASE("parity and modular-sum: running sums, wanted at every step") {
  const Sequence parity = make_task("parity", {.length = 100, .seed = 3}),
                 sum = make_task("modular-sum", {.length = 100, .seed = 3, .set = {{"modulus", "7"}}});
  const auto tokens = tokens_of(sum);
  int odd = 0;
  std::int64_t total = 0;
  for (std::size_t t = 0; t < 100; ++t) {
    odd = (odd + static_cast<int>(parity.input[t])) % 2;
    total += tokens[t];
    CHECK_EQUAL(target(parity, t), odd);
    CHECK_EQUAL(target(sum, t), total % 7);
  }
  CHECK_EQUAL(asked(parity).size(), 100u);
  CHECK_EQUAL(sum.classes, 7);
}

TEST_CASE("dyck: what may close next, of what is nested well and not too deep") {
  const Sequence sequence = make_task("dyck", {.length = 500, .seed = 3, .set = {{"kinds", "3"}, {"depth", "4"}}});
  std::vector<std::int64_t> open;
  std::size_t deepest = 0;
  const auto tokens = tokens_of(sequence);
  for (std::size_t t = 0; t < 500; ++t) {
    if (tokens[t] < 3) {
      open.push_back(tokens[t]);
    } else {
      CHECK(!open.empty() && open.back() == tokens[t] - 3);
      open.pop_back();
    }
    deepest = std::max(deepest, open.size());
    CHECK_EQUAL(target(sequence, t), open.empty() ? 0 : 1 + open.back());
  }
  CHECK_EQUAL(deepest, 4u);
}

TEST_CASE("lorenz: the equations hold, by differences of what is shown, and the target is what comes") {
  const Sequence sequence = make_task("lorenz", {.length = 4000, .seed = 5, .set = {{"step", "0.001"}, {"ahead", "3"}}});
  for (std::size_t t = 1; t + 1 < 4000; ++t) {
    const auto at = [&](std::size_t step, std::size_t j) { return 10.0 * sequence.input[3 * step + j] + (j == 2 ? 25.0 : 0.0); };
    const double x = at(t, 0), y = at(t, 1), z = at(t, 2);
    const double by_equation[] = {10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z};
    for (std::size_t j = 0; j < 3; ++j) {
      CHECK_CLOSE((at(t + 1, j) - at(t - 1, j)) / 0.002, by_equation[j], 0.05);  // of some hundreds; the difference is of second order
      if (t >= 3) CHECK_EQUAL(sequence.target[3 * (t - 3) + j], sequence.input[3 * t + j]);
    }
  }
  const Sequence one = make_task("lorenz", {.length = 50, .seed = 5, .set = {{"coordinates", "1"}}});
  CHECK_EQUAL(one.width, 1);
  CHECK_EQUAL(one.target_width, 1);
  const Sequence all = make_task("lorenz", {.length = 50, .seed = 5});
  for (std::size_t t = 0; t < 50; ++t) CHECK_EQUAL(one.input[t], all.input[3 * t]);
}

TEST_CASE("mackey-glass: the equation holds between what is shown") {
  const Sequence sequence = make_task("mackey-glass", {.length = 3000, .seed = 1});
  // The integral of the right-hand side over a unit of time, of the cubic through four values, is what x rises by.
  const auto x = [&](std::size_t t) { return sequence.input[t] + 1.0; };
  const auto rate = [&](std::size_t t) { return 0.2 * x(t - 17) / (1.0 + std::pow(x(t - 17), 10)) - 0.1 * x(t); };
  double worst = 0.0, low = 1.0, high = 0.0;
  for (std::size_t t = 19; t + 2 < 3000; ++t) {
    const double rise = (13.0 * (rate(t) + rate(t + 1)) - rate(t - 1) - rate(t + 2)) / 24.0;
    worst = std::max(worst, std::abs(x(t + 1) - x(t) - rise));
    low = std::min(low, x(t));
    high = std::max(high, x(t));
    CHECK_EQUAL(sequence.target[t - 1], sequence.input[t]);
  }
  CHECK_SAYS(worst < 2e-3, test::show(worst));
  CHECK_SAYS(low > 0.2 && low < 0.5 && high > 1.2 && high < 1.5, test::show(low) + ", " + test::show(high));
}

TEST_CASE("narma: the target is what its equation makes of the input") {
  const Sequence sequence = make_task("narma", {.length = 2000, .seed = 7});
  std::vector<double> y(2000, 0.0);
  for (std::size_t t = 1; t < 2000; ++t) {
    double sum = 0.0;
    for (std::size_t i = 1; i <= 10 && i <= t; ++i) sum += y[t - i];
    y[t] = std::min(1.0,
                    0.3 * y[t - 1] + 0.05 * y[t - 1] * sum + 1.5 * (t >= 10 ? sequence.input[t - 10] : 0.0) * sequence.input[t - 1] + 0.1);
    CHECK_CLOSE(sequence.target[t], y[t], 1e-13);
  }
  CHECK_EQUAL(asked(sequence).front(), 10u);
  CHECK_EQUAL(asked(sequence).size(), 1990u);
}

TEST_CASE("step, square, chirp and band-limited noise as they are set") {
  const Sequence step = make_task("step", {.length = 20, .set = {{"at", "4"}}}),
                 square = make_task("square", {.length = 20, .set = {{"period", "5"}}});
  for (std::size_t t = 0; t < 20; ++t) {
    CHECK_EQUAL(step.input[t], t < 4 ? 0.0 : 1.0);
    CHECK_EQUAL(square.input[t], t % 5 < 3 ? 1.0 : -1.0);
  }
  const Sequence chirp = make_task("chirp", {.length = 1001});
  for (std::size_t t = 0; t < 1001; ++t) {
    const double n = static_cast<double>(t), turns = n / 200.0 + (1.0 / 4.0 - 1.0 / 200.0) / 1000.0 * n * (n - 1.0) / 2.0;
    CHECK_CLOSE(chirp.input[t], std::sin(2.0 * std::numbers::pi * turns), 1e-9);
  }
  const Sequence noise = make_task("band-noise", {.length = 20000, .seed = 3, .set = {{"period", "25"}}});
  double squares = 0.0, beyond = 0.0;
  for (const double x : noise.input) squares += x * x / 20000.0;
  CHECK_SAYS(squares > 0.6 && squares < 1.5, test::show(squares));
  // Nothing is faster than the shortest period: what a period of 12 has is leakage of the window alone.
  double re = 0.0, im = 0.0;
  for (std::size_t t = 0; t < 20000; ++t) {
    const double angle = 2.0 * std::numbers::pi * static_cast<double>(t) / 12.0,
                 window = 1.0 - std::cos(2.0 * std::numbers::pi * static_cast<double>(t) / 20000.0);
    re += window * noise.input[t] * std::cos(angle);
    im += window * noise.input[t] * std::sin(angle);
  }
  beyond = std::hypot(re, im) / 20000.0;
  CHECK_SAYS(beyond < 1e-6, test::show(beyond));
}

TEST_CASE("the tasks of symbols and series are the same bits on every machine") {
  const std::pair<const char*, const char*> digests[] = {
      {"associative-recall", "abf8026e249fda2a49066588776dfb67dc5a88b18a28e2e96c6eac73bfdefa6f"},
      {"band-noise", "22bced271c9565f0b771b7065830cd43130f47f246614638fe14b70e20ab4744"},
      {"chirp", "aa58f8366800b0a47c89be34dbb01a2bf0e8fe306bc20934f56208ac482fc956"},
      {"dyck", "cbe2c09db19a73e3bd017a7c799617d58bedf0fe2bd576bd3762f93041072bc0"},
      {"induction-heads", "45eefc37f2b0d996915828cba939914238f0fdc518920a222be6523ab0f59402"},
      {"lorenz", "65d69b044d3595f768c6cce68cff331f6899a0576fd3fdf992414c1111de7ddd"},
      {"lstm-2b", "c0bb071fafe6395367f10994a6b02b2d4e15c31f303869ed7e4120af8af349db"},
      {"mackey-glass", "1115ebe2c21c7f74d0e8f20ba449c8e4e86e6d192924bbe62fbc28f5761644e4"},
      {"modular-sum", "682ce6a6434ff94abb3efed2ca0c3c5ba8bbbbd1e9ac9b5a7bc3a6da2c17c94f"},
      {"mqar", "1c25c895d42f660911525d91d451a60aa671e00133ca4b5c27faec187dfbe3ff"},
      {"narma", "e3ab64670b4a3ca7a98e08d692a777cd639f1d75f690ce3d9c29d496de51a191"},
      {"parity", "5c135b624e6cd5153ec908c699df1b02e18d7292dc20a260737afb1de184508d"},
      {"phone-book", "ac07d0eb7cb27d6e55678689da717d6eaedbcaa76aac424e5d630f1320d0c4f7"},
      {"reverse", "ff52705a5e207045ba354e31291675ee7bfe458c1540e59165068040566ab16d"},
      {"square", "dbc62398f7c02c34848703a4adbee7da6a92d9bee1194174ac81a19bd60db609"},
      {"step", "72438596ae4e88966795ea770c95edfd0ea0525dd86bf644aa8506e07305eca2"}};
  for (const auto& [name, digest] : digests)
    CHECK_SAYS(make_task(name, {.length = 1000}).sha256 == digest, std::string(name) + " " + make_task(name, {.length = 1000}).sha256);
}

TEST_CASE("rewritten-recall: each key is written as often as every other, never with what it holds, and the last value is the target") {
  for (const std::int64_t length : {32, 40, 77})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Sequence sequence = make_task("rewritten-recall", {.length = length, .seed = seed});
      CHECK(sequence.width == 17 && sequence.classes == 8);
      std::map<std::int64_t, std::int64_t> held, writes;
      std::size_t queries = 0;
      for (std::int64_t t = 0; t < length; ++t) {
        std::int64_t key = -1, value = -1;
        double sum = 0.0;
        for (std::int64_t j = 0; j < 17; ++j) {
          const double on = sequence.input[static_cast<std::size_t>(t * 17 + j)];
          sum += on;
          if (on == 1.0 && j >= 1 && j <= 8) key = j - 1;
          if (on == 1.0 && j > 8) value = j - 9;
        }
        const auto step = static_cast<std::size_t>(t);
        if (t < 24) {
          CHECK(sum == 2.0 && key >= 0 && value >= 0 && sequence.mask[step] == 0.0);
          CHECK(!held.contains(key) || held[key] != value);
          held[key] = value;
          ++writes[key];
          continue;
        }
        CHECK(sum == 1.0 && value < 0);
        CHECK_EQUAL(sequence.mask[step], key >= 0 ? 1.0 : 0.0);
        if (key < 0) continue;
        CHECK_EQUAL(target(sequence, step), held[key]);
        held.erase(key);  // once
        ++queries;
      }
      CHECK_EQUAL(queries, 8u);
      for (const auto& [key, count] : writes) CHECK_EQUAL(count, 3);
    }
  bool elsewhere = false;  // the values move with the seed, not the keys alone
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    elsewhere = elsewhere || make_task("rewritten-recall", {.length = 40, .seed = seed}).target !=
                                 make_task("rewritten-recall", {.length = 40, .seed = 10}).target;
  CHECK(elsewhere);
}

TEST_CASE("digits: the same pixels by rows, one by one and permuted; those of one digit are alike, and those of others are not") {
  const auto drawn = [](std::uint64_t seed, const char* order, std::int64_t length) {
    return make_task("digits", {.length = length, .seed = seed, .set = {{"order", order}}});
  };
  std::map<std::int64_t, std::vector<std::vector<double>>> by_digit;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Sequence rows = drawn(seed, "row", 14), pixels = drawn(seed, "pixel", 196), permuted = drawn(seed, "permuted", 196);
    CHECK(rows.width == 14 && pixels.width == 1 && permuted.width == 1);
    CHECK(rows.input == pixels.input);
    std::vector<double> one = pixels.input, other = permuted.input;
    CHECK(one != other);
    std::ranges::sort(one);
    std::ranges::sort(other);
    CHECK(one == other);
    CHECK(one.front() == 0.0 && one.back() > 0.7 && one.back() <= 1.0);
    for (const Sequence* each : {&rows, &pixels, &permuted}) {
      const auto steps = asked(*each);
      CHECK(steps.size() == 1 && steps[0] == each->mask.size() - 1 && each->classes == 10);
      CHECK_EQUAL(target(*each, steps[0]), target(rows, 13));
    }
    by_digit[target(rows, 13)].push_back(pixels.input);
  }
  CHECK_EQUAL(by_digit.size(), 10u);
  // The mean of those of a digit tells it from the others: what a classifier without memory could do with all pixels at once.
  std::map<std::int64_t, std::vector<double>> mean;
  for (const auto& [digit, all] : by_digit) {
    mean[digit].assign(196, 0.0);
    for (std::size_t i = 0; i < all.size() / 2; ++i)
      for (std::size_t p = 0; p < 196; ++p) mean[digit][p] += all[i][p] / static_cast<double>(all.size() / 2);
  }
  int right = 0, count = 0;
  for (const auto& [digit, all] : by_digit)
    for (std::size_t i = all.size() / 2; i < all.size(); ++i, ++count) {
      double least = 1e300;
      std::int64_t nearest = -1;
      for (const auto& [other, its] : mean) {
        double apart = 0.0;
        for (std::size_t p = 0; p < 196; ++p) apart += (its[p] - all[i][p]) * (its[p] - all[i][p]);
        if (apart < least) least = apart, nearest = other;
      }
      right += nearest == digit;
    }
  CHECK_SAYS(right > 0.75 * count, std::to_string(right) + " of " + std::to_string(count));
  CHECK_SAYS(right < count, "no two digits look alike");  // it is no task of ten fixed pictures
  // After the last pixel blanks, and then the question.
  const Sequence later = drawn(3, "pixel", 250);
  CHECK(std::all_of(later.input.begin() + 196, later.input.end(), [](double value) { return value == 0.0; }) && asked(later)[0] == 249);
}
