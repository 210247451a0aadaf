// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPointer>
#include <QSet>
#include <optional>

#include "gui/docks/panel_area.h"

namespace reclab {

class WindowFrame;

/// Shows, in the panels, the places that the preset names.
class LookAt : public QObject {
  Q_OBJECT
 public:
  explicit LookAt(WindowFrame* frame);
  void open(const QString& place);

 private:
  void tell(const QString& preset, bool raise);

  WindowFrame* frame_;
  QString told_;          ///< the preset whose places the panels were told last
  QSet<QString> raised_;  ///< presets whose first place was raised: once is enough, afterwards the tabs are as they were left
  struct Raised {
    QString preset;
    QPointer<PanelDock> dock, before;  ///< the panel raised for it, and the one in front before
  };
  std::optional<Raised> leaves_;  ///< the next preset has `before` in front again, where nobody has picked another tab
};

}  // namespace reclab
