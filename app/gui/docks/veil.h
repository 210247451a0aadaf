// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

namespace reclab {

/// Lies over a picture that is not of the present setup: dims it and names its own. The mouse goes through it.
class Veil : public QWidget {
  Q_OBJECT
 public:
  explicit Veil(QWidget* over);
  void cover(const QString& name);  ///< empty: lifts it
  /// Hides the picture, whatever it is of, and has these words in its place; empty: no more.
  void withhold(const QString& words);
  const QString& name() const { return name_; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void place();

  QString name_, words_;
};

}  // namespace reclab
