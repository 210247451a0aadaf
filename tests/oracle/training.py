# SPDX-License-Identifier: GPL-3.0-or-later
"""Training as PyTorch does it: torch.nn.RNN, LSTM, GRU and TransformerEncoderLayer below a linear head, a hundred steps of each of torch.optim's
optimisers that the engine has, with its clipping. A file a model in training/: the batches, the weights at the start, the loss of each step and
the weights at the end.
"""
import math

import numpy as np
import torch

from harness import GOLDEN, known, wanted

STEPS, BATCH, LENGTH, INPUT, WIDTH = 100, 3, 8, 2, 4
VARIANTS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "sgd-momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=0.01),
    "sgd-nesterov": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.003),
    "rmsprop-momentum": lambda p: torch.optim.RMSprop(p, lr=0.002, alpha=0.95, eps=1e-6, momentum=0.5, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam-decay": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.02),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "clip-norm": lambda p: torch.optim.SGD(p, lr=0.3),
    "clip-value": lambda p: torch.optim.SGD(p, lr=0.3),
    "cosine": lambda p: torch.optim.Adam(p, lr=0.02),
}


class Recurrent(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = kind(INPUT, WIDTH, batch_first=True)
        self.head = torch.nn.Linear(WIDTH, 1)

    def forward(self, x):
        return self.head(self.layer(x)[0])

    def names(self):
        own = {f"layer.{name}_l0": f"0/{name}" for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
        return own | {"head.weight": "head/weight", "head.bias": "head/bias"}


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(INPUT, WIDTH)
        self.layer = torch.nn.TransformerEncoderLayer(WIDTH, 2, 8, dropout=0.0, batch_first=True)
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, 1)

    def forward(self, x):
        steps = x.shape[1]
        angles = torch.arange(steps)[:, None] / 10000.0 ** (torch.arange(0, WIDTH, 2) / WIDTH)
        positions = torch.stack([torch.sin(angles), torch.cos(angles)], -1).reshape(steps, WIDTH)
        mask = torch.full((steps, steps), -math.inf).triu(1)
        return self.head(self.norm(self.layer(self.encoder(x) + positions, src_mask=mask)))

    def names(self):
        inner = [name for name, _ in self.layer.named_parameters()]
        others = {"encoder.weight": "encoder/weight", "encoder.bias": "encoder/bias", "norm.weight": "final/norm.weight", "norm.bias": "final/norm.bias"}
        return {f"layer.{name}": f"0/{name}" for name in inner} | others | {"head.weight": "head/weight", "head.bias": "head/bias"}


def train(model, start, variant, inputs, targets):
    model.load_state_dict(start)
    optimiser = VARIANTS[variant](model.parameters())
    schedule = None
    if variant == "cosine":  # ten steps up, then half a cosine down to 0.001
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: (step + 1) / 10 if step < 10 else (0.001 + 0.019 * (1 + math.cos(math.pi * (step - 10) / (STEPS - 10))) / 2) / 0.02
        )
    losses = []
    for x, y in zip(inputs, targets):
        optimiser.zero_grad()
        loss = 0.5 * ((model(x) - y) ** 2).sum(-1).mean()
        loss.backward()
        if variant == "clip-norm":
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        if variant == "clip-value":
            torch.nn.utils.clip_grad_value_(model.parameters(), 0.02)
        optimiser.step()
        if schedule:
            schedule.step()
        losses.append(loss.item())
    return np.array(losses)


def main():
    folder = GOLDEN.parent / "training"
    folder.mkdir(exist_ok=True)
    makers = {"elman": lambda: Recurrent(torch.nn.RNN), "lstm": lambda: Recurrent(torch.nn.LSTM), "gru": lambda: Recurrent(torch.nn.GRU), "transformer": Attention}
    for seed, (name, make) in enumerate(makers.items()):
        known.add(f"training-{name}")
        if wanted and f"training-{name}" not in wanted:
            continue
        torch.manual_seed(400 + seed)
        model = make()
        inputs = torch.randn(STEPS, BATCH, LENGTH, INPUT)
        targets = 0.4 * inputs[..., :1].cumsum(2) - 0.3 * inputs[..., 1:]
        start = {key: value.clone() for key, value in model.state_dict().items()}
        arrays = {"input": inputs.numpy(), "target": targets.numpy()}
        names = model.names()
        assert set(names) == set(start)
        for key, value in start.items():
            arrays["param/" + names[key]] = value.numpy()
        for variant in VARIANTS:
            arrays["loss/" + variant] = train(model, start, variant, inputs, targets)
            for key, value in model.state_dict().items():
                after = value.numpy().copy()
                if key.endswith("in_proj_bias"):
                    after[WIDTH : 2 * WIDTH] = np.nan  # of the keys, which the softmax cancels: its gradient is rounding, and Adam takes that for a direction
                arrays[f"after/{variant}/{names[key]}"] = after
        np.savez(folder / f"{name}.npz", **arrays)
        print(f"training {name}: " + ", ".join(f"{v} {arrays['loss/' + v][0]:.3f} -> {arrays['loss/' + v][-1]:.3f}" for v in VARIANTS))
