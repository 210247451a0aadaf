#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Times rows of the benchmark: ./tests/bench/run.sh C1 [C2 ...]. C9, C10 and W1 to W6 are of the window, on a display of its own. One JSON object a row on standard output, a table on standard error.
# Peers are timed in the same run where tests/bench/install_peers.sh has installed them, or RECLAB_PEERS names a Python that has them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. app/prepare.sh
[ $# -gt 0 ] || { step="name the rows: ./tests/bench/run.sh C1 [C2 ...], of C1 to C10, G1 to G7 and W1 to W6"; exit 2; }
window=() engine=()
for row in "$@"; do
  case $row in C9|C10|W*) window+=("$row");; *) engine+=("$row");; esac
done
if [ ${#window[@]} -gt 0 ]; then
  {
    install_packages desktop
    if [ ! -e build/release/build.ninja ]; then logged "the configuration" build/release/configure.log cmake --preset release; fi
    logged "the build" build/release/bench.log cmake --build build/release --parallel "$(nproc)" --target reclab-window-bench
  } >&2
  step="the benchmark of the window"
  LIBGL_ALWAYS_SOFTWARE=1 tests/support/own_display.sh build/release/bin/reclab-window-bench "${window[@]}"
  step=""
  if [ ${#engine[@]} -eq 0 ]; then exit 0; fi
  set -- "${engine[@]}"
fi
{
  install_packages engine
  if [ ! -e build/engine-only/build.ninja ]; then logged "the configuration" build/engine-only/configure.log cmake --preset engine-only; fi
  logged "the build" build/engine-only/bench.log cmake --build build/engine-only --parallel "$(nproc)" --target reclab-bench
} >&2
python=${RECLAB_PEERS:-build/peers/bin/python}
step="the benchmark"
if [ -x "$python" ]; then
  build/engine-only/bin/reclab-bench --peers "$python" "$@"
else
  echo "No peers: tests/bench/install_peers.sh installs them." >&2
  build/engine-only/bin/reclab-bench "$@"
fi
step=""
