// SPDX-License-Identifier: GPL-3.0-or-later
// A stack whose layers are not alike: each is what it is where it stands alone, and says so.
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "models/registry.h"
#include "runs.h"
#include "test.h"

using namespace reclab;
using test::finished;
using test::request_of;
using test::Settings;

namespace {

RunRequest request_for(const std::string& architecture, Settings set) {
  return request_of(architecture, make_task("noise", {.length = 20, .seed = 3}), std::move(set));
}
std::string kinds_of_layers(const Trace& trace) {
  std::string names;
  for (const auto& layer : trace.info.each_layer) names += (names.empty() ? "" : ", ") + layer.name;
  return names;
}

}  // namespace

TEST_CASE("an xLSTM of one kind of block is that architecture, to the bit") {
  const Settings common{{"width", "8"}, {"layers", "3"}}, slstm{{"heads", "2"}, {"feed_forward", "6"}},
      mlstm{{"heads", "2"}, {"inner", "8"}};
  const auto with = [&](Settings set, const Settings& own, const std::string& prefix) {
    for (const auto& [key, value] : own) set.emplace_back(prefix + key, value);
    return set;
  };
  for (const bool of_slstm : {false, true}) {
    const auto alone = finished(request_for(of_slstm ? "slstm" : "mlstm", with(common, of_slstm ? slstm : mlstm, "")));
    Settings set = with(with(common, slstm, "slstm_"), mlstm, "mlstm_");
    set.emplace_back("slstm_every", of_slstm ? "1" : "0");
    set.emplace_back("slstm_first", "0");
    const auto stacked = finished(request_for("xlstm", set));
    CHECK_EQUAL(kinds_of_layers(*stacked), std::string(of_slstm ? "slstm, slstm, slstm" : "mlstm, mlstm, mlstm"));
    CHECK_EQUAL(stacked->arrays().size(), alone->arrays().size());
    for (const auto& array : alone->arrays()) {
      const TraceArray* found = stacked->find(array->key);
      CHECK_SAYS(found && found->shape == array->shape, array->key);
      CHECK_SAYS(array->is_complex() ? *array->complex == *found->complex : *array->real == *found->real, array->key);
    }
  }
}

TEST_CASE("blocks of both kinds stand where the ratio or the numbers say, each with its own states and spectrum") {
  const Settings small{{"width", "8"},       {"layers", "5"},     {"slstm_heads", "2"}, {"slstm_feed_forward", "6"},
                       {"mlstm_heads", "2"}, {"mlstm_inner", "8"}};
  const auto of = [&](const Settings& more) {
    Settings set = small;
    set.insert(set.end(), more.begin(), more.end());
    return finished(request_for("xlstm", set));
  };
  const auto ratio = of({{"slstm_every", "3"}, {"slstm_first", "1"}});
  CHECK_EQUAL(kinds_of_layers(*ratio), std::string("mlstm, slstm, mlstm, mlstm, slstm"));
  for (int b = 0; b < 5; ++b) {
    const std::string layer = std::to_string(b);
    const bool of_slstm = b == 1 || b == 4;
    CHECK_SAYS(
        (ratio->find("state/" + layer + "/c") != nullptr) == of_slstm && (ratio->find("state/" + layer + "/C") != nullptr) != of_slstm,
        layer);
    // An sLSTM has 4 states of 8 units; an mLSTM a matrix and a normaliser for each of its 2 heads of 4.
    CHECK_EQUAL(ratio->find("spectrum/" + layer)->shape.back(), of_slstm ? 32 : 40);
    CHECK((ratio->info.spectra[static_cast<std::size_t>(b)].of.find("forget gate") != std::string::npos) != of_slstm);
  }
  CHECK_EQUAL(kinds_of_layers(*of({{"slstm_at", "21"}})), std::string("slstm, mlstm, slstm, mlstm, slstm"));
  CHECK_EQUAL(kinds_of_layers(*of({{"slstm_at", "32"}})), std::string("mlstm, mlstm, mlstm, mlstm, mlstm"));
  CHECK_EQUAL(kinds_of_layers(*of({{"layers", "2"}, {"direction", "both"}})), std::string("mlstm, slstm, mlstm backward, slstm backward"));
}

TEST_CASE("what does not go together is said of the blocks that there are, by the key that it has here") {
  CHECK_ERROR(finished(request_for("xlstm", {{"width", "8"}, {"slstm_heads", "3"}})), "slstm: heads = 3 does not divide width = 8");
  try {
    finished(request_for("xlstm", {{"width", "8"}, {"slstm_heads", "3"}}));
    CHECK(false);
  } catch (const Error& error) {
    CHECK_EQUAL(error.where().model, std::string("xlstm"));
    CHECK_EQUAL(error.where().parameter, std::string("slstm_heads"));
  }
  finished(request_for("xlstm", {{"width", "8"}, {"slstm_heads", "3"}, {"slstm_every", "0"}}));  // no block has them
}
