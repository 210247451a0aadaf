// SPDX-License-Identifier: GPL-3.0-or-later
// Distillation: the long filters of a model as sums of a few exponentials, and the model that has these in their place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "distillation/filters.h"
#include "distillation/modal_fit.h"

namespace reclab {

struct DistilRequest {
  RunRequest model;         ///< the model with its weights and hyper-parameters; the rest of the request does not count
  std::int64_t modes = 16;  ///< a channel, both of a conjugate pair counted
  std::int64_t taps = 0;    ///< that filters are fitted over; 0: 1024, or as many steps as the preset's sequence has where that is more
};

/// The fits of all filters with so many modes, each figure that of the channel where it is largest.
struct ModesRow {
  std::int64_t modes = 0;
  double l2 = 0.0;       ///< √Σ e² relative to √Σ h², e the difference of the taps h
  double largest = 0.0;  ///< max |e| relative to max |h|
  double hankel = 0.0;   ///< the Hankel norm of e relative to that of h
  double below = 0.0;    ///< σ_{n+1}/σ_1, which `hankel` is at least in every channel: no n modes come nearer
  double above = 0.0;  ///< 2 Σ_{k>n} σ_k over √Σ h², a bound on the error of balanced truncation of the filter that ends with its last tap,
                       ///< and with it `l2`, unless poles meet
};

struct DistilledFilter {
  LongFilter filter;
  std::vector<FilterSpectrum> spectra;      ///< one a channel
  std::vector<std::vector<ModalFit>> fits;  ///< [channel][row]
};

struct Distillation {
  std::string id, title;  ///< of the preset
  std::int64_t modes = 0, taps = 0;
  std::int64_t used = 0;                ///< modes of the channel that takes most: fewer than were asked for where no filter has as many
  std::vector<ModesRow> rows;           ///< the number of modes rises to the one asked for
  std::vector<double> singular_values;  ///< σ_k/σ_1, the largest of all channels for each k
  std::vector<DistilledFilter> filters;
  /// The model that has the fits of the last row: the whole model where an architecture with modes, laughing-hyena or s4d, shares all of it
  /// but its filters, or where its own has the row filter_modes; else its first filter alone.
  Preset preset;
  Parameters weights;
  bool whole = false;
  std::string why_not;  ///< where it is not the whole model: the parts that each of these architectures lacks
};

/// 1, 2, 3, 4, 6, 8, 12, .. up to `modes`, and that.
std::vector<std::int64_t> mode_counts(std::int64_t modes);

/// Throws Error for a model without a long filter.
Distillation distil(const Registry& registry, const DistilRequest& request, const Progress& progress, std::stop_token stop);

/// Tables for a spreadsheet.
std::string to_csv(const std::vector<ModesRow>& rows);
std::string singular_values_csv(const Distillation& found);
/// The name of the weights in its folder: <id of the preset>.npz, so that a folder may have several models.
std::string weights_file(const Distillation& found);
/// Writes <id of the preset>.json, <id>.npz, errors.csv and singular_values.csv into the folder, all at once (AtomicFolder).
void export_distillation(const Distillation& found, const std::filesystem::path& folder);

}  // namespace reclab
