# SPDX-License-Identifier: GPL-3.0-or-later
"""LSSL as a plain step loop, checked against its kernel and an FFT.

Gu et al. 2021; state-spaces/s4, modules/lssl.py (Platypus) and hippo/transition.py. The loop solves T by elimination; the second form writes A
entry by entry where the measure has one, T by its continuants otherwise, and makes the kernel of powers.
"""
import math

import numpy as np
import torch

from harness import draw, make
import modal_filter
from state_space import encoder_shapes, numpy_stack, stack
from structured import norm_shapes

ACTIVATIONS = {"gelu": torch.nn.functional.gelu, "id": lambda x: x, "relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
               "silu": torch.nn.functional.silu, "elu": torch.nn.functional.elu, "softplus": torch.nn.functional.softplus}
NUMPY_ACTIVATIONS = {"gelu": lambda x: x * 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0))), "id": lambda x: x, "relu": lambda x: x * (x > 0),
                     "tanh": lambda x: 1.0 - 2.0 / (np.exp(2.0 * x) + 1.0), "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
                     "silu": lambda x: x / (1.0 + np.exp(-x)), "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))),
                     "softplus": lambda x: np.log1p(np.exp(x))}
TOEPLITZ = ("glagt", "toep")


def flow(settings, p, h):
    """A and B of channel h in continuous time."""
    apart = settings.get("learn", "1") == "2"
    own = {key[11:]: value[h] if apart else value for key, value in p.items() if key.startswith("transition.")}
    measure = settings.get("measure", "legs")
    N = settings["order"] or settings["width"]
    if measure == "random":
        return own["a"], own["b"]
    if measure == "lagt" and settings.get("learn", "1") == "0":
        return -own["a"] * torch.eye(N) - torch.tril(torch.ones(N, N)), own["b"] * torch.ones(N)
    if measure in TOEPLITZ:
        rows = [torch.cat([own["a"][: i + 1].flip(0), torch.zeros(N - 1 - i)]) for i in range(N)]
        return -own["c"][:, None] * torch.stack(rows) / own["c"], own["c"] * own["b"]
    T = torch.diag(own["d"]) + torch.diag(own["dl"][1:N], -1) + torch.diag(own["du"][1:N], 1)
    inverse = torch.linalg.solve(T, torch.eye(N))
    return -own["pl"][:, None] * (inverse + torch.diag(own["c"])) * own["pr"], own["pl"] * own["b"]


def read_out(settings, p, y, activations, T):
    """From the reads [T, H, M] to what the layer returns."""
    if settings.get("bias", False):
        y = y + p["E"]
    y = activations[settings.get("activation", "gelu")](y).reshape(T, -1)
    if not settings.get("ff", True):
        return y
    if settings.get("weight_norm", False):
        v = p["output_linear.weight_v"]
        W = v * (p["output_linear.weight_g"] / ((v**2).sum(1) ** 0.5)[:, None])
    else:
        W = p["output_linear.weight"]
    return y @ W.T + p["output_linear.bias"]


def by_read(x, M):
    """Each channel as often as it is read, channel by channel."""
    return x[:, [h for h in range(x.shape[1]) for _ in range(M)]]


def lssl_mixer(record, layer, settings, p, x):
    if settings.get("filter_modes", 0):
        M = settings.get("channels", 1)
        y = modal_filter.steps(record, layer, p, by_read(x, M)).reshape(len(x), -1, M)
        return read_out(settings, p, y + p["D"] * x[:, :, None], ACTIVATIONS, len(x))
    H, N = settings["width"], settings["order"] or settings["width"]
    share, rate, steps = settings.get("gbt_alpha", 0.5), settings.get("rate", 1), []
    for h in range(H):
        A, B = flow(settings, p, h)
        dt, one = torch.exp(p["log_dt"][h]), torch.eye(N)
        Abar = torch.linalg.solve(one - share * rate * dt * A, one + (1.0 - share) * rate * dt * A)
        steps.append((Abar, torch.linalg.solve(one - share * dt * A, dt * B)))
    Abar, Bbar = torch.stack([a for a, _ in steps]), torch.stack([b for _, b in steps])
    state, outputs = torch.zeros(H, N), []
    for u in x:
        record.linear(layer, list(Abar), constant=True)
        state = record.state(layer, "x", torch.einsum("hnk,hk->hn", Abar, state) + Bbar * u[:, None])
        outputs.append(torch.einsum("hmn,hn->hm", p["C"], state) + p["D"] * u[:, None])
    return read_out(settings, p, torch.stack(outputs), ACTIVATIONS, len(x))


def continuant_inverse(dl, d, du):
    """T^-1 of a tridiagonal matrix by its continuants: theta from above, phi from below."""
    N = len(d)
    theta, phi = np.ones(N + 1), np.ones(N + 2)
    theta[1] = d[0]
    for i in range(2, N + 1):
        theta[i] = d[i - 1] * theta[i - 1] - dl[i - 1] * du[i - 1] * theta[i - 2]
    phi[N] = d[N - 1]
    for i in range(N - 1, 0, -1):
        phi[i] = d[i - 1] * phi[i + 1] - dl[i] * du[i] * phi[i + 2]
    inverse = np.zeros((N, N))
    for i in range(1, N + 1):
        for j in range(1, N + 1):
            low, high = min(i, j), max(i, j)
            between = np.prod([-(du if i < j else dl)[k] for k in range(low, high)])
            inverse[i - 1, j - 1] = between * theta[low - 1] * phi[high + 1] / theta[N]
    return inverse


def numpy_lssl_mixer(settings, p, x):
    if settings.get("filter_modes", 0):
        y = modal_filter.convolved(p, by_read(x, settings.get("channels", 1))).reshape(len(x), x.shape[1], -1)
        return read_out(settings, p, y + p["D"] * x[:, :, None], NUMPY_ACTIVATIONS, len(x))
    T, H, N = len(x), settings["width"], settings["order"] or settings["width"]
    share, rate, measure = settings.get("gbt_alpha", 0.5), settings.get("rate", 1), settings.get("measure", "legs")
    y = np.zeros((T, H, p["C"].shape[1]))
    for h in range(H):
        own = {key[11:]: value[h] if settings.get("learn", "1") == "2" else value for key, value in p.items() if key.startswith("transition.")}
        i, j = np.arange(N)[:, None], np.arange(N)[None, :]
        if measure == "random":
            A, B = own["a"], own["b"]
        elif measure == "lagt" and settings.get("learn", "1") == "0":
            A, B = np.where(i > j, -1.0, np.where(i == j, -1.0 - own["a"], 0.0)), np.full(N, own["b"])
        elif measure in TOEPLITZ:
            A, B = np.where(i >= j, -own["c"][i] * own["a"][np.maximum(i - j, 0)] / own["c"][j], 0.0), own["c"] * own["b"]
        else:
            A = -np.outer(own["pl"], own["pr"]) * (continuant_inverse(own["dl"], own["d"], own["du"]) + np.diag(own["c"]))
            B = own["pl"] * own["b"]
        dt, one = math.exp(p["log_dt"][h]), np.eye(N)
        B = np.linalg.inv(one / dt - share * A) @ B
        A = np.linalg.inv(one / (rate * dt) - share * A) @ (one / (rate * dt) + (1.0 - share) * A)
        kernel = np.zeros((T, p["C"].shape[1]))
        for k in range(T):
            kernel[k], B = p["C"][h] @ B, A @ B
        size = 2 * T
        y[:, h] = np.fft.irfft(np.fft.rfft(kernel, size, axis=0) * np.fft.rfft(x[:, h], size)[:, None], size, axis=0)[:T] + x[:, h, None] * p["D"][h]
    return read_out(settings, p, y, NUMPY_ACTIVATIONS, T)


def case(name, settings, T, d_in, loss, seed):
    settings = {"width": 3, "order": 4, "layers": 1, "block": "none", "prenorm": True} | settings
    H, N, M, measure, learn = settings["width"], settings["order"] or settings["width"], settings.get("channels", 1), settings.get("measure", "legs"), settings.get("learn", "1")
    shapes, of_channels = encoder_shapes(settings, d_in), (H,) if learn == "2" else ()
    for layer in range(settings["layers"]):
        key = f"{layer}/transition."
        if measure == "random":
            shapes |= {key + "a": (of_channels + (N, N), 0.4), key + "b": (of_channels + (N,), 0.4, 1.0)}
        elif measure in TOEPLITZ:
            shapes |= {key + "a": (of_channels + (N,), 0.2, 0.8), key + "c": (of_channels + (N,), 0.1, 1.0), key + "b": (of_channels + (N,), 0.3, 1.0)}
        elif measure == "lagt" and learn == "0":
            shapes |= {key + "a": ((), 0.1, -0.5), key + "b": ((), 0.3, 1.0)}
        else:
            shapes |= {key + "dl": (of_channels + (N + 1,), 0.1, -0.6), key + "d": (of_channels + (N,), 0.15, 0.9), key + "du": (of_channels + (N + 1,), 0.1, 0.3),
                       key + "pl": (of_channels + (N,), 0.2, 1.2), key + "pr": (of_channels + (N,), 0.2, 1.2), key + "c": (of_channels + (N,), 0.1, -0.2),
                       key + "b": (of_channels + (N,), 0.3, 1.0)}
        shapes |= {f"{layer}/C": ((H, M, N), 0.6), f"{layer}/D": ((H, M), 0.7), f"{layer}/log_dt": ((H,), 0.5, -1.5)}
        if settings.get("filter_modes", 0):
            shapes = {key: value for key, value in shapes.items() if not key.startswith((f"{layer}/transition.", f"{layer}/C", f"{layer}/log_dt"))}
            shapes |= {f"{layer}/{key}": value for key, value in modal_filter.shapes(H * M, settings["filter_modes"]).items()}
        if settings.get("bias", False):
            shapes |= {f"{layer}/E": ((H, M), 0.4)}
        if settings.get("ff", True):
            shapes |= {f"{layer}/output_linear.weight_g": ((H, 1), 0.3, 1.0), f"{layer}/output_linear.weight_v": ((H, H * M), 0.6)} if settings.get("weight_norm", False) \
                else {f"{layer}/output_linear.weight": ((H, H * M), 0.6)}
            shapes |= {f"{layer}/output_linear.bias": ((H,), 0.3)}
        shapes |= norm_shapes(layer, settings)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "lssl", settings, loss, "step loop from the equations of LSSL, checked against its kernel and an FFT", draw(seed, shapes), x,
         stack(lssl_mixer, settings, 1e-5), second=numpy_stack(numpy_lssl_mixer, settings, 1e-5), seed=seed)


def main():
    case("lssl", {"layers": 2, "block": "residual", "channels": 2}, 16, 2, "mean", 741)
    case("lssl-postnorm", {"block": "residual", "prenorm": False, "learn": "2", "measure": "legt", "bias": True, "order": 0}, 14, 3, "last", 742)
    case("lssl-bare", {"ff": False, "channels": 3, "activation": "id", "learn": "0", "gbt_alpha": 0.8}, 20, 3, "mean", 743)
    case("lssl-lagt", {"measure": "lagt", "weight_norm": True, "channels": 2, "activation": "relu"}, 14, 3, "mean", 744)
    case("lssl-lagt-fixed", {"measure": "lagt", "learn": "0", "activation": "tanh", "rate": 2}, 14, 3, "mean", 745)
    case("lssl-glagt", {"measure": "glagt", "learn": "0", "activation": "silu"}, 14, 3, "last", 746)
    case("lssl-toep", {"measure": "toep", "learn": "2", "activation": "elu"}, 14, 3, "mean", 747)
    case("lssl-cheb", {"measure": "cheb", "activation": "softplus", "gbt_alpha": 0.0}, 10, 3, "mean", 748)
    case("lssl-chebii", {"measure": "chebii", "activation": "sigmoid", "learn": "2"}, 10, 3, "mean", 749)
    case("lssl-jac", {"measure": "jac", "gbt_alpha": 1.0, "ff": False}, 10, 3, "mean", 750)
    case("lssl-random", {"measure": "random", "learn": "2"}, 10, 3, "mean", 751)
    case("lssl-modes", {"layers": 2, "block": "residual", "channels": 2, "filter_modes": 2}, 14, 2, "mean", 752)


if __name__ == "__main__":
    main()
