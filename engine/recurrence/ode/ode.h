// SPDX-License-Identifier: GPL-3.0-or-later
// Initial value problems inside a cell: Runge-Kutta steps of ds/dt = f(s), and the adjoint method for their gradient.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "array/sentence.h"
#include "recurrence/layer.h"

namespace reclab {

/// The way to the gradient of a solution. By the adjoint method (R. T. Q. Chen and others, NeurIPS 2018) a(t) = dL/ds(t) is the solution of
///   da/dt = -(df/ds)^T a,   dL/dtheta = the integral of (df/dtheta)^T a,
/// which is solved backward by the same steps as the state forward. It is the derivative of the exact solution, as far as the steps are
/// fine enough, and not that of the steps.
enum class OdeGradient : std::uint8_t {
  steps,       ///< backpropagation through the solver's steps: their exact derivative
  adjoint,     ///< the adjoint method; s(t) is solved backward beside a(t), from the end of the solution
  checkpoints  ///< the adjoint method; s(t) begins anew at each of the solver's steps, from where the solution forward was
};

/// The receiver of declare_ode: an interface beside Layer.
class OdeListener {
 public:
  virtual ~OdeListener() = default;
  virtual OdeGradient ode_gradient() const = 0;
  virtual void solves(const Sentence& why_no_adjoint) = 0;
};
/// Says that the layer's step solves a differential equation, and why not by steps that the adjoint method takes (empty: by such).
/// Returns the way to its gradient that is asked for; always `steps` where it is not by such.
OdeGradient declare_ode(Layer& layer, const Sentence& why_no_adjoint = {});

/// s [batch, n] after so many steps of a method, "euler", "midpoint", "rk4" or "rk4_38", with the gradient of the adjoint method:
/// OdeGradient::adjoint keeps as many numbers as one f makes, whatever the steps; checkpoints the state before each step besides.
/// `f`: the derivative, times the length of one step. Gradients pass to the arrays of enclosing graphs that f reads, the length among them.
Var solve_by_adjoint(const std::string& method, std::int64_t steps, OdeGradient gradient, const std::function<Var(Var)>& f, Var s);

}  // namespace reclab
