# SPDX-License-Identifier: GPL-3.0-or-later
"""Transformers with a recurrence inside, step by step, each checked against a form that has no loop over its recurrence.

RSA            Huang et al. 2023; checked against the recurrence encoding matrices themselves.
ARN            Hao et al. 2019; checked against rounds of all steps at once and masked matrices.
Recurrent positional embedding  Chen et al. 2019; checked against torch.nn.RNN, GRU and LSTM and masked matrices.
R-Transformer  Wang et al. 2019; DSE-MSU/R-transformer, models/RTransformer.py; checked against torch's cells over all windows at once.
"""
import math

import numpy as np
import torch

from harness import draw, make, settle, under
from matrix_memory import by_head
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack
from softmax_attention import attend, masked_softmax, rotate, sinusoids, transformer_finish, transformer_inputs, transformer_layer


def visible(steps, window):
    age = np.arange(steps)[:, None] - np.arange(steps)[None, :]
    return (age >= 0) & (age < (window or steps))


def last(rows, window):
    return rows[-window:] if window else rows


def in_proj(p, name, x):
    y = x @ p[f"{name}.in_proj_weight"].T
    return y + p[f"{name}.in_proj_bias"] if f"{name}.in_proj_bias" in p else y


def in_proj_shapes(name, d, bias):
    return {f"{name}.in_proj_weight": ((3 * d, d), 1.5 / math.sqrt(d))} | ({f"{name}.in_proj_bias": ((3 * d,), 0.3)} if bias else {})


def block_shapes(s, d, F, bias):
    """What transformer_layer reads besides its mixer's own."""
    one = linear_shapes("self_attn.out_proj", d, d, bias)
    if s["block"] != "none":
        one |= linear_shapes("linear1", F, d, bias) | linear_shapes("linear2", d, F, bias) | norm_shapes("norm1", d, bias) | norm_shapes("norm2", d, bias)
    return one


def run_case(name, architecture, s, T, d_in, loss, seed, shapes_of, loop, matrices, source, finish=transformer_finish, still=()):
    """One golden file: a layer is loop(record, layer, s, p, x) in torch, matrices(layer, s, p, x) in NumPy; finish(ops, s, p, x) follows the last."""
    shapes = encoder_shapes(s["width"], d_in)
    for layer in range(s["layers"]):
        shapes |= prefixed(f"{layer}/", shapes_of(s, layer))
    if finish is transformer_finish and s["block"] != "none" and s.get("final_norm", True):
        shapes |= norm_shapes("final/norm", s["width"], s.get("bias", True))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def forward(record, parameters, inputs):
        record.still.update(key for key in shapes if key.endswith(tuple(still)))
        return stack(lambda layer, p, v: loop(record, layer, s, p, v), lambda p, v: finish(Torch, s, p, v), s)(parameters, inputs)

    second = stack(lambda layer, p, v: matrices(layer, s, p, v), lambda p, v: finish(Numpy, s, p, v), s)
    settings = {key: value for key, value in s.items() if key != "block" or finish is transformer_finish}
    make(name, architecture, settings, loss, source, draw(seed, shapes), x, forward, second=second, seed=seed)


def nothing_follows(ops, s, p, x):
    return x


# ------------------------------------------------------------------------------------------------------------------ RSA

KINDS = ["regular", "cosine", "sine", "dilated_regular", "dilated_cosine", "dilated_sine"]


def head_kinds(s):
    """The kind of each head, in order, and which entry of eta (regular) or of nu and theta (cyclical) is its own."""
    named = {kind: s.get(kind, 0) for kind in KINDS[1:]}
    counts = {"regular": s["heads"] - sum(named.values())} | named
    kinds = [kind for kind in KINDS for _ in range(counts[kind])]
    places, used = [], {True: 0, False: 0}
    for kind in kinds:
        places.append(used["regular" in kind])
        used["regular" in kind] += 1
    return kinds, places


def rsa_factor(p, kind, place):
    if "regular" in kind:
        return torch.complex(torch.tanh(p["eta"][place]), torch.tensor(0.0))
    return torch.sigmoid(p["nu"][place]) * torch.exp(torch.complex(torch.tensor(0.0), p["theta"][place]))


def rsa(record, layer, s, p, x):
    q, k, v = transformer_inputs(s, p, x)
    kinds, places = head_kinds(s)
    factors = [rsa_factor(p, kind, place) for kind, place in zip(kinds, places)]
    plain = [i for i, kind in enumerate(kinds) if "dilated" not in kind]
    dilated = [i for i, kind in enumerate(kinds) if "dilated" in kind]
    D, m = v.shape[2], s.get("dilation", 2)
    held = torch.zeros(len(plain), D, dtype=torch.complex128)
    rows = torch.zeros(len(dilated), m, D, dtype=torch.complex128)
    keys, values, reads = [], [], []
    for t in range(len(x)):
        keys.append(rotate(s, k[t], t))
        values.append(v[t])
        softmax = attend(rotate(s, q[t], t), last(keys, s.get("window", 0)), last(values, s.get("window", 0))).reshape(len(kinds), D)
        out = []
        for i, kind in enumerate(kinds):
            before = held[plain.index(i)] if i in plain else rows[dilated.index(i), t % m]
            z = factors[i] * before
            out.append(z.imag if "sine" in kind.replace("cosine", "") else z.real)
        share = torch.sigmoid(p["mu"])[:, None]
        reads.append(((1.0 - share) * softmax + share * torch.stack(out)).reshape(-1))
        transitions = [factors[i].repeat(D) for i in plain]
        if plain:
            held = record.state(layer, "s", torch.stack([factors[i] * held[at] + v[t, i] for at, i in enumerate(plain)]))
        if dilated:
            moved = []
            for at, i in enumerate(dilated):
                moved.append(torch.stack([factors[i] * rows[at, r] + v[t, i] if r == t % m else rows[at, r] for r in range(m)]))
                transitions += [(factors[i] if r == t % m else torch.ones_like(factors[i])).repeat(D) for r in range(m)]
            rows = record.state(layer, "dilated", torch.stack(moved))
        record.transition(layer, torch.cat(transitions), constant=not dilated)
    return affine(p, "self_attn.out_proj", torch.stack(reads))


def rsa_matrices(s, p, x):
    """(1 - sigmoid(mu)) softmax + sigmoid(mu) P, with P of all lags."""
    q, k, v = transformer_inputs(s, p, x)
    kinds, places = head_kinds(s)
    lag = np.arange(len(x))[:, None] - np.arange(len(x))[None, :]
    if s["position"] == "rotary":
        D = q.shape[2]
        turn = np.exp(1j * np.outer(np.arange(len(x)), s.get("rotary_base", 10000.0) ** (-np.arange(0, D, 2) / D)))[:, None]
        q, k = ((z[..., 0::2] + 1j * z[..., 1::2]) * turn for z in (q, k))
    scores = np.einsum("thi,shi->hts", q, k.conj()).real * v.shape[2] ** -0.5
    weights = masked_softmax(scores, visible(len(x), s.get("window", 0)))
    matrices = []
    for kind, place in zip(kinds, places):
        m = s.get("dilation", 2) if "dilated" in kind else 1
        n, seen = np.maximum(lag, 0) / m, (lag > 0) & (lag % m == 0)
        if "regular" in kind:
            P = np.tanh(p["eta"][place]) ** np.where(seen, n, 0.0)
        else:
            wave = np.cos if "cosine" in kind else np.sin
            P = np.exp(-n * np.log1p(np.exp(-p["nu"][place]))) * wave(n * p["theta"][place])
        matrices.append(np.where(seen, P, 0.0))
    share = (1.0 / (1.0 + np.exp(-p["mu"])))[:, None, None]
    return affine(p, "self_attn.out_proj", np.einsum("hts,shi->thi", (1.0 - share) * weights + share * np.array(matrices), v).reshape(x.shape))


def rsa_shapes(s, layer):
    d, F, bias = s["width"], s.get("feed_forward", 0) or 4 * s["width"], s.get("bias", True)
    kinds, _ = head_kinds(s)
    real = sum("regular" in kind for kind in kinds)
    one = in_proj_shapes("self_attn", d, bias) | block_shapes(s, d, F, bias) | {"mu": ((s["heads"] if s.get("gate", "head") == "head" else 1,), 1.0)}
    if real:
        one |= {"eta": ((real,), 0.8)}
    if real < len(kinds):
        one |= {"nu": ((len(kinds) - real,), 0.7, 1.0), "theta": ((len(kinds) - real,), 0.8, 0.8)}
    return one


def rsa_case(name, s, T, d_in, loss, seed):
    run_case(name, "rsa", s, T, d_in, loss, seed, rsa_shapes,
             lambda record, layer, s, p, x: transformer_layer(Torch, lambda p, v: rsa(record, layer, s, p, v), s, layer, p, x),
             lambda layer, s, p, x: transformer_layer(Numpy, lambda p, v: rsa_matrices(s, p, v), s, layer, p, x),
             "step loop of the recurrences, checked against the matrices of all lags")


# ---------------------------------------------------------------------------------------------------------- torch's cells

ROWS = {"rnn": 1, "gru": 3, "lstm": 4}


def cell_shapes(kind, name, inputs, units):
    n = ROWS[kind] * units
    return {f"{name}weight_ih_l0": ((n, inputs), 1.0 / math.sqrt(inputs)), f"{name}weight_hh_l0": ((n, units), 1.0 / math.sqrt(units)), f"{name}bias_ih_l0": ((n,), 0.3),
            f"{name}bias_hh_l0": ((n,), 0.3)}


def cell(kind, p, x, h, c=None):
    """One step of torch.nn.RNN, GRU or LSTM, of vectors."""
    inner, turned = p["weight_ih_l0"] @ x + p["bias_ih_l0"], p["weight_hh_l0"] @ h + p["bias_hh_l0"]
    if kind == "rnn":
        return (torch.tanh(inner + turned),)
    if kind == "gru":
        (a, b, n), (u, w, m) = torch.chunk(inner, 3), torch.chunk(turned, 3)
        z = torch.sigmoid(b + w)
        return ((1.0 - z) * torch.tanh(n + torch.sigmoid(a + u) * m) + z * h,)
    i, f, g, o = torch.chunk(inner + turned, 4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def module(kind, p, inputs, units):
    made = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[kind](inputs, units, batch_first=True)
    made.load_state_dict({key: torch.as_tensor(value) for key, value in p.items()})
    return made


def whole(kind, p, x):
    """The states h of sequences [..., T, in], by torch's own module."""
    with torch.no_grad():
        return module(kind, p, x.shape[-1], p["weight_hh_l0"].shape[1])(torch.tensor(x))[0].numpy()


def recurrence(record, layer, names, function, steps, units):
    """The first state after each step: function(t, *states before) -> states, all of them vectors that start at 0."""
    states, kept = [torch.zeros(units) for _ in names], []
    for t in range(steps):
        states = record.step(layer, lambda *before: function(t, *before), *states)
        states = [record.state(layer, name, value) for name, value in zip(names, states)]
        kept.append(states[0])
    return torch.stack(kept)


def causal(q, k, v, window):
    """Softmax attention [T, heads, D] with a masked matrix, or in torch row by row."""
    if isinstance(q, torch.Tensor):
        return torch.stack([attend(q[t], last(list(k[: t + 1]), window), last(list(v[: t + 1]), window)) for t in range(len(q))])
    weights = masked_softmax(np.einsum("thi,shi->hts", q, k) * q.shape[2] ** -0.5, visible(len(q), window))
    return np.einsum("hts,shi->thi", weights, v).reshape(len(q), -1)


# ------------------------------------------------------------------------------------------- recurrent positional embedding

def rpe_stream(ops, s, x, r):
    """The stream below the first layer: positions on the rest, the network's states in the last channels."""
    rest = x[:, : s["width"] - s["recurrent_width"]]
    if s.get("position", "sinusoidal") == "sinusoidal":
        P = sinusoids(len(x), rest.shape[1])
        rest = rest + (torch.tensor(P) if ops is Torch else P)
    return ops.concatenate([rest, r], 1)


def rpe_attention(ops, s, p, z):
    d, own, heads, reads = s["width"], s["recurrent_width"], s["heads"], []
    independent = s.get("recurrent_heads", "independent") == "independent"
    groups = []
    for name, rows, count in (("self_attn", z[:, : d - own], heads), ("recurrent_attn", z[:, d - own:], s.get("own_heads", 1) if independent else heads)):
        y, n = in_proj(p, name, rows), rows.shape[1]
        groups.append([by_head(y[:, i * n: (i + 1) * n], count) for i in range(3)])
    if not independent:
        groups = [[ops.concatenate([a, b], 2) for a, b in zip(*groups)]]
    reads = [causal(*group, s.get("window", 0)) for group in groups]
    return affine(p, "self_attn.out_proj", ops.concatenate(reads, 1))


def rpe_case(name, s, T, d_in, loss, seed):
    kind, own = s.get("cell", "rnn"), s["recurrent_width"]
    placed = {**s, "position": "none"}  # positions are not those of the whole stream

    def shapes_of(s, layer):
        d, F, bias = s["width"], s.get("feed_forward", 0) or 4 * s["width"], s.get("bias", True)
        one = in_proj_shapes("self_attn", d - own, bias) | in_proj_shapes("recurrent_attn", own, bias) | block_shapes(s, d, F, bias)
        return one | (cell_shapes(kind, "rnn.", own, own) if layer == 0 else {})

    def loop(record, layer, s, p, x):
        if layer == 0:
            function = lambda t, *before: cell(kind, under(p, "rnn."), x[t, -own:], *before)
            x = rpe_stream(Torch, s, x, recurrence(record, layer, ["r", "c"][: 2 if kind == "lstm" else 1], function, len(x), own))
        return transformer_layer(Torch, lambda p, v: rpe_attention(Torch, s, p, v), placed, layer, p, x)

    def matrices(layer, s, p, x):
        if layer == 0:
            x = rpe_stream(Numpy, s, x, whole(kind, under(p, "rnn."), x[:, -own:]))
        return transformer_layer(Numpy, lambda p, v: rpe_attention(Numpy, s, p, v), placed, layer, p, x)

    run_case(name, "recurrent-position-encoding", s, T, d_in, loss, seed, shapes_of, loop, matrices,
             "step loop, checked against torch's module and masked matrices")


# ------------------------------------------------------------------------------------------------------------------ ARN

def arn_layer(ops, s, layer, p, x, r_of):
    """The layer round its recurrence: r_of(x) are the states after each step."""
    d, heads = s["width"], s["heads"]
    norm = lambda name, v: ops.layer_norm(v, p[f"{name}.weight"], p.get(f"{name}.bias"), s.get("norm_eps", 1e-5))
    feed = lambda name, v: affine(p, f"{name}linear2", ops.activation(s.get("activation", "relu"), affine(p, f"{name}linear1", v)))
    if layer == 0 and s.get("position", "sinusoidal") == "sinusoidal":
        P = sinusoids(len(x), d)
        x = x + (torch.tensor(P) if ops is Torch else P)
    close = norm("rec.norm1", x + r_of(x))
    H = norm("rec.norm2", close + feed("rec.", close))

    def read(name, query, source):
        q, k, v = (by_head(in_proj(p, name, rows)[:, i * d: (i + 1) * d], heads) for i, rows in enumerate((query, source, source)))
        return affine(p, f"{name}.out_proj", causal(q, k, v, s.get("attention_window", 0)))

    own = read("self_attn", x, x)
    if s.get("fusion", "gated_sum") == "gated_sum":
        other = read("rec_attn", x, H)
        share = ops.sigmoid(affine(p, "gate", ops.concatenate([own, other], 1)))
        x = norm("norm1", x + share * own + (1.0 - share) * other)
    else:
        x = norm("norm1", x + own)
        x = norm("norm3", x + read("rec_attn", x, H))
    return norm("norm2", x + feed("", x))


def numpy_cell(kind, p, x, h, c=None):
    """One step of many rows at once."""
    inner, turned = x @ p["weight_ih_l0"].T + p["bias_ih_l0"], h @ p["weight_hh_l0"].T + p["bias_hh_l0"]
    if kind == "rnn":
        return (np.tanh(inner + turned),)
    if kind == "gru":
        (a, b, n), (u, w, m) = np.split(inner, 3, axis=-1), np.split(turned, 3, axis=-1)
        z = Numpy.sigmoid(b + w)
        return (np.tanh(n + Numpy.sigmoid(a + u) * m) * (1.0 - z) + z * h,)
    i, f, g, o = np.split(inner + turned, 4, axis=-1)
    c = Numpy.sigmoid(f) * c + Numpy.sigmoid(i) * np.tanh(g)
    return Numpy.sigmoid(o) * np.tanh(c), c


def arn_case(name, s, T, d_in, loss, seed):
    d, heads, kind, attentive = s["width"], s["heads"], s.get("cell", "gru"), s.get("recurrence", "arn") == "arn"
    F, bias, window = s.get("feed_forward", 0) or 4 * d, s.get("bias", True), s.get("window", 4)
    names = ["r", "c"][: 2 if kind == "lstm" else 1]

    def shapes_of(s, layer):
        one = cell_shapes(kind, "rec.rnn.", d, d) | linear_shapes("linear1", F, d, bias) | linear_shapes("linear2", d, F, bias)
        one |= linear_shapes("rec.linear1", F, d, bias) | linear_shapes("rec.linear2", d, F, bias)
        for inner in ("self_attn", "rec_attn") + (("rec.attn",) if attentive else ()):
            one |= in_proj_shapes(inner, d, bias) | linear_shapes(f"{inner}.out_proj", d, d, bias)
        gated = s.get("fusion", "gated_sum") == "gated_sum"
        one |= linear_shapes("gate", d, 2 * d, bias) if gated else {}
        for inner in ("rec.norm1", "rec.norm2", "norm1", "norm2") + (() if gated else ("norm3",)):
            one |= norm_shapes(inner, d, bias)
        return one

    def loop(record, layer, s, p, x):
        def r_of(x):
            inner = under(p, "rec.rnn.")
            if not attentive:
                return recurrence(record, layer, names, lambda t, *before: cell(kind, inner, x[t], *before), len(x), d)
            rows = in_proj(p, "rec.attn", x)
            k, v = by_head(rows[:, d: 2 * d], heads), by_head(rows[:, 2 * d:], heads)

            def function(t, *before):
                q = in_proj(p, "rec.attn", before[0][None])[:, :d].reshape(heads, -1)
                first = max(0, t + 1 - window)
                return cell(kind, inner, affine(p, "rec.attn.out_proj", attend(q, list(k[first: t + 1]), list(v[first: t + 1]))), *before)
            return recurrence(record, layer, names, function, len(x), d)
        return arn_layer(Torch, s, layer, p, x, r_of)

    def matrices(layer, s, p, x):
        def r_of(x):
            inner = under(p, "rec.rnn.")
            if not attentive:
                return whole(kind, inner, x)
            rows = in_proj(p, "rec.attn", x)
            k, v = by_head(rows[:, d: 2 * d], heads), by_head(rows[:, 2 * d:], heads)

            def update(*before):
                q = by_head(in_proj(p, "rec.attn", before[0])[:, :d], heads)
                return numpy_cell(kind, inner, affine(p, "rec.attn.out_proj", causal(q, k, v, window)), *before)
            return settle(update, len(x), *[(d,) for _ in names])[0]
        return arn_layer(Numpy, s, layer, p, x, r_of)

    run_case(name, "arn", {**s, "block": "none"}, T, d_in, loss, seed, shapes_of, loop, matrices,
             "step loop, checked against rounds of all steps at once and masked matrices", nothing_follows)


# ---------------------------------------------------------------------------------------------------------- R-Transformer

def deviation_norm(p, name, x, eps):
    """a (x - mean)/(std + eps) + b, the standard deviation that of torch.std and numpy.std(ddof=1)."""
    if isinstance(x, torch.Tensor):
        return p[f"{name}.a_2"] * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + p[f"{name}.b_2"]
    return p[f"{name}.a_2"] * (x - x.mean(-1, keepdims=True)) / (x.std(-1, ddof=1, keepdims=True) + eps) + p[f"{name}.b_2"]


def r_transformer_layer(ops, s, p, x, local, attention):
    eps = s.get("norm_eps", 1e-6)
    p = {key: value for key, value in p.items() if key != "pooling.linears.1.bias"}  # it adds the same to all scores of a row
    for n in range(s.get("local_layers", 1)):
        inner = under(p, f"layers.{n}.")
        x = x + local(under(inner, "local_rnn.rnn."), deviation_norm(inner, "connection.norm", x, eps))
    seen = deviation_norm(p, "connections.0.norm", x, eps)
    q, k, v = (by_head(affine(p, f"pooling.linears.{i}", seen), s["heads"]) for i in range(3))
    x = x + affine(p, "pooling.linears.3", attention(q, k, v))
    return x + affine(p, "feed_forward.w_2", ops.activation("relu", affine(p, "feed_forward.w_1", deviation_norm(p, "connections.1.norm", x, eps))))


def r_transformer_case(name, s, T, d_in, loss, seed):
    d, K, kind, F = s["width"], s.get("ksize", 7), s.get("rnn_type", "gru"), s.get("feed_forward", 0) or 4 * s["width"]

    def scale(inner):
        return {f"{inner}.a_2": ((d,), 0.3, 1.0), f"{inner}.b_2": ((d,), 0.3)}

    def shapes_of(s, layer):
        one = {}
        for n in range(s.get("local_layers", 1)):
            one |= cell_shapes(kind, f"layers.{n}.local_rnn.rnn.", d, d) | scale(f"layers.{n}.connection.norm")
        for i in range(4):
            one |= linear_shapes(f"pooling.linears.{i}", d, d, True)
        return one | scale("connections.0.norm") | scale("connections.1.norm") | linear_shapes("feed_forward.w_1", F, d, True) | linear_shapes("feed_forward.w_2", d, F, True)

    def loop(record, layer, s, p, x):
        def local(inner, rows):
            kept = []
            for t in range(len(rows)):
                states = [torch.zeros(d)] * (2 if kind == "lstm" else 1)
                for j in range(t - K + 1, t + 1):
                    states = cell(kind, inner, rows[j] if j >= 0 else torch.zeros(d), *states)
                kept.append(states[0])
            return torch.stack(kept)

        def attention(q, k, v):
            k, v = torch.stack([record.state(layer, "k", row) for row in k]), torch.stack([record.state(layer, "v", row) for row in v])
            return causal(q, k, v, s.get("window", 0))
        return r_transformer_layer(Torch, s, p, x, local, attention)

    def matrices(layer, s, p, x):
        def local(inner, rows):
            padded = np.concatenate([np.zeros((K - 1, d)), rows])
            return whole(kind, inner, np.stack([padded[t: t + K] for t in range(len(rows))]))[:, -1]
        return r_transformer_layer(Numpy, s, p, x, local, lambda q, k, v: causal(q, k, v, s.get("window", 0)))

    run_case(name, "r-transformer", {**s, "block": "none"}, T, d_in, loss, seed, shapes_of, loop, matrices,
             "window by window, checked against torch's module over all windows and masked matrices", nothing_follows,
             ["pooling.linears.1.bias"])


# -------------------------------------------------------------------------------------------------------------- cases

def main():
    rsa_case("rsa", {"width": 6, "heads": 3, "layers": 1, "cosine": 1, "sine": 1, "position": "none", "block": "none"}, 18, 3, "mean", 1801)
    rsa_case("rsa-block", {"width": 8, "heads": 4, "layers": 2, "feed_forward": 3, "position": "sinusoidal", "cosine": 1, "dilated_regular": 1,
                           "dilated_sine": 1, "dilation": 3, "gate": "layer", "window": 5, "block": "residual"}, 11, 8, "mean", 1802)
    rsa_case("rsa-dilated", {"width": 4, "heads": 2, "layers": 1, "feed_forward": 5, "position": "rotary", "rotary_base": 50.0, "dilated_cosine": 1,
                             "dilated_sine": 1, "dilation": 2,
                             "prenorm": True, "bias": False, "activation": "gelu", "final_norm": False, "norm_eps": 1e-3, "block": "residual"}, 15, 4, "last", 1803)
    rsa_case("rsa-regular", {"width": 4, "heads": 2, "layers": 1, "position": "none", "bias": False, "block": "none"}, 12, 2, "last", 1804)

    arn_case("arn", {"width": 4, "heads": 2, "layers": 1, "feed_forward": 5, "window": 3}, 12, 3, "mean", 1811)
    arn_case("arn-lstm-stack", {"width": 4, "heads": 1, "layers": 1, "feed_forward": 3, "window": 20, "cell": "lstm", "fusion": "stack", "bias": False, "activation": "gelu",
                                "position": "none", "attention_window": 4, "norm_eps": 1e-3}, 9, 4, "mean", 1812)
    arn_case("arn-rnn", {"width": 4, "heads": 2, "layers": 2, "feed_forward": 3, "recurrence": "rnn", "cell": "rnn"}, 10, 2, "last", 1813)

    rpe_case("recurrent-position-encoding", {"width": 8, "heads": 2, "layers": 2, "feed_forward": 3, "recurrent_width": 4, "own_heads": 2, "block": "residual"}, 11, 3, "mean", 1821)
    rpe_case("recurrent-position-encoding-parts", {"width": 6, "heads": 2, "layers": 1, "feed_forward": 5, "recurrent_width": 2, "recurrent_heads": "parts", "cell": "gru", "position": "none",
                                                   "window": 4, "prenorm": True, "bias": False, "activation": "gelu", "final_norm": False, "norm_eps": 1e-3, "block": "residual"}, 14, 6, "last", 1822)
    rpe_case("recurrent-position-encoding-lstm", {"width": 7, "heads": 2, "layers": 1, "recurrent_width": 3, "own_heads": 3, "cell": "lstm", "block": "none"}, 12, 2, "mean", 1823)

    r_transformer_case("r-transformer", {"width": 4, "heads": 2, "layers": 2, "feed_forward": 3, "ksize": 4}, 12, 3, "mean", 1831)
    r_transformer_case("r-transformer-lstm", {"width": 4, "heads": 2, "layers": 1, "local_layers": 2, "ksize": 3, "rnn_type": "lstm", "window": 5}, 12, 4, "last", 1832)
    r_transformer_case("r-transformer-rnn", {"width": 5, "heads": 1, "layers": 1, "ksize": 1, "rnn_type": "rnn", "feed_forward": 3, "norm_eps": 0.01}, 10, 2, "mean", 1833)


if __name__ == "__main__":
    main()
