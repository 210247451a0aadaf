# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes golden/pytorch/: state dicts as PyTorch names them, and what the modules return, for tests/engine/sweeps/test_weights.cpp and
tests/app/cli/test_weights.cpp.

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


class Steps(torch.nn.Module):
    """A cell, applied step after step; its state dict is that of the cell."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        state, outputs = None, []
        for row in x:
            state = self.cell(row[None], state)
            outputs.append((state[0] if isinstance(state, tuple) else state)[0])
        return torch.stack(outputs)

    def state_dict(self):
        return self.cell.state_dict()


class Reader(torch.nn.Module):
    """As speech and text models are built: cells or layers beside what is none. `part` is run."""

    def __init__(self, part, **others):
        super().__init__()
        for name, module in others.items():
            setattr(self, name, module)
        self.part = part

    def forward(self, x):
        part = self.get_submodule(self.part)
        return Steps(part)(x) if isinstance(part, torch.nn.RNNCellBase) else part(x)[0]


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
# What is run by a command on a CSV of three columns.
OTHERS = {
    "lstm-module": torch.nn.LSTM(3, 5),
    "gru-module": torch.nn.GRU(3, 5, num_layers=2),
    "rnn-module": torch.nn.RNN(3, 5),
    "lstm-cell": Steps(torch.nn.LSTMCell(3, 5)),
    "gru-cell": Steps(torch.nn.GRUCell(3, 5)),
    "rnn-cell": Steps(torch.nn.RNNCell(3, 5)),
    "lstm-head": Model(torch.nn.LSTM(3, 5), 5),
    "cell-beside-convolutions": Reader("decoder.rnn", encoder=torch.nn.Sequential(torch.nn.Conv1d(3, 4, 3), torch.nn.ReLU(), torch.nn.Conv1d(4, 3, 3)),
                                       decoder=torch.nn.ModuleDict({"rnn": torch.nn.LSTMCell(3, 5), "out": torch.nn.Conv1d(5, 1, 1)})),
    "encoder-and-decoder": Reader("decoder", embedding=torch.nn.Embedding(6, 3), encoder=torch.nn.GRU(3, 4), decoder=torch.nn.GRU(3, 4), out=torch.nn.Linear(4, 6)),
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
COMMANDS = FOLDER / "commands"
COMMANDS.mkdir(exist_ok=True)
for number, (name, model) in enumerate(OTHERS.items()):
    torch.manual_seed(100 + number)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.8, 0.8)
        x = torch.randn(STEPS, 3)
        y = model.rnn(x)[0] if name == "lstm-head" else model(x)
        y = model.fc(y) if name == "lstm-head" else y[0] if isinstance(y, tuple) else y
        save_file({key: value.contiguous() for key, value in model.state_dict().items()}, COMMANDS / f"{name}.safetensors")
        np.savez(COMMANDS / f"{name}.npz", input=x.numpy(), output=y.numpy())
