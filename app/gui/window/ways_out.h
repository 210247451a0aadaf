// SPDX-License-Identifier: GPL-3.0-or-later
// Sentences on errors, above the time line, with buttons for their remedies.
#pragma once

#include <QObject>

#include "gui/session/session_controller.h"

namespace reclab {

class Banner;
class WindowFrame;

class WaysOut : public QObject {
  Q_OBJECT
 public:
  explicit WaysOut(WindowFrame* frame);

 private:
  void show(const QString& sentence, Tone tone);
  void offerSizes(const QString& preset, const QString& file, const Settings& sizes);
  void offerParts(const QString& preset, const QString& file, const QStringList& parts);
  void offerOtherWeights();  ///< beside the sentence that those of the setup do not fit
  void offerAfterStop();
  void offerMissing(const SequenceChoice& choice,
                    const QStringList& cures);  ///< treatments of the missing cells of a file that was refused

  WindowFrame* frame_;
  SessionController* session_;
  Banner* banner_;
  bool misfit_ = false;  ///< the last run failed since its weights are others
};

}  // namespace reclab
