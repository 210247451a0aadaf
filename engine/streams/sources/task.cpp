// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "array/error.h"
#include "array/rng.h"
#include "streams/source.h"

namespace reclab::sources_by_name {
namespace {

class DrawnTask final : public StreamSource {
 public:
  explicit DrawnTask(const SourceChoice& choice) : name_(choice.argument), rng_(choice.seed) {
    for (const auto& [key, text] : choice.set) {
      if (key != "length") {
        options_.set.emplace_back(key, text);
        continue;
      }
      Hyper own(stream_source(choice.id).parameters);
      own.set_text(key, text, "the source " + choice.id);
      options_.length = own.integer(key);
    }
    task_parameters(name_, options_.set);  // throws for a name or settings that there are none of
    if (std::ranges::none_of(choice.set, [](const auto& one) { return one.first == "length"; }))
      options_.length = std::ranges::find(tasks(), name_, &TaskInfo::name)->default_length;
    draw();
    if (drawn_.target_kind == TargetKind::none)
      throw Error("the task " + name_ + " has no target, so there is nothing to foretell: choose a task with a target.",
                  {.parameter = "source", .value = name_});
    if (choice.standardise > 0)
      throw Error("the source task has the size that its task has" + Remedy{": ", "leave out ", {"standardise"}} + ".",
                  {.parameter = "standardise"});
    form_ = {.names = drawn_.names, .target_kind = drawn_.target_kind, .target_width = drawn_.target_width, .classes = drawn_.classes};
  }
  const StreamForm& form() const override { return form_; }
  Next next(StreamStep& step, std::stop_token) override {
    if (at_ == drawn_.length) {
      ++number_;
      at_ = 0;
      draw();
    }
    const auto cut = [&](const std::vector<double>& rows, std::int64_t width, std::vector<double>& to) {
      to.assign(rows.begin() + at_ * width, rows.begin() + (at_ + 1) * width);
    };
    cut(drawn_.input, drawn_.width, step.input);
    cut(drawn_.target, drawn_.target_width, step.target);
    step.counts = drawn_.mask[static_cast<std::size_t>(at_)] != 0.0;
    step.regime = -1;
    ++at_;
    return Next::step;
  }
  void keep(StreamState& state) override {
    state.whole("draw", number_);
    state.whole("at", at_, 0, options_.length);
    if (state.reads()) draw();
  }

 private:
  void draw() {
    options_.seed = rng_.split("draw " + std::to_string(number_)).bits() >> 12;
    drawn_ = make_task(name_, options_);
  }
  std::string name_;
  TaskOptions options_;
  Rng rng_;
  StreamForm form_;
  Sequence drawn_;
  std::int64_t number_ = 0, at_ = 0;
};

}  // namespace

StreamSourceInfo task() {
  return {.argument = "NAME",
          .text = "A task drawn again and again, each time with another seed; parameters of the task are set as its own",
          .parameters = {hyper_integer("length", "T", 200, 1, 1'000'000, "Steps of each draw (the task's own)", "steps")},
          .make = [](const SourceChoice& choice) -> std::unique_ptr<StreamSource> { return std::make_unique<DrawnTask>(choice); }};
}

}  // namespace reclab::sources_by_name
