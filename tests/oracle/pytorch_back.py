# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads what `reclab run ID --export DIR` or `reclab train ID --export DIR` wrote into PyTorch's own modules and compares their outputs with the lab's.

    /tmp/oracle/bin/python tests/oracle/pytorch_back.py DIR...      # DIR has trace.npz and manifest.json of lstm, gru or elman
"""
import json
import pathlib
import sys

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
MODULES = {"lstm": (torch.nn.LSTM, torch.nn.LSTMCell), "gru": (torch.nn.GRU, torch.nn.GRUCell), "elman": (torch.nn.RNN, torch.nn.RNNCell)}


def run(module, cell, weights, layers, x):
    width = weights["0/weight_hh"].shape[1]
    whole = module(x.shape[1], width, num_layers=layers)
    whole.load_state_dict({f"{name}_l{n}": weights[f"{n}/{name}"] for n in range(layers) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")})
    y = x
    for n in range(layers):
        one = cell(y.shape[1], width)
        one.load_state_dict({name: weights[f"{n}/{name}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")})
        state, outputs = None, []
        for row in y:
            state = one(row[None], state)
            outputs.append((state[0] if isinstance(state, tuple) else state)[0])
        y = torch.stack(outputs)
    return whole(x)[0], y


for folder in map(pathlib.Path, sys.argv[1:]):
    trace, manifest = np.load(folder / "trace.npz"), json.loads((folder / "manifest.json").read_text())
    weights = {key[6:]: torch.from_numpy(trace[key]) for key in trace.files if key.startswith("param/")}
    module, cell = MODULES[manifest["architecture"]]
    with torch.no_grad():
        for what, y in zip(("module", "cells"), run(module, cell, weights, int(manifest["hyper"]["layers"]), torch.from_numpy(trace["input"]))):
            if "head/weight" in weights:
                y = torch.nn.functional.linear(y, weights["head/weight"], weights["head/bias"])
            print(f"{folder} {what}: largest difference {np.abs(y.numpy() - trace['output']).max():.1e}")
