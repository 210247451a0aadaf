# SPDX-License-Identifier: GPL-3.0-or-later
"""GateLoop as a step loop over a complex memory, checked against a sum over pairs of steps.

Katsch 2023; lucidrains/gateloop-transformer, gateloop_transformer.py: gate_loop_operator, GateLoopedAttention, Transformer.
"""
import numpy as np
import torch

from matrix_memory import by_head, run_case
from parts import Numpy, Torch, linear_shapes, norm_shapes


def sizes(s):
    inner = s.get("inner", 0) or s["width"]
    return inner, s.get("heads", 0) or inner


def inputs(ops, s, p, x):
    """Queries, keys and values by head, and moduli and angles of the transitions, [steps, heads, 1 or size]."""
    inner, H = sizes(s)
    q, k, v = (by_head(y, H) for y in ops.split(x @ p["0.fn.to_qkv.weight"].T, [inner] * 3))
    if s.get("transition", "complex") == "none":
        one = q[:, :, :1] * 0.0 + 1.0
        return q, k, v, one, one * 0.0
    z = by_head(x @ p["0.fn.to_a.0.weight"].T + p["0.fn.to_a.0.bias"], H)
    z = z.reshape(*z.shape[:2], -1, 2)
    alpha, beta = z[..., 0], z[..., 1]
    kind = s.get("transition", "complex")
    if kind == "polar":
        return q, k, v, ops.sigmoid(alpha), beta
    if kind == "real":
        beta = beta * 0.0
    angle = torch.atan2(beta, alpha) if ops is Torch else np.arctan2(beta, alpha)
    return q, k, v, ops.sigmoid(ops.sqrt(alpha * alpha + beta * beta)), angle


def output(ops, s, p, x, y):
    y = y.reshape(len(x), -1)
    if s.get("sub_norm", False):
        y = ops.layer_norm(y, p["0.fn.maybe_sub_ln.weight"], p["0.fn.maybe_sub_ln.bias"])
    if s.get("swish_gate", True):
        y = ops.activation("silu", x @ p["0.fn.to_gates.0.weight"].T) * y
    return y @ p["0.fn.to_out.weight"].T if "0.fn.to_out.weight" in p else y


def gateloop(record, layer, s, p, x):
    q, k, v, size, angle = inputs(Torch, s, p, x)
    turns = s.get("transition", "complex") != "none"
    S = torch.zeros(k.shape[1], k.shape[2], v.shape[2], dtype=torch.complex128 if turns else torch.float64)
    reads = []
    for t in range(len(x)):
        a = (torch.polar(size[t], angle[t]) if turns else size[t])[:, :, None].expand(S.shape)
        record.transition(layer, a, constant=not turns)
        S = record.state(layer, "S", a * S + k[t][:, :, None] * v[t][:, None, :])
        reads.append(((S.real if turns else S) * q[t][:, :, None]).sum(1))
    return output(Torch, s, p, x, torch.stack(reads))


def pairs(s, p, x):
    """y_t = sum over s <= t of Re(a_{s+1} ... a_t) (q_t . k_s) v_s, moduli and angles summed apart."""
    q, k, v, size, angle = inputs(Numpy, s, p, x)
    A, B = np.cumsum(np.log(size), axis=0), np.cumsum(angle, axis=0)
    kernel = np.exp(np.minimum(A[:, None] - A[None, :], 0.0)) * np.cos(B[:, None] - B[None, :])
    scores = np.tril(np.einsum("thk,tshk,shk->hts", q, np.broadcast_to(kernel, (len(x), *k.shape)), k))
    return output(Numpy, s, p, x, np.einsum("hts,shv->thv", scores, v))


def rms(x, gamma):
    return x / ((x * x).mean(-1)[:, None]) ** 0.5 * gamma


def layer(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    feed = lambda y: ops.activation("gelu", y @ p["1.fn.0.weight"].T + p["1.fn.0.bias"]) @ p["1.fn.2.weight"].T + p["1.fn.2.bias"]
    if s.get("post_norm", False):
        norm = lambda name, y: ops.layer_norm(y, p[f"{name}.weight"], p[f"{name}.bias"])
        x = norm("0.norm", mixer(p, x) + x)
        return norm("1.norm", feed(x) + x)
    x = mixer(p, rms(x, p["0.norm.gamma"])) + x
    return feed(rms(x, p["1.norm.gamma"])) + x


def finish(ops, s, p, x):
    final = s["block"] == "residual" and not s.get("post_norm", False)
    if ops is None:
        return {"norm.gamma": ((s["width"],), 0.3, 1.0)} if final else {}
    return rms(x, p["norm.gamma"]) if final else x


def shapes(s, layer):
    d, (inner, H) = s["width"], sizes(s)
    found = linear_shapes("0.fn.to_qkv", 3 * inner, d)
    if s.get("transition", "complex") != "none":
        found |= linear_shapes("0.fn.to_a.0", 2 * H * (inner // H if s.get("transition_of", "head") == "key" else 1), d, True)
    if s.get("sub_norm", False):
        found |= norm_shapes("0.fn.maybe_sub_ln", inner)
    if s.get("swish_gate", True):
        found |= linear_shapes("0.fn.to_gates.0", inner, d)
    if s.get("swish_gate", True) or inner != d:
        found |= linear_shapes("0.fn.to_out", d, inner)
    if s["block"] == "none":
        return found
    for part in "01":
        found |= norm_shapes(f"{part}.norm", d) if s.get("post_norm", False) else {f"{part}.norm.gamma": ((d,), 0.3, 1.0)}
    F = s.get("feed_forward", 0) or 4 * d
    return found | linear_shapes("1.fn.0", F, d, True) | linear_shapes("1.fn.2", d, F, True)


def case(name, settings, T, d_in, loss, seed):
    run_case(name, "gateloop", settings, T, d_in, loss, seed, shapes, layer, finish, gateloop, pairs,
             "step loop from the equations of gateloop-transformer, checked against its sum over pairs of steps")


def main():
    case("gateloop", {"width": 4, "block": "none"}, 20, 4, "last", 731)
    case("gateloop-block", {"width": 4, "heads": 2, "layers": 2, "inner": 6, "feed_forward": 5, "sub_norm": True, "block": "residual"}, 14, 3, "mean", 732)
    case("gateloop-polar", {"width": 4, "heads": 2, "transition": "polar", "transition_of": "key", "feed_forward": 5, "post_norm": True, "block": "residual"}, 14, 4, "mean", 733)
    case("gateloop-real", {"width": 4, "heads": 2, "transition": "real", "swish_gate": False, "block": "none"}, 18, 4, "last", 734)
    case("gateloop-none", {"width": 4, "heads": 2, "transition": "none", "swish_gate": False, "inner": 2, "block": "none"}, 18, 4, "mean", 735)
