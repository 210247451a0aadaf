# SPDX-License-Identifier: GPL-3.0-or-later
"""The recurrent attention network, token by token, checked against whole windows with masks as in 4AI/RAN, rannet/ran.py (Li et al. 2023)."""
import math

import numpy as np
import torch

from harness import draw, make
from matrix_memory import by_head
from parts import Numpy, Torch, encoder_shapes, prefixed, stack
from softmax_attention import attend, masked_softmax

ACTIVATIONS = {"swish": lambda x, exp: x / (1.0 + exp(-x)), "tanh": lambda x, exp: 1.0 - 2.0 / (1.0 + exp(2.0 * x)), "relu": lambda x, exp: x * (x > 0.0),
               "identity": lambda x, exp: x}


def unit(s, x):
    mean = x.mean(-1, keepdims=True) if isinstance(x, np.ndarray) else x.mean(-1, keepdim=True)
    square = (x * x).mean(-1, keepdims=True) if isinstance(x, np.ndarray) else (x * x).mean(-1, keepdim=True)
    return (x - mean) / (square + s.get("norm_eps", 1e-7)) ** 0.5


def norm(s, p, name, x):
    return p[f"{name}.gamma"] * unit(s, x) + p[f"{name}.beta"]


def dense(p, name, x):
    return x @ p[f"{name}.kernel"] + p[f"{name}.bias"]


def active(s, ops, p, name, x):
    return ACTIVATIONS[s.get("activation", "swish")](dense(p, name, x), ops.exp)


def glu(ops, p, name, x):
    return dense(p, f"{name}.dense_t", x) * ops.sigmoid(dense(p, f"{name}.dense_g", x))


def turned(x, i):
    """The pairs (2j, 2j + 1) of each head [heads, D] turned by i 10000^(-2j/D)."""
    D = x.shape[1]
    R = torch.zeros(D, D)
    for j in range(0, D, 2):
        angle = i * 10000.0 ** (-j / D)
        R[j, j] = R[j + 1, j + 1] = math.cos(angle)
        R[j + 1, j], R[j, j + 1] = math.sin(angle), -math.sin(angle)
    return x @ R.T


def ran(record, layer, s, p, x):
    d, n = s["width"], s["segment"]
    heads = s["heads"]
    first = p["cell_initializer_layernorm.beta"]
    memory = torch.stack([first, first, torch.zeros(d)])
    cells, outputs = [], []
    sees = s.get("cell_sees", "window") == "window"
    for t in range(len(x)):
        at, final = t % n, t % n == n - 1
        if t == 0 and not final:
            memory = record.state(layer, "cell", memory)
        elif not final:
            record.hold(layer, "cell")
        if at == 0:
            cells.append(memory[1])
            rows, keys, values = [], [], []

        def feed(row):
            z, i = norm(s, p, "concat_layernorm", row), len(rows)
            rows.append(z)
            keys.append(turned(active(s, Torch, p, "encode_attn.dense_k", z).reshape(heads, -1), i))
            values.append(active(s, Torch, p, "encode_attn.dense_v", z).reshape(heads, -1))

        def answer(i, seen):
            q = turned(active(s, Torch, p, "encode_attn.dense_q", rows[i]).reshape(heads, -1), i)
            read = attend(q, keys[:seen], values[:seen])
            return unit(s, norm(s, p, "encode_attn.layernorm", active(s, Torch, p, "encode_attn.dense_o", read) + glu(Torch, p, "encode_attn.glu", rows[i])))

        if at == 0:
            feed(memory[0])
        feed(x[t])
        y = answer(at + 1, at + 2)
        if s.get("memory_review", True):
            q = active(s, Torch, p, "output_attn.dense_q", y)
            k, v = ([active(s, Torch, p, f"output_attn.dense_{which}", cell)[None] for cell in cells] for which in "kv")
            read = active(s, Torch, p, "output_attn.dense_o", attend(q[None], k, v))
            outputs.append(norm(s, p, "output_attn.layernorm", read + glu(Torch, p, "output_attn.glu", q)))
        else:
            outputs.append(norm(s, p, "output_layernorm", y))
        if final:
            fresh = answer(0, n + 1 if sees else 1)
            later = norm(s, p, "cell_residual_layernorm", fresh + glu(Torch, p, "cell_glu", memory[1]))
            memory = record.state(layer, "cell", torch.stack([memory[2] * later + (1.0 - memory[2]) * fresh, fresh, torch.ones(d)]))
    return torch.stack(outputs)


def windows(s, p, x):
    """Whole windows through masked matrices, then the review of a list of cells."""
    n, heads, sees = s["segment"], s["heads"], s.get("cell_sees", "window") == "window"
    cell = before = p["cell_initializer_layernorm.beta"]
    cells, outputs, first = [cell], [], True
    for start in range(0, len(x), n):
        tokens = x[start: start + n]
        Z = norm(s, p, "concat_layernorm", np.concatenate([cell[None], tokens]))
        q, k, v = (by_head(active(s, Numpy, p, f"encode_attn.dense_{which}", Z), heads) for which in "qkv")
        D = q.shape[2]
        turn = np.exp(1j * np.outer(np.arange(len(Z)), 10000.0 ** (-np.arange(0, D, 2) / D)))[:, None]
        q, k = ((z[..., 0::2] + 1j * z[..., 1::2]) * turn for z in (q, k))
        mask = np.tril(np.ones((len(Z), len(Z)))) > 0
        if sees:
            mask[0] = True
        weights = masked_softmax(np.einsum("thi,shi->hts", q, k.conj()).real * D**-0.5, mask)
        read = np.einsum("hts,shi->thi", weights, v).reshape(len(Z), -1)
        Y = norm(s, p, "encode_attn.layernorm", active(s, Numpy, p, "encode_attn.dense_o", read) + glu(Numpy, p, "encode_attn.glu", Z))
        out, fresh = unit(s, Y[1:]), unit(s, Y[0])
        if s.get("memory_review", True):
            qw, C = active(s, Numpy, p, "output_attn.dense_q", out), np.array(cells)
            weights = Numpy.softmax(qw @ active(s, Numpy, p, "output_attn.dense_k", C).T / math.sqrt(qw.shape[1]), 1)
            read = active(s, Numpy, p, "output_attn.dense_o", weights @ active(s, Numpy, p, "output_attn.dense_v", C))
            outputs.append(norm(s, p, "output_attn.layernorm", read + glu(Numpy, p, "output_attn.glu", qw)))
        else:
            outputs.append(norm(s, p, "output_layernorm", out))
        cell = fresh if first else norm(s, p, "cell_residual_layernorm", fresh + glu(Numpy, p, "cell_glu", before))
        before, first = fresh, False
        cells.append(fresh)
    return np.concatenate(outputs)


def dense_shapes(name, d_in, d_out):
    return {f"{name}.kernel": ((d_in, d_out), 1.2 / math.sqrt(d_in)), f"{name}.bias": ((d_out,), 0.3)}


def norm_shapes(name, d):
    return {f"{name}.gamma": ((d,), 0.3, 1.0), f"{name}.beta": ((d,), 0.3)}


def attention_shapes(name, d, units):
    one = norm_shapes(f"{name}.layernorm", d) | dense_shapes(f"{name}.dense_o", units, d)
    for which in "qkv":
        one |= dense_shapes(f"{name}.dense_{which}", d, units)
    return one | dense_shapes(f"{name}.glu.dense_t", d, d) | dense_shapes(f"{name}.glu.dense_g", d, d)


def ran_case(name, s, T, d_in, loss, seed):
    d, D = s["width"], s.get("head_size", 0) or s["width"] // s["heads"]
    one = norm_shapes("concat_layernorm", d) | attention_shapes("encode_attn", d, s["heads"] * D) | {"cell_initializer_layernorm.beta": ((d,), 0.8)}
    one |= dense_shapes("cell_glu.dense_t", d, d) | dense_shapes("cell_glu.dense_g", d, d) | norm_shapes("cell_residual_layernorm", d)
    one |= attention_shapes("output_attn", d, d) if s.get("memory_review", True) else norm_shapes("output_layernorm", d)
    shapes = encoder_shapes(d, d_in)
    for layer in range(s["layers"]):
        shapes |= prefixed(f"{layer}/", one)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def forward(record, parameters, inputs):
        if s.get("activation") == "identity":
            record.still.add("0/output_attn.dense_k.bias")  # it adds the same to all scores of a row
        return stack(lambda layer, p, v: ran(record, layer, s, p, v), lambda p, v: v, s)(parameters, inputs)

    second = stack(lambda layer, p, v: windows(s, p, v), lambda p, v: v, s)
    make(name, "recurrent-attention-network", s, loss, "token by token, checked against masked matrices a window", draw(seed, shapes), x, forward, second=second, seed=seed)


def main():
    ran_case("recurrent-attention-network", {"width": 4, "heads": 2, "layers": 1, "segment": 4}, 15, 3, "mean", 1841)
    ran_case("recurrent-attention-network-tanh", {"width": 4, "heads": 1, "head_size": 2, "layers": 2, "segment": 3, "activation": "tanh", "memory_review": False, "norm_eps": 0.01}, 13, 4, "last", 1842)
    ran_case("recurrent-attention-network-itself", {"width": 4, "heads": 2, "layers": 1, "segment": 5, "activation": "relu", "cell_sees": "itself"}, 12, 2, "mean", 1843)
    ran_case("recurrent-attention-network-linear", {"width": 3, "heads": 1, "head_size": 2, "layers": 1, "segment": 4, "activation": "identity"}, 13, 2, "mean", 1844)


if __name__ == "__main__":
    main()
