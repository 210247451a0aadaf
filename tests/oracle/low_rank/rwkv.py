# SPDX-License-Identifier: GPL-3.0-or-later
"""RWKV-5 and RWKV-6 as step loops, each checked against a sum over pairs of steps.

Peng et al. 2024; BlinkDL/RWKV-LM, RWKV-v5/src/model.py (RWKV_Tmix_x052, RWKV_Tmix_x060, the channel mixes, MishGLU), cuda/wkv5_cuda.cu and
wkv6_cuda.cu.
"""
import numpy as np
import torch

from matrix_memory import by_head, run_case
from parts import Numpy, Torch, linear_shapes, norm_shapes, prefixed


def shifted(ops, x):
    """The sequence one step later, zero first."""
    return ops.concatenate([x[:1] * 0.0, x[:-1]], 0)


def tanh(ops, x):
    return torch.tanh(x) if ops is Torch else np.tanh(x)


def mish(ops, x):
    return torch.nn.functional.mish(x) if ops is Torch else x * np.tanh(np.logaddexp(0.0, x))


def mixed(ops, p, name, x):
    """Version 5: the share of the current token."""
    mix = p[name][0, 0]
    return x * mix + shifted(ops, x) * (1.0 - mix)


def heads_of(s):
    return (s.get("attention_width", 0) or s["width"]) // s["head_size"]


def inputs(ops, version, s, p, x):
    """Receptances, keys, values and logarithms of decays by head, [steps, heads, size], and what the gate reads."""
    H = heads_of(s)
    if version == 5:
        xr, xk, xv, xg = (mixed(ops, p, f"att.time_mix_{which}", x) for which in "rkvg")
        a = -ops.exp(p["att.time_decay"]) + 0.0 * by_head(x[:, :1] @ p["att.key.weight"].T[:1], H)  # the same at every step
    else:
        step = shifted(ops, x) - x
        low = tanh(ops, (x + step * p["att.time_maa_x"][0, 0]) @ p["att.time_maa_w1"])
        low = low.reshape(len(x), 5, -1)
        xw, xk, xv, xr, xg = (x + step * (p[f"att.time_maa_{which}"][0, 0] + low[:, i] @ p["att.time_maa_w2"][i]) for i, which in enumerate("wkvrg"))
        a = by_head(-ops.exp(p["att.time_decay"][0, 0] + tanh(ops, xw @ p["att.time_decay_w1"]) @ p["att.time_decay_w2"]), H)
    r, k, v = (by_head(y @ p[f"att.{name}.weight"].T, H) for y, name in ((xr, "receptance"), (xk, "key"), (xv, "value")))
    return r, k, v, a, xg


def output(ops, version, s, p, y, xg):
    divisor = s.get("divisor", 8.0)
    normed = ops.layer_norm(y / divisor if version == 5 else y, torch.ones(y.shape[2]) if ops is Torch else 1.0, eps=1e-5 if version == 5 else 1e-5 * divisor**2)
    normed = normed.reshape(len(y), -1) * p["att.ln_x.weight"] + p["att.ln_x.bias"]
    return (normed * ops.activation("silu", xg @ p["att.gate.weight"].T)) @ p["att.output.weight"].T


def time_mix(version):
    def run(record, layer, s, p, x):
        r, k, v, a, xg = inputs(Torch, version, s, p, x)
        u = p["att.time_faaaa"][:, :, None]
        S = torch.zeros(k.shape[1], k.shape[2], v.shape[2])
        reads = []
        for t in range(len(x)):
            w = torch.exp(a[t])[:, :, None].expand(S.shape)
            record.transition(layer, w, constant=version == 5)
            new = k[t][:, :, None] * v[t][:, None, :]
            reads.append(((S + u * new) * r[t][:, :, None]).sum(1))
            S = record.state(layer, "S", w * S + new)
        return output(Torch, version, s, p, torch.stack(reads), xg)
    return run


def pairs(version):
    """y_t = (r_t u . k_t) v_t + sum over s < t of (r_t exp(A_{t-1} - A_s) . k_s) v_s, with A the running sum of the log decays."""
    def run(s, p, x):
        r, k, v, a, xg = inputs(Numpy, version, s, p, x)
        A = np.cumsum(a, axis=0)
        before = np.concatenate([np.zeros_like(A[:1]), A[:-1]])
        between = np.minimum(before[:, None] - A[None, :], 0.0)  # above 0 only where s >= t, which the triangle removes
        scores = np.tril(np.einsum("thk,tshk,shk->hts", r, np.exp(between), k), -1)
        own = (r * p["att.time_faaaa"] * k).sum(2)[:, :, None] * v
        return output(Numpy, version, s, p, np.einsum("hts,shv->thv", scores, v) + own, xg)
    return run


def feed_forward(ops, version, s, p, x):
    if s.get("feed_forward_kind", "channel_mix") == "mish_glu":
        a = mixed(ops, p, "ffn.time_mix_k", x) @ p["ffn.aa.weight"].T
        return (a * mish(ops, mixed(ops, p, "ffn.time_mix_r", x) @ p["ffn.bb.weight"].T)) @ p["ffn.value.weight"].T
    if version == 5:
        xk, xr = mixed(ops, p, "ffn.time_mix_k", x), mixed(ops, p, "ffn.time_mix_r", x)
    else:
        step = shifted(ops, x) - x
        xk, xr = x + step * p["ffn.time_maa_k"][0, 0], x + step * p["ffn.time_maa_r"][0, 0]
    k = ops.activation("relu", xk @ p["ffn.key.weight"].T)
    return ops.sigmoid(xr @ p["ffn.receptance.weight"].T) * ((k * k) @ p["ffn.value.weight"].T)


def layer_of(version):
    def run(ops, mixer, s, p, x):
        if s["block"] == "none":
            return mixer(p, x)
        norm = lambda name, v: ops.layer_norm(v, p[f"{name}.weight"], p[f"{name}.bias"])
        x = norm("ln0", x) if "ln0.weight" in p else x
        x = x + mixer(p, norm("ln1", x))
        return x + feed_forward(ops, version, s, p, norm("ln2", x))
    return run


def finish(ops, s, p, x):
    final = s["block"] == "residual" and s.get("final_norm", True)
    if ops is None:
        return norm_shapes("ln_out", s["width"]) if final else {}
    return ops.layer_norm(x, p["ln_out.weight"], p["ln_out.bias"]) if final else x


def shapes_of(version):
    def run(s, layer):
        C, H, N = s["width"], heads_of(s), s["head_size"]
        A, F = H * N, s.get("feed_forward", 0) or int(3.5 * C) // 32 * 32 or 4 * C
        shares = lambda names: {f"{name}": ((1, 1, C), 0.3, 0.5) for name in names}
        shapes = {"att.time_faaaa": ((H, N), 0.8)}
        if version == 5:
            shapes |= {"att.time_decay": ((H, N), 0.8, -1.0)} | shares(f"att.time_mix_{which}" for which in "kvrg")
        else:
            M, D = s["mix_rank"], s["decay_rank"]
            shapes |= shares(f"att.time_maa_{which}" for which in "xwkvrg") | {
                "att.time_maa_w1": ((C, 5 * M), 1.0 / C**0.5), "att.time_maa_w2": ((5, M, C), 0.5), "att.time_decay": ((1, 1, A), 0.8, -1.0),
                "att.time_decay_w1": ((C, D), 1.0 / C**0.5), "att.time_decay_w2": ((D, A), 0.7)}
        for name in ("receptance", "key", "value", "gate"):
            shapes |= linear_shapes(f"att.{name}", A, C)
        shapes |= linear_shapes("att.output", C, A) | norm_shapes("att.ln_x", A)
        if s["block"] == "none":
            return shapes
        for name in ("ln0", "ln1", "ln2") if layer == 0 else ("ln1", "ln2"):
            shapes |= norm_shapes(name, C)
        if s.get("feed_forward_kind", "channel_mix") == "mish_glu":
            return shapes | shares(("ffn.time_mix_k", "ffn.time_mix_r")) | linear_shapes("ffn.aa", F, C) | linear_shapes("ffn.bb", F, C) | linear_shapes("ffn.value", C, F)
        told = "time_mix" if version == 5 else "time_maa"
        return shapes | shares((f"ffn.{told}_k", f"ffn.{told}_r")) | prefixed("ffn.", linear_shapes("key", F, C) | linear_shapes("receptance", C, C) | linear_shapes("value", C, F))
    return run


def case(version, name, settings, T, d_in, loss, seed):
    run_case(name, f"rwkv-{version}", settings, T, d_in, loss, seed, shapes_of(version), layer_of(version), finish, time_mix(version), pairs(version),
             f"step loop from the equations of RWKV-{version}, checked against its sum over pairs of steps")


def main():
    case(5, "rwkv-5", {"width": 6, "head_size": 3, "block": "none"}, 20, 6, "last", 701)
    case(5, "rwkv-5-block", {"width": 6, "head_size": 2, "layers": 2, "attention_width": 4, "feed_forward": 7, "block": "residual"}, 14, 3, "mean", 722)
    case(5, "rwkv-5-mish", {"width": 4, "head_size": 4, "feed_forward": 5, "feed_forward_kind": "mish_glu", "divisor": 3.0, "final_norm": False, "block": "residual"}, 14, 4, "mean", 703)
    low = {"mix_rank": 2, "decay_rank": 3}
    case(6, "rwkv-6", {"width": 6, "head_size": 3, "block": "none"} | low, 20, 6, "last", 711)
    case(6, "rwkv-6-block", {"width": 6, "head_size": 2, "layers": 2, "attention_width": 4, "feed_forward": 7, "block": "residual"} | low, 12, 3, "mean", 712)
    case(6, "rwkv-6-mish", {"width": 4, "head_size": 4, "feed_forward": 5, "feed_forward_kind": "mish_glu", "divisor": 3.0, "final_norm": False, "block": "residual"} | low, 14, 4, "mean", 713)
