// SPDX-License-Identifier: GPL-3.0-or-later
// The list of panels: adding one is a folder's worth of files and a line here.
#include "panel.h"

#include <memory>
#include <type_traits>

#include "panels/gating/gating.h"
#include "panels/gradients/gradients.h"
#include "panels/spectrum/spectrum.h"
#include "panels/steps/steps_panel.h"
#include "panels/timing/timing.h"
#include "panels/trajectories/trajectories.h"

namespace reclab {

namespace {
/// A panel says of itself what the list needs; the one that is asked is not shown, and gets no OpenGL if it can do without.
template <class P>
PanelInfo info() {
  const auto make_probe = [] {
    if constexpr (std::is_constructible_v<P, QWidget*, bool>)
      return std::make_unique<P>(nullptr, false);
    else
      return std::make_unique<P>();
  };
  const auto asked = make_probe();
  const Panel& probe = *asked;
  return {probe.id(), probe.title(), probe.hint(), [](QWidget* parent) -> Panel* { return new P(parent); }};
}
}  // namespace

const std::vector<PanelInfo>& panels() {
  static const std::vector<PanelInfo> list = {
      info<SpectrumPanel>(), info<TrajectoriesPanel>(), info<GatingPanel>(), info<GradientsPanel>(), info<TimingPanel>(), info<StepsPanel>(),
  };
  return list;
}

}  // namespace reclab
