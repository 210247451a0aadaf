// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/run_names.h"

#include <QFileInfo>
#include <QMap>
#include <QObject>
#include <QSet>
#include <algorithm>
#include <cmath>

#include "plot/parts/learned_text.h"
#include "plot/theme.h"

namespace reclab {
namespace {

QString text(const std::string& from) { return QString::fromStdString(from); }

const Facet* find(const Facets& facets, const QString& key) {
  const auto found = std::find_if(facets.begin(), facets.end(), [&](const Facet& one) { return one.key == key; });
  return found == facets.end() ? nullptr : &*found;
}

/// A hyper-parameter that only one of two models has does not tell them apart: the model does.
bool differ(const Facets& a, const Facets& b, const QString& key) {
  const Facet *one = find(a, key), *other = find(b, key);
  return one != nullptr && other != nullptr && one->value != other->value;
}

/// The facets that tell a run from others, and its departures from its preset, unless the run that is shown has the same value.
QString withDepartures(const Facets& mine, const Facets& shown, const std::vector<const Facet*>& telling) {
  constexpr int most = 3;
  const auto tells = [&](const Facet& one) { return std::ranges::find(telling, &one) != telling.end(); };
  const auto shared = [&](const Facet& one) {
    const Facet* other = find(shown, one.key);
    return other != nullptr && other->value == one.value;
  };
  QStringList words;
  int departures = 0;
  for (const Facet& one : mine) {
    const bool departs = !tells(one) && one.departs && !shared(one);
    if (tells(one) || (departs && ++departures <= most)) words << one.name;
  }
  if (departures > most)
    words << (departures == most + 1 ? QObject::tr("another setting") : QObject::tr("%1 other settings").arg(departures - most));
  return words.join(", ");
}

/// A symbol that stands for itself in plain text: "ρ", "γ", not "b_f" nor "H", which is a width here and heads there.
bool readsAlone(const QString& symbol) {
  return !symbol.isEmpty() && std::all_of(symbol.begin(), symbol.end(), [](QChar c) { return c.unicode() > 127 && c.isLetter(); });
}

}  // namespace

Facets facetsOf(const RunInfo& run, const SymbolOf& symbolOf, const StandardOf& standardOf) {
  Facets facets;
  const QString model = text(run.title.empty() ? run.preset : run.title);
  facets.push_back({"model", QObject::tr("model"), model, model});
  for (const auto& [key, value] : run.hyper) {
    QString words = text(key).replace('_', ' ');
    const QString symbol = symbolOf ? text(symbolOf(key)) : QString();
    const QString shown = value == "true" ? QObject::tr("yes") : value == "false" ? QObject::tr("no") : text(value);
    const QString name = readsAlone(symbol) ? symbol + " = " + shown : words + ' ' + shown;
    if (!symbol.isEmpty()) words += ' ' + symbol;
    // Values of two architectures with a key in common are compared too: a width is a width.
    const std::string standard = standardOf ? standardOf(key) : std::string();
    facets.push_back({"hyper/" + text(key), words, shown, name, !standard.empty() && standard != value});
  }
  const auto file = [](const std::string& path) { return QFileInfo(text(path)).fileName(); };
  if (run.learned && run.learned->from == from_stream)
    facets.push_back({"weights", QObject::tr("weights"), QObject::tr("after %1").arg(stepsLearned(from_stream, run.learned->steps)),
                      QObject::tr("step %1 of the stream").arg(grouped(run.learned->steps))});
  else if (run.learned)
    facets.push_back({"weights", QObject::tr("weights"),
                      QObject::tr("after %1 steps of training %2").arg(grouped(run.learned->steps)).arg(run.learned->training),
                      QObject::tr("step %1 of training %2").arg(grouped(run.learned->steps)).arg(run.learned->training)});
  else
    facets.push_back({"weights", QObject::tr("weights"), run.weights.empty() ? QObject::tr("drawn from the seed") : text(run.weights),
                      run.weights.empty() ? QObject::tr("drawn weights") : file(run.weights)});
  // Where the weights are read from a file, nothing is drawn; a trained model began from drawn weights.
  const QString seed = QString::number(run.seed);
  if (run.weights.empty()) facets.push_back({"seed", QObject::tr("seed"), seed, QObject::tr("seed %1").arg(seed)});
  facets.push_back({"state", QObject::tr("initial state"), run.state.empty() ? QObject::tr("the model's own") : text(run.state),
                    run.state.empty() ? QObject::tr("own start") : QObject::tr("from %1").arg(file(run.state))});
  facets.push_back({"input", QObject::tr("input"), text(run.input_name), text(run.input_name)});
  facets.push_back({"dtype", QObject::tr("precision"), text(run.dtype), text(run.dtype)});
  const QString loss = text(run.loss).section(':', 0, 0);
  facets.push_back({"loss", QObject::tr("loss"), loss, QObject::tr("loss %1").arg(loss)});
  facets.push_back({"device", QObject::tr("device"), text(run.device), text(run.device).toUpper()});
  facets.push_back({"form", QObject::tr("form"), text(run.form), text(run.form)});
  return facets;
}

QStringList runNames(const Facets& shown, const std::vector<Facets>& runs) {
  QStringList names;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Facets& mine = runs[i];
    // For each facet, the other runs that it distinguishes this one from, a bit each.
    std::vector<const Facets*> others;
    const auto alike = [&](const Facets& other) {
      return std::none_of(mine.begin(), mine.end(), [&](const Facet& facet) { return differ(mine, other, facet.key); });
    };
    if (!alike(shown)) others.push_back(&shown);
    // A name without a model is of the model that is shown, and one with a model is of that one: runs of other models are told already.
    for (std::size_t j = 0; j < runs.size(); ++j)
      if (j != i && !differ(mine, runs[j], "model") && !alike(runs[j])) others.push_back(&runs[j]);
    struct Candidate {
      const Facet* facet;
      unsigned tells;
      std::size_t rank;
    };
    std::vector<Candidate> candidates;
    for (std::size_t f = 0; f < mine.size(); ++f) {
      unsigned tells = 0;
      for (std::size_t o = 0; o < others.size(); ++o) {
        const bool model = differ(mine, *others[o], "model");
        if (differ(mine, *others[o], mine[f].key) && (!model || mine[f].key == "model")) tells |= 1U << o;
      }
      const bool hyper = mine[f].key.startsWith("hyper/");
      if (tells != 0) candidates.push_back({&mine[f], tells, mine[f].key == "model" ? 0 : hyper ? 1 : f});
    }
    const unsigned all = (1U << others.size()) - 1U;
    // The fewest facets that tell it from all; of those the ones that come first, then the shortest.
    QString best;
    std::vector<const Facet*> in_best;
    std::size_t best_rank = 0, best_count = 0;
    const auto consider = [&](const std::vector<std::size_t>& chosen) {
      unsigned told = 0;
      for (const std::size_t c : chosen) told |= candidates[c].tells;
      if (told != all) return;
      std::size_t rank = 0;
      QStringList words;
      for (const std::size_t c : chosen) {
        rank = std::max(rank, candidates[c].rank);
        words << candidates[c].facet->name;
      }
      const QString name = words.join(", ");
      const bool better = best.isEmpty() || chosen.size() < best_count ||
                          (chosen.size() == best_count && (rank < best_rank || (rank == best_rank && name.size() < best.size())));
      if (!better) return;
      best = name;
      in_best.clear();
      for (const std::size_t c : chosen) in_best.push_back(candidates[c].facet);
      best_rank = rank;
      best_count = chosen.size();
    };
    if (all != 0) {
      const std::size_t count = candidates.size();
      for (std::size_t a = 0; a < count; ++a) consider({a});
      if (best.isEmpty())
        for (std::size_t a = 0; a < count; ++a)
          for (std::size_t b = a + 1; b < count; ++b) consider({a, b});
      if (best.isEmpty())
        for (std::size_t a = 0; a < count; ++a)
          for (std::size_t b = a + 1; b < count; ++b)
            for (std::size_t c = b + 1; c < count; ++c) consider({a, b, c});
      if (best.isEmpty()) {  // four others can ask for four
        for (std::size_t c = 0; c < std::min<std::size_t>(candidates.size(), 4); ++c) in_best.push_back(candidates[c].facet);
      }
    }
    if (in_best.empty() && !mine.empty()) in_best.push_back(&mine.front());
    names << withDepartures(mine, shown, in_best);
  }
  return names;
}

QString differenceTable(const QStringList& titles, const std::vector<Facets>& columns, const std::vector<double>& losses) {
  QStringList keys;
  QMap<QString, QString> words;
  for (const Facets& facets : columns)
    for (const Facet& one : facets)
      if (!words.contains(one.key)) {
        keys << one.key;
        words[one.key] = one.words;
      }
  const auto cell = [](const QString& value, bool head = false) {
    return QString(head ? "<th align='left' style='padding-right:14px'>%1</th>" : "<td style='padding-right:14px'>%1</td>")
        .arg(value.toHtmlEscaped());
  };
  QString table = "<table cellspacing='0' cellpadding='2'><tr><th></th>";
  for (const QString& title : titles) table += cell(title, true);
  table += "</tr>";
  for (const QString& key : keys) {
    QStringList values;
    for (const Facets& facets : columns) {
      const Facet* found = find(facets, key);
      values << (found != nullptr ? found->value : QString());
    }
    // A column without facets has not run yet.
    QSet<QString> distinct;
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (!columns[i].empty()) distinct.insert(values[static_cast<qsizetype>(i)]);
    if (distinct.size() < 2) continue;
    table += "<tr>" + cell(words[key]);
    for (const QString& value : values) table += cell(value.isEmpty() ? QString("–") : value);
    table += "</tr>";
  }
  table += "<tr>" + cell(QObject::tr("value of the loss"));
  for (const double loss : losses) table += cell(std::isfinite(loss) ? number(loss, 5) : QString("–"));
  return table + "</tr></table>";
}

}  // namespace reclab
