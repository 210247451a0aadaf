// SPDX-License-Identifier: GPL-3.0-or-later
// The learning rules there are, and which of them take one model: the result of the study "rules".
#pragma once

#include <string>
#include <vector>

#include "array/sentence.h"

namespace reclab {

struct RuleTable {
  struct Rule {
    std::string id, name, title;  ///< "uoro", "UORO", "Unbiased online recurrent optimisation"
    int year = 0;
    std::string gradient;      ///< "exact", "unbiased" or "biased" beside that of backpropagation
    bool past_facing = true;   ///< it goes forward with the influence of the weights; else an adjoint comes back from later steps
    bool local = false;        ///< the change of a weight is made of values of the units that it joins and of a feedback
    bool sparse = false;       ///< of the influence of the weights it carries some entries, and leaves the others out
    bool step_by_step = true;  ///< it has the gradient of each step's loss at that step, and so can be compared step by step
    std::string memory, time;  ///< numbers kept for a sequence, operations of a step; in T, d_s and |theta|
    double memory_power = 0.0, time_power = 0.0;  ///< of d_s in both, for a full recurrent matrix
    std::string source, idea;                     ///< the paper and its equation; two sentences
    bool exact_here = false;                      ///< its gradients are those of backpropagation, for this model
    Sentence why_not{};                           ///< empty: it takes this model
    Sentence why_not_compared{};  ///< empty: its gradients of the run's own loss can be compared, where it has those of each step
  };
  std::string model;  ///< its title
  std::vector<Rule> rules;
};

}  // namespace reclab
