// SPDX-License-Identifier: GPL-3.0-or-later
// A prepared request, before anything runs, shared by runs, comparisons of forms and timings.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "execution/rollout.h"
#include "experiment/device.h"
#include "experiment/experiment.h"
#include "learning/losses.h"
#include "models/network.h"

namespace reclab {

/// "1 step", "20 steps"
inline std::string plural(std::int64_t n, const std::string& word) { return std::to_string(n) + " " + word + (n == 1 ? "" : "s"); }

enum class Together { checked, unchecked };
/// The hyper-parameters of a preset, whose architecture this is. unchecked: each value is in its range, and they need not go together.
Hyper hyper_of(const Architecture& architecture, const Preset& preset, const std::vector<std::pair<std::string, std::string>>& set,
               Together together = Together::checked);

/// Throws Error for a form that is not among the network's.
void require_form(const Network& network, Form form, const std::string& model);

/// The work of a network's pass forward over so many steps, by its own graph, which may be of fewer.
Work work_of(const Network& network, std::int64_t length);

/// The structure of a request: all that is known of its run before any weight or state has a value. Throws Error for one that cannot run.
struct Structure {
  std::shared_ptr<const Architecture> owner;
  const Architecture& architecture;
  Hyper hyper;
  SequenceLoss loss;
  DType real;
  Backend& backend;
  std::shared_ptr<Network> shape_network;  // names and shapes; the first rollout may run it (Rollout::Options::network)

  /// `like`: that of another request, whose networks are taken where they are those of this one; null: none.
  Structure(const Registry& registry, const RunRequest& request, const Structure* like = nullptr);
  /// The architecture, or those of a stack.
  std::vector<const Architecture*> parts() const;
  /// Outputs of a head that came with the weights and has no target; 0: there is none.
  std::int64_t head_without_target() const { return loss.kind() == LossKind::last || loss.kind() == LossKind::mean ? loss.outputs() : 0; }
  /// Fills in the names, hyper-parameters, device, precision and forms of a run.
  void describe(const RunRequest& request, RunInfo& info) const;
  /// The weights of the request's file, which it has. Throws Error, and MisfitError.
  Parameters loaded(const RunRequest& request) const;
};

/// The weights of a network: its undrawn() with values.
using WeightsOf = std::function<Parameters(const Network&)>;

/// The structure with its weights: those that are given, else those that the request has learned or reads from a file. Where it has
/// neither, they are drawn, and a read-out that is fitted to the target is.
struct Prepared : Structure {
  Parameters parameters;
  std::string readout_note;  ///< on a read-out that was fitted to the run's target; empty: none was

  Prepared(const Registry& registry, const RunRequest& request, const WeightsOf& given = {}, const Structure* like = nullptr);
};

/// Whether the scan and the chunkwise form are one kernel on the request's device, as those of a diagonal recurrence are on CUDA.
bool scans_are_one(const Structure& structure, const RunRequest& request);

/// The sentence for a gradient that is not finite.
std::string adjoint_sentence(const Divergence& bad);
/// The course of a Newton form, in words.
std::string newton_sentence(const NewtonReport& report);

/// Adds an array with its values.
void put_real(Trace& trace, TraceArray array, std::vector<double> values);

}  // namespace reclab
