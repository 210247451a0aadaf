// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/source.h"

#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "files/files.h"

namespace reclab {

const StreamSourceInfo& stream_source(std::string_view id) {
  std::vector<std::string> known;
  for (const StreamSourceInfo& source : stream_sources()) {
    if (source.id == id) return source;
    known.push_back(source.id);
  }
  throw Error("there is no source \"" + printable(id) + "\": choose from " + listed(known, ",") + ".",
              {.parameter = "source", .value = std::string(id), .range = listed(known, ",")});
}

SourceChoice source_choice(std::string_view text) {
  SourceChoice choice;
  const std::size_t colon = text.find(':');
  choice.id = stream_source(text.substr(0, colon)).id;
  if (colon != std::string_view::npos) choice.argument = text.substr(colon + 1);
  return choice;
}

bool can_be_read_again(const SourceChoice& choice) {
  const StreamSourceInfo& info = stream_source(choice.id);
  return info.again && !(info.once && info.once(choice));
}

std::unique_ptr<StreamSource> open_source(const SourceChoice& choice) {
  const StreamSourceInfo& info = stream_source(choice.id);
  const auto refuse = [&](const std::string& what) {
    throw Error("the source " + info.id + " " + what + ".", {.parameter = "source", .value = info.id + ":" + choice.argument});
  };
  if (info.argument.empty() && !choice.argument.empty()) refuse("takes nothing behind a colon: give " + info.id + " alone");
  if (!info.argument.empty() && choice.argument.empty() && !info.alone)
    refuse("needs to be told of what: give " + info.id + ":" + info.argument);
  return info.make(choice);
}

Hyper source_parameters(const SourceChoice& choice) {
  const StreamSourceInfo& info = stream_source(choice.id);
  Hyper parameters(info.parameters);
  for (const auto& [key, text] : choice.set) {
    if (!parameters.has(key)) {
      std::vector<std::string> keys;
      for (const HyperSpec& row : info.parameters) keys.push_back(row.key);
      const std::string known = keys.empty() ? "none" : listed(keys, "and");
      throw Error("the source " + info.id + " has no parameter \"" + printable(key) + "\"; it has " + known + ".",
                  {.parameter = key, .value = text, .range = known});
    }
    parameters.set_text(key, text, "the source " + info.id);
  }
  return parameters;
}

SeriesSource::SeriesSource(std::vector<std::string> names, std::int64_t standardise, std::vector<std::string> concepts)
    : form_{.names = {}, .concepts = std::move(concepts)}, standardise_(standardise) {
  set_names(std::move(names));
}

void SeriesSource::set_names(std::vector<std::string> names) {
  form_.names = std::move(names);
  form_.target_width = form_.width();
  mean_.assign(form_.names.size(), 0.0);
  deviation_.assign(form_.names.size(), 1.0);
  last_.assign(form_.names.size(), 0.0);
}

/// The rows that are read ahead are handed out from the first on, so that none is lost.
SeriesSource::Next SeriesSource::standardised_row(std::vector<double>& values, std::int64_t& regime, std::stop_token stop) {
  const auto width = last_.size();
  if (taken_ < standardise_) {
    while (std::ssize(ahead_regimes_) < standardise_) {
      const Next next = row(values, regime, stop);
      if (next == Next::stopped) return next;
      if (next == Next::ended)
        throw Error("The source ended after " + std::to_string(ahead_regimes_.size()) + " rows, and " + std::to_string(standardise_) +
                        " were to be read for its mean and deviation" + Remedy{": ", "choose fewer (", {"standardise-by"}, ")"} + ".",
                    {.parameter = "standardise"});
      ahead_.insert(ahead_.end(), values.begin(), values.end());
      ahead_regimes_.push_back(regime);
    }
    if (taken_ == 0) {
      const auto rows = static_cast<double>(standardise_);
      for (std::size_t j = 0; j < width; ++j) {
        double sum = 0.0, squares = 0.0;
        for (std::size_t i = j; i < ahead_.size(); i += width) sum += ahead_[i];
        for (std::size_t i = j; i < ahead_.size(); i += width) squares += std::pow(ahead_[i] - sum / rows, 2);
        mean_[j] = sum / rows;
        deviation_[j] = squares > 0.0 ? std::sqrt(squares / rows) : 1.0;
      }
    }
    const auto first = static_cast<std::size_t>(taken_) * width;
    values.assign(ahead_.begin() + static_cast<std::ptrdiff_t>(first), ahead_.begin() + static_cast<std::ptrdiff_t>(first + width));
    regime = ahead_regimes_[static_cast<std::size_t>(taken_)];
    if (++taken_ == standardise_) {
      ahead_ = {};
      ahead_regimes_ = {};
    }
  } else if (const Next next = row(values, regime, stop); next != Next::step) {
    return next;
  }
  for (std::size_t j = 0; j < width; ++j) values[j] = (values[j] - mean_[j]) / deviation_[j];
  return Next::step;
}

SeriesSource::Next SeriesSource::next(StreamStep& step, std::stop_token stop) {
  if (!begun_) {
    if (const Next first = standardised_row(last_, step.regime, stop); first != Next::step) return first;
    begun_ = true;
  }
  const Next found = standardised_row(step.target, step.regime, stop);
  if (found != Next::step) return found;
  step.counts = true;
  step.input = std::exchange(last_, step.target);
  return found;
}

void SeriesSource::keep(StreamState& state) {
  std::int64_t begun = begun_;
  state.whole("begun", begun, 0, 1);
  begun_ = begun != 0;
  state.whole("taken", taken_, 0, standardise_);
  state.same("last", last_);
  state.same("mean", mean_);
  state.same("deviation", deviation_);
  state.any("ahead", ahead_);
  state.whole("ahead_regimes", ahead_regimes_, -1, std::max<std::int64_t>(0, std::ssize(form_.concepts) - 1));
  if (ahead_.size() != ahead_regimes_.size() * last_.size() ||
      (taken_ > 0 && taken_ < standardise_ && std::ssize(ahead_regimes_) != standardise_))
    state.refuse("ahead", "has another number of rows");
  keep_place(state);
}

}  // namespace reclab
