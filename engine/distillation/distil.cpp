// SPDX-License-Identifier: GPL-3.0-or-later
#include "distillation/distil.h"

#include <algorithm>
#include <cmath>
#include <iterator>
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

/// Adds the fits of a channel to the rows.
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

/// Adds a filter to the rows and to the singular values.
void count(Distillation& found, const DistilledFilter& filter) {
  const auto most = static_cast<std::size_t>(2 * found.modes + 1);
  for (std::int64_t c = 0; c < filter.filter.channels; ++c) {
    const FilterSpectrum& spectrum = filter.spectra[static_cast<std::size_t>(c)];
    add(found.rows, filter.filter.channel(c), spectrum, filter.fits[static_cast<std::size_t>(c)]);
    const HankelFactors& own = spectrum.taps;
    found.singular_values.resize(std::max(found.singular_values.size(), std::min(own.values.size(), most)), 0.0);
    for (std::size_t k = 0; k < found.singular_values.size(); ++k)
      found.singular_values[k] = std::max(found.singular_values[k], over(own.value(static_cast<std::int64_t>(k)), own.value(0)));
  }
}

/// The poles and residues of all filters of a layer, system-major (channel, filter), as the modal architecture has them, with the
/// parameters beside them.
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

/// Sets the modes of a modal model's layers, in place of the filters. False for another number of layers or another width.
bool put_modes(Parameters& weights, const std::map<int, std::vector<const DistilledFilter*>>& layers, std::int64_t modes) {
  for (const auto& [layer, filters] : layers) {
    if (std::ranges::any_of(filters, [&](const DistilledFilter* f) { return f->filter.channels != filters[0]->filter.channels; }))
      return false;
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

bool ends(const std::string& name, const std::string& with) { return name.ends_with(with); }

/// The same for layers of S4D, one filter a layer: A = log p with a step of 1, B = 1, and C that makes 2 Re(C B̄) the residue; the direct
/// term goes into D.
bool put_exponents(Parameters& weights, const std::map<int, std::vector<const DistilledFilter*>>& layers, std::int64_t modes) {
  for (const auto& [layer, filters] : layers) {
    if (filters.size() != 1) return false;
    const LayerModes made = modes_of(filters, modes);
    const std::string at = std::to_string(layer) + "/";
    Parameters::Entry *re = weights.find(at + "A_real"), *im = weights.find(at + "A_imag"), *C = weights.find(at + "C"),
                      *D = weights.find(at + "D");
    if (!re || re->values.size() * 2 != made.poles.size() || D->values.size() != made.direct.size()) return false;
    Parameters::Entry *B = weights.find(at + "B"), *step = weights.find(at + "inv_dt");
    std::ranges::fill(step->values, 0.0);
    for (std::size_t i = 0; i < re->values.size(); ++i) {
      const std::complex<double> pole(made.poles[2 * i], made.poles[2 * i + 1]), residue(made.residues[2 * i], made.residues[2 * i + 1]);
      const std::complex<double> A = pole == 0.0 ? -1.0 : std::log(pole), C_of_one = std::abs(A) > 1e-9 ? A / (pole - 1.0) : 1.0 - 0.5 * A;
      const std::complex<double> read = pole == 0.0 ? 0.0 : 0.5 * residue * C_of_one;
      re->values[i] = std::max(0.0, -A.real());
      im->values[i] = -A.imag();
      B->values[2 * i] = 1.0;
      B->values[2 * i + 1] = 0.0;
      C->values[2 * i] = read.real();
      C->values[2 * i + 1] = read.imag();
    }
    for (std::size_t i = 0; i < made.direct.size(); ++i) D->values[i] += made.direct[i];
  }
  return true;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// An architecture whose filters are modes, and which models round other filters are its own.
struct ModalArchitecture {
  std::string id;
  std::int64_t states_a_mode;  ///< by which `state` counts
  Pairs fixed;                 ///< settings that its modes need
  Pairs needs;                 ///< the values that the source's settings of these names must have
  std::vector<std::string>
      filters;   ///< settings of the source that make its filter alone; empty: all that it has no setting of its own for
  Pairs names;   ///< settings of another name in the source: theirs, its own
  Pairs values;  ///< values of `output` with another name: theirs, its own
  std::vector<std::string> replaced;  ///< ends or parts of names of parameters that make filters
  bool (*put)(Parameters&, const std::map<int, std::vector<const DistilledFilter*>>&, std::int64_t);
};
const std::vector<ModalArchitecture>& modal_architectures() {
  static const std::vector<ModalArchitecture> all{
      {.id = modal,
       .states_a_mode = 1,
       .fixed = {},
       .needs = {},
       .filters = {},
       .names = {},
       .values = {},
       .replaced = {"/filter_fn."},
       .put = put_modes},
      {.id = "s4d",
       .states_a_mode = 2,
       .fixed = {{"code", "full"},
                 {"discretisation", "zoh"},
                 {"real_transform", "none"},
                 {"imag_transform", "none"},
                 {"dt_transform", "exp"},
                 {"dt_fast", "false"},
                 {"dt_tie", "true"},
                 {"n_ssm", "0"},
                 {"is_real", "false"},
                 {"bandlimit", "0"}},
       .needs = {{"bidirectional", "false"},
                 {"channels", "1"},
                 {"activation", "gelu"},
                 {"postact", "glu"},
                 {"hyper_act", "none"},
                 {"weight_norm", "false"},
                 {"ln", "none"},
                 {"norm", "layer"},
                 {"liquid_kernel", "causal"}},
       .filters = {"l_kernel",   "low_rank",   "rank",     "order",           "allcombs",     "lcontract",      "input_matrix",
                   "version",    "length",     "epsilon",  "max_real_Lambda", "sep_dt_re_im", "kernel_to_real", "max_kernel_length",
                   "transposed", "kernel_dim", "n_scales", "init_scale",      "combine",      "interpolation",  "decay"},
       .names = {{"/output_linear.0.", "/output_linear."}, {"/block_norm.", "/norm."}},
       .values = {{"linear", "glu"}},
       .replaced = {"/inv_dt",
                    "/log_dt",
                    "/A_real",
                    "/log_A_real",
                    "/A_imag",
                    "/inv_w_real",
                    "/w_imag",
                    "/B",
                    "/C",
                    "/P",
                    "/Q",
                    "/W",
                    "/Lambda",
                    "/Lambda_im",
                    "/Lambda_log_im",
                    "/Lambda_log_neg_re",
                    "/kernel_list.",
                    "/decay",
                    "/multiplier",
                    "/kernel_norm"},
       .put = put_exponents}};
  return all;
}

/// The model itself, where all but its filters is a part of this architecture with the same hyper-parameters. Returns the parts that have
/// no place in it; empty on success.
std::string put_whole(const Registry& registry, const ModalArchitecture& target, const Prepared& source, const DistilRequest& request,
                      Distillation& found) {
  const Architecture& architecture = registry.find(target.id);
  const auto layers = by_layer(found.filters);
  const auto named = [](const Pairs& pairs, const std::string& key) { return std::ranges::find(pairs, key, &Pairs::value_type::first); };
  if (!target.filters.empty())
    for (const HyperSpec& spec : source.hyper.table())
      if (!spec.initialisation_only && !Hyper(architecture.hyper).has(spec.key) && named(target.needs, spec.key) == target.needs.end() &&
          std::ranges::find(target.filters, spec.key) == target.filters.end())
        return target.id + " has no " + spec.key;
  for (const auto& [key, value] : target.needs)
    if (source.hyper.has(key) && source.hyper.text(key) != value)
      return target.id + " has none with " + key + " = " + source.hyper.text(key);
  std::int64_t modes = 1;
  for (const auto& [layer, filters] : layers) modes = std::max(modes, stored(filters));
  Hyper hyper(architecture.hyper);
  Preset& preset = found.preset;
  preset.hyper.clear();
  try {
    for (const HyperSpec& spec : architecture.hyper) {
      if (spec.initialisation_only) continue;
      if (spec.key == "state") {
        hyper.set("state", target.states_a_mode * modes, target.id);
      } else if (const auto own = named(target.fixed, spec.key); own != target.fixed.end()) {
        hyper.set_text(spec.key, own->second, target.id);
      } else if (source.hyper.has(spec.key)) {
        const auto other = spec.key == "output" ? named(target.values, source.hyper.text(spec.key)) : target.values.end();
        if (other != target.values.end())
          hyper.set(spec.key, other->second, target.id);
        else
          hyper.set(spec.key, source.hyper.value(spec.key), target.id);
      } else {
        continue;
      }
      preset.hyper.emplace_back(spec.key, hyper.value(spec.key));
    }
    if (architecture.check) architecture.check(hyper);
  } catch (const Error& error) {
    return error.what();
  }
  if (static_cast<std::size_t>(hyper.integer("layers")) != layers.size()) return target.id + " has a filter in each layer, one way";
  NetworkOptions options;
  options.input = request.model.sequence->width;
  options.head = source.loss.outputs();
  const Network network(architecture, hyper, options);
  Parameters weights = network.initialise(1), given = source.parameters;
  const auto makes_filter = [&](const std::string& name) {
    return std::ranges::any_of(target.replaced, [&](const std::string& part) {
      return part.ends_with('.') ? name.find(part) != std::string::npos : ends(name, part);
    });
  };
  const auto plain = [](const Shape& shape) {
    Shape kept;
    std::ranges::copy_if(shape, std::back_inserter(kept), [](std::int64_t n) { return n != 1; });
    return kept;
  };
  for (const Parameters::Entry& entry : given.entries()) {
    if (makes_filter(entry.name) && !ends(entry.name, "/filter_fn.bias")) continue;
    std::string name = entry.name;
    for (const auto& [theirs, own] : target.names)
      if (const std::size_t at = name.find(theirs); at != std::string::npos) name.replace(at, theirs.size(), own);
    Parameters::Entry* same = weights.find(name);
    if (same && makes_filter(name) && same->shape != entry.shape) continue;
    if (!same || plain(same->shape) != plain(entry.shape))
      return target.id + " has no parameter " + entry.name + " of shape " + to_string(entry.shape);
    same->values = entry.values;
  }
  for (const Parameters::Entry& entry : weights.entries()) {
    if (makes_filter(entry.name)) continue;
    const bool there = std::ranges::any_of(given.entries(), [&](const Parameters::Entry& own) {
      std::string name = own.name;
      for (const auto& [theirs, its] : target.names)
        if (const std::size_t at = name.find(theirs); at != std::string::npos) name.replace(at, theirs.size(), its);
      return name == entry.name;
    });
    if (!there) return target.id + " has a parameter " + entry.name + " that it has not";
  }
  if (!target.put(weights, layers, modes)) return target.id + " has other filters";
  found.weights = std::move(weights);
  const Preset& own = request.model.preset;
  preset.architecture = target.id;
  preset.task = own.task;
  preset.task_length = own.task_length;
  preset.task_seed = own.task_seed;
  preset.task_set = own.task_set;
  return {};
}

/// The model itself with modes in the place of its filters, where its architecture has a row for that. Returns why not; nothing where it is
/// done.
std::string put_in_place(const Registry& registry, const Prepared& source, const DistilRequest& request, Distillation& found) {
  const Preset& own = request.model.preset;
  const Architecture& architecture = registry.find(own.architecture);
  if (!source.hyper.has("filter_modes")) return own.architecture + " has no filter_modes";
  if (source.hyper.integer("filter_modes")) return own.architecture + " has its filters as modes";
  const auto layers = by_layer(found.filters);
  std::int64_t modes = 1;
  for (const auto& [layer, filters] : layers) modes = std::max(modes, stored({filters.back()}));
  Hyper hyper = source.hyper;
  hyper.set("filter_modes", modes, own.architecture);
  try {
    if (architecture.check) architecture.check(hyper);
  } catch (const Error& error) {
    return error.what();
  }
  NetworkOptions options;
  options.input = request.model.sequence->width;
  options.head = source.loss.outputs();
  const Network network(architecture, hyper, options);
  Parameters weights = network.initialise(1), given = source.parameters;
  for (Parameters::Entry& entry : weights.entries())
    if (const Parameters::Entry* same = given.find(entry.name)) entry.values = same->values;
  std::size_t written = 0;
  for (const auto& [layer, filters] : layers) {
    // The long filter comes after the short ones that stay; a layer that runs back shares the parameters of the one that runs forward, or
    // has its own beside them.
    const LayerModes made = modes_of({filters.back()}, modes);
    const bool back = network.layers()[static_cast<std::size_t>(layer)].reversed && !weights.find(std::to_string(layer) + "/modes.poles");
    const std::string at = std::to_string(back ? layer - 1 : layer) + "/modes", apart = at + "_backward.";
    const std::string name = back && weights.find(apart + "poles") ? apart : at + ".";
    Parameters::Entry *poles = weights.find(name + "poles"), *residues = weights.find(name + "residues"),
                      *direct = weights.find(name + "direct");
    if (!poles || poles->values.size() != made.poles.size()) return own.architecture + " has other filters than filter_modes makes";
    poles->values = made.poles;
    residues->values = made.residues;
    direct->values = made.direct;
    written += back && name == at + "." ? 0 : 1;
  }
  if (written != static_cast<std::size_t>(std::ranges::count_if(weights.entries(), [](const Parameters::Entry& entry) {
        return ends(entry.name, ".poles") && entry.name.find("/modes") != std::string::npos;
      })))
    return own.architecture + " has a filter that no layer's modes are of";
  found.weights = std::move(weights);
  Preset& preset = found.preset;
  preset.hyper.clear();
  for (const HyperSpec& spec : architecture.hyper)
    if (!spec.initialisation_only) preset.hyper.emplace_back(spec.key, hyper.value(spec.key));
  preset.architecture = own.architecture;
  preset.task = own.task;
  preset.task_length = own.task_length;
  preset.task_seed = own.task_seed;
  preset.task_set = own.task_set;
  return {};
}

/// The first filter as a model of its own, which shows its impulse response.
void put_filter(const Registry& registry, Distillation& found) {
  const DistilledFilter& first = found.filters.front();
  const std::map<int, std::vector<const DistilledFilter*>> layers{{0, {&first}}};
  const std::int64_t modes = stored(layers.at(0));
  Preset& preset = found.preset;
  preset.architecture = modal;
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
  preset.family = registry.find(preset.architecture).family;
  preset.title = found.title + (found.whole ? ", " : ", its filter alone, ") + plural(found.used, "mode");
  const std::string asked =
      found.used < found.modes ? " (" + std::to_string(found.modes) + " were asked for, and no filter has more than these)" : "";
  const std::string as = plural(found.used, "exponential") + " a channel" + asked + ", fitted over " + plural(found.taps, "step");
  preset.idea = (found.whole ? "This is " + found.title + " with each of its long filters as a sum of " + as +
                                   ". Look at the spectrum, which is the poles of all channels. "
                             : "This is the first long filter of " + found.title + ", as a sum of " + as +
                                   ". Look at the spectrum, which is the poles of all channels, and at the output, which after an impulse "
                                   "is the filter itself. ") +
                "It breaks where the fit does: in the worst channel " + percent(last.l2) +
                " of the filter is lost, and after these steps it goes on as the modes do.";
  preset.look_at = {"spectrum", "timing"};
  preset.source = registry.find(preset.architecture).source;
  preset.descends_from = {{found.id, "its long filters as sums of exponentials"}};
}

}  // namespace

std::vector<std::int64_t> mode_counts(std::int64_t modes) {
  std::vector<std::int64_t> counts;
  for (std::int64_t n = 1; n < modes; n = n < 4 ? n + 1 : (n & (n - 1)) == 0 ? n + n / 2 : n / 3 * 4) counts.push_back(n);
  counts.push_back(modes);
  return counts;
}

Distillation distil(const Registry& registry, const DistilRequest& request, const Progress& progress, std::stop_token stop) {
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
      HankelFactors& own = filter.spectra.back().taps;
      own.vectors.clear();  // of thousands of channels they would be gigabytes
      filter.spectra.back().ending.vectors.clear();
    }
  for (const DistilledFilter& filter : found.filters)
    for (const auto& fits : filter.fits) found.used = std::max(found.used, fits.back().filter.order());
  for (const ModalArchitecture& target : modal_architectures()) {
    const std::string missing = put_whole(registry, target, prepared, request, found);
    found.whole = missing.empty();
    if (found.whole) break;
    found.why_not += (found.why_not.empty() ? "" : "; ") + missing;
  }
  bool in_place = false;  // the short filters of a layer stay unchanged
  if (!found.whole) {
    const std::string missing = put_in_place(registry, prepared, request, found);
    found.whole = in_place = missing.empty();
    found.why_not += (missing.empty() ? "" : "; ") + missing;
  }
  for (const auto& [layer, filters] : by_layer(found.filters))
    for (const DistilledFilter* filter : filters)
      if (!in_place || filter == filters.back()) count(found, *filter);
  if (found.whole)
    found.why_not.clear();
  else
    put_filter(registry, found);
  describe(registry, found);
  return found;
}

}  // namespace reclab
