# SPDX-License-Identifier: GPL-3.0-or-later
"""Linear-complexity sequence models by their codes e-o-s-a, their SSM parameterisation and M1 to M3: a loop over the memory m_t, checked against
sums over all pairs of steps with the products of what the memory is multiplied with between them.

Z. Qin et al. 2024, equations 2 to 9 and tables 2, 3 and 7; Doraemonzzz/Lcsm, lcsm_pytorch/modules/eos_layer.py.
"""
import numpy as np
import torch

from feature_attention import run_case
from parts import Numpy, Torch, affine, linear_shapes, norm_shapes

OSCILLATIONS = ["matrix", "gates", "value-gates", "key-gates", "key-decays", "value-decays", "key-gated-matrix", "value-gated-matrix", "keys-by-value-gates", "key-gates-by-values", "ones", "rotation"]
ACTIVATIONS = ["identity", "relu", "sigmoid", "elu+1", "silu", "elu", "relu2", "square"]
DEPENDENCE = ["independent", "dependent"]


def settings_of(code):
    e, o, s, a = (int(word) for word in code.split("-"))
    return {"expand": DEPENDENCE[e], "oscillation": OSCILLATIONS[o], "shrink": DEPENDENCE[s], "activation": ACTIVATIONS[a]}


def defaults(s):
    return {"expand": "dependent", "oscillation": "gates", "shrink": "dependent", "activation": "identity", "tau": 16.0, "use_tau": True, "o_learned": True,
            "parameterisation": "linear", "rank": 16, "transition": "entries", "key_norm": "none", "norm": True, "bias": False, "block": "residual"} | s


def f(ops, name, x):
    """Table 2."""
    xp = torch if ops is Torch else np
    relu = ops.maximum(x, 0.0 * x)
    elu = xp.where(x > 0.0, x, xp.expm1(-ops.maximum(-x, 0.0 * x)))
    return {"identity": lambda: x, "relu": lambda: relu, "sigmoid": lambda: ops.sigmoid(x), "elu+1": lambda: 1.0 + elu, "silu": lambda: x * ops.sigmoid(x), "elu": lambda: elu,
            "relu2": lambda: relu * relu, "square": lambda: x * x}[name]()


def factors(ops, s, p, x):
    """What the memory is multiplied with at each step, [T, k, d]."""
    d, k, T = s["width"], s["state"], len(x)
    number = OSCILLATIONS.index(s["oscillation"])
    constant = lambda values: torch.tensor(values) if ops is Torch else np.array(values)
    root = lambda z: ops.exp(ops.log_sigmoid(z) / s["tau"])
    ones = constant(np.ones((T, k, d)))

    def gate(name, n):
        z = affine(p, f"{name}_proj", x)
        return root(z) if s["use_tau"] else ops.exp(-abs(p[f"gamma_{name}"]) * ops.sigmoid(z))

    if number == 0:
        return ones * (ops.exp(-abs(p["o"])) if not s["o_learned"] else root(p["o"]) if s["use_tau"] else ops.exp(-p["o"]))
    if number == 1:
        return gate("o2", k)[:, :, None] * gate("o1", d)[:, None, :]
    if number == 2:
        return ones * gate("o", d)[:, None, :]
    if number == 3:
        return ones * gate("o", k)[:, :, None]
    if number in (4, 5):
        own = root(p["o"]) if s["o_learned"] else ops.exp(-abs(p["o"]))
        return ones * (own[:, None] if number == 4 else own[None, :])
    if number == 6:
        return root(affine(p, "o_proj", x)[:, :, None] * p["o"])
    if number == 7:
        return root(affine(p, "o_proj", x)[:, None, :] * p["o"])
    if number == 8:
        return root(affine(p, "o_proj", x)[:, None, :] * p["o"][:, None])
    if number == 9:
        return root(affine(p, "o_proj", x)[:, :, None] * p["o"])
    if number == 10:
        return ones
    return ones * ops.exp(1j * p["theta"].reshape(-1))[:, None]


def states_of(ops, s, p, x):
    """i [T, d], and e, o and s as [T, k, d]."""
    d, k, T = s["width"], s["state"], len(x)
    ones = torch.ones(T, k, d) if ops is Torch else np.ones((T, k, d))
    i = affine(p, "i_proj", x)
    if s["parameterisation"] == "ssm":
        z = affine(p, "inter_proj.1", affine(p, "inter_proj.0", x))
        delta = -ops.log_sigmoid(-z)
        o = ops.exp(-delta[:, None, :] * ops.exp(p["o"]))
        return delta * i, ones * affine(p, "e_proj", x)[:, :, None], o, ones * affine(p, "s_proj", x)[:, :, None]

    def part(letter, dependent):
        return ones * f(ops, s["activation"], affine(p, f"{letter}_proj", x)[:, :, None] if dependent else p[letter])
    return i, part("e", s["expand"] == "dependent"), factors(ops, s, p, x), part("s", s["shrink"] == "dependent")


def matrix_states(ops, s, p, x):
    """v, k, k-bar, q of M1 to M3 [T, ...]."""
    unit = lambda z: z / ops.sqrt((z * z).sum(-1)[:, None] + 1e-12) if s["key_norm"] == "unit" else z
    part = lambda name: f(ops, s["activation"], affine(p, name, x))
    k = unit(part("e_proj"))
    return affine(p, "i_proj", x), k, unit(part("recall_proj")) if s["transition"] == "m2" else k, part("s_proj")


def matrices(ops, s, k, recall):
    """O_t of table 7, [T, k, k]."""
    eye = torch.eye(k.shape[1]) if ops is Torch else np.eye(k.shape[1])
    return eye - (eye * k[:, None, :] if s["transition"] == "m3" else k[:, :, None] * recall[:, None, :])


def output(ops, s, p, y):
    y = ops.layer_norm(y, p["norm.weight"], p["norm.bias"]) if s["norm"] else y
    return affine(p, "output_proj", y)


def steps(record, layer, s, p, x):
    d, k, reads = s["width"], s["state"], []
    if s["transition"] != "entries":
        v, keys, recall, q = matrix_states(Torch, s, p, x)
        O, m = matrices(Torch, s, keys, recall), torch.zeros(1, k, d)
        if s["key_norm"] == "unit" and s["transition"] == "m1":
            record.singular.add(layer)  # what k recalls is taken away whole
        for t in range(len(x)):
            if s["transition"] == "m3":
                record.transition(layer, torch.diagonal(O[t])[:, None].expand(k, d), constant=False)
            else:
                record.linear(layer, [O[t]] * d, constant=False)
            m = record.state(layer, "m", (O[t] @ m[0] + torch.outer(keys[t], v[t]))[None])
            reads.append(m[0].T @ q[t])
        return output(Torch, s, p, torch.stack(reads))
    i, e, o, shrink = states_of(Torch, s, p, x)
    number = OSCILLATIONS.index(s["oscillation"])
    fixed = number in (0, 4, 5, 10, 11) and s["parameterisation"] == "linear"
    both = s["expand"] == s["shrink"] == "dependent"
    # How the engine lays the memory out: with a head, as it is, or by channel.
    if s["parameterisation"] == "ssm" or (fixed and s["expand"] == s["shrink"] == "independent"):
        there = back = lambda m: m.T
    elif both and number in (1, 2, 3, 4, 5, 10, 11):
        there, back = lambda m: m[None], lambda m: m[0]
    else:
        there = back = lambda m: m
    m = torch.zeros(k, d, dtype=o.dtype)
    for t in range(len(x)):
        record.transition(layer, o[t], constant=fixed)
        m = back(record.state(layer, "m", there(o[t] * m + e[t] * i[t])))
        reads.append(((m.real if m.is_complex() else m) * shrink[t]).sum(0))
    return output(Torch, s, p, torch.stack(reads))


def pairs(s, p, x):
    """y_t as a sum over the steps up to t, each with the product of what came between."""
    T, d, k = len(x), s["width"], s["state"]
    y = np.zeros((T, d))
    if s["transition"] != "entries":
        v, keys, recall, q = matrix_states(Numpy, s, p, x)
        O = matrices(Numpy, s, keys, recall)
        for t in range(T):
            left = q[t]  # q_t^T O_t ... O_{j+1}
            for j in range(t, -1, -1):
                y[t] += (left @ keys[j]) * v[j]
                left = left @ O[j]
        return output(Numpy, s, p, y)
    i, e, o, shrink = states_of(Numpy, s, p, x)
    for t in range(T):
        for j in range(t + 1):
            y[t] += (shrink[t] * np.prod(o[j + 1: t + 1], axis=0) * e[j] * i[j]).sum(0).real
    return output(Numpy, s, p, y)


def layer_of(ops, mixer, s, p, x):
    if s["block"] == "none":
        return mixer(p, x)
    norm = lambda name, v: ops.layer_norm(v, p[f"{name}.weight"], p[f"{name}.bias"])
    x = x + mixer(p, norm("norm1", x))
    return x + norm("norm2", x)


def finish(ops, s, p, x):
    if s["block"] == "none":
        return {} if ops is None else x
    return norm_shapes("ln_f", s["width"]) if ops is None else ops.layer_norm(x, p["ln_f.weight"], p["ln_f.bias"])


def shapes_of(s, layer):
    d, k = s["width"], s["state"]
    linear = lambda name, out, width=d: linear_shapes(name, out, width, s["bias"])
    shapes = linear("i_proj", d) | linear("output_proj", d)
    shapes |= norm_shapes("norm", d) if s["norm"] else {}
    shapes |= norm_shapes("norm1", d) | norm_shapes("norm2", d) if s["block"] == "residual" else {}
    if s["transition"] != "entries":
        return shapes | linear("e_proj", k) | linear("s_proj", k) | (linear("recall_proj", k) if s["transition"] == "m2" else {})
    if s["parameterisation"] == "ssm":
        return shapes | linear("e_proj", k) | linear("s_proj", k) | linear("inter_proj.0", s["rank"]) | linear("inter_proj.1", d, s["rank"]) | {"o": ((k, d), 0.4, -0.5)}
    shapes |= linear("e_proj", k) if s["expand"] == "dependent" else {"e": ((k, d), 0.7)}
    shapes |= linear("s_proj", k) if s["shrink"] == "dependent" else {"s": ((k, d), 0.7)}
    number = OSCILLATIONS.index(s["oscillation"])
    if number == 1:
        shapes |= linear("o1_proj", d) | linear("o2_proj", k)
    if number in (2, 3, 6, 7, 8, 9):
        shapes |= linear("o_proj", d if number in (2, 7, 8) else k)
    if number in (0, 4, 5) or 6 <= number <= 9:
        shapes |= {"o": ({0: (k, d), 4: (k,), 5: (d,), 6: (k, d), 7: (k, d), 8: (k,), 9: (d,)}[number], 0.8, 0.3)}
    if not s["use_tau"] and number == 1:
        shapes |= {"gamma_o1": ((d,), 0.3, -0.5), "gamma_o2": ((k,), 0.3, -0.5)}
    if not s["use_tau"] and number in (2, 3):
        shapes |= {"gamma_o": ((d if number == 2 else k,), 0.3, -0.5)}
    if number == 11:
        shapes |= {"theta": ((1, k), 0.3, 0.5)}
    return shapes


def case(name, settings, T, d_in, loss, seed):
    run_case(name, "lcsm", settings, defaults(settings), T, d_in, loss, seed, shapes_of, layer_of, finish, steps, pairs,
             "step loop over m_t from the equations of Qin et al. 2024 and the authors' EosLayer, checked against sums over all pairs of steps")


def main():
    base = {"width": 4, "state": 3, "layers": 1, "tau": 3.0, "block": "none"}
    codes = ["0-0-0-1", "1-0-1-2", "1-1-1-3", "0-1-1-0", "1-2-1-4", "1-3-1-0", "0-3-0-6", "1-4-1-7", "0-4-0-0", "1-5-1-1", "0-5-1-2", "1-6-1-3", "0-7-0-4", "1-8-1-5", "1-9-1-0", "1-10-1-6", "0-10-0-7",
             "1-11-1-0", "1-11-0-3"]
    for n, code in enumerate(codes):
        case(f"lcsm-{code}", base | settings_of(code), 10, 4, "mean" if n % 2 else "last", 1201 + n)
    case("lcsm-0-11-0-1", base | settings_of("0-11-0-1"), 10, 4, "mean", 1230)
    case("lcsm-gates-without-tau", base | {"use_tau": False}, 10, 4, "mean", 1231)
    case("lcsm-key-gates-without-tau", base | settings_of("0-3-1-2") | {"use_tau": False}, 10, 4, "mean", 1239)
    case("lcsm-matrix-without-tau", base | settings_of("1-0-1-0") | {"use_tau": False, "norm": False}, 8, 4, "mean", 1232)
    case("lcsm-held-decays", base | settings_of("1-4-1-3") | {"o_learned": False, "state": 5}, 10, 4, "mean", 1233)
    case("lcsm-held-matrix", base | settings_of("0-0-1-0") | {"o_learned": False}, 10, 4, "mean", 1240)
    case("lcsm-ssm", base | {"parameterisation": "ssm", "rank": 2}, 10, 4, "mean", 1234)
    case("lcsm-m1", base | {"transition": "m1", "key_norm": "unit"}, 10, 4, "last", 1235)
    case("lcsm-m2", base | {"transition": "m2", "activation": "silu"}, 10, 4, "mean", 1236)
    case("lcsm-m3", base | {"transition": "m3", "activation": "sigmoid"}, 10, 4, "mean", 1237)
    case("lcsm-block", base | settings_of("1-9-1-4") | {"layers": 2, "bias": True, "block": "residual"}, 8, 3, "mean", 1238)


if __name__ == "__main__":
    main()
