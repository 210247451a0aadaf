# SPDX-License-Identifier: GPL-3.0-or-later
"""Liquid-S4: the systems of S4, whose inputs multiply their states. Stepped with whole dense matrices over all conjugate pairs; compared with
a sum over orders, each a convolution of what the order below it makes, with powers of the matrix: with as many orders as steps, that is the recurrence itself.
"""
import numpy as np
import torch

from diagonal_systems import both_keys
from harness import draw, make
from parts import Numpy, Torch, encoder_shapes, prefixed, stack
from structured_options import pair, repeated, s4_matrices


def real_part(xp, how, x):
    """-Re of an eigenvalue; relu has no bound below here."""
    if how == "exp":
        return xp.exp(x)
    if how == "relu":
        return xp.maximum(x, 0.0 * x)
    if how == "sigmoid":
        return 1.0 / (1.0 + xp.exp(-x))
    return xp.log1p(xp.exp(x)) if how == "softplus" else x


def system(xp, settings, p):
    """The transition [H, N, N] and drive [H, N] over all conjugate pairs, and the read-outs of the recurrence, [ways, H, N]."""
    H = settings["width"]
    dt, w = xp.exp(p["log_dt"])[:, None], -real_part(xp, settings.get("real_transform", "exp"), p["inv_w_real"]) + 1j * p["w_imag"]
    w, B, P, C = repeated(w, H), repeated(pair(p["B"][0]), H), repeated(pair(p["P"][0]), H), pair(p["C"])
    if settings.get("bandlimit", 0.0):
        C = C * (dt * abs(w.imag) / (2 * np.pi) < settings["bandlimit"] / 2)
    join = torch.cat if xp is torch else np.concatenate
    C = join([C, C.conj()], -1)
    transition, drive = s4_matrices(xp, (dt, w, B, None, P, P.conj()))
    if settings.get("l_kernel", 0):
        powers = xp.linalg.matrix_power(transition, settings["l_kernel"])
        turned = powers.transpose(-1, -2) if xp is torch else np.swapaxes(powers, -1, -2)
        C = xp.linalg.solve((xp.eye(transition.shape[1]) - turned)[None], C[..., None])[..., 0]
    return transition, drive, C


def steps(record, layer, settings, parts, C, x):
    transition, drive = parts
    H, N = drive.shape
    n, order = N // 2, settings.get("order", 2)
    levels = order or 1
    both = lambda half: torch.cat([half, half.conj()], -1)

    def cell(flat, u):
        """One channel after another: [H, levels * N] real."""
        h = flat.reshape(H, levels, 2, n)
        h = both(torch.complex(h[:, :, 0], h[:, :, 1]))  # [H, levels, N]
        next = torch.einsum("hij,hlj->hli", transition, h)
        first = drive * u[:, None]
        if order == 0:
            next = next + (first * (1.0 + h[:, 0]))[:, None]
        else:
            next = next + torch.cat([first[:, None], first[:, None] * h[:, :-1]], 1)
        return torch.stack([next[..., :n].real, next[..., :n].imag], 2).reshape(H, levels * N)

    outputs = []
    if order == 1:  # the modes themselves are what is stored
        h = torch.zeros(H, n, dtype=torch.complex128)
        X, Y = transition[:, :n, :n], transition[:, :n, n:]
        real_map = torch.cat([torch.cat([(X + Y).real, -(X - Y).imag], 2), torch.cat([(X + Y).imag, (X - Y).real], 2)], 1)
        for u in x:
            record.linear(layer, list(real_map), constant=True)
            h = record.state(layer, "h", (transition @ both(h)[..., None])[:, :n, 0] + drive[:, :n] * u[:, None])
            outputs.append((C * both(h)).sum(1).real)
        return torch.stack(outputs)
    if order > 1:
        record.defective.add(layer)
    flat = torch.zeros(H, levels * N)
    for u in x:
        whole = torch.autograd.functional.jacobian(lambda s: cell(s, u.detach()), flat.detach())
        record.linear(layer, [whole[h, :, h] for h in range(H)], constant=False)
        flat = record.state(layer, "h", cell(flat, u)[..., None])[..., 0]
        h = flat.reshape(H, levels, 2, n).sum(1)
        outputs.append((C * both(torch.complex(h[:, 0], h[:, 1]))).sum(1).real)
    return torch.stack(outputs)


def numpy_orders(settings, parts, C, x):
    transition, drive = parts
    T, H = x.shape
    powers = np.stack([np.stack([np.linalg.matrix_power(A, k) for k in range(T)]) for A in transition])  # [H, T, N, N]
    below, total = np.ones((T, H, drive.shape[1])), 0.0
    for _ in range(settings.get("order", 2) or T):
        driven = below * drive * x[:, :, None]
        level = np.stack([sum(np.einsum("hij,hj->hi", powers[:, t - s], driven[s]) for s in range(t + 1)) for t in range(T)])
        total = total + level
        below = np.concatenate([np.zeros_like(level[:1]), level[:-1]])
    return (total * C).sum(2).real


def case(name, settings, T, d_in, loss, seed):
    H, n, ways = settings["width"], settings["state"] // 2, 2 if settings.get("bidirectional", False) else 1
    S = settings.get("n_ssm", 0) or H
    residual, prenorm, glu = settings.get("block", "residual") == "residual", settings.get("prenorm", True), settings.get("output", "glu") == "glu"
    shapes = {"log_dt": ((H,), 0.3, -1.5), "inv_w_real": ((S, n), 0.3, -0.7 if settings.get("real_transform", "exp") == "exp" else 1.0), "w_imag": ((S, n), 1.0, -3.0),
              "B": ((1, S, n, 2), 0.8), "P": ((1, S, n, 2), 0.6), "C": ((ways, H, n, 2), 0.9), "D": ((1, H), 0.8)}
    if glu:
        shapes |= {"output_linear.weight": ((2 * H, H), 0.6), "output_linear.bias": ((2 * H,), 0.3)}
    if residual:
        shapes |= {"norm.weight": ((H,), 0.3, 1.0), "norm.bias": ((H,), 0.3)}
    every = encoder_shapes(H, d_in)
    for level in range(settings.get("layers", 1)):
        every |= prefixed(f"{level * ways}/", shapes)

    def run(ops, filtered):
        def layer(level, p, x):
            u = ops.layer_norm(x, p["norm.weight"], p["norm.bias"]) if residual and prenorm else x
            y = filtered(level, p, u) + p["D"].reshape(-1) * u
            if glu:
                value, gate = ops.split(ops.activation("gelu", y) @ p["output_linear.weight"].T + p["output_linear.bias"], [H, H])
                y = value * ops.sigmoid(gate)
            if not residual:
                return y
            return x + y if prenorm else ops.layer_norm(x + y, p["norm.weight"], p["norm.bias"])
        return both_keys(stack(layer, lambda p, x: x, settings), ways)

    def forward(record, parameters, x):
        def filtered(level, p, u):
            *parts, C = system(torch, settings, p)
            y = steps(record, level * ways, settings, parts, C[0], u)
            if ways == 2:
                record.turned.add(2 * level + 1)
                back = torch.flip(steps(record, 2 * level + 1, settings, parts, C[1], torch.flip(u, [0])), [0])
                y = y + torch.cat([back[1:], torch.zeros_like(back[:1])])
            return y
        return run(Torch, filtered)(parameters, x)

    def second(values, x):
        def filtered(level, p, u):
            *parts, C = system(np, settings, p)
            y = numpy_orders(settings, parts, C[0], u)
            if ways == 2:
                y[:-1] += numpy_orders(settings, parts, C[1], u[::-1])[::-1][1:]
            return y
        return run(Numpy, filtered)(values, x)

    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "liquid-s4", settings, loss, "step loop from the paper's recurrence over all conjugate pairs, checked against a sum over orders, each a convolution", draw(seed, every), x, forward, second=second, seed=seed)


def main():
    bare = {"block": "none", "output": "none"}
    case("liquid-s4", {"width": 3, "state": 4, "layers": 2}, 12, 2, "mean", 961)
    case("liquid-s4-recurrence", {"width": 3, "state": 4, "order": 0, "n_ssm": 1, **bare}, 12, 3, "last", 962)
    case("liquid-s4-recurrence-block", {"width": 4, "state": 4, "order": 0, "n_ssm": 2, "prenorm": False, "real_transform": "softplus", "l_kernel": 9}, 10, 3, "mean", 963)
    case("liquid-s4-linear", {"width": 3, "state": 6, "order": 1, "real_transform": "relu", "block": "none"}, 12, 2, "mean", 964)
    case("liquid-s4-third", {"width": 2, "state": 4, "order": 3, "real_transform": "none", "bandlimit": 0.25, **bare}, 12, 2, "last", 965)
    case("liquid-s4-both", {"width": 2, "state": 4, "bidirectional": True, "real_transform": "sigmoid"}, 10, 2, "mean", 966)
