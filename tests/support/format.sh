#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Formats every source as .clang-format says. `format.sh --check` changes nothing, names the lines that are not so, and fails if there are any.
# Other versions of clang-format break lines elsewhere, so without this one there is nothing to say: 77, which ctest calls skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=19
tool=$(command -v "clang-format-$version" || command -v clang-format || true)
if [ -z "$tool" ] || ! "$tool" --version | grep -q "version $version\."; then
  echo "skipped: no clang-format $version here (Debian: apt-get install clang-format-$version)"
  exit 77
fi
how=(-i)
[ "${1:-}" != --check ] || how=(--dry-run -Werror --ferror-limit=3)
find app engine widgets tests \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | xargs -0 -n 40 -P "$(nproc)" "$tool" "${how[@]}"
