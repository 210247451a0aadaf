// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab check-device` on a machine without a device; with one, tests/gpu/run.sh runs it.
#include <nlohmann/json.hpp>

#include "array/backend.h"
#include "places.h"
#include "process.h"
#include "test.h"

using namespace reclab;
using reclab::test::Process;

namespace {

std::string said(const std::vector<std::string>& arguments) {
  if (cuda_backend()) throw test::Skip("there is a CUDA device");
  Process process(test::built("bin/reclab"), arguments, {});
  CHECK_EQUAL(process.wait(), 0);
  CHECK_EQUAL(process.error, std::string());
  return process.output;
}

}  // namespace

TEST_CASE("without a device the comparison is skipped, and says so") {
  const std::string text = said({"check-device"});
  CHECK_SAYS(text.starts_with("skipped: no CUDA device"), text);
  CHECK_SAYS(text.ends_with("\n") && text.find('\n') == text.size() - 1, text);
}

TEST_CASE("without a device a script reads that nothing was compared") {
  const auto json = nlohmann::json::parse(said({"check-device", "--json"}));
  CHECK_EQUAL(json.at("skipped").get<std::string>(), std::string("no CUDA device"));
  CHECK(json.at("device").is_null());
  CHECK(json.at("presets").empty());
}
