// SPDX-License-Identifier: GPL-3.0-or-later
// Runs once more with everything recorded, and writes it: all that are asked for, one after the other.
#pragma once

#include "gui/jobs/job.h"
#include "gui/session/sentences.h"
#include "gui/session/setup.h"

namespace reclab {

struct ExportKey {
  QString folder;
  bool csv = false;
  bool operator==(const ExportKey&) const = default;
};

class ExportWork : public QObject {
  Q_OBJECT
 public:
  explicit ExportWork(Scheduler& scheduler);
  void start(const QString& folder, bool csv, const LibraryPtr& library, const Setup& setup);
  void stop() { job_.stop(); }
  bool running() const { return job_.running(); }

 signals:
  void progressed(double fraction, QString stage);
  void exported(QString folder);
  void said(QString sentence, reclab::Tone tone);

 private:
  void end(const ExportKey& key, const Ending& ending);
  struct Nothing {};
  Job<ExportKey, Nothing> job_;
};

}  // namespace reclab
