#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what the benchmark is compared with into build/peers, a private Python environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v python3 >/dev/null || { echo "tests/bench/install_peers.sh: there is no python3; install python3 and python3-venv" >&2; exit 1; }
mkdir -p build
[ -x build/peers/bin/pip ] || python3 -m venv build/peers
build/peers/bin/pip install --quiet --no-input -r tests/bench/peers.txt
build/peers/bin/python -c 'import jax, torch; print("torch", torch.__version__, "jax", jax.__version__)'
