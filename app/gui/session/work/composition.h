// SPDX-License-Identifier: GPL-3.0-or-later
// The model that the composer puts together, and a small run of it beside that which is shown.
#pragma once

#include "gui/jobs/job.h"
#include "gui/session/setup.h"
#include "request.h"
#include "trace/composition.h"

namespace reclab {

class CompositionWork : public QObject {
  Q_OBJECT
 public:
  explicit CompositionWork(Desk& desk);

  void setLibrary(const LibraryPtr& library);
  /// Of the newest choice something comes, or why not; before there is a library, when it is there.
  void choose(const CompositionChoice& choice);

 signals:
  void composed(std::shared_ptr<const reclab::Composition> composition, QString problem);

 private:
  void start();
  LibraryPtr library_;
  std::optional<CompositionChoice> wanted_;
  Job<CompositionChoice, CompositionPtr> job_;
};

}  // namespace reclab
