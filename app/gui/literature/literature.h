// SPDX-License-Identifier: GPL-3.0-or-later
// The models as a literature: their descent, years, families and properties.
#pragma once

#include <QPalette>
#include <QString>
#include <QStringList>
#include <map>
#include <memory>
#include <vector>

#include "gui/session/setup.h"

namespace reclab {

struct Literature {
  /// A model that is named as the origin of another and is no preset here.
  struct Absent {
    QString id, changed;
  };
  struct Model {
    QString id, title, authors, paper;
    int year = 0, family = 0;  ///< family: a place in `families`
    QStringList properties;    ///< "linear", "time-invariant"; empty while they are not known
    QString text;              ///< the text that searches look in
    std::vector<Absent> absent;
  };
  struct Link {
    int parent, child;  ///< places in `models`
    QString changed;
  };
  struct Family {
    QString section, title;
  };
  std::vector<Model> models;  ///< by year, then family, then title
  std::vector<Link> links;
  std::vector<Family> families;  ///< those that have models, in the order of the survey

  int indexOf(const QString& id) const;      ///< -1: there is none
  QString named(const QString& text) const;  ///< the id of the model whose title or id this is, in any case; else empty
  QString firstOf(
      const QString& query) const;  ///< of those that a search finds the one of that name, else the first; empty where there is none
  /// The models that it descends from, in any number of steps, each with that number; itself with 0.
  std::map<int, int> ancestors(int model) const;
  std::map<int, int> descendants(int model) const;
  /// The relation of two models, in a sentence; empty where they are not related.
  QString relation(int one, int other) const;
};
using LiteraturePtr = std::shared_ptr<const Literature>;

Literature literatureOf(const PresetLibrary& library, const PropertiesOf& properties);

/// A search: words that are all to be there, among them is:linear and not:gated for properties.
class ModelQuery {
 public:
  explicit ModelQuery(const QString& text = {});
  bool isEmpty() const { return words_.isEmpty() && is_.isEmpty() && isNot_.isEmpty(); }
  bool fits(const Literature::Model& model) const;

 private:
  QStringList words_, is_, isNot_;
};
/// The text of a search with a property as a word in it, "is:linear", or without it.
QString withProperty(const QString& text, const QString& word, bool wanted);
bool asksFor(const QString& text, const QString& word);

/// The tooltip of a model: authors, year, family, properties, its changes to its origins, and its descendants.
QString tellOf(const Literature& literature, int model, const QPalette& palette);
/// The tooltip of a link.
QString tellOf(const Literature& literature, const Literature::Link& link);

}  // namespace reclab
