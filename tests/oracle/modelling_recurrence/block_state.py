# SPDX-License-Identifier: GPL-3.0-or-later
"""The block-state transformer, step by step and head by head, checked against kernels of its state-space model and whole blocks as matrices.

Pilault et al. 2023 (no code is published); google-research/meliad for the block transformer, S4D for the state-space model.
"""
import math

import numpy as np
import torch

from harness import draw, make, under
from parts import Numpy, Torch, encoder_shapes, prefixed
from segment_memories import Memories, behind_attention, block_norm, block_rows, bucket_of, dense, turn, waves
from softmax_attention import masked_softmax


def read_outs(s):
    return {"single-head": 1, "multi-head": s["heads"], "multi-filter": s.get("filters", 8)}[s.get("context", "single-head")]


def unit_rows(ops, s, y):
    return y / ops.sqrt((y * y).sum(-1) + 1e-6)[..., None] if s.get("normalise_keys", True) else y


def attend_row(q, keys, values, scale, biases):
    """One row q [heads, D] over rows of keys and values, head by head."""
    out = []
    for h in range(len(q)):
        scores = torch.stack([q[h] @ k[h] for k in keys])
        scores = scores + biases[h] if biases is not None else scores
        out.append(torch.softmax(scores if scale is None else scores * scale[h], 0) @ torch.stack([v[h] for v in values]))
    return torch.stack(out)


def block_state(record, layer, s, p, x):
    n, heads, kind, d = s["segment"], s["heads"], s.get("context", "single-head"), s["width"]
    A = torch.complex(-torch.exp(p["ssm.log_A_real"]), p["ssm.A_imag"])
    step = torch.exp(p["ssm.log_dt"])[:, None]
    if s.get("discretisation", "zoh") == "zoh":
        transition = torch.exp(step * A)
        drive = (transition - 1.0) / A
    else:
        transition = (1.0 + step * A / 2.0) / (1.0 - step * A / 2.0)
        drive = step / (1.0 - step * A / 2.0)
    C = torch.complex(p["ssm.C"][..., 0], p["ssm.C"][..., 1])
    shape = {"single-head": (n, d), "multi-head": (heads, n, d), "multi-filter": (read_outs(s), d)}[kind]
    memory, h, outputs = Memories(record, layer, context=torch.zeros(shape)), torch.zeros_like(A), []
    for t, row in enumerate(x):
        place, last = t % n, t % n == n - 1
        memory.step(t, last)
        if place == 0:
            keys, values, seen = [], [], []
        record.transition(layer, transition, constant=True)
        h = record.state(layer, "h", transition * h + drive * row[:, None])
        seen.append(torch.stack([2.0 * (c * h).sum(1).real + D * row for c, D in zip(C, p["ssm.D"])]))
        k, v, q, q2 = (y[0] for y in block_rows(Torch, s, p, "tbase", row[None]))
        if s.get("position", "t5") == "rotary":
            q, k = turn(s, q, place), turn(s, k, place)
        near, near_values = ([*keys, k], [*values, v]) if s.get("sees_itself", True) else (keys, values)
        ages = [place - j for j in range(len(near))]
        biases = None
        if s.get("position", "t5") == "t5":
            biases = p["relative_positions.rel_embedding"][:, [bucket_of(age) for age in ages]]
        if s.get("position", "t5") == "fourier" and near:
            biases = torch.stack([waves(p["relative_positions.rotation_matrix"], n, age) for age in ages], 1)
        own = attend_row(q, near, near_values, p.get("tbase._kvq.attention_scale"), biases) if near else torch.zeros_like(q)
        keys.append(k)
        values.append(v)
        of_context, rows = [[], []], memory["context"] if kind == "multi-head" else memory["context"][None].expand(heads, -1, -1)
        for head in range(heads):
            u = block_norm(Torch, s, p, "tbase._cross_kv.pre_attn_layernorm", rows[head])
            if s.get("context_ids", True):
                u = u + p["tbase._cross_kv.position_embeddings"]
            for found, which in zip(of_context, ("keys", "values")):
                found.append(dense(p, f"tbase._cross_kv.{which}_layer", u).reshape(len(u), heads, -1)[:, head])
        c_keys, c_values = unit_rows(Torch, s, torch.stack(of_context[0], 1)), torch.stack(of_context[1], 1)
        other = attend_row(q2, list(c_keys), list(c_values), p.get("tbase._cross_kv.attention_scale"), None)
        outputs.append(behind_attention(Torch, s, p, "tbase", row, torch.cat([own, other]).reshape(-1), "residual", "dual"))
        if last:
            all_seen = torch.stack(seen)  # [n, read-outs, d]
            memory.become(context={"single-head": all_seen[:, 0], "multi-head": all_seen.transpose(0, 1), "multi-filter": all_seen[-1]}[kind])
    return torch.stack(outputs)


def block_state_matrix(s, p, x):
    """Read-outs as convolutions with their kernels, which know no state; whole blocks."""
    n, heads, kind, T = s["segment"], s["heads"], s.get("context", "single-head"), len(x)
    A = -np.exp(p["ssm.log_A_real"]) + 1j * p["ssm.A_imag"]
    dtA = A * np.exp(p["ssm.log_dt"])[:, None]
    C = p["ssm.C"] @ [1, 1j]
    if s.get("discretisation", "zoh") == "zoh":
        power, weight = dtA, C * np.expm1(dtA) / A
    else:
        power, weight = np.log1p(dtA / 2) - np.log1p(-dtA / 2), C * dtA / A / (1 - dtA / 2)
    kernel = 2.0 * np.einsum("rhn,hnt->rht", weight, np.exp(power[:, :, None] * np.arange(T))).real
    lag = np.arange(T)[:, None] - np.arange(T)[None, :]
    reads = np.einsum("rhts,sh->trh", np.where(lag >= 0, kernel[:, :, np.maximum(lag, 0)], 0.0), x) + x[:, None, :] * p["ssm.D"][None]
    outputs = []
    for first in range(0, T, n):
        X = x[first: first + n]
        before = reads[first - n: first] if first else np.zeros((n, *reads.shape[1:]))
        rows = before[:, [0]] if kind == "single-head" else before if kind == "multi-head" else before[-1][:, None]  # [rows, 1 or heads, d]
        u = block_norm(Numpy, s, p, "tbase._cross_kv.pre_attn_layernorm", rows)
        if s.get("context_ids", True):
            u = u + p["tbase._cross_kv.position_embeddings"][:, None]
        u = np.broadcast_to(u, (len(u), heads, u.shape[2]))
        project = lambda which: np.einsum("jhd,dhe->jhe", u, p[f"tbase._cross_kv.{which}_layer.kernel"].reshape(u.shape[2], heads, -1))
        k, v, q, q2 = block_rows(Numpy, s, p, "tbase", X)
        ages, M = np.arange(len(X))[:, None] - np.arange(len(X))[None, :], 0
        visible = ages >= (0 if s.get("sees_itself", True) else 1)
        position, bias = s.get("position", "t5"), 0.0
        if position == "t5":
            bias = p["relative_positions.rel_embedding"][:, np.vectorize(lambda age: bucket_of(max(age, 0)))(ages)]
        if position == "fourier":
            M = p["relative_positions.rotation_matrix"].shape[1] // 2
            angle = np.pi * ages / (2.0 * n) ** (np.arange(M) / M)[:, None, None]
            bias = np.tensordot(p["relative_positions.rotation_matrix"], np.concatenate([np.cos(angle), -np.sin(angle)]), 1)
        if position == "rotary":
            D = k.shape[2]
            z = np.exp(1j * np.pi * np.arange(len(X))[:, None, None] / 10000.0 ** (2.0 * np.arange(D // 2) / D))
            turned = lambda y: np.concatenate([(w := (y[..., : D // 2] + 1j * y[..., D // 2:]) * z).real, w.imag], -1)
            q, k = turned(q), turned(k)

        def attention(q, k, v, scale, bias, visible):
            scores = np.einsum("ihd,jhd->hij", q, k) + bias
            scores = scores if scale is None else scores * scale[:, None, None]
            empty = ~np.broadcast_to(visible, scores.shape).any(-1, keepdims=True)
            return np.einsum("hij,jhd->ihd", np.where(empty, 0.0, masked_softmax(scores, visible | empty)), v)

        own = attention(q, k, v, p.get("tbase._kvq.attention_scale"), bias, visible)
        other = attention(q2, unit_rows(Numpy, s, project("keys")), project("values"), p.get("tbase._cross_kv.attention_scale"), 0.0, np.ones((1, 1, 1), bool))
        outputs.append(behind_attention(Numpy, s, p, "tbase", X, np.concatenate([own, other], 1).reshape(len(X), -1), "residual", "dual"))
    return np.concatenate(outputs)


def block_state_case(name, s, T, d_in, loss, seed):
    d, heads, modes, R, F = s["width"], s["heads"], s["state"] // 2, read_outs(s), s.get("feed_forward", 0) or 4 * s["width"]
    E, bias = heads * (s.get("head_dim", 0) or d // heads), s.get("mlp_bias", False)
    norm = lambda name: {f"{name}.scale": ((d,), 0.3, 1.0)} | ({f"{name}.bias": ((d,), 0.3)} if s.get("norm_bias", False) else {})
    kernel = lambda name, rows, columns, bias=False: {f"{name}.kernel": ((rows, columns), 1.0 / math.sqrt(rows))} | ({f"{name}.bias": ((columns,), 0.3)} if bias else {})
    scale = lambda name: {f"{name}.attention_scale": ((heads,), 0.5, 2.0)} if s.get("normalise_keys", True) else {}
    one = {"ssm.log_dt": ((d,), 0.3, -1.0), "ssm.log_A_real": ((d, modes), 0.3, -0.7), "ssm.A_imag": ((d, modes), 2.0), "ssm.C": ((R, d, modes, 2), 0.7), "ssm.D": ((R, d), 1.0)}
    one |= norm("tbase._kvq.pre_attn_layernorm") | scale("tbase._kvq")
    for which in ("keys", "values", "queries", "queries2"):
        one |= kernel(f"tbase._kvq.{which}_layer", d, E)
    one |= kernel("tbase.post_attn_mlp.output_layer", 2 * E, d, bias) | norm("tbase.pre_ffn_layernorm")
    one |= kernel("tbase.ffn.hidden0", d, F, bias) | kernel("tbase.ffn.output_layer", F, d, bias)
    one |= norm("tbase._cross_kv.pre_attn_layernorm") | kernel("tbase._cross_kv.keys_layer", d, E) | kernel("tbase._cross_kv.values_layer", d, E) | scale("tbase._cross_kv")
    if s.get("context_ids", True):
        one |= {"tbase._cross_kv.position_embeddings": ((R if s.get("context", "") == "multi-filter" else s["segment"], d), 0.7)}
    if s.get("position", "t5") == "t5":
        one |= {"relative_positions.rel_embedding": ((heads, 32), 0.7)}
    if s.get("position", "t5") == "fourier":
        one |= {"relative_positions.rotation_matrix": ((heads, s["position_vector"]), 0.7)}
    shapes = encoder_shapes(d, d_in)
    for layer in range(s.get("layers", 1)):
        shapes |= prefixed(f"{layer}/", one)
    if s.get("final_norm", True):
        shapes |= prefixed("final/", norm("final_layernorm"))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def run(ops, layer_of, parameters, x):
        if "encoder/weight" in parameters:
            x = x @ parameters["encoder/weight"].T + parameters["encoder/bias"]
        for layer in range(s.get("layers", 1)):
            x = layer_of(layer, under(parameters, f"{layer}/"), x)
        return block_norm(ops, s, under(parameters, "final/"), "final_layernorm", x) if s.get("final_norm", True) else x

    def forward(record, parameters, inputs):
        return run(Torch, lambda layer, p, v: block_state(record, layer, s, p, v), parameters, inputs)

    make(name, "block-state-transformer", s, loss, "step by step and head by head, checked against kernels and whole blocks as matrices", draw(seed, shapes), x, forward,
         second=lambda values, x: run(Numpy, lambda layer, p, v: block_state_matrix(s, p, v), values, x), seed=seed)


def main():
    block_state_case("block-state-transformer", {"width": 4, "heads": 2, "segment": 3, "state": 4, "feed_forward": 3}, 10, 3, "mean", 871)
    head = {"width": 4, "heads": 2, "segment": 3, "state": 2, "feed_forward": 2, "context": "multi-head", "discretisation": "bilinear", "activation": "swish", "norm_mean": True, "norm_bias": True,
            "mlp_bias": True, "normalise_keys": False, "position": "rotary", "final_norm": False}
    block_state_case("block-state-transformer-heads", head, 10, 2, "mean", 872)
    filters = {"width": 2, "heads": 1, "segment": 20, "state": 4, "feed_forward": 2, "context": "multi-filter", "filters": 3, "activation": "tanh", "sees_itself": False}
    block_state_case("block-state-transformer-filters", filters, 43, 2, "mean", 873)
    deep = {"width": 2, "heads": 1, "head_dim": 2, "layers": 2, "segment": 3, "state": 2, "feed_forward": 2, "context_ids": False, "activation": "sigmoid", "position": "fourier", "position_vector": 4}
    block_state_case("block-state-transformer-fourier", deep, 8, 2, "last", 874)
    block_state_case("block-state-transformer-unplaced", {"width": 2, "heads": 1, "segment": 2, "state": 2, "feed_forward": 2, "position": "none"}, 5, 2, "last", 875)


if __name__ == "__main__":
    main()
