# SPDX-License-Identifier: GPL-3.0-or-later
"""Fast weights whose programmer sees their output, or that program themselves, as step loops over rows as the authors write them, each checked
against rounds of all steps at once on the transposes; and fast weights that only add, checked against their masked T x T product.

Recurrent DeltaNet, delta RNN  Irie et al. 2021; IDSIA/recurrent-fwp (rec_update_fwm_tanh, fast_weight_rnn_v2) and IDSIA/lmtool-fwp, cuda_fast_weight_layer.py.
SRWM                           Irie et al. 2022; IDSIA/modern-srwm, layer.py and self_ref_v0.
DeltaNet, update=sum           Schlag et al. 2021; IDSIA/lmtool-fwp, CudaFastWeightSumLinearTransformerLayer.
"""
import numpy as np
import torch

from harness import settle
from matrix_memory import (by_head, delta_feature, delta_output, deltanet, delta_pairs, deltanet_layer, deltanet_shapes, nothing_follows,
                           numpy_delta_feature, run_case)
from parts import Numpy, Torch, affine, linear_shapes, norm_shapes


def soft(z, eps=0.0):
    weights = np.exp(z - z.max(-1, keepdims=True))
    return weights / (weights.sum(-1, keepdims=True) + eps)


def torch_soft(z, eps=0.0):
    weights = torch.exp(z - torch.amax(z, -1, keepdim=True))  # of equal entries, as at the start, all share the slope
    return weights / (weights.sum(-1, keepdim=True) + eps)


def block(ops, mixer, s, p, x):
    """The authors' language model's, with the normalised input as the residual where that is asked for."""
    if s.get("block") != "none" and s.get("prenorm", False) and s.get("normalised_residual", False):
        norm = lambda name, v: ops.layer_norm(v, p[f"{name}.weight"], p[f"{name}.bias"])
        x = norm("dec_attn.layer_norm", x)
        x = x + mixer(p, x)
        return x + affine(p, "pos_ff.CoreNet.3", ops.activation("relu", affine(p, "pos_ff.CoreNet.0", norm("pos_ff.layer_norm", x))))
    return deltanet_layer(ops, mixer, s, p, x)


# ---------------------------------------------------------------------------------------- DeltaNet with sums, and its other residual

def sum_inputs(ops, s, p, x, feature):
    """Queries and keys through the feature map and divided by their sums, and values."""
    heads = s["heads"]
    D = s.get("head_dim", 0) or s["width"] // heads
    q, k, v = ops.split(by_head(x @ p["dec_attn.qkv_net.weight"].T, heads), [D, D, D])
    q, k = feature(s, q), feature(s, k)
    if s.get("normalise", "sum") == "sum":
        q, k = (z / (z.sum(-1)[..., None] + s.get("sum_eps", 1e-5)) for z in (q, k))
    return q, k, v


def adding(record, layer, s, p, x):
    q, k, v = sum_inputs(Torch, s, p, x, delta_feature)
    S, z, reads = torch.zeros(k.shape[1], k.shape[2], v.shape[2]), torch.zeros(k.shape[1], k.shape[2]), []
    for t in range(len(x)):
        record.transition(layer, torch.ones_like(S), constant=True)
        if s.get("attention_normaliser", "none") == "output":
            z = record.state(layer, "z", z + k[t])
        S = record.state(layer, "S", S + k[t][:, :, None] * v[t][:, None, :])
        read = (S * q[t][:, :, None]).sum(1)
        reads.append(read / ((z * q[t]).sum(1, keepdim=True) + 1e-5) if s.get("attention_normaliser", "none") == "output" else read)
    return delta_output(s, p, torch.stack(reads))


def adding_pairs(s, p, x):
    q, k, v = sum_inputs(Numpy, s, p, x, numpy_delta_feature)
    scores = np.tril(np.einsum("thk,shk->hts", q, k))
    read = np.einsum("hts,shv->thv", scores, v)
    if s.get("attention_normaliser", "none") == "output":
        read = read / (scores.sum(2).T[:, :, None] + 1e-5)
    return delta_output(s, p, read)


def adding_shapes(s, layer):
    heads = s["heads"]
    shapes = deltanet_shapes(s, layer)
    rows = heads * 3 * (s.get("head_dim", 0) or s["width"] // heads)
    del shapes["dec_attn.qkvb_net.weight"]
    return linear_shapes("dec_attn.qkv_net", rows, s["width"]) | shapes


def deltanet_case(name, settings, T, d_in, loss, seed):
    adds = settings.get("update", "delta") == "sum"
    run_case(name, "deltanet", settings, T, d_in, loss, seed, adding_shapes if adds else deltanet_shapes, block, nothing_follows, adding if adds else deltanet,
             adding_pairs if adds else delta_pairs, "step loop from the equations of lmtool-fwp, checked against its form over pairs of steps")


# ------------------------------------------------------------------------------------------------------------- Recurrent DeltaNet

def recurrent_inputs(ops, s, p, x):
    heads = s["heads"]
    D = s.get("head_dim", 0) or s["width"] // heads
    if s.get("variant", "deltanet") == "deltanet":
        return ops.split(by_head(x @ p["dec_attn.slow_net.weight"].T, heads), [D, D, D, 1])
    q, k, v, rec_k, rec_v, beta, rec_beta = ops.split(by_head(x @ p["dec_attn.qkvb_net.weight"].T, heads), [D] * 5 + [1, 1])
    feature = delta_feature if ops is Torch else numpy_delta_feature
    q, k = (feature({"feature_map": "elu"}, z) for z in (q, k))
    if s.get("sum_norm", True):
        q, k = q / q.sum(-1)[..., None], k / k.sum(-1)[..., None]
    return q, k, v, ops.sigmoid(beta), ops.softmax(rec_k, -1), rec_v, ops.sigmoid(rec_beta)


def recurrent_deltanet(record, layer, s, p, x):
    parts = recurrent_inputs(Torch, s, p, x)
    heads, D = parts[0].shape[1], parts[0].shape[2]
    rnn = s.get("variant", "deltanet") == "rnn"
    R_q, R_k, R_v, r_b = (None,) * 4 if rnn else (p[f"dec_attn.{name}"][0] for name in ("R_q", "R_k", "R_v", "r_b"))
    sizes = [heads * D * D] * (2 if rnn else 1) + [heads * D]
    shapes = [(heads, D, D)] * (2 if rnn else 1) + [(heads, D)]
    state, outputs = [torch.zeros(shape) for shape in shapes], []
    record.singular.add(layer)  # where o moves the logits of a softmax alike, nothing sees it; what else it moves S can undo
    if D > 2 and not rnn:
        record.defective.add(layer)  # the eigenvalue 1 has fewer eigenvectors than its multiplicity, since o moves what is written into S
    rows = lambda v, R: torch.bmm(v[:, None, :], R)[:, 0]  # v R of each head
    write = lambda S, k, v, beta: S + torch.bmm(k[:, :, None], (beta * (v - rows(k, S)))[:, None, :])
    for t in range(len(x)):
        now = [part[t] for part in parts]

        def step(flat):
            held = [one.reshape(shape) for one, shape in zip(torch.split(flat, sizes), shapes)]
            if rnn:
                S, R = write(held[0], *now[1:4]), write(held[1], *now[4:7])
                made = [S, R, rows(now[0], S) + rows(torch_soft(held[2], 1e-6), R)]
            else:
                last = torch.tanh(held[1])
                q, k, v = torch.softmax(now[0] + rows(last, R_q), -1), torch.softmax(now[1] + rows(last, R_k), -1), now[2] + rows(last, R_v)
                share = now[3] + (last * r_b[:, 0]).sum(1, keepdim=True)
                S = write(held[0], k, v, share if s.get("share") == "plain" else torch.sigmoid(share))
                made = [S, rows(q, S) + rows(last, p["dec_attn.R_y"][0]) if s.get("output_feedback") else rows(q, S)]
            return (torch.cat([one.reshape(-1) for one in made]),)

        after = record.step(layer, step, torch.cat([one.reshape(-1) for one in state]))[0]
        state = [record.state(layer, name, one.reshape(shape)) for name, one, shape in zip(("S", "R", "o") if rnn else ("S", "o"), torch.split(after, sizes), shapes)]
        outputs.append(state[-1])
    return delta_output(s, p, torch.stack(outputs))


def recurrent_rounds(s, p, x):
    parts = recurrent_inputs(Numpy, s, p, x)
    T, heads, D = parts[0].shape
    times = lambda M, v: np.einsum("thij,thj->thi", M, v)  # here a row of a fast matrix is a value
    write = lambda W, k, v, beta: W + np.einsum("thi,thj->thij", beta * (v - times(W, k)), k)
    if s.get("variant", "deltanet") == "rnn":
        q, k, v, beta, rec_k, rec_v, rec_beta = parts

        def update(S, R, o):
            S, R = write(S, k, v, beta), write(R, rec_k, rec_v, rec_beta)
            return S, R, times(S, q) + times(R, soft(o, 1e-6))

        return delta_output(s, p, settle(update, T, (heads, D, D), (heads, D, D), (heads, D))[2])
    R_q, R_k, R_v, r_b = (p[f"dec_attn.{name}"][0] for name in ("R_q", "R_k", "R_v", "r_b"))
    owed = lambda R, v: np.einsum("hij,thi->thj", R, v)

    def update(S, o):
        last = np.tanh(o)
        q, k, v = soft(parts[0] + owed(R_q, last)), soft(parts[1] + owed(R_k, last)), parts[2] + owed(R_v, last)
        beta = parts[3] + np.einsum("hj,thj->th", r_b[:, 0], last)[:, :, None]
        S = write(S, k, v, beta if s.get("share") == "plain" else Numpy.sigmoid(beta))
        return S, times(S, q) + (owed(p["dec_attn.R_y"][0], last) if s.get("output_feedback") else 0.0)

    return delta_output(s, p, settle(update, T, (heads, D, D), (heads, D))[1])


def recurrent_shapes(s, layer):
    heads, d = s["heads"], s["width"]
    D = s.get("head_dim", 0) or d // heads
    shapes = deltanet_shapes(s, layer)
    del shapes["dec_attn.qkvb_net.weight"]
    if s.get("variant", "deltanet") == "rnn":
        return linear_shapes("dec_attn.qkvb_net", heads * (5 * D + 2), d) | shapes
    scale = D ** -0.5
    return linear_shapes("dec_attn.slow_net", heads * (3 * D + 1), d) | shapes | {f"dec_attn.{name}": ((1, heads, D, D), scale) for name in ("R_q", "R_k", "R_v") + (("R_y",) if s.get("output_feedback") else ())} | {"dec_attn.r_b": ((1, heads, 1, D), scale)}


def recurrent_case(name, settings, T, d_in, loss, seed):
    run_case(name, "recurrent-deltanet", settings, T, d_in, loss, seed, recurrent_shapes, block, nothing_follows, recurrent_deltanet, recurrent_rounds,
             "step loop from the equations of recurrent-fwp, checked against rounds of all steps at once")


# ---------------------------------------------------------------------------------------------------------------------------- SRWM

PARTS = ("W_y", "W_q", "W_k", "w_b")


def srwm(record, layer, s, p, x):
    heads = s["heads"]
    D = s["width"] // heads
    u = by_head(x, heads)
    u = torch.softmax(u, -1) if s.get("input_softmax", False) else u
    shapes = [(heads, D, D)] * 3 + [(heads, D, 4)]
    sizes = [heads * D * columns for columns in (D, D, D, 4)]
    rows = lambda v, W: torch.bmm(v[:, None, :], W)[:, 0]
    if D > 2:
        record.defective.add(layer)  # the eigenvalue 1 has fewer eigenvectors than its multiplicity, since W_q, W_k and w_b move what is written into all
    slow, state, outputs = [p[name][0] for name in PARTS], [torch.zeros(shape) for shape in shapes], []
    for t in range(len(x)):
        def step(flat):
            W = [one.reshape(shape) + base for one, shape, base in zip(torch.split(flat, sizes), shapes, slow)]
            q, k, beta = torch.softmax(rows(u[t], W[1]), -1), torch.softmax(rows(u[t], W[2]), -1), torch.sigmoid(rows(u[t], W[3]))
            after = [one + torch.bmm(k[:, :, None], (beta[:, i:i + 1] * (rows(q, one) - rows(k, one)))[:, None, :]) for i, one in enumerate(W)]
            return (torch.cat([(one - base).reshape(-1) for one, base in zip(after, slow)]),)

        flat = torch.cat([one.reshape(-1) for one in state])
        outputs.append(rows(u[t], slow[0] + state[0]))
        after = record.step(layer, step, flat)[0]
        state = [record.state(layer, f"d{name}", one.reshape(shape)) for name, one, shape in zip(PARTS, torch.split(after, sizes), shapes)]
    return torch.stack(outputs).reshape(len(x), -1) @ p["out_linear.weight"].T


def srwm_rounds(s, p, x):
    heads = s["heads"]
    T, D = len(x), s["width"] // heads
    u = soft(by_head(x, heads)) if s.get("input_softmax", False) else by_head(x, heads)
    times = lambda M, v: np.einsum("thij,thj->thi", M, v)
    slow = [p[name][0].transpose(0, 2, 1) for name in PARTS]  # here each row gives one output

    def update(*shift):
        W = [base + one for base, one in zip(slow, shift)]
        q, k, beta = soft(times(W[1], u)), soft(times(W[2], u)), Numpy.sigmoid(times(W[3], u))
        return tuple(one + np.einsum("thi,thj->thij", beta[..., i:i + 1] * times(M, q - k), k) for i, (one, M) in enumerate(zip(shift, W)))

    held = settle(update, T, *[one.shape for one in slow])
    before = np.concatenate([np.zeros_like(held[0][:1]), held[0][:-1]])
    return times(slow[0] + before, u).reshape(T, -1) @ p["out_linear.weight"].T


def srwm_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    norm = lambda name, v: ops.layer_norm(v, p[f"{name}.weight"], p[f"{name}.bias"])
    x = (norm("layer_norm", x) if s.get("use_ln", True) else x) + mixer(p, x)
    return x + affine(p, "ff.ff_layers.3", ops.activation("relu", affine(p, "ff.ff_layers.0", norm("ff.layer_norm", x))))


def srwm_shapes(s, layer):
    heads, d = s["heads"], s["width"]
    D, F = d // heads, s.get("feed_forward", 0) or 4 * d
    shapes = {f"{name}": ((1, heads, D, D), 1.3 * D ** -0.5) for name in PARTS[:3]} | {"w_b": ((1, heads, D, 4), 0.8, 0.2)} | linear_shapes("out_linear", d, d)
    if s["block"] != "none":
        if s.get("use_ln", True):
            shapes |= norm_shapes("layer_norm", d)
        shapes |= linear_shapes("ff.ff_layers.0", F, d, bias=True) | linear_shapes("ff.ff_layers.3", d, F, bias=True) | norm_shapes("ff.layer_norm", d)
    return shapes


def srwm_case(name, settings, T, d_in, loss, seed):
    run_case(name, "srwm", settings, T, d_in, loss, seed, srwm_shapes, srwm_layer, nothing_follows, srwm, srwm_rounds,
             "step loop from the equations of modern-srwm, checked against rounds of all steps at once")


# --------------------------------------------------------------------------------------------------------------------------- cases

def main():
    added = {"width": 6, "heads": 2, "layers": 1, "update": "sum", "feature_map": "elu", "normalise": "none", "attention_normaliser": "output", "feed_forward": 5, "block": "residual"}
    deltanet_case("deltanet-sum", added, 14, 3, "mean", 401)
    deltanet_case("deltanet-sum-dpfp", {"width": 4, "heads": 2, "layers": 1, "update": "sum", "feature_map": "dpfp", "nu": 2, "block": "none"}, 14, 4, "last", 402)
    other = {"width": 4, "heads": 2, "layers": 2, "feature_map": "elu", "prenorm": True, "normalised_residual": True, "feed_forward": 5, "block": "residual"}
    deltanet_case("deltanet-normalised-residual", other, 12, 3, "mean", 403)

    recurrent_case("recurrent-deltanet", {"width": 4, "heads": 2, "layers": 1, "block": "none"}, 14, 4, "mean", 411)
    deep = {"width": 4, "heads": 2, "layers": 2, "feed_forward": 5, "block": "residual"}
    recurrent_case("recurrent-deltanet-block", deep, 10, 3, "mean", 412)
    before = {"width": 4, "heads": 1, "head_dim": 3, "layers": 1, "output_scale": False, "prenorm": True, "feed_forward": 5, "block": "residual"}
    recurrent_case("recurrent-deltanet-prenorm", before, 12, 4, "last", 413)
    recurrent_case("recurrent-deltanet-feedback", {"width": 4, "heads": 2, "layers": 1, "output_feedback": True, "share": "plain", "block": "none"}, 14, 4, "mean", 416)
    recurrent_case("recurrent-deltanet-rnn", {"width": 4, "heads": 2, "layers": 1, "variant": "rnn", "block": "none"}, 12, 3, "mean", 414)
    free = {"width": 4, "heads": 2, "layers": 1, "variant": "rnn", "sum_norm": False, "prenorm": True, "normalised_residual": True, "feed_forward": 5, "block": "residual"}
    recurrent_case("recurrent-deltanet-rnn-block", free, 10, 4, "mean", 415)

    srwm_case("srwm", {"width": 4, "heads": 1, "layers": 1, "block": "none"}, 12, 4, "mean", 421)
    srwm_case("srwm-block", {"width": 4, "heads": 2, "layers": 2, "feed_forward": 5, "block": "residual"}, 12, 3, "mean", 422)
    rl = {"width": 4, "heads": 2, "layers": 1, "input_softmax": True, "use_ln": False, "feed_forward": 5, "block": "residual"}
    srwm_case("srwm-reinforcement", rl, 12, 4, "last", 423)


if __name__ == "__main__":
    main()
