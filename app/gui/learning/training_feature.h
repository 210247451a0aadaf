// SPDX-License-Identifier: GPL-3.0-or-later
// Training in the window: its bar above the time line, its actions, and the questions about trainings when the window closes.
#pragma once

#include <QObject>
#include <cstdint>
#include <vector>

#include "gui/frame/palette_source.h"
#include "trace/learning.h"

namespace reclab {

class SessionController;
class TrainingBar;
class WindowFrame;

class TrainingFeature : public QObject {
  Q_OBJECT
 public:
  explicit TrainingFeature(WindowFrame* frame);
  TrainingBar* bar() const { return bar_; }
  /// Keeps the trainings, as the window is about to close. False where it is to stay open; without `asks` nothing is asked.
  bool mayClose(bool asks);

 private:
  void buildActions();
  std::vector<PaletteEntry> paletteEntries() const;  ///< the options of training
  void show(const LearningPtr& learning);
  void tell();
  void train(std::int64_t steps = 0);  ///< so many; 0: to the end; or pauses a running training
  void fork();
  void reset();
  bool mayExport(const QString& folder);
  bool mayLose(const QString& why);
  bool askAboutOldest();

  WindowFrame* frame_;
  SessionController* session_;
  TrainingBar* bar_;
};

}  // namespace reclab
