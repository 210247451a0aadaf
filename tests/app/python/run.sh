#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# reclab.py with a program: tests/app/python/run.sh RECLAB plain|torch. `plain` needs NumPy alone; `torch` installs PyTorch and the reference
# packages into build/oracle-python, once. Exit status 77: not here.
set -euo pipefail
export RECLAB=$(realpath "$1")
what=$2
cd "$(dirname "$0")/../../.."
window=${RECURRENCE_LAB:-build/release/bin/recurrence-lab}
if [ -x "$window" ]; then export RECURRENCE_LAB=$(realpath "$window") QT_QPA_PLATFORM=${QT_QPA_PLATFORM:-offscreen}; else unset RECURRENCE_LAB; fi
skip() { echo "skipped: $1"; exit 77; }
if [ "$what" = plain ]; then
  for python in ${RECLAB_PYTHON:-} /usr/bin/python3 python3; do
    "$python" -c "import numpy" 2>/dev/null && exec "$python" -W error::ResourceWarning tests/app/python/test_reclab.py
  done
  skip "there is no Python with NumPy (python3-numpy)"
fi
python=${RECLAB_ORACLE:-build/oracle-python/bin/python}
if ! "$python" -c "import torch, numpy" 2>/dev/null; then
  python3 -m venv build/oracle-python || skip "there is no python3 with venv"
  python=build/oracle-python/bin/python
  build/oracle-python/bin/pip install --quiet --no-input -r tests/app/python/packages.txt || skip "PyTorch cannot be installed here"
fi
exec "$python" tests/app/python/test_torch.py
