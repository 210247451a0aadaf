// SPDX-License-Identifier: GPL-3.0-or-later
// The Layer that a network builds its layers with; for files that build networks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "array/demand.h"
#include "models/network.h"
#include "recurrence/flow.h"
#include "recurrence/memory.h"
#include "recurrence/ode/ode.h"

namespace reclab {

/// A layer of a network: its declarations go into the network's lists.
class Network::LayerOf final : public Layer, public FlowListener, public MixingListener, public OdeListener {
 public:
  /// The layer `index` of the network, which is layer `place` of its stack and direction, whose lowest one is the network's layer `first`;
  /// index = -1: none of them. `joint`: the parameters of another layer of the same prefix are its own too.
  LayerOf(Network& network, const Hyper& values, std::string prefix, int index, int place = -1, int first = 0, bool joint = false)
      : Layer(network.graph_, values),
        network_(network),
        prefix_(std::move(prefix)),
        index_(index),
        place_(place),
        first_(first),
        joint_(joint),
        rate_{1, network.options_.steps} {}

  int index() const override { return place_; }
  std::int64_t steps() const override { return rate_.rows(); }
  Rate rate() const override { return rate_; }
  /// Sets the rate before the layer is built. `turned`: its rows go from the end of the sequence to its start, where those around it go the
  /// other way.
  void set_rate(const Rate& rate, bool turned = false) {
    rate_ = rate;
    turned_ = turned;
  }
  std::int64_t batch() const override { return network_.options_.batch; }
  Form form() const override { return network_.options_.form; }
  std::int64_t cached_steps() const override { return network_.options_.cached_steps; }
  bool records() const override { return network_.options_.record; }

  Var parameter(const std::string& name, Shape shape, const Init& init, const std::string& text) override {
    const std::string key = prefix_ + "/" + name;
    for (const auto& present : network_.parameters_)
      if (present.name == key) {
        RECLAB_DEMAND(joint_ && present.var.shape() == shape);
        return present.var;
      }
    const Var var = graph().leaf(LeafKind::variable, std::move(shape), graph().real());
    network_.parameters_.push_back({key, text, var, init});
    return var;
  }
  Var shared_parameter(const std::string& name, Shape shape, const Init& init, const std::string& text) override {
    for (const auto& present : network_.parameters_)
      if (present.name == std::to_string(first_) + "/" + name) return present.var;
    RECLAB_DEMAND(index() == 0);
    return parameter(name, std::move(shape), init, text);
  }
  bool backward() const override { return index_ >= 0 && network_.layers_[static_cast<std::size_t>(index_)].reversed; }
  Var gate(const std::string& name, Var value, double low, double high, const std::string& text) override;

  void declare_forms(std::initializer_list<Form> forms) override {
    for (const Form form : forms) network_.offered_ |= 1u << static_cast<unsigned>(form);
  }
  void declare(const std::vector<StateSpec>& specs, const MemoryVars& vars) override;
  void add_carried_state(Buffer buffer) override;
  void require_single_segment() override { network_.needs_one_segment_ = true; }
  void flows(const Flow& flow) override { network_.flows_.insert_or_assign(index_, flow); }

  OdeGradient ode_gradient() const override { return network_.options_.ode; }
  void solves(const Sentence& why_no_adjoint) override { network_.ode_layers_.push_back({index_, why_no_adjoint}); }

  void mixes(Mixing mixing) override;
  void multiplies(RecurrentMatrix matrix) override { network_.matrices_.insert_or_assign(index_, matrix); }

  Var previous_state(Var trajectory) override;
  void reconstruction(const std::string& state, const std::function<Var()>& signal, PastBasis basis) override {
    if (!network_.options_.record || !forms_states(form())) return;
    network_.histories_.push_back({index_, state, signal(), std::move(basis)});
  }
  Var teacher_forcing_input() override { return network_.teacher_; }
  Var position() override;
  Var elapsed() override;
  Var document_starts(std::int64_t column) override;

 private:
  Network& network_;
  std::string prefix_;
  int index_, place_, first_;
  bool joint_;
  Rate rate_;
  bool turned_ = false;

  /// The text of an array whose rows are held, in a layer whose steps are longer than the sequence's.
  std::string held_text(const std::string& text) const;
};

}  // namespace reclab
