// SPDX-License-Identifier: GPL-3.0-or-later
// The factor of an input that its model does not read as it is.
#pragma once

#include <string>
#include <string_view>

#include "trace/trace.h"

namespace reclab {

/// Whether a hyper-parameter of this key multiplies the model's input; of a stack that is the lowest part's.
bool scales_input(std::string_view key);
/// The factor that the input is multiplied with before the model reads it, as text ("6"); empty where it is read as it is.
std::string input_scale_of(const RunInfo& run);
/// The name of the input, and its factor where it has one: "adding × 6".
std::string input_words(const RunInfo& run);
/// The sentence for summaries and manifests.
std::string input_scale_note(const std::string& scale);

}  // namespace reclab
