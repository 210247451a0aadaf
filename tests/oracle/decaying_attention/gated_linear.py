# SPDX-License-Identifier: GPL-3.0-or-later
"""AReLiT (AGaLiTe) step by step, checked against sums over all pairs of steps with products of what is kept.

Pramanik et al. 2023; subho406/agalite, src/models/agalite/agalite.py.
"""
import math

import numpy as np
import torch

from harness import draw, make, under
from parts import Numpy, Torch, prefixed


def dense(p, name, x):
    y = x @ p[f"{name}.kernel"]
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def gate(ops, p, x, y):
    r = ops.sigmoid(dense(p, "Wr", y) + dense(p, "Ur", x))
    z = ops.sigmoid(dense(p, "Wz", y) + dense(p, "Uz", x) - p["bgp"])
    tanh = torch.tanh if ops is Torch else np.tanh
    return (1.0 - z) * x + z * tanh(dense(p, "Wg", y) + dense(p, "Ug", r * x))


def inputs_of(ops, s, p, x):
    """k, q, gamma [T, heads, eta, D] flattened to [T, heads, eta D], v and beta [T, heads, D]."""
    heads, D, eta, T = s["heads"], s["head_dim"], s["eta"], len(x)
    k, q, v, beta, gamma = ops.split(dense(p, "linear_kqvbetagammas", x).reshape(T, heads, 5 * D), [D] * 5)
    p1, p2, p3 = ops.split(dense(p, "linear_p1p2p3", x).reshape(T, heads, 3 * eta), [eta] * 3)
    relu = lambda y: ops.activation("relu", y)
    outer = lambda a, b: (a[:, :, None, :] * b[:, :, :, None]).reshape(T, heads, eta * D)
    return outer(relu(k), relu(p1)), outer(relu(q), relu(p2)), outer(ops.sigmoid(gamma), ops.sigmoid(p3)), v, ops.sigmoid(beta)


def wave(s, i, t):
    r = s["r"]
    return math.cos((-math.pi + (2.0 * math.pi * i / (r - 1) if r > 1 else 0.0)) * (t + 2))


def steps(record, layer, s, p, x, starts):
    k, q, gamma, v, beta = inputs_of(Torch, s, p, x)
    r, reads = s["r"], []
    K, V, total = torch.zeros(r, *k.shape[1:]), torch.zeros(r, *v.shape[1:]), torch.zeros(k.shape[1:])
    for t in range(len(x)):
        on = 1.0 - float(starts[t])
        keep_k, keep_v = (1.0 - gamma[t]) * on, (1.0 - beta[t]) * on
        record.transition(layer, torch.cat([keep_k.reshape(-1).repeat(r), keep_v.reshape(-1).repeat(r), keep_k.reshape(-1)]), False)
        waves = torch.tensor([wave(s, i, t) for i in range(r)])[:, None, None]
        K = record.state(layer, "tilde_k", keep_k * K + waves * (gamma[t] * k[t]))
        V = record.state(layer, "tilde_v", keep_v * V + waves * (beta[t] * v[t]))
        total = record.state(layer, "s", keep_k * total + gamma[t] * k[t])
        read = (V * (K * q[t]).sum(2)[:, :, None]).sum(0)
        reads.append((read / (2.0 * r * (total * q[t]).sum(1)[:, None] + s.get("eps", 1e-5))).reshape(-1))
    return torch.stack(reads)


def pairs(s, p, x, starts):
    """Sums over the steps since the last start, each step's part times the product of what is kept between."""
    k, q, gamma, v, beta = inputs_of(Numpy, s, p, x)
    r, T, reads = s["r"], len(x), []
    for t in range(T):
        first = max([j for j in range(t + 1) if starts[j]], default=0)
        K, V, total = np.zeros((r, *k.shape[1:])), np.zeros((r, *v.shape[1:])), np.zeros(k.shape[1:])
        for j in range(first, t + 1):
            part_k = gamma[j] * k[j] * np.prod(1.0 - gamma[j + 1: t + 1], axis=0)
            part_v = beta[j] * v[j] * np.prod(1.0 - beta[j + 1: t + 1], axis=0)
            total = total + part_k
            for i in range(r):
                K[i], V[i] = K[i] + wave(s, i, j) * part_k, V[i] + wave(s, i, j) * part_v
        read = np.einsum("rhd,rh->hd", V, np.einsum("rhe,he->rh", K, q[t]))
        reads.append((read / (2.0 * r * (total * q[t]).sum(1)[:, None] + s.get("eps", 1e-5))).reshape(-1))
    return np.array(reads)


def layer_of(ops, s, p, x, memory):
    if "emb_layer.kernel" in p:
        x = dense(p, "emb_layer", x)
        x = ops.activation("relu", x) if s.get("embedding_act", True) else x
    norm = lambda name, y: ops.layer_norm(y, p[f"{name}.scale"], p[f"{name}.bias"], 1e-6)
    inner = under(p, "AttentionORLiTLayer_0.")
    a = dense(inner, "project", memory(inner, norm("LayerNorm_0", x)))
    x = gate(ops, under(p, "GRUGatingUnit_0."), x, ops.activation("relu", a))
    f = dense(p, "Dense_1", ops.activation("relu", dense(p, "Dense_0", norm("LayerNorm_1", x))))
    return gate(ops, under(p, "GRUGatingUnit_1."), x, ops.activation("relu", f))


def case(name, s, T, d_in, loss, seed):
    d, heads, D, eta, F, column = s["width"], s["heads"], s["head_dim"], s["eta"], s["feed_forward"], s.get("reset_column", 0)

    def kernel(name, rows, columns, bias=True):
        return {f"{name}.kernel": ((rows, columns), 1.0 / math.sqrt(rows))} | ({f"{name}.bias": ((columns,), 0.3)} if bias else {})

    shapes = {}
    for layer in range(s["layers"]):
        one = kernel("emb_layer", d_in - (column > 0), d) if layer == 0 else {}
        for n in (0, 1):
            one |= {f"LayerNorm_{n}.scale": ((d,), 0.3, 1.0), f"LayerNorm_{n}.bias": ((d,), 0.3), f"GRUGatingUnit_{n}.bgp": ((d,), 0.5)}
            for part in ("Wr", "Ur", "Wz", "Uz", "Wg", "Ug"):
                one |= kernel(f"GRUGatingUnit_{n}.{part}", d, d, False)
        one |= prefixed("AttentionORLiTLayer_0.", kernel("linear_kqvbetagammas", d, heads * D * 5) | kernel("linear_p1p2p3", d, heads * eta * 3) | kernel("project", heads * D, d))
        shapes |= prefixed(f"{layer}/", one | kernel("Dense_0", d, F) | kernel("Dense_1", F, d))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    starts = x[:, column - 1] > 0.9 if column else np.zeros(T)
    if column:
        x[:, column - 1] = starts
    keep = [i for i in range(d_in) if i != column - 1]

    def run(ops, memory):
        def forward(parameters, inputs):
            y = inputs[:, keep]
            for layer in range(s["layers"]):
                y = layer_of(ops, s, under(parameters, f"{layer}/"), y, lambda p, z: memory(layer, p, z))
            return y
        return forward

    def forward(record, parameters, inputs):
        return run(Torch, lambda layer, p, z: steps(record, layer, s, p, z, starts))(parameters, inputs)

    make(name, "arelit", s, loss, "step by step, checked against sums over all pairs of steps", draw(seed, shapes), x, forward,
         second=run(Numpy, lambda layer, p, z: pairs(s, p, z, starts)), seed=seed)


def main():
    case("arelit", {"width": 4, "layers": 2, "heads": 2, "head_dim": 2, "eta": 2, "r": 3, "feed_forward": 4}, 12, 3, "mean", 1801)
    case("arelit-resets", {"width": 4, "layers": 1, "heads": 2, "head_dim": 3, "eta": 2, "r": 1, "feed_forward": 3, "embedding_act": False, "eps": 1e-3, "reset_column": 2}, 14, 3, "mean", 1812)


if __name__ == "__main__":
    main()
