# SPDX-License-Identifier: GPL-3.0-or-later
"""LRPE (Qin et al. 2023): queries and keys turned by their positions, or a memory that turns. Step loops over the memory, checked against
kernels of the distance over all pairs of steps."""
import math

import numpy as np
import torch

from feature_attention import clamped, fairseq_finish, fairseq_layer, fairseq_shapes, flat, function_of, linear_loop, pairs, projected, projections, run_case
from harness import draw, make  # noqa: F401
from parts import Numpy, Torch, affine


def lrpe_defaults(s):
    return {"feature_map": "elu+1", "rotation": "complex", "theta": "learned", "horizon": 512, "basis": "identity", "frame": "fixed", "normaliser": "norm"} | s


def turning_entries(s, D):
    """How many entries turn: e of the code."""
    if s["rotation"] == "pairs":
        return D - D % 2
    if s["rotation"] == "half":
        return D // 2 + D // 2 % 2
    return D // 2 + 1 if s["basis"] == "fourier" else D


def angles(xp, s, p, D):
    if s["theta"] == "learned":
        return p["self_attn.urpe.theta"].reshape(-1)
    e = turning_entries(s, D)
    n = e if s["rotation"] == "complex" else e // 2
    j = np.arange(n)
    theta = {"a": 10000.0 ** (-2.0 * j / e), "b": math.pi / 2 / s["horizon"] / n * (j + 1), "c": math.pi / 2 / s["horizon"] / (j + 1)}[s["theta"]]
    return torch.tensor(theta) if xp is torch else theta


def transformed(xp, s, p, x):
    """P x: real, or with fourier a pair of real and imaginary part."""
    D, basis = x.shape[-1], s["basis"]
    if basis == "dct":
        k, n = np.meshgrid(np.arange(D), np.arange(D), indexing="ij")
        C = np.cos(math.pi * (n + 0.5) * k / D) * np.where(k == 0, math.sqrt(1.0 / D), math.sqrt(2.0 / D))
        return x @ (torch.tensor(C) if xp is torch else C).T
    if basis.startswith("householder"):
        v = p["self_attn.urpe.v"]
        v = v / (xp.sqrt((v * v).sum()) + 1e-6) if basis == "householder-learned" else v
        return x - 2.0 * (x * v).sum(-1)[..., None] * v
    if basis == "odd-even":
        half = D - D // 2
        order = [i // 2 if i % 2 == 0 else (i - 1) // 2 + half for i in range(D)]
        return x[..., order]
    if basis == "fourier":
        z = torch.fft.rfft(x, norm="ortho") if xp is torch else np.fft.rfft(x, norm="ortho")
        return z.real, z.imag
    return x


def code_positions(s, p, x):
    """The code's features: turned by the step's number, real."""
    D = x.shape[-1]
    theta, t = angles(torch, s, p, D), torch.arange(len(x), dtype=torch.float64)[:, None, None]
    x = transformed(torch, s, p, x)
    if s["rotation"] == "complex":
        re, im = x if isinstance(x, tuple) else (x, 0.0)
        c, n = torch.cos(theta * t), torch.sin(theta * t)
        return torch.cat([re * c - im * n, re * n + im * c], -1)
    e = turning_entries(s, D)
    first, rest = x[..., :e], x[..., e:]
    half = torch.stack([-first[..., 1::2], first[..., ::2]], -1).reshape(first.shape)
    both = torch.stack([theta, theta], -1).reshape(e)
    return torch.cat([first * torch.cos(both * t) + half * torch.sin(both * t), rest], -1)


def phasors(xp, s, p, x):
    """Complex numbers and their angles."""
    D = x.shape[-1]
    theta = angles(xp, s, p, D)
    x = transformed(xp, s, p, x)
    if isinstance(x, tuple):
        return x[0] + 1j * x[1], theta
    if s["rotation"] == "complex":
        return x + 0j, theta
    e = turning_entries(s, D)
    pieces = [x[..., :e:2] + 1j * x[..., 1:e:2], x[..., e:] + 0j]
    still = 0.0 * theta[:1]
    return xp.concatenate(pieces, -1), xp.concatenate([theta] + [still] * (D - e))


def lrpe_output(ops, s, p, o, weights):
    if s["normaliser"] == "sum":
        o = o / clamped(torch if ops is Torch else np, weights, 1e-6)
    o = flat(o)
    if s["normaliser"] == "norm":
        o = ops.layer_norm(o, p["self_attn.layer_norm.weight"], p["self_attn.layer_norm.bias"])
    return affine(p, "self_attn.out_proj", o)


def lrpe(record, layer, s, p, x):
    q, k, v = projected(s, p, x)
    q, k = function_of(Torch, s["feature_map"], q), function_of(Torch, s["feature_map"], k)
    weighed, reads, weights = s["normaliser"] == "sum", [], []
    if s["frame"] == "fixed":
        q, k = code_positions(s, p, q), code_positions(s, p, k)
        if weighed:
            reads, weights = linear_loop(record, layer, q, k, v)
            return lrpe_output(Torch, s, p, reads, weights)
        S = torch.zeros(k.shape[1], k.shape[2], v.shape[2])
        for t in range(len(x)):
            record.transition(layer, torch.ones(S.numel()), constant=True)
            S = record.state(layer, "S", S + k[t][:, :, None] * v[t][:, None, :])
            reads.append((S * q[t][:, :, None]).sum(1))
        return lrpe_output(Torch, s, p, torch.stack(reads), None)
    (q, theta), (k, _) = phasors(torch, s, p, q), phasors(torch, s, p, k)
    turn = torch.exp(1j * theta)
    heads, n, D = k.shape[1], k.shape[2], v.shape[2]
    S, z = torch.zeros(heads, n, D, dtype=torch.complex128), torch.zeros(heads, n, 1, dtype=torch.complex128)
    for t in range(len(x)):
        of_S, of_z = turn[None, :, None].expand(heads, n, D).reshape(-1), turn[None, :, None].expand(heads, n, 1).reshape(-1)
        record.transition(layer, torch.cat([of_S, of_z]) if weighed else of_S, constant=True)
        S = record.state(layer, "S", turn[None, :, None] * S + k[t].conj()[:, :, None] * v[t][:, None, :])
        reads.append((S * q[t][:, :, None]).sum(1).real)
        if weighed:
            z = record.state(layer, "z", turn[None, :, None] * z + k[t].conj()[:, :, None])
            weights.append((z[:, :, 0] * q[t]).sum(1).real)
    return lrpe_output(Torch, s, p, torch.stack(reads), torch.stack(weights) if weighed else None)


def lrpe_pairs(s, p, x):
    """The kernel of the distance: sum_j Re(q_j conj(k_j) exp(i theta_j (t - s)))."""
    q, k, v = projected(s, p, x)
    (q, theta), (k, _) = (phasors(np, s, p, function_of(Numpy, s["feature_map"], y)) for y in (q, k))
    steps = np.arange(len(x))
    turned = np.exp(1j * theta * (steps[:, None] - steps[None, :])[:, :, None])
    scores = np.tril(np.einsum("thn,shn,tsn->hts", q, k.conj(), turned).real)
    return lrpe_output(Numpy, s, p, np.einsum("hts,shv->thv", scores, v), scores.sum(2).T)


def lrpe_shapes(s, layer):
    D = s["width"] // s["heads"]
    shapes = projections(s) | fairseq_shapes(s)
    if s["theta"] == "learned":
        n = D if s["rotation"] == "complex" else D // 2
        shapes |= {"self_attn.urpe.theta": ((1, 1, n), 0.3, 0.4)}
    if s["basis"].startswith("householder"):
        shapes |= {"self_attn.urpe.v": ((D,), 0.6)}
    if s["normaliser"] == "norm":
        shapes |= {"self_attn.layer_norm.weight": ((s["width"],), 0.3, 1.0), "self_attn.layer_norm.bias": ((s["width"],), 0.3)}
    return shapes


def lrpe_case(name, settings, T, d_in, loss, seed):
    full = lrpe_defaults({"layers": 1, "block": "none"} | settings)
    run_case(name, "lrpe", settings, full, T, d_in, loss, seed, lrpe_shapes, fairseq_layer, fairseq_finish, lrpe, lrpe_pairs,
             "step loop from the equations of fairseq-evo's urpe.py and linear_kernel_attention.py, checked against the kernel of the distance")


def main():
    base = {"width": 6, "heads": 2, "layers": 1, "block": "none"}
    lrpe_case("lrpe", base, 16, 6, "last", 601)
    lrpe_case("lrpe-turning", base | {"frame": "turning", "feature_map": "relu"}, 14, 6, "mean", 602)
    lrpe_case("lrpe-turning-sum", base | {"frame": "turning", "normaliser": "sum", "rotation": "pairs", "theta": "c", "horizon": 30}, 12, 6, "mean", 603)
    lrpe_case("lrpe-even-angles", base | {"theta": "b", "horizon": 12}, 12, 6, "mean", 612)
    lrpe_case("lrpe-pairs", base | {"rotation": "pairs", "basis": "householder-learned", "normaliser": "none"}, 14, 6, "mean", 604)
    wide = {"width": 10, "heads": 2, "layers": 1, "block": "none"}
    lrpe_case("lrpe-half", wide | {"rotation": "half", "theta": "b", "horizon": 20, "basis": "dct", "normaliser": "sum", "feature_map": "elu+1"}, 10, 10, "mean", 605)
    lrpe_case("lrpe-fourier", base | {"theta": "a", "basis": "fourier", "normaliser": "none", "feature_map": "silu"}, 12, 6, "mean", 606)
    lrpe_case("lrpe-fourier-turning", {"width": 8, "heads": 2, "layers": 1, "theta": "a", "basis": "fourier", "frame": "turning", "block": "none"}, 10, 8, "mean", 607)
    lrpe_case("lrpe-odd-even", base | {"rotation": "pairs", "theta": "a", "basis": "odd-even", "feature_map": "identity"}, 12, 6, "last", 608)
    block = {"width": 4, "heads": 2, "layers": 2, "feed_forward": 5, "block": "residual"}
    lrpe_case("lrpe-block", block | {"basis": "householder"}, 12, 3, "mean", 609)
    lrpe_case("lrpe-block-postnorm", block | {"layers": 1, "prenorm": False, "activation": "gelu"}, 12, 4, "last", 610)
    lrpe_case("lrpe-block-bare", block | {"layers": 1, "final_norm": False}, 12, 4, "last", 611)


if __name__ == "__main__":
    main()
