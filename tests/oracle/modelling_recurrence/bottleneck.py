# SPDX-License-Identifier: GPL-3.0-or-later
"""The temporal latent bottleneck, token by token and head by head, checked against whole chunks as matrices.

Didolkar et al. 2022; keras-team/keras-io, examples/vision/temporal_latent_bottleneck.py, its chunks made causal.
"""
import math

import numpy as np
import torch

from harness import draw, make, under
from parts import Numpy, Torch, encoder_shapes, prefixed, stack
from segment_memories import Memories
from softmax_attention import masked_softmax


def bottleneck_norm(ops, p, name, x):
    return ops.layer_norm(x, p[f"{name}.gamma"], p[f"{name}.beta"])


def bottleneck_rest(ops, p, x, read):
    z = x + read + p["base_attn.mha.attention_output.bias"]
    hidden = ops.activation("gelu", bottleneck_norm(ops, p, "ffn.layernorm", z) @ p["ffn.ffn.dense.kernel"] + p["ffn.ffn.dense.bias"])
    return z + hidden @ p["ffn.ffn.dense_1.kernel"] + p["ffn.ffn.dense_1.bias"]


def bottleneck_row(p, x, rows):
    """One row x that attends to rows, head by head."""
    queries, read = bottleneck_norm(Torch, p, "base_attn.q_layernorm", x), 0.0
    shifts = p | {"base_attn.k_layernorm.beta": p["base_attn.k_layernorm.beta"].detach()}  # what is added to all keys alike has a gradient of 0
    kernel = lambda which, h: (p[f"base_attn.mha.{which}.kernel"][:, h], p[f"base_attn.mha.{which}.bias"][h])
    for h in range(p["base_attn.mha.query.kernel"].shape[1]):
        (W_q, b_q), (W_k, b_k), (W_v, b_v) = (kernel(which, h) for which in ("query", "key", "value"))
        q = queries @ W_q + b_q
        scores = torch.stack([q @ (bottleneck_norm(Torch, shifts, "base_attn.k_layernorm", y) @ W_k + b_k.detach()) for y in rows]) / math.sqrt(len(q))
        values = torch.stack([bottleneck_norm(Torch, p, "base_attn.v_layernorm", y) @ W_v + b_v for y in rows])
        read = read + (torch.softmax(scores, 0) @ values) @ p["base_attn.mha.attention_output.kernel"][h]
    return bottleneck_rest(Torch, p, x, read)


def bottleneck_rows(p, x, y, visible):
    """All rows at once."""
    project = lambda which, z: np.einsum("td,dhk->thk", z, p[f"base_attn.mha.{which}.kernel"]) + p[f"base_attn.mha.{which}.bias"]
    q = project("query", bottleneck_norm(Numpy, p, "base_attn.q_layernorm", x))
    centred = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)  # without what is added to all keys alike
    k = np.einsum("td,dhk->thk", centred * p["base_attn.k_layernorm.gamma"], p["base_attn.mha.key.kernel"])
    v = project("value", bottleneck_norm(Numpy, p, "base_attn.v_layernorm", y))
    weights = masked_softmax(np.einsum("ihk,jhk->hij", q, k) / math.sqrt(q.shape[2]), visible)
    return bottleneck_rest(Numpy, p, x, np.einsum("hij,jhk,hkd->id", weights, v, p["base_attn.mha.attention_output.kernel"]))


def bottleneck_turns(s):
    """(name of the block, whether it attends to the chunk, whether to the slow state)."""
    names, code = [], s.get("schedule", "code") == "code"
    for i in range(s["depth"]):
        names.append((f"pm_self_attn_{i}.", False))
        if i % s["every"] == 0:
            names.append((f"pm_cross_attn_ffn_{i}.", True))
    return [(name, code or not crosses, number % s["every"] == 0 if code else crosses) for number, (name, crosses) in enumerate(names)]


def bottleneck(record, s, p, x):
    n, turns, outputs = s["chunk"], bottleneck_turns(s), []
    states = Memories(record, 0, slow=p["initial_state"] if s.get("start", "zeros") == "learned" else torch.zeros(s["slots"], s["width"]))
    for t in range(len(x)):
        last = t % n == n - 1
        states.step(t, last)
        if t % n == 0:
            seen, chunk = [[] for _ in turns], []
        row = x[t]
        for number, (name, itself, crosses) in enumerate(turns):
            if itself:
                seen[number].append(row)
                row = bottleneck_row(under(p, name), row, seen[number])
            if crosses:
                row = bottleneck_row(under(p, name), row, list(states["slow"]))
        chunk.append(row)
        outputs.append(row)
        if last:
            states.become(slow=torch.stack([bottleneck_row(under(p, "tlb_cross_attn_ffn."), slot, chunk) for slot in states["slow"]]))
    return torch.stack(outputs)


def bottleneck_matrix(s, p, x):
    slow, outputs = p["initial_state"] if s.get("start", "zeros") == "learned" else np.zeros((s["slots"], s["width"])), []
    for first in range(0, len(x), s["chunk"]):
        X = x[first: first + s["chunk"]]
        for name, itself, crosses in bottleneck_turns(s):
            if itself:
                X = bottleneck_rows(under(p, name), X, X, np.tril(np.ones((len(X), len(X)))) > 0)
            if crosses:
                X = bottleneck_rows(under(p, name), X, slow, True)
        outputs.append(X)
        slow = bottleneck_rows(under(p, "tlb_cross_attn_ffn."), slow, X, True)
    return np.concatenate(outputs)


def bottleneck_case(name, s, T, d_in, loss, seed):
    d, H, F = s["width"], s["heads"], s.get("feed_forward", 0) or 4 * s["width"]
    D = s.get("head_dim", 0) or d
    one = {"initial_state": ((s["slots"], d), 1.0)} if s.get("start", "zeros") == "learned" else {}
    for block in [name for name, _, _ in bottleneck_turns(s)] + ["tlb_cross_attn_ffn."]:
        found = {}
        for norm in ("base_attn.q_layernorm", "base_attn.k_layernorm", "base_attn.v_layernorm", "ffn.layernorm"):
            found |= {f"{norm}.gamma": ((d,), 0.3, 1.0), f"{norm}.beta": ((d,), 0.3)}
        for which in ("query", "key", "value"):
            found |= {f"base_attn.mha.{which}.kernel": ((d, H, D), 1.0 / math.sqrt(d)), f"base_attn.mha.{which}.bias": ((H, D), 0.3)}
        found |= {"base_attn.mha.attention_output.kernel": ((H, D, d), 1.0 / math.sqrt(H * D)), "base_attn.mha.attention_output.bias": ((d,), 0.3)}
        found |= {"ffn.ffn.dense.kernel": ((d, F), 1.0 / math.sqrt(d)), "ffn.ffn.dense.bias": ((F,), 0.3), "ffn.ffn.dense_1.kernel": ((F, d), 1.0 / math.sqrt(F)), "ffn.ffn.dense_1.bias": ((d,), 0.3)}
        one |= prefixed(block, found)
    shapes = encoder_shapes(d, d_in) | prefixed("0/", one)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def forward(record, parameters, inputs):
        return stack(lambda layer, p, v: bottleneck(record, s, p, v), lambda p, v: v, {})(parameters, inputs)

    second = stack(lambda layer, p, v: bottleneck_matrix(s, p, v), lambda p, v: v, {})
    make(name, "temporal-latent-bottleneck", s, loss, "token by token and head by head, checked against whole chunks as matrices", draw(seed, shapes), x, forward,
         second=second, seed=seed)


def main():
    bottleneck_case("temporal-latent-bottleneck", {"width": 3, "heads": 1, "depth": 1, "every": 2, "chunk": 3, "slots": 2, "feed_forward": 2}, 10, 3, "mean", 842)
    paper = {"width": 4, "heads": 2, "head_dim": 2, "depth": 1, "every": 1, "chunk": 4, "slots": 3, "feed_forward": 3, "schedule": "paper", "start": "learned"}
    bottleneck_case("temporal-latent-bottleneck-paper", paper, 11, 3, "last", 832)


if __name__ == "__main__":
    main()
