// SPDX-License-Identifier: GPL-3.0-or-later
// Composition: a model that is put together from rows of choices. It has the choices, the chosen model, and the factors that a small run of
// it multiplies its memory with.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "array/sentence.h"

namespace reclab {

struct Composition {
  /// A picture of a choice: a matrix, 0 (blank) to 1, or of one row a curve over evenly spaced arguments. Empty: nothing.
  struct Picture {
    std::int64_t rows = 0, columns = 0;
    std::vector<double> values;
  };
  struct Choice {
    std::string value;       ///< as --set takes it: "key-gates"
    std::string sign;        ///< short enough for a tile, plain text with indices: "g_t 1ᵀ"
    std::string equation;    ///< "σ(W_o x_t)^{1/τ} 1ᵀ"
    std::string text;        ///< one sentence
    bool dependent = false;  ///< on the data
    Picture picture;
  };
  struct Row {
    std::string key, title, text;  ///< "expand", "Expand", one sentence
    std::vector<Choice> choices;
    std::size_t chosen = 0;
  };
  /// A number of the model that is chosen with them.
  struct Number {
    std::string key, symbol, text;
    double value = 0.0, low = 0.0, high = 0.0;
    std::string unused;  ///< why it changes nothing here, a sentence; empty where it does
  };
  struct Model {
    std::string title;
    std::string preset;  ///< that shows it; empty where there is none
  };
  /// A model of the literature, seen from this one.
  struct Named {
    Model model;
    std::vector<Model> also;  ///< others that the same holds for
    bool exact = false;       ///< this one is it
    std::string differs;      ///< its difference from the chosen model, a sentence
  };
  struct Form {
    std::string name, cost, depth;  ///< "scan", "O(T k d)", "2 log₂ T rounds"
  };

  std::vector<Row> rows;
  std::vector<Number> numbers;
  std::string code;                    ///< "1-9-1-0"
  std::vector<std::string> equations;  ///< one line each, plain Unicode as on a card
  Named nearest;
  std::vector<Form> forms;  ///< the exact ones, the sequential first

  using Settings = std::vector<std::pair<std::string, std::string>>;
  std::string preset, architecture;
  Settings settings;  ///< with them the preset is this model
  Settings others;    ///< those that are neither a row nor a number: a run with other values of them is none of these models

  std::string command;  ///< the line that makes the small run again
  std::string input;    ///< the kind of input: "noise"
  std::uint64_t seed = 1;
  std::int64_t steps = 0;                     ///< of the run
  std::int64_t entries = 0;                   ///< of the memory
  std::int64_t rows_of_factors = 0;           ///< steps, or 1 where all steps are alike
  std::vector<std::complex<double>> factors;  ///< [rows_of_factors, entries]: the factor of each entry, which is its eigenvalue
  Sentence problem;                           ///< why there are none, a sentence; empty where there are
};
using CompositionPtr = std::shared_ptr<const Composition>;

}  // namespace reclab
