# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers with softmax attention, token by token with a growing list of keys and values, each checked against whole matrices.

Transformer     Vaswani et al. 2017; torch.nn.TransformerEncoderLayer with a causal mask, compared with it too; rotary positions of RoFormer.
Transformer-XL  Dai et al. 2019; kimiyoung/transformer-xl, pytorch/mem_transformer.py (RelPartialLearnableDecoderLayer, _update_mems).
Recurrent memory transformer  Bulatov et al. 2022; booydar/recurrent-memory-transformer, language_modeling.py, round GPT-2.
"""
import math

import numpy as np
import torch

from harness import draw, loss_of, make, under
from matrix_memory import by_head, nothing_follows
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack


def attend(q, keys, values, extra=0.0):
    """One query [heads, D] over lists of keys and values; extra is added to the scores [heads, rows] before the scale."""
    K, V = torch.stack(keys, 1), torch.stack(values, 1)
    weights = torch.softmax(((K * q[:, None, :]).sum(2) + extra) * q.shape[1] ** -0.5, dim=1)
    return (weights[:, :, None] * V).sum(1).reshape(-1)


def masked_softmax(scores, visible):
    return Numpy.softmax(np.where(visible, scores, -np.inf), scores.ndim - 1)


# -------------------------------------------------------------------------------------------------------- Transformer

def sinusoids(steps, width):
    phase = np.arange(steps)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    return np.stack([np.sin(phase), np.cos(phase)], axis=2).reshape(steps, width)


def transformer_inputs(s, p, x):
    heads = s["heads"]
    y = x @ p["self_attn.in_proj_weight"].T
    y = y + p["self_attn.in_proj_bias"] if "self_attn.in_proj_bias" in p else y
    d = s["width"]
    return by_head(y[:, :d], heads), by_head(y[:, d: 2 * d], heads), by_head(y[:, 2 * d:], heads)


def rotate(s, x, t):
    """The pairs (2i, 2i + 1) of each head turned by t base^(-2i/D), with a matrix of rotations."""
    if s["position"] != "rotary":
        return x
    D = x.shape[1]
    R = torch.zeros(D, D)
    for i in range(0, D, 2):
        angle = t * s.get("rotary_base", 10000.0) ** (-i / D)
        R[i, i] = R[i + 1, i + 1] = math.cos(angle)
        R[i + 1, i], R[i, i + 1] = math.sin(angle), -math.sin(angle)
    return x @ R.T


def transformer(record, layer, s, p, x):
    q, k, v = transformer_inputs(s, p, x)
    keys, values, reads = [], [], []
    for t in range(len(x)):
        keys.append(record.state(layer, "k", rotate(s, k[t], t)))
        values.append(record.state(layer, "v", v[t]))
        first = max(0, t + 1 - s["window"]) if s.get("window", 0) else 0
        reads.append(attend(rotate(s, q[t], t), keys[first:], values[first:]))
    return affine(p, "self_attn.out_proj", torch.stack(reads))


def transformer_matrix(s, p, x):
    q, k, v = transformer_inputs(s, p, x)
    steps = np.arange(len(x))
    if s["position"] == "rotary":
        D = q.shape[2]
        turn = np.exp(1j * np.outer(steps, s.get("rotary_base", 10000.0) ** (-np.arange(0, D, 2) / D)))[:, None]
        q, k = ((z[..., 0::2] + 1j * z[..., 1::2]) * turn for z in (q, k))
        scores = np.einsum("thi,shi->hts", q, k.conj()).real * D**-0.5
    else:
        scores = np.einsum("thi,shi->hts", q, k) * q.shape[2] ** -0.5
    age = steps[:, None] - steps[None, :]
    visible = (age >= 0) & (age < (s.get("window", 0) or len(x)))
    return affine(p, "self_attn.out_proj", np.einsum("hts,shi->thi", masked_softmax(scores, visible), v).reshape(x.shape))


def transformer_layer(ops, mixer, s, layer, p, x):
    if layer == 0 and s["position"] == "sinusoidal":
        P = sinusoids(len(x), s["width"])
        x = x + (torch.tensor(P) if ops is Torch else P)
    if s["block"] == "none":
        return mixer(p, x)
    norm = lambda name, v: ops.layer_norm(v, p[f"{name}.weight"], p.get(f"{name}.bias"), s.get("norm_eps", 1e-5))
    feed_forward = lambda v: affine(p, "linear2", ops.activation(s.get("activation", "relu"), affine(p, "linear1", v)))
    if s.get("prenorm", False):
        x = x + mixer(p, norm("norm1", x))
        return x + feed_forward(norm("norm2", x))
    x = norm("norm1", x + mixer(p, x))
    return norm("norm2", x + feed_forward(x))


def transformer_finish(ops, s, p, x):
    if s["block"] == "none" or not s.get("final_norm", True):
        return x
    return ops.layer_norm(x, p["norm.weight"], p.get("norm.bias"), s.get("norm_eps", 1e-5))


def built_in(s):
    """torch.nn.TransformerEncoder with the same weights; positions and window as in the settings, no rotary ones."""
    def run(values, x, loss):
        steps, bias = len(x), s.get("bias", True)
        layer = torch.nn.TransformerEncoderLayer(s["width"], s["heads"], s["feed_forward"], dropout=0.0, activation=s.get("activation", "relu"),
                                                 layer_norm_eps=s.get("norm_eps", 1e-5), norm_first=s.get("prenorm", False), bias=bias)
        final = torch.nn.LayerNorm(s["width"], eps=s.get("norm_eps", 1e-5), bias=bias) if s.get("final_norm", True) else None
        encoder = torch.nn.TransformerEncoder(layer, s["layers"], norm=final, enable_nested_tensor=False)
        names = {key: f"layers.{key.replace('/', '.', 1)}" if key[0].isdigit() else key.replace("final/", "") for key in values}
        names = {key: name for key, name in names.items() if not key.startswith("encoder/")}
        encoder.load_state_dict({name: torch.tensor(values[key]) for key, name in names.items()})
        inputs = torch.tensor(x, requires_grad=True)
        age = torch.arange(steps)[:, None] - torch.arange(steps)[None, :]
        hidden = (age < 0) | (age >= (s.get("window", 0) or steps))
        y = inputs + torch.tensor(sinusoids(steps, s["width"])) if s["position"] == "sinusoidal" else inputs
        output = encoder(y[:, None, :], mask=torch.where(hidden, -torch.inf, 0.0))[:, 0]
        loss_of(output, loss).backward()
        found = dict(encoder.named_parameters())
        gradients = {key: found[name].grad.numpy() for key, name in names.items()} | {"input": inputs.grad.numpy()}
        return output.detach().numpy(), gradients
    return run


def transformer_case(name, s, T, d_in, loss, seed):
    d, F, bias = s["width"], s.get("feed_forward", 0) or 4 * s["width"], s.get("bias", True)
    shapes = encoder_shapes(d, d_in)
    for layer in range(s["layers"]):
        one = {"self_attn.in_proj_weight": ((3 * d, d), 1.5 / math.sqrt(d))} | linear_shapes("self_attn.out_proj", d, d, bias)
        if bias:
            one |= {"self_attn.in_proj_bias": ((3 * d,), 0.3)}
        if s["block"] != "none":
            one |= linear_shapes("linear1", F, d, bias) | linear_shapes("linear2", d, F, bias)
            one |= norm_shapes("norm1", d, bias) | norm_shapes("norm2", d, bias)
        shapes |= prefixed(f"{layer}/", one)
    if s["block"] != "none" and s.get("final_norm", True):
        shapes |= norm_shapes("final/norm", d, bias)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def run(ops, mixer_of):
        one = lambda layer, p, v: transformer_layer(ops, mixer_of(layer), s, layer, p, v)
        return stack(one, lambda p, v: transformer_finish(ops, s, p, v), s)

    def forward(record, parameters, inputs):
        return run(Torch, lambda layer: lambda p, v: transformer(record, layer, s, p, v))(parameters, inputs)

    theirs = built_in(s) if s["block"] != "none" and s["position"] != "rotary" and d_in == d else None
    make(name, "transformer", s, loss, "token by token, checked against masked matrices and torch.nn.TransformerEncoder", draw(seed, shapes), x,
         forward, second=run(Numpy, lambda layer: lambda p, v: transformer_matrix(s, p, v)), builtin=theirs, seed=seed)


# ----------------------------------------------------------------------------------------------------- Transformer-XL

def relative(s, distances):
    """Sines, then cosines, of the distances, cut at clamp_length."""
    if s.get("clamp_length", 0):
        distances = np.minimum(distances, s["clamp_length"])
    d = s["width"]
    phase = np.asarray(distances, dtype=np.float64)[..., None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    return np.concatenate([np.sin(phase), np.cos(phase)], axis=-1)


def xl_attention(record, layer, s, p, x):
    heads, norm = s["heads"], lambda v: v
    if s["block"] != "none" and s.get("prenorm", False):
        norm = lambda v: Torch.layer_norm(v, p["dec_attn.layer_norm.weight"], p["dec_attn.layer_norm.bias"])
    W_q, W_k, W_v = torch.chunk(p["dec_attn.qkv_net.weight"], 3)
    past, rows, reads = [], [], []  # the memory, without gradient if so set; the rows of this segment
    for t in range(len(x)):
        if t and t % s["segment"] == 0:
            past = past + [row.detach() if s.get("stop_gradient", True) else row for row in rows]
            past, rows = past[max(0, len(past) - s["memory"]):], []
        rows.append(record.state(layer, "h", x[t]))
        seen = past + rows
        if s.get("same_length", False) and s["memory"]:
            seen = seen[-s["memory"]:]
        keys = [(W_k @ norm(row)).reshape(heads, -1) for row in seen]
        values = [(W_v @ norm(row)).reshape(heads, -1) for row in seen]
        R = torch.tensor(relative(s, np.arange(len(seen) - 1, -1, -1)))
        r = (R @ p["dec_attn.r_net.weight"].T).reshape(len(seen), heads, -1).transpose(0, 1)
        q = (W_q @ norm(x[t])).reshape(heads, -1)
        position = (r * (q + p["r_r_bias"])[:, None, :]).sum(2)
        reads.append(attend(q + p["r_w_bias"], keys, values, position))
    return torch.stack(reads) @ p["dec_attn.o_net.weight"].T


def xl_visible(s, steps):
    t, j = np.arange(steps)[:, None], np.arange(steps)[None, :]
    start = t - t % s["segment"]
    visible = (j <= t) & (j >= start - s["memory"])
    if s.get("same_length", False) and s["memory"]:
        visible &= t - j < s["memory"]
    return visible, j < start


def xl_matrix(s, p, x, frozen):
    """One T x T matrix for all segments; reads of the memory come from `frozen`, the layer's input as it was at first."""
    heads = s["heads"]
    visible, remembered = xl_visible(s, len(x))
    norm = lambda v: v
    if s["block"] != "none" and s.get("prenorm", False):
        norm = lambda v: Numpy.layer_norm(v, p["dec_attn.layer_norm.weight"], p["dec_attn.layer_norm.bias"])
    W_q, W_k, W_v = np.split(p["dec_attn.qkv_net.weight"], 3)
    q = by_head(norm(x) @ W_q.T, heads)
    distance = np.maximum(np.arange(len(x))[:, None] - np.arange(len(x))[None, :], 0)
    r = (relative(s, distance) @ p["dec_attn.r_net.weight"].T).reshape(len(x), len(x), heads, -1)
    scores = np.einsum("thi,tshi->hts", q + p["r_r_bias"], r)
    sources = [(norm(frozen), remembered), (norm(x), ~remembered)]
    for rows, where in sources:
        scores = scores + np.where(where, np.einsum("thi,shi->hts", q + p["r_w_bias"], by_head(rows @ W_k.T, heads)), 0.0)
    weights = masked_softmax(scores * q.shape[2] ** -0.5, visible)
    read = sum(np.einsum("hts,shi->thi", np.where(where, weights, 0.0), by_head(rows @ W_v.T, heads)) for rows, where in sources)
    return read.reshape(len(x), -1) @ p["dec_attn.o_net.weight"].T


def xl_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    norm = lambda name, v: ops.layer_norm(v, p[f"{name}.weight"], p[f"{name}.bias"])
    feed_forward = lambda v: affine(p, "pos_ff.CoreNet.3", ops.activation("relu", affine(p, "pos_ff.CoreNet.0", v)))
    if s.get("prenorm", False):
        x = x + mixer(p, x)  # it norms its queries, keys and values itself: the memory holds the layer's input as it is
        return x + feed_forward(norm("pos_ff.layer_norm", x))
    x = norm("dec_attn.layer_norm", x + mixer(p, x))
    return norm("pos_ff.layer_norm", x + feed_forward(x))


def tied(s, parameters):
    """With shared biases those of the first layer stand for all."""
    if not s.get("shared_biases", False):
        return parameters
    return parameters | {f"{layer}/{name}": parameters[f"0/{name}"] for layer in range(s["layers"]) for name in ("r_w_bias", "r_r_bias")}


def xl_case(name, s, T, d_in, loss, seed):
    d, heads, F = s["width"], s["heads"], s.get("feed_forward", 0) or 4 * s["width"]
    D = s.get("head_dim", 0) or d // heads
    shapes = encoder_shapes(d, d_in)
    for layer in range(s["layers"]):
        one = (linear_shapes("dec_attn.qkv_net", 3 * heads * D, d) | linear_shapes("dec_attn.r_net", heads * D, d)
               | linear_shapes("dec_attn.o_net", d, heads * D))
        if layer == 0 or not s.get("shared_biases", False):
            one |= {"r_w_bias": ((heads, D), 0.6), "r_r_bias": ((heads, D), 0.6)}
        if s["block"] != "none":
            one |= norm_shapes("dec_attn.layer_norm", d) | norm_shapes("pos_ff.layer_norm", d)
            one |= linear_shapes("pos_ff.CoreNet.0", F, d, True) | linear_shapes("pos_ff.CoreNet.3", d, F, True)
        shapes |= prefixed(f"{layer}/", one)
    values = draw(seed, shapes)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    frozen = {}  # what each layer read at first: a stopped gradient does not move the memory

    def forward(record, parameters, inputs):
        one = lambda layer, p, v: xl_layer(Torch, lambda p, v: xl_attention(record, layer, s, p, v), s, p, v)
        return stack(one, lambda p, v: nothing_follows(Torch, s, p, v), s)(tied(s, parameters), inputs)

    def second(values, x):
        def mixer(layer, p, v):
            first = frozen.setdefault(layer, v)  # the first call is at the golden weights and input
            return xl_matrix(s, p, v, first if s.get("stop_gradient", True) else v)
        return stack(lambda layer, p, v: xl_layer(Numpy, lambda p, v: mixer(layer, p, v), s, p, v), lambda p, v: v, s)(tied(s, values), x)

    make(name, "transformer-xl", s, loss, "token by token with a list as the memory, checked against one masked matrix", values, x, forward,
         second=second, seed=seed)


# --------------------------------------------------------------------------------------- Recurrent memory transformer

def conv1d(p, name, x):
    """GPT-2 stores its matrices as [in, out]."""
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def rmt_norm(ops, s, p, name, x):
    return ops.layer_norm(x, p[f"{name}.weight"], p[f"{name}.bias"], s.get("norm_eps", 1e-5))


def gpt(s, p, row, caches):
    """One more row through the causal stack; caches has a list of keys and a list of values for each inner layer."""
    x, heads = row, s["heads"]
    for i, (keys, values) in enumerate(caches):
        inner = under(p, f"h.{i}.")
        q, k, v = (z.reshape(heads, -1) for z in torch.chunk(conv1d(inner, "attn.c_attn", rmt_norm(Torch, s, inner, "ln_1", x)), 3))
        keys.append(k)
        values.append(v)
        x = x + conv1d(inner, "attn.c_proj", attend(q, keys, values))
        hidden = Torch.activation("gelu_tanh", conv1d(inner, "mlp.c_fc", rmt_norm(Torch, s, inner, "ln_2", x)))
        x = x + conv1d(inner, "mlp.c_proj", hidden)
    return rmt_norm(Torch, s, p, "ln_f", x)


def rmt(record, s, p, x):
    M, learned = s["memory"], s.get("position", "learned") == "learned"
    memory, outputs = p["memory"], []
    for t in range(len(x)):
        at, last = t % s["segment"], t % s["segment"] == s["segment"] - 1

        def feed(row, i):
            return gpt(s, p, row + p["wpe.weight"][i] if learned else row, caches)

        if t == 0 and not last:
            memory = record.state(0, "memory", memory)
        elif not last:
            record.hold(0, "memory")  # one array for the whole segment, and one perturbation
        if at == 0:
            caches = [([], []) for _ in range(s["depth"])]
            for i in range(M):
                feed(memory[i], i)
        outputs.append(feed(x[t], M + at))
        if last:
            memory = record.state(0, "memory", torch.stack([feed(memory[i], M + at + 1 + i) for i in range(M)]))
    return torch.stack(outputs)


def rmt_matrix(s, p, x):
    """Whole segments, [memory; tokens; memory], through masked matrices."""
    M, heads, memory, outputs = s["memory"], s["heads"], p["memory"], []
    for start in range(0, len(x), s["segment"]):
        tokens = x[start: start + s["segment"]]
        Z = np.concatenate([memory, tokens, memory])
        if s.get("position", "learned") == "learned":
            Z = Z + p["wpe.weight"][: len(Z)]
        for i in range(s["depth"]):
            inner = under(p, f"h.{i}.")
            q, k, v = (by_head(z, heads) for z in np.split(conv1d(inner, "attn.c_attn", rmt_norm(Numpy, s, inner, "ln_1", Z)), 3, axis=1))
            weights = masked_softmax(np.einsum("thi,shi->hts", q, k) / math.sqrt(q.shape[2]), np.tril(np.ones((len(Z), len(Z)))) > 0)
            Z = Z + conv1d(inner, "attn.c_proj", np.einsum("hts,shi->thi", weights, v).reshape(Z.shape))
            hidden = Numpy.activation("gelu_tanh", conv1d(inner, "mlp.c_fc", rmt_norm(Numpy, s, inner, "ln_2", Z)))
            Z = Z + conv1d(inner, "mlp.c_proj", hidden)
        H = rmt_norm(Numpy, s, p, "ln_f", Z)
        outputs.append(H[M: M + len(tokens)])
        memory = H[M + len(tokens):]
    return np.concatenate(outputs)


def rmt_case(name, s, T, d_in, loss, seed):
    d, M, F = s["width"], s["memory"], s.get("feed_forward", 0) or 4 * s["width"]

    def matrix(name, rows, columns):
        return {f"{name}.weight": ((rows, columns), 1.0 / math.sqrt(rows)), f"{name}.bias": ((columns,), 0.3)}

    one = {"memory": ((M, d), 1.0)}
    if s.get("position", "learned") == "learned":
        one |= {"wpe.weight": ((s["segment"] + 2 * M, d), 0.5)}
    for i in range(s["depth"]):
        inner = norm_shapes("ln_1", d) | matrix("attn.c_attn", d, 3 * d) | matrix("attn.c_proj", d, d) | norm_shapes("ln_2", d)
        one |= prefixed(f"h.{i}.", inner | matrix("mlp.c_fc", d, F) | matrix("mlp.c_proj", F, d))
    shapes = encoder_shapes(d, d_in) | prefixed("0/", one | norm_shapes("ln_f", d))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def forward(record, parameters, inputs):
        return stack(lambda layer, p, v: rmt(record, s, p, v), lambda p, v: v, {})(parameters, inputs)

    second = stack(lambda layer, p, v: rmt_matrix(s, p, v), lambda p, v: v, {})
    make(name, "recurrent-memory-transformer", s, loss, "token by token, checked against masked matrices a segment", draw(seed, shapes), x,
         forward, second=second, seed=seed)


# -------------------------------------------------------------------------------------------------------------- cases

def main():
    bare = {"width": 6, "heads": 2, "layers": 1, "position": "none", "block": "none"}
    transformer_case("transformer", bare, 20, 6, "last", 161)
    block = {"width": 6, "heads": 2, "layers": 2, "feed_forward": 7, "position": "sinusoidal", "block": "residual"}
    transformer_case("transformer-block", block, 14, 6, "mean", 162)
    rotary = {"width": 8, "heads": 2, "layers": 2, "feed_forward": 5, "position": "rotary", "rotary_base": 100.0, "window": 5, "prenorm": True,
              "activation": "gelu", "block": "residual"}
    transformer_case("transformer-rotary", rotary, 16, 3, "mean", 163)
    window = {"width": 4, "heads": 1, "layers": 2, "feed_forward": 6, "position": "none", "window": 4, "prenorm": True, "bias": False,
              "activation": "gelu", "norm_eps": 1e-3, "final_norm": False, "block": "residual"}
    transformer_case("transformer-window", window, 14, 4, "last", 164)

    xl_case("transformer-xl", {"width": 6, "heads": 2, "layers": 2, "feed_forward": 7, "segment": 5, "memory": 4, "block": "residual"},
            18, 6, "mean", 171)
    through = {"width": 6, "heads": 2, "head_dim": 2, "layers": 2, "feed_forward": 5, "segment": 4, "memory": 7, "stop_gradient": False,
               "clamp_length": 6, "prenorm": True, "block": "residual"}
    xl_case("transformer-xl-through", through, 18, 3, "mean", 172)
    same = {"width": 4, "heads": 1, "layers": 1, "segment": 3, "memory": 5, "same_length": True, "block": "none"}
    xl_case("transformer-xl-same-length", same, 17, 4, "last", 173)
    none = {"width": 4, "heads": 2, "layers": 1, "segment": 4, "memory": 0, "feed_forward": 5, "block": "residual"}
    xl_case("transformer-xl-no-memory", none, 10, 4, "mean", 174)
    shared = {"width": 4, "heads": 2, "layers": 3, "segment": 4, "memory": 3, "feed_forward": 5, "shared_biases": True, "block": "residual"}
    xl_case("transformer-xl-shared-biases", shared, 14, 3, "mean", 175)

    rmt_case("recurrent-memory-transformer", {"width": 6, "heads": 2, "depth": 2, "memory": 2, "segment": 4, "feed_forward": 7}, 18, 3, "mean", 181)
    short = {"width": 4, "heads": 1, "depth": 1, "memory": 1, "segment": 3, "position": "none"}
    rmt_case("recurrent-memory-transformer-no-positions", short, 12, 4, "last", 182)


if __name__ == "__main__":
    main()
