// SPDX-License-Identifier: GPL-3.0-or-later
// The schedule of one form, as it is read off a Trace: schedule/<form>/...
#pragma once

#include <QString>
#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

#include "trace/trace.h"

namespace reclab {

struct StepSchedule {
  enum class Drawing { tree, triangle, iterations };
  enum class Place { point, lane, cell, bar, end, box };
  struct NodeKind {
    QString name, rule;
    Place place = Place::point;
    bool given = true;  ///< none of its nodes is work
  };
  struct Node {
    int round, first, last, kind, begin, row;
    double work;
    std::complex<double> value, product;  ///< NaN where there is none
    std::vector<int> needs;
  };
  QString form, why, unit, entry;
  Drawing drawing = Drawing::tree;
  std::vector<NodeKind> kinds;
  std::vector<Node> nodes;
  int steps = 0, rounds = 0;
  double work = 0, depth = 0;
  std::vector<double> error;  ///< [iterations + 1, steps]; empty where the form is none of iteration
  int iterations() const { return error.empty() ? 0 : static_cast<int>(error.size()) / steps - 1; }
  /// The number of positions of the animation: rounds, or iterations.
  int positions() const { return drawing == Drawing::iterations ? iterations() : rounds; }
  /// The number of first steps of the sequence that are right to 12 digits after an iteration.
  int exactAfter(int iteration) const;
  /// The node and all that it hangs on.
  std::vector<bool> cone(int node) const;
  QString tip(int node) const;  ///< rich text: its computation, its inputs, and its values

  static std::vector<QString> forms(const Trace& trace);  ///< that the trace has a schedule of
  static std::optional<StepSchedule> read(const Trace& trace, const QString& form);
};

/// "steps 4 to 7", "step 4"
QString stepsText(int first, int last);

}  // namespace reclab
