// SPDX-License-Identifier: GPL-3.0-or-later
// Helpers of the tests of the trajectories panel.
#pragma once

#include <QColor>
#include <QImage>
#include <QTest>
#include <QWidget>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "panels/trajectories/trajectories.h"
#include "synthetic/synthetic_trace.h"

namespace reclab::test {

/// Pixels that differ by more than a shade.
inline int differing(const QImage& a, const QImage& b) {
  if (a.size() != b.size()) return -1;
  int count = 0;
  for (int y = 0; y < a.height(); ++y)
    for (int x = 0; x < a.width(); ++x) {
      const QColor p = a.pixelColor(x, y), q = b.pixelColor(x, y);
      if (std::abs(p.red() - q.red()) + std::abs(p.green() - q.green()) + std::abs(p.blue() - q.blue()) > 24) ++count;
    }
  return count;
}

/// Pixels with a colour of their own: the curve and the bar of time, not the axes and the words.
inline int coloured(const QImage& image) {
  int count = 0;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      if (image.pixelColor(x, y).saturation() > 90) ++count;
  return count;
}

inline QWidget* overlayOf(TrajectoriesPanel& panel) { return panel.findChild<QWidget*>("trajectoryOverlay"); }

inline void showPanel(TrajectoriesPanel& panel) {
  panel.resize(460, 400);
  panel.show();
  QVERIFY(QTest::qWaitForWindowExposed(&panel));
}

inline std::shared_ptr<const Trace> trace(std::int64_t length = 400, std::int64_t units = 12, std::int64_t layers = 1) {
  test::SyntheticOptions options;
  options.length = length;
  options.units = units;
  options.layers = layers;
  options.gates = options.spectra = options.gradients = options.timing = false;
  return test::synthetic_trace(options);
}

inline double parabola(double t, std::size_t copy) {
  const double x = 0.02 * (t - 90.0 - 30.0 * double(copy));
  return copy == 0 ? x * x - 0.4 : 0.6 - 0.5 * x * x + 0.3 * x;
}

/// A memory of two parabolas, each held by three coefficients of the powers of the share of the window, as a run would record it: `finite`
/// over the last 40 steps, else over the whole past, whose beginning is where the share is 0.
inline std::shared_ptr<Trace> pastTrace(bool finite, std::int64_t length = 200) {
  auto made = std::make_shared<Trace>();
  made->info.length = length;
  made->info.title = "Line";
  std::vector<double> state, signal, basis, place, error, window;
  for (std::int64_t t = 0; t < length; ++t) {
    made->steps.push_back(t);
    made->time.push_back(double(t));
    const double reach = finite ? 40.0 : double(t) + 1.0, from = finite ? double(t) + 0.5 : -0.5, way = finite ? -reach : reach;
    for (std::size_t copy = 0; copy < 2; ++copy) {
      const double f0 = parabola(from, copy), up = parabola(from + 1, copy), down = parabola(from - 1, copy);
      state.insert(state.end(), {f0, 0.5 * (up - down) * way, 0.5 * (up + down - 2 * f0) * way * way});
      signal.push_back(parabola(double(t), copy));
      error.push_back(copy == 0 ? 0.008 : 0.0123 + 0.001 * double(t));
    }
    window.push_back(reach);
  }
  for (int i = 0; i <= 100; ++i) {
    const double share = finite ? 1.0 - 0.01 * i : 0.01 * i;
    basis.insert(basis.end(), {1.0, share, share * share});
    place.push_back(finite ? 40.0 * share : share);
  }
  const Axis time{"time", "", {}}, copy{"copy", "", {}}, at{"place", "", {}};
  const std::int64_t T = length;
  made->put(test::unit_array("state/0/h", made->steps, 2, [](double t, double j) { return std::sin(0.1 * t + j); }, "another state"));
  made->put(test::real_array("state/0/m", {T, 2, 3}, {time, {"unit axis 1", "", {}}, {"unit axis 2", "", {}}}, state));
  made->put(test::real_array("signal/0/m", {T, 2}, {time, copy}, signal, "What it was written with."));
  made->put(test::real_array("basis/0/m", {101, 3}, {at, {"Taylor coefficient", "", {}}}, basis));
  TraceArray places = test::real_array("basis/0/m/place", {101}, {at}, place);
  places.unit = finite ? "steps ago" : "share of the past";
  made->put(places);
  made->put(test::real_array("reconstruction/0/m/error", {T, 2}, {time, copy}, error, "How far it is off."));
  made->put(test::real_array("reconstruction/0/m/window", {T}, {time}, window, "How far back the state reaches."));
  return made;
}

}  // namespace reclab::test
