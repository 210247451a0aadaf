// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/theme.h"

#include <QApplication>
#include <QLocale>
#include <QRegularExpression>
#include <QWidget>
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "plot/type_scale.h"

namespace reclab {

namespace {

double linear(double channel) { return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4); }
double luminance(const QColor& c) { return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF()); }

ColourMap interpolated(std::initializer_list<QRgb> anchors) {
  const std::vector<QRgb> stops(anchors);
  ColourMap map{};
  for (std::size_t i = 0; i < map.size(); ++i) {
    const double at = static_cast<double>(i) / 255.0 * static_cast<double>(stops.size() - 1);
    const auto k = std::min(static_cast<std::size_t>(at), stops.size() - 2);
    const double part = at - static_cast<double>(k);
    const auto between = [&](int a, int b) { return static_cast<int>(std::lround(a + (b - a) * part)); };
    map[i] = qRgb(between(qRed(stops[k]), qRed(stops[k + 1])), between(qGreen(stops[k]), qGreen(stops[k + 1])),
                  between(qBlue(stops[k]), qBlue(stops[k + 1])));
  }
  return map;
}

}  // namespace

QColor mixed(const QColor& a, const QColor& b, double part) {
  const auto channel = [part](float x, float y) { return static_cast<float>(x * part + y * (1.0 - part)); };
  return QColor::fromRgbF(channel(a.redF(), b.redF()), channel(a.greenF(), b.greenF()), channel(a.blueF(), b.blueF()));
}

double contrast(const QColor& a, const QColor& b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

QColor legible(const QColor& colour, const Theme& theme) {
  QColor found = colour;
  for (int tenth = 9; tenth >= 0 && contrast(found, theme.base) < 4.5; --tenth) found = mixed(colour, theme.text, 0.1 * tenth);
  return found;
}

Theme Theme::of(const QWidget* widget) { return of(widget->palette(), QApplication::font()); }

Theme Theme::of(const QPalette& palette, const QFont& family) {
  Theme theme;
  theme.base = palette.color(QPalette::Active, QPalette::Base);
  theme.text = palette.color(QPalette::Active, QPalette::Text);
  theme.dark = luminance(theme.base) < 0.2;
  double part = 0.62;
  do {
    theme.muted = mixed(theme.text, theme.base, part);
    part += 0.04;
  } while (contrast(theme.muted, theme.base) < 4.5 && part < 1.0);
  theme.axis = mixed(theme.text, theme.base, 0.45);
  theme.grid = mixed(theme.text, theme.base, theme.dark ? 0.13 : 0.10);
  theme.accent = palette.color(QPalette::Active, QPalette::Highlight);
  for (int i = 0; i < 20 && contrast(theme.accent, theme.base) < 3.0; ++i) theme.accent = mixed(theme.accent, theme.text, 0.9);
  theme.small = theme.normal = theme.large = family;
  theme.small.setPointSizeF(smallest_text * typeScale());
  theme.normal.setPointSizeF(10 * typeScale());
  theme.large.setPointSizeF(12 * typeScale());
  return theme;
}

QColor Theme::series(int i) const {
  static constexpr std::array<QRgb, 7> light = {0xff0072b2, 0xffd55e00, 0xff009e73, 0xffb05a8c, 0xffc68a00, 0xff3f9bd0, 0xff6b5b95};
  static constexpr std::array<QRgb, 7> bright = {0xff56b4e9, 0xffff8a3d, 0xff2bc79a, 0xffe08fbf, 0xffe6b422, 0xff9cc9ff, 0xfff0e442};
  const auto& cycle = dark ? bright : light;
  return QColor::fromRgb(cycle[static_cast<std::size_t>(i) % cycle.size()]);
}

Qt::PenStyle curveStyle(int i) {
  constexpr std::array styles{Qt::SolidLine, Qt::DashLine, Qt::DashDotLine, Qt::DashDotDotLine};
  return styles[static_cast<std::size_t>(i) % styles.size()];
}

QPen Theme::curve(int i, double width) const { return own.isValid() ? QPen(own, width, curveStyle(i)) : QPen(series(i), width); }

const ColourMap& viridis() {
  static const ColourMap map = interpolated(
      {0xff440154, 0xff482475, 0xff414487, 0xff355f8d, 0xff2a788e, 0xff21918c, 0xff22a884, 0xff44bf70, 0xff7ad151, 0xffbddf26, 0xfffde725});
  return map;
}

const ColourMap& diverging(bool dark) {
  static const ColourMap on_light = interpolated(
      {0xff053061, 0xff2166ac, 0xff4393c3, 0xff92c5de, 0xffd1e5f0, 0xfff7f7f7, 0xfffddbc7, 0xfff4a582, 0xffd6604d, 0xffb2182b, 0xff67001f});
  static const ColourMap on_dark =
      interpolated({0xff9eb0ff, 0xff5aa3da, 0xff2d7597, 0xff1a4256, 0xff11191e, 0xff3a120a, 0xff6a2618, 0xffa4503f, 0xffffacac});
  return dark ? on_dark : on_light;
}

QString number(double value, int digits) {
  if (std::isnan(value)) return QStringLiteral("none");
  if (std::isinf(value)) return value > 0 ? QStringLiteral("∞") : QStringLiteral("−∞");
  const double size = std::abs(value);
  QString text;
  if (size != 0.0 && (size >= 1e5 || size < 1e-3)) {
    const QString written = QString::number(value, 'e', digits - 1);
    const auto e = written.indexOf(u'e');
    QString mantissa = written.left(e);
    if (mantissa.contains(u'.')) {
      while (mantissa.endsWith(u'0')) mantissa.chop(1);
      if (mantissa.endsWith(u'.')) mantissa.chop(1);
    }
    const QString power = QStringLiteral("10") + superscript(QString::number(written.mid(e + 1).toInt()));
    text = mantissa == u"1" ? power : mantissa == u"-1" ? QStringLiteral("-") + power : mantissa + QStringLiteral("×") + power;
  } else {
    // 'g' would turn to an exponent before five digits are full, and where 99.7 is rounded to three digits before the point.
    const auto shown = [digits](double one) {
      const int whole = std::abs(one) >= 1.0 ? static_cast<int>(std::floor(std::log10(std::abs(one)))) + 1 : 0;
      return QString::number(one, 'g', std::max(digits, whole));
    };
    text = shown(shown(value).toDouble());
  }
  return text.replace(u'-', QStringLiteral("−"));
}

QString powerOfTen(double exponent) {
  const double rounded = std::round(exponent * 100.0) / 100.0;
  return QStringLiteral("10") + superscript(QString::number(rounded == 0.0 ? 0.0 : rounded, 'g', 8));
}

QString powerAsNumber(double exponent, int digits) {
  if (std::abs(exponent) < 300) return number(std::pow(10.0, exponent), digits);
  double whole = std::floor(exponent);
  QString mantissa = number(std::pow(10.0, exponent - whole), digits);
  if (mantissa == u"10") mantissa = QStringLiteral("1"), whole += 1;
  return (mantissa == u"1" ? QString() : mantissa + QStringLiteral("×")) + powerOfTen(whole);
}

QString superscript(const QString& plain) {
  static const QString digits = QStringLiteral("⁰¹²³⁴⁵⁶⁷⁸⁹");
  QString raised;
  for (const QChar c : plain) {
    if (c.isDigit())
      raised += digits[c.digitValue()];
    else if (c == u'-')
      raised += QStringLiteral("⁻");
    else if (c == u'.')
      raised += QStringLiteral("·");
  }
  return raised;
}

QString mathText(const QString& plain) {
  static const QString indices = QStringLiteral("0123456789+-−=()aehijklmnoprstuvx"),
                       low = QStringLiteral("₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ");
  static const QString powers = QStringLiteral("0123456789+-−=()inT"), high = QStringLiteral("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁱⁿᵀ");
  QString text;
  for (qsizetype i = 0; i < plain.size(); ++i) {
    const QChar c = plain[i];
    const bool mark = (c == u'_' || c == u'^') && i + 1 < plain.size() && i > 0;
    // In braces, or a run of letters and digits: "_t", "_{t-1}".
    qsizetype begin = i + 1, end = begin;
    if (mark && plain[begin] == u'{') {
      end = plain.indexOf(u'}', ++begin);
    } else if (mark) {
      while (end < plain.size() && plain[end].isLetterOrNumber() && !high.contains(plain[end])) ++end;
    }
    const QString &from = c == u'_' ? indices : powers, &to = c == u'_' ? low : high;
    QString set;
    for (qsizetype k = begin; mark && k < end; ++k)
      if (const qsizetype at = from.indexOf(plain[k]); at >= 0) set += to[at];
    if (!mark || end <= begin || set.size() != end - begin) {
      text += c;
      continue;
    }
    text += set;
    i = plain[begin - 1] == u'{' ? end : end - 1;
  }
  return text;
}

QString mathHtml(const std::string& text) {
  static const QRegularExpression low("_(?:\\{([^}]*)\\}|([^\\W_\\x{1d40}²³¹]+))", QRegularExpression::UseUnicodePropertiesOption);
  static const QRegularExpression high("\\^(?:\\{([^}]*)\\}|(\\([^)]*\\)|[^\\W_]+))", QRegularExpression::UseUnicodePropertiesOption);
  // Rich text shows indices at two thirds of their size: the smallest.
  const QString size = QString::number(1.5 * smallest_text * typeScale());
  return QString::fromStdString(text)
      .toHtmlEscaped()
      .replace(low, "<sub style='font-size:" + size + "pt'>\\1\\2</sub>")
      .replace(high, "<sup style='font-size:" + size + "pt'>\\1\\2</sup>")
      .replace("t-1", QString::fromUtf8("t−1"));
}

QString grouped(std::int64_t count) { return QLocale(QLocale::English).toString(static_cast<qlonglong>(count)); }

}  // namespace reclab
