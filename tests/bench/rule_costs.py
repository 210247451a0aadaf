# SPDX-License-Identifier: GPL-3.0-or-later
"""The growth of each online rule's memory and time with the size of the state, beside the powers that its row states:
RECLAB=build/release/bin/reclab python3 tests/bench/rule_costs.py. An Elman network, or LRU where a rule takes no full matrix. Of rules that go
over whole sequences the processor's time of a step of a sequence in training, at larger widths, where it is no longer that of the calls; their
memory is in tests/engine/learning/test_rule_costs.cpp. RULES in the command line: those alone."""
import json
import math
import os
import resource
import subprocess
import sys
import tempfile

reclab = os.environ.get("RECLAB", "build/release/bin/reclab")
rows = {row["id"]: row for row in json.loads(subprocess.run([reclab, "rules", "--json"], check=True, capture_output=True).stdout)}


def cost(rule, model, width):
    """Bytes, and seconds a step: the least of three."""
    least = math.inf
    for _ in range(3):
        command = [reclab, "credit", model, "--task", "mackey-glass", "--length", "24", "--rules", rule, "--repeats", "2", "--delays", "1",
                   "--set", f"width={width}", "--json"]
        found = subprocess.run(command, capture_output=True)
        if found.returncode:
            return None
        made = json.loads(found.stdout)[0]
        least, memory = min(least, made["seconds"]), made["bytes"]
    return memory, least


def trained(rule, model, width):
    """Seconds of a processor for a step of a sequence: the difference of a longer and a shorter training, each the least of two."""
    length, short, long = 24, 2, 2 + max(1, 6400 // width // (32 if rule == "block-descent" else 1))
    least = {}
    for steps in (short, long, short, long):
        with tempfile.TemporaryDirectory() as folder:
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            command = [reclab, "train", model, "--set", f"width={width}", "--task", "mackey-glass", "--length", str(length), "--batch", "1",
                       "--held-out", "1", "--judge-every", "1000000", "--steps", str(steps), "--rule", rule, "--export", f"{folder}/out"]
            if subprocess.run(command, capture_output=True).returncode:
                return None
            taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            least[steps] = min(taken, least.get(steps, math.inf))
    return (least[long] - least[short]) / (long - short) / length


print(f"{'rule':16}{'model':10}{'memory: stated':>16}{'measured':>10}{'time: stated':>14}{'measured':>10}   bytes and time of a step, widths 32 and 64")
for rule, row in rows.items():
    if sys.argv[1:] and rule not in sys.argv[1:]:
        continue
    for model in ("elman", "lru"):
        small, large = cost(rule, model, 32), cost(rule, model, 64)
        if small and large:
            powers = [math.log2(b / a) for a, b in zip(small, large)]
            print(f"{rule:16}{model:10}{row['memory_power']:16.0f}{powers[0]:10.2f}{row['time_power']:14.0f}{powers[1]:10.2f}   "
                  f"{small[0] / 1e3:.0f} and {large[0] / 1e3:.0f} kB, {1e6 * small[1]:.0f} and {1e6 * large[1]:.0f} µs")
            break
    else:
        for model in ("elman", "columnar-lstm"):
            widths = (64, 128) if row["time_power"] > 2 or model == "columnar-lstm" else (128, 256)
            small, large = (trained(rule, model, width) for width in widths)
            if small and large:
                print(f"{rule:16}{model:14}{row['memory_power']:12.0f}{'':10}{row['time_power']:14.0f}{math.log2(large / small):10.2f}   "
                      f"{1e6 * small:.0f} and {1e6 * large:.0f} µs of a processor, widths {widths[0]} and {widths[1]}, in training")
                break
        else:
            print(f"{rule:16}no gradient of each step, and it takes neither model on this task")
