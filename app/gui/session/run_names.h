// SPDX-License-Identifier: GPL-3.0-or-later
// The differences of runs, and the shortest names that distinguish them: pure functions of their RunInfo.
#pragma once

#include <QString>
#include <QStringList>
#include <functional>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace reclab {

/// One thing that may differ between runs, in the order in which it is taken for a name.
struct Facet {
  QString key;           ///< "model", "hyper/spectral_radius", "seed"
  QString words;         ///< "spectral radius ρ": in a table
  QString value;         ///< "0.7"
  QString name;          ///< "ρ = 0.7": in a legend
  bool departs = false;  ///< a setting that is not the preset's
};
using Facets = std::vector<Facet>;

/// The paper's symbol of a hyper-parameter, or empty.
using SymbolOf = std::function<std::string(const std::string& key)>;
/// The value that a run's preset has for a hyper-parameter, as text; empty: not known.
using StandardOf = std::function<std::string(const std::string& key)>;
Facets facetsOf(const RunInfo& run, const SymbolOf& symbolOf = {}, const StandardOf& standardOf = {});

/// A name for each of `runs`: the fewest of its facets that tell it from `shown` and from the others, its model before hyper-parameters
/// before all else, and of as many the shortest text. A run in which nothing differs from the one that is shown has the name of its model.
/// To that come its settings that depart from its preset, where `shown` has not the same value: an LSTM beside other models is "LSTM,
/// forget bias -4".
QStringList runNames(const Facets& shown, const std::vector<Facets>& runs);

/// A table of the differences between the columns, one line a facet, as rich text. A column of no facets is left empty.
QString differenceTable(const QStringList& titles, const std::vector<Facets>& columns, const std::vector<double>& losses);

}  // namespace reclab
