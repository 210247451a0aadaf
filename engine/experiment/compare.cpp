// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "experiment/prepared.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

std::vector<FormReport> compare_forms(const Registry& registry, const RunRequest& request, std::stop_token stop) {
  const Prepared prepared(registry, request);
  const Loss loss(Loss::Kind::random, request.sequence, prepared.loss.outputs());
  struct Result {
    std::vector<double> output, input_gradient;
    std::map<std::string, std::vector<double>> gradients;
  };
  const auto largest = [](const std::vector<double>& a) {
    double size = 0.0;
    for (const double x : a) size = std::max(size, std::abs(x));
    return size;
  };
  const auto largest_difference = [](const std::vector<double>& a, const std::vector<double>& b, double least = 0.0) {
    double difference = 0.0, size = least;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return std::numeric_limits<double>::quiet_NaN();
      difference = std::max(difference, std::abs(a[i] - b[i]));
      size = std::max(size, std::abs(b[i]));
    }
    return size > 0.0 ? difference / size : difference;
  };
  std::vector<FormReport> reports;
  Result reference;
  for (const Form form : prepared.probe->forms()) {
    FormReport report;
    report.form = std::string(to_string(form));
    Result result;
    Rollout rollout(prepared.architecture, prepared.hyper, prepared.parameters, request.sequence, loss, prepared.backend,
                    {form, prepared.real, 0, false});
    const auto start = Clock::now();
    const auto bad = rollout.forward([&](const Rollout::Segment& s) {
      const auto values = to_double(prepared.backend, prepared.real, s.network.graph().value(s.network.output()), count(s.network.output().shape()));
      result.output.insert(result.output.end(), values.begin(), values.end());
      const Cost cost = s.network.graph().cost();
      report.flops += cost.flops;
      report.bytes += cost.bytes;
    }, stop);
    if (bad)
      throw Error(request.preset.id + ": " + sentence(*bad) + " in the " + report.form + " form: choose other hyper-parameters or a shorter sequence.");
    result.input_gradient.resize(static_cast<std::size_t>(request.sequence.length * request.sequence.width));
    const auto bad_gradient = rollout.backward([&](const Rollout::Segment& s, int scale) {
      const auto values = to_double(prepared.backend, prepared.real, s.network.graph().gradient(s.network.input()), s.steps * request.sequence.width);
      for (std::size_t i = 0; i < values.size(); ++i)
        result.input_gradient[static_cast<std::size_t>(s.first * request.sequence.width) + i] = std::ldexp(values[i], scale);
    }, stop);
    result.gradients = rollout.parameter_gradients();
    report.seconds = since(start);
    for (int layer = 0; is_newton(form) && layer < static_cast<int>(rollout.network().layers().size()); ++layer)
      for (const Memory* memory : rollout.network().memories(layer))
        if (const NewtonReport* newton = memory->newton()) {
          report.iterations = std::max(report.iterations, newton->iterations());
          report.converged = report.converged && newton->converged;
          if (!newton->converged || report.note.empty())
            report.note = (rollout.network().layers().size() > 1 ? "Layer " + std::to_string(layer) + ": " : "") + newton_sentence(*newton);
        }
    if (bad_gradient) {
      report.gradient_error = std::numeric_limits<double>::quiet_NaN();
      report.note += (report.note.empty() ? "" : " ") + ("In the " + report.form + " form " + way_back(*bad_gradient) + ".");
    }
    if (form == Form::sequential) {
      reference = std::move(result);
    } else {
      report.output_error = largest_difference(result.output, reference.output);
      // A gradient that nearly cancels has the rounding of what cancelled: it is measured by a share of the largest of all.
      double least = largest(reference.input_gradient);
      for (const auto& [name, values] : reference.gradients) least = std::max(least, largest(values));
      least *= 1e-4;
      report.gradient_error = largest_difference(result.input_gradient, reference.input_gradient, least);
      for (const auto& [name, values] : result.gradients) {
        const double error = largest_difference(values, reference.gradients.at(name), least);
        report.gradient_error = std::isnan(error) || std::isnan(report.gradient_error) ? std::numeric_limits<double>::quiet_NaN() : std::max(report.gradient_error, error);
      }
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace reclab
