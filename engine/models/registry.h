// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/architecture.h"

namespace reclab {

/// The architectures of a build: a value that is handed to its users.
class Registry {
 public:
  /// `family` is the folder's name; its underscores are shown as minus signs ("state-space").
  void add(std::string id, std::string family, Architecture architecture);
  const std::vector<Architecture>& all() const { return all_; }
  /// Throws Error that names the nearest known ids.
  const Architecture& find(std::string_view id) const;

 private:
  std::vector<Architecture> all_;
};

/// All architectures under engine/models, in the order of family and id. Written by the build from the files that are there.
const Registry& builtin_registry();
inline void list(Registry& table, const char* id, const char* family, Architecture (*make)()) { table.add(id, family, make()); }

}  // namespace reclab
