// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <type_traits>

#include "array/error.h"
#include "experiment/command/command.h"
#include "experiment/command/run_fields.h"
#include "parameters/typed.h"
#include "streams/stream.h"

namespace reclab {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();
constexpr std::int64_t longest = std::int64_t{1} << 50, most = std::int64_t{1} << 20;
constexpr double most_in_form = 2e9, longest_ring_in_form = 1e5, most_pace = 1e9;

using StreamField = PlanField<StreamRequest>;

template <class Of>
StreamField count(std::string argument, const std::string& key, std::int64_t low, std::int64_t high, std::string text, Of of) {
  return count_field<StreamRequest>(flag_of(key), std::move(argument), key, low, high, std::move(text), of);
}
template <class Of>
StreamField real(const std::string& key, double high, std::string text, Of of) {
  return plan_field<StreamRequest, double>(flag_of(key), "X", hyper_real(key, {}, 0.0, 0.0, high, std::move(text)), of);
}
StreamField usually(std::string usual, StreamField made) {
  made.usual = std::move(usual);
  return made;
}

StreamField shown(FormRow form, StreamField made) {
  made.form = std::move(form);
  return made;
}

std::string source_text() {
  std::string text = "Where the steps come from: ";
  for (const StreamSourceInfo& source : stream_sources())
    text += (text.ends_with(": ") ? "" : ", ") + source.id + (source.argument.empty() ? "" : ":" + source.argument);
  return text;
}

std::string wanted_source(std::string_view text) {
  try {
    source_choice(text);
    return {};
  } catch (const Error& error) {
    return "one of " + error.where().range + ", those of files with their name behind a colon";
  }
}

template <class T>
std::vector<T> numbers_of(const StreamField& field, const std::vector<std::string>& texts) {
  std::vector<T> numbers;
  Field one = field;
  one.says = Field::Says::one;
  for (const std::string& text : texts) numbers.push_back(std::get<T>(typed_value(one, text)));
  return numbers;
}

/// A list of numbers, each checked against the row.
template <class T>
StreamField numbers(HyperSpec row, std::vector<T> StreamRequest::* of) {
  StreamField made;
  made.row = hyper_choice(row.key, {}, {}, row.text);
  made.flag = flag_of(row.key);
  made.argument = "A,B";
  made.says = Field::Says::list;
  StreamField checked;
  checked.row = std::move(row);
  checked.flag = made.flag;
  made.get = [of](const StreamRequest& request) {
    std::vector<std::string> names;
    for (const T& number : request.*of) names.push_back(as_text(HyperValue(number)));
    return HyperValue(list_of_names(names));
  };
  made.set = [of, checked](StreamRequest& request, const HyperValue& value) {
    request.*of = numbers_of<T>(checked, names_of_list(std::get<std::string>(value)));
  };
  made.wanted = [checked](std::string_view text) -> std::string {
    try {
      if (!text.empty()) {
        numbers_of<T>(checked, {std::string(text)});
        return {};
      }
    } catch (const Error&) {  // the same for all that are refused
    }
    if constexpr (std::is_integral_v<T>)
      return "an integer from " + std::to_string(static_cast<std::int64_t>(checked.row.low)) + " to " +
             std::to_string(static_cast<std::int64_t>(checked.row.high));
    return "a number from 0 on";
  };
  made.row.standard = made.get(StreamRequest());
  return made;
}

std::vector<StreamField> made() {
  std::vector<StreamField> all;
  StreamField source = text_field<StreamRequest>(
      flag_of("source"), "NAME", "source", source_text(),
      [](const StreamRequest& request) {
        return request.source.id + (request.source.argument.empty() ? "" : ":" + request.source.argument);
      },
      [](StreamRequest& request, const std::string& text) {
        SourceChoice choice = source_choice(text);
        request.source.id = choice.id;
        request.source.argument = choice.argument;
      });
  source.wanted = wanted_source;
  all.push_back(std::move(source));
  StreamField set = list_field<StreamRequest>(
      flag_of("source_set"), "source_set", Field::Says::texts, "A parameter of the source, as listed below",
      [](const StreamRequest& request) { return names_of_pairs(request.source.set); },
      [](StreamRequest& request, const std::vector<std::string>& texts) {
        request.source.set.clear();
        for (const std::string& text : texts) request.source.set.push_back(pair_of(text));
      });
  set.wanted = wanted_pair("period=100");
  all.push_back(std::move(set));
  all.push_back(shown(
      {"standardise by", "The first rows by whose mean and deviation all are standardised; 0: they are taken as they are", 0, most, {}},
      usually("0: as they are",
              count("N", "standardise_by", 0, most, "Standardise by mean and deviation of the first N rows, which are read ahead",
                    [](auto& request) -> auto& { return request.source.standardise; }))));
  all.push_back(shown({"steps", "How many it goes over; 0: until the source ends, or for ever", 0, most_in_form, {}},
                      count("N", "steps", 0, longest, "Steps to go over; 0: until the source ends",
                            [](auto& request) -> auto& { return request.length; })));

  static const std::set<std::string_view> shared{"rate",       "rule",      "optimiser",   "clip",      "truncate",       "advance",
                                                 "snap_order", "rbp_terms", "rbp_damping", "lipschitz", "lipschitz_bound"};
  for (const TrainingField& field : training_fields()) {
    const bool of_optimiser = std::ranges::any_of(optimiser_fields(), [&](const Field& one) { return one.row.key == field.row.key; });
    if (!of_optimiser && !shared.contains(field.row.key)) continue;
    StreamField own = of_derived<StreamRequest>(field);
    if (field.row.key == "truncate") own.usual = "20";
    if (field.row.key == "advance") own.applies = {};  // a stream is truncated always
    all.push_back(std::move(own));
  }
  all.push_back(
      shown({"several rates", "Several rates side by side on the one stream, a learner each: 0.01, 0.001; empty: the one above", 0, 0, {}},
            numbers<double>(hyper_real("rates", {}, 0.0, 0.0, unbounded, "Several rates side by side on the one stream"),
                            &StreamRequest::rates)));
  all.push_back(shown(
      {"several truncations", "Several truncations side by side, a learner each with each rate: 5, 20; empty: the one above", 0, 0, {}},
      numbers<std::int64_t>(hyper_integer("truncations", {}, 1, 1, most, "Several truncations side by side, with each rate"),
                            &StreamRequest::truncations)));
  all.push_back(shown({"several changes",
                       "Several numbers of steps between two changes of the weights side by side, a learner each with each of those: 1, 5",
                       0,
                       0,
                       {}},
                      numbers<std::int64_t>(hyper_integer("advances", {}, 1, 1, most,
                                                          "Several numbers of steps between two changes side by side, with each of those"),
                                            &StreamRequest::advances)));
  all.push_back(shown(
      {"from rest", "Every window of backpropagation begins at rest, and not with the state that the one before came to", 0, 1, {}},
      plan_field<StreamRequest, bool>(flag_of("reset"), "", hyper_flag("reset", false, "Every window of backpropagation begins at rest"),
                                      [](auto& request) -> auto& { return request.reset; })));
  all.push_back(shown({"burn-in", "The first steps, whose errors are not in the mean", 0, most_in_form, {}},
                      count("N", "burn_in", 0, longest, "First steps whose errors are not in the mean",
                            [](auto& request) -> auto& { return request.errors.burn_in; })));
  all.push_back(shown({"window of errors", "The last steps that the windowed error is the mean of", 1, most, {}},
                      count("N", "window", 1, most, "Last steps that the windowed error is the mean of",
                            [](auto& request) -> auto& { return request.errors.window; })));
  all.push_back(real("fading", 1.0, "Factor by which the weight of a past error falls at each step",
                     [](auto& request) -> auto& { return request.errors.fading; }));
  all.push_back(shown(
      {"past of ridge", "The last steps that the least squares beside the model read", 1, 256, {}},
      count("K", "past", 1, 256, "Last steps that the least squares beside it read", [](auto& request) -> auto& { return request.past; })));
  all.push_back(real("forget", 1.0, "Factor by which the second of them forgets at each step",
                     [](auto& request) -> auto& { return request.forget; }));
  all.back().row.low = 0.5;
  all.back().form = {"ridge forgets by", "The factor by which the second of the least squares forgets at each step", 0.5, 1, {}};
  all.push_back(
      shown({"trained beforehand", "Beside it the same model, trained on so many first steps and then left as it is; 0: none", 0, most, {}},
            usually("none", count("N", "offline", 0, most, "Train the same model beforehand on the first N steps, and leave it as it is",
                                  [](auto& request) -> auto& { return request.offline; }))));
  all.push_back(count("N", "offline_batches", 1, most, "Batches of 32 windows that it is trained on",
                      [](auto& request) -> auto& { return request.offline_batches; }));
  all.push_back(
      shown({"last steps", "So many of the last steps are the sequence that all panels show", 2, longest_ring_in_form, {}},
            usually("none", count("N", "ring", 0, most,
                                  "Keep the last N steps with the predictions made of them, and export them as ring.npz, a sequence",
                                  [](auto& request) -> auto& { return request.ring; }))));
  all.push_back(
      shown({"steps a second",
             "No faster than that; 0: as fast as it can. Steps come in blocks, as many as a change of the weights takes",
             0,
             most_pace,
             {}},
            usually("as fast as it can", count("N", "pace", 0, static_cast<std::int64_t>(most_pace), "Go over at most N steps a second",
                                               [](auto& request) -> auto& { return request.pace; }))));
  return all;
}

const std::set<std::string_view> not_of_streams{"state", "loss", "every", "record", "form"};

CommandLine line_of(const StreamRequest& request) {
  CommandLine line;
  line.word(request.run.preset.id);
  line.fields(run_fields(), request.run, not_of_streams);
  line.fields(stream_fields(), request);
  return line;
}

}  // namespace

const std::vector<StreamField>& stream_fields() {
  static const std::vector<StreamField> all = made();
  return all;
}

std::vector<std::string> arguments_of(const StreamRequest& request) { return line_of(request).words(); }
std::string command_of(const StreamRequest& request) { return line_of(request).text("reclab stream"); }

}  // namespace reclab
