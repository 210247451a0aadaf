#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Times rows of the benchmark: ./tests/bench/run.sh [--threads N] C1 [C2 ...]. One JSON object a row on standard output, a table on standard error.
#   C1 to C8, C11, C13  computations on the CPU; G1 to G7 on a CUDA device
#   C9, C10, C12, W1 to W6   of the window, on a display of its own
#   grow                time and peak memory over length, width and layers, beside the powers of the theory
#   S1                  training and evaluation over threads, measured and predicted
# --threads N: this program and its peers run on N processors alone; without it on all that there are.
# Peers are timed in the same run where tests/bench/install_peers.sh has installed them, or RECLAB_PEERS names a Python that has them. Ours and all
# peers take turns, at least 20 rounds; a sample is the mean of a burst of calls of 20 ms, a figure the half-sample mode of its samples, and its
# spread their median absolute deviation from it. What takes more than a second a call takes part in every fourth round.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. app/prepare.sh
threads=()
if [ "${1:-}" = --threads ]; then
  [ $# -gt 1 ] || { step="--threads takes a number"; exit 2; }
  threads=(--threads "$2")
  shift 2
fi
[ $# -gt 0 ] || { step="name the rows: ./tests/bench/run.sh [--threads N] C1 [C2 ...], of C1 to C13, G1 to G7, W1 to W6, grow and S1"; exit 2; }
window=() engine=()
for row in "$@"; do
  case $row in C9|C10|C12|W*) window+=("$row");; *) engine+=("$row");; esac
done
if [ ${#window[@]} -gt 0 ]; then
  [ ${#threads[@]} -eq 0 ] || { step="--threads is for rows without a window, not for ${window[*]}"; exit 2; }
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
  build/engine-only/bin/reclab-bench "${threads[@]}" --peers "$python" "$@"
else
  echo "No peers: tests/bench/install_peers.sh installs them." >&2
  build/engine-only/bin/reclab-bench "${threads[@]}" "$@"
fi
step=""
