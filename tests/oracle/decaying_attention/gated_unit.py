# SPDX-License-Identifier: GPL-3.0-or-later
"""Gated attention units, step by step, each checked against whole matrices without steps.

GAU    Hua et al. 2022; FlashQuadAttention in fairseq-evo with its causal mask and a length of at most max_position_embeddings.
FLASH  the same paper; FlashLinearAttention with its causal mask. The step loop takes the chunk's own part out of the memory that it reads; the second form
       has matrices over all pairs of steps.
"""
import numpy as np
import torch

from harness import draw, make
from near_attention import turned
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack


def normed(ops, s, p, x):
    eps = s.get("norm_eps", 1e-5)
    if s.get("norm", "scale_norm") == "layer_norm":
        return ops.layer_norm(x, p["norm.weight"], p["norm.bias"], eps)
    return x / ops.sqrt((x * x).mean(-1)[..., None] + eps) * p["norm.scala"]


def rotated(ops, s, p, name, z):
    """Entry i of z, scaled and shifted, with entry i + s/2, turned by t 10000^(-2i/s)."""
    x = z * p[f"{name}_weight"][0] + p[f"{name}_bias"][0]
    if ops is Numpy:
        pairs = [turned(row, float(t)) for t, row in enumerate(x)]
        return np.array([np.concatenate([pair.real, pair.imag]) for pair in pairs])
    half = x.shape[1] // 2
    angle = torch.arange(len(x))[:, None] * 10000.0 ** (-torch.arange(half) / half)
    a, b = x[:, :half], x[:, half:]
    return torch.cat([a * torch.cos(angle) - b * torch.sin(angle), b * torch.cos(angle) + a * torch.sin(angle)], dim=1)


def bias_of(ops, s, p, distance):
    if s.get("bias", "toeplitz") == "toeplitz":
        return p["w"][s["max_positions"] - 1 - distance]
    a, b = p["a"][0], p["b"][0]
    if ops is Numpy:
        return np.real(turned(a, 7.0) * np.conj(turned(b, 7.0 - distance))).sum()
    half = len(a) // 2
    w = 10000.0 ** (-torch.arange(half) / half) * distance
    return ((a[:half] * torch.cos(w) - a[half:] * torch.sin(w)) * b[:half] + (a[half:] * torch.cos(w) + a[:half] * torch.sin(w)) * b[half:]).sum()


def unit(ops, s, p, x, read):
    y = normed(ops, s, p, x)
    u, v, z = (ops.activation("silu", affine(p, name, y)) for name in ("u_proj", "v_proj", "base_proj"))
    return x + affine(p, "o", u * read(p, v, z))


def gau_rows(record, layer, s, p, v, z):
    q, k, P, reads, keys, values = rotated(Torch, s, p, "q", z), rotated(Torch, s, p, "k", z), s["max_positions"], [], [], []
    for t in range(len(v)):
        keys.append(record.state(layer, "k", k[t]))
        values.append(record.state(layer, "v", v[t]))
        first = max(0, t - P + 1)
        weights = [torch.relu((q[t] * keys[j]).sum() / P + bias_of(Torch, s, p, t - j)) ** 2 for j in range(first, t + 1)]
        reads.append(sum(w * values[j] for w, j in zip(weights, range(first, t + 1))))
    return torch.stack(reads)


def biases(s, p, seen):
    table = np.zeros(seen.shape)
    for t, j in zip(*np.nonzero(seen)):
        table[t, j] = bias_of(Numpy, s, p, t - j)
    return table


def gau_matrix(s, p, v, z):
    q, k, P = rotated(Numpy, s, p, "q", z), rotated(Numpy, s, p, "k", z), s["max_positions"]
    apart = np.arange(len(v))[:, None] - np.arange(len(v))[None, :]
    seen = (apart >= 0) & (apart < P)
    return np.where(seen, np.maximum(q @ k.T / P + biases(s, p, seen), 0.0) ** 2, 0.0) @ v


def flash_rows(record, layer, s, p, v, z):
    c = s["chunk"]
    quad_q, quad_k, lin_q, lin_k = (rotated(Torch, s, p, name, z) for name in ("quad_q", "quad_k", "lin_q", "lin_k"))
    S, reads = torch.zeros(1, s["key_width"], v.shape[1]), []
    for t in range(len(v)):
        chunk = range(t - t % c, t + 1)
        record.transition(layer, torch.ones_like(S), True)
        S = record.state(layer, "S", S + torch.outer(lin_k[t], v[t])[None] / c)
        before = S[0] - sum(torch.outer(lin_k[j], v[j]) for j in chunk) / c  # as it was when the chunk began
        quadratic = sum(torch.relu((quad_q[t] * quad_k[j]).sum() / c + bias_of(Torch, s, p, t - j)) ** 2 * v[j] for j in chunk)
        reads.append(quadratic + lin_q[t] @ before)
    return torch.stack(reads)


def flash_matrix(s, p, v, z):
    c, T = s["chunk"], len(v)
    quad_q, quad_k, lin_q, lin_k = (rotated(Numpy, s, p, name, z) for name in ("quad_q", "quad_k", "lin_q", "lin_k"))
    chunk = np.arange(T) // c
    seen = np.tril(np.ones((T, T))) * (chunk[:, None] == chunk[None, :]) > 0
    quadratic = np.where(seen, np.maximum(quad_q @ quad_k.T / c + biases(s, p, seen), 0.0) ** 2, 0.0)
    return (quadratic + np.where(chunk[:, None] > chunk[None, :], lin_q @ lin_k.T / c, 0.0)) @ v


def unit_case(name, architecture, s, T, d_in, loss, seed):
    d, S, P = s["width"], s["key_width"], s["max_positions"]
    e = int(d * s.get("expansion", 2.0))
    shapes = encoder_shapes(d, d_in)
    for layer in range(s["layers"]):
        one = norm_shapes("norm", d) if s.get("norm", "scale_norm") == "layer_norm" else {"norm.scala": ((1,), 0.3, 1.0)}
        one |= linear_shapes("u_proj", e, d, True) | linear_shapes("v_proj", e, d, True) | linear_shapes("base_proj", S, d, True) | linear_shapes("o", d, e, True)
        for part in ("q", "k") if architecture == "gau" else ("quad_q", "quad_k", "lin_q", "lin_k"):
            one |= {f"{part}_weight": ((1, S), 2.0), f"{part}_bias": ((1, S), 1.0)}
        one |= {"w": ((2 * P - 1,), 0.7)} if s.get("bias", "toeplitz") == "toeplitz" else {"a": ((1, S), 0.7), "b": ((1, S), 0.7)}
        shapes |= prefixed(f"{layer}/", one)
    final = s.get("final_norm", False)
    if final:
        shapes |= prefixed("final/", norm_shapes("layer_norm", d))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    rows, matrix = (gau_rows, gau_matrix) if architecture == "gau" else (flash_rows, flash_matrix)

    def finish(ops):
        return lambda p, y: ops.layer_norm(y, p["layer_norm.weight"], p["layer_norm.bias"]) if final else y

    def forward(record, parameters, inputs):
        one = lambda layer, p, y: unit(Torch, s, p, y, lambda p, v, z: rows(record, layer, s, p, v, z))
        return stack(one, finish(Torch), s)(parameters, inputs)

    second = stack(lambda layer, p, y: unit(Numpy, s, p, y, lambda p, v, z: matrix(s, p, v, z)), finish(Numpy), s)
    make(name, architecture, s, loss, "step by step, checked against masked matrices", draw(seed, shapes), x, forward, second=second, seed=seed)


def main():
    small = {"width": 4, "key_width": 4}
    unit_case("gau", "gau", small | {"layers": 2, "max_positions": 16}, 14, 4, "mean", 1601)
    unit_case("gau-rotary", "gau", small | {"layers": 1, "max_positions": 6, "bias": "rotary", "norm": "layer_norm", "norm_eps": 1e-3, "expansion": 1.5, "final_norm": True}, 13, 3, "last", 1602)
    unit_case("flash", "flash", small | {"layers": 2, "max_positions": 9, "chunk": 5}, 13, 4, "mean", 1611)
    unit_case("flash-rotary", "flash", small | {"layers": 1, "max_positions": 16, "chunk": 4, "bias": "rotary", "norm": "layer_norm", "expansion": 1.5, "final_norm": True}, 14, 3, "mean", 1612)


if __name__ == "__main__":
    main()
