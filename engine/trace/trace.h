// SPDX-License-Identifier: GPL-3.0-or-later
// Trace: the record of a run, as named arrays with axes and units. Panels, exports and analyses know only this.
#pragma once

#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "array/sentence.h"
#include "array/shape.h"
#include "trace/kinds.h"
#include "trace/missing.h"

namespace reclab {

/// One axis of a recorded array.
struct Axis {
  std::string name;                 ///< "time", "unit", "head", "key", "value", "channel", "eigenvalue", "rank", "length", "iteration"
  std::string unit;                 ///< "" when it counts things
  std::vector<std::string> labels;  ///< one a position, or empty
};

/// A recorded array: row-major, real (float64) or complex (complex128), never both. Immutable once it is in a Trace.
struct TraceArray {
  std::string key;         ///< the key in trace.npz, for example "gate/0/forget"
  Shape shape;             ///< [T, ...] for an array that moves with time
  std::vector<Axis> axes;  ///< as many as the shape has dimensions
  std::string unit;        ///< "" when dimensionless, "log10" for logarithms of norms
  std::string text;        ///< one sentence on it, for tooltips
  double low = 0.0;        ///< the range that a gate can take (low < high), both 0 when it is unbounded
  double high = 0.0;
  std::shared_ptr<const std::vector<double>> real;
  std::shared_ptr<const std::vector<std::complex<double>>> complex;
  /// The time step of each row when they are not the rows of Trace::steps (a spectrum computed for some steps only).
  std::vector<std::int64_t> steps;

  bool is_complex() const { return complex != nullptr; }
  std::int64_t size() const;
  /// Entries a row: the product of all dimensions but the first.
  std::int64_t row_size() const;
  bool has_rows() const { return !shape.empty() && size() > 0; }  ///< not a single number, and not empty
};

enum class Outcome { finished, cancelled, failed, diverged };
std::string_view to_string(Outcome outcome);

/// The matrix that the eigenvalues of spectrum/<layer> belong to, and the rule that it comes from.
struct SpectrumInfo {
  /// The transition is a step of a flow ds/dt = λ s: by which rule (trace/discretisation.h). Its eigenvalues times the step follow from the
  /// spectrum, but for exponential, where those of flow/<layer> count if there are any.
  bool continuous = false;
  bool per_step = false;  ///< one row a time step, or one row for the whole run
  std::string of;         ///< "eigenvalues of the recurrent Jacobian ds_t/ds_{t-1}"
  std::string rule{};     ///< "forward", "backward", "bilinear", "generalised" or "exponential"; empty where it is not continuous
  double share = 0.5;     ///< of generalised: the share of the new state in the step's slope
};

/// One layer of the network that ran.
struct LayerInfo {
  std::string name;       ///< distinguishes it from others: "", "backward", "mamba"
  bool reversed = false;  ///< it runs from the end of the sequence to its start
};

/// Weights that a training came to.
struct LearnedInfo {
  std::uint64_t training = 0;  ///< its number, of those of this program
  std::int64_t steps = 0;      ///< changes that had been made to them
  std::string from;            ///< the training data, in words
};

/// The facts of a run, for the manifest, the status bar and every export.
struct RunInfo {
  std::string version, preset, title, architecture, family;
  std::vector<std::pair<std::string, std::string>> hyper;  ///< key and value as text, in the order of the card
  std::uint64_t seed = 0;
  std::string weights, state;          ///< the files that they were read from; empty: drawn from the seed, and as the model begins
  std::optional<LearnedInfo> learned;  ///< of weights that were neither drawn nor read
  std::string device, dtype, form;     ///< those that were used in the end: "cpu", "float64", "sequential"
  std::vector<std::string> forms;      ///< the exact forms of the network
  std::vector<std::string> devices;    ///< those that this machine can run on: "cpu", and "cuda" where there is a device
  std::int64_t batch = 1;              ///< sequences side by side
  std::string record_form;             ///< the form that states, gates and gradients were recorded with (same as form if it forms them)
  std::string input_name, input_sha256;
  std::vector<double> input_mean, input_deviation;  ///< subtracted from each channel and divided by; empty when it is as it was
  MissingCells missing;                             ///< of the file that the input is from
  std::string loss;                                 ///< "last", "mean" or "task", with its formula in words
  double loss_value = 0.0;
  std::int64_t length = 0;  ///< time steps of the sequence
  std::int64_t every = 1;   ///< every how many steps a row was recorded
  std::int64_t layers = 0;
  std::vector<LayerInfo> each_layer;
  double seconds = 0.0;    ///< wall time of forward and backward
  std::int64_t bytes = 0;  ///< memory that the run's arrays took, recorded ones included
  Outcome outcome = Outcome::finished;
  std::string sentence;         ///< on the outcome: "gate/0/forget became non-finite at step 31", a reduced record, the first gradient of a
                                ///< finished run that is not finite
  std::vector<Sentence> notes;  ///< everything else that was decided for the user, a sentence each
  std::vector<std::pair<Kind, Sentence>> note_kinds;  ///< of those that are about arrays of a kind: the kind and the note
  std::map<Kind, std::string> absent;                 ///< kinds of which this model has no arrays, with the reason in a sentence
  std::vector<SpectrumInfo> spectra;                  ///< one a layer
  std::string command;                                ///< the reclab line that repeats this run
};

/// An immutable set of recorded arrays. Cheap to copy: arrays are shared, so that a later stage of the same run
/// (spectra after states) is a new Trace with more keys.
class Trace {
 public:
  RunInfo info;
  std::vector<std::int64_t> steps;  ///< the time step (0-based) of each recorded row
  std::vector<double> time;         ///< the time of each recorded row, in time_unit (the time column, or the step's number)
  std::string time_name = "step";
  std::string time_unit;
  std::vector<std::string> input_names, output_names;
  std::shared_ptr<const RunInfo> timed;  ///< the run that timing/... is of, where it was taken beside this run and not by it

  /// nullptr when there is no such array.
  const TraceArray* find(std::string_view key) const;
  /// All arrays whose key starts with the prefix, in the order they were added.
  std::vector<const TraceArray*> matching(std::string_view prefix) const;
  std::vector<const TraceArray*> of(Kind kind) const { return matching(prefix_of(kind)); }
  bool has(Kind kind) const;
  const std::vector<std::shared_ptr<const TraceArray>>& arrays() const { return arrays_; }
  /// Adds an array, or replaces the one of the same key. Its data must fit its shape (asserted).
  void put(TraceArray array);
  /// The recorded row nearest to a time step; -1 when nothing is recorded.
  std::int64_t row_of_step(std::int64_t step) const;
  /// The same for an array that has steps of its own.
  std::int64_t row_of_step(const TraceArray& array, std::int64_t step) const;

 private:
  std::vector<std::shared_ptr<const TraceArray>> arrays_;
};

}  // namespace reclab
