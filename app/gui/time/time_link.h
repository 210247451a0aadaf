// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace reclab {

/// The one time cursor and the one visible range of all panels, in time steps. However fast the mouse is, it speaks 30 times a second at
/// most.
class TimeLink : public QObject {
  Q_OBJECT
 public:
  explicit TimeLink(QObject* parent = nullptr) : QObject(parent) {
    pace_.setSingleShot(true);
    pace_.setInterval(33);
    connect(&pace_, &QTimer::timeout, this, [this] { tell(); });
  }
  std::int64_t step() const { return step_; }
  std::int64_t length() const { return length_; }
  std::int64_t first() const { return first_; }
  std::int64_t last() const { return last_; }
  bool whole() const { return first_ == 0 && last_ == length_ - 1; }

  void setLength(std::int64_t length) {
    const bool same = length == length_;
    length_ = std::max<std::int64_t>(length, 1);
    if (!same) {
      before_.clear();
      first_ = 0;
      last_ = length_ - 1;
      rangeMoved_ = true;
    }
    setStep(step_);
    stepMoved_ = true;
    tell();
  }
  void setStep(std::int64_t step) {
    step = std::clamp<std::int64_t>(step, 0, length_ - 1);
    if (step == step_) return;
    step_ = step;
    stepMoved_ = true;
    soon();
  }
  void setRange(std::int64_t first, std::int64_t last) {
    first = std::clamp<std::int64_t>(first, 0, length_ - 1);
    last = std::clamp<std::int64_t>(last, 0, length_ - 1);
    if (last - first < 1) return;
    if (first == first_ && last == last_) return;
    // All turns of a wheel are one zoom.
    constexpr std::int64_t one_gesture = 500;  // ms
    if (!sinceRange_.isValid() || sinceRange_.elapsed() > one_gesture) before_.emplace_back(first_, last_);
    sinceRange_.start();
    first_ = first;
    last_ = last;
    rangeMoved_ = true;
    soon();
  }
  void resetRange() {
    sinceRange_.invalidate();
    setRange(0, length_ - 1);
  }
  /// The range before the last zoom; nothing when there was none.
  void zoomBack() {
    if (before_.empty()) return;
    std::tie(first_, last_) = before_.back();
    before_.pop_back();
    sinceRange_.invalidate();
    rangeMoved_ = true;
    soon();
  }

 signals:
  void stepChanged(std::int64_t step);
  void rangeChanged(std::int64_t first, std::int64_t last);

 private:
  void soon() {
    if (pace_.isActive()) return;
    tell();
    pace_.start();
  }
  void tell() {
    if (std::exchange(rangeMoved_, false)) emit rangeChanged(first_, last_);
    if (std::exchange(stepMoved_, false)) emit stepChanged(step_);
  }
  std::int64_t step_ = 0, length_ = 1, first_ = 0, last_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> before_;  ///< ranges, the last one last
  QElapsedTimer sinceRange_;
  bool stepMoved_ = false, rangeMoved_ = false;
  QTimer pace_;
};

}  // namespace reclab
