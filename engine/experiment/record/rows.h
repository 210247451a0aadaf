// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiment/record/analysis.h"

namespace reclab {

/// An analysis that records variables of the network, a row for each recorded step.
class RecordedRows : public Analysis {
 public:
  using Analysis::Analysis;
  void forward(const Rollout::Segment& segment) override;
  void finish(std::int64_t rows) override;

 protected:
  /// `of`: the variable in the network of any segment, for the shorter last one's may be numbered otherwise. `backward`: its row 0 is the
  /// last step.
  void add(TraceArray array, const Network& network, std::function<Var(const Network&)> of, bool backward = false);
  /// The values of an array so far; null where it is not recorded.
  const std::vector<double>* values(std::string_view key) const;

 private:
  struct Growing {
    TraceArray array;
    std::function<Var(const Network&)> of;
    std::vector<double> real;
    std::vector<std::complex<double>> complex;
    bool is_complex = false, reversed = false;
  };
  std::vector<Growing> growing_;
};

}  // namespace reclab
