// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/streams/stream_feature.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDir>
#include <QMessageBox>
#include <QPushButton>
#include <utility>

#include "gui/dialogs/file_dialogs.h"
#include "gui/docks/flat_dock.h"
#include "gui/frame/lab.h"
#include "gui/frame/window_frame.h"
#include "gui/session/files.h"
#include "gui/session/pins.h"
#include "gui/streams/kept_streams.h"
#include "gui/streams/stream_curves.h"
#include "gui/streams/stream_settings.h"
#include "gui/streams/stream_view.h"
#include "window_text.h"

namespace reclab {
namespace {

constexpr int numbersEvery = 100;  ///< ms

}  // namespace

StreamFeature::StreamFeature(WindowFrame* frame)
    : QObject(frame), frame_(frame), session_(frame->session()), view_(new StreamView(frame->chooser(), frame->window())) {
  dock_ = frame_->addDock("dock.stream", tr("Stream"), view_, Qt::RightDockWidgetArea, 260);
  dock_->setProperty("apart", true);
  dock_->hide();
  buildActions();
  soon_.setSingleShot(true);
  soon_.setInterval(numbersEvery);
  connect(&soon_, &QTimer::timeout, this, &StreamFeature::tell);
  connect(view_, &StreamView::startWanted, this, [this] { session_->startStream(view_->settings()->choice()); });
  connect(view_, &StreamView::pauseWanted, this,
          [this] { session_->streams() ? session_->pauseStream() : session_->goOnWithStream(view_->settings()->choice().pace); });
  connect(view_, &StreamView::stopWanted, session_, &SessionController::endStream);
  connect(view_, &StreamView::exportWanted, this, &StreamFeature::exportStream);
  connect(view_, &StreamView::keptWanted, this, &StreamFeature::showKept);
  connect(view_, &StreamView::copyWanted, this, [this] {
    QApplication::clipboard()->setText(view_->command());
    frame_->say(tr("The command line of the stream is in the clipboard."));
  });
  connect(view_->settings(), &StreamSettings::changed, this, [this] {
    session_->setStreamPace(view_->settings()->choice().pace);
    tellCommand();
  });
  connect(session_, &SessionController::streamChanged, this, [this] {
    if (std::exchange(running_, session_->streams()) != session_->streams() || !running_) {
      soon_.stop();
      tell();
    } else if (!soon_.isActive()) {
      soon_.start();
    }
  });
  connect(session_, &SessionController::setupChanged, this, [this] {
    if (!session_->streams()) tell();
  });
  session_->setChangeBy([this](const QString& text, const std::function<void()>& does) { frame_->lab()->change(text, does); });
  const auto curve = QStringLiteral("curve");
  frame_->lab()->add({"stream", tr("choices of the stream"),
                      [this, curve] {
                        QVariantMap saved = view_->settings()->saved();
                        saved[curve] = view_->curves()->choice()->currentIndex();
                        return saved;
                      },
                      [this, curve](const QVariantMap& saved) {
                        view_->settings()->restore(saved);
                        view_->curves()->choice()->setCurrentIndex(saved.value(curve).toInt());
                      }});
}

void StreamFeature::buildActions() {
  QAction* shows = frame_->add("stream", "right", tr("Stream"), {}, [this] {
    dock_->setVisible(dock_->isHidden());
    if (!dock_->isHidden()) dock_->raise();
  });
  shows->setToolTip(tr("A sequence without an end: the model learns from each step as it comes, and all panels show the last ones"));
  QAction* exports = frame_->add("exportStream", {}, tr("Export the stream…"), {}, [this] { exportStream(); });
  exports->setToolTip(tr("Errors, weights, the last steps, and what it takes to go on with reclab stream --resume"));
  exports->setEnabled(false);
  WindowFrame::setWhyNot(exports, tr("There is no stream yet."));
  QAction* kept = frame_->add("keptStreams", "restore", tr("Kept streams…"), {}, [this] { showKept(); });
  kept->setToolTip(tr("The places where streams were left: look at one again, or remove it"));
  frame_->offer(ActionPlace::runTrain, shows);
  frame_->offer(ActionPlace::runTrain, kept);
  frame_->offer(ActionPlace::fileExport, exports);
}

void StreamFeature::tell() {
  const Streaming now = session_->streaming();
  QString title;
  if (session_->library() && !now.of.empty()) title = QString::fromStdString(session_->library()->presets.find(now.of).title);
  view_->show(now, title);
  frame_->action("exportStream")->setEnabled(!now.folder.isEmpty());
  tellCommand();
}

/// While it runs, that of the stream; else that of the one that Start would begin.
void StreamFeature::tellCommand() { view_->setCommand(session_->streamCommand(view_->settings()->choice())); }

void StreamFeature::exportStream() {
  const QString folder = frame_->chooser()->folder(frame_->window(), tr("Export the stream into a folder"),
                                                   folderNameOf(session_->streaming().of, QStringLiteral("stream")));
  if (folder.isEmpty()) return;
  try {
    if (holds_stream(folder.toStdString()) &&
        !mayReplace(frame_->window(), tr("Export the stream"), tr("A stream is in %1 already.").arg(QDir::toNativeSeparators(folder))))
      return;
    session_->exportStream(folder);
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
  }
}

void StreamFeature::showKept() {
  if (!session_->library()) return;
  if (!kept_) {
    kept_ = new KeptStreams(session_->library(), frame_->window());
    kept_->setAttribute(Qt::WA_DeleteOnClose);
    connect(kept_, &KeptStreams::lookWanted, this, [this](const QString& folder) {
      session_->lookAtPlace(folder);
      listKept();
    });
    connect(kept_, &KeptStreams::removeWanted, this, &StreamFeature::removeKept);
  }
  listKept();
  static_cast<QDialog*>(kept_)->show();
  kept_->raise();
  kept_->activateWindow();
}

void StreamFeature::listKept() {
  QStringList inUse = session_->placesInUse();
  for (const Pin& pin : frame_->pins()->pins()) inUse << placesOf(pin.setup);
  kept_->show(keptPlaces(), inUse);
}

void StreamFeature::removeKept(const QStringList& folders) {
  QMessageBox question(QMessageBox::Warning, tr("Remove kept streams"),
                       folders.size() == 1 ? tr("What the stream had learned when it was left there is gone then.")
                                           : tr("What the streams had learned at these %1 places is gone then.").arg(folders.size()),
                       QMessageBox::NoButton, kept_);
  question.setTextFormat(Qt::PlainText);
  question.setInformativeText(tr("Undo does not come back to it, and sessions that have it are without it."));
  const auto* removes = question.addButton(tr("Remove"), QMessageBox::DestructiveRole);
  question.setDefaultButton(question.addButton(tr("Cancel"), QMessageBox::RejectRole));
  question.exec();
  if (question.clickedButton() != removes) return;
  try {
    for (const QString& folder : folders) removePlace(folder);
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
  }
  listKept();
  tell();
}

bool StreamFeature::mayClose(bool asks) {
  const QString why = session_->keepStream();
  if (why.isEmpty() || !asks) return true;
  QMessageBox question(QMessageBox::Warning, tr("What was learned cannot be kept"), why, QMessageBox::NoButton, frame_->window());
  question.setTextFormat(Qt::PlainText);
  question.setInformativeText(tr("What the stream learned since it was last kept would be gone. It can be exported into another folder."));
  auto* exports = question.addButton(tr("Export the stream…"), QMessageBox::AcceptRole);
  auto* closes = question.addButton(tr("Close without it"), QMessageBox::DestructiveRole);
  question.setDefaultButton(question.addButton(tr("Cancel"), QMessageBox::RejectRole));
  question.exec();
  if (question.clickedButton() == exports) exportStream();
  return question.clickedButton() == closes;
}

}  // namespace reclab
