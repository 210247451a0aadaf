// SPDX-License-Identifier: GPL-3.0-or-later
// The card of an architecture: data for `reclab show`, the window's card and the weights that strangers load.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parameters/hyper.h"
#include "trace/trace.h"

namespace reclab {

struct Reference {
  std::string authors, title, venue, url;  ///< url: arXiv or DOI, may be empty
  int year = 0;
};

/// A trainable array, by its key under param/ ("0/weight_ih" is weight_ih of layer 0).
struct ParameterInfo {
  std::string name;
  Shape shape;
  std::string text;    ///< role, order of its rows, initialisation, and the reference implementation's name for it
  std::string when{};  ///< the condition under which it exists; empty: always
};

/// An array that is carried from one step to the next.
struct StateInfo {
  std::string name;
  Shape shape;  ///< without time
  bool complex = false;
  bool recorded = true;  ///< false: a buffer (the last inputs of a convolution) that state.npz has but the Trace has not
  std::string text;
};

struct GateInfo {
  std::string name;
  Shape shape;
  double low = 0.0, high = 0.0;  ///< both 0: unbounded
  std::string text;
};

/// The card of one preset: shapes are those of its hyper-parameters.
struct Card {
  std::string id, title, family, architecture;
  std::string idea;                    ///< the preset's three sentences
  std::vector<std::string> equations;  ///< one line each, plain Unicode
  std::vector<std::string> notes;      ///< conventions, where paper and reference code disagree, one sentence each
  std::vector<HyperSpec> hyper;
  std::vector<ParameterInfo>
      parameters;  ///< for the preset's hyper-parameters and the given input width, and with the head of the preset's own task
  std::vector<StateInfo> states;   ///< of one layer
  std::vector<GateInfo> gates;     ///< of one layer
  std::string spectrum;            ///< the eigenvalues in spectrum/<layer>, in words
  std::vector<std::string> forms;  ///< exact forms, "sequential" first
  Reference source;
};

}  // namespace reclab
