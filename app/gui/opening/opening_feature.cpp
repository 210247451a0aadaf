// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/opening/opening_feature.h"

#include <QApplication>
#include <QClipboard>
#include <QCryptographicHash>
#include <QDir>
#include <QDockWidget>
#include <QDropEvent>
#include <QFileInfo>
#include <QLineEdit>
#include <QMimeData>
#include <QStandardPaths>
#include <QUrl>

#include "gui/frame/window_frame.h"
#include "gui/opening/exported.h"
#include "gui/session/files.h"
#include "gui/start/options.h"
#include "gui/views/status_line.h"
#include "window_text.h"

namespace reclab {

OpeningFeature::OpeningFeature(WindowFrame* frame) : QObject(frame), frame_(frame) {
  QAction* paste =
      frame_->add("paste", "table", tr("Paste a table"), QKeySequence::Paste, [this] { take(QApplication::clipboard()->mimeData()); });
  paste->setToolTip(tr("The rows in the clipboard as a sequence, as a file of them would be (Ctrl+V)"));
  connect(frame_->session(), &SessionController::presetOpened, this, &OpeningFeature::showPreset);
  for (auto* dock : frame_->window()->findChildren<QDockWidget*>()) dock->setAcceptDrops(true);
  qApp->installEventFilter(this);
}

void OpeningFeature::take(const QMimeData* data) {
  if (data != nullptr && data->hasUrls()) {
    const QList<QUrl> urls = data->urls();
    if (!urls.front().isLocalFile())
      return frame_->say(tr("%1 is not a file of this computer; save it first, then drop the file.").arg(urls.front().toDisplayString()),
                         Tone::warning);
    emit fileWanted(urls.front().toLocalFile());
    if (urls.size() > 1) frame_->say(tr("One file is looked at at a time: %1.").arg(urls.front().fileName()));
    return;
  }
  const QString text = data != nullptr ? data->text() : QString();
  if (text.trimmed().isEmpty())
    return frame_->say(tr("There is no table: copy some rows of numbers, or a file, then paste or drop them here."), Tone::warning);
  if (const QFileInfo file(text.trimmed()); !text.trimmed().contains('\n') && file.isAbsolute() && file.exists())
    return emit fileWanted(file.absoluteFilePath());
  openTable(text);
}

/// Kept as a file, so that undo and the next start can read it again; the same rows are the same file.
void OpeningFeature::openTable(const QString& text) {
  const QDir folder(QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + "/pasted");
  const QByteArray hash = QCryptographicHash::hash(text.toUtf8(), QCryptographicHash::Sha256).toHex().left(8);
  const QString file = folder.filePath("pasted-" + hash + (text.contains('\t') ? ".tsv" : ".csv"));
  QDir().mkpath(folder.path());  // a failure is told by the file that is written there
  if (const QString why = writeText(file, text); !why.isEmpty()) return frame_->say(why, Tone::warning);
  emit fileWanted(file);
}

bool OpeningFeature::open(const QString& path) {
  const QFileInfo info(path);
  if (info.isDir() || isDescription(path)) {
    openExport(info.isDir() ? path : info.absolutePath());
    return true;
  }
  if (info.suffix().compare("json", Qt::CaseInsensitive) != 0) return false;
  frame_->session()->openPreset(path);
  return true;
}

void OpeningFeature::openExport(const QString& folder) {
  try {
    const Exported exported = exportedIn(folder);
    const Library& library = *frame_->session()->library();
    const Options options = readOptions(QStringList{"recurrence-lab"} + exported.arguments);
    Setup after = beginning(options, library);
    if (!exported.weights.isEmpty()) after.weights[after.preset] = exported.weights.toStdString();
    emit frame_->runWanted(after, beginningSequence(options, library), tr("run of %1").arg(QFileInfo(folder).fileName()));
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
  }
}

/// It is among the models as long as the window is open, and from then on where the user keeps it.
void OpeningFeature::showPreset(const QString& id, const QString& file) {
  frame_->pickModel(id);
  const QString own = QStandardPaths::writableLocation(QStandardPaths::GenericDataLocation) + "/recurrence-lab/presets";
  if (QFileInfo(file).absolutePath().startsWith(QDir(own).absolutePath())) return;
  frame_->say(tr("%1 is among the models until this window is closed.").arg(QFileInfo(file).fileName()), Tone::warning);
  frame_->banner()->offer(tr("Keep it"), [this, file, own] {
    frame_->banner()->hide();
    const QString to = QDir(own).filePath(QFileInfo(file).fileName());
    QFile from(file);
    const bool read = from.open(QIODevice::ReadOnly);
    const QString why = QFileInfo::exists(to) ? tr("%1 is there already; rename the file.").arg(QDir::toNativeSeparators(to))
                        : !read || !QDir().mkpath(own)
                            ? tr("%1 cannot be kept: %2.").arg(file, read ? QDir::toNativeSeparators(own) : from.errorString())
                            : writeText(to, QString::fromUtf8(from.readAll()));
    frame_->say(why.isEmpty() ? tr("It is in %1.").arg(QDir::toNativeSeparators(to)) : why, why.isEmpty() ? Tone::info : Tone::warning);
  });
}

bool OpeningFeature::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() != QEvent::DragEnter && event->type() != QEvent::Drop) return false;
  auto* drop = static_cast<QDropEvent*>(event);
  if (qobject_cast<QDockWidget*>(watched) != nullptr || watched->property("takesFiles").toBool()) {
    drop->acceptProposedAction();
    if (event->type() == QEvent::Drop) take(drop->mimeData());
    return true;
  }
  if (qobject_cast<QLineEdit*>(watched) == nullptr || !drop->mimeData()->hasUrls()) return false;
  event->ignore();  // and goes on to the parents of the field
  return true;
}

}  // namespace reclab
