// SPDX-License-Identifier: GPL-3.0-or-later
// The colours, fonts and colour maps of every plot, all derived from the widget's palette.
#pragma once

#include <QColor>
#include <QFont>
#include <QPalette>
#include <QPen>
#include <QRgb>
#include <QString>
#include <array>
#include <cstdint>
#include <string>

class QWidget;

namespace reclab {

constexpr double smallest_text = 9.0;  ///< points, of everything that is drawn

/// The look of a plot in a palette. Derive it anew when the palette changes.
struct Theme {
  QColor base;    ///< the ground of a plot
  QColor text;    ///< axis and paragraph text
  QColor muted;   ///< tick labels, notes; at least 4.5:1 against the base
  QColor axis;    ///< axis lines and ticks
  QColor grid;    ///< faint
  QColor accent;  ///< the cursor and nothing else
  bool dark = false;
  QColor own;                  ///< of the run that is shown, where each run is drawn in a colour of its own; else not valid
  QFont small, normal, large;  ///< 9, 10 and 12 pt of the application's family

  static Theme of(const QWidget* widget);
  static Theme of(const QPalette& palette, const QFont& family);
  /// The i-th of a cycle of colours that colour-blind readers tell apart (after Okabe and Ito), bright enough for the base.
  QColor series(int i) const;
  /// The run that is shown, where it is one curve or cloud.
  QColor shown() const { return own.isValid() ? own : series(0); }
  /// The i-th of several curves of the run that is shown: a colour each, or a style each where the run has a colour of its own.
  QPen curve(int i, double width) const;
};

/// The line style of the i-th of several curves that share a colour.
Qt::PenStyle curveStyle(int i);
/// `part` of a, the rest of b.
QColor mixed(const QColor& a, const QColor& b, double part);
/// The contrast ratio of WCAG: 1 (none) to 21.
double contrast(const QColor& a, const QColor& b);
/// The colour of a curve for small text on the theme's base: as much nearer to that of text as 4.5:1 takes.
QColor legible(const QColor& colour, const Theme& theme);

/// A colour map as 256 colours, low to high.
using ColourMap = std::array<QRgb, 256>;
const ColourMap& viridis();             ///< for magnitudes: perceptually uniform
const ColourMap& diverging(bool dark);  ///< for signed data, centred at zero: the centre is the ground of a light or a dark plot

/// A number as a person reads it: at most `digits` significant digits, a true minus sign, powers of ten for the very large and small.
QString number(double value, int digits = 3);
/// 10 to a (whole or broken) power: "10⁻⁴⁰⁰", "10⁻²·⁵".
QString powerOfTen(double exponent);
/// 10 to a power far beyond the range of a double, as a number: "2.5×10⁻⁴⁰¹".
QString powerAsNumber(double exponent, int digits = 2);
/// "1.02" as "¹·⁰²"; other characters than digits, point and minus are left out.
QString superscript(const QString& plain);
/// Indices and powers of plain text set as such, where Unicode has all their characters: "h_{t-1}" as "hₜ₋₁", "x^2" as "x²"; "s_T" stays.
QString mathText(const QString& plain);
/// Plain Unicode mathematics as HTML: W_hh, h_{t-1} and R^(T-t) with their indices low and high.
QString mathHtml(const std::string& text);
/// 12345678 as "12,345,678".
QString grouped(std::int64_t count);

}  // namespace reclab
