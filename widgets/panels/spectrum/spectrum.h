// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDoubleSpinBox>
#include <QLabel>
#include <QSlider>
#include <complex>
#include <span>

#include "panels/described.h"
#include "panels/spectrum/flow_view.h"
#include "panels/spectrum/trail.h"
#include "plot/plot_panel.h"

namespace reclab {

class SpectrumPicture;

/// Eigenvalues in the complex plane, against the unit circle; those of the cursor's step over a cloud of all steps. Where they come from
/// continuous time, a second view has them in the half-plane, and their places in the disk by each rule.
class SpectrumPanel : public Described<SpectrumPanel, PlotPanel> {
  Q_OBJECT
 public:
  explicit SpectrumPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    return {.id = QStringLiteral("spectrum"),
            .title = tr("Spectrum"),
            .hint = tr("The eigenvalues that carry the state from one step to the next: inside the circle a mode fades, on it it stays, "
                       "outside it grows. The cloud is every computed step."),
            .needs = {Kind::spectrum, Kind::flow},
            .places = {.views = {"continuous"}, .named = {}}};
  }
  void setPinned(const std::vector<Run>& runs) override;
  void holdAxes(bool hold) override { held_ = hold; }
  QString dataAsCsv() const override;
  /// The text of the tooltip at a position of the plot: the eigenvalue that is near enough, or empty.
  QString tipAt(const QPointF& position) const;
  QCPAxisRect* rect() const { return rect_; }
  QAction* lockAction() const { return lock_; }
  /// The place of an eigenvalue, in the plot's pixels.
  QPointF pixelOf(std::complex<double> eigenvalue) const;
  QString note() const { return note_->text(); }
  const SpectrumTrail& trail() const { return trail_; }
  const FlowView& flow() const { return *flow_; }
  QCPAxisRect* planeRect() const { return plane_; }

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override;
  void moveTime() override;
  QString makeHeadline() const override;
  QString subject() const override;
  void dropChoice(const QString& preset) override { by_hand_.remove(preset); }

 private:
  friend class SpectrumPicture;
  std::span<const std::complex<double>> rowAt(const Trace& trace, std::int64_t step, std::int64_t* at = nullptr) const;
  void choose(int index);
  bool fromContinuous() const { return flow_->shown(); }
  void makeFlowControls();
  void chooseView();
  void showFlow();
  void setFlowRect(bool shown);
  double reachOfMostRows();
  void findHome();
  void keepRound();
  void writeNote();
  void showPins();

  CursorText* note_;
  std::vector<SpectrumPicture*> pictures_;  ///< one for each that has a spectrum
  QCPAxisRect* rect_;
  SpectrumPicture* cloud_;
  SpectrumPicture* now_;
  QComboBox* layers_;
  QComboBox* view_;
  QWidget* flow_controls_;
  QSlider* step_slider_;  ///< hundredths of a power of ten of the sequence's step
  QLabel* step_label_;
  QDoubleSpinBox* share_;  ///< of the generalised rule
  QCPLayoutGrid* grid_;
  QCPAxisRect* plane_;  ///< the half-plane
  FlowView* flow_;
  QHash<QString, bool> by_hand_;       ///< by preset: whether the view from continuous time was picked
  const TraceArray* array_ = nullptr;  // of trace_, the layer that is shown
  /// The array whose rows are the cloud: array_, or, while that has the cursor's step alone, the same layer's of the run before.
  const TraceArray* cloudArray_ = nullptr;
  SpectrumInfo info_;
  SpectrumTrail trail_;
  QString layer_ = QStringLiteral("0");
  QCPRange home_re_, home_im_;  // a range with all eigenvalues but those that are far from all others
  QCPRange kept_re_, kept_im_;  // the ranges that keepRound() set
  bool imposed_ = false;        // they were changed since by somebody else, and not by a hand, which locks them
  bool continuous_ = false;     // it was the disk of a flow
  std::int64_t far_rows_ = 0;   // the rows that have such
  double far_reach_ = 0.0;      // the largest |λ| of all
  bool was_flow_ = false, held_ = false;
  QAction* lock_;  ///< checked: the axes stay as they are, as after a zoom
};

}  // namespace reclab
