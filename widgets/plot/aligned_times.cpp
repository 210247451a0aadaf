// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/aligned_times.h"

#include <QEvent>
#include <algorithm>
#include <cstdlib>

namespace reclab {
namespace {

constexpr int same = 16;       // pixels by which the edges of two plots under each other may differ: the margins of their panels
constexpr double most = 0.25;  // of a plot's time axis is given up for another's at either end; one that wants more stands alone

struct Span {
  Plot* plot;
  int from, to;     // the plot's edges, in the coordinates of their common parent
  int left, right;  // its time axis
};

}  // namespace

AlignedTimes::AlignedTimes(QWidget* within) : QObject(within), within_(within) {
  soon_.setSingleShot(true);
  soon_.setInterval(0);
  connect(&soon_, &QTimer::timeout, this, &AlignedTimes::align);
  add(within);
}

void AlignedTimes::add(QWidget* part) {
  for (Plot* plot : part->findChildren<Plot*>()) {
    plots_.emplace_back(plot);
    for (QWidget* one = plot; one != nullptr && one != within_; one = one->parentWidget())
      one->installEventFilter(this);  // it moves with its parents
    connect(plot, &Plot::timeSpanChanged, &soon_, qOverload<>(&QTimer::start));
  }
}

bool AlignedTimes::eventFilter(QObject* of, QEvent* event) {
  switch (event->type()) {
    case QEvent::Show:
    case QEvent::Hide:
    case QEvent::Move:
    case QEvent::Resize:
    case QEvent::ZOrderChange: soon_.start(); break;
    default: break;
  }
  return QObject::eventFilter(of, event);
}

void AlignedTimes::align() {
  std::vector<Span> spans;
  for (Plot* plot : plots_) {
    if (plot == nullptr) continue;
    const auto span = plot->timeSpan();
    if (!span || plot->visibleRegion().isEmpty() ||
        plot->window() != within_->window()) {  // hidden, behind another, or a window of its own
      plot->setTimeInset(0, 0);
      continue;
    }
    const int at = plot->mapTo(within_, QPoint()).x();
    spans.push_back({plot, at, at + plot->width(), at + span->left, at + span->right});
  }
  for (const Span& one : spans) {
    int left = one.left, right = one.right;
    const int give = static_cast<int>(most * (one.right - one.left));
    for (const Span& other : spans) {
      if (std::abs(other.from - one.from) > same || std::abs(other.to - one.to) > same) continue;
      if (other.left - one.left <= give) left = std::max(left, other.left);
      if (one.right - other.right <= give) right = std::min(right, other.right);
    }
    one.plot->setTimeInset(left - one.left, one.right - right);
  }
}

}  // namespace reclab
