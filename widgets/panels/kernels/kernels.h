// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMap>
#include <optional>

#include "panels/described.h"
#include "panels/kernels/kernel_data.h"
#include "plot/parts/layout.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"

namespace reclab {

/// The convolution kernel of a time-invariant memory over lag, of a channel or of all as a map, and its frequency response.
class KernelsPanel : public Described<KernelsPanel, PlotPanel> {
  Q_OBJECT
 public:
  explicit KernelsPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    return {.id = QStringLiteral("kernels"),
            .title = tr("Kernels"),
            .hint = tr("What a memory that is the same at every step returns after an impulse, how long it remembers, and which "
                       "frequencies it passes."),
            .needs = {Kind::kernel, Kind::response, Kind::time_constant},
            .places = {{QStringLiteral("kernel"), QStringLiteral("response"), QStringLiteral("map")}, tr("a state"), QStringLiteral("h")}};
  }
  void lookAt(const QString& preset, const QString& detail, bool asked) override;
  QString dataAsCsv() const override;
  QVariantMap choices() const override { return {{QStringLiteral("view"), left_ ? left_->view : view_}}; }
  void setChoices(const QVariantMap& saved) override;

  QString note() const { return note_->text(); }
  QCPAxisRect* kernelRect() const { return kernel_rect_; }
  QCPAxisRect* gainRect() const { return gain_rect_; }
  QCPAxisRect* phaseRect() const { return phase_rect_; }
  QCPAxisRect* mapRect() const { return map_.rect; }
  Heatmap* heatmap() const { return map_.heatmap; }
  QString tipAt(const QPointF& position) const;

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override { memory_ = {}, frequencies_ = {}; }
  QString makeHeadline() const override;
  QString subject() const override;
  void dropChoice(const QString& preset) override { by_hand_.remove(preset); }

 private:
  void makeControls();
  void makeRects();
  QString memoryLabel(const QString& key) const;
  void findChoice();
  void arrange();
  void draw();
  void drawKernels(const KernelMemory& memory, std::int64_t channel, const QColor& ink, double width, QList<QCPLayerable*>& shown);
  void drawResponses(const KernelMemory& memory, std::span<const double> frequencies, std::int64_t channel, const QColor& ink, double width,
                     bool quiet, QList<QCPLayerable*>& shown);
  void drawMap();
  void drawPins();
  void fit();
  void writeNote();
  QString spanOf(double steps) const;
  QString describedFrequency(double cycles) const;
  QString saidOf(std::int64_t lag, std::int64_t channel) const;
  void pickChannel(std::int64_t channel);

  QComboBox *views_, *memories_, *channels_;
  QCPLayoutGrid* pictures_;
  QCPAxisRect *kernel_rect_, *gain_rect_, *phase_rect_;
  MapPicture map_;
  ValueAxis *kernel_values_, *gain_values_, *phase_values_;
  StraightLine* constant_;  // the time constant, in the kernel
  Paragraph* note_;
  KernelMemory memory_;  // of trace_, the one shown
  std::span<const double> frequencies_;
  std::optional<StepTime> time_;
  QString view_ = QStringLiteral("kernel"), key_;
  std::int64_t channel_ = 0;
  struct Left {
    QString view, key;
  };
  std::optional<Left> left_;                      // the view before a preset named a place of its own
  QMap<QString, QStringList> by_hand_;            // by preset: the view and the memory that were chosen
  QMap<QString, std::int64_t> channels_by_hand_;  // by preset
};

}  // namespace reclab
