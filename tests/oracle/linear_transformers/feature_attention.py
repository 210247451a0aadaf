# SPDX-License-Identifier: GPL-3.0-or-later
"""Linear attention with feature maps of queries and keys: Performer (Choromanski et al. 2020), random feature attention (Peng et al. 2021),
cosFormer (Qin et al. 2022) and EcoFormer (Liu et al. 2022).

Step loops over the memory, checked against masked matrices of all pairs of steps.
"""
import math

import numpy as np
import torch

from harness import draw, make
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack


def by_head(x, heads):
    return x.reshape(len(x), heads, -1)


def flat(x):
    return x.reshape(len(x), -1)


def linear_loop(record, layer, q, k, v, decay=None, constant=True):
    """S and z step by step; q, k [steps, heads, keys], v [steps, heads, values], decay [steps, heads] or none. Returns reads and weights."""
    S, z = torch.zeros(k.shape[1], k.shape[2], v.shape[2]), torch.zeros(k.shape[1:])
    reads, weights = [], []
    for t in range(len(q)):
        kept = torch.ones(k.shape[1]) if decay is None else decay[t]
        record.transition(layer, torch.cat([kept.repeat_interleave(S[0].numel()), kept.repeat_interleave(z[0].numel())]), constant=constant)
        S = record.state(layer, "S", kept[:, None, None] * S + k[t][:, :, None] * v[t][:, None, :])
        z = record.state(layer, "z", kept[:, None] * z + k[t])
        reads.append((S * q[t][:, :, None]).sum(1))
        weights.append((z * q[t]).sum(1))
    return torch.stack(reads), torch.stack(weights)


def pairs(q, k, v, factors=1.0):
    """The same from the masked matrix of all pairs of steps, times factors [heads or 1, steps, steps] of them."""
    scores = np.tril(np.einsum("thk,shk->hts", q, k) * factors)
    return np.einsum("hts,shv->thv", scores, v), scores.sum(2).T


# -------------------------------------------------------------------------------------------------------------- Performer

def performer_sizes(s):
    D = s.get("head_dim", 0) or s["width"] // s["heads"]
    m = D if s.get("projection") == "none" or s.get("kernel") == "separate" else s.get("features", 64) or int(D * math.log(D))
    return D, m


def performer_defaults(s):
    return {"kernel": "positive", "function": "relu", "projection": "orthogonal", "stabiliser": "running", "hold_maximum": False, "feature_eps": 1e-4,
            "rotary": False, "normalise_data": True, "normaliser": "sum", "sum_eps": 0.0, "norm": "layer", "glu": False, "final_norm": True} | s


def turned(x):
    """Neighbours as real and imaginary parts of numbers that turn with the step."""
    steps, heads, D = x.shape
    xp = torch if isinstance(x, torch.Tensor) else np
    angle = xp.arange(steps)[:, None, None] * 10000.0 ** (-2.0 * xp.arange(D // 2) / D)
    pairs_of = x.reshape(steps, heads, D // 2, 2)
    real, imaginary = pairs_of[..., 0], pairs_of[..., 1]
    c, s = xp.cos(angle), xp.sin(angle)
    return xp.stack([real * c - imaginary * s, real * s + imaginary * c], -1).reshape(steps, heads, D)


def performer_inputs(s, p, x):
    D, _ = performer_sizes(s)
    q, k, v = (by_head(affine(p, f"attention.to_{which}", x), s["heads"]) for which in "qkv")
    scale = D ** -0.25 if s["normalise_data"] and s["kernel"] != "separate" else 1.0
    if s["rotary"]:
        q, k = turned(q), turned(k)
    return q * scale, k * scale, v


def performer_divided(xp, s, read, weight, total):
    eps = s["sum_eps"]
    if s["normaliser"] == "none":
        return read
    if s["normaliser"] == "guarded":
        return read / (weight + 2.0 * eps * (xp.abs(weight) <= eps))[..., None]
    return read / (weight + eps * total)[..., None]


def function_of(ops, name, y):
    if name == "requ":
        return ops.activation("relu", y) ** 2
    if name == "elu+1":
        return ops.activation("relu", y) + ops.exp(-ops.activation("relu", -y))
    return {"exp": ops.exp, "identity": lambda z: z}.get(name, lambda z: ops.activation(name, z))(y)


def performer_generalised(ops, s, p, q, k):
    if s["kernel"] == "separate":
        return ops.softmax(q, -1), ops.exp(k)
    if s["projection"] != "none":
        W = p["attention.fast_attention.projection_matrix"]
        q, k = q @ W.T, k @ W.T
    return (function_of(ops, s["function"], y) + s["feature_eps"] for y in (q, k))


def performer(record, layer, s, p, x):
    """Step by step, the stabiliser of the keys being a state."""
    q, k, v = performer_inputs(s, p, x)
    heads, D = s["heads"], v.shape[2]
    cancels = s["normaliser"] == "sum" and s["sum_eps"] == 0.0 and (s["kernel"] == "trigonometric" or s["feature_eps"] == 0.0)
    hold = (lambda y: y.detach()) if s["hold_maximum"] or cancels else (lambda y: y)
    if s["kernel"] in ("generalised", "separate"):
        q, k = performer_generalised(Torch, s, p, q, k)
        reads, weights = linear_loop(record, layer, q, k, v)
        return affine(p, "attention.to_out", flat(performer_divided(torch, s, reads, weights, q.sum(2))))
    W = p["attention.fast_attention.projection_matrix"]
    ratio, running, waves, eps = len(W) ** -0.5, s["stabiliser"] == "running", s["kernel"] == "trigonometric", s["feature_eps"]
    width = 2 * len(W) if waves else len(W)
    S, z, V, m = torch.zeros(heads, width, D), torch.zeros(heads, width), torch.zeros(heads, D), torch.full((heads,), -1e30)
    apart = running and not waves and eps > 0.0
    outputs = []
    for t in range(len(x)):
        of_q, of_k = q[t] @ W.T, k[t] @ W.T
        half_q, half_k = 0.5 * (q[t] ** 2).sum(1, keepdim=True), 0.5 * (k[t] ** 2).sum(1, keepdim=True)
        old = m
        if running:
            m = record.state(layer, "m", torch.maximum(m, hold(half_k[:, 0] if waves else of_k.amax(1))))
        M = {"none": torch.zeros(heads), "fixed": p.get("attention.key_stabiliser"), "running": hold(m)}[s["stabiliser"]][:, None]
        if waves:
            fq = ratio * torch.cat([torch.cos(of_q), torch.sin(of_q)], 1) * (torch.exp(half_q) if s["stabiliser"] == "none" else 1.0)
            fk = ratio * torch.cat([torch.cos(of_k), torch.sin(of_k)], 1) * torch.exp(half_k - M)
        else:
            top = 0.0 if s["stabiliser"] == "none" else hold(of_q.amax(1, keepdim=True))
            fq = ratio * (torch.exp(of_q - half_q - top) + eps)
            fk = ratio * (torch.exp(of_k - half_k - M) + (0.0 if apart else eps))
        kept = torch.exp(hold(old) - hold(m))[:, None] if running else torch.ones(heads, 1)
        record.transition(layer, torch.ones(S.numel() + z.numel() + (V.numel() if apart else 0)), constant=True)
        S = record.state(layer, "S", kept[:, :, None] * S + fk[:, :, None] * v[t][:, None, :])
        z = record.state(layer, "z", kept * z + fk)
        read, weight, total = (S * fq[:, :, None]).sum(1), (z * fq).sum(1), fq.sum(1)
        if apart:
            V = record.state(layer, "V", V + v[t])
            read, weight = read + ratio * eps * total[:, None] * V, weight + ratio * eps * total * (t + 1)
        outputs.append(performer_divided(torch, s, read, weight, total).reshape(-1))
    return affine(p, "attention.to_out", torch.stack(outputs))


def performer_features(xp, s, W, data, top, hold=lambda y: y):
    """google-research's creators of features with the largest exponent `top`, which they find in data: [.., heads, D] -> [.., heads, m]."""
    dash, diagonal = data @ W.T, 0.5 * (data ** 2).sum(-1)[..., None]
    if s["kernel"] == "trigonometric":
        return xp.concatenate([xp.cos(dash), xp.sin(dash)], -1) * len(W) ** -0.5 * xp.exp(diagonal - top)
    return len(W) ** -0.5 * (xp.exp(dash - diagonal - hold(top)) + s["feature_eps"])


def performer_pairs(xp, s, p, x):
    """For each step anew what the reference computes of all steps up to it; in NumPy and, where maxima are held, in torch."""
    ops = Torch if xp is torch else Numpy
    q, k, v = performer_inputs(s, p, x)
    if s["kernel"] in ("generalised", "separate"):
        q, k = performer_generalised(ops, s, p, q, k)
        read, weight = pairs(q, k, v)
        return affine(p, "attention.to_out", flat(performer_divided(np, s, read, weight, q.sum(2))))
    W = p["attention.fast_attention.projection_matrix"]
    hold = (lambda y: y.detach()) if s["hold_maximum"] else (lambda y: y)
    waves, outputs = s["kernel"] == "trigonometric", []
    most = (lambda data, axes: xp.amax(0.5 * (data ** 2).sum(-1)[..., None] if waves else data @ W.T, axes, keepdims=True))
    for t in range(len(x)):
        if s["stabiliser"] == "none":
            of_q, of_k = 0.0, 0.0
        else:
            of_q = most(q[t: t + 1], -1)
            of_k = p["attention.key_stabiliser"][None, :, None] if s["stabiliser"] == "fixed" else most(k[: t + 1], (0, 2))
        fq, fk = performer_features(xp, s, W, q[t: t + 1], of_q, hold), performer_features(xp, s, W, k[: t + 1], of_k, hold)
        scores = xp.einsum("thk,shk->hs", fq, fk)
        outputs.append(performer_divided(xp, s, xp.einsum("hs,shv->hv", scores, v[: t + 1]), scores.sum(1), fq[0].sum(1)).reshape(-1))
    return affine(p, "attention.to_out", xp.stack(outputs))


def performer_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)

    def norm(name, v):
        if s["norm"] == "layer":
            return ops.layer_norm(v, p[f"{name}.norm.weight"], p[f"{name}.norm.bias"])
        return v / ops.sqrt((v * v).sum(-1))[:, None] * p[f"{name}.g"]
    x = x + mixer(p, norm("attention", x))
    hidden = affine(p, "feed_forward.w1", norm("feed_forward", x))
    if s["glu"]:
        first, second = ops.split(hidden, [hidden.shape[1] // 2] * 2)
        return x + affine(p, "feed_forward.w2", ops.activation("gelu", first) * second)
    return x + affine(p, "feed_forward.w2", ops.activation("gelu", hidden))


def performer_shapes(s, layer):
    d, (D, m) = s["width"], performer_sizes(s)
    F = s.get("feed_forward", 0) or 4 * d
    shapes = {}
    for which in "qkv":
        shapes |= linear_shapes(f"attention.to_{which}", s["heads"] * D, d, bias=s.get("qkv_bias", True))
    shapes |= linear_shapes("attention.to_out", d, s["heads"] * D, bias=s.get("out_bias", True))
    if s["projection"] != "none" and s["kernel"] != "separate":
        shapes |= {"attention.fast_attention.projection_matrix": ((m, D), 1.0)}
    if s["stabiliser"] == "fixed" and s["kernel"] not in ("generalised", "separate"):
        shapes |= {"attention.key_stabiliser": ((s["heads"],), 0.5, 0.7)}
    if s["block"] != "none":
        for part in ("attention", "feed_forward"):
            shapes |= norm_shapes(f"{part}.norm", d) if s["norm"] == "layer" else {f"{part}.g": ((1,), 0.3, 1.5)}
        shapes |= linear_shapes("feed_forward.w1", 2 * F if s["glu"] else F, d, bias=True) | linear_shapes("feed_forward.w2", d, F, bias=True)
    return shapes


def final_norm(ops, s, p, x):
    use = s["block"] != "none" and s["final_norm"]
    if ops is None:
        return norm_shapes("norm", s["width"]) if use else {}
    return ops.layer_norm(x, p["norm.weight"], p["norm.bias"]) if use else x


def run_case(name, architecture, settings, full, T, d_in, loss, seed, shapes_of, layer_of, finish, mixer, second, source, third=None, by_layer=False):
    """settings are what the engine is told; full has their defaults too. third: a torch form over all steps, for slopes that are held.
    by_layer: second and third are told the layer too."""
    other = second if by_layer else lambda s, layer, p, v: second(s, p, v)
    shapes = encoder_shapes(full["width"], d_in)
    for layer in range(full["layers"]):
        shapes |= prefixed(f"{layer}/", shapes_of(full, layer))
    shapes |= prefixed("final/", finish(None, full, None, None))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def whole(ops, mix):
        return stack(lambda layer, p, v: layer_of(ops, lambda q, w: mix(layer, q, w), full, p, v), lambda p, v: finish(ops, full, p, v), full)

    def forward(record, parameters, inputs):
        return whole(Torch, lambda layer, p, v: mixer(record, layer, full, p, v))(parameters, inputs)

    def builtin(values, x, loss):
        from harness import loss_of
        leaves = {key: torch.tensor(value, requires_grad=True) for key, value in (values | {"input": x}).items()}
        output = whole(Torch, lambda layer, p, v: third(full, layer, p, v) if by_layer else third(full, p, v))(leaves, leaves["input"])
        found = torch.autograd.grad(loss_of(output, loss), list(leaves.values()))
        return output.detach().numpy(), dict(zip(leaves, (gradient.numpy() for gradient in found)))
    make(name, architecture, settings, loss, source, draw(seed, shapes), x, forward,
         second=None if third else whole(Numpy, lambda layer, p, v: other(full, layer, p, v)), builtin=builtin if third else None, seed=seed)


def performer_case(name, settings, T, d_in, loss, seed):
    full = performer_defaults({"layers": 1, "block": "none"} | settings)
    run_case(name, "performer", settings, full, T, d_in, loss, seed, performer_shapes, performer_layer, final_norm, performer,
             lambda s, p, x: performer_pairs(np, s, p, x),
             "step loop over S, z and the running maximum, checked against the equations of google-research's fast_attention.py for each prefix",
             third=(lambda s, p, x: performer_pairs(torch, s, p, x)) if full["hold_maximum"] else None)


# ------------------------------------------------------------------------------------- fairseq's decoder layer round an attention

def fairseq_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    norm = lambda name, v: ops.layer_norm(v, p[f"{name}.weight"], p[f"{name}.bias"])
    feed_forward = lambda v: affine(p, "fc2", ops.activation(s.get("activation", "relu"), affine(p, "fc1", v)))
    if s.get("prenorm", True):
        x = x + mixer(p, norm("self_attn_layer_norm", x))
        return x + feed_forward(norm("final_layer_norm", x))
    x = norm("self_attn_layer_norm", x + mixer(p, x))
    return norm("final_layer_norm", x + feed_forward(x))


def fairseq_shapes(s):
    if s["block"] == "none":
        return {}
    d = s["width"]
    F = s.get("feed_forward", 0) or 4 * d
    return norm_shapes("self_attn_layer_norm", d) | norm_shapes("final_layer_norm", d) | linear_shapes("fc1", F, d, bias=True) | linear_shapes("fc2", d, F, bias=True)


def fairseq_finish(ops, s, p, x):
    use = s["block"] != "none" and s.get("prenorm", True) and s.get("final_norm", True)
    if ops is None:
        return norm_shapes("layer_norm", s["width"]) if use else {}
    return ops.layer_norm(x, p["layer_norm.weight"], p["layer_norm.bias"]) if use else x


def projections(s, out=True):
    d, shapes = s["width"], {}
    for which in ("q", "k", "v") + (("out",) if out else ()):
        shapes |= linear_shapes(f"self_attn.{which}_proj", d, d, bias=True)
    return shapes


def projected(s, p, x):
    return (by_head(affine(p, f"self_attn.{which}_proj", x), s["heads"]) for which in "qkv")


# -------------------------------------------------------------------------------------------------------------- RFA

def rfa_defaults(s):
    return {"kernel": "gaussian", "temperature": 1.0, "sigma": True, "scale": 0.1, "unit_eps": 1e-3, "normaliser": "clamped", "least": 1.0, "gate": "none"} | s


def rfa_features(xp, s, p, y):
    W = p["self_attn.random_matrices"]
    W = (p["self_attn.sigma"] * W if s["sigma"] else W) / s["temperature"]
    unit = y / (xp.sqrt((y * y).sum(2))[:, :, None] + s["unit_eps"])
    rows = xp.einsum("thd,hkd->thk", unit, W)
    scale = s["scale"] or W.shape[1] ** -0.5
    if s["kernel"] == "arccos":
        return scale * rows * (rows > 0)
    return scale * xp.concatenate([xp.sin(rows), xp.cos(rows)], -1)


def rfa_divided(xp, s, reads, weights):
    if s["normaliser"] == "plain":
        return reads / weights[..., None]
    weights = xp.abs(weights) if s["normaliser"] == "absolute" else weights
    return reads / xp.where(weights > s["least"], weights, s["least"] + 0.0 * weights)[..., None]


def rfa_gate(ops, s, p, x):
    g = ops.sigmoid(affine(p, "self_attn.gate", x))
    return g if s["gate"] == "keeps" else 1.0 - g


def rfa(record, layer, s, p, x):
    q, k, v = projected(s, p, x)
    q, k, kept = rfa_features(torch, s, p, q), rfa_features(torch, s, p, k), None
    if s["gate"] != "none":
        kept = rfa_gate(Torch, s, p, x)
        k = k * (1.0 - kept)[:, :, None]
    reads, weights = linear_loop(record, layer, q, k, v, kept, constant=kept is None)
    return affine(p, "self_attn.out_proj", flat(rfa_divided(torch, s, reads, weights)))


def rfa_pairs(s, p, x):
    """Each pair of steps weighs with the product of the gates between them."""
    q, k, v = projected(s, p, x)
    q, k, factors = rfa_features(np, s, p, q), rfa_features(np, s, p, k), 1.0
    if s["gate"] != "none":
        kept = rfa_gate(Numpy, s, p, x)
        sums = np.cumsum(np.log(kept), axis=0).T
        factors = np.exp(np.minimum(sums[:, :, None] - sums[:, None, :], 0.0)) * (1.0 - kept).T[:, None, :]
    reads, weights = pairs(q, k, v, factors)
    return affine(p, "self_attn.out_proj", flat(rfa_divided(np, s, reads, weights)))


def rfa_shapes(s, layer):
    D = s["width"] // s["heads"]
    shapes = projections(s) | {"self_attn.random_matrices": ((s["heads"], s["features"], D), 1.0)}
    if s["sigma"]:
        shapes |= {"self_attn.sigma": ((s["heads"], 1, D), 0.3, 1.0)}
    if s["gate"] != "none":
        shapes |= {"self_attn.gate.weight": ((s["heads"], s["width"]), 0.5), "self_attn.gate.bias": ((s["heads"],), 0.5, 0.5)}
    return shapes | fairseq_shapes(s)


def rfa_case(name, settings, T, d_in, loss, seed):
    full = rfa_defaults({"layers": 1, "block": "none"} | settings)
    run_case(name, "rfa", settings, full, T, d_in, loss, seed, rfa_shapes, fairseq_layer, fairseq_finish, rfa, rfa_pairs,
             "step loop from the equations of the authors' causal_attention.py, checked against the masked matrix of all pairs")


# -------------------------------------------------------------------------------------------------------------- cosFormer

def cosformer_defaults(s):
    return {"horizon": 512, "feature_map": "relu", "least": 1e-6, "out_projection": True} | s


def clamped(xp, weights, least):
    return xp.where(weights > least, weights, least + 0.0 * weights)[..., None]


def cosformer_output(s, p, o):
    return affine(p, "self_attn.out_proj", flat(o)) if s["out_projection"] else flat(o)


def cosformer(record, layer, s, p, x):
    q, k, v = projected(s, p, x)
    angle = (math.pi / 2 / s["horizon"] * torch.arange(1, len(x) + 1))[:, None, None]
    q, k = (torch.cat([y * torch.sin(angle), y * torch.cos(angle)], -1) for y in (function_of(Torch, s["feature_map"], y) for y in (q, k)))
    reads, weights = linear_loop(record, layer, q, k, v)
    return cosformer_output(s, p, reads / clamped(torch, weights, s["least"]))


def cosformer_pairs(s, p, x):
    """The kernel itself: the cosine of the distance, without a frame that turns."""
    q, k, v = projected(s, p, x)
    q, k = (function_of(Numpy, s["feature_map"], y) for y in (q, k))
    steps = np.arange(len(x))
    reads, weights = pairs(q, k, v, np.cos(math.pi / 2 * (steps[:, None] - steps[None, :]) / s["horizon"])[None])
    return cosformer_output(s, p, reads / clamped(np, weights, s["least"]))


def cosformer_case(name, settings, T, d_in, loss, seed):
    full = cosformer_defaults({"layers": 1, "block": "none"} | settings)
    run_case(name, "cosformer", settings, full, T, d_in, loss, seed, lambda s, layer: projections(s, s["out_projection"]) | fairseq_shapes(s), fairseq_layer, fairseq_finish,
             cosformer, cosformer_pairs, "step loop over features that turn, checked against the kernel of cosines over all pairs")


# -------------------------------------------------------------------------------------------------------------- EcoFormer

class Sign(torch.autograd.Function):
    """The authors' BinaryQuantizer: the slope of the identity within +-1."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(context, gradient):
        (x,) = context.saved_tensors
        return gradient * (x.abs() < 1.0)


def ecoformer_defaults(s):
    return {"bandwidth": "running", "offset": "own", "straight_through": False, "qkv_bias": True, "final_norm": True} | s


def ecoformer_kernel(xp, p, unit, sigma):
    """From unit vectors [steps, heads, D] and sigma [steps or 1, heads, 1]: the kernel with the anchors less its mean, times A."""
    own = "attn.fast_attention.ksh."
    distances = ((unit[:, :, None, :] - p[f"{own}anchor"]) ** 2).sum(-1)
    return xp.einsum("thm,hkm->thk", xp.exp(-distances / (2.0 * sigma)) - p[f"{own}mvec"][0, :, 0], p[f"{own}A"])


def ecoformer_inputs(xp, s, p, x):
    qk, v = (by_head(affine(p, f"attn.to_{which}", x), s["heads"]) for which in ("qk", "v"))
    return qk / xp.sqrt((qk * qk).sum(-1))[..., None], v


def ecoformer(record, layer, s, p, x):
    unit, v = ecoformer_inputs(torch, s, p, x)
    heads, bits, D = s["heads"], s["bits"], v.shape[2]
    S, z, V, total, outputs = torch.zeros(heads, bits, D), torch.zeros(heads, bits), torch.zeros(heads, D), torch.zeros(heads), []
    for t in range(len(x)):
        running = s["bandwidth"] == "running"
        every = s["offset"] == "all"
        record.transition(layer, torch.ones(S.numel() + z.numel() + (V.numel() if every else 0) + (heads if running else 0)), constant=True)
        if running:
            total = record.state(layer, "distances", total + ((unit[t][:, None, :] - p["attn.fast_attention.ksh.anchor"][0]) ** 2).sum(-1).mean(-1))
        sigma = total / (t + 1) if running else p["attn.bandwidth"]
        raw = ecoformer_kernel(torch, p, unit[t: t + 1], sigma[None, :, None])[0]
        code = Sign.apply(raw) if s["straight_through"] else torch.sign(raw)
        S = record.state(layer, "S", S + code[:, :, None] * v[t][:, None, :])
        z = record.state(layer, "z", z + code)
        V = record.state(layer, "V", V + v[t]) if every else v[t]
        read, weight = (S * code[:, :, None]).sum(1) + (bits + 1) * V, (z * code).sum(1) + (bits + 1) * (t + 1)
        outputs.append((read / weight[:, None]).reshape(-1))
    return affine(p, "attn.proj", torch.stack(outputs))


def ecoformer_pairs(xp, s, p, x):
    """All codes first, then the mean of the values weighted by h_t.h_s + n + 1."""
    unit, v = ecoformer_inputs(xp, s, p, x)
    if s["bandwidth"] == "running":
        each = ((unit[:, :, None, :] - p["attn.fast_attention.ksh.anchor"]) ** 2).sum(-1).mean(-1)
        sigma = xp.stack([each[: t + 1].mean(0) for t in range(len(x))])[:, :, None]
    else:
        sigma = p["attn.bandwidth"][None, :, None]
    raw = ecoformer_kernel(xp, p, unit, sigma)
    codes = Sign.apply(raw) if s["straight_through"] else xp.sign(raw)
    plain = xp.tril(xp.einsum("thk,shk->hts", codes, codes))
    weights = xp.tril(plain + s["bits"] + 1.0)
    above = weights if s["offset"] == "all" else plain + (s["bits"] + 1.0) * xp.eye(len(x))
    return affine(p, "attn.proj", flat(xp.einsum("hts,shv->thv", above / weights.sum(-1)[..., None], v)))


def ecoformer_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    norm = lambda name, v: ops.layer_norm(v, p[f"{name}.weight"], p[f"{name}.bias"], 1e-6)
    x = x + mixer(p, norm("norm1", x))
    return x + affine(p, "mlp.fc2", ops.activation("gelu", affine(p, "mlp.fc1", norm("norm2", x))))


def ecoformer_finish(ops, s, p, x):
    use = s["block"] != "none" and s["final_norm"]
    if ops is None:
        return norm_shapes("norm", s["width"]) if use else {}
    return ops.layer_norm(x, p["norm.weight"], p["norm.bias"], 1e-6) if use else x


def ecoformer_shapes(s, layer):
    d, heads, n, m = s["width"], s["heads"], s["bits"], s["anchors"]
    own, F = "attn.fast_attention.ksh.", s.get("feed_forward", 0) or 4 * s["width"]
    shapes = linear_shapes("attn.to_qk", d, d, bias=s["qkv_bias"]) | linear_shapes("attn.to_v", d, d, bias=s["qkv_bias"]) | linear_shapes("attn.proj", d, d, bias=True)
    shapes |= {f"{own}anchor": ((1, heads, m, d // heads), 0.6), f"{own}mvec": ((1, heads, 1, m), 0.1, 0.4), f"{own}A": ((heads, n, m), 1.0)}
    if s["bandwidth"] == "fixed":
        shapes |= {"attn.bandwidth": ((heads,), 0.3, 1.5)}
    if s["block"] != "none":
        shapes |= norm_shapes("norm1", d) | norm_shapes("norm2", d) | linear_shapes("mlp.fc1", F, d, bias=True) | linear_shapes("mlp.fc2", d, F, bias=True)
    return shapes


def ecoformer_case(name, settings, T, d_in, loss, seed):
    full = ecoformer_defaults({"layers": 1, "block": "none"} | settings)
    run_case(name, "ecoformer", settings, full, T, d_in, loss, seed, ecoformer_shapes, ecoformer_layer, ecoformer_finish, ecoformer,
             lambda s, p, x: ecoformer_pairs(np, s, p, x), "step loop from the equations of the authors' performer.py and ksh.py, run causally, checked against all pairs of codes",
             third=(lambda s, p, x: ecoformer_pairs(torch, s, p, x)) if full["straight_through"] else None)


# -------------------------------------------------------------------------------------------------------------- cases

def main():
    small = {"width": 6, "heads": 2, "layers": 1, "features": 4, "block": "none"}
    performer_case("performer", small, 18, 6, "last", 501)
    performer_case("performer-held", small | {"hold_maximum": True, "feature_eps": 0.01, "sum_eps": 1e-3}, 14, 6, "mean", 502)
    performer_case("performer-fixed", small | {"stabiliser": "fixed", "normaliser": "guarded", "sum_eps": 1e-3, "qkv_bias": False}, 14, 6, "mean", 503)
    performer_case("performer-plain", small | {"stabiliser": "none", "normaliser": "none", "feature_eps": 0.0, "out_bias": False}, 14, 6, "last", 504)
    performer_case("performer-exact-ratio", small | {"feature_eps": 0.0, "layers": 2}, 12, 3, "mean", 505)
    waves = small | {"kernel": "trigonometric", "features": 12, "projection": "independent"}
    performer_case("performer-trigonometric", waves, 12, 6, "mean", 506)
    performer_case("performer-trigonometric-plain", waves | {"stabiliser": "none", "projection": "orthogonal-root", "normalise_data": False, "normaliser": "none"}, 12, 6, "mean", 507)
    performer_case("performer-block", {"width": 4, "heads": 2, "layers": 2, "features": 3, "feed_forward": 5, "block": "residual"}, 12, 3, "mean", 508)
    scaled = {"width": 6, "heads": 2, "layers": 1, "features": 0, "feed_forward": 3, "norm": "scale", "glu": True, "final_norm": False, "block": "residual"}
    performer_case("performer-block-scale", scaled, 12, 6, "last", 529)
    performer_case("performer-rotary", small | {"rotary": True, "head_dim": 4, "features": 5}, 12, 6, "mean", 535)
    performer_case("performer-separate", small | {"kernel": "separate", "sum_eps": 1e-3}, 14, 6, "mean", 510)
    for seed, function in enumerate(["relu", "requ", "gelu", "exp", "elu+1", "sigmoid", "identity"], 511):
        general = {"width": 4, "heads": 2, "layers": 1, "features": 5, "kernel": "generalised", "function": function, "feature_eps": 1e-3 if function != "identity" else 1.0, "block": "none"}
        if function in ("elu+1", "exp"):
            general |= {"projection": "none", "features": 0, "normalise_data": False}
        if function == "identity":
            general |= {"normaliser": "none"}
        performer_case(f"performer-{function.replace('+', '-')}", general, 12, 4, "mean", seed)

    base = {"width": 6, "heads": 2, "layers": 1, "features": 4, "block": "none"}
    rfa_case("rfa", base | {"least": 0.05}, 18, 6, "last", 541)
    rfa_case("rfa-absolute", base | {"normaliser": "absolute", "least": 1e-3, "scale": 0.0, "sigma": False, "temperature": 1.6}, 14, 6, "mean", 542)
    rfa_case("rfa-arccos", base | {"kernel": "arccos", "least": 0.01, "features": 6, "scale": 0.0, "layers": 2}, 14, 3, "mean", 543)
    rfa_case("rfa-gate", base | {"gate": "keeps", "normaliser": "plain", "temperature": 2.0}, 18, 6, "last", 544)
    rfa_case("rfa-gate-writes", base | {"gate": "writes", "least": 0.02, "unit_eps": 0.1}, 14, 6, "mean", 545)
    block = {"width": 4, "heads": 2, "layers": 2, "features": 3, "feed_forward": 5, "block": "residual"}
    rfa_case("rfa-block", block | {"gate": "keeps", "normaliser": "plain", "temperature": 3.0}, 12, 3, "mean", 546)
    rfa_case("rfa-block-postnorm", block | {"layers": 1, "prenorm": False, "activation": "gelu", "feed_forward": 0}, 12, 4, "last", 547)
    rfa_case("rfa-block-bare", block | {"layers": 1, "final_norm": False}, 12, 4, "last", 548)

    base = {"width": 6, "heads": 2, "layers": 1, "horizon": 20, "block": "none"}
    cosformer_case("cosformer", base, 18, 6, "last", 561)
    cosformer_case("cosformer-elu", base | {"feature_map": "elu+1", "horizon": 9, "least": 0.01, "out_projection": False}, 16, 6, "mean", 562)
    block = {"width": 4, "heads": 2, "layers": 2, "horizon": 16, "feature_map": "elu+1", "feed_forward": 5, "block": "residual"}
    cosformer_case("cosformer-block", block, 12, 3, "mean", 563)
    cosformer_case("cosformer-block-postnorm", block | {"layers": 1, "prenorm": False, "activation": "gelu"}, 12, 4, "last", 564)
    cosformer_case("cosformer-block-bare", block | {"layers": 1, "final_norm": False}, 12, 4, "last", 565)

    base = {"width": 6, "heads": 2, "layers": 1, "bits": 5, "anchors": 4, "block": "none"}
    ecoformer_case("ecoformer", base, 18, 6, "last", 581)
    ecoformer_case("ecoformer-straight-through", base | {"straight_through": True, "layers": 2}, 12, 3, "mean", 582)
    ecoformer_case("ecoformer-fixed", base | {"bandwidth": "fixed", "offset": "all", "qkv_bias": False}, 14, 6, "mean", 583)
    ecoformer_case("ecoformer-block", {"width": 4, "heads": 2, "layers": 2, "bits": 4, "anchors": 3, "feed_forward": 5, "block": "residual"}, 12, 3, "mean", 584)
    ecoformer_case("ecoformer-block-bare", {"width": 4, "heads": 1, "layers": 1, "bits": 3, "anchors": 3, "offset": "all", "final_norm": False, "block": "residual"}, 12, 4, "last", 585)


if __name__ == "__main__":
    main()
