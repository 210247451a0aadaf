// SPDX-License-Identifier: GPL-3.0-or-later
// The recovery files of open windows: a folder of each process, with a lock that the system takes back, and in it three generations of a
// session. Closing removes it; the next start finds the folders of processes that are gone.
#pragma once

#include <QLockFile>
#include <QSet>
#include <QString>
#include <deque>
#include <memory>
#include <optional>

namespace reclab {

class Recovery {
 public:
  static constexpr std::size_t generations = 3;
  /// $XDG_STATE_HOME, or ~/.local/state, and below it the folders of the organisation and the application.
  static QString standardFolder();

  explicit Recovery(const QString& folder = standardFolder());
  ~Recovery();
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  /// The file of the next generation; empty where there is no folder for it.
  QString next();
  /// The folder of files beside all generations, and the hashes that those of them need that stay when the next one comes.
  QString filesOf() const { return own_ + "/files"; }
  QSet<QString> needed() const;
  /// The generation was written, and needs these; the oldest goes where there are more than three.
  void wrote(const QString& file, const QSet<QString>& hashes);
  void close();  ///< the window is closed: nothing is left to recover

  /// A process that is gone: its generations, the newest first, and the folder of their files. It is held until it is destroyed, so that no
  /// other start finds it meanwhile.
  struct Left {
    QStringList files;
    QString beside;
    void forget();  ///< for good

    QString folder;
    std::unique_ptr<QLockFile> lock;
  };
  /// The newest of those that are left; none where there is none.
  std::optional<Left> left() const;

 private:
  struct Generation {
    QString file;
    QSet<QString> hashes;
  };
  QString folder_, own_;
  std::unique_ptr<QLockFile> lock_;
  std::deque<Generation> kept_;
  int newest_ = 0;
};

}  // namespace reclab
