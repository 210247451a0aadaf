// SPDX-License-Identifier: GPL-3.0-or-later
// The entry of a primitive, from the primitive.cpp of its folder: how it is timed and checked by itself, and the extremes that it must
// bear. The build finds the folders; `reclab bench`, check-device and the tests read the table.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "array/rng.h"
#include "recurrence/layer.h"

namespace reclab {

/// Leaves of a graph with random values, the same for the same seed.
class RandomLeaves {
 public:
  RandomLeaves(Graph& graph, std::uint64_t seed) : graph_(graph), rng_(seed) {}
  Var real(Shape shape, double low = -1.0, double high = 1.0);
  /// Complex numbers of a modulus from low to high.
  Var complex(Shape shape, double low = 0.0, double high = 1.0);
  /// Gives values to the initial states that a memory has made, and keeps the memory for the unit of their gradients.
  void initial(const MemoryVars& vars);

  struct Leaf {
    Var var;
    std::vector<double> parts;  ///< of complex entries both
    const Memory* memory = nullptr;
  };
  const std::vector<Leaf>& all() const { return all_; }

 private:
  Graph& graph_;
  Rng rng_;
  std::vector<Leaf> all_;
};

/// A layer that is nothing but the primitive, to be timed. Its operands come in as its input, whose channels are cut into arguments;
/// time-invariant arrays are parameters.
struct TimedPrimitive {
  /// Channels of the input that are one argument: normal, or uniform in a range.
  struct Argument {
    std::int64_t width;
    double deviation = 1.0, low = 0.0, high = 0.0;
  };
  std::string title;
  std::vector<std::string> equations{};
  std::vector<HyperSpec> hyper{};
  std::string spectrum{};  ///< its eigenvalues, in words
  std::function<std::vector<Argument>(const Hyper&)> arguments{};
  std::function<Var(Layer&, Var)> layer{};
};

/// A primitive by itself on random inputs, for comparing a device with the CPU.
struct CheckedPrimitive {
  std::string name;
  std::vector<Form> forms;
  /// Builds the primitive over so many steps, a batch of two; returns its outputs.
  std::function<std::vector<Var>(Form form, Graph& graph, RandomLeaves& leaves, std::int64_t steps)> build;
  static constexpr std::int64_t batch = 2;
};

/// A primitive at the edge of the representable range: all of its results are finite, and each form agrees with the sequential one, which
/// comes first.
struct ExtremePrimitive {
  struct Input {
    std::string name;
    Shape shape;
    std::vector<double> values;
  };
  /// A graph with the primitive, in either precision: inputs by name as real leaves, and the memories that it made.
  struct Bench {
    Graph graph;
    std::map<std::string, Var> in;
    std::vector<MemoryVars> memories;
    explicit Bench(DType real) : graph(real) {}
    Var operator[](const std::string& name) const { return in.at(name); }
    /// The complex number of the inputs name_re and name_im.
    Var number(const std::string& name) const { return complex(in.at(name + "_re"), in.at(name + "_im")); }
    template <class Vars>
    Vars keep(Vars vars) {
      memories.push_back(vars);
      return vars;
    }
  };
  std::string name;
  std::vector<Form> forms;
  std::vector<Input> inputs;
  std::function<Var(Bench&, Form)> build;  ///< returns its output
};

struct Primitive {
  TimedPrimitive timed;
  std::vector<CheckedPrimitive> checked;
  std::function<std::vector<ExtremePrimitive>()> extremes;
  std::string id{};  ///< the name of its folder

  void check(std::string name, std::vector<Form> forms, decltype(CheckedPrimitive::build) build) {
    checked.push_back({std::move(name), std::move(forms), std::move(build)});
  }
};
/// The primitives whose folders have a primitive.cpp, by name.
const std::vector<Primitive>& all_primitives();

// ---- For authors of primitives ---------------------------------------------------------------------------------------------------------

namespace primitive {

/// Cuts the input of a timed layer into its arguments, each of the given shape behind steps and batch.
class Arguments {
 public:
  Arguments(const Layer& layer, Var x) : layer_(layer), x_(x) {}
  Var operator()(Shape shape);

 private:
  const Layer& layer_;
  Var x_;
  std::int64_t at_ = 0;
};
HyperSpec width(std::int64_t standard);
/// heads, key and value.
std::vector<HyperSpec> heads();
Shape of_heads(const Layer& layer, const char* size);
StateSpec memory_of_heads(const Layer& layer);
Var flat(const Layer& layer, Var y);

/// The arrays that a check returns: the output where there is one, and the trajectories; initial states get values.
std::vector<Var> made(RandomLeaves& leaves, const MemoryVars& vars, Var output = {});

using Input = ExtremePrimitive::Input;
using Inputs = std::vector<Input>;
using Bench = ExtremePrimitive::Bench;
/// A list that is filled by calling it.
struct Extremes {
  std::vector<ExtremePrimitive> found;
  void operator()(std::string name, std::vector<Form> forms, Inputs inputs, decltype(ExtremePrimitive::build) build) {
    found.push_back({std::move(name), std::move(forms), std::move(inputs), std::move(build)});
  }
};
Input normal(const std::string& name, Shape shape, double size, std::uint64_t seed);
/// An input whose entries are drawn from the choices.
Input chosen(const std::string& name, Shape shape, const std::vector<double>& choices, std::uint64_t seed);
/// Real and imaginary parts of numbers of these moduli and any phase.
void add_numbers(Inputs& inputs, const std::string& name, const Shape& shape, const std::vector<double>& moduli, std::uint64_t seed);
/// A rotation of each pair of coordinates, times a factor: [n, n].
std::vector<double> rotation(std::int64_t n, double factor, double angle);
/// "1e-09".
std::string text(double x);
// Functions, since tests ask for the table while statics are still being made.
std::vector<double> edges();      ///< decays next to 0 and to 1,
std::vector<double> log_edges();  ///< and logarithms of decays
std::vector<Form> scans();        ///< sequential, scan, chunkwise
std::vector<Form> newtons();      ///< sequential and the Newton forms

}  // namespace primitive
}  // namespace reclab
