# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers whose memory goes from segment to segment, token by token, each checked against whole segments as matrices.

Infini-attention  Munkhdalai et al. 2024; lucidrains/infini-transformer-pytorch, infini_transformer.py (the authors published no code).
Compressive transformer  Rae et al. 2020; lucidrains/compressive-transformer-pytorch (likewise), with the mogrifier of lucidrains/mogrifier.
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


if __name__ == "__main__":
    main()
