# SPDX-License-Identifier: GPL-3.0-or-later
"""Softmax attention in place of some layers' mixers, token by token with a growing list of keys and values, checked against masked matrices.

fla-org/flash-linear-attention, layers/attn.py, models/hybrid.py; rotation of halves, base rope_theta; a window counts the current step.
"""
import math

import numpy as np
import torch

from bounded_gates import case as bounded_case
from delta_block import rounds, shapes as delta_shapes, steps as delta_steps
from matrix_memory import gla, gla_finish, gla_layer, gla_pairs, gla_shapes, run_case
from parts import Numpy, affine, linear_shapes
import rwkv


def attends(s, layer):
    return s["attn_layers"] >> layer & 1


def shapes(s, prefix="attn."):
    d, heads, bias = s["width"], s.get("attn_heads", 2), s.get("attn_qkv_bias", False)
    kv = (s.get("attn_kv_heads", 0) or heads) * d // heads
    return (linear_shapes(prefix + "q_proj", d, d, bias) | linear_shapes(prefix + "k_proj", kv, d, bias) | linear_shapes(prefix + "v_proj", kv, d, bias)
            | linear_shapes(prefix + "o_proj", d, d))


def step_loop(record, layer, s, p, x):
    heads, d = s.get("attn_heads", 2), s["width"]
    groups, D = s.get("attn_kv_heads", 0) or heads, d // heads
    rates = torch.tensor([s.get("attn_rope_theta", 1e4) ** (-2.0 * j / D) for j in range(D // 2)])

    def turned(y, t):
        a, b, cos, sin = y[:, :D // 2], y[:, D // 2:], torch.cos(t * rates), torch.sin(t * rates)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], 1)

    keys, values, out = [], [], []
    for t, u in enumerate(x):
        q = turned(affine(p, "attn.q_proj", u).reshape(heads, D), t)
        keys.append(record.state(layer, "k", turned(affine(p, "attn.k_proj", u).reshape(groups, D), t)))
        values.append(record.state(layer, "v", affine(p, "attn.v_proj", u).reshape(groups, D)))
        first = max(0, t + 1 - s["attn_window"]) if s.get("attn_window", 0) else 0
        read = []
        for h in range(heads):
            of_head = h * groups // heads
            weights = torch.softmax(torch.stack([q[h] @ k[of_head] for k in keys[first:]]) / math.sqrt(D), 0)
            read.append(sum(w * v[of_head] for w, v in zip(weights, values[first:])))
        out.append(p["attn.o_proj.weight"] @ torch.cat(read))
    return torch.stack(out)


def matrices(s, p, x):
    heads, d, T = s.get("attn_heads", 2), s["width"], len(x)
    groups, D = s.get("attn_kv_heads", 0) or heads, d // heads
    turn = np.exp(1j * np.outer(np.arange(T), s.get("attn_rope_theta", 1e4) ** (-np.arange(0, D, 2) / D)))[:, None]

    def by_head(name, n, turns):
        y = affine(p, name, x).reshape(T, n, D)
        z = (y[..., :D // 2] + 1j * y[..., D // 2:]) * turn
        y = np.concatenate([z.real, z.imag], 2) if turns else y
        return np.repeat(y, heads // n, axis=1)

    q, k, v = by_head("attn.q_proj", heads, True), by_head("attn.k_proj", groups, True), by_head("attn.v_proj", groups, False)
    age = np.arange(T)[:, None] - np.arange(T)[None]
    seen = (age >= 0) & (age < (s.get("attn_window", 0) or T))
    weights = Numpy.softmax(np.where(seen, np.einsum("thd,shd->hts", q, k) * D**-0.5, -np.inf), 2)
    return np.einsum("hts,shd->thd", weights, v).reshape(T, d) @ p["attn.o_proj.weight"].T


def either(native, native_prefix):
    """The shapes of a layer whose mixer may be attention."""
    def run(s, layer):
        found = native(s, layer)
        return {key: value for key, value in found.items() if not key.startswith(native_prefix)} | shapes(s) if attends(s, layer) else found
    return run


def case(name, architecture, s, T, d_in, loss, seed, native_shapes, prefix, layer_of, finish, steps, second, marks):
    is_native = lambda p: marks in p
    run_case(name, architecture, s, T, d_in, loss, seed, either(native_shapes, prefix), layer_of, finish,
             lambda record, layer, s, p, x: steps(record, layer, s, p, x) if is_native(p) else step_loop(record, layer, s, p, x),
             lambda s, p, x: second(s, p, x) if is_native(p) else matrices(s, p, x),
             "step loop from the equations of flash-linear-attention's hybrid models, checked against matrices of all pairs of steps or rounds of all steps at once")


def main():
    biased = {"attn_qkv_bias": True, "attn_window": 5, "attn_rope_theta": 50.0}
    block = {"width": 8, "heads": 2, "layers": 3, "gate_rank": 3, "feed_forward": 5, "block": "residual", "attn": True, "attn_layers": 2, "attn_heads": 4, "attn_kv_heads": 2}
    case("gla-attention", "gla", block | biased, 12, 3, "mean", 2301, gla_shapes, "attn.", gla_layer, gla_finish, gla, gla_pairs, "attn.g_proj.weight")
    delta = {"width": 8, "heads": 2, "layers": 2, "feed_forward": 5, "block": "residual", "attn": True, "attn_layers": 2, "attn_heads": 2, "code": "flash-linear-attention"}
    case("deltanet-attention", "deltanet", delta | biased, 12, 3, "mean", 2302, delta_shapes, "attn.", gla_layer, gla_finish, delta_steps, rounds, "attn.b_proj.weight")
    six = {"width": 8, "head_size": 4, "layers": 2, "feed_forward": 7, "block": "residual", "mix_rank": 2, "decay_rank": 3, "attn": True, "attn_layers": 1, "attn_heads": 2}
    case("rwkv-6-attention", "rwkv-6", six | biased, 12, 3, "mean", 2303, rwkv.shapes_of(6), "att.", rwkv.layer_of(6), rwkv.finish, rwkv.time_mix(6), rwkv.pairs(6), "att.time_faaaa")
    for name, more in (("hgrn-attention", {"attn": True, "attn_layers": 5, "attn_kv_heads": 1} | biased), ("hgrn-attention-alone", {"block": "none", "attn": True, "attn_layers": 3, "layers": 2})):
        bounded_case(name, "hgrn", {"width": 8, "layers": 3, "block": "residual", "feed_forward": 6, "attn_heads": 2} | more, 12, 3, "mean", 2304,
                     "step loop from the equations of flash-linear-attention's hybrid HGRN, checked against its forms over pairs of steps", hybrid=(attends, shapes, step_loop, matrices))


if __name__ == "__main__":
    main()
