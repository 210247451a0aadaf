// SPDX-License-Identifier: GPL-3.0-or-later
// The inputs and outputs of a run: input, output, and the target with its mask.
#include <limits>

#include "autodiff/normalised.h"
#include "experiment/record/rows.h"

namespace reclab {
namespace {

class Outside final : public RecordedRows {
 public:
  using RecordedRows::RecordedRows;
  Kinds kinds() const override { return {Kind::input, Kind::output, Kind::target, Kind::mask}; }
  bool needs_outputs() const override { return true; }
  bool needs_states() const override { return false; }
  double bytes_a_row() const override {
    return 8.0 * static_cast<double>(record_.request.sequence->width * 2 + record_.shape_network().output().dim(-1) + 2);
  }

  void begin(const Network& network) override {
    const Sequence& sequence = record_.request.sequence;
    add(timed(key_of(Kind::input), {sequence.width}, {{"channel", "", sequence.names}}, "",
              sequence.standardised ? "The input, standardised: each channel less its mean, divided by its deviation." : "The input."),
        network, [](const Network& n) { return n.input(); });
    // Outputs take the names of their targets.
    const bool asked = record_.prepared.loss.kind() == LossKind::task, classes = asked && sequence.target_kind == TargetKind::classify;
    if (asked && !classes) record_.trace.output_names = sequence.target_names;
    add(timed(key_of(Kind::output), {network.output().dim(-1)}, {{"channel", "", record_.trace.output_names}}, classes ? "logit" : "",
              classes ? "What the network returns: logits of classes, whose softmax is the probability of each."
                      : "What the network returns."),
        network, [](const Network& n) { return n.output(); });
  }

  void went_back(Rollout&) override {
    if (record_.prepared.loss.kind() != LossKind::task) note_constant_norm();
  }

  void finish(std::int64_t rows) override {
    RecordedRows::finish(rows);
    const Sequence& sequence = record_.request.sequence;
    if (!rows || sequence.target_kind == TargetKind::none || record_.prepared.loss.kind() != LossKind::task) return;
    std::vector<double> target, mask;
    for (const auto t : record_.trace.steps) {
      target.insert(target.end(), sequence.target.begin() + t * sequence.target_width,
                    sequence.target.begin() + (t + 1) * sequence.target_width);
      mask.push_back(sequence.mask[static_cast<std::size_t>(t)]);
    }
    TraceArray array =
        timed(key_of(Kind::target), {sequence.target_width}, {{"channel", "", sequence.target_names}}, "",
              sequence.target_kind == TargetKind::classify ? "The number of the class that the output should be where the mask is 1."
                                                           : "What the output should be where the mask is 1.");
    array.shape[0] = rows;
    put_real(record_.trace, std::move(array), std::move(target));
    TraceArray counts = timed(key_of(Kind::mask), {}, {}, "", "1 where the target counts.");
    counts.shape[0] = rows;
    put_real(record_.trace, std::move(counts), std::move(mask));
  }

 private:
  /// A last layer that normalises its output leaves |y|^2, and with it the loss, nearly constant, unless its weights undo that.
  void note_constant_norm() {
    const std::vector<double>* output = values(key_of(Kind::output));
    if (output == nullptr || !is_normalised(record_.shape_network().output())) return;
    const auto width = static_cast<std::size_t>(record_.shape_network().output().dim(-1));
    double low = std::numeric_limits<double>::infinity(), high = 0.0;
    for (std::size_t row = 0; row + width <= output->size(); row += width) {
      double squares = 0.0;
      for (std::size_t j = 0; j < width; ++j) squares += (*output)[row + j] * (*output)[row + j];
      low = std::min(low, squares);
      high = std::max(high, squares);
    }
    if (width > 1 && high > 0.0 && high - low < 1e-2 * high)
      record_.note(
          {Kind::gradient},
          "The last layer normalises its output, so ½|y|² hardly depends on the state and its gradients are close to zero: their course "
          "through time is right, their level says little; a task with a target has a loss that does depend on it.");
  }
};

}  // namespace

namespace analyses {
std::unique_ptr<Analysis> outside(Record& record) { return std::make_unique<Outside>(record); }
}  // namespace analyses
}  // namespace reclab
