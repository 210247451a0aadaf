# SPDX-License-Identifier: GPL-3.0-or-later
"""Hawk's RG-LRU and Griffin (De, Smith et al. 2024) as step loops, checked against sums over all pairs of steps.

Names, orders and constants of google-deepmind/recurrentgemma, torch/layers.py and torch/modules.py: RMS norm (eps 1e-6, scale + 1), GELU with
tanh, a_0 = 0 and a write of full size at position 0, a window that lets a query see itself and the `window` keys before it.
"""
import math

import numpy as np
import torch

from harness import draw, make, under
from state_space import encode, encoder_shapes, language_shapes, logistic, read_out, tokens


def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


def numpy_gelu(x):
    return x * logistic(2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))


def rms(p, name, x):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * (1.0 + p[f"{name}.scale"])


def numpy_rms(p, name, x):
    return x / np.sqrt((x * x).mean(1)[:, None] + 1e-6) * (1.0 + p[f"{name}.scale"])


def affine(p, name, x):
    return x @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0.0)


# ------------------------------------------------------------------------------------------------------ recurrent block

def block_diagonal(p, name, x):
    """One step: each block of x times its own matrix, whose first axis is the input."""
    parts = torch.chunk(x, len(p[f"{name}.w"]))
    return torch.cat([part @ w + b for part, w, b in zip(parts, p[f"{name}.w"], p[f"{name}.b"])])


def same_document(starts):
    """[t, s]: whether s is not after t, and in the same document."""
    document = np.cumsum(starts)
    return np.tril(document[:, None] == document[None, :])


def rg_lru(record, layer, settings, p, x, starts):
    h = torch.zeros(x.shape[1])
    outputs = []
    for t, u in enumerate(x):
        i, r = torch.sigmoid(block_diagonal(p, "input_gate", u)), torch.sigmoid(block_diagonal(p, "a_gate", u))
        log_a = -settings.get("c", 8.0) * r * torch.log1p(torch.exp(p["a_param"]))
        a, write = torch.exp(log_a), torch.sqrt(1.0 - torch.exp(2.0 * log_a))
        if (t == 0 and settings.get("reset", True)) or starts[t]:
            a, write = torch.zeros_like(a), torch.ones_like(a)
        record.transition(layer, a, constant=False)
        h = record.state(layer, "h", a * h + write * i * u)
        outputs.append(h)
    return torch.stack(outputs)


def numpy_rg_lru(settings, p, x, starts):
    """h_t = sum over s <= t of the same document of exp(L_t - L_s) w_s i_s x_s, with L the running sum of log a."""
    gate = {}
    for name in ("input_gate", "a_gate"):
        blocks = x.reshape(len(x), len(p[f"{name}.w"]), -1)
        gate[name] = logistic((np.einsum("thi,hij->thj", blocks, p[f"{name}.w"]) + p[f"{name}.b"]).reshape(x.shape))
    log_a = -settings.get("c", 8.0) * gate["a_gate"] * np.logaddexp(0.0, p["a_param"])
    write = np.sqrt(-np.expm1(2.0 * log_a))
    if settings.get("reset", True):
        write[0] = 1.0
    write[starts] = 1.0
    elapsed = np.cumsum(log_a, axis=0)
    lower = same_document(starts)[:, :, None]
    decay = np.where(lower, np.exp(np.where(lower, elapsed[:, None] - elapsed[None, :], 0.0)), 0.0)
    return np.einsum("tsd,sd->td", decay, write * gate["input_gate"] * x)


def recurrent_block(record, layer, settings, p, x, starts):
    y, z = gelu(affine(p, "linear_y", x)), affine(p, "linear_x", x)
    K, W = p["conv_1d.w"].shape
    window = [torch.zeros(W) for _ in range(K)]
    mixed = []
    for u, start in zip(z, starts):
        window = (window[1:] if not start else [torch.zeros(W) for _ in range(K - 1)]) + [u]
        mixed.append(p["conv_1d.b"] + sum(w * past for w, past in zip(p["conv_1d.w"], window)))
    return affine(p, "linear_out", rg_lru(record, layer, settings, under(p, "rg_lru."), torch.stack(mixed), starts) * y)


def numpy_recurrent_block(settings, p, x, starts):
    y, z = numpy_gelu(affine(p, "linear_y", x)), affine(p, "linear_x", x)
    taps = p["conv_1d.w"][::-1]
    age = np.arange(len(x))[:, None] - np.arange(len(x))[None, :]
    weights = np.where((same_document(starts) & (age < len(taps)))[:, :, None], taps[np.clip(age, 0, len(taps) - 1)], 0.0)
    z = np.einsum("tse,se->te", weights, z) + p["conv_1d.b"]
    return affine(p, "linear_out", numpy_rg_lru(settings, under(p, "rg_lru."), z, starts) * y)


# ----------------------------------------------------------------------------------------------------- local attention

def rotate(x, position):
    """RoPE on the first half of the last axis: its own two halves are the coordinates of the planes."""
    quarter = x.shape[-1] // 4
    angle = position * 10000.0 ** (-torch.arange(quarter) / quarter)
    a, b, rest = x[..., :quarter], x[..., quarter:2 * quarter], x[..., 2 * quarter:]
    return torch.cat([a * torch.cos(angle) - b * torch.sin(angle), b * torch.cos(angle) + a * torch.sin(angle), rest], dim=-1)


def attention(record, layer, settings, p, x):
    heads, width = settings["heads"], settings["width"]
    d = width // heads
    keys, values, outputs = [], [], []
    for t, u in enumerate(x):
        q = rotate((p["proj_q.weight"] @ u).reshape(heads, d), t)
        keys.append(record.state(layer, "k", rotate(p["proj_k.weight"] @ u, t)[None]))
        values.append(record.state(layer, "v", (p["proj_v.weight"] @ u)[None]))
        first = max(0, t - settings["window"])
        k, v = torch.cat(keys[first:]), torch.cat(values[first:])
        outputs.append((torch.softmax(q @ k.T / math.sqrt(d), dim=1) @ v).reshape(-1))
    return affine(p, "proj_final", torch.stack(outputs))


def numpy_attention(settings, p, x):
    """The banded T x T matrix; the rotation as a product of complex numbers."""
    T, heads = len(x), settings["heads"]
    d = settings["width"] // heads
    turn = np.exp(1j * np.arange(T)[:, None] * 10000.0 ** (-4.0 * np.arange(d // 4) / d))

    def rotated(y):  # [T, heads, d]
        z = (y[:, :, : d // 4] + 1j * y[:, :, d // 4: d // 2]) * turn[:, None]
        return np.concatenate([z.real, z.imag, y[:, :, d // 2:]], axis=2)

    q, k = rotated((x @ p["proj_q.weight"].T).reshape(T, heads, d)), rotated((x @ p["proj_k.weight"].T)[:, None])
    logits = np.einsum("tnd,sd->nts", q, k[:, 0]) * d**-0.5
    age = np.arange(T)[:, None] - np.arange(T)[None]
    weights = np.where((age >= 0) & (age <= settings["window"]), np.exp(logits - logits.max()), 0.0)
    read = (weights / weights.sum(2)[:, :, None]) @ (x @ p["proj_v.weight"].T)
    return affine(p, "proj_final", read.transpose(1, 0, 2).reshape(T, -1))


# -------------------------------------------------------------------------------------------------------------- models

def mlp(activation, p, x):
    w, b = p["ffw_up.w"], p["ffw_up.b"]
    return affine(p, "ffw_down", activation(x @ w[0] + b[0, 0]) * (x @ w[1] + b[1, 0]))


def residual(norm, activation, mixer, p, x):
    x = x + mixer(norm(p, "temporal_pre_norm", x))
    return x + mlp(activation, under(p, "mlp_block."), norm(p, "channel_pre_norm", x))


def documents(settings, x):
    """The input without the column that marks documents, and where they begin (recurrentgemma: where segment_pos is 0)."""
    column = settings.get("reset_column", 0)
    if not column:
        return x, np.zeros(len(x), dtype=bool)
    return x[:, [j for j in range(x.shape[1]) if j != column - 1]], np.array([bool(value > 0.0) for value in x[:, column - 1]])


def has_attention(settings, block):
    every, first = settings.get("attention_every", 3), settings.get("attention_first", 2)
    return every > 0 and block >= first and (block - first) % every == 0


def stack(norm, activation, tanh, mixing, settings):
    """mixing(layer, parameters of the block, input, where documents begin) -> the output of its temporal mixing."""
    def run(parameters, x):
        x, starts = documents(settings, x)
        x = encode(parameters, x * settings.get("input_scale", 1.0))
        if settings.get("scale_embedding", False):
            x = x * settings["width"] ** 0.5
        for layer in range(settings["layers"]):
            p = under(parameters, f"{layer}/")
            if settings["block"] in ("residual", "pattern"):
                x = residual(norm, activation, lambda v: mixing(layer, p, v, starts), p, x)
            else:
                x = mixing(layer, p, x, starts)
        x = norm(parameters, "final/final_norm", x) if "final/final_norm.scale" in parameters else x
        return read_out(settings, parameters, x, tanh) if "read_out" in settings else x
    return run


# --------------------------------------------------------------------------------------------------------------- cases

def rg_lru_shapes(prefix, W, heads):
    b = W // heads
    shapes = {f"{prefix}a_param": ((W,), 0.6, -2.5)}
    for gate in ("input_gate", "a_gate"):
        shapes |= {f"{prefix}{gate}.w": ((heads, b, b), 1.0 / math.sqrt(b)), f"{prefix}{gate}.b": ((heads, b), 0.3)}
    return shapes


def recurrent_shapes(prefix, settings):
    d, K = settings["width"], settings.get("conv", 4)
    W = settings.get("lru_width", 0) or d
    shapes = {f"{prefix}conv_1d.w": ((K, W), 0.5), f"{prefix}conv_1d.b": ((W,), 0.3)}
    for name, rows, columns in (("linear_y", W, d), ("linear_x", W, d), ("linear_out", d, W)):
        shapes |= {f"{prefix}{name}.weight": ((rows, columns), 1.0 / math.sqrt(columns)), f"{prefix}{name}.bias": ((rows,), 0.3)}
    return shapes | rg_lru_shapes(f"{prefix}rg_lru.", W, settings["heads"])


def attention_shapes(prefix, settings):
    d, one = settings["width"], settings["width"] // settings["heads"]
    shapes = {f"{prefix}proj_{name}.weight": ((rows, d), 1.2 / math.sqrt(d)) for name, rows in (("q", d), ("k", one), ("v", one), ("final", d))}
    return shapes | {f"{prefix}proj_final.bias": ((d,), 0.3)}


def around_shapes(prefix, settings):
    d = settings["width"]
    M = settings.get("mlp", 0) or 3 * d
    return {f"{prefix}temporal_pre_norm.scale": ((d,), 0.3), f"{prefix}channel_pre_norm.scale": ((d,), 0.3),
            f"{prefix}mlp_block.ffw_up.w": ((2, d, M), 1.0 / math.sqrt(d)), f"{prefix}mlp_block.ffw_up.b": ((2, 1, 1, M), 0.3),
            f"{prefix}mlp_block.ffw_down.weight": ((d, M), 0.7 / math.sqrt(M)), f"{prefix}mlp_block.ffw_down.bias": ((d,), 0.3)}


def final_shapes(settings):
    around = settings["block"] in ("residual", "pattern") and settings.get("final_norm", True)
    return {"final/final_norm.scale": ((settings["width"],), 0.3)} if around else {}


def inputs_of(settings, T, d_in, seed):
    return tokens(seed, T, d_in) if "read_out" in settings else np.random.default_rng(seed + 500).standard_normal((T, d_in))


def around_layers(settings, d_in):
    return language_shapes(settings, d_in) if "read_out" in settings else encoder_shapes(settings, d_in)


def rg_lru_case(name, settings, T, d_in, loss, seed):
    shapes = around_layers(settings, d_in - (1 if settings.get("reset_column", 0) else 0))
    for layer in range(settings["layers"]):
        if settings["block"] == "none":
            shapes |= rg_lru_shapes(f"{layer}/recurrent_block.rg_lru.", settings["width"], settings["heads"])
        else:
            shapes |= recurrent_shapes(f"{layer}/recurrent_block.", settings)
        if settings["block"] == "residual":
            shapes |= around_shapes(f"{layer}/", settings)
    shapes |= final_shapes(settings)
    inner = "recurrent_block.rg_lru." if settings["block"] == "none" else "recurrent_block."

    def forward(record, parameters, inputs):
        mix = rg_lru if settings["block"] == "none" else recurrent_block
        return stack(rms, gelu, torch.tanh, lambda layer, p, v, starts: mix(record, layer, settings, under(p, inner), v, starts), settings)(parameters, inputs)

    numpy_mix = numpy_rg_lru if settings["block"] == "none" else numpy_recurrent_block
    second = stack(numpy_rms, numpy_gelu, np.tanh, lambda layer, p, v, starts: numpy_mix(settings, under(p, inner), v, starts), settings)
    make(name, "rg-lru", settings, loss, "step loop from the equations of recurrentgemma, checked against its attention-like sum",
         draw(seed, shapes), inputs_of(settings, T, d_in, seed), forward, second=second, seed=seed)


def griffin_case(name, settings, T, d_in, loss, seed):
    shapes = around_layers(settings, d_in)
    for layer in range(settings["layers"]):
        if settings["block"] == "pattern":
            shapes |= around_shapes(f"{layer}/", settings)
        if has_attention(settings, layer):
            shapes |= attention_shapes(f"{layer}/attention_block.", settings)
        else:
            shapes |= recurrent_shapes(f"{layer}/recurrent_block.", settings)
    shapes |= final_shapes(settings)

    def forward(record, parameters, inputs):
        def mixing(layer, p, v, starts):
            if has_attention(settings, layer):
                return attention(record, layer, settings, under(p, "attention_block."), v)
            return recurrent_block(record, layer, settings, under(p, "recurrent_block."), v, starts)
        return stack(rms, gelu, torch.tanh, mixing, settings)(parameters, inputs)

    def numpy_mixing(layer, p, v, starts):
        if has_attention(settings, layer):
            return numpy_attention(settings, under(p, "attention_block."), v)
        return numpy_recurrent_block(settings, under(p, "recurrent_block."), v, starts)

    make(name, "griffin", settings, loss, "step loop from the equations of recurrentgemma, checked against sums over all pairs of steps",
         draw(seed, shapes), inputs_of(settings, T, d_in, seed), forward, second=stack(numpy_rms, numpy_gelu, np.tanh, numpy_mixing, settings), seed=seed)


def main():
    rg_lru_case("rg-lru-bare", {"width": 6, "heads": 2, "layers": 1, "block": "none"}, 24, 6, "last", 201)
    no_reset = {"width": 4, "heads": 2, "layers": 2, "block": "none", "reset": False, "c": 3.0}
    rg_lru_case("rg-lru-no-reset", no_reset, 16, 3, "mean", 202)
    recurrent = {"width": 4, "heads": 2, "layers": 1, "block": "recurrent", "lru_width": 6, "conv": 3}
    rg_lru_case("rg-lru-recurrent", recurrent, 20, 4, "last", 203)
    rg_lru_case("rg-lru", {"width": 4, "heads": 2, "layers": 2, "block": "residual"}, 20, 3, "mean", 204)
    bare = {"width": 4, "heads": 1, "layers": 1, "block": "residual", "final_norm": False, "mlp": 5}
    rg_lru_case("rg-lru-no-final-norm", bare, 16, 4, "last", 205)
    resets = {"width": 4, "heads": 2, "layers": 2, "block": "residual", "mlp": 5, "reset_column": 2}
    rg_lru_case("rg-lru-documents", resets, 20, 4, "mean", 206)
    bare = {"width": 4, "heads": 2, "layers": 1, "block": "recurrent", "reset": False, "conv": 3, "reset_column": 1}
    rg_lru_case("rg-lru-documents-no-reset", bare, 18, 5, "last", 207)
    language = {"read_out": "tied", "encoder_bias": False}
    rg_lru_case("rg-lru-language", {"width": 4, "heads": 2, "layers": 2, "block": "residual", "mlp": 5} | language, 18, 6, "task", 208)
    rg_lru_case("rg-lru-no-bias", {"width": 4, "heads": 2, "layers": 1, "block": "residual", "read_out": "no-bias", "encoder_bias": False, "soft_cap": 2.0}, 16, 5, "task", 209)
    rg_lru_case("rg-lru-scaled", {"width": 4, "heads": 2, "layers": 1, "block": "residual", "scale_embedding": True}, 14, 3, "mean", 210)
    alone = {"width": 8, "heads": 2, "layers": 1, "block": "none", "window": 5, "attention_every": 1, "attention_first": 0}
    griffin_case("griffin-attention", alone, 20, 8, "last", 211)
    griffin_case("griffin", {"width": 8, "heads": 2, "layers": 3, "block": "pattern", "window": 6, "mlp": 6}, 20, 3, "mean", 212)
    narrow = {"width": 4, "heads": 1, "layers": 5, "block": "pattern", "window": 3, "mlp": 5, "lru_width": 6, "conv": 2, "final_norm": False}
    griffin_case("griffin-layers", narrow, 14, 4, "last", 213)
    griffin_case("griffin-no-reset", narrow | {"layers": 3, "attention_every": 2, "attention_first": 0, "reset": False}, 14, 4, "mean", 214)
    griffin_case("griffin-mixing", narrow | {"layers": 3, "block": "none"}, 14, 2, "mean", 215)
    whole = {"width": 8, "heads": 2, "layers": 3, "block": "pattern", "window": 4, "mlp": 6, "input_scale": math.sqrt(8.0), "soft_cap": 3.0}
    griffin_case("griffin-language", whole | language, 18, 6, "task", 216)
    griffin_case("griffin-scaled", narrow | {"layers": 2, "scale_embedding": True}, 14, 3, "mean", 218)
    griffin_case("griffin-no-bias", narrow | {"layers": 3, "read_out": "no-bias", "encoder_bias": False}, 14, 5, "task", 217)


if __name__ == "__main__":
    main()
