// SPDX-License-Identifier: GPL-3.0-or-later
// The step view of the forms: for a short sequence, which pieces of work a form falls into, which of them wait for which, and in which
// round each can run when all that need not wait run side by side.
#pragma once

#include "experiment/experiment.h"
#include "recurrence/plan.h"

namespace reclab {

inline constexpr std::int64_t most_schedule_steps = 64;

/// The schedules of all exact forms of the request's model, of the first memory that the form runs, over the first `steps` steps of its
/// sequence (fewer where it is shorter), on the CPU in float64, from the model's own initial state. Rounds and pieces are those of the CPU
/// backend, with shorter chunks where its own would hold the whole sequence; the texts say so. Keys:
///
///   schedule/steps [1]           how many steps
///   schedule/<form>/nodes [n,7]  round (0: given), first and last step, kind, the round it begins in, row, work
///   schedule/<form>/edges [m,2]  from, to: node `to` needs node `from`, which ends in an earlier round
///   schedule/<form>/kinds [k]    how a kind is drawn (Place); the axis has their names
///   schedule/<form>/rules [k]    how many nodes of the kind there are; the axis says what each computes
///   schedule/<form>/rounds, work, depth [1]   rounds, pieces of work in them, and the longest chain of rounds that wait for each other
///   schedule/<form>/drawing [1]  the axis says "tree", "triangle" or "iterations"
///   schedule/<form>/value [n]    the value of the node, for one entry of the state; NaN where it is not one number
///   schedule/<form>/product [n]  of a composition of steps: the product of their factors
///   schedule/<form>/error [iterations+1,T]  of a Newton form: log10 of |s_t - its sequential value| relative to the largest state
/// The text of `rounds` says why the form is parallel, that of `work` names its pieces, that of `value` the entry shown. For a form without
/// a drawing, schedule/none [0] says why.
TracePtr form_schedule(const Registry& registry, const RunRequest& request, std::int64_t steps, std::stop_token stop);
/// A trace that holds schedule/none alone, with this sentence.
TracePtr no_schedule(const std::string& why);

}  // namespace reclab
