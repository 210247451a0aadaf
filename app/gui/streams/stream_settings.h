// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QVariantMap>
#include <QWidget>

#include "gui/dialogs/field_rows.h"
#include "gui/session/files.h"
#include "streams/stream.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QToolButton;

namespace reclab {

/// A form with the choices of a stream: its source with the parameters of that, and a row for each of stream_fields() that has a label.
class StreamSettings : public QWidget {
  Q_OBJECT
 public:
  explicit StreamSettings(const FileChooser* chooser, QWidget* parent = nullptr);
  /// Without a model. Its ring is at least two steps.
  const StreamRequest& choice() const { return choice_; }
  QVariantMap saved() const;
  void restore(const QVariantMap& saved);  ///< anything may come from a file

 signals:
  void changed();

 private:
  void takeSource();
  void showSource();
  void showParameters();
  void take();
  StreamRequest choice_;
  FieldRows<StreamRequest> rows_;
  QComboBox* source_;
  QLabel *about_, *argumentName_;
  QWidget* argumentRow_;
  QLineEdit* argument_;
  QToolButton* open_;
  QGridLayout* parameters_;
  struct Parameter {
    Field field;
    QWidget *name, *editor;
  };
  std::vector<Parameter> editors_;
  bool showing_ = false;
};

}  // namespace reclab
