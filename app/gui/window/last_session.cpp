// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/last_session.h"

#include <QDir>
#include <QFileInfo>
#include <QJsonDocument>
#include <QMessageBox>
#include <QSettings>
#include <QStandardPaths>
#include <utility>

#include "gui/frame/lab.h"
#include "gui/frame/lab_json.h"
#include "gui/frame/window_frame.h"
#include "gui/session/files.h"
#include "gui/session/sentences.h"
#include "gui/sessions/restoring.h"
#include "gui/sessions/sessions_feature.h"
#include "gui/views/status_line.h"
#include "window_text.h"

namespace reclab {

LastSession::LastSession(WindowFrame* frame, SessionsFeature* sessions, Options options, std::optional<Setup> first)
    : QObject(frame),
      frame_(frame),
      session_(frame->session()),
      sessions_(sessions),
      options_(std::move(options)),
      first_(std::move(first)) {
  QFile kept(file());
  if (kept.open(QIODevice::ReadOnly)) written_ = QJsonDocument::fromJson(kept.readAll()).object();
  if (const int version = written_["version"].toInt(); kept.exists() && version != labVersion) {
    written_ = {};
    const QString aside = QStringLiteral("%1.%2").arg(file()).arg(version);  // of a newer program, or damaged: it is left to be read
    QFile::remove(aside);                                                    // else renaming fails, and closing replaces the newer one
    kept.rename(aside);
  }
  connect(session_, &SessionController::sequenceRefused, this, &LastSession::beginAnew);
  connect(session_, &SessionController::runEnded, this, &LastSession::end);
}

QString LastSession::file() { return QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + "/lab.json"; }

void LastSession::open() {
  const bool unasked = !options_.named() && options_.session.isEmpty() && !first_;
  restores_ = unasked && !written_.isEmpty();
  const bool refused = restores_ && !beginRestoring(file());
  if (refused) {
    restores_ = false;
    const QString aside = file() + ".not-restored";  // closing writes another one
    QFile::remove(aside);
    QFile::rename(file(), aside);
    sayLater(twiceEnded(aside));
  }
  session_->open(unasked && !refused);
}

void LastSession::begin() {
  sessions_->adopt({});
  sessions_->offerLeft();
  if (!options_.problem.isEmpty()) sayLater(std::exchange(options_.problem, {}));
  if (!options_.session.isEmpty()) return sessions_->open(options_.session);
  try {
    const Library& library = *session_->library();
    if (const auto unlearned = restores_ ? frame_->lab()->restoreRuns(written_) : std::nullopt) {
      restored_ = true;
      sessions_->adopt(written_["session"].toObject());
      if (!unlearned->isEmpty())
        sayLater(tr("Weights that were learned are there no more, of: %1. These runs are untrained now, with weights drawn from the seed.")
                     .arg(unlearned->join(QStringLiteral(", "))));
      return;
    }
    beginRestoring(QStringLiteral("start"));  // who starts it sees when it has had its first pictures
    const Setup setup = first_ ? *first_ : beginning(options_, library);
    session_->apply(setup, false);
    if (!options_.model.isEmpty()) emit frame_->modelPicked(QString::fromStdString(setup.preset));
    if (!setup.sequence) session_->loadSequence(beginningSequence(options_, library));
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
  }
}

void LastSession::sayLater(const QString& sentence) {
  connect(
      session_, &SessionController::runEnded, this, [this, sentence] { frame_->say(sentence, Tone::warning); }, Qt::SingleShotConnection);
}

void LastSession::beginWithout() {
  if (session_->setup().sequence || options_.session.isEmpty()) return;
  options_.session.clear();
  sayLater(frame_->banner()->sentence());
  begin();
}

void LastSession::beginAnew() {
  // The files of the last session may be gone; then the window begins as it does the first time.
  if (session_->setup().sequence || !std::exchange(restored_, false)) return;
  connect(
      session_, &SessionController::runEnded, this, [this, why = frame_->banner()->sentence()] { frame_->banner()->show(why); },
      Qt::SingleShotConnection);
  session_->apply(beginning(options_, *session_->library()), false);
  session_->loadSequence(beginningSequence(options_, *session_->library()));
}

/// Of a window that has looked at nothing yet the file stays as it is.
QString LastSession::keep() const {
  if (!session_->setup().sequence) return {};
  QDir().mkpath(QFileInfo(file()).path());  // the write itself reports the reason
  QJsonObject lab = frame_->lab()->written();
  if (const QJsonObject session = sessions_->kept(); !session.isEmpty()) lab["session"] = session;
  const QString why = writeText(file(), QString::fromUtf8(QJsonDocument(lab).toJson()));
  if (why.isEmpty()) session_->keepNoOtherWeights();
  return why;
}

bool LastSession::mayClose(bool asks) const {
  const QString why = keep();
  if (why.isEmpty() || !asks) return true;
  QMessageBox question(QMessageBox::Warning, tr("What is open cannot be kept"), why, QMessageBox::NoButton, frame_->window());
  question.setTextFormat(Qt::PlainText);
  question.setInformativeText(tr("The next start would have the models, pinned runs and panels of the start before."));
  const auto* closes = question.addButton(tr("Close without it"), QMessageBox::DestructiveRole);
  question.setDefaultButton(question.addButton(tr("Cancel"), QMessageBox::RejectRole));
  question.exec();
  return question.clickedButton() == closes;
}

/// The restored state survived the first pictures: its marks are removed.
void LastSession::end() {
  QSettings settings;
  if (!settings.contains("window/restoring")) return;
  settings.remove("window/restoring");
  settings.sync();
}

}  // namespace reclab
