# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers whose memory goes from segment to segment, token by token, each checked against whole segments as matrices.

Infini-attention  Munkhdalai et al. 2024; lucidrains/infini-transformer-pytorch, infini_transformer.py (the authors published no code).
Compressive transformer  Rae et al. 2020; lucidrains/compressive-transformer-pytorch (likewise), with the mogrifier of lucidrains/mogrifier.
Block-recurrent transformer  Hutchins et al. 2022; google-research/meliad at 760591c, transformer/{transformer_layer,transformer_base,nn_components}.py.
"""
import math

import numpy as np
import torch

from harness import draw, make, under
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack
from softmax_attention import attend, by_head, masked_softmax


class Memories:
    """The states of a layer: recorded when they change, held at the other steps of a segment."""

    def __init__(self, record, layer, **initial):
        self.record, self.layer, self.now = record, layer, initial

    def __getitem__(self, name):
        return self.now[name]

    def step(self, t, last):
        """At the start of step t."""
        for name in self.now:
            if t == 0 and not last:
                self.now[name] = self.record.state(self.layer, name, self.now[name])
            elif not last:
                self.record.hold(self.layer, name)

    def become(self, **new):
        """At the last step of a segment."""
        for name, value in new.items():
            self.now[name] = self.record.state(self.layer, name, value)


# --------------------------------------------------------------------------------------------------- Infini-attention

def turned(s, z, place):
    """The pairs (2i, 2i + 1) of each head turned by place base^(-2i/D), as complex numbers."""
    D = z.shape[-1]
    pairs = torch.view_as_complex(z.reshape(*z.shape[:-1], D // 2, 2))
    turns = torch.tensor([complex(math.cos(a), math.sin(a)) for a in (place * s.get("rotary_base", 10000.0) ** (-i / D) for i in range(0, D, 2))])
    return torch.view_as_real(pairs * turns).reshape(z.shape)


def infini(record, layer, s, p, x):
    heads, n, rotary, eps = s["heads"], s["segment"], s.get("position", "rotary") == "rotary", s.get("eps", 1e-10)
    qkv = (x @ p["0.to_qkv.weight"].T).reshape(len(x), 3, heads, -1)
    D = qkv.shape[-1]
    g = torch.sigmoid(p["0.fastweight_mem.head_gates"])
    g = g if s.get("gate", "memory") == "memory" else 1.0 - g
    memory = Memories(record, layer, M=torch.zeros(heads, D, D), z=torch.zeros(heads, D))
    outputs = []

    def recall(f):
        """f [heads, D]: what each head's memory has for it."""
        return torch.stack([(f[h] @ memory["M"][h]) / torch.clamp(f[h] @ memory["z"][h], min=eps) for h in range(heads)])

    for t in range(len(x)):
        place, first, last = t % n, t < n, t % n == n - 1
        if place == 0:
            keys, values, features = [], [], []
        memory.step(t, last)
        q, k, v = qkv[t]
        fq, fk = torch.nn.functional.elu(q) + 1, torch.nn.functional.elu(k) + 1
        if rotary:
            q, k = turned(s, q, place), turned(s, k, place)
        if s.get("rotary_memory", False):
            fq, fk = turned(s, fq, place), turned(s, fk, place)
        keys.append(k)
        values.append(v)
        features.append(fk)
        local = attend(q, keys, values).reshape(heads, D)
        if first:
            share = 0.0 * g if s.get("first_segment", "local") == "local" else g
            read = torch.zeros(heads, D)
        else:
            share, read = g, recall(fq)
        outputs.append((share[:, None] * read + (1.0 - share[:, None]) * local).reshape(-1))
        if last:
            M, z = memory["M"], memory["z"]
            for f, v in zip(features, values):
                new = v - recall(f) if s.get("rule", "linear") == "delta" and not first else v
                M, z = M + f[:, :, None] * new[:, None, :], z + f
            stop = s.get("stop_gradient", False)
            memory.become(M=M.detach() if stop else M, z=z.detach() if stop else z)
    return torch.stack(outputs) @ p["0.to_out.weight"].T


def infini_matrix(s, p, x, frozen):
    """All pairs of steps: the linear memory as linear attention to the segments before, the delta rule by its transitions. With stopped
    gradients the memories are those of the first call."""
    heads, n, T = s["heads"], s["segment"], len(x)
    q, k, v = (by_head(z, heads) for z in np.split(x @ p["0.to_qkv.weight"].T, 3, axis=1))
    D = q.shape[2]
    elu = lambda z: np.where(z > 0, z + 1.0, np.exp(np.minimum(z, 0.0)))
    fq, fk = elu(q), elu(k)
    steps = np.arange(T)
    segment = steps // n

    def turn(z):
        angle = np.outer(steps % n, s.get("rotary_base", 10000.0) ** (-np.arange(0, D, 2) / D))[:, None]
        y = np.empty_like(z)
        y[..., 0::2] = z[..., 0::2] * np.cos(angle) - z[..., 1::2] * np.sin(angle)
        y[..., 1::2] = z[..., 1::2] * np.cos(angle) + z[..., 0::2] * np.sin(angle)
        return y

    if s.get("position", "rotary") == "rotary":
        q, k = turn(q), turn(k)
    if s.get("rotary_memory", False):
        fq, fk = turn(fq), turn(fk)
    visible = (steps[None, :] <= steps[:, None]) & (segment[None, :] == segment[:, None])
    local = np.einsum("hts,shi->thi", masked_softmax(np.einsum("thi,shi->hts", q, k) / math.sqrt(D), visible), v)
    eps, past = s.get("eps", 1e-10), segment[None, :] < segment[:, None]
    if s.get("stop_gradient", False):
        fk, v = frozen.setdefault("written", (fk, v))
    if s.get("rule", "linear") == "linear":
        pairs = np.where(past, np.einsum("thi,shi->hts", fq, fk), 0.0)
        read = np.einsum("hts,shi->thi", pairs, v) / np.maximum(pairs.sum(2), eps).T[:, :, None]
    else:
        M, z, read = np.zeros((heads, D, D)), np.zeros((heads, D)), np.zeros_like(local)
        for number in range(segment[-1] + 1):
            rows = slice(number * n, (number + 1) * n)
            read[rows] = np.einsum("thi,hij->thj", fq[rows], M) / np.maximum(np.einsum("thi,hi->th", fq[rows], z), eps)[:, :, None]
            weights = fk[rows] / np.maximum(np.einsum("thi,hi->th", fk[rows], z), eps)[:, :, None] if number else 0.0 * fk[rows]
            A = np.eye(D)[None] - np.einsum("thi,thj->hij", fk[rows], weights)
            M = np.einsum("hij,hjk->hik", A, M) + np.einsum("thi,thj->hij", fk[rows], v[rows])
            z = z + fk[rows].sum(0)
    g = Numpy.sigmoid(p["0.fastweight_mem.head_gates"])[None, :, None]
    g = g if s.get("gate", "memory") == "memory" else 1.0 - g
    if s.get("first_segment", "local") == "local":
        g = np.where((segment > 0)[:, None, None], g, 0.0)
    return (g * read + (1.0 - g) * local).reshape(T, -1) @ p["0.to_out.weight"].T


def infini_norm(ops, p, name, x):
    length = (x * x).sum(-1) ** 0.5
    return x / length[..., None] * math.sqrt(x.shape[-1]) * p[f"{name}.gamma"]


def infini_layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    x = x + mixer(p, infini_norm(ops, p, "0.norm", x))
    hidden = affine(p, "1.proj_in", infini_norm(ops, p, "1.norm", x))
    F = hidden.shape[-1] // 2
    return x + affine(p, "1.proj_out", ops.activation("gelu", hidden[:, F:]) * hidden[:, :F])


def infini_case(name, s, T, d_in, loss, seed):
    d, heads = s["width"], s["heads"]
    D, F = s.get("head_dim", 0) or d // heads, s.get("feed_forward", 0) or 8 * d // 3
    shapes = encoder_shapes(d, d_in)
    for layer in range(s["layers"]):
        one = linear_shapes("0.to_qkv", 3 * heads * D, d) | linear_shapes("0.to_out", d, heads * D) | {"0.fastweight_mem.head_gates": ((heads,), 0.7)}
        if s["block"] != "none":
            one |= {"0.norm.gamma": ((d,), 0.3, 1.0), "1.norm.gamma": ((d,), 0.3, 1.0)}
            one |= linear_shapes("1.proj_in", 2 * F, d, True) | linear_shapes("1.proj_out", d, F, True)
        shapes |= prefixed(f"{layer}/", one)
    if s["block"] != "none":
        shapes |= {"final/norm.gamma": ((d,), 0.3, 1.0)}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    frozen = {}

    def forward(record, parameters, inputs):
        one = lambda layer, p, v: infini_layer(Torch, lambda p, v: infini(record, layer, s, p, v), s, p, v)
        return stack(one, lambda p, v: infini_norm(Torch, p, "norm", v) if s["block"] != "none" else v, s)(parameters, inputs)

    def second(values, x):
        one = lambda layer, p, v: infini_layer(Numpy, lambda p, v: infini_matrix(s, p, v, frozen.setdefault(layer, {})), s, p, v)
        return stack(one, lambda p, v: infini_norm(Numpy, p, "norm", v) if s["block"] != "none" else v, s)(values, x)

    make(name, "infini-attention", s, loss, "token by token, checked against all pairs of steps or the transitions of whole segments", draw(seed, shapes), x, forward,
         second=second, seed=seed)


# --------------------------------------------------------------------------------------------- Compressive transformer

def around(ops, s, p, x, y):
    """What joins a part's output y with what goes round it, x."""
    if s.get("residual", "gru") == "add":
        return y + x
    if s.get("mogrify", False):
        for i in range(5):
            if i % 2 == 0:
                y = 2.0 * ops.sigmoid(affine(p, "mogrify.Q.1", affine(p, "mogrify.Q.0", x))) * y
            else:
                x = 2.0 * ops.sigmoid(affine(p, "mogrify.R.1", affine(p, "mogrify.R.0", y))) * x
    d = x.shape[-1]
    of_y, of_x = y @ p["gru.weight_ih"].T + p["gru.bias_ih"], x @ p["gru.weight_hh"].T + p["gru.bias_hh"]
    r, z = ops.sigmoid(of_y[..., :d] + of_x[..., :d]), ops.sigmoid(of_y[..., d:2 * d] + of_x[..., d:2 * d])
    new = 2.0 * ops.sigmoid(2.0 * (of_y[..., 2 * d:] + r * of_x[..., 2 * d:])) - 1.0
    return (1.0 - z) * new + z * x


def feed_forward(ops, s, p, x):
    inside = affine(p, "fn.fn.w1", ops.layer_norm(x, p["fn.norm.weight"], p["fn.norm.bias"]))
    if not s.get("glu", False):
        return affine(p, "fn.fn.w2", ops.activation("gelu", inside))
    F = inside.shape[-1] // 2
    return affine(p, "fn.fn.w2", ops.activation("gelu", inside[..., :F]) * inside[..., F:])


def layers_with_memory(s):
    at = s.get("memory_at", 0)
    return [int(digit) - 1 for digit in str(at)] if at else list(range(s["depth"]))


def compressive(record, s, p, x):
    """Token by token; memories are lists of the rows that there are."""
    n, n_m, n_cm, c, heads, d = s["segment"], s["mem_len"], s["cmem_len"], s["ratio"], s["heads"], s["width"]
    with_memory, D, empty, how = layers_with_memory(s), d // heads, s.get("start", "empty") == "empty", s.get("compression", "conv")
    blocks = [(under(p, f"attn_layers.{i}."), under(p, f"ff_layers.{i}.")) for i in range(s["depth"])]
    have_m, have_cm = (0, 0) if empty else (n_m, n_cm)  # rows at the end of the arrays that exist
    states = Memories(record, 0, memory=torch.zeros(len(with_memory), n_m, d), compressed=torch.zeros(len(with_memory), n_cm, d))
    outputs = []
    for t in range(len(x)):
        place, last = t % n, t % n == n - 1
        states.step(t, last)
        if place == 0:
            seen = [[] for _ in blocks]  # the rows of this segment, of each layer
            usage = [torch.zeros(n_m) for _ in blocks]
        row = x[t]
        for i, (a, f) in enumerate(blocks):
            u = Torch.layer_norm(row, a["fn.norm.weight"], a["fn.norm.bias"])
            seen[i].append(u)
            past = []
            if i in with_memory:
                slot = with_memory.index(i)
                source = (slot + 1) % len(with_memory) if s.get("enhanced_recurrence", True) else slot
                past = [*states["compressed"][source][n_cm - have_cm:], *states["memory"][source][n_m - have_m:]]
            rows = torch.stack([*past, *seen[i]])
            k, v = (rows @ a["fn.fn.to_kv.weight"].T).reshape(len(rows), 2, heads, D).unbind(1)
            q = (a["fn.fn.to_q.weight"] @ u).reshape(heads, D)
            scores = torch.einsum("hd,jhd->hj", q, k)
            if s.get("position", "learned") == "learned":
                newest = have_m + have_cm + n - 1
                e = p["pos_emb"][:, [newest - (len(rows) - 1 - j) for j in range(len(rows))]]
                scores = scores + torch.einsum("hd,hjd->hj", q, e)
            weights = torch.softmax(scores * D**-0.5, dim=1)
            if i in with_memory:
                usage[i][n_m - have_m:] += weights.detach().mean(0)[have_cm: have_cm + have_m] / n
            read = torch.einsum("hj,jhd->hd", weights, v).reshape(d)
            row = around(Torch, s, a, row, affine(a, "fn.fn.to_out", read))
            row = around(Torch, s, f, row, feed_forward(Torch, s, f, row))
        outputs.append(row)
        if not last:
            continue
        memories, compressions = [], []
        made = 0
        for slot, i in enumerate(with_memory):
            source = (slot + 1) % len(with_memory) if s.get("enhanced_recurrence", True) else slot
            a = blocks[i][0]
            queue = [*states["memory"][source][n_m - have_m:], *seen[i]]
            leaving, staying = queue[:max(0, len(queue) - n_m)], queue[max(0, len(queue) - n_m):]
            new = []
            if how == "most-used":
                order = sorted(range(len(leaving)), key=lambda j: (-float(usage[i][n_m - have_m + j]), j))[:len(leaving) // c]
                new = [leaving[j] for j in sorted(order)]
            else:
                for j in range(0, len(leaving), c):
                    group = torch.stack(leaving[j: j + c])
                    if how == "conv":
                        W = a["fn.fn.compress_mem_fn.conv.weight"]
                        new.append(sum(W[:, :, tau] @ group[tau] for tau in range(c)) + a["fn.fn.compress_mem_fn.conv.bias"])
                    else:
                        new.append(group.mean(0) if how == "mean" else group.max(0).values)
            kept = [*states["compressed"][source][n_cm - have_cm:], *new][-n_cm:]
            made = len(kept)
            fill = lambda rows, length: torch.stack([torch.zeros(d)] * (length - len(rows)) + rows)
            memories.append(fill(staying, n_m))
            compressions.append(fill(kept, n_cm))
        have_m, have_cm = min(n_m, have_m + n), made
        memories, compressions = torch.stack(memories), torch.stack(compressions)
        stop = s.get("stop_gradient", True)
        states.become(memory=memories.detach() if stop else memories, compressed=compressions.detach() if stop else compressions)
    return torch.stack(outputs)


def compressive_matrix(s, p, x, frozen):
    """Whole segments as matrices over arrays of fixed length, what does not exist masked."""
    n, n_m, n_cm, c, heads, d = s["segment"], s["mem_len"], s["cmem_len"], s["ratio"], s["heads"], s["width"]
    D, M, empty, how, outputs = d // heads, s["mem_len"] + s["cmem_len"], s.get("start", "empty") == "empty", s.get("compression", "conv"), []
    with_memory = layers_with_memory(s)
    memory, pressed = np.zeros((len(with_memory), n_m, d)), np.zeros((len(with_memory), n_cm, d))
    for number, first in enumerate(range(0, len(x), n)):
        X, passed = x[first: first + n], first
        rows = len(X)
        fill = min(n_m, passed) + min(n_cm, max(0, passed - n_m) // c) if empty else M
        new_memory, new_pressed = [], []
        for i in range(s["depth"]):
            a, f = under(p, f"attn_layers.{i}."), under(p, f"ff_layers.{i}.")
            U = Numpy.layer_norm(X, a["fn.norm.weight"], a["fn.norm.bias"])
            slot = with_memory.index(i) if i in with_memory else None
            source = None if slot is None else (slot + 1) % len(with_memory) if s.get("enhanced_recurrence", True) else slot
            past = np.zeros((M, d)) if slot is None else np.concatenate([pressed[source], memory[source]])
            k, v = np.split(np.concatenate([past, U]) @ a["fn.fn.to_kv.weight"].T, 2, axis=1)
            q, k, v = by_head(U @ a["fn.fn.to_q.weight"].T, heads), by_head(k, heads), by_head(v, heads)
            scores = np.einsum("ihd,jhd->hij", q, k)
            ages = M + np.arange(rows)[:, None] - np.arange(M + rows)[None, :]
            visible = (ages >= 0) & (np.arange(M + rows)[None, :] >= (M if slot is None else M - fill))
            if s.get("position", "learned") == "learned":
                e = p["pos_emb"][:, np.clip(fill + n - 1 - ages, 0, M + n - 1)]
                scores = scores + np.einsum("ihd,hijd->hij", q, e)
            weights = masked_softmax(scores / math.sqrt(D), visible)
            X = around(Numpy, s, a, X, affine(a, "fn.fn.to_out", np.einsum("hij,jhd->ihd", weights, v).reshape(rows, d)))
            X = around(Numpy, s, f, X, feed_forward(Numpy, s, f, X))
            if slot is None or rows < n:
                continue
            queue = np.concatenate([memory[source], U])
            old = queue[:n].reshape(n // c, c, d)
            if how == "conv":
                new = np.einsum("oit,jti->jo", a["fn.fn.compress_mem_fn.conv.weight"], old) + a["fn.fn.compress_mem_fn.conv.bias"]
            elif how == "most-used":
                used = frozen.setdefault((number, i, "usage"), weights.mean((0, 1))[n_cm: n_cm + n])
                new = queue[np.sort(np.argsort(-used, kind="stable")[: n // c])]
            else:
                new = old.mean(1) if how == "mean" else old.max(1)
            new = np.concatenate([pressed[source], new])[-n_cm:]
            if empty:
                new[: n_cm - min(n_cm, max(0, passed + n - n_m) // c)] = 0.0
            new_memory.append(queue[n:])
            new_pressed.append(new)
        outputs.append(X)
        if rows == n:
            memory, pressed = np.stack(new_memory), np.stack(new_pressed)
            if s.get("stop_gradient", True):
                memory, pressed = frozen.setdefault(number, (memory, pressed))
    return np.concatenate(outputs)


def compressive_case(name, s, T, d_in, loss, seed):
    d, heads, F, c = s["width"], s["heads"], s.get("feed_forward", 0) or 4 * s["width"], s["ratio"]

    def gru():
        if s.get("residual", "gru") == "add":
            return {}
        found = {"gru.weight_ih": ((3 * d, d), 0.6), "gru.weight_hh": ((3 * d, d), 0.6), "gru.bias_ih": ((3 * d,), 0.3), "gru.bias_hh": ((3 * d,), 0.3)}
        if s.get("mogrify", False):
            for which in "QR":
                found |= linear_shapes(f"mogrify.{which}.0", max(1, d // 4), d, s.get("mogrify_bias", False)) | linear_shapes(f"mogrify.{which}.1", d, max(1, d // 4), s.get("mogrify_bias", False))
        return found

    one = {}
    if s.get("position", "learned") == "learned":
        one |= {"pos_emb": ((heads, s["segment"] + s["mem_len"] + s["cmem_len"], d // heads), 0.6)}
    for i in range(s["depth"]):
        attention = norm_shapes("fn.norm", d) | linear_shapes("fn.fn.to_q", d, d) | linear_shapes("fn.fn.to_kv", 2 * d, d) | linear_shapes("fn.fn.to_out", d, d, True)
        if s.get("compression", "conv") == "conv":
            attention |= {"fn.fn.compress_mem_fn.conv.weight": ((d, d, c), 0.5), "fn.fn.compress_mem_fn.conv.bias": ((d,), 0.3)}
        inner = norm_shapes("fn.norm", d) | linear_shapes("fn.fn.w1", 2 * F if s.get("glu", False) else F, d, True) | linear_shapes("fn.fn.w2", d, F, True)
        one |= prefixed(f"attn_layers.{i}.", attention | gru()) | prefixed(f"ff_layers.{i}.", inner | gru())
    shapes = encoder_shapes(d, d_in) | prefixed("0/", one)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    frozen = {}

    def forward(record, parameters, inputs):
        return stack(lambda layer, p, v: compressive(record, s, p, v), lambda p, v: v, {})(parameters, inputs)

    second = stack(lambda layer, p, v: compressive_matrix(s, p, v, frozen), lambda p, v: v, {})
    make(name, "compressive-transformer", s, loss, "token by token with lists of rows, checked against masked arrays a segment", draw(seed, shapes), x, forward,
         second=second, seed=seed)


# ---------------------------------------------------------------------------------------------------- Block-recurrent

def block_norm(ops, s, p, name, x):
    y = x - x.mean(-1)[..., None] if s.get("norm_mean", False) else x
    y = y / ops.sqrt((y * y).mean(-1) + 1e-6)[..., None] * p[f"{name}.scale"]
    return y + p[f"{name}.bias"] if s.get("norm_bias", False) else y


def dense(p, name, x):
    y = x @ p[f"{name}.kernel"]
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def block_rows(ops, s, p, name, x):
    """Keys, values, queries and queries for the other stream of the rows x, [rows, heads, D]."""
    u = block_norm(ops, s, p, f"{name}._kvq.pre_attn_layernorm", x)
    if f"{name}._kvq.position_embeddings" in p:
        u = u + p[f"{name}._kvq.position_embeddings"]
    found = []
    for which in ("keys", "values", "queries", "queries2"):
        if f"{name}._kvq.{which}_layer.kernel" not in p:
            continue
        y = dense(p, f"{name}._kvq.{which}_layer", u).reshape(len(x), s["heads"], -1)
        if which != "values":
            if s.get("normalise_keys", True):
                y = y / ops.sqrt((y * y).sum(-1) + 1e-6)[..., None]
            elif which != "keys":
                y = y / math.sqrt(y.shape[2])
        found.append(y)
    return found


def gated(ops, s, p, name, x, state, how, last_tanh):
    """An MLP of one or two layers and its gate onto the state."""
    inside = x
    if f"{name}.hidden0.kernel" in p:
        inside = dense(p, f"{name}.hidden0", x)
        kind = s.get("activation", "relu")
        inside = 2.0 * ops.sigmoid(2.0 * inside) - 1.0 if kind == "tanh" else ops.activation(kind, inside)
    y = dense(p, f"{name}.output_layer", inside)
    if last_tanh:
        y = 2.0 * ops.sigmoid(2.0 * y) - 1.0
    if how == "residual":
        return state + y
    if how == "lstm":
        return state * ops.sigmoid(dense(p, f"{name}.forget_gate", inside) + 1.0) + y * ops.sigmoid(dense(p, f"{name}.input_gate", inside) - 1.0)
    g = ops.sigmoid(p[f"{name}.gate_bias"] if how == "bias" else dense(p, f"{name}.gate_layer", inside) + 1.0)
    return state * g + y * (1.0 - g)


def behind_attention(ops, s, p, name, x, read, how, cell):
    if cell == "single":
        return gated(ops, s, p, f"{name}.ffn", read, x, how, True)
    x = gated(ops, s, p, f"{name}.post_attn_mlp", read, x, how, False)
    if cell == "skip":
        return x
    return gated(ops, s, p, f"{name}.ffn", block_norm(ops, s, p, f"{name}.pre_ffn_layernorm", x), x, how, False)


def bucket_of(age):
    buckets, exact = 32, 16
    if age < exact:
        return age
    place = math.log(age / exact + float(np.finfo(np.float32).eps)) / math.log(128 / exact)
    return min(buckets - 1, exact + int(place * (buckets - exact)))


def waves(rotation, n, age):
    """A query's position vector, turned and scaled by a + ib of each wavelength, times the position vector of a key so many steps before."""
    M = rotation.shape[1] // 2
    vector = lambda place: torch.tensor([complex(math.cos(v), math.sin(v)) for v in (math.pi * place / (2.0 * n) ** (m / M) for m in range(M))])
    return (torch.complex(rotation[:, :M], rotation[:, M:]) * vector(n) * vector(n - age).conj()).real.sum(1)


def layers_with_state(s):
    return [int(digit) - 1 for digit in str(s.get("recurrent_at", 1))]


def turn(s, x, place):
    """A row [heads, D] turned by pi place / 10000^(2m/D), entries m and m + D/2 a pair."""
    half = x.shape[-1] // 2
    angle = [math.pi * place / 10000.0 ** (m / half) for m in range(half)]
    z = torch.complex(x[..., :half], x[..., half:]) * torch.tensor([complex(math.cos(v), math.sin(v)) for v in angle])
    return torch.cat([z.real, z.imag], -1)


def block_recurrent(record, s, p, x):
    """Token by token."""
    n, W, heads, d, depth, D = s["segment"], s["states"], s["heads"], s["width"], s["depth"], s.get("head_dim", 0) or s["width"] // s["heads"]
    with_state, gate, cell, feedback = layers_with_state(s), s.get("gate", "bias"), s.get("cell", "skip"), s.get("feedback", False)
    layers = [under(p, f"transformer{i}.") for i in range(depth)]
    states = Memories(record, 0, state=torch.stack([layers[i]["recurrent_initial_state"] for i in with_state]), keys=torch.zeros(depth, n, heads, D), values=torch.zeros(depth, n, heads, D))
    outputs = []

    def attend_rows(q, keys, values, scale, biases=None):
        """q [heads, D] over rows [heads, D]."""
        out = []
        for h in range(heads):
            scores = torch.stack([q[h] @ k[h] for k in keys])
            if biases is not None:
                scores = scores + biases[h]
            weights = torch.softmax(scores if scale is None else scores * scale[h], 0)
            out.append(sum(w * v[h] for w, v in zip(weights, values)))
        return torch.stack(out)

    for t in range(len(x)):
        place, last = t % n, t % n == n - 1
        states.step(t, last)
        if place == 0:
            keys, values = [[] for _ in layers], [[] for _ in layers]
        of_state = {i: block_rows(Torch, s, layers[i], "recurrent_tbase", states["state"][slot]) for slot, i in enumerate(with_state)}
        row = x[t]
        for i, layer in enumerate(layers):
            found = [y[0] for y in block_rows(Torch, s, layer, "tbase", row[None])]
            k, v, q = found[:3]
            # The n steps before this one: those of the window before that are near enough, and those of this window.
            near, near_values = [*states["keys"][i][place:], *keys[i]], [*states["values"][i][place:], *values[i]]
            kind, biases = s.get("position", "t5"), None
            if kind == "t5":
                biases = layer["relative_positions.rel_embedding"][:, [bucket_of(n - j) for j in range(n)]]
            if kind == "fourier":
                biases = torch.stack([waves(layer["relative_positions.rotation_matrix"], n, n - j) for j in range(n)], 1)
            if kind == "rotary":
                q, near = turn(s, q, place), [turn(s, key, place - n + j) for j, key in enumerate(near)]
            read = [attend_rows(q, near, near_values, layer.get("tbase._kvq.attention_scale"), biases)]
            if i in with_state or feedback:
                other = of_state[i] if i in with_state else of_state[with_state[-1]]
                read.append(attend_rows(found[3], other[0], other[1], layer.get("tbase.attention_scale2")))
            keys[i].append(k)
            values[i].append(v)
            row = behind_attention(Torch, s, layer, "tbase", row, torch.cat(read).reshape(-1), "residual", "dual")
        outputs.append(row)
        if not last:
            continue
        new = []
        for slot, i in enumerate(with_state):
            r_k, r_v, r_q, r_q2 = of_state[i]
            both, both_values = [*states["keys"][i], *keys[i]], [*states["values"][i], *values[i]]
            read = torch.stack([torch.cat([attend_rows(r_q[w], r_k, r_v, layers[i].get("recurrent_tbase._kvq.attention_scale")),
                                           attend_rows(r_q2[w], both, both_values, layers[i].get("recurrent_tbase.attention_scale2"))]).reshape(-1) for w in range(W)])
            new.append(behind_attention(Torch, s, layers[i], "recurrent_tbase", states["state"][slot], read, gate, cell))
        states.become(state=torch.stack(new), keys=torch.stack([torch.stack(k) for k in keys]), values=torch.stack([torch.stack(v) for v in values]))
    return torch.stack(outputs)


def block_matrix(s, p, x):
    """Whole windows as matrices."""
    n, heads, depth, D = s["segment"], s["heads"], s["depth"], s.get("head_dim", 0) or s["width"] // s["heads"]
    with_state, outputs = layers_with_state(s), []
    layers = [under(p, f"transformer{i}.") for i in range(depth)]
    state = {i: layers[i]["recurrent_initial_state"] for i in with_state}
    past = [(np.zeros((n, heads, D)), np.zeros((n, heads, D)))] * depth

    def attention(q, k, v, scale, bias=0.0, visible=True):
        scores = np.einsum("ihd,jhd->hij", q, k) + bias
        scores = scores if scale is None else scores * scale[:, None, None]
        return np.einsum("hij,jhd->ihd", masked_softmax(scores, visible), v)

    def turned_rows(z, first):
        angle = np.pi * (first + np.arange(len(z)))[:, None, None] / 10000.0 ** (2.0 * np.arange(D // 2) / D)
        a, b = z[..., : D // 2], z[..., D // 2:]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)

    for first in range(0, len(x), n):
        X = x[first: first + n]
        rows = len(X)
        of_state = {i: block_rows(Numpy, s, layers[i], "recurrent_tbase", state[i]) for i in with_state}
        ages = n + np.arange(rows)[:, None] - np.arange(n + rows)[None, :]
        for i, layer in enumerate(layers):
            k, v, q, *q2 = block_rows(Numpy, s, layer, "tbase", X)
            all_k, all_v = np.concatenate([past[i][0], k]), np.concatenate([past[i][1], v])
            kind, bias = s.get("position", "t5"), 0.0
            if kind == "t5":
                bias = layer["relative_positions.rel_embedding"][:, np.vectorize(lambda a: bucket_of(max(a, 0)))(ages)]
            if kind == "fourier":
                M = layer["relative_positions.rotation_matrix"].shape[1] // 2
                angle = np.pi * ages / (2.0 * n) ** (np.arange(M) / M)[:, None, None]
                bias = np.tensordot(layer["relative_positions.rotation_matrix"], np.concatenate([np.cos(angle), -np.sin(angle)]), 1)
            turned_k, turned_q = (turned_rows(all_k, -n), turned_rows(q, 0)) if kind == "rotary" else (all_k, q)
            read = [attention(turned_q, turned_k, all_v, layer.get("tbase._kvq.attention_scale"), bias, (ages > 0) & (ages <= n))]
            if q2:
                other = of_state[i] if i in with_state else of_state[with_state[-1]]
                read.append(attention(q2[0], other[0], other[1], layer.get("tbase.attention_scale2")))
            if i in with_state and rows == n:
                r_k, r_v, r_q, r_q2 = of_state[i]
                r = [attention(r_q, r_k, r_v, layer.get("recurrent_tbase._kvq.attention_scale")), attention(r_q2, all_k, all_v, layer.get("recurrent_tbase.attention_scale2"))]
                state[i] = behind_attention(Numpy, s, layer, "recurrent_tbase", state[i], np.concatenate(r, 1).reshape(s["states"], -1), s.get("gate", "bias"), s.get("cell", "skip"))
            past[i] = (k, v)
            X = behind_attention(Numpy, s, layer, "tbase", X, np.concatenate(read, 1).reshape(rows, -1), "residual", "dual")
        outputs.append(X)
    return np.concatenate(outputs)


def block_case(name, s, T, d_in, loss, seed):
    d, heads, W, F = s["width"], s["heads"], s["states"], s.get("feed_forward", 0) or 4 * s["width"]
    E = heads * (s.get("head_dim", 0) or d // heads)

    def norm(name):
        return {f"{name}.scale": ((d,), 0.3, 1.0)} | ({f"{name}.bias": ((d,), 0.3)} if s.get("norm_bias", False) else {})

    def kernel(name, rows, columns, bias):
        return {f"{name}.kernel": ((rows, columns), 1.0 / math.sqrt(rows))} | ({f"{name}.bias": ((columns,), 0.3)} if bias else {})

    def mlp(name, rows, inside, how):
        bias = s.get("mlp_bias", False)
        found = (kernel(f"{name}.hidden0", rows, inside, bias) if inside else {}) | kernel(f"{name}.output_layer", inside or rows, d, bias)
        if how == "bias":
            found |= {f"{name}.gate_bias": ((d,), 0.7)}
        gates = {"full": ["gate_layer"], "lstm": ["input_gate", "forget_gate"]}.get(how, [])
        for gate in gates:
            found |= kernel(f"{name}.{gate}", inside or rows, d, True)
        return found

    def base(name, crosses, positions, how, cell):
        found = norm(f"{name}._kvq.pre_attn_layernorm")
        for which in ["keys", "values", "queries"] + (["queries2"] if crosses else []):
            found |= kernel(f"{name}._kvq.{which}_layer", d, E, False)
        if s.get("normalise_keys", True):
            found |= {f"{name}._kvq.attention_scale": ((heads,), 0.5, 2.0)}
            if crosses:
                found |= {f"{name}.attention_scale2": ((heads,), 0.5, 2.0)}
        if positions:
            found |= {f"{name}._kvq.position_embeddings": ((positions, d), 0.7)}
        of_attention = 2 * E if crosses else E
        if cell != "single":
            found |= mlp(f"{name}.post_attn_mlp", of_attention, 0, how)
        if cell == "dual":
            found |= norm(f"{name}.pre_ffn_layernorm")
        if cell != "skip":
            found |= mlp(f"{name}.ffn", of_attention if cell == "single" else d, F, how)
        return found

    one = {}
    for i in range(s["depth"]):
        recurrent = i in layers_with_state(s)
        inner = base("tbase", recurrent or s.get("feedback", False), 0, "residual", "dual")
        if recurrent:
            inner |= base("recurrent_tbase", True, W, s.get("gate", "bias"), s.get("cell", "skip")) | {"recurrent_initial_state": ((W, d), 0.7)}
        if s.get("position", "t5") == "t5":
            inner |= {"relative_positions.rel_embedding": ((heads, 32), 0.7)}
        if s.get("position", "t5") == "fourier":
            inner |= {"relative_positions.rotation_matrix": ((heads, s["position_vector"]), 0.7)}
        one |= prefixed(f"transformer{i}.", inner)
    if s.get("final_norm", True):
        one |= norm("final_layernorm")
    shapes = encoder_shapes(d, d_in) | prefixed("0/", one)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def finish(ops):
        return lambda p, v: block_norm(ops, s, p, "final_layernorm", v) if s.get("final_norm", True) else v

    def forward(record, parameters, inputs):
        return stack(lambda layer, p, v: finish(Torch)(p, block_recurrent(record, s, p, v)), lambda p, v: v, {})(parameters, inputs)

    second = stack(lambda layer, p, v: finish(Numpy)(p, block_matrix(s, p, v)), lambda p, v: v, {})
    make(name, "block-recurrent", s, loss, "token by token, checked against whole windows as matrices", draw(seed, shapes), x, forward, second=second, seed=seed)


# -------------------------------------------------------------------------------------------------------------- cases

def main():
    infini_case("infini-attention", {"width": 6, "heads": 1, "layers": 2, "segment": 4, "feed_forward": 5, "block": "residual"}, 14, 6, "mean", 801)
    delta = {"width": 4, "heads": 2, "head_dim": 3, "layers": 1, "segment": 3, "rule": "delta", "position": "none", "first_segment": "zero", "block": "none"}
    infini_case("infini-attention-delta", delta, 13, 3, "mean", 802)
    turned_too = {"width": 4, "heads": 2, "head_dim": 4, "layers": 2, "segment": 3, "rule": "delta", "gate": "local", "rotary_base": 50.0, "rotary_memory": True,
                  "stop_gradient": True, "eps": 0.5, "feed_forward": 3, "block": "residual"}
    infini_case("infini-attention-rotary-memory", turned_too, 11, 4, "mean", 803)

    compressive_case("compressive-transformer", {"width": 4, "heads": 2, "depth": 2, "segment": 4, "mem_len": 6, "cmem_len": 3, "ratio": 2, "feed_forward": 3}, 19, 4, "mean", 811)
    through = {"width": 4, "heads": 1, "depth": 2, "segment": 2, "mem_len": 4, "cmem_len": 2, "ratio": 2, "feed_forward": 3, "glu": True, "residual": "add",
               "stop_gradient": False, "start": "zeros", "compression": "conv", "memory_at": 2}
    compressive_case("compressive-transformer-through", through, 17, 3, "mean", 812)
    for number, how in enumerate(["mean", "max", "most-used"]):
        one = {"width": 4, "heads": 2, "depth": 1, "segment": 4, "mem_len": 4, "cmem_len": 3, "ratio": 2, "feed_forward": 3, "residual": "add", "compression": how,
               "stop_gradient": False, "position": "none", "enhanced_recurrence": False}
        compressive_case(f"compressive-transformer-{how}", one, 19, 4, "last", 813 + number)
    some = {"width": 4, "heads": 1, "depth": 1, "segment": 3, "mem_len": 3, "cmem_len": 3, "ratio": 1, "feed_forward": 2, "mogrify": True, "mogrify_bias": True}
    compressive_case("compressive-transformer-mogrify", some, 10, 4, "mean", 816)

    block_case("block-recurrent", {"width": 4, "heads": 2, "depth": 1, "segment": 4, "states": 2, "feed_forward": 5}, 16, 4, "mean", 821)
    feedback = {"width": 4, "heads": 1, "head_dim": 2, "depth": 2, "recurrent_at": 2, "segment": 3, "states": 2, "feed_forward": 3, "gate": "lstm", "cell": "dual",
                "feedback": True, "position": "rotary", "norm_mean": True, "norm_bias": True, "final_norm": False}
    block_case("block-recurrent-feedback", feedback, 9, 4, "mean", 822)
    single = {"width": 3, "heads": 1, "depth": 2, "recurrent_at": 12, "segment": 2, "states": 2, "feed_forward": 3, "gate": "full", "cell": "single", "activation": "swish",
              "mlp_bias": True, "normalise_keys": False, "position": "none"}
    block_case("block-recurrent-single", single, 6, 4, "last", 823)
    for number, f in enumerate(["sigmoid", "tanh"]):
        far = {"width": 2, "heads": 1, "depth": 1, "segment": 20 if f == "tanh" else 2, "states": 1, "feed_forward": 2, "activation": f, "final_norm": False}
        if f == "sigmoid":
            far |= {"segment": 3, "states": 2, "position": "fourier", "position_vector": 6}
        block_case(f"block-recurrent-{f}", far, 23 if f == "tanh" else 9, 2, "mean", 824 + number)


if __name__ == "__main__":
    main()
