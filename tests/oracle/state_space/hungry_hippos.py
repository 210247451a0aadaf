# SPDX-License-Identifier: GPL-3.0-or-later
"""H3 (Fu, Dao et al. 2023) as loops over time, checked against the convolutions by FFT of HazyResearch/H3: forward of src/models/ssm/h3.py with the
kernels of ss_kernel_shift.py and ss_kernel_diag.py, and the block of ssm_seq.py."""
import math

import numpy as np
import torch

from harness import draw, make
import modal_filter
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack

SHIFT, KEEPS = "ssm_k_kernel.kernel", "kernel.kernel"


def sizes(settings):
    d, n = settings["width"], settings.get("head_dim", 1)
    return d, n, d // n, settings["state"]


def block(ops, gelu, settings, p, x, operator):
    if settings.get("block", "residual") == "none":
        return operator(p, x)
    x = x + operator(p, ops.layer_norm(x, p["norm1.weight"], p["norm1.bias"]))
    return x + affine(p, "mlp.fc2", gelu(affine(p, "mlp.fc1", ops.layer_norm(x, p["norm2.weight"], p["norm2.bias"]))))


def numpy_gelu(x):
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def discrete(settings, p, T):
    """The transition, what drives it and what reads it, [heads, modes], of the modes of each head."""
    d, n, H, N = sizes(settings)
    mode, disc = settings.get("mode", "diag"), settings.get("disc", "bilinear")
    if mode == "ema":
        weight = torch.sigmoid(p[f"{KEEPS}.delta"])[..., 0]
        stays = 1.0 - weight * torch.sigmoid(p[f"{KEEPS}.alpha"])[..., 0]
        return stays, weight * p[f"{KEEPS}.beta"][..., 0], p[f"{KEEPS}.gamma"] / math.sqrt(N)
    given, imag = p[f"{KEEPS}.inv_A_real"], p[f"{KEEPS}.A_imag"]
    minus = {"exp": torch.exp, "none": lambda a: a, "relu": lambda a: torch.relu(a) + 1e-4, "sigmoid": torch.sigmoid, "softplus": torch.nn.functional.softplus}[settings.get("real_type", "exp")](given)
    A = torch.complex(-minus, 0.0 * imag if settings.get("force_real") else imag)
    times = H // A.shape[0]
    dt = torch.exp(p[f"{KEEPS}.log_dt"])[:, None]
    A, B = A.repeat(times, 1), torch.view_as_complex(p[f"{KEEPS}.B"]).repeat(times, 1)
    C = torch.view_as_complex(p[f"{KEEPS}.C"])[0]
    if "bandlimit" in settings:
        C = C * (dt * A.imag.abs() / (2 * math.pi) < settings["bandlimit"] / 2)
    if disc == "zoh":
        return torch.exp(dt * A), (torch.exp(dt * A) - 1.0) / A * B, 2.0 * C
    if disc == "bilinear":
        return (1.0 + dt * A / 2) / (1.0 - dt * A / 2), dt / (1.0 - dt * A / 2) * B, 2.0 * C
    sign = 1.0 - 2.0 * (A.real.detach() > 0)
    below = (torch.exp(sign * dt * A * T) - 1.0) * A
    first = torch.exp((dt * A).detach() * (1 - T)) * (sign < 0) + (sign > 0)
    return torch.exp(dt * A), (torch.exp(sign * dt * A) - 1.0) * below.conj() / (below.abs() ** 2 + 1e-7) * first * B, C


def looped(record, settings, level, p, x):
    d, n, H, N = sizes(settings)
    T, most = len(x), settings.get("l_max", 0) or len(x)
    mode, limited = settings.get("mode", "diag"), "l_max" in settings
    shift_B, shift_C = p[f"{SHIFT}.B"], p[f"{SHIFT}.C"][0]

    def lags(B, C):
        return [sum(B[:, j] * C[:, j + i] for j in range(N - i)) for i in range(min(N, most))]
    modal = settings.get("filter_modes", 0)
    if modal:
        a, w = (z.reshape(H, n * n, -1) for z in modal_filter.poles_and_residues(p))
        b, transition, direct = torch.ones(H, n * n, 1), a, p["modes.direct"].reshape(H, n * n)
    elif mode != "shift":
        a, b, w = discrete(settings, p, T)
        transition, direct = a[:, None].expand(H, n * n, a.shape[1]), torch.zeros(H, n * n)
        a, b, w = a[:, None], b[:, None], w[:, None]
    taps = lags(shift_B, shift_C)
    if limited or mode == "shift":
        kernel = lags(p[f"{KEEPS}.B"], p[f"{KEEPS}.C"][0]) if mode == "shift" else [torch.real(w * b * a**i).sum(2)[:, 0] for i in range(min(most, T))]
        long = most if mode != "shift" else min(N, most)
    else:
        state = torch.zeros(H, n * n, a.shape[2], dtype=a.dtype)
    keys, products, outputs = [], [], []
    place = torch.zeros(d, N)
    for u in x:
        q, k, v = (affine(p, f"{name}_proj", u) for name in "qkv")
        if limited:
            keys.append(k)
            shifted = sum(tap * keys[-1 - i] for i, tap in enumerate(taps) if i < len(keys))
        else:  # the reference's own step
            place = torch.cat([torch.zeros(d, 1), place[:, :-1]], 1) + shift_B * k[:, None]
            shifted = (shift_C * place).sum(1)
        shifted = shifted + p["ssm_k_D"] * k
        kv = shifted.reshape(H, n, 1) * v.reshape(H, 1, n)
        if limited or mode == "shift":
            flat = kv.reshape(-1)
            if long > 1:
                flat = record.state(level, "kv", flat)
            products.append(flat.reshape(H, n * n))
            r = sum(kernel[i][:, None] * products[-1 - i] for i in range(min(len(products), long)))
        else:
            record.transition(level, transition, constant=True)
            state = record.state(level, "h", (a * state.reshape(H, n * n, -1) + b * kv.reshape(H, n * n, 1)).reshape(H * n * n, -1))
            r = torch.real(w * state.reshape(H, n * n, -1)).sum(2) + direct * kv.reshape(H, n * n)
        y = (q.reshape(H, n, 1) * (r.reshape(H, n, n) + p["D"][:, None, None] * kv)).sum(1)
        outputs.append(affine(p, "output_linear", y.T.reshape(-1) if n > 1 else y.reshape(-1)))
    return torch.stack(outputs)


def convolved(settings, p, u):
    """The reference's forward, line by line."""
    d, n, H, N = sizes(settings)
    L = len(u)
    L_kernel = min(L, settings.get("l_max", L))

    def shift(B, C):
        k = np.fft.irfft(np.fft.rfft(B, 2 * N).conj() * np.fft.rfft(C, 2 * N), 2 * N)[:, :min(N, L_kernel)]
        return np.pad(k, ((0, 0), (0, max(0, L_kernel - N))))

    def through(kernel, z):  # [..., channels, L]
        return np.fft.irfft(np.fft.rfft(kernel, L_kernel + L) * np.fft.rfft(z, L_kernel + L), L_kernel + L)[..., :L]
    mode, disc = settings.get("mode", "diag"), settings.get("disc", "bilinear")
    if settings.get("filter_modes", 0):
        ssm = None
    elif mode == "shift":
        ssm = shift(p[f"{KEEPS}.B"], p[f"{KEEPS}.C"][0])
    elif mode == "ema":
        of = lambda name: 1.0 / (1.0 + np.exp(-p[f"{KEEPS}.{name}"]))
        power = np.exp(np.arange(L_kernel) * np.log(1.0 - of("delta") * of("alpha")))
        ssm = np.einsum("dnl,dn->dl", of("delta") * p[f"{KEEPS}.beta"] * power, p[f"{KEEPS}.gamma"] * math.sqrt(1.0 / N))
    else:
        given = p[f"{KEEPS}.inv_A_real"]
        real = {"exp": -np.exp(given), "none": -given, "relu": -np.maximum(given, 0.0) - 1e-4, "sigmoid": -1.0 / (1.0 + np.exp(-given)), "softplus": -np.log1p(np.exp(given))}[settings.get("real_type", "exp")]
        A = real + 1j * (0.0 if settings.get("force_real") else 1.0) * p[f"{KEEPS}.A_imag"]
        number = lambda z: z[..., 0] + 1j * z[..., 1]
        A, B, dt = np.tile(A, (H // len(A), 1)), np.tile(number(p[f"{KEEPS}.B"]), (H // len(A), 1)), np.exp(p[f"{KEEPS}.log_dt"])[:, None]
        C, dtA = number(p[f"{KEEPS}.C"])[0], A * dt
        if "bandlimit" in settings:
            C = C * np.where(dt * np.abs(A.imag) / (2 * np.pi) < settings["bandlimit"] * 0.5, 1, 0)
        C = B * C
        l = np.arange(L_kernel)
        if disc == "zoh":
            ssm = 2 * np.einsum("hn,hnl->hl", C * (np.exp(dtA) - 1.0) / A, np.exp(dtA[..., None] * l)).real
        elif disc == "bilinear":
            ssm = 2 * np.einsum("hn,hnl->hl", C * dt / (1.0 - dtA / 2), np.exp(np.log((1.0 + dtA / 2) / (1.0 - dtA / 2))[..., None] * l)).real
        else:
            grows = A.real > 0
            if "peak" not in p:
                p["peak"] = dtA * grows * (L_kernel - 1)
            S = np.exp(dtA[..., None] * l - p["peak"][..., None])
            negative = dtA * (1 - 2 * grows)
            x = (np.exp(negative * L_kernel) - 1) * A
            ssm = np.einsum("hn,hnl->hl", C * (np.exp(negative) - 1) * x.conj() / (x * x.conj() + 1e-7), S).real
    q, k, v = (affine(p, f"{name}_proj", u).T for name in "qkv")
    k = through(shift(p[f"{SHIFT}.B"], p[f"{SHIFT}.C"][0]), k) + p["ssm_k_D"][:, None] * k
    kv = k.reshape(H, n, L).transpose(1, 0, 2)[:, None] * v.reshape(H, n, L).transpose(1, 0, 2)[None]  # d1 d2 h l
    if ssm is None:
        kept = modal_filter.convolved(p, kv.transpose(2, 0, 1, 3).reshape(-1, L).T).T.reshape(H, n, n, L).transpose(1, 2, 0, 3)
    else:
        kept = through(ssm, kv)
    y = kept + kv * p["D"][:, None]
    y = (y * q.reshape(H, n, L).transpose(1, 0, 2)[:, None]).sum(0)  # d2 h l
    return affine(p, "output_linear", y.reshape(d, L).T)


def case(name, settings, T, d_in, loss, seed, real=(0.4, -0.7), log_dt=(0.4, -1.6)):
    d, n, H, N = sizes(settings)
    S, mode, E = settings.get("n_ssm", 0) or H, settings.get("mode", "diag"), settings.get("mlp", 0) or 4 * d
    shapes = {} if settings.get("block") == "none" else norm_shapes("norm1", d)
    for letter in "qkv":
        shapes |= linear_shapes(f"{letter}_proj", d, d, bias=True)
    shapes |= {f"{SHIFT}.B": ((d, N), 0.6), f"{SHIFT}.C": ((1, d, N), 0.6), "ssm_k_D": ((d,), 0.8), "D": ((H,), 0.8)} | linear_shapes("output_linear", d, d, bias=True)
    if mode == "shift":
        shapes |= {f"{KEEPS}.B": ((H, N), 0.6), f"{KEEPS}.C": ((1, H, N), 0.6)}
    elif mode == "ema":
        shapes |= {f"{KEEPS}.delta": ((H, 1 if settings.get("dt_tie") else N, 1), 0.6), f"{KEEPS}.alpha": ((H, N, 1), 0.6), f"{KEEPS}.beta": ((H, N, 1), 0.8), f"{KEEPS}.gamma": ((H, N), 0.8)}
    else:
        shapes |= {f"{KEEPS}.C": ((1, H, N // 2, 2), 0.8), f"{KEEPS}.log_dt": ((H,), *log_dt), f"{KEEPS}.B": ((S, N // 2, 2), 0.4, 0.6), f"{KEEPS}.inv_A_real": ((S, N // 2), *real), f"{KEEPS}.A_imag": ((S, N // 2), 2.0, 1.0)}
    if settings.get("filter_modes", 0):
        shapes = {key: value for key, value in shapes.items() if not key.startswith(KEEPS)} | modal_filter.shapes(d * n, settings["filter_modes"])
    if settings.get("block") != "none":
        shapes |= norm_shapes("norm2", d) | linear_shapes("mlp.fc1", E, d, bias=True) | linear_shapes("mlp.fc2", d, E, bias=True)
    every = encoder_shapes(d, d_in)
    for level in range(settings.get("layers", 1)):
        every |= prefixed(f"{level}/", shapes)
    ends = settings.get("block") != "none" and settings.get("final_norm", True)
    every |= prefixed("final/", norm_shapes("ln_f", d)) if ends else {}
    still = {f"{level}/{KEEPS}.A_imag" for level in range(settings.get("layers", 1))} if settings.get("force_real") else set()
    finish = lambda ops: lambda p, x: ops.layer_norm(x, p["ln_f.weight"], p["ln_f.bias"]) if ends else x
    tanh_gelu = lambda x: torch.nn.functional.gelu(x, approximate="tanh")

    def forward(record, parameters, x):
        record.still |= still
        return stack(lambda level, p, x: block(Torch, tanh_gelu, settings, p, x, lambda p, u: looped(record, settings, level, p, u)), finish(Torch), settings)(parameters, x)

    peaks = {}

    def second(values, x):
        def operator(level):
            def of(p, u):  # what the reference computes without gradient stays what it was
                p = dict(p) | ({"peak": peaks[level]} if level in peaks else {})
                y = convolved(settings, p, u)
                if "peak" in p:
                    peaks.setdefault(level, p["peak"])
                return y
            return of
        return stack(lambda level, p, x: block(Numpy, numpy_gelu, settings, p, x, operator(level)), finish(Numpy), settings)(values, x)

    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "h3", settings, loss, "step loops from the equations of H3, checked against the reference's convolutions by FFT", draw(seed, every), x, forward, second=second, seed=seed)


def main():
    case("h3", {"width": 3, "state": 4, "layers": 2, "mlp": 4}, 10, 2, "mean", 971)
    case("h3-heads", {"width": 4, "head_dim": 2, "state": 6, "disc": "zoh", "real_type": "softplus", "n_ssm": 1, "block": "none"}, 12, 4, "mean", 972, real=(0.5, 0.3))
    case("h3-cut", {"width": 4, "head_dim": 2, "state": 6, "l_max": 5, "real_type": "relu", "final_norm": False}, 12, 4, "last", 973, real=(0.2, 0.7))
    case("h3-cut-long", {"width": 3, "state": 2, "l_max": 5, "block": "none"}, 12, 3, "mean", 974)
    case("h3-dss", {"width": 4, "state": 8, "disc": "dss", "real_type": "none", "length": 12, "block": "none"}, 12, 2, "mean", 975, real=(0.4, 0.1))
    case("h3-limited", {"width": 3, "state": 8, "bandlimit": 0.4, "real_type": "sigmoid", "block": "none"}, 12, 3, "mean", 976, log_dt=(0.3, -0.3))
    case("h3-real", {"width": 3, "state": 4, "force_real": True, "block": "none"}, 12, 2, "mean", 977)
    case("h3-shift", {"width": 4, "head_dim": 2, "state": 3, "mode": "shift", "block": "none"}, 12, 4, "mean", 978)
    case("h3-ema", {"width": 4, "head_dim": 2, "state": 3, "mode": "ema", "block": "none"}, 12, 4, "mean", 979)
    case("h3-ema-tied", {"width": 3, "state": 3, "mode": "ema", "dt_tie": True, "l_max": 4, "block": "none"}, 12, 3, "mean", 980)
    case("h3-modes", {"width": 4, "head_dim": 2, "state": 4, "filter_modes": 3, "layers": 2, "mlp": 3}, 11, 2, "mean", 981)


if __name__ == "__main__":
    main()
