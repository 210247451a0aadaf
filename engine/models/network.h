// SPDX-License-Identifier: GPL-3.0-or-later
// Network: an architecture with its hyper-parameters, built as a graph over a segment of a sequence: encoder, layers, head.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/architecture.h"
#include "recurrence/flow.h"
#include "recurrence/mixing/mixing.h"
#include "recurrence/ode/ode.h"

namespace reclab {

/// The weights: by key ("0/weight_ih", "encoder/weight"), float64, in the order of declaration.
class Parameters {
 public:
  struct Entry {
    std::string name, text;
    Shape shape;
    std::vector<double> values;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  std::vector<Entry>& entries() { return entries_; }
  Entry* find(std::string_view name);
  std::int64_t count() const;

 private:
  std::vector<Entry> entries_;
};

struct NetworkOptions {
  std::int64_t steps = 1, batch = 1;
  std::int64_t input = 1;  ///< d_in
  std::int64_t head = 0;   ///< outputs of a linear head; 0: none
  Form form = Form::sequential;
  DType real = DType::f64;
  bool record = true;             ///< memories keep every state, also those they could do without
  std::int64_t cached_steps = 0;  ///< steps that came before, where growing states hold them
  std::int64_t teacher =
      0;  ///< outputs whose targets layers read in place of their own feedback (Layer::teacher_forcing_input); 0: they run by themselves
  bool input_gradient = true;
  bool timed = false;                    ///< the steps of the sequence are unequal: layers that know time are given elapsed times
  OdeGradient ode = OdeGradient::steps;  ///< of layers whose step solves a differential equation
  bool operator==(const NetworkOptions&) const = default;
};

class Network {
 public:
  Network(const Architecture& architecture, const Hyper& hyper, const NetworkOptions& options);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  struct ParameterVar {
    std::string name, text;
    Var var;
    Init init;
  };
  /// One array of a layer's memory.
  struct StateVar {
    int layer;
    std::string name, text;
    Shape shape;               ///< without time and batch
    Memory* memory = nullptr;  ///< null for a buffer, which is carried over, and recorded only where it has a trajectory
    int slot = 0;              ///< its place among the memory's states
    Var initial, trajectory, final_state;
    bool growing = false;       ///< the first axis is as long as the steps that have passed
    bool auxiliary = false;     ///< no part of the layer's transition: a stabiliser
    double start = 0.0;         ///< the value of all its entries before the first step
    Shape recorded_shape = {};  ///< of a trajectory's row where it is not that of the state (a buffer of several steps)
    Var unscaled_initial =
        {};  ///< the initial state again, a leaf of its own for its other readers, with a gradient in plain units (Layer::previous_state)
    bool reversed = false;    ///< of a layer that runs from the end of the sequence to its start: row 0 is the last step
    std::int64_t period = 0;  ///< growing: it holds the steps since the last multiple of so many; 0: all steps
    bool position = false;    ///< the number of steps that have passed
    bool clock = false;  ///< the time of the last step and the typical step (TimeMark), [2], float64 for every precision of the network; a
                         ///< file may lack it
    bool pairs = false;  ///< complex numbers as real ones, StateSpec::pairs
    const Shape& row_shape() const { return recorded_shape.empty() ? shape : recorded_shape; }
  };
  /// Elapsed times that layers read; bound by the caller of the network, else 1 at all steps.
  struct ElapsedVar {
    Var var;            ///< [steps, batch, 1]
    double unit = 0.0;  ///< in the unit of the time column; 0: the sequence's typical step
    bool reversed = false;
    double first = 1.0;  ///< of the first step, in units
  };
  struct GateVar {
    int layer;
    std::string name, text;
    double low, high;
    Var var;
  };

  /// A layer whose step solves a differential equation (declare_ode).
  struct OdeLayer {
    int layer;
    Sentence why_no_adjoint;  ///< empty: by steps that the adjoint method takes
  };

  /// One of the layers; the keys of its arrays begin with its number.
  struct LayerInfo {
    const Architecture* architecture;
    std::string name;         ///< distinguishes it from others: "", "backward", "mamba"
    bool reversed = false;    ///< it runs from the end of the sequence to its start
    bool first = true;        ///< the lowest of its kind and direction
    std::int64_t stride = 1;  ///< steps of the sequence that a step of it is
    std::string path{};       ///< its name in the reference implementation, where layers are not numbered alike (LayerGraph::layer)
  };

  /// A state that holds its signal's past (Layer::reconstruction).
  struct HistoryVar {
    int layer;
    std::string state;
    Var signal;  ///< [steps, batch, copies]
    PastBasis basis;
  };

  /// A layer's memory as weights of the steps (recurrence/mixing/mixing.h); names differ within a layer.
  struct MixingVar {
    int layer;
    bool reversed = false;  ///< row 0 is the last step
    Mixing mixing;
  };

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  const NetworkOptions& options() const { return options_; }
  Var input() const { return input_; }                    ///< [steps, batch, d_in]
  Var teacher_forcing_input() const { return teacher_; }  ///< [steps, batch, teacher]; none where that is 0
  Var output() const { return output_; }                  ///< [steps, batch, d_out]
  const std::vector<ParameterVar>& parameters() const { return parameters_; }
  const std::vector<StateVar>& states() const { return states_; }
  const std::vector<GateVar>& gates() const { return gates_; }
  const std::vector<HistoryVar>& histories() const { return histories_; }
  const std::vector<MixingVar>& mixings() const { return mixings_; }
  const std::vector<OdeLayer>& ode_layers() const { return ode_layers_; }
  /// The matrix that a layer's state is multiplied with; null where the layer declares none.
  const RecurrentMatrix* recurrent_matrix(int layer) const;
  const std::vector<ElapsedVar>& elapsed() const { return elapsed_; }
  /// Whether a layer of it is given elapsed times where steps are unequal.
  bool knows_time() const;
  /// The memories of a layer, in the order of declaration: those whose transitions make up the layer's. None for a layer with a cache.
  std::vector<Memory*> memories(int layer) const;
  const std::vector<LayerInfo>& layers() const { return layers_; }
  /// The matrix whose eigenvalues spectrum/<layer> has, in words, or why there are none: "none: ...".
  std::string spectrum(int layer) const;
  /// The layer's transition in continuous time; null where the layer declares none, or has no transition.
  const Flow* flow(int layer) const;
  /// Whether the sequence must be run as one segment.
  bool needs_one_segment() const { return needs_one_segment_; }

  /// The names and shapes of all parameters, without values.
  Parameters undrawn() const;
  /// Draws all parameters; a parameter's values depend on the seed, its name and the hyper-parameters only.
  Parameters initialise(std::uint64_t seed) const;
  /// The exact forms of this network, sequential first.
  std::vector<Form> forms() const;

 private:
  class LayerOf;       // the Layer of this network
  class LayerGraphOf;  // the LayerGraph of this network
  /// The input without the columns that mark where documents begin (Architecture::document_column).
  Var without_markers(const std::set<std::int64_t>& markers) const;
  Var add_dense(const Hyper& hyper, const std::string& prefix, Var x, std::int64_t out, const std::string& role, bool with_bias = true);
  /// Has a parameter, or the part of it that is multiplied with an input of so many features, drawn times `gain`.
  void draw_times(double gain, ParameterVar& parameter, InputWeight::Part part, std::int64_t features);
  /// Has all parameters by which the input enters drawn times `gain`, of the layer whose parameters begin with `prefix`.
  void draw_times(double gain, const Architecture& architecture, const std::string& prefix, std::int64_t features);
  /// One architecture's layers in the direction or directions that its hyper-parameters name; `part`: "", or its number in a stack.
  Var add_stack(const Architecture& architecture, const Hyper& hyper, const std::string& part, Var x);
  /// The layers from .. to - 1 of it in one direction, whose lowest one is the network's layer `first`; its `final_layer` too, where the
  /// last one is among them and the directions are not joint.
  Var add_direction(const Architecture& architecture, const Hyper& hyper, const std::string& suffix, bool backward, std::int64_t from,
                    std::int64_t to, int first, Var x, bool joint);
  /// Marks the states and gates that were added after so many as running from the end of the sequence to its start.
  void turn(std::size_t states, std::size_t gates);
  NetworkOptions options_;
  Graph graph_;
  Var input_, teacher_, output_;
  std::vector<LayerInfo> layers_;
  bool in_stack_ = false;
  std::vector<ParameterVar> parameters_;
  std::vector<StateVar> states_;
  std::vector<GateVar> gates_;
  std::vector<HistoryVar> histories_;
  std::map<int, Flow> flows_;  // by layer
  std::vector<MixingVar> mixings_;
  std::vector<OdeLayer> ode_layers_;
  std::map<int, RecurrentMatrix> matrices_;  // by layer
  std::vector<ElapsedVar> elapsed_;
  Var position_;
  bool needs_one_segment_ = false;
  std::uint32_t offered_ = 1;  // a bit a form
};

}  // namespace reclab
