// SPDX-License-Identifier: GPL-3.0-or-later
// Sessions in the window: opened, saved and shared from the menu of files, named in its title with whether they have changes; and the state
// of the lab kept every few seconds for the start after a crash.
#pragma once

#include <QElapsedTimer>
#include <QJsonObject>
#include <QObject>
#include <QTimer>
#include <optional>

#include "gui/frame/lab_state.h"
#include "gui/jobs/job.h"
#include "gui/sessions/recovery.h"
#include "gui/sessions/session_work.h"

class QMenu;

namespace reclab {

class Banner;
class SessionController;
class WindowFrame;

class SessionsFeature : public QObject {
  Q_OBJECT
 public:
  explicit SessionsFeature(WindowFrame* frame);

  /// Opens a session in place of what is open, after a question where that has changes that are nowhere else; sessionOpened follows, or
  /// refused after a sentence.
  void open(const QString& file);
  const QString& file() const { return file_; }                        ///< of the session that is open; empty: none
  bool isChanged() const { return !file_.isEmpty() && hasChanges(); }  ///< since it was opened or saved
  bool isBusy() const { return saves_.running() || saves_.waiting() || opens_.running() || opens_.waiting(); }

  /// The session that is open, for the next start, and back.
  QJsonObject kept() const;
  void adopt(const QJsonObject& kept);
  /// Offers what was open in a process that is gone, until it is answered.
  void offerLeft();
  /// The banner with that offer.
  Banner* leftBanner() const { return banner_; }

  /// Asks about changes of the session, as the window is about to close; without `asks` nothing is asked. False where it is to stay open.
  bool mayClose(bool asks);
  void close();  ///< the window closes: nothing is to be recovered
  /// Sets how long after a change by a hand what is open is kept (3 s), and keeps it now.
  void setPatience(int milliseconds);
  void keepNow();

 signals:
  void sessionOpened();
  void refused();
  void sessionSaved(QString file);
  void recoverable(QString file);  ///< a generation was written

 private:
  struct SaveKey {
    QString file;
    int steps = 0;       ///< of undo, when it was asked for
    bool sends = false;  ///< a copy for somebody else, and not the session that is open
    std::map<std::uint64_t, std::int64_t> learned;
  };
  struct OpenKey {
    QString file, beside;
    Origin origin = Origin::any;
  };
  void buildActions();
  QMenu* recentMenu();
  QMenu* shareMenu();
  void saveAs();
  void save(const QString& file, bool sends = false);
  void sendFolder();
  void copyLink();
  LabSnapshot snapshot() const;
  SessionPlan plan(const QString& file) const;
  void start(const OpenKey& key);
  void take(const OpenKey& key, const OpenedSession& opened);
  void take(const SaveKey& key, const SavedSession& saved);
  void setSession(const QString& file, const QJsonObject& document, bool changed);
  void tellTitle();
  void keepSoon();
  void offer();
  void openLeft();
  void refuse(const QString& why);
  std::map<std::uint64_t, std::int64_t> learned() const;  ///< steps of each training
  /// Asks whether changes are saved, and saves them. False where the person changed her mind, or they cannot be saved.
  bool mayLeave(const QString& then);
  QString changes() const;  ///< in words
  void finishSaving();
  void sayUnkept(const QString& why);
  bool hasChanges() const;  ///< that would be gone with the state that is open

  WindowFrame* frame_;
  SessionController* session_;
  Banner* banner_;
  QString file_;
  QJsonObject document_;                           ///< as it was read or written last
  bool changedBefore_ = false;                     ///< since an earlier start
  std::map<std::uint64_t, std::int64_t> learned_;  ///< as the session has them
  bool saveFailed_ = false;
  Recovery recovery_;
  std::optional<Recovery::Left> left_;   ///< that is offered, or is being opened
  qsizetype tried_ = 0;                  ///< generations of it
  bool opened_ = false;                  ///< it, and no generation was written since
  QString standsFor_;                    ///< the generation after which it is needed no more
  std::optional<LabState> recoverable_;  ///< as it was kept last
  QTimer soon_;
  QElapsedTimer writing_;
  int patience_ = 3000, interval_ = 0;
  QString problem_;  ///< of keeping it, said once
  Job<SaveKey, SavedSession> saves_;
  Job<OpenKey, OpenedSession> opens_;
  Job<QString, SavedSession> keeps_;
};

/// Sessions that were opened or saved, the last first; at most eight.
QStringList recentSessions();

}  // namespace reclab
