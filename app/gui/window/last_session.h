// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QObject>
#include <optional>

#include "gui/start/options.h"

namespace reclab {

class SessionController;
class SessionsFeature;
class WindowFrame;

/// The state of the lab when the window was closed, and again when it is opened, unless the command line says otherwise.
class LastSession : public QObject {
  Q_OBJECT
 public:
  /// `first`: the setup to begin with, when it is loaded already.
  LastSession(WindowFrame* frame, SessionsFeature* sessions, Options options, std::optional<Setup> first);
  static QString file();
  const QJsonObject& written() const { return written_; }  ///< empty where there is none
  bool restores() const { return restores_; }              ///< its runs, too, once open() was called
  void open();                                             ///< the library; begin() is for when it is ready
  void begin();
  void beginWithout();  ///< as the first time, where the session of the command line cannot be opened
  /// Keeps the state of the lab, as the window is about to close. False where it is to stay open; without `asks` nothing is asked.
  bool mayClose(bool asks) const;
  void end();  ///< the restored layout has had its first pictures, or the window closes

 private:
  QString keep() const;                    ///< a sentence where that cannot be
  void beginAnew();                        ///< as the first time, where the last setup cannot be had any more
  void sayLater(const QString& sentence);  ///< when the first run has ended, whose sentence hides another

  WindowFrame* frame_;
  SessionController* session_;
  SessionsFeature* sessions_;
  Options options_;
  std::optional<Setup> first_;
  QJsonObject written_;
  bool restores_ = false, restored_ = false;
};

}  // namespace reclab
