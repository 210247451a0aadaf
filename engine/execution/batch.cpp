// SPDX-License-Identifier: GPL-3.0-or-later
#include "execution/batch.h"

#include <algorithm>
#include <string>

#include "array/demand.h"
#include "array/error.h"

namespace reclab {

Batch::Batch(const Sequence& sequence, const Loss& loss, std::int64_t copies)
    : Batch(std::vector<Example>(static_cast<std::size_t>(copies), Example{&sequence, &loss})) {}

Batch::Batch(std::vector<Example> examples) : examples_(std::move(examples)) {
  RECLAB_DEMAND(!examples_.empty());
  length_ = shortest_ = examples_[0].sequence->length;
  width_ = examples_[0].sequence->width;
  outputs_ = examples_[0].loss->outputs();
  loss_form_ = examples_[0].loss->form();
  for (const Example& example : examples_) {
    const Sequence& sequence = *example.sequence;
    length_ = std::max(length_, sequence.length);
    shortest_ = std::min(shortest_, sequence.length);
    if (sequence.width != width_)
      throw Error(sequence.name + " has " + std::to_string(sequence.width) + " columns and " + examples_[0].sequence->name + " has " +
                      std::to_string(width_) + ": sequences of one batch have the same columns.",
                  {.place = sequence.name, .value = std::to_string(sequence.width), .range = std::to_string(width_)});
    if (example.loss->outputs() != outputs_)
      throw Error("The loss of " + sequence.name + " asks for " + std::to_string(example.loss->outputs()) + " outputs and that of " +
                      examples_[0].sequence->name + " for " + std::to_string(outputs_) +
                      ": sequences of one batch have targets of the same width, and as many classes.",
                  {.place = sequence.name, .value = std::to_string(example.loss->outputs()), .range = std::to_string(outputs_)});
    const LossForm form = example.loss->form();
    if (form.term != loss_form_.term || form.gates != loss_form_.gates)
      throw Error("The loss of " + sequence.name + " is of another kind than that of " + examples_[0].sequence->name +
                      ": sequences of one batch have targets of the same kind.",
                  {.place = sequence.name});
    loss_form_.has_target |= form.has_target;
  }
}

}  // namespace reclab
