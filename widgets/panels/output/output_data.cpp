// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/output/output_data.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "plot/parts/heatmap.h"

namespace reclab {

namespace {

bool drawable(const TraceArray* array) { return array && (array->real || array->complex) && array->has_rows(); }

}  // namespace

OutputData::OutputData(std::shared_ptr<const Trace> trace) : trace_(std::move(trace)) {
  output_ = trace_ ? trace_->find(key_of(Kind::output)) : nullptr;
  if (!drawable(output_)) return;
  rows_ = std::min<std::int64_t>(output_->shape[0], std::ssize(steps()));
  channels_ = output_->row_size();
  values_ = realValues(*output_);
  classes_ = output_->unit == "logit";
  target_ = trace_->find(key_of(Kind::target));
  mask_ = trace_->find(key_of(Kind::mask));
  const auto fits = [&](const TraceArray* array, std::int64_t width) {
    return array && array->real && !array->shape.empty() && array->shape[0] >= rows_ && array->row_size() == width;
  };
  if (!fits(target_, classes_ ? 1 : channels_) || !fits(mask_, 1)) target_ = mask_ = nullptr;
  if (!classes_) return;
  for (std::int64_t row = 0; row < rows_; ++row) {
    double largest = value(row, 0), sum = 0.0;
    for (std::int64_t j = 1; j < channels_; ++j) largest = std::max(largest, value(row, j));
    for (std::int64_t j = 0; j < channels_; ++j) sum += std::exp(value(row, j) - largest);
    log_sums_.push_back(largest + std::log(sum));
  }
}

const std::vector<std::int64_t>& OutputData::steps() const { return output_->steps.empty() ? trace_->steps : output_->steps; }

QString OutputData::name(std::int64_t channel) const {
  const auto at = static_cast<std::size_t>(channel);
  if (output_->axes.size() == 2 && at < output_->axes[1].labels.size() && !output_->axes[1].labels[at].empty())
    return QString::fromStdString(output_->axes[1].labels[at]);
  if (at < trace_->output_names.size() && std::ssize(trace_->output_names) == channels_)
    return QString::fromStdString(trace_->output_names[at]);
  if (classes_) return QCoreApplication::translate("reclab::OutputPanel", "class %1").arg(channel);
  return channels_ == 1 ? QStringLiteral("y") : QStringLiteral("y %1").arg(channel);
}

double OutputData::probability(std::int64_t row, std::int64_t channel) const {
  return std::exp(value(row, channel) - log_sums_[static_cast<std::size_t>(row)]);
}

double OutputData::weight(std::int64_t row) const { return mask_ ? (*mask_->real)[static_cast<std::size_t>(row)] : 0.0; }

std::optional<double> OutputData::target(std::int64_t row, std::int64_t channel) const {
  if (weight(row) == 0.0) return std::nullopt;
  if (classes_) return channel == targetClass(row) ? 1.0 : 0.0;
  return (*target_->real)[static_cast<std::size_t>(row * channels_ + channel)];
}

std::int64_t OutputData::targetClass(std::int64_t row) const {
  return weight(row) == 0.0 ? -1
                            : std::clamp<std::int64_t>(std::llround((*target_->real)[static_cast<std::size_t>(row)]), 0, channels_ - 1);
}

bool OutputData::anyFinite() const {
  return some() && std::ranges::any_of(*values_, [](double v) { return std::isfinite(v); });
}

std::vector<std::int64_t> OutputData::byVariance() const {
  std::vector<double> spread;
  for (std::int64_t j = 0; j < channels_; ++j) {
    double count = 0.0, mean = 0.0, squares = 0.0;
    for (std::int64_t row = 0; row < rows_; ++row)
      if (const double v = value(row, j); std::isfinite(v)) {
        const double away = v - mean;
        mean += away / ++count;
        squares += away * (v - mean);
      }
    spread.push_back(count > 0.0 ? squares / count : 0.0);
  }
  std::vector<std::int64_t> order(spread.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](std::int64_t a, std::int64_t b) { return spread[static_cast<std::size_t>(a)] > spread[static_cast<std::size_t>(b)]; });
  return order;
}

std::optional<OutputScore> OutputData::score() const {
  if (!hasTarget()) return std::nullopt;
  OutputScore found;
  found.answer.assign(static_cast<std::size_t>(channels_), 0.0);
  double all = 0.0;
  for (std::int64_t row = 0; row < rows_; ++row) {
    const double w = weight(row);
    if (w == 0.0) continue;
    ++found.counted;
    all += w;
    for (std::int64_t j = 0; j < channels_; ++j) found.answer[static_cast<std::size_t>(j)] += w * *target(row, j);
  }
  if (all == 0.0) return std::nullopt;
  for (double& mean : found.answer) mean /= all;
  for (std::int64_t row = 0; row < rows_; ++row) {
    const double w = weight(row) / all;
    if (w == 0.0) continue;
    if (classes_) {
      const std::int64_t is = targetClass(row);
      found.loss += w * (log_sums_[static_cast<std::size_t>(row)] - value(row, is));
      bool largest = true;
      for (std::int64_t j = 0; j < channels_; ++j) largest = largest && (j == is || value(row, j) < value(row, is));
      found.right += largest ? w : 0.0;
      found.constant -= w * std::log(found.answer[static_cast<std::size_t>(is)]);
    } else {
      for (std::int64_t j = 0; j < channels_; ++j) {
        const double is = *target(row, j), error = value(row, j) - is, off = found.answer[static_cast<std::size_t>(j)] - is;
        found.loss += 0.5 * w * error * error;
        found.constant += 0.5 * w * off * off;
      }
    }
  }
  if (classes_) found.most_frequent = *std::ranges::max_element(found.answer);
  return found;
}

}  // namespace reclab
