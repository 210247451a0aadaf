# SPDX-License-Identifier: GPL-3.0-or-later
"""python tests/bench/peers: the process that reclab-bench asks for the peers of a row and for the seconds of their calls (see common.serve)."""
import pathlib
import sys

sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
from peers import common  # noqa: E402  (first: it says how many threads there are)
from peers import attention, convolution, lstm, reading, scans, selective, training  # noqa: E402

common.serve({
    "C1": scans.real, "C2": scans.complex_both_ways, "C3": selective.mamba, "C4": convolution.convolution, "C5": lstm.layers, "C6": lstm.layers,
    "C7": attention.gated, "C8": training.steps, "C11": lstm.evaluation, "C13": reading.table,
    "G1": scans.real, "G2": scans.real, "G3": selective.mamba, "G4": attention.gated, "G5": lstm.layers, "G6": convolution.convolution})
