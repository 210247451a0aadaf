// SPDX-License-Identifier: GPL-3.0-or-later
// Architecture: the definition of a model in a file under models/<family>/, once for every form, device, precision and use: the function
// `layer` written with array operations and one or more of the primitives of recurrence/. Building it lists parameters, states and gates;
// running it computes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autodiff/ops.h"
#include "models/card.h"
#include "parameters/hyper.h"
#include "parameters/init.h"
#include "recurrence/layer.h"

namespace reclab {

/// The name that a reference implementation has for a parameter: of the same shape and order of rows, or transposed, or in entries of its
/// own.
struct ReferenceName {
  /// "theta_{i}": row i of ours, counted from 0, in an entry of its own. "weight_ih_l{n}{_reverse}": {n} is the layer's number from 0,
  /// {n+1} from 1, counted in its direction ({_n}: none for 0, else "_1" and so on); {path}: the layer's name where the layers have no
  /// common numbers (LayerGraph::layer); {_reverse} is "_reverse" for a layer that runs backward beside one that runs forward, else
  /// nothing; * stands for the same in both names. A prefix ("model.rnn.") is found.
  std::string theirs;
  std::string ours;  ///< "weight_ih"; of the final layer "final/norm.weight", of the head "head/weight"; empty: entries whose names end
                     ///< with .theirs are of no use here
  bool transposed = false;  ///< theirs is [columns, rows]
};

/// A read-out inside a layer, whose outputs are fed back: the head behind it is then the identity.
struct FedBackReadout {
  std::int64_t outputs = 0;
  std::string weight{}, bias{};  ///< "0/Wout" [outputs, features], "0/Wout_bias" [outputs]
};

/// A fitted read-out, in place of a drawn one: ridge regression of the run's own target on the outputs of the layers.
struct ReadoutFit {
  double ridge = 0.0;        ///< the penalty λ
  std::int64_t washout = 0;  ///< steps at the start that do not count
  std::int64_t steps = 0;    ///< only those before this one count; 0: all
  /// The result goes to that in place of the head. For the fit the layers are built with Layer::teacher_forcing_input() and return the
  /// regressors.
  std::optional<FedBackReadout> fed_back{};
};

/// A parameter of a layer by which its input enters: the whole matrix, or the part that the input is multiplied with.
struct InputWeight {
  /// The part that is multiplied with the input: as many columns or rows as it has features, where others are multiplied with something
  /// else.
  enum class Part : std::uint8_t { all, first_columns, last_columns, first_rows, last_rows };
  std::string name;  ///< "weight_ih"; settings may leave it out
  Part part = Part::all;
  std::string unless{};  ///< not where the layer has this parameter, which then stands between the input and the one that is named
};

struct Architecture;

/// The architecture and the values of one layer, in a stack of unlike layers.
struct LayerKind {
  const Architecture* architecture;  ///< must outlive the network; its own `final_layer` and `input_width` do not count
  Hyper hyper;                       ///< that it is built with
};

/// The layers of an architecture that do not stand one above the other, or run at several rates.
class LayerGraph {
 public:
  explicit LayerGraph(const Hyper& values) : hyper(values) {}
  LayerGraph(const LayerGraph&) = delete;
  LayerGraph& operator=(const LayerGraph&) = delete;
  virtual ~LayerGraph() = default;

  const Hyper& hyper;
  /// Adds a layer, in both directions where its architecture shares them, and returns its output for x [rows, batch, features]. A step of
  /// it is `stride` steps of the sequence, a divisor of Architecture::period. `path`: its name in the reference implementation, {path} in
  /// its architecture's reference names.
  virtual Var layer(const LayerKind& kind, std::int64_t stride, const std::string& path, Var x) = 0;
};

struct Architecture {
  std::string id, family;  ///< set by the registry from the file's name and folder
  std::string title;
  std::vector<std::string> equations;  ///< plain Unicode, one line each
  std::vector<std::string> notes;      ///< conventions, one sentence each
  std::vector<HyperSpec> hyper;
  std::string spectrum;  ///< the eigenvalues in spectrum/<layer>, in words
  Reference source;
  std::vector<ReferenceName> reference;  ///< weights files are read with these names too

  /// The width that the first layer needs its input to have; 0: any. A linear encoder is put in front where they differ.
  std::function<std::int64_t(const Hyper&)> input_width;
  /// The parameters by which the input enters the first layer where no encoder stands in front. They, or the encoder's matrix, are drawn
  /// times input_gain, which the registry adds where either is there.
  std::vector<InputWeight> input_weights;
  /// The integer hyper-parameter, where not empty, that names an input column, the first being 1, which only marks where documents begin.
  /// The network takes that column out before the first layer. 0: none.
  std::string document_column;
  /// Whether its layers read Layer::elapsed(). The registry gives it the hyper-parameter time_unit and a note about the times.
  bool knows_time = false;
  /// Throws Error for values that do not go together.
  std::function<void(const Hyper&)> check;
  /// The fit of the head, where it is not empty and has a result, before a run that has a target and draws its weights
  /// (experiment/readout.h).
  std::function<std::optional<ReadoutFit>(const Hyper&)> fit;
  /// The read-out inside its layer, where it is not empty and outputs are fed back.
  std::function<std::optional<FedBackReadout>(const Hyper&)> fed_back;
  /// One layer: [steps, batch, in] -> [steps, batch, out].
  std::function<Var(Layer&, Var)> layer;
  /// The kind of layer `number` (from 0), in place of `layer` where the layers of one model are not alike.
  std::function<LayerKind(const Hyper&, std::int64_t number)> kind;
  /// The graph of its layers, in place of `layer` and `kind`, from the input to the input of `final_layer`.
  std::function<Var(LayerGraph&, Var)> body;
  /// For `body`: the steps of the sequence after which all its rates begin together.
  std::function<std::int64_t(const Hyper&)> period;
  /// Whether each layer runs in both directions, for any `direction`, as two layers that share their parameters: those that either declares
  /// stand under the one that runs forward. Empty: no.
  std::function<bool(const Hyper&)> shares_directions;
  /// For `shares_directions`: the layer's output from its input and the outputs of the two directions; empty: both side by side.
  std::function<Var(Layer&, Var below, Var forward, Var backward)> combine_directions;
  /// A map after the last layer (a final norm); may be empty.
  std::function<Var(Layer&, Var)> final_layer;

  /// The architectures whose stacks it has one above the other, in place of layers of its own (models/stack.h).
  std::vector<const Architecture*> stack;
};

}  // namespace reclab
