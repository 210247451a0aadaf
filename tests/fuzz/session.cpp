// SPDX-License-Identifier: GPL-3.0-or-later
// The reader of sessions, a part of the fuzzer (fuzz.cpp). It refuses with a sentence, or gives setups; it names no file outside the
// session's folder that is not among its data, and what it writes again is what it read.
#include <QDir>
#include <QJsonArray>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "array/error.h"
#include "files/files.h"
#include "gui/session/kept_setup.h"
#include "gui/sessions/session_data.h"
#include "models/registry.h"

using namespace reclab;

void fuzz_session(const std::filesystem::path& folder, std::string_view bytes);

namespace {

const Library& library() {
  static const Library all{PresetLibrary(builtin_registry(), preset_folders()), tasks(), {}};
  return all;
}

}  // namespace

void fuzz_session(const std::filesystem::path& folder, std::string_view bytes) {
  library();  // reads all presets, which is no time of an input
  const QByteArray document(bytes.data(), static_cast<qsizetype>(bytes.size()));
  SessionFile session;
  try {
    session = readSession(document, "x.reclab");
  } catch (const Error& error) {
    if (std::string_view(error.what()).empty()) std::abort();
    return;
  }
  const QString own = QString::fromStdString(folder.string());
  DataPlaces data(session.data, own);
  const auto place = [&](const QString& file) {
    const QString found = data.place(file);
    const auto named = [&](const SessionData& one) { return found.startsWith(QDir::cleanPath(QDir(own).absoluteFilePath(one.path))); };
    const bool inside = QDir::cleanPath(found).startsWith(own + '/');
    if (!inside && std::ranges::none_of(session.data, named)) std::abort();
    if (!inside && QFileInfo(found).isFile() && std::ranges::none_of(session.data, [&](const SessionData& one) {
          return sha256_of_file(found.toStdString()) == one.sha256.toStdString();
        }))
      std::abort();
    return found;
  };
  const QJsonObject state = withFilesOfState(session.state, place);
  keptSetup(state.value("shown").toObject(), library());
  for (const QJsonValue pin : state.value("pins").toArray()) keptSetup(pin.toObject(), library());
  const QByteArray again = bytesOf(session, documentOf(document));
  if (bytesOf(readSession(again, "x.reclab"), documentOf(again)) != again) std::abort();
}
