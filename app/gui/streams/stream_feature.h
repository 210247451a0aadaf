// SPDX-License-Identifier: GPL-3.0-or-later
// Streams in the window: their dock, their actions, and the question about a stream that cannot be kept when the window closes.
#pragma once

#include <QObject>
#include <QPointer>
#include <QTimer>

namespace reclab {

class FlatDock;
class KeptStreams;
class SessionController;
class StreamView;
class WindowFrame;

class StreamFeature : public QObject {
  Q_OBJECT
 public:
  explicit StreamFeature(WindowFrame* frame);
  StreamView* view() const { return view_; }
  FlatDock* dock() const { return dock_; }
  /// Keeps the stream, as the window is about to close. False where it is to stay open; without `asks` nothing is asked.
  bool mayClose(bool asks);

 private:
  void buildActions();
  void tell();
  void tellCommand();
  void exportStream();
  void showKept();
  void listKept();
  void removeKept(const QStringList& folders);
  WindowFrame* frame_;
  SessionController* session_;
  StreamView* view_;
  FlatDock* dock_;
  QPointer<KeptStreams> kept_;
  bool running_ = false;  ///< as it was told last
  QTimer soon_;           ///< its numbers are told a few times a second, as a person reads them
};

}  // namespace reclab
