# SPDX-License-Identifier: GPL-3.0-or-later
"""RWKV-4 and sLSTM, whose exponential gates keep a running maximum, as step loops, each checked against a form without it.

RWKV-4  Peng et al. 2023; BlinkDL/RWKV-LM, RWKV-v4/src/model.py and cuda/wkv_cuda.cu (p, q, o).
sLSTM   Beck et al. 2024; NX-AI/xlstm, blocks/slstm: the vanilla step and its parameter layout, layer.py, xlstm_block.py, feedforward.py.
"""
import numpy as np
import torch

from harness import settle
from matrix_memory import by_head, one_plus, run_case, xlstm_finish
from parts import Numpy, Torch, affine, linear_shapes, norm_shapes, prefixed

# ------------------------------------------------------------------------------------------------------------- RWKV-4

def shifted(ops, x):
    """The sequence one step later, zero first."""
    return ops.concatenate([x[:1] * 0.0, x[:-1]], 0)


def mixed(ops, p, part, x, which):
    mix = p[f"{part}.time_mix_{which}"][0, 0]
    return x * mix + shifted(ops, x) * (1.0 - mix)


def time_mix_inputs(ops, p, x):
    k, v, r = (mixed(ops, p, "att", x, which) @ p[f"att.{name}.weight"].T
               for which, name in (("k", "key"), ("v", "value"), ("r", "receptance")))
    return k, v, ops.sigmoid(r)


def time_mix(record, layer, s, p, x):
    k, v, r = time_mix_inputs(Torch, p, x)
    u, w = p["att.time_first"], -torch.exp(p["att.time_decay"])
    numerator, denominator, o = torch.zeros_like(u), torch.zeros_like(u), torch.full_like(u, -1e38)
    reads = []
    for t in range(len(x)):
        record.transition(layer, torch.exp(w).repeat(2), constant=True)  # of p exp(o) and q exp(o), whatever o is
        n = torch.maximum(o, u + k[t])
        kept, write = torch.exp(o - n), torch.exp(u + k[t] - n)
        reads.append((kept * numerator + write * v[t]) / (kept * denominator + write))
        n = torch.maximum(o + w, k[t])
        kept, write = torch.exp(o + w - n), torch.exp(k[t] - n)
        numerator = record.state(layer, "p", kept * numerator + write * v[t])
        denominator = record.state(layer, "q", kept * denominator + write)
        o = record.state(layer, "o", n)
    return (r * torch.stack(reads)) @ p["att.output.weight"].T


def time_mix_pairs(s, p, x):
    """A softmax over all steps up to the current one, whose exponent has the bonus in place of the decay."""
    k, v, r = time_mix_inputs(Numpy, p, x)
    steps = np.arange(len(x))
    age = (steps[:, None] - 1 - steps[None, :])[:, :, None]
    exponents = np.where(age >= 0, k[None] - np.exp(p["att.time_decay"]) * age, -np.inf)
    exponents[steps, steps] = p["att.time_first"] + k
    return (r * (Numpy.softmax(exponents, 1) * v[None]).sum(1)) @ p["att.output.weight"].T


def channel_mix(ops, p, part, x):
    k = ops.activation("relu", mixed(ops, p, part, x, "k") @ p[f"{part}.key.weight"].T)
    return ops.sigmoid(mixed(ops, p, part, x, "r") @ p[f"{part}.receptance.weight"].T) * ((k * k) @ p[f"{part}.value.weight"].T)


def rwkv_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    if s["block"] == "channel_mix":
        return channel_mix(ops, p, "ffn", x)
    norm = lambda name, v: ops.layer_norm(v, p[f"{name}.weight"], p[f"{name}.bias"])
    x = norm("ln0", x) if "ln0.weight" in p else x
    x = x + (channel_mix(ops, p, "ffnPre", norm("ln1", x)) if "ffnPre.key.weight" in p else mixer(p, norm("ln1", x)))
    return x + channel_mix(ops, p, "ffn", norm("ln2", x))


def rwkv_finish(ops, s, p, x):
    final = s["block"] == "residual" and s.get("final_norm", True)
    if ops is None:
        return norm_shapes("ln_out", s["width"]) if final else {}
    return ops.layer_norm(x, p["ln_out.weight"], p["ln_out.bias"]) if final else x


def mix_shapes(C, names):
    return {f"time_mix_{name}": ((1, 1, C), 0.3, 0.5) for name in names}


def rwkv_shapes(s, layer):
    C, F = s["width"], s.get("feed_forward", 0) or 4 * s["width"]
    channel = mix_shapes(C, "kr") | linear_shapes("key", F, C) | linear_shapes("receptance", C, C) | linear_shapes("value", C, F)
    shapes = {}
    if s["block"] == "channel_mix":
        return prefixed("ffn.", channel)
    if s["block"] != "none":
        for name in ("ln0", "ln1", "ln2") if layer == 0 else ("ln1", "ln2"):
            shapes |= norm_shapes(name, C)
        shapes |= prefixed("ffn.", channel)
        if layer == 0 and s.get("ffn_pre", False):
            return shapes | prefixed("ffnPre.", channel)
    time = {"time_decay": ((C,), 0.8, -1.0), "time_first": ((C,), 0.8)} | mix_shapes(C, "kvr")
    for name in ("key", "value", "receptance", "output"):
        time |= linear_shapes(name, C, C)
    time["key.weight"] = ((C, C), 1.5 / C**0.5)
    return shapes | prefixed("att.", time)


def rwkv_case(name, settings, T, d_in, loss, seed):
    run_case(name, "rwkv-4", settings, T, d_in, loss, seed, rwkv_shapes, rwkv_layer, rwkv_finish, time_mix, time_mix_pairs,
             "step loop from the equations of RWKV-4, checked against its softmax over pairs of steps")


# -------------------------------------------------------------------------------------------------------------- sLSTM

def slstm_inputs(ops, s, p, x):
    """Pre-activations of the gates i, f, z, o without the recurrent part, [steps, 4, heads, D]. The layer feeds its `fgate` to i."""
    convolved = x
    if s["conv"]:
        convolved = ops.activation("silu", ops.convolve(x, p["xlstm.conv1d.conv.weight"], p["xlstm.conv1d.conv.bias"]))
    gates = []
    for gate, source in (("f", convolved), ("i", convolved), ("z", x), ("o", x)):
        gates.append((p[f"xlstm.{gate}gate.weight"][None] * by_head(source, s["heads"])[:, :, None, :]).sum(-1)[:, None])
    heads, D = s["heads"], s["width"] // s["heads"]
    return ops.concatenate(gates, 1) + p["xlstm.slstm_cell._bias_"].reshape(4, heads, D)


def slstm_output(ops, s, p, y):
    if not s.get("norm", True):
        return y
    weight = one_plus(p, "xlstm.group_norm") if s.get("norm_weight", True) else None
    return ops.group_norm(y, weight, s["heads"])


def slstm(record, layer, s, p, x):
    heads, D, H = s["heads"], s["width"] // s["heads"], s["width"]
    inputs = slstm_inputs(Torch, s, p, x)
    R = p["xlstm.slstm_cell._recurrent_kernel_"].reshape(heads, 4, D, D)
    y = c = n = m = torch.zeros(H)
    record.singular.add(layer)  # where m is the new input gate, scaling c and n against m changes nothing any more
    ys = []
    for t in range(len(x)):
        def step(y, c, n, m):
            i, f, z, o = (inputs[t] + (R * y.reshape(heads, 1, 1, D)).sum(3).transpose(0, 1)).reshape(4, H)
            decayed = (f if s.get("forget") == "exp" else torch.nn.functional.logsigmoid(f)) + m
            largest = i if torch.all(n == 0.0) else torch.maximum(i, decayed)
            write, forget = (torch.clamp(torch.exp(a - largest), max=1.0) for a in (i, decayed))
            c, n = forget * c + write * torch.tanh(z), forget * n + write
            return torch.sigmoid(o) * c / n, c, n, largest

        now = record.step(layer, step, y, c, n, m)
        y, c, n, m = (record.state(layer, name, value) for name, value in zip("ycnm", now))
        ys.append(y)
    return slstm_output(Torch, s, p, torch.stack(ys))


def slstm_unstabilised(s, p, x):
    """All steps at once, over and over until they agree, with c and n in plain units: no maximum and no first step apart."""
    heads, D, H = s["heads"], s["width"] // s["heads"], s["width"]
    inputs = slstm_inputs(Numpy, s, p, x)
    R = p["xlstm.slstm_cell._recurrent_kernel_"].reshape(heads, 4, D, D)

    def update(y, c, n):
        i, f, z, o = (inputs + np.einsum("hgji,thi->tghj", R, by_head(y, heads))).reshape(len(x), 4, H).transpose(1, 0, 2)
        forget = np.exp(f) if s.get("forget") == "exp" else Numpy.sigmoid(f)
        c, n = forget * c + np.exp(i) * np.tanh(z), forget * n + np.exp(i)
        return Numpy.sigmoid(o) * c / n, c, n

    return slstm_output(Numpy, s, p, settle(update, len(x), (H,), (H,), (H,))[0])


def slstm_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    x = x + mixer(p, ops.layer_norm(x, one_plus(p, "xlstm_norm")))
    if not s.get("ffn", True):
        return x
    up = affine(p, "ffn.proj_up", ops.layer_norm(x, one_plus(p, "ffn_norm")))
    gate, value = ops.split(up, [p["ffn.proj_down.weight"].shape[1]] * 2)
    activation = s.get("activation", "gelu")
    gate = ops.activation("relu", gate) ** 2 if activation == "relu^2" else ops.activation(activation, gate)
    return x + affine(p, "ffn.proj_down", gate * value)


def slstm_shapes(s, layer):
    H, heads = s["width"], s["heads"]
    D = H // heads
    shapes = {f"xlstm.{gate}gate.weight": ((heads, D, D), 1.0) for gate in "fizo"}
    if s["conv"]:
        shapes |= {"xlstm.conv1d.conv.weight": ((H, 1, s["conv"]), 0.8), "xlstm.conv1d.conv.bias": ((H,), 0.3)}
    shapes |= {"xlstm.slstm_cell._recurrent_kernel_": ((heads, 4 * D, D), 0.6), "xlstm.slstm_cell._bias_": ((4 * H,), 0.8)}
    if s.get("norm", True) and s.get("norm_weight", True):
        shapes |= {"xlstm.group_norm.weight": ((H,), 0.3)}
    if s["block"] == "none":
        return shapes
    shapes |= {"xlstm_norm.weight": ((H,), 0.3)}
    if s.get("ffn", True):
        F = s["feed_forward"]
        shapes |= {"ffn_norm.weight": ((H,), 0.3)} | linear_shapes("ffn.proj_up", 2 * F, H, s.get("ffn_bias", False)) | linear_shapes("ffn.proj_down", H, F, s.get("ffn_bias", False))
    return shapes


def slstm_case(name, settings, T, d_in, loss, seed):
    run_case(name, "slstm", settings, T, d_in, loss, seed, slstm_shapes, slstm_layer, xlstm_finish, slstm, slstm_unstabilised,
             "step loop from the equations of the xlstm package's sLSTM, checked against its unstabilised form")


def main():
    rwkv_case("rwkv-4", {"width": 6, "layers": 1, "block": "none"}, 24, 6, "last", 141)
    rwkv_case("rwkv-4-block", {"width": 6, "layers": 2, "block": "residual", "feed_forward": 8}, 18, 3, "mean", 142)
    rwkv_case("rwkv-4-ffn-pre", {"width": 4, "layers": 2, "block": "residual", "ffn_pre": True}, 16, 4, "mean", 143)
    rwkv_case("rwkv-4-no-final-norm", {"width": 4, "layers": 2, "block": "residual", "feed_forward": 6, "final_norm": False}, 16, 3, "last", 144)
    rwkv_case("rwkv-4-channel-mix", {"width": 5, "layers": 2, "block": "channel_mix", "feed_forward": 7}, 12, 3, "mean", 145)

    slstm_case("slstm", {"width": 6, "heads": 2, "layers": 1, "conv": 4, "block": "none"}, 24, 6, "last", 151)
    slstm_case("slstm-block", {"width": 6, "heads": 2, "layers": 2, "conv": 3, "feed_forward": 5, "block": "residual"}, 14, 3, "mean", 152)
    bare = {"width": 4, "heads": 1, "layers": 1, "conv": 0, "norm_weight": False, "ffn": False, "post_norm": False, "block": "residual"}
    slstm_case("slstm-no-convolution", bare, 18, 4, "mean", 153)
    relu = {"width": 4, "heads": 2, "layers": 1, "conv": 2, "feed_forward": 6, "activation": "relu", "block": "residual"}
    slstm_case("slstm-relu", relu, 14, 4, "mean", 154)
    for seed, activation in enumerate(("swish", "sigmoid", "selu"), 156):
        slstm_case(f"slstm-{activation}", relu | {"layers": 1, "activation": activation}, 12, 4, "mean", seed)
    slstm_case("slstm-relu-squared", relu | {"width": 6, "activation": "relu^2", "ffn_bias": True}, 12, 6, "mean", 159)
    slstm_case("slstm-exponential", {"width": 4, "heads": 2, "layers": 1, "conv": 2, "forget": "exp", "norm": False, "block": "none"}, 16, 4, "mean", 160)
    slstm_case("slstm-no-norm", {"width": 4, "heads": 2, "layers": 2, "conv": 2, "norm": False, "block": "none"}, 16, 3, "mean", 155)


if __name__ == "__main__":
    main()
