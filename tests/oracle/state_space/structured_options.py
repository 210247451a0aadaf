# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of state-spaces/s4 (kernels/ssm.py, kernels/fftconv.py, modules/s4block.py) that S4 and S4D have here: parameters under transforms, time
steps of the modes' own, shared copies, real systems, a free low-rank part, both directions. S4 is stepped with its whole dense matrix; both are
compared with convolutions by FFT, with kernels from eigenvectors and from powers.
"""
import numpy as np
import torch

from diagonal_systems import both_keys
from harness import draw, make
from parts import Numpy, Torch, encoder_shapes, prefixed, stack


def positive(xp, how, x):
    if how == "relu":
        return xp.maximum(x, 0.0 * x) + 1e-4
    if how == "sigmoid":
        return 1.0 / (1.0 + xp.exp(-x))
    if how == "softplus":
        return xp.log1p(xp.exp(x))
    return xp.exp(x) if how == "exp" else x


def pair(x):
    return torch.complex(x[..., 0], x[..., 1]) if isinstance(x, torch.Tensor) else x @ np.array([1.0, 1j])


def repeated(x, H):
    """Channel h has copy h mod S."""
    return x[..., [h % x.shape[-2] for h in range(H)], :]


def system(xp, model, settings, p):
    """dt [H, 1 or N], A, B [H, N], C [ways * channels, H, N], and for S4 P and Q [rank, H, N]."""
    H, real_system = settings["width"], settings.get("is_real", False)
    full = model == "s4" or settings.get("code", "minimal") == "full"
    number = (lambda x: x) if real_system else pair
    dt = p["inv_dt"] if full else p["log_dt"].reshape(H, -1)
    if settings.get("dt_fast", False):
        dt = xp.sinh(dt)
    dt = positive(xp, settings.get("dt_transform", "exp"), dt)
    A = -positive(xp, settings.get("real_transform", "exp"), p["A_real" if full else "log_A_real"])
    C = number(p["C"])
    C = C if C.ndim == 3 else C[None]
    if not real_system:
        turn = positive(xp, settings.get("imag_transform", "none"), p["A_imag"])
        A = A - 1j * turn if full else A + 1j * turn
        if settings.get("bandlimit", 0.0):
            C = C * (dt * abs(repeated(turn, H)) / (2 * np.pi) < settings["bandlimit"] / 2)
    A = repeated(A, H)
    B = repeated(number(p["B"]).reshape(-1, A.shape[1]), H) if "B" in p else 1.0 + 0.0 * A
    if model == "s4d":
        return dt, A, B, C
    P = repeated(number(p["P"]), H)
    return dt, A, B, C, P, repeated(number(p["Q"]), H) if "Q" in p else P.conj()


def s4d_steps(record, layer, settings, parts, C, x):
    dt, A, B, _ = parts
    z = dt * A
    if settings.get("discretisation", "zoh") == "zoh":
        transition, drive = torch.exp(z), (torch.exp(z) - 1.0) / A * B
    else:
        transition, drive = (1.0 + z / 2.0) / (1.0 - z / 2.0), dt / (1.0 - z / 2.0) * B
    h, outputs = torch.zeros_like(transition), []
    for u in x:
        record.transition(layer, transition, constant=True)
        h = record.state(layer, "h", transition * h + drive * u[:, None])
        outputs.append(2.0 * (C * h).sum(2).real.reshape(-1))
    return torch.stack(outputs)


def numpy_s4d_kernel(settings, parts, steps):
    dt, A, B, C = parts
    z = dt * A
    if settings.get("discretisation", "zoh") == "zoh":
        powers, weight = np.exp(z[:, :, None] * np.arange(steps)), np.expm1(z) / A * B
    else:
        powers, weight = ((2.0 + z) / (2.0 - z))[:, :, None] ** np.arange(steps), 2.0 * dt * B / (2.0 - z)
    return 2.0 * np.einsum("whn,hnk->whk", C * weight, powers).real


def s4_matrices(xp, parts):
    """The bilinear transform of dt (A - sum_r P_r Q_r^T) over all conjugate pairs."""
    dt, A, B, _, P, Q = parts
    join = torch.cat if xp is torch else np.concatenate
    both = lambda v: join([v, v.conj()], -1)
    rates = both(dt + 0.0 * A)
    dense = rates[:, :, None] * ((torch.diag_embed(both(A)) if xp is torch else np.stack([np.diag(row) for row in both(A)])) - xp.einsum("rhi,rhj->hij", both(P), both(Q)))
    one = xp.eye(dense.shape[1])
    return xp.linalg.solve(one - dense / 2, one + dense / 2), xp.linalg.solve(one - dense / 2, (rates * both(B))[:, :, None])[:, :, 0]


def s4_steps(record, layer, settings, parts, C, x):
    transition, drive = s4_matrices(torch, parts)
    n = C.shape[2]
    X, Y = transition[:, :n, :n], transition[:, :n, n:]
    real_map = torch.cat([torch.cat([(X + Y).real, -(X - Y).imag], 2), torch.cat([(X + Y).imag, (X - Y).real], 2)], 1)
    h, outputs, halves = torch.zeros_like(C[0]), [], len(C) > 1 or len(parts[4]) > 1
    for u in x:
        record.linear(layer, list(real_map), constant=True)
        h = torch.einsum("hij,hj->hi", X, h) + torch.einsum("hij,hj->hi", Y, h.conj()) + drive[:, :n] * u[:, None]
        if halves:  # a state that is kept as real numbers
            h = torch.complex(*torch.chunk(record.state(layer, "h", torch.cat([h.real, h.imag], 1)), 2, dim=1))
        else:
            h = record.state(layer, "h", h)
        outputs.append(2.0 * (C * h).sum(2).real.reshape(-1))
    return torch.stack(outputs)


def numpy_s4_kernel(settings, parts, steps):
    transition, drive = s4_matrices(np, parts)
    C = np.concatenate([parts[3], parts[3].conj()], -1)
    kernel = np.zeros((len(C), len(drive), steps))
    for h in range(len(drive)):
        w, V = np.linalg.eig(transition[h])
        kernel[:, h] = ((C[:, h] @ V * np.linalg.solve(V, drive[h])) @ (w[:, None] ** np.arange(steps))).real
    return kernel


def numpy_convolved(kernels, x):
    """Of several kernels a channel, the outputs of each side by side."""
    T = len(x)
    return np.concatenate([convolved(kernel, x, T) for kernel in kernels], 1)


def convolved(kernel, x, T):
    return np.fft.irfft(np.fft.rfft(kernel, n=2 * T, axis=1) * np.fft.rfft(x.T, n=2 * T, axis=1), n=2 * T, axis=1)[:, :T].T


def case(name, model, settings, T, d_in, loss, seed):
    H, ways, reads, rank = settings["width"], 2 if settings.get("bidirectional", False) else 1, settings.get("channels", 1), settings.get("rank", 1)
    full, real_system = model == "s4" or settings.get("code", "minimal") == "full", settings.get("is_real", False)
    modes = settings["state"] if real_system else settings["state"] // 2
    S, last = settings.get("n_ssm", 0) or H, [] if real_system else [2]
    residual, prenorm, glu = settings.get("block", "residual") == "residual", settings.get("prenorm", model == "s4"), settings.get("output", "glu") == "glu"
    of_dt = settings.get("dt_transform", "exp")
    dt = (0.5, -1.8) if of_dt == "exp" and not settings.get("dt_fast", False) else (0.1, 0.3)
    shapes = {("inv_dt" if full else "log_dt"): (((H, 1) if full else (H,)) if settings.get("dt_tie", True) else (H, modes), *dt),
              ("A_real" if full else "log_A_real"): ((S, modes), 0.3, -0.7 if settings.get("real_transform", "exp") == "exp" else 1.0),
              "C": ((ways * reads, H, modes, *last) if full or ways == 2 else (H, modes, *last), 0.9), "D": ((reads, H) if full else (H,), 0.8)}
    if not real_system:
        shapes["A_imag"] = ((S, modes), 1.0, 3.0) if settings.get("imag_transform", "none") == "none" else ((S, modes), 0.4, 1.0)
    if full or settings.get("input_matrix", "ones") == "trained":
        shapes["B"] = ((1, S, modes, *last) if full else (S, modes, *last), 0.8)
    if model == "s4":
        shapes["P"] = ((rank, S, modes, 2), 0.6)
        if settings.get("low_rank", "tied") == "free":
            shapes["Q"] = ((rank, S, modes, 2), 0.4)
    if glu:
        shapes |= {"output_linear.weight": ((2 * H, reads * H) if full else (2 * H, H, 1), 0.6), "output_linear.bias": ((2 * H,), 0.3)}
    if residual:
        shapes |= {"norm.weight": ((H,), 0.3, 1.0), "norm.bias": ((H,), 0.3)}
    every = encoder_shapes(H, d_in)
    for level in range(settings.get("layers", 1)):
        every |= prefixed(f"{level * ways}/", shapes)

    def run(ops, filtered):
        def layer(level, p, x):
            u = ops.layer_norm(x, p["norm.weight"], p["norm.bias"]) if residual and prenorm else x
            y = filtered(level, p, u) + p["D"].reshape(-1) * (u if reads == 1 else ops.concatenate([u] * reads, 1))
            if glu:
                value, gate = ops.split(ops.activation("gelu", y) @ p["output_linear.weight"].reshape(2 * H, reads * H).T + p["output_linear.bias"], [H, H])
                y = value * ops.sigmoid(gate)
            if not residual:
                return y
            return x + y if prenorm else ops.layer_norm(x + y, p["norm.weight"], p["norm.bias"])
        return both_keys(stack(layer, lambda p, x: x, settings), ways)

    steps, kernel = (s4_steps, numpy_s4_kernel) if model == "s4" else (s4d_steps, numpy_s4d_kernel)

    def forward(record, parameters, x):
        def filtered(level, p, u):
            parts = system(torch, model, settings, p)
            y = steps(record, level * ways, settings, parts, parts[3][:reads], u)
            if ways == 2:
                record.turned.add(2 * level + 1)
                back = torch.flip(steps(record, 2 * level + 1, settings, parts, parts[3][reads:], torch.flip(u, [0])), [0])
                y = y + torch.cat([back[1:], torch.zeros_like(back[:1])])
            return y
        return run(Torch, filtered)(parameters, x)

    def second(values, x):
        def filtered(level, p, u):
            K = kernel(settings, system(np, model, settings, p), len(u))
            y = numpy_convolved(K[:reads], u)
            if ways == 2:
                y[:-1] += numpy_convolved(K[reads:], u[::-1])[::-1][1:]
            return y
        return run(Numpy, filtered)(values, x)

    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, model, settings, loss, f"step loop from the equations of {model.upper()} with the options of its full code, checked against its convolution", draw(seed, every), x, forward, second=second, seed=seed)


def main():
    bare = {"block": "none", "output": "none"}
    case("s4d-full", "s4d", {"width": 4, "state": 6, "layers": 2, "code": "full", "n_ssm": 2, "dt_transform": "softplus", "prenorm": True}, 14, 3, "mean", 941)
    case("s4d-full-both", "s4d", {"width": 3, "state": 6, "layers": 2, "code": "full", "bidirectional": True, "dt_tie": False, "real_transform": "softplus", "discretisation": "bilinear"}, 12, 3, "mean", 942)
    case("s4d-full-real", "s4d", {"width": 3, "state": 4, "code": "full", "is_real": True, "real_transform": "relu", "dt_transform": "none", "imag_transform": "exp"}, 16, 2, "mean", 943)
    case("s4d-full-limited", "s4d", {"width": 3, "state": 8, "code": "full", "bandlimit": 0.56, "imag_transform": "softplus", "real_transform": "sigmoid", "dt_fast": True, **bare}, 16, 3, "last", 944)
    case("s4d-transforms", "s4d", {"width": 3, "state": 6, "real_transform": "none", "imag_transform": "relu", "dt_transform": "relu", "input_matrix": "trained", **bare}, 14, 3, "mean", 945)
    case("s4d-both", "s4d", {"width": 3, "state": 4, "bidirectional": True, "imag_transform": "sigmoid", "dt_transform": "sigmoid", "block": "none"}, 12, 3, "mean", 946)
    case("s4-both", "s4", {"width": 3, "state": 4, "layers": 2, "bidirectional": True, "prenorm": False}, 12, 3, "mean", 951)
    case("s4-free", "s4", {"width": 4, "state": 6, "n_ssm": 2, "low_rank": "free", "real_transform": "none", **bare}, 18, 4, "last", 952)
    case("s4-free-both", "s4", {"width": 3, "state": 4, "low_rank": "free", "bidirectional": True, "real_transform": "softplus", "dt_tie": False}, 12, 2, "mean", 953)
    case("s4-untied-steps", "s4", {"width": 3, "state": 6, "dt_tie": False, "real_transform": "relu", "block": "none"}, 16, 3, "mean", 954)
    case("s4-sigmoid", "s4", {"width": 3, "state": 4, "real_transform": "sigmoid", "dt_transform": "softplus", **bare}, 16, 3, "last", 955)
    case("s4-rank", "s4", {"width": 3, "state": 6, "layers": 2, "rank": 2}, 14, 3, "mean", 956)
    case("s4-rank-free", "s4", {"width": 4, "state": 4, "n_ssm": 2, "rank": 3, "low_rank": "free", "real_transform": "none", "dt_tie": False, **bare}, 16, 4, "last", 957)
    case("s4-channels", "s4", {"width": 3, "state": 4, "layers": 2, "channels": 3, "prenorm": False}, 14, 2, "mean", 958)
    case("s4-channels-both", "s4", {"width": 3, "state": 4, "channels": 2, "rank": 2, "bidirectional": True, "block": "none"}, 13, 2, "mean", 959)
    case("s4d-channels", "s4d", {"width": 3, "state": 4, "layers": 2, "code": "full", "channels": 2, "bandlimit": 0.5}, 13, 2, "mean", 960)
    case("s4d-channels-real-both", "s4d", {"width": 3, "state": 3, "code": "full", "channels": 2, "is_real": True, "bidirectional": True, "block": "none"}, 13, 2, "mean", 961)


if __name__ == "__main__":
    main()
