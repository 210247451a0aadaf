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
#include "gui/views/status_line.h"
#include "window_text.h"

namespace reclab {

LastSession::LastSession(WindowFrame* frame, Options options, std::optional<Setup> first)
    : QObject(frame), frame_(frame), session_(frame->session()), options_(std::move(options)), first_(std::move(first)) {
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

void LastSession::open() { session_->open(!options_.named() && !first_ && !QSettings().contains("session/restoring")); }

void LastSession::begin() {
  try {
    const Library& library = *session_->library();
    QSettings settings;
    // Where the note is still there, the last start ended while it restored this.
    const bool restores = !options_.named() && !first_ && !settings.contains("session/restoring");
    settings.setValue("session/restoring", true);
    settings.sync();
    if (const auto unlearned = restores ? frame_->lab()->restoreRuns(written_) : std::nullopt) {
      restored_ = true;
      return sayUnlearned(*unlearned);
    }
    const Setup setup = first_ ? *first_ : beginning(options_, library);
    session_->apply(setup, false);
    if (!options_.model.isEmpty()) emit frame_->modelPicked(QString::fromStdString(setup.preset));
    if (!setup.sequence) session_->loadSequence(beginningSequence(options_, library));
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
  }
}

void LastSession::sayUnlearned(const QStringList& runs) {
  if (runs.isEmpty()) return;
  connect(
      session_, &SessionController::runEnded, this,
      [this, runs] {
        frame_->say(
            tr("Weights that were learned are there no more, of: %1. These runs are untrained now, with weights drawn from the seed.")
                .arg(runs.join(QStringLiteral(", "))),
            Tone::warning);
      },
      Qt::SingleShotConnection);
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
  const QString why = writeText(file(), QString::fromUtf8(QJsonDocument(frame_->lab()->written()).toJson()));
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
  if (!settings.contains("window/restoring") && !settings.contains("session/restoring")) return;
  settings.remove("window/restoring");
  settings.remove("session/restoring");
  settings.sync();
}

}  // namespace reclab
