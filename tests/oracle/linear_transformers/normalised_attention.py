# SPDX-License-Identifier: GPL-3.0-or-later
"""TransNormer (Qin et al. 2022) and TransNormerLLM (Qin et al. 2023): linear attention with a norm in place of a denominator. Step loops,
checked against masked matrices of all pairs of steps."""
import math

import numpy as np
import torch

from feature_attention import by_head, fairseq_finish, flat, function_of, projected, projections, run_case
from parts import Numpy, Torch, affine, linear_shapes, norm_shapes


# -------------------------------------------------------------------------------------------------------------- TransNormer

def transnormer_defaults(s):
    return {"local_layers": 0, "chunk": 32, "local_attention": "relu", "feature_map": "elu+1", "norm": "layer", "local_norm": "gated-rms", "norm_eps": 1e-8,
            "block_norm": "layer", "glu": False, "glu_activation": "silu", "prenorm": True, "activation": "relu"} | s


def read_norm(ops, s, p, name, kind, x):
    if kind == "layer":
        return ops.layer_norm(x, p[f"{name}.weight"], p[f"{name}.bias"])
    size = torch.linalg.vector_norm(x, dim=-1) if ops is Torch else np.linalg.norm(x, axis=-1)  # which has the slope 0 at 0
    unit = x / (size[..., None] * x.shape[-1] ** -0.5 + s["norm_eps"])
    if kind == "srms":
        return unit
    return unit * p[f"{name}.scale"] * (ops.sigmoid(p[f"{name}.gate"] * x) if kind == "gated-rms" else 1.0)


def read_norm_shapes(name, kind, d):
    if kind == "layer":
        return norm_shapes(name, d)
    return ({} if kind == "srms" else {f"{name}.scale": ((d,), 0.3, 1.0)}) | ({f"{name}.gate": ((d,), 0.5, 1.0)} if kind == "gated-rms" else {})


def is_local(s, layer):
    return layer < s["local_layers"]


def transnormer_output(ops, s, layer, p, o):
    o = flat(o)
    if not is_local(s, layer):
        o = read_norm(ops, s, p, "self_attn.layer_norm", s["norm"], o)
    elif s["local_attention"] == "relu":
        o = read_norm(ops, s, p, "self_attn.gated_rms_norm", s["local_norm"], o)
    return affine(p, "self_attn.out_proj", o)


def transnormer(record, layer, s, p, x):
    q, k, v = projected(s, p, x)
    reads = []
    if is_local(s, layer):
        if s["local_attention"] == "softmax":  # what all keys have in common changes no softmax
            record.still.add(f"{layer}/self_attn.k_proj.bias")
        past = []  # keys and values of the block so far
        for t in range(len(x)):
            past = past if t % s["chunk"] else []
            past.append((record.state(layer, "k", k[t]), record.state(layer, "v", v[t])))
            keys, values = torch.stack([one[0] for one in past]), torch.stack([one[1] for one in past])
            scores = (keys * (q[t] * q.shape[2] ** -0.5)).sum(2)
            weights = torch.softmax(scores, 0) if s["local_attention"] == "softmax" else torch.relu(scores)
            reads.append((weights[:, :, None] * values).sum(0))
    else:
        q, k = function_of(Torch, s["feature_map"], q), function_of(Torch, s["feature_map"], k)
        S = torch.zeros(k.shape[1], k.shape[2], v.shape[2])
        for t in range(len(x)):
            record.transition(layer, torch.ones(S.numel()), constant=True)
            S = record.state(layer, "S", S + k[t][:, :, None] * v[t][:, None, :])
            reads.append((S * q[t][:, :, None]).sum(1))
    return transnormer_output(Torch, s, layer, p, torch.stack(reads))


def transnormer_pairs(s, layer, p, x):
    q, k, v = projected(s, p, x)
    steps = np.arange(len(x))
    if is_local(s, layer):
        seen = (steps[:, None] >= steps) & (steps[:, None] // s["chunk"] == steps // s["chunk"])
        scores = np.einsum("thk,shk->hts", q, k) / math.sqrt(q.shape[2])
        weights = Numpy.softmax(np.where(seen, scores, -math.inf), 2) if s["local_attention"] == "softmax" else Numpy.activation("relu", np.where(seen, scores, 0.0))
    else:
        q, k = function_of(Numpy, s["feature_map"], q), function_of(Numpy, s["feature_map"], k)
        weights = np.tril(np.einsum("thk,shk->hts", q, k))
    return transnormer_output(Numpy, s, layer, p, np.einsum("hts,shv->thv", weights, v))


def evo_layer(ops, mixer, s, p, x):
    """fairseq-evo's decoder layer."""
    if s["block"] == "none":
        return mixer(p, x)

    def norm(name, v):
        if s["block_norm"] == "srms":
            return v / (ops.sqrt((v * v).sum(-1))[:, None] * v.shape[1] ** -0.5 + 1e-8)
        return ops.layer_norm(v, p[f"{name}.weight"], p[f"{name}.bias"])

    def feed_forward(v):
        if s["glu"]:
            return affine(p, "glu.l3", function_of(ops, s["glu_activation"], affine(p, "glu.l1", v)) * affine(p, "glu.l2", v))
        return affine(p, "fc2", ops.activation(s["activation"], affine(p, "fc1", v)))
    if s["prenorm"]:
        x = x + mixer(p, norm("self_attn_layer_norm", x))
        return x + feed_forward(norm("final_layer_norm", x))
    x = norm("self_attn_layer_norm", x + mixer(p, x))
    return norm("final_layer_norm", x + feed_forward(x))


def transnormer_shapes(s, layer):
    d = s["width"]
    shapes = projections(s)
    if not is_local(s, layer):
        shapes |= read_norm_shapes("self_attn.layer_norm", s["norm"], d)
    elif s["local_attention"] == "relu":
        shapes |= read_norm_shapes("self_attn.gated_rms_norm", s["local_norm"], d)
    if s["block"] == "none":
        return shapes
    if s["block_norm"] == "layer":
        shapes |= norm_shapes("self_attn_layer_norm", d) | norm_shapes("final_layer_norm", d)
    if s["glu"]:
        F = s.get("feed_forward", 0) or 8 * d // 3
        return shapes | linear_shapes("glu.l1", F, d, bias=True) | linear_shapes("glu.l2", F, d, bias=True) | linear_shapes("glu.l3", d, F, bias=True)
    F = s.get("feed_forward", 0) or 4 * d
    return shapes | linear_shapes("fc1", F, d, bias=True) | linear_shapes("fc2", d, F, bias=True)


def transnormer_case(name, settings, T, d_in, loss, seed):
    full = transnormer_defaults({"layers": 1, "block": "none"} | settings)
    run_case(name, "transnormer", settings, full, T, d_in, loss, seed, transnormer_shapes, evo_layer, fairseq_finish, transnormer, transnormer_pairs,
             "step loop from the equations of fairseq-evo's norm_linear_attention.py and norm_local_attention.py, checked against masked matrices", by_layer=True)



# -------------------------------------------------------------------------------------------------------------- TransNormerLLM

def llm_defaults(s):
    return {"mixer": "llm", "inner": 0, "glu_width": 0, "activation": "silu", "v_activation": False, "lrpe_layers": 1, "decay": True, "norm": "srms", "norm_eps": 1e-6,
            "bias": False, "final_norm": True} | s


def slopes(heads):
    """The authors' table, from ALiBi."""
    def power_of_2(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start ** i for i in range(n)]
    if math.log2(heads).is_integer():
        return power_of_2(heads)
    closest = 2 ** math.floor(math.log2(heads))
    return power_of_2(closest) + slopes(2 * closest)[0::2][: heads - closest]


def rates(s, layer):
    if not s["decay"]:
        return np.zeros(s["heads"])
    return np.array(slopes(s["heads"])) * ((1 - layer / (s["layers"] - 1) if s["layers"] > 1 else 1.0) + 1e-5)


def llm_norm(ops, s, p, name, kind, x):
    if kind == "layer":
        return ops.layer_norm(x, p[f"{name}.weight"], p[f"{name}.bias"])
    return ops.rms_norm(x, p[f"{name}.weight"] if kind == "rms" else None, s["norm_eps"])


def llm_inputs(ops, s, layer, p, x):
    """q, k, v by head, not turned, and the gate."""
    if s["mixer"] == "tnl":
        q, k, v = (affine(p, f"token_mixer.{which}_proj", x) for which in "qkv")
        gate = ops.sigmoid(affine(p, "token_mixer.output_gate.1", affine(p, "token_mixer.output_gate.0", x)))
    else:
        I = s["inner"] or s["width"]
        q, k, v, gate = ops.split(affine(p, "token_mixer.qkvu_proj", x), [I] * 4)
    act = lambda y: function_of(ops, s["activation"], y)
    return by_head(act(q), s["heads"]), by_head(act(k), s["heads"]), by_head(act(v) if s["v_activation"] else v, s["heads"]), gate


def llm_output(ops, s, p, o, gate):
    o = gate * llm_norm(ops, s, p, "token_mixer.norm", "layer" if s["mixer"] == "tnl" else s["norm"], flat(o))
    return affine(p, "token_mixer.o_proj" if s["mixer"] == "tnl" else "token_mixer.out_proj", o)


def llm(record, layer, s, p, x):
    q, k, v, gate = llm_inputs(Torch, s, layer, p, x)
    if layer < s["lrpe_layers"]:
        angle = p["token_mixer.lrpe.theta"][:, 0] * torch.arange(len(x), dtype=torch.float64)[:, None, None]
        q, k = (torch.cat([y * torch.cos(angle), y * torch.sin(angle)], -1) for y in (q, k))
    kept = torch.exp(-torch.tensor(rates(s, layer)))
    S, reads = torch.zeros(k.shape[1], k.shape[2], v.shape[2]), []
    for t in range(len(x)):
        record.transition(layer, kept.repeat_interleave(S[0].numel()), constant=True)
        S = record.state(layer, "S", kept[:, None, None] * S + k[t][:, :, None] * v[t][:, None, :])
        reads.append((S * q[t][:, :, None]).sum(1))
    return llm_output(Torch, s, p, torch.stack(reads), gate)


def llm_pairs(s, layer, p, x):
    """exp(-s (t - j)) cos(theta (t - j)) over all pairs."""
    q, k, v, gate = llm_inputs(Numpy, s, layer, p, x)
    steps = np.arange(len(x))
    lags = np.maximum(steps[:, None] - steps, 0)
    if layer < s["lrpe_layers"]:
        scores = np.einsum("thk,shk,htsk->hts", q, k, np.cos(p["token_mixer.lrpe.theta"][:, None] * lags[None, :, :, None]))
    else:
        scores = np.einsum("thk,shk->hts", q, k)
    weights = np.tril(scores * np.exp(-rates(s, layer)[:, None, None] * lags))
    return llm_output(Numpy, s, p, np.einsum("hts,shv->thv", weights, v), gate)


def llm_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    x = x + mixer(p, llm_norm(ops, s, p, "token_norm", s["norm"], x))
    z = llm_norm(ops, s, p, "channel_norm", s["norm"], x)
    return x + affine(p, "channel_mixer.l3", affine(p, "channel_mixer.l1", z) * affine(p, "channel_mixer.l2", z))


def llm_norm_shapes(name, kind, d):
    return {"layer": norm_shapes(name, d), "rms": norm_shapes(name, d, bias=False), "srms": {}}[kind]


def llm_finish(ops, s, p, x):
    use = s["block"] != "none" and s["final_norm"]
    if ops is None:
        return llm_norm_shapes("final_norm", s["norm"], s["width"]) if use else {}
    return llm_norm(ops, s, p, "final_norm", s["norm"], x) if use else x


def llm_shapes(s, layer):
    d, heads, bias = s["width"], s["heads"], s["bias"]
    tnl = s["mixer"] == "tnl"
    I = d if tnl else s["inner"] or d
    if tnl:
        shapes = {}
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            shapes |= linear_shapes(f"token_mixer.{name}", d, d, bias)
        shapes |= linear_shapes("token_mixer.output_gate.0", d // heads, d, bias) | linear_shapes("token_mixer.output_gate.1", d, d // heads, bias)
    else:
        shapes = linear_shapes("token_mixer.qkvu_proj", 4 * I, d, bias) | linear_shapes("token_mixer.out_proj", d, I, bias)
    shapes |= llm_norm_shapes("token_mixer.norm", "layer" if tnl else s["norm"], I)
    if layer < s["lrpe_layers"]:
        shapes |= {"token_mixer.lrpe.theta": ((heads, 1, I // heads), 0.3, 0.4)}
    if s["block"] != "none":
        F = s["glu_width"] or d
        shapes |= llm_norm_shapes("token_norm", s["norm"], d) | llm_norm_shapes("channel_norm", s["norm"], d)
        shapes |= linear_shapes("channel_mixer.l1", F, d, bias) | linear_shapes("channel_mixer.l2", F, d, bias) | linear_shapes("channel_mixer.l3", d, F, bias)
    return shapes


def llm_case(name, settings, T, d_in, loss, seed):
    full = llm_defaults({"layers": 1, "block": "none"} | settings)
    run_case(name, "transnormer-llm", settings, full, T, d_in, loss, seed, llm_shapes, llm_layer, llm_finish, llm, llm_pairs,
             "step loop from the equations of modeling_transnormer.py and tnl_attn.py, checked against their form over all pairs", by_layer=True)


# -------------------------------------------------------------------------------------------------------------- cases

def main():
    base = {"width": 6, "heads": 2, "layers": 1, "block": "none"}
    transnormer_case("transnormer", base, 16, 6, "last", 621)
    transnormer_case("transnormer-local", base | {"layers": 2, "local_layers": 1, "chunk": 4, "local_attention": "softmax", "norm": "rms", "feature_map": "relu"}, 11, 3, "mean", 622)
    transnormer_case("transnormer-local-relu", base | {"local_layers": 1, "chunk": 5, "local_attention": "relu", "norm_eps": 0.1}, 13, 6, "mean", 623)
    transnormer_case("transnormer-local-relu-layer", base | {"local_layers": 1, "chunk": 3, "local_attention": "relu", "local_norm": "layer"}, 13, 6, "mean", 624)
    transnormer_case("transnormer-local-relu-rms", base | {"local_layers": 1, "chunk": 1, "local_attention": "relu", "local_norm": "rms", "norm_eps": 0.1}, 10, 6, "mean", 637)
    transnormer_case("transnormer-local-relu-srms", base | {"local_layers": 1, "chunk": 6, "local_attention": "relu", "local_norm": "srms", "norm_eps": 0.1}, 10, 6, "mean", 626)
    transnormer_case("transnormer-srms", base | {"norm": "srms", "feature_map": "silu", "norm_eps": 0.1}, 12, 6, "mean", 627)
    transnormer_case("transnormer-gated", base | {"norm": "gated-rms", "feature_map": "identity"}, 12, 6, "last", 628)
    block = {"width": 4, "heads": 2, "layers": 2, "feed_forward": 5, "block": "residual"}
    transnormer_case("transnormer-block", block | {"local_layers": 1, "chunk": 4, "local_attention": "softmax"}, 12, 3, "mean", 629)
    transnormer_case("transnormer-block-glu", block | {"layers": 1, "glu": True, "block_norm": "srms", "final_norm": False}, 12, 4, "last", 630)
    for seed, act in enumerate(["identity", "relu", "gelu"], 631):
        transnormer_case(f"transnormer-glu-{act}", block | {"layers": 1, "glu": True, "glu_activation": act, "feed_forward": 0}, 10, 4, "mean", seed)
    transnormer_case("transnormer-block-postnorm", block | {"layers": 1, "prenorm": False, "activation": "gelu"}, 12, 4, "last", 634)

    llm_case("transnormer-llm", base, 18, 6, "last", 641)
    llm_case("transnormer-llm-plain", base | {"decay": False, "lrpe_layers": 0, "inner": 4, "activation": "elu+1", "bias": True, "norm": "layer"}, 14, 6, "mean", 642)
    llm_case("transnormer-llm-tnl", base | {"mixer": "tnl", "lrpe_layers": 0, "v_activation": True, "layers": 2}, 14, 3, "mean", 643)
    llm_case("transnormer-llm-relu", base | {"heads": 3, "activation": "relu", "norm": "rms", "norm_eps": 0.01}, 14, 6, "mean", 644)
    llm_case("transnormer-llm-identity", base | {"activation": "identity"}, 12, 6, "mean", 645)
    llm_case("transnormer-llm-block", {"width": 4, "heads": 2, "layers": 3, "glu_width": 5, "norm": "rms", "block": "residual"}, 12, 3, "mean", 646)
    llm_case("transnormer-llm-block-bare", {"width": 4, "heads": 2, "layers": 1, "final_norm": False, "block": "residual"}, 12, 4, "last", 647)


if __name__ == "__main__":
    main()
