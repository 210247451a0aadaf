#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what is missing, builds with all assertions, and runs every test: the engine's first, then those of windows on virtual displays.
# `tests/run.sh thorough` runs the sweeps over the models instead, with all their lengths and settings for every model.
# `tests/run.sh asan` and `tests/run.sh tsan` run the engine's fast tests under sanitisers: of addresses and undefined behaviour, or of threads.
# `tests/run.sh baselines` makes the pictures of the panels anew that tests/widgets/baselines holds; those that look the same stay.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. app/prepare.sh

install_packages engine desktop tests
if [ "${1:-}" = thorough ]; then
  build checked
  step="a test failed; see build/checked/Testing/Temporary/LastTest.log"
  ctest --test-dir build/checked -C thorough -L thorough --output-on-failure --no-tests=error -j "$(nproc)" </dev/null
  step=""
  exit
fi
if [[ "${1:-}" = [at]san ]]; then
  build "$1"
  step="a test failed; see build/$1/Testing/Temporary/LastTest.log"
  ctest --test-dir "build/$1" -L engine -LE sweep --output-on-failure --no-tests=error -j "$(nproc)" </dev/null
  step=""
  exit
fi
if [ "${1:-}" = baselines ]; then
  build checked widgets_test_baselines
  step="the pictures were not made"
  LIBGL_ALWAYS_SOFTWARE=1 RECLAB_BASELINES=renew tests/support/own_display.sh build/checked/bin/widgets_test_baselines everyPanelLooksAsItsBaseline
  step=""
  git status --short tests/widgets/baselines
  exit
fi
build checked

export LIBGL_ALWAYS_SOFTWARE=1
unset DISPLAY WAYLAND_DISPLAY
step="a test failed; see build/checked/Testing/Temporary/LastTest.log"
tests() { ctest --test-dir build/checked --output-on-failure --no-tests=error "$@" </dev/null; }
tests -LE "^(sweep|widgets|app)$" -j "$(nproc)"  # the fast ones first
tests -L sweep -j "$(nproc)"
tests -L "widgets|app" -j "$((2 * $(nproc)))"  # these mostly wait, each on a display of its own
step=""
