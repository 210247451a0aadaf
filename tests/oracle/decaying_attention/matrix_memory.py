# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers whose memory is a matrix a head, as step loops, each checked against a form over all pairs of steps.

GLA       Yang et al. 2024; names and constants of fla-org/flash-linear-attention, layers/gla.py and models/gla (eps 1e-6 of its configuration).
RetNet    Sun et al. 2023; microsoft/torchscale, multiscale_retention.py and retnet.py, the scale of its recurrent form.
DeltaNet  Schlag et al. 2021; IDSIA/lmtool-fwp, cuda_fast_weight_layer.py; the pre-norm is that of IDSIA/recurrent-fwp.
mLSTM     Beck et al. 2024; NX-AI/xlstm, blocks/mlstm and blocks/xlstm_block.py, m = 0 at the start as in its recurrent step.
"""
import math

import numpy as np
import torch

from harness import draw, make
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack


def by_head(x, heads):
    return x.reshape(len(x), heads, -1)


def run_case(name, architecture, s, T, d_in, loss, seed, shapes_of, layer_of, finish, step_loop, pairs, source):
    """One golden file: layer_of(ops, mixer, s, p, x) is the block round the mixer, finish(ops, s, p, x) what follows the last."""
    shapes = encoder_shapes(s["width"], d_in)
    for layer in range(s.get("layers", 1)):
        shapes |= prefixed(f"{layer}/", shapes_of(s, layer))
    shapes |= prefixed("final/", finish(None, s, None, None))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def forward(record, parameters, inputs):
        mixer_of = lambda layer, p, v: layer_of(Torch, lambda p, v: step_loop(record, layer, s, p, v), s, p, v)
        return stack(mixer_of, lambda p, v: finish(Torch, s, p, v), s)(parameters, inputs)

    second = stack(lambda layer, p, v: layer_of(Numpy, lambda p, v: pairs(s, p, v), s, p, v), lambda p, v: finish(Numpy, s, p, v), s)
    make(name, architecture, s, loss, source, draw(seed, shapes), x, forward, second=second, seed=seed)


# ---------------------------------------------------------------------------------------------------------------- GLA

def fla_activation(ops, s, name, x):
    """Those of flash-linear-attention; its gelu is the tanh approximation, but for retention, which has them from transformers."""
    if name == "sqrelu":
        return ops.activation("relu", x) ** 2
    if name == "logsigmoid":
        return ops.log_sigmoid(x)
    return ops.activation("gelu_tanh" if name == "gelu" and s.get("decay", "input") == "input" else name, x)


def half_turn(ops, x):
    """Pairs (j, j + n/2) of [steps, heads, n] turned by t 10000^(-2j/n)."""
    half = x.shape[2] // 2
    angle = np.arange(len(x))[:, None, None] * 10000.0 ** (-np.arange(half) / half)
    cos, sin = np.cos(angle), np.sin(angle)
    if ops is Torch:
        cos, sin = torch.tensor(cos), torch.tensor(sin)
    a, b = x[..., :half], x[..., half:]
    return ops.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def gla_inputs(ops, s, p, x):
    """Queries, keys, values and logarithms of the decays, [steps, heads, ...]."""
    heads = s["heads"]
    shared = heads // (s.get("kv_heads", 0) or heads)
    found = []
    for which in "qkv":
        y = x @ p[f"attn.{which}_proj.weight"].T
        if s.get("conv", 0):
            y = ops.activation("silu", ops.convolve(y, p[f"attn.{which}_conv1d.weight"], p.get(f"attn.{which}_conv1d.bias")))
        found.append(y)
    q, k, v = found
    fixed = s.get("decay", "input") == "fixed"
    if not fixed:
        a = ops.log_sigmoid(affine(p, "attn.gk_proj.1", x @ p["attn.gk_proj.0.weight"].T)) / s.get("gate_normaliser", 16.0)
    if s.get("clamp_min", 0.0) < 0.0:
        a = ops.maximum(a, torch.tensor(s["clamp_min"]) if ops is Torch else s["clamp_min"])
    if s.get("feature_map", "none") != "none":
        q, k = fla_activation(ops, s, s["feature_map"], q), fla_activation(ops, s, s["feature_map"], k)
    q, k, v = by_head(q, heads), by_head(k, heads // shared), by_head(v, heads // shared)
    if s.get("rotation", False):
        q, k = half_turn(ops, q), half_turn(ops, k)
    k, v = ops.repeat(k, shared, 1), ops.repeat(v, shared, 1)
    if fixed:
        a = np.broadcast_to(np.log(decays(heads))[None, :, None], k.shape)
        a = torch.tensor(np.array(a)) if ops is Torch else a
    else:
        a = ops.repeat(by_head(a, heads // shared), shared, 1)
    return q * k.shape[2] ** -0.5, k, v, a


def gla_norm(s):
    return "attn.g_norm_swish_gate.weight" if s.get("output_gate", True) and s.get("gate_fn", "swish") == "swish" else "attn.g_norm.weight"


def gla_output(ops, s, p, x, o):
    gated = s.get("output_gate", True)
    if s.get("norm", True):
        o = ops.rms_norm(o, p.get(gla_norm(s)), s.get("norm_eps", 1e-6))
    o = o.reshape(len(x), -1)
    if gated:
        o = o * fla_activation(ops, s, s.get("gate_fn", "swish"), x @ p["attn.g_proj.weight"].T)
    return o @ p["attn.o_proj.weight"].T


def gla(record, layer, s, p, x):
    q, k, v, a = gla_inputs(Torch, s, p, x)
    S = torch.zeros(k.shape[1], k.shape[2], v.shape[2])
    reads = []
    for t in range(len(x)):
        decay = torch.exp(a[t])[:, :, None].expand(S.shape)
        record.transition(layer, decay, constant=s.get("decay", "input") == "fixed")
        S = record.state(layer, "S", decay * S + k[t][:, :, None] * v[t][:, None, :])
        reads.append((S * q[t][:, :, None]).sum(1))
    return gla_output(Torch, s, p, x, torch.stack(reads))


def gla_pairs(s, p, x):
    """o_t = sum over s <= t of (q_t exp(A_t - A_s) . k_s) v_s, with A the running sum of the log decays."""
    q, k, v, a = gla_inputs(Numpy, s, p, x)
    A = np.cumsum(a, axis=0)
    between = np.minimum(A[:, None] - A[None, :], 0.0)  # above 0 only where s > t, which the triangle removes
    scores = np.einsum("thk,tshk,shk->hts", q, np.exp(between), k)
    return gla_output(Numpy, s, p, x, np.einsum("hts,shv->thv", np.tril(scores), v))


def gla_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    eps = s.get("norm_eps", 1e-6)
    x = x + mixer(p, ops.rms_norm(x, p["attn_norm.weight"], eps))
    z = ops.rms_norm(x, p["mlp_norm.weight"], eps)
    return x + (ops.activation("swish", z @ p["mlp.gate_proj.weight"].T) * (z @ p["mlp.up_proj.weight"].T)) @ p["mlp.down_proj.weight"].T


def gla_finish(ops, s, p, x):
    if ops is None:
        return {} if s["block"] == "none" else norm_shapes("norm", s["width"], bias=False)
    return x if s["block"] == "none" else ops.rms_norm(x, p["norm.weight"], s.get("norm_eps", 1e-6))


def gla_shapes(s, layer):
    d, heads, K = s["width"], s["heads"], s.get("conv", 0)
    shared = heads // (s.get("kv_heads", 0) or heads)
    key, value, rank = int(d * s.get("expand_k", 0.5)), int(d * s.get("expand_v", 1.0)), s.get("gate_rank", 16)
    gated = s.get("output_gate", True)
    shapes = (linear_shapes("attn.q_proj", key, d) | linear_shapes("attn.k_proj", key // shared, d)
              | linear_shapes("attn.v_proj", value // shared, d))
    if s.get("decay", "input") == "input":
        shapes |= linear_shapes("attn.gk_proj.0", rank, d) | {"attn.gk_proj.1.weight": ((key // shared, rank), 1.5), "attn.gk_proj.1.bias": ((key // shared,), 1.0, -1.0)}
    shapes |= linear_shapes("attn.o_proj", d, value)
    if gated:
        shapes |= linear_shapes("attn.g_proj", value, d)
    if s.get("norm", True) and s.get("norm_affine", True):
        shapes |= norm_shapes(gla_norm(s).removesuffix(".weight"), value // heads, bias=False)
    if K:
        for which, width in (("q", key), ("k", key // shared), ("v", value // shared)):
            shapes |= {f"attn.{which}_conv1d.weight": ((width, 1, K), 0.6)}
            if s.get("conv_bias", False):
                shapes |= {f"attn.{which}_conv1d.bias": ((width,), 0.3)}
    if s["block"] != "none":
        F = s["feed_forward"]
        shapes |= norm_shapes("attn_norm", d, False) | norm_shapes("mlp_norm", d, False)
        shapes |= linear_shapes("mlp.gate_proj", F, d) | linear_shapes("mlp.up_proj", F, d) | linear_shapes("mlp.down_proj", d, F)
    return shapes


def gla_case(name, settings, T, d_in, loss, seed):
    run_case(name, "gla", settings, T, d_in, loss, seed, gla_shapes, gla_layer, gla_finish, gla, gla_pairs,
             "step loop from the equations of flash-linear-attention's GLA, checked against its sum over pairs of steps")


# ------------------------------------------------------------------------------------------------------------- RetNet

def retention_inputs(ops, s, p, x):
    heads = s["heads"]
    q, k, v = (by_head(x @ p[f"retention.{which}_proj.weight"].T, heads) for which in "qkv")
    return q, k * k.shape[2] ** -0.5, v


def decays(heads):
    return 1.0 - 2.0 ** (-5.0 - np.arange(heads))


def angles(pairs):
    return 10000.0 ** -np.linspace(0.0, 1.0, pairs)


def retention_output(ops, s, p, x, o):
    if s.get("norm", True):
        o = ops.rms_norm(o, None, s.get("norm_eps", 1e-6))
    o = o.reshape(len(x), -1)
    if s.get("gate", "swish") != "none":
        o = ops.activation(s.get("gate", "swish"), x @ p["retention.g_proj.weight"].T) * o
    return o @ p["retention.out_proj.weight"].T


def turn(x, t):
    """Each pair (2j, 2j + 1) of each head, as a complex number, times exp(i t angle_j)."""
    z = torch.complex(x[:, 0::2], x[:, 1::2]) * torch.exp(1j * t * torch.tensor(angles(x.shape[1] // 2)))
    return torch.stack([z.real, z.imag], dim=2).reshape(x.shape)


def retention(record, layer, s, p, x):
    q, k, v = retention_inputs(Torch, s, p, x)
    gamma = torch.tensor(decays(s["heads"]))
    S = torch.zeros(k.shape[1], k.shape[2], v.shape[2])
    scale = torch.zeros_like(gamma)
    turned = turn if s.get("rotation", True) else lambda z, t: z
    keys, reads = [], []
    for t in range(len(x)):
        record.transition(layer, gamma[:, None, None].expand(S.shape), constant=True)
        S = record.state(layer, "S", gamma[:, None, None] * S + turned(k[t], t)[:, :, None] * v[t][:, None, :])
        scale = gamma * scale + 1.0
        keys.append(turned(k[t], t))
        read = (S * turned(q[t], t)[:, :, None]).sum(1)
        if s.get("normaliser", "row") != "none":
            read = read / torch.sqrt(scale)[:, None]
        if s.get("normaliser", "row") == "absolute":
            weights = sum(abs((key * turned(q[t], t)).sum(1)) * gamma ** (t - i) for i, key in enumerate(keys)) / torch.sqrt(scale)
            read = read / torch.clamp(weights, 1.0, 5e4).detach()[:, None]
        reads.append(read)
    return retention_output(Torch, s, p, x, torch.stack(reads))


def retention_pairs(s, p, x, held=None):
    """All pairs at once: the turns of a query and a key leave a rotation by their distance, and the decays one matrix a head. `held` keeps
    the sums of absolute weights of the first call, through which no gradient passes."""
    q, k, v = retention_inputs(Numpy, s, p, x)
    steps, half = np.arange(len(x)), q.shape[2] // 2
    distance = steps[:, None] - steps[None, :]
    phase = distance[:, :, None] * angles(half) * (1.0 if s.get("rotation", True) else 0.0)
    even, odd = slice(0, None, 2), slice(1, None, 2)
    along = np.einsum("thj,shj->htsj", q[..., even], k[..., even]) + np.einsum("thj,shj->htsj", q[..., odd], k[..., odd])
    across = np.einsum("thj,shj->htsj", q[..., odd], k[..., even]) - np.einsum("thj,shj->htsj", q[..., even], k[..., odd])
    decay = np.tril(decays(s["heads"])[:, None, None] ** np.maximum(distance, 0))
    if s.get("normaliser", "row") != "none":
        decay = decay / np.sqrt(decay.sum(2, keepdims=True))
    scores = (along * np.cos(phase) - across * np.sin(phase)).sum(3) * decay
    if s.get("normaliser", "row") == "absolute":
        scores = scores / held.setdefault("sums", np.clip(np.abs(scores).sum(2, keepdims=True), 1.0, 5e4))
    return retention_output(Numpy, s, p, x, np.einsum("hts,shv->thv", scores, v))


def retnet_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    alpha = (2.0 * s["layers"]) ** 0.25 if s.get("deepnorm", False) else 1.0
    norm = lambda name, v: ops.rms_norm(v, p[f"{name}.weight"], s.get("norm_eps", 1e-6))

    def glu(z):
        return (ops.activation(s.get("activation", "gelu"), z @ p["ffn.fc1.weight"].T) * (z @ p["ffn.gate.weight"].T)) @ p["ffn.fc2.weight"].T

    if s.get("prenorm", True):
        x = alpha * x + mixer(p, norm("retention_layer_norm", x))
        return alpha * x + glu(norm("final_layer_norm", x))
    x = norm("retention_layer_norm", alpha * x + mixer(p, x))
    return norm("final_layer_norm", alpha * x + glu(x))


def retnet_finish(ops, s, p, x):
    final = s["block"] != "none" and s.get("prenorm", True)
    if ops is None:
        return norm_shapes("layer_norm", s["width"], bias=False) if final else {}
    return ops.rms_norm(x, p["layer_norm.weight"], s.get("norm_eps", 1e-6)) if final else x


def retnet_shapes(s, layer):
    d, V, F = s["width"], s.get("value_width", 0) or 2 * s["width"], s.get("feed_forward", 0) or 2 * s["width"]
    shapes = linear_shapes("retention.q_proj", d, d) | linear_shapes("retention.k_proj", d, d) | linear_shapes("retention.v_proj", V, d)
    if s.get("gate", "swish") != "none":
        shapes |= linear_shapes("retention.g_proj", V, d)
    shapes |= linear_shapes("retention.out_proj", d, V)
    if s["block"] != "none":
        shapes |= norm_shapes("retention_layer_norm", d, False) | norm_shapes("final_layer_norm", d, False)
        shapes |= linear_shapes("ffn.fc1", F, d) | linear_shapes("ffn.gate", F, d) | linear_shapes("ffn.fc2", d, F)
    return shapes


def retnet_case(name, settings, T, d_in, loss, seed):
    held = {}
    assert settings.get("normaliser", "row") != "absolute" or settings["layers"] == 1
    run_case(name, "retnet", settings, T, d_in, loss, seed, retnet_shapes, retnet_layer, retnet_finish, retention,
             lambda s, p, x: retention_pairs(s, p, x, held),
             "step loop from the equations of torchscale's RetNet, checked against its parallel form")


# ----------------------------------------------------------------------------------------------------------- DeltaNet

def delta_inputs(ops, s, p, x, feature):
    """Queries and keys through the feature map and divided by their sums, values, and the strengths of writing."""
    heads = s["heads"]
    D = s.get("head_dim", 0) or s["width"] // heads
    q, k, v, b = ops.split(by_head(x @ p["dec_attn.qkvb_net.weight"].T, heads), [D, D, D, 1])
    q, k = feature(s, q), feature(s, k)
    if s.get("normalise", "sum") == "sum":
        q, k = (z / (z.sum(-1)[..., None] + s.get("sum_eps", 1e-5)) for z in (q, k))
    return q, k, v, ops.sigmoid(b) * (2.0 if s.get("negative_eigenvalues", False) else 1.0)


def delta_output(s, p, o):
    scale = o.shape[2] ** -0.5 if s.get("output_scale", True) else 1.0
    return scale * o.reshape(len(o), -1) @ p["dec_attn.o_net.weight"].T


def delta_feature(s, z):
    if s["feature_map"] == "dpfp":
        r = torch.cat([torch.relu(z), torch.relu(-z)], dim=-1)
        return torch.cat([r * torch.roll(r, j, -1) for j in range(1, s["nu"] + 1)], dim=-1)
    return torch.nn.functional.elu(z) + 1.0 if s["feature_map"] == "elu" else z


def numpy_delta_feature(s, z):
    if s["feature_map"] == "dpfp":
        r = np.concatenate([np.maximum(z, 0.0), np.maximum(-z, 0.0)], axis=-1)
        index = np.arange(r.shape[-1])
        return np.concatenate([r * r[..., (index - j) % len(index)] for j in range(1, s["nu"] + 1)], axis=-1)
    return np.where(z > 0.0, z + 1.0, np.exp(np.minimum(z, 0.0))) if s["feature_map"] == "elu" else z


def deltanet(record, layer, s, p, x):
    q, k, v, beta = delta_inputs(Torch, s, p, x, delta_feature)
    heads, keys, values = k.shape[1], k.shape[2], v.shape[2]
    S, z = torch.zeros(heads, keys, values), torch.zeros(heads, keys)
    normaliser, reads = s.get("attention_normaliser", "none"), []
    for t in range(len(x)):
        if normaliser != "none":
            recalled = (z * k[t]).sum(1, keepdim=True) if t else torch.ones(heads, 1)
            z = record.state(layer, "z", z + k[t])
            if normaliser == "both":
                k, beta = list(k), list(beta)
                k[t], beta[t] = k[t] / (recalled + 1e-5), beta[t] * recalled
                k, beta = torch.stack(k), torch.stack(beta)
        blocks = [torch.eye(keys) - beta[t, h] * torch.outer(k[t, h], k[t, h]) for h in range(heads)]
        record.linear(layer, [block for block in blocks for _ in range(values)], constant=False)  # alike for each column of S
        old = (S * k[t][:, :, None]).sum(1)
        S = record.state(layer, "S", S + k[t][:, :, None] * (beta[t] * (v[t] - old))[:, None, :])
        read = (S * q[t][:, :, None]).sum(1)
        reads.append(read if normaliser == "none" else read / ((z * q[t]).sum(1, keepdim=True) + 1e-5))
    return delta_output(s, p, torch.stack(reads))


def delta_pairs(s, p, x):
    """What each step writes solves one triangular system; the reads are then a masked T x T product."""
    q, k, v, beta = delta_inputs(Numpy, s, p, x, numpy_delta_feature)
    normaliser, seen = s.get("attention_normaliser", "none"), np.tril(np.ones((len(x), len(x))))
    total = np.einsum("ts,shk,thk->th", seen, k, q)[:, :, None] + 1e-5
    if normaliser == "both":
        earlier = np.einsum("ts,shk,thk->th", np.tril(seen, -1), k, k)[:, :, None]
        earlier[0] = 1.0
        k, beta = k / (earlier + 1e-5), beta * earlier
    overlaps = beta.transpose(1, 0, 2) * np.einsum("thk,shk->hts", k, k)
    written = np.linalg.solve(np.eye(len(x)) + np.tril(overlaps, -1), (beta * v).transpose(1, 0, 2))
    read = np.einsum("hts,hsv->thv", np.tril(np.einsum("thk,shk->hts", q, k)), written)
    return delta_output(s, p, read if normaliser == "none" else read / total)


def deltanet_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    norm = lambda name, v: ops.layer_norm(v, p[f"{name}.weight"], p[f"{name}.bias"])
    feed_forward = lambda v: affine(p, "pos_ff.CoreNet.3", ops.activation("relu", affine(p, "pos_ff.CoreNet.0", v)))
    if s.get("prenorm", False):
        x = x + mixer(p, norm("dec_attn.layer_norm", x))
        return x + feed_forward(norm("pos_ff.layer_norm", x))
    x = norm("dec_attn.layer_norm", x + mixer(p, x))
    return norm("pos_ff.layer_norm", x + feed_forward(x))


def deltanet_shapes(s, layer):
    d, heads = s["width"], s["heads"]
    D, F = s.get("head_dim", 0) or d // heads, s.get("feed_forward", 0) or 4 * d
    shapes = linear_shapes("dec_attn.qkvb_net", heads * (3 * D + 1), d) | linear_shapes("dec_attn.o_net", d, heads * D)
    if s["block"] != "none":
        shapes |= norm_shapes("dec_attn.layer_norm", d) | norm_shapes("pos_ff.layer_norm", d)
        shapes |= linear_shapes("pos_ff.CoreNet.0", F, d, bias=True) | linear_shapes("pos_ff.CoreNet.3", d, F, bias=True)
    return shapes


def nothing_follows(ops, s, p, x):
    return {} if ops is None else x


def deltanet_case(name, settings, T, d_in, loss, seed):
    run_case(name, "deltanet", settings, T, d_in, loss, seed, deltanet_shapes, deltanet_layer, nothing_follows, deltanet, delta_pairs,
             "step loop from the equations of fast weight programmers, checked against its triangular system over all steps")


# -------------------------------------------------------------------------------------------------------------- mLSTM

def one_plus(p, name):
    """The norms store what is added to a scale of 1."""
    return 1.0 + p[f"{name}.weight"]


def mlstm_inputs(ops, s, p, x):
    """The branch z, the convolved branch, queries, scaled keys and values [steps, heads, D], gate pre-activations [steps, heads]. Of the plain cell
    these are the output gate and the input, of which all others are linear maps."""
    if s.get("cell") == "plain":
        q, k, v = (by_head(affine(p, f"{which}_proj", x), s["heads"]) for which in "qkv")
        i, f = (affine(p, f"{gate}gate", x) for gate in "if")
        return ops.sigmoid(affine(p, "ogate", x)), x, q, k * k.shape[2] ** -0.5, v, i, f if s.get("forget") == "exp" else ops.log_sigmoid(f)
    inner, z = ops.split(affine(p, "xlstm.proj_up", x), [len(p["xlstm.learnable_skip"])] * 2)
    c = ops.activation("silu", ops.convolve(inner, p["xlstm.conv1d.conv.weight"], p["xlstm.conv1d.conv.bias"])) if s["conv"] else inner
    found = []
    for which, source in (("q", c), ("k", c), ("v", inner)):
        W = p[f"xlstm.{which}_proj.weight"]
        y = (W[None] * by_head(source, len(W))[:, :, None, :]).sum(-1).reshape(inner.shape)
        found.append(y + p[f"xlstm.{which}_proj.bias"] if f"xlstm.{which}_proj.bias" in p else y)
    q, k, v = found
    i, f = (affine(p, f"xlstm.mlstm_cell.{gate}gate", ops.concatenate([q, k, v], -1)) for gate in "if")
    q, k, v = (by_head(y, s["heads"]) for y in (q, k, v))
    return z, c, q, k * k.shape[2] ** -0.5, v, i, f if s.get("forget") == "exp" else ops.log_sigmoid(f)


def mlstm_output(ops, s, p, z, c, h):
    h = h.reshape(c.shape)
    if s.get("cell") == "plain":
        return z * h
    if s.get("norm", True):
        h = ops.group_norm(h, one_plus(p, "xlstm.mlstm_cell.outnorm"), s["heads"])
    return affine(p, "xlstm.proj_down", (h + p["xlstm.learnable_skip"] * c) * ops.activation("silu", z))


def mlstm(record, layer, s, p, x):
    z, c, q, k, v, i, f = mlstm_inputs(Torch, s, p, x)
    heads, D = s["heads"], k.shape[2]
    C, n, m = torch.zeros(heads, D, D), torch.zeros(heads, D), torch.full((heads,), 0.0 if s.get("stabiliser_start", "zero") == "zero" else -1e30)
    reads = []
    for t in range(len(x)):
        kept = torch.exp(f[t])  # of C exp(m) and n exp(m), whatever m is
        record.transition(layer, torch.cat([kept.repeat_interleave(D * D), kept.repeat_interleave(D)]), constant=False)
        largest = torch.maximum(f[t] + m, i[t])
        forget, write = torch.exp(f[t] + m - largest)[:, None], torch.exp(i[t] - largest)[:, None]
        C = record.state(layer, "C", forget[:, :, None] * C + (write * k[t])[:, :, None] * v[t][:, None, :])
        n = record.state(layer, "n", forget * n + write * k[t])
        m = record.state(layer, "m", largest)
        floor = torch.maximum(torch.abs((n * q[t]).sum(1)), torch.exp(-m)) + s.get("eps", 1e-6)
        reads.append((C * q[t][:, :, None]).sum(1) / floor[:, None])
    return mlstm_output(Torch, s, p, z, c, torch.stack(reads))


def mlstm_pairs(s, p, x):
    """Weights exp(F_t - F_s + i_s - m_t) over all pairs; m_t is the largest exponent of the row, that of m = 0 at the start among them."""
    z, c, q, k, v, i, f = mlstm_inputs(Numpy, s, p, x)
    F = np.cumsum(f, axis=0).T
    exponents = np.where(np.tril(np.ones((len(x), len(x)))) > 0, F[:, :, None] - F[:, None, :] + i.T[:, None, :], -np.inf)
    m = exponents.max(2)[:, :, None] if s.get("stabiliser_start") == "none" else np.maximum(exponents.max(2), F)[:, :, None]
    scores = np.einsum("thk,shk->hts", q, k) * np.exp(exponents - m)
    floor = np.maximum(np.abs(scores.sum(2, keepdims=True)), np.exp(-m)) + s.get("eps", 1e-6)
    return mlstm_output(Numpy, s, p, z, c, np.einsum("hts,shv->thv", scores / floor, v))


def mlstm_layer(ops, mixer, s, p, x):
    return mixer(p, x) if s["block"] == "none" else x + mixer(p, ops.layer_norm(x, one_plus(p, "xlstm_norm")))


def xlstm_finish(ops, s, p, x):
    final = s["block"] != "none" and s.get("post_norm", True)
    if ops is None:
        return {"post_blocks_norm.weight": ((s["width"],), 0.3)} if final else {}
    return ops.layer_norm(x, one_plus(p, "post_blocks_norm")) if final else x


def mlstm_shapes(s, layer):
    if s.get("cell") == "plain":
        d, heads = s["width"], s["heads"]
        shapes = {}
        for which in "qkv":
            shapes |= linear_shapes(f"{which}_proj", d, d, s.get("bias", False))
        shapes |= {"igate.weight": ((heads, d), 0.5), "igate.bias": ((heads,), 1.0, -0.5), "fgate.weight": ((heads, d), 0.5), "fgate.bias": ((heads,), 0.5, 1.0)}
        shapes |= linear_shapes("ogate", d, d, True)
        return shapes if s["block"] == "none" else shapes | {"xlstm_norm.weight": ((d,), 0.3)}
    d, heads, inner, B, K, bias = s["width"], s["heads"], s["inner"], s["qkv_block"], s["conv"], s.get("bias", False)
    shapes = linear_shapes("xlstm.proj_up", 2 * inner, d, bias)
    if K:
        shapes |= {"xlstm.conv1d.conv.weight": ((inner, 1, K), 0.6), "xlstm.conv1d.conv.bias": ((inner,), 0.3)}
    for which in "qkv":
        shapes |= {f"xlstm.{which}_proj.weight": ((inner // B, B, B), 1.2)} | ({f"xlstm.{which}_proj.bias": ((inner,), 0.3)} if bias else {})
    shapes |= {"xlstm.mlstm_cell.igate.weight": ((heads, 3 * inner), 0.5), "xlstm.mlstm_cell.igate.bias": ((heads,), 1.0, -0.5),
               "xlstm.mlstm_cell.fgate.weight": ((heads, 3 * inner), 0.5), "xlstm.mlstm_cell.fgate.bias": ((heads,), 0.5, 1.0)}
    if s.get("norm", True):
        shapes |= {"xlstm.mlstm_cell.outnorm.weight": ((inner,), 0.3)}
    shapes |= {"xlstm.learnable_skip": ((inner,), 0.4, 1.0)}
    shapes |= linear_shapes("xlstm.proj_down", d, inner, bias)
    return shapes if s["block"] == "none" else shapes | {"xlstm_norm.weight": ((d,), 0.3)}


def mlstm_case(name, settings, T, d_in, loss, seed):
    run_case(name, "mlstm", settings, T, d_in, loss, seed, mlstm_shapes, mlstm_layer, xlstm_finish, mlstm, mlstm_pairs,
             "step loop from the equations of the xlstm package's mLSTM, checked against its form over pairs of steps")


# -------------------------------------------------------------------------------------------------------------- cases

def main():
    gla_case("gla", {"width": 8, "heads": 2, "layers": 1, "gate_rank": 3, "gate_normaliser": 2.0, "block": "none"}, 24, 8, "last", 101)
    block = {"width": 8, "heads": 2, "layers": 2, "gate_rank": 2, "feed_forward": 6, "block": "residual"}
    gla_case("gla-block", block, 16, 3, "mean", 102)
    shared = {"width": 8, "heads": 4, "kv_heads": 2, "layers": 1, "expand_k": 1.0, "expand_v": 1.5, "gate_rank": 2, "clamp_min": -0.1,
              "feature_map": "relu", "conv": 3, "conv_bias": True, "norm_affine": False, "norm_eps": 1e-5, "block": "none"}
    gla_case("gla-shared-keys", shared, 18, 8, "mean", 103)
    plain = {"width": 4, "heads": 2, "layers": 1, "gate_rank": 2, "conv": 2, "feature_map": "silu", "output_gate": False, "block": "none",
             "expand_k": 1.0}
    gla_case("gla-no-output-gate", plain, 18, 4, "last", 104)
    bare = {"width": 4, "heads": 2, "layers": 2, "gate_rank": 2, "norm": False, "expand_k": 1.0, "block": "none"}
    gla_case("gla-no-norm", bare, 18, 3, "mean", 105)

    fixed = {"width": 8, "heads": 2, "kv_heads": 1, "layers": 1, "decay": "fixed", "rotation": True, "expand_k": 1.0, "expand_v": 2.0, "conv": 2, "feed_forward": 6, "block": "residual"}
    gla_case("gla-retention", fixed, 14, 3, "mean", 106)
    gelus = {"width": 4, "heads": 2, "layers": 1, "decay": "fixed", "rotation": True, "expand_k": 1.0, "gate_fn": "gelu", "feature_map": "gelu", "block": "none"}
    gla_case("gla-retention-gelu", gelus, 12, 3, "mean", 116)
    small = {"width": 4, "heads": 2, "layers": 1, "gate_rank": 2, "expand_k": 1.0, "block": "none"}
    others = ("silu", "gelu", "relu", "sigmoid", "sqrelu", "logsigmoid")
    for i, gate in enumerate(others):  # each with the feature map after it
        gla_case(f"gla-gate-{gate}", small | {"gate_fn": gate, "feature_map": others[(i + 1) % 6], "rotation": i % 2 == 1}, 12, 3, "mean", 107 + i)

    retnet_case("retnet", {"width": 8, "heads": 2, "layers": 1, "block": "none"}, 24, 8, "last", 111)
    retnet_case("retnet-block", {"width": 8, "heads": 2, "layers": 2, "value_width": 6, "feed_forward": 5, "block": "residual"}, 16, 3, "mean", 112)
    raw = {"width": 8, "heads": 2, "layers": 1, "value_width": 4, "normaliser": "none", "norm": False, "gate": "none", "block": "none"}
    retnet_case("retnet-raw", raw, 24, 8, "mean", 113)
    deep = {"width": 4, "heads": 1, "layers": 2, "prenorm": False, "deepnorm": True, "gate": "gelu", "activation": "swish",
            "normaliser": "none", "norm_eps": 1e-5, "block": "residual"}
    retnet_case("retnet-deepnorm", deep, 16, 4, "last", 114)
    unit = {"width": 4, "heads": 2, "layers": 1, "feed_forward": 5, "activation": "relu", "block": "residual"}
    retnet_case("retnet-relu", unit, 14, 4, "mean", 118)
    still = {"width": 8, "heads": 2, "layers": 2, "value_width": 6, "feed_forward": 5, "rotation": False, "block": "residual"}
    retnet_case("retnet-no-rotation", still, 16, 3, "mean", 115)
    absolute = {"width": 8, "heads": 2, "layers": 1, "value_width": 4, "normaliser": "absolute", "norm": False, "block": "none"}
    retnet_case("retnet-absolute", absolute, 24, 8, "mean", 116)
    normed = {"width": 4, "heads": 2, "layers": 1, "feed_forward": 5, "normaliser": "absolute", "rotation": False, "block": "residual"}
    retnet_case("retnet-absolute-norm", normed, 18, 3, "last", 117)

    deltanet_case("deltanet", {"width": 6, "heads": 2, "layers": 1, "feature_map": "dpfp", "nu": 2, "block": "none"}, 20, 6, "last", 121)
    block = {"width": 6, "heads": 2, "head_dim": 2, "layers": 2, "feature_map": "elu", "feed_forward": 7, "block": "residual"}
    deltanet_case("deltanet-block", block, 16, 3, "mean", 122)
    free = {"width": 6, "heads": 2, "layers": 1, "feature_map": "none", "normalise": "none", "output_scale": False, "prenorm": True,
            "feed_forward": 5, "block": "residual"}
    deltanet_case("deltanet-no-normalisation", free, 16, 6, "mean", 123)
    one = {"width": 4, "heads": 1, "layers": 1, "feature_map": "dpfp", "nu": 1, "sum_eps": 0.0, "block": "none"}
    deltanet_case("deltanet-nu-1", one, 18, 4, "mean", 124)
    reading = {"width": 6, "heads": 2, "layers": 2, "feature_map": "elu", "attention_normaliser": "output", "feed_forward": 5, "block": "residual"}
    deltanet_case("deltanet-normalised-output", reading, 14, 3, "mean", 125)
    both = {"width": 6, "heads": 2, "layers": 1, "feature_map": "elu", "attention_normaliser": "both", "block": "none"}
    deltanet_case("deltanet-normalised", both, 18, 6, "last", 126)
    signed = {"width": 6, "heads": 2, "layers": 1, "feature_map": "none", "normalise": "none", "negative_eigenvalues": True, "block": "none"}
    deltanet_case("deltanet-negative-eigenvalues", signed, 18, 6, "mean", 127)

    mlstm_case("mlstm", {"width": 6, "heads": 2, "layers": 1, "inner": 8, "qkv_block": 4, "conv": 4, "block": "none"}, 24, 6, "mean", 131)
    block = {"width": 4, "heads": 2, "layers": 2, "inner": 8, "qkv_block": 2, "conv": 3, "bias": True, "block": "residual"}
    mlstm_case("mlstm-block", block, 16, 3, "mean", 135)
    bare = {"width": 4, "heads": 1, "layers": 1, "inner": 4, "qkv_block": 1, "conv": 1, "eps": 0.01, "post_norm": False, "block": "residual"}
    mlstm_case("mlstm-eps", bare, 20, 4, "last", 133)
    mlstm_case("mlstm-parallel", bare | {"stabiliser_start": "none", "layers": 1}, 16, 4, "mean", 137)
    mlstm_case("mlstm-exponential", {"width": 6, "heads": 2, "layers": 1, "inner": 8, "qkv_block": 4, "conv": 3, "forget": "exp", "block": "none"}, 10, 6, "mean", 138)
    mlstm_case("mlstm-no-norm", {"width": 6, "heads": 2, "layers": 2, "inner": 8, "qkv_block": 4, "conv": 2, "norm": False, "block": "none"}, 18, 3, "mean", 134)
    mlstm_case("mlstm-no-convolution", {"width": 6, "heads": 2, "layers": 1, "inner": 8, "qkv_block": 4, "conv": 0, "block": "none"}, 16, 3, "mean", 136)
    mlstm_case("mlstm-plain", {"width": 6, "heads": 2, "layers": 1, "cell": "plain", "eps": 0.0, "stabiliser_start": "none", "bias": True, "block": "none"}, 20, 6, "mean", 139)
    mlstm_case("mlstm-plain-block", {"width": 4, "heads": 2, "layers": 2, "cell": "plain", "block": "residual"}, 10, 3, "mean", 140)


if __name__ == "__main__":
    main()
