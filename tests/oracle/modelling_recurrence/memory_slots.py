# SPDX-License-Identifier: GPL-3.0-or-later
"""Memformer, token by token, head by head and slot by slot, checked against whole segments as matrices.

Wu et al. 2022; lucidrains/memformer, memformer/memformer.py, its encoder made causal; the writer with biased memory normalisation from the paper.
"""
import math

import numpy as np
import torch

from harness import draw, make, under
from parts import Numpy, Torch, affine, encoder_shapes, linear_shapes, norm_shapes, prefixed, stack
from segment_memories import Memories
from softmax_attention import masked_softmax


def t5_bucket(distance):
    """32 buckets of what lies before."""
    if distance < 16:
        return max(distance, 0)
    return min(31, 16 + int(math.log(distance / 16) / math.log(128 / 16) * 16))


def memory_norm(ops, p, name, x):
    return ops.layer_norm(x, p[f"{name}.weight"], p[f"{name}.bias"])


def forward_part(ops, p, name, x):
    """x + the feed-forward part of its norm."""
    return x + affine(p, f"{name}.fn.net.2", ops.activation("gelu", affine(p, f"{name}.fn.net.0", memory_norm(ops, p, f"{name}.norm", x))))


def queries(p, name, x, heads):
    return affine(p, f"{name}.to_q", x).reshape(*x.shape[:-1], heads, -1)


def keys_values(p, name, x, heads):
    """The bias of the keys adds the same to all scores of a row: it is not read, so that its gradient is 0."""
    d = x.shape[-1]
    W, b = p[f"{name}.to_kv.weight"], p[f"{name}.to_kv.bias"]
    split = lambda z: z.reshape(*x.shape[:-1], heads, -1)
    return split(x @ W[:d].T), split(x @ W[d:].T + b[d:])


def gru(ops, p, x, state):
    """The cell of PyTorch's GRUCell."""
    d = state.shape[-1]
    i, h = x @ p["gru.weight_ih"].T + p["gru.bias_ih"], state @ p["gru.weight_hh"].T + p["gru.bias_hh"]
    r, z = ops.sigmoid(i[..., :d] + h[..., :d]), ops.sigmoid(i[..., d: 2 * d] + h[..., d: 2 * d])
    n = 2.0 * ops.sigmoid(2.0 * (i[..., 2 * d:] + r * h[..., 2 * d:])) - 1.0
    return (1.0 - z) * n + z * state


def slot_by_slot(s, p, memory, outputs):
    """The slots after a segment: each in turn, one list of what it may attend to."""
    heads = s.get("write_heads", 4)
    for _ in range(s.get("updates", 1)):
        slots = []
        for i, slot in enumerate(memory):
            read = []
            rows = [slot, *outputs]
            q, kv = queries(p, "mem_updater", slot, heads), [keys_values(p, "mem_updater", row, heads) for row in rows]
            for h in range(heads):
                D = q.shape[1]
                scores = torch.stack([q[h] @ k[h] for k, _ in kv]) / math.sqrt(D)
                values = [v[h] for _, v in kv]
                if s.get("writer", "slot") == "slot":
                    scores, values[0] = scores / s.get("temperature", 0.25), slot.reshape(heads, D)[h]
                read.append(torch.softmax(scores, 0) @ torch.stack(values))
            read = torch.cat(read)
            if s.get("writer", "slot") == "slot":
                read = read + p["v_bias"][i] if s.get("forgetting", True) else read
                slots.append(read / torch.linalg.vector_norm(read))
            else:
                slots.append(forward_part(Torch, p, "mem_ff.fn", gru(Torch, p, affine(p, "mem_updater.to_out", read), slot)))
        memory = torch.stack(slots)
    return memory


def memformer(record, s, p, x):
    n, heads = s["segment"], s["heads"]
    layers = [under(p, f"encoder.layer_blocks.layers.{i}.") for i in range(s["depth"])]
    rel = p["encoder.layer_blocks.rel_pos_emb.relative_attention_bias.weight"]
    if s.get("writer", "slot") == "slot":
        first = p["v_bias"] / torch.sqrt((p["v_bias"] ** 2).sum(1))[:, None]
    else:
        first = p["memory_slots"]
    states, reads = Memories(record, 0, memory=first), []

    def attend_to(layer, name, row, kv, added):
        q, read = queries(layer, name, row, heads), []
        for h in range(heads):
            scores = torch.stack([q[h] @ k[h] for k, _ in kv]) / math.sqrt(q.shape[1]) + added[:, h]
            read.append(torch.softmax(scores, 0) @ torch.stack([v[h] for _, v in kv]))
        return affine(layer, f"{name}.to_out", torch.cat(read))

    for t in range(len(x)):
        place, last = t % n, t % n == n - 1
        states.step(t, last)
        if place == 0:
            seen, outputs = [[] for _ in layers], []
        row = x[t]
        for layer, past in zip(layers, seen):
            u = memory_norm(Torch, layer, "0.fn.norm", row)
            past.append(keys_values(layer, "0.fn.fn", u, heads))
            row = row + attend_to(layer, "0.fn.fn", u, past, rel[[t5_bucket(place - j) for j in range(place + 1)]])
            of_memory = [keys_values(layer, "1.fn.fn", slot, heads) for slot in states["memory"]]
            row = row + attend_to(layer, "1.fn.fn", memory_norm(Torch, layer, "1.fn.norm", row), of_memory, torch.zeros(len(of_memory), heads))
            row = forward_part(Torch, layer, "2.fn", row)
        outputs.append(memory_norm(Torch, p, "encoder.norm", row))
        reads.append(outputs[-1])
        if last:
            states.become(memory=slot_by_slot(s, p, states["memory"], outputs))
    return torch.stack(reads)


def memformer_matrix(s, p, x):
    """A mask over slots and steps in place of slots one by one."""
    n, heads, write_heads, slot_writer = s["segment"], s["heads"], s.get("write_heads", 4), s.get("writer", "slot") == "slot"
    rel = p["encoder.layer_blocks.rel_pos_emb.relative_attention_bias.weight"]
    memory = p["v_bias"] / np.linalg.norm(p["v_bias"], axis=1, keepdims=True) if slot_writer else p["memory_slots"]
    reads = []

    def attention(layer, name, x, y, h, bias, visible):
        (k, v), q = keys_values(layer, name, y, h), queries(layer, name, x, h)
        weights = masked_softmax(np.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[2]) + bias, visible)
        return affine(layer, f"{name}.to_out", np.einsum("hij,jhd->ihd", weights, v).reshape(len(x), -1))

    for first in range(0, len(x), n):
        X = x[first: first + n]
        ages = np.arange(len(X))[:, None] - np.arange(len(X))[None, :]
        bias = np.moveaxis(rel[np.vectorize(t5_bucket)(ages)], 2, 0)
        for i in range(s["depth"]):
            layer = under(p, f"encoder.layer_blocks.layers.{i}.")
            u = memory_norm(Numpy, layer, "0.fn.norm", X)
            X = X + attention(layer, "0.fn.fn", u, u, heads, bias, ages >= 0)
            X = X + attention(layer, "1.fn.fn", memory_norm(Numpy, layer, "1.fn.norm", X), memory, heads, 0.0, True)
            X = forward_part(Numpy, layer, "2.fn", X)
        E = memory_norm(Numpy, p, "encoder.norm", X)
        reads.append(E)
        N = len(memory)
        own = np.concatenate([np.eye(N) > 0, np.ones((N, len(X))) > 0], 1)
        for _ in range(s.get("updates", 1)):
            rows = np.concatenate([memory, E])
            if not slot_writer:
                read = attention(p, "mem_updater", memory, rows, write_heads, 0.0, own)
                memory = forward_part(Numpy, p, "mem_ff.fn", gru(Numpy, p, read, memory))
                continue
            (k, v), q = keys_values(p, "mem_updater", rows, write_heads), queries(p, "mem_updater", memory, write_heads)
            v = np.concatenate([memory.reshape(N, write_heads, -1), v[N:]])
            weights = masked_softmax(np.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[2]) / s.get("temperature", 0.25), own)
            read = np.einsum("hij,jhd->ihd", weights, v).reshape(N, -1) + (p["v_bias"] if s.get("forgetting", True) else 0.0)
            memory = read / np.sqrt((read * read).sum(1, keepdims=True))
    return np.concatenate(reads)


def memformer_case(name, s, T, d_in, loss, seed):
    d, N, F, slot_writer = s["width"], s["slots"], s.get("feed_forward", 0) or 4 * s["width"], s.get("writer", "slot") == "slot"
    attention = lambda name, out=True: linear_shapes(f"{name}.to_q", d, d, True) | linear_shapes(f"{name}.to_kv", 2 * d, d, True) | (linear_shapes(f"{name}.to_out", d, d, True) if out else {})
    part = lambda name: linear_shapes(f"{name}.fn.net.0", F, d, True) | linear_shapes(f"{name}.fn.net.2", d, F, True) | norm_shapes(f"{name}.norm", d)
    one = {"encoder.layer_blocks.rel_pos_emb.relative_attention_bias.weight": ((32, s["heads"]), 0.7)}
    for i in range(s["depth"]):
        at = f"encoder.layer_blocks.layers.{i}"
        one |= attention(f"{at}.0.fn.fn") | norm_shapes(f"{at}.0.fn.norm", d) | attention(f"{at}.1.fn.fn") | norm_shapes(f"{at}.1.fn.norm", d) | part(f"{at}.2.fn")
    one |= norm_shapes("encoder.norm", d)
    if slot_writer:
        one |= {"v_bias": ((N, d), 0.5)} | attention("mem_updater", False)
    else:
        one |= {"memory_slots": ((N, d), 1.0)} | attention("mem_updater")
        one |= {"gru.weight_ih": ((3 * d, d), 0.5), "gru.weight_hh": ((3 * d, d), 0.5), "gru.bias_ih": ((3 * d,), 0.5), "gru.bias_hh": ((3 * d,), 0.5)} | part("mem_ff.fn")
    shapes = encoder_shapes(d, d_in) | prefixed("0/", one)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def forward(record, parameters, inputs):
        return stack(lambda layer, p, v: memformer(record, s, p, v), lambda p, v: v, {})(parameters, inputs)

    second = stack(lambda layer, p, v: memformer_matrix(s, p, v), lambda p, v: v, {})
    make(name, "memformer", s, loss, "token by token, head by head and slot by slot, checked against whole segments as matrices", draw(seed, shapes), x, forward, second=second, seed=seed)


def main():
    memformer_case("memformer", {"width": 4, "heads": 2, "depth": 2, "segment": 3, "slots": 2, "feed_forward": 3, "write_heads": 1, "temperature": 0.5}, 10, 3, "mean", 861)
    kept = {"width": 4, "heads": 1, "depth": 1, "segment": 20, "slots": 2, "feed_forward": 2, "write_heads": 2, "forgetting": False, "updates": 2}
    memformer_case("memformer-kept", kept, 23, 2, "mean", 862)
    gru = {"width": 4, "heads": 2, "depth": 1, "segment": 3, "slots": 2, "feed_forward": 2, "writer": "gru", "write_heads": 2, "updates": 2}
    memformer_case("memformer-gru", gru, 8, 3, "last", 863)


if __name__ == "__main__":
    main()
