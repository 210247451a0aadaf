// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QToolBar>
#include <string>
#include <vector>

class QComboBox;

namespace reclab {

struct Setup;
class WindowFrame;

/// The tool bar: run and stop, the device, form and precision of the next run, the layout, and the actions that features offer.
class RunBar : public QToolBar {
  Q_OBJECT
 public:
  explicit RunBar(WindowFrame* frame);
  QComboBox* layouts() const { return layout_; }
  void setNoCuda(const QString& why);
  void showSetup(const Setup& setup);
  void setForms(const std::vector<std::string>& forms);  ///< those that the model has
  void fit(bool calm, bool narrow);

 private:
  WindowFrame* frame_;
  QComboBox *device_, *form_, *precision_, *layout_;
  std::vector<QAction*> calmHides_;   ///< hidden by a calm layout
  std::vector<QAction*> fieldWords_;  ///< before the boxes; not shown where the window is narrow
};

}  // namespace reclab
