// SPDX-License-Identifier: GPL-3.0-or-later
#include "distillation/distil.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "array/stop.h"
#include "models/registry.h"

namespace reclab {
namespace {

const char* const modal = "laughing-hyena";  // the architecture whose filters are sums of exponentials
constexpr std::int64_t usual_taps = 1024;

double norm(std::span<const double> x) {
  double largest = 0.0, sum = 0.0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  if (largest == 0.0) return 0.0;
  for (const double value : x) sum += (value / largest) * (value / largest);
  return largest * std::sqrt(sum);
}
double over(double a, double b) { return b > 0.0 ? a / b : 0.0; }

/// Adds what a channel's fits are to the rows.
void add(std::vector<ModesRow>& rows, std::span<const double> taps, const FilterSpectrum& spectrum, const std::vector<ModalFit>& fits) {
  const double size = norm(taps), first = spectrum.taps.value(0);
  double most = 0.0;
  for (const double tap : taps) most = std::max(most, std::abs(tap));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ModesRow& row = rows[i];
    row.l2 = std::max(row.l2, over(fits[i].error.l2, size));
    row.largest = std::max(row.largest, over(fits[i].error.largest, most));
    row.hankel = std::max(row.hankel, over(fits[i].error.hankel, first));
    row.below = std::max(row.below, over(spectrum.taps.value(row.modes), first));
    row.above = std::max(row.above, over(2.0 * spectrum.ending.tail(row.modes), size));
  }
}

/// The poles and residues of all filters of a layer, system-major (channel, filter), as the modal architecture has them, and what stands beside them.
struct LayerModes {
  std::vector<double> poles, residues, direct;
};
LayerModes modes_of(const std::vector<const DistilledFilter*>& filters, std::int64_t modes) {
  LayerModes made;
  for (std::int64_t c = 0; c < filters[0]->filter.channels; ++c)
    for (const DistilledFilter* filter : filters) {
      const ModalFilter& fit = filter->fits[static_cast<std::size_t>(c)].back().filter;
      for (std::size_t n = 0; n < static_cast<std::size_t>(modes); ++n) {
        const bool there = n < fit.poles.size();
        const std::complex<double> pole = there ? fit.poles[n] : 0.0, residue = there ? fit.residues[n] : 0.0;
        made.poles.insert(made.poles.end(), {pole.real(), pole.imag()});
        made.residues.insert(made.residues.end(), {residue.real(), residue.imag()});
      }
      made.direct.push_back(fit.direct);
    }
  return made;
}

std::map<int, std::vector<const DistilledFilter*>> by_layer(const std::vector<DistilledFilter>& filters) {
  std::map<int, std::vector<const DistilledFilter*>> layers;
  for (const DistilledFilter& filter : filters) layers[filter.filter.layer].push_back(&filter);
  return layers;
}

/// Stored modes: of a pair one.
std::int64_t stored(const std::vector<const DistilledFilter*>& filters) {
  std::size_t most = 1;
  for (const DistilledFilter* filter : filters)
    for (const auto& fits : filter->fits) most = std::max(most, fits.back().filter.poles.size());
  return static_cast<std::int64_t>(most);
}

/// Fills in what a modal model's layers have in place of the filters. False where they are not as many, or not as wide.
bool put_modes(Parameters& weights, const std::map<int, std::vector<const DistilledFilter*>>& layers, std::int64_t modes) {
  for (const auto& [layer, filters] : layers) {
    if (std::ranges::any_of(filters, [&](const DistilledFilter* f) { return f->filter.channels != filters[0]->filter.channels; })) return false;
    const LayerModes made = modes_of(filters, modes);
    const std::string at = std::to_string(layer) + "/filter_fn.";
    Parameters::Entry *poles = weights.find(at + "poles"), *residues = weights.find(at + "residues"), *bias = weights.find(at + "bias");
    if (!poles || poles->values.size() != made.poles.size() || bias->values.size() != made.direct.size()) return false;
    poles->values = made.poles;
    residues->values = made.residues;
    for (std::size_t i = 0; i < made.direct.size(); ++i) bias->values[i] += made.direct[i];
  }
  return true;
}

bool ends(const std::string& name, const char* with) { return name.ends_with(with); }

/// The model itself, where all but its filters is a part of the modal architecture with the same hyper-parameters.
bool put_whole(const Registry& registry, const Prepared& source, const DistillRequest& request, Distillation& found) {
  const Architecture& architecture = registry.find(modal);
  const auto layers = by_layer(found.filters);
  std::int64_t modes = 1;
  for (const auto& [layer, filters] : layers) modes = std::max(modes, stored(filters));
  Hyper hyper(architecture.hyper);
  Preset& preset = found.preset;
  preset.hyper.clear();
  try {
    for (const HyperSpec& spec : architecture.hyper) {
      if (spec.draws_only) continue;
      if (spec.key == "state") {
        hyper.set("state", modes, modal);
      } else if (source.hyper.has(spec.key)) {
        hyper.set(spec.key, source.hyper.value(spec.key), modal);
      } else {
        continue;
      }
      preset.hyper.emplace_back(spec.key, hyper.value(spec.key));
    }
    if (architecture.check) architecture.check(hyper);
  } catch (const Error&) {
    return false;
  }
  if (static_cast<std::size_t>(hyper.integer("layers")) != layers.size()) return false;
  NetworkOptions options;
  options.input = request.model.sequence->width;
  options.head = source.loss.outputs();
  const Network network(architecture, hyper, options);
  Parameters weights = network.initialise(1), given = source.parameters;
  for (Parameters::Entry& entry : weights.entries()) {
    if (ends(entry.name, "/filter_fn.poles") || ends(entry.name, "/filter_fn.residues")) continue;
    const Parameters::Entry* same = given.find(entry.name);
    if (same && same->shape == entry.shape)
      entry.values = same->values;
    else if (!ends(entry.name, "/filter_fn.bias"))
      return false;
  }
  for (const Parameters::Entry& entry : given.entries())
    if (!weights.find(entry.name) && entry.name.find("/filter_fn.") == std::string::npos) return false;
  if (!put_modes(weights, layers, modes)) return false;
  found.weights = std::move(weights);
  const Preset& own = request.model.preset;
  preset.task = own.task;
  preset.task_length = own.task_length;
  preset.task_seed = own.task_seed;
  preset.task_set = own.task_set;
  return true;
}

/// The first filter as a model of its own, which shows its impulse response.
void put_filter(const Registry& registry, Distillation& found) {
  const DistilledFilter& first = found.filters.front();
  const std::map<int, std::vector<const DistilledFilter*>> layers{{0, {&first}}};
  const std::int64_t modes = stored(layers.at(0));
  Preset& preset = found.preset;
  preset.hyper = {{"width", first.filter.channels}, {"state", modes}, {"layers", std::int64_t{1}}, {"block", std::string("filter")}};
  preset.task = "impulse";
  preset.task_length = found.taps;
  const Architecture& architecture = registry.find(modal);
  Hyper hyper(architecture.hyper);
  for (const auto& [key, value] : preset.hyper) hyper.set(key, value, modal);
  const Network network(architecture, hyper, {});
  found.weights = network.initialise(1);
  put_modes(found.weights, layers, modes);
}

std::string percent(double part) {
  char text[32];
  std::snprintf(text, sizeof text, part >= 1e-3 ? "%.2g %%" : "%.1e %%", 100.0 * part);
  return text;
}

void describe(const Registry& registry, Distillation& found) {
  Preset& preset = found.preset;
  const ModesRow& last = found.rows.back();
  preset.id = found.id + "-in-" + std::to_string(found.modes) + "-modes";
  preset.architecture = modal;
  preset.family = registry.find(modal).family;
  preset.title = found.title + (found.whole ? ", " : ", its filter alone, ") + plural(found.modes, "mode");
  const std::string as = plural(found.modes, "exponential") + " a channel, fitted over " + plural(found.taps, "step");
  preset.idea = (found.whole ? "This is " + found.title + " with each of its long filters as a sum of " + as + ". Look at the spectrum, which is the poles of all channels. "
                             : "This is the first long filter of " + found.title + ", as a sum of " + as + ". Look at the spectrum, which is the poles of all channels, and at the output, which after an impulse is the filter itself. ") +
                "It breaks where the fit does: in the worst channel " + percent(last.l2) + " of the filter is lost, and after these steps it goes on as the modes do.";
  preset.look_at = {"spectrum", "timing"};
  preset.source = registry.find(modal).source;
  preset.descends_from = {{found.id, "its long filters as sums of exponentials"}};
}

}  // namespace

std::vector<std::int64_t> mode_counts(std::int64_t modes) {
  std::vector<std::int64_t> counts;
  for (std::int64_t n = 1; n < modes; n = n < 4 ? n + 1 : (n & (n - 1)) == 0 ? n + n / 2 : n / 3 * 4) counts.push_back(n);
  counts.push_back(modes);
  return counts;
}

Distillation distil(const Registry& registry, const DistillRequest& request, const Progress& progress, std::stop_token stop) {
  const StopScope scope(stop);
  const auto tell = [&](double fraction, std::string_view stage) {
    if (progress) progress(fraction, stage);
  };
  tell(0.0, "filters");
  const Preset& preset = request.model.preset;
  Distillation found;
  found.id = preset.id;
  found.title = preset.title;
  found.modes = request.modes;
  found.taps = request.taps ? request.taps : std::max(usual_taps, preset.task_length);
  const Prepared prepared(registry, request.model);
  const std::vector<std::int64_t> orders = mode_counts(request.modes);
  for (const std::int64_t order : orders) found.rows.push_back({.modes = order});
  std::int64_t channels = 0, done = 0;
  for (LongFilter& filter : long_filters(prepared, request.model, found.taps, stop)) {
    channels += filter.channels;
    found.filters.push_back({std::move(filter), {}, {}});
  }
  for (DistilledFilter& filter : found.filters)
    for (std::int64_t c = 0; c < filter.filter.channels; ++c) {
      tell(static_cast<double>(done++) / static_cast<double>(channels), "modes");
      const auto taps = filter.filter.channel(c);
      filter.spectra.push_back(filter_spectrum(taps, 2 * request.modes));
      filter.fits.push_back(modal_fits(taps, filter.spectra.back(), orders));
      add(found.rows, taps, filter.spectra.back(), filter.fits.back());
      HankelFactors& own = filter.spectra.back().taps;
      found.singular_values.resize(std::max(found.singular_values.size(), std::min(own.values.size(), static_cast<std::size_t>(2 * request.modes + 1))), 0.0);
      for (std::size_t k = 0; k < found.singular_values.size(); ++k)
        found.singular_values[k] = std::max(found.singular_values[k], over(own.value(static_cast<std::int64_t>(k)), own.value(0)));
      own.vectors.clear();  // of thousands of channels they would be gigabytes
      filter.spectra.back().ending.vectors.clear();
    }
  found.whole = put_whole(registry, prepared, request, found);
  if (!found.whole) put_filter(registry, found);
  describe(registry, found);
  return found;
}

}  // namespace reclab
