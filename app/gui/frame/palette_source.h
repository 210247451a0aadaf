// SPDX-License-Identifier: GPL-3.0-or-later
// Things that are found and done by their names. A feature offers its own to WindowFrame; the palette shows those of all.
#pragma once

#include <QString>
#include <QStringList>
#include <functional>
#include <optional>
#include <vector>

#include "parameters/hyper.h"

namespace reclab {

/// One thing that is found by its name. All texts are plain.
struct PaletteEntry {
  QString text;           ///< its name
  QString detail = {};    ///< its kind and place: "model, 1997", "View ▸ Theme"
  QString synonyms = {};  ///< further words that it is found by
  QString keys = {};      ///< its shortcut
  bool enabled = true;
  QString whyNot = {};                   ///< why it cannot be done now, a sentence, where that is known
  std::function<void()> show = nullptr;  ///< brings its place into sight before it is done, a change of its own
  std::function<void()> does = nullptr;  ///< none of a setting whose value is typed behind its name
  /// The values of a setting, as they are typed.
  struct Values {
    std::function<QString(const QString& value)> whyNot;  ///< a sentence; empty where the value can be set
    std::function<void(const QString& value)> set;
  };
  std::optional<Values> values = {};
};

struct PaletteSource {
  std::function<std::vector<PaletteEntry>()> entries;  ///< those that there are now
};

/// A value that can be set, by its row in a table.
struct PaletteSetting {
  QString name, of;         ///< "Spectral radius", "Elman network"
  HyperSpec row;            ///< its kind, range and choices
  QString now;              ///< as text
  QStringList labels = {};  ///< of the row's choices, where the window has other words for them
  QString synonyms = {};
  QString whyNot = {};                          ///< why it has no effect now, a sentence
  std::function<void(const QString&)> check{};  ///< throws Error for a value that cannot be
  std::function<void(const QString&)> set{};
};
/// One entry for a number or a text, one for each choice, and for a flag one that turns it.
std::vector<PaletteEntry> entriesOf(const PaletteSetting& setting);

}  // namespace reclab
