// SPDX-License-Identifier: GPL-3.0-or-later
// The step view of a primitive: the pieces of work that a form of it falls into, and which of them waits for which. Each primitive draws
// its own forms (its drawing.cpp); schedule/ finds the operations to draw and writes their plans down.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "array/demand.h"
#include "recurrence/evaluation_order.h"

namespace reclab {

/// The shape of a kind of node in a drawing: a point at its last step; in a triangle a lane above it, the cell of two steps, a bar over the
/// steps before its row, the end of its row; a box over its steps and rounds.
enum class Place : std::uint8_t { point, lane, cell, bar, end, box };

namespace drawing {
using Complex = std::complex<double>;
constexpr double none = std::numeric_limits<double>::quiet_NaN();
}  // namespace drawing

/// The pieces of work of one form.
class Plan {
 public:
  struct Kind {
    std::string name;
    Place place;
    std::string rule;
  };
  struct Node {
    std::int64_t round, first, last;
    int kind;
    std::int64_t begin, row, work;
    drawing::Complex value, product;
  };
  std::string drawing = "tree", why, unit, entry;
  std::vector<std::vector<double>> errors;

  int kind(std::string name, Place place, std::string rule) {
    kinds_.push_back({std::move(name), place, std::move(rule)});
    return static_cast<int>(std::ssize(kinds_)) - 1;
  }
  /// A node of one round; returns its number.
  int add(int kind, std::int64_t round, std::int64_t first, std::int64_t last, const std::vector<int>& needs = {},
          drawing::Complex value = drawing::none, drawing::Complex product = drawing::none) {
    const int number = static_cast<int>(std::ssize(nodes_));
    for (const int from : needs) {
      RECLAB_DEMAND(nodes_[static_cast<std::size_t>(from)].round < round);
      edges_.push_back({from, number});
    }
    nodes_.push_back({round, first, last, kind, round, last, round > 0 ? 1 : 0, value, product});
    return number;
  }
  Node& operator[](int number) { return nodes_[static_cast<std::size_t>(number)]; }
  const std::vector<Kind>& kinds() const { return kinds_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<std::pair<int, int>>& edges() const { return edges_; }  ///< from, to; in the order of the nodes that they go to

 private:
  std::vector<Kind> kinds_;
  std::vector<Node> nodes_;
  std::vector<std::pair<int, int>> edges_;
};

/// The iterations of a Newton form, as they were watched.
struct Watched {
  std::vector<bool> diagonal;                            // by iteration; the first is the guess
  std::vector<std::vector<std::vector<double>>> states;  // [iteration][state][steps * size]
};

/// The operation of a form that is drawn, in a network that has run.
struct Drawn {
  EvaluationOrder order;
  std::vector<Var> in, out;
  Memory* memory = nullptr;  ///< null: of reads from a cache
  Var trajectory;            ///< of its first state, where there is one
  bool reversed = false;
  std::string state;                                 ///< "state/0/h"
  Watched watched;                                   ///< of a Newton form
  std::vector<std::vector<drawing::Complex>> truth;  ///< of a Newton form: each state's trajectory in the sequential one
};

namespace drawing {

std::vector<Complex> values_of(Var var);
/// The entry of each row that moves most.
std::int64_t most_active(const std::vector<Complex>& values, std::int64_t width);
/// Chunks that a short sequence has several of, where the engine's own would hold it all.
std::int64_t drawn_chunk(std::int64_t own, std::int64_t steps);
std::string chunks_said(const std::string& what, std::int64_t own, std::int64_t drawn);
std::string of_entry(const std::string& what, const Drawn& drawn, std::int64_t entry);
extern const std::string why_sequential;

/// Rows of a matrix memory's inputs, of its first head.
struct InputRows {
  std::vector<Complex> values;
  std::int64_t stride, width;
  explicit InputRows(Var var);
  double operator()(std::int64_t t, std::int64_t i) const { return values[static_cast<std::size_t>(t * stride + i)].real(); }
  std::int64_t most_active(std::int64_t steps) const;
};

/// State after state: the first output is the state's trajectory, or its reads.
void steps(Plan& plan, const Drawn& drawn);

}  // namespace drawing
}  // namespace reclab
