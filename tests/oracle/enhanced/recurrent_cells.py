# SPDX-License-Identifier: GPL-3.0-or-later
"""Jordan's network, IndRNN and Li-GRU: hand-written step loops, each compared with rounds of all steps at once.

Batch norms are those of evaluation, with their running mean and variance as parameters.
"""
import numpy as np
import torch

from harness import draw, make, settle, under

BATCH_NORM = 1e-5  # PyTorch's default, and that of its layer norm

TORCH = {"tanh": torch.tanh, "logistic": torch.sigmoid, "sigmoid": torch.sigmoid, "relu": torch.relu, "identity": lambda a: a, "sin": torch.sin,
         "leaky_relu": torch.nn.functional.leaky_relu}
NUMPY = {"tanh": np.tanh, "logistic": lambda a: 1.0 / (1.0 + np.exp(-a)), "sigmoid": lambda a: 0.5 * (1.0 + np.tanh(0.5 * a)), "relu": lambda a: np.where(a > 0.0, a, 0.0),
         "identity": lambda a: a, "sin": np.sin, "leaky_relu": lambda a: np.where(a > 0.0, a, 0.01 * a)}


# ---- Jordan: h = f(W_ih x + W_ch c + b_h), y = g(W_hy h + b_y), c <- mu c + y

def jordan(settings):
    f, g = TORCH[settings["activation"]], TORCH[settings["output_activation"]]

    def run(record, parameters, x):
        for layer in range(settings["layers"]):
            p = under(parameters, f"{layer}/")
            zero = torch.zeros(())
            b_h, b_y = p.get("bias_h", zero), p.get("bias_y", zero)
            c, rows = torch.zeros(settings["outputs"]), []
            for u in x:
                def output(c, u=u):
                    through = p["weight_xy"] @ u if "weight_xy" in p else zero
                    return g(p["weight_hy"] @ f(p["weight_ih"] @ u + p["weight_ch"] @ c + b_h) + b_y + through)

                before = c
                (c,) = record.step(layer, lambda c: (settings["mu"] * c + output(c),), c)
                c = record.state(layer, "c", c)
                rows.append(c if settings["mu"] == 0.0 else output(before))
            x = torch.stack(rows)
        return x

    return run


def numpy_jordan(settings):
    """All steps at once from guesses of the contexts; the output is what a context has more than what it kept."""
    f, g, mu = NUMPY[settings["activation"]], NUMPY[settings["output_activation"]], settings["mu"]

    def run(values, x):
        for layer in range(settings["layers"]):
            p = under(values, f"{layer}/")

            def output(before, x=x, p=p):
                hidden = f(x @ p["weight_ih"].T + before @ p["weight_ch"].T + p.get("bias_h", 0.0))
                return g(hidden @ p["weight_hy"].T + p.get("bias_y", 0.0) + (x @ p["weight_xy"].T if "weight_xy" in p else 0.0))

            (c,) = settle(lambda before: (mu * before + output(before),), len(x), (settings["outputs"],))
            x = output(np.concatenate([np.zeros_like(c[:1]), c[:-1]]))
        return x

    return run


def jordan_case(name, settings, T, d_in, loss, seed):
    settings = {"width": 6, "outputs": 3, "layers": 1, "mu": 0.0, "activation": "tanh", "output_activation": "identity", "bias": True} | settings
    H, M = settings["width"], settings["outputs"]
    shapes = {}
    for layer in range(settings["layers"]):
        inner = d_in if layer == 0 else M
        shapes |= {f"{layer}/weight_ih": ((H, inner), 0.8 / np.sqrt(inner)), f"{layer}/weight_ch": ((H, M), 1.0 / np.sqrt(M))}
        if settings["bias"]:
            shapes[f"{layer}/bias_h"] = ((H,), 0.3)
        shapes[f"{layer}/weight_hy"] = ((M, H), 1.2 / np.sqrt(H))
        if settings["bias"]:
            shapes[f"{layer}/bias_y"] = ((M,), 0.3)
        if settings.get("feedthrough", False):
            shapes[f"{layer}/weight_xy"] = ((M, inner), 0.8 / np.sqrt(inner))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "jordan", settings, loss, "equations of Jordan 1986", draw(seed, shapes), x, jordan(settings), second=numpy_jordan(settings), seed=seed)


# ---- IndRNN: h = f(W_ih x + b_ih + u h), with a batch norm before, after or within

def batch_norm(p, v):
    return (v - p["norm.running_mean"]) / (p["norm.running_var"] + BATCH_NORM) ** 0.5 * p["norm.weight"] + p["norm.bias"]


def indrnn(settings):
    f, norm = TORCH[settings["activation"]], settings["norm"]

    def run(record, parameters, x):
        for layer in range(settings["layers"]):
            p = under(parameters, f"{layer}/")

            def cell(u, h, p=p):
                a = p["weight_ih"] @ u + p.get("bias_ih", 0.0)
                if norm == "before":
                    a = batch_norm(p, a)
                h = f(a + p["weight_hh"] * h)
                return batch_norm(p, h) if norm == "within" else h

            h, rows = torch.zeros(settings["width"]), []
            for u in x:
                slope = torch.diagonal(torch.autograd.functional.jacobian(lambda h, u=u: cell(u, h), h.detach()))
                record.transition(layer, slope, constant=settings["activation"] == "identity" and norm != "within")
                h = record.state(layer, "h", cell(u, h))
                rows.append(batch_norm(p, h) if norm == "after" else h)
            x = torch.stack(rows)
        return x

    return run


def numpy_indrnn(settings):
    f, norm = NUMPY[settings["activation"]], settings["norm"]

    def run(values, x):
        for layer in range(settings["layers"]):
            p = under(values, f"{layer}/")
            scale = p["norm.weight"] / np.sqrt(p["norm.running_var"] + BATCH_NORM) if norm != "none" else 1.0
            shift = p["norm.bias"] - scale * p["norm.running_mean"] if norm != "none" else 0.0
            drive = x @ p["weight_ih"].T + p.get("bias_ih", 0.0)
            if norm == "before":
                drive = scale * drive + shift

            def update(before, drive=drive, p=p, scale=scale, shift=shift):
                h = f(drive + p["weight_hh"] * before)
                return (scale * h + shift if norm == "within" else h,)

            (x,) = settle(update, len(x), (settings["width"],))
            if norm == "after":
                x = scale * x + shift
        return x

    return run


def norm_shapes(layer, n, statistics=True):
    shapes = {f"{layer}/norm.weight": ((n,), 0.3, 1.0), f"{layer}/norm.bias": ((n,), 0.3)}
    if statistics:
        shapes |= {f"{layer}/norm.running_mean": ((n,), 0.3), f"{layer}/norm.running_var": ((n,), 0.2, 1.2)}
    return shapes


def indrnn_case(name, settings, T, d_in, loss, seed):
    settings = {"width": 6, "layers": 1, "activation": "relu", "bias": True, "norm": "none"} | settings
    H, shapes = settings["width"], {}
    for layer in range(settings["layers"]):
        inner = d_in if layer == 0 else H
        shapes |= {f"{layer}/weight_ih": ((H, inner), 1.0 / np.sqrt(inner)), f"{layer}/weight_hh": ((H,), 0.3, 0.7)}
        if settings["bias"]:
            shapes[f"{layer}/bias_ih"] = ((H,), 0.3, 0.5)
        if settings["norm"] != "none":
            shapes |= norm_shapes(layer, H)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "indrnn", settings, loss, "equations of Li et al. 2018", draw(seed, shapes), x, indrnn(settings), second=numpy_indrnn(settings), seed=seed)


# ---- Li-GRU: candidate rows first, then the gate's

def li_gru(settings):
    f, norm = TORCH[settings["activation"]], settings["norm"]

    def normalised(p, v):
        if norm == "batch":
            return batch_norm(p, v)
        return torch.nn.functional.layer_norm(v, v.shape[-1:], p["norm.weight"], p["norm.bias"]) if norm == "layer" else v

    def run(record, parameters, x):
        for layer in range(settings["layers"]):
            p = under(parameters, f"{layer}/")

            def cell(u, h, p=p):
                candidate, gate = torch.chunk(normalised(p, p["w.weight"] @ u) + p["u.weight"] @ h, 2)
                z = torch.sigmoid(gate)
                if settings.get("gate", "keeps") == "writes":
                    return ((1 - z) * h + z * f(candidate),)
                return (z * h + (1 - z) * f(candidate),)

            h, rows = torch.zeros(settings["width"]), []
            for u in x:
                (h,) = record.step(layer, lambda h, u=u: cell(u, h), h)
                h = record.state(layer, "h", h)
                rows.append(h)
            x = torch.stack(rows)
        return x

    return run


def numpy_li_gru(settings):
    f, norm, H = NUMPY[settings["activation"]], settings["norm"], settings["width"]

    def run(values, x):
        for layer in range(settings["layers"]):
            p = under(values, f"{layer}/")
            v = x @ p["w.weight"].T
            if norm == "batch":
                v = batch_norm(p, v)
            if norm == "layer":
                centred = v - v.mean(-1, keepdims=True)
                v = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + BATCH_NORM) * p["norm.weight"] + p["norm.bias"]

            def update(before, v=v, p=p):
                candidate = f(v[:, :H] + before @ p["u.weight"][:H].T)
                keep = NUMPY["logistic"](v[:, H:] + before @ p["u.weight"][H:].T)
                if settings.get("gate") == "writes":
                    return (before + keep * (candidate - before),)
                return (candidate + keep * (before - candidate),)

            (x,) = settle(update, len(x), (H,))
        return x

    return run


def li_gru_case(name, settings, T, d_in, loss, seed):
    settings = {"width": 5, "layers": 1, "activation": "relu", "norm": "batch"} | settings
    H, shapes = settings["width"], {}
    for layer in range(settings["layers"]):
        inner = d_in if layer == 0 else H
        shapes |= {f"{layer}/w.weight": ((2 * H, inner), 1.2 / np.sqrt(inner)), f"{layer}/u.weight": ((2 * H, H), 1.0 / np.sqrt(H))}
        if settings["norm"] != "none":
            shapes |= norm_shapes(layer, 2 * H, settings["norm"] == "batch")
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "li-gru", settings, loss, "equations of Ravanelli et al. 2018", draw(seed, shapes), x, li_gru(settings), second=numpy_li_gru(settings), seed=seed)


def main():
    jordan_case("jordan", {}, 16, 3, "last", 41)
    jordan_case("jordan-decaying", {"mu": 0.7, "activation": "logistic", "output_activation": "logistic"}, 16, 2, "mean", 42)
    jordan_case("jordan-layers", {"mu": 0.4, "layers": 2, "width": 5, "activation": "relu", "output_activation": "tanh"}, 14, 3, "mean", 43)
    jordan_case("jordan-no-bias", {"activation": "identity", "bias": False}, 14, 2, "last", 44)
    jordan_case("jordan-feedthrough", {"mu": 0.5, "layers": 2, "width": 5, "feedthrough": True, "output_activation": "tanh"}, 14, 3, "mean", 45)
    indrnn_case("indrnn", {}, 16, 3, "last", 51)
    indrnn_case("indrnn-before", {"norm": "before", "activation": "tanh", "layers": 2}, 14, 3, "mean", 52)
    indrnn_case("indrnn-after", {"norm": "after", "layers": 2, "width": 5}, 14, 2, "mean", 53)
    indrnn_case("indrnn-within", {"norm": "within", "bias": False}, 14, 3, "last", 54)
    indrnn_case("indrnn-sigmoid", {"activation": "sigmoid"}, 12, 2, "mean", 55)
    indrnn_case("indrnn-identity", {"activation": "identity"}, 16, 2, "last", 56)
    li_gru_case("li-gru", {}, 16, 3, "last", 61)
    li_gru_case("li-gru-layer-norm", {"norm": "layer", "activation": "tanh", "layers": 2}, 12, 3, "mean", 62)
    li_gru_case("li-gru-no-norm", {"norm": "none", "activation": "leaky_relu"}, 14, 3, "mean", 63)
    li_gru_case("li-gru-writes", {"norm": "none", "activation": "identity", "gate": "writes", "layers": 2}, 14, 3, "mean", 65)
    li_gru_case("li-gru-sin", {"activation": "sin", "layers": 2, "width": 4}, 12, 2, "last", 64)


if __name__ == "__main__":
    main()
