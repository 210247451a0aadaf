# SPDX-License-Identifier: GPL-3.0-or-later
"""Gated attention within chunks, step by step with lists of keys and values, each checked against whole matrices.

Mega  Ma et al. 2023; facebookresearch/mega, fairseq/modules/moving_average_gated_attention.py, exponential_moving_average.py, the decoder of
      models/mega_lm.py. The second form has no state: averages are kernel sums, attention is a masked matrix.
"""
import math

import numpy as np
import torch

from harness import draw, make, under
import modal_filter
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack


def activated(ops, name, x):
    return x if name == "linear" else ops.activation("gelu_tanh" if name == "gelu_accurate" else name, x)


def start_of(s, t):
    """The first step that step t sees."""
    return t - t % s["chunk"] if s.get("chunked", True) else max(0, t - s["chunk"] + 1)


def turned(x, angle):
    """The pairs (i, i + d/2) of a vector as complex numbers, turned."""
    half = len(x) // 2
    return (x[:half] + 1j * x[half:]) * np.exp(1j * angle * 10000.0 ** (-np.arange(half) / half))


# --------------------------------------------------------------------------------------------------------------- Mega

def mega_norm(ops, s, p, name, x):
    kind, weights = s.get("norm", "layernorm"), under(p, f"{name}.norm.")
    if kind == "layernorm":
        return ops.layer_norm(x, weights["weight"], weights["bias"], 1e-5) if weights else plain_layer_norm(x)
    if kind == "batchnorm":
        y = (x - weights["running_mean"]) / ops.sqrt(weights["running_var"] + 1e-5)
        return y * weights["weight"] + weights["bias"] if "weight" in weights else y
    y = x / ops.sqrt((x * x).mean(-1)[..., None] + 1e-5)
    return y * weights["weight" if kind == "rmsnorm" else "scalar"] if weights else y


def plain_layer_norm(x):
    centred = x - x.mean(-1)[..., None]
    return centred / ((centred * centred).mean(-1)[..., None] + 1e-5) ** 0.5


def coefficients(ops, p):
    """Decay, weight of the input and weight of what is read, all [d, N]."""
    share, damping = ops.sigmoid(p["mega_layer.move.delta"][:, :, 0]), ops.sigmoid(p["mega_layer.move.alpha"][:, :, 0])
    return 1.0 - share * damping, share * p["mega_layer.move.beta"][:, :, 0], p["mega_layer.move.gamma"] / math.sqrt(p["mega_layer.move.gamma"].shape[1])


def averages(record, layer, s, p, x):
    """The moving averages one step after another; with a truncation each is a sum over the inputs that still count."""
    if s.get("filter_modes", 0):
        return modal_filter.steps(record, layer, p, x)
    decay, write, read = coefficients(Torch, p)
    h, reads = torch.zeros_like(decay), []
    for t in range(len(x)):
        record.transition(layer, decay, True)
        h = decay * h + write * x[t][:, None]
        if s.get("truncation", 0) and t >= s["truncation"]:
            h = h - decay ** s["truncation"] * write * x[t - s["truncation"]][:, None]
        h = record.state(layer, "h", h)
        reads.append((h * read).sum(1))
    return torch.stack(reads)


def kernel_sums(s, p, x):
    if s.get("filter_modes", 0):
        return modal_filter.convolved(p, x)
    decay, write, read = coefficients(Numpy, p)
    taps = min(s.get("truncation", 0) or len(x), len(x))
    kernel = np.stack([(read * write * decay ** j).sum(1) for j in range(taps)])
    return np.stack([sum(kernel[j] * x[t - j] for j in range(min(taps, t + 1))) for t in range(len(x))])


def bias_of(ops, s, p, distance):
    P = s["chunk"]
    if s.get("rel_pos_bias", "simple") == "simple":
        return p["mega_layer.rel_pos_bias.rel_pos_bias"][P - 1 - distance]
    a, b = p["mega_layer.rel_pos_bias.alpha"][0], p["mega_layer.rel_pos_bias.beta"][0]
    if ops is Numpy:
        return np.real(turned(a, float(P)) * np.conj(turned(b, float(P - distance)))).sum()
    half = len(a) // 2
    w = 10000.0 ** (-torch.arange(half) / half) * distance
    first, second = a[:half] * torch.cos(w) - a[half:] * torch.sin(w), a[half:] * torch.cos(w) + a[:half] * torch.sin(w)
    return (first * b[:half] + second * b[half:]).sum()


def normal(x):
    return 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))) if torch.is_tensor(x) else np.vectorize(lambda y: 0.5 * (1.0 + math.erf(y / math.sqrt(2.0))))(x)


def weights_of(ops, kind, scores):
    """Of a row of scores, or of rows with minus infinity where nothing is seen."""
    if kind == "softmax":
        return ops.softmax(scores, -1)
    if kind == "relu2":
        return ops.activation("relu", scores) ** 2
    return normal((scores - 0.707107) / 0.282095)


def mega_layer(ops, s, p, x, attention, average):
    d, S, H, f = s["width"], s["zdim"], s["hdim"], s.get("activation", "silu")
    prenorm, entry = s.get("prenorm", True), x
    if "embed_norm.norm.weight" in p:
        entry = x = mega_norm(ops, s, p, "embed_norm", x)
    if prenorm:
        x = mega_norm(ops, s, p, "mega_layer.norm", x)
    v = activated(ops, f, affine(p, "mega_layer.v_proj", x))
    m = ops.activation("silu", average(p, x) + x * p["mega_layer.move.omega"])
    u, z, r, rest = ops.split(affine(p, "mega_layer.mx_proj", m), [d, S, H, d])
    u, z, r = ops.sigmoid(u), ops.activation("silu", z), ops.activation("silu", r)
    q, k = (z * p["mega_layer.gamma"][i] + p["mega_layer.beta"][i] for i in (0, 1))
    read = attention(p, q, k, v)
    made = activated(ops, f, rest + affine(p, "mega_layer.h_proj", r * read))
    y = entry + u * (made - entry)
    if not prenorm:
        y = mega_norm(ops, s, p, "mega_layer.norm", y)
    if "nffn.fc1.weight" not in p:
        return y
    z = mega_norm(ops, s, p, "nffn.norm", y) if prenorm else y
    y = y + affine(p, "nffn.fc2", activated(ops, f, affine(p, "nffn.fc1", z)))
    return y if prenorm else mega_norm(ops, s, p, "nffn.norm", y)


def mega_rows(s, p, q, k, v):
    kind, reads = s.get("attention", "softmax"), []
    for t in range(len(q)):
        first = start_of(s, t)
        scale = 1.0 / math.sqrt(s["zdim"]) if kind == "softmax" else 1.0 / (t - first + 1)
        scores = torch.stack([(q[t] * k[j]).sum() * scale + bias_of(Torch, s, p, t - j) for j in range(first, t + 1)])
        reads.append(weights_of(Torch, kind, scores) @ v[first: t + 1])
    return torch.stack(reads)


def mega_matrix(s, p, q, k, v):
    kind, T = s.get("attention", "softmax"), len(q)
    first = np.array([start_of(s, t) for t in range(T)])
    t, j = np.arange(T)[:, None], np.arange(T)[None, :]
    seen = (j <= t) & (j >= first[:, None])
    scale = np.full((T, 1), 1.0 / math.sqrt(s["zdim"])) if kind == "softmax" else 1.0 / seen.sum(1, keepdims=True)
    bias = np.zeros((T, T))
    for a, b in zip(*np.nonzero(seen)):
        bias[a, b] = bias_of(Numpy, s, p, a - b)
    scores = (q @ k.T) * scale + bias
    if kind == "softmax":
        return Numpy.softmax(np.where(seen, scores, -np.inf), 1) @ v
    return np.where(seen, weights_of(Numpy, kind, scores), 0.0) @ v


def mega_norm_shapes(s, name, affine=True):
    d, kind = s["width"], s.get("norm", "layernorm")
    shapes = {}
    if kind == "batchnorm":
        shapes = {f"{name}.norm.running_mean": ((d,), 0.3), f"{name}.norm.running_var": ((d,), 0.2, 1.5)}
    if affine and kind == "scalenorm":
        return shapes | {f"{name}.norm.scalar": ((1,), 0.3, 1.0)}
    return shapes | (norm_shapes(f"{name}.norm", d, kind != "rmsnorm") if affine else {})


def mega_case(name, s, T, d_in, loss, seed, shrink=1.0):
    d, S, H, N, F = s["width"], s["zdim"], s["hdim"], s["ndim"], s.get("feed_forward", 64)
    prenorm, with_weights = s.get("prenorm", True), s.get("norm_affine", True)
    shapes = encoder_shapes(d, d_in)
    for layer in range(s["layers"]):
        one = mega_norm_shapes(s, "embed_norm") if layer == 0 and s.get("normalize_embedding", False) else {}
        one |= mega_norm_shapes(s, "mega_layer.norm", with_weights)
        move = "mega_layer.move."
        one |= {move + key: ((d, N, 1), 1.0) for key in ("delta", "alpha", "beta")} | {move + "gamma": ((d, N), 1.0), move + "omega": ((d,), 1.0)}
        if s.get("filter_modes", 0):
            one = {key: value for key, value in one.items() if not key.startswith(move) or key == move + "omega"} | modal_filter.shapes(d, s["filter_modes"])
        one |= linear_shapes("mega_layer.v_proj", H, d, True) | linear_shapes("mega_layer.mx_proj", S + H + 2 * d, d, True)
        one |= linear_shapes("mega_layer.h_proj", d, H, True) | {"mega_layer.gamma": ((2, S), 0.8), "mega_layer.beta": ((2, S), 0.5)}
        if s.get("rel_pos_bias", "simple") == "simple":
            one |= {"mega_layer.rel_pos_bias.rel_pos_bias": ((2 * s["chunk"] - 1,), 0.5)}
        else:
            one |= {f"mega_layer.rel_pos_bias.{key}": ((1, S), 0.6) for key in ("alpha", "beta")}
        if F:
            one |= mega_norm_shapes(s, "nffn.norm", with_weights) | linear_shapes("nffn.fc1", F, d, True) | linear_shapes("nffn.fc2", d, F, True)
        shapes |= prefixed(f"{layer}/", one)
    if prenorm:
        shapes |= prefixed("final/", mega_norm_shapes(s, "final_norm", s.get("final_norm_affine", True)))
    values = draw(seed, shapes)
    for key in values:
        if key.endswith("running_var"):
            values[key] = np.abs(values[key])
    if shrink != 1.0:  # a norm without a weight an entry gives outputs of one length: a loss has no slope, unless what it norms is as small as its epsilon
        for key in ("encoder/weight", "encoder/bias", "0/mega_layer.h_proj.weight", "0/mega_layer.h_proj.bias"):
            values[key] *= shrink
        for key in ("0/mega_layer.mx_proj.weight", "0/mega_layer.mx_proj.bias"):
            values[key][-d:] *= shrink
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def finish(ops):
        return lambda p, y: mega_norm(ops, s, p, "final_norm", y) if prenorm else y

    def forward(record, parameters, inputs):
        one = lambda layer, p, y: mega_layer(Torch, s, p, y, lambda p, q, k, v: mega_rows(s, p, q, k, v), lambda p, y: averages(record, layer, s, p, y))
        return stack(one, finish(Torch), s)(parameters, inputs)

    one = lambda layer, p, y: mega_layer(Numpy, s, p, y, lambda p, q, k, v: mega_matrix(s, p, q, k, v), lambda p, y: kernel_sums(s, p, y))
    make(name, "mega", s, loss, "averages step by step, keys in a list, checked against kernel sums and masked matrices", values, x, forward,
         second=stack(one, finish(Numpy), s), seed=seed)


def mega_cases():
    small = {"width": 4, "zdim": 4, "hdim": 5, "ndim": 2, "feed_forward": 6}
    mega_case("mega", small | {"layers": 2, "chunk": 5}, 14, 4, "mean", 1501)
    mega_case("mega-laplace", small | {"layers": 1, "chunk": 5, "attention": "laplace", "norm": "scalenorm", "activation": "gelu",
                                       "feed_forward": 0}, 13, 3, "mean", 1502, shrink=3e-3)
    mega_case("mega-relu2", small | {"layers": 1, "chunk": 4, "attention": "relu2", "rel_pos_bias": "rotary", "norm": "rmsnorm", "activation": "relu"}, 13, 3, "mean", 1503)
    mega_case("mega-postnorm", small | {"layers": 2, "chunk": 5, "prenorm": False, "normalize_embedding": True, "activation": "gelu_accurate"}, 12, 3, "mean", 1514)
    mega_case("mega-rotary", small | {"layers": 1, "chunk": 6, "chunked": False, "rel_pos_bias": "rotary", "norm": "batchnorm", "activation": "linear",
                                      "truncation": 3, "feed_forward": 0}, 14, 4, "mean", 1505)
    mega_case("mega-modes", small | {"layers": 2, "chunk": 5, "filter_modes": 3}, 12, 3, "mean", 1508)
    mega_case("mega-bare-norms", small | {"layers": 1, "chunk": 20, "chunked": False, "norm_affine": False, "attention": "laplace"}, 12, 4, "last", 1506)
    mega_case("mega-bare-batchnorm", small | {"layers": 1, "chunk": 3, "norm_affine": False, "norm": "batchnorm", "ndim": 3, "final_norm_affine": False}, 11, 4, "last", 1507)


# -------------------------------------------------------------------------------------------------------------- cases

def main():
    mega_cases()


if __name__ == "__main__":
    main()
