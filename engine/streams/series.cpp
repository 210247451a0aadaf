// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/series.h"

#include <utility>

#include "parameters/hyper.h"

namespace reclab {

double IndexedNoise::at(std::int64_t k) {
  if (k != next_ || k % block_size == 0) {
    block_ = rng_.split("noise " + std::to_string(k / block_size));
    for (std::int64_t i = k / block_size * block_size; i < k; ++i) block_.normal();
  }
  next_ = k + 1;
  return block_.normal();
}

namespace {

std::vector<std::string> concepts_of(const std::vector<double>& coefficients) {
  std::vector<std::string> names;
  for (const double phi : coefficients) names.push_back("φ = " + as_text(phi));
  return names;
}

class Autoregressive final : public SeriesSource {
 public:
  Autoregressive(const SourceChoice& choice, std::vector<double> coefficients, std::function<std::int64_t(std::int64_t)> regime)
      : SeriesSource({"x"}, choice.standardise, concepts_of(coefficients)),
        coefficients_(std::move(coefficients)),
        regime_(std::move(regime)),
        noise_(choice.seed) {}

 protected:
  Next row(std::vector<double>& values, std::int64_t& regime, std::stop_token) override {
    regime = regime_(t_);
    x_ = coefficients_[static_cast<std::size_t>(regime)] * x_ + noise_.at(t_);
    ++t_;
    values.assign(1, x_);
    return Next::step;
  }
  void keep_place(StreamState& state) override {
    state.whole("t", t_);
    state.real("x", x_);
  }

 private:
  std::vector<double> coefficients_;
  std::function<std::int64_t(std::int64_t)> regime_;
  IndexedNoise noise_;
  std::int64_t t_ = 0;
  double x_ = 0.0;
};

}  // namespace

std::unique_ptr<StreamSource> autoregressive(const SourceChoice& choice, std::vector<double> coefficients,
                                             std::function<std::int64_t(std::int64_t t)> regime) {
  return std::make_unique<Autoregressive>(choice, std::move(coefficients), std::move(regime));
}

}  // namespace reclab
