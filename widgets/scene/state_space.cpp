// SPDX-License-Identifier: GPL-3.0-or-later
#include "scene/state_space.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

namespace reclab {
namespace {

constexpr std::int64_t componentRows = 20000;
constexpr std::int64_t componentEntries = 8'000'000;
constexpr std::int64_t matrixEntries = 8'000'000;

QString trState(const char* text) { return QCoreApplication::translate("TrajectoriesPanel", text); }

std::int64_t sampledRows(std::int64_t rows, std::int64_t width) {
  return std::min({rows, componentRows, std::max<std::int64_t>(200, componentEntries / std::max<std::int64_t>(1, width))});
}

}  // namespace

StateColumns::StateColumns(const Trace& trace, const QString& layer, const QString& name) {
  const std::string prefix = prefix_of(Kind::state) + layer.toStdString() + "/";
  for (const auto& array : trace.arrays()) {
    if (!array->key.starts_with(prefix) || array->shape.empty()) continue;
    const QString of = QString::fromStdString(array->key.substr(prefix.size()));
    if (!name.isEmpty() && of != name) continue;
    const std::vector<std::int64_t>& steps = array->steps.empty() ? trace.steps : array->steps;
    if (array->shape[0] != static_cast<std::int64_t>(steps.size()) || array->row_size() < 1) continue;
    if (parts_.empty()) {
      steps_ = steps;
    } else if (steps != steps_) {
      continue;
    }
    const std::int64_t width = array->row_size();
    for (const bool imaginary : {false, true}) {
      if (imaginary && !array->is_complex()) continue;
      parts_.push_back({array, imaginary, width_, width, array->is_complex() ? (imaginary ? "Im " : "Re ") + of : of});
      width_ += width;
    }
  }
  if (steps_ == trace.steps && trace.time.size() == steps_.size()) {
    time_ = trace.time;
    return;
  }
  time_.reserve(steps_.size());
  for (std::int64_t step : steps_) {
    const auto at = std::lower_bound(trace.steps.begin(), trace.steps.end(), step);
    const auto row = static_cast<std::size_t>(at - trace.steps.begin());
    time_.push_back(at != trace.steps.end() && *at == step && row < trace.time.size() ? trace.time[row] : static_cast<double>(step));
  }
}

std::int64_t StateColumns::finiteRows() const {
  std::int64_t finite = rows();
  for (const Part& part : parts_) {
    const auto upTo = [&](const auto& values, const auto& isFinite) {
      const auto end = values.begin() + std::ptrdiff_t(finite * part.width);
      return static_cast<std::int64_t>(std::find_if_not(values.begin(), end, isFinite) - values.begin()) / part.width;
    };
    if (part.imaginary) continue;
    if (part.array->real)
      finite = upTo(*part.array->real, [](double v) { return std::isfinite(v); });
    else
      finite = upTo(*part.array->complex, [](std::complex<double> v) { return std::isfinite(v.real()) && std::isfinite(v.imag()); });
  }
  return finite;
}

QString StateColumns::columnName(std::int64_t column) const {
  for (const Part& part : parts_) {
    std::int64_t at = column - part.first;
    if (at < 0 || at >= part.width) continue;
    const Shape& shape = part.array->shape;
    if (shape.size() == 1) return part.name;
    if (shape.size() == 2 && part.array->axes.size() == 2 && std::int64_t(part.array->axes[1].labels.size()) == part.width)
      return part.name + ' ' + QString::fromStdString(part.array->axes[1].labels[std::size_t(at)]);
    QStringList place;
    for (std::size_t d = shape.size() - 1; d >= 1; --d) {
      place.prepend(QString::number(at % shape[d]));
      at /= shape[d];
    }
    return part.name + ' ' + place.join(',');
  }
  return {};
}

double StateColumns::value(std::int64_t row, std::int64_t column) const {
  const auto after =
      std::upper_bound(parts_.begin(), parts_.end(), column, [](std::int64_t c, const Part& part) { return c < part.first; });
  const Part& part = *(after - 1);
  const auto at = static_cast<std::size_t>(row * part.width + column - part.first);
  if (part.array->real) return (*part.array->real)[at];
  return part.imaginary ? (*part.array->complex)[at].imag() : (*part.array->complex)[at].real();
}

void StateColumns::copyRow(std::int64_t row, double* to) const {
  for (const Part& part : parts_) {
    const auto first = row * part.width;
    if (part.array->real) {
      std::copy_n(part.array->real->data() + first, part.width, to + part.first);
    } else {
      const std::complex<double>* from = part.array->complex->data() + first;
      for (std::int64_t j = 0; j < part.width; ++j) to[part.first + j] = part.imaginary ? from[j].imag() : from[j].real();
    }
  }
}

std::int64_t StateColumns::rowOfStep(std::int64_t step) const {
  if (steps_.empty()) return -1;
  const auto after = std::lower_bound(steps_.begin(), steps_.end(), step);
  if (after == steps_.begin()) return 0;
  if (after == steps_.end()) return rows() - 1;
  return (step - *(after - 1) <= *after - step ? after - 1 : after) - steps_.begin();
}

bool StateColumns::sameAs(const StateColumns& other) const {
  return steps_ == other.steps_ && time_ == other.time_ &&
         std::equal(parts_.begin(), parts_.end(), other.parts_.begin(), other.parts_.end(),
                    [](const Part& a, const Part& b) { return a.array == b.array && a.imaginary == b.imaginary && a.first == b.first; });
}

double costOf(const StateRequest& request) {
  const std::int64_t n = request.columns.width(), rows = sampledRows(request.columns.rows(), n);
  return double(rows) * double(n) * double(std::min({rows, n, std::int64_t{256}})) +
         40.0 * double(request.columns.rows()) * double(n) * double(1 + request.pinned.size());
}

StatePicture statePicture(const StateRequest& request, const std::stop_token& stop) {
  StatePicture picture;
  const StateColumns& columns = request.columns;
  const std::int64_t n = columns.width(), rows = n > 0 ? columns.finiteRows() : 0;
  picture.rows = rows;
  if (rows < 1) return picture;
  const auto width = static_cast<std::size_t>(n);

  if (request.matrix) {
    const std::int64_t together = std::max<std::int64_t>(1, (rows * n + matrixEntries - 1) / matrixEntries);
    std::vector<double> row(width);
    auto matrix = std::make_shared<std::vector<double>>();
    matrix->reserve(static_cast<std::size_t>((rows + together - 1) / together) * width);
    for (std::int64_t first = 0; first < rows; first += together) {
      if (stop.stop_requested()) return {};
      const std::int64_t end = std::min(rows, first + together);
      matrix->resize(matrix->size() + width);
      double* mean = matrix->data() + matrix->size() - width;
      for (std::int64_t i = first; i < end; ++i) {
        columns.copyRow(i, row.data());
        for (std::size_t j = 0; j < width; ++j) mean[j] += row[j] / double(end - first);
      }
      picture.matrixSteps.push_back(columns.steps()[std::size_t((first + end - 1) / 2)]);
    }
    std::vector<double> sizes;
    const std::size_t stride = std::max<std::size_t>(1, matrix->size() / 100'000);
    for (std::size_t i = 0; i < matrix->size(); i += stride) sizes.push_back(std::abs((*matrix)[i]));
    const auto most = sizes.begin() + std::ptrdiff_t(0.995 * double(sizes.size() - 1));
    std::nth_element(sizes.begin(), most, sizes.end());
    const double largest = *std::max_element(most, sizes.end());
    // One unit that runs away would leave all the others without colour.
    picture.matrixBeyond = *most > 0.0 && largest > 2.0 * *most;
    picture.matrixScale = picture.matrixBeyond ? *most : largest;
    picture.matrix = std::move(matrix);
  }

  const std::int64_t sampled = sampledRows(rows, n);
  std::vector<double> data(static_cast<std::size_t>(sampled) * width);
  for (std::int64_t i = 0; i < sampled; ++i)
    columns.copyRow(sampled > 1 ? i * (rows - 1) / (sampled - 1) : 0, data.data() + std::size_t(i) * width);
  if (stop.stop_requested()) return {};
  picture.components = principalComponents(data, sampled, n, 3, stop);
  if (stop.stop_requested()) return {};
  for (double share : picture.components.share) picture.held += share;
  picture.spread.assign(width, 0.0);
  for (std::int64_t i = 0; i < sampled; ++i)
    for (std::size_t j = 0; j < width; ++j) picture.spread[j] += data[std::size_t(i) * width + j] * data[std::size_t(i) * width + j];
  for (double& v : picture.spread) v /= std::max(1.0, double(sampled - 1));

  // The axes of the picture.
  if (rows < 2) {
    picture.reason = trState("One recorded step makes no trajectory: run a longer sequence, or record more of its steps.");
    return picture;
  }
  if (request.components && n < 2) {
    picture.reason = trState("This state is a single number, which has no components: look at it under “lines”.");
    return picture;
  }
  if (request.components && !(picture.components.variance > 0.0)) {
    picture.reason = trState("The state never moves: every unit keeps its first value.");
    return picture;
  }
  auto way = std::make_shared<Trajectory>();
  way->timeName = request.timeName;
  way->time.assign(columns.time().begin(), columns.time().begin() + rows);
  way->points.resize(static_cast<std::size_t>(rows));
  if (request.components) {
    Components& c = picture.components;
    for (std::int64_t k = 0; k < c.count && request.previous.size() == c.directions.size(); ++k) {
      const auto first = c.directions.begin() + k * n;
      double along = 0.0;
      for (std::int64_t j = 0; j < n; ++j) along += first[j] * request.previous[std::size_t(k * n + j)];
      if (along < 0.0) std::transform(first, first + n, first, std::negate<>());
    }
    for (std::size_t k = 0; k < 3; ++k) {
      // A state of two numbers leaves an axis over, which shows time.
      if (std::int64_t(k) >= c.count)
        way->names[k] = request.timeName;
      else
        way->names[k] = QString("PC %1 (%2 %)")
                            .arg(k + 1)
                            .arg(c.share[k] < 1e-4 ? QStringLiteral("< 0.01") : number(100.0 * c.share[k], c.share[k] < 0.1 ? 2 : 3));
    }
    std::vector<double> row(width);
    for (std::int64_t i = 0; i < rows; ++i) {
      if (i % 4096 == 0 && stop.stop_requested()) return {};
      columns.copyRow(i, row.data());
      for (std::size_t k = 0; k < 3; ++k) {
        double along = 0.0;
        if (std::int64_t(k) < c.count)
          for (std::size_t j = 0; j < width; ++j) along += (row[j] - c.mean[j]) * c.directions[k * width + j];
        else
          along = way->time[std::size_t(i)];
        way->points[std::size_t(i)][k] = along;
      }
    }
  } else {
    for (std::size_t k = 0; k < 3; ++k) {
      const std::int64_t column = std::clamp<std::int64_t>(request.axes[k], -1, n - 1);
      way->names[k] = column < 0 ? request.timeName : columns.columnName(column);
      for (std::int64_t i = 0; i < rows; ++i)
        way->points[std::size_t(i)][k] = column < 0 ? way->time[std::size_t(i)] : columns.value(i, column);
    }
  }
  for (const PinnedState& pinned : request.pinned) {
    CompanionWay companion{pinned.label, pinned.colour, {}, {}, {}};
    std::vector<double> row(width);
    const std::int64_t count = pinned.columns.width() == n ? pinned.columns.finiteRows() : 0;
    companion.points.resize(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      if (i % 4096 == 0 && stop.stop_requested()) return {};
      pinned.columns.copyRow(i, row.data());
      const double time = pinned.columns.time()[std::size_t(i)];
      for (std::size_t k = 0; k < 3; ++k) {
        double along = time;
        if (const Components& c = picture.components; request.components && std::int64_t(k) < c.count) {
          along = 0.0;
          for (std::size_t j = 0; j < width; ++j) along += (row[j] - c.mean[j]) * c.directions[k * width + j];
        } else if (const std::int64_t column = std::clamp<std::int64_t>(request.axes[k], -1, n - 1); !request.components && column >= 0) {
          along = row[std::size_t(column)];
        }
        companion.points[std::size_t(i)][k] = along;
      }
    }
    way->companions.push_back(std::move(companion));
  }
  way->arrange();
  picture.trajectory = std::move(way);
  return picture;
}

}  // namespace reclab
