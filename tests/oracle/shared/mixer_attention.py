# SPDX-License-Identifier: GPL-3.0-or-later
"""mamba_ssm's MHA (modules/mha.py) in place of the mixers of some blocks, token by token with growing lists of keys and values, and with matrices of all pairs.

Rotation as in flash_attn's RotaryEmbedding: of the first rotary_emb_dim channels of each head, in halves or, interleaved, in pairs of neighbours.
"""
import math

import numpy as np
import torch


def attends(s, layer):
    return s.get("attn", False) and bool(s.get("attn_layers", 1) >> layer & 1)


def sizes(s):
    heads = s.get("attn_heads", 2)
    return heads, s.get("attn_kv_heads", 0) or heads, s.get("attn_head", 0) or s["width"] // heads, s.get("attn_mlp", 0)


def shapes(s):
    d, K = s["width"], s.get("attn_conv", 0)
    heads, groups, D, M = sizes(s)
    rows, columns = (heads + 2 * groups) * D, heads * D + M // 2
    found = {"in_proj.weight": ((rows + M, d), 1.3 / math.sqrt(d)), "out_proj.weight": ((d, columns), 1.0 / math.sqrt(columns))}
    if s.get("attn_qkv_bias", True):
        found["in_proj.bias"] = ((rows + M,), 0.3)
    if s.get("attn_out_bias", True):
        found["out_proj.bias"] = ((d,), 0.3)
    return found | ({"conv1d.weight": ((rows, 1, K), 0.5), "conv1d.bias": ((rows,), 0.3)} if K else {})


def pairs(s):
    """Which two channels turn together, and how fast."""
    R = s.get("attn_rotary", 0)
    first = range(0, R, 2) if s.get("attn_rotary_interleaved", False) else range(R // 2)
    apart = 1 if s.get("attn_rotary_interleaved", False) else R // 2
    return [(i, i + apart, s.get("attn_rotary_base", 1e4) ** (-2.0 * j / R)) for j, i in enumerate(first)]


def turned(s, y, t):
    """One head at step t, channel by channel."""
    channels = list(y)
    for i, j, rate in pairs(s):
        c, n = math.cos(t * rate), math.sin(t * rate)
        channels[i], channels[j] = y[i] * c - y[j] * n, y[i] * n + y[j] * c
    return torch.stack(channels)


def step_loop(record, layer, s, p, x):
    heads, groups, D, M = sizes(s)
    rows, K = (heads + 2 * groups) * D, s.get("attn_conv", 0)
    scale = s.get("attn_scale", 0.0) or 1.0 / math.sqrt(D)
    recent, keys, values, outputs = [torch.zeros(rows)] * K, [], [], []
    for t, u in enumerate(x):
        row = p["in_proj.weight"] @ u + p.get("in_proj.bias", 0.0)
        qkv, up, gate = row[:rows], row[rows:rows + M // 2], row[rows + M // 2:]
        if K:
            recent = recent[1:] + [qkv]
            qkv = p["conv1d.bias"] + sum(p["conv1d.weight"][:, 0, j] * recent[j] for j in range(K))
        per_head = qkv.reshape(-1, D)
        q = [turned(s, y, t) for y in per_head[:heads]]
        keys.append(record.state(layer, "k", torch.stack([turned(s, y, t) for y in per_head[heads:heads + groups]])))
        values.append(record.state(layer, "v", per_head[heads + groups:]))
        read = []
        for h in range(heads):
            of_head = h // (heads // groups)
            weights = torch.softmax(scale * torch.stack([q[h] @ k[of_head] for k in keys]), 0)
            read.append(sum(w * v[of_head] for w, v in zip(weights, values)))
        read = torch.cat([*read, up * gate * torch.sigmoid(gate)])
        outputs.append(p["out_proj.weight"] @ read + p.get("out_proj.bias", 0.0))
    return torch.stack(outputs)


def matrices(s, p, x):
    heads, groups, D, M = sizes(s)
    T, rows, K = len(x), (heads + 2 * groups) * D, s.get("attn_conv", 0)
    row = x @ p["in_proj.weight"].T + p.get("in_proj.bias", 0.0)
    qkv, up, gate = np.split(row, [rows, rows + M // 2], axis=1)
    if K:
        qkv = p["conv1d.bias"] + np.stack([np.convolve(qkv[:, c], p["conv1d.weight"][c, 0, ::-1])[:T] for c in range(rows)], 1)
    qkv = qkv.reshape(T, -1, D).copy()
    time = np.arange(T)[:, None]
    both = qkv[:, :heads + groups]
    for i, j, rate in pairs(s):  # a complex number turned
        z = (both[..., i] + 1j * both[..., j]) * np.exp(1j * time * rate)
        both[..., i], both[..., j] = z.real, z.imag
    q, k, v = both[:, :heads], np.repeat(both[:, heads:], heads // groups, 1), np.repeat(qkv[:, heads + groups:], heads // groups, 1)
    scores = np.einsum("thd,shd->hts", q, k) * (s.get("attn_scale", 0.0) or D**-0.5)
    weights = np.tril(np.exp(scores - scores.max(2, keepdims=True)))
    read = np.einsum("hts,shd->thd", weights / weights.sum(2, keepdims=True), v).reshape(T, -1)
    return np.concatenate([read, up * gate / (1.0 + np.exp(-gate))], 1) @ p["out_proj.weight"].T + p.get("out_proj.bias", 0.0)
