// SPDX-License-Identifier: GPL-3.0-or-later
// Changes by a person to the setup, in the inspector, by a panel or with a file: each is one step of undo.
#pragma once

#include <QObject>
#include <optional>

#include "gui/session/session_controller.h"

namespace reclab {

class InspectorView;
class WindowFrame;

class Changes : public QObject {
  Q_OBJECT
 public:
  Changes(WindowFrame* frame, InspectorView* inspector);

 signals:
  void unchanged();  ///< the setup has the wanted value already

 private:
  void takeSequence(const LoadedSequencePtr& loaded);
  void takeFile(FileKind kind, const QString& preset, const QString& file);
  void openModel(const ModelChoice& model);
  void showTrained(bool trained);
  void editSetting(const QString& key, const QString& text, bool live, int gesture);
  void showWith(const Setup& setup, const SequenceChoice& sequence, const QString& text);

  WindowFrame* frame_;
  SessionController* session_;
  struct Awaited {
    SequenceChoice sequence;
    Setup setup;
    QString text;
  };
  std::optional<Awaited> withSequence_;  ///< the setup to be looked at on a sequence that is being loaded
};

}  // namespace reclab
