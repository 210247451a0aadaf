// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/frame/lab_json.h"

#include <QJsonArray>
#include <algorithm>
#include <utility>

#include "gui/docks/layouts.h"

namespace reclab {
namespace {

constexpr std::uint64_t largestId = std::uint64_t{1} << 53;  ///< of a pin

/// A checksum goes with the bytes, so that damaged ones are seen before Qt takes them apart.
QString sealed(const QByteArray& bytes) { return QString::fromLatin1(QByteArray::number(qChecksum(bytes)) + ':' + bytes.toBase64()); }
QByteArray unsealed(const QJsonValue& kept) {
  const QByteArray text = kept.toString().toLatin1();
  const auto at = text.indexOf(':');
  if (at < 1) return {};
  const QByteArray bytes = QByteArray::fromBase64(text.mid(at + 1));
  return QByteArray::number(qChecksum(bytes)) == text.left(at) ? bytes : QByteArray();
}

QJsonObject toObject(const QMap<QString, QVariantMap>& all) {
  QJsonObject object;
  for (auto one = all.begin(); one != all.end(); ++one)
    if (!one->isEmpty()) object[one.key()] = QJsonObject::fromVariantMap(one.value());
  return object;
}
QMap<QString, QVariantMap> mapsOf(const QJsonObject& object) {
  QMap<QString, QVariantMap> all;
  for (auto one = object.begin(); one != object.end(); ++one) all[one.key()] = one.value().toObject().toVariantMap();
  return all;
}

}  // namespace

QJsonObject toJson(const Arranged& arranged) {
  const std::vector<PanelLayout>& layouts = panelLayouts();
  return {{"layout", layouts[static_cast<std::size_t>(arranged.layout)].name},
          {"calm", arranged.calm},
          {"sides", arranged.sides},
          {"own", arranged.own},
          {"columns", arranged.fit.width()},
          {"rows", arranged.fit.height()},
          {"shape", arranged.shape},
          {"without", QJsonArray::fromStringList(arranged.without)},
          {"window", sealed(arranged.window)},
          {"docks", sealed(arranged.docks)},
          {"panels", sealed(arranged.panels)}};
}

std::optional<Arranged> arrangedOf(const QJsonObject& object) {
  Arranged arranged;
  arranged.window = unsealed(object["window"]);
  arranged.docks = unsealed(object["docks"]);
  arranged.panels = unsealed(object["panels"]);
  if (arranged.window.isEmpty() || arranged.docks.isEmpty() || arranged.panels.isEmpty()) return {};
  const std::vector<PanelLayout>& layouts = panelLayouts();
  const auto layout = std::ranges::find(layouts, object["layout"].toString(), &PanelLayout::name);
  arranged.layout = layout == layouts.end() ? 0 : static_cast<int>(layout - layouts.begin());
  arranged.calm = object["calm"].toBool();
  arranged.sides = object["sides"].toString();
  arranged.own = object["own"].toBool();
  arranged.fit = {object["columns"].toInt(), object["rows"].toInt()};
  arranged.shape = object["shape"].toString();
  arranged.without = object["without"].toVariant().toStringList();
  return arranged;
}

QJsonObject toJson(const LabState& state, const PutLearned& put, const std::function<QString(std::uint64_t run)>& training) {
  QJsonArray pins;
  for (const PinValue& pin : state.pins) {
    QJsonObject one = toJson(pin.setup, put);
    one.remove("sequence");  // all share the sequence shown
    one["id"] = QString::number(pin.id);
    if (!pin.given.isEmpty()) one["name"] = pin.given;
    one["colour"] = pin.colour;
    if (const QString id = training(pin.id); !id.isEmpty()) one["training"] = id;
    pins.append(one);
  }
  const TimeView& time = state.time;
  return {{"version", labVersion},
          {"shown", toJson(state.setup, put)},
          {"follows", state.follows},
          {"pins", pins},
          {"panels", toObject(state.panels)},
          {"parts", toObject(state.parts)},
          {"arranged", toJson(state.arranged)},
          {"time", QJsonArray{static_cast<qint64>(time.step), static_cast<qint64>(time.first), static_cast<qint64>(time.last),
                              static_cast<qint64>(time.length)}}};
}

WrittenView viewOf(const QJsonObject& json) {
  const QJsonValue time = json["time"];
  return {arrangedOf(json["arranged"].toObject()),
          mapsOf(json["panels"].toObject()),
          mapsOf(json["parts"].toObject()),
          {time[0].toInteger(), time[1].toInteger(), time[2].toInteger(), time[3].toInteger()}};
}

std::optional<WrittenRuns> runsOf(const QJsonObject& json, const Library& library, const GetLearned& get) {
  std::optional<KeptSetup> shown = keptSetup(json["shown"].toObject(), library, get);
  if (!shown || !shown->sequence) return {};
  WrittenRuns runs{std::move(*shown), json["follows"].toBool(), {}, {}, {}};
  for (const QJsonValue one : json["pins"].toArray()) {
    const std::optional<KeptSetup> kept = keptSetup(one.toObject(), library, get);
    const std::uint64_t id = one["id"].toString().toULongLong();
    const auto taken = [&](auto of, auto value) { return std::ranges::find(runs.pins, value, of) != runs.pins.end(); };
    if (!kept || id == 0 || id > largestId || taken(&PinValue::id, id) || runs.pins.size() == Pins::most) continue;
    int colour = one["colour"].toInt();
    if (colour < 0 || colour >= static_cast<int>(Pins::most) || taken(&PinValue::colour, colour))
      for (colour = 0; taken(&PinValue::colour, colour);) ++colour;
    const PinValue pin{id, kept->setup, one["name"].toString(), colour};
    runs.pins.push_back(pin);
    if (const QString training = one["training"].toString(); !training.isEmpty()) runs.trainings[id] = training;
    if (kept->unlearned)
      runs.unlearned << (pin.given.isEmpty() ? QString::fromStdString(library.presets.find(pin.setup.preset).title) : pin.given);
  }
  return runs;
}

}  // namespace reclab
