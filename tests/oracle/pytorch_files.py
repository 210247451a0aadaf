# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes golden/pytorch/: state dicts as PyTorch names them, and what the modules return, for tests/engine/sweeps/test_weights.cpp.

    /tmp/oracle/bin/pip install torch numpy safetensors
    /tmp/oracle/bin/python tests/oracle/pytorch_files.py
"""
import pathlib

import numpy as np
import torch
from safetensors.torch import save_file

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
FOLDER = pathlib.Path(__file__).resolve().parent / "golden" / "pytorch"
STEPS, COLUMNS, WIDTH, OUTPUTS = 7, 2, 3, 2


class Model(torch.nn.Module):
    """Layers, and a linear map after them where there is a head."""

    def __init__(self, layers, head):
        super().__init__()
        self.rnn = layers
        if head:
            self.fc = torch.nn.Linear(head, OUTPUTS)

    def forward(self, x):
        y, _ = self.rnn(x)
        return self.fc(y) if hasattr(self, "fc") else y


CASES = {
    "elman": (torch.nn.RNN(COLUMNS, WIDTH, num_layers=2), 0),
    "elman-bidirectional": (torch.nn.RNN(COLUMNS, WIDTH, bidirectional=True), 0),
    "gru": (torch.nn.GRU(COLUMNS, WIDTH, num_layers=3), WIDTH),
    "gru-bidirectional": (torch.nn.GRU(COLUMNS, WIDTH, num_layers=2, bidirectional=True), 0),
    "lstm": (torch.nn.LSTM(COLUMNS, WIDTH, num_layers=2, bias=False), 0),
    "lstm-projection": (torch.nn.LSTM(COLUMNS, WIDTH, num_layers=2, proj_size=2), 0),
    "lstm-bidirectional": (torch.nn.LSTM(COLUMNS, WIDTH, bidirectional=True), 2 * WIDTH),
    "lstm-bidirectional-2": (torch.nn.LSTM(COLUMNS, WIDTH, num_layers=2, bidirectional=True), 2 * WIDTH),
}

FOLDER.mkdir(parents=True, exist_ok=True)
for number, (name, (layers, head)) in enumerate(CASES.items()):
    torch.manual_seed(number)
    model = Model(layers, head)
    with torch.no_grad():
        for parameter in model.parameters():  # the modules above were made before the seed
            parameter.uniform_(-0.8, 0.8)
        x = torch.randn(STEPS, COLUMNS)
        save_file({key: value.contiguous() for key, value in model.state_dict().items()}, FOLDER / f"{name}.safetensors")
        np.savez(FOLDER / f"{name}.npz", input=x.numpy(), output=model(x).numpy())
