# SPDX-License-Identifier: GPL-3.0-or-later
"""Hyena (Poli et al. 2023) with its long convolutions as sums over the past, checked against FFTs.

Names, orders and constants of HazyResearch/safari, models/sequence/hyena.py; the block (pre-norm, MLP with GELU by tanh, eps 1e-5, a final norm)
of its simple_lm.py. There is no state of finite size, so only outputs and gradients are recorded.
"""
import math

import numpy as np
import torch

from harness import draw, make, under
from state_space import encode, encoder_shapes, erf, language_shapes, logistic, read_out, tokens

ACTIVATIONS = {
    "id": (lambda a: a, lambda a: a),
    "gelu": (torch.nn.functional.gelu, lambda a: a * (1.0 - 0.5 * (1.0 - erf(a / math.sqrt(2.0))))),
    "relu": (torch.relu, lambda a: np.maximum(a, 0.0)),
    "tanh": (torch.tanh, np.tanh),
}


def affine(p, name, x):
    return x @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0.0)


def norm(p, name, x):
    return torch.nn.functional.layer_norm(x, x.shape[1:], p[f"{name}.weight"], p[f"{name}.bias"], 1e-5)


def numpy_norm(p, name, x):
    centred = x - x.mean(1)[:, None]
    return centred / np.sqrt((centred**2).mean(1)[:, None] + 1e-5) * p[f"{name}.weight"] + p[f"{name}.bias"]


def positions(settings):
    """The embedding as it starts; its weights are trained."""
    bands, L = (settings.get("emb_dim", 3) - 1) // 2, settings["l_max"]
    angle = np.linspace(1e-4, bands - 1, bands) * (2.0 * np.pi * np.arange(L) / L)[:, None]
    return np.concatenate([np.arange(L)[:, None] / (L - 1), np.cos(angle), -np.sin(angle)], axis=1)


def decay_rates(settings, channels):
    target = math.log(settings.get("target", 0.01))
    return np.abs(np.linspace(target / settings.get("slow_decay_pct", 1.5), target / settings.get("fast_decay_pct", 0.3), channels))


def filters(settings, p, T, sin, exp, total):
    """The kernels [T, channels], written for torch and NumPy alike."""
    f = under(p, "filter_fn.implicit_filter.")
    inner = settings.get("num_inner_mlps", 2)
    h = p["filter_fn.pos_emb.z"][0, :T]
    for i in range(inner + 1):
        h = sin(f["1.freq"] * affine(f, str(2 * i), h))
    k = affine(f, str(2 * inner + 2), h)
    if settings.get("modulate", True):
        time = np.arange(T)[:, None] / (settings["l_max"] - 1)
        k = k * (exp(-time * decay_rates(settings, k.shape[1])) + settings.get("shift", 0.0))
    return k / total(abs(k)) if settings.get("normalized", False) else k


def operator(settings, p, x):
    D, order, T = settings["width"], settings.get("order", 2), len(x)
    projected = affine(p, "in_proj", x)
    taps = p["short_filter.weight"][:, 0]
    window = [torch.zeros_like(projected[0])] * taps.shape[1]
    short = []
    for u in projected:
        window = window[1:] + [u]
        short.append(p["short_filter.bias"] + sum(taps[:, j] * window[j] for j in range(taps.shape[1])))
    *gates, v = torch.split(torch.stack(short), D, dim=1)
    k = filters(settings, p, T, torch.sin, lambda a: torch.tensor(np.exp(a)), lambda a: a.sum(1, keepdim=True)).reshape(T, D, order - 1)
    direct = p["filter_fn.bias"].reshape(D, order - 1) if settings.get("filter_bias", True) else torch.zeros(D, order - 1)
    for o in range(order - 1):
        x_i = gates[order - 1 - o]
        v = torch.einsum("ti,tj->tij", x_i, v).sum(1) if settings.get("outer_mixing", False) else v * x_i
        v = torch.stack([sum(k[t - s, :, o] * v[s] for s in range(t + 1)) + direct[:, o] * v[t] for t in range(T)])
        if "ord_proj_w" in p:
            v = torch.einsum("ij,tcj->tci", p["ord_proj_w"][o], v[:, :, None])[:, :, 0]
    return affine(p, "out_proj", ACTIVATIONS[settings.get("activation", "id")][0](v * gates[0]))


def numpy_operator(settings, p, x):
    D, order, T = settings["width"], settings.get("order", 2), len(x)

    def convolve(k, v):
        return np.fft.irfft(np.fft.rfft(k, n=2 * T, axis=0) * np.fft.rfft(v, n=2 * T, axis=0), n=2 * T, axis=0)[:T]

    projected = x @ p["in_proj.weight"].T + p["in_proj.bias"]
    taps = p["short_filter.weight"].squeeze(1)[:, ::-1].T[:T]
    q = convolve(taps, projected) + p["short_filter.bias"]
    k = filters(settings, p, T, np.sin, np.exp, lambda a: np.abs(a).sum(axis=1)[:, None])
    if settings.get("filter_bias", True):
        k = k + np.eye(T)[:, :1] * p["filter_fn.bias"]  # the direct term is one more tap at lag 0
    v = q[:, order * D:]
    for o in range(order - 1):
        x_i = q[:, (order - 1 - o) * D: (order - o) * D]
        v = convolve(k[:, o::order - 1], v * (np.sum(x_i, axis=1)[:, None] if settings.get("outer_mixing", False) else x_i)) * (p["ord_proj_w"][o, 0, 0] if "ord_proj_w" in p else 1.0)
    return affine(p, "out_proj", ACTIVATIONS[settings.get("activation", "id")][1](v * q[:, :D]))


def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


def numpy_gelu(x):
    return x * logistic(2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))


def model(operator_of, norm_of, activation, tanh, settings):
    def run(parameters, x):
        x = encode(parameters, x)
        for layer in range(settings["layers"]):
            p = under(parameters, f"{layer}/")
            if "position_embeddings.weight" in p:
                rows = p["position_embeddings.weight"]
                last = min(len(x), len(rows))
                x = x + ((np if isinstance(x, np.ndarray) else torch).eye(len(x))[:, :last] @ rows[:last])
            if settings["block"] == "none":
                x = operator_of(settings, p, x)
                continue
            x = x + operator_of(settings, p, norm_of(p, "norm1", x))
            x = x + affine(p, "mlp.fc2", activation(affine(p, "mlp.fc1", norm_of(p, "norm2", x))))
        x = norm_of(parameters, "final/ln_f", x) if "final/ln_f.weight" in parameters else x
        return read_out(settings, parameters, x, tanh) if "read_out" in settings else x
    return run


def case(name, settings, T, d_in, loss, seed):
    D, order, K = settings["width"], settings.get("order", 2), settings.get("short_filter_order", 3)
    E, F, inner = settings.get("emb_dim", 3), settings["filter_order"], settings.get("num_inner_mlps", 2)
    wide, M = (order + 1) * D, settings.get("mlp", 0) or 4 * D
    shapes = language_shapes(settings, d_in) if "read_out" in settings else encoder_shapes(settings, d_in)
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/in_proj.weight": ((wide, D), 1.0 / math.sqrt(D)), f"{layer}/in_proj.bias": ((wide,), 0.3),
                   f"{layer}/short_filter.weight": ((wide, 1, K), 0.6), f"{layer}/short_filter.bias": ((wide,), 0.3),
                   **({f"{layer}/filter_fn.bias": ((D * (order - 1),), 0.7)} if settings.get("filter_bias", True) else {}),
                   f"{layer}/filter_fn.pos_emb.z": ((1, settings["l_max"], E), 0.05),  # moved off its start, which is added below
                   f"{layer}/filter_fn.implicit_filter.1.freq": ((1, F), 0.3, 1.5),
                   f"{layer}/out_proj.weight": ((D, D), 1.0 / math.sqrt(D)), f"{layer}/out_proj.bias": ((D,), 0.3)}
        if settings.get("post_order_ffn", False):
            shapes |= {f"{layer}/ord_proj_w": ((order, 1, 1), 0.5, 1.0)}
        for i in range(inner + 1):
            columns = F if i else E
            shapes |= {f"{layer}/filter_fn.implicit_filter.{2 * i}.weight": ((F, columns), 1.0 / math.sqrt(columns)),
                       f"{layer}/filter_fn.implicit_filter.{2 * i}.bias": ((F,), 0.3)}
        shapes |= {f"{layer}/filter_fn.implicit_filter.{2 * inner + 2}.weight": ((D * (order - 1), F), 1.0 / math.sqrt(F))}
        if layer == 0 and settings.get("max_position_embeddings", 0):
            shapes |= {"0/position_embeddings.weight": ((settings["max_position_embeddings"], D), 0.5)}
        if settings["block"] != "none":
            shapes |= {f"{layer}/{which}.{part}": ((D,), 0.3, centre) for which in ("norm1", "norm2") for part, centre in (("weight", 1.0), ("bias", 0.0))}
            shapes |= {f"{layer}/mlp.fc1.weight": ((M, D), 1.0 / math.sqrt(D)), f"{layer}/mlp.fc1.bias": ((M,), 0.3),
                       f"{layer}/mlp.fc2.weight": ((D, M), 1.0 / math.sqrt(M)), f"{layer}/mlp.fc2.bias": ((D,), 0.3)}
    if settings["block"] != "none" and settings.get("final_norm", True):
        shapes |= {"final/ln_f.weight": ((D,), 0.3, 1.0), "final/ln_f.bias": ((D,), 0.3)}
    values = draw(seed, shapes)
    for layer in range(settings["layers"]):
        values[f"{layer}/filter_fn.pos_emb.z"] += positions(settings)
    x = tokens(seed, T, d_in) if "read_out" in settings else np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "hyena", settings, loss, "sums over the past from the equations of safari's Hyena, checked against convolutions by FFT", values, x,
         lambda record, p, v: model(operator, norm, gelu, torch.tanh, settings)(p, v), second=model(numpy_operator, numpy_norm, numpy_gelu, np.tanh, settings), seed=seed)


def main():
    case("hyena-operator", {"width": 5, "layers": 1, "block": "none", "l_max": 32, "filter_order": 6}, 24, 5, "last", 281)
    third = {"width": 4, "layers": 2, "block": "none", "order": 3, "l_max": 20, "filter_order": 5, "emb_dim": 5, "num_inner_mlps": 1,
             "short_filter_order": 2, "shift": 0.05, "activation": "gelu", "slow_decay_pct": 1.1, "fast_decay_pct": 0.4, "target": 0.05}
    case("hyena-order", third, 20, 3, "mean", 282)
    plain = {"width": 4, "layers": 1, "block": "none", "l_max": 18, "filter_order": 4, "num_inner_mlps": 0, "modulate": False, "normalized": True,
             "filter_bias": False, "order": 4, "activation": "tanh"}
    case("hyena-normalized", plain, 16, 4, "mean", 283)
    bare = {"width": 4, "layers": 1, "block": "residual", "l_max": 16, "filter_order": 4, "mlp": 5, "activation": "relu", "final_norm": False}
    case("hyena-relu", bare, 14, 3, "last", 285)
    mixed = {"width": 4, "layers": 1, "block": "none", "order": 3, "l_max": 16, "filter_order": 4, "outer_mixing": True, "post_order_ffn": True}
    case("hyena-mixing", mixed, 14, 3, "mean", 286)
    language = {"width": 4, "layers": 2, "block": "residual", "l_max": 20, "filter_order": 4, "emb_dim": 5, "mlp": 6, "read_out": "tied", "encoder_bias": False}
    case("hyena-language", language, 18, 6, "task", 287)
    case("hyena-no-bias", language | {"layers": 1, "read_out": "no-bias"}, 14, 5, "task", 288)
    case("hyena-positions", language | {"max_position_embeddings": 24}, 16, 6, "task", 289)
    case("hyena-few-positions", language | {"layers": 1, "max_position_embeddings": 6}, 14, 6, "task", 290)
    case("hyena", {"width": 4, "layers": 2, "block": "residual", "l_max": 24, "filter_order": 5, "mlp": 6}, 20, 3, "mean", 284)


if __name__ == "__main__":
    main()
