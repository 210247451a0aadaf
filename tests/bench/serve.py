# SPDX-License-Identifier: GPL-3.0-or-later
"""The time of a call of reclab.py beyond the run that it asks for: RECLAB=build/release/bin/reclab python3 tests/bench/serve.py"""
import pathlib
import statistics
import sys
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "app/python"))
import reclab  # noqa: E402

x = numpy.random.default_rng(1).normal(size=(500, 3))
for name, record in (("output, states, gates, gradients", ["output", "state", "gate", "gradient"]), ("output", ["output"])):
    beyond, whole, sent = [], [], 0
    for _ in range(60):
        begin = time.perf_counter()
        run = reclab.run("lstm", x, width=64, record=record)
        seconds = time.perf_counter() - begin
        beyond.append(1e3 * (seconds - run.seconds))
        whole.append(1e3 * seconds)
        sent = sum(numpy.asarray(run[key]).nbytes for key in run)
    beyond, whole = sorted(beyond[10:]), sorted(whole[10:])
    print(f"lstm, width 64, 500 steps, {name} ({sent / 1e6:.2f} MB): {statistics.median(whole):.2f} ms a call, of which beyond the run "
          f"{statistics.median(beyond):.2f} ms in the median, {beyond[0]:.2f} to {beyond[-1]:.2f} ms")
