# SPDX-License-Identifier: GPL-3.0-or-later
"""The Token Turing machine, step by step with the tokens as rows, checked against rounds of all steps at once.

Ryoo et al. 2023; google-research/scenic, projects/token_turing/model.py (TokenTuringMachineUnit and TokenTuringMachineSimpleUnit).
"""
import math

import numpy as np
import torch

from harness import draw, make, settle, under
from parts import encoder_shapes, prefixed

DEFAULTS = {"unit": "full", "memory_mode": "TL", "processing_unit": "transformer", "position": False}


def given(s):
    return {**DEFAULTS, **s}


# ------------------------------------------------------------------------------------------------------- one step, rows as tokens

def norm(p, name, x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], p[f"{name}.scale"], p[f"{name}.bias"], 1e-6)


def mlp(p, name, x):
    hidden = torch.nn.functional.gelu(x @ p[f"{name}.Dense_0.kernel"] + p[f"{name}.Dense_0.bias"], approximate="tanh")
    return hidden @ p[f"{name}.Dense_1.kernel"] + p[f"{name}.Dense_1.bias"]


def attention(p, name, x, y):
    """Query by query, head by head."""
    rows = []
    for row in x:
        out = p[f"{name}.out.bias"]
        for h in range(p[f"{name}.query.kernel"].shape[1]):
            q, k, v = (z @ p[f"{name}.{which}.kernel"][:, h] + p[f"{name}.{which}.bias"][h] for which, z in (("query", row), ("key", y), ("value", y)))
            out = out + (torch.softmax(k @ q / math.sqrt(len(q)), 0) @ v) @ p[f"{name}.out.kernel"][h]
        rows.append(out)
    return torch.stack(rows)


def learner(p, name, y):
    weights = torch.softmax(mlp(p, f"{name}.token_masking", norm(p, f"{name}.LayerNorm_0", y)), 0)
    return weights.T @ y


def process(s, p, z):
    if s["processing_unit"] == "transformer":
        z = z + p["Encoder_0.posembed_input.pos_embedding"][0]
        for i in range(s["depth"]):
            at = f"Encoder_0.encoderblock_{i}."
            x = norm(p, at + "LayerNorm_0", z)
            z = z + attention(p, at + "MultiHeadDotProductAttention_0", x, x)
            z = z + mlp(p, at + "MlpBlock_0", norm(p, at + "LayerNorm_1", z))
        return norm(p, "Encoder_0.encoder_norm", z)
    if s["processing_unit"] == "mixer":
        for i in range(s["depth"]):
            at = f"MixerBlock_{i}."
            z = z + mlp(p, at + "token_mixing", norm(p, at + "LayerNorm_0", z).T).T
            z = z + mlp(p, at + "channel_mixing", norm(p, at + "LayerNorm_1", z))
        return norm(p, "LayerNorm_0", z)
    for i in range(s["depth"]):
        z = mlp(p, f"MlpBlock_{i}", norm(p, f"LayerNorm_{i}", z))
    return norm(p, f"LayerNorm_{s['depth']}", z)


def unit(s, p, memory, x):
    """The new memory and what comes out, of the memory [M, d] and the tokens of a step [n, d]."""
    if s["unit"] == "simple":
        out = process(s, p, torch.cat([memory, learner(p, "TokenLearnerModuleV11_0", x)]))
        return out[s["process"]:], out[: s["process"]]
    all_tokens = torch.cat([memory, x])
    if s["position"]:
        all_tokens = all_tokens + p["read_pos_embed.pos_embedding"][0]
    attends = s["memory_mode"] == "TL-MHA"
    z = attention(p, "TokenLearnerMHA_0.attn", p["TokenLearnerMHA_0.tokens"][0], all_tokens) if attends else learner(p, "TokenLearnerModuleV11_0", all_tokens)
    out = process(s, p, z)
    if s["memory_mode"] == "TL-AddErase":
        at = "TokenAddEraseWrite_0."
        selected = torch.softmax(mlp(p, at + "MlpBlock_0", norm(p, at + "LayerNorm_0", memory)), 0).T  # [tokens, rows]
        e = mlp(p, at + "MlpBlock_2", mlp(p, at + "MlpBlock_1", norm(p, at + "LayerNorm_1", out).T).T)
        a = mlp(p, at + "MlpBlock_4", mlp(p, at + "MlpBlock_3", norm(p, at + "LayerNorm_2", out).T).T)
        return memory * torch.prod(1.0 - selected[:, :, None] * e[:, None, :], 0) + torch.mean(1.0 - selected[:, :, None] * a[:, None, :], 0), out
    all_tokens = torch.cat([memory, x, out])
    if s["position"]:
        all_tokens = all_tokens + p["write_pos_embed.pos_embedding"][0]
    if attends:
        return attention(p, "TokenLearnerMHA_1.attn", p["TokenLearnerMHA_1.tokens"][0], all_tokens), out
    return learner(p, "TokenLearnerModuleV11_1", all_tokens), out


def steps(record, s, p, x):
    shape = (s["memory"], s["width"])
    memory, outputs = torch.zeros(shape), []
    if s["unit"] == "simple":
        record.singular.add(0)  # the last norm takes a mean and a length off each row
    for t in range(len(x)):
        tokens = x[t].reshape(s["tokens"], s["width"])
        outputs.append(unit(s, p, memory, tokens)[1].reshape(-1))
        after, = record.step(0, lambda flat: (unit(s, p, flat.reshape(shape), tokens)[0].reshape(-1),), memory.reshape(-1))
        memory = record.state(0, "memory", after.reshape(shape))
    return torch.stack(outputs)


# --------------------------------------------------------------------------------------------- all steps at once, with products as sums

def centred(p, name, x):
    y = x - x.mean(-1, keepdims=True)
    return y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-6) * p[f"{name}.scale"] + p[f"{name}.bias"]


def two_maps(p, name, x, axis=-1):
    """Along an axis of x."""
    x = np.moveaxis(x, axis, -1)
    z = np.einsum("...i,io->...o", x, p[f"{name}.Dense_0.kernel"]) + p[f"{name}.Dense_0.bias"]
    hidden = z / (1.0 + np.exp(-2.0 * math.sqrt(2.0 / math.pi) * (z + 0.044715 * z**3)))
    return np.moveaxis(np.einsum("...i,io->...o", hidden, p[f"{name}.Dense_1.kernel"]) + p[f"{name}.Dense_1.bias"], -1, axis)


def shares(scores, axis):
    weights = np.exp(scores - scores.max(axis, keepdims=True))
    return weights / weights.sum(axis, keepdims=True)


def heads(p, name, x, y):
    project = lambda which, z: np.einsum("...rd,dhk->...hrk", z, p[f"{name}.{which}.kernel"]) + p[f"{name}.{which}.bias"][:, None, :]
    q, v = project("query", x), project("value", y)
    k = np.einsum("...rd,dhk->...hrk", y, p[f"{name}.key.kernel"])  # without what is added to all keys alike
    weights = shares(np.einsum("...hik,...hjk->...hij", q, k) / math.sqrt(q.shape[-1]), -1)
    return np.einsum("...hij,...hjk,hkd->...id", weights, v, p[f"{name}.out.kernel"]) + p[f"{name}.out.bias"]


def weighed(p, name, y):
    return np.einsum("tys,tyd->tsd", shares(two_maps(p, f"{name}.token_masking", centred(p, f"{name}.LayerNorm_0", y)), 1), y)


def processed(s, p, z):
    kind = s["processing_unit"]
    if kind == "transformer":
        z = z + p["Encoder_0.posembed_input.pos_embedding"]
    for i in range(s["depth"]):
        if kind == "transformer":
            q = under(p, f"Encoder_0.encoderblock_{i}.")
            x = centred(q, "LayerNorm_0", z)
            z = z + heads(q, "MultiHeadDotProductAttention_0", x, x)
            z = z + two_maps(q, "MlpBlock_0", centred(q, "LayerNorm_1", z))
        elif kind == "mixer":
            q = under(p, f"MixerBlock_{i}.")
            z = z + two_maps(q, "token_mixing", centred(q, "LayerNorm_0", z), 1)
            z = z + two_maps(q, "channel_mixing", centred(q, "LayerNorm_1", z))
        else:
            z = two_maps(p, f"MlpBlock_{i}", centred(p, f"LayerNorm_{i}", z))
    return centred(p, {"transformer": "Encoder_0.encoder_norm", "mixer": "LayerNorm_0", "mlp": f"LayerNorm_{s['depth']}"}[kind], z)


def all_units(s, p, memory, x):
    """memory [T, M, d] before each step, x [T, n, d]."""
    P, mode = s["process"], s["memory_mode"]
    if s["unit"] == "simple":
        out = processed(s, p, np.concatenate([memory, weighed(p, "TokenLearnerModuleV11_0", x)], 1))
        return out[:, P:], out[:, :P]

    def summary(n, y):
        return heads(p, f"TokenLearnerMHA_{n}.attn", np.broadcast_to(p[f"TokenLearnerMHA_{n}.tokens"], (len(y), *p[f"TokenLearnerMHA_{n}.tokens"].shape[1:])), y) if mode == "TL-MHA" \
            else weighed(p, f"TokenLearnerModuleV11_{n}", y)

    y = np.concatenate([memory, x], 1)
    out = processed(s, p, summary(0, y + (p["read_pos_embed.pos_embedding"] if s["position"] else 0.0)))
    if mode != "TL-AddErase":
        y = np.concatenate([y, out], 1)
        return summary(1, y + (p["write_pos_embed.pos_embedding"] if s["position"] else 0.0)), out
    q = under(p, "TokenAddEraseWrite_0.")
    selected = shares(two_maps(q, "MlpBlock_0", centred(q, "LayerNorm_0", memory)), 1)  # [T, rows, tokens]
    made = lambda n: two_maps(q, f"MlpBlock_{2 * n}", two_maps(q, f"MlpBlock_{2 * n - 1}", centred(q, f"LayerNorm_{n}", out), 1))
    kept = np.ones_like(memory)
    for i in range(selected.shape[2]):
        kept = kept * (1.0 - selected[:, :, i, None] * made(1)[:, i, None, :])
    return memory * kept + 1.0 - np.einsum("tri,tid->trd", selected, made(2)) / selected.shape[2], out


def rounds(s, p, x):
    tokens = x.reshape(len(x), s["tokens"], s["width"])
    memory, = settle(lambda before: (all_units(s, p, before, tokens)[0],), len(x), (s["memory"], s["width"]))
    return all_units(s, p, np.concatenate([np.zeros_like(memory[:1]), memory[:-1]]), tokens)[1].reshape(len(x), -1)


# ------------------------------------------------------------------------------------------------------------------------------ files

def shapes_of(s):
    d, n, M, P, F, B = s["width"], s["tokens"], s["memory"], s["process"], s.get("feed_forward", 0) or 4 * s["width"], s["bottleneck"]
    mode, made = s["memory_mode"], {}

    def add_norm(name):
        made.update({f"{name}.scale": ((d,), 0.3, 1.0), f"{name}.bias": ((d,), 0.3)})

    def add_mlp(name, a, b, c):
        for number, (rows, columns) in enumerate(((a, b), (b, c))):
            made.update({f"{name}.Dense_{number}.kernel": ((rows, columns), 1.0 / math.sqrt(rows)), f"{name}.Dense_{number}.bias": ((columns,), 0.3)})

    def add_attention(name, h):
        for which in ("query", "key", "value"):
            made.update({f"{name}.{which}.kernel": ((d, h, d // h), 1.0 / math.sqrt(d)), f"{name}.{which}.bias": ((h, d // h), 0.3)})
        made.update({f"{name}.out.kernel": ((h, d // h, d), 1.0 / math.sqrt(d)), f"{name}.out.bias": ((d,), 0.3)})

    def add_summary(number, tokens):
        if mode == "TL-MHA" and s["unit"] == "full":
            made[f"TokenLearnerMHA_{number}.tokens"] = ((1, tokens, d), 0.7)
            add_attention(f"TokenLearnerMHA_{number}.attn", s["summary_heads"])
        else:
            add_norm(f"TokenLearnerModuleV11_{number}.LayerNorm_0")
            add_mlp(f"TokenLearnerModuleV11_{number}.token_masking", d, B, tokens)

    add_summary(0, P)
    if s["position"]:
        made["read_pos_embed.pos_embedding"] = ((1, M + n, d), 0.5)
        made["write_pos_embed.pos_embedding"] = ((1, M + n + P, d), 0.5)
    rows = M + P if s["unit"] == "simple" else P
    if s["processing_unit"] == "transformer":
        made["Encoder_0.posembed_input.pos_embedding"] = ((1, rows, d), 0.5)
        add_norm("Encoder_0.encoder_norm")
    elif s["processing_unit"] == "mixer":
        add_norm("LayerNorm_0")
    else:
        add_norm(f"LayerNorm_{s['depth']}")
    for i in range(s["depth"]):
        if s["processing_unit"] == "mlp":
            add_norm(f"LayerNorm_{i}")
            add_mlp(f"MlpBlock_{i}", d, F, d)
            continue
        at = f"Encoder_0.encoderblock_{i}." if s["processing_unit"] == "transformer" else f"MixerBlock_{i}."
        add_norm(at + "LayerNorm_0")
        add_norm(at + "LayerNorm_1")
        if s["processing_unit"] == "transformer":
            add_attention(at + "MultiHeadDotProductAttention_0", s["heads"])
            add_mlp(at + "MlpBlock_0", d, F, d)
        else:
            add_mlp(at + "token_mixing", rows, s["sequence_mlp"], rows)
            add_mlp(at + "channel_mixing", d, F, d)
    if s["unit"] == "full" and mode == "TL-AddErase":
        for number, (a, c) in enumerate(((d, s["write_tokens"]), (P, s["write_tokens"]), (d, d), (P, s["write_tokens"]), (d, d))):
            add_mlp(f"TokenAddEraseWrite_0.MlpBlock_{number}", a, B, c)
        for number in range(3):
            add_norm(f"TokenAddEraseWrite_0.LayerNorm_{number}")
    elif s["unit"] == "full":
        add_summary(1, M)
    return made


def still(s, name):
    """Whether a parameter adds the same to all entries of a softmax or to all that a norm sees, or only moves the selection among rows that are alike."""
    if name.endswith((".key.bias", "token_masking.Dense_1.bias", "token_mixing.Dense_1.bias")):
        return True
    return name.startswith("TokenAddEraseWrite_0.MlpBlock_0.") or name.startswith("TokenAddEraseWrite_0.LayerNorm_0.")


def case(name, settings, T, d_in, loss, seed):
    s = given(settings)
    width = s["width"] * s["tokens"]
    shapes = encoder_shapes(width, d_in) | prefixed("0/", shapes_of(s))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def entered(p, y):
        return y @ p["encoder/weight"].T + p["encoder/bias"] if "encoder/weight" in p else y

    def forward(record, parameters, inputs):
        record.still |= {key for key in parameters if key.startswith("0/") and still(s, key[2:])}
        return steps(record, s, under(parameters, "0/"), entered(parameters, inputs))

    make(name, "token-turing-machine", settings, loss, "step by step from scenic's units, checked against rounds of all steps at once", draw(seed, shapes), x, forward,
         second=lambda p, y: rounds(s, under(p, "0/"), entered(p, y)), seed=seed)


def main():
    small = {"width": 4, "tokens": 2, "memory": 3, "process": 2, "depth": 1, "heads": 2, "feed_forward": 3, "bottleneck": 3}
    case("token-turing-machine", small, 9, 3, "mean", 2201)
    case("token-turing-machine-attention", small | {"memory_mode": "TL-MHA", "processing_unit": "mixer", "summary_heads": 2, "sequence_mlp": 3, "position": True, "tokens": 1, "memory": 2}, 8, 4, "mean", 2202)
    erase = {"memory_mode": "TL-AddErase", "processing_unit": "mlp", "write_tokens": 3, "position": True, "feed_forward": 4, "depth": 2}
    case("token-turing-machine-erase", small | erase, 7, 3, "mean", 2213)
    case("token-turing-machine-simple", small | {"unit": "simple", "memory": 2}, 9, 3, "last", 2204)


if __name__ == "__main__":
    main()
