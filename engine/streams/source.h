// SPDX-License-Identifier: GPL-3.0-or-later
// Sources of sequences without an end, read step by step in constant memory. Each is a row of a table that the build writes from the files
// of streams/sources/, each of which defines `StreamSourceInfo <id>()`.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parameters/hyper.h"
#include "sequence/sequence.h"
#include "streams/state.h"

namespace reclab {

/// The shape of a stream's steps.
struct StreamForm {
  std::vector<std::string> names;  ///< of the inputs
  TargetKind target_kind = TargetKind::regress;
  std::int64_t target_width = 1;  ///< numbers of a target; 1 for a class
  std::int64_t classes = 0;
  std::vector<std::string> concepts{};  ///< names of the regimes that the source tells; empty: it tells none
  std::int64_t width() const { return std::ssize(names); }
  std::int64_t outputs() const { return target_kind == TargetKind::classify ? classes : target_width; }
};

struct StreamStep {
  std::vector<double> input, target;
  bool counts = true;        ///< whether the target does
  std::int64_t regime = -1;  ///< the regime that the target is of, an index of StreamForm::concepts; -1: none is told
};

class StreamSource {
 public:
  virtual ~StreamSource() = default;
  virtual const StreamForm& form() const = 0;
  enum class Next : std::uint8_t { step, ended, stopped };
  /// The next step. A source that waits for others ends its waiting within 100 ms of a stop. Throws Error for what is no step.
  virtual Next next(StreamStep& step, std::stop_token stop) = 0;
  /// The place where it stands.
  virtual void keep(StreamState& state) = 0;
  /// What of it was lost so far, a sentence; empty where nothing was.
  virtual std::string note() const { return {}; }
};

/// A series, row after row: the target of a row is the row after it.
class SeriesSource : public StreamSource {
 public:
  /// `standardise`: the rows by whose mean and deviation all are standardised; they are read ahead. 0: rows are taken as they are.
  SeriesSource(std::vector<std::string> names, std::int64_t standardise, std::vector<std::string> concepts = {});
  const StreamForm& form() const final { return form_; }
  Next next(StreamStep& step, std::stop_token stop) final;
  void keep(StreamState& state) final;

 protected:
  void set_names(std::vector<std::string> names);
  virtual Next row(std::vector<double>& values, std::int64_t& regime, std::stop_token stop) = 0;
  virtual void keep_place(StreamState& state) = 0;

 private:
  Next standardised_row(std::vector<double>& values, std::int64_t& regime, std::stop_token stop);
  StreamForm form_;
  std::int64_t standardise_, taken_ = 0;
  bool begun_ = false;
  std::vector<double> last_, mean_, deviation_, ahead_;
  std::vector<std::int64_t> ahead_regimes_;
};

/// The request of a source.
struct SourceChoice {
  std::string id = "sine";
  std::string argument{};  ///< the text behind the colon in "file:measured.csv"
  TaskSettings set{};      ///< its parameters that are not the default
  std::uint64_t seed = 1;
  std::int64_t standardise = 0;
  bool operator==(const SourceChoice&) const = default;
};

struct StreamSourceInfo {
  std::string id{};        ///< the name of its file
  std::string argument{};  ///< the thing behind the colon, "FILE"; empty: nothing stands there
  std::string text{};      ///< a sentence
  std::vector<HyperSpec> parameters{};
  bool again = true;                            ///< it can be begun anew, and continued where it stood
  bool alone = false;                           ///< nothing need stand behind the colon
  bool (*once)(const SourceChoice&) = nullptr;  ///< of a choice: it cannot be begun anew, though others can; null: none
  std::unique_ptr<StreamSource> (*make)(const SourceChoice&) = nullptr;
};
const std::vector<StreamSourceInfo>& stream_sources();
/// Throws Error naming those that there are.
const StreamSourceInfo& stream_source(std::string_view id);
/// "NAME" or "NAME:ARGUMENT". Throws Error.
SourceChoice source_choice(std::string_view text);
/// Whether it can be begun anew, and continued where it stood.
bool can_be_read_again(const SourceChoice& choice);
/// Throws Error for a source that cannot be opened.
std::unique_ptr<StreamSource> open_source(const SourceChoice& choice);
/// The parameters of a source with the settings of a request. Throws Error naming those that there are.
Hyper source_parameters(const SourceChoice& choice);

}  // namespace reclab
