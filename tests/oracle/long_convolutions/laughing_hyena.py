# SPDX-License-Identifier: GPL-3.0-or-later
"""The modal Hyena (Massaroli et al. 2023) step by step, checked against FFTs with its filters' values.

Orders and constants of togethercomputer/stripedhyena (ParallelGatedConvBlock; engine.py's recurrence), names and the other block those of Hyena.
"""
import math

import numpy as np
import torch

from harness import draw, make, under
from hyena import ACTIVATIONS, affine, gelu, norm, numpy_gelu, numpy_norm
from state_space import encode, encoder_shapes, erf, logistic


def branches(settings, q):
    """q [T, (O + 1) D], rows by head -> x_0 .. x_{O-1}, v; for torch and NumPy alike."""
    D, O, heads = settings["width"], settings.get("order", 2), settings.get("heads", 1)
    by_head = q.reshape(len(q), heads, O + 1, D // heads)
    return [by_head[:, :, i].reshape(len(q), D) for i in range(O + 1)]


def modes(settings, record, layer, name, poles, residues, D, v):
    """s <- p s + v, the reads of its real part; a system serves as many channels in a row as there are for each."""
    each = v.shape[1] // len(poles)
    p, r = (torch.repeat_interleave(torch.complex(z[:, :, 0, 0], z[:, :, 0, 1]), each, dim=0) for z in (poles, residues))
    if settings.get("bounded", True):
        p = torch.where(p.abs() > 1.0, p / p.abs(), p)
    s = torch.zeros_like(p)
    outputs = []
    for u in v:
        s = record.state(layer, name, p * s + u[:, None])
        outputs.append((r * s).sum(1).real + D * u)
    return torch.stack(outputs), p


def convolved(settings, poles, residues, D, v):
    T, each = len(v), v.shape[1] // len(poles)
    p, r = (z[:, :, 0, 0] + 1j * z[:, :, 0, 1] for z in (poles, residues))
    if settings.get("bounded", True):
        p = np.exp(np.minimum(np.log(np.abs(p)), 0.0) + 1j * np.angle(p))
    h = np.repeat(np.einsum("cn,cnt->tc", r, p[:, :, None] ** np.arange(T)).real, each, axis=1)
    h[0] += D
    return np.fft.irfft(np.fft.rfft(h, n=2 * T, axis=0) * np.fft.rfft(v, n=2 * T, axis=0), n=2 * T, axis=0)[:T]


def of_branch(settings, p, o):
    filters = 1 if settings["block"] == "filter" else settings.get("order", 2) - 1
    return p["filter_fn.poles"][o::filters], p["filter_fn.residues"][o::filters], p["filter_fn.bias"].reshape(settings["width"], filters)[:, o]


def short(p, x):
    taps = p["short_filter.weight"][:, 0]
    window, outputs = [torch.zeros_like(x[0])] * taps.shape[1], []
    for u in x:
        window = window[1:] + [u]
        outputs.append(p["short_filter.bias"] + sum(taps[:, j] * window[j] for j in range(taps.shape[1])))
    return torch.stack(outputs)


def numpy_short(p, x):
    taps = p["short_filter.weight"][:, 0, ::-1]
    return np.stack([np.convolve(x[:, c], taps[c])[:len(x)] for c in range(x.shape[1])], axis=1) + p["short_filter.bias"]


def operator(record, layer, settings, p, x):
    order = settings.get("order", 2)
    if settings["block"] == "filter":
        y, poles = modes(settings, record, layer, "s", *of_branch(settings, p, 0), x[:, [c % x.shape[1] for c in range(settings["width"])]])
        all_poles = [poles]
    else:
        *gates, v = branches(settings, short(p, affine(p, "in_proj", x)))
        all_poles = []
        for o in range(order - 1):
            v, poles = modes(settings, record, layer, "s" if order == 2 else f"s{o}", *of_branch(settings, p, o), v * gates[order - 1 - o])
            all_poles.append(poles)
        y = affine(p, "out_proj", ACTIVATIONS[settings.get("activation", "id")][0](v * gates[0]))
    for _ in x:
        record.transition(layer, torch.cat([poles.reshape(-1) for poles in all_poles]), constant=True)
    return y


def numpy_operator(_, __, settings, p, x):
    if settings["block"] == "filter":
        return convolved(settings, *of_branch(settings, p, 0), np.stack([x[:, c % x.shape[1]] for c in range(settings["width"])], axis=1))
    order = settings.get("order", 2)
    *gates, v = branches(settings, numpy_short(p, affine(p, "in_proj", x)))
    for o in range(order - 1):
        v = convolved(settings, *of_branch(settings, p, o), v * gates[order - 1 - o])
    return affine(p, "out_proj", ACTIVATIONS[settings.get("activation", "id")][1](v * gates[0]))


def rms(settings, p, name, x):
    """The reference's, for torch and NumPy alike."""
    return p[f"{name}.scale"] * (x / (((x * x).sum(-1) ** 0.5 * settings["width"] ** -0.5)[:, None] + settings.get("eps", 1e-5)))


def model(operator_of, norm_of, gelus, act, settings):
    def run(record, parameters, x):
        block = settings["block"]
        x = encode(parameters, x)
        for layer in range(settings["layers"]):
            p = under(parameters, f"{layer}/")
            if block in ("none", "filter"):
                x = operator_of(record, layer, settings, p, x)
            elif block == "striped":
                x = x + operator_of(record, layer, settings, p, rms(settings, p, "pre_norm", x))
                z = rms(settings, p, "post_norm", x)
                x = x + affine(p, "mlp.l3", act(affine(p, "mlp.l1", z)) * affine(p, "mlp.l2", z))
            else:
                x = x + operator_of(record, layer, settings, p, norm_of(p, "norm1", x))
                x = x + affine(p, "mlp.fc2", gelus(affine(p, "mlp.fc1", norm_of(p, "norm2", x))))
        if "final/norm.scale" in parameters:
            return rms(settings, parameters, "final/norm", x)
        return norm_of(parameters, "final/ln_f", x) if "final/ln_f.weight" in parameters else x
    return run


def case(name, settings, T, d_in, loss, seed, reach=1.0):
    D, N, O, K, block = settings["width"], settings["state"], settings.get("order", 2), settings.get("short_filter_order", 3), settings["block"]
    S, filters = D // settings.get("group", 1), 1 if block == "filter" else O - 1
    wide, M = (O + 1) * D, settings.get("mlp", 0) or ((2 * D * 4 // 3 + 63) // 64 * 64 if block == "striped" else 4 * D)
    shapes = encoder_shapes(settings, d_in) if block != "filter" else {}
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/filter_fn.poles": ((S * filters, N, 1, 2), 0.4), f"{layer}/filter_fn.residues": ((S * filters, N, 1, 2), 0.6), f"{layer}/filter_fn.bias": ((D * filters,), 0.7)}
        if block == "filter":
            continue
        shapes |= {f"{layer}/in_proj.weight": ((wide, D), 1.0 / math.sqrt(D)), f"{layer}/in_proj.bias": ((wide,), 0.3),
                   f"{layer}/short_filter.weight": ((wide, 1, K), 0.6), f"{layer}/short_filter.bias": ((wide,), 0.3),
                   f"{layer}/out_proj.weight": ((D, D), 1.0 / math.sqrt(D)), f"{layer}/out_proj.bias": ((D,), 0.3)}
        if block == "residual":
            shapes |= {f"{layer}/{which}.{part}": ((D,), 0.3, centre) for which in ("norm1", "norm2") for part, centre in (("weight", 1.0), ("bias", 0.0))}
            shapes |= {f"{layer}/mlp.fc1.weight": ((M, D), 1.0 / math.sqrt(D)), f"{layer}/mlp.fc1.bias": ((M,), 0.3),
                       f"{layer}/mlp.fc2.weight": ((D, M), 1.0 / math.sqrt(M)), f"{layer}/mlp.fc2.bias": ((D,), 0.3)}
        if block == "striped":
            shapes |= {f"{layer}/{which}.scale": ((D,), 0.3, 1.0) for which in ("pre_norm", "post_norm")}
            shapes |= {f"{layer}/mlp.{which}.weight": ((M, D), 1.0 / math.sqrt(D)) for which in ("l1", "l2")}
            shapes |= {f"{layer}/mlp.l3.weight": ((D, M), 1.0 / math.sqrt(M))}
    if settings.get("final_norm", True) and block == "residual":
        shapes |= {"final/ln_f.weight": ((D,), 0.3, 1.0), "final/ln_f.bias": ((D,), 0.3)}
    if settings.get("final_norm", True) and block == "striped":
        shapes |= {"final/norm.scale": ((D,), 0.3, 1.0)}
    values = draw(seed, shapes)
    for layer in range(settings["layers"]):  # near the unit circle, at every angle
        poles = values[f"{layer}/filter_fn.poles"]
        values[f"{layer}/filter_fn.poles"] = reach * poles / (0.15 + np.hypot(poles[..., :1], poles[..., 1:]))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    gelu_exactly = torch.nn.functional.gelu, lambda a: a * (1.0 - 0.5 * (1.0 - erf(a / math.sqrt(2.0))))
    silus = torch.nn.functional.silu, lambda a: a * logistic(a)
    act, numpy_act = gelu_exactly if settings.get("mlp_activation", "silu") == "gelu" else silus
    second = model(numpy_operator, numpy_norm, numpy_gelu, numpy_act, settings)
    make(name, "laughing-hyena", settings, loss, "step loop from the equations of StripedHyena's engine, checked against convolutions by FFT", values, x,
         model(operator, norm, gelu, act, settings), second=lambda p, v: second(None, p, v), seed=seed)


def main():
    case("laughing-hyena", {"width": 4, "layers": 2, "state": 3, "block": "residual", "mlp": 6}, 20, 3, "mean", 641)
    case("laughing-hyena-striped", {"width": 6, "layers": 2, "state": 3, "block": "striped", "heads": 2, "group": 3, "eps": 0.01, "mlp": 5}, 16, 3, "last", 642)
    case("laughing-hyena-gelu", {"width": 4, "layers": 1, "state": 2, "block": "striped", "mlp_activation": "gelu", "final_norm": False}, 14, 4, "mean", 643)
    third = {"width": 4, "layers": 1, "state": 2, "block": "none", "order": 4, "group": 2, "short_filter_order": 2, "activation": "gelu"}
    case("laughing-hyena-order", third, 16, 4, "mean", 644)
    case("laughing-hyena-relu", {"width": 4, "layers": 1, "state": 2, "block": "none", "activation": "relu"}, 16, 3, "mean", 645)
    case("laughing-hyena-tanh", {"width": 4, "layers": 1, "state": 2, "block": "none", "activation": "tanh"}, 12, 4, "last", 646)
    case("laughing-hyena-filter", {"width": 5, "layers": 1, "state": 4, "block": "filter"}, 24, 2, "mean", 647, reach=1.3)
    case("laughing-hyena-unbounded", {"width": 3, "layers": 1, "state": 4, "block": "none", "bounded": False}, 18, 2, "mean", 648, reach=1.3)


if __name__ == "__main__":
    main()
