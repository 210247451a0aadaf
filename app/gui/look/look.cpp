// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/look/look.h"

#include <QApplication>
#include <QFile>
#include <QFontDatabase>
#include <QHelpEvent>
#include <QIconEngine>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QPainter>
#include <QPalette>
#include <QRegularExpression>
#include <QStyleFactory>
#include <QStyleOptionButton>
#include <QStylePainter>
#include <QSvgRenderer>
#include <QToolTip>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "plain_text.h"
#include "plot/theme.h"
#include "plot/type_scale.h"

void loadResources() { Q_INIT_RESOURCE(lab); }

namespace reclab {
namespace {

QByteArray resource(const QString& path) {
  loadResources();
  QFile file(":/" + path);
  const bool open = file.open(QIODevice::ReadOnly);
  Q_ASSERT(open);
  return open ? file.readAll() : QByteArray();
}

class PaletteIcon : public QIconEngine {
 public:
  PaletteIcon(const QString& name, QPalette::ColorRole role) : svg_(resource("icons/" + name + ".svg")), role_(role) {}
  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State) override {
    const QColor colour = QApplication::palette().color(mode == QIcon::Disabled ? QPalette::Disabled : QPalette::Active, role_);
    QSvgRenderer renderer(QByteArray(svg_).replace("currentColor", colour.name().toLatin1()));
    painter->setRenderHint(QPainter::Antialiasing);
    renderer.render(painter, rect);
  }
  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override {
    QPixmap picture(size);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    paint(&painter, QRect(QPoint(), size), mode, state);
    return picture;
  }
  QIconEngine* clone() const override { return new PaletteIcon(*this); }

 private:
  QByteArray svg_;
  QPalette::ColorRole role_;
};

QString family() {
  // The desktop's own family, unless that is only the last resort of a machine without a desktop.
  static const QString found = [] {
    const QString system = QFontDatabase::systemFont(QFontDatabase::GeneralFont).family();
    const bool lastResort = system.startsWith("DejaVu") || system.startsWith("Sans") || system.startsWith("Bitstream");
    if (!lastResort && QFontDatabase::hasFamily(system)) return system;
    for (const char* name : {"Open Sans", "Noto Sans", "Source Sans 3", "Cantarell", "Liberation Sans"})
      if (QFontDatabase::hasFamily(name)) return QString(name);
    return system;
  }();
  return found;
}

}  // namespace

QString toString(ThemeChoice choice) { return choice == ThemeChoice::light ? "light" : choice == ThemeChoice::dark ? "dark" : "system"; }

ThemeChoice themeChoice(const QString& text) {
  return text == "light" ? ThemeChoice::light : text == "dark" ? ThemeChoice::dark : ThemeChoice::system;
}

Look::Look(QObject* parent) : QObject(parent) {
  systemIsDark_ = QApplication::palette().color(QPalette::Window).lightness() < 128;
  QApplication::setStyle(QStyleFactory::create("Fusion"));
  QApplication::setFont(uiFont());
}

QString Look::arrow(const QString& name, const QColor& colour) const {
  const QString path = arrows_.filePath(name + colour.name().mid(1) + ".svg");
  QFile file(path);
  if (file.open(QIODevice::WriteOnly)) file.write(resource("icons/" + name + ".svg").replace("currentColor", colour.name().toLatin1()));
  return path;
}

void Look::apply(ThemeChoice choice) {
  choice_ = choice;
  const bool dark = choice == ThemeChoice::dark || (choice == ThemeChoice::system && systemIsDark_);
  const QJsonObject named =
      QJsonDocument::fromJson(resource(dark ? "themes/dark.json" : "themes/light.json")).object()["palette"].toObject();
  const auto colour = [&](const char* name) { return QColor(named[QLatin1String(name)].toString()); };

  QPalette palette;
  const std::array<std::pair<QPalette::ColorRole, const char*>, 20> roles{{{QPalette::Window, "window"},
                                                                           {QPalette::WindowText, "text"},
                                                                           {QPalette::Base, "base"},
                                                                           {QPalette::AlternateBase, "alternate"},
                                                                           {QPalette::Text, "text"},
                                                                           {QPalette::Button, "button"},
                                                                           {QPalette::ButtonText, "text"},
                                                                           {QPalette::BrightText, "warning"},
                                                                           {QPalette::PlaceholderText, "muted"},
                                                                           {QPalette::Highlight, "accent"},
                                                                           {QPalette::HighlightedText, "accentText"},
                                                                           {QPalette::Link, "link"},
                                                                           {QPalette::LinkVisited, "link"},
                                                                           {QPalette::ToolTipBase, "tooltip"},
                                                                           {QPalette::ToolTipText, "tooltipText"},
                                                                           {QPalette::Light, "hover"},
                                                                           {QPalette::Midlight, "faint"},
                                                                           {QPalette::Mid, "border"},
                                                                           {QPalette::Dark, "muted"},
                                                                           {QPalette::Shadow, "disabled"}}};
  for (const auto& [role, name] : roles) palette.setColor(role, colour(name));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    palette.setColor(QPalette::Disabled, role, colour("disabled"));
  QApplication::setPalette(palette);

  QString sheet = QString::fromUtf8(resource("themes/lab.qss"));
  for (const char* name : {"down", "up", "right", "left"}) sheet.replace("@" + QString(name) + "@", arrow(name, colour("muted")));
  for (const char* name : {"right", "left"}) sheet.replace("@" + QString(name) + "Disabled@", arrow(name, colour("disabled")));
  sheet.replace("@check@", arrow("check", colour("accentText")));
  const double mark = std::round(12 * typeScale());
  for (const auto& [name, value] :
       {std::pair{"@closeTabs@", 8.0 * typeScale()}, {"@mark@", mark}, {"@markRadius@", std::floor(mark / 2) + 1}})
    sheet.replace(name, QString::number(value));
  for (auto entry = named.begin(); entry != named.end(); ++entry) sheet.replace("@" + entry.key() + "@", entry.value().toString());
  Q_ASSERT(!sheet.contains(QRegularExpression("@[a-zA-Z]+@")));
  qApp->setStyleSheet(sheet);
  emit changed();
}

void Look::setScale(double scale) {
  if (scale == typeScale()) return;
  const double times = scale / typeScale();
  const auto sized = [times](double points) { return std::round(points * times * 100.0) / 100.0; };
  std::vector<std::pair<QWidget*, double>> given;  // read before the style sheet is applied, which puts fonts back
  for (QWidget* one : QApplication::allWidgets())
    if (one->testAttribute(Qt::WA_SetFont) && (one->font().resolveMask() & QFont::SizeResolved) != 0 && one->font().pointSizeF() > 0)
      given.emplace_back(one, sized(one->font().pointSizeF()));
  setTypeScale(scale);
  QApplication::setFont(uiFont());
  apply(choice_);
  for (const auto& [one, points] : given) {
    QFont font = one->font();
    font.setPointSizeF(points);
    one->setFont(font);
  }
  static const QRegularExpression index("<(su[bp]) style='font-size:([\\d.]+)pt'>");  // as mathHtml() writes them
  QEvent derived(QEvent::FontChange);  // a theme has sizes of its own, also where the font of the widget stays
  for (QWidget* one : QApplication::allWidgets()) {
    QApplication::sendEvent(one, &derived);
    auto* words = qobject_cast<QLabel*>(one);
    if (words == nullptr || !words->text().contains(index)) continue;
    QString text;
    qsizetype at = 0;
    for (const QRegularExpressionMatch& match : index.globalMatch(words->text())) {
      text += words->text().mid(at, match.capturedStart() - at) +
              QString("<%1 style='font-size:%2pt'>").arg(match.captured(1)).arg(sized(match.captured(2).toDouble()));
      at = match.capturedEnd();
    }
    words->setText(text + words->text().mid(at));
  }
}

QIcon icon(const QString& name) { return icon(name, QPalette::ButtonText); }
QIcon icon(const QString& name, QPalette::ColorRole role) { return QIcon(new PaletteIcon(name, role)); }

QFont uiFont() {
  QFont font(family());
  font.setPointSizeF(9.5 * typeScale());
  return font;
}

QFont smallFont() {
  QFont font(family());
  font.setPointSizeF(smallest_text * typeScale());
  return font;
}

QFont numberFont() { return smallFont(); }  // every family of the list has tabular figures by default

QFont monoFont() {
  QFont font = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  font.setPointSizeF(smallest_text * typeScale());
  return font;
}

QLabel* label(const QString& text, const char* role, QWidget* parent) {
  auto* made = plainLabel(text, parent);
  made->setProperty("role", role);
  return made;
}

void ElidedButton::paintEvent(QPaintEvent*) {
  QStylePainter painter(this);
  QStyleOptionButton option;
  initStyleOption(&option);
  const int room = style()->subElementRect(QStyle::SE_PushButtonContents, &option, this).width();
  option.text = option.fontMetrics.elidedText(option.text, Qt::ElideRight, room);
  painter.drawControl(QStyle::CE_PushButton, option);
}

void ElidedLabel::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.drawText(contentsRect(), static_cast<int>(alignment()), fontMetrics().elidedText(text(), Qt::ElideRight, contentsRect().width()));
}

bool ElidedButton::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip || fontMetrics().horizontalAdvance(text()) <= width() - 8) return QPushButton::event(event);
  QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), joinedTips({text(), toolTip()}), this);
  return true;
}

QColor pinColour(int index) {
  static const std::array<QColor, 5> onLight{QColor("#cb00ff"), QColor("#786220"), QColor("#ea6e74"), QColor("#5608a5"), QColor("#7e0036")};
  static const std::array<QColor, 5> onDark{QColor("#bd57fd"), QColor("#c0d367"), QColor("#ff3f04"), QColor("#1d9b90"), QColor("#09f4f2")};
  const auto& colours = Theme::of(QApplication::palette(), QApplication::font()).dark ? onDark : onLight;
  return colours[static_cast<std::size_t>(index) % colours.size()];
}

}  // namespace reclab
