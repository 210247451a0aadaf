# SPDX-License-Identifier: GPL-3.0-or-later
"""The growth of each online rule's memory and time with the size of the state, beside the powers that its row states:
RECLAB=build/release/bin/reclab python3 tests/bench/rule_costs.py. An Elman network, or IndRNN in a stack where a rule takes no full matrix."""
import json
import math
import os
import subprocess
import tempfile

import numpy

reclab = os.environ.get("RECLAB", "build/release/bin/reclab")
rows = {row["id"]: row for row in json.loads(subprocess.run([reclab, "rules", "--json"], check=True, capture_output=True).stdout)}


def cost(rule, model, width):
    """Bytes, and seconds a step: the least of three."""
    least = math.inf
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            command = [reclab, "credit", model, "--task", "mackey-glass", "--length", "24", "--rules", rule, "--repeats", "2", "--delays", "1",
                       "--set", f"width={width}", "--export", f"{folder}/out"]
            if subprocess.run(command, capture_output=True).returncode:
                return None
            trace = numpy.load(f"{folder}/out/trace.npz")
            least = min(least, float(trace[f"credit/{rule}/seconds"][0]))
            memory = float(trace[f"credit/{rule}/bytes"][0])
    return memory, least


print(f"{'rule':16}{'model':10}{'memory: stated':>16}{'measured':>10}{'time: stated':>14}{'measured':>10}   bytes and time of a step, widths 32 and 64")
for rule, row in rows.items():
    for model in ("elman", "lru"):
        small, large = cost(rule, model, 32), cost(rule, model, 64)
        if small and large:
            powers = [math.log2(b / a) for a, b in zip(small, large)]
            print(f"{rule:16}{model:10}{row['memory_power']:16.0f}{powers[0]:10.2f}{row['time_power']:14.0f}{powers[1]:10.2f}   "
                  f"{small[0] / 1e3:.0f} and {large[0] / 1e3:.0f} kB, {1e6 * small[1]:.0f} and {1e6 * large[1]:.0f} µs")
            break
    else:
        print(f"{rule:16}no gradient of each step: it goes over whole sequences")
