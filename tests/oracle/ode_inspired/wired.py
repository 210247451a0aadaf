# SPDX-License-Identifier: GPL-3.0-or-later
"""LTC and CfC as ncps has them: with a mask of synapses, constraints by softplus and an LSTM cell in front, as plain step loops, each checked
against rounds of all steps at once (harness.settle).

mlech26l/ncps 1.0.1: torch/ltc_cell.py, ltc.py, wired_cfc_cell.py, cfc_cell.py, cfc.py, lstm.py, wirings/wirings.py (numbers of neurons).
"""
import numpy as np
import torch

from harness import draw, make, settle, under
from state_space import logistic


def spans(time, T):
    return np.ones(T) if time is None else np.concatenate([[1.0], np.diff(time)])


def lstm_front(p, u, h, c):
    i, ig, fg, og = torch.chunk(p["lstm.input_map.weight"] @ u + p["lstm.input_map.bias"] + p["lstm.recurrent_map.weight"] @ h, 4)
    c = c * torch.sigmoid(fg + 1.0) + torch.tanh(i) * torch.sigmoid(ig)
    return torch.tanh(c) * torch.sigmoid(og), c


def numpy_lstm_front(p, x, h, c):
    z = np.hstack([x, h]) @ np.hstack([p["lstm.input_map.weight"], p["lstm.recurrent_map.weight"]]).T + p["lstm.input_map.bias"]
    i, ig, fg, og = np.split(z, 4, axis=1)
    c = logistic(fg + 1.0) * c + logistic(ig) * np.tanh(i)
    return logistic(og) * np.tanh(c), c


# ------------------------------------------------------------------------------------------------------------------ LTC

def ltc(record, settings, parameters, x, elapsed):
    soft = torch.nn.functional.softplus if settings.get("constraints") == "softplus" else lambda v: v
    unfolds, epsilon, mixed = settings["ode_unfolds"], settings.get("epsilon", 0.0), settings.get("mixed_memory", False)
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        H = settings["width"]
        v, c, outputs = torch.zeros(H), torch.zeros(H), []
        mask, sensory_mask = p.get("sparsity_mask", 1.0), p.get("sensory_sparsity_mask", 1.0)
        for u, dt in zip(x, elapsed):
            seen = u * p["input_w"] + p["input_b"]

            def step(v, c=None):
                if mixed:
                    v, c = lstm_front(p, u, v, c)
                outside = soft(p["sensory_W"]) * torch.sigmoid(p["sensory_sigma"] * (seen[:, None] - p["sensory_mu"])) * sensory_mask
                cm = soft(p["cm"]) / (dt / unfolds) if "cm" in p else soft(p["cm_t"]) / dt
                for _ in range(unfolds):
                    inside = soft(p["W"]) * torch.sigmoid(p["sigma"] * (v[:, None] - p["mu"])) * mask
                    above = (inside * p["erev"]).sum(0) + (outside * p["sensory_erev"]).sum(0)
                    below = inside.sum(0) + outside.sum(0)
                    v = (cm * v + soft(p["gleak"]) * p["vleak"] + above) / (cm + soft(p["gleak"]) + below + epsilon)
                return (v, c) if mixed else (v,)

            if mixed:
                v, c = record.step(layer, step, v, c)
                v, c = record.state(layer, "v", v), record.state(layer, "c", c)
            else:
                v = record.state(layer, "v", record.step(layer, step, v)[0])
            outputs.append(v[: settings.get("motor", 0) or None] * p["output_w"] + p["output_b"])
        x = torch.stack(outputs)
    return x


def numpy_ltc(settings, values, x, elapsed):
    soft = (lambda v: np.logaddexp(0.0, v)) if settings.get("constraints") == "softplus" else (lambda v: v)
    dt = elapsed[:, None]
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")
        synapses = {kind: soft(p[kind + "W"]) * p.get(kind + "sparsity_mask", 1.0) for kind in ("", "sensory_")}

        def terms(v, kind):
            open_ = logistic(np.einsum("jk,tjk->tjk", p[kind + "sigma"], v[:, :, None] - p[kind + "mu"][None]))
            return np.einsum("tjk,jk,jk->tk", open_, synapses[kind], p[kind + "erev"]), np.einsum("tjk,jk->tk", open_, synapses[kind])

        a0, b0 = terms(x * p["input_w"] + p["input_b"], "sensory_")
        a0, b0 = a0 + soft(p["gleak"]) * p["vleak"], b0 + soft(p["gleak"]) + settings.get("epsilon", 0.0)
        h = dt / (settings["ode_unfolds"] * soft(p["cm"])) if "cm" in p else dt / soft(p["cm_t"])

        def update(v, c):
            if settings.get("mixed_memory"):
                v, c = numpy_lstm_front(p, x, v, c)
            for _ in range(settings["ode_unfolds"]):
                a, b = terms(v, "")
                v = (v + h * (a + a0)) / (1.0 + h * (b + b0))
            return v, c

        H = settings["width"]
        x = settle(update, len(x), (H,), (H,))[0][:, : settings.get("motor", 0) or None] * p["output_w"] + p["output_b"]
    return x


def ltc_case(name, settings, T, d_in, loss, seed, time=None):
    settings = {"ode_unfolds": 3, "mapping": "affine", "output_mapping": "affine", **settings}
    H, M, inputs, shapes = settings["width"], settings.get("motor", 0) or settings["width"], d_in, {}
    for layer in range(settings["layers"]):
        key = f"{layer}/"
        shapes |= {key + "input_w": ((inputs,), 0.3, 1.0), key + "input_b": ((inputs,), 0.3)}
        for kind, rows in (("sensory_", inputs), ("", H)):
            shapes |= {f"{key}{kind}mu": ((rows, H), 0.3, 0.5), f"{key}{kind}sigma": ((rows, H), 0.8, 3.0), f"{key}{kind}W": ((rows, H), 0.1, 0.6), f"{key}{kind}erev": ((rows, H), 1.0)}
            if settings.get("wiring", "none") != "none":
                shapes[f"{key}{kind}sparsity_mask"] = ((rows, H), 0.2, 0.7)
        shapes |= {key + "vleak": ((H,), 0.2), key + "gleak": ((H,), 0.1, 0.8), key + ("cm" if settings.get("capacitance") == "whole" else "cm_t"): ((H,), 0.05, 0.5)}
        if settings.get("mixed_memory"):
            shapes |= {key + "lstm.input_map.weight": ((4 * H, inputs), 0.6), key + "lstm.input_map.bias": ((4 * H,), 0.3), key + "lstm.recurrent_map.weight": ((4 * H, H), 0.6)}
        shapes |= {key + "output_w": ((M,), 0.3, 1.0), key + "output_b": ((M,), 0.3)}
        inputs = M
    run("ltc", name, settings, T, d_in, loss, seed, shapes, ltc, numpy_ltc, time)


# ------------------------------------------------------------------------------------------------------------------ CfC

def layer_sizes(settings):
    """Neurons of each layer of the wiring: inter, command and motor, or all at once."""
    H, M = settings["width"], settings.get("motor", 0)
    if settings["wiring"] not in ("ncp", "auto_ncp"):
        return [H]
    command = settings.get("command", 4) if settings["wiring"] == "ncp" else max(int(0.4 * (H - M)), 1)
    return [H - M - command, command, M]


def cfc(record, settings, parameters, x, elapsed):
    mode, mixed, sizes = settings.get("mode", "default"), settings.get("mixed_memory", False), layer_sizes(settings)
    for layer in range(settings["layers"]):
        p = under(parameters, f"{layer}/")
        H = settings["width"]
        h, c, outputs = torch.zeros(H), torch.zeros(H), []
        for u, dt in zip(x, elapsed):
            def step(h, c=None):
                if mixed:
                    h, c = lstm_front(p, u, h, c)
                below, new = u, []
                for k, old in enumerate(torch.split(h, sizes)):
                    q = under(p, f"rnn_cell.layer_{k}.")
                    v = torch.cat([below, old])
                    head = lambda name: q[f"{name}.weight"] @ v + q[f"{name}.bias"]
                    masked = lambda name: (q[f"{name}.weight"] * q["sparsity_mask"]) @ v + q[f"{name}.bias"]
                    if mode == "pure":
                        below = -q["A"][0] * torch.exp(-dt * (torch.abs(q["w_tau"][0]) + torch.abs(masked("ff1")))) * masked("ff1") + q["A"][0]
                    else:
                        s = torch.sigmoid(head("time_a") * dt + head("time_b"))
                        first, second = torch.tanh(masked("ff1")), torch.tanh(masked("ff2"))
                        below = first + s * second if mode == "no_gate" else first * (1.0 - s) + s * second
                    new.append(below)
                return (torch.cat(new), c) if mixed else (torch.cat(new),)

            if mixed:
                h, c = record.step(layer, step, h, c)
                h, c = record.state(layer, "h", h), record.state(layer, "c", c)
            else:
                h = record.state(layer, "h", record.step(layer, step, h)[0])
            y = h[H - sizes[-1]:]
            outputs.append(p["fc.weight"] @ y + p["fc.bias"] if settings.get("projection") else y)
        x = torch.stack(outputs)
    return x


def numpy_cfc(settings, values, x, elapsed):
    mode, H, dt, sizes = settings.get("mode", "default"), settings["width"], elapsed[:, None], layer_sizes(settings)
    for layer in range(settings["layers"]):
        p = under(values, f"{layer}/")

        def update(h, c):
            if settings.get("mixed_memory"):
                h, c = numpy_lstm_front(p, x, h, c)
            below, new, at = x, [], 0
            for k, n in enumerate(sizes):
                q, v = under(p, f"rnn_cell.layer_{k}."), np.hstack([below, h[:, at:at + n]])
                f = v @ (q["sparsity_mask"] * q["ff1.weight"]).T + q["ff1.bias"]
                if mode == "pure":
                    below = q["A"] * (1.0 - f * np.exp(-dt * (np.abs(q["w_tau"]) + np.abs(f))))
                else:
                    a, b = np.tanh(f), np.tanh(v @ (q["sparsity_mask"] * q["ff2.weight"]).T + q["ff2.bias"])
                    s = logistic(v @ q["time_b.weight"].T + q["time_b.bias"] + dt * (v @ q["time_a.weight"].T + q["time_a.bias"]))
                    below = a + s * b if mode == "no_gate" else a + s * (b - a)
                new.append(below)
                at += n
            return np.hstack(new), c

        x = settle(update, len(x), (H,), (H,))[0][:, H - sizes[-1]:]
        x = x @ p["fc.weight"].T + p["fc.bias"] if settings.get("projection") else x
    return x


def cfc_case(name, settings, T, d_in, loss, seed, time=None):
    H, inputs, shapes = settings["width"], d_in, {}
    for layer in range(settings["layers"]):
        below = inputs
        for k, n in enumerate(layer_sizes(settings)):
            key, columns = f"{layer}/rnn_cell.layer_{k}.", below + n
            shapes[key + "sparsity_mask"] = ((n, columns), 0.2, 0.7)
            for map_ in ["ff1"] if settings.get("mode") == "pure" else ["ff1", "ff2", "time_a", "time_b"]:
                shapes |= {f"{key}{map_}.weight": ((n, columns), 0.6), f"{key}{map_}.bias": ((n,), 0.3)}
            if settings.get("mode") == "pure":
                shapes |= {key + "w_tau": ((1, n), 0.5), key + "A": ((1, n), 0.7)}
            below = n
        if settings.get("mixed_memory"):
            key = f"{layer}/"
            shapes |= {key + "lstm.input_map.weight": ((4 * H, inputs), 0.6), key + "lstm.input_map.bias": ((4 * H,), 0.3), key + "lstm.recurrent_map.weight": ((4 * H, H), 0.6)}
        inputs = below
        if settings.get("projection"):
            shapes |= {f"{layer}/fc.weight": ((settings["projection"], inputs), 0.6), f"{layer}/fc.bias": ((settings["projection"],), 0.3)}
            inputs = settings["projection"]
    run("cfc", name, settings, T, d_in, loss, seed, shapes, cfc, numpy_cfc, time)


def run(architecture, name, settings, T, d_in, loss, seed, shapes, forward, second, time):
    x = np.random.default_rng(seed + 500).standard_normal((T, d_in))
    elapsed = spans(time, T)
    make(name, architecture, settings, loss, "step loop as in ncps, checked against rounds of all steps at once", draw(seed, shapes), x,
         lambda record, p, v: forward(record, settings, p, v, elapsed), second=lambda p, v: second(settings, p, v, elapsed), seed=seed, time=time)


def main():
    times = np.cumsum(np.random.default_rng(650).uniform(0.3, 1.8, 12))
    ltc_case("ltc-full", {"width": 4, "layers": 1, "wiring": "full", "constraints": "softplus", "capacitance": "whole", "epsilon": 0.01}, 12, 2, "mean", 651)
    ltc_case("ltc-ncp", {"width": 6, "layers": 1, "wiring": "ncp", "motor": 1, "command": 2, "capacitance": "whole", "epsilon": 1e-8, "mixed_memory": True, "time_unit": 1.0}, 12, 2, "last", 652, times)
    ltc_case("ltc-auto-ncp", {"width": 5, "layers": 2, "wiring": "auto_ncp", "motor": 1}, 10, 2, "mean", 653)
    ltc_case("ltc-random", {"width": 4, "layers": 1, "wiring": "random", "sparsity": 0.3, "constraints": "softplus"}, 10, 2, "last", 654)
    cfc_case("cfc-full", {"width": 4, "layers": 1, "wiring": "full"}, 10, 2, "mean", 655)
    cfc_case("cfc-ncp", {"width": 7, "layers": 1, "wiring": "ncp", "motor": 2, "command": 2, "mixed_memory": True, "projection": 3, "time_unit": 1.0}, 12, 2, "last", 656, times)
    cfc_case("cfc-auto-ncp", {"width": 5, "layers": 2, "wiring": "auto_ncp", "motor": 1, "mode": "no_gate"}, 10, 2, "mean", 657)
    cfc_case("cfc-random", {"width": 4, "layers": 1, "wiring": "random", "mode": "pure"}, 10, 2, "last", 658)
