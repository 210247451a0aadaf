# SPDX-License-Identifier: GPL-3.0-or-later
"""SGConv, its kernel made place by place and summed over lags, compared with PyTorch's interpolation and FFTs as long as twice the sequence.

Names, orders and constants of ctlllll/SGConv, gconv_standalone.py.
"""
import numpy as np
import torch

from diagonal_systems import both_keys
from harness import draw, make
from parts import Numpy, Torch, affine, encoder_shapes, norm_shapes, prefixed, stack


def kernel_by_places(s, p):
    """[rows, H, K], one tap after another: which scale's weights stand beside it."""
    d, S, first = s["kernel_dim"], s["n_scales"], s.get("init_scale", 0)
    K = d * 2 ** (first + S - 1)
    taps = []
    for j in range(K):
        value = 0.0
        for i in range(S):
            together = s.get("combine", "cat") == "sum"
            stretch = 2 ** (first + (i if together else max(0, i - 1)))
            place = j if together or i == 0 else j - d * 2 ** (first + i - 1)
            if not 0 <= place < d * stretch:
                continue
            w = p[f"kernel_list.{i}"]
            if s.get("interpolation", "linear") == "nearest":
                own = w[:, :, place // stretch]
            else:
                at = min(max((place + 0.5) / stretch - 0.5, 0.0), d - 1.0)
                low = min(int(at), max(d - 2, 0))
                own = w[:, :, low] if d == 1 else (1.0 - (at - low)) * w[:, :, low] + (at - low) * w[:, :, low + 1]
            value = value + (own if "decay" in p else own * p["multiplier"][0, :, 0] ** (S - 1 - i))
        taps.append(value * (j + 1.0) ** -p["decay"] if "decay" in p else value)
    return torch.stack(taps, -1) / p["kernel_norm"]


def kernel_by_interpolation(s, p):
    """The code's own way, with PyTorch's interpolate; in numbers alone."""
    S, first, how = s["n_scales"], s.get("init_scale", 0), s.get("interpolation", "linear")
    together, parts = s.get("combine", "cat") == "sum", []
    for i in range(S):
        w = torch.nn.functional.interpolate(torch.tensor(p[f"kernel_list.{i}"]), scale_factor=2 ** (first + (i if together else max(0, i - 1))), mode=how).numpy()
        parts.append(w if "decay" in p else w * p["multiplier"] ** (S - 1 - i))
    if together:
        K = max(part.shape[-1] for part in parts)
        k = sum(np.pad(part, ((0, 0), (0, 0), (0, K - part.shape[-1]))) for part in parts)
    else:
        k = np.concatenate(parts, -1)
    if "decay" in p:
        k = k * np.exp(-p["decay"][:, None] * np.log(np.arange(k.shape[-1]) + 1.0))
    return k / p["kernel_norm"]


def sums(s, p, u):
    """[T, C, H]: the kernels over what came, and over what comes from the next step on."""
    k, T, C = kernel_by_places(s, p), len(u), s.get("channels", 1)
    K, rows = k.shape[-1], []
    for t in range(T):
        y = sum(k[:C, :, j] * u[t - j] for j in range(min(K, t + 1)))
        if s.get("bidirectional", False):
            y = y + sum((k[C:, :, j] * u[t + 1 + j] for j in range(min(K, T - t - 1))), torch.zeros_like(y))
        rows.append(y + p["D"] * u[t])
    return torch.stack(rows)


def by_fft(s, p, u):
    k, T, C = kernel_by_interpolation(s, p), len(u), s.get("channels", 1)
    k = np.pad(k, ((0, 0), (0, 0), (0, max(0, T - k.shape[-1]))))[:, :, :T]
    two = np.concatenate([k[:C], k[C:, :, ::-1] if s.get("bidirectional", False) else 0.0 * k], -1)
    y = np.fft.irfft(np.fft.rfft(two, axis=-1) * np.fft.rfft(u.T, 2 * T, axis=-1), 2 * T, axis=-1)[..., :T]
    return np.transpose(y, (2, 0, 1)) + p["D"] * u[:, None]


def scalar_norm(p, name, x):
    mean = x.mean(-1)[..., None]
    return p[f"{name}.s"] / ((x - mean) ** 2).mean(-1)[..., None] ** 0.5 * (x - mean + p[f"{name}.m"])


def activation(ops, p, kind, name, x):
    if kind in ("id", "none"):
        return x
    if kind == "tanh":
        return torch.tanh(x) if ops is Torch else np.tanh(x)
    if kind == "ln":
        return scalar_norm(p, name, x)
    if kind == "glu":
        half = x.shape[-1] // 2
        return x[..., :half] * ops.sigmoid(x[..., half:])
    if kind == "modrelu":
        magnitude = abs(x) + p[f"{name}.b"]
        return torch.sign(x) * torch.relu(magnitude) if ops is Torch else np.sign(x) * np.maximum(magnitude, 0.0)
    return ops.activation(kind, x)


def block(ops, s, p, x, system):
    residual, prenorm = s.get("block", "residual") == "residual", s.get("prenorm", True)
    norm = lambda v: ops.layer_norm(v, p["block_norm.weight"], p["block_norm.bias"])
    y = system(s, p, norm(x) if residual and prenorm else x).reshape(len(x), -1)
    if s.get("output", "linear") == "linear":
        y = activation(ops, p, s.get("activation", "gelu"), "activation", y)
        if s.get("ln", "none") == "scalar":
            y = scalar_norm(p, "norm.norm", y)
        if s.get("ln", "none") == "channels":
            y = ops.layer_norm(y, p["norm.norm.weight"], p["norm.norm.bias"])
        after = s.get("postact", "none")
        name = "output_linear" if after == "none" else "output_linear.0"
        if s.get("weight_norm", False):
            v = p[f"{name}.weight_v"]
            p = p | {f"{name}.weight": p[f"{name}.weight_g"] * v / ((v**2).sum(-1) ** 0.5)[:, None]}
        y = activation(ops, p, after, "output_linear.1", affine(p, name, y))
    if not residual:
        return y
    return x + y if prenorm else norm(x + y)


def shapes_of(s):
    H, d, C = s["width"], s["kernel_dim"], s.get("channels", 1)
    rows, after = C * (2 if s.get("bidirectional", False) else 1), s.get("postact", "none")
    shapes = {f"kernel_list.{i}": ((rows, H, d), 1.0) for i in range(s["n_scales"])}
    shapes |= {"decay": ((H,), 0.3, 1.0)} if s.get("decay", "multiplier") == "power" else {"multiplier": ((1, H, 1), 0.2, 1.4)}
    shapes |= {"kernel_norm": ((rows, H, 1), 0.2, 2.5), "D": ((C, H), 0.8)}
    scalar = lambda name: {f"{name}.m": ((1,), 0.4), f"{name}.s": ((1,), 0.2, 1.1)}
    if s.get("output", "linear") == "linear":
        out = 2 * H if after == "glu" else H
        name = "output_linear" if after == "none" else "output_linear.0"
        weight = ((out, C * H), 0.6)
        shapes |= {f"{name}.weight_g": ((out, 1), 0.2, 0.8), f"{name}.weight_v": weight} if s.get("weight_norm", False) else {f"{name}.weight": weight}
        shapes |= {f"{name}.bias": ((out,), 0.3)}
        shapes |= scalar("activation") if s.get("activation", "gelu") == "ln" else {}
        shapes |= {"none": {}, "scalar": scalar("norm.norm"), "channels": norm_shapes("norm.norm", C * H)}[s.get("ln", "none")]
        shapes |= scalar("output_linear.1") if after == "ln" else {"output_linear.1.b": ((H,), 0.2)} if after == "modrelu" else {}
    return shapes | (norm_shapes("block_norm", H) if s.get("block", "residual") == "residual" else {})


def case(name, s, T, d_in, loss, seed):
    ways = 2 if s.get("bidirectional", False) else 1
    every = encoder_shapes(s["width"], d_in)
    for level in range(s.get("layers", 1)):
        every |= prefixed(f"{level * ways}/", shapes_of(s))
    run = lambda ops, system: both_keys(stack(lambda level, p, x: block(ops, s, p, x, system), lambda p, x: x, s), ways)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "sgconv", s, loss, "sums over lags from the equations of SGConv's GConv, checked against its interpolation and FFTs", draw(seed, every), x,
         lambda record, p, v: run(Torch, sums)(p, v), second=run(Numpy, by_fft), seed=seed)


def main():
    small = {"width": 3, "layers": 1, "kernel_dim": 3, "n_scales": 3}
    case("sgconv", small | {"width": 4, "layers": 2}, 16, 3, "mean", 1101)
    case("sgconv-both-ways", small | {"layers": 2, "bidirectional": True, "channels": 2, "postact": "glu"}, 9, 2, "mean", 1102)
    case("sgconv-sum", small | {"combine": "sum", "interpolation": "nearest", "channels": 2, "activation": "silu", "postact": "tanh", "prenorm": False, "ln": "channels"}, 14, 3, "last", 1103)
    case("sgconv-power", small | {"decay": "power", "init_scale": 1, "n_scales": 2, "activation": "tanh", "weight_norm": True, "postact": "sigmoid", "ln": "scalar"}, 11, 3, "mean", 1104)
    case("sgconv-few-scales", small | {"n_scales": 2, "combine": "sum", "decay": "power", "activation": "ln", "postact": "ln"}, 12, 3, "mean", 1105)
    case("sgconv-nearest", small | {"interpolation": "nearest", "activation": "relu", "postact": "modrelu", "weight_norm": True}, 15, 3, "mean", 1106)
    case("sgconv-kernels-alone", small | {"kernel_dim": 1, "n_scales": 3, "channels": 3, "output": "none", "block": "none"}, 9, 3, "mean", 1107)
    for seed, (own, after) in enumerate((("sigmoid", "relu"), ("id", "gelu"), ("gelu", "silu")), 1108):
        case(f"sgconv-{own}", small | {"activation": own, "postact": after, "block": "none"}, 8, 3, "mean", seed)


if __name__ == "__main__":
    main()
