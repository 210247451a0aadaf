// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/compare.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "array/stop.h"
#include "experiment/device.h"

namespace reclab {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double largest(const std::vector<double>& a) {
  double size = 0.0;
  for (const double x : a) size = std::max(size, std::abs(x));
  return size;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b, double least = 0.0) {
  double difference = 0.0, size = least;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return not_a_number;
    difference = std::max(difference, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(b[i]));
  }
  return size > 0.0 ? difference / size : difference;
}

}  // namespace

void tell_newton(const Network& network, Form form, FormResult& result) {
  for (int layer = 0; is_newton(form) && layer < static_cast<int>(network.layers().size()); ++layer)
    for (const Memory* memory : network.memories(layer))
      if (const NewtonReport* newton = memory->newton()) {
        result.iterations = std::max(result.iterations, newton->iterations());
        result.converged = result.converged && newton->converged;
        if (!newton->converged || result.note.empty())
          result.note = (network.layers().size() > 1 ? "Layer " + std::to_string(layer) + ": " : "") + newton_sentence(*newton);
      }
}

FormResult result_of(const FormCase& of, Form form, DType real, bool backward, std::stop_token stop) {
  FormResult result;
  const Model model(of.architecture, of.hyper, of.parameters, of.backend, real);
  Rollout rollout(model, Batch(of.sequence, of.loss), {.form = form, .record = false});
  const auto start = std::chrono::steady_clock::now();
  result.bad = rollout.forward(
      [&](const Rollout::Segment& s) {
        const auto values = to_double(of.backend, real, s.network.graph().value(s.network.output()), count(s.network.output().shape()));
        result.output.insert(result.output.end(), values.begin(), values.end());
      },
      stop);
  if (result.bad) return result;
  result.cost = rollout.cost();
  if (backward) {
    result.input_gradient.resize(static_cast<std::size_t>(of.sequence.length * of.sequence.width));
    result.bad_gradient = rollout.backward(
        [&](const Rollout::Segment& s, int scale) {
          const auto values = to_double(of.backend, real, s.network.graph().gradient(s.network.input()), s.steps * of.sequence.width);
          for (std::size_t i = 0; i < values.size(); ++i)
            result.input_gradient[static_cast<std::size_t>(s.first * of.sequence.width) + i] = std::ldexp(values[i], scale);
        },
        stop);
    result.gradients = rollout.parameter_gradients();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  tell_newton(rollout.network(), form, result);
  return result;
}

FormErrors errors_of(const FormResult& result, const FormResult& reference) {
  FormErrors errors;
  errors.output = largest_difference(result.output, reference.output);
  double least = largest(reference.input_gradient);
  for (const auto& [name, values] : reference.gradients) least = std::max(least, largest(values));
  least *= 1e-4;
  errors.gradient = largest_difference(result.input_gradient, reference.input_gradient, least);
  for (const auto& [name, values] : result.gradients) {
    const double error = largest_difference(values, reference.gradients.at(name), least);
    errors.gradient = std::isnan(error) || std::isnan(errors.gradient) ? not_a_number : std::max(errors.gradient, error);
  }
  return errors;
}

namespace {

FormReports compare(const Registry& registry, const RunRequest& request, std::stop_token stop, std::string& where) {
  const Prepared prepared(registry, request);
  const SequenceLoss loss(LossKind::random, request.sequence, prepared.loss.outputs());
  const FormCase of{prepared.architecture, prepared.hyper, prepared.parameters, request.sequence, loss, prepared.backend};
  FormReports reports;
  FormResult reference;
  for (const Form form : prepared.shape_network->forms()) {
    FormReport report;
    report.form = std::string(to_string(form));
    report.device = prepared.backend.device() == Device::cpu ? "cpu" : "cuda";
    where = "in the " + report.form + " form";
    FormResult result = result_of(of, form, prepared.real, true, stop);
    if (result.bad)
      throw Error(request.preset.id + ": " + sentence(*result.bad) + " in the " + report.form +
                  " form: choose other hyper-parameters or a shorter sequence.");
    report.seconds = result.seconds;
    report.flops = result.cost.flops;
    report.bytes = result.cost.bytes;
    report.iterations = result.iterations;
    report.converged = result.converged;
    report.note = result.note;
    if (result.bad_gradient)
      report.note += (report.note.empty() ? "" : " ") + ("In the " + report.form + " form " + adjoint_sentence(*result.bad_gradient) + ".");
    if (form == Form::sequential) {
      reference = std::move(result);
      if (reference.bad_gradient) report.gradient_error = not_a_number;
    } else {
      const FormErrors errors = errors_of(result, reference);
      report.output_error = errors.output;
      report.gradient_error = errors.gradient;
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace

FormReports compare_forms(const Registry& registry, const RunRequest& request, std::stop_token stop) {
  const StopScope scope(stop);
  std::string where = "before the first form";
  return or_on_cpu(request, "comparison", where, [&](const RunRequest& asked, const std::string& said) {
    FormReports reports = compare(registry, asked, stop, where);
    if (!said.empty() && !reports.empty()) reports.front().note = said + (reports.front().note.empty() ? "" : " " + reports.front().note);
    return reports;
  });
}

}  // namespace reclab
