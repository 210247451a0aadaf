# SPDX-License-Identifier: GPL-3.0-or-later
"""Linear attention with the feature map elu + 1 (Katharopoulos et al. 2020), or DPFP (Schlag et al. 2021), as a step loop, checked against its quadratic form.

Names, eps 1e-6 added to the normaliser, post-norm encoder layer (eps 1e-5) and final norm of idiap/fast-transformers.
"""
import math

import numpy as np
import torch

from harness import draw, make, under

erf = np.vectorize(math.erf)


def affine(p, name, x):
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def norm(p, name, x):
    return torch.nn.functional.layer_norm(x, x.shape[1:], p[f"{name}.weight"], p[f"{name}.bias"], 1e-5)


def numpy_norm(p, name, x):
    centred = x - x.mean(1)[:, None]
    return centred * ((centred * centred).mean(1)[:, None] + 1e-5) ** -0.5 * p[f"{name}.weight"] + p[f"{name}.bias"]


def feature(settings, x):
    if settings.get("feature_map", "elu") == "elu":
        return torch.nn.functional.elu(x) + 1.0
    r = torch.cat([torch.relu(x), torch.relu(-x)], dim=-1)
    return torch.cat([r * torch.roll(r, j, -1) for j in range(1, settings.get("nu", 1) + 1)], dim=-1)


def numpy_feature(settings, x):
    if settings.get("feature_map", "elu") == "elu":
        return np.maximum(x, 0.0) + np.exp(np.minimum(x, 0.0))
    r = np.concatenate([np.maximum(x, 0.0), np.maximum(-x, 0.0)], axis=-1)
    places = np.arange(r.shape[-1])
    return np.concatenate([r * r[..., (places - j) % len(places)] for j in range(1, settings.get("nu", 1) + 1)], axis=-1)


def attention(record, layer, settings, p, x):
    heads = settings["heads"]
    q = feature(settings, affine(p, "attention.query_projection", x).reshape(len(x), heads, -1))
    k = feature(settings, affine(p, "attention.key_projection", x).reshape(len(x), heads, -1))
    v = affine(p, "attention.value_projection", x).reshape(len(x), heads, -1)
    S, z = torch.zeros(heads, k.shape[2], v.shape[2]), torch.zeros(heads, k.shape[2])
    outputs = []
    for t in range(len(x)):
        record.transition(layer, torch.ones(S.numel() + z.numel()), constant=True)
        S = record.state(layer, "S", S + k[t][:, :, None] * v[t][:, None, :])
        z = record.state(layer, "z", z + k[t])
        read = (S * q[t][:, :, None]).sum(1) / ((z * q[t]).sum(1) + 1e-6)[:, None]
        outputs.append(read.reshape(-1))
    return affine(p, "attention.out_projection", torch.stack(outputs))


def numpy_attention(settings, p, x):
    """Every step attends to all before it through the masked T x T matrix of feature products."""
    heads = settings["heads"]
    q, k, v = (np.stack(np.split(affine(p, f"attention.{name}_projection", x), heads, axis=1)) for name in ("query", "key", "value"))
    q, k = numpy_feature(settings, q), numpy_feature(settings, k)
    weights = np.tril(q @ k.transpose(0, 2, 1))
    read = (weights @ v) / (weights.sum(2, keepdims=True) + 1e-6)
    return affine(p, "attention.out_projection", np.concatenate(list(read), axis=1))


def torch_activation(settings, a):
    return torch.relu(a) if settings.get("activation", "relu") == "relu" else torch.nn.functional.gelu(a)


def numpy_activation(settings, a):
    return np.maximum(a, 0.0) if settings.get("activation", "relu") == "relu" else a * (1.0 - 0.5 * (1.0 - erf(a / math.sqrt(2.0))))


def final_norm(settings):
    return settings["block"] != "none" and settings.get("final_norm", True)


def encoder(attention_of, activation, norm_of, settings):
    def run(parameters, x):
        if "encoder/weight" in parameters:
            x = x @ parameters["encoder/weight"].T + parameters["encoder/bias"]
        for layer in range(settings["layers"]):
            p = under(parameters, f"{layer}/")
            if settings["block"] == "none":
                x = attention_of(layer, p, x)
                continue
            x = norm_of(p, "norm1", x + attention_of(layer, p, x))
            x = norm_of(p, "norm2", x + affine(p, "linear2", activation(settings, affine(p, "linear1", x))))
        return x if not final_norm(settings) else norm_of(under(parameters, "final/"), "norm", x)
    return run


def case(name, settings, T, d_in, loss, seed):
    D = settings["width"]
    F = settings.get("feed_forward", 0) or 4 * D
    shapes = {"encoder/weight": ((D, d_in), 0.7), "encoder/bias": ((D,), 0.3)} if d_in != D else {}
    for layer in range(settings["layers"]):
        for projection in ("query", "key", "value", "out"):
            shapes |= {f"{layer}/attention.{projection}_projection.weight": ((D, D), 1.0 / np.sqrt(D)),
                       f"{layer}/attention.{projection}_projection.bias": ((D,), 0.3)}
        if settings["block"] != "none":
            shapes |= {f"{layer}/linear1.weight": ((F, D), 1.0 / np.sqrt(D)), f"{layer}/linear1.bias": ((F,), 0.3),
                       f"{layer}/linear2.weight": ((D, F), 1.0 / np.sqrt(F)), f"{layer}/linear2.bias": ((D,), 0.3)}
            for which in ("norm1", "norm2"):
                shapes |= {f"{layer}/{which}.weight": ((D,), 0.3, 1.0), f"{layer}/{which}.bias": ((D,), 0.3)}
    if final_norm(settings):
        shapes |= {"final/norm.weight": ((D,), 0.3, 1.0), "final/norm.bias": ((D,), 0.3)}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def forward(record, parameters, inputs):
        return encoder(lambda layer, p, v: attention(record, layer, settings, p, v), torch_activation, norm, settings)(parameters, inputs)

    second = encoder(lambda layer, p, v: numpy_attention(settings, p, v), numpy_activation, numpy_norm, settings)
    make(name, "linear-attention", settings, loss, "step loop from the equations of fast-transformers, checked against its quadratic form",
         draw(seed, shapes), x, forward, second=second, seed=seed)


def main():
    case("linear-attention-mixer", {"width": 6, "heads": 2, "layers": 1, "block": "none"}, 20, 6, "last", 71)
    case("linear-attention-mixer-layers", {"width": 4, "heads": 1, "layers": 2, "block": "none"}, 14, 3, "mean", 72)
    case("linear-attention-block", {"width": 6, "heads": 2, "layers": 2, "block": "residual"}, 16, 6, "mean", 73)
    case("linear-attention-block-bare", {"width": 4, "heads": 2, "layers": 1, "block": "residual", "final_norm": False}, 14, 4, "last", 75)
    gelu = {"width": 6, "heads": 3, "layers": 2, "block": "residual", "activation": "gelu", "feed_forward": 8}
    case("linear-attention-block-gelu", gelu, 12, 2, "last", 74)
    case("linear-attention-dpfp", {"width": 6, "heads": 2, "layers": 1, "block": "none", "feature_map": "dpfp", "nu": 2}, 14, 6, "mean", 76)


if __name__ == "__main__":
    main()
