#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what the benchmark is compared with, tests/bench/peers.txt, into build/peers, a private Python environment. ggml is built, by
# CMake and a C++ compiler.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v python3 >/dev/null || { echo "tests/bench/install_peers.sh: there is no python3; install python3 and python3-venv" >&2; exit 1; }
mkdir -p build
[ -x build/peers/bin/pip ] || python3 -m venv build/peers
export CMAKE_ARGS="-DGGML_NATIVE=ON"  # of ggml, which is built here for this processor
build/peers/bin/pip install --quiet --no-input -r tests/bench/peers.txt
build/peers/bin/python - tests/bench/peers.txt <<'END'
import sys
from importlib import metadata
print(", ".join(f"{name} {metadata.version(name)}" for name in open(sys.argv[1]).read().split()))
END
