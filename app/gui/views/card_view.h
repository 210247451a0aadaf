// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTextBrowser>
#include <QTimer>

#include "gui/session/setup.h"
#include "plot/theme.h"

namespace reclab {

/// The card of a model: idea, equations, parameters, states, gates, and source.
class CardView : public QTextBrowser {
  Q_OBJECT
 public:
  explicit CardView(QWidget* parent = nullptr);
  void setModel(const ModelPtr& model);
  /// Names the run that the card speaks of, a sentence, where another one is shown; else empty.
  void setOtherRun(const QString& sentence);
  void redraw();  ///< after the theme changed

 signals:
  void lookWanted(QString place);  ///< "gating:forget", from a link
  void modelWanted(QString id);    ///< one that it descends from, or that descends from it

 private:
  ModelPtr model_;
  QString otherRun_;
  QTimer soon_;  ///< shapes follow a moving slider when it rests
};

/// The card as HTML in the colours of the palette. `places`: the places that its preset names, "gating:forget", as links to
/// look:gating:forget. `extras`: the model's properties, in words, its origins and its descendants, each as HTML.
struct CardExtras {
  QString properties;
  QStringList lineage;
  std::vector<Claim> claims = {};  ///< numbers behind the idea's words
  QString otherRun = {};           ///< not empty: its sentences about a run are muted, with this below them
};
QString cardHtml(const Card& card, const QPalette& palette, const std::vector<std::string>& places = {}, const CardExtras& extras = {});
/// The card of a model as it is set, its kin as links to model:lstm.
QString cardHtml(const ModelDescription& model, const QPalette& palette, const QString& otherRun = {});
/// "Gating (forget)" for "gating:forget".
QString placeInWords(const std::string& place);

}  // namespace reclab
