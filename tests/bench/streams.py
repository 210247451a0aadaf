#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of Table 1 of Tiezzi and others (2024, On the resurgence of recurrent models for long sequences) that need no data: one pass over
each stream, errors of its last three quarters. Of the survey's three rates the best is shown, as it chose among them.

    tests/bench/streams.py [RECLAB] > tests/bench/results/DATE-streams.txt
"""
import json
import pathlib
import subprocess
import sys

reclab = sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).parents[2] / "build/release/bin/reclab")
streams = {"Synth": "--source sine --steps 36000 --burn-in 9000", "S-A": "--source s-abrupt --steps 6000 --burn-in 1500",
           "S-G": "--source s-gradual --steps 5000 --burn-in 1250"}
printed = {  # squared and absolute error
    "RNN (RTRL)": {"Synth": (9.2e-3, 0.051), "S-A": (1.373, 0.936), "S-G": (1.297, 0.900)},
    "RNN (UORO)": {"Synth": (2.723, 0.506), "S-A": (1.373, 0.936), "S-G": (1.297, 0.900)},
    "LSTM 1": {"Synth": (4.0e-3, 0.011), "S-A": (1.222, 0.884), "S-G": (1.262, 0.888)},
    "LSTM 10": {"Synth": (2.7e-3, 0.011), "S-A": (1.230, 0.886), "S-G": (1.201, 0.864)},
    "LSTM 60": {"Synth": (1.4e-3, 0.009), "S-A": (1.216, 0.882), "S-G": (1.213, 0.868)},
    "LSTM 100": {"Synth": (1.7e-3, 0.010), "S-A": (1.215, 0.883), "S-G": (1.217, 0.870)},
    "LSTM (No Reset) 1": {"Synth": (2.0e-3, 0.009), "S-A": (1.205, 0.879), "S-G": (1.209, 0.866)},
    "LSTM (No Reset) 10": {"Synth": (1.1e-3, 0.011), "S-A": (1.226, 0.884), "S-G": (1.202, 0.864)},
    "LSTM (No Reset) 60": {"Synth": (1.2e-3, 0.008), "S-A": (1.269, 0.901), "S-G": (1.195, 0.862)},
    "LSTM (No Reset) 100": {"Synth": (1.1e-3, 0.008), "S-A": (1.229, 0.886), "S-G": (1.265, 0.888)},
    "Dummy": {"Synth": (3.0e-6, 1.6e-3), "S-A": (1.430, 0.951), "S-G": (1.377, 0.924)}}
common = "--rates 0.0001,0.001,0.01"
lstm, rnn = f"lstm --set width=16 {common} --optimiser adamw", f"elman --set width=16 {common}"
rows = [("RNN (RTRL)", "AdamW", f"{rnn} --optimiser adamw --rule rtrl"), ("RNN (RTRL)", "gradient descent", f"{rnn} --optimiser sgd --rule rtrl"),
        ("RNN (UORO)", "AdamW", f"{rnn} --optimiser adamw --rule uoro"), ("RNN (UORO)", "gradient descent", f"{rnn} --optimiser sgd --rule uoro")]
for window in (1, 10, 60, 100):
    for name, reset in ((f"LSTM {window}", " --reset"), (f"LSTM (No Reset) {window}", "")):
        rows.append((name, "a change a step", f"{lstm} --truncate {window} --advance 1{reset}"))
        if window > 1:
            rows.append((name, "a change a window", f"{lstm} --truncate {window}{reset}"))

for stream, source in streams.items():
    print(f"{stream}: reclab stream ... {source}")
    print(f"  {'':22}{'':20}{'printed':>20}{'here':>24}{'rate':>14}")
    baselines = None
    for name, how, command in rows:
        words = ["stream", *command.split(), *source.split(), "--json"]
        result = json.loads(subprocess.run([reclab, *words], check=True, capture_output=True, text=True).stdout)
        learners = [one for one in result["predictors"] if one["name"].startswith("rate=") and one["mean"]["squared"] is not None]
        best = min(learners, key=lambda one: one["mean"]["squared"])
        baselines = [one for one in result["predictors"] if not one["name"].startswith("rate=")]
        squared, absolute = printed[name][stream]
        print(f"  {name:22}{how:20}{squared:11.3g}{absolute:9.3g}{best['mean']['squared']:14.4g}{best['mean']['absolute']:10.3g}"
              f"{best['name'].removeprefix('rate='):>14}   reclab {' '.join(words[:-1])}", flush=True)
    for one in baselines:
        squared, absolute = printed["Dummy"][stream] if one["name"] == "last" else (float("nan"), float("nan"))
        print(f"  {one['name']:22}{'':20}{squared:11.3g}{absolute:9.3g}{one['mean']['squared']:14.4g}{one['mean']['absolute']:10.3g}")
