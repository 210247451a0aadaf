# SPDX-License-Identifier: GPL-3.0-or-later
"""HGRN, whose forget gates are bounded below, the more the higher the layer: the complex HGRU of its authors and flash-linear-attention's real
layer, as step loops, each checked against a form over all pairs of steps.

HGRU  Qin, Yang and Zhong 2023; Doraemonzzz/hgru-pytorch, hgru/hgru1d.py (forward_naive); the layer round it, lower_bounds and the final norm of
      OpenNLPLab/fairseq-evo, modules/rnn/hgrn/hgrn_layer.py, modules/ffn/glu.py and models/xformer/rnn/hgrn.py.
HGRN  fla-org/flash-linear-attention, fla/layers/hgrn.py and fla/models/hgrn/modeling_hgrn.py.
"""
import numpy as np
import torch

from harness import draw, make, under
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed


def bounds_of(ops, p):
    """[layers, n]: the softmax over the layers, added up, without that of the lowest."""
    P = ops.softmax(p, 0)
    return P.cumsum(0) - P[:1]


def activation(ops, name, x):
    if ops is Torch:
        functional = torch.nn.functional
        return {"silu": functional.silu, "gelu": functional.gelu, "relu": functional.relu, "elu": functional.elu, "sigmoid": torch.sigmoid, "exp": torch.exp,
                "leak": functional.leaky_relu, "1+elu": lambda v: 1 + functional.elu(v), "2+elu": lambda v: 2 + functional.elu(v), "none": lambda v: v}[name](x)
    elu = np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0)))
    return {"exp": np.exp(x), "leak": np.where(x > 0.0, x, 0.01 * x), "elu": elu, "1+elu": 1.0 + elu, "2+elu": 2.0 + elu, "none": x}.get(
        name, ops.activation(name, x) if name in ("silu", "gelu", "relu", "sigmoid") else None)


def pairs(forget, drive, theta=0.0):
    """h_t as the sum over s <= t of drive_s times the product of the forget gates between, and turned by theta a step."""
    steps = np.arange(len(forget))
    age = (steps[:, None] - steps[None, :])[:, :, None]
    sums = np.cumsum(np.log(forget), 0)
    with np.errstate(over="ignore"):
        weights = np.where(age >= 0, np.exp(np.minimum(sums[:, None] - sums[None], 0.0)), 0.0)
    return (weights * np.exp(1j * theta * age) * drive[None]).sum(1)


# --------------------------------------------------------------------------------------------------------------- HGRN

def hgrn_convolved(ops, p, which, x):
    return ops.convolve(x, p[f"attn.{which}_conv1d.weight"], p.get(f"attn.{which}_conv1d.bias")) if f"attn.{which}_conv1d.weight" in p else x


def hgrn_mixer(ops, s, p, bound, x, recurrence):
    i, f = (hgrn_convolved(ops, p, which, x @ p[f"attn.{which}_proj.weight"].T) for which in "if")
    forget = ops.sigmoid(f)
    if s.get("lower_bound", True):
        forget = bound + (1.0 - bound) * forget
    o = ops.rms_norm(recurrence(forget, ops.activation("silu", i) * (1.0 - forget)), p.get("attn.g_norm.weight"), s.get("norm_eps", 1e-6))
    return (o * ops.activation("silu", x @ p["attn.g_proj.weight"].T)) @ p["attn.o_proj.weight"].T


def hgrn_layer(ops, s, p, x, mixer):
    if s["block"] == "none":
        return mixer(x)
    eps = s.get("norm_eps", 1e-6)
    x = x + mixer(ops.rms_norm(x, p["attn_norm.weight"], eps))
    v = ops.rms_norm(x, p["mlp_norm.weight"], eps)
    return x + (ops.activation("silu", v @ p["mlp.gate_proj.weight"].T) * (v @ p["mlp.up_proj.weight"].T)) @ p["mlp.down_proj.weight"].T


def hgrn_finish(ops, s, p, x):
    return x if s["block"] == "none" else ops.rms_norm(x, p["norm.weight"], s.get("norm_eps", 1e-6))


def hgrn_shapes(s):
    d, I, K = s["width"], int(s["width"] * s.get("expand", 1.0)), s.get("conv", 0)
    shapes = {}
    for which in "ifg":
        shapes |= linear_shapes(f"attn.{which}_proj", I, d)
    for which in "if" if K else "":
        shapes |= {f"attn.{which}_conv1d.weight": ((I, 1, K), 0.6)} | ({f"attn.{which}_conv1d.bias": ((I,), 0.3)} if s.get("conv_bias", False) else {})
    if s.get("norm_affine", True):
        shapes |= norm_shapes("attn.g_norm", I, False)
    shapes |= linear_shapes("attn.o_proj", d, I)
    if s["block"] == "none":
        return shapes, I, {}
    F = s["feed_forward"]
    shapes |= norm_shapes("attn_norm", d, False) | norm_shapes("mlp_norm", d, False)
    shapes |= linear_shapes("mlp.gate_proj", F, d) | linear_shapes("mlp.up_proj", F, d) | linear_shapes("mlp.down_proj", d, F)
    return shapes, I, norm_shapes("norm", d, False)


# --------------------------------------------------------------------------------------------------------------- HGRU

def hgru_mixer(ops, s, p, bound, x, recurrence):
    own, act = under(p, "self_attn.hgru."), s.get("activation", "silu")
    c = activation(ops, act, affine(own, "input_proj", x))
    forget = ops.sigmoid(affine(own, "lambda_proj", x))
    if s.get("lower_bound", True):
        forget = bound + (1.0 - bound) * forget
    turns = [own[name][0, 0] for name in ({"both": ("theta", "theta"), "both_apart": ("theta_forward", "theta_reverse")}.get(s.get("scans", "one"), ("theta",)))]
    h_re, h_im = recurrence(forget, turns[0], (1.0 - forget) * c[:, 0::2], (1.0 - forget) * c[:, 1::2])
    if len(turns) == 2:  # the scan from the end, added
        flip = lambda v: torch.flip(v, (0,)) if ops is Torch else v[::-1]
        back = recurrence(flip(forget), turns[1], flip((1.0 - forget) * c[:, 0::2]), flip((1.0 - forget) * c[:, 1::2]), 1)
        h_re, h_im = h_re + flip(back[0]), h_im + flip(back[1])
    feature = ops.layer_norm(ops.concatenate([h_re, h_im], -1), own["norm.weight"], own["norm.bias"])
    return affine(own, "out_proj", feature * activation(ops, act, affine(own, "gate", x)))


def hgru_layer(ops, s, p, x, mixer):
    if s["block"] == "none":
        return mixer(x)
    norm = lambda name, v: hgru_norm(ops, s, p, name, v)

    def glu(v):
        if not s.get("glu", True):
            return affine(p, "fc2", activation(ops, s.get("glu_activation", "silu"), affine(p, "fc1", v)))
        unit = activation(ops, s.get("glu_activation", "silu"), affine(p, "glu.l1", v)) * affine(p, "glu.l2", v)
        return activation(ops, s.get("final_activation", "none"), affine(p, "glu.l3", unit))

    if s.get("prenorm", True):
        x = x + mixer(norm("self_attn_layer_norm", x))
        return x + glu(norm("final_layer_norm", x))
    x = norm("self_attn_layer_norm", x + mixer(x))
    return norm("final_layer_norm", x + glu(x))


def hgru_norm(ops, s, p, name, v):
    kind = s.get("norm", "layer")
    if kind == "layer" or (kind != "simple_rms" and name != "self_attn_layer_norm"):
        return ops.layer_norm(v, p[f"{name}.weight"], p[f"{name}.bias"])
    y = v / (((v**2).sum(-1)[..., None] / v.shape[-1]) ** 0.5 + 1e-8)
    y = y if kind == "simple_rms" else p[f"{name}.scale"] * y
    return y * ops.sigmoid(p[f"{name}.gate"] * v) if kind == "gated_rms" else y


def hgru_normed(s):
    return s["block"] != "none" and s.get("prenorm", True) and s.get("final_norm", True)


def hgru_finish(ops, s, p, x):
    return hgru_norm(ops, s, p, "layer_norm", x) if hgru_normed(s) else x


def hgru_shapes(s):
    d, bias = s["width"], s.get("bias", True)
    shapes = linear_shapes("input_proj", 2 * d, d, bias) | linear_shapes("lambda_proj", d, d, bias) | {name: ((1, 1, d), 0.9) for name in (("theta_forward", "theta_reverse") if s.get("scans") == "both_apart" else ("theta",))}
    shapes |= linear_shapes("gate", 2 * d, d, bias) | linear_shapes("out_proj", d, 2 * d, bias) | norm_shapes("norm", 2 * d)
    shapes = prefixed("self_attn.hgru.", shapes)
    if s["block"] == "none":
        return shapes, d, {}
    F = s["feed_forward"]
    kind = s.get("norm", "layer")
    first = {"layer": norm_shapes("self_attn_layer_norm", d), "simple_rms": {}}.get(kind, {"self_attn_layer_norm.scale": ((d,), 0.3, 1.0)} | ({"self_attn_layer_norm.gate": ((d,), 0.3, 1.0)} if kind == "gated_rms" else {}))
    shapes |= first | (norm_shapes("final_layer_norm", d) if kind != "simple_rms" else {})
    shapes |= linear_shapes("glu.l1", F, d, True) | linear_shapes("glu.l2", F, d, True) | linear_shapes("glu.l3", d, F, True) if s.get("glu", True) else linear_shapes("fc1", F, d, True) | linear_shapes("fc2", d, F, True)
    return shapes, d, norm_shapes("layer_norm", d) if hgru_normed(s) and kind != "simple_rms" else {}


# -------------------------------------------------------------------------------------------------------------- cases

def case(name, architecture, s, T, d_in, loss, seed, source, hybrid=None):
    """hybrid: of layers that have attention for their mixer, which those are, their parameters and their two forms."""
    real = architecture == "hgrn"
    shapes_of, layer_of, mixer, finish = (hgrn_shapes, hgrn_layer, hgrn_mixer, hgrn_finish) if real else (hgru_shapes, hgru_layer, hgru_mixer, hgru_finish)
    own, n, final = shapes_of(s)
    ways = 2 if s.get("scans", "one") != "one" else 1  # numbers that a layer takes
    shapes = encoder_shapes(s["width"], d_in)
    for layer in range(s["layers"]):
        attends = hybrid and hybrid[0](s, layer)
        shapes |= prefixed(f"{ways * layer}/", {key: shape for key, shape in own.items() if not key.startswith("attn.")} | hybrid[1](s) if attends else own)
    if s.get("lower_bound", True):
        shapes |= {"0/lower_bounds": ((s["layers"], n), 0.8)}
    shapes |= prefixed("final/", final)

    def run(ops, p, x, recurrence_of, attention=None):
        if "encoder/weight" in p:
            x = x @ p["encoder/weight"].T + p["encoder/bias"]
        bounds = bounds_of(ops, p["0/lower_bounds"]) if "0/lower_bounds" in p else None
        for layer in range(s["layers"]):
            q = under(p, f"{ways * layer}/")
            bound = None if bounds is None else bounds[layer]
            attends = hybrid and hybrid[0](s, layer)
            x = layer_of(ops, s, q, x, lambda v: attention(layer, q, v) if attends else mixer(ops, s, q, bound, v, recurrence_of(ways * layer)))
        return finish(ops, s, under(p, "final/"), x)

    def step_loop(record):
        def of_layer(layer):
            def real_steps(forget, drive):
                h, hs = torch.zeros(n), []
                for t in range(len(forget)):
                    record.transition(layer, forget[t], constant=False)
                    h = record.state(layer, "h", forget[t] * h + drive[t])
                    hs.append(h)
                return torch.stack(hs)

            def complex_steps(forget, theta, re, im, way=0):
                record.turned |= {layer + 1} if way else set()
                h, hs = torch.zeros(n, dtype=torch.complex128), []
                for t in range(len(forget)):
                    turn = torch.complex(forget[t] * torch.cos(theta), forget[t] * torch.sin(theta))
                    record.transition(layer + way, turn, constant=False)
                    h = record.state(layer + way, "h", turn * h + torch.complex(re[t], im[t]))
                    hs.append(h)
                hs = torch.stack(hs)
                return hs.real, hs.imag

            return real_steps if real else complex_steps
        return of_layer

    def over_pairs(layer):
        def turned(forget, theta, re, im, way=0):
            h = pairs(forget, re + 1j * im, theta)
            return h.real, h.imag
        return (lambda forget, drive: pairs(forget, drive).real) if real else turned

    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, architecture, s, loss, source, draw(seed, shapes), x, lambda record, p, v: run(Torch, p, v, step_loop(record), lambda layer, q, u: hybrid[2](record, layer, s, q, u)),
         second=lambda p, v: run(Numpy, p, v, over_pairs, lambda layer, q, u: hybrid[3](s, q, u)), seed=seed)


def hgrn_case(name, s, T, d_in, loss, seed):
    case(name, "hgrn", s, T, d_in, loss, seed, "step loop from the equations of flash-linear-attention's HGRN, checked against its form over pairs of steps")


def hgru_case(name, s, T, d_in, loss, seed):
    case(name, "hgru", s, T, d_in, loss, seed, "step loop from Hgru1d's forward_naive, checked against its form over pairs of steps")


def main():
    hgrn_case("hgrn", {"width": 5, "layers": 3, "block": "none"}, 14, 5, "last", 251)
    hgrn_case("hgrn-block", {"width": 4, "layers": 2, "block": "residual", "feed_forward": 6, "norm_eps": 1e-3}, 14, 3, "mean", 252)
    wide = {"width": 4, "layers": 2, "block": "none", "expand": 1.5, "conv": 3, "conv_bias": True, "norm_affine": False}
    hgrn_case("hgrn-convolution", wide, 14, 2, "mean", 253)
    hgrn_case("hgrn-no-bound", {"width": 4, "layers": 2, "block": "none", "lower_bound": False, "conv": 2}, 12, 4, "mean", 254)

    hgru_case("hgru", {"width": 4, "layers": 3, "block": "none"}, 14, 4, "last", 255)
    hgru_case("hgru-block", {"width": 4, "layers": 2, "block": "residual", "feed_forward": 6, "bias": False}, 12, 3, "mean", 256)
    plain = {"width": 3, "layers": 2, "block": "residual", "feed_forward": 4}
    hgru_case("hgru-postnorm", plain | {"prenorm": False, "lower_bound": False, "glu_activation": "gelu", "final_activation": "silu"}, 10, 3, "mean", 257)
    hgru_case("hgru-no-final-norm", plain | {"final_norm": False, "layers": 1}, 10, 3, "mean", 258)
    hgru_case("hgru-both", {"width": 3, "layers": 2, "block": "none", "scans": "both"}, 10, 3, "mean", 270)
    hgru_case("hgru-both-apart", plain | {"scans": "both_apart"}, 10, 2, "last", 271)
    for seed, kind in enumerate(("rms", "gated_rms", "simple_rms"), 272):
        hgru_case(f"hgru-{kind.replace('_', '-')}", plain | {"layers": 1, "norm": kind, "glu": kind == "rms", "final_norm": kind != "simple_rms"}, 8, 3, "mean", seed)
    names = ("gelu", "relu", "elu", "sigmoid", "exp", "leak", "1+elu", "2+elu", "none")
    for i, name in enumerate(names):  # each at each of the three places
        s = plain | {"layers": 1, "activation": name, "glu_activation": names[(i + 3) % 9], "final_activation": names[(i + 5) % 9]}
        hgru_case(f"hgru-{name.replace('+', '-plus-')}", s, 8, 3, "mean", 259 + i)


if __name__ == "__main__":
    main()
