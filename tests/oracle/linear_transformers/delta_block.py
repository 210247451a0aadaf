# SPDX-License-Identifier: GPL-3.0-or-later
"""DeltaNet as flash-linear-attention has it, step by step, checked against rounds of all steps at once.

Yang et al. 2024; fla-org/flash-linear-attention, layers/delta_net.py, models/delta_net, modules/l2norm.py (epsilon 1e-6).
"""
import numpy as np
import torch

from harness import settle
from matrix_memory import by_head, gla_finish, gla_layer, run_case
from parts import Numpy, Torch, linear_shapes, norm_shapes


def inputs_of(ops, s, p, x):
    heads, act = s["heads"], s.get("qk_activation", "silu")
    elu = torch.nn.functional.elu if ops is Torch else lambda y: np.where(y > 0.0, y, np.expm1(np.minimum(y, 0.0)))

    def made(which):
        y = x @ p[f"attn.{which}_proj.weight"].T
        if s.get("conv", 4):
            y = ops.convolve(y, p[f"attn.{which}_conv1d.weight"], p.get(f"attn.{which}_conv1d.bias"))
        if which == "v":
            return by_head(ops.activation("silu", y), heads)
        y = by_head(y if act == "identity" else elu(y) + 1.0 if act == "elu" else ops.activation(act, y), heads)
        if s.get("qk_norm", "l2") == "sum":
            return y / (y.sum(-1)[..., None] + s.get("sum_eps", 1e-5))
        return y / ops.sqrt((y * y).sum(-1) + 1e-6)[..., None]

    q, k, v = made("q"), made("k"), made("v")
    beta = ops.sigmoid(x @ p["attn.b_proj.weight"].T) if s.get("use_beta", True) else ops.repeat(x[:, :1] * 0.0 + 1.0, heads, 1)
    return q * k.shape[2] ** -0.5, k, v, beta * (2.0 if s.get("negative_eigenvalues", False) else 1.0)


def output(ops, s, p, x, o):
    o = ops.rms_norm(o, p["attn.o_norm.weight"], s.get("norm_eps", 1e-6)).reshape(len(x), -1)
    if s.get("output_gate", False):
        o = o * ops.activation("silu", x @ p["attn.g_proj.weight"].T)
    return o @ p["attn.o_proj.weight"].T


def steps(record, layer, s, p, x):
    q, k, v, beta = inputs_of(Torch, s, p, x)
    heads, keys, values = k.shape[1], k.shape[2], v.shape[2]
    S, reads = torch.zeros(heads, keys, values), []
    for t in range(len(x)):
        blocks = [torch.eye(keys) - beta[t, h] * torch.outer(k[t, h], k[t, h]) for h in range(heads)]
        record.linear(layer, [block for block in blocks for _ in range(values)], constant=False)
        missing = v[t] - (S * k[t][:, :, None]).sum(1)
        S = record.state(layer, "S", S + k[t][:, :, None] * (beta[t][:, None] * missing)[:, None, :])
        reads.append((S * q[t][:, :, None]).sum(1))
    return output(Torch, s, p, x, torch.stack(reads))


def rounds(s, p, x):
    q, k, v, beta = inputs_of(Numpy, s, p, x)
    update = lambda S: (S + beta[:, :, None, None] * k[..., None] * (v - np.einsum("thk,thkv->thv", k, S))[:, :, None, :],)
    (S,) = settle(update, len(x), (k.shape[1], k.shape[2], v.shape[2]))
    return output(Numpy, s, p, x, np.einsum("thk,thkv->thv", q, S))


def shapes(s, layer):
    d, heads, taps = s["width"], s["heads"], s.get("conv", 4)
    K, V = int(d * s.get("expand_k", 1.0)), int(d * s.get("expand_v", 1.0))
    found = linear_shapes("attn.q_proj", K, d) | linear_shapes("attn.k_proj", K, d) | linear_shapes("attn.v_proj", V, d) | linear_shapes("attn.o_proj", d, V)
    for which, width in (("q", K), ("k", K), ("v", V)):
        if taps:
            found |= {f"attn.{which}_conv1d.weight": ((width, 1, taps), 0.6)}
            if s.get("conv_bias", False):
                found |= {f"attn.{which}_conv1d.bias": ((width,), 0.3)}
    if s.get("use_beta", True):
        found |= linear_shapes("attn.b_proj", heads, d)
    if s.get("output_gate", False):
        found |= linear_shapes("attn.g_proj", V, d)
    found |= norm_shapes("attn.o_norm", V // heads, False)
    if s["block"] != "none":
        F = s["feed_forward"]
        found |= norm_shapes("attn_norm", d, False) | norm_shapes("mlp_norm", d, False)
        found |= linear_shapes("mlp.gate_proj", F, d) | linear_shapes("mlp.up_proj", F, d) | linear_shapes("mlp.down_proj", d, F)
    return found


def case(name, settings, T, d_in, loss, seed):
    run_case(name, "deltanet", settings | {"code": "flash-linear-attention"}, T, d_in, loss, seed, shapes, gla_layer, gla_finish, steps, rounds,
             "step loop from the equations of flash-linear-attention's DeltaNet, checked against rounds of all steps at once")


def main():
    small = {"width": 4, "heads": 2, "layers": 1, "block": "none"}
    case("deltanet-fla", small, 16, 4, "last", 1901)
    block = {"width": 4, "heads": 2, "layers": 2, "conv": 2, "conv_bias": True, "expand_k": 1.5, "expand_v": 2.0, "output_gate": True, "negative_eigenvalues": True, "feed_forward": 5, "norm_eps": 1e-5, "block": "residual"}
    case("deltanet-fla-block", block, 12, 3, "mean", 1902)
    case("deltanet-fla-elu", small | {"qk_activation": "elu", "qk_norm": "sum", "sum_eps": 0.0, "conv": 0}, 14, 4, "mean", 1903)
    case("deltanet-fla-relu", small | {"qk_activation": "relu", "conv": 3, "use_beta": False}, 14, 4, "mean", 1904)
    case("deltanet-fla-identity", small | {"qk_activation": "identity", "conv": 0, "use_beta": False, "negative_eigenvalues": True, "output_gate": True}, 14, 4, "mean", 1905)


if __name__ == "__main__":
    main()
