// SPDX-License-Identifier: GPL-3.0-or-later
// The look: a light and a dark palette (resources/themes), one sans family, and flat icons that follow the palette.
#pragma once

#include <QColor>
#include <QFont>
#include <QHash>
#include <QIcon>
#include <QLabel>
#include <QObject>
#include <QPalette>
#include <QPushButton>
#include <QTemporaryDir>

class QWidget;

void loadResources();  ///< icons, themes and layouts: those of a static library are not loaded by themselves

namespace reclab {

enum class ThemeChoice { system, light, dark };
QString toString(ThemeChoice choice);
ThemeChoice themeChoice(const QString& text);  ///< "system" for anything unknown

/// The theme of the whole program. Plots take it from QApplication's palette: Base is their ground, Text their ink, Mid a thin axis,
/// Midlight a faint grid, Highlight the accent.
class Look : public QObject {
  Q_OBJECT
 public:
  explicit Look(QObject* parent = nullptr);
  void apply(ThemeChoice choice);
  ThemeChoice choice() const { return choice_; }
  /// The size of type and lines, next to that for reading at a desk, 1. Fonts that widgets were given grow with it.
  void setScale(double scale);

 signals:
  void changed();

 private:
  QString arrow(const QString& name, const QColor& colour) const;
  ThemeChoice choice_ = ThemeChoice::system;
  bool systemIsDark_ = false;
  QTemporaryDir arrows_;  ///< the style sheet wants its arrows as files in the colour of the theme
};

/// An icon of resources/icons in the colour of the text, muted when disabled; it is drawn anew when the palette changes.
QIcon icon(const QString& name);
/// The same icon in a colour of its own, for a button on the accent.
QIcon icon(const QString& name, QPalette::ColorRole role);

QFont uiFont();      ///< 9.5 pt at scale 1
QFont smallFont();   ///< 9 pt, the smallest there is
QFont numberFont();  ///< 9 pt, tabular figures
QFont monoFont();

QLabel* label(const QString& text, const char* role, QWidget* parent = nullptr);  ///< role: "title", "muted", "section"

/// A button whose text ends in dots where there is no room for it, so that no text widens its parent. The tooltip tells all of it.
class ElidedButton : public QPushButton {
  Q_OBJECT
 public:
  using QPushButton::QPushButton;
  QSize minimumSizeHint() const override { return {48, QPushButton::minimumSizeHint().height()}; }
  QSize sizeHint() const override { return {48, QPushButton::sizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;
};

/// A label whose text ends in dots where there is no room for it.
class ElidedLabel : public QLabel {
  Q_OBJECT
 public:
  explicit ElidedLabel(const QString& text = {}, QWidget* parent = nullptr) : QLabel(parent) {
    setTextFormat(Qt::PlainText);
    setText(text);
  }
  QSize minimumSizeHint() const override { return {24, QLabel::minimumSizeHint().height()}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
};

/// Colours of the five runs that can be pinned beside the one that is looked at, on the ground of the present theme. Together with the
/// first colour of a plot they are six that eyes which lack a kind of cone can distinguish too, and none is that of another curve of the
/// run.
QColor pinColour(int index);

}  // namespace reclab
