# SPDX-License-Identifier: GPL-3.0-or-later
"""Gated recurrent networks as plain step loops, each checked against a second form.

QRNN     Bradbury et al. 2016; salesforce/pytorch-qrnn, torchqrnn/qrnn.py; ifo pooling after the paper: checked against sums over all steps
         before, each with the product of the gates between.
SRU      Lei et al. 2018; asappresearch/sru, sru/modules.py and ops.py: likewise without v and w, with them against rounds of all steps at
         once (harness.settle). SRU++, Lei 2021, modules.py of its branch 3.0.0-dev: the attention token by token, and as matrices.
GILR     and LS-LSTM: Martin and Cundy 2018; eamartin/parallelizing_linear_rnns, layers.py: against sums over all steps before.
UR-LSTM  Gu et al. 2020; r0mainK/ur-lstm, ur_lstm.py, and the conventions of gate.py in state-spaces/s4: against rounds of all steps at once.
ON-LSTM  Shen et al. 2019; yikangshen/Ordered-Neurons, ON_LSTM.py: likewise.
LSTM     with peepholes (Gers and Schmidhuber 2000; TensorFlow's LSTMCell), and GRU whose update gate writes: likewise.
"""
import numpy as np
import torch

from harness import draw, make, settle, under


def logistic(a):
    return 1.0 / (1.0 + np.exp(-a))


def summed(kept, written):
    """c_t = sum_k (product of kept_j, k < j <= t) written_k, for all steps at once."""
    T = len(kept)
    return np.array([sum(np.prod(kept[k + 1:t + 1], axis=0) * written[k] for k in range(t + 1)) for t in range(T)])


def shifted(x, lag):
    return np.concatenate([np.zeros_like(x[:lag]), x[:len(x) - lag]])


def layers_of(layer, settings, together=1):
    """A stack of layer(index, parameters, x) -> y over all steps, behind an encoder without a bias where there is one. together: by how much the
    numbers of their parameters differ."""
    def run(parameters, x):
        if "encoder/weight" in parameters:
            x = x @ parameters["encoder/weight"].T
        for index in range(settings["layers"]):
            x = layer(index, under(parameters, f"{together * index}/"), x)
        return x
    return run


# ---------------------------------------------------------------------------------------------------------------- QRNN

def qrnn_layer(record, index, settings, p, x):
    H, window, pooling = settings["width"], settings.get("window", 2), settings.get("pooling", "fo")
    c, outputs = torch.zeros(H), []
    for t in range(len(x)):
        seen = torch.cat([x[t - lag] if t >= lag else torch.zeros_like(x[0]) for lag in range(window)])
        rows = dict(zip({"f": "zf", "fo": "zfo", "ifo": "zifo"}[pooling], torch.chunk(p["linear.weight"] @ seen + p["linear.bias"], 1 + len(pooling))))
        share = torch.sigmoid(rows["f"])
        if settings.get("gate", "writes") == "keeps":
            share = 1 - share
        share = (1 - settings.get("zoneout", 0.0)) * share
        candidate = torch.tanh(rows["z"])
        record.transition(index, 1 - share, constant=False)
        c = record.state(index, "c", (1 - share) * c + (torch.sigmoid(rows["i"]) if "i" in rows else share) * candidate)
        outputs.append(torch.sigmoid(rows["o"]) * c if "o" in rows else c)
    return torch.stack(outputs)


def numpy_qrnn_layer(settings, p, x):
    H, window, pooling = settings["width"], settings.get("window", 2), settings.get("pooling", "fo")
    y = sum(shifted(x, lag) @ p["linear.weight"][:, lag * x.shape[1]:(lag + 1) * x.shape[1]].T for lag in range(window)) + p["linear.bias"]
    blocks = [y[:, i * H:(i + 1) * H] for i in range(1 + len(pooling))]
    f = blocks[2] if pooling == "ifo" else blocks[1]
    kept = logistic(f if settings.get("gate", "writes") == "keeps" else -f)
    kept = kept + settings.get("zoneout", 0.0) * (1 - kept)
    c = summed(kept, (logistic(blocks[1]) if pooling == "ifo" else 1 - kept) * np.tanh(blocks[0]))
    return c if pooling == "f" else logistic(blocks[-1]) * c


def qrnn_case(name, settings, T, d_in, loss, seed):
    H, shapes = settings["width"], {}
    for index in range(settings["layers"]):
        inner = (d_in if index == 0 else H) * settings.get("window", 2)
        rows = (1 + len(settings.get("pooling", "fo"))) * H
        shapes |= {f"{index}/linear.weight": ((rows, inner), 1.2 / np.sqrt(inner)), f"{index}/linear.bias": ((rows,), 0.4)}
    run(name, "qrnn", settings, T, d_in, loss, seed, shapes, qrnn_layer, numpy_qrnn_layer, "sums over all steps before")


# ----------------------------------------------------------------------------------------------------------------- SRU

def pp_layer_norm(p, z):
    if isinstance(z, torch.Tensor):
        return torch.nn.functional.layer_norm(z, z.shape[1:], p["layer_norm.weight"], p["layer_norm.bias"], 1e-5)
    return numpy_norm(p, z)


def pp_reads(settings, q, k, v):
    """The attention of SRU++, of one head after another."""
    heads, T, window = settings.get("heads", 1), len(q), settings.get("window", 0) or len(q)
    if isinstance(q, torch.Tensor):
        rows = []
        for t in range(T):
            first, last = (0, T) if settings.get("bidirectional", False) else (max(0, t + 1 - window), t + 1)
            of_heads = zip(q[t].chunk(heads), k[first:last].chunk(heads, 1), v[first:last].chunk(heads, 1))
            rows.append(torch.cat([torch.softmax(keys @ query / len(query) ** 0.5, 0) @ values for query, keys, values in of_heads]))
        return torch.stack(rows)
    age = np.arange(T)[:, None] - np.arange(T)[None]
    seen = np.ones((T, T), bool) if settings.get("bidirectional", False) else (age >= 0) & (age < window)
    q, k, v = (a.reshape(T, heads, -1) for a in (q, k, v))
    weights = np.where(seen, np.exp(np.einsum("thd,shd->hts", q, k) * q.shape[2] ** -0.5), 0.0)
    return np.einsum("hts,shd->thd", weights / weights.sum(2)[:, :, None], v).reshape(T, -1)


def pp_module(settings, p, x):
    norm, P = settings.get("attention_norm", "after"), len(p["linear1.weight"])
    z = x @ p["linear1.weight"].T
    if "linear3.weight" not in p:
        return (pp_layer_norm(p, z) if norm != "none" else z) @ p["linear2.weight"].T
    read = pp_layer_norm(p, z) if norm == "before" else z
    both = read @ p["linear2.weight"].T
    z = pp_reads(settings, read, both[:, :P], both[:, P:]) * p["alpha"] + z
    return (pp_layer_norm(p, z) if norm == "after" else z) @ p["linear3.weight"].T


def pp_shapes(settings, index, inner, out):
    """Of transform_module; out: H for each direction, times maps."""
    P, layers, last = settings["projection"], settings["layers"], settings.get("attention_last", -1)
    attends = layers - index <= last if last >= 0 else (index + 1) % settings.get("attention_every", 1) == 0
    shapes = {"linear1.weight": ((P, inner), 1.0 / np.sqrt(inner)), "linear2.weight": ((2 * P if attends else out, P), 1.2 / np.sqrt(P))}
    if attends:
        shapes |= {"linear3.weight": ((out, P), 1.2 / np.sqrt(P)), "alpha": ((1,), 0.2, 0.8)}
    if settings.get("attention_norm", "after") != "none":
        shapes |= {"layer_norm.weight": ((P,), 0.3, 1.0), "layer_norm.bias": ((P,), 0.3)}
    return {"transform_module." + key: value for key, value in shapes.items()}


def sru_maps(settings, p, read, width):
    maps = 4 if settings.get("skip", True) and width != settings["width"] else 3
    if "transform_module.linear1.weight" in p:
        return pp_module(settings, under(p, "transform_module."), read), maps
    if "weight_proj" in p:
        read = read @ p["weight_proj"]
    return read @ p["weight"], maps


def sru_layer(record, index, settings, p, x):
    H = settings["width"]
    norm = lambda v: torch.nn.functional.layer_norm(v, v.shape[1:], p["layer_norm.weight"], p["layer_norm.bias"], 1e-5)
    columns, maps = sru_maps(settings, p, norm(x) if settings.get("norm", "none") == "before" else x, x.shape[1])
    v, w = (p["weight_c"][:H], p["weight_c"][H:]) if "weight_c" in p else (torch.zeros(H), torch.zeros(H))
    b_f, b_r = p["bias"][:H], p["bias"][H:]
    c, outputs = torch.zeros(H), []
    for t in range(len(x)):
        u, a, b = (columns[t][m::maps] for m in range(3))
        f, r = torch.sigmoid(a + v * c + b_f), torch.sigmoid(b + w * c + b_r)
        record.transition(index, f + v * f * (1 - f) * (c - u), constant=False)
        c = record.state(index, "c", f * c + (1 - f) * u)
        if settings.get("reset_sees", "old") == "new":
            r = torch.sigmoid(b + w * c + b_r)
        y = r * (torch.tanh(c) if settings.get("activation", "identity") == "tanh" else c)
        if settings.get("skip", True):
            y = y + (1 - r) * (columns[t][3::maps] if maps == 4 else x[t] * p["scale_x"] if settings.get("rescale", True) else x[t])
        outputs.append(y)
    y = torch.stack(outputs)
    return norm(y) if settings.get("norm", "none") == "after" else y


def numpy_norm(p, x):
    centred = x - x.mean(1)[:, None]
    return centred * ((centred * centred).mean(1)[:, None] + 1e-5) ** -0.5 * p["layer_norm.weight"] + p["layer_norm.bias"]


def numpy_sru_layer(settings, p, x):
    T, H = len(x), settings["width"]
    columns, maps = sru_maps(settings, p, numpy_norm(p, x) if settings.get("norm", "none") == "before" else x, x.shape[1])
    u, a, b, *rest = np.moveaxis(columns.reshape(T, H, maps), 2, 0)
    (v, w), (b_f, b_r) = p.get("weight_c", np.zeros(2 * H)).reshape(2, H), p["bias"].reshape(2, H)
    if "weight_c" in p:
        c, = settle(lambda old: (u + (old - u) * logistic(a + b_f + v * old),), T, (H,))
    else:
        c = summed(logistic(a + b_f), logistic(-a - b_f) * u)
    r = logistic(b + b_r + w * (c if settings.get("reset_sees") == "new" else shifted(c, 1)))
    shown = np.tanh(c) if settings.get("activation", "identity") == "tanh" else c
    if settings.get("skip", True):
        beside = rest[0] if rest else x * (p["scale_x"] if settings.get("rescale", True) else 1.0)
        y = beside + (shown - beside) * r
    else:
        y = shown * r
    return numpy_norm(p, y) if settings.get("norm", "none") == "after" else y


def sru_case(name, settings, T, d_in, loss, seed):
    H, P, shapes = settings["width"], settings.get("projection", 0), {}
    first = d_in
    if settings.get("input_to_hidden", False):
        shapes["encoder/weight"], first = ((H, d_in), 0.7), H
    for index in range(settings["layers"]):
        inner = first if index == 0 else H
        maps = 4 if settings.get("skip", True) and inner != H else 3
        rows = P or inner
        if settings.get("custom_m", "none") == "srupp":
            shapes |= {f"{index}/{key}": value for key, value in pp_shapes(settings, index, inner, H * maps).items()}
        else:
            if P:
                shapes[f"{index}/weight_proj"] = ((inner, P), 1.0 / np.sqrt(inner))
            shapes[f"{index}/weight"] = ((rows, H * maps), 1.2 / np.sqrt(rows))
        shapes |= {f"{index}/bias": ((2 * H,), 0.4), f"{index}/scale_x": ((1,), 0.1, 1.6)}
        if settings.get("state_gates", True):
            shapes[f"{index}/weight_c"] = ((2 * H,), 0.9)
        if settings.get("norm", "none") != "none":
            n = inner if settings["norm"] == "before" else H
            shapes |= {f"{index}/layer_norm.weight": ((n,), 0.3, 1.0), f"{index}/layer_norm.bias": ((n,), 0.3)}
    form = "rounds of all steps at once" if settings.get("state_gates", True) else "sums over all steps before"
    run(name, "sru", settings, T, d_in, loss, seed, shapes, sru_layer, numpy_sru_layer, form)


def both_ways(settings, p, x, light):
    """A layer of the package with bidirectional=True, whose arrays hold both directions: light(way, u, a, b, v, w, b_f, b_r) -> c before and after
    each step, in the order of time."""
    ops = torch if isinstance(x, torch.Tensor) else np
    H, T = settings["width"], len(x)
    norm = (lambda z: torch.nn.functional.layer_norm(z, z.shape[1:], p["layer_norm.weight"], p["layer_norm.bias"], 1e-5)) if ops is torch else lambda z: numpy_norm(p, z)
    sigmoid = torch.sigmoid if ops is torch else logistic
    read = norm(x) if settings.get("norm", "none") == "before" else x
    maps = 4 if settings.get("skip", True) and x.shape[1] != 2 * H else 3
    if settings.get("custom_m", "none") == "srupp":
        U = pp_module(settings, under(p, "transform_module."), read).reshape(T, 2, H, maps)
    else:
        U = ((read @ p["weight_proj"] if "weight_proj" in p else read) @ p["weight"]).reshape(T, 2, H, maps)
    vw, bias = (p["weight_c"] if "weight_c" in p else 0.0 * p["bias"]).reshape(2, 2, H), p["bias"].reshape(2, 2, H)
    shown = []
    for way in range(2):
        u, a, b = (U[:, way, :, m] for m in range(3))
        before, c = light(way, u, a, b, *vw[:, way], *bias[:, way])
        r = sigmoid(b + vw[1, way] * before + bias[1, way])
        y = r * (ops.tanh(c) if settings.get("activation", "identity") == "tanh" else c)
        if settings.get("skip", True):
            beside = U[:, way, :, 3] if maps == 4 else x.reshape(T, 2, H)[:, way] * (p["scale_x"] if settings.get("rescale", True) else 1.0)
            y = y + (1 - r) * beside
        shown.append(y)
    y = torch.cat(shown, 1) if ops is torch else np.hstack(shown)
    return norm(y) if settings.get("norm", "none") == "after" else y


def sru_both_ways(record, index, settings, p, x):
    def light(way, u, a, b, v, w, b_f, b_r):
        c, before, after = torch.zeros(settings["width"]), [None] * len(u), [None] * len(u)
        for t in range(len(u)) if way == 0 else reversed(range(len(u))):
            f = torch.sigmoid(a[t] + v * c + b_f)
            record.transition(2 * index + way, f + v * f * (1 - f) * (c - u[t]), constant=False)
            before[t] = c
            record.turned |= {2 * index + 1}
            c = after[t] = record.state(2 * index + way, "c", f * c + (1 - f) * u[t])
        return torch.stack(before), torch.stack(after)
    return both_ways(settings, p, x, light)


def numpy_sru_both_ways(settings, p, x):
    def light(way, u, a, b, v, w, b_f, b_r):
        u, a = (u, a) if way == 0 else (u[::-1], a[::-1])
        if "weight_c" in p:
            c, = settle(lambda old: (u + (old - u) * logistic(a + b_f + v * old),), len(u), (settings["width"],))
        else:
            c = summed(logistic(a + b_f), logistic(-a - b_f) * u)
        before = shifted(c, 1)
        return (before, c) if way == 0 else (before[::-1], c[::-1])
    return both_ways(settings, p, x, light)


def sru_both_ways_case(name, settings, T, d_in, loss, seed):
    H, P, shapes, inner = settings["width"], settings.get("projection", 0), {}, d_in
    for level in range(settings["layers"]):
        key, maps, rows = f"{2 * level}/", 4 if settings.get("skip", True) and inner != 2 * H else 3, P or inner
        if settings.get("custom_m", "none") == "srupp":
            shapes |= {key + name: value for name, value in pp_shapes(settings, level, inner, 2 * H * maps).items()}
        else:
            if P:
                shapes[key + "weight_proj"] = ((inner, P), 1.0 / np.sqrt(inner))
            shapes[key + "weight"] = ((rows, 2 * H * maps), 1.2 / np.sqrt(rows))
        shapes |= {key + "bias": ((4 * H,), 0.4), key + "scale_x": ((1,), 0.1, 1.6)}
        if settings.get("state_gates", True):
            shapes[key + "weight_c"] = ((4 * H,), 0.9)
        if settings.get("norm", "none") != "none":
            n = inner if settings["norm"] == "before" else 2 * H
            shapes |= {key + "layer_norm.weight": ((n,), 0.3, 1.0), key + "layer_norm.bias": ((n,), 0.3)}
        inner = 2 * H
    form = "rounds of all steps at once" if settings.get("state_gates", True) else "sums over all steps before"
    run(name, "sru", settings, T, d_in, loss, seed, shapes, sru_both_ways, numpy_sru_both_ways, form, together=2)


# -------------------------------------------------------------------------------------------------------- GILR, LS-LSTM

ACTIVATIONS = {"elu": (torch.nn.functional.elu, lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0.0)))), "tanh": (torch.tanh, np.tanh),
               "relu": (torch.relu, lambda a: np.maximum(a, 0.0)), "identity": (lambda a: a, lambda a: a)}


def gilr_layer(record, index, settings, p, x):
    h, outputs = torch.zeros(settings["width"]), []
    for u in x:
        gate, impulse = torch.chunk(u @ p["fc.W"] + p["fc.b"], 2)
        g = torch.sigmoid(gate)
        record.transition(index, g, constant=False)
        h = record.state(index, "h", g * h + (1 - g) * ACTIVATIONS[settings.get("activation", "elu")][0](impulse))
        outputs.append(h)
    return torch.stack(outputs)


def numpy_gilr(W, b, activation, x):
    H = len(b) // 2
    gate = x @ W[:, :H] + b[:H]
    return summed(logistic(gate), logistic(-gate) * activation(x @ W[:, H:] + b[H:]))


def numpy_gilr_layer(settings, p, x):
    return numpy_gilr(p["fc.W"], p["fc.b"], ACTIVATIONS[settings.get("activation", "elu")][1], x)


def gilr_case(name, settings, T, d_in, loss, seed):
    H, shapes = settings["width"], {}
    for index in range(settings["layers"]):
        inner = d_in if index == 0 else H
        shapes |= {f"{index}/fc.W": ((inner, 2 * H), 1.2 / np.sqrt(inner)), f"{index}/fc.b": ((2 * H,), 0.4)}
    run(name, "gilr", settings, T, d_in, loss, seed, shapes, gilr_layer, numpy_gilr_layer, "sums over all steps before")


def ls_lstm_layer(record, index, settings, p, x):
    s, c, outputs = torch.zeros(settings["width"]), torch.zeros(settings["width"]), []
    for u in x:
        gate, impulse = torch.chunk(u @ p["gilr.fc.W"] + p["gilr.fc.b"], 2)
        g = torch.sigmoid(gate)
        s = record.state(index, "s", g * s + (1 - g) * torch.tanh(impulse))
        f, i, o, z = torch.chunk(torch.cat([s, u]) @ p["fc.W"] + p["fc.b"], 4)
        record.transition(index, torch.cat([g, torch.sigmoid(f)]), constant=False)
        c = record.state(index, "c", torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(z))
        outputs.append(torch.sigmoid(o) * c)
    return torch.stack(outputs)


def numpy_ls_lstm_layer(settings, p, x):
    H = settings["width"]
    s = numpy_gilr(p["gilr.fc.W"], p["gilr.fc.b"], np.tanh, x)
    f, i, o, z = np.split(s @ p["fc.W"][:H] + x @ p["fc.W"][H:] + p["fc.b"], 4, axis=1)
    return logistic(o) * summed(logistic(f), logistic(i) * np.tanh(z))


def ls_lstm_case(name, settings, T, d_in, loss, seed):
    H, shapes = settings["width"], {}
    for index in range(settings["layers"]):
        inner = d_in if index == 0 else H
        shapes |= {f"{index}/gilr.fc.W": ((inner, 2 * H), 1.2 / np.sqrt(inner)), f"{index}/gilr.fc.b": ((2 * H,), 0.4),
                   f"{index}/fc.W": ((H + inner, 4 * H), 1.5 / np.sqrt(H + inner)), f"{index}/fc.b": ((4 * H,), 0.4)}
    run(name, "ls-lstm", settings, T, d_in, loss, seed, shapes, ls_lstm_layer, numpy_ls_lstm_layer, "sums over all steps before")


# ------------------------------------------------------------------------------------------------ cells that see the state

def stepped(cell, names):
    """A layer from cell(settings, parameters, x, *states) -> states, of which the first is read out."""
    def layer(record, index, settings, p, x):
        states, outputs = [torch.zeros(settings["width"]) for _ in names], []
        if settings.get("projection", 0):
            states[0] = torch.zeros(settings["projection"])
        for u in x:
            states = record.step(index, lambda *s, u=u: cell(settings, p, u, *s), *states)
            states = [record.state(index, name, value) for name, value in zip(names, states)]
            outputs.append(states[0])
        return torch.stack(outputs)
    return layer


def settled(update, states):
    """A layer from update(settings, parameters, x, *states before each step) -> states after, of all steps at once."""
    def layer(settings, p, x):
        shapes = [(settings["width"],)] * states
        if settings.get("projection", 0):
            shapes[0] = (settings["projection"],)
        return settle(lambda *old: update(settings, p, x, *old), len(x), *shapes)[0]
    return layer


def ur_lstm_cell(settings, p, x, h, c):
    rows = p["igates.weight"] @ x + p["igates.bias"] + p["hgates.weight"] @ h + p["hgates.bias"]
    H = settings["width"]
    f, z, o = torch.sigmoid(rows[:H] + p["forget_bias"]), torch.tanh(rows[-2 * H:-H]), torch.sigmoid(rows[-H:])
    g = f
    if settings.get("refine", True):
        r = torch.sigmoid(rows[H:2 * H] - (p["forget_bias"] if settings.get("refine_bias", True) else 0.0))
        g = 2 * r * f + (1 - 2 * r) * f**2
    c = g * c + (1 - g) * z if settings.get("gate", "keeps") == "keeps" else (1 - g) * c + g * z
    return o * torch.tanh(c), c


def numpy_ur_lstm(settings, p, x, h, c):
    rows = np.concatenate([x, h], axis=1) @ np.concatenate([p["igates.weight"], p["hgates.weight"]], axis=1).T + p["igates.bias"] + p["hgates.bias"]
    blocks = np.split(rows, len(p["igates.bias"]) // settings["width"], axis=1)
    f = logistic(blocks[0] + p["forget_bias"])
    low, high = f * f, 1 - (1 - f) * (1 - f)
    g = f if not settings.get("refine", True) else low + (high - low) * logistic(blocks[1] - p["forget_bias"] * settings.get("refine_bias", True))
    new = g if settings.get("gate", "keeps") == "writes" else 1 - g
    c = c + new * (np.tanh(blocks[-2]) - c)
    return logistic(blocks[-1]) * np.tanh(c), c


def ur_lstm_case(name, settings, T, d_in, loss, seed):
    H, shapes = settings["width"], {}
    rows = (4 if settings.get("refine", True) else 3) * H
    for index in range(settings["layers"]):
        inner = d_in if index == 0 else H
        shapes |= {f"{index}/igates.weight": ((rows, inner), 1.0 / np.sqrt(inner)), f"{index}/igates.bias": ((rows,), 0.3),
                   f"{index}/hgates.weight": ((rows, H), 1.2 / np.sqrt(H)), f"{index}/hgates.bias": ((rows,), 0.3), f"{index}/forget_bias": ((H,), 1.0)}
    run(name, "ur-lstm", settings, T, d_in, loss, seed, shapes, stepped(ur_lstm_cell, ["h", "c"]), settled(numpy_ur_lstm, 2), "rounds of all steps at once")


def on_lstm_cell(settings, p, x, h, c):
    H, C = settings["width"], settings.get("chunk", 2)
    n = H // C
    kept = 1.0 - settings.get("dropconnect", 0.0)
    gates = p["ih.0.weight"] @ x + p["ih.0.bias"] + kept * (p["hh.weight"] @ h) + p["hh.bias"]
    cumax = lambda v: torch.cumsum(torch.softmax(v, dim=0), dim=0)
    master_in, master_forget = (1 - cumax(gates[:n])).repeat_interleave(C), cumax(gates[n:2 * n]).repeat_interleave(C)
    o, g, i, f = torch.chunk(gates[2 * n:], 4)
    overlap = master_forget * master_in
    c = (torch.sigmoid(f) * overlap + (master_forget - overlap)) * c + (torch.sigmoid(i) * overlap + (master_in - overlap)) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def numpy_on_lstm(settings, p, x, h, c):
    """Level by level, with the softmax written as shares and the sums of a level's followers taken by themselves."""
    H, C, T = settings["width"], settings.get("chunk", 2), len(x)
    n = H // C
    gates = x @ p["ih.0.weight"].T + h @ p["hh.weight"].T * (1.0 - settings.get("dropconnect", 0.0)) + (p["ih.0.bias"] + p["hh.bias"])
    shares = [np.exp(v) / np.exp(v).sum(1, keepdims=True) for v in (gates[:, :n], gates[:, n:2 * n])]
    o, g, i, f = gates[:, 2 * n:].reshape(T, 4, n, C).transpose(1, 0, 2, 3)
    new = np.zeros((T, n, C))
    for level in range(n):
        before, after = shares[0][:, :level + 1].sum(1), shares[0][:, level + 1:].sum(1)  # of the input gate: not written, written
        kept, cleared = shares[1][:, :level + 1].sum(1), shares[1][:, level + 1:].sum(1)
        keep = kept[:, None] * (before[:, None] + after[:, None] * logistic(f[:, level]))
        write = after[:, None] * (cleared[:, None] + kept[:, None] * logistic(i[:, level]))
        new[:, level] = keep * c.reshape(T, n, C)[:, level] + write * np.tanh(g[:, level])
    return (logistic(o) * np.tanh(new)).reshape(T, H), new.reshape(T, H)


def on_lstm_case(name, settings, T, d_in, loss, seed):
    H, shapes = settings["width"], {}
    rows = 4 * H + 2 * (H // settings.get("chunk", 2))
    for index in range(settings["layers"]):
        inner = d_in if index == 0 else H
        shapes |= {f"{index}/ih.0.weight": ((rows, inner), 1.2 / np.sqrt(inner)), f"{index}/ih.0.bias": ((rows,), 0.4),
                   f"{index}/hh.weight": ((rows, H), 1.2 / np.sqrt(H)), f"{index}/hh.bias": ((rows,), 0.3)}
    cell = stepped(on_lstm_cell, ["h", "c"])

    def layer(record, index, *rest):
        record.singular.add(index)  # the last level is never written: its rows of h and c are multiples of each other
        return cell(record, index, *rest)

    run(name, "on-lstm", settings, T, d_in, loss, seed, shapes, layer, settled(numpy_on_lstm, 2), "rounds of all steps at once")


def peephole_cell(settings, p, x, h, c):
    i, f, g, o = torch.chunk(p["weight_ih"] @ x + p["bias_ih"] + p["weight_hh"] @ h + p["bias_hh"], 4)
    new = torch.sigmoid(f + p["w_f_diag"] * c) * c + torch.sigmoid(i + p["w_i_diag"] * c) * torch.tanh(g)
    h = torch.sigmoid(o + p["w_o_diag"] * new) * torch.tanh(new)
    return (p["weight_hr"] @ h if "weight_hr" in p else h), new


def numpy_peephole(settings, p, x, h, c):
    H = settings["width"]
    gate = lambda k: x @ p["weight_ih"][k * H:(k + 1) * H].T + h @ p["weight_hh"][k * H:(k + 1) * H].T + (p["bias_ih"] + p["bias_hh"])[k * H:(k + 1) * H]
    new = c * logistic(gate(1) + c * p["w_f_diag"]) + np.tanh(gate(2)) * logistic(gate(0) + c * p["w_i_diag"])
    shown = np.tanh(new) * logistic(gate(3) + new * p["w_o_diag"])
    return (shown @ p["weight_hr"].T if "weight_hr" in p else shown), new


def peephole_case(name, settings, T, d_in, loss, seed):
    H, P, shapes = settings["width"], settings.get("projection", 0), {}
    for index in range(settings["layers"]):
        inner = d_in if index == 0 else P or H
        shapes |= {f"{index}/weight_ih": ((4 * H, inner), 0.8 / np.sqrt(inner)), f"{index}/weight_hh": ((4 * H, P or H), 1.2 / np.sqrt(P or H)),
                   f"{index}/bias_ih": ((4 * H,), 0.3), f"{index}/bias_hh": ((4 * H,), 0.3)}
        shapes |= {f"{index}/w_{gate}_diag": ((H,), 0.8) for gate in "ifo"}
        if P:
            shapes[f"{index}/weight_hr"] = ((P, H), 1.0 / np.sqrt(H))
    run(name, "lstm", settings, T, d_in, loss, seed, shapes, stepped(peephole_cell, ["h", "c"]), settled(numpy_peephole, 2), "rounds of all steps at once")


def writing_gru_cell(settings, p, x, h):
    W, U = torch.chunk(p["weight_ih"], 3), torch.chunk(p["weight_hh"], 3)
    b, d = (torch.chunk(p[key], 3) if key in p else (0.0, 0.0, 0.0) for key in ("bias_ih", "bias_hh"))
    r, z = (torch.sigmoid(W[k] @ x + b[k] + U[k] @ h + d[k]) for k in (0, 1))
    if settings.get("reset", "after") == "after":
        n = torch.tanh(W[2] @ x + b[2] + r * (U[2] @ h + d[2]))
    else:
        n = torch.tanh(W[2] @ x + b[2] + U[2] @ (r * h) + d[2])
    return (z * n + (1 - z) * h,)


def numpy_writing_gru(settings, p, x, h):
    inner, fed = x @ p["weight_ih"].T + p.get("bias_ih", 0.0), h @ p["weight_hh"].T + p.get("bias_hh", 0.0)
    H = settings["width"]
    r, z = logistic(inner[:, :H] + fed[:, :H]), logistic(inner[:, H:2 * H] + fed[:, H:2 * H])
    if settings.get("reset", "after") == "after":
        seen = r * fed[:, 2 * H:]
    else:
        seen = (r * h) @ p["weight_hh"][2 * H:].T + (p["bias_hh"][2 * H:] if "bias_hh" in p else 0.0)
    return (h + z * (np.tanh(inner[:, 2 * H:] + seen) - h),)


def writing_gru_case(name, settings, T, d_in, loss, seed):
    H, shapes = settings["width"], {}
    for index in range(settings["layers"]):
        inner = d_in if index == 0 else H
        shapes |= {f"{index}/weight_ih": ((3 * H, inner), 0.8 / np.sqrt(inner)), f"{index}/weight_hh": ((3 * H, H), 1.5 / np.sqrt(H))}
        if settings.get("bias", True):
            shapes |= {f"{index}/bias_ih": ((3 * H,), 0.3), f"{index}/bias_hh": ((3 * H,), 0.3)}
    run(name, "gru", settings, T, d_in, loss, seed, shapes, stepped(writing_gru_cell, ["h"]), settled(numpy_writing_gru, 1), "rounds of all steps at once")


def run(name, architecture, settings, T, d_in, loss, seed, shapes, layer, numpy_layer, form, together=1):
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))

    def forward(record, parameters, inputs):
        return layers_of(lambda index, p, v: layer(record, index, settings, p, v), settings, together)(parameters, inputs)

    second = layers_of(lambda index, p, v: numpy_layer(settings, p, v), settings, together)
    make(name, architecture, settings, loss, f"step loop from the equations, checked against {form}", draw(seed, shapes), x, forward, second=second, seed=seed)


def main():
    qrnn_case("qrnn", {"width": 5, "layers": 1}, 18, 3, "last", 911)
    qrnn_case("qrnn-f", {"width": 4, "layers": 2, "window": 1, "pooling": "f"}, 14, 3, "mean", 912)
    qrnn_case("qrnn-ifo", {"width": 4, "layers": 2, "window": 3, "pooling": "ifo", "gate": "keeps", "zoneout": 0.2}, 12, 2, "mean", 913)
    qrnn_case("qrnn-zoneout", {"width": 5, "layers": 1, "window": 1, "zoneout": 0.3}, 14, 5, "mean", 914)
    sru_case("sru", {"width": 5, "layers": 2}, 16, 3, "last", 921)
    sru_case("sru-linear", {"width": 5, "layers": 2, "state_gates": False, "norm": "after", "rescale": False}, 14, 5, "mean", 922)
    sru_case("sru-norm", {"width": 4, "layers": 2, "norm": "before", "activation": "tanh"}, 14, 4, "mean", 923)
    sru_case("sru-new-cell", {"width": 4, "layers": 2, "reset_sees": "new", "rescale": False}, 14, 3, "mean", 926)
    sru_case("sru-projection", {"width": 6, "layers": 1, "projection": 2, "skip": False}, 16, 4, "last", 924)
    encoded = {"width": 4, "layers": 1, "input_to_hidden": True, "encoder_bias": False}
    sru_case("sru-encoded", encoded, 14, 3, "mean", 925)
    sru_both_ways_case("sru-bidirectional", {"width": 3, "layers": 2, "bidirectional": True, "norm": "after"}, 12, 6, "mean", 926)
    both = {"width": 3, "layers": 2, "bidirectional": True, "norm": "before", "state_gates": False, "projection": 2, "activation": "tanh"}
    sru_both_ways_case("sru-bidirectional-projection", both, 12, 4, "last", 927)
    pp = {"width": 6, "layers": 3, "custom_m": "srupp", "projection": 4, "heads": 2, "rescale": False}
    sru_case("sru-pp", pp | {"attention_every": 2}, 12, 3, "mean", 928)
    sru_case("sru-pp-window", pp | {"layers": 2, "window": 4, "attention_norm": "before", "norm": "after", "state_gates": False}, 12, 6, "mean", 929)
    sru_case("sru-pp-last", pp | {"attention_last": 1, "attention_norm": "none", "norm": "before", "heads": 1, "layers": 2}, 12, 6, "last", 930)
    sru_both_ways_case("sru-pp-bidirectional", pp | {"width": 3, "layers": 2, "bidirectional": True}, 10, 5, "mean", 936)
    gilr_case("gilr", {"width": 5, "layers": 2}, 16, 3, "mean", 931)
    for seed, activation in enumerate(("tanh", "relu", "identity"), 932):
        gilr_case(f"gilr-{activation}", {"width": 5, "layers": 1, "activation": activation}, 14, 3, "last", seed)
    ls_lstm_case("ls-lstm", {"width": 5, "layers": 1}, 18, 3, "last", 941)
    ls_lstm_case("ls-lstm-layers", {"width": 4, "layers": 2}, 14, 3, "mean", 942)
    ur_lstm_case("ur-lstm", {"width": 5, "layers": 1}, 16, 3, "last", 951)
    ur_lstm_case("ur-lstm-writes", {"width": 4, "layers": 2, "gate": "writes", "refine_bias": False}, 14, 3, "mean", 952)
    ur_lstm_case("ur-lstm-plain", {"width": 4, "layers": 1, "refine": False}, 14, 4, "mean", 953)
    on_lstm_case("on-lstm", {"width": 6, "layers": 1}, 16, 3, "last", 961)
    on_lstm_case("on-lstm-layers", {"width": 6, "layers": 2, "chunk": 3, "dropconnect": 0.3}, 10, 2, "mean", 962)
    peephole_case("lstm-peepholes", {"width": 5, "layers": 1, "peepholes": True}, 16, 3, "last", 971)
    peephole_case("lstm-peepholes-projection", {"width": 4, "layers": 2, "peepholes": True, "projection": 3}, 12, 3, "mean", 972)
    writing_gru_case("gru-writes", {"width": 5, "layers": 1, "update": "writes"}, 16, 3, "last", 981)
    writing_gru_case("gru-writes-2014", {"width": 4, "layers": 2, "update": "writes", "reset": "before", "bias": False}, 12, 3, "mean", 982)


if __name__ == "__main__":
    main()
