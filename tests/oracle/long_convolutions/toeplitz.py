# SPDX-License-Identifier: GPL-3.0-or-later
"""TNN: its Toeplitz matrix as sums over lags, compared with FFTs of circulants twice as long, and its state-space model as a step loop of modes,
compared with the Toeplitz matrix that it is converted from.

Names, orders and constants of OpenNLPLab/fairseq-evo, modules/tnn/{tno,rpe,gtu,tnn_layer}.py, modules/ffn/glu.py and modules/norm; the conversion
of OpenNLPLab/ETSC-Exact-Toeplitz-to-SSM-Conversion.
"""
import numpy as np
import torch

from diagonal_systems import both_keys
from harness import draw, make, under
import modal_filter
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack

ACTIVATIONS = ["silu", "relu", "gelu", "elu", "sigmoid", "leak", "1+elu", "2+elu", "sine", "none"]


def activation(ops, name, x):
    if name in ("none", "sine"):
        return x if name == "none" else torch.sin(x) if ops is Torch else np.sin(x)
    if name == "leak":
        return torch.nn.functional.leaky_relu(x) if ops is Torch else np.where(x > 0.0, x, 0.01 * x)
    if name.endswith("elu") and name not in ("gelu", "relu"):
        above = {"1+elu": 1.0, "2+elu": 2.0}.get(name, 0.0)
        return above + (torch.nn.functional.elu(x) if ops is Torch else np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0))))
    return ops.activation(name, x)


def normed(ops, kind, p, name, x):
    if kind == "layer":
        return ops.layer_norm(x, p[f"{name}.weight"], p[f"{name}.bias"])
    square = (x**2).sum(-1)[..., None] / x.shape[-1]
    if kind == "scale":
        return x / (square + 1e-5) ** 0.5 * p[f"{name}.scala"]
    y = x / (square**0.5 + 1e-8)
    if kind == "simple_rms":
        return y
    y = p[f"{name}.scale"] * y
    return y * ops.sigmoid(p[f"{name}.gate"] * x) if kind == "gated_rms" else y


def own_norm_shapes(kind, name, width):
    scale = {f"{name}.scale": ((width,), 0.3, 1.0)}
    return {"layer": norm_shapes(name, width), "scale": {f"{name}.scala": ((1,), 0.3, 1.0)}, "simple_rms": {}, "rms": scale, "gated_rms": scale | {f"{name}.gate": ((width,), 0.3, 1.0)}}[kind]


def coefficients(ops, s, p, lags):
    """RPE at the lags [K], without decay: [K, channels]."""
    n = s["length"]
    index = np.array(lags, dtype=np.float64)
    index = {"index": index, "ratio": index / (n - 1), "exp": np.exp(index / (n - 1))}[s.get("position", "index")][:, None]
    act, kind = s.get("rpe_activation", "relu"), s.get("norm", "simple_rms")
    x = affine(p, "pos_proj", torch.tensor(index) if ops is Torch else index)
    for i in range(s.get("rpe_layers", 3)):
        y = affine(p, f"layers.{i}.2", activation(ops, act, normed(ops, kind, p, f"layers.{i}.0", x)))
        x = x + y if s.get("rpe_residual", False) else y
    return affine(p, "out.2", activation(ops, act, normed(ops, kind, p, "out.0", x)))


def decay(ops, s, p):
    if s.get("decay", "fixed") == "none":
        return np.ones(1) if ops is Numpy else torch.ones(1)
    gamma = p["gamma"].reshape(-1)
    return s.get("gamma", 0.99) + (1.0 - s.get("gamma", 0.99)) * ops.sigmoid(gamma) if s["decay"] == "learned" else gamma


def weights(ops, s, p, lags):
    """a at the lags [K]."""
    k = np.abs(np.array(lags, dtype=np.float64))[:, None]
    return activation(ops, s.get("coefficient_activation", "none"), decay(ops, s, p) ** (torch.tensor(k) if ops is Torch else k) * coefficients(ops, s, under(p, "rpe."), lags))


def sums(s, p, v):
    """Of all pairs of steps, one lag after another."""
    T = len(v)
    lags = range(T) if s.get("causal", True) else range(1 - T, T)
    a, total, norm = weights(Torch, s, p, list(lags)), [], []
    for t in range(T):
        seen = [(a[i], v[t - k]) for i, k in enumerate(lags) if 0 <= t - k < T]
        total.append(sum(w * x for w, x in seen))
        norm.append(sum(w for w, x in seen))
    return torch.stack(total) / torch.stack(norm) if s.get("normalize", False) else torch.stack(total)


def circulant(s, p, v):
    """The code's own way: a_0 .. a_{n-1}, 0, a_{1-n} .. a_{-1} as a circulant of 2n steps."""
    T = len(v)
    a = np.zeros((2 * T, v.shape[1]))
    a[:T] = weights(Numpy, s, p, list(range(T)))
    if not s.get("causal", True):
        a[T + 1:] = weights(Numpy, s, p, list(range(1 - T, 0))) if T > 1 else 0.0
    apply = lambda x: np.fft.irfft(np.fft.rfft(a, 2 * T, axis=0) * np.fft.rfft(x, 2 * T, axis=0), 2 * T, axis=0)[:T]
    return apply(v) / apply(np.ones_like(v)) if s.get("normalize", False) else apply(v)


def converted(record, s):
    def modes(layer, p, v):
        n = s["length"]
        t = coefficients(Torch, s, under(p, "rpe."), list(range(n)))
        t = torch.cat([t, -t.sum(0, keepdim=True)])
        b = torch.fft.ifft(t, dim=0)[1:].T  # [channels, n]
        gamma = decay(Torch, s, p) * torch.ones(len(b))
        turn = gamma[:, None] * torch.exp(torch.complex(torch.zeros(n), -2.0 * np.pi * torch.arange(1, n + 1) / (n + 1)))
        state, read = torch.zeros(len(b), n, dtype=torch.complex128), []
        for step in v:
            record.transition(layer, turn, constant=True)
            state = record.state(layer, "s", turn * state + b * step[:, None])
            read.append(state.sum(1).real)
        return torch.stack(read)
    return modes


def periodic(s, p, v):
    """The Toeplitz matrix of the first n coefficients, which then come again after one that is minus their sum, under the same decay."""
    n, T = s["length"], len(v)
    t = coefficients(Numpy, s, under(p, "rpe."), list(range(n)))
    t = np.concatenate([t, -t.sum(0, keepdims=True)])
    gamma, y = decay(Numpy, s, p), np.zeros_like(v)
    for k in range(T):
        y[k:] += gamma**k * t[k % (n + 1)] * v[: T - k]
    return y


def block(ops, s, p, stream, system):
    act, kind, residual, prenorm = s.get("activation", "silu"), s.get("norm", "simple_rms"), s.get("block", "residual") == "residual", s.get("prenorm", True)
    own = under(p, "self_attn.gtu.")
    x = normed(ops, kind, p, "self_attn_layer_norm", stream) if residual and prenorm else stream
    inside = normed(ops, kind, own, "pre_norm", x)
    y = activation(ops, act, affine(own, "u_proj", inside)) * system(under(own, "toep."), activation(ops, act, affine(own, "v_proj", inside)))
    if s.get("use_norm", False):
        y = normed(ops, kind, own, "norm", y)
    y = affine(own, "o", y) + (x * own["d"] if s.get("resi_param", False) else x)
    if not residual:
        return y

    def glu(z):
        return activation(ops, s.get("final_activation", "none"), affine(p, "glu.l3", activation(ops, s.get("glu_activation", "silu"), affine(p, "glu.l1", z)) * affine(p, "glu.l2", z)))
    if prenorm:
        stream = stream + y
        return stream + glu(normed(ops, kind, p, "final_layer_norm", stream))
    stream = normed(ops, kind, p, "self_attn_layer_norm", stream + y)
    return normed(ops, kind, p, "final_layer_norm", stream + glu(stream))


def finish(ops, s):
    if s.get("block", "residual") == "none" or not s.get("prenorm", True) or not s.get("final_norm", True):
        return lambda p, x: x
    return lambda p, x: normed(ops, "layer", p, "layer_norm", x)


def shapes_of(s):
    d, h, R, kind, bias = s["width"], s.get("heads", 1), s["inner"], s.get("norm", "simple_rms"), s.get("bias", True)
    C = int(s["expand"] * d) // h * h
    shapes = {f"toep.rpe.{key}": value for key, value in linear_shapes("pos_proj", R, 1, bias).items()}
    for i in range(s.get("rpe_layers", 3)):
        shapes |= prefixed(f"toep.rpe.layers.{i}.", own_norm_shapes(kind, "0", R) | linear_shapes("2", R, R, bias))
    shapes |= prefixed("toep.rpe.out.", own_norm_shapes(kind, "0", R) | linear_shapes("2", C, R, bias))
    for name, out, width in (("u_proj", C, d), ("v_proj", C, d), ("o", d, C)):
        shapes |= linear_shapes(name, out, width, bias)
    if s.get("decay", "fixed") != "none":
        shapes["toep.gamma"] = ((h, 1, C // h), 0.9) if s.get("decay") == "learned" else ((h, 1, C // h), 0.03, 0.85)
    shapes |= own_norm_shapes(kind, "pre_norm", d) | (own_norm_shapes(kind, "norm", C) if s.get("use_norm", False) else {}) | ({"d": ((d,), 0.8)} if s.get("resi_param", False) else {})
    shapes = prefixed("self_attn.gtu.", shapes)
    if s.get("block", "residual") == "none":
        return shapes, {}
    F = s.get("feed_forward", 0) or d
    shapes |= own_norm_shapes(kind, "self_attn_layer_norm", d) | own_norm_shapes(kind, "final_layer_norm", d)
    shapes |= linear_shapes("glu.l1", F, d, bias) | linear_shapes("glu.l2", F, d, bias) | linear_shapes("glu.l3", d, F, bias)
    return shapes, norm_shapes("final/layer_norm", d) if s.get("prenorm", True) and s.get("final_norm", True) else {}


def case(name, s, T, d_in, loss, seed):
    s = {"decay": "fixed"} | s
    ways = 1 if s.get("causal", True) else 2
    shapes, last = shapes_of(s)
    if s.get("filter_modes", 0):
        channels = int(s["expand"] * s["width"]) // s.get("heads", 1) * s.get("heads", 1)
        shapes = {key: value for key, value in shapes.items() if ".toep." not in key} | modal_filter.shapes(channels, s["filter_modes"])
        shapes |= modal_filter.shapes(channels, s["filter_modes"], "modes_backward.") if ways == 2 else {}
    every = encoder_shapes(s["width"], d_in)
    for level in range(s.get("layers", 1)):
        every |= prefixed(f"{level * ways}/", shapes)

    def forward(record, parameters, x):
        modes = converted(record, s)

        def both(level, p, v):
            y = modal_filter.steps(record, level * ways, p, v)
            if ways == 2:
                record.turned.add(2 * level + 1)
                y = y + torch.flip(modal_filter.steps(record, 2 * level + 1, p, torch.flip(v, [0]), "modes_backward."), [0])
            return y

        def layer(level, p, stream):
            if s.get("filter_modes", 0):
                return block(Torch, s, p, stream, lambda q, v: both(level, p, v))
            return block(Torch, s, p, stream, lambda q, v: modes(level, q, v) if s.get("state_space", False) else sums(s, q, v))
        return both_keys(stack(layer, finish(Torch, s), s), ways)(parameters, x)

    def second(values, x):
        system = lambda q, v: periodic(s, q, v) if s.get("state_space", False) else circulant(s, q, v)
        if s.get("filter_modes", 0):
            both = lambda p, v: modal_filter.convolved(p, v) + (modal_filter.convolved(p, v[::-1], "modes_backward.")[::-1] if ways == 2 else 0.0)
            return both_keys(stack(lambda level, p, stream: block(Numpy, s, p, stream, lambda q, v: both(p, v)), finish(Numpy, s), s), ways)(values, x)
        return both_keys(stack(lambda level, p, stream: block(Numpy, s, p, stream, system), finish(Numpy, s), s), ways)(values, x)

    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    source = "step loop of the modes of ETSC, checked against the Toeplitz matrix" if s.get("state_space", False) else "sums over lags from the equations of fairseq-evo's Tno and Gtu, checked against its circulants by FFT"
    make(name, "tnn", s, loss, source, draw(seed, every | last), x, forward, second=second, seed=seed)


def main():
    small = {"width": 3, "layers": 1, "expand": 1.4, "inner": 4, "rpe_layers": 1, "length": 10}
    case("tnn", small | {"width": 4, "layers": 2, "heads": 2, "expand": 1.7, "rpe_layers": 2, "feed_forward": 5}, 12, 3, "mean", 971)
    case("tnn-state-space", small | {"width": 4, "layers": 2, "heads": 2, "length": 6, "state_space": True, "decay": "learned", "gamma": 0.7}, 6, 2, "mean", 972)
    case("tnn-state-space-beyond", small | {"length": 4, "state_space": True, "position": "ratio", "block": "none"}, 11, 3, "last", 973)
    case("tnn-state-space-no-decay", small | {"length": 5, "state_space": True, "position": "exp", "decay": "none", "block": "none"}, 9, 2, "mean", 974)
    case("tnn-both-ways", small | {"layers": 2, "causal": False, "decay": "learned", "gamma": 0.6, "position": "ratio", "rpe_residual": True}, 10, 3, "mean", 975)
    case("tnn-both-ways-normalised", small | {"causal": False, "normalize": True, "coefficient_activation": "1+elu", "decay": "none", "block": "none"}, 9, 2, "mean", 976)
    case("tnn-normalised", small | {"normalize": True, "coefficient_activation": "sigmoid", "position": "exp", "use_norm": True, "resi_param": True, "prenorm": False, "norm": "rms"}, 10, 3, "last", 977)
    case("tnn-modes", small | {"layers": 2, "filter_modes": 3}, 11, 2, "mean", 979)
    case("tnn-modes-both-ways", small | {"filter_modes": 2, "causal": False, "block": "none"}, 10, 3, "mean", 996)
    case("tnn-no-bias", small | {"bias": False, "norm": "layer", "use_norm": True, "final_norm": False, "length": 8}, 9, 3, "mean", 978)
    for seed, kind in enumerate(("rms", "gated_rms", "scale"), 980):
        case(f"tnn-{kind.replace('_', '-')}", small | {"norm": kind, "use_norm": True}, 9, 3, "mean", seed)
    for i, name in enumerate(ACTIVATIONS):
        others = {key: ACTIVATIONS[(i + shift) % len(ACTIVATIONS)] for shift, key in enumerate(("coefficient_activation", "rpe_activation", "glu_activation", "final_activation"), 3)}
        case(f"tnn-{name.replace('+', '-')}", small | others | {"activation": name, "norm": "layer" if i % 2 else "simple_rms"}, 8, 3, "mean", 985 + i)


if __name__ == "__main__":
    main()
