// SPDX-License-Identifier: GPL-3.0-or-later
// The 384 codes of linear-complexity sequence models: that each runs, that its exact forms are those that are said of it and agree, and its
// gradients against central differences.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "array/host.h"
#include "array/rng.h"
#include "experiment/experiment.h"
#include "models/network.h"
#include "models/parts/composition/codes.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

using Numbers = std::vector<double>;
using Settings = std::vector<std::pair<std::string, std::string>>;

Hyper hyper_of(const Settings& set) {
  Preset preset;
  preset.id = preset.title = preset.architecture = "lcsm";
  Settings all{{"width", "4"}, {"state", "3"}, {"tau", "3"}, {"block", "none"}};
  all.insert(all.end(), set.begin(), set.end());
  return reclab::hyper_of(builtin_registry(), preset, all);
}

/// A network with generic weights and a generic input, the same in all its forms.
class Run {
 public:
  Run(const Hyper& hyper, std::int64_t steps, Form form = Form::sequential, bool record = true, DType real = DType::f64)
      : network_(builtin_registry().find("lcsm"), hyper, {.steps = steps, .input = 4, .form = form, .real = real, .record = record}) {
    Graph& graph = network_.graph();
    Rng numbers(7);
    const Var y = network_.output();
    const std::int64_t outputs = count(y.shape());
    Numbers weights;  // of each output in the loss, so that no norm makes it constant
    for (std::int64_t i = 0; i < outputs; ++i) weights.push_back(numbers.normal());
    loss_ = sum(reshape(y, {outputs}) * graph.constant({outputs}, weights), -1);
    graph.allocate(cpu_backend(), true);
    const auto take = [&](const std::string& name, Var leaf) {
      Numbers& values = leaves_[name].values;
      for (std::int64_t i = 0; i < count(leaf.shape()); ++i) values.push_back(0.7 * numbers.normal());
      leaves_[name].var = leaf;
      leaves_[name].rounded.assign(values.begin(), values.end());
      if (real == DType::f32)
        graph.bind(leaf, leaves_[name].rounded.data());
      else
        graph.bind(leaf, values.data());
    };
    take("input", network_.input());
    for (const auto& parameter : network_.parameters()) take(parameter.name, parameter.var);
    for (const auto& state : network_.states()) {
      starts_.emplace_back(2 * static_cast<std::size_t>(count(state.initial.shape())), 0.0);  // room for complex numbers
      graph.bind(state.initial, starts_.back().data());
    }
  }
  double loss() {
    network_.graph().forward();
    return host(network_.graph().value(loss_), 1)[0];
  }
  Numbers output() {
    network_.graph().forward();
    return host(network_.graph().value(network_.output()), count(network_.output().shape()));
  }
  std::map<std::string, Numbers> gradients() {
    Graph& graph = network_.graph();
    graph.forward();
    graph.clear_gradients();
    const double one = 1.0;
    const float rounded = 1.0F;
    if (graph.real() == DType::f32)
      cpu_backend().copy(graph.gradient(loss_), &rounded, sizeof rounded);
    else
      cpu_backend().copy(graph.gradient(loss_), &one, sizeof one);
    graph.backward();
    std::map<std::string, Numbers> made;
    for (const auto& [name, leaf] : leaves_) made[name] = host(graph.gradient(leaf.var), count(leaf.var.shape()));
    return made;
  }
  Numbers& values(const std::string& name) { return leaves_.at(name).values; }
  Network& network() { return network_; }

 private:
  struct Leaf {
    Var var;
    Numbers values;
    std::vector<float> rounded;
  };
  Numbers host(const void* data, std::int64_t n) { return to_double(cpu_backend(), network_.options().real, data, n); }
  Network network_;
  Var loss_;
  std::map<std::string, Leaf> leaves_;
  std::vector<Numbers> starts_;
};

double largest(const Numbers& x) {
  double most = 0.0;
  for (const double value : x) most = std::max(most, std::abs(value));
  return most;
}
double difference(const Numbers& x, const Numbers& y) {
  CHECK_EQUAL(x.size(), y.size());
  double most = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::isfinite(x[i] - y[i]) ? std::max(most, std::abs(x[i] - y[i])) : INFINITY;
  return most == 0.0 ? 0.0 : most / largest(y);
}

struct Worst {
  double error = 0.0;
  std::string where = "-";
  void take(double other, const std::string& at) {
    if (other > error || where == "-") error = other, where = at;
  }
};

/// Outputs and gradients of all forms against the sequential one, in double precision; those of single precision against it too.
void agree(const std::string& what, const Hyper& hyper, const std::vector<Form>& forms, DType real, Worst& outputs, Worst& gradients) {
  constexpr std::int64_t steps = 70;  // more than a chunk of any of them
  const double tolerance = real == DType::f64 ? 1e-12 : 1e-3;
  Run sequential(hyper, steps);
  const Numbers y = sequential.output();
  CHECK_SAYS(largest(y) > 1e-3 && std::isfinite(largest(y)), what + " has outputs of " + test::show(largest(y)));
  const auto slopes = sequential.gradients();
  double most = 0.0;
  for (const auto& [key, slope] : slopes) most = std::max(most, largest(slope));
  const auto compare = [&](const std::string& name, Run&& other) {
    const double error = difference(other.output(), y);
    CHECK_SAYS(error <= tolerance, what + " " + name + " is off by " + test::show(error));
    outputs.take(error, what + " " + name);
    for (const auto& [key, slope] : other.gradients()) {
      double gap = 0.0;
      for (std::size_t i = 0; i < slope.size(); ++i)
        gap = std::isfinite(slope[i]) ? std::max(gap, std::abs(slope[i] - slopes.at(key)[i])) : INFINITY;
      CHECK_SAYS(gap <= tolerance * most, what + " " + name + ": the gradient of " + key + " is off by " + test::show(gap / most));
      gradients.take(gap / most, what + " " + name + " " + key);
    }
  };
  for (const Form form : forms)
    if (form != Form::sequential || real != DType::f64) compare(std::string(to_string(form)), {hyper, steps, form, true, real});
  compare("sequential without its states", {hyper, steps, Form::sequential, false, real});
}

/// Each entry of each parameter and of the input against a central difference.
void differentiate(const std::string& what, const Hyper& hyper, Worst& worst) {
  Run run(hyper, 9);
  const double loss = run.loss();
  for (const auto& [name, gradient] : run.gradients()) {
    Numbers& values = run.values(name);
    const double size = largest(gradient);
    CHECK_SAYS(size > 1e-6, what + ": the gradient of " + name + " is " + test::show(size));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double kept = values[i];
      const auto at = [&](double by) {
        values[i] = kept + by;
        return run.loss();
      };
      double gap = 0.0, allowed = 0.0;
      for (double h = 1e-3; h > 1e-6; h /= 8) {  // a step may cross the kink of a relu: a shorter one does not
        const auto central = [&](double step) { return (at(step) - at(-step)) / (2 * step); };
        gap = std::abs((4.0 * central(h / 2) - central(h)) / 3.0 - gradient[i]);
        allowed = 1e-7 * size + 1e-15 * (std::abs(loss) + 10.0) / h;
        if (gap <= allowed) break;
      }
      values[i] = kept;
      CHECK_SAYS(gap <= allowed, what + ": the gradient of " + name + "[" + std::to_string(i) + "] is " + test::show(gradient[i]) +
                                     ", off by " + test::show(gap));
      worst.take(gap / size, what + " " + name);
    }
  }
}

std::vector<Form> forms_of(const LcsmCode& code) {
  std::vector<Form> forms;
  for (const LcsmForm& form : exact_forms(code)) forms.push_back(form.form);
  return forms;
}

const std::vector<Settings> variants{{{"parameterisation", "ssm"}, {"rank", "2"}},
                                     {{"transition", "m1"}, {"key_norm", "unit"}},
                                     {{"transition", "m2"}, {"key_norm", "unit"}, {"activation", "sigmoid"}},
                                     {{"transition", "m3"}, {"activation", "sigmoid"}},
                                     {{"oscillation", "gates"}, {"use_tau", "no"}},
                                     {{"oscillation", "key-gates"}, {"use_tau", "no"}, {"expand", "independent"}},
                                     {{"oscillation", "value-decays"}, {"o_learned", "no"}},
                                     {{"oscillation", "matrix"}, {"o_learned", "no"}},
                                     {{"layers", "2"}, {"block", "residual"}, {"bias", "yes"}}};
std::string text_of(const Settings& set) {
  std::string text;
  for (const auto& [key, value] : set) text += (text.empty() ? "" : " ") + key + "=" + value;
  return text;
}

}  // namespace

TEST_CASE("a code says the forms that the architecture offers for it, and no other") {
  for (const LcsmCode& code : all_lcsm_codes()) {
    std::vector<Form> offered = Network(builtin_registry().find("lcsm"), hyper_of(settings(code)), {.input = 4}).forms(),
                      said = forms_of(code);
    CHECK(offered.front() == Form::sequential && said.front() == Form::sequential);
    std::ranges::sort(offered);
    std::ranges::sort(said);
    CHECK_SAYS(offered == said, to_string(code));
    CHECK(lcsm_code(hyper_of(settings(code))) == code);
  }
}

TEST_CASE("the forms of each code agree in outputs and gradients, in both precisions") {
  for (const DType real : {DType::f64, DType::f32}) {
    Worst outputs, gradients;
    for (const LcsmCode& code : all_lcsm_codes())
      agree(to_string(code), hyper_of(settings(code)), forms_of(code), real, outputs, gradients);
    std::printf("%zu codes, %s: outputs differ by at most %.1e (%s), gradients by %.1e (%s)\n", all_lcsm_codes().size(),
                real == DType::f64 ? "f64" : "f32", outputs.error, outputs.where.c_str(), gradients.error, gradients.where.c_str());
  }
}

TEST_CASE("so do those of what has no number in a code") {
  for (const DType real : {DType::f64, DType::f32}) {
    Worst outputs, gradients;
    for (const Settings& set : variants) {
      const Hyper hyper = hyper_of(set);
      agree(text_of(set), hyper, Network(builtin_registry().find("lcsm"), hyper, {.input = 4}).forms(), real, outputs, gradients);
    }
    std::printf("%s: outputs differ by at most %.1e (%s), gradients by %.1e (%s)\n", real == DType::f64 ? "f64" : "f32", outputs.error,
                outputs.where.c_str(), gradients.error, gradients.where.c_str());
  }
}

TEST_CASE("the gradients of each code are slopes of its loss") {
  Worst worst;
  for (const LcsmCode& code : all_lcsm_codes()) differentiate(to_string(code), hyper_of(settings(code)), worst);
  for (const Settings& set : variants) differentiate(text_of(set), hyper_of(set), worst);
  std::printf("%zu codes: off by at most %.1e of the largest entry (%s)\n", all_lcsm_codes().size(), worst.error, worst.where.c_str());
}
