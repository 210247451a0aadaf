# SPDX-License-Identifier: GPL-3.0-or-later
"""ReLiT (GaLiTe) step by step, checked against sums over all pairs of steps, the delta rule against rounds of all steps at once. The
spectrum of the delta rule is that of c, with s held.

Pramanik et al. 2023; subho406/agalite, src/models/agalite/galite.py, whose outputs and gradients the golden files have.
"""
import math

import numpy as np
import torch

from harness import draw, make, settle, under
from parts import Numpy, Torch, prefixed


def dense(p, name, x):
    return x @ p[f"{name}.kernel"] + p.get(f"{name}.bias", 0.0)


def gate(ops, p, x, y):
    """The gated recurrent unit of GTrXL between a stream x and what a part y makes of it; in NumPy with both inputs side by side and the logistic function as a tanh."""
    if ops is Torch:
        reset = torch.sigmoid(dense(p, "Wr", y) + dense(p, "Ur", x))
        update = torch.sigmoid(dense(p, "Wz", y) + dense(p, "Uz", x) - p["bgp"])
        return (1.0 - update) * x + update * torch.tanh(dense(p, "Wg", y) + dense(p, "Ug", reset * x))
    both = lambda letter, left, right: np.hstack([left, right]) @ np.vstack([p[f"W{letter}.kernel"], p[f"U{letter}.kernel"]]) + p.get(f"W{letter}.bias", 0.0) + p.get(f"U{letter}.bias", 0.0)
    reset, kept = 0.5 + 0.5 * np.tanh(0.5 * both("r", y, x)), 0.5 - 0.5 * np.tanh(0.5 * (both("z", y, x) - p["bgp"]))
    return kept * x + (1.0 - kept) * np.tanh(both("g", y, reset * x))


def heads_dense(ops, p, name, x):
    """x [T, in] for all heads or [T, heads, in] of each: [T, heads, out]."""
    y = (torch if ops is Torch else np).einsum("ti,hio->tho" if x.ndim == 2 else "thi,hio->tho", x, p[f"{name}.kernel"])
    return y + p[f"{name}.bias"]


def product(ops, p, name, x, f):
    a, b = f(heads_dense(ops, p, f"{name}.Dense_0", x)), f(heads_dense(ops, p, f"{name}.Dense_1", x))
    return (a[:, :, :, None] * b[:, :, None, :]).reshape(len(x), a.shape[1], -1)


def feature_map(ops, s, p, x, scope, number):
    kind, nu = s["feature_map"], s["nu"]
    relu = lambda y: ops.activation("relu", y)
    elu = torch.nn.functional.elu if ops is Torch else lambda y: np.where(y > 0.0, y, np.expm1(np.minimum(y, 0.0)))
    f = relu if kind.endswith("relu") else lambda y: elu(y) + 1.0
    if kind.startswith("pp_"):
        return product(ops, p, f"{scope}ParameteredProjection_0", x, f)
    y = heads_dense(ops, p, f"{scope}Dense_{number}", x)
    if kind != "dpfp":
        return f(y)
    y = ops.concatenate([relu(y), relu(-y)], -1)
    roll = (lambda z, j: torch.roll(z, j, -1)) if ops is Torch else (lambda z, j: np.roll(z, j, -1))
    return ops.concatenate([y * roll(y, j) for j in range(1, nu + 1)], -1)


def inputs_of(ops, s, p, x):
    """phi(k), phi(q) [T, heads, F], v [T, heads, D], and what the update is made of: write and keep of c [T, heads, F, D] and of s [T, heads, F]."""
    pp, rule = s["feature_map"].startswith("pp_"), s["update"]
    k = feature_map(ops, s, p, x, "csop.", 0)
    at = 0 if pp else 1
    v = heads_dense(ops, p, f"csop.Dense_{at}", x)
    q = feature_map(ops, s, p, heads_dense(ops, p, "Dense_0", x), "", 1)
    gates = lambda n: ops.sigmoid(heads_dense(ops, p, f"csop.Dense_{at + n}", x))
    if rule == "delta":
        norm = lambda y: (((y * y).sum(-1)) ** 0.5)[:, :, None]
        return k / norm(k), q / (norm(q) + 1e-6), v, (gates(1), gates(2))
    if rule == "gated_peng":
        beta = gates(1)
        return k, q, v, (beta[:, :, :, None], 1.0 - beta[:, :, :, None], beta, 1.0 - beta)
    if rule == "mega":
        b, bd, g, gd = (ops.sigmoid(p[f"csop.{name}"]) for name in ("beta", "beta_damp", "gamma", "gamma_damp"))
        write = g[:, :, None] * b[:, None, :]
        damped = (gd[:, :, None] * bd[:, None, :]) * write
        return k, q, v, (write[None], 1.0 - damped[None], g[None], 1.0 - (g * gd)[None])
    beta = gates(1)
    gamma = gates(2) if rule == "keyvalue_gated" else product(ops, p, f"csop.ParameteredProjection_{1 if pp else 0}", x, ops.sigmoid)
    write = gamma[:, :, :, None] * beta[:, :, None, :]
    return k, q, v, (write, 1.0 - write, gamma, 1.0 - gamma)


def read(s, c, total, q):
    return ((c * q[..., None]).sum(-2) / ((total * q).sum(-1)[..., None] + s.get("eps", 1e-10)))


def at_step(y, t):
    return y[t] if len(y) > 1 else y[0]


def steps(record, layer, s, p, x, starts):
    k, q, v, update = inputs_of(Torch, s, p, x)
    H, F, D, reads = k.shape[1], k.shape[2], v.shape[2], []
    c, total = torch.zeros(H, F, D), torch.zeros(H, F)
    for t in range(len(x)):
        if s["update"] == "delta":
            beta, gamma = update[0][t], update[1][t]
            share = (beta * gamma)[:, :, None]
            matrices = [(1.0 - gamma[h]) * torch.eye(F) - share[h] * k[t, h][:, None] * k[t, h][None, :] for h in range(H)]
            record.linear(layer, [m for m in matrices for _ in range(D)], False)
            recalled = (c * k[t][:, :, None]).sum(1)
            c = record.state(layer, "c", c * (1.0 - gamma)[:, :, None] + share * k[t][:, :, None] * (v[t] - recalled)[:, None, :])
            total = record.state(layer, "s", total * (1.0 - gamma) + k[t] * gamma * beta)
        else:
            write, keep, write_s, keep_s = (at_step(y, t) for y in update)
            on = 1.0 - float(starts[t])
            record.transition(layer, torch.cat([(on * keep).expand(c.shape).reshape(-1), (on * keep_s).expand(total.shape).reshape(-1)]), len(update[0]) == 1 < len(x) and not starts.any())
            c = record.state(layer, "c", on * keep * c + write * (k[t][:, :, None] * v[t][:, None, :]))
            total = record.state(layer, "s", on * keep_s * total + write_s * k[t])
        reads.append(read(s, c, total, q[t]).reshape(-1))
    return torch.stack(reads)


def pairs(s, p, x, starts):
    k, q, v, update = inputs_of(Numpy, s, p, x)
    T, H, F, D = len(x), k.shape[1], k.shape[2], v.shape[2]
    if s["update"] == "delta":
        beta, gamma = update

        def once(c, total):
            recalled = (c * k[:, :, :, None]).sum(2)
            return (c * (1.0 - gamma)[..., None] + (beta * gamma)[..., None] * k[:, :, :, None] * (v - recalled)[:, :, None, :], total * (1.0 - gamma) + k * gamma * beta)

        c, total = settle(once, T, (H, F, D), (H, F))
        return read(s, c, total, q).reshape(T, -1)
    full = lambda y: np.broadcast_to(y, (T, *y.shape[1:]))
    write, keep, write_s, keep_s = map(full, update)
    reads = []
    for t in range(T):
        first = max([j for j in range(t + 1) if starts[j]], default=0)
        c, total = np.zeros((H, F, D)), np.zeros((H, F))
        for j in range(first, t + 1):
            c = c + write[j] * (k[j][:, :, None] * v[j][:, None, :]) * np.prod(keep[j + 1: t + 1], axis=0)
            total = total + write_s[j] * k[j] * np.prod(keep_s[j + 1: t + 1], axis=0)
        reads.append(read(s, c, total, q[t]).reshape(-1))
    return np.array(reads)


def layer_of(ops, s, p, x, memory):
    flow = s.get("flow", "gtrxl")
    if "emb_layer.kernel" in p:
        x = dense(p, "emb_layer", x)
    relu = lambda y: ops.activation("relu", y)
    norm = lambda name, y: ops.layer_norm(y, p[f"{name}.scale"], p[f"{name}.bias"], 1e-6)
    inner = under(p, "RLTAttentionLayer_0.")
    out = f"Dense_{1 if s['feature_map'].startswith('pp_') else 2}"
    attend = lambda y: dense(inner, out, memory(inner, y))
    feed = lambda y: dense(p, "Dense_1", relu(dense(p, "Dense_0", y)))
    if flow == "vanilla":
        x = norm("LayerNorm_0", x + attend(x))
        return norm("LayerNorm_1", x + feed(x))
    a = relu(attend(norm("LayerNorm_0", x)))
    x = gate(ops, under(p, "GRUGatingUnit_0."), x, a) if flow == "gtrxl" else x + a
    f = relu(feed(norm("LayerNorm_1", x)))
    return gate(ops, under(p, "GRUGatingUnit_1."), x, f) if flow == "gtrxl" else x + f


def case(name, s, T, d_in, loss, seed):
    d, H, D, nu, ffc, column = s["width"], s["heads"], s["head_dim"], s["nu"], s["feed_forward"], s.get("reset_column", 0)
    kind, rule = s["feature_map"], s["update"]
    F = D * nu * (2 if kind == "dpfp" else 1)

    def kernel(name, rows, columns, bias=True):
        return {f"{name}.kernel": ((rows, columns), 1.0 / math.sqrt(rows))} | ({f"{name}.bias": ((columns,), 0.3)} if bias else {})

    def by_head(name, rows, columns, mean=0.0):
        return {f"{name}.kernel": ((H, rows, columns), 1.0 / math.sqrt(rows)), f"{name}.bias": ((H, columns), 0.3, mean)}

    def projection(name, rows):
        return by_head(f"{name}.Dense_0", rows, D, 1.0) | by_head(f"{name}.Dense_1", rows, nu, 1.0)  # features that are not all 0

    def mapped(scope, number, rows):
        if kind.startswith("pp_"):
            return projection(f"{scope}ParameteredProjection_0", rows)
        return by_head(f"{scope}Dense_{number}", rows, D if kind == "dpfp" else F, 0.0 if kind == "dpfp" else 1.0)

    shapes = {}
    for layer in range(s["layers"]):
        one = kernel("emb_layer", d_in - (column > 0), d) if layer == 0 else {}
        for n in (0, 1):
            one |= {f"LayerNorm_{n}.scale": ((d,), 0.3, 1.0), f"LayerNorm_{n}.bias": ((d,), 0.3)}
            if s.get("flow", "gtrxl") == "gtrxl":
                one |= {f"GRUGatingUnit_{n}.bgp": ((d,), 0.5)}
                for part in ("Wr", "Ur", "Wz", "Uz", "Wg", "Ug"):
                    one |= kernel(f"GRUGatingUnit_{n}.{part}", d, d, False)
        pp = kind.startswith("pp_")
        at = 0 if pp else 1
        inner = mapped("csop.", 0, d) | by_head(f"csop.Dense_{at}", d, D) | by_head("Dense_0", d, D) | mapped("", 1, D) | kernel(f"Dense_{1 if pp else 2}", H * D, d)
        if rule == "mega":
            inner |= {f"csop.{name}": ((H, D if name.startswith("beta") else F), 0.8) for name in ("beta", "beta_damp", "gamma", "gamma_damp")}
        else:
            inner |= by_head(f"csop.Dense_{at + 1}", d, 1 if rule in ("delta", "gated_peng") else D)
        if rule == "delta":
            inner |= by_head(f"csop.Dense_{at + 2}", d, 1)
        if rule == "keyvalue_gated":
            inner |= by_head(f"csop.Dense_{at + 2}", d, F)
        if rule == "projected_sigmoid":
            inner |= by_head(f"csop.ParameteredProjection_{1 if pp else 0}.Dense_0", d, D) | by_head(f"csop.ParameteredProjection_{1 if pp else 0}.Dense_1", d, F // D)
        shapes |= prefixed(f"{layer}/", one | prefixed("RLTAttentionLayer_0.", inner) | kernel("Dense_0", d, ffc) | kernel("Dense_1", ffc, d))
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    starts = x[:, column - 1] > 0.9 if column else np.zeros(T)
    if column:
        x[:, column - 1] = starts
    keep = [i for i in range(d_in) if i != column - 1]

    def run(ops, memory):
        def forward(parameters, inputs):
            y = inputs[:, keep]
            for layer in range(s["layers"]):
                y = layer_of(ops, s, under(parameters, f"{layer}/"), y, lambda p, z: memory(layer, p, z))
            return y
        return forward

    def forward(record, parameters, inputs):
        return run(Torch, lambda layer, p, z: steps(record, layer, s, p, z, starts))(parameters, inputs)

    make(name, "relit", s, loss, "step by step, checked against sums over all pairs of steps", draw(seed, shapes), x, forward,
         second=run(Numpy, lambda layer, p, z: pairs(s, p, z, starts)), seed=seed)


def main():
    small = {"width": 4, "layers": 1, "heads": 2, "head_dim": 2, "nu": 2, "feed_forward": 3}
    case("relit", small | {"update": "projected_sigmoid", "feature_map": "pp_relu", "reset_column": 2}, 12, 3, "mean", 1841)
    case("relit-keyvalue", small | {"update": "keyvalue_gated", "feature_map": "pp_eluplus1", "eps": 1e-3}, 12, 3, "mean", 1822)
    case("relit-peng", small | {"layers": 2, "update": "gated_peng", "feature_map": "relu", "nu": 3, "flow": "trxl1"}, 14, 3, "last", 1823)
    case("relit-mega", small | {"update": "mega", "feature_map": "dpfp", "flow": "vanilla", "head_dim": 3, "eps": 1e-2}, 12, 3, "mean", 1824)
    case("relit-delta", small | {"update": "delta", "feature_map": "eluplus1"}, 12, 3, "mean", 1825)


if __name__ == "__main__":
    main()
