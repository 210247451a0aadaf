# SPDX-License-Identifier: GPL-3.0-or-later
"""CfC, CT-RNN, neural ODE, ODE-RNN, TARNN, and LTC with elapsed times, as plain step loops, each checked against rounds of all steps at once
(harness.settle) or, where the solver chooses its steps, against a solution by many small steps and against a replay of its steps.

CfC         Hasani et al. 2022; mlech26l/ncps, torch/cfc.py, cfc_cell.py, lstm.py.
CT-RNN      raminmh/liquid_time_constant_networks, ctrnn_model.py; the form with the nonlinearity inside is Beer's (1995).
neural ODE  Chen et al. 2018; NODE of the same file; solvers as rtqichen/torchdiffeq has them.
ODE-RNN     Rubanova et al. 2019; YuliaRubanova/latent_ode, lib/encoder_decoder.py (GRU_unit, run_odernn).
TARNN       Kag and Saligrama 2021; anilkagak2/TARNN, pytorch/tarnn.py.
"""
import numpy as np
import torch

import continuous
from harness import draw, make, settle, under
from parts import erf
from state_space import logistic


def spans(settings, time, T):
    """The elapsed time of each step in units of time_unit; the first one is a unit."""
    if time is None:
        return np.ones(T)
    return np.concatenate([[1.0], np.diff(time) / settings["time_unit"]])


# ------------------------------------------------------------------------------------------------------------------ CfC

LECUN = {"lecun_tanh": lambda z, tanh: 1.7159 * tanh(0.666 * z), "tanh": lambda z, tanh: tanh(z)}


def cfc_activation(name, z):
    if name in LECUN:
        return LECUN[name](z, torch.tanh)
    return {"silu": torch.nn.functional.silu, "relu": torch.relu, "gelu": torch.nn.functional.gelu}[name](z)


def cfc(record, settings, parameters, x, elapsed):
    mode, depth = settings.get("mode", "default"), settings.get("backbone_layers", 1)
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        H = settings["width"]
        h, c, outputs = torch.zeros(H), torch.zeros(H), []
        for u, dt in zip(x, elapsed):
            def step(h, c=None):
                if settings.get("mixed_memory"):
                    i, ig, fg, og = torch.chunk(p["lstm.input_map.weight"] @ u + p["lstm.input_map.bias"] + p["lstm.recurrent_map.weight"] @ h, 4)
                    c = c * torch.sigmoid(fg + 1.0) + torch.tanh(i) * torch.sigmoid(ig)
                    h = torch.tanh(c) * torch.sigmoid(og)
                v = torch.cat([u, h])
                for k in range(depth):
                    v = cfc_activation(settings.get("activation", "lecun_tanh"), p[f"rnn_cell.backbone.{2 * k}.weight"] @ v + p[f"rnn_cell.backbone.{2 * k}.bias"])
                head = lambda name: p[f"rnn_cell.{name}.weight"] @ v + p[f"rnn_cell.{name}.bias"]
                if mode == "pure":
                    A, tau = p["rnn_cell.A"][0], p["rnn_cell.w_tau"][0]
                    new = -A * torch.exp(-dt * (torch.abs(tau) + torch.abs(head("ff1")))) * head("ff1") + A
                else:
                    s = torch.sigmoid(head("time_a") * dt + head("time_b"))
                    first, second = torch.tanh(head("ff1")), torch.tanh(head("ff2"))
                    new = first + s * second if mode == "no_gate" else first * (1.0 - s) + s * second
                return (new, c) if settings.get("mixed_memory") else (new,)

            if settings.get("mixed_memory"):
                h, c = record.step(layer, step, h, c)
                h, c = record.state(layer, "h", h), record.state(layer, "c", c)
            else:
                h = record.state(layer, "h", record.step(layer, step, h)[0])
            outputs.append(p["fc.weight"] @ h + p["fc.bias"] if settings.get("projection") else h)
        x = torch.stack(outputs)
    return x


def numpy_cfc(settings, values, x, elapsed):
    mode, depth, H, dt = settings.get("mode", "default"), settings.get("backbone_layers", 1), settings["width"], elapsed[:, None]
    name = settings.get("activation", "lecun_tanh")
    phi = {"silu": lambda z: z * logistic(z), "relu": lambda z: np.maximum(z, 0.0), "gelu": lambda z: 0.5 * z * (1.0 + erf(z / np.sqrt(2.0)))}.get(name) or (lambda z: LECUN[name](z, np.tanh))
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")

        def update(h, c):
            if settings.get("mixed_memory"):
                z = x @ p["lstm.input_map.weight"].T + h @ p["lstm.recurrent_map.weight"].T + p["lstm.input_map.bias"]
                c = logistic(z[:, 2 * H:3 * H] + 1.0) * c + logistic(z[:, H:2 * H]) * np.tanh(z[:, :H])
                h = logistic(z[:, 3 * H:]) * np.tanh(c)
            v = np.hstack([x, h])
            for k in range(depth):
                v = phi(v @ p[f"rnn_cell.backbone.{2 * k}.weight"].T + p[f"rnn_cell.backbone.{2 * k}.bias"])
            ends = {key: v @ p[f"rnn_cell.{key}.weight"].T + p[f"rnn_cell.{key}.bias"] for key in ("ff1", "ff2", "time_a", "time_b") if f"rnn_cell.{key}.weight" in p}
            if mode == "pure":
                return p["rnn_cell.A"] * (1.0 - np.exp(-dt * (np.abs(p["rnn_cell.w_tau"]) + np.abs(ends["ff1"]))) * ends["ff1"]), c
            a, b, s = np.tanh(ends["ff1"]), np.tanh(ends["ff2"]), logistic(ends["time_b"] + dt * ends["time_a"])
            return (a + s * b if mode == "no_gate" else a + s * (b - a)), c

        x = settle(update, len(x), (H,), (H,))[0]
        x = x @ p["fc.weight"].T + p["fc.bias"] if settings.get("projection") else x
    return x


def cfc_case(name, settings, T, d_in, loss, seed, time=None):
    H, units, depth, inputs, shapes = settings["width"], settings.get("backbone_units", 128), settings.get("backbone_layers", 1), d_in, {}
    for layer in range(settings["layers"]):
        def linear(key, out, width, scale=0.6):
            shapes.update({f"{layer}/{key}.weight": ((out, width), scale), f"{layer}/{key}.bias": ((out,), 0.3)})

        read = inputs + H
        for k in range(depth):
            linear(f"rnn_cell.backbone.{2 * k}", units, read)
            read = units
        for key in ["ff1"] if settings.get("mode") == "pure" else ["ff1", "ff2", "time_a", "time_b"]:
            linear(f"rnn_cell.{key}", H, read)
        if settings.get("mode") == "pure":
            shapes |= {f"{layer}/rnn_cell.w_tau": ((1, H), 0.5), f"{layer}/rnn_cell.A": ((1, H), 0.7)}
        if settings.get("mixed_memory"):
            linear("lstm.input_map", 4 * H, inputs)
            shapes |= {f"{layer}/lstm.recurrent_map.weight": ((4 * H, H), 0.6)}
        inputs = settings.get("projection", 0) or H
        if settings.get("projection"):
            linear("fc", inputs, H)
    run("cfc", name, settings, loss, shapes, T, d_in, seed, cfc, numpy_cfc, time)


# --------------------------------------------------------------------------------------------------------------- solvers

A = [[], [1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9], [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
     [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656], [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]]
EMBEDDED = [1951 / 21600, 0, 22642 / 50085, 451 / 720, -12231 / 42400, 649 / 6300, 1 / 60]
MIDDLE = [6025192743 / 30085553152, 0, 51252292925 / 65400821598, -2691868925 / 45128329728, 187940372067 / 1594534317056, -1776094331 / 19743644256, 11237099 / 235043384]


def rms(values):
    return float(torch.sqrt(torch.mean(values.detach() ** 2)))


def dopri5_step(f, y, k1, h):
    """The new y, the slopes at all stages, and the difference from the embedded step."""
    k = [k1]
    for row in A[1:]:
        new = y + h * sum(weight * slope for weight, slope in zip(row, k))
        k.append(f(new))
    error = h * sum((a - b) * slope for a, b, slope in zip(A[6] + [0.0], EMBEDDED, k))
    return new, k, error


def dopri5(f, y, span, rtol, atol, taken=None):
    """torchdiffeq's, with numbers for its step sizes; `taken` collects the steps that were good enough."""
    k1 = f(y)
    scale = atol + rtol * torch.abs(y.detach())
    d0, d1 = rms(y / scale), rms(k1 / scale)
    h0 = 1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1
    d2 = rms((f(y + h0 * k1) - k1) / scale) / h0
    h = min(100 * h0, max(1e-6, h0 * 1e-3) if d1 <= 1e-15 and d2 <= 1e-15 else (0.01 / max(d1, d2)) ** 0.2)
    t = 0.0
    while True:
        new, k, error = dopri5_step(f, y, k1, h)
        ratio = rms(error / (atol + rtol * torch.maximum(torch.abs(y), torch.abs(new)).detach()))
        if ratio <= 1.0:
            if taken is not None:
                taken.append(h)
            if t + h >= span:
                return quartic(y, new, k, h, (span - t) / h)
            t, y, k1 = t + h, new, k[6]
        h *= 10.0 if ratio == 0.0 else min(10.0, max(0.9 / ratio**0.2, 1.0 if ratio < 1.0 else 0.2))


def quartic(y, new, k, h, x):
    mid = y + h * sum(0.5 * weight * slope for weight, slope in zip(MIDDLE, k))
    a = 2 * h * (k[6] - k[0]) - 8 * (new + y) + 16 * mid
    b = h * (5 * k[0] - 3 * k[6]) + 18 * y + 14 * new - 32 * mid
    c = h * (k[6] - 4 * k[0]) - 11 * y - 5 * new + 16 * mid
    return y + x * (h * k[0] + x * (c + x * (b + x * a)))


def replayed(f, y, span, steps):
    """The same steps again."""
    t, k1 = 0.0, f(y)
    for h in steps[:-1]:
        y, k, _ = dopri5_step(f, y, k1, h)
        t, k1 = t + h, k[6]
    new, k, _ = dopri5_step(f, y, k1, steps[-1])
    return quartic(y, new, k, steps[-1], (span - t) / steps[-1])


def one_step(method, f, y, h):
    k1 = f(y)
    if method == "euler":
        return y + h * k1
    if method == "midpoint":
        return y + h * f(y + h / 2 * k1)
    if method == "rk4":
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(y + h * k3))
    k2 = f(y + h / 3 * k1)  # the 3/8 rule
    k3 = f(y + h * (k2 - k1 / 3))
    return y + h / 8 * (k1 + 3 * k2 + 3 * k3 + f(y + h * (k1 - k2 + k3)))


def solved(settings, standard, f, y, span, after=lambda y: y, taken=None):
    method, unfolds = settings.get("solver", standard[0]), settings.get("unfolds", standard[1])
    if method == "dopri5":
        return after(dopri5(f, y, float(span), settings.get("rtol", 1e-9), settings.get("atol", 1e-11), taken))
    for _ in range(unfolds):
        y = after(one_step(method, f, y, span / unfolds))
    return y


def numpy_solved(settings, standard, f, y, span, after=lambda y: y):
    """All steps at once; of dopri5 what any solver comes to in the end. span: [T, 1]."""
    method, unfolds = settings.get("solver", standard[0]), settings.get("unfolds", standard[1])
    many = method == "dopri5"
    if many:
        method, unfolds = "rk4", 400
    for _ in range(unfolds):
        y = one_step(method, f, y, span / unfolds)
        y = y if many else after(y)
    return after(y) if many else y


def run(architecture, name, settings, loss, shapes, T, d_in, seed, forward, second, time=None, x=None):
    elapsed = spans(settings, time, T)
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in)) if x is None else x
    make(name, architecture, settings, loss, f"step loop from the equations of {architecture}, checked against rounds of all steps at once", draw(seed, shapes), x,
         lambda record, p, v: forward(record, settings, p, v, elapsed), second=lambda p, v: second(settings, p, v, elapsed), seed=seed, time=time)


# --------------------------------------------------------------------------------------------------------------- CT-RNN

CTRNN = ("euler", 6)


def ctrnn(record, settings, parameters, x, elapsed):
    feedback, clip = settings.get("feedback", True), settings.get("clip", 0.0)
    phi = {"tanh": torch.tanh, "sigmoid": torch.sigmoid, "relu": torch.relu, "identity": lambda v: v}[settings.get("activation", "tanh")]
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        W, s, outputs = p["W_step"], torch.zeros(settings["width"]), []
        tau = torch.nn.functional.softplus(p["tau"]) if settings.get("tau", "fixed") != "fixed" else settings.get("time_constant", 1.0)
        for u, dt in zip(x, elapsed):
            def slope(v):
                if settings.get("form", "of_sum") == "of_sum":
                    return -v / tau + phi((torch.cat([u, v]) if feedback else u) @ W + p["bias_step"])
                driven = torch.cat([u, phi(v + p["bias_step"])]) @ W if feedback else u @ W
                return (driven - v) / tau

            def step(s):
                span = settings.get("delta_t", 0.1) * settings.get("unfolds", 6) * dt
                return (solved(settings, CTRNN, slope, s, span, lambda v: torch.clamp(v, -clip, clip) if clip else v),)

            s = record.state(layer, "s", record.step(layer, step, s)[0])
            outputs.append(s)
        x = torch.stack(outputs)
    return x


def numpy_ctrnn(settings, values, x, elapsed):
    feedback, clip, H = settings.get("feedback", True), settings.get("clip", 0.0), settings["width"]
    phi = {"tanh": np.tanh, "sigmoid": logistic, "relu": lambda v: np.maximum(v, 0.0), "identity": lambda v: v}[settings.get("activation", "tanh")]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        drive, W_s = x @ p["W_step"][: x.shape[1]], p["W_step"][x.shape[1]:]
        rate = 1.0 / (np.log1p(np.exp(p["tau"])) if settings.get("tau", "fixed") != "fixed" else settings.get("time_constant", 1.0))

        def slope(v):
            if settings.get("form", "of_sum") == "of_sum":
                return phi(drive + p["bias_step"] + (v @ W_s if feedback else 0.0)) - rate * v
            return rate * (drive + (phi(v + p["bias_step"]) @ W_s if feedback else 0.0) - v)

        span = settings.get("delta_t", 0.1) * settings.get("unfolds", 6) * elapsed[:, None]
        x = settle(lambda s: (numpy_solved(settings, CTRNN, slope, s, span, lambda v: np.clip(v, -clip, clip) if clip else v),), len(x), (H,))[0]
    return x


def ctrnn_case(name, settings, T, d_in, loss, seed, time=None):
    H, inputs, shapes = settings["width"], d_in, {}
    feedback = settings.get("feedback", True)
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/W_step": ((inputs + (H if feedback else 0), H), 0.9)}
        if feedback or settings.get("form", "of_sum") == "of_sum":
            shapes |= {f"{layer}/bias_step": ((H,), 0.4)}
        if settings.get("tau", "fixed") != "fixed":
            shapes |= {f"{layer}/tau": ((1 if settings["tau"] == "shared" else H,), 0.3, 0.6)}
        inputs = H
    run("ctrnn", name, settings, loss, shapes, T, d_in, seed, ctrnn, numpy_ctrnn, time)


# ----------------------------------------------------------------------------------------------------------- neural ODE

PHI = {"tanh": (torch.tanh, np.tanh), "relu": (torch.relu, lambda v: np.maximum(v, 0.0)), "elu": (torch.nn.functional.elu, lambda v: np.where(v > 0, v, np.expm1(np.minimum(v, 0.0)))),
       "softplus": (torch.nn.functional.softplus, lambda v: np.logaddexp(v, 0.0)), "silu": (torch.nn.functional.silu, lambda v: v * logistic(v))}


def network(settings, p, prefix, v, library):
    """A torch Sequential of linear maps with the nonlinearity between; v [..., in]."""
    depth = settings.get("hidden_layers", 1)
    for i in range(depth + 1):
        v = v @ p[f"{prefix}.{2 * i}.weight"].T + p[f"{prefix}.{2 * i}.bias"]
        if i < depth:
            v = PHI[settings.get("activation", "tanh")][0 if library is torch else 1](v)
    return library.tanh(v) if settings.get("final_activation", "identity") == "tanh" else v


def network_shapes(layer, prefix, settings, in_width, H):
    depth, units, shapes = settings.get("hidden_layers", 1), settings.get("hidden_units", 64), {}
    for i in range(depth + 1):
        read, out = in_width if i == 0 else units, H if i == depth else units
        shapes |= {f"{layer}/{prefix}.{2 * i}.weight": ((out, read), 0.8), f"{layer}/{prefix}.{2 * i}.bias": ((out,), 0.3)}
    return shapes


NODE = ("rk4", 2)


def neural_ode(record, settings, parameters, x, elapsed, taken=None):
    joined = settings.get("drive", "joined") == "joined"
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        s, outputs = torch.zeros(settings["width"]), []
        for t, (u, dt) in enumerate(zip(x, elapsed)):
            def slope(v):
                if joined:
                    return network(settings, p, "gradient_net", torch.cat([u, v]), torch)
                return network(settings, p, "gradient_net", v, torch) + p["input.weight"] @ u

            def step(s, steps=None):
                return (solved(settings, NODE, slope, s, settings.get("span", 1.0) * dt, taken=steps),)

            if taken is not None:
                step(s, taken.setdefault((layer, t), []))
            s = record.state(layer, "s", record.step(layer, step, s)[0])
            outputs.append(s)
        x = torch.stack(outputs)
    return x


def numpy_neural_ode(settings, values, x, elapsed):
    H, joined = settings["width"], settings.get("drive", "joined") == "joined"
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")

        def slope(v):
            if joined:
                return network(settings, p, "gradient_net", np.hstack([x, v]), np)
            return network(settings, p, "gradient_net", v, np) + x @ p["input.weight"].T

        x = settle(lambda s: (numpy_solved(settings, NODE, slope, s, settings.get("span", 1.0) * elapsed[:, None]),), len(x), (H,))[0]
    return x


def replayed_neural_ode(settings, values, x, elapsed, taken):
    H, joined = settings["width"], settings.get("drive", "joined") == "joined"
    for layer in range(settings["layers"]):
        p, s, rows = under(values, f"{layer}/"), np.zeros(H), []
        for t, (u, dt) in enumerate(zip(x, elapsed)):
            slope = lambda v: network(settings, p, "gradient_net", np.concatenate([u, v]) if joined else v, np) + (0.0 if joined else p["input.weight"] @ u)
            s = replayed(slope, s, settings.get("span", 1.0) * dt, taken[layer, t])
            rows.append(s)
        x = np.array(rows)
    return x


def neural_ode_case(name, settings, T, d_in, loss, seed, time=None, replay=False):
    H, inputs, shapes = settings["width"], d_in, {}
    joined = settings.get("drive", "joined") == "joined"
    for layer in range(settings["layers"]):
        shapes |= network_shapes(layer, "gradient_net", settings, inputs + H if joined else H, H)
        if not joined:
            shapes |= {f"{layer}/input.weight": ((H, inputs), 0.8)}
        inputs = H
    if not replay:
        return run("neural-ode", name, settings, loss, shapes, T, d_in, seed, neural_ode, numpy_neural_ode, time)
    elapsed, taken = spans(settings, time, T), {}
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    make(name, "neural-ode", settings, loss, "step loop from the equations of neural-ode, checked against a replay of the solver's steps", draw(seed, shapes), x,
         lambda record, p, v: neural_ode(record, settings, p, v, elapsed, taken), second=lambda p, v: replayed_neural_ode(settings, p, v, elapsed, taken), seed=seed, time=time)


# -------------------------------------------------------------------------------------------------------------- ODE-RNN

ODE_RNN = ("euler", 4)


def ode_rnn(record, settings, parameters, x, elapsed):
    H, update, masked = settings["width"], settings.get("update", "gru_unit"), settings.get("masked", False)
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        h, d, outputs = torch.zeros(H), torch.zeros(H), []

        def two(name, v):
            hidden = torch.tanh(p[f"GRU_update.{name}.0.weight"] @ v + p[f"GRU_update.{name}.0.bias"])
            return p[f"GRU_update.{name}.2.weight"] @ hidden + p[f"GRU_update.{name}.2.bias"]

        for u, dt in zip(x, elapsed):
            seen = float(torch.sum(u.detach()[len(u) // 2:]) > 0) if masked else 1.0

            def step(h, d=None):
                mean = solved(settings, ODE_RNN, lambda v: network(settings, p, "ode_func.gradient_net", v, torch), h, settings.get("span", 1.0) * dt)
                if update == "gru_unit":
                    both = torch.cat([mean, d, u])
                    z, r = torch.sigmoid(two("update_gate", both)), torch.sigmoid(two("reset_gate", both))
                    new, new_d = torch.chunk(two("new_state_net", torch.cat([mean * r, d * r, u])), 2)
                    new, new_d = (1 - z) * new + z * mean, (1 - z) * torch.abs(new_d) + z * d
                    return seen * new + (1 - seen) * mean, torch.abs(seen * new_d + (1 - seen) * d)
                gi, gh = p["cell.weight_ih"] @ u + p["cell.bias_ih"], p["cell.weight_hh"] @ mean + p["cell.bias_hh"]
                if update == "gru":
                    r, z = torch.sigmoid(gi[:H] + gh[:H]), torch.sigmoid(gi[H:2 * H] + gh[H:2 * H])
                    new = (1 - z) * torch.tanh(gi[2 * H:] + r * gh[2 * H:]) + z * mean
                else:
                    new = torch.tanh(gi + gh)
                return (seen * new + (1 - seen) * mean,)

            if update == "gru_unit":
                h, d = record.step(layer, step, h, d)
                h, d = record.state(layer, "h", h), record.state(layer, "std", d)
            else:
                h = record.state(layer, "h", record.step(layer, step, h)[0])
            outputs.append(h)
        x = torch.stack(outputs)
    return x


def numpy_ode_rnn(settings, values, x, elapsed):
    H, update, masked = settings["width"], settings.get("update", "gru_unit"), settings.get("masked", False)
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        seen = x[:, x.shape[1] // 2:].sum(1, keepdims=True) > 0 if masked else np.ones((len(x), 1), dtype=bool)

        def two(name, v):
            q = under(p, f"GRU_update.{name}.")
            return np.tanh(v @ q["0.weight"].T + q["0.bias"]) @ q["2.weight"].T + q["2.bias"]

        def step(h, d):
            mean = numpy_solved(settings, ODE_RNN, lambda v: network(settings, p, "ode_func.gradient_net", v, np), h, settings.get("span", 1.0) * elapsed[:, None])
            new_d = d
            if update == "gru_unit":
                z, r = logistic(two("update_gate", np.hstack([mean, d, x]))), logistic(two("reset_gate", np.hstack([mean, d, x])))
                made = two("new_state_net", np.hstack([r * mean, r * d, x]))
                new, new_d = made[:, :H] + z * (mean - made[:, :H]), np.abs(made[:, H:]) + z * (d - np.abs(made[:, H:]))
            else:
                gi, gh = x @ p["cell.weight_ih"].T + p["cell.bias_ih"], mean @ p["cell.weight_hh"].T + p["cell.bias_hh"]
                new = np.tanh(gi + gh)
                if update == "gru":
                    gates = logistic(gi[:, :2 * H] + gh[:, :2 * H])
                    n = np.tanh(gi[:, 2 * H:] + gates[:, :H] * gh[:, 2 * H:])
                    new = n + gates[:, H:] * (mean - n)
            return np.where(seen, new, mean), np.where(seen, new_d, d)

        x = settle(step, len(x), (H,), (H,))[0]
    return x


def ode_rnn_case(name, settings, T, d_in, loss, seed, time=None):
    H, units, update, inputs, shapes = settings["width"], settings.get("update_units", 64), settings.get("update", "gru_unit"), d_in, {}
    for layer in range(settings["layers"]):
        shapes |= network_shapes(layer, "ode_func.gradient_net", settings, H, H)
        if update == "gru_unit":
            for key, out in (("update_gate", H), ("reset_gate", H), ("new_state_net", 2 * H)):
                shapes |= {f"{layer}/GRU_update.{key}.0.weight": ((units, 2 * H + inputs), 0.6), f"{layer}/GRU_update.{key}.0.bias": ((units,), 0.3),
                           f"{layer}/GRU_update.{key}.2.weight": ((out, units), 0.6), f"{layer}/GRU_update.{key}.2.bias": ((out,), 0.3)}
        else:
            rows = 3 * H if update == "gru" else H
            shapes |= {f"{layer}/cell.weight_ih": ((rows, inputs), 0.7), f"{layer}/cell.weight_hh": ((rows, H), 0.7), f"{layer}/cell.bias_ih": ((rows,), 0.3), f"{layer}/cell.bias_hh": ((rows,), 0.3)}
        inputs = H
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    if settings.get("masked"):
        # Not 0 but below it where nothing was observed, so that differences of the input do not turn it round.
        x[:, d_in // 2:] = np.where(np.random.default_rng(seed + 501).random((T, 1)) < 0.6, 1.0, -0.5)
    run("ode-rnn", name, settings, loss, shapes, T, d_in, seed, ode_rnn, numpy_ode_rnn, time, x)


# ---------------------------------------------------------------------------------------------------------------- TARNN

def tarnn(record, settings, parameters, x, elapsed):
    outside, K, N = settings.get("gate", "outside") == "outside", settings.get("K", 1), settings.get("timesteps", 1)
    phi = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}[settings.get("activation", "relu")]
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        h, before, outputs = torch.zeros(settings["width"]), x[0], []
        for t, (u, dt) in enumerate(zip(x, elapsed)):
            def step(old):
                gate = torch.sigmoid(old @ p["Ug"] + u @ p["Wg"] + p["bg"])
                arg = old @ p["U2"] + u @ p["W1"] + before @ p["W2"] + p["b1"]
                h = old
                for k in range(K):
                    size = p["A1"][k, min(t, N - 1)] * dt
                    F = phi(h @ p["U1"] + arg) - h - old + u @ p["B1"] + old @ p["B2"]
                    h = (1 - size) * h + size * F if outside else h + size * gate * F
                return ((1 - gate) * old + gate * h if outside else h,)

            h = record.state(layer, "h", record.step(layer, step, h)[0])
            before = u
            outputs.append(h)
        x = torch.stack(outputs)
    return x


def numpy_tarnn(settings, values, x, elapsed):
    outside, H, T = settings.get("gate", "outside") == "outside", settings["width"], len(x)
    phi = {"relu": lambda v: np.maximum(v, 0.0), "tanh": np.tanh, "sigmoid": logistic}[settings.get("activation", "relu")]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        before = np.vstack([x[:1], x[:-1]])
        columns = p["A1"][:, np.minimum(np.arange(T), p["A1"].shape[1] - 1)]

        def update(old):
            gate = logistic(np.hstack([old, x]) @ np.vstack([p["Ug"], p["Wg"]]) + p["bg"])
            inner, outer = np.hstack([old, x, before]) @ np.vstack([p["U2"], p["W1"], p["W2"]]) + p["b1"], x @ p["B1"] + old @ (p["B2"] - np.eye(H))
            h = old
            for row in columns:
                size = (row * elapsed)[:, None]
                speed = phi(inner + h @ p["U1"]) + outer
                h = h + size * (speed - 2 * h) if outside else h + size * gate * (speed - h)
            return (old + gate * (h - old) if outside else h,)

        x = settle(update, T, (H,))[0]
    return x


def tarnn_case(name, settings, T, d_in, loss, seed, time=None):
    H, K, N, inputs, shapes = settings["width"], settings.get("K", 1), settings.get("timesteps", 1), d_in, {}
    for layer in range(settings["layers"]):
        shapes |= {f"{layer}/{key}": ((inputs, H), 0.6) for key in ("B1", "W1", "W2", "Wg")} | {f"{layer}/{key}": ((H, H), 0.6) for key in ("B2", "U1", "U2", "Ug")}
        shapes |= {f"{layer}/b1": ((H,), 0.3), f"{layer}/bg": ((H,), 0.4), f"{layer}/A1": ((K, N), 0.1, 0.4)}
        inputs = H
    run("tarnn", name, settings, loss, shapes, T, d_in, seed, tarnn, numpy_tarnn, time)


# ------------------------------------------------------------------------------------------------- LTC with elapsed times

def ltc_case(name, settings, T, d_in, loss, seed, time):
    H, shapes = settings["width"], {"0/input_w": ((d_in,), 0.3, 1.0), "0/input_b": ((d_in,), 0.3)}
    for kind, rows in (("sensory_", d_in), ("", H)):
        shapes |= {f"0/{kind}mu": ((rows, H), 0.3, 0.5), f"0/{kind}sigma": ((rows, H), 0.8, 3.0), f"0/{kind}W": ((rows, H), 0.1, 0.6), f"0/{kind}erev": ((rows, H), 1.0)}
    shapes |= {"0/vleak": ((H,), 0.3), "0/gleak": ((H,), 0.1, 0.7), "0/cm_t": ((H,), 0.15, 2.0)}
    run("ltc", name, settings, loss, shapes, T, d_in, seed, continuous.ltc, continuous.numpy_ltc, time)


def main():
    times = lambda seed, T: np.cumsum(0.3 + np.random.default_rng(seed).exponential(1.0, T))
    cfc_case("cfc", {"width": 5, "layers": 1, "backbone_units": 6}, 20, 2, "last", 301)
    cfc_case("cfc-times", {"width": 4, "layers": 2, "backbone_units": 5, "backbone_layers": 2, "activation": "silu", "time_unit": 0.7}, 14, 3, "mean", 302, times(302, 14))
    cfc_case("cfc-no-gate", {"width": 4, "layers": 1, "mode": "no_gate", "backbone_layers": 0, "time_unit": 2.0, "projection": 3}, 16, 3, "mean", 303, times(303, 16))
    cfc_case("cfc-pure", {"width": 4, "layers": 1, "mode": "pure", "backbone_units": 5, "activation": "tanh", "time_unit": 1.5}, 16, 2, "last", 304, times(304, 16))
    cfc_case("cfc-pure-bare", {"width": 4, "layers": 2, "mode": "pure", "backbone_layers": 0}, 12, 3, "mean", 305)
    cfc_case("cfc-mixed", {"width": 3, "layers": 1, "mixed_memory": True, "backbone_units": 5, "activation": "gelu", "time_unit": 1.0}, 14, 2, "last", 306, times(306, 14))
    cfc_case("cfc-relu", {"width": 3, "layers": 1, "backbone_units": 12, "activation": "relu"}, 10, 2, "mean", 307)

    ctrnn_case("ctrnn", {"width": 5, "layers": 1}, 18, 2, "last", 311)
    ctrnn_case("ctrnn-times", {"width": 4, "layers": 2, "form": "of_state", "tau": "each", "solver": "midpoint", "unfolds": 2, "delta_t": 0.3, "time_unit": 0.9}, 14, 2, "mean", 312, times(312, 14))
    ctrnn_case("ctrnn-input-alone", {"width": 4, "layers": 1, "feedback": False, "tau": "shared", "solver": "rk4", "unfolds": 2, "activation": "sigmoid", "delta_t": 0.5}, 12, 3, "mean", 313)
    ctrnn_case("ctrnn-leak", {"width": 4, "layers": 1, "form": "of_state", "feedback": False, "time_constant": 3.0, "activation": "identity", "solver": "rk4_38", "unfolds": 1}, 12, 3, "mean", 314)
    ctrnn_case("ctrnn-clip", {"width": 4, "layers": 1, "clip": 0.3, "activation": "relu", "unfolds": 3, "delta_t": 0.4}, 14, 2, "mean", 315)
    ctrnn_case("ctrnn-dopri5", {"width": 4, "layers": 1, "solver": "dopri5", "rtol": 1e-11, "atol": 1e-13, "max_steps": 100, "time_unit": 1.0}, 10, 2, "mean", 316, times(316, 10))

    neural_ode_case("neural-ode", {"width": 4, "layers": 1, "hidden_units": 5}, 14, 2, "last", 321)
    neural_ode_case("neural-ode-added", {"width": 3, "layers": 2, "hidden_layers": 2, "hidden_units": 4, "drive": "added", "activation": "softplus", "final_activation": "tanh", "solver": "midpoint", "span": 0.7, "time_unit": 1.3}, 12, 2, "mean", 322, times(322, 12))
    neural_ode_case("neural-ode-node", {"width": 4, "layers": 1, "hidden_layers": 0, "final_activation": "tanh", "solver": "rk4_38", "unfolds": 3, "span": 0.6}, 12, 3, "mean", 323)
    neural_ode_case("neural-ode-euler", {"width": 3, "layers": 1, "hidden_units": 4, "activation": "elu", "final_activation": "tanh", "solver": "euler", "unfolds": 3}, 10, 2, "mean", 324)
    neural_ode_case("neural-ode-relu", {"width": 3, "layers": 1, "hidden_units": 4, "activation": "relu", "final_activation": "tanh"}, 10, 2, "mean", 325)
    neural_ode_case("neural-ode-silu", {"width": 3, "layers": 1, "hidden_units": 4, "activation": "silu", "final_activation": "tanh"}, 10, 2, "mean", 326)
    neural_ode_case("neural-ode-dopri5", {"width": 3, "layers": 1, "hidden_units": 5, "final_activation": "tanh", "solver": "dopri5", "rtol": 1e-11, "atol": 1e-13, "max_steps": 100, "time_unit": 1.0}, 8, 2, "mean", 327, times(327, 8))
    neural_ode_case("neural-ode-dopri5-loose", {"width": 4, "layers": 1, "hidden_units": 5, "solver": "dopri5", "rtol": 1e-3, "atol": 1e-4, "span": 2.0, "time_unit": 1.0}, 12, 2, "mean", 328, times(328, 12), replay=True)

    ode_rnn_case("ode-rnn", {"width": 3, "layers": 1, "hidden_units": 4, "update_units": 5, "time_unit": 1.0}, 14, 2, "last", 331, times(331, 14))
    ode_rnn_case("ode-rnn-masked", {"width": 3, "layers": 1, "hidden_units": 4, "update_units": 4, "masked": True, "solver": "rk4", "unfolds": 1, "activation": "relu", "final_activation": "tanh", "time_unit": 0.8}, 14, 4, "mean", 332, times(332, 14))
    ode_rnn_case("ode-rnn-gru", {"width": 4, "layers": 2, "hidden_units": 4, "update": "gru", "solver": "midpoint", "unfolds": 2, "activation": "elu", "final_activation": "tanh", "time_unit": 1.0}, 12, 2, "mean", 333, times(333, 12))
    ode_rnn_case("ode-rnn-rnn", {"width": 4, "layers": 1, "hidden_units": 4, "update": "rnn", "masked": True, "activation": "softplus", "solver": "rk4_38", "unfolds": 2}, 12, 4, "mean", 334)
    ode_rnn_case("ode-rnn-dopri5", {"width": 3, "layers": 1, "hidden_layers": 2, "hidden_units": 4, "update": "gru", "activation": "silu", "final_activation": "tanh", "solver": "dopri5", "rtol": 1e-11, "atol": 1e-13, "max_steps": 100, "time_unit": 1.0}, 8, 2, "mean", 335, times(335, 8))

    ltc_case("ltc-times", {"width": 4, "layers": 1, "ode_unfolds": 3, "time_unit": 0.8}, 14, 2, "last", 351, times(351, 14))
    ltc_case("ltc-times-explicit", {"width": 4, "layers": 1, "ode_unfolds": 3, "solver": "explicit", "time_unit": 1.0}, 12, 2, "mean", 352, times(352, 12))
    ltc_case("ltc-times-runge-kutta", {"width": 3, "layers": 1, "ode_unfolds": 2, "solver": "runge_kutta", "time_unit": 1.0}, 12, 2, "mean", 353, times(353, 12))

    tarnn_case("tarnn", {"width": 4, "layers": 1, "K": 3, "timesteps": 16}, 16, 2, "last", 341)
    tarnn_case("tarnn-times", {"width": 4, "layers": 2, "K": 2, "activation": "tanh", "time_unit": 1.2}, 12, 2, "mean", 342, times(342, 12))
    tarnn_case("tarnn-inside", {"width": 4, "layers": 1, "K": 2, "gate": "inside", "activation": "sigmoid", "timesteps": 5, "time_unit": 1.0}, 14, 3, "mean", 343, times(343, 14))


if __name__ == "__main__":
    main()
