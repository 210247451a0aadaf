// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "streams/series.h"

namespace reclab::sources_by_name {
namespace {

class SineSource final : public SeriesSource {
 public:
  explicit SineSource(const SourceChoice& choice) : SeriesSource({"sine"}, choice.standardise) {
    const std::int64_t period = source_parameters(choice).integer("period");
    values_ = make_task("sine", {.length = period, .set = {{"period", std::to_string(period)}}}).input;
    for (double& x : values_) x *= std::sqrt(2.0);
  }

 protected:
  Next row(std::vector<double>& values, std::int64_t& regime, std::stop_token) override {
    regime = -1;
    values.assign(1, values_[static_cast<std::size_t>(t_ % std::ssize(values_))]);
    ++t_;
    return Next::step;
  }
  void keep_place(StreamState& state) override { state.whole("t", t_); }

 private:
  std::vector<double> values_;  // of one period
  std::int64_t t_ = 0;
};

}  // namespace

StreamSourceInfo sine() {
  return {.text =
              "A sine of variance 1, which standardising makes it over whole periods; with 36000 steps of it the Synth of Tiezzi and "
              "others 2024",
          .parameters = {hyper_integer("period", "P", 3600, 3, 1'000'000, "Steps of a period", "steps")},
          .make = [](const SourceChoice& choice) -> std::unique_ptr<StreamSource> { return std::make_unique<SineSource>(choice); }};
}

}  // namespace reclab::sources_by_name
