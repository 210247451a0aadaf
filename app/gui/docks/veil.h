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
  const QString& name() const { return name_; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  QString name_;
};

}  // namespace reclab
