# SPDX-License-Identifier: GPL-3.0-or-later
"""SaShiMi (Goel et al. 2022; state-spaces/s4, models/sashimi/sashimi.py and backbones/sashimi.py): S4 blocks at several rates. Each S4 layer is stepped with
its whole dense matrix, one step of the sequence after the other, at most of which it only stands still; compared with convolutions by FFT.
"""
import numpy as np
import torch

from harness import draw, make
from parts import Numpy, Torch, encoder_shapes
from structured_options import numpy_convolved, numpy_s4_kernel, numpy_s4d_kernel, s4_matrices, system

SOFT = {"elu": lambda xp, x: xp.where(x > 0, x, xp.exp(xp.minimum(x, 0.0 * x)) - 1.0), "tanh": lambda xp, x: xp.tanh(x), "relu": lambda xp, x: xp.maximum(x, 0.0 * x),
        "sigmoid": lambda xp, x: 1.0 / (1.0 + xp.exp(-x)), "silu": lambda xp, x: x / (1.0 + xp.exp(-x)), "softplus": lambda xp, x: xp.log1p(xp.exp(x)), "none": lambda xp, x: x}


def plan(settings):
    """The layers in order: (kind, width, factor); d_layers, c_layers, u_layers."""
    width, blocks, ff = settings["width"], settings.get("n_layers", 1), settings.get("ff", 2)
    stages, expand = [p for p in (settings.get(f"pool{i}", 4 if i < 3 else 0) for i in range(1, 5)) if p], settings.get("expand", 2)
    at_rate = lambda w: [layer for _ in range(blocks) for layer in ([("s4", w, 1), ("ff", w, 1)] if ff else [("s4", w, 1)])]
    down, up = [], []
    for level, p in enumerate(stages):
        w = width * expand**level
        down += (at_rate(w) if settings.get("unet", False) else []) + [("down", w, p)]
        up = [("up", w, p)] + at_rate(w) + up
    return down, at_rate(width * expand ** len(stages)), up


def run(ops, xp, settings, read, parameters, x):
    """read(number, stride, p, u): what the system of layer `number` makes of a sequence, whose steps are `stride` steps of x."""
    full, unet = settings.get("code", "standalone") == "full", settings.get("unet", False)
    expand, prenorm, act = settings.get("expand", 2), settings.get("prenorm", True), settings.get("act_pool", "none")
    ways = 2 if settings.get("bidirectional", False) else 1
    T, number, stride = len(x), 0, 1

    def norm(p, x):
        if not full or not settings.get("transposed", True):
            return ops.layer_norm(x, p["norm.weight"], p["norm.bias"])
        centred = x - x.mean(-1, keepdims=True)
        return p["norm.s"] / xp.sqrt((centred * centred).mean(-1, keepdims=True)) * (centred + p["norm.m"])

    def mapped(p, name, x):
        if f"{name}.weight_g" in p:
            v = p[f"{name}.weight_v"]
            return x @ (p[f"{name}.weight_g"] * v / xp.sqrt((v * v).sum(-1, keepdims=True))).T + p[f"{name}.bias"]
        W = p[f"{name}.weight"]
        return x @ W.reshape(W.shape[0], W.shape[1]).T + p[f"{name}.bias"]

    def pooled(p, x):
        y = mapped(p, "linear", x)
        if act == "glu":
            n = y.shape[-1] // 2
            return y[:, :n] * ops.sigmoid(y[:, n:])
        return ops.activation("gelu", y) if act == "gelu" else SOFT[act](xp, y)

    def block(kind, p, x):
        u = norm(p, x) if prenorm else x
        if kind == "s4":
            H = x.shape[-1]
            y = read(number, stride, p, u) + p["D"].reshape(-1) * ops.concatenate([u] * settings.get("channels", 1), 1)
            v = ops.activation("gelu", y) @ p["output_linear.weight"].T + p["output_linear.bias"]
            y = v[:, :H] * ops.sigmoid(v[:, H:])
        else:
            y = mapped(p, "ff.2", ops.activation("gelu", mapped(p, "ff.0", u)))
        return x + y if prenorm else norm(p, x + y)

    def layer(kind, width, factor, x):
        p = {key[len(f"{number}/"):]: value for key, value in parameters.items() if key.startswith(f"{number}/")}
        if kind == "down":
            whole = len(x) // factor
            return pooled(p, x[: whole * factor].reshape(whole, factor, width).swapaxes(1, 2).reshape(whole, width * factor))
        if kind == "up":
            y = pooled(p, x).reshape(len(x), width, factor).swapaxes(1, 2).reshape(len(x) * factor, width)
            rows = T // stride
            y = ops.concatenate([xp.zeros((factor, width)), y], 0)
            return y[:rows]
        return block(kind, p, x)

    if "encoder/weight" in parameters:
        x = x @ parameters["encoder/weight"].T + parameters["encoder/bias"]
    down, center, up = plan(settings)
    skips = [x]
    for kind, width, factor in down:
        x = layer(kind, width, factor, x)
        skips.append(x)
        stride *= factor
        number += ways if kind == "s4" else 1
    for kind, width, factor in center:
        x = layer(kind, width, factor, x)
        number += ways if kind == "s4" else 1
    x = x + skips.pop()
    for i, (kind, width, factor) in enumerate(up):
        stride //= factor
        x = layer(kind, width, factor, x)
        number += ways if kind == "s4" else 1
        if unet:
            x = x + skips.pop()
        elif kind == "up":
            x = x + skips.pop()
            skips.append(x)
        if not unet and (i + 1 == len(up) or up[i + 1][0] == "up"):
            x = x + skips.pop()
    assert not skips and expand
    return ops.layer_norm(x, parameters["final/norm.weight"], parameters["final/norm.bias"])


def stepped(record, number, settings, parts, C, u, stride, T, turned):
    """One step of the sequence after the other, last first where turned; u has a row for every `stride` of them."""
    if len(parts) == 4:
        return stepped_modes(record, number, settings, parts, C, u, stride, T, turned)
    transition, drive = s4_matrices(torch, parts)
    n = C.shape[2]
    X, Y = transition[:, :n, :n], transition[:, :n, n:]
    real_map = torch.cat([torch.cat([(X + Y).real, -(X - Y).imag], 2), torch.cat([(X + Y).imag, (X - Y).real], 2)], 1)
    still = torch.eye(2 * n).expand(C.shape[1], -1, -1)
    h, outputs, halves = torch.zeros_like(C[0]), [], len(C) > 1 or len(parts[4]) > 1
    wait = T % stride if turned else 0  # steps of the sequence that belong to no whole one of the layer
    for t in range(T):
        moves = t >= wait and (t - wait + 1) % stride == 0 and len(outputs) < len(u)
        record.linear(number, list(real_map if moves else still), constant=True)
        if moves:
            record.shown.setdefault(number, t)
            row = u[len(outputs)]
            h = torch.einsum("hij,hj->hi", X, h) + torch.einsum("hij,hj->hi", Y, h.conj()) + drive[:, :n] * row[:, None]
        h = torch.complex(*torch.chunk(record.state(number, "h", torch.cat([h.real, h.imag], 1)), 2, dim=1)) if halves else record.state(number, "h", h)
        if moves:
            outputs.append(2.0 * (C * h).sum(2).real.reshape(-1))
    return torch.stack(outputs)


def stepped_modes(record, number, settings, parts, C, u, stride, T, turned):
    """The same of the diagonal systems of S4D."""
    dt, A, B, _ = parts
    z = dt * A
    if settings.get("discretisation", "zoh") == "zoh":
        transition, drive = torch.exp(z), (torch.exp(z) - 1.0) / A * B
    else:
        transition, drive = (1.0 + z / 2.0) / (1.0 - z / 2.0), dt / (1.0 - z / 2.0) * B
    h, outputs = torch.zeros_like(transition), []
    wait = T % stride if turned else 0
    for t in range(T):
        moves = t >= wait and (t - wait + 1) % stride == 0 and len(outputs) < len(u)
        record.transition(number, transition if moves else torch.ones_like(transition), constant=True)
        if moves:
            record.shown.setdefault(number, t)
            h = transition * h + drive * u[len(outputs)][:, None]
        h = record.state(number, "h", h)
        if moves:
            outputs.append(2.0 * (C * h).sum(2).real.reshape(-1))
    return torch.stack(outputs)


def case(name, settings, T, d_in, loss, seed):
    ways = 2 if settings.get("bidirectional", False) else 1
    full, ff = settings.get("code", "standalone") == "full", settings.get("ff", 2)
    modes, expand = settings["state"] // 2, settings.get("expand", 2)
    of_dt, model = settings.get("dt_transform", "exp"), "s4d" if settings.get("mode") == "diag" else "s4"
    glu = 2 if settings.get("act_pool", "none") == "glu" else 1

    def norms(width):
        if full and settings.get("transposed", True):
            return {"norm.m": ((1,), 0.3), "norm.s": ((1,), 0.3, 1.0)}
        return {"norm.weight": ((width,), 0.3, 1.0), "norm.bias": ((width,), 0.3)}

    def linear(name, out, width, normed=False):
        weight = {f"{name}.weight_v": ((out, width), 0.6), f"{name}.weight_g": ((out, 1), 0.3, 1.0)} if normed else {f"{name}.weight": ((out, width) if full else (out, width, 1), 0.8 / width**0.5)}
        return weight | {f"{name}.bias": ((out,), 0.3)}

    def shapes_of(kind, width, factor):
        if kind == "down":
            return linear("linear", glu * width * expand, width * factor, full)
        if kind == "up":
            return linear("linear", glu * width * factor, width * expand, full)
        if kind == "ff":
            return norms(width) | linear("ff.0", ff * width, width) | linear("ff.2", width, ff * width)
        S = settings.get("n_ssm", 0) or width
        reads, rank, diagonal = settings.get("channels", 1), settings.get("rank", 1), settings.get("mode") == "diag"
        of_turns = (1.0, 3.0) if settings.get("imag_transform", "none") == "none" else (0.4, 1.0)
        shapes = norms(width) | {"inv_dt": ((width, 1 if settings.get("dt_tie", True) else modes), *((0.5, -1.4) if of_dt == "exp" and not settings.get("dt_fast", False) else (0.1, 0.3))),
                                 "A_real": ((S, modes), 0.3, -0.7 if settings.get("real_transform", "exp") == "exp" else 1.0), "A_imag": ((S, modes), *of_turns),
                                 "B": ((1, S, modes, 2), 0.8)}
        if not diagonal:
            shapes["P"] = ((rank, S, modes, 2), 0.6)
        if settings.get("low_rank", "tied") == "free":
            shapes["Q"] = ((rank, S, modes, 2), 0.4)
        return shapes | {"C": ((ways * reads, width, modes, 2), 0.9), "D": ((reads, width), 0.8), "output_linear.weight": ((2 * width, reads * width), 0.6), "output_linear.bias": ((2 * width,), 0.3)}

    every = encoder_shapes(settings["width"], d_in)
    number = 0
    for part in plan(settings):
        for kind, width, factor in part:
            every |= {f"{number}/{key}": shape for key, shape in shapes_of(kind, width, factor).items()}
            number += ways if kind == "s4" else 1
    every |= {"final/norm.weight": ((settings["width"],), 0.3, 1.0), "final/norm.bias": ((settings["width"],), 0.3)}

    def forward(record, parameters, x):
        if "norm.m" in norms(1) and not settings.get("prenorm", True):  # what the last block's norm adds to all channels the norm at the end takes away
            record.still.add(f"{number - ways}/norm.m")

        def read(number, stride, p, u):
            parts, reads = system(torch, model, settings | {"width": u.shape[1], "code": "full"}, p), settings.get("channels", 1)
            y = stepped(record, number, settings, parts, parts[3][:reads], u, stride, len(x), False)
            if ways == 2:
                record.turned.add(number + 1)
                back = torch.flip(stepped(record, number + 1, settings, parts, parts[3][reads:], torch.flip(u, [0]), stride, len(x), True), [0])
                y = y + torch.cat([back[1:], torch.zeros_like(back[:1])])
            return y
        return run(Torch, torch, settings, read, parameters, x)

    def second(values, x):
        def read(number, stride, p, u):
            kernel, reads = numpy_s4_kernel if model == "s4" else numpy_s4d_kernel, settings.get("channels", 1)
            K = kernel(settings, system(np, model, settings | {"width": u.shape[1], "code": "full"}, p), len(u))
            y = numpy_convolved(K[:reads], u)
            if ways == 2:
                y[:-1] += numpy_convolved(K[reads:], u[::-1])[::-1][1:]
            return y
        return run(Numpy, np, settings, read, values, x)

    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "sashimi", settings, loss, "step loop from the equations of SaShiMi, checked against convolutions at every rate", draw(seed, every), x, forward, second=second, seed=seed)


def main():
    case("sashimi", {"width": 4, "state": 4, "pool1": 2, "pool2": 3, "expand": 1}, 26, 3, "mean", 1201)
    case("sashimi-unet", {"width": 4, "state": 4, "n_layers": 2, "pool1": 3, "pool2": 0, "unet": True, "ff": 1, "expand": 2, "n_ssm": 2}, 17, 2, "last", 1202)
    case("sashimi-both", {"width": 3, "state": 4, "pool1": 2, "pool2": 2, "bidirectional": True, "ff": 0, "expand": 1}, 19, 3, "mean", 1203)
    case("sashimi-full", {"width": 3, "state": 4, "pool1": 2, "pool2": 2, "code": "full", "act_pool": "gelu", "low_rank": "free", "real_transform": "none"}, 14, 2, "mean", 1204)
    case("sashimi-full-layer-norm", {"width": 4, "state": 4, "pool1": 2, "pool2": 0, "expand": 1, "code": "full", "transposed": False, "prenorm": False, "act_pool": "glu", "dt_tie": False, "real_transform": "softplus"}, 13, 2, "last", 1205)
    for i, (act, transform, more) in enumerate([("relu", "relu", {"dt_transform": "softplus"}), ("tanh", "sigmoid", {}), ("elu", "exp", {"prenorm": False}), ("silu", "exp", {"unet": True}), ("sigmoid", "exp", {}), ("softplus", "exp", {"code": "full", "prenorm": False})]):
        case(f"sashimi-{act}", {"width": 4, "state": 4, "pool1": 2, "pool2": 0, "expand": 1, "ff": 0, "act_pool": act, "real_transform": transform} | more, 9, 2, "mean", 1210 + i)
    case("sashimi-rank", {"width": 3, "state": 4, "pool1": 2, "pool2": 0, "expand": 1, "ff": 0, "rank": 2, "channels": 2}, 11, 2, "mean", 1221)
    case("sashimi-diagonal", {"width": 3, "state": 4, "pool1": 2, "pool2": 2, "expand": 1, "mode": "diag", "n_ssm": 1}, 14, 3, "mean", 1222)
    case("sashimi-diagonal-both", {"width": 3, "state": 4, "pool1": 2, "pool2": 0, "expand": 1, "ff": 0, "mode": "diag", "bidirectional": True, "channels": 2, "discretisation": "bilinear", "code": "full"}, 11, 2, "mean", 1223)
    for i, (transform, more) in enumerate([("exp", {}), ("relu", {"dt_fast": True}), ("sigmoid", {"bandlimit": 0.4}), ("softplus", {"prenorm": False})]):
        case(f"sashimi-diagonal-{transform}", {"width": 3, "state": 4, "pool1": 2, "pool2": 0, "expand": 1, "ff": 0, "mode": "diag", "imag_transform": transform} | more, 9, 2, "mean", 1230 + i)


if __name__ == "__main__":
    main()
