# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes golden/ anew: every file, or those named on the command line, as `make_golden.py gru retnet-block`.

Each oracle checks itself against a second, independent form first and stops at a disagreement.
"""
import importlib
import pathlib
import sys

from harness import GOLDEN, known, wanted

HERE = pathlib.Path(__file__).parent
SCRIPTS = sorted([*HERE.glob("*.py"), *HERE.glob("*/*.py")], key=lambda path: path.stem)

sys.path += sorted({str(path.parent) for path in SCRIPTS})  # they use each other's parts
wanted.update(sys.argv[1:])
for script in SCRIPTS:
    if "\ndef main(" in script.read_text():
        importlib.import_module(script.stem).main()
if wanted - known:
    sys.exit(f"no such golden file: {', '.join(sorted(wanted - known))}")
print(f"{sum(path.stat().st_size for path in GOLDEN.glob('*/*.npz')) / 1024:.0f} KiB in all")
