// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <optional>

#include "gui/start/options.h"

namespace reclab {

class SessionController;
class WindowFrame;

/// What was looked at when the window was closed, and is again when it is opened, unless the command line says otherwise.
class LastSession : public QObject {
  Q_OBJECT
 public:
  /// `first`: what to begin with when it is loaded already.
  LastSession(WindowFrame* frame, Options options, std::optional<Setup> first);
  void open();  ///< the library; begin() is for when it is ready
  void begin();
  void end();  ///< what was restored has stood the first pictures, or the window closes

 private:
  void keep() const;
  void beginAnew();  ///< as the first time, where what was looked at last is gone

  WindowFrame* frame_;
  SessionController* session_;
  Options options_;
  std::optional<Setup> first_;
  bool restored_ = false;
};

}  // namespace reclab
