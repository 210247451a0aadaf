// SPDX-License-Identifier: GPL-3.0-or-later
// Panels laid out like shown ones on no screen, for figures that are drawn without a window.
#pragma once

#include <memory>
#include <vector>

#include "gui/session/session_controller.h"
#include "panel.h"

namespace reclab {

/// A run, computed, and its panels. It outlives neither the library nor the application.
class DrawnPanels {
 public:
  /// The panels in their own order, with the step in the middle of the time; `beside`: runs that are pinned. Throws Error.
  DrawnPanels(const Library& library, const Setup& setup, const QStringList& ids, const std::vector<Setup>& beside = {});
  std::vector<Panel*> panels() const;
  const TracePtr& trace() const { return trace_; }

 private:
  RunRequest request_;
  TracePtr trace_;
  std::vector<std::unique_ptr<Panel>> panels_;
};

}  // namespace reclab
