// SPDX-License-Identifier: GPL-3.0-or-later
// The states of a run as the columns of one real matrix, and the way through three coordinates that is drawn of them.
#pragma once

#include <QString>
#include <QStringList>
#include <array>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "scene/components.h"
#include "scene/trajectory_scene.h"
#include "trace/trace.h"

namespace reclab {

/// Arrays state/<layer>/<name> [T, ...] side by side; a complex one gives its real parts, then its imaginary parts. Copies no data.
class StateColumns {
 public:
  struct Part {
    std::shared_ptr<const TraceArray> array;
    bool imaginary = false;
    std::int64_t first = 0, width = 0;  ///< columns
    QString name;                       ///< "cell", "Re s"
  };

  StateColumns() = default;
  /// The columns of one layer, or of one array of it when `name` is given. Arrays that have other rows than the first are left out.
  StateColumns(const Trace& trace, const QString& layer, const QString& name = {});

  std::int64_t rows() const { return static_cast<std::int64_t>(steps_.size()); }
  std::int64_t width() const { return width_; }
  const std::vector<std::int64_t>& steps() const { return steps_; }  ///< one a row
  const std::vector<double>& time() const { return time_; }          ///< one a row
  const std::vector<Part>& parts() const { return parts_; }
  QString columnName(std::int64_t column) const;  ///< "cell 3", "Im s 2,5"
  double value(std::int64_t row, std::int64_t column) const;
  void copyRow(std::int64_t row, double* to) const;
  std::int64_t finiteRows() const;                  ///< up to the first that is not finite; reads all
  std::int64_t rowOfStep(std::int64_t step) const;  ///< the nearest, -1 when there is none
  /// Whether it is the very same data, as a later stage of the same run brings it.
  bool sameAs(const StateColumns& other) const;

 private:
  std::vector<Part> parts_;
  std::vector<std::int64_t> steps_;
  std::vector<double> time_;
  std::int64_t width_ = 0;
};

/// A pinned run's columns of the same state; none where it has other units, and `label` says so.
struct PinnedState {
  QString label;
  QColor colour;
  StateColumns columns;
};

/// The input of statePicture().
struct StateRequest {
  StateColumns columns;
  bool components = true;                     ///< axes are the first principal components, else the three chosen columns
  std::array<std::int64_t, 3> axes{0, 1, 2};  ///< columns; -1 is time
  QString timeName;
  std::vector<double> previous;     ///< directions found last: signs follow them, so that a picture does not flip while a slider moves
  bool matrix = false;              ///< the whole matrix is wanted, for a map
  std::vector<PinnedState> pinned;  ///< drawn in the same coordinates
};

/// The result of statePicture().
struct StatePicture {
  std::int64_t rows = 0;                              ///< of the columns, up to the first that is not finite
  std::shared_ptr<const Trajectory> trajectory;       ///< null when there is none
  QString reason;                                     ///< why not, in words
  Components components;                              ///< of at most 20,000 rows
  double held = 0.0;                                  ///< share of the variance in the first three
  std::vector<double> spread;                         ///< variance of each column
  std::shared_ptr<const std::vector<double>> matrix;  ///< [matrixSteps, width]; means of neighbouring rows when there are very many
  std::vector<std::int64_t> matrixSteps;
  double matrixScale = 0.0;   ///< a bound that most of |matrix| lies within
  bool matrixBeyond = false;  ///< and 0.5 % do not
};

/// Multiplications that statePicture() takes, roughly.
double costOf(const StateRequest& request);
/// Pure: may run on any thread.
StatePicture statePicture(const StateRequest& request, const std::stop_token& stop = {});

}  // namespace reclab
