// SPDX-License-Identifier: GPL-3.0-or-later
// The search of the palette: which entries a text finds, and which comes first.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

#include "gui/frame/palette_source.h"

namespace reclab {

class PaletteIndex {
 public:
  PaletteIndex() = default;
  /// `lastUsed`: keys of entries, the last first.
  PaletteIndex(std::vector<PaletteEntry> entries, const QStringList& lastUsed);

  struct Match {
    const PaletteEntry* entry;  ///< of this index
    QString value;              ///< of a setting, the value that was typed
    QString whyNot;             ///< why it cannot be set to that, or cannot be done
    int score;
    bool enabled() const { return entry->enabled && whyNot.isEmpty(); }
  };
  /// Best first. Each word of the query is to be in an entry: as a word of its name, the beginning of one, a part of one, letters of it in
  /// their order, or among its synonyms and details. Of those that fit as well the last used come first. An empty query finds all.
  std::vector<Match> find(const QString& query) const;
  const std::vector<PaletteEntry>& entries() const { return entries_; }
  static QString keyOf(const PaletteEntry& entry) { return entry.text + '\n' + entry.detail.section(':', 0, 0); }

 private:
  struct Folded {
    QString text, more;  ///< in small letters without accents, of the same length
    int used;            ///< its place among the last used
    int depth;           ///< of its menu
  };
  std::vector<PaletteEntry> entries_;
  std::vector<Folded> folded_;
};

/// The places of a text's letters that a query finds in it.
QList<int> markedBy(const QString& query, const QString& text);

}  // namespace reclab
