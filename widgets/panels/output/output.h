// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLineEdit>

#include "panels/described.h"
#include "panels/output/output_data.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"

namespace reclab {

/// The outputs of the run over time, beside the target and the best constant: some channels in colour, all others in grey behind them; for
/// classes the probabilities or the logits.
class OutputPanel : public Described<OutputPanel, PlotPanel> {
  Q_OBJECT
 public:
  explicit OutputPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    return {.id = QStringLiteral("output"),
            .title = tr("Output"),
            .hint = tr("What the model returns at every step, beside the target where the sequence brings one, and beside the best "
                       "constant, which needs no memory at all."),
            .needs = {Kind::output, Kind::target, Kind::mask},
            .places = {.views = {}, .named = tr("an output"), .example = "0"}};
  }
  void setPinned(const std::vector<Run>& runs) override;
  QVariantMap choices() const override;
  void setChoices(const QVariantMap& saved) override;
  QString dataAsCsv() const override;

  const std::vector<std::int64_t>& chosen() const { return chosen_; }  ///< the channels in colour
  QString verdict() const { return sentence_->text(); }
  QString note() const { return note_->text(); }
  QCPAxisRect* rect() const { return rect_; }
  QString tipAt(const QPointF& position) const;

 protected:
  QString whyEmpty() const override;
  void rebuild() override;
  void forget() override { data_ = {}; }
  QString makeHeadline() const override;
  QString subject() const override;
  void dropChoice(const QString& preset) override { by_hand_.remove(preset); }

 private:
  bool probabilities() const { return data_.classes() && scale_->currentIndex() == 0; }
  double shown(const OutputData& of, std::int64_t row, std::int64_t channel) const;
  std::optional<double> wanted(std::int64_t row, std::int64_t channel) const;
  void choose();
  QString judged() const;
  QString noted() const;
  static constexpr std::size_t most_in_colour = 7;  ///< as many as one tells apart
  void drawOthers();
  void drawPins();
  void drawChosen();
  void drawTarget(std::int64_t channel, const QColor& ink, QList<QCPLayerable*>& shown);
  void fitValues();

  Paragraph* sentence_;
  QCPAxisRect* rect_;
  ValueAxis* values_;
  Paragraph* note_;
  QComboBox* scale_;
  QLineEdit* which_;
  OutputData data_;  // of trace_
  std::optional<OutputScore> score_;
  std::vector<std::int64_t> chosen_;
  QStringList unknown_;              ///< names asked for that are no outputs
  QHash<QString, QString> by_hand_;  ///< typed texts, by preset
  std::vector<OutputData> pins_;     ///< of the runs with a trace, in their order
};

}  // namespace reclab
