# SPDX-License-Identifier: GPL-3.0-or-later
"""Attention free transformer: sums with a running maximum step by step, or lists of keys and values, checked against whole matrices of weights.

Zhai et al. 2021; names and equations of AFTLocal in labml_nn/transformers/aft, with its causal mask.
"""
import numpy as np
import torch

from harness import draw, make
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack


def biases(ops, s, p, T):
    """w [T, T]: 0 without pairs, outside the window, and where a step is no position."""
    kind, P = s["pairs"], s.get("positions", 128)
    w = np.zeros((T, T)) if ops is Numpy else torch.zeros(T, T)
    if kind == "none":
        return w
    table = p["self_attn.pos_u"] @ p["self_attn.pos_v"].T if "self_attn.pos_u" in p else p["self_attn.pos_bias"]
    if ops is Torch:
        table = torch.nn.functional.pad(table, (0, max(0, T - P), 0, max(0, T - P)))[:T, :T]
        apart = torch.arange(T)[:, None] - torch.arange(T)[None, :]
        return table if kind == "full" else torch.where(apart < s["window"], table, 0.0)
    for t in range(min(T, P)):
        for j in range(min(T, P)):
            if kind == "full" or t - j < s["window"]:
                w[t, j] = table[t, j]
    return w


def rows(record, layer, s, p, k, v):
    T, d, w, reads = len(k), k.shape[1], biases(Torch, s, p, len(k)), []
    if s["pairs"] == "full":
        keys, values = [], []
        for t in range(T):
            keys.append(record.state(layer, "k", k[t]))
            values.append(record.state(layer, "v", v[t]))
            weights = torch.softmax(torch.stack([key + w[t, j] for j, key in enumerate(keys)]), dim=0)
            reads.append((weights * torch.stack(values)).sum(0))
        return torch.stack(reads)
    window = s["window"] if s["pairs"] == "local" else 0
    o, q_sum, p_sum = torch.full((d,), -1e38), torch.zeros(d), torch.zeros(d)
    for t in range(T):
        record.transition(layer, torch.ones(2 * d), True)
        old = t - window  # what enters the sums; without a window that is the step itself
        if old >= 0:
            top = torch.maximum(o, k[old]).detach()
            keep, write = torch.exp(o - top), torch.exp(k[old] - top)
            o, p_sum, q_sum = top, keep * p_sum + write * v[old], keep * q_sum + write
        o = record.state(layer, "o", o)
        p_sum, q_sum = record.state(layer, "p", p_sum), record.state(layer, "q", q_sum)
        if not window:
            reads.append(p_sum / q_sum)
            continue
        inside = range(max(0, t - window + 1), t + 1)
        exponents = [k[j] + w[t, j] for j in inside]
        top = torch.stack([o, *exponents]).max(0).values.detach()
        numerator = torch.exp(o - top) * p_sum + sum(torch.exp(e - top) * v[j] for e, j in zip(exponents, inside))
        reads.append(numerator / (torch.exp(o - top) * q_sum + sum(torch.exp(e - top) for e in exponents)))
    return torch.stack(reads)


def matrix(s, p, k, v):
    T = len(k)
    scores = k[None, :, :] + biases(Numpy, s, p, T)[:, :, None]
    seen = np.tril(np.ones((T, T)))[:, :, None] > 0
    weights = np.where(seen, np.exp(scores), 0.0)
    return np.einsum("tsd,sd->td", weights, v) / weights.sum(1)


def mixed(ops, s, p, x, average):
    q, v = (affine(p, f"self_attn.{name}", x) for name in ("query", "value"))
    k = x @ p["self_attn.key.weight"].T  # its bias changes nothing
    return affine(p, "self_attn.output", ops.sigmoid(q) * average(p, k, v))


def layer_of(ops, s, p, x, average):
    if s.get("block", "residual") == "none":
        return mixed(ops, s, p, x, average)
    norm = lambda name, y: ops.layer_norm(y, p[f"{name}.weight"], p[f"{name}.bias"])
    x = x + mixed(ops, s, p, norm("norm_self_attn", x), average)
    return x + affine(p, "feed_forward.layer2", ops.activation("relu", affine(p, "feed_forward.layer1", norm("norm_ff", x))))


def case(name, s, T, d_in, loss, seed):
    d, P, F = s["width"], s.get("positions", 128), s.get("feed_forward", 0) or 4 * s["width"]
    residual = s.get("block", "residual") == "residual"
    shapes = encoder_shapes(d, d_in)
    for layer in range(s["layers"]):
        one = {}
        for part in ("query", "key", "value"):
            one |= linear_shapes(f"self_attn.{part}", d, d, s.get("qkv_bias", True))
        one |= linear_shapes("self_attn.output", d, d, True)
        if s["pairs"] != "none" and s.get("rank", 0):
            one |= {f"self_attn.pos_{part}": ((P, s["rank"]), 0.8) for part in "uv"}
        elif s["pairs"] != "none":
            one |= {"self_attn.pos_bias": ((P, P), 0.8)}
        if residual:
            one |= norm_shapes("norm_self_attn", d) | norm_shapes("norm_ff", d) | linear_shapes("feed_forward.layer1", F, d, True) | linear_shapes("feed_forward.layer2", d, F, True)
        shapes |= prefixed(f"{layer}/", one)
    last = residual and s.get("final_norm", True)
    if last:
        shapes |= prefixed("final/", norm_shapes("norm", d))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def finish(ops):
        return lambda p, y: ops.layer_norm(y, p["norm.weight"], p["norm.bias"]) if last else y

    def forward(record, parameters, inputs):
        record.still.update(key for key in parameters if key.endswith("key.bias"))  # adds one number to all exponents of a channel
        return stack(lambda layer, p, y: layer_of(Torch, s, p, y, lambda p, k, v: rows(record, layer, s, p, k, v)), finish(Torch), s)(parameters, inputs)

    second = stack(lambda layer, p, y: layer_of(Numpy, s, p, y, lambda p, k, v: matrix(s, p, k, v)), finish(Numpy), s)
    make(name, "aft", s, loss, "sums with a running maximum, or lists, checked against matrices of weights", draw(seed, shapes), x, forward, second=second, seed=seed)


def main():
    case("aft-simple", {"width": 4, "layers": 2, "pairs": "none", "feed_forward": 5}, 14, 3, "mean", 1711)
    case("aft-local", {"width": 4, "layers": 1, "pairs": "local", "window": 4, "positions": 11, "block": "none", "qkv_bias": False}, 14, 4, "mean", 1702)
    case("aft-local-factors", {"width": 4, "layers": 2, "pairs": "local", "window": 6, "positions": 6, "rank": 2, "final_norm": False, "feed_forward": 5}, 12, 4, "last", 1703)
    case("aft-full", {"width": 4, "layers": 2, "pairs": "full", "positions": 12, "feed_forward": 5}, 12, 4, "mean", 1704)
    case("aft-full-factors", {"width": 4, "layers": 1, "pairs": "full", "positions": 9, "rank": 3, "block": "none"}, 13, 3, "last", 1705)


if __name__ == "__main__":
    main()
