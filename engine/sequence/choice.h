// SPDX-License-Identifier: GPL-3.0-or-later
// A sequence as it is asked for, before anything of it is read or made. Its values are data, one row each: from the table come the options
// of a command line, the words that repeat it, and a sequence in a file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "parameters/field.h"
#include "sequence/sequence.h"

namespace reclab {

/// A file and how it is read, or a task and its options.
struct SequenceChoice {
  std::string file{};  ///< empty: a task
  LoadOptions load{};
  std::string task = "noise";
  TaskOptions make{};
  bool is_file() const { return !file.empty(); }
  /// The options of a task are nothing to a file, and the other way round.
  bool operator==(const SequenceChoice& other) const;
};

/// In the order of the command line. Keys: "file", "task", "length", ...; no length, and no seed, is for the caller to say.
const std::vector<PlanField<SequenceChoice>>& sequence_fields();
/// Whether the field applies to the choice.
bool is_of(const Field& field, const SequenceChoice& choice);

/// Throws Error for a typed field (by flag) of files where the sequence is a task, or the other way round.
void refuse_misplaced(const std::map<std::string, std::string>& given, const Field& field, const SequenceChoice& choice);
template <class Fields>
void refuse_misplaced(const std::map<std::string, std::string>& given, const Fields& fields, const SequenceChoice& choice) {
  for (const Field& field : fields) refuse_misplaced(given, field, choice);
}

/// Reads the file or makes the task. Throws Error.
Sequence load_sequence(const SequenceChoice& choice);
/// The choice that a sequence was read or made by; its task and its file are empty where it was neither.
SequenceChoice choice_of(const Sequence& sequence);

}  // namespace reclab
