// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab train --floss`, as a script sees it.
#include <string>
#include <vector>

#include "reclab.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;
using reclab::test::contents;
using reclab::test::flat;
using reclab::test::good;
using reclab::test::train_refused;
using reclab::test::trained;

namespace {

std::vector<std::string> command(const std::string& until, const std::string& folder) {
  return {"elman", "--set",   "width=5", "--task",     "adding", "--length", "8",   "--steps",  "6",   "--batch",
          "2",     "--floss", "4",       "--held-out", "4",      "--until",  until, "--export", folder};
}

}  // namespace

TEST_CASE("weights are flossed once, before the first step, and a training goes on with the bits that it would have had") {
  const test::Scratch scratch;
  const std::string whole = scratch / "whole", part = scratch / "part";
  trained(command("6", whole));
  trained(command("3", part));
  trained({"--resume", part});
  for (const char* file : {"weights.npz", "optimiser.npz", "history.csv"})
    CHECK_SAYS(contents(whole + "/" + file) == contents(part + "/" + file), file);
  std::vector<std::string> plain = command("6", scratch / "plain");
  plain.erase(plain.begin() + 11, plain.begin() + 13);
  trained(plain);
  CHECK(contents(whole + "/history.csv") != contents(scratch / "plain/history.csv"));
  CHECK(contents(whole + "/training.json").find("--floss 4") != std::string::npos);
}

TEST_CASE("exponents are told before and after flossing, and what cannot be flossed is refused") {
  const test::Scratch scratch;
  const std::string text = flat(good({"train", "elman", "--set", "width=5", "--task", "adding", "--length", "8", "--steps", "1", "--batch",
                                      "2", "--floss", "2", "--floss-exponents", "1", "--held-out", "4"}));
  CHECK_SAYS(text.find("before flossing") != std::string::npos && text.find("after it, a step") != std::string::npos, text);
  train_refused({"transformer", "--task", "adding", "--floss", "2", "--export", scratch / "none"}, "grows with the sequence");
}
