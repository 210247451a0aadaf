// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/sweep_runner.h"

#include <QCoreApplication>
#include <QFileInfo>
#include <QStandardPaths>
#include <QThread>
#include <algorithm>

namespace reclab {
namespace {

constexpr int pausedStatus = 75;           // of reclab: to be tried again
constexpr int secondsForCheckpoints = 30;  // of the largest trainings

}  // namespace

SweepRunner::SweepRunner(QObject* parent) : QObject(parent) {
  process_.setProcessChannelMode(QProcess::SeparateChannels);
  process_.setStandardOutputFile(QProcess::nullDevice());
  connect(&process_, &QProcess::finished, this, &SweepRunner::finished);
  connect(&process_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
    if (error != QProcess::FailedToStart) return;  // of the others finished() tells
    emit changed();
    emit ended(tr("%1 cannot be started: %2.").arg(process_.program(), process_.errorString()));
  });
}

SweepRunner::~SweepRunner() {
  process_.disconnect(this);
  if (!running()) return;
  process_.terminate();
  if (!process_.waitForFinished(secondsForCheckpoints * 1000)) process_.kill();
  process_.waitForFinished();
}

QString SweepRunner::program() {
  const QFileInfo beside(QCoreApplication::applicationDirPath() + "/reclab");
  return beside.isExecutable() ? beside.absoluteFilePath() : QStandardPaths::findExecutable("reclab");
}

int SweepRunner::processors() { return std::max(1, QThread::idealThreadCount()); }

void SweepRunner::run(const QString& folder, int jobs) {
  if (running()) return;
  folder_ = folder;
  pausing_ = false;
  const QString reclab = program();
  if (reclab.isEmpty()) {
    emit ended(tr("The program reclab is not beside this one and not on the path; install it, or compute the cells elsewhere."));
    return;
  }
  process_.start(reclab, {"sweep", "run", folder, "--jobs", QString::number(jobs)}, QIODevice::ReadOnly);
  emit changed();
}

void SweepRunner::pause() {
  if (!running() || pausing_) return;
  pausing_ = true;
  process_.terminate();
  emit changed();
}

void SweepRunner::finished(int code, QProcess::ExitStatus status) {
  const QStringList said = QString::fromUtf8(process_.readAllStandardError()).split('\n', Qt::SkipEmptyParts);
  QString sentence;
  if (status == QProcess::CrashExit)
    sentence = tr("reclab ended unexpectedly; what was done stays, Run goes on.");
  else if (code != 0 && !(pausing_ && code == pausedStatus))
    sentence = said.isEmpty() ? tr("reclab ended with status %1.").arg(code) : said.back();
  pausing_ = false;
  emit changed();
  emit ended(sentence);
}

}  // namespace reclab
