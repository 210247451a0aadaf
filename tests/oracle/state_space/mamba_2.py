# SPDX-License-Identifier: GPL-3.0-or-later
"""Mamba-2: state-spaces/mamba, modules/mamba2.py and mamba2_simple.py, with their reference functions for the scan and for the gated norm. Stepped head by head with the
reference's state [head, state]; compared with the dual form, a masked matrix of all products.
"""
import math

import numpy as np
import torch

from harness import draw, make
from parts import Numpy, Torch, prefixed
from state_space import attention_or, logistic, mixer_model, mixer_model_inputs, mixer_model_shapes, mixer_norm, numpy_mixer_norm, with_attention


def sizes(s):
    E = s.get("expand", 2) * s["width"]
    M = s.get("d_ssm", 0) or E
    return E, M, s["head"], M // s["head"], s.get("groups", 1), s["state"]


def silu(ops, x):
    return x * ops.sigmoid(x)


def clipped(xp, s, dt):
    if s.get("dt_low", 0.0):
        dt = xp.where(dt < s["dt_low"], 0.0 * dt + s["dt_low"], dt)
    return xp.where(dt > s["dt_high"], 0.0 * dt + s["dt_high"], dt) if s.get("dt_high", 0.0) else dt


def gated_norm(ops, s, weight, y, z):
    if weight is None:
        return y * silu(ops, z)
    before = s.get("norm_before_gate", False)
    y = y if before else y * silu(ops, z)
    sets = s.get("groups", 1) if s.get("norm", "groups") == "groups" else 1
    y = y.reshape(len(y), sets, -1)
    y = (y / ops.sqrt((y * y).mean(-1)[..., None] + 1e-5)).reshape(len(y), -1) * weight
    return y * silu(ops, z) if before else y


def mixer(ops, xp, s, p, u, scan):
    E, M, P, heads, G, N = sizes(s)
    parts = ops.split(u @ p["in_proj.weight"].T + p.get("in_proj.bias", 0.0), [E - M, E - M, M, M + 2 * G * N, heads])
    z0, x0, z, xBC, dt = parts
    xBC = silu(ops, ops.convolve(xBC, p["conv1d.weight"], p.get("conv1d.bias")))
    x, B, C = ops.split(xBC, [M, G * N, G * N])
    dt = clipped(xp, s, xp.log1p(xp.exp(dt + p["dt_bias"])))
    x, B, C = x.reshape(-1, heads, P), B.reshape(-1, G, N), C.reshape(-1, G, N)
    D = p["D"].reshape(heads, -1)
    y = (scan(x, dt, -xp.exp(p["A_log"]), B, C, p.get("init_states")) + D * x).reshape(len(u), M)
    y = gated_norm(ops, s, p.get("norm.weight" if s.get("block", "residual") == "none" else "mixer.norm.weight"), y, z)
    return ops.concatenate([silu(ops, z0) * x0, y], 1) @ p["out_proj.weight"].T + p.get("out_proj.bias", 0.0)


def steps(record, layer, s, x, dt, A, B, C, first):
    """What is left of the first states stands apart from what the inputs wrote."""
    _, _, P, heads, G, N = sizes(s)
    h, left, outputs = torch.zeros(heads, N, P), torch.ones(heads), []
    group = [j * G // heads for j in range(heads)]
    for t in range(len(x)):
        decay = torch.exp(dt[t] * A)
        record.transition(layer, decay.repeat_interleave(N * P), constant=False)
        written = torch.stack([torch.outer(B[t, group[j]], dt[t, j] * x[t, j]) for j in range(heads)])
        h = record.state(layer, "S", decay[:, None, None] * h + written)
        read = torch.stack([C[t, group[j]] @ h[j] for j in range(heads)])
        if first is not None:
            left = record.state(layer, "d", left * decay)
            read = read + torch.stack([left[j] * (first[j] @ C[t, group[j]]) for j in range(heads)])
        outputs.append(read)
    return torch.stack(outputs)


def dual(s, x, dt, A, B, C, first):
    """L o (C B^T) applied to dt x, L the decays between any two steps; and the decays from the start on applied to C first^T."""
    heads, G = x.shape[1], B.shape[1]
    total, T = np.cumsum(dt * A, axis=0), len(x)
    decays = np.tril(np.ones((T, T)))[:, :, None] * np.exp(np.minimum(total[:, None] - total[None], 0.0))
    products = np.repeat(np.einsum("tgn,sgn->tsg", C, B), heads // G, axis=2)
    y = np.einsum("tsh,shp->thp", decays * products, dt[:, :, None] * x)
    return y if first is None else y + np.einsum("th,thn,hpn->thp", np.exp(total), np.repeat(C, heads // G, axis=1), first)


def case(name, settings, T, d_in, loss, seed):
    s = settings
    d, K, residual = s["width"], s.get("conv", 4), s.get("block", "residual") == "residual"
    E, M, P, heads, G, N = sizes(s)
    mixed, rows = M + 2 * G * N, 2 * E + 2 * G * N + heads
    shapes = {"in_proj.weight": ((rows, d), 0.6), "conv1d.weight": ((mixed, 1, K), 0.5), "dt_bias": ((heads,), 0.5, -1.0), "A_log": ((heads,), 0.5, 0.3),
              "D": ((M if s.get("D_has_hdim", False) else heads,), 0.4, 1.0), "out_proj.weight": ((d, E), 0.5)}
    if s.get("learnable_init_states", False):
        shapes["init_states"] = ((heads, P, N), 0.6)
    if s.get("conv_bias", True):
        shapes["conv1d.bias"] = ((mixed,), 0.3)
    if s.get("norm", "groups") != "none":
        shapes["mixer.norm.weight" if residual else "norm.weight"] = ((M,), 0.3, 1.0)
    if s.get("bias", False):
        shapes |= {"in_proj.bias": ((rows,), 0.3), "out_proj.bias": ((d,), 0.3)}
    every = mixer_model_shapes(s, d_in)
    for layer in range(s.get("layers", 1)):
        every = with_attention(s, layer, every | prefixed(f"{layer}/", shapes))
    mixed_by, mixed_at_once = attention_or(s, lambda record, level, p, u: mixer(Torch, torch, s, p, u, lambda *inputs: steps(record, level, s, *inputs)),
                                           lambda level, p, u: mixer(Numpy, np, s, p, u, lambda *inputs: dual(s, *inputs)))

    def forward(record, parameters, x):
        return mixer_model(lambda level, p, u: mixed_by(record, level, p, u), mixer_norm, torch.sigmoid, torch.tanh, s)(parameters, x)

    second = mixer_model(mixed_at_once, numpy_mixer_norm, logistic, np.tanh, s)
    x = mixer_model_inputs(s, T, d_in, seed)
    make(name, "mamba-2", settings, loss, "step loop from the equations of Mamba-2, checked against its dual, a masked matrix of all products", draw(seed, every), x, forward, second=second, seed=seed)


def main():
    case("mamba-2", {"width": 4, "state": 3, "head": 4, "layers": 2}, 12, 2, "mean", 971)
    case("mamba-2-groups", {"width": 4, "state": 2, "head": 2, "groups": 2, "norm_before_gate": True, "D_has_hdim": True, "bias": True, "dt_low": 0.2, "dt_high": 0.6}, 12, 3, "mean", 972)
    case("mamba-2-simple", {"width": 3, "state": 2, "head": 3, "groups": 2, "norm": "all", "conv": 3, "conv_bias": False, "block": "none"}, 14, 3, "last", 973)
    case("mamba-2-init-states", {"width": 4, "state": 3, "head": 2, "groups": 2, "norm": "all", "learnable_init_states": True, "layers": 2, "dt_low": 0.02}, 12, 3, "mean", 975)
    case("mamba-2-beside", {"width": 3, "state": 3, "head": 2, "expand": 3, "d_ssm": 4, "norm": "none", "conv": 1, "block": "none"}, 14, 2, "mean", 974)
    case("mamba-2-feed-forward", {"width": 4, "state": 2, "head": 4, "block_norm": "layer", "norm_eps": 1e-3, "mlp": 5}, 12, 3, "last", 975)
    case("mamba-2-language", {"width": 4, "state": 2, "head": 4, "layers": 2, "read_out": "tied", "encoder_bias": False}, 12, 6, "task", 976)
    case("mamba-2-language-untied", {"width": 4, "state": 2, "head": 8, "mlp": 6, "read_out": "no-bias", "encoder_bias": False}, 12, 5, "task", 977)
    attention = {"attn": True, "attn_layers": 5, "attn_heads": 2, "attn_kv_heads": 1, "attn_head": 6, "attn_conv": 4, "attn_rotary": 4, "attn_rotary_base": 30.0}
    case("mamba-2-attention", {"width": 4, "state": 2, "head": 4, "layers": 3, "attn_qkv_bias": False, "attn_out_bias": False} | attention, 12, 3, "mean", 978)
    case("mamba-2-attention-mlp", {"width": 4, "state": 2, "head": 4, "layers": 2, "mlp": 3, "attn": True, "attn_layers": 2, "attn_head": 0, "attn_mlp": 4, "attn_rotary": 2, "attn_rotary_interleaved": True}, 12, 3, "mean", 979)
