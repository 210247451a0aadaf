# SPDX-License-Identifier: GPL-3.0-or-later
"""Liquid-S4: the systems of S4, whose inputs multiply their states. Stepped with whole dense matrices over all conjugate pairs; compared with
a sum over orders, each a convolution of what the order below it makes, with powers of the matrix: with as many orders as steps, that is the recurrence itself.
What the code of raminmh/liquid-s4 adds (src/models/sequence/ss/s4.py, polyb and kb) by its transforms and combinations, compared with sums over places.
"""
import itertools
import math

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
    transition, drive = s4_matrices(xp, (dt, w, B, None, P[None], P.conj()[None]))
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


def combinations(T, p):
    """The sets of p places that the code takes."""
    count = next(n for n in range(2, T) if math.comb(n, p) >= T)
    return list(itertools.combinations(range(T - count, T), p))[-T:]


def code_adds(settings, p, transition, drive, C, u):
    """Of polyb and kb, as the code has it, [T, H]."""
    T, H = u.shape
    contract = {"tanh": torch.tanh, "lecun": lambda x: 1.7159 * torch.tanh(0.666 * x)}.get(settings.get("lcontract"), lambda x: x)
    conj = lambda half: torch.cat([half, half.conj()], -1)
    w, B = conj(repeated(pair(p["frozen.w"]), H)), conj(repeated(pair(p["frozen.B"]), H))
    dt = torch.exp(p["frozen.log_dt"])[:, None]
    dB = dt * B / (1.0 - 0.5 * dt * w)
    us, total, step_B, kernel, h = u, torch.zeros(T, H), dB, [], drive
    for _ in range(T):
        kernel.append((C * h).sum(1).real)
        h = (transition @ h[..., None])[..., 0]
    k_b = torch.stack(kernel, 1).to(torch.complex128)  # [H, T]
    for degree in range(2, settings.get("order", 2) + 1):
        if settings.get("allcombs", True):
            us = u[torch.tensor(combinations(T, degree))].prod(1)
        else:
            us = us * torch.cat([torch.zeros(1, H), us[:-1]])
        flipped = torch.flip(contract(us), [0])
        if settings["liquid_kernel"] == "polyb":
            step_B = (step_B[:, :, None] * step_B[:, None, :]).sum(2)
            total = total + flipped * (conj(pair(p["frozen.C"])) * step_B).sum(1).real
        else:
            k_b = k_b * dB.sum(1)[:, None]
            spectrum = torch.fft.rfft(flipped.T, n=2 * T) * torch.fft.fft(k_b, n=T + 1)
            total = total + torch.fft.irfft(spectrum, n=2 * T)[:, :T].T
    return total


def sums_add(settings, p, transition, drive, C, u):
    """The same place by place: real sums over the modes, products one by one, and the kernel of kb as a sum of cosines."""
    T, H = u.shape
    w, B = repeated(pair(p["frozen.w"]), H), repeated(pair(p["frozen.B"]), H)
    step = B / (np.exp(-p["frozen.log_dt"])[:, None] - 0.5 * w)
    weight, total = 2.0 * step.real.sum(1), np.zeros((T, H))
    contract = {"tanh": np.tanh, "lecun": lambda x: 1.7159 * np.tanh(0.666 * x)}.get(settings.get("lcontract"), lambda x: x)
    kernel = np.array([[(C[h] @ np.linalg.matrix_power(transition[h], t) @ drive[h]).real for t in range(T)] for h in range(H)])
    j, t, s = np.arange(1, T)[:, None, None], np.arange(2 * T)[None, :, None], np.arange(T)[None, None]
    cosines = 1.0 + np.cos(np.pi * t[0]) * np.cos(2 * np.pi * T * s[0] / (T + 1)) + 2.0 * np.cos(2 * np.pi * j * (t / (2 * T) - s / (T + 1))).sum(0)
    places = kernel @ cosines.T / (2 * T)  # [H, 2T]
    for degree in range(2, settings.get("order", 2) + 1):
        if settings.get("allcombs", True):
            product = np.array([np.prod([u[i] for i in chosen], axis=0) for chosen in combinations(T, degree)])
        else:  # u_t once, u_{t-1} as often as a binomial coefficient says, and so on
            product = np.array([np.prod([u[t - lag] ** math.comb(degree - 1, lag) if t >= lag else np.zeros(H) for lag in range(degree)], axis=0) for t in range(T)])
        product = contract(product)
        if settings["liquid_kernel"] == "polyb":
            total += product[::-1] * weight ** (2 ** (degree - 1) - 1) * 2.0 * (pair(p["frozen.C"]) * step).real.sum(1)
        else:
            for t in range(T):
                total[t] += weight ** (degree - 1) * sum(places[:, (t - s) % (2 * T)] * product[T - 1 - s] for s in range(T))
    return total


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
    liquid = settings.get("liquid_kernel", "causal") != "causal"
    if liquid:
        shapes |= {"frozen.log_dt": ((H,), 0.3, -1.5), "frozen.B": ((S, n, 2), 0.8), "frozen.w": ((S, n, 2), 0.5, -1.0)} | ({"frozen.C": ((H, n, 2), 0.9)} if settings["liquid_kernel"] == "polyb" else {})
        linear, ways = settings | {"order": 1}, 2  # numbers that a layer takes
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
            if liquid:
                return steps(record, level * ways, linear, parts, C[0], u) + code_adds(settings, p, *parts, C[0], u)
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
            if liquid:
                return numpy_orders(linear, parts, C[0], u) + sums_add(settings, p, *parts, C[0], u)
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
    case("liquid-s4-polyb", {"width": 3, "state": 4, "liquid_kernel": "polyb", "order": 3, "lcontract": "tanh"}, 12, 2, "mean", 967)
    case("liquid-s4-polyb-row", {"width": 2, "state": 4, "liquid_kernel": "polyb", "order": 4, "allcombs": False, "layers": 2, "n_ssm": 1, **bare}, 10, 2, "mean", 968)
    case("liquid-s4-kb", {"width": 2, "state": 4, "liquid_kernel": "kb", "order": 3, "lcontract": "lecun"}, 12, 3, "last", 969)
    case("liquid-s4-kb-row", {"width": 2, "state": 4, "liquid_kernel": "kb", "order": 2, "allcombs": False, "prenorm": False}, 9, 2, "mean", 970)
