// SPDX-License-Identifier: GPL-3.0-or-later
#include "spoken.h"

#include <QAbstractButton>
#include <QAccessibleWidget>
#include <QLabel>
#include <QLineEdit>
#include <QMap>
#include <QRegularExpression>
#include <QSlider>
#include <QTextDocumentFragment>

namespace reclab {
namespace {

constexpr auto valueOf = "spokenValue", lowOf = "spokenLow", highOf = "spokenHigh";

/// Words as they are read: without marks of letters, and of HTML its text.
QString words(const QString& text) {
  QString plain = Qt::mightBeRichText(text) ? QTextDocumentFragment::fromHtml(text).toPlainText() : text;
  static const QRegularExpression mark(QStringLiteral("&(.?)"));
  return plain.replace(mark, QStringLiteral("\\1")).simplified();
}

class Spoken : public QAccessibleWidget, public QAccessibleValueInterface {
 public:
  Spoken(QWidget* widget, QAccessible::Role role) : QAccessibleWidget(widget, role) {}
  void* interface_cast(QAccessible::InterfaceType type) override {
    if (type == QAccessible::ValueInterface && currentValue().isValid()) return static_cast<QAccessibleValueInterface*>(this);
    return QAccessibleWidget::interface_cast(type);
  }
  QString text(QAccessible::Text which) const override {
    return which == QAccessible::Value ? currentValue().toString() : QAccessibleWidget::text(which);
  }
  QVariant currentValue() const override {
    const auto* slider = qobject_cast<const QSlider*>(widget());
    const QVariant value = widget()->property(valueOf);
    return value.isValid() || slider == nullptr ? value : slider->value();
  }
  QVariant minimumValue() const override { return widget()->property(lowOf); }
  QVariant maximumValue() const override { return widget()->property(highOf); }
  QVariant minimumStepSize() const override { return {}; }
  void setCurrentValue(const QVariant&) override {}  // by its keys
};

QAccessibleInterface* roleOf(const QString& className, QObject* object) {
  static const QMap<QString, QAccessible::Role> roles{
      {"reclab::Plot", QAccessible::Chart},        {"reclab::LiteratureMap", QAccessible::Chart},
      {"reclab::TimeStrip", QAccessible::Slider},  {"reclab::TrainingStrip", QAccessible::Slider},
      {"reclab::TileRow", QAccessible::List},      {"reclab::PinChip", QAccessible::Button},
      {"reclab::CalmSlider", QAccessible::Slider}, {"QScrollArea", QAccessible::Pane}};
  auto* widget = qobject_cast<QWidget*>(object);
  if (widget == nullptr) return nullptr;
  if (const auto role = roles.find(className); role != roles.end()) return new Spoken(widget, *role);
  return className == u"QSlider" && widget->property(valueOf).isValid() ? new Spoken(widget, QAccessible::Slider) : nullptr;
}

}  // namespace

QString spokenName(const QWidget* control) {
  if (!control->accessibleName().isEmpty()) return control->accessibleName();
  for (const QLabel* label : control->parentWidget() != nullptr ? control->parentWidget()->findChildren<QLabel*>() : QList<QLabel*>())
    if (label->buddy() == control) return words(label->text());
  if (const auto* button = qobject_cast<const QAbstractButton*>(control); button != nullptr && !button->text().isEmpty())
    return words(button->text());
  if (const auto* line = qobject_cast<const QLineEdit*>(control); line != nullptr && !line->placeholderText().isEmpty())
    return line->placeholderText();
  static const QRegularExpression more(QStringLiteral(" [(]|[.:;]( |$)"));
  return words(control->toolTip()).section(more, 0, 0);
}

void setSpokenValue(QWidget* control, double value, double low, double high) {
  control->setProperty(lowOf, low);
  control->setProperty(highOf, high);
  if (control->property(valueOf) == QVariant(value)) return;
  control->setProperty(valueOf, value);
  if (!QAccessible::isActive()) return;
  QAccessibleValueChangeEvent changed(control, value);
  QAccessible::updateAccessibility(&changed);
}

void installSpokenRoles() { QAccessible::installFactory(&roleOf); }

}  // namespace reclab
