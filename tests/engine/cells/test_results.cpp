// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of results: reading them, and summaries against sums written out here.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "array/error.h"
#include "array/rng.h"
#include "scratch.h"
#include "sweeps/results.h"
#include "test.h"

using namespace reclab;
using reclab::test::Scratch;

namespace {

std::string refusal(const std::string& text, const std::string& measure = {}) {
  const Scratch scratch;
  try {
    read_results(scratch.file("t.csv", text), measure);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

ResultTable table_of(const std::string& text, const std::string& measure = {}) {
  const Scratch scratch;
  return read_results(scratch.file("t.csv", text), measure);
}

template <class Column>
std::vector<std::string> names_of(const std::vector<Column>& columns) {
  std::vector<std::string> names;
  for (const Column& one : columns) names.push_back(one.name);
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("columns of a collected table are axes and measures by their names, of another table by the measure that is named") {
  const ResultTable table = table_of(
      "cell,preset,steps,lr,loss,steps taken,status,seconds\n"
      "a,lstm,100,1e-2,0.5,3,done,1\n"
      "b,gru,20,0.001,,,waiting,\n"
      "c,lstm,20,0.001,nan,nan,diverged,2\n");
  CHECK(names_of(table.axes) == (Names{"preset", "steps", "lr"}));
  CHECK(names_of(table.measures) == (Names{"loss", "steps taken", "seconds"}));
  CHECK(table.axes[0].levels == (Names{"lstm", "gru"}) && table.axes[0].numbers.empty());
  CHECK(table.axes[1].levels == (Names{"20", "100"}) && table.axes[1].numbers == (std::vector<double>{20.0, 100.0}));
  CHECK(table.axes[2].levels == (Names{"0.001", "1e-2"}) && table.axes[2].level == (std::vector<std::uint32_t>{1, 0, 0}));
  CHECK(table.states == (std::vector{CellState::done, CellState::waiting, CellState::diverged}));
  CHECK(table.cells == (Names{"a", "b", "c"}));
  CHECK(table.measures[0].values[0] == 0.5 && std::isnan(table.measures[0].values[1]));

  const std::string capacity = "map,features,pairs,error,error_low\nelu+1,16,4,0.25,0.2\nrelu,16,4,0.5,0.4\n";
  const ResultTable other = table_of(capacity, "error");
  CHECK(names_of(other.axes) == (Names{"map", "features", "pairs"}) && names_of(other.measures) == (Names{"error", "error_low"}));
  CHECK(other.cells.empty() && other.rows() == 2);
}

TEST_CASE("of a table without a known measure the first column of numbers is taken that is another in most rows") {
  const Scratch scratch;
  const auto guessed = [&](const std::string& text) { return names_of(read_results(scratch.file("t.csv", text), {}, true).measures); };
  CHECK(guessed("map,n,error,low\na,1,0.1,0\na,2,0.2,0\nb,1,0.3,0\nb,2,0.4,0.1\n") == (Names{"error", "low"}));
  CHECK(guessed("map,n\na,1\na,1\na,2\n") == (Names{"n"}));
  CHECK(guessed("\"a & <b>\",n,score\n1,1,0.1\n1,2,0.2\n2,1,0.3\n2,2,0.4\n") == (Names{"score"}));
  CHECK(guessed("n,loss,m\n1,0.5,2\n2,0.5,3\n3,0.5,4\n") == (Names{"loss", "m"}));
}

TEST_CASE("a row alone has the interval that stands beside its measure") {
  const ResultTable table = table_of("map,seed,loss,loss_low,loss_high\na,1,2,1.5,2.25\nb,1,3,1,5\nb,2,4,1,5\n");
  const ResultSummary summary = summary_of(table, {});
  CHECK(summary.groups[0].mean.low == 1.5 && summary.groups[0].mean.high == 2.25);
  CHECK_CLOSE(summary.groups[1].mean.high - 3.5, 12.706204736174698 * 0.5, 1e-9);  // t(0.975, 1) s / √2 with s = 1 / √2
}

TEST_CASE("quotation marks, line ends and marks of an encoding are read as RFC 4180 has them") {
  const ResultTable table = table_of("\xef\xbb\xbf\"a,\"\"b\"\"\",loss\r\n\"two\nlines\",1\r\n\r\n,2");
  CHECK(names_of(table.axes) == (Names{"a,\"b\""}));
  CHECK(table.axes[0].levels == (Names{"two\nlines", ""}));
  CHECK(table.measures[0].values == (std::vector<double>{1.0, 2.0}));
}

TEST_CASE("a damaged table is refused with its line and a cure") {
  const auto says = [](const std::string& text, const std::string& part, const std::string& measure = {}) {
    const std::string sentence = refusal(text, measure);
    CHECK_SAYS(sentence.find(part) != std::string::npos, sentence + " does not say " + part);
  };
  says("", "is empty");
  says("a,loss\n", "no row");
  says("a,loss\n1,2\n1\n", "line 3: the row has 1 columns");
  says("a,\"lo\nss\"\n1,2\n1,2,3\n", "line 4: the row has 3 columns");
  says("a,a\n1,2\n", "two columns have the name \"a\"");
  says("a,loss\n\"1,2\n", "line 2: a quotation mark");
  says("a,loss\n\"1\"x,2\n", "line 2: there are characters behind");
  says("cell,a,loss,status\nx,1,2,gone\n", "\"gone\" in the column status");
  says("a,b\n1,2\n", "no column that is known as a measure");
  says("a,b\nx,2\n", "other texts than numbers", "a");
  says("a,loss\n1,2\n", "has no column \"los\"; choose one of loss", "los");
}

TEST_CASE("means and intervals are those of the rows that are done, the others are counted") {
  const ResultTable table = table_of(
      "cell,seed,set.width,loss,status,seconds\n"
      "a,1,8,1,done,1\nb,2,8,2,done,1\nc,3,8,6,done,1\nd,4,8,nan,diverged,1\n"
      "e,1,4,5,done,1\nf,2,4,,failed,\ng,3,4,,waiting,\nh,4,4,,running,\n"
      "i,1,16,,interrupted,\nj,2,16,nan,done,1\n");
  const ResultSummary summary = summary_of(table, {});
  CHECK(summary.measure == "loss" && summary.by == (Names{"set.width"}) && summary.groups.size() == 3);
  const ResultGroup &four = summary.groups[0], &eight = summary.groups[1], &sixteen = summary.groups[2];
  CHECK(four.values == 1 && four.mean.mean == 5.0 && std::isnan(four.mean.low) && four.of(CellState::failed) == 1 && four.rows() == 4);
  CHECK(eight.values == 3 && eight.mean.mean == 3.0 && eight.least == 1.0 && eight.greatest == 6.0 && eight.of(CellState::diverged) == 1);
  // 4.302653 is t(0.975, 2); the standard deviation of 1, 2, 6 is √7.
  CHECK_CLOSE(eight.mean.high - 3.0, 4.302652729911275 * std::sqrt(7.0 / 3.0), 1e-9);
  CHECK_CLOSE(3.0 - eight.mean.low, 4.302652729911275 * std::sqrt(7.0 / 3.0), 1e-9);
  CHECK(sixteen.values == 0 && std::isnan(sixteen.mean.mean) && sixteen.of(CellState::done) == 1);
  CHECK(summary_csv(table, summary)
            .starts_with("set.width,rows,values,mean,low,high,least,greatest,diverged,failed,missing\n4,4,1,5,,,5,5,0,1,2\n8,4,3,3,"));

  const auto order = [&](SummaryPlan plan) {
    std::string text;
    const ResultSummary made = summary_of(table, plan);
    for (const ResultGroup& group : made.groups) text += table.axis(made.by[0]).levels[group.levels[0]] + " ";
    return text;
  };
  CHECK_EQUAL(order({.order = SummaryPlan::Order::rising}), std::string("8 4 16 "));
  CHECK_EQUAL(order({.order = SummaryPlan::Order::falling}), std::string("4 8 16 "));
  CHECK_EQUAL(order({.by = {"seed"}, .only = {{"set.width", "4"}}}), std::string("1 2 3 4 "));
  CHECK_EQUAL(order({.by = {"seed"}, .only = {{"set.width", "16.0"}}}), std::string("1 2 "));
  for (const SummaryPlan& plan :
       {SummaryPlan{.measure = "lost"}, SummaryPlan{.by = {"width"}}, SummaryPlan{.only = {{"set.width", "5"}}}}) {
    std::string said;
    try {
      summary_of(table, plan);
    } catch (const Error& error) {
      said = error.what();
    }
    CHECK_SAYS(said.find("choose one of") != std::string::npos, said);
  }
}

TEST_CASE("a hundred thousand rows: each group has the sums of a plain loop") {
  constexpr int widths = 20, rates = 50, seeds = 100;
  Rng rng(7);
  std::string text = "cell,seed,set.width,lr,loss,status,seconds\n";
  std::map<std::pair<int, int>, std::vector<double>> plain;
  for (int seed = 1; seed <= seeds; ++seed)
    for (int width = 1; width <= widths; ++width)
      for (int rate = 1; rate <= rates; ++rate) {
        const double loss = rng.uniform();
        const bool whole = rng.uniform() < 0.9;
        text += "x," + std::to_string(seed) + "," + std::to_string(width) + "," + std::to_string(rate) + "," +
                (whole ? as_text(HyperValue(loss)) + ",done,1\n" : ",failed,\n");
        if (whole) plain[{width, rate}].push_back(loss);
      }
  const ResultTable table = table_of(text);
  CHECK_EQUAL(table.rows(), std::int64_t{100'000});
  const ResultSummary summary = summary_of(table, {});
  CHECK_EQUAL(summary.groups.size(), plain.size());
  for (const ResultGroup& group : summary.groups) {
    const std::vector<double>& values =
        plain.at({static_cast<int>(table.axes[1].numbers[group.levels[0]]), static_cast<int>(table.axes[2].numbers[group.levels[1]])});
    double sum = 0.0, squares = 0.0;
    for (const double value : values) sum += value;
    const double mean = sum / static_cast<double>(values.size());
    for (const double value : values) squares += (value - mean) * (value - mean);
    const auto n = static_cast<double>(values.size());
    CHECK_EQUAL(group.values, std::ssize(values));
    CHECK_EQUAL(group.of(CellState::failed), seeds - std::ssize(values));
    CHECK_CLOSE(group.mean.mean, mean, 1e-12);
    CHECK_CLOSE(group.mean.high - mean, student_t(0.95, std::ssize(values) - 1) * std::sqrt(squares / (n - 1.0) / n), 1e-10);
    CHECK(group.least == std::ranges::min(values) && group.greatest == std::ranges::max(values));
  }
}
