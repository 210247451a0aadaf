// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/prepared.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "array/demand.h"
#include "execution/segment_length.h"
#include "experiment/device.h"
#include "experiment/readout.h"
#include "experiment/training/learned.h"
#include "experiment/weights/weights.h"
#include "models/registry.h"
#include "recurrence/evaluation_order.h"
#include "sequence/elapsed.h"

namespace reclab {
namespace {

DType dtype_from(const std::string& text) {
  if (text == "f64" || text == "float64") return DType::f64;
  if (text == "f32" || text == "float32") return DType::f32;
  throw Error("There is no precision \"" + text + "\": choose f64 or f32.", {.parameter = "dtype", .value = text, .range = "f32, f64"});
}

/// One pass forward in the form that is asked for; of "auto" and of the Newton forms, whose iterations nobody knows before, step by step.
Work work_of(const Architecture& architecture, const Hyper& hyper, const Loss& loss, DType real, const RunRequest& request) {
  constexpr std::int64_t longest = 4096;  // a longer sequence is more of the same
  NetworkOptions options;
  options.form = request.form == "auto" ? Form::sequential : form_from(request.form);
  if (is_newton(options.form)) options.form = Form::sequential;
  options.steps = std::min(request.sequence->length, longest);
  options.input = request.sequence->width;
  options.head = loss.outputs();
  options.real = real;
  options.timed = uneven(request.sequence->time);
  return work_of(Network(architecture, hyper, options), request.sequence->length);
}

/// Where no target says how wide the head is, weights that are given may have one. A random loss asks for as many outputs as the sequence's
/// own would.
SequenceLoss loss_of(const RunRequest& request, const Architecture& architecture, const Hyper& hyper) {
  const SequenceLoss own(request.loss == LossKind::random ? LossKind::automatic : request.loss, request.sequence);
  std::int64_t outputs = own.outputs();
  if (own.kind() != LossKind::task && request.learned) {
    const auto& entries = request.learned->values.entries();
    const auto head = std::ranges::find(entries, "head/weight", &Parameters::Entry::name);
    outputs = head == entries.end() ? 0 : head->shape[0];
  } else if (own.kind() != LossKind::task && !request.weights.empty()) {
    outputs = head_of_weights(request.weights, architecture, hyper, request.sequence->width);
  }
  return {request.loss, request.sequence, outputs};
}

/// The weights of a training. They fit the model that was trained, on sequences as wide as those it learned from.
Parameters learned_by(const LearnedWeights& learned, const Network& network, const std::string& model) {
  const auto& given = learned.values.entries();
  const auto fits = [](const Network::ParameterVar& own, const Parameters::Entry& other) {
    return own.name == other.name && own.var.shape() == other.shape;
  };
  if (const auto [own, other] = std::ranges::mismatch(network.parameters(), given, fits);
      own != network.parameters().end() || other != given.end()) {
    std::string difference;
    if (own == network.parameters().end())
      difference = other->name + " has no place";
    else if (other == given.end() || own->name != other->name)
      difference = "they have no " + own->name;
    else
      difference = own->name + " has shape " + to_string(other->shape) + " where the model has " + to_string(own->var.shape());
    throw Error("The learned weights of " + model + " do not fit these settings, this sequence or this loss (" + difference +
                    "): choose those that they learned with, or draw the weights anew. They learned from " + learned.from + ".",
                {.model = model, .parameter = "weights"});
  }
  Parameters parameters = network.undrawn();
  for (std::size_t i = 0; i < given.size(); ++i) parameters.entries()[i].values = given[i].values;
  return parameters;
}

std::vector<std::string> devices() {
  std::vector<std::string> found{"cpu"};
  if (cuda_backend()) found.emplace_back("cuda");
  return found;
}

}  // namespace

Work work_of(const Network& network, std::int64_t length) {
  const NetworkOptions& options = network.options();
  const double times = static_cast<double>(length) / static_cast<double>(options.steps);
  Work work{network.graph().cost()};
  work.cost.flops *= times;
  work.cost.bytes *= times;
  work.memory = static_cast<double>(network.graph().planned_bytes(false)) * times;
  if (options.form != Form::sequential) return work;
  const bool steps_are_launches = work.cost.launches >= static_cast<double>(options.steps);
  work.cost.launches *= times;
  if (!steps_are_launches)
    for (int layer = 0; layer < static_cast<int>(network.layers().size()); ++layer)
      work.serial += static_cast<double>(std::ssize(network.memories(layer)) * length);
  return work;
}

void require_form(const Network& network, Form form, const std::string& model) {
  const auto forms = network.forms();
  if (std::find(forms.begin(), forms.end(), form) != forms.end()) return;
  std::string known;
  for (const Form f : forms) known += (known.empty() ? "" : ", ") + std::string(to_string(f));
  throw Error(model + " has no exact " + std::string(to_string(form)) + " form: choose " + known + ".",
              {.model = model, .parameter = "form", .value = std::string(to_string(form)), .range = known});
}

Structure::Structure(const Registry& registry, const RunRequest& request, const Structure* like)
    : owner(architecture_of(registry, request.preset)),
      architecture(*owner),
      hyper(hyper_of(architecture, request.preset, request.set)),
      loss(loss_of(request, architecture, hyper)),
      real(dtype_from(request.dtype)),
      backend(backend_for(request, [&] { return work_of(architecture, hyper, loss, real, request); })) {
  RECLAB_DEMAND(request.sequence->length >= 1 && request.sequence->width >= 1);
  NetworkOptions options;
  options.steps = sampled_steps(request.sequence->length);
  options.input = request.sequence->width;
  options.head = loss.outputs();
  options.real = real;
  options.timed = uneven(request.sequence->time);
  if (like && like->parts() == parts() && like->hyper == hyper && like->shape_network->options() == options)
    shape_network = like->shape_network;
  else
    shape_network = {new Network(architecture, hyper, options), [kept = owner](Network* network) { delete network; }};
}

std::vector<const Architecture*> Structure::parts() const {
  return architecture.stack.empty() ? std::vector<const Architecture*>{&architecture} : architecture.stack;
}

Parameters Structure::loaded(const RunRequest& request) const {
  if (request.new_head) {
    NetworkOptions options = shape_network->options();
    options.head = head_of_weights(request.weights, architecture, hyper, options.input);
    const Parameters read = load_weights(request.weights, Network(architecture, hyper, options), architecture, hyper, true);
    Parameters made = shape_network->initialise(request.seed);
    for (const Parameters::Entry& entry : read.entries())
      if (!entry.name.starts_with("head/")) made.find(entry.name)->values = entry.values;
    return made;
  }
  return load_weights(request.weights, *shape_network, architecture, hyper, loss.kind() != LossKind::task);
}

Prepared::Prepared(const Registry& registry, const RunRequest& request, const WeightsOf& given, const Structure* like)
    : Structure(registry, request, like) {
  if (request.new_head && request.weights.empty())
    throw Error("new_head is for weights that are given: give weights, or leave it out.", {.parameter = "new_head"});
  if (given) {
    parameters = given(*shape_network);
  } else if (request.learned) {
    parameters = learned_by(*request.learned, *shape_network, request.preset.title.empty() ? architecture.title : request.preset.title);
  } else if (!request.weights.empty()) {
    parameters = loaded(request);
  } else {
    parameters = shape_network->initialise(request.seed);
    readout_note = fit_readout(architecture, hyper, request.sequence, loss.outputs(), parameters);
    if (!readout_note.empty() && !request.state.empty())
      readout_note += " A run that is to go on with the read-out of the run before is given that one's weights too.";
  }
}

void Structure::describe(const RunRequest& request, RunInfo& info) const {
  info.version = RECLAB_VERSION;
  info.preset = request.preset.id;
  info.title = request.preset.title.empty() ? architecture.title : request.preset.title;
  info.architecture = architecture.id;
  info.family = architecture.family;
  for (const auto& spec : hyper.table()) info.hyper.emplace_back(spec.key, hyper.text(spec.key));
  info.seed = request.seed;
  if (!request.learned) info.weights = request.weights.string();
  info.state = request.state.string();
  if (request.learned) info.learned = LearnedInfo{request.learned->training, request.learned->step, request.learned->from};
  info.device = backend.device() == Device::cpu ? "cpu" : "cuda";
  info.dtype = real == DType::f64 ? "float64" : "float32";
  for (const Form form : shape_network->forms()) info.forms.emplace_back(to_string(form));
  info.devices = devices();
}

bool scans_are_one(const Structure& structure, const RunRequest& request) {
  const auto forms = structure.shape_network->forms();
  const auto offers = [&](Form form) { return std::find(forms.begin(), forms.end(), form) != forms.end(); };
  if (structure.backend.device() == Device::cpu || !offers(Form::scan) || !offers(Form::chunkwise)) return false;
  /// Whether the form is one of s_t = a_t s_{t-1} + b_t, all steps at once.
  const auto of_diagonal = [&](Form form) {
    NetworkOptions options;
    options.input = request.sequence->width;
    options.form = form;
    options.real = structure.real;
    options.steps = 4;
    Network network(structure.architecture, structure.hyper, options);
    bool found = false;
    network.graph().visit([&](const Operation& operation, std::span<const Var>, std::span<const Var>) {
      const auto* over_time = dynamic_cast<const HasEvaluationOrder*>(&operation);
      found = found || (over_time && over_time->evaluation_order().diagonal_scan);
    });
    return found;
  };
  return of_diagonal(Form::scan) && of_diagonal(Form::chunkwise);
}

std::string adjoint_sentence(const Divergence& bad) {
  return sentence(bad) + " on the way back; gradients from there on are not to be relied on";
}

std::string newton_sentence(const NewtonReport& report) {
  char residual[32] = "none";
  if (!report.residuals.empty()) std::snprintf(residual, sizeof residual, "%.0e", report.residuals.back());
  const std::string name = report.form == Form::newton         ? "Newton's"
                           : report.form == Form::quasi_newton ? "The quasi-Newton"
                                                               : "The damped Newton";
  const std::string after = plural(report.iterations(), "iteration");
  if (report.converged) return name + " iteration converged in " + after + ", residual " + residual + ".";
  return name + " iteration did not converge after " + after + " (residual " + residual +
         (report.reason.empty() ? "" : "; " + report.reason) + "): the sequential form was run instead.";
}

void put_real(Trace& trace, TraceArray array, std::vector<double> values) {
  array.real = std::make_shared<const std::vector<double>>(std::move(values));
  trace.put(std::move(array));
}

}  // namespace reclab
