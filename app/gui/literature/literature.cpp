// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/literature/literature.h"

#include <QObject>
#include <algorithm>
#include <set>
#include <tuple>

#include "models/families.h"
#include "plot/theme.h"

namespace reclab {
namespace {

std::map<int, int> reachedFrom(const Literature& literature, int model, bool back) {
  std::map<int, int> found{{model, 0}};
  for (std::vector<int> waiting{model}; !waiting.empty();) {
    const int here = waiting.front();
    waiting.erase(waiting.begin());
    for (const auto& [parent, child, changed] : literature.links) {
      const int from = back ? child : parent, to = back ? parent : child;
      if (from == here && found.try_emplace(to, found[here] + 1).second) waiting.push_back(to);
    }
  }
  return found;
}

bool hasProperty(const Literature::Model& model, const QString& word) {
  return std::any_of(model.properties.begin(), model.properties.end(),
                     [&](const QString& one) { return one.startsWith(word, Qt::CaseInsensitive); });
}

QString inBold(const QString& text) { return "<b>" + text.toHtmlEscaped() + "</b>"; }

}  // namespace

int Literature::indexOf(const QString& id) const {
  const auto found = std::find_if(models.begin(), models.end(), [&](const Model& model) { return model.id == id; });
  return found == models.end() ? -1 : static_cast<int>(found - models.begin());
}

std::map<int, int> Literature::ancestors(int model) const { return reachedFrom(*this, model, true); }
std::map<int, int> Literature::descendants(int model) const { return reachedFrom(*this, model, false); }

QString Literature::relation(int one, int other) const {
  const auto& a = models[static_cast<std::size_t>(one)];
  const auto& b = models[static_cast<std::size_t>(other)];
  for (const Link& link : links) {
    if (link.parent == one && link.child == other) return QObject::tr("%1 descends from %2: %3.").arg(b.title, a.title, link.changed);
    if (link.parent == other && link.child == one) return QObject::tr("%1 descends from %2: %3.").arg(a.title, b.title, link.changed);
  }
  const auto ofOne = ancestors(one), ofOther = ancestors(other);
  if (const auto found = ofOther.find(one); found != ofOther.end())
    return QObject::tr("%1 descends from %2, in %3 steps.").arg(b.title, a.title).arg(found->second);
  if (const auto found = ofOne.find(other); found != ofOne.end())
    return QObject::tr("%1 descends from %2, in %3 steps.").arg(a.title, b.title).arg(found->second);
  int nearest = -1, steps = 0;
  for (const auto& [model, distance] : ofOne)
    if (const auto found = ofOther.find(model); found != ofOther.end() && (nearest < 0 || distance + found->second < steps)) {
      nearest = model;
      steps = distance + found->second;
    }
  return nearest < 0 ? QString() : QObject::tr("Both descend from %1.").arg(models[static_cast<std::size_t>(nearest)].title);
}

QString Literature::named(const QString& text) const {
  const QString name = text.simplified();
  for (const bool title : {true, false})
    for (const Model& model : models)
      if (name.compare(title ? model.title : model.id, Qt::CaseInsensitive) == 0) return model.id;
  return {};
}

QString Literature::firstOf(const QString& query) const {
  if (const QString id = named(query); !id.isEmpty()) return id;
  const ModelQuery asked(query);
  const auto found = asked.isEmpty() ? models.end() : std::ranges::find_if(models, [&](const Model& model) { return asked.fits(model); });
  return found == models.end() ? QString() : found->id;
}

Literature literatureOf(const PresetLibrary& library, const PropertiesOf& properties) {
  Literature made;
  std::vector<const Preset*> presets;
  std::set<std::pair<std::size_t, std::string>> families;
  for (const Preset& preset : library.presets()) {
    presets.push_back(&preset);
    families.emplace(family_place(preset.family), preset.family);
  }
  std::map<std::string, int> places;
  for (const auto& [place, id] : families) {
    places[id] = static_cast<int>(made.families.size());
    const bool known = place < reclab::families().size();
    const auto text = [](std::string_view one) { return QString::fromUtf8(one.data(), static_cast<qsizetype>(one.size())); };
    made.families.push_back({known ? text(reclab::families()[place].section) : QString(),
                             known ? text(reclab::families()[place].title) : QString::fromStdString(family_heading(id))});
  }
  std::sort(presets.begin(), presets.end(), [&](const Preset* a, const Preset* b) {
    return std::tuple(a->source.year, places[a->family], a->title, a->id) < std::tuple(b->source.year, places[b->family], b->title, b->id);
  });
  for (const Preset* preset : presets) {
    Literature::Model model;
    model.id = QString::fromStdString(preset->id);
    model.title = QString::fromStdString(preset->title);
    model.authors = QString::fromStdString(preset->source.authors);
    model.paper = QString::fromStdString(preset->source.title);
    model.year = preset->source.year;
    model.family = places[preset->family];
    if (const auto found = properties.find(preset->id); found != properties.end())
      for (const std::string& word : words_of(found->second)) model.properties << QString::fromStdString(word);
    const Literature::Family& family = made.families[static_cast<std::size_t>(model.family)];
    model.text = QStringList{model.id,
                             model.title,
                             QString::fromStdString(preset->family),
                             family.section,
                             family.title,
                             QString::fromStdString(preset->architecture),
                             model.authors,
                             QString::number(model.year)}
                     .join(' ');
    made.models.push_back(std::move(model));
  }
  for (std::size_t i = 0; i < presets.size(); ++i)
    for (const Descent& descent : presets[i]->descends_from) {
      const QString id = QString::fromStdString(descent.id), changed = QString::fromStdString(descent.changed);
      const int parent = made.indexOf(id);
      if (parent < 0)
        made.models[i].absent.push_back({id, changed});
      else
        made.links.push_back({parent, static_cast<int>(i), changed});
    }
  return made;
}

ModelQuery::ModelQuery(const QString& text) {
  for (const QString& word : text.split(' ', Qt::SkipEmptyParts)) {
    if (word.startsWith("is:", Qt::CaseInsensitive))
      is_ << word.mid(3);
    else if (word.startsWith("not:", Qt::CaseInsensitive))
      isNot_ << word.mid(4);
    else
      words_ << word;
  }
}

bool ModelQuery::fits(const Literature::Model& model) const {
  const auto has = [&](const QString& word) { return hasProperty(model, word); };
  return std::all_of(words_.begin(), words_.end(),
                     [&](const QString& word) { return model.text.contains(word, Qt::CaseInsensitive) || has(word); }) &&
         std::all_of(is_.begin(), is_.end(), has) &&
         std::none_of(isNot_.begin(), isNot_.end(), [&](const QString& word) { return !word.isEmpty() && has(word); });
}

QString withProperty(const QString& text, const QString& word, bool wanted) {
  QStringList words = text.split(' ', Qt::SkipEmptyParts);
  words.removeAll("is:" + word);
  words.removeAll("not:" + word);
  if (wanted) words << "is:" + word;
  return words.join(' ');
}

bool asksFor(const QString& text, const QString& word) { return text.split(' ', Qt::SkipEmptyParts).contains("is:" + word); }

QString tellOf(const Literature& literature, int index, const QPalette& palette) {
  const Literature::Model& model = literature.models[static_cast<std::size_t>(index)];
  const Literature::Family& family = literature.families[static_cast<std::size_t>(model.family)];
  const QString grey =
      mixed(palette.color(QPalette::ToolTipText), palette.color(QPalette::ToolTipBase), 0.7).name();  // a tooltip stands on its own ground
  const auto muted = [&](const QString& text) { return QString("<span style='color:%1'>%2</span>").arg(grey, text); };
  QString out = "<p style='margin:0'>" + inBold(model.title) + " " +
                muted(model.authors.toHtmlEscaped() + ", " + QString::number(model.year)) + "</p>";
  out += "<p style='margin:0'>" +
         muted((family.section.isEmpty() ? family.title
                                         : QObject::tr("%1 (section %2 of Tiezzi et al., 2024)").arg(family.title, family.section))
                   .toHtmlEscaped()) +
         (model.properties.isEmpty() ? QString() : muted(" · " + model.properties.join(", "))) + "</p>";
  QStringList lines, children;
  for (const Literature::Link& link : literature.links) {
    if (link.child == index)
      lines << QObject::tr("from %1: %2")
                   .arg(inBold(literature.models[static_cast<std::size_t>(link.parent)].title), link.changed.toHtmlEscaped());
    if (link.parent == index) children << literature.models[static_cast<std::size_t>(link.child)].title.toHtmlEscaped();
  }
  for (const Literature::Absent& absent : model.absent)
    lines << QObject::tr("from %1: %2").arg(muted(absent.id.toHtmlEscaped()), absent.changed.toHtmlEscaped());
  if (!children.isEmpty()) lines << QObject::tr("led to %1").arg(children.join(", "));
  for (const QString& line : lines) out += "<p style='margin-top:4px; margin-bottom:0'>" + line + "</p>";
  return out;
}

QString tellOf(const Literature& literature, const Literature::Link& link) {
  const auto& parent = literature.models[static_cast<std::size_t>(link.parent)];
  const auto& child = literature.models[static_cast<std::size_t>(link.child)];
  return "<p style='margin:0'>" + inBold(parent.title) + QString::fromUtf8(" → ") + inBold(child.title) + "</p><p style='margin:0'>" +
         link.changed.toHtmlEscaped() + "</p>";
}

}  // namespace reclab
