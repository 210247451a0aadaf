# SPDX-License-Identifier: GPL-3.0-or-later
"""Decaying fast weights with the memory [value, key] of the authors' code, step by step, each checked against sums over all pairs of steps with
products of what is kept between, or, for the delta rule, against a triangular system of all steps at once.

Mao 2022; jenni-ai/T2FW, t2fw/torch.py (t2fw_torch, t2dfw_torch).
"""
import numpy as np
import torch

from matrix_memory import run_case
from parts import Numpy, Torch, norm_shapes


def stored(p, name, x):
    y = x @ p[f"{name}.weight"]
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def sizes(s):
    D = s["width"] // s["heads"]
    return s["heads"], s.get("key_dim", 0) or D, D


def inputs_of(ops, s, p, x):
    """q, k, v [T, heads, ..], and what each entry of the memory is multiplied by, f_key [T, heads, m] and f [T, heads, D]."""
    heads, m, D = sizes(s)
    q, k, v = (z.reshape(len(x), heads, -1) for z in ops.split(stored(p, "attn.c_attn", x), [heads * m, heads * m, heads * D]))
    if s.get("feature_map", "none") == "relu":
        q, k = ops.activation("relu", q), ops.activation("relu", k)
    elif s.get("feature_map", "none") == "elu":
        q, k = (torch.where(z > 0.0, z + 1.0, torch.exp(torch.clamp(z, max=0.0))) if ops is Torch else np.where(z > 0.0, z + 1.0, np.exp(np.minimum(z, 0.0))) for z in (q, k))
    ones = torch.ones if ops is Torch else np.ones

    def gate(name, size):
        if f"{name}.weight" not in p:
            return ones((len(x), heads, size))
        return (ops.sigmoid(stored(p, name, x)) ** (1.0 / s.get("tau", 1.0))).reshape(len(x), heads, size)

    return q, k, v, gate("attn.f_key", m), gate("attn.f", D)


def steps(record, layer, s, p, x):
    q, k, v, f_key, f = inputs_of(Torch, s, p, x)
    heads, m, D = sizes(s)
    state, reads = torch.zeros(heads, D, m), []
    for t in range(len(x)):
        if s.get("update", "decay") == "delta":
            old = torch.einsum("hdk,hk->hd", state, k[t])
            reads.append(torch.einsum("hdk,hk->hd", state, q[t]).reshape(-1))
            with torch.no_grad():
                record.linear(layer, [torch.eye(m) - torch.outer(k[t, h], k[t, h]) for h in range(heads) for _ in range(D)], False)
            state = state + (v[t] - old)[:, :, None] @ k[t][:, None, :]
        else:
            f_full = f[t][:, :, None] @ f_key[t][:, None, :]
            x_full = v[t][:, :, None] @ k[t][:, None, :]
            record.transition(layer, f_full.transpose(1, 2), False)
            state = state * f_full + (x_full if s.get("write", "plain") == "plain" else (1.0 - f_full) * x_full)
        state = record.state(layer, "S", state.transpose(1, 2)).transpose(1, 2)
        if s.get("update", "decay") == "decay":
            reads.append(torch.einsum("hdk,hk->hd", state, q[t]).reshape(-1))
    return stored(p, "attn.c_proj", torch.stack(reads))


def pairs(s, p, x):
    q, k, v, f_key, f = inputs_of(Numpy, s, p, x)
    T = len(x)
    if s.get("update", "decay") == "delta":
        # w_t = v_t - sum over s < t of (k_s.k_t) w_s are what is written, all at once: (1 + strictly lower K K^T) W = V
        overlap = np.tril(np.einsum("thk,shk->hts", k, k), -1)
        written = np.linalg.solve(np.eye(T) + overlap, v.transpose(1, 0, 2))
        seen = np.tril(np.einsum("thk,shk->hts", q, k), -1)
        reads = (seen @ written).transpose(1, 0, 2)
    else:
        reads = np.zeros(v.shape)
        for t in range(T):
            for j in range(t + 1):
                kept = np.prod(f_key[j + 1: t + 1], axis=0)[:, :, None] * np.prod(f[j + 1: t + 1], axis=0)[:, None, :]
                share = 1.0 if s.get("write", "plain") == "plain" else 1.0 - f_key[j][:, :, None] * f[j][:, None, :]
                reads[t] += np.einsum("hk,hkd->hd", q[t] * k[j], kept * share) * v[j]
    return stored(p, "attn.c_proj", reads.reshape(T, -1))


def block(ops, mixer, s, p, x):
    if s.get("block") == "none":
        return mixer(p, x)
    norm = lambda name, y: ops.layer_norm(y, p[f"{name}.weight"], p[f"{name}.bias"], s.get("norm_eps", 1e-5))
    x = x + mixer(p, norm("ln_1", x))
    return x + stored(p, "mlp.c_proj", ops.activation("gelu_tanh", stored(p, "mlp.c_fc", norm("ln_2", x))))


def follows(ops, s, p, x):
    if s.get("block") == "none":
        return {} if ops is None else x
    return norm_shapes("ln_f", s["width"]) if ops is None else ops.layer_norm(x, p["ln_f.weight"], p["ln_f.bias"], s.get("norm_eps", 1e-5))


def shapes(s, layer):
    heads, m, D = sizes(s)
    d, F = s["width"], s.get("feed_forward", 0) or 4 * s["width"]

    def matrix(name, rows, columns, bias=True, centre=0.0, scale=1.0):
        return {f"{name}.weight": ((rows, columns), scale / np.sqrt(rows))} | ({f"{name}.bias": ((columns,), 0.3, centre)} if bias else {})

    # keys of the delta rule stay below a length of root 2, above which the memory grows without bound
    made = matrix("attn.c_attn", d, heads * (2 * m + D), scale=0.5 if s.get("update") == "delta" else 1.0) | matrix("attn.c_proj", d, d)
    if s.get("update", "decay") == "decay":
        bias = s.get("gate_bias", True)
        made |= matrix("attn.f_key", d, heads * m, bias, 1.0) if s.get("gates", "both") != "value" else {}
        made |= matrix("attn.f", d, heads * D, bias, 1.0) if s.get("gates", "both") != "key" else {}
    if s.get("block") != "none":
        made |= norm_shapes("ln_1", d) | norm_shapes("ln_2", d) | matrix("mlp.c_fc", d, F) | matrix("mlp.c_proj", F, d)
    return made


def case(name, settings, T, d_in, loss, seed):
    run_case(name, "mao-fast-weights", settings, T, d_in, loss, seed, shapes, block, follows, steps, pairs,
             "the step loops of T2FW in float64, checked against sums over all pairs of steps or a triangular system")


def main():
    case("mao-fast-weights", {"width": 4, "heads": 2, "layers": 2, "feed_forward": 5}, 12, 3, "mean", 2101)
    case("mao-fast-weights-key", {"width": 4, "heads": 2, "key_dim": 3, "layers": 1, "gates": "key", "tau": 4.0, "gate_bias": False, "feature_map": "elu", "norm_eps": 1e-3}, 14, 4, "mean", 2102)
    case("mao-fast-weights-value", {"width": 6, "heads": 2, "key_dim": 2, "layers": 1, "gates": "value", "feature_map": "relu", "block": "none"}, 18, 2, "last", 2103)
    case("mao-fast-weights-complement", {"width": 4, "heads": 1, "key_dim": 3, "layers": 1, "write": "complement", "tau": 2.0, "block": "none"}, 16, 3, "mean", 2104)
    case("mao-fast-weights-complement-value", {"width": 4, "heads": 2, "layers": 1, "write": "complement", "gates": "value", "block": "none"}, 16, 3, "mean", 2105)
    case("mao-fast-weights-delta", {"width": 4, "heads": 2, "key_dim": 3, "layers": 1, "update": "delta", "block": "none"}, 14, 3, "mean", 2106)


if __name__ == "__main__":
    main()
