// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab rules`, `reclab credit`, and training by each rule, as a script sees them.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "files/npz.h"
#include "learning/learning_rule.h"
#include "reclab.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;
using reclab::test::contents;
using reclab::test::flat;
using reclab::test::good;
using reclab::test::reclab_says;
using reclab::test::train_refused;
using reclab::test::trained;
using Json = nlohmann::json;

TEST_CASE("rules are listed with their gradient, cost and source, and with the presets that they take and do not") {
  const Json all = Json::parse(good({"rules", "--json"}));
  CHECK_EQUAL(all.size(), learning_rules().size());
  const std::size_t presets = all[0].at("models").size() + all[0].at("not_for").size();
  CHECK(presets > 100);
  for (const Json& rule : all) {
    CHECK(rule.at("memory_power") >= 1.0 && rule.at("time_power") >= rule.at("memory_power"));
    for (const char* key : {"id", "title", "name", "gradient", "memory", "time", "source", "idea"})
      CHECK_SAYS(!rule.at(key).get<std::string>().empty(), rule.dump());
    CHECK(rule.at("year") > 1980 && rule.at("past_facing").is_boolean() && rule.at("local").is_boolean());
    CHECK(rule.at("sparse").is_boolean());
    CHECK_EQUAL(rule.at("models").size() + rule.at("not_for").size(), presets);
    for (const Json& none : rule.at("not_for")) CHECK(!none.at("why").get<std::string>().empty());
  }
  const auto takes = [](const Json& rules, const std::string& id, const std::string& preset) {
    for (const Json& rule : rules)
      if (rule.at("id") == id)
        for (const Json& model : rule.at("models"))
          if (model.at("id") == preset) return std::string(model.at("exact") == true ? "exact" : "yes");
    return std::string("no");
  };
  CHECK_EQUAL(takes(all, "rtrl", "elman"), "exact");
  CHECK_EQUAL(takes(all, "rtrl", "transformer"), "no");
  CHECK_EQUAL(takes(all, "uoro", "lstm"), "yes");
  CHECK_EQUAL(takes(all, "diagonal-rtrl", "lru"), "exact");
  CHECK_EQUAL(takes(all, "diagonal-rtrl", "lstm"), "no");
  CHECK_EQUAL(takes(all, "kf-rtrl", "mamba"), "no");
  CHECK_EQUAL(takes(all, "rflo", "lru"), "no");
  CHECK_EQUAL(takes(all, "forcing", "transformer"), "no");
  CHECK_EQUAL(takes(all, "bptt", "echo-state"), "no");  // its read-out is fitted
  const Json one = Json::parse(good({"rules", "lru", "--json"}));
  CHECK_EQUAL(one[0].at("models").size(), 1U);
  const std::string text = flat(good({"rules", "lru"}));
  CHECK_SAYS(text.find("diagonal-rtrl: exact for lru") != std::string::npos, text);
  CHECK_SAYS(text.find("rflo: not for lru. Random feedback") != std::string::npos, text);
}

TEST_CASE("credit writes how near rules come to the true gradient, by step, parameter and delay") {
  const test::Scratch scratch;
  const std::vector<std::string> command{"credit", "elman",   "--set",     "width=6",   "--task", "mackey-glass", "--length",
                                         "12",     "--rules", "rtrl,uoro", "--repeats", "3",      "--delays",     "5"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), command.begin(), command.end());
    return more;
  };
  const Json json = Json::parse(good(with({"--json", "--export", scratch / "out"})));
  CHECK_EQUAL(json.size(), 2U);
  CHECK(json[0].at("rule") == "rtrl" && json[0].at("gradient") == "exact" && json[1].at("gradient") == "unbiased");
  CHECK_CLOSE(json[0].at("cosine").get<double>(), 1.0, 1e-12);
  CHECK(json[1].at("cosine").get<double>() < 0.999 && json[1].at("deviation").get<double>() > 0.01);
  CHECK(json[1].at("bytes").get<double>() < json[0].at("bytes").get<double>());
  CHECK_EQUAL(json[1].at("cosine_by_delay").size(), 5U);
  const NpzFile arrays(scratch / "out/trace.npz");
  CHECK_EQUAL(arrays.read("credit/uoro/cosine").real.size(), 12U);
  CHECK_EQUAL(arrays.read("credit/uoro/ratio_by_delay").real.size(), 5U);
  for (const char* what : {"ratio", "bias", "deviation", "cosine/0/weight_hh", "ratio/head/weight", "cosine_of_sum", "seconds", "bytes"})
    CHECK(arrays.read("credit/uoro/" + std::string(what)).real.size() > 0);
  const Json manifest = Json::parse(contents(scratch / "out/manifest.json"));
  CHECK(manifest.dump().find("credit/rtrl/cosine") != std::string::npos);
  const std::string again = manifest.at("command").get<std::string>();
  CHECK_SAYS(again.starts_with("reclab credit elman") && again.find("--rules rtrl,uoro --repeats 3 --delays 5") != std::string::npos,
             again);
  CHECK(flat(good(command)).find("uoro unbiased") != std::string::npos);
  const auto refused = [&](std::vector<std::string> arguments, const std::string& text) {
    const auto result = reclab_says(arguments);
    CHECK_SAYS(result.status == 2 && result.error.find(text) != std::string::npos, result.error);
  };
  refused({"credit", "elman", "--rules", "bptt"}, "choose an online rule");
  refused({"credit", "elman", "--rules", "uroo"}, "there is no learning rule \"uroo\"");
  refused({"credit", "transformer"}, "grows with the sequence");
}

TEST_CASE("credit-curves trains the same model by each rule, with the losses of a training by that rule alone") {
  const test::Scratch scratch;
  const std::vector<std::string> command{"credit-curves", "elman",         "--set",   "width=5", "--task", "adding", "--length", "8",
                                         "--rules",       "bptt,snap,rbp", "--steps", "6",       "--rate", "0.02",   "--batch",  "2"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), command.begin(), command.end());
    return more;
  };
  const Json json = Json::parse(good(with({"--json", "--export", scratch / "out"})));
  CHECK_EQUAL(json.size(), 3U);
  const Json manifest = Json::parse(contents(scratch / "out/manifest.json"));
  const std::string again = manifest.at("command").get<std::string>();
  CHECK_SAYS(again.starts_with("reclab credit-curves elman") &&
                 again.find("--rules bptt,snap,rbp --steps 6 --rate 0.02 --batch 2") != std::string::npos,
             again);
  const NpzFile arrays(scratch / "out/trace.npz");
  for (const char* rule : {"bptt", "snap"}) {
    const std::string folder = scratch / rule;
    trained({"elman", "--set",   "width=5", "--task",     "adding", "--length",      "8", "--rule",   rule,  "--steps", "6", "--lr",
             "0.02",  "--batch", "2",       "--held-out", "32",     "--judge-every", "6", "--export", folder});
    const NpzFile history(folder + "/history.npz");
    CHECK(arrays.read("rule_curve/" + std::string(rule) + "/loss").real == history.read("loss").real);
    CHECK(arrays.read("rule_curve/" + std::string(rule) + "/held_out").real ==
          (std::vector<double>{history.read("held_out/loss").real.front(), history.read("held_out/loss").real.back()}));
  }
  CHECK(json[0].at("loss")[0] == json[1].at("loss")[0] && json[0].at("loss")[5] != json[1].at("loss")[5]);
  CHECK(json[0].at("problem").is_null() && json[0].at("steps") == 6);
  // A rule that cannot go on says so, beside the curves of the others.
  const Json far = Json::parse(good({"credit-curves", "elman", "--set", "width=5", "--set", "activation=identity", "--task", "adding",
                                     "--length", "200", "--rules", "bptt", "--steps", "40", "--rate", "1000", "--batch", "2", "--json"}));
  CHECK(far[0].at("steps") < 40 && far[0].at("loss").size() == 40U && far[0].at("loss")[39].is_null());
  CHECK_SAYS(far[0].at("problem").get<std::string>().find("Training ended at step") != std::string::npos, far.dump());
  const std::string text = flat(good(command));
  CHECK_SAYS(text.find("rule first loss last loss held out, before after steps") != std::string::npos, text);
  const auto refused = [&](std::vector<std::string> arguments, const std::string& said) {
    const auto result = reclab_says(arguments);
    CHECK_SAYS(result.status == 2 && result.error.find(said) != std::string::npos, result.error);
  };
  refused({"credit-curves", "elman", "--rules", "uroo"}, "there is no learning rule \"uroo\"");
  refused({"credit-curves", "elman", "--task", "noise"}, "has no target");
}

TEST_CASE("a training with a gate penalty shows it, and keeps it with its history") {
  const test::Scratch scratch;
  const std::string whole = scratch / "whole", part = scratch / "part";
  const auto command = [&](const std::string& steps, const std::string& folder) {
    return std::vector<std::string>{
        "lstm",       "--set",   "width=5", "--task",     "adding", "--length",       "8",   "--steps",
        "6",          "--batch", "2",       "--held-out", "4",      "--gate-penalty", "0.5", "--gate-penalty-of",
        "saturation", "--until", steps,     "--export",   folder};
  };
  const std::string said = flat(trained(command("6", whole)).output);
  CHECK_SAYS(said.find("gate penalty") != std::string::npos && said.find("no part of the loss") != std::string::npos, said);
  trained(command("3", part));
  trained({"--resume", part});
  for (const char* file : {"weights.npz", "optimiser.npz", "history.csv", "history.npz"})
    CHECK_SAYS(contents(whole + "/" + file) == contents(part + "/" + file), file);
  CHECK(contents(whole + "/history.csv").starts_with("step,loss,rate,gradient_norm,clipped_norm,gate_penalty,held_out_loss"));
  const auto penalty = NpzFile(whole + "/history.npz").read("gate_penalty").real;
  CHECK(penalty.size() == 6U && std::ranges::all_of(penalty, [](double x) { return x > 0.0 && x < 0.5; }));
  train_refused({"elman", "--task", "adding", "--gate-penalty", "1", "--export", scratch / "none"}, "has no gates that its weights move");
  train_refused({"lstm", "--task", "adding", "--rule", "uoro", "--gate-penalty", "1", "--export", scratch / "none"},
                "takes no gate penalty");
  train_refused({"lstm", "--task", "adding", "--gate-penalty", "1", "--gate-penalty-of", "l3", "--export", scratch / "none"}, "l3");
}

TEST_CASE("a training by each rule goes on with the bits that it would have had") {
  const test::Scratch scratch;
  for (const LearningRuleInfo& rule : learning_rules()) {
    const std::string id = rule.id == "diagonal-rtrl"    ? "lru"
                           : rule.id == "staged-columns" ? "columnar-lstm"
                           : rule.id == "adjoint"        ? "ctrnn"
                                                         : "gru",
                      whole = scratch / (rule.id + "-whole"), part = scratch / (rule.id + "-part");
    const auto command = [&](const std::string& steps, const std::string& folder) {
      const std::string task = rule.id == "forcing" ? "mackey-glass" : "adding";
      std::vector<std::string> line{id,  "--set",      "width=5", "--task", task,    "--length", "8",   "--steps",  "6",   "--batch",
                                    "2", "--held-out", "4",       "--rule", rule.id, "--until",  steps, "--export", folder};
      if (rule.id == "staged-columns") line.insert(line.end(), {"--set", "stages=3", "--stage-steps", "2"});
      return line;
    };
    trained(command("6", whole));
    trained(command("3", part));
    trained({"--resume", part});
    for (const char* file : {"weights.npz", "optimiser.npz", "history.csv"})
      CHECK_SAYS(contents(whole + "/" + file) == contents(part + "/" + file), rule.id + " " + file);
  }
  train_refused({"transformer", "--task", "adding", "--rule", "uoro", "--export", scratch / "none"}, "grows with the sequence");
  train_refused({"mamba", "--task", "adding", "--rule", "kf-rtrl", "--export", scratch / "none"}, "choose another rule");
}

TEST_CASE("forcing runs a model on its own output, and its numbers are those that it says") {
  const test::Scratch scratch;
  const std::vector<std::string> command{"forcing", "elman", "--set", "width=6", "--task", "lorenz", "--length", "60", "--warm-up", "40"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), command.begin(), command.end());
    return more;
  };
  const Json json = Json::parse(good(with({"--json", "--export", scratch / "out"})));
  CHECK_EQUAL(json.at("exponents").size(), 21U);
  CHECK_EQUAL(json.at("error").size(), 20U);
  CHECK_EQUAL(json.at("exponents")[0].at("exponent").get<double>(), json.at("free_exponent").get<double>());
  CHECK_CLOSE(json.at("geometric").get<double>(), std::max(0.0, 1.0 - std::exp(-json.at("free_exponent").get<double>())), 1e-12);
  const std::string exponents = contents(scratch / "out/exponents.csv"), error = contents(scratch / "out/error.csv");
  CHECK(exponents.starts_with("share,exponent\n0,") && std::ranges::count(exponents, '\n') == 22);
  CHECK(error.starts_with("steps_ahead,error\n1,") && std::ranges::count(error, '\n') == 21);
  const std::string again = json.at("command").get<std::string>();
  CHECK_SAYS(again.starts_with("reclab forcing elman") && again.find("--warm-up 40") != std::string::npos, again);
  CHECK(flat(good(command)).find("foretells freely") != std::string::npos);
  const auto refused = reclab_says({"forcing", "elman", "--task", "adding"});
  CHECK_SAYS(refused.status == 2 && refused.error.find("choose a task such as lorenz") != std::string::npos, refused.error);
  const auto stream = reclab_says({"stream", "elman", "--source", "s-abrupt", "--steps", "50", "--rule", "forcing"});
  CHECK_SAYS(stream.status == 2 && stream.error.find("a stream has no end: choose the rule bptt") != std::string::npos, stream.error);
  train_refused({"elman", "--task", "adding", "--rule", "forcing", "--export", scratch / "none"}, "choose a task such as lorenz");
  train_refused({"elman", "--task", "lorenz", "--rule", "forcing", "--forcing", "2", "--export", scratch / "none"}, "forcing");
}
