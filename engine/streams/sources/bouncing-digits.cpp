// SPDX-License-Identifier: GPL-3.0-or-later
// Handwritten digits that move through a square and bounce off its sides (after N. Srivastava, E. Mansimov, R. Salakhutdinov, Unsupervised
// learning of video representations using LSTMs, ICML 2015; there of MNIST, here drawn by a pen).
#include <algorithm>
#include <cmath>

#include "sequence/pen.h"
#include "streams/series.h"

namespace reclab::sources_by_name {
namespace {

std::vector<std::string> pixel_names(std::int64_t side) {
  std::vector<std::string> names;
  for (std::int64_t row = 0; row < side; ++row)
    for (std::int64_t column = 0; column < side; ++column) names.push_back("pixel " + std::to_string(row) + ":" + std::to_string(column));
  return names;
}

/// With `hold` the digits are all of one kind for so many steps, and then of the next.
std::vector<std::string> kinds(std::int64_t hold) {
  std::vector<std::string> names;
  for (int digit = 0; digit < 10 && hold > 0; ++digit) names.push_back("digit " + std::to_string(digit));
  return names;
}

class BouncingDigits final : public SeriesSource {
 public:
  BouncingDigits(const SourceChoice& choice, const Hyper& parameters)
      : SeriesSource(pixel_names(parameters.integer("side")), choice.standardise, kinds(parameters.integer("hold"))),
        rng_(choice.seed),
        side_(parameters.integer("side")),
        size_(std::min(parameters.integer("size"), side_)),
        count_(parameters.integer("digits")),
        hold_(parameters.integer("hold")),
        speed_(parameters.real("speed")) {
    Rng draw = rng_.split("start");
    for (std::int64_t i = 0; i < count_; ++i) {
      double x = 0.0, y = 0.0, square = 0.0;
      do {  // any direction alike
        x = draw.uniform(-1.0, 1.0);
        y = draw.uniform(-1.0, 1.0);
        square = x * x + y * y;
      } while (square > 1.0 || square < 0.01);
      const double norm = std::sqrt(square);
      for (const double direction : {x / norm, y / norm}) {
        place_.push_back(draw.uniform(0.0, room()));
        velocity_.push_back(speed_ * direction);
      }
    }
    write();
  }

 protected:
  Next row(std::vector<double>& values, std::int64_t& regime, std::stop_token) override {
    if (hold_ > 0 && t_ > 0 && t_ % hold_ == 0) write();
    regime = hold_ > 0 ? t_ / hold_ % 10 : -1;
    values.assign(static_cast<std::size_t>(side_ * side_), 0.0);
    const auto size = static_cast<double>(size_);
    for (std::size_t i = 0; i < written_.size(); ++i)
      for (std::int64_t row = 0; row < side_; ++row)
        for (std::int64_t column = 0; column < side_; ++column) {
          const double x = (static_cast<double>(column) + 0.5 - place_[2 * i]) / size,
                       y = (static_cast<double>(row) + 0.5 - place_[2 * i + 1]) / size;
          double& pixel = values[static_cast<std::size_t>(row * side_ + column)];
          if (x >= 0.0 && x <= 1.0 && y >= 0.0 && y <= 1.0) pixel = std::max(pixel, written_[i].at(x, y, 1.0 / size));
        }
    for (std::size_t i = 0; i < place_.size(); ++i) move(place_[i], velocity_[i]);
    ++t_;
    return Next::step;
  }
  void keep_place(StreamState& state) override {
    state.whole("t", t_);
    state.same("place", place_);
    state.same("velocity", velocity_);
    if (state.reads()) write();
  }

 private:
  double room() const { return static_cast<double>(side_ - size_); }
  void move(double& place, double& velocity) const {
    place += velocity;
    if (place < 0.0) {
      place = -place;
      velocity = -velocity;
    } else if (place > room()) {
      place = 2.0 * room() - place;
      velocity = -velocity;
    }
    place = std::clamp(place, 0.0, room());  // where a step is longer than the room
  }
  /// The digits of the present step.
  void write() {
    const std::int64_t number = hold_ > 0 ? t_ / hold_ : 0;
    written_.clear();
    for (std::int64_t i = 0; i < count_; ++i) {
      const Rng draw = rng_.split("digit " + std::to_string(number) + ":" + std::to_string(i));
      written_.emplace_back(static_cast<std::size_t>(hold_ > 0 ? number % 10 : draw.split("kind").integer(10)), draw.split("pen"));
    }
  }

  Rng rng_;
  std::int64_t side_, size_, count_, hold_, t_ = 0;
  double speed_;
  std::vector<double> place_, velocity_;  // [digits, 2], of the upper left corners, in pixels
  std::vector<PenDigit> written_;
};

}  // namespace

StreamSourceInfo bouncing_digits() {
  return {.text =
              "Pictures of digits that move straight on, and bounce off the sides; each step is a picture, row by row, and the next one "
              "its target",
          .parameters = {hyper_integer("side", "n", 12, 7, 64, "Pixels of a side of the picture"),
                         hyper_integer("size", "m", 8, 5, 64, "Pixels of a side of a digit, at most those of the picture"),
                         hyper_integer("digits", "k", 1, 1, 10, "How many there are"),
                         hyper_real("speed", "v", 0.7, 0.0, 8.0, "Pixels that each moves in a step"),
                         hyper_integer("hold", "T", 0, 0, 1'000'000'000,
                                       "Steps for which all are a 0, then a 1, and so on, again and again; 0: any that are drawn, for ever",
                                       "steps")},
          .make = [](const SourceChoice& choice) -> std::unique_ptr<StreamSource> {
            return std::make_unique<BouncingDigits>(choice, source_parameters(choice));
          }};
}

}  // namespace reclab::sources_by_name
