// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QSlider>
#include <QSpinBox>
#include <QStackedWidget>
#include <map>
#include <optional>

#include "panel.h"
#include "panels/composer/factors_view.h"
#include "panels/composer/tiles.h"
#include "panels/described.h"

namespace reclab {

/// A model is put together from rows of tiles; at once there are its code, its equation, the named model that it is or is nearest to, its
/// exact forms and their cost, the factors of its memory and the share that it keeps of each token. It can be opened as a model.
class ComposerPanel : public Described<ComposerPanel, Panel> {
  Q_OBJECT
 public:
  explicit ComposerPanel(QWidget* parent = nullptr);
  static PanelAbout describe() {
    // It needs nothing of a run but which model it is of.
    return {.id = QStringLiteral("composer"),
            .title = tr("Composer"),
            .hint = tr("Put a linear-complexity model together from its four parts; see at once its equation, the named model nearest to "
                       "it, its exact forms, and what it keeps of each token. “Open as a model” runs it everywhere."),
            .needs = {Kind::input}};
  }
  bool isOfRun() const override { return false; }
  QString fileModel(const QString& model) const override;
  void setTrace(std::shared_ptr<const Trace> trace) override;
  void setTime(std::int64_t) override {}  // the small run has tokens of its own
  void setComposition(CompositionPtr composition, const QString& problem);
  void setResult(const std::string& study, const StudyResult& result, const QString& problem) override;
  QString headline() const override;
  QString emptyReason() const override;
  FigureDrawing drawing(const FigureStyle& style) override;
  QString dataAsCsv() const override;
  QVariantMap choices() const override;
  void setChoices(const QVariantMap& saved) override;

  const CompositionPtr& composition() const { return composition_; }
  TileRow* row(const QString& key) const;
  FactorsView* factors() const { return factors_; }
  QString words() const;  ///< the text on the model, as rich text
  QString verdict() const;
  /// Why no code says the model that runs, a sentence; empty where one does, or where it is no model of the composer.
  QString runWithoutCode() const { return without_code_; }

 protected:
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  using Settings = Composition::Settings;
  void ask(const Settings& settings);
  Settings chosen() const;
  std::optional<Settings> settingsOfRun() const;  ///< of the run that is shown, where it is one of these models
  QString whyNoCode() const;                      ///< where it has the settings of none
  bool setAside() const { return !without_code_.isEmpty() && !composes_; }
  const Composition* shown() const { return setAside() ? nullptr : composition_.get(); }
  bool follow();  ///< takes over the code of a run that is newly shown
  void makeRows();
  void showComposition();
  void showRun();
  void showEmpty();
  void numberEdited(double value);
  void open();
  void openNamed(const QString& preset);
  static constexpr std::size_t beside_each_other = 2;  ///< rows of no more tiles share a line
  static constexpr int slider_positions = 1000;
  void makeWidgets();
  void arrange();
  int widthOfTiles(int width) const;
  int placeTiles(int width);
  int place(int width, int height);
  QString figureTitle() const;

  std::shared_ptr<const Trace> trace_;
  CompositionPtr composition_;
  QString problem_, without_code_;
  bool composes_ = false;  ///< by hand, though no code says the model that runs
  /// The settings of the request under way, those that were restored, and those of the last run that was one of these models.
  std::optional<Settings> asked_, kept_, ran_;
  std::map<std::string, TileRow*> tiles_;
  QStackedWidget* pages_;
  QLabel *sentence_, *code_, *verdict_, *words_, *number_name_;
  QPushButton *open_, *compose_;
  QGridLayout* top_;
  QScrollArea* scroll_;
  QWidget *page_, *number_fields_, *token_fields_;
  QSlider* number_slider_;
  QDoubleSpinBox* number_box_;
  QSpinBox* token_;
  FactorsView* factors_;
};

}  // namespace reclab
