// SPDX-License-Identifier: GPL-3.0-or-later
// The timing lab: the exact forms of a model against the length of the sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "parameters/field.h"

namespace reclab {

struct TimingRequest {
  std::vector<std::string> forms{};                                        ///< empty: every exact form
  std::vector<std::int64_t> lengths{64, 128, 256, 512, 1024, 2048, 4096};  ///< rising
  std::int64_t batch = 1;                                                  ///< the sequence so many times side by side
  bool backward = true;                                                    ///< false: the forward pass alone
};

/// The fields of a timing, in the order of the command line.
const std::vector<PlanField<TimingRequest>>& timing_fields();

/// The line "reclab bench ..." that does it again. `device`: the one that ran.
std::string command_of(const RunRequest& request, const TimingRequest& timing, const std::string& device);

/// Times forms against length, on the request's sequence repeated or cut to each, without a head; the loss is ½ Σ |y|². Every point is
/// visited several times: all lengths, then all again, and at each all forms turn by turn, so that a drift meets all alike: a processor
/// that goes slower for seconds would otherwise bend the curve. Returns, and publishes after each length, a Trace with the keys (K lengths,
/// all real)
///   timing/<form>/length, seconds (median of forward + backward), low, high (quartiles), low90, high90 (the median of another run)
///   timing/<form>/forward, backward, each with _low90 and _high90
///   timing/<form>/memory, flops, bytes, output_error, gradient_error, iterations and converged (of Newton forms)
///   timing/<form>/exponent, forward_exponent, backward_exponent, memory_exponent [1], each with _low and _high
///   timing/roof/triad, cached, flops; timing/lyapunov; timing/noise, between [1]
/// A point is left out, with a note, where one pass would take longer than `longest_pass` seconds by the form's own exponent, does not fit
/// in memory or diverges. A cancelled timing returns the measurements so far, or throws Cancelled before there is anything. A finished one
/// adds its pace to pace_file(), from which the bands of the next know how the machine differs from run to run (pace.h); the roof of a CPU
/// is kept in roof_file() (roof.h).
TracePtr time_forms(const Registry& registry, const RunRequest& request, const TimingRequest& timing, const Progress& progress,
                    std::stop_token stop, const Publish& publish = {});

/// The measures of time_forms: visits of a point at least, at most where the whole of them is not `long_enough` seconds yet (other load on
/// a machine comes and goes in tens of seconds, so that short timings are hit harder), and of one with a slow pass; most repeats a visit;
/// seconds of a visit's repeats, and of one repeat at least (of several passes where they are short); seconds of a slow pass, of one that
/// is warmed up at its first visit alone, and of a pass at most; the length up to which errors are computed; bytes of the forms that take
/// turns.
inline constexpr int visits = 5, most_visits = 9, visits_of_slow = 3, most_repeats = 9;
inline constexpr double long_enough = 20.0;
inline constexpr double visit_seconds = 0.25, least_repeat = 1e-3, slow_pass = 0.5, cold_pass = 4.0, longest_pass = 20.0;
inline constexpr std::int64_t longest_compared = 2048, bytes_together = std::int64_t{2} << 30;

/// The largest Lyapunov exponent of a model on the request's sequence, natural logarithm a step: the growth of the largest singular value
/// of ds_T/ds_t in the mean over the steps t, the first and the last quarter left out, the largest of all layers. The sequence is cut or
/// repeated to at most 1024 steps, fewer where Jacobians are large. Nothing where no layer has a transition; -infinity where a product is
/// exactly zero.
std::optional<double> largest_lyapunov(const Registry& registry, const RunRequest& request, std::stop_token stop);

}  // namespace reclab
