#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Times rows of the benchmark: ./tests/bench/run.sh C1 [C2 ...]. One JSON object a row on standard output, a table on standard error.
# Peers are timed in the same run where tests/bench/install_peers.sh has installed them, or RECLAB_PEERS names a Python that has them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. app/prepare.sh
[ $# -gt 0 ] || { step="name the rows: ./tests/bench/run.sh C1 [C2 ...], of C1 to C8 and G1 to G7"; exit 2; }
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
