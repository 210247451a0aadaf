// SPDX-License-Identifier: GPL-3.0-or-later
// The one door for the window and the command line: preset + sequence + options -> Trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "array/error.h"
#include "learning/losses.h"
#include "models/card.h"
#include "parameters/hyper.h"
#include "sequence/choice.h"
#include "trace/trace.h"

namespace reclab {

class Registry;         // models/registry.h: the architectures of this build
class Backend;          // array/backend.h
class StandingModel;    // experiment/standing.h
struct LearnedWeights;  // experiment/training/learned.h
struct Architecture;

using HyperValues = std::vector<std::pair<std::string, HyperValue>>;

/// A statement of a preset's idea, as a number of its own run: tests/engine/sweeps/test_cards.cpp measures it.
struct Claim {
  std::string text;     ///< the words of the idea
  std::string measure;  ///< a measure's name and its array: "deviation gate/0/forget"
  double low = 0.0, high = 0.0;
};

/// The preset that another is a variation of, and the change. The id may be of a preset that does not exist.
struct Descent {
  std::string id;
  std::string changed;  ///< one clause: "the output is fed back instead of the state"
};

/// A preset's trained weights: a small file beside it, and the task that they were trained on.
struct TrainedPreset {
  std::filesystem::path weights;  ///< a safetensors file beside the preset, of at most `largest` bytes
  std::string command;            ///< "reclab train ID ...", which made it
  std::string idea;               ///< as Preset::idea, of the trained model
  std::vector<Claim> claims;      ///< of this idea: tests/engine/sweeps/test_cards.cpp measures them
  HyperValues hyper;              ///< over the preset's own
  std::string task;
  std::int64_t task_length = 0;
  std::uint64_t task_seed = 1;
  TaskSettings task_set;

  static constexpr std::uint64_t largest = 200'000;
};

/// A preset: data that shows an architecture off (schema 1; see presets/ and README).
struct Preset {
  std::string id, architecture, title, family, idea;
  HyperValues hyper;
  /// Architectures one above the other, each with its own hyper-parameters; `architecture` then names them all and `hyper` is empty.
  std::vector<std::pair<std::string, HyperValues>> stack;
  std::string task = "noise";  ///< the sequence it likes to be shown on
  std::int64_t task_length = 200;
  std::uint64_t task_seed = 1;
  TaskSettings task_set;  ///< the task's parameters that differ from their defaults
  TaskOptions task_options() const { return {.length = task_length, .seed = task_seed, .set = task_set}; }
  SequenceChoice own_sequence() const { return {.task = task, .make = task_options()}; }
  /// The places to look at, the most important first: a panel of the window, or "panel:detail". The window knows the panels and their
  /// details. Gates and states are named as on the card, with the number of the layer and a slash in front where it is not the first that
  /// has one of that name.
  std::vector<std::string> look_at;
  std::vector<Claim> claims;
  std::vector<Descent> descends_from;
  std::optional<TrainedPreset> trained;
  bool is_trained = false;  ///< made by as_trained
  Reference source;
  std::filesystem::path file;
};

/// All presets found in the given folders (recursively, *.json) and files. A file with a mistake does not hide the others: its sentence
/// goes to problems.
class PresetLibrary {
 public:
  PresetLibrary(const Registry& registry, const std::vector<std::filesystem::path>& folders);
  const std::vector<Preset>& presets() const { return presets_; }
  const std::vector<std::string>& problems() const { return problems_; }
  /// Throws Error that names the nearest known ids.
  const Preset& find(std::string_view id) const;

 private:
  std::vector<Preset> presets_;
  std::vector<std::string> problems_;
};

/// The preset as it was trained: hyper-parameters, sequence, idea and claims are those of its training. Throws Error where it has no
/// trained weights.
Preset as_trained(const Preset& preset);

/// The folders that presets are looked for in: $RECLAB_PRESETS, the installation's data folder, the build tree's source, the user's own.
std::vector<std::filesystem::path> preset_folders();

/// The arrays that a run records. Some cost time, so the window asks for those of its visible panels.
struct RecordingOptions {
  Kinds kinds = recordable();
  std::vector<std::string> only;  ///< --record: of these kinds the keys, or beginnings of keys, to keep; empty keeps all of them
  std::int64_t dense_rows = 0;    ///< most steps at which arrays of changing block Jacobians are computed; 0: every recorded row
  int singular_values = 4;        ///< k
  /// A step whose eigenvalues come with the first stage, before those of all other steps and also where spectra are not wanted, which is
  /// how a window follows a hand: one decomposition a layer. -1: none.
  std::int64_t focus = -1;
};

/// The settings of a run that are independent of model and sequence.
struct RunSettings {
  std::uint64_t seed = 1;           ///< of drawn weights
  std::string form = "sequential";  ///< or an exact form of the model, or auto, which is sequential
  std::string device = "cpu";       ///< cpu, cuda, or auto: cuda for float32 that is large enough, where there is a device (device.h)
  std::string dtype = "f64";        ///< f64 or f32
  LossKind loss = LossKind::automatic;
  bool operator==(const RunSettings&) const = default;
};

struct RunRequest : RunSettings {
  Preset preset;
  std::vector<std::pair<std::string, std::string>> set;  ///< --set key=value over the preset's own, in order
  SharedSequence sequence;
  Backend* cuda = nullptr;               ///< the backend for the device cuda; null: cuda_backend()
  std::int64_t every = 0;                ///< 0: chosen so that the record stays under record_limit
  std::filesystem::path weights, state;  ///< NPZ or safetensors files; empty: none. "FILE:PART": the entries of a file that begin with PART
  bool new_head = false;                 ///< the head is drawn, and not that of `weights`, which may be of another width, or absent
  std::shared_ptr<const LearnedWeights> learned;        ///< weights of a training, in place of drawn or read ones; null: none
  std::int64_t record_limit = std::int64_t{512} << 20;  ///< bytes
  RecordingOptions recording;
};

/// The request with its preset as it was trained, and with the trained weights. The sequence stays as it is: a caller that has none of its
/// own takes the new preset's. Throws Error where the preset has no trained weights.
void use_trained(RunRequest& request);

/// fraction in [0, 1] of the whole run, stage: the present work, in words. Called from the run's thread, often: be quick.
using Progress = std::function<void(double fraction, std::string_view stage)>;
using TracePtr = std::shared_ptr<const Trace>;
/// Called with each completed stage, each a superset of the last: states, gates and gradients with the eigenvalues of
/// RecordingOptions::focus (where they take long, those come second), then all spectra, then Jacobian products.
using Publish = std::function<void(TracePtr)>;

/// The final state of a run, the entries of state.npz: "state/<layer>/<name>" -> array (no time axis).
using FinalState = std::map<std::string, TraceArray>;

struct RunResult {
  TracePtr trace;
  FinalState state;
};

/// Runs. Throws Error for a request that cannot run. A cancelled or diverged run returns normally with that outcome in trace->info and the
/// rows recorded so far. A device that fails is left: the run is done on the CPU from its beginning, with the bits of a run on the CPU, and
/// a note says why. `standing`: the model kept from the run before for the next; it saves time and changes no result. One run at a time.
RunResult run(const Registry& registry, const RunRequest& request, const Progress& progress, std::stop_token stop,
              const Publish& publish = {}, StandingModel* standing = nullptr);

/// Reads the request's weights and state, and throws the Error that run() would: whether they fit, without a run.
void check_files(const Registry& registry, const RunRequest& request);

/// Weights that are not those of the request's model.
class MisfitError : public Error {
 public:
  MisfitError(const std::string& sentence, ErrorPlace where, std::vector<std::pair<std::string, std::string>> cure,
              std::vector<std::string> fitting)
      : Error(sentence, std::move(where)), settings(std::move(cure)), parts(std::move(fitting)) {}
  std::vector<std::pair<std::string, std::string>> settings;  ///< after the request's own they make the file fit; empty: none do
  std::vector<std::string> parts;  ///< of a file that holds more than this model: those that are one, "FILE:PART"
};
/// The hyper-parameters that a file of weights tells by its names and shapes, as settings to put after the request's own; the others stay
/// unchanged. Empty where the file fits as it is. Throws Error where no settings make it fit. Settings of the request stay where they can.
struct SizesInFile {
  std::vector<std::pair<std::string, std::string>> settings;
  std::string others;  ///< other settings that the same shapes fit, in words; empty: the shapes leave no choice
};
SizesInFile sizes_in_file(const Registry& registry, const RunRequest& request, const std::filesystem::path& file);
std::vector<std::pair<std::string, std::string>> settings_that_fit(const Registry& registry, const RunRequest& request,
                                                                   const std::filesystem::path& file);
/// The settings without effect on a run whose weights come from a file: the hyper-parameters that matter for drawing weights alone, and
/// "seed", unless a new head is drawn from it. None where the request's weights are drawn.
std::vector<std::string> settings_without_effect(const Registry& registry, const RunRequest& request);

/// The kind of a file, by its content: weights have names with "param/", states with "state/", and a sequence the names of its format (NPZ:
/// "input" or the only array); a file without arrays is a sequence too. Throws Error for a file of arrays that cannot be read.
enum class FileKind { sequence, weights, state };
FileKind kind_of_file(const std::filesystem::path& file);

/// The card of a preset, for its own hyper-parameters and an input of the given width.
Card card(const Registry& registry, const Preset& preset, std::int64_t input_width = 1);
/// The architecture of a preset: one of the registry, which must outlive it, or a stack of several.
std::shared_ptr<const Architecture> architecture_of(const Registry& registry, const Preset& preset);
/// The complete hyper-parameters of a request: defaults, then the preset's, then the request's.
Hyper hyper_of(const Registry& registry, const Preset& preset, const std::vector<std::pair<std::string, std::string>>& set = {});

struct FormReport {
  std::string form;
  std::string device{};         ///< "cpu" or "cuda", where it really ran
  double output_error = 0.0;    ///< largest |difference| over largest |value| of the sequential form
  double gradient_error = 0.0;  ///< relative as well, the largest over the input and all parameters; NaN when one is not finite, which the
                                ///< note names
  double seconds = 0.0;         ///< forward and backward, wall
  double flops = 0.0, bytes = 0.0;  ///< by formula, forward
  int iterations = -1;              ///< of a Newton form, the most of all layers; -1 in every other form
  bool converged = true;            ///< false: a Newton form did not, and the sequential form was run instead
  std::string note{};               ///< a Newton form's own words, and the first gradient that is not finite
};
using FormReports = std::vector<FormReport>;
/// Each exact form against the sequential one, on the preset's task at the given length.
FormReports compare_forms(const Registry& registry, const RunRequest& request, std::stop_token stop);

/// Writes manifest.json, trace.npz, state.npz and, if asked, a CSV per array into the folder, made if needed, all at once (AtomicFolder);
/// the manifest names size and SHA-256 of the others. On failure the folder is as it was and an Error names the file and the cure.
void export_run(const RunResult& result, const std::filesystem::path& folder, bool csv);
/// One NPZ file of a run's weights or final state, with the keys that RunRequest::weights and ::state read.
void save_weights(const Trace& trace, const std::filesystem::path& file);
void save_state(const FinalState& state, const std::filesystem::path& file);

}  // namespace reclab
