# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers whose memory goes from segment to segment, token by token, each checked against whole segments as matrices.

Infini-attention  Munkhdalai et al. 2024; lucidrains/infini-transformer-pytorch, infini_transformer.py (the authors published no code).
"""
import math

import numpy as np
import torch

from harness import draw, make
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, prefixed, stack
from softmax_attention import attend, by_head, masked_softmax


class Memories:
    """The states of a layer: recorded when they change, held at the other steps of a segment."""

    def __init__(self, record, layer, **initial):
        self.record, self.layer, self.now = record, layer, initial

    def __getitem__(self, name):
        return self.now[name]

    def step(self, t, last):
        """At the start of step t."""
        for name in self.now:
            if t == 0 and not last:
                self.now[name] = self.record.state(self.layer, name, self.now[name])
            elif not last:
                self.record.hold(self.layer, name)

    def become(self, **new):
        """At the last step of a segment."""
        for name, value in new.items():
            self.now[name] = self.record.state(self.layer, name, value)


# --------------------------------------------------------------------------------------------------- Infini-attention

def turned(s, z, place):
    """The pairs (2i, 2i + 1) of each head turned by place base^(-2i/D), as complex numbers."""
    D = z.shape[-1]
    pairs = torch.view_as_complex(z.reshape(*z.shape[:-1], D // 2, 2))
    turns = torch.tensor([complex(math.cos(a), math.sin(a)) for a in (place * s.get("rotary_base", 10000.0) ** (-i / D) for i in range(0, D, 2))])
    return torch.view_as_real(pairs * turns).reshape(z.shape)


def infini(record, layer, s, p, x):
    heads, n, rotary, eps = s["heads"], s["segment"], s.get("position", "rotary") == "rotary", s.get("eps", 1e-10)
    qkv = (x @ p["0.to_qkv.weight"].T).reshape(len(x), 3, heads, -1)
    D = qkv.shape[-1]
    g = torch.sigmoid(p["0.fastweight_mem.head_gates"])
    g = g if s.get("gate", "memory") == "memory" else 1.0 - g
    memory = Memories(record, layer, M=torch.zeros(heads, D, D), z=torch.zeros(heads, D))
    outputs = []

    def recall(f):
        """f [heads, D]: what each head's memory has for it."""
        return torch.stack([(f[h] @ memory["M"][h]) / torch.clamp(f[h] @ memory["z"][h], min=eps) for h in range(heads)])

    for t in range(len(x)):
        place, first, last = t % n, t < n, t % n == n - 1
        if place == 0:
            keys, values, features = [], [], []
        memory.step(t, last)
        q, k, v = qkv[t]
        fq, fk = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
        if rotary:
            q, k = turned(s, q, place), turned(s, k, place)
        if s.get("rotary_memory", False):
            fq, fk = turned(s, fq, place), turned(s, fk, place)
        keys.append(k)
        values.append(v)
        features.append(fk)
        local = attend(q, keys, values).reshape(heads, D)
        if first:
            share = 0.0 * g if s.get("first_segment", "local") == "local" else g
            read = torch.zeros(heads, D)
        else:
            share, read = g, recall(fq)
        outputs.append((share[:, None] * read + (1.0 - share[:, None]) * local).reshape(-1))
        if last:
            M, z = memory["M"], memory["z"]
            for f, v in zip(features, values):
                new = v - recall(f) if s.get("rule", "linear") == "delta" and not first else v
                M, z = M + f[:, :, None] * new[:, None, :], z + f
            stop = s.get("stop_gradient", False)
            memory.become(M=M.detach() if stop else M, z=z.detach() if stop else z)
    return torch.stack(outputs) @ p["0.to_out.weight"].T


def infini_matrix(s, p, x, frozen):
    """All pairs of steps: the linear memory as linear attention to the segments before, the delta rule by its transitions. With stopped
    gradients the memories are those of the first call."""
    heads, n, T = s["heads"], s["segment"], len(x)
    q, k, v = (by_head(z, heads) for z in np.split(x @ p["0.to_qkv.weight"].T, 3, axis=1))
    D = q.shape[2]
    elu = lambda z: np.where(z > 0, z + 1.0, np.exp(np.minimum(z, 0.0)))
    fq, fk = elu(q), elu(k)
    steps = np.arange(T)
    segment = steps // n

    def turn(z):
        angle = np.outer(steps % n, s.get("rotary_base", 10000.0) ** (-np.arange(0, D, 2) / D))[:, None]
        y = np.empty_like(z)
        y[..., 0::2] = z[..., 0::2] * np.cos(angle) - z[..., 1::2] * np.sin(angle)
        y[..., 1::2] = z[..., 1::2] * np.cos(angle) + z[..., 0::2] * np.sin(angle)
        return y

    if s.get("position", "rotary") == "rotary":
        q, k = turn(q), turn(k)
    if s.get("rotary_memory", False):
        fq, fk = turn(fq), turn(fk)
    visible = (steps[None, :] <= steps[:, None]) & (segment[None, :] == segment[:, None])
    local = np.einsum("hts,shi->thi", masked_softmax(np.einsum("thi,shi->hts", q, k) / math.sqrt(D), visible), v)
    eps, past = s.get("eps", 1e-10), segment[None, :] < segment[:, None]
    if s.get("stop_gradient", False):
        fk, v = frozen.setdefault("written", (fk, v))
    if s.get("rule", "linear") == "linear":
        pairs = np.where(past, np.einsum("thi,shi->hts", fq, fk), 0.0)
        read = np.einsum("hts,shi->thi", pairs, v) / np.maximum(pairs.sum(2), eps).T[:, :, None]
    else:
        M, z, read = np.zeros((heads, D, D)), np.zeros((heads, D)), np.zeros_like(local)
        for number in range(segment[-1] + 1):
            rows = slice(number * n, (number + 1) * n)
            read[rows] = np.einsum("thi,hij->thj", fq[rows], M) / np.maximum(np.einsum("thi,hi->th", fq[rows], z), eps)[:, :, None]
            weights = fk[rows] / np.maximum(np.einsum("thi,hi->th", fk[rows], z), eps)[:, :, None] if number else 0.0 * fk[rows]
            A = np.eye(D)[None] - np.einsum("thi,thj->hij", fk[rows], weights)
            M = np.einsum("hij,hjk->hik", A, M) + np.einsum("thi,thj->hij", fk[rows], v[rows])
            z = z + fk[rows].sum(0)
    g = Numpy.sigmoid(p["0.fastweight_mem.head_gates"])[None, :, None]
    g = g if s.get("gate", "memory") == "memory" else 1.0 - g
    if s.get("first_segment", "local") == "local":
        g = np.where((segment > 0)[:, None, None], g, 0.0)
    return (g * read + (1.0 - g) * local).reshape(T, -1) @ p["0.to_out.weight"].T


def infini_norm(ops, p, name, x):
    length = (x * x).sum(-1) ** 0.5
    return x / length[..., None] * math.sqrt(x.shape[-1]) * p[f"{name}.gamma"]


def infini_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    x = x + mixer(p, infini_norm(ops, p, "0.norm", x))
    hidden = affine(p, "1.proj_in", infini_norm(ops, p, "1.norm", x))
    F = hidden.shape[-1] // 2
    return x + affine(p, "1.proj_out", ops.activation("gelu", hidden[:, F:]) * hidden[:, :F])


def infini_case(name, s, T, d_in, loss, seed):
    d, heads = s["width"], s["heads"]
    D, F = s.get("head_dim", 0) or d // heads, s.get("feed_forward", 0) or 8 * d // 3
    shapes = encoder_shapes(d, d_in)
    for layer in range(s["layers"]):
        one = linear_shapes("0.to_qkv", 3 * heads * D, d) | linear_shapes("0.to_out", d, heads * D) | {"0.fastweight_mem.head_gates": ((heads,), 0.7)}
        if s["block"] != "none":
            one |= {"0.norm.gamma": ((d,), 0.3, 1.0), "1.norm.gamma": ((d,), 0.3, 1.0)}
            one |= linear_shapes("1.proj_in", 2 * F, d, True) | linear_shapes("1.proj_out", d, F, True)
        shapes |= prefixed(f"{layer}/", one)
    if s["block"] != "none":
        shapes |= {"final/norm.gamma": ((d,), 0.3, 1.0)}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    frozen = {}

    def forward(record, parameters, inputs):
        one = lambda layer, p, v: infini_layer(Torch, lambda p, v: infini(record, layer, s, p, v), s, p, v)
        return stack(one, lambda p, v: infini_norm(Torch, p, "norm", v) if s["block"] != "none" else v, s)(parameters, inputs)

    def second(values, x):
        one = lambda layer, p, v: infini_layer(Numpy, lambda p, v: infini_matrix(s, p, v, frozen.setdefault(layer, {})), s, p, v)
        return stack(one, lambda p, v: infini_norm(Numpy, p, "norm", v) if s["block"] != "none" else v, s)(values, x)

    make(name, "infini-attention", s, loss, "token by token, checked against all pairs of steps or the transitions of whole segments", draw(seed, shapes), x, forward,
         second=second, seed=seed)


# -------------------------------------------------------------------------------------------------------------- cases

def main():
    infini_case("infini-attention", {"width": 6, "heads": 1, "layers": 2, "segment": 4, "feed_forward": 5, "block": "residual"}, 14, 6, "mean", 801)
    delta = {"width": 4, "heads": 2, "head_dim": 3, "layers": 1, "segment": 3, "rule": "delta", "position": "none", "first_segment": "zero", "block": "none"}
    infini_case("infini-attention-delta", delta, 13, 3, "mean", 802)
    turned_too = {"width": 4, "heads": 2, "head_dim": 4, "layers": 2, "segment": 3, "rule": "delta", "gate": "local", "rotary_base": 50.0, "rotary_memory": True,
                  "stop_gradient": True, "eps": 0.5, "feed_forward": 3, "block": "residual"}
    infini_case("infini-attention-rotary-memory", turned_too, 11, 4, "mean", 803)


if __name__ == "__main__":
    main()
